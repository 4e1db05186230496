//! Choosing rows by name; a name that is unknown gets the nearest ones.

use wildmatch::WildMatch;

use crate::exit::Failure;
use crate::rows::{PRIMITIVES, Variant};

/// Gives the variants of the named primitives (of all without a name) that match one of the
/// globs (all without a glob).
///
/// # Errors
/// When a primitive is unknown or a glob matches nothing.
pub(crate) fn variants(
    all: Vec<Variant>,
    primitives: &[String],
    globs: &[String],
) -> Result<Vec<Variant>, Failure> {
    for name in primitives {
        if !PRIMITIVES.contains(&name.as_str()) {
            return Err(unknown("primitive", name, &PRIMITIVES));
        }
    }
    let mut kept: Vec<Variant> = all
        .into_iter()
        .filter(|v| primitives.is_empty() || primitives.iter().any(|name| name == v.row.primitive))
        .collect();
    for glob in globs {
        let pattern = WildMatch::new(glob);
        if !kept.iter().any(|variant| pattern.matches(variant.row.id)) {
            let ids: Vec<&str> = kept.iter().map(|variant| variant.row.id).collect();
            return Err(unknown("variant", glob, &ids));
        }
    }
    if !globs.is_empty() {
        let patterns: Vec<WildMatch> = globs.iter().map(|glob| WildMatch::new(glob)).collect();
        kept.retain(|v| patterns.iter().any(|pattern| pattern.matches(v.row.id)));
    }
    Ok(kept)
}

/// Says that nothing is named `name`, and what is named like it.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> Failure {
    let nearest = nearest(name, known);
    Failure::Usage(if nearest.is_empty() {
        format!("no {what} matches `{name}`; there are {}", known.join(", "))
    } else {
        format!("no {what} matches `{name}`; nearest: {}", nearest.join(", "))
    })
}

/// Gives up to three names that look like `name`, the nearest first.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let likeness = |known: &str| {
        let inside = known.contains(name) && !name.is_empty();
        strsim::jaro_winkler(name, known) + if inside { 1.0 } else { 0.0 }
    };
    let mut near: Vec<&str> = known.iter().copied().filter(|known| likeness(known) > 0.7).collect();
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    near.dedup();
    near.truncate(3);
    near
}

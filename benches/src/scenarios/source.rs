//! Statements of the scenarios' sources: debug information names the brace that ends a lock's scope
//! where the lock is given back, and no line where two branches were made one.

use harness::simulated::HotPlace;

macro_rules! sources {
    ($($file:literal),* $(,)?) => {
        /// The sources, by name.
        const SOURCES: &[(&str, &str)] = &[$(($file, include_str!($file))),*];
    };
}

sources!(
    "atomic_vs_sharded.rs",
    "barrier_cost.rs",
    "batching.rs",
    "double_queue.rs",
    "false_sharing.rs",
    "gateway_parts.rs",
    "global_lru.rs",
    "l3_domain.rs",
    "lru.rs",
    "mailbox.rs",
    "numa_local.rs",
    "pool_oversize.rs",
    "shards.rs",
    "shared_queue_spike.rs",
    "steal_zipf.rs",
    "thread_cap.rs",
);

/// Where the sources are.
const FOLDER: &str = "benches/src/scenarios/";

/// Gives file and line of the statement that a place is in.
pub(crate) fn statement_of(place: &HotPlace) -> Option<String> {
    let line = place.line.as_deref()?;
    let (file, number) = match line.rsplit_once(':') {
        Some((file, number)) => (file, number.parse().unwrap_or(0)),
        None => (line, 0_usize),
    };
    let known = file.strip_prefix(FOLDER).and_then(|name| {
        let (_, source) = SOURCES.iter().find(|(known, _)| *known == name)?;
        let lines: Vec<&str> = source.lines().collect();
        if number == 0 { function(&lines, &place.function) } else { statement(&lines, number) }
    });
    Some(known.map_or_else(|| line.to_owned(), |number| format!("{file}:{number}")))
}

/// Whether a line has a word.
fn has_words(line: &str) -> bool {
    let line = line.trim_start();
    !line.starts_with("//") && line.contains(|letter: char| letter.is_alphanumeric())
}

/// Gives the number of the line where what ends on line `number` begins: above it, with no more
/// indentation, or the first line inside of a block that has none.
fn statement(lines: &[&str], number: usize) -> Option<usize> {
    let at = number.checked_sub(1)?;
    if has_words(lines.get(at)?) {
        return Some(number);
    }
    let indent = |line: &str| line.len() - line.trim_start().len();
    let begins = |line: &&str| !line.trim().is_empty() && indent(line) <= indent(lines[at]);
    let begin = at - 1 - lines[..at].iter().rev().position(begins)?;
    let first = lines[begin..at].iter().position(|line| has_words(line))?;
    Some(begin + first + 1)
}

/// Gives the number of the line where a function begins.
fn function(lines: &[&str], name: &str) -> Option<usize> {
    let name = name.split(['<', '(']).next()?.rsplit("::").next()?;
    let heads = [format!("fn {name}("), format!("fn {name}<")];
    let at = lines.iter().position(|line| heads.iter().any(|head| line.contains(head)))?;
    Some(at + 1)
}

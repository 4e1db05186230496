//! Figures that exclude each other.

use super::Costs;
use super::figure::Figures;
use super::shape::Shape;

use crate::time::NANOSECOND;

/// Times that do not fall from one to the next, nearest first.
const RISING: [&[&str]; 4] = [
    &[
        "transfer.smt_ns",
        "transfer.same_l3_ns",
        "transfer.same_socket_ns",
        "transfer.cross_socket_ns",
    ],
    &["memory.local_ns", "memory.remote_ns"],
    &["memory.local_ns", "memory.memory_only_ns"],
    &["cache.l2_hit_ns", "cache.l3_hit_ns", "memory.local_ns"],
];

/// Says what is contradictory: the field, and why.
pub(super) fn contradiction(
    figures: &Figures,
    costs: &Costs,
    shape: &Shape,
) -> Option<(&'static str, String)> {
    falling(figures)
        .or_else(|| slow_first_level(figures, costs))
        .or_else(|| impossible_cache(figures))
        .or_else(|| small_inclusive_l3(figures, shape))
        .or_else(|| greedy_core(figures))
}

/// A nearer thing that costs more than a farther one.
fn falling(figures: &Figures) -> Option<(&'static str, String)> {
    RISING.into_iter().find_map(|fields| {
        let there: Vec<&&str> = fields.iter().filter(|field| figures.has(field)).collect();
        there.windows(2).find_map(|pair| {
            let (near, far) = (figures.number(pair[0]), figures.number(pair[1]));
            let reason = || format!("{near} is more than the {far} of `{}`", pair[1]);
            (near > far).then(|| (*pair[0], reason()))
        })
    })
}

fn slow_first_level(figures: &Figures, costs: &Costs) -> Option<(&'static str, String)> {
    let shortest = RISING[0].iter().find(|field| figures.has(field)).copied();
    let hit_ns = costs.l1_hit as f64 / NANOSECOND as f64;
    let farther = shortest.into_iter().chain(["memory.local_ns", "cache.l2_hit_ns"]);
    farther
        .filter(|field| hit_ns > figures.number(field))
        .map(|field| {
            let reason = format!(
                "{hit_ns} ns at {} GHz are more than the {} of `{field}`",
                figures.number("clock.core_ghz"),
                figures.number(field)
            );
            ("cache.l1_hit_cycles", reason)
        })
        .next()
}

/// A cache that is no whole number of sets, or is smaller than the one before it.
fn impossible_cache(figures: &Figures) -> Option<(&'static str, String)> {
    let line = figures.count("cache.line_bytes");
    let levels = [
        ("cache.l1_kib", "cache.l1_ways"),
        ("cache.l2_kib", "cache.l2_ways"),
        ("cache.l3_kib", "cache.l3_ways"),
    ];
    let broken = levels.into_iter().find_map(|(size, ways)| {
        let (kib, count) = (figures.count(size), figures.count(ways));
        let set = count * line;
        if kib * 1024 < set {
            let reason = format!(
                "{kib} KiB are less than a line of {line} bytes for each of `{ways}` = {count}"
            );
            return Some((size, reason));
        }
        let reason = || {
            format!(
                "{kib} KiB are no whole number of sets of `{ways}` = {count} lines of {line} bytes"
            )
        };
        (!(kib * 1024).is_multiple_of(set)).then(|| (size, reason()))
    });
    let (l1, l2) = (figures.count("cache.l1_kib"), figures.count("cache.l2_kib"));
    let smaller = || ("cache.l2_kib", format!("{l2} KiB are less than the {l1} of `cache.l1_kib`"));
    broken.or_else(|| (l2 < l1).then(smaller))
}

fn small_inclusive_l3(figures: &Figures, shape: &Shape) -> Option<(&'static str, String)> {
    let cores = shape.cores_per_l3_group;
    let (l2, l3) = (figures.count("cache.l2_kib"), figures.count("cache.l3_kib"));
    let reason =
        || format!("an L3 of {l3} KiB cannot hold {cores} times the {l2} KiB of `cache.l2_kib`");
    (figures.flag("cache.l3_inclusive") && l3 < cores * l2)
        .then(|| ("cache.l3_inclusive", reason()))
}

fn greedy_core(figures: &Figures) -> Option<(&'static str, String)> {
    let core = figures.number("memory.core_gb_per_s");
    let node = figures.number("memory.node_gb_per_s");
    let reason = || format!("{core} is more than the {node} of `memory.node_gb_per_s`");
    (core > node).then(|| ("memory.core_gb_per_s", reason()))
}

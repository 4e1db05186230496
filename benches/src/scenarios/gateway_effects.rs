//! What the steps of the gateway have to show, and what each fix changes by itself.

use harness::report::number::short;

use super::effect::{Done, Effect, ratio};
use super::measured::{Load, Measured};
use super::reasons::{HARDLY, is_carried, is_exceeded, reason, served};
use super::text::{many, percent, rate, time};

/// What the whole shows, then what each step does.
pub(crate) fn effects(done: &[Done<'_>]) -> Vec<Effect> {
    let requests = |what, pair| ratio(what, done, Measured::throughput, pair);
    let p99 = |what, pair| ratio(what, done, Measured::p99, pair);
    let carried = |id: &str, who: &str| {
        (is_carried(done, id), format!("{who} carry this load as well: {}", served(done, id)))
    };
    let exceeded = |id: &str, who: &str| {
        (
            is_exceeded(done, id),
            format!("{who} cannot carry this load either: {}", served(done, id)),
        )
    };
    let both = ["before_few", "before"];
    let ends = ["before_few", "isolated"];
    let (few, all, fixed) = ("few workers", "all workers", "the fixed gateway's workers");
    let neither = (
        is_exceeded(done, "before") && is_exceeded(done, "before_few"),
        format!(
            "neither carries it: few {}, all {}",
            served(done, "before_few"),
            served(done, "before")
        ),
    );
    let more = (
        is_carried(done, "before_few"),
        format!(
            "few workers carry this load as well: {}; offer more with --rate",
            served(done, ends[0])
        ),
    );
    let mut effects = vec![
        requests("requests served with every flaw, few workers over all", ("before_few", "before"))
            .reported(7.5 / 3.4)
            .shown_by(1.05, reason(done, &both, [carried("before", all), neither])),
        p99("P99 with every flaw, all workers over few", ("before", "before_few"))
            .reported(280.0 / 55.0)
            .shown_by(
                1.05,
                reason(done, &both, [exceeded("before_few", few), carried("before", all)]),
            ),
        requests(
            "requests served, fixed over few workers with every flaw",
            ("isolated", "before_few"),
        )
        .reported(1.6)
        .shown_by(1.05, reason(done, &ends, [more, exceeded("isolated", fixed)])),
        p99("P99, few workers with every flaw over fixed", ("before_few", "isolated")).shown_by(
            1.05,
            reason(done, &ends, [exceeded("isolated", fixed), carried("before_few", few)]),
        ),
    ];
    effects.extend(done.iter().skip(1).zip(done.iter().skip(2)).filter_map(of_a_fix));
    effects
}

/// What a step changes, and what that comes from.
fn of_a_fix((before, after): (&Done<'_>, &Done<'_>)) -> Option<Effect> {
    let what = format!("{} against {}", after.step.id, before.step.id);
    let (was, is) = (before.measured?, after.measured?);
    let mut words = vec![
        format!("served {} → {}/s", rate(was.throughput()?), rate(is.throughput()?)),
        format!("P99 {} → {}", time(was.p99()?), time(is.p99()?)),
        format!("waiting for locks {} → {}", percent(was.waiting()), percent(is.waiting())),
    ];
    words.extend(lines(was).zip(lines(is)).map(|(was, is)| format!("lines {was} → {is}")));
    Some(Effect::said(what, format!("{}; {}", words.join(", "), why(before, after).join("; "))))
}

/// Lines from other cores of a request, by distance.
fn lines(of: &Measured) -> Option<String> {
    let all = [
        of.per_op(|counts| counts.smt + counts.same_l3)?,
        of.per_op(|counts| counts.same_socket)?,
        of.per_op(|counts| counts.cross_socket)?,
    ];
    Some(all.map(short).join("|"))
}

/// A change that is worth a word.
const CHANGE: f64 = 1.1;

/// What the change comes from, as far as figures tell.
fn why(before: &Done<'_>, after: &Done<'_>) -> Vec<String> {
    let (Some(was), Some(is)) = (before.measured, after.measured) else { return Vec::new() };
    let mut words = vec![load(was, is).to_owned()];
    let setting = after.setting;
    let only = |name: &str| setting.count(name) == 1;
    if after.step.id == "sharded" && (only("shards") || only("keys")) {
        let name = if only("shards") { "shards" } else { "keys" };
        words.push(format!("with --{name} 1 all requests still go through one lock"));
    }
    let place =
        |of: &Measured| of.waits.first().map_or_else(String::new, |wait| wait.place.clone());
    let (waited, waits) = (was.waiting(), is.waiting());
    if waited >= HARDLY && waits < waited / 2.0 {
        words.push(format!("hardly anybody waits any more where they did, at {}", place(was)));
    } else if waits >= HARDLY && waits > waited * CHANGE {
        words.push(format!("more wait, at {}", place(is)));
    } else if waits >= HARDLY && place(was) != place(is) {
        words.push(format!("what is waited for is now the lock at {}", place(is)));
    } else if waits >= HARDLY {
        words.push(format!("the lock at {} is waited for as before", place(is)));
    }
    if let (Some(were), Some(are)) = (was.transfers(), is.transfers()) {
        let far = |of: &Measured| of.per_op(|counts| counts.cross_socket).unwrap_or(0.0);
        let compared = |were: f64, are: f64| match () {
            () if are * CHANGE < were => Some("fewer"),
            () if are > were * CHANGE => Some("more"),
            () => None,
        };
        words.push(match (compared(were, are), compared(far(was), far(is))) {
            (None, None) => "lines come as before".to_owned(),
            (Some(all), None) => format!("{all} lines come from other cores"),
            (None, Some(far)) => format!("{far} of the lines come from the other socket"),
            (Some(all), Some(far)) => {
                format!(
                    "{all} lines come from other cores, and {far} of them from the other socket"
                )
            }
        });
    }
    let use_of = |of: &Measured| of.cpu_ns / (of.ops.len() as f64 * of.time_ns.max(1.0));
    if after.step.threads < before.step.threads && use_of(is) > BUSY {
        words.push(format!(
            "{} busy for {} of the time: too few for this load",
            many(after.step.threads, "worker"),
            percent(use_of(is))
        ));
    }
    words
}

/// The part of the time that workers with more to do than they can are busy.
const BUSY: f64 = 0.8;

/// What the load says of two steps.
fn load(was: &Measured, is: &Measured) -> &'static str {
    match (was.load(), is.load()) {
        (Some(Load::Carried), Some(Load::Carried)) => {
            "the load was carried already, so that no more can be served"
        }
        (Some(Load::Exceeded), Some(Load::Carried)) => "now the load is carried",
        (Some(Load::Carried), Some(Load::Exceeded)) => "now the load is not carried any more",
        (Some(Load::Exceeded), Some(Load::Exceeded)) => "the load is not carried yet",
        _ => "the run is too short to tell whether the load is carried",
    }
}

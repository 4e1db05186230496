//! What came of a scenario, as text.

use comfy_table::{CellAlignment, Table, presets};
use harness::native::Failure as Broken;
use harness::report::number::short;
use harness::simulated::{HotPlace, LineReport, Sharing};

use super::effect::Effect;
use super::measured::{Counted, Measured};
use super::scenario::Scenario;
use crate::scenario_run::{Outcome, Plan};

/// Tells the scenarios.
pub(crate) fn list(all: &[&Scenario], json: bool) -> String {
    let one = |scenario: &&Scenario| {
        let Scenario { name, title, threads, ops, parameters, what, reported, .. } = scenario;
        if json {
            let parameters = parameters.iter().map(|own| {
                let (least, most) = own.range;
                serde_json::json!({"name": own.name, "default": own.default, "least": least,
                    "most": most, "means": own.means})
            });
            return serde_json::json!({
                "name": name, "title": title, "what": what, "reported": reported,
                "threads": threads, "ops": ops, "parameters": parameters.collect::<Vec<_>>(),
            })
            .to_string();
        }
        let own = parameters
            .iter()
            .map(|own| format!("\n    --{} {}: {}", own.name, own.default, own.means));
        format!(
            "{name:<22} {title}\n    --threads {threads} --ops {ops}{}",
            own.collect::<String>()
        )
    };
    all.iter().map(one).collect::<Vec<_>>().join("\n")
}

/// Says why there are no figures.
pub(crate) fn why(broken: &Broken) -> String {
    match broken {
        Broken::Broken(reason) => reason.clone(),
        Broken::Unavailable(reason) => reason.to_string(),
    }
}

/// Tells a scenario: what it is, its steps, what they show, and who is at fault.
pub(crate) fn scenario(plan: &Plan, machine: Option<&str>) -> String {
    let Scenario { name, title, what, reported, .. } = plan.scenario;
    let place = place(plan, machine);
    let mut text = format!(
        "{name}: {title}\n{}\n{place}\n\n{}\n\n",
        wrapped(what, 100),
        table(plan).trim_fmt()
    );
    for one in &plan.steps {
        text.extend(notes(one).into_iter().map(|note| format!("{}: {note}\n", one.step.id)));
    }
    text.push_str(&format!("field report: {reported}\n"));
    text.extend(plan.effects().iter().map(|effect| format!("→ {}\n", told(effect))));
    text
}

/// Where a scenario ran, and with what.
pub(crate) fn place(plan: &Plan, machine: Option<&str>) -> String {
    let place = match machine {
        Some(machine) => format!("simulated {machine}"),
        None => "native, this host".to_owned(),
    };
    let setting = &plan.setting;
    let values = setting.values.iter().map(|(name, value)| format!(", {name} {value}"));
    let ops = format!("{} operations of each thread", setting.ops);
    format!("({place}, {ops}, seed {}{})", setting.seed, values.collect::<String>())
}

/// Breaks a text into lines.
fn wrapped(text: &str, most: usize) -> String {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].chars().count() + 1 + word.chars().count() > most
        {
            lines.push(word.to_owned());
        } else {
            let gap = if lines[last].is_empty() { "" } else { " " };
            lines[last] = format!("{}{gap}{word}", lines[last]);
        }
    }
    lines.join("\n")
}

/// The columns of a scenario's table.
pub(crate) const COLUMNS: [&str; 13] = [
    "step",
    "threads",
    "ops/s",
    "P50",
    "P99",
    "CPU s",
    "fair",
    "instr/op",
    "L3|socket|cross/op",
    "memory/op",
    "syscalls/op",
    "faults/op",
    "lock wait/op",
];

/// The cells of a step's row.
pub(crate) fn cells(one: &Outcome) -> Vec<String> {
    let mut cells = vec![one.step.id.clone(), one.step.threads.to_string()];
    let Some(Ok(measured)) = &one.measured else {
        cells.push(match &one.measured {
            Some(Err(Broken::Broken(_))) => "broken".into(),
            Some(Err(Broken::Unavailable(_))) => "unavailable".into(),
            _ => "not run".into(),
        });
        return cells;
    };
    let text =
        |value: Option<f64>, write: fn(f64) -> String| value.map_or_else(|| "-".to_owned(), write);
    let per_op = |count: fn(&Counted) -> u64| text(measured.per_op(count), short);
    let by_distance = [
        per_op(|counts| counts.smt + counts.same_l3),
        per_op(|counts| counts.same_socket),
        per_op(|counts| counts.cross_socket),
    ];
    let all = measured.all().max(1) as f64;
    cells.extend([
        text(measured.throughput(), rate),
        text(measured.p50(), time),
        text(measured.p99(), time),
        short(measured.cpu_ns / 1e9),
        text(measured.fairness(), |fairness| format!("{fairness:.2}")),
        per_op(|counts| counts.instructions),
        by_distance.join("|"),
        per_op(|counts| counts.memory_reads),
        per_op(|counts| counts.syscalls),
        short(measured.page_faults as f64 / all),
        time(measured.wait_ns()),
    ]);
    cells
}

fn table(plan: &Plan) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(COLUMNS);
    for one in &plan.steps {
        table.add_row(cells(one));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// What is to be said of a step beyond its figures.
pub(crate) fn notes(one: &Outcome) -> Vec<String> {
    match &one.measured {
        None => Vec::new(),
        Some(Err(broken)) => vec![why(broken)],
        Some(Ok(measured)) => {
            let mut notes = vec![one.step.title.clone()];
            let facts = measured.facts.iter();
            notes.extend(facts.map(|(name, value)| fact(name, *value)));
            notes = vec![notes.join("; ")];
            notes.extend(not_carried(measured));
            notes.extend(waited(measured));
            let lock = measured.waits.first().map(|wait| wait.place.as_str());
            notes.extend(one.lines.as_ref().and_then(|lines| at_fault(lines, lock)));
            notes
        }
    }
}

/// The part of what is offered that has to be served.
const CARRIED: f64 = 0.95;

/// Says if a load was more than could be carried.
fn not_carried(measured: &Measured) -> Option<String> {
    let (offered, served) = (measured.fact("offered_per_s")?, measured.throughput()?);
    (served < CARRIED * offered).then(|| {
        format!(
            "it cannot carry this load: {}/s offered, {}/s served; its latency grows for as long as \
             the load lasts",
            rate(offered),
            rate(served)
        )
    })
}

fn fact(name: &str, value: f64) -> String {
    let words = name.replace('_', " ");
    match (words.strip_suffix(" ns"), words.strip_suffix(" per s")) {
        (Some(words), _) => format!("{words} {}", time(value)),
        (_, Some(words)) => format!("{words} {}/s", rate(value)),
        _ => format!("{words} {}", short(value)),
    }
}

/// The least part of all threads' time that is told of waiting for a lock.
const WORTH_TELLING: f64 = 0.02;

/// Names the lock that threads waited for longest.
fn waited(measured: &Measured) -> Option<String> {
    let wait = measured.waits.first()?;
    let all: u64 = measured.waits.iter().map(|wait| wait.ns).sum();
    let share = wait.ns as f64 / measured.threads_ns.max(1) as f64;
    (share >= WORTH_TELLING).then(|| {
        format!(
            "the lock at {} was waited for {} times, {} each: {:.0} % of all threads' time, {:.0} % \
             of all waiting for locks",
            wait.place,
            wait.times,
            time(wait.ns as f64 / wait.times.max(1) as f64),
            100.0 * share,
            100.0 * wait.ns as f64 / all.max(1) as f64,
        )
    })
}

/// What locks are made of, and what takes them for all scenarios.
const OF_LOCKS: [&str; 3] = ["library/", "/rustc/", "benches/src/scenarios/turn.rs"];

/// Whether a place of the source is inside a lock.
fn is_of_a_lock(place: &HotPlace) -> bool {
    place.line.as_deref().is_none_or(|line| OF_LOCKS.iter().any(|begin| line.starts_with(begin)))
}

/// Names the line that cores fought for most; `lock` is the place of the lock that was waited for.
fn at_fault(lines: &LineReport, lock: Option<&str>) -> Option<String> {
    let first = lines.lines.first()?;
    let all = lines.transfers();
    if all == 0 || matches!(first.sharing, Sharing::Private | Sharing::ReadOnly) {
        return None;
    }
    let waiting: u64 = lines.lines.iter().map(|line| line.transfer_ps).sum();
    let ours = first.places.iter().find(|place| !is_of_a_lock(place));
    let what = match (ours, lock, first.places.first()) {
        (Some(place), ..) => {
            let source = place.line.as_deref().unwrap_or("no source line");
            format!("{} at {source} ({})", first.object, plain(&place.function))
        }
        (None, Some(lock), _) => {
            format!("{}, a lock's word; the lock waited for longest is at {lock}", first.object)
        }
        (None, None, place) => {
            let function = place.map_or("", |place| plain(&place.function));
            format!("{} in {function}", first.object)
        }
    };
    Some(format!(
        "the line at fault: {}, {} cores, {what}: {:.0} % of all transfers, {:.0} % of the waiting \
         for lines",
        first.sharing.text(),
        first.cores.len(),
        100.0 * first.transfers.total() as f64 / all as f64,
        100.0 * first.transfer_ps as f64 / waiting.max(1) as f64,
    ))
}

/// A function's name without its parameters.
fn plain(function: &str) -> &str {
    function.split('<').next().filter(|name| !name.is_empty()).unwrap_or(function)
}

/// What an effect shows, beside what was reported.
pub(crate) fn told(effect: &Effect) -> String {
    let Some(ours) = effect.ours else {
        return format!("{}: no figure, as a step has none", effect.what);
    };
    let band = match effect.band() {
        Some((low, high)) if effect.factor > 1.0 => {
            format!(" (band {}–{})", short(low), short(high))
        }
        _ => String::new(),
    };
    let reported = effect
        .reported
        .map_or_else(String::new, |reported| format!(", field report {}", short(reported)));
    let shown = match effect.shows() {
        _ if effect.at_least == 0.0 => {
            return format!("{}: {}{band}{reported}", effect.what, short(ours));
        }
        Some(true) => "appears".to_owned(),
        _ => format!("does not appear (at least {}): {}", short(effect.at_least), effect.otherwise),
    };
    format!("{}: {}{band}{reported}: {shown}", effect.what, short(ours))
}

/// A number in a second.
pub(crate) fn rate(per_s: f64) -> String {
    match per_s {
        per_s if per_s >= 1e9 => format!("{} G", short(per_s / 1e9)),
        per_s if per_s >= 1e6 => format!("{} M", short(per_s / 1e6)),
        per_s if per_s >= 1e3 => format!("{} k", short(per_s / 1e3)),
        per_s => short(per_s),
    }
}

/// A time, given in nanoseconds.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{} s", short(ns / 1e9)),
        ns if ns >= 1e6 => format!("{} ms", short(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} µs", short(ns / 1e3)),
        ns => format!("{} ns", short(ns)),
    }
}

//! What came of a scenario, as text.

use comfy_table::{CellAlignment, Table, presets};
use harness::native::Failure as Broken;
use harness::report::number::short;
use harness::simulated::{HotLine, HotPlace, LineReport, Sharing};

use super::effect::Effect;
use super::measured::{Counted, Load, Measured};
use super::scenario::Scenario;
use super::source::statement_of;
use crate::scenario_run::{Outcome, Plan};

/// Tells the scenarios.
pub(crate) fn list(all: &[&Scenario], json: bool) -> String {
    let one = |scenario: &&Scenario| {
        let Scenario { name, title, threads, ops, parameters, what, reported, .. } = scenario;
        let native_ops = scenario.native_ops;
        if json {
            let parameters = parameters.iter().map(|own| {
                let (least, most) = own.range;
                serde_json::json!({"name": own.name, "default": own.default, "least": least,
                    "most": most, "means": own.means})
            });
            return serde_json::json!({
                "name": name, "title": title, "what": what, "reported": reported,
                "threads": threads, "ops": ops, "native_ops": native_ops, "parameters": parameters.collect::<Vec<_>>(),
            })
            .to_string();
        }
        let own = parameters
            .iter()
            .map(|own| format!("\n    --{} {}: {}", own.name, own.default, own.means));
        format!(
            "{name:<22} {title}\n    --threads {threads} --ops {ops} (natively {native_ops}){}",
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
            notes.extend(measured.disturbed());
            notes.extend(not_carried(measured));
            notes.extend(waited(measured));
            let lock = measured.waits.first().map(|wait| wait.place.as_str());
            notes.extend(one.lines.as_ref().map(|lines| at_fault(lines, lock)));
            let is_found = one.lines.is_some() || waited(measured).is_some();
            notes.extend(one.step.no_line.filter(|_| !is_found).map(str::to_owned));
            notes
        }
    }
}

/// Says if a load was more than could be carried.
fn not_carried(measured: &Measured) -> Option<String> {
    let (offered, served) = (measured.fact("offered_per_s")?, measured.throughput()?);
    (measured.load() == Some(Load::Exceeded)).then(|| {
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

/// The least part of an operation's time that is.
const OF_AN_OPERATION: f64 = 0.05;

/// Names the lock or condition that threads waited for longest.
fn waited(measured: &Measured) -> Option<String> {
    let wait = measured.waits.first()?;
    let all: u64 = measured.waits.iter().map(|wait| wait.ns).sum();
    let share = wait.ns as f64 / measured.threads_ns.max(1) as f64;
    let of_an_operation = measured.wait_ns() / measured.mean()?.max(1.0);
    (share >= WORTH_TELLING || of_an_operation >= OF_AN_OPERATION).then(|| {
        format!(
            "the {} at {} was waited for {} times, {} each: {} of all threads' time, {} of all \
             waiting for locks and conditions",
            if wait.condition { "condition" } else { "lock" },
            wait.place,
            wait.times,
            time(wait.ns as f64 / wait.times.max(1) as f64),
            percent(share),
            percent(wait.ns as f64 / all.max(1) as f64),
        )
    })
}

/// The least part of all transfers, or of the waiting for lines, that makes a line stand out.
const STANDS_OUT: f64 = 0.05;

/// The least part that makes it the one at fault, and not only the hottest.
const AT_FAULT: f64 = 0.25;

/// What locks are made of, and what takes them for all scenarios.
const OF_LOCKS: [&str; 3] = ["library/", "/rustc/", "benches/src/scenarios/turn.rs"];

/// Whether a place of the source is inside a lock.
fn is_of_a_lock(place: &HotPlace) -> bool {
    place.line.as_deref().is_none_or(|line| OF_LOCKS.iter().any(|begin| line.starts_with(begin)))
}

/// Names the line that cores fought for most; `lock` is the place of the lock that was waited for.
fn at_fault(lines: &LineReport, lock: Option<&str>) -> String {
    let is_shared = |line: &&HotLine| !matches!(line.sharing, Sharing::Private | Sharing::ReadOnly);
    let all = lines.transfers();
    let waiting: u64 = lines.lines.iter().map(|line| line.transfer_ps).sum();
    let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
    let shares =
        |line: &HotLine| (share(line.transfers.total(), all), share(line.transfer_ps, waiting));
    let stands_out = |line: &&HotLine| {
        let (of_transfers, of_waiting) = shares(line);
        of_transfers.max(of_waiting) >= STANDS_OUT
    };
    let Some(first) = lines.lines.iter().filter(is_shared).find(stands_out) else {
        return "no line stands out".to_owned();
    };
    let (of_transfers, of_waiting) = shares(first);
    let ours = first.places.iter().find(|place| !is_of_a_lock(place));
    let what = match (ours, lock, first.places.first()) {
        (Some(place), ..) => {
            let source = statement_of(place).unwrap_or_else(|| "no source line".to_owned());
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
    let is_at_fault = of_transfers.max(of_waiting) >= AT_FAULT;
    format!(
        "{}: {}, {} cores, {what}: {} of all transfers, {} of the waiting for lines",
        if is_at_fault { "the line at fault" } else { "the hottest line" },
        first.sharing.text(),
        first.cores.len(),
        percent(of_transfers),
        percent(of_waiting),
    )
}

/// A function's name without its parameters.
fn plain(function: &str) -> &str {
    function.split('<').next().filter(|name| !name.is_empty()).unwrap_or(function)
}

/// What an effect shows, beside what was reported.
pub(crate) fn told(effect: &Effect) -> String {
    if let Some(said) = &effect.said {
        return format!("{}: {said}", effect.what);
    }
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
    let verdict = verdict(effect).map_or_else(String::new, |verdict| format!(": {verdict}"));
    format!("{}: {}{band}{reported}{verdict}", effect.what, short(ours))
}

/// Whether an effect appears, and how sure that is; `None` for what is no effect.
fn verdict(effect: &Effect) -> Option<String> {
    let (low, high) = effect.band()?;
    let (least, is_modelled) = (effect.at_least, effect.factor > 1.0);
    if least == 0.0 {
        return None;
    }
    Some(match (effect.shows(), &effect.void) {
        (None, why) => format!("no verdict, {}", why.as_deref().unwrap_or("without a figure")),
        (Some(true), _) if is_modelled && low <= 1.0 => {
            "appears, within the model's error".to_owned()
        }
        (Some(true), _) if low < least => {
            format!("appears; the band reaches below {}", short(least))
        }
        (Some(true), _) => "appears".to_owned(),
        (Some(false), _) if is_modelled && high >= least => format!(
            "does not appear, within the model's error (at least {}): {}",
            short(least),
            effect.otherwise
        ),
        (Some(false), _) => {
            format!("does not appear (at least {}): {}", short(least), effect.otherwise)
        }
    })
}

/// A part, in hundredths.
pub(crate) fn percent(part: f64) -> String {
    match 100.0 * part {
        percent if percent > 0.0 && percent < 1.0 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// How many of something, by its name for one.
pub(crate) fn many(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
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

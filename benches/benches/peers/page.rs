//! The page of prices, as Markdown.

use std::fmt::Write;

use harness::paired::Verdict;
use harness::report::number::{exact, short};
use topology::Topology;

use crate::Priced;
use crate::flags::Flags;
use crate::jobs::{Candidate, Whose};
use crate::notes::NOTES;
use crate::paired::{Fought, Paired};
use crate::simulated::MACHINES;
use crate::targets::{self, Target};

const HEAD: &str = "\
# Prices

What ours costs beside what other crates and the standard library offer for the same job. Written by
`cargo bench -p manycore --bench peers -- --write ../docs/prices.md`; nothing here was typed by hand but
the explanations.

**How.** Each job is the same loop around each candidate, behind the face that its users see (guards,
closures, owned ends), compiled in one program with one profile.

- *Instructions* and *RMWs* (locked instructions and exchanges) are those of one operation of one thread,
  counted by the simulator, the loop included; rows of kind *baseline* are the loop alone.
- *Bytes* are those of the object without what it guards or holds; of queues with what it has on the heap
  besides slots, as the C library's allocator counts it. *Each* are those that a waiter brings, or that
  a slot for 8 bytes takes; `-` where there is no such thing or it is not told.
- *ns* is one thread's time for an operation on this host: windows of all candidates in turn, in rotated
  order, in one process. *Against* is the median ratio to the fastest of the others' (**bold**) with its 95 %
  bootstrap interval, and the verdict by the rule of [`manycore ab`](ab.md), with a margin of 3 % and the floor
  of the bold one against itself. In one process memory lies one way of many: differences of a few per cent
  are that process's.
- *Simulated* is one thread's time for an operation in nanoseconds on so many cores of another machine, placed
  compactly, a thread on each; the whole machine completes one every so many nanoseconds divided by the cores.
  The last line says by which factor the time model may be off. Fairness (Jain's) stands in brackets where it is
  below 0.9. `-` was not simulated: fewer cores, or a queue for one thread on a side.
- Rows of kind *control* are wrong on purpose.
";

/// Writes the page.
pub(crate) fn page(all: &[Priced], fought: &[Fought], flags: &Flags) -> String {
    let mut page = String::from(HEAD);
    let _ = writeln!(page, "\n{}\n", host(flags));
    let targets = targets::judge(all, fought);
    if !targets.is_empty() {
        page.push_str("## Targets\n\n| target | found | |\n|---|---|---|\n");
        for Target { what, found, met } in &targets {
            let _ =
                writeln!(page, "| {what} | {found} | {} |", if *met { "met" } else { "missed" });
        }
        note(&mut page, "targets");
    }
    let mut of = "";
    for priced in all {
        if priced.job.of != of {
            of = priced.job.of;
            let _ = writeln!(page, "\n## {of}");
        }
        section(&mut page, priced);
    }
    page
}

fn host(flags: &Flags) -> String {
    let cpu = Topology::this_host().ok().and_then(|topology| {
        let model = topology.cpuinfo.as_ref()?.model_name.clone()?;
        Some(format!("{model}, {} CPUs", topology.parallelism()))
    });
    let quick = if flags.quick { " A quick run: few pairs, short windows." } else { "" };
    format!(
        "**Where.** {}; {}; commit {}; {}.{quick}",
        cpu.unwrap_or_else(|| "a host that does not say what it is".into()),
        env!("MANYCORE_RUSTC"),
        env!("MANYCORE_COMMIT"),
        harness::host::date("%Y-%m-%d"),
    )
}

fn note(page: &mut String, id: &str) {
    for (_, why) in NOTES.iter().filter(|(job, _)| *job == id) {
        let _ = writeln!(page, "\n{why}");
    }
}

fn section(page: &mut String, priced: &Priced) {
    let _ = writeln!(page, "\n### `{}`\n\n{}.", priced.job.id, capitalised(priced.job.what));
    if !priced.exact.is_empty() || priced.paired.is_some() {
        prices(page, priced);
    }
    for machine in MACHINES {
        simulated(page, priced, machine);
    }
    note(page, priced.job.id);
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

fn name(candidate: &Candidate, reference: bool) -> String {
    let kind = match candidate.whose {
        Whose::Control => " (control)",
        Whose::Nobody => " (baseline)",
        Whose::Ours | Whose::Theirs => "",
    };
    if reference { format!("**`{}`**", candidate.id) } else { format!("`{}`{kind}", candidate.id) }
}

fn prices(page: &mut String, priced: &Priced) {
    let paired = priced.paired.as_ref();
    let times = paired.and_then(|paired| paired.as_ref().ok());
    match paired {
        Some(Err(reason)) => {
            let _ = writeln!(page, "\nNot timed here: {reason}.");
        }
        Some(Ok(Paired { floor, .. })) => {
            let _ = writeln!(page, "\nFloor: {:.1} %.", floor * 100.0);
        }
        None => {}
    }
    if priced.exact.is_empty() && times.is_none() {
        return;
    }
    page.push_str(
        "\n| candidate | instructions | RMWs | bytes | each | ns | against | verdict |\n",
    );
    page.push_str("|---|---:|---:|---:|---:|---:|---:|---|\n");
    for (at, candidate) in priced.candidates() {
        let (instructions, rmw) = match priced.exact.get(at) {
            Some(Ok(found)) => (exact(found.instructions), exact(found.rmw)),
            Some(Err(reason)) => (reason.clone(), "-".into()),
            None => ("-".into(), "-".into()),
        };
        let bytes = (candidate.bytes)();
        let object = bytes.map_or("-".into(), |bytes| bytes.object.to_string());
        let each = bytes.and_then(|bytes| bytes.each).map_or("-".into(), |each| each.to_string());
        let reference = times.is_some_and(|times| times.reference == at);
        let (ns, against, verdict) = match times.and_then(|times| times.times.get(at)) {
            Some(Ok(time)) => {
                let (against, verdict) = match time.against {
                    Some((ratio, verdict)) => (
                        format!(
                            "{} ({} … {})",
                            short(ratio.value),
                            short(ratio.low),
                            short(ratio.high)
                        ),
                        verdict.word(),
                    ),
                    None => ("-".into(), ""),
                };
                (short(time.ns_per_op), against, verdict)
            }
            Some(Err(reason)) => (reason.clone(), "-".into(), ""),
            None => ("-".into(), "-".into(), ""),
        };
        let bold = |verdict: &str| match verdict == Verdict::Slower.word() {
            true if candidate.whose == Whose::Ours => format!("*{verdict}*"),
            _ => verdict.to_owned(),
        };
        let _ = writeln!(
            page,
            "| {} | {instructions} | {rmw} | {object} | {each} | {ns} | {against} | {} |",
            name(candidate, reference),
            bold(verdict)
        );
    }
}

fn simulated(page: &mut String, priced: &Priced, machine: &str) {
    let points = || priced.simulated.iter().filter(|point| point.machine == machine);
    let mut cores: Vec<usize> = points().map(|point| point.cores).collect();
    cores.sort_unstable();
    cores.dedup();
    if cores.is_empty() {
        return;
    }
    let heads: Vec<String> = cores.iter().map(|cores| format!(" {cores} |")).collect();
    let _ = writeln!(page, "\n| simulated ns, `{machine}`, cores |{}", heads.concat());
    let _ = writeln!(page, "|---|{}", "---:|".repeat(cores.len()));
    for (at, candidate) in priced.candidates() {
        let cell = |cores: &usize| {
            let point = points().find(|point| point.candidate == at && point.cores == *cores);
            match point.map(|point| &point.figures) {
                Some(Ok(figures)) if figures.fairness < 0.9 => {
                    format!(" {} ({:.2}) |", short(figures.ns_per_op), figures.fairness)
                }
                Some(Ok(figures)) => format!(" {} |", short(figures.ns_per_op)),
                Some(Err(reason)) => format!(" {} |", reason_of(reason)),
                None => " - |".into(),
            }
        };
        let cells: Vec<String> = cores.iter().map(cell).collect();
        let _ = writeln!(page, "| {} |{}", name(candidate, false), cells.concat());
    }
    let band = |cores: &usize| {
        let figures = points().filter(|point| point.cores == *cores);
        let band = figures.filter_map(|point| point.figures.as_ref().ok()).map(|f| f.band).next();
        format!(" ×{} |", band.map_or_else(|| "?".into(), short))
    };
    let bands: Vec<String> = cores.iter().map(band).collect();
    let _ = writeln!(page, "| off up to |{}", bands.concat());
}

/// The word before the colon, and none for what was not to be expected.
fn reason_of(reason: &str) -> &str {
    let word = reason.split([':', ' ']).next().unwrap_or(reason);
    if word.starts_with("single_") { "-" } else { word }
}

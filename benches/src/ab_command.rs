//! `manycore ab`: is B faster than A, by windows of both in turn?

use std::fmt::Write;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use harness::paired::windows::Windows;
use harness::paired::{Finding, Settings, Trial, Verdict, interval};
use harness::report::number::short;
use harness::stats::{Estimate, SplitMix, median};
use serde_json::json;

use crate::ab_arms::{Arms, ArmsArgs};
use crate::ab_records::AbRecords;
use crate::cli::size;
use crate::exit::Failure;
use crate::stdout::{self, note};
use crate::sweep_command::catch_signals;

pub(crate) const HELP: &str = "\
Examples:
  manycore ab locks/ticket locks/mcs --threads 2
      is mcs faster than ticket, and by how much?
  manycore ab locks/tas locks/ticket locks/mcs locks/futex --critical-ns 200
      several variants against the first
  manycore ab queues/mpmc_ring_vyukov queues/mutex_ring --processes 5
      in fresh processes, in which memory lies elsewhere each time
  manycore ab counters/atomic counters/atomic
      A against itself must be equal
  manycore ab locks/ticket locks/mcs --out ab.jsonl && manycore report ab.jsonl
      a record of each variant, as a sweep writes them

Windows of all variants in turn; first A against itself, which gives the noise floor. Ratios are
looked at four times, and a verdict that is sure ends the trial (docs/ab.md).
Exit codes: 0 faster, equal or slower, 1 a variant is broken or unavailable, 2 usage,
4 inconclusive, 130 interrupted";

/// Looks at the ratios, and the part of the pairs that there are at each.
const LOOKS: [f64; 4] = [0.125, 0.25, 0.5, 1.0];

#[derive(Debug, Args)]
pub(crate) struct AbArgs {
    #[command(flatten)]
    arms: ArmsArgs,
    /// Per cent by which B may differ from A and be called equal
    #[arg(long, value_name = "PERCENT", default_value = "3", value_parser = margin, allow_hyphen_values = true)]
    margin: f64,
    /// Probability of calling any variant faster or slower that is neither
    #[arg(long, value_name = "P", default_value = "0.05", value_parser = alpha, allow_hyphen_values = true)]
    alpha: f64,
    /// Pairs of windows at the most
    #[arg(long, value_name = "N", default_value = "384", value_parser = pairs, allow_hyphen_values = true)]
    pairs: usize,
    /// Fresh processes for each look; 1 measures in one process, whose layout of memory is one of many
    #[arg(long, value_name = "N", default_value = "1", value_parser = processes, allow_hyphen_values = true)]
    processes: usize,
    /// Append a record of each variant to this file, for `manycore report` and `manycore compare`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON, one variant a line
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long)]
    quiet: bool,
}

fn within(text: &str, least: f64, most: f64, what: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("{what} is a number from {least} to {most}")),
    }
}

fn margin(text: &str) -> Result<f64, String> {
    within(text, 0.1, 100.0, "a margin in per cent")
}

fn alpha(text: &str) -> Result<f64, String> {
    within(text, 0.000_1, 0.2, "a probability")
}

fn pairs(text: &str) -> Result<usize, String> {
    match size(text, "a number of pairs", 100_000)? {
        few @ ..16 => Err(format!("{few} pairs decide nothing; 16 are the least")),
        enough => Ok(enough),
    }
}

fn processes(text: &str) -> Result<usize, String> {
    size(text, "a number of processes", 100)
}

/// Measures, and says so.
pub(crate) struct Measuring {
    pub(crate) arms: Arms,
    processes: usize,
    random: SplitMix,
    interrupted: Arc<AtomicBool>,
    told: bool,
    rounds: usize,
    pub(crate) disturbed: u64,
    pub(crate) windows: u64,
}

impl Measuring {
    /// Measures `pairs` rounds of the variants at these positions, spread over the processes; fewer
    /// when somebody interrupts.
    fn rounds(&mut self, at: &[usize], pairs: usize) -> Result<Vec<Windows>, Failure> {
        let mut all = Vec::new();
        for process in 0..self.processes {
            if self.interrupted.load(Ordering::Relaxed) {
                break;
            }
            if self.told && io::stderr().is_terminal() {
                let names: Vec<&str> = at.iter().map(|&at| self.arms.names[at].as_str()).collect();
                let of = format!("process {} of {}", process + 1, self.processes);
                note(&format!("measuring {} ({pairs} pairs, {of})", names.join(", ")));
            }
            let rounds = (self.rounds, pairs.div_ceil(self.processes));
            self.rounds += rounds.1;
            let windows = match self.processes {
                1 => self.arms.here(at, rounds, &self.interrupted)?,
                _ => match self.arms.elsewhere(at, rounds, &mut self.random) {
                    // The signal went to that process too.
                    Err(_) if self.interrupted.load(Ordering::Relaxed) => break,
                    windows => windows?,
                },
            };
            self.disturbed += windows.disturbed;
            self.windows += windows.ns_per_op.iter().map(|times| times.len() as u64).sum::<u64>();
            all.push(windows);
        }
        Ok(all)
    }

    /// Fails if somebody has interrupted; `kept` says what came of the pairs so far.
    fn go_on(&self, kept: &str) -> Result<(), Failure> {
        if !self.interrupted.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Failure::Interrupted(format!("interrupted before there was a verdict{kept}")))
    }
}

fn ratios(windows: &Windows, of: usize, to: usize) -> impl Iterator<Item = f64> {
    let pairs = windows.ns_per_op[of].iter().zip(&windows.ns_per_op[to]);
    pairs.map(|(of, to)| of / to)
}

/// How far A is from itself.
struct Floor {
    estimate: Estimate,
    pairs: usize,
}

impl Floor {
    /// The end of the interval that is farther from 1, as a part.
    fn part(&self) -> f64 {
        self.estimate.low.ln().abs().max(self.estimate.high.ln().abs()).exp_m1()
    }
}

fn floor(measuring: &mut Measuring, pairs: usize, seed: u64) -> Result<Floor, Failure> {
    let measured = measuring.rounds(&[0, 0], pairs)?;
    measuring.go_on("")?;
    let of = |windows: &Windows| ratios(windows, 1, 0).map(f64::ln).collect::<Vec<_>>();
    let processes: Vec<Vec<f64>> = measured.iter().map(of).collect();
    let pairs = processes.iter().map(Vec::len).sum();
    let ln = interval(&processes, seed)
        .filter(|ln| ln.low.is_finite() && ln.high.is_finite())
        .ok_or_else(|| Failure::Failed("no operation was completed in a window".into()))?;
    let estimate = Estimate { value: ln.value.exp(), low: ln.low.exp(), high: ln.high.exp() };
    Ok(Floor { estimate, pairs })
}

/// Runs the command.
///
/// # Errors
/// When something cannot be measured, or there is no verdict.
pub(crate) fn run(arguments: &AbArgs) -> Result<(), Failure> {
    let arms = Arms::new(arguments.arms.clone())?;
    arguments.arms.workload.check(&[arms.primitive])?;
    let mut records =
        arguments.out.clone().map(|path| AbRecords::begin(path, &arms)).transpose()?;
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let seed = arguments.arms.seed;
    let mut measuring = Measuring {
        arms,
        processes: arguments.processes,
        random: SplitMix(seed),
        interrupted,
        told: !arguments.quiet,
        rounds: 0,
        disturbed: 0,
        windows: 0,
    };
    let upto = LOOKS.map(|part| (arguments.pairs as f64 * part).ceil() as usize);
    let floor = floor(&mut measuring, upto[0], seed)?;
    if !arguments.json {
        stdout::print(&beginning(&measuring.arms, &floor, arguments))?;
    }
    let settings = Settings {
        margin: arguments.margin / 100.0,
        alpha: arguments.alpha,
        looks: LOOKS.len() as u32,
        floor: floor.part(),
    };
    let count = arguments.arms.b.len();
    let mut trial = Trial::new(count, settings);
    let mut times = vec![Vec::new(); count + 1];
    let mut had = 0;
    for (look, upto) in upto.into_iter().enumerate() {
        let open: Vec<usize> = (0..count).filter(|&variant| trial.open(variant)).collect();
        let at: Vec<usize> = std::iter::once(0).chain(open.iter().map(|b| b + 1)).collect();
        for (process, windows) in measuring.rounds(&at, upto - had)?.iter().enumerate() {
            let process =
                if arguments.processes == 1 { 0 } else { look * arguments.processes + process };
            for (place, variant) in open.iter().enumerate() {
                trial.add(*variant, process, ratios(windows, place + 1, 0));
            }
            for (place, arm) in at.iter().enumerate() {
                times[*arm].extend(&windows.ns_per_op[place]);
            }
        }
        had = upto;
        if measuring.interrupted.load(Ordering::Relaxed) || trial.look() {
            break;
        }
    }
    if let Some(records) = &mut records {
        for (arm, times) in times.iter().enumerate().filter(|(_, times)| !times.is_empty()) {
            let against_a = arm.checked_sub(1).and_then(|b| trial.estimate(b, seed));
            records.write(&measuring, (arm, times), against_a)?;
        }
    }
    let kept = arguments.out.as_ref().map_or("", |_| "; what was measured is in the file");
    measuring.go_on(kept)?;
    tell(&measuring, &trial, &times, &floor, arguments)
}

fn beginning(arms: &Arms, floor: &Floor, arguments: &AbArgs) -> String {
    let threads = arms.conditions.threads();
    let plural = if threads == 1 { "" } else { "s" };
    let words = arms.conditions.workload.words(arms.primitive);
    let workload = harness::report::model::words(&words);
    let Estimate { value, low, high } = floor.estimate;
    format!(
        "{threads} thread{plural}, {}, {workload}; margin {} %\n\
         noise floor: {} against itself {} (95 % interval {} … {}, {} pairs)",
        arguments.arms.placement,
        arguments.margin,
        arms.names[0],
        change(value),
        change(low),
        change(high),
        floor.pairs
    )
}

/// `+12.3 %`.
fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.is_finite() { format!("{percent:+.1} %") } else { "unknown".into() }
}

/// What a person must know of a finding beside its verdict.
fn remarks(finding: &Finding, floor: &Floor, settings_margin: f64) -> String {
    let mut text = String::new();
    let mut add = |remark: String| {
        let between = if text.is_empty() { "" } else { "; " };
        let _ = write!(text, "{between}{remark}");
    };
    if let Some((low, high)) = finding.flags.modes {
        add(format!("two modes, {} and {}", change(low.exp()), change(high.exp())));
    }
    if let Some((first, last)) = finding.flags.drift {
        add(format!("drifts from {} to {}", change(first.exp()), change(last.exp())));
    }
    if finding.verdict == Some(Verdict::Inconclusive) {
        if floor.part() > settings_margin {
            add(format!("A differs from itself by up to {:.1} %", floor.part() * 100.0));
        }
        add(format!("sure is only {} … {}", change(finding.low), change(finding.high)));
    }
    text
}

fn tell(
    measuring: &Measuring,
    trial: &Trial,
    times: &[Vec<f64>],
    floor: &Floor,
    arguments: &AbArgs,
) -> Result<(), Failure> {
    let names = &measuring.arms.names;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let against = format!("against {}", names[0]);
    table.set_header([
        &against,
        "ns/op",
        "ns/op of A",
        "change",
        "95 % interval",
        "pairs",
        "p",
        "verdict",
        "",
    ]);
    let mut lines = Vec::new();
    let mut inconclusive = Vec::new();
    let ns = |arm: usize| median(&times[arm]).map_or_else(|| "-".into(), short);
    for (variant, name) in names[1..].iter().enumerate() {
        let finding = trial.finding(variant);
        let verdict = finding.verdict.unwrap_or(Verdict::Inconclusive);
        if verdict == Verdict::Inconclusive {
            inconclusive.push(name.as_str());
        }
        let estimate = trial.estimate(variant, arguments.arms.seed);
        let remarks = remarks(&finding, floor, arguments.margin / 100.0);
        let between = estimate.map_or_else(String::new, |estimate| {
            format!("{} … {}", change(estimate.low), change(estimate.high))
        });
        table.add_row([
            name.clone(),
            ns(variant + 1),
            ns(0),
            change(finding.ratio),
            between,
            finding.pairs.to_string(),
            short(finding.p),
            verdict.word().into(),
            remarks,
        ]);
        lines.push(line(measuring, trial, times, floor, arguments, variant));
    }
    for column in table.column_iter_mut().skip(1).take(6) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    if measuring.disturbed > 0 {
        let (disturbed, windows) = (measuring.disturbed, measuring.windows);
        note(&format!("note: {disturbed} of {windows} windows were disturbed; pairs bear it"));
    }
    if arguments.processes == 1 {
        note("note: one process has one layout of memory; --processes 5 measures in fresh ones");
    }
    stdout::print(&if arguments.json { lines.join("\n") } else { table.trim_fmt() })?;
    if inconclusive.is_empty() {
        return Ok(());
    }
    let more = if measuring.disturbed * 4 > measuring.windows {
        "more pairs (--pairs), shorter windows (--window), which less disturbs, or a quieter host \
         tell more"
    } else {
        "more pairs (--pairs), longer windows (--window) or a quieter host tell more"
    };
    Err(Failure::Inconclusive(format!("inconclusive: {}; {more}", inconclusive.join(", "))))
}

/// A variant as JSON.
fn line(
    measuring: &Measuring,
    trial: &Trial,
    times: &[Vec<f64>],
    floor: &Floor,
    arguments: &AbArgs,
    variant: usize,
) -> String {
    let Arms { names, primitive, conditions, .. } = &measuring.arms;
    let finding = trial.finding(variant);
    let estimate = trial.estimate(variant, arguments.arms.seed);
    json!({
        "record": "ab", "a": names[0], "b": names[variant + 1],
        "threads": conditions.threads(), "placement": arguments.arms.placement.to_string(),
        "workload": conditions.workload.words(primitive),
        "verdict": finding.verdict.unwrap_or(Verdict::Inconclusive).word(),
        "ratio": finding.ratio,
        "interval": estimate.map(|estimate| [estimate.low, estimate.high]),
        "decided_on": [finding.low, finding.high.min(f64::MAX)], "p": finding.p,
        "pairs": finding.pairs, "processes": arguments.processes,
        "ns_per_op": {"a": median(&times[0]), "b": median(&times[variant + 1])},
        "margin": arguments.margin / 100.0, "alpha": arguments.alpha,
        "noise_floor": floor.part(),
        "remarks": remarks(&finding, floor, arguments.margin / 100.0),
        "seed": arguments.arms.seed,
        "disturbed_windows": measuring.disturbed, "windows": measuring.windows,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_numbers_are_refused() {
        for bad in ["", "x", "-1", "0", "nan", "inf", "101"] {
            assert!(margin(bad).is_err(), "{bad}");
            assert!(alpha(bad).is_err(), "{bad}");
        }
        for bad in ["", "0", "15", "-3", "1e3", "100001"] {
            assert!(pairs(bad).is_err(), "{bad}");
        }
        for bad in ["0", "101", "two"] {
            assert!(processes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_floor_is_the_farther_end() {
        let floor =
            |low, high| Floor { estimate: Estimate { value: 1.0, low, high }, pairs: 12 }.part();
        assert!((floor(0.99, 1.05) - 0.05).abs() < 1e-12);
        assert!((floor(0.8, 1.05) - 0.25).abs() < 1e-12);
    }
}

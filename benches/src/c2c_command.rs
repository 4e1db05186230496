//! `manycore c2c`: what a line costs from each CPU to each other.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use harness::c2c::picture::Matrix;
use harness::c2c::{self, Cell, Claim, Home, Settings, Shape, TRIPS, claims, clusters};
use harness::distance::{self, APART};
use harness::records::{Metric, Point, Run, Status};
use harness::report::number::short;
use harness::simulated::Cores;
use harness::stats::median;
use serde_json::{Map, Value};
use topology::{Pu, Topology};

use crate::cli::{cores, size};
use crate::exit::Failure;
use crate::stdout::{self, note};
use crate::sweep_command::{catch_signals, header};
use crate::sweep_records::{MACHINE, default_path};
use crate::target::Target;
use crate::written::Written;

pub(crate) const HELP: &str = "\
Examples:
  manycore c2c
      nanoseconds from each CPU to each other, and whether groups are those that the system claims
  manycore c2c --shape cas,flags --home first,second --svg matrix.svg
      two ways to hand a line over, lines at home on either side
  manycore c2c --pairs 500
      some of the pairs of a big machine, spread over all distances
  manycore c2c --engine simulated --machine xeon-8375c-2s --pairs 200

Two CPUs at a time hand a line to each other, nobody else does anything (docs/c2c.md).
Exit codes: 0 done, 1 failed, 2 usage, 5 there are no two CPUs, 130 interrupted (records are kept)";

/// Pairs that are measured if not said: minutes at the most.
const PAIRS: [usize; 2] = [3_000, 400];

#[derive(Debug, Args)]
pub(crate) struct C2cArgs {
    /// What measures: native, or simulated for the cores of another machine
    #[arg(long, value_name = "ENGINE", value_enum, default_value_t = Engine::Native)]
    engine: Engine,
    /// Simulated: the machine, by the name of one that is known here or by its file [default:
    /// epyc-7742-2s]
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Simulated: cut or grow the machine to so many cores
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = cores)]
    cores: Option<usize>,
    /// How a line is handed over; several with commas
    #[arg(long, value_name = "SHAPES", value_enum, value_delimiter = ',', default_value = "cas")]
    shape: Vec<ShapeName>,
    /// Which CPU of a pair touches the lines first, so that they are at home on its node; both with a
    /// comma
    #[arg(long, value_name = "SIDE", value_enum, value_delimiter = ',', default_value = "first")]
    home: Vec<HomeName>,
    /// Measure about so many pairs, spread over all distances [default: 3000, simulated 400]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = pairs)]
    pairs: Option<usize>,
    /// Native: repetitions of a pair [default: 9]
    #[arg(long, value_name = "R", allow_hyphen_values = true, value_parser = repeat)]
    repeat: Option<usize>,
    /// Seed of everything drawn at random
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Draw the matrix into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Append the records to this file [default: results/HOST/DATE-c2c.jsonl]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print records to standard output, everything else to standard error; without --out no
    /// file is written
    #[arg(long)]
    json: bool,
    /// Print no progress
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    Native,
    Simulated,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShapeName {
    /// Both change one line by compare-and-swap
    Cas,
    /// Each writes a line of its own, which the other reads
    Flags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HomeName {
    First,
    Second,
}

fn pairs(text: &str) -> Result<usize, String> {
    size(text, "a number of pairs", 10_000_000)
}

fn repeat(text: &str) -> Result<usize, String> {
    size(text, "a number of repetitions", 1_000)
}

/// Repetitions of a pair.
const REPEAT: u64 = 9;

/// What is measured.
struct Ground {
    host: Topology,
    target: Option<Target>,
    places: Vec<Pu>,
    header: Run,
}

impl Ground {
    fn of(arguments: &C2cArgs) -> Result<Self, Failure> {
        let host = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
        let mut header = header(&host);
        if arguments.engine == Engine::Native {
            for (given, flag) in
                [(arguments.machine.is_some(), "machine"), (arguments.cores.is_some(), "cores")]
            {
                if given {
                    return Err(Failure::Usage(format!("--{flag} is for --engine simulated")));
                }
            }
            let places = host.pus();
            if places.len() < 2 {
                let usable = host.usable();
                return Err(Failure::Unfit(format!(
                    "a line goes from one CPU to another, and this process may use CPU {usable} only \
                     of {} online: take away what restricts it (taskset, a cpuset), or see another \
                     machine with --engine simulated",
                    host.cpus.online
                )));
            }
            return Ok(Self { host, target: None, places, header });
        }
        if arguments.repeat.is_some() {
            let message = "--repeat is for --engine native: what is simulated repeats exactly";
            return Err(Failure::Usage(message.into()));
        }
        let target = Target::of(arguments.machine.as_deref(), arguments.cores)?;
        let places = Cores::of(&target.machine).places().to_vec();
        if places.len() < 2 {
            let message = "a line goes from one core to another: --cores 2 is the least";
            return Err(Failure::Usage(message.into()));
        }
        header.other.insert(MACHINE.into(), target.description());
        // Nothing about this host spoils what is simulated.
        header.doctor.clear();
        Ok(Self { host, target: Some(target), places, header })
    }

    fn name(&self) -> String {
        self.target.as_ref().map_or_else(|| "this-host".into(), Target::name)
    }

    /// Measures the pairs, until somebody interrupts.
    fn measure(
        &self,
        pairs: &[(Pu, Pu)],
        settings: &Settings,
        stop: &mut dyn FnMut(&Cell) -> bool,
    ) -> Result<Vec<Cell>, Failure> {
        match &self.target {
            None => c2c::measure(&self.host, pairs, settings, stop)
                .map_err(|reason| Failure::Failed(reason.to_string())),
            Some(target) => c2c::simulate(&target.machine, pairs, settings, stop)
                .map_err(|error| Failure::Failed(error.to_string())),
        }
    }

    fn point(&self, cell: &Cell, settings: &Settings) -> Point {
        let simulated = self.target.is_some();
        let figure = match simulated {
            true => Metric::figure(cell.ns.value),
            false => Metric::estimate(Some(cell.ns), "not_measured"),
        };
        let ops = 2 * TRIPS * settings.repeat;
        let mut metrics = BTreeMap::from([("ns_per_op".to_owned(), figure)]);
        metrics.insert("ops".into(), Metric::Count { value: ops });
        let cpus = vec![cell.one.cpu, cell.other.cpu];
        Point {
            record: "point".into(),
            run: self.header.run.clone(),
            engine: if simulated { "simulated" } else { "native" }.into(),
            machine: self.name(),
            primitive: "c2c".into(),
            variant: settings.shape.word().into(),
            workload: Map::from_iter([("home".to_owned(), Value::from(settings.home.to_string()))]),
            threads: 2,
            placement: format!("cpus={},{}", cpus[0], cpus[1]),
            cpus,
            seed: settings.seed,
            repeat: settings.repeat,
            status: Status::Ok,
            reasons: Vec::new(),
            metrics,
            per_thread: BTreeMap::new(),
            other: Map::new(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When there are no two CPUs, or something cannot be measured or written.
pub(crate) fn run(arguments: &C2cArgs) -> Result<(), Failure> {
    let ground = Ground::of(arguments)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let default = (!arguments.json).then(|| default_path("c2c"));
    let out = arguments.out.clone().or(default);
    let mut written = Written::open(out.as_deref(), arguments.json)?;
    written.write(&ground.header)?;
    let most = arguments.pairs.unwrap_or(PAIRS[usize::from(ground.target.is_some())]);
    let pairs = c2c::pairs(&ground.places, most);
    let all = ground.places.len() * (ground.places.len() - 1) / 2;
    if let Some(file) = &arguments.svg {
        // What cannot be written is told before minutes are spent.
        let open = fs::OpenOptions::new().write(true).create(true).truncate(false).open(file);
        open.map_err(|error| cannot_write(file, &error))?;
    }
    let mut svg = None;
    for settings in settings(arguments) {
        let cells = measured(&ground, &pairs, &settings, arguments, &interrupted)?;
        for cell in &cells {
            written.write(&ground.point(cell, &settings))?;
        }
        if interrupted.load(Ordering::Relaxed) {
            let kept = cells.len();
            return Err(Failure::Interrupted(format!("interrupted; kept {kept} pairs")));
        }
        let title = title(&ground, &settings, cells.len(), all);
        let matrix = Matrix::new(&cells);
        svg.get_or_insert_with(|| matrix.svg(&title));
        // A matrix of which little is there shows nothing.
        let picture = if cells.len() * 2 >= all { matrix.text() } else { String::new() };
        let text = format!("{title}\n{picture}{}", said(&ground.places, &cells));
        if arguments.json { note(&text) } else { stdout::print(&text)? }
    }
    if let (Some(file), Some(svg)) = (&arguments.svg, svg) {
        fs::write(file, svg).map_err(|error| cannot_write(file, &error))?;
    }
    if let Some(file) = &written.file {
        note(&format!("records in {}", file.path().display()));
    }
    Ok(())
}

/// Every shape with every home.
fn settings(arguments: &C2cArgs) -> Vec<Settings> {
    let simulated = arguments.engine == Engine::Simulated;
    let with = |shape: ShapeName, home: HomeName| Settings {
        shape: match shape {
            ShapeName::Cas => Shape::Cas,
            ShapeName::Flags => Shape::Flags,
        },
        home: match home {
            HomeName::First => Home::First,
            HomeName::Second => Home::Second,
        },
        repeat: if simulated { 1 } else { arguments.repeat.map_or(REPEAT, |repeat| repeat as u64) },
        seed: arguments.seed,
    };
    let mut both: Vec<(ShapeName, HomeName)> = Vec::new();
    for &shape in &arguments.shape {
        both.extend(arguments.home.iter().map(|&home| (shape, home)));
    }
    // What is named twice is measured once.
    let first = |at: usize| !both[..at].contains(&both[at]);
    (0..both.len()).filter(|&at| first(at)).map(|at| with(both[at].0, both[at].1)).collect()
}

fn cannot_write(file: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot write {}: {error}", file.display()))
}

fn measured(
    ground: &Ground,
    pairs: &[(Pu, Pu)],
    settings: &Settings,
    arguments: &C2cArgs,
    interrupted: &AtomicBool,
) -> Result<Vec<Cell>, Failure> {
    let told = !arguments.quiet && io::stderr().is_terminal();
    let mut done = 0;
    let mut stop = |cell: &Cell| {
        done += 1;
        if told && (done == pairs.len() || done % pairs.len().div_ceil(20) == 0) {
            let (one, other) = (cell.one.cpu, cell.other.cpu);
            note(&format!("{done} of {} pairs ({one} – {other})", pairs.len()));
        }
        interrupted.load(Ordering::Relaxed)
    };
    ground.measure(pairs, settings, &mut stop)
}

fn title(ground: &Ground, settings: &Settings, pairs: usize, all: usize) -> String {
    let cpu = ground.header.host.get("cpu").and_then(Value::as_str).unwrap_or("unknown processor");
    let machine = match &ground.target {
        None => format!("this host ({cpu})"),
        Some(target) => format!("{}, simulated", target.name()),
    };
    let of = match (pairs < all, all) {
        (true, _) => format!("{pairs} of {all} pairs"),
        (false, 1) => "1 pair".into(),
        (false, _) => format!("{all} pairs"),
    };
    let shape = match settings.shape {
        Shape::Cas => "compare-and-swap on one line",
        Shape::Flags => "a line for each direction",
    };
    format!("{machine}: ns one way, {shape}, home at the {} CPU, {of}", settings.home)
}

/// What the times say about groups.
fn said(places: &[Pu], cells: &[Cell]) -> String {
    let mut text = by_distance(cells);
    match clusters(places, cells) {
        Some((border, groups)) => {
            let shown = groups.iter().take(16).map(|group| cpus(group));
            let shown: Vec<String> = shown.collect();
            let more = if groups.len() > 16 { " …" } else { "" };
            let _ = writeln!(
                text,
                "groups by time (below {} ns): {}{more}",
                short(border),
                shown.join(" | ")
            );
        }
        None if cells.len() < places.len() * (places.len() - 1) / 2 => {
            text.push_str("groups by time: not looked for, since some pairs only were measured\n");
        }
        None => text.push_str("groups by time: none, no two times are far enough apart\n"),
    }
    for Claim { what, groups, within, across, agreement } in claims(places, cells) {
        let ns = |time: Option<f64>| time.map_or_else(|| "-".into(), short);
        let (within, across) = (ns(within), ns(across));
        let _ = writeln!(
            text,
            "{what} ({groups}): within {within} ns, across {across} ns: {agreement}"
        );
    }
    text.trim_end().to_owned()
}

/// A line for each distance: how many pairs, and their times.
fn by_distance(cells: &[Cell]) -> String {
    let mut text = String::new();
    for distance in APART {
        let here = cells.iter().filter(|c| distance::between(&c.one, &c.other) == distance);
        let mut times: Vec<f64> = here.map(|cell| cell.ns.value).collect();
        times.sort_by(f64::total_cmp);
        let (Some(least), Some(middle), Some(most)) = (times.first(), median(&times), times.last())
        else {
            continue;
        };
        let [least, middle, most] = [*least, middle, *most].map(short);
        let pairs = if times.len() == 1 { "pair" } else { "pairs" };
        let (word, count) = (distance::word(distance), times.len());
        let _ = writeln!(text, "{word}: {count} {pairs}, {middle} ns ({least} … {most})");
    }
    text
}

/// `0-3,8`.
fn cpus(group: &[u32]) -> String {
    let set = topology::CpuSet::from_ids(group.iter().copied());
    set.map_or_else(|error| error.to_string(), |set| set.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_written_as_the_kernel_writes_them() {
        assert_eq!(cpus(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(cpus(&[5]), "5");
    }
}

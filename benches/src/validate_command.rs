//! `manycore validate`: simulated times beside published ones that set no figure of a machine file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use harness::report::number::short;
use harness::simulated::{Border, MARKS, Machine};
use serde_json::json;

use crate::exit::Failure;
use crate::stdout;
use crate::validate_host;
use crate::validation_loops::{ns_per_op, primitive};

pub(crate) const HELP: &str = "\
Examples:
  manycore validate
      every published value beside the simulated one, and how far they are apart
  manycore validate --machine graviton2
  manycore validate --out docs/validation.md
      the same as a page
  manycore validate --this-host
      this host's own rows, measured and simulated

Published values are nanoseconds between two operations of all threads together. Values that set a
figure of a machine file are not among them.
Exit codes: 0 done, 1 failed, 2 no such machine";

/// Published measurements: machine, loop, threads, nanoseconds, source.
const POINTS: &str = include_str!("validation.csv");

/// What the model is thought to lack where values do not hold: machine, loop, what.
const LACKING: [(&str, &str, &str); 4] = [
    (
        "graviton2",
        "cas_add",
        "a load of a line that another core has written brings it to be read only, and the exchange \
         that follows asks again; the machine may hand it over to be written at once",
    ),
    (
        "graviton2",
        "mutex",
        "what the kernel takes to put a thread to sleep and to wake it is assumed for this machine",
    ),
    ("graviton2", "tas", QUEUED),
    ("graviton2", "tas_pause", QUEUED),
];

const QUEUED: &str =
    "the share of a transfer that a queued exchange takes is assumed for this machine";

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// Only this machine
    #[arg(long, value_name = "NAME")]
    machine: Option<String>,
    /// This host instead: its rows with one thread and two, measured and simulated on what
    /// calibration gives; some two minutes on a quiet machine
    #[arg(long, conflicts_with_all = ["machine", "errors"])]
    this_host: bool,
    /// Measured seconds of a native point
    #[arg(long, value_name = "S", default_value_t = 0.25, requires = "this_host")]
    seconds: f64,
    /// Write a page in Markdown
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write by how much times are off, for each machine and primitive: the bands of simulated times
    #[arg(long, value_name = "FILE")]
    errors: Option<PathBuf>,
    /// Print JSON, one value a line
    #[arg(long)]
    json: bool,
}

/// A published value with the simulated one.
#[derive(Debug)]
struct Compared {
    machine: &'static str,
    name: &'static str,
    threads: usize,
    published: f64,
    simulated: f64,
    border: Border,
    source: &'static str,
}

impl Compared {
    fn ratio(&self) -> f64 {
        self.simulated / self.published
    }

    /// By what factor the simulated time is off, either way.
    fn factor(&self) -> f64 {
        self.ratio().max(1.0 / self.ratio())
    }

    fn holds(&self) -> bool {
        self.factor() <= MARKS[self.border as usize]
    }
}

/// Runs the command.
///
/// # Errors
/// When there is no such machine, a loop cannot be simulated, or the page cannot be written.
pub(crate) fn run(arguments: &ValidateArgs) -> Result<(), Failure> {
    if arguments.this_host {
        return this_host(arguments);
    }
    let wanted = arguments.machine.as_deref();
    if let Some(name) = wanted
        && !points().any(|point| point[0] == name)
    {
        let mut names: Vec<&str> = points().map(|point| point[0]).collect();
        names.dedup();
        let names = names.join(", ");
        let message = format!("nothing was published here of `{name}`; of these it was: {names}");
        return Err(Failure::Usage(message));
    }
    let mut compared = Vec::new();
    for point in points().filter(|point| wanted.is_none_or(|name| point[0] == name)) {
        compared.push(compare(point)?);
    }
    if arguments.json {
        let lines: Vec<String> = compared.iter().map(json_line).collect();
        stdout::print(&lines.join("\n"))?;
    } else {
        stdout::print(&page(&compared))?;
    }
    write(arguments.out.as_deref(), &page(&compared))?;
    write(arguments.errors.as_deref(), &errors(&compared))
}

/// Writes a file, if one was named.
fn write(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    fs::write(path, text).map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
}

fn this_host(arguments: &ValidateArgs) -> Result<(), Failure> {
    let host = validate_host::run(arguments.seconds)?;
    stdout::print(&if arguments.json { host.json_lines() } else { host.page() })?;
    write(arguments.out.as_deref(), &host.page())
}

/// The table's rows: machine, loop, threads, nanoseconds, source.
fn points() -> impl Iterator<Item = [&'static str; 5]> {
    POINTS.lines().skip(1).filter_map(|line| {
        let mut fields = line.splitn(5, ',');
        let mut field = || fields.next().map(|field| field.trim_matches('"'));
        Some([field()?, field()?, field()?, field()?, field()?])
    })
}

fn compare(point: [&'static str; 5]) -> Result<Compared, Failure> {
    let [machine, name, threads, published, source] = point;
    let failed = |what: &str| Failure::Failed(format!("{machine}, {name}, {threads}: {what}"));
    let known = Machine::named(machine).map_err(|error| failed(&error.to_string()))?;
    let threads: usize = threads.parse().map_err(|_| failed("not a number of threads"))?;
    let published: f64 = published.parse().map_err(|_| failed("not a time"))?;
    let simulated = ns_per_op(&known, name, threads).ok_or_else(|| failed("no such loop"))?;
    let simulated = simulated.map_err(|reason| failed(&reason))?;
    let border = Border::of(&known, &[0, threads as u32 - 1]);
    Ok(Compared { machine, name, threads, published, simulated, border, source })
}

fn json_line(one: &Compared) -> String {
    json!({
        "machine": one.machine,
        "loop": one.name,
        "threads": one.threads,
        "published_ns": one.published,
        "simulated_ns": one.simulated,
        "ratio": one.ratio(),
        "holds": one.holds(),
        "source": one.source,
    })
    .to_string()
}

/// Describes what came of it.
fn page(compared: &[Compared]) -> String {
    let mut page = "\
# Simulated times against published ones

Written by `manycore validate --out docs/validation.md`. Times are nanoseconds between two operations
of all threads together. Published values set no figure of a machine file. A value holds if it is
within a factor of 1.5 in a socket and of 2 across sockets.
"
    .to_owned();
    let held = compared.iter().filter(|one| one.holds()).count();
    let _ = writeln!(page, "\n{held} of {} values hold.", compared.len());
    let mut groups: BTreeMap<(&str, &str), Vec<&Compared>> = BTreeMap::new();
    for one in compared {
        groups.entry((one.machine, one.name)).or_default().push(one);
    }
    for ((machine, name), rows) in &groups {
        let source = rows.first().map_or("", |one| one.source);
        let _ = write!(
            page,
            "\n## {machine}: {name}\n\nSource: {source}. On average off by a factor of {:.2}.\n\n\
             | threads | published | simulated | ratio | holds |\n|---:|---:|---:|---:|---|\n",
            off(rows),
        );
        for one in rows {
            let _ = writeln!(
                page,
                "| {} | {} | {} | {:.2} | {} |",
                one.threads,
                short(one.published),
                short(one.simulated),
                one.ratio(),
                if one.holds() { "yes" } else { "no" },
            );
        }
        let lacking = LACKING.iter().find(|lacking| (lacking.0, lacking.1) == (*machine, *name));
        if let Some((_, _, what)) = lacking
            && rows.iter().any(|one| !one.holds())
        {
            let _ = writeln!(page, "\nWhat may be lacking: {what}.");
        }
    }
    let ranks = ranks(compared);
    if !ranks.is_empty() {
        page.push_str("\n## Order of the loops\n\nSpearman's rank correlation over the loops of a machine.\n\n| machine | threads | loops | correlation |\n|---|---:|---:|---:|\n");
        for (machine, threads, loops, correlation) in ranks {
            let _ = writeln!(page, "| {machine} | {threads} | {loops} | {correlation:.2} |");
        }
    }
    page
}

/// The table of errors: machine, primitive, border, number of values, and the factor within which
/// four of five of them are.
fn errors(compared: &[Compared]) -> String {
    let mut groups: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for one in compared {
        let group = (one.machine, primitive(one.name), one.border);
        groups.entry(group).or_default().push(one.factor());
    }
    let mut table = "machine,primitive,border,values,factor\n".to_owned();
    for ((machine, primitive, border), mut factors) in groups {
        factors.sort_by(f64::total_cmp);
        let factor = factors[(factors.len() * 4).div_ceil(5) - 1];
        let (border, values) = (border.word(), factors.len());
        let _ = writeln!(table, "{machine},{primitive},{border},{values},{factor:.2}");
    }
    table
}

/// The factor by which values are off, on the geometric average.
fn off(rows: &[&Compared]) -> f64 {
    let sum: f64 = rows.iter().map(|one| one.ratio().ln().abs()).sum();
    (sum / rows.len() as f64).exp()
}

/// Spearman's rank correlation for each machine and number of threads from 8 on, of three loops and
/// more.
fn ranks(compared: &[Compared]) -> Vec<(&'static str, usize, usize, f64)> {
    let mut groups: BTreeMap<(&str, usize), Vec<&Compared>> = BTreeMap::new();
    for one in compared.iter().filter(|one| one.threads >= 8) {
        groups.entry((one.machine, one.threads)).or_default().push(one);
    }
    let groups = groups.into_iter().filter(|(_, rows)| rows.len() >= 3);
    groups
        .map(|((machine, threads), rows)| {
            let published = places(&rows, |one| one.published);
            let simulated = places(&rows, |one| one.simulated);
            let n = rows.len() as f64;
            let squares: f64 =
                published.iter().zip(&simulated).map(|(a, b)| (a - b) * (a - b)).sum();
            (machine, threads, rows.len(), 1.0 - 6.0 * squares / (n * (n * n - 1.0)))
        })
        .collect()
}

/// The place of each value among all.
fn places(rows: &[&Compared], value: fn(&Compared) -> f64) -> Vec<f64> {
    let before = |one: &Compared| rows.iter().filter(|other| value(other) < value(one)).count();
    rows.iter().map(|one| before(one) as f64).collect()
}

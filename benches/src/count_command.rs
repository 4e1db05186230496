//! `manycore count`: exact instructions and locked operations by two engines that must agree, and
//! their comparison with approved ones.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use harness::callgrind::{Callgrind, Cost};
use harness::host;
use harness::records::{Metric, Point, Status};
use serde::{Deserialize, Serialize};
use topology::Topology;

use crate::cli::CountArgs;
use crate::count::{Counted, Engines};
use crate::exit::Failure;
use crate::stdout::{self, note};
use crate::written::Written;
use crate::{count, rows, select, sweep_command};

/// Counts that somebody looked at and approved.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Goldens {
    /// The compiler: another one makes other code.
    rustc: String,
    /// The architecture.
    target: String,
    /// `release` or `debug`.
    profile: String,
    /// `primitive/variant` to counts.
    counts: BTreeMap<String, Golden>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Golden {
    instructions_per_op: f64,
    rmw_per_op: f64,
}

/// Runs the command.
///
/// # Errors
/// When the command line asks for what cannot be, valgrind is missing, or counts differ.
pub(crate) fn run(arguments: &CountArgs) -> Result<(), Failure> {
    let chosen = select::variants(rows::all(), &arguments.primitive, &arguments.variant)?;
    let primitives: Vec<&str> = chosen.iter().map(|variant| variant.row.primitive).collect();
    arguments.workload.check(&primitives)?;
    let engines = engines(&arguments.engine)?;
    let topology = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
    let header = sweep_command::header(&topology);
    let mut records = Written::open(arguments.out.as_deref(), arguments.json)?;
    records.write(&header)?;
    let workload = arguments.workload.workload();
    let mut counted = Vec::new();
    for variant in &chosen {
        let row = count::row(&engines, &variant.row, &workload, arguments.ops, &header.run);
        row.points.iter().try_for_each(|point| records.write(point))?;
        counted.push(row);
    }
    let text = table(&counted, arguments.functions);
    if arguments.json {
        note(&text);
    } else {
        stdout::print(&text)?;
    }
    let points: Vec<&Point> = counted.iter().flat_map(|row| &row.points).collect();
    let differ: Vec<&str> = counted
        .iter()
        .filter(|row| row.agreement() == Some(false))
        .filter_map(|row| Some(row.points.first()?.variant.as_str()))
        .collect();
    if !differ.is_empty() {
        return Err(Failure::Failed(format!("the engines disagree about {}", differ.join(", "))));
    }
    if let Some(file) = &arguments.approve {
        return approve(file, &points);
    }
    if let Some(file) = &arguments.check {
        return check(file, &points);
    }
    Ok(())
}

/// Finds the engines asked for; without valgrind the simulator counts alone, unless callgrind was
/// named.
fn engines(named: &[String]) -> Result<Engines, Failure> {
    let mut engines = Engines::default();
    let all = named.is_empty();
    for name in named {
        match name.as_str() {
            "callgrind" => {}
            "simulated" => engines.simulator = true,
            other => {
                return Err(Failure::Usage(format!(
                    "--engine: `{other}` does not count; there are callgrind and simulated"
                )));
            }
        }
    }
    engines.simulator |= all;
    if all || named.iter().any(|name| name == "callgrind") {
        match Callgrind::find() {
            Ok(callgrind) => engines.callgrind = Some(callgrind),
            Err(reason) if all => note(&format!("SKIPPED callgrind: {reason}")),
            Err(reason) => return Err(Failure::Failed(reason.to_string())),
        }
    }
    Ok(engines)
}

/// The counts of each engine that counted, and whether they agree.
pub(crate) fn table(counted: &[Counted], with_functions: bool) -> String {
    let engines: Vec<&str> = ["callgrind", "simulated"]
        .into_iter()
        .filter(|engine| counted.iter().any(|row| row.by(engine).is_some()))
        .collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let columns = |what: &str| -> Vec<String> {
        let of = |engine: &&str| match engines.len() {
            1 => what.to_owned(),
            _ => format!("{what} {engine}"),
        };
        engines.iter().map(of).collect()
    };
    let mut header = vec!["primitive".to_owned(), "variant".to_owned()];
    header.extend(columns("instructions/op"));
    header.extend(columns("RMWs/op"));
    header.extend((engines.len() > 1).then(|| "agree".to_owned()));
    header.push(String::new());
    let numbers = header.len() - 3;
    table.set_header(header);
    for row in counted {
        table.add_row(cells(row, &engines, with_functions));
    }
    for column in table.column_iter_mut().skip(2).take(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

fn cells(row: &Counted, engines: &[&str], with_functions: bool) -> Vec<String> {
    let first = row.points.first();
    let name = |of: fn(&Point) -> &String| first.map(of).cloned().unwrap_or_default();
    let mut cells = vec![name(|point| &point.primitive), name(|point| &point.variant)];
    for metric in ["instructions_per_op", "rmw_per_op"] {
        cells.extend(engines.iter().map(|engine| {
            let value = row.by(engine).and_then(|point| point.metrics.get(metric)?.value());
            value.map_or_else(|| "-".into(), |value| value.to_string())
        }));
    }
    if engines.len() > 1 {
        cells.push(match row.agreement() {
            Some(true) => "yes".into(),
            Some(false) => "NO".into(),
            None => "-".into(),
        });
    }
    let reason = row.points.iter().find_map(|point| point.reasons.first());
    cells.push(match reason {
        Some(reason) => reason.clone(),
        None if with_functions => shares(&row.functions),
        None => String::new(),
    });
    cells
}

/// The functions that hold a hundredth of the instructions or more.
fn shares(functions: &[Cost]) -> String {
    let all: u64 = functions.iter().map(|cost| cost.instructions).sum();
    let shown: Vec<String> = functions
        .iter()
        .filter(|cost| cost.instructions * 100 >= all)
        .map(|cost| {
            let share = cost.instructions as f64 * 100.0 / all as f64;
            let object = Path::new(&cost.object).file_name().unwrap_or_default().to_string_lossy();
            format!("{share:.0} % {} ({object})", cost.function)
        })
        .collect();
    shown.join("\n")
}

fn goldens_of(points: &[&Point]) -> Goldens {
    let value = |point: &Point, name: &str| point.metrics.get(name).and_then(Metric::value);
    let counts = points
        .iter()
        .filter_map(|point| {
            let golden = Golden {
                instructions_per_op: value(point, "instructions_per_op")?,
                rmw_per_op: value(point, "rmw_per_op")?,
            };
            Some((format!("{}/{}", point.primitive, point.variant), golden))
        })
        .collect();
    Goldens {
        rustc: env!("MANYCORE_RUSTC").into(),
        target: std::env::consts::ARCH.into(),
        profile: host::profile().into(),
        counts,
    }
}

fn approve(file: &Path, points: &[&Point]) -> Result<(), Failure> {
    refuse_gaps(points)?;
    let goldens = goldens_of(points);
    let text = serde_json::to_string_pretty(&goldens).unwrap_or_default();
    fs::write(file, text + "\n")
        .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", file.display())))?;
    note(&format!("approved {} counts in {}", goldens.counts.len(), file.display()));
    Ok(())
}

fn refuse_gaps(points: &[&Point]) -> Result<(), Failure> {
    match points.iter().find(|point| point.status != Status::Ok) {
        None => Ok(()),
        Some(point) => {
            let (variant, reasons) = (&point.variant, point.reasons.join(", "));
            Err(Failure::Failed(format!("{variant} could not be counted: {reasons}")))
        }
    }
}

/// Compares to the instruction; another compiler, target or profile is a skip that says so.
fn check(file: &Path, points: &[&Point]) -> Result<(), Failure> {
    let named = |error: &dyn std::fmt::Display| {
        Failure::Failed(format!("{}: {error}; write it with --approve", file.display()))
    };
    let text = fs::read_to_string(file).map_err(|error| named(&error))?;
    let approved: Goldens = serde_json::from_str(&text).map_err(|error| named(&error))?;
    let now = goldens_of(points);
    let keys = |goldens: &Goldens| {
        (goldens.rustc.clone(), goldens.target.clone(), goldens.profile.clone())
    };
    if keys(&approved) != keys(&now) {
        let ((rustc, target, profile), here) = (keys(&approved), keys(&now));
        note(&format!(
            "SKIPPED: approved for {rustc}, {target}, {profile}; this program is {}, {}, {}",
            here.0, here.1, here.2
        ));
        return Ok(());
    }
    refuse_gaps(points)?;
    let mut differences = Vec::new();
    for (row, count) in &now.counts {
        match approved.counts.get(row) {
            Some(golden) if golden == count => {}
            Some(golden) => differences.push(format!(
                "{row}: {} instructions and {} RMWs, approved {} and {}",
                count.instructions_per_op,
                count.rmw_per_op,
                golden.instructions_per_op,
                golden.rmw_per_op
            )),
            None => differences.push(format!("{row}: not approved yet")),
        }
    }
    let exists =
        |row: &str| rows::all().iter().any(|v| format!("{}/{}", v.row.primitive, v.row.id) == row);
    let gone = approved.counts.keys().filter(|row| !exists(row));
    differences.extend(gone.map(|row| format!("{row}: approved, but there is no such variant")));
    if differences.is_empty() {
        note(&format!("{} counts are as approved in {}", now.counts.len(), file.display()));
        return Ok(());
    }
    Err(Failure::Failed(format!(
        "counts differ from {}:\n  {}\nlook at the differences, then --approve {}",
        file.display(),
        differences.join("\n  "),
        file.display()
    )))
}

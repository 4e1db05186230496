//! `manycore machines`: the machines that can be simulated, and what is known about them.

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use harness::report::number::short;
use harness::simulated::{Confidence, Distance, Figure, FigureValue, Machine, MachineError, plan};
use serde_json::{Map, Value, json};

use crate::drawing_flags::DrawingFlags;
use crate::exit::Failure;
use crate::stdout;

pub(crate) const HELP: &str = "\
Examples:
  manycore machines
      the machines that come with the program
  manycore machines epyc-7742-2s
      every figure of one, with where it comes from and how much it is to be trusted
  manycore machines ./my-server.toml
      the same of a file, which is checked
  manycore machines epyc-7742-2s --draw
      its sockets, nodes, L3 groups, cores and PUs as boxes
  manycore machines xeon-8176-8s --svg machine.svg
      the same for a browser, or for a document
  manycore machines --json

Exit codes: 0 done, 2 no such machine, or the file is wrong";

#[derive(Debug, Args)]
pub(crate) struct MachinesArgs {
    /// A machine's name, or the path of a machine file; without it all known machines are listed
    #[arg(value_name = "NAME|FILE")]
    machine: Option<String>,
    #[command(flatten)]
    drawing: DrawingFlags,
    /// Print JSON, one machine a line
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// When there is no such machine, a file is wrong, or standard output cannot be written.
pub(crate) fn run(arguments: &MachinesArgs) -> Result<(), Failure> {
    let refused = |error: MachineError| Failure::Usage(error.to_string());
    if let Some(name) = &arguments.machine {
        let machine = Machine::find(name).map_err(refused)?;
        if arguments.drawing.any() {
            return arguments.drawing.run(&plan(&machine).nest());
        }
        return match arguments.json {
            true => stdout::print(&json_line(&machine, true)),
            false => stdout::print(&shown(&machine)),
        };
    }
    if arguments.drawing.any() {
        let message =
            "one machine is drawn at a time; name it: manycore machines epyc-7742-2s --draw";
        return Err(Failure::Usage(message.to_owned()));
    }
    let machines: Result<Vec<Machine>, _> = Machine::names().map(Machine::named).collect();
    let machines = machines.map_err(refused)?;
    if arguments.json {
        let lines: Vec<String> = machines.iter().map(|one| json_line(one, false)).collect();
        return stdout::print(&lines.join("\n"));
    }
    stdout::print(&list(&machines))
}

/// How far apart two cores can be, in the words of the table.
const DISTANCES: [(Distance, &str); 4] = [
    (Distance::Smt, "smt"),
    (Distance::SameL3, "same_l3"),
    (Distance::SameSocket, "same_socket"),
    (Distance::CrossSocket, "cross_socket"),
];

/// The nanoseconds of a transfer; none where no two cores are so far apart.
fn transfer_ns(machine: &Machine, distance: Distance) -> Option<f64> {
    let ps = machine.transfer_ps(distance);
    (ps > 0).then_some(ps as f64 / 1e3)
}

/// The percentage of figures of this confidence.
fn share(machine: &Machine, confidence: Confidence) -> u64 {
    let (all, of) = machine.figures().fold((0, 0), |(all, of), figure| {
        (all + 1, of + u64::from(figure.confidence == confidence))
    });
    (of * 200 + all) / (all * 2)
}

fn list(machines: &[Machine]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let counts = ["cores", "threads", "nodes", "L3 groups"];
    let distances = DISTANCES.map(|(_, word)| word.replace('_', " "));
    let shares = [Confidence::Measured, Confidence::Assumed];
    let header = ["name".to_owned(), "machine".into()]
        .into_iter()
        .chain(counts.map(str::to_owned))
        .chain(distances)
        .chain(shares.map(|confidence| confidence.to_string()));
    table.set_header(header);
    for machine in machines {
        let counted =
            [machine.physical_cores(), machine.cores(), machine.nodes(), machine.l3_groups()];
        let transfers = DISTANCES
            .map(|(distance, _)| transfer_ns(machine, distance).map_or_else(String::new, short));
        let names = [machine.name().to_owned(), machine.title().to_owned()];
        let cells = names
            .into_iter()
            .chain(counted.map(|count| count.to_string()))
            .chain(transfers)
            .chain(shares.map(|confidence| format!("{} %", share(machine, confidence))));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{}\n\nTransfers of a modified line in ns, one way; then the shares of figures that are measured \
         and that\nare assumed. `manycore machines NAME` shows each with its source.",
        table.trim_fmt()
    )
}

fn shown(machine: &Machine) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["figure", "value", "confidence", "source"]);
    for figure in machine.figures() {
        let confidence = figure.confidence.to_string();
        let value = figure.value.to_string();
        table.add_row([figure.field, &value, &confidence, &figure.source]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let code = match machine.architecture() {
        "x86-64" => String::new(),
        other => format!("\n{other}: what is executed is x86-64 code all the same"),
    };
    format!(
        "{}: {}\ncores {}, hardware threads {}, nodes {}, L3 groups {}{code}\n\n{}",
        machine.name(),
        machine.title(),
        machine.physical_cores(),
        machine.cores(),
        machine.nodes(),
        machine.l3_groups(),
        table.trim_fmt()
    )
}

fn json_line(machine: &Machine, whole: bool) -> String {
    let transfers: Map<String, Value> = DISTANCES
        .into_iter()
        .map(|(distance, word)| (word.to_owned(), json!(transfer_ns(machine, distance))))
        .collect();
    let mut line = json!({
        "name": machine.name(),
        "title": machine.title(),
        "architecture": machine.architecture(),
        "cores": machine.physical_cores(),
        "hardware_threads": machine.cores(),
        "threads_per_core": machine.threads_per_core(),
        "sockets": machine.sockets(),
        "nodes": machine.nodes(),
        "l3_groups": machine.l3_groups(),
        "transfer_ns": transfers,
        "measured_percent": share(machine, Confidence::Measured),
        "assumed_percent": share(machine, Confidence::Assumed),
    });
    if whole {
        line["figures"] = machine.figures().map(json_figure).collect();
    }
    line.to_string()
}

fn json_figure(figure: &Figure) -> Value {
    json!({
        "field": figure.field,
        "value": json_value(figure.value),
        "source": figure.source,
        "confidence": figure.confidence.word(),
        "by_default": figure.by_default,
    })
}

/// Gives a figure's value as JSON has it.
pub(crate) fn json_value(value: FigureValue) -> Value {
    match value {
        FigureValue::Count(count) => json!(count),
        FigureValue::Number(number) => json!(number),
        FigureValue::Flag(flag) => json!(flag),
        FigureValue::Word(word) => json!(word),
    }
}

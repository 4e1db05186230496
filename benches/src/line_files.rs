//! Files that `manycore lines` writes for other programs: folded stacks and a timeline.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use harness::records::Appender;
use harness::simulated::{Event, LineReport, Wait};
use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::stdout::note;

/// Opens a file of records for adding.
pub(crate) fn records(path: &Path) -> Result<Appender, Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::Usage("--out names a file; --json prints to standard output".into()));
    }
    Appender::open(path).map_err(|error| {
        Failure::Failed(format!(
            "cannot write records to {}: {error}; choose another file with --out",
            path.display()
        ))
    })
}

/// Adds one record.
pub(crate) fn append(records: &mut Appender, record: &impl Serialize) -> Result<(), Failure> {
    records.append(record).map_err(|error| {
        Failure::Failed(format!("cannot add a record to {}: {error}", records.path().display()))
    })
}

/// Writes to a new file.
fn write(
    path: &Path,
    contents: impl FnOnce(&mut dyn Write) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let file = File::create(path).and_then(|file| {
        let mut file = BufWriter::new(file);
        contents(&mut file)?;
        file.flush()
    });
    file.map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))
}

/// Writes a line for each stack: its functions, outermost first, and the nanoseconds that threads
/// waited there for lines.
pub(crate) fn folded(path: &Path, lines: &LineReport) -> Result<(), Failure> {
    write(path, |file| {
        for stack in &lines.stacks {
            let functions: Vec<String> =
                stack.functions.iter().map(|function| plain(function)).collect();
            writeln!(file, "{} {}", functions.join(";"), stack.stall_ps.div_ceil(1000))?;
        }
        Ok(())
    })
}

/// Leaves out what a function's type parameters are, and what has a meaning in these files.
fn plain(function: &str) -> String {
    let mut depth = 0_u32;
    let mut plain = String::new();
    for (at, letter) in function.char_indices() {
        match letter {
            // `<T as Trait>::function` is a name.
            '<' if at > 0 => depth += 1,
            '>' if depth > 0 => depth -= 1,
            ';' | '\n' if depth == 0 => plain.push(':'),
            _ if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}

/// Writes what each core waited for in the format of Chrome's trace viewer, and of Perfetto.
pub(crate) fn timeline(path: &Path, lines: &LineReport) -> Result<(), Failure> {
    if lines.events_lost > 0 {
        note(&format!(
            "{}: holds the first {} waits; {} later ones are left out, --ops fewer has all",
            path.display(),
            lines.events.len(),
            lines.events_lost
        ));
    }
    let names: BTreeMap<u64, &str> =
        lines.lines.iter().map(|line| (line.address, line.object.as_str())).collect();
    let cpus: BTreeSet<u32> = lines.events.iter().map(|event| event.cpu).collect();
    let threads = cpus.into_iter().map(|cpu| {
        let name = json!({"name": format!("core {cpu}")});
        json!({"ph": "M", "name": "thread_name", "pid": 0, "tid": cpu, "args": name})
    });
    let waits = lines.events.iter().map(|event| trace_event(event, &names));
    let events: Vec<Value> = threads.chain(waits).collect();
    write(path, |file| {
        serde_json::to_writer(
            &mut *file,
            &json!({
                "displayTimeUnit": "ns",
                "otherData": {"simulated": true, "events_left_out": lines.events_lost},
                "traceEvents": events,
            }),
        )?;
        writeln!(file)
    })
}

fn trace_event(event: &Event, names: &BTreeMap<u64, &str>) -> Value {
    let line = |address: &u64| {
        let name = names.get(address).copied().unwrap_or_default();
        (format!("{address:#x} {name}").trim_end().to_owned(), json!({"line": address}))
    };
    let (category, (name, arguments)) = match &event.wait {
        Wait::Line(address) => ("line", line(address)),
        Wait::Memory(address) => ("memory", line(address)),
        Wait::Kernel(call) => ("kernel", (call.clone(), json!({}))),
        Wait::Idle => ("idle", ("idle".to_owned(), json!({}))),
        _ => ("other", ("other".to_owned(), json!({}))),
    };
    json!({
        "ph": "X", "cat": category, "name": name, "pid": 0, "tid": event.cpu,
        // Microseconds.
        "ts": event.begin_ps as f64 / 1e6, "dur": event.takes_ps as f64 / 1e6,
        "args": arguments,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_without_their_parameters() {
        assert_eq!(plain("lock<locks::Spin, [u8; 3]>"), "lock");
        assert_eq!(plain("<a::T as b::Lock>::lock"), "<a::T as b::Lock>::lock");
        assert_eq!(plain("odd;name"), "odd:name");
        assert_eq!(plain("{closure#0}"), "{closure#0}");
    }
}

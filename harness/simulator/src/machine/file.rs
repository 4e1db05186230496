//! From the text of a machine file to a checked machine.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use toml::{Table, Value};

use super::absent::Absent;
use super::contradictions::contradiction;
use super::error::{FieldProblem, MachineError};
use super::fields::{FIELDS, Field, Kind, Needed, TABLES};
use super::figure::{Confidence, Figure, FigureValue, Figures};
use super::nearest::nearest;
use super::shape::{Places, Shape};
use super::{Costs, Machine};

use crate::time::{NANOSECOND, Time};

/// The largest machine file, in bytes.
const LIMIT: usize = 1_000_000;
/// How a figure is written.
const FORM: &str = r#"{ value = ..., source = "...", confidence = "measured" }"#;
const TEXTS: [&str; 3] = ["name", "title", "architecture"];
const PARTS: [&str; 3] = ["value", "source", "confidence"];

pub(super) fn read(path: &Path) -> Result<Machine, MachineError> {
    let unreadable = |error: std::io::Error| MachineError::Unreadable {
        path: path.into(),
        error: error.to_string(),
    };
    let origin = path.display().to_string();
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > LIMIT {
        return Err(MachineError::TooLarge { origin });
    }
    match String::from_utf8(bytes) {
        Ok(text) => parse(&text, &origin),
        Err(_) => Err(MachineError::NotText { origin }),
    }
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Machine, MachineError> {
    let origin = origin.to_string();
    if text.len() > LIMIT {
        return Err(MachineError::TooLarge { origin });
    }
    if text.contains('\0') {
        return Err(MachineError::NotText { origin });
    }
    if text.trim().is_empty() {
        return Err(MachineError::Empty { origin });
    }
    match text.parse::<Table>() {
        Ok(table) => Reader { origin: &origin, table: &table }.machine(),
        Err(error) => Err(MachineError::Syntax { origin, message: error.to_string() }),
    }
}

/// One file in the course of being read.
struct Reader<'a> {
    origin: &'a str,
    table: &'a Table,
}

impl Reader<'_> {
    fn machine(&self) -> Result<Machine, MachineError> {
        self.refuse_unknown()?;
        let (name, title) = (self.name()?, self.text("title")?);
        let architecture = self.architecture()?;
        let shape = self.shape()?;
        let figures = self.figures(&shape)?;
        let costs = costs(&figures);
        if let Some((field, reason)) = contradiction(&figures, &costs, &shape) {
            return Err(self.contradiction(field, reason));
        }
        let places = Places::new(&shape, shape.threads());
        Ok(Machine { name, title, architecture, shape, places, figures, costs, grown: false })
    }

    fn problem(&self, field: impl Into<String>, problem: FieldProblem) -> MachineError {
        MachineError::Field { origin: self.origin.into(), field: field.into(), problem }
    }

    fn contradiction(&self, field: &str, reason: String) -> MachineError {
        MachineError::Contradiction { origin: self.origin.into(), field: field.into(), reason }
    }

    fn refuse_unknown(&self) -> Result<(), MachineError> {
        let top: Vec<&str> = TEXTS.into_iter().chain(TABLES).collect();
        for (key, value) in self.table {
            if !top.contains(&key.as_str()) {
                return Err(self.unknown(key.clone(), key, &top));
            }
            let Value::Table(table) = value else { continue };
            let known: Vec<&str> = FIELDS
                .iter()
                .map(Field::table_and_key)
                .filter_map(|(table, field)| (table == key).then_some(field))
                .collect();
            if let Some(field) = table.keys().find(|field| !known.contains(&field.as_str())) {
                return Err(self.unknown(format!("{key}.{field}"), field, &known));
            }
        }
        Ok(())
    }

    fn unknown(&self, field: String, key: &str, known: &[&str]) -> MachineError {
        let expected = match nearest(key, known.iter().copied()) {
            Some(nearest) => format!("is `{nearest}` meant? Else remove it"),
            None => format!("remove it, or write one of {}", known.join(", ")),
        };
        self.problem(field, FieldProblem::Unknown { expected })
    }

    fn text(&self, key: &str) -> Result<String, MachineError> {
        match self.table.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            Some(Value::String(_)) => Err(self.problem(
                key,
                FieldProblem::Range { found: "empty".into(), expected: "some text".into() },
            )),
            Some(other) => Err(self.mistyped(key, "a text in quotes", other)),
            None => Err(self.problem(
                key,
                FieldProblem::Missing { about: format!("`{key} = \"...\"` above the tables") },
            )),
        }
    }

    fn mistyped(&self, field: &str, expected: &str, found: &Value) -> MachineError {
        let found = match found {
            Value::Table(_) | Value::Array(_) | Value::String(_) => described(found),
            other => format!("{} ({})", other.type_str(), described(other)),
        };
        self.problem(field, FieldProblem::Type { expected: expected.into(), found })
    }

    fn name(&self) -> Result<String, MachineError> {
        let name = self.text("name")?;
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        if name.len() <= 64 && name.chars().all(fits) {
            return Ok(name);
        }
        let expected = "at most 64 letters, digits, `-`, `_` or `.`".into();
        Err(self.problem("name", FieldProblem::Range { found: format!("{name:?}"), expected }))
    }

    fn architecture(&self) -> Result<String, MachineError> {
        let text = self.text("architecture")?;
        if ["x86-64", "arm64"].contains(&text.as_str()) {
            return Ok(text);
        }
        let expected = "\"x86-64\" or \"arm64\"".into();
        let found = format!("{text:?}");
        Err(self.problem("architecture", FieldProblem::Range { found, expected }))
    }

    /// The counts of `[topology]`, which say which other fields must be there.
    fn shape(&self) -> Result<Shape, MachineError> {
        let mut counts = [0; 7];
        for (count, field) in counts.iter_mut().zip(&FIELDS) {
            let value = match field.absent {
                Some(Absent::Count(count)) if self.find(field)?.is_none() => count,
                _ => match self.figure(field)?.value {
                    FigureValue::Count(value) => value,
                    _ => 0,
                },
            };
            *count = value;
        }
        let [sockets, nodes_per_socket, l3_groups_per_socket, cores_per_l3_group, ..] = counts;
        let [.., threads, memory_only_nodes, memoryless_nodes] = counts;
        let shape = Shape {
            sockets,
            nodes_per_socket,
            l3_groups_per_socket,
            cores_per_l3_group,
            threads_per_core: threads,
            memory_only_nodes,
            memoryless_nodes,
        };
        match shape.contradiction() {
            Some((field, reason)) => Err(self.contradiction(field, reason)),
            None => Ok(shape),
        }
    }

    fn figures(&self, shape: &Shape) -> Result<Figures, MachineError> {
        let mut figures = Figures::default();
        let mut absent = Vec::new();
        for field in &FIELDS {
            let given = self.find(field)?.is_some();
            match field.absent {
                _ if !field.needed.on(shape) => {
                    if given {
                        let reason = field.needed.reason_against();
                        let reason = format!("{reason} and it is given");
                        return Err(self.contradiction(field.name, reason));
                    }
                }
                Some(default) if !given => absent.push((field.name, default)),
                _ => figures.push(self.figure(field)?),
            }
        }
        for (field, default) in absent {
            let value = default.value(&figures, shape);
            figures.push(Figure {
                field,
                value,
                source: "the default: the file does not say".into(),
                confidence: Confidence::Assumed,
                by_default: true,
            });
        }
        figures.sort_by_key(|name| FIELDS.iter().position(|field| field.name == name));
        Ok(figures)
    }

    /// The raw value of a field.
    fn find(&self, field: &Field) -> Result<Option<&Value>, MachineError> {
        let (table, key) = field.table_and_key();
        match self.table.get(table) {
            None => Ok(None),
            Some(Value::Table(found)) => Ok(found.get(key)),
            Some(other) => Err(self.mistyped(table, "a table", other)),
        }
    }

    fn figure(&self, field: &'static Field) -> Result<Figure, MachineError> {
        let (_, key) = field.table_and_key();
        let Some(value) = self.find(field)? else {
            let when = match field.needed {
                Needed::Always => "",
                _ => ", needed on a machine of this shape",
            };
            let about = format!("`{key} = {FORM}`, {}{when}", field.about);
            return Err(self.problem(field.name, FieldProblem::Missing { about }));
        };
        let Value::Table(parts) = value else {
            return Err(self.mistyped(field.name, FORM, value));
        };
        if let Some(part) = parts.keys().find(|part| !PARTS.contains(&part.as_str())) {
            return Err(self.unknown(format!("{}.{part}", field.name), part, &PARTS));
        }
        Ok(Figure {
            field: field.name,
            value: self.value(field, self.part(field, parts, "value")?)?,
            source: self.source(field, self.part(field, parts, "source")?)?,
            confidence: self.confidence(field, self.part(field, parts, "confidence")?)?,
            by_default: false,
        })
    }

    fn part<'p>(
        &self,
        field: &Field,
        parts: &'p Table,
        part: &str,
    ) -> Result<&'p Value, MachineError> {
        parts.get(part).ok_or_else(|| {
            let about = format!("every figure is written {FORM}");
            self.problem(format!("{}.{part}", field.name), FieldProblem::Missing { about })
        })
    }

    fn source(&self, field: &Field, value: &Value) -> Result<String, MachineError> {
        let name = format!("{}.source", field.name);
        match value {
            Value::String(text) if !text.trim().is_empty() => Ok(text.clone()),
            Value::String(_) => {
                let expected = "where the value comes from".into();
                Err(self.problem(name, FieldProblem::Range { found: "empty".into(), expected }))
            }
            other => Err(self.mistyped(&name, "a text in quotes", other)),
        }
    }

    fn confidence(&self, field: &Field, value: &Value) -> Result<Confidence, MachineError> {
        let name = format!("{}.confidence", field.name);
        let Value::String(text) = value else {
            return Err(self.mistyped(&name, "a text in quotes", value));
        };
        let found = Confidence::ALL.into_iter().find(|confidence| confidence.word() == text);
        found.ok_or_else(|| {
            let words = Confidence::ALL.map(Confidence::word).join(", ");
            let expected = format!("one of {words}");
            self.problem(name, FieldProblem::Range { found: format!("{text:?}"), expected })
        })
    }

    fn value(&self, field: &Field, value: &Value) -> Result<FigureValue, MachineError> {
        let name = format!("{}.value", field.name);
        let range = |expected: String| {
            let found = described(value);
            self.problem(name.clone(), FieldProblem::Range { found, expected })
        };
        match (field.kind, value) {
            (Kind::Flag, Value::Boolean(flag)) => Ok(FigureValue::Flag(*flag)),
            (Kind::Flag, other) => Err(self.mistyped(&name, "true or false", other)),
            (Kind::Word(words), Value::String(text)) => {
                let known = words.iter().find(|word| *word == text);
                let unknown = || {
                    let expected = format!("\"{}\"", words.join("\" or \""));
                    self.problem(
                        &name,
                        FieldProblem::Range { found: format!("{text:?}"), expected },
                    )
                };
                known.map(|word| FigureValue::Word(word)).ok_or_else(unknown)
            }
            (Kind::Word(_), other) => Err(self.mistyped(&name, "a text in quotes", other)),
            (Kind::Count(limit), Value::Integer(count)) => match usize::try_from(*count) {
                Ok(count) if (1..=limit).contains(&count) => Ok(FigureValue::Count(count)),
                _ => Err(range(format!("from 1 to {limit}"))),
            },
            (Kind::OrNone(limit), Value::Integer(count)) => match usize::try_from(*count) {
                Ok(count) if count <= limit => Ok(FigureValue::Count(count)),
                _ => Err(range(format!("from 0 to {limit}"))),
            },
            (Kind::Power(from, to), Value::Integer(count)) => match usize::try_from(*count) {
                Ok(count) if (from..=to).contains(&count) && count.is_power_of_two() => {
                    Ok(FigureValue::Count(count))
                }
                _ => Err(range(format!("a power of two from {from} to {to}"))),
            },
            (Kind::Count(_) | Kind::OrNone(_) | Kind::Power(..), other) => {
                Err(self.mistyped(&name, "a whole number", other))
            }
            (Kind::Number(from, to), _) => {
                let number = match value {
                    Value::Integer(number) => *number as f64,
                    Value::Float(number) => *number,
                    other => return Err(self.mistyped(&name, "a number", other)),
                };
                if (from..=to).contains(&number) {
                    Ok(FigureValue::Number(number))
                } else {
                    Err(range(format!("from {from} to {to}")))
                }
            }
        }
    }
}

/// Names a value in a message.
fn described(value: &Value) -> String {
    match value {
        Value::String(_) => "a text".into(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Boolean(flag) => flag.to_string(),
        Value::Datetime(date) => date.to_string(),
        Value::Array(_) => "an array".into(),
        Value::Table(_) => "a table".into(),
    }
}

/// Converts what is asked for all the time to picoseconds.
fn costs(figures: &Figures) -> Costs {
    let ghz = figures.number("clock.core_ghz");
    let ns = |field: &str| (figures.number(field) * NANOSECOND as f64).round() as Time;
    let cycles = |field: &str| (figures.number(field) * NANOSECOND as f64 / ghz).round() as Time;
    let or_zero = |field: &str| if figures.has(field) { ns(field) } else { 0 };
    let memory_local = ns("memory.local_ns");
    Costs {
        transfer: [
            0,
            or_zero("transfer.smt_ns"),
            ns("transfer.same_l3_ns"),
            or_zero("transfer.same_socket_ns"),
            or_zero("transfer.cross_socket_ns"),
        ],
        instruction_fs: (1e6 / ghz / figures.number("core.instructions_per_cycle")).round() as u64,
        l1_hit: cycles("cache.l1_hit_cycles"),
        rmw_owned: ns("atomic.rmw_owned_ns"),
        fence: ns("atomic.fence_ns"),
        pause: cycles("core.pause_cycles"),
        memory_local,
        memory_remote: memory_local.max(or_zero("memory.remote_ns")),
        memory_only: or_zero("memory.memory_only_ns"),
        syscall: ns("kernel.syscall_ns"),
        futex_wake: ns("kernel.futex_wake_ns"),
        wake_latency: ns("kernel.wake_latency_ns"),
        context_switch: ns("kernel.context_switch_ns"),
        page_fault: ns("kernel.page_fault_ns"),
        time_slice: ns("kernel.time_slice_ns"),
        timer_slack: ns("kernel.timer_slack_ns"),
        interrupt: ns("kernel.interrupt_ns"),
    }
}

//! The simulated machine that a command names, and how children get it.

use std::fs::File;

use harness::simulated::child::text_file;
use harness::simulated::{DEFAULT_MACHINE, Machine};
use serde_json::{Value, json};

use crate::exit::Failure;

/// The machine, and how children get it.
pub(crate) struct Target {
    pub(crate) machine: Machine,
    /// Whether it has as many cores as its file says.
    whole: bool,
    /// The text of its file, if it is none of those that are known by name.
    text: Option<String>,
}

impl Target {
    /// Finds the machine that `--machine` and `--cores` name.
    ///
    /// # Errors
    /// When there is none, or its file is bad.
    pub(crate) fn of(machine: Option<&str>, cores: Option<usize>) -> Result<Self, Failure> {
        let named = machine.unwrap_or(DEFAULT_MACHINE);
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(format!("--machine: {error}"));
        let machine = Machine::find(named).map_err(|error| usage(&error))?;
        let is_file = named.contains('/') || named.ends_with(".toml");
        let text = is_file.then(|| std::fs::read_to_string(named)).transpose();
        let text = text.map_err(|error| usage(&format!("{named}: {error}")))?;
        let cores = cores.unwrap_or(machine.cores());
        let whole = cores == machine.cores();
        let machine = machine
            .with_cores(cores)
            .map_err(|error| Failure::Usage(format!("--cores: {error}")))?;
        Ok(Self { machine, whole, text })
    }

    /// Its name in records; with the number of cores where that is another than the file's.
    pub(crate) fn name(&self) -> String {
        let name = self.machine.name();
        if self.whole { name.to_owned() } else { format!("{name}/{}", self.machine.cores()) }
    }

    /// What it was, for those who read the records later, and for `--resume`.
    pub(crate) fn description(&self) -> Value {
        let figures = self.machine.figures();
        let figures =
            figures.map(|figure| (figure.field.to_owned(), Value::from(figure.value.to_string())));
        json!({
            "name": self.machine.name(), "title": self.machine.title(),
            "architecture": self.machine.architecture(), "cores": self.machine.cores(),
            "grown": self.machine.is_grown(),
            "figures": Value::Object(figures.collect()),
        })
    }

    /// What children find it by.
    pub(crate) fn for_children(&self) -> &str {
        if self.text.is_some() { "/dev/stdin" } else { self.machine.name() }
    }

    /// What children read.
    ///
    /// # Errors
    /// When there is no memory or no descriptor for it.
    pub(crate) fn stdin(&self) -> Result<Option<File>, Failure> {
        let file = self.text.as_deref().map(text_file).transpose();
        file.map_err(|error| Failure::Failed(format!("cannot hand the machine file on: {error}")))
    }
}

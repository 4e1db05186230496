//! What makes two points the same, in little memory: words that many points share are kept once.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use serde_json::Map;

use super::figures::Figures;
use crate::light::Light;
use crate::report::model::words;

/// What a point is, apart from its figures. Repetitions and the numbers of the CPUs that a
/// placement chose are no part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    /// Engine, machine, primitive, variant and placement.
    names: u32,
    workload: u32,
    threads: u32,
    seed: u64,
}

/// The same in words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// What measured it.
    pub engine: String,
    /// On which machine.
    pub machine: String,
    /// The primitive.
    pub primitive: String,
    /// The row of its table.
    pub variant: String,
    /// The placement policy.
    pub placement: String,
    /// What each thread did, in words.
    pub workload: String,
    /// Number of threads.
    pub threads: u32,
    /// The seed.
    pub seed: u64,
}

impl Name {
    /// Gives everything but primitive, variant, engine and machine.
    pub fn conditions(&self) -> String {
        let plural = if self.threads == 1 { "" } else { "s" };
        let mut text = format!("{} thread{plural}", self.threads);
        for word in [&self.placement, &self.workload] {
            if !word.is_empty() && word != "none" {
                let _ = write!(text, ", {word}");
            }
        }
        if self.seed != 1 {
            let _ = write!(text, ", seed {}", self.seed);
        }
        text
    }

    /// Gives engine and machine.
    pub fn engine_and_machine(&self) -> String {
        match self.machine.as_str() {
            "this-host" => self.engine.clone(),
            machine => format!("{}, {machine}", self.engine),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { primitive, variant, .. } = self;
        write!(f, "{primitive}/{variant} {} ({})", self.conditions(), self.engine_and_machine())
    }
}

/// Words that were met, and their numbers.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    text: String,
}

/// Stands between words; a name that holds it is another name then, and never two points one.
const BETWEEN: char = '\u{1f}';

impl Names {
    fn number(&mut self) -> u32 {
        if let Some(&number) = self.numbers.get(self.text.as_str()) {
            return number;
        }
        let text: Arc<str> = self.text.as_str().into();
        let number = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }

    pub(super) fn identity(&mut self, light: &Light<Figures>) -> Identity {
        let Light { engine, machine, primitive, variant, placement, .. } = light;
        self.text.clear();
        for word in [engine, machine, primitive, variant, placement] {
            self.push(word);
        }
        let names = self.number();
        self.text.clear();
        for (word, value) in light.workload.iter() {
            self.push(word);
            // Values are written as JSON, in which the mark between words is always escaped.
            let _ = write!(self.text, "{value}{BETWEEN}");
        }
        let workload = self.number();
        let threads = u32::try_from(light.threads).unwrap_or(u32::MAX);
        Identity { names, workload, threads, seed: light.seed }
    }

    fn push(&mut self, word: &str) {
        match word.contains(BETWEEN) {
            false => self.text.push_str(word),
            true => self.text.push_str(&word.replace(BETWEEN, " ")),
        }
        self.text.push(BETWEEN);
    }

    pub(super) fn name(&self, identity: Identity) -> Name {
        let mut words = self.texts[identity.names as usize].split(BETWEEN).map(str::to_owned);
        let mut next = || words.next().unwrap_or_default();
        Name {
            engine: next(),
            machine: next(),
            primitive: next(),
            variant: next(),
            placement: next(),
            workload: told(&self.texts[identity.workload as usize]),
            threads: identity.threads,
            seed: identity.seed,
        }
    }

    /// Gives engine and number of threads of a point.
    pub(super) fn engine(&self, identity: Identity) -> (&str, usize) {
        let names = &self.texts[identity.names as usize];
        let engine = names.split(BETWEEN).next().unwrap_or_default();
        (engine, identity.threads as usize)
    }
}

/// Tells a workload as it was noted above in the words of the report.
fn told(noted: &str) -> String {
    let mut words_and_values = noted.split_terminator(BETWEEN);
    let mut workload = Map::new();
    while let (Some(word), Some(value)) = (words_and_values.next(), words_and_values.next()) {
        workload.insert(word.to_owned(), serde_json::from_str(value).unwrap_or_default());
    }
    words(&workload)
}

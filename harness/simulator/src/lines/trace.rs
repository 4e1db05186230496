//! What cores waited for, one wait after the other, and the calls in which they did.

use std::collections::BTreeMap;

use crate::coherence::Source;
use crate::line_report::{Event, Stack, Wait};
use crate::symbols::Symbols;
use crate::time::Time;
use crate::unwind::Frame;

/// The deepest calls that are told.
const DEEPEST: usize = 64;

/// Waits of a run.
pub(super) struct Trace {
    symbols: Symbols,
    most: usize,
    begin: Time,
    events: Vec<Event>,
    lost: u64,
    /// How long cores waited for lines, by the instruction and the calls that led to it.
    stacks: BTreeMap<Vec<u64>, Time>,
}

impl Trace {
    /// Keeps `most` events.
    pub(super) fn new(most: usize) -> Self {
        Self {
            symbols: Symbols::of_this_process(),
            most,
            begin: 0,
            events: Vec::new(),
            lost: 0,
            stacks: BTreeMap::new(),
        }
    }

    /// A run begins.
    pub(super) fn begin(&mut self, begin: Time) {
        self.begin = begin;
        self.events.clear();
        self.lost = 0;
        self.stacks.clear();
    }

    /// A core waited.
    pub(super) fn waited(&mut self, cpu: u32, from: Time, takes: Time, wait: Wait) {
        if takes == 0 {
            return;
        }
        if self.events.len() == self.most {
            self.lost += 1;
            return;
        }
        let begin_ps = from.saturating_sub(self.begin);
        self.events.push(Event { cpu, begin_ps, takes_ps: takes, wait });
    }

    /// A thread waited for a line.
    pub(super) fn stalled(&mut self, thread: &Frame, takes: Time) {
        let calls = self.symbols.chain(thread, DEEPEST);
        *self.stacks.entry(calls).or_default() += takes;
    }

    /// Takes the events, in the order of their beginnings, and how many there were no room for.
    pub(super) fn events(&mut self) -> (Vec<Event>, u64) {
        let mut events = core::mem::take(&mut self.events);
        events.sort_by_key(|event| (event.begin_ps, event.cpu));
        (events, self.lost)
    }

    /// Gives the stacks by the names of their functions, outermost first.
    pub(super) fn stacks(&mut self) -> Vec<Stack> {
        let mut named: BTreeMap<Vec<String>, Time> = BTreeMap::new();
        for (calls, &takes) in &self.stacks {
            let functions = calls.iter().enumerate().flat_map(|(depth, &address)| {
                // What is returned to comes after the call.
                let frames = self.symbols.frames(address - u64::from(depth > 0));
                frames.into_iter().map(|place| place.function)
            });
            let mut functions: Vec<String> = functions.collect();
            functions.reverse();
            *named.entry(functions).or_default() += takes;
        }
        named.into_iter().map(|(functions, stall_ps)| Stack { functions, stall_ps }).collect()
    }
}

/// What a core waits for that waits for a line.
pub(super) fn wait_for(line: u64, source: Source) -> Wait {
    match source {
        Source::Memory => Wait::Memory(line),
        _ => Wait::Line(line),
    }
}

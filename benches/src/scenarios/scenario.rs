//! What a scenario says about itself.

use std::collections::BTreeMap;

use harness::placement::Placement;
use harness::simulated::{Cores, Machine};
use harness::sweep::Ground;
use harness::unavailable::Unavailable;
use topology::Topology;

use super::effect::{Done, Effect};
use super::job::Made;

/// A phenomenon: steps from before to after.
pub(crate) struct Scenario {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it is, in a few words.
    pub(crate) title: &'static str,
    /// What happens and why, in three sentences.
    pub(crate) what: &'static str,
    /// What the field reports say, in their own figures.
    pub(crate) reported: &'static str,
    /// Threads, if not said.
    pub(crate) threads: usize,
    /// Operations of each simulated thread, if not said.
    pub(crate) ops: u64,
    /// Operations of each of this host's threads: a clock has to see them.
    pub(crate) native_ops: u64,
    /// What can be chosen beyond that.
    pub(crate) parameters: &'static [Parameter],
    /// The steps.
    pub(crate) steps: fn(&Setting) -> Result<Vec<Step>, String>,
    /// Makes what the threads of a step do; called on the first of them.
    pub(crate) make: fn(&Setting, &Step) -> Made,
    /// What the steps have to show.
    pub(crate) effects: fn(&[Done<'_>]) -> Vec<Effect>,
}

/// A figure that can be chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    /// Its flag, without dashes.
    pub(crate) name: &'static str,
    /// Its value if not said.
    pub(crate) default: f64,
    /// The least and the largest value.
    pub(crate) range: (f64, f64),
    /// What it is.
    pub(crate) means: &'static str,
}

impl Parameter {
    /// Gives the value that a word stands for.
    ///
    /// # Errors
    /// When it is no number of the range.
    pub(crate) fn parse(&self, word: &str) -> Result<f64, String> {
        let (least, most) = self.range;
        let value: f64 = word.parse().unwrap_or(f64::NAN);
        let whole = self.default.fract() == 0.0;
        if !(least..=most).contains(&value) || whole && value.fract() != 0.0 {
            let number = if whole { "a whole number" } else { "a number" };
            return Err(format!(
                "--{} is {number} from {least} to {most}, not `{word}`; it is {}",
                self.name, self.means
            ));
        }
        Ok(value)
    }
}

/// What executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// This host's cores.
    Native,
    /// The cores of a machine that need not be there.
    Simulated,
}

impl Engine {
    /// Gives its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Simulated => "simulated",
        }
    }
}

/// Where threads run.
pub(crate) enum Where {
    /// On this host.
    Host(Box<Topology>),
    /// On a described machine.
    Machine(Box<Machine>),
}

/// Seconds that requests of a step may take to arrive: less than what is given to a step.
const LONGEST_S: f64 = 90.0;

/// What was asked for.
pub(crate) struct Setting {
    /// The cores.
    pub(crate) place: Where,
    /// Number of threads.
    pub(crate) threads: usize,
    /// Operations of each thread.
    pub(crate) ops: u64,
    /// The seed of everything drawn at random.
    pub(crate) seed: u64,
    /// The scenario's own parameters.
    pub(crate) values: BTreeMap<&'static str, f64>,
}

impl Setting {
    /// Gives a parameter of the scenario.
    pub(crate) fn value(&self, name: &str) -> f64 {
        self.values.get(name).copied().unwrap_or_default()
    }

    /// Gives a parameter that is a whole number.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.value(name) as usize
    }

    /// Gives the engine.
    pub(crate) fn engine(&self) -> Engine {
        match self.place {
            Where::Host(_) => Engine::Native,
            Where::Machine(_) => Engine::Simulated,
        }
    }

    /// Gives the machine that is simulated.
    pub(crate) fn machine(&self) -> Option<&Machine> {
        match &self.place {
            Where::Host(_) => None,
            Where::Machine(machine) => Some(machine),
        }
    }

    /// Gives the cores in the order of a placement.
    pub(crate) fn order(&self, placement: &Placement) -> Result<Vec<u32>, Unavailable> {
        match &self.place {
            Where::Host(host) => placement.order(host),
            Where::Machine(machine) => Cores::of(machine).order(placement),
        }
    }

    /// Counts the cores that share no core with another, at least one.
    pub(crate) fn cores(&self) -> usize {
        match &self.place {
            Where::Host(host) => host.usable().len(),
            Where::Machine(machine) => machine.physical_cores(),
        }
        .max(1)
    }

    /// Refuses requests that take longer to arrive than a step may last.
    ///
    /// # Errors
    /// Says how long it would take.
    pub(crate) fn check_rate(&self, steps: &[Step]) -> Result<(), String> {
        let rate = self.value("rate");
        if rate <= 0.0 {
            return Ok(());
        }
        for step in steps {
            let requests = step.ops.unwrap_or(self.ops) as f64 * step.threads as f64;
            let seconds = requests / rate;
            if seconds > LONGEST_S {
                return Err(format!(
                    "{requests} requests at {rate} a second take {seconds:.0} s to arrive, and a step \
                     may last {LONGEST_S} s; choose more with --rate or fewer with --ops"
                ));
            }
        }
        Ok(())
    }

    /// Refuses more threads than there are cores.
    ///
    /// # Errors
    /// Says how many there are.
    pub(crate) fn check_threads(&self, threads: usize) -> Result<(), String> {
        let (most, whose) = match &self.place {
            Where::Host(host) => (host.usable().len(), "this host".to_owned()),
            Where::Machine(machine) => (machine.cores(), format!("machine {}", machine.name())),
        };
        if threads > most {
            return Err(format!(
                "{threads} threads on the {most} cores of {whose}; ask for fewer with --threads, \
                 or for another machine with --engine simulated --machine"
            ));
        }
        Ok(())
    }
}

/// What is measured at once: so many threads on so many cores.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Its name, as in records.
    pub(crate) id: String,
    /// What it is, in a few words.
    pub(crate) title: String,
    /// Number of threads.
    pub(crate) threads: usize,
    /// How many cores they have; each its own if not said.
    pub(crate) on: Option<usize>,
    /// Where they are.
    pub(crate) placement: Placement,
    /// Whether figures are those until the first thread ends, or until the last one does.
    pub(crate) until: Until,
    /// Which of the scenario's variants.
    pub(crate) variant: usize,
    /// Operations of each thread, where they are others than the setting's.
    pub(crate) ops: Option<u64>,
    /// Whether to look for the line or lock at fault, with so many of its operations as a part.
    pub(crate) watch: Option<u64>,
    /// What is said where neither a line nor a lock can be at fault.
    pub(crate) no_line: Option<&'static str>,
}

/// When the window closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// All threads do the same, and stop when the first one has done its part.
    First,
    /// There is a given amount of work; figures are those of all of it.
    Last,
}

impl Step {
    /// A step of threads that all do the same.
    pub(crate) fn new(id: impl Into<String>, title: impl Into<String>, threads: usize) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            threads,
            on: None,
            placement: Placement::Compact,
            until: Until::First,
            variant: 0,
            ops: None,
            watch: None,
            no_line: None,
        }
    }

    /// Says which of the scenario's variants it is.
    pub(crate) fn variant(self, variant: usize) -> Self {
        Self { variant, ..self }
    }

    /// Lets it run until the last thread has ended.
    pub(crate) fn whole(self) -> Self {
        Self { until: Until::Last, ..self }
    }

    /// Places its threads.
    pub(crate) fn placed(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Gives its threads so many cores together.
    pub(crate) fn on(self, cores: usize) -> Self {
        Self { on: Some(cores), ..self }
    }

    /// Gives each thread so many operations.
    pub(crate) fn ops(self, ops: u64) -> Self {
        Self { ops: Some(ops), ..self }
    }

    /// Looks for what is at fault, with a part of the operations.
    pub(crate) fn watched(self, part: u64) -> Self {
        Self { watch: Some(part), ..self }
    }

    /// Says what is at fault where that is no line and no lock.
    pub(crate) fn no_line(self, what: &'static str) -> Self {
        Self { no_line: Some(what), ..self }
    }
}

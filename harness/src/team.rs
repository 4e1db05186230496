//! Persistent workers, each pinned to one CPU for its life.
//!
//! A worker sleeps in a channel between jobs. Workers are made when a CPU is first asked for and
//! kept, so that no measurement pays for making threads.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::affinity::{PinError, pin_to};

type Task = Box<dyn FnOnce() + Send>;

/// Why a team could not do a job.
#[derive(Debug)]
pub enum TeamError {
    /// A worker could not be pinned.
    Pin(PinError),
    /// A worker could not be made.
    Spawn {
        /// The CPU it was for.
        cpu: u32,
        /// What the system said.
        error: io::Error,
    },
    /// A job panicked.
    Panicked {
        /// The CPU it ran on.
        cpu: u32,
        /// What it said.
        message: String,
    },
}

impl fmt::Display for TeamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(error) => error.fmt(f),
            Self::Spawn { cpu, error } => write!(f, "cannot make a thread for CPU {cpu}: {error}"),
            Self::Panicked { cpu, message } => {
                write!(f, "the thread on CPU {cpu} panicked: {message}")
            }
        }
    }
}

impl std::error::Error for TeamError {}

struct Worker {
    tasks: Option<Sender<Task>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.tasks = None; // ends the worker's loop
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The workers made so far, by CPU and by their rank among the workers of that CPU.
#[derive(Default)]
pub struct Team {
    workers: BTreeMap<(u32, usize), Worker>,
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.workers.keys()).finish()
    }
}

impl Team {
    /// Makes a team without workers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs one job on a worker of each CPU in `cpus` at once, and waits for all. A CPU that is
    /// named twice gets two workers.
    ///
    /// # Errors
    /// When a worker cannot be made or pinned (no job runs then), or a job panics (the others
    /// are waited for).
    ///
    /// # Panics
    /// When there are not as many jobs as CPUs.
    pub fn run<R, J>(&mut self, cpus: &[u32], jobs: Vec<J>) -> Result<Vec<R>, TeamError>
    where
        R: Send + 'static,
        J: FnOnce() -> R + Send + 'static,
    {
        assert_eq!(cpus.len(), jobs.len(), "one job a CPU");
        let keys = keyed(cpus);
        for &key in &keys {
            self.make(key)?;
        }
        let (send, receive) = channel();
        for (index, (key, job)) in keys.iter().zip(jobs).enumerate() {
            let send = send.clone();
            let task: Task = Box::new(move || {
                let outcome = catch_unwind(AssertUnwindSafe(job));
                let _ = send.send((index, outcome));
            });
            if let Some(tasks) = self.workers.get(key).and_then(|worker| worker.tasks.as_ref()) {
                let _ = tasks.send(task); // a worker ends only when the team is dropped
            }
        }
        drop(send);
        let mut results: Vec<Option<R>> = keys.iter().map(|_| None).collect();
        let mut panicked = None;
        for (index, outcome) in receive {
            match outcome {
                Ok(result) => results[index] = Some(result),
                Err(payload) => panicked = Some((cpus[index], message(payload.as_ref()))),
            }
        }
        match panicked {
            Some((cpu, message)) => Err(TeamError::Panicked { cpu, message }),
            None => Ok(results.into_iter().flatten().collect()),
        }
    }

    fn make(&mut self, key: (u32, usize)) -> Result<(), TeamError> {
        if self.workers.contains_key(&key) {
            return Ok(());
        }
        let (cpu, rank) = key;
        let (tasks, inbox) = channel::<Task>();
        let (pinned, pin_result) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("cpu{cpu}.{rank}"))
            .spawn(move || {
                let result = pin_to(cpu);
                let failed = result.is_err();
                let _ = pinned.send(result);
                if !failed {
                    inbox.into_iter().for_each(|task| task());
                }
            })
            .map_err(|error| TeamError::Spawn { cpu, error })?;
        let worker = Worker { tasks: Some(tasks), thread: Some(thread) };
        match pin_result.recv() {
            Ok(Ok(())) => {
                self.workers.insert(key, worker);
                Ok(())
            }
            Ok(Err(error)) => Err(TeamError::Pin(error)),
            Err(_) => Err(TeamError::Panicked { cpu, message: "before it was pinned".into() }),
        }
    }
}

/// Numbers the workers of each CPU.
fn keyed(cpus: &[u32]) -> Vec<(u32, usize)> {
    let mut seen = BTreeMap::new();
    cpus.iter()
        .map(|&cpu| {
            let rank = seen.entry(cpu).or_insert(0_usize);
            *rank += 1;
            (cpu, *rank - 1)
        })
        .collect()
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("without a message").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity::{allowed_cpus, current_cpu};
    use std::thread::{self, ThreadId};

    #[test]
    fn workers_are_pinned_and_persist() {
        let cpus = allowed_cpus().unwrap();
        let mut team = Team::new();
        let look = |team: &mut Team| -> Vec<(Option<u32>, ThreadId)> {
            let jobs = cpus.iter().map(|_| || (current_cpu(), thread::current().id())).collect();
            team.run(&cpus, jobs).unwrap()
        };
        let first = look(&mut team);
        let expected: Vec<_> = cpus.iter().copied().map(Some).collect();
        assert_eq!(first.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>(), expected);
        assert_eq!(first, look(&mut team), "the same threads served again");
    }

    #[test]
    fn a_cpu_named_twice_gets_two_workers() {
        let cpu = allowed_cpus().unwrap()[0];
        let jobs = vec![|| thread::current().id(); 3];
        let ids = Team::new().run(&[cpu; 3], jobs).unwrap();
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }

    #[test]
    fn a_panic_is_reported_and_the_team_lives_on() {
        let cpu = allowed_cpus().unwrap()[0];
        let mut team = Team::new();
        match team.run(&[cpu], vec![|| -> () { panic!("on purpose") }]) {
            Err(TeamError::Panicked { message, .. }) => assert_eq!(message, "on purpose"),
            other => panic!("{other:?}"),
        }
        assert_eq!(team.run(&[cpu], vec![|| 5]).unwrap(), [5]);
    }

    #[test]
    fn an_absent_cpu_is_an_error_with_errno() {
        let error = Team::new().run(&[70_000], vec![|| ()]).unwrap_err();
        assert!(error.to_string().contains("CPU 70000"), "{error}");
        assert!(error.to_string().contains("os error 22"), "{error}");
    }
}

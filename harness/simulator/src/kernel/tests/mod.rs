//! Calls made directly, with the real memory of the test in the place of the guest's.

mod clocks;
mod files;
mod futex;
mod mapping;
mod numa;
mod process;
mod robustness;
mod scheduling;
mod signals;

use super::{Answer, Call, Caller, CpuSet, Effect, Kernel, Outcome, ThreadIdentity, Woken};

use crate::machine::Machine;
use crate::time::Time;

/// Where nothing is ever mapped.
const NOWHERE: u64 = 0x10;
const US: Time = 1_000_000;

/// A kernel whose thread `n` has the number `1000 + n` and runs on CPU `n`.
struct Guest {
    kernel: Kernel,
    machine: Machine,
}

impl Guest {
    fn new(threads: usize) -> Guest {
        Guest::on("epyc-7742-2s", threads, 1)
    }

    fn on(machine: &str, threads: usize, seed: u64) -> Guest {
        Guest::of(Machine::named(machine).expect("a known machine"), threads, seed)
    }

    fn of(machine: Machine, threads: usize, seed: u64) -> Guest {
        let all = CpuSet::first(machine.cores());
        let identities: Vec<_> = (0..threads as i32)
            .map(|thread| ThreadIdentity { tid: 1000 + thread, affinity: all })
            .collect();
        Guest { kernel: Kernel::new(&machine, &identities, seed), machine }
    }

    fn answer(&mut self, thread: usize, now: Time, number: i64, arguments: &[u64]) -> Answer {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let caller = Caller { thread, cpu: thread as u32, now };
        self.kernel.call(caller, &Call { number: number as u64, arguments: all })
    }

    fn outcome(&mut self, thread: usize, now: Time, number: i64, arguments: &[u64]) -> Outcome {
        self.answer(thread, now, number, arguments).outcome
    }

    /// The result of a call that thread 0 makes at the beginning.
    #[track_caller]
    fn result(&mut self, number: i64, arguments: &[u64]) -> i64 {
        self.result_of(0, number, arguments)
    }

    #[track_caller]
    fn result_of(&mut self, thread: usize, number: i64, arguments: &[u64]) -> i64 {
        match self.outcome(thread, 0, number, arguments) {
            Outcome::Return(value) => value,
            other => panic!("{other:?} is no result"),
        }
    }

    /// The text with which a call is refused.
    #[track_caller]
    fn refusal(&mut self, number: i64, arguments: &[u64]) -> String {
        match self.outcome(0, 0, number, arguments) {
            Outcome::Refused(text) => text,
            other => panic!("{other:?} is no refusal"),
        }
    }

    /// Takes the numbers and results of all threads that have been woken.
    fn woken(&mut self) -> Vec<(usize, i64)> {
        self.woken_at().into_iter().map(|woken| (woken.thread, woken.value)).collect()
    }

    fn woken_at(&mut self) -> Vec<Woken> {
        std::iter::from_fn(|| self.kernel.take_woken()).collect()
    }

    fn effects(&mut self) -> Vec<Effect> {
        std::iter::from_fn(|| self.kernel.take_effect()).collect()
    }
}

/// The address of a value, for a guest to name.
fn at<T>(value: &mut T) -> u64 {
    (&raw mut *value).expose_provenance() as u64
}

/// Negative error numbers, as results are.
const fn error(errno: i32) -> i64 {
    -(errno as i64)
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

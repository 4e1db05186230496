//! The simulated Linux kernel: answers the system calls of simulated threads.
//!
//! It knows threads, a machine and simulated time, and nothing of how instructions run. A call is
//! answered in one of four ways: from simulated state alone (futexes, clocks, sleeping,
//! scheduling, signals, NUMA policies), really performed at addresses of our choice and entered
//! in a page table (`mmap` and its kin), passed to the real kernel as it is (files), or refused
//! with a text that names the call. Nothing here depends on hash seeds, host addresses or real
//! time.
//!
//! # Rooms
//! | module | does |
//! |---|---|
//! | [`futex`] | wait, wake, requeue, bitsets, timeouts |
//! | [`clocks`] | clocks, sleeping, poll of nothing |
//! | [`scheduling`] | yield, affinity, priorities, membarrier |
//! | [`mapping`] | `brk`, `mmap`, `munmap`, `mprotect`, `mremap`, `madvise` |
//! | [`placement`], [`intervals`] | where mappings go, and what is mapped |
//! | [`policy`], [`numa`] | which node a page is on; the calls that ask and decide |
//! | [`signals`], [`process`] | signal state, identities, names, exits, what is never allowed |
//! | [`files`] | what is passed to the real kernel |
//! | [`random`] | seeded `getrandom` |
//! | [`names`] | names of calls |

mod clocks;
mod cpu_set;
mod files;
mod futex;
mod intervals;
mod mapping;
mod names;
mod node_files;
mod numa;
mod placement;
mod policy;
mod process;
mod random;
mod scheduling;
mod signals;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::io;

use crate::guest_memory;
use crate::machine::Machine;
use crate::time::Time;

pub(crate) use cpu_set::CpuSet;
pub(crate) use names::name;

use futex::Futexes;
use placement::Memory;
use policy::Policy;
use random::Random;
use signals::{Actions, SignalState};

/// The size of a page.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Whether an address lies where the kernel places what guests map.
pub(crate) fn is_placed(address: u64) -> bool {
    placement::REGION.contains(&address)
}

/// A system call as the guest makes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) arguments: [u64; 6],
}

/// Who calls, where and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) thread: usize,
    pub(crate) cpu: u32,
    /// Simulated time since the run began.
    pub(crate) now: Time,
}

/// What becomes of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It goes on with this result; errors are negative error numbers.
    Return(i64),
    /// It sleeps until it comes out of [`Kernel::take_woken`], which also says its result.
    Block,
    /// It goes behind the other ready threads that its affinity lets it meet, then has this
    /// result. Also where it may no longer run on the CPU that it called from.
    Yield(i64),
    /// It has ended.
    ExitThread,
    /// All threads have ended, with this status.
    ExitProcess(i32),
    /// The run cannot go on; the text names the call, its arguments and the reason.
    Refused(String),
}

/// What a call does to the caller and how long the caller is busy with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) cost: Time,
}

/// A thread that has been woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Woken {
    pub(crate) thread: usize,
    /// The result of the call in which it slept.
    pub(crate) value: i64,
    /// When it can run, the latency of waking included.
    pub(crate) at: Time,
}

/// Something that a call did to guest memory and that caches of any kind must hear of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The kernel read the word of a futex.
    Read { address: u64 },
    /// The kernel wrote these bytes.
    Written { address: u64, bytes: u64 },
    /// What is mapped there, or how it may be used, has changed.
    Remapped { address: u64, bytes: u64 },
}

/// What a simulated thread takes over from the thread that lends it its identity.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadIdentity {
    /// The real thread number, which the C library has stored in the thread's own memory.
    pub(crate) tid: i32,
    /// The simulated CPUs it may run on.
    pub(crate) affinity: CpuSet,
}

/// An error number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Errno(i32);

type Reply = Result<Outcome, Errno>;
type Handler = fn(&mut Kernel, Caller, &Call) -> Reply;

/// Why a thread sleeps.
#[derive(Debug, Clone, Copy)]
enum Wait {
    Futex { address: u64, expected: u32, bitset: u32 },
    Sleep,
}

#[derive(Debug, Clone, Copy)]
struct Sleep {
    wait: Wait,
    since: Time,
    /// When it ends at the latest, and the number that orders equal deadlines.
    deadline: Option<(Time, u64)>,
}

#[derive(Debug)]
struct Thread {
    tid: i32,
    affinity: CpuSet,
    name: [u8; 16],
    signals: SignalState,
    policy: Policy,
    /// Pages placed by an interleaving policy of the thread.
    interleaved: u64,
    random: Random,
    timer_slack: Time,
    sleep: Option<Sleep>,
    slept: Time,
    ended: Option<Time>,
}

/// The simulated kernel of one run.
#[derive(Debug)]
pub(crate) struct Kernel {
    machine: Machine,
    threads: Vec<Thread>,
    futexes: Futexes,
    /// Deadline, order of equal ones, thread.
    deadlines: BTreeSet<(Time, u64, usize)>,
    woken: VecDeque<Woken>,
    effects: VecDeque<Effect>,
    memory: Memory,
    actions: Actions,
    /// The `membarrier` commands that were registered.
    barriers: u64,
    /// Numbers whatever has to be in order.
    sequence: u64,
    /// What the call in hand has cost so far.
    charge: Time,
}

impl Kernel {
    /// Makes the kernel of a run with these threads. The seed decides `getrandom` and nothing
    /// else.
    pub(crate) fn new(machine: &Machine, threads: &[ThreadIdentity], seed: u64) -> Self {
        let slack = machine.timer_slack_ps();
        let thread = |(index, identity): (usize, &ThreadIdentity)| Thread {
            tid: identity.tid,
            affinity: identity.affinity,
            name: *b"simulated\0\0\0\0\0\0\0",
            signals: SignalState::default(),
            policy: Policy::default(),
            interleaved: 0,
            random: Random::new(seed, index as u64),
            timer_slack: slack,
            sleep: None,
            slept: 0,
            ended: None,
        };
        Self {
            machine: machine.clone(),
            threads: threads.iter().enumerate().map(thread).collect(),
            futexes: Futexes::default(),
            deadlines: BTreeSet::new(),
            woken: VecDeque::new(),
            effects: VecDeque::new(),
            memory: Memory::new(placement::REGION),
            actions: Actions::default(),
            barriers: 0,
            sequence: 0,
            charge: 0,
        }
    }

    /// Answers a system call. Whatever has timed out until now is woken before.
    pub(crate) fn call(&mut self, caller: Caller, call: &Call) -> Answer {
        self.expire(caller.now);
        self.charge = self.machine.syscall_ps();
        let outcome = match self.handler(call.number) {
            Some(handler) => match handler(self, caller, call) {
                Ok(outcome) => outcome,
                Err(Errno(errno)) => Outcome::Return(-i64::from(errno)),
            },
            None => refuse(call, "it is not simulated"),
        };
        if matches!(outcome, Outcome::ExitThread) {
            self.threads[caller.thread].ended = Some(caller.now);
        }
        Answer { outcome, cost: self.charge }
    }

    fn handler(&self, number: u64) -> Option<Handler> {
        let number = libc::c_long::try_from(number).ok()?;
        [
            futex::handler,
            clocks::handler,
            scheduling::handler,
            mapping::handler,
            numa::handler,
            signals::handler,
            process::handler,
            files::handler,
            random::handler,
        ]
        .into_iter()
        .find_map(|find| find(number))
    }

    /// Gives the time of the earliest timeout or end of a sleep.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(deadline, ..)| *deadline)
    }

    /// Wakes what has timed out until now.
    pub(crate) fn expire(&mut self, now: Time) {
        while let Some(&(deadline, _, thread)) = self.deadlines.first() {
            if deadline > now {
                break;
            }
            let value = match self.threads[thread].sleep.map(|sleep| sleep.wait) {
                Some(Wait::Futex { address, .. }) => {
                    self.futexes.remove(address, thread);
                    -i64::from(libc::ETIMEDOUT)
                }
                Some(Wait::Sleep) | None => 0,
            };
            let at = deadline.saturating_add(self.machine.wake_latency_ps());
            self.wake(thread, value, at);
        }
    }

    /// Takes a woken thread, in the order in which they were woken.
    pub(crate) fn take_woken(&mut self) -> Option<Woken> {
        self.woken.pop_front()
    }

    /// Takes what calls have done to guest memory, in order.
    pub(crate) fn take_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// Says what a sleeping thread waits for.
    pub(crate) fn waiting_for(&self, thread: usize) -> Option<String> {
        let sleep = self.threads[thread].sleep?;
        let until = match sleep.deadline {
            Some((deadline, _)) => format!(" until {} ns", deadline / crate::time::NANOSECOND),
            None => String::new(),
        };
        Some(match sleep.wait {
            Wait::Futex { address, expected, bitset: u32::MAX } => {
                format!("futex {address:#x} (expects {expected}){until}")
            }
            Wait::Futex { address, expected, bitset } => {
                format!("futex {address:#x} (expects {expected}, bits {bitset:#x}){until}")
            }
            Wait::Sleep if until.is_empty() => "a sleep without end".into(),
            Wait::Sleep => format!("a sleep{until}"),
        })
    }

    /// Gives the simulated CPUs on which a thread may run.
    pub(crate) fn affinity(&self, thread: usize) -> &CpuSet {
        &self.threads[thread].affinity
    }

    /// Puts the caller to sleep, until the deadline if there is one.
    fn block(&mut self, caller: Caller, wait: Wait, deadline: Option<Time>) -> Outcome {
        self.sequence += 1;
        let deadline = deadline.map(|deadline| (deadline, self.sequence));
        if let Some((time, order)) = deadline {
            self.deadlines.insert((time, order, caller.thread));
        }
        self.threads[caller.thread].sleep = Some(Sleep { wait, since: caller.now, deadline });
        Outcome::Block
    }

    /// Ends a thread's sleep.
    fn wake(&mut self, thread: usize, value: i64, at: Time) {
        let Some(sleep) = self.threads[thread].sleep.take() else { return };
        if let Some((deadline, order)) = sleep.deadline {
            self.deadlines.remove(&(deadline, order, thread));
        }
        self.threads[thread].slept += at.saturating_sub(sleep.since);
        self.woken.push_back(Woken { thread, value, at });
    }

    /// Writes a value where the guest wants it.
    fn put<T: Copy>(&mut self, address: u64, value: T) -> Result<(), Errno> {
        guest_memory::write(address, value).ok_or(Errno(libc::EFAULT))?;
        self.effects.push_back(Effect::Written { address, bytes: size_of::<T>() as u64 });
        Ok(())
    }

    /// The index of the thread that a thread number names; 0 names the caller.
    fn thread_of(&self, caller: Caller, tid: i32) -> Option<usize> {
        if tid == 0 {
            return Some(caller.thread);
        }
        self.threads.iter().position(|thread| thread.tid == tid)
    }
}

/// Reads a value that the guest points at.
fn get<T: Copy>(address: u64) -> Result<T, Errno> {
    guest_memory::read(address).ok_or(Errno(libc::EFAULT))
}

/// A call's result.
fn value(value: impl Into<i64>) -> Reply {
    Ok(Outcome::Return(value.into()))
}

/// Stops the run with a text about the call.
fn refuse(call: &Call, reason: &str) -> Outcome {
    Outcome::Refused(format!("the system call {} is refused: {reason}", names::described(call)))
}

/// Has the real kernel perform the call.
fn perform(number: libc::c_long, arguments: &[u64; 6]) -> Result<i64, Errno> {
    let [a, b, c, d, e, f] = *arguments;
    // SAFETY: the guest makes this call with these arguments, as it would outside of the
    // simulation; pointers in it are checked by the real kernel.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if result == -1 {
        return Err(Errno(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)));
    }
    Ok(result)
}

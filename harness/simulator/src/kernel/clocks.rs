//! Clocks, and sleeping by them.
//!
//! Every run begins at the same moment: the machine has been up for [`UPTIME_NS`], and the date is
//! [`DATE_NS`]. CPU-time clocks stand still while a thread sleeps in the kernel; time in which it
//! is ready and another thread runs is counted as if it ran.

use libc::{c_long, clockid_t};

use super::{
    Call, Caller, Errno, Handler, Kernel, Outcome, Reply, Wait, get, perform, refuse, value,
};

use crate::time::{NANOSECOND, Time};

/// What monotonic clocks show when a run begins: 1000 s.
pub(super) const UPTIME_NS: i64 = 1_000 * SECOND_NS;
/// What the wall clock shows when a run begins: the first second of 2026, UTC.
pub(super) const DATE_NS: i64 = 1_767_225_600 * SECOND_NS;
const SECOND_NS: i64 = 1_000_000_000;
/// The coarse clocks advance with the timer interrupt.
const COARSE_NS: i64 = 4_000_000;

/// A time as the kernel's interface holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Timespec {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

impl Timespec {
    fn from_ns(ns: i64) -> Timespec {
        Timespec { seconds: ns.div_euclid(SECOND_NS), nanoseconds: ns.rem_euclid(SECOND_NS) }
    }

    /// Refuses what is no time.
    pub(super) fn checked(self) -> Result<Timespec, Errno> {
        if self.seconds < 0 || !(0..SECOND_NS).contains(&self.nanoseconds) {
            return Err(Errno(libc::EINVAL));
        }
        Ok(self)
    }

    /// The nanoseconds, as many as fit.
    fn ns(self) -> i64 {
        self.seconds.saturating_mul(SECOND_NS).saturating_add(self.nanoseconds)
    }
}

/// What a clock that runs through shows when a run begins.
fn start_of(clock: clockid_t) -> i64 {
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_TAI => DATE_NS,
        _ => UPTIME_NS,
    }
}

/// The simulated time at which a sleep ends, without slack: by a clock's reading, or from now on.
pub(super) fn deadline_of(clock: clockid_t, time: Timespec, absolute: bool, now: Time) -> Time {
    let ns = if absolute { time.ns().saturating_sub(start_of(clock)).max(0) } else { time.ns() };
    let span = (ns as u64).saturating_mul(NANOSECOND);
    if absolute { span } else { now.saturating_add(span) }
}

/// The clocks that this process has.
#[derive(Debug, Clone, Copy)]
enum Clock {
    /// Runs through; with its start and its step.
    Steady(i64, i64),
    ThreadCpu(usize),
    ProcessCpu,
}

pub(super) fn handler(number: c_long) -> Option<Handler> {
    Some(match number {
        libc::SYS_clock_gettime => |kernel, caller, call| {
            let [clock, pointer, ..] = call.arguments;
            let time = kernel.clock_gettime(clock as i32, caller.thread, caller.now);
            let time = time.map_err(Errno)?;
            kernel.put(pointer, time)?;
            value(0)
        },
        libc::SYS_clock_getres => |kernel, caller, call| {
            let [clock, pointer, ..] = call.arguments;
            let step = match kernel.clock(clock as i32, caller.thread)? {
                Clock::Steady(_, step) => step,
                _ => 1,
            };
            if pointer != 0 {
                kernel.put(pointer, Timespec::from_ns(step))?;
            }
            value(0)
        },
        libc::SYS_clock_settime | libc::SYS_settimeofday => |_, _, _| Err(Errno(libc::EPERM)),
        libc::SYS_gettimeofday => gettimeofday,
        libc::SYS_time => |kernel, caller, call| {
            let seconds = kernel.date_ns(caller.now) / SECOND_NS;
            if call.arguments[0] != 0 {
                kernel.put(call.arguments[0], seconds)?;
            }
            value(seconds)
        },
        libc::SYS_nanosleep => |kernel, caller, call| {
            let [pointer, ..] = call.arguments;
            kernel.sleep(caller, libc::CLOCK_MONOTONIC, pointer, false)
        },
        libc::SYS_clock_nanosleep => clock_nanosleep,
        libc::SYS_poll | libc::SYS_ppoll => poll,
        _ => return None,
    })
}

fn gettimeofday(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [time, zone, ..] = call.arguments;
    let ns = kernel.date_ns(caller.now);
    if time != 0 {
        kernel.put(time, [ns / SECOND_NS, ns % SECOND_NS / 1_000])?;
    }
    if zone != 0 {
        kernel.put(zone, [0_i32; 2])?;
    }
    value(0)
}

fn clock_nanosleep(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [clock, flags, pointer, ..] = call.arguments;
    let clock = clock as clockid_t;
    match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC | libc::CLOCK_BOOTTIME | libc::CLOCK_TAI => {
            let absolute = flags as i32 & libc::TIMER_ABSTIME != 0;
            kernel.sleep(caller, clock, pointer, absolute)
        }
        libc::CLOCK_THREAD_CPUTIME_ID => Err(Errno(libc::EINVAL)),
        _ => {
            kernel.clock(clock, caller.thread)?;
            Err(Errno(libc::EOPNOTSUPP))
        }
    }
}

/// Sleeps where there is nothing to poll. Files are polled without waiting: a simulated core
/// cannot wait for what happens outside of the simulation.
fn poll(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [_, count, timeout, ..] = call.arguments;
    let number = call.number as c_long;
    let ns = if number == libc::SYS_poll {
        (timeout as i32 >= 0).then(|| i64::from(timeout as i32) * 1_000_000)
    } else if timeout != 0 {
        Some(get::<Timespec>(timeout)?.checked()?.ns())
    } else {
        None
    };
    if count > 0 {
        let [files, ..] = call.arguments;
        let ready = perform(libc::SYS_poll, &[files, count, 0, 0, 0, 0])?;
        kernel.wrote(files, count.saturating_mul(8));
        if ready == 0 && ns != Some(0) {
            return Ok(refuse(call, "none of the files is ready, and a core cannot wait for one"));
        }
        return value(ready);
    }
    let deadline = ns.map(|ns| caller.now.saturating_add((ns as u64).saturating_mul(NANOSECOND)));
    if ns == Some(0) {
        return value(0);
    }
    Ok(kernel.block_until(caller, deadline))
}

impl Kernel {
    /// Reads a clock as `clock_gettime` does, or gives the error number.
    pub(crate) fn clock_gettime(
        &self,
        clock: i32,
        thread: usize,
        now: Time,
    ) -> Result<Timespec, i32> {
        let elapsed = (now / NANOSECOND) as i64;
        let ns = match self.clock(clock, thread).map_err(|Errno(errno)| errno)? {
            Clock::Steady(start, step) => (start + elapsed) / step * step,
            Clock::ThreadCpu(thread) => (self.ran(thread, now) / NANOSECOND) as i64,
            Clock::ProcessCpu => (self.all_ran(now) / NANOSECOND) as i64,
        };
        Ok(Timespec::from_ns(ns))
    }

    /// Finds a clock. Negative numbers name the CPU time of a process or a thread: its number
    /// inverted, times eight, plus the kind.
    fn clock(&self, clock: i32, thread: usize) -> Result<Clock, Errno> {
        Ok(match clock {
            libc::CLOCK_REALTIME | libc::CLOCK_TAI => Clock::Steady(DATE_NS, 1),
            libc::CLOCK_REALTIME_COARSE => Clock::Steady(DATE_NS, COARSE_NS),
            libc::CLOCK_MONOTONIC | libc::CLOCK_MONOTONIC_RAW | libc::CLOCK_BOOTTIME => {
                Clock::Steady(UPTIME_NS, 1)
            }
            libc::CLOCK_MONOTONIC_COARSE => Clock::Steady(UPTIME_NS, COARSE_NS),
            libc::CLOCK_THREAD_CPUTIME_ID => Clock::ThreadCpu(thread),
            libc::CLOCK_PROCESS_CPUTIME_ID => Clock::ProcessCpu,
            named if named < 0 && named & 3 != 3 => {
                let (id, of_thread) = (!(named >> 3), named & 4 != 0);
                let found = self.threads.iter().position(|thread| thread.tid == id);
                match (of_thread, found) {
                    (true, _) if id == 0 => Clock::ThreadCpu(thread),
                    (true, Some(thread)) => Clock::ThreadCpu(thread),
                    (false, _) if id == 0 || id == std::process::id() as i32 => Clock::ProcessCpu,
                    _ => return Err(Errno(libc::EINVAL)),
                }
            }
            _ => return Err(Errno(libc::EINVAL)),
        })
    }

    /// The time that a thread did not sleep.
    pub(super) fn ran(&self, thread: usize, now: Time) -> Time {
        let thread = &self.threads[thread];
        let until = thread.sleep.map(|sleep| sleep.since).or(thread.ended).unwrap_or(now);
        until.min(now).saturating_sub(thread.slept)
    }

    pub(super) fn all_ran(&self, now: Time) -> Time {
        (0..self.threads.len()).map(|thread| self.ran(thread, now)).sum()
    }

    fn date_ns(&self, now: Time) -> i64 {
        DATE_NS + (now / NANOSECOND) as i64
    }

    fn sleep(&mut self, caller: Caller, clock: clockid_t, pointer: u64, absolute: bool) -> Reply {
        let time = get::<Timespec>(pointer)?.checked()?;
        let deadline = deadline_of(clock, time, absolute, caller.now);
        if deadline <= caller.now {
            return value(0);
        }
        Ok(self.block_until(caller, Some(deadline)))
    }

    fn block_until(&mut self, caller: Caller, deadline: Option<Time>) -> Outcome {
        let slack = self.threads[caller.thread].timer_slack;
        let deadline = deadline.map(|deadline| deadline.saturating_add(slack));
        self.block(caller, Wait::Sleep, deadline)
    }
}

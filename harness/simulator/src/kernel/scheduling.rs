//! Yielding, CPUs, priorities, and barriers across all threads.

use libc::c_long;

use super::clocks::Timespec;
use super::cpu_set::WORDS;
use super::{Call, Caller, CpuSet, Errno, Handler, Kernel, Outcome, Reply, get, refuse, value};

use crate::time::NANOSECOND;

/// `membarrier` commands that are supported: global, global expedited, private expedited and
/// private expedited with core serialisation, each with its registration, and the query of those.
const BARRIERS: u64 = 0b0111_1111 | BARRIER_GET_REGISTRATIONS;
const BARRIER_GLOBAL: u64 = 1 << 0;
const BARRIER_GLOBAL_EXPEDITED: u64 = 1 << 1;
const BARRIER_REGISTER_GLOBAL: u64 = 1 << 2;
const BARRIER_PRIVATE: u64 = 1 << 3;
const BARRIER_REGISTER_PRIVATE: u64 = 1 << 4;
const BARRIER_PRIVATE_CORE: u64 = 1 << 5;
const BARRIER_REGISTER_PRIVATE_CORE: u64 = 1 << 6;
const BARRIER_GET_REGISTRATIONS: u64 = 1 << 9;

pub(super) fn handler(number: c_long) -> Option<Handler> {
    Some(match number {
        libc::SYS_sched_yield => |_, _, _| Ok(Outcome::Yield(0)),
        libc::SYS_getcpu => |kernel, caller, call| {
            let [cpu, node, ..] = call.arguments;
            if cpu != 0 {
                kernel.put(cpu, caller.cpu)?;
            }
            if node != 0 {
                kernel.put(node, kernel.machine.node_of(caller.cpu) as u32)?;
            }
            value(0)
        },
        libc::SYS_sched_getaffinity => getaffinity,
        libc::SYS_sched_setaffinity => setaffinity,
        libc::SYS_sched_getscheduler => |kernel, caller, call| {
            kernel.known_thread(caller, call)?;
            value(libc::SCHED_OTHER)
        },
        libc::SYS_sched_setscheduler => |kernel, caller, call| {
            kernel.known_thread(caller, call)?;
            kernel.set_policy(call.arguments[1] as i32, call.arguments[2])
        },
        libc::SYS_sched_getparam => |kernel, caller, call| {
            kernel.known_thread(caller, call)?;
            kernel.put(call.arguments[1], 0_i32)?;
            value(0)
        },
        libc::SYS_sched_setparam => |kernel, caller, call| {
            kernel.known_thread(caller, call)?;
            kernel.set_policy(libc::SCHED_OTHER, call.arguments[1])
        },
        libc::SYS_sched_get_priority_min => |_, _, call| priority(call, 1),
        libc::SYS_sched_get_priority_max => |_, _, call| priority(call, 99),
        libc::SYS_sched_rr_get_interval => |kernel, caller, call| {
            kernel.known_thread(caller, call)?;
            let ns = (kernel.machine.time_slice_ps() / NANOSECOND) as i64;
            kernel.put(call.arguments[1], Timespec { seconds: 0, nanoseconds: ns })?;
            value(0)
        },
        // The kernel's own call shows niceness 0 as 20.
        libc::SYS_getpriority => |_, _, _| value(20),
        libc::SYS_membarrier => membarrier,
        _ => return None,
    })
}

fn getaffinity(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [_, bytes, pointer, ..] = call.arguments;
    let thread = kernel.known_thread(caller, call)?;
    let words = kernel.machine.cores().div_ceil(64);
    if bytes < words as u64 * 8 || !bytes.is_multiple_of(8) {
        return Err(Errno(libc::EINVAL));
    }
    let set = kernel.threads[thread].affinity;
    for (index, word) in set.words()[..words].iter().enumerate() {
        kernel.put(pointer.wrapping_add(index as u64 * 8), *word)?;
    }
    value(words as i64 * 8)
}

fn setaffinity(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [_, bytes, pointer, ..] = call.arguments;
    let thread = kernel.known_thread(caller, call)?;
    let set = read_set(pointer, (bytes as usize).min(WORDS * 8) * 8)?;
    let set = set.intersection(&CpuSet::first(kernel.machine.cores()));
    if set.is_empty() {
        return Err(Errno(libc::EINVAL));
    }
    kernel.threads[thread].affinity = set;
    if thread == caller.thread && !set.contains(caller.cpu) {
        return Ok(Outcome::Yield(0));
    }
    value(0)
}

/// Reads a set of so many bits.
pub(super) fn read_set(pointer: u64, bits: usize) -> Result<CpuSet, Errno> {
    let mut words = [0; WORDS];
    for byte in 0..bits.div_ceil(8).min(WORDS * 8) {
        let read: u8 = get(pointer.wrapping_add(byte as u64))?;
        let kept = bits - byte * 8;
        let mask = if kept >= 8 { u8::MAX } else { (1 << kept) - 1 };
        words[byte / 8] |= u64::from(read & mask) << (byte % 8 * 8);
    }
    Ok(CpuSet::from_words(words))
}

fn priority(call: &Call, real_time: i64) -> Reply {
    match call.arguments[0] as i32 {
        libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE => value(0),
        libc::SCHED_FIFO | libc::SCHED_RR => value(real_time),
        _ => Err(Errno(libc::EINVAL)),
    }
}

fn membarrier(kernel: &mut Kernel, _: Caller, call: &Call) -> Reply {
    let [command, flags, ..] = call.arguments;
    let command = u64::from(command as u32);
    if flags as u32 != 0 {
        return Err(Errno(libc::EINVAL));
    }
    match command {
        0 => value(BARRIERS as i64),
        BARRIER_GET_REGISTRATIONS => value(kernel.barriers as i64),
        // Waits until every CPU has been through the scheduler.
        BARRIER_GLOBAL => {
            kernel.charge += kernel.machine.time_slice_ps();
            value(0)
        }
        BARRIER_REGISTER_GLOBAL | BARRIER_REGISTER_PRIVATE | BARRIER_REGISTER_PRIVATE_CORE => {
            kernel.barriers |= command;
            value(0)
        }
        BARRIER_GLOBAL_EXPEDITED => {
            kernel.charge += kernel.machine.interrupt_ps();
            value(0)
        }
        // The registration is the next bit.
        BARRIER_PRIVATE | BARRIER_PRIVATE_CORE => {
            if kernel.barriers & command << 1 == 0 {
                return Err(Errno(libc::EPERM));
            }
            kernel.charge += kernel.machine.interrupt_ps();
            value(0)
        }
        _ if command.is_power_of_two() && command < 1 << 9 => {
            Ok(refuse(call, "barriers of restartable sequences are not simulated"))
        }
        _ => Err(Errno(libc::EINVAL)),
    }
}

impl Kernel {
    /// The thread that a call's first argument names.
    fn known_thread(&self, caller: Caller, call: &Call) -> Result<usize, Errno> {
        let tid = call.arguments[0] as i32;
        if tid < 0 {
            return Err(Errno(libc::EINVAL));
        }
        self.thread_of(caller, tid).ok_or(Errno(libc::ESRCH))
    }

    /// There is one scheduling policy; real-time ones are for the privileged.
    fn set_policy(&mut self, policy: i32, parameters: u64) -> Reply {
        let priority: i32 = get(parameters)?;
        match policy {
            libc::SCHED_OTHER | libc::SCHED_BATCH | libc::SCHED_IDLE if priority == 0 => value(0),
            libc::SCHED_FIFO | libc::SCHED_RR if (1..=99).contains(&priority) => {
                Err(Errno(libc::EPERM))
            }
            _ => Err(Errno(libc::EINVAL)),
        }
    }
}

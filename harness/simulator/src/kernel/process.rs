//! Identities, names and exits, and what a simulated program may never do.

use libc::c_long;

use super::{Call, Caller, Errno, Handler, Kernel, Outcome, Reply, get, perform, refuse, value};

use crate::time::NANOSECOND;

const PR_SET_VMA: i32 = 0x5356_4d41;

/// Options of `prctl` that would change what a program may do or how it runs.
const REFUSED_OPTIONS: [(i32, &str); 12] = [
    (1, "PR_SET_PDEATHSIG"),
    (4, "PR_SET_DUMPABLE"),
    (22, "PR_SET_SECCOMP"),
    (24, "PR_CAPBSET_DROP"),
    (26, "PR_SET_TSC"),
    (35, "PR_SET_MM"),
    (36, "PR_SET_CHILD_SUBREAPER"),
    (38, "PR_SET_NO_NEW_PRIVS"),
    (41, "PR_SET_THP_DISABLE"),
    (53, "PR_SET_SPECULATION_CTRL"),
    (59, "PR_SET_SYSCALL_USER_DISPATCH"),
    (62, "PR_SCHED_CORE"),
];

pub(super) fn handler(number: c_long) -> Option<Handler> {
    Some(match number {
        libc::SYS_gettid => |kernel, caller, _| value(kernel.threads[caller.thread].tid),
        // The C library has stored where the real kernel is to clear the number.
        libc::SYS_set_tid_address => |kernel, caller, _| value(kernel.threads[caller.thread].tid),
        libc::SYS_getpid
        | libc::SYS_getppid
        | libc::SYS_getuid
        | libc::SYS_geteuid
        | libc::SYS_getgid
        | libc::SYS_getegid
        | libc::SYS_getpgrp => |_, _, call| value(perform(call.number as c_long, &[0; 6])?),
        libc::SYS_exit => |_, _, _| Ok(Outcome::ExitThread),
        libc::SYS_exit_group => {
            |_, _, call| Ok(Outcome::ExitProcess(call.arguments[0] as i32 & 0xff))
        }
        libc::SYS_set_robust_list => |_, _, call| match call.arguments[1] {
            24 => value(0),
            _ => Err(Errno(libc::EINVAL)),
        },
        // The C library has registered its own; another one is told that there are none.
        libc::SYS_rseq => |_, _, _| Err(Errno(libc::ENOSYS)),
        libc::SYS_prctl => prctl,
        libc::SYS_getrusage => getrusage,
        libc::SYS_prlimit64 => |kernel, _, call| {
            let [_, _, new, old, ..] = call.arguments;
            if new != 0 {
                return Ok(refuse(call, "a simulated program may not change its limits"));
            }
            let result = perform(libc::SYS_prlimit64, &call.arguments)?;
            kernel.wrote(old, 16);
            value(result)
        },
        libc::SYS_clone | libc::SYS_clone3 => |_, _, call| Ok(refuse(call, clone_reason(call))),
        libc::SYS_fork | libc::SYS_vfork => {
            |_, _, call| Ok(refuse(call, "a simulated closure may not start processes"))
        }
        libc::SYS_execve | libc::SYS_execveat => {
            |_, _, call| Ok(refuse(call, "a simulated closure may not start programs"))
        }
        libc::SYS_futex_waitv => {
            |_, _, call| Ok(refuse(call, "waiting for several futexes at once is not simulated"))
        }
        _ => return None,
    })
}

/// Tells new threads from new processes, as far as the arguments do.
fn clone_reason(call: &Call) -> &'static str {
    let flags = match call.number as c_long {
        libc::SYS_clone => call.arguments[0],
        _ => get::<u64>(call.arguments[0]).unwrap_or(libc::CLONE_THREAD as u64),
    };
    if flags & libc::CLONE_THREAD as u64 != 0 {
        "a simulated closure may not start threads; the number of threads is an argument of the \
         run"
    } else {
        "a simulated closure may not start processes"
    }
}

fn prctl(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [option, argument, ..] = call.arguments;
    let option = option as i32;
    let thread = &mut kernel.threads[caller.thread];
    match option {
        libc::PR_SET_NAME => {
            let mut name = [0; 16];
            for (index, letter) in name[..15].iter_mut().enumerate() {
                *letter = get(argument.wrapping_add(index as u64))?;
                if *letter == 0 {
                    break;
                }
            }
            thread.name = name;
            value(0)
        }
        libc::PR_GET_NAME => {
            let name = thread.name;
            kernel.put(argument, name)?;
            value(0)
        }
        // Zero asks for the default.
        libc::PR_SET_TIMERSLACK => {
            thread.timer_slack = match argument {
                0 => kernel.machine.timer_slack_ps(),
                ns => ns.saturating_mul(NANOSECOND),
            };
            value(0)
        }
        libc::PR_GET_TIMERSLACK => value((thread.timer_slack / NANOSECOND) as i64),
        libc::PR_GET_DUMPABLE => value(1),
        libc::PR_GET_NO_NEW_PRIVS | libc::PR_GET_THP_DISABLE => value(0),
        PR_SET_VMA => value(0),
        _ => match REFUSED_OPTIONS.iter().find(|(number, _)| *number == option) {
            Some((_, name)) => Ok(refuse(call, &format!("{name} is not simulated"))),
            None => Err(Errno(libc::EINVAL)),
        },
    }
}

/// User time is all there is.
fn getrusage(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [who, pointer, ..] = call.arguments;
    let ran = match who as i32 {
        libc::RUSAGE_SELF => kernel.all_ran(caller.now),
        libc::RUSAGE_THREAD => kernel.ran(caller.thread, caller.now),
        libc::RUSAGE_CHILDREN => 0,
        _ => return Err(Errno(libc::EINVAL)),
    };
    let mut usage = [0_u64; 18];
    let microseconds = ran / NANOSECOND / 1_000;
    (usage[0], usage[1]) = (microseconds / 1_000_000, microseconds % 1_000_000);
    kernel.put(pointer, usage)?;
    value(0)
}

//! Signal state, which is kept and never acted upon: no signal is ever delivered.

use libc::c_long;

use super::{Call, Caller, Errno, Handler, Kernel, Outcome, Reply, get, names, refuse, value};

/// The bytes of the kernel's signal set.
const SET_BYTES: u64 = 8;
const SIGNALS: usize = 64;
const UNBLOCKABLE: u64 = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
/// `SS_AUTODISARM`.
const AUTODISARM: i32 = i32::MIN;
const SMALLEST_STACK: u64 = 2048;

/// What each signal would do, as the kernel's interface has it: handler, flags, restorer, mask.
#[derive(Debug)]
pub(super) struct Actions([[u64; 4]; SIGNALS]);

impl Default for Actions {
    fn default() -> Self {
        Actions([[0; 4]; SIGNALS])
    }
}

/// A thread's mask and alternate stack.
#[derive(Debug)]
pub(super) struct SignalState {
    mask: u64,
    stack: Stack,
}

/// `stack_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Stack {
    start: u64,
    flags: i32,
    unused: i32,
    bytes: u64,
}

const NO_STACK: Stack = Stack { start: 0, flags: libc::SS_DISABLE, unused: 0, bytes: 0 };

impl Default for SignalState {
    fn default() -> Self {
        SignalState { mask: 0, stack: NO_STACK }
    }
}

pub(super) fn handler(number: c_long) -> Option<Handler> {
    Some(match number {
        libc::SYS_rt_sigaction => sigaction,
        libc::SYS_rt_sigprocmask => sigprocmask,
        libc::SYS_rt_sigpending => |kernel, _, call| {
            kernel.put(call.arguments[0], 0_u64)?;
            value(0)
        },
        libc::SYS_sigaltstack => sigaltstack,
        libc::SYS_tgkill => |kernel, caller, call| {
            let [_, tid, signal, ..] = call.arguments;
            kernel.signal(caller, call, tid as i32, signal as i32)
        },
        libc::SYS_tkill => |kernel, caller, call| {
            let [tid, signal, ..] = call.arguments;
            kernel.signal(caller, call, tid as i32, signal as i32)
        },
        libc::SYS_kill => |kernel, caller, call| {
            let [pid, signal, ..] = call.arguments;
            let own = pid as i32 == std::process::id() as i32;
            let tid = if own { kernel.threads[caller.thread].tid } else { pid as i32 };
            kernel.signal(caller, call, tid, signal as i32)
        },
        _ => return None,
    })
}

fn sigaction(kernel: &mut Kernel, _: Caller, call: &Call) -> Reply {
    let [signal, new, old, bytes, ..] = call.arguments;
    let signal = signal as i32;
    let fixed = signal == libc::SIGKILL || signal == libc::SIGSTOP;
    if bytes != SET_BYTES || !(1..=SIGNALS as i32).contains(&signal) || fixed && new != 0 {
        return Err(Errno(libc::EINVAL));
    }
    let index = signal as usize - 1;
    let wanted = if new != 0 { Some(get::<[u64; 4]>(new)?) } else { None };
    if old != 0 {
        kernel.put(old, kernel.actions.0[index])?;
    }
    if let Some(wanted) = wanted {
        kernel.actions.0[index] = wanted;
    }
    value(0)
}

fn sigprocmask(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [how, new, old, bytes, ..] = call.arguments;
    if bytes != SET_BYTES {
        return Err(Errno(libc::EINVAL));
    }
    let before = kernel.threads[caller.thread].signals.mask;
    if new != 0 {
        let set = get::<u64>(new)?;
        let after = match how as i32 {
            libc::SIG_BLOCK => before | set,
            libc::SIG_UNBLOCK => before & !set,
            libc::SIG_SETMASK => set,
            _ => return Err(Errno(libc::EINVAL)),
        };
        kernel.threads[caller.thread].signals.mask = after & !UNBLOCKABLE;
    }
    if old != 0 {
        kernel.put(old, before)?;
    }
    value(0)
}

fn sigaltstack(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [new, old, ..] = call.arguments;
    let before = kernel.threads[caller.thread].signals.stack;
    if new != 0 {
        let stack = get::<Stack>(new)?;
        let mode = stack.flags & !AUTODISARM;
        kernel.threads[caller.thread].signals.stack = match mode {
            libc::SS_DISABLE => NO_STACK,
            0 | libc::SS_ONSTACK if stack.bytes < SMALLEST_STACK => {
                return Err(Errno(libc::ENOMEM));
            }
            0 | libc::SS_ONSTACK => Stack { flags: stack.flags & !libc::SS_ONSTACK, ..stack },
            _ => return Err(Errno(libc::EINVAL)),
        };
    }
    if old != 0 {
        kernel.put(old, before)?;
    }
    value(0)
}

impl Kernel {
    fn signal(&mut self, caller: Caller, call: &Call, tid: i32, signal: i32) -> Reply {
        let Some(target) = self.threads.iter().position(|thread| thread.tid == tid) else {
            return match signal {
                0 => Err(Errno(libc::ESRCH)),
                _ => Ok(refuse(call, "it would signal what is outside of the simulation")),
            };
        };
        match signal {
            0 => value(0),
            libc::SIGABRT if target == caller.thread => Ok(Outcome::Refused(format!(
                "the program aborts: thread {target} raises SIGABRT by {} (a second panic while \
                 one unwinds, a failed check of the C library, or a call of abort)",
                names::described(call)
            ))),
            _ => Ok(refuse(call, "signals between simulated threads are not simulated")),
        }
    }
}

//! Why a run stopped, in words: what happened, and where every thread was.

use core::fmt::Write as _;

use crate::context::register;
use crate::engine::Engine;
use crate::error::{Reason, Stopped};
use crate::forbidden::Forbidden;
use crate::halt::Halt;
use crate::lend::Lender;
use crate::os::State;
use crate::symbols::Symbols;
use crate::time::NANOSECOND;
use crate::translate::Special;

/// The most threads that are shown one by one.
const SHOWN: usize = 16;

/// Describes why a run stopped.
pub(crate) fn explain(
    engine: &Engine,
    lenders: &[Lender],
    symbols: &mut Symbols,
    halt: &Halt,
) -> Stopped {
    let (reason, message) = match halt {
        Halt::Interrupted => (Reason::Interrupted, "interrupted".to_owned()),
        Halt::Budget => {
            let text = "the budget of simulated time is used up, and threads have not ended";
            (Reason::Budget, everybody(engine, symbols, text))
        }
        Halt::Stuck => {
            let text = "no thread can ever go on: those that are left wait for each other";
            (Reason::Blocked, everybody(engine, symbols, text))
        }
        Halt::TooMuchCode => {
            (Reason::TooMuchCode, "the code that was executed does not fit into 256 MiB".to_owned())
        }
        Halt::Fault { core, rip, signal, address } => {
            let what = fault(engine, lenders, *core, *signal, *address);
            (Reason::Fault, at(engine, symbols, *core, *rip, &what))
        }
        Halt::Instruction { core, rip, special } => {
            let what = match special {
                Special::Illegal => "reached an illegal instruction (an abort, or ud2)".to_owned(),
                Special::Unmapped => format!("jumped to {rip:#x}, where no code is"),
                _ => "reached an instruction that cannot be simulated".to_owned(),
            };
            let reason = match special {
                Special::Unsupported => Reason::Refused,
                _ => Reason::Fault,
            };
            (reason, at(engine, symbols, *core, *rip, &what))
        }
        Halt::Forbidden { core, rip, function } => {
            let reason = match function {
                Forbidden::Exit | Forbidden::Abort | Forbidden::ThreadExit => Reason::Exit,
                _ => Reason::Refused,
            };
            let mut what = function.explanation().to_owned();
            if *function == Forbidden::Exit {
                let status = engine.cores[*core].context.registers[register::RDI] as i32;
                let _ = write!(what, " with status {status}");
            }
            (reason, at(engine, symbols, *core, *rip, &what))
        }
        Halt::ThreadExit { core } => {
            let what = "ended itself in the middle of a simulated closure (pthread_exit)";
            (Reason::Exit, at(engine, symbols, *core, rip(engine, *core), what))
        }
        Halt::Exit { core, status } => {
            let what = format!("ended the process with status {status}");
            (Reason::Exit, at(engine, symbols, *core, rip(engine, *core), &what))
        }
        Halt::Refused { core, reason } => {
            let what = format!("asked for what is not simulated: {reason}");
            (Reason::Refused, at(engine, symbols, *core, rip(engine, *core), &what))
        }
    };
    Stopped { reason, message }
}

/// Where the thread of a core goes on.
fn rip(engine: &Engine, core: usize) -> u64 {
    engine.cores[core].thread.map_or(0, |thread| engine.threads[thread].rip)
}

/// One thread did something, at a place.
fn at(engine: &Engine, symbols: &mut Symbols, core: usize, rip: u64, what: &str) -> String {
    let one = &engine.cores[core];
    let stack = one.context.registers[register::RSP];
    let place = symbols.place(rip, stack);
    let thread = one.thread.map_or_else(String::new, |thread| format!("thread {thread} "));
    format!("{thread}on core {} {what}\n  at {place}", one.cpu)
}

/// Says what a signal means.
fn fault(
    engine: &Engine,
    lenders: &[Lender],
    core: usize,
    signal: i32,
    address: Option<u64>,
) -> String {
    const NEAR_NULL: u64 = 1 << 16;
    const BELOW_STACK: u64 = 1 << 20;
    let stack = engine.cores[core].thread.map(|thread| lenders[thread].stack());
    let no_address = address.is_none() && signal != libc::SIGTRAP;
    let address = address.unwrap_or(0);
    match signal {
        libc::SIGFPE => "divided by zero, or a quotient does not fit (SIGFPE)".to_owned(),
        libc::SIGILL => "reached an instruction that this host does not have (SIGILL)".to_owned(),
        libc::SIGTRAP => "reached a breakpoint (SIGTRAP)".to_owned(),
        _ if no_address => {
            "executed a privileged instruction, or named an address that is none or not aligned as \
             its vector instruction wants it (general protection)"
                .to_owned()
        }
        _ if address < NEAR_NULL => {
            format!("dereferenced a null pointer (address {address:#x})")
        }
        _ if stack.as_ref().is_some_and(|stack| {
            (stack.start.saturating_sub(BELOW_STACK)..stack.start).contains(&address)
        }) =>
        {
            format!("overflowed its stack of 8 MiB (address {address:#x})")
        }
        libc::SIGBUS => format!("accessed what is not there (SIGBUS, address {address:#x})"),
        _ => format!("accessed memory that it may not (SIGSEGV, address {address:#x})"),
    }
}

/// Says where everybody is who has not ended.
fn everybody(engine: &Engine, symbols: &mut Symbols, text: &str) -> String {
    let mut message = text.to_owned();
    let mut left = 0;
    for (index, thread) in engine.threads.iter().enumerate() {
        if thread.state == State::Ended {
            continue;
        }
        left += 1;
        if left > SHOWN {
            continue;
        }
        let mut at = thread.rip;
        let (stack, does) = match thread.state {
            State::Running(core) => {
                at = engine.running_at(core);
                let core = &engine.cores[core];
                let stack = core.context.registers[register::RSP];
                let spins = if core.spin.is_parked() { "spins for ever" } else { "runs" };
                (stack, format!("{spins} on core {}", core.cpu))
            }
            State::Ready => (0, "is ready and has no core".to_owned()),
            _ => {
                let what = engine.kernel.waiting_for(index);
                let what = what.unwrap_or_else(|| "the kernel".to_owned());
                (engine.stack_of(index), format!("waits for {what}"))
            }
        };
        let place = symbols.place(at, stack);
        let _ = write!(message, "\n  thread {index} {does}, at {place}");
    }
    if left > SHOWN {
        let _ = write!(message, "\n  and {} threads more", left - SHOWN);
    }
    let latest = engine.cores.iter().map(|core| core.time).max().unwrap_or(0);
    let _ = write!(message, "\n  after {} ns of simulated time", latest / NANOSECOND);
    message
}

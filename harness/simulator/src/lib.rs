//! Unmodified machine code on N simulated cores: exact counts, priced contention.
//!
//! A closure is executed on 1 to 1024 cores of a machine that need not be there: its compiled,
//! optimised code, instruction by instruction on this processor, in the order of simulated time.
//! Every memory access is put to a model of caches and of the ways between cores. So it works with
//! `std::sync::Mutex` as with a lock of one's own, counts instructions exactly, and gives the same
//! answer every time.
//!
//! # Simulate a lock of one's own
//! ```
//! use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
//! use simulator::{EngineHeap, Machine};
//!
//! #[global_allocator]
//! static HEAP: EngineHeap = EngineHeap;
//!
//! static LOCKED: AtomicBool = AtomicBool::new(false);
//! static DATA: AtomicU64 = AtomicU64::new(0);
//!
//! let report = Machine::named("epyc-7742-2s")?.run(64, |_core| {
//!     while LOCKED.swap(true, Ordering::Acquire) {}
//!     DATA.store(DATA.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
//!     LOCKED.store(false, Ordering::Release);
//! })?;
//! println!("{} ns, {:?}", report.total.time_ns(), report.total.transfers);
//! # assert_eq!(DATA.load(Ordering::Relaxed), 64);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What to know
//! - The program must declare [`EngineHeap`]; without it a run is refused.
//! - Closures run to their end: they may allocate, print, lock, sleep and panic, and may not start
//!   threads or processes, change code, or end the process. Whatever stops a run says where.
//! - Threads of the program that are not simulated must not hold, or wait for, locks that closures
//!   use; nobody would wake them.
//! - Interleavings are sequentially consistent at the granularity of instructions: contention is
//!   priced here, memory orderings are not proven.
//! - Addresses decide hashes and shares of lines. [`Session::once`] allocates where the guests'
//!   own allocations lie, at addresses that nothing else decides; for the rest of a program, runs
//!   repeat where address randomisation is off.
//! - One session at a time exists in a process. After a run that stopped, its threads are left
//!   where they were, with whatever locks of the program's own they held; what they held of the
//!   process, the allocator's locks or standard output's, they let go of first.
//!
//! # Rooms
//! | module | does |
//! |---|---|
//! | [`machine`] | machine files: cores, distances, costs |
//! | `simulation`, `session` | what a program calls |
//! | `work`, `lend`, `exchange`, `heap`, `fixed` | the engine's thread, threads that lend stack and identity, memory between the two sides |
//! | `translate/` | decodes a thread's code once, and writes code that runs, counts and asks |
//! | `context`, `enter`, `code_memory`, `faults` | the border between engine and thread |
//! | `engine`, `cores`, `queue`, `spin` | who goes on, and which rounds of spin loops need not |
//! | `waking`, `dozing` | spinners whose line is taken, and those that only ever read it once more |
//! | `pace` | siblings that share the issue slots of a core |
//! | `operands` | operands that code does not ask for itself |
//! | `accesses`, `waiting` | accesses that do not hit, and queues at lines |
//! | `coherence`, `model` | who has which line, and what it costs to get one |
//! | `caches`, `bandwidth` | what fits into the caches, and what memory delivers |
//! | `os`, `kernel/`, `interpret`, `vdso` | threads on cores, system calls, special instructions |
//! | `line_report`, `line_text`, `lines/` | which lines are hot, who touches which bytes, and what kind of sharing that is |
//! | `report`, `halt`, `explain`, `symbols`, `error` | figures, and reasons with source lines |
//! | `let_go`, `unwind` | leaving threads behind without the process's locks |

mod error;
mod line_report;
mod line_text;
pub mod machine;
mod report;
mod simulation;
mod time;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod elsewhere;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod accesses;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod bandwidth;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod caches;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod code_memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod coherence;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod context;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod cores;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod dozing;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod engine;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod enter;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod exchange;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod explain;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod faults;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod fixed;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod forbidden;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod guest_memory;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod halt;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod heap;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod host;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod interpret;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod kernel;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod lend;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod let_go;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod lines;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod model;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod operands;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod os;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod pace;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod session;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod spin;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod symbols;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod translate;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod unwind;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod valgrind_cpuid;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod vdso;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod waiting;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod waking;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod work;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub use elsewhere::{EngineHeap, Session};
pub use error::{Error, Reason, Stopped};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use heap::EngineHeap;
pub use line_report::{
    Apart, ApartError, Event, HotLine, HotPlace, LineReport, OtherLines, Sharing, Stack, Touches,
    Wait,
};
pub use machine::{Machine, MachineError};
pub use report::{Counts, Report, Transfers};
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use session::Session;
pub use simulation::Simulation;

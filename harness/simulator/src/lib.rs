//! Unmodified machine code on N simulated cores: exact counts, priced contention.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod code_memory;
mod coherence;
mod context;
mod engine;
mod enter;
mod error;
mod exchange;
mod explain;
mod faults;
mod forbidden;
mod guest_memory;
mod halt;
mod heap;
mod host;
mod interpret;
mod kernel;
mod lend;
pub mod machine;
mod os;
mod queue;
mod report;
mod session;
mod spin;
mod symbols;
mod time;
mod translate;
mod valgrind_cpuid;
mod vdso;
mod work;

pub use error::{Error, Reason, Stopped};
pub use heap::EngineHeap;
pub use machine::{Machine, MachineError};
pub use report::{Counts, Report, Transfers};
pub use session::{Session, Simulation};

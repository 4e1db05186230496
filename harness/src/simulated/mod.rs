//! The simulated engine: an experiment's unmodified machine code on the cores of a named machine.
//!
//! A program that simulates declares the engine's heap:
//! ```
//! #[global_allocator]
//! static HEAP: harness::simulated::EngineHeap = harness::simulated::EngineHeap;
//! ```
//!
//! # How a point is run
//! On one simulated machine, one after the other: the length of a step of work is measured; the
//! experiment is made by the first thread; every thread prepares its own work; rounds of
//! operations follow until a round brings nothing from memory any more; then all threads begin
//! together, each with the same number of operations to do. The **window** lasts until the first
//! thread has done its part, so that all were running in it. The others then end their batch, and
//! the experiment is checked like everywhere.
//!
//! One thread alone does n and then 2n operations, and the difference is what n operations cost, to
//! the instruction. Several threads work in batches, as at the end of the window it must be known
//! how far each is; what calling a batch costs is measured with one thread and subtracted.
//!
//! [`run`] runs many points, each in a process of its own ([`child`]), so that figures depend on
//! nothing of the host, and a crash or a hang is the point's alone.

mod band;
pub mod child;
mod count;
mod figures;
mod ground;
mod latencies;
mod lines;
mod placed;
mod plan;
mod point;
mod points;
mod work;

pub use band::{Border, MARKS, band};
pub use count::{Counts, Sum, count, is_asked, measured};
pub use figures::{Measured, Sums, metrics};
pub use ground::Cores;
pub use lines::{Watch, Watched, watch};
pub use placed::confirm;
pub use plan::{plan, recorded_plan};
pub use point::{Request, measure, on_a_fresh_stack, stopped};
pub use points::{Settings, run};
pub use simulator::machine::{
    Confidence, Distance, Figure, FigureValue, MAX_CORES, Machine, MachineError,
};
pub use simulator::{
    Apart, EngineHeap, Error, Event, HotLine, HotPlace, LineReport, Sharing, Simulation, Stack,
    Wait,
};

/// The machine that is simulated when none is named.
pub const DEFAULT_MACHINE: &str = "epyc-7742-2s";

//! What measures: pinned workers, a clock, windows, statistics, records.
//!
//! The harness knows no primitive. A driver gives it an [`Experiment`](native::Experiment): one
//! [`Work`](window::Work) a thread and the check that the primitive did its job. The harness pins
//! the threads, warms up, starts them by a deadline of the clock, stops them by the clock, repeats,
//! and says with each figure what disturbed it.
//!
//! # Measure something of your own
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::time::Duration;
//! use harness::native::{Experiment, Native};
//! use harness::workload::Workload;
//! use harness::window::Work;
//! use topology::Topology;
//!
//! struct Add(Arc<AtomicU64>);
//! impl Work for Add {
//!     #[inline(never)]
//!     fn batch(&mut self, ops: u64) -> u64 {
//!         (0..ops).for_each(|_| { self.0.fetch_add(1, Ordering::Relaxed); });
//!         ops
//!     }
//! }
//!
//! let host = Topology::this_host()?;
//! let cpus: Vec<u32> = host.usable().iter().take(2).collect();
//! let mut native = Native::new(host);
//! let conditions = native.conditions(&cpus, &Workload::default(), 1)?;
//! let repetition = native.repetition(&conditions, |conditions| {
//!     let total = Arc::new(AtomicU64::new(0));
//!     let work = |_| <dyn Work>::boxed(Add(total.clone()));
//!     let works = (0..conditions.threads()).map(work).collect();
//!     Ok(Experiment {
//!         works,
//!         granted: None,
//!         verify: Box::new(move |ops| {
//!             let (counted, expected) = (total.load(Ordering::Relaxed), ops.iter().sum::<u64>());
//!             if counted == expected { Ok(vec![]) } else { Err(format!("{counted} of {expected}")) }
//!         }),
//!     })
//! }, Duration::from_millis(10)).map_err(|failure| format!("{failure:?}"))?;
//! let summary = native.summary(&[repetition], None, 1);
//! println!("{:?} ns for an add", summary.metrics["ns_per_op"].value());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rooms
//! | module | does |
//! |---|---|
//! | [`affinity`] | pins a thread and reads the mask back |
//! | [`clock`] | reads and calibrates the time-stamp counter, or says why another clock is used |
//! | [`team`] | keeps pinned workers |
//! | [`window`] | one measured window: deadline start, stop by the clock, overlap |
//! | [`syscalls`] | counts system calls exactly |
//! | [`memory`] | huge, populated, locked memory on a node, or the reason |
//! | [`noise`] | what disturbed a window |
//! | [`pmu`] | hardware counters of a thread, in one group |
//! | [`calibrate`] | this host as a machine file of the simulator |
//! | [`callgrind`], [`counted`] | exact counts, and the experiment that they are taken of |
//! | [`native`] | an experiment repeated, checked and summarised |
//! | [`simulated`] | an experiment on the cores of a named machine, a process a point |
//! | [`workload`] | what threads do, in the words of the command line |
//! | [`paired`] | windows of two experiments in turn, and a rule that says which is faster |
//! | [`placement`] | which CPU each thread gets; thread counts |
//! | [`sweep`] | many points, in rotated order |
//! | [`records`], [`line_records`] | JSON Lines, read and written |
//! | [`report`] | what records say, as one page, as Markdown, as comma-separated values |
//! | [`compare`] | two files of records: paired by point, a verdict each |
//! | [`glossary`] | what each metric means and how it is got |
//! | `front_door` (feature `bench`) | `cargo bench`: flags, wall clock, exact counts, cross-check |
//! | [`layout`] | which fields share a line and should not |
//! | [`line_sizes`] | what a machine moves at once, with sources |
//! | [`host`] | the host's fingerprint |
//! | [`doctor`] | what about a host spoils measurements, and settings that help |
//! | [`stats`], [`student`], [`spin`], [`unavailable`] | medians and intervals, calibrated work, typed reasons |

pub mod affinity;
pub mod calibrate;
pub mod callgrind;
pub mod clock;
pub mod compare;
pub mod counted;
pub mod doctor;
#[cfg(feature = "bench")]
pub mod front_door;
pub mod glossary;
pub mod host;
pub mod layout;
mod light;
pub mod line_records;
pub mod line_sizes;
pub mod memory;
pub mod native;
pub mod noise;
pub mod paired;
pub mod placement;
pub mod pmu;
pub mod records;
pub mod report;
pub mod simulated;
pub mod spin;
pub mod stats;
pub mod student;
pub mod sweep;
pub mod syscalls;
pub mod team;
pub mod unavailable;
pub mod window;
pub mod workload;

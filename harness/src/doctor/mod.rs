//! What about a host spoils measurements: what each thing does, and what to do about it.
//!
//! ```
//! use harness::clock::Clock;
//! use harness::doctor::{Live, Look, Subject, Verdict, examine};
//! use topology::Topology;
//!
//! let host = Topology::this_host()?;
//! let live = Live::measured(&host, &Clock::calibrated(&host.cpuid), Look::Brief);
//! for finding in examine(&Subject::new(&host, Ok(live))?) {
//!     if finding.verdict >= Verdict::Warn {
//!         println!("{}: {}", finding.check, finding.message());
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`CHECKS`] is the table; `docs/doctor.md` says what each verdict takes. [`settings`] sets what can
//! be set, and puts it back.

mod finding;
mod hiccups;
mod live;
mod memory;
mod neighbours;
mod power;
pub mod settings;
mod shares;
mod subject;
mod timing;
mod tree;
mod warp;

pub use finding::{Finding, Verdict};
pub use hiccups::CpuHiccups;
pub use live::{Live, Look, Quiet};
pub use subject::Subject;
pub use tree::Tree;
pub use warp::Warp;

use finding::Looked;

/// One thing that is looked at.
#[derive(Debug)]
pub struct Check {
    /// Its name, as records and the program have it.
    pub name: &'static str,
    /// What it does to a measurement.
    pub effect: &'static str,
    look: fn(&Subject) -> Looked,
}

/// Everything that is looked at.
pub const CHECKS: &[Check] = &[
    Check {
        name: "governor",
        effect: "the clock rate follows the load, so that the same code takes different times",
        look: power::governor,
    },
    Check {
        name: "turbo",
        effect: "the clock rate falls when more cores are busy, so that scaling looks worse than it is",
        look: power::turbo,
    },
    Check {
        name: "thermal",
        effect: "the clock rate falls when the machine is hot, so that later points are slower",
        look: power::thermal,
    },
    Check {
        name: "c_states",
        effect: "whoever sleeps pays for waking the core up, so that locks that block look worse",
        look: power::c_states,
    },
    Check {
        name: "smt",
        effect: "two threads share the units and caches of a core, so that the order of CPUs decides",
        look: shares::smt,
    },
    Check {
        name: "isolation",
        effect: "the kernel puts other tasks and its timer tick on the CPUs that measure",
        look: shares::isolation,
    },
    Check {
        name: "cpuset",
        effect: "sweeps end at the CPUs that this process may use, not at those of the machine",
        look: shares::cpuset,
    },
    Check {
        name: "quota",
        effect: "threads that exceed the quota are stopped for the rest of the period, lock or no lock",
        look: shares::quota,
    },
    Check {
        name: "throttling",
        effect: "a thread that is stopped with a lock in its hands stops all that wait for it",
        look: shares::throttling,
    },
    Check {
        name: "load",
        effect: "other programs take CPUs, caches and memory bandwidth away in the middle of a window",
        look: shares::load,
    },
    Check {
        name: "load_generator",
        effect: "whoever makes the load competes with what is measured for the same CPUs and caches",
        look: neighbours::load_generator,
    },
    Check {
        name: "hypervisor",
        effect: "a virtual CPU may lose its core at any time, and topology may be made up",
        look: shares::hypervisor,
    },
    Check {
        name: "steal",
        effect: "the hypervisor runs others on the core while a thread believes that it runs",
        look: shares::steal,
    },
    Check {
        name: "irq_affinity",
        effect: "handlers of devices run in the middle of operations and push data out of the caches",
        look: neighbours::irq_affinity,
    },
    Check {
        name: "hiccups",
        effect: "operations that a gap falls on take as long as the gap: tail latency is the host's",
        look: timing::hiccups,
    },
    Check {
        name: "clock_source",
        effect: "reading the time may enter the kernel, which costs more than most operations",
        look: timing::clock_source,
    },
    Check {
        name: "tsc_warp",
        effect: "times taken on two CPUs cannot be compared, and threads start at different moments",
        look: timing::tsc_warp,
    },
    Check {
        name: "thp",
        effect: "pages are merged or split behind the program's back, some points on huge pages, some not",
        look: memory::thp,
    },
    Check {
        name: "huge_pages",
        effect: "without huge pages the misses of the TLB add to the cost of far lines",
        look: memory::huge_pages,
    },
    Check {
        name: "numa_balancing",
        effect: "the kernel unmaps pages to see who uses them and moves them to other nodes meanwhile",
        look: memory::numa_balancing,
    },
    Check {
        name: "ksm",
        effect: "a kernel thread reads and merges pages, and the first write to one is a page fault",
        look: memory::ksm,
    },
    Check {
        name: "zone_reclaim",
        effect: "an allocation on a full node waits for reclaim instead of going to another node",
        look: memory::zone_reclaim,
    },
    Check {
        name: "swap",
        effect: "touching a page that was swapped out takes milliseconds",
        look: memory::swap,
    },
    Check {
        name: "aslr",
        effect: "every process has the same addresses: a layout that is lucky by chance looks like a result",
        look: memory::aslr,
    },
    Check {
        name: "memlock",
        effect: "memory that cannot be locked may be swapped out or moved in the measured window",
        look: memory::memlock,
    },
    Check {
        name: "perf",
        effect: "without hardware counters misses and transfers stay unknown",
        look: timing::perf,
    },
];

/// Looks at everything, in the order of the table.
pub fn examine(subject: &Subject) -> Vec<Finding> {
    let look = |check: &Check| Finding::new(check.name, check.effect, (check.look)(subject));
    CHECKS.iter().map(look).collect()
}

/// Gives the worst verdict of what is known; `Ok` where nothing is.
pub fn worst(findings: &[Finding]) -> Verdict {
    let known = findings.iter().map(|finding| finding.verdict);
    known.filter(|&verdict| verdict != Verdict::Unknown).max().unwrap_or(Verdict::Ok)
}

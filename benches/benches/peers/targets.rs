//! What ours shall cost at the most, and what was found.

use harness::paired::Verdict;
use harness::report::number::{exact, short};

use crate::Priced;
use crate::jobs::Bytes;
use crate::paired::Fought;
use crate::simulated::{CORES, MACHINES};

/// One of ours and one of theirs that are timed against each other by themselves.
pub(crate) struct Duel {
    pub(crate) job: &'static str,
    pub(crate) ours: &'static str,
    pub(crate) theirs: &'static str,
}

const fn duel(job: &'static str, ours: &'static str, theirs: &'static str) -> Duel {
    Duel { job, ours, theirs }
}

/// Ours shall not be slower.
pub(crate) const DUELS: [Duel; 7] = [
    duel("mutex", "locks/futex", "std::sync::Mutex"),
    duel("mutex", "locks/futex", "parking_lot::Mutex"),
    duel("mutex_contended", "locks/futex", "std::sync::Mutex"),
    duel("mutex_contended", "locks/futex", "parking_lot::Mutex"),
    duel("spsc_1+1", "queues/spsc_ring_cached", "rtrb"),
    duel("mpmc_1+1", "queues/mpmc_ring_vyukov", "crossbeam_queue::ArrayQueue"),
    duel("deque", "queues/deque_chase_lev", "crossbeam_deque::Worker"),
];

/// Ours shall need no more instructions and no more RMWs.
const NO_MORE_THAN: [Duel; 6] = [
    duel("mutex", "locks/futex", "std::sync::Mutex"),
    duel("mutex", "locks/futex", "parking_lot::Mutex"),
    duel("spsc", "queues/spsc_ring_cached", "rtrb"),
    duel("mpmc", "queues/mpmc_ring_vyukov", "crossbeam_queue::ArrayQueue"),
    duel("deque", "queues/deque_chase_lev", "crossbeam_deque::Worker"),
    duel("bump_u32", "alloc-arena/bump_heap", "bumpalo::Bump"),
];

/// So many instructions above those of another candidate, at the most.
struct Above {
    duel: Duel,
    most: f64,
}

const ABOVE: [Above; 3] = [
    Above { duel: duel("mutex", "locks/futex", "(loop)"), most: 9.0 },
    Above { duel: duel("bump_u32", "alloc-arena/bump_heap", "alloc-arena/null"), most: 10.0 },
    Above { duel: duel("add", "counters/per_thread", "counters/lossy"), most: 3.0 },
];

/// Ours shall not take more simulated time, on any number of cores.
const NOT_LATER: [Duel; 6] = [
    duel("mutex_contended", "locks/futex", "std::sync::Mutex"),
    duel("mutex_contended", "locks/mcs", "mcslock::raw::Mutex"),
    duel("read_together", "locks/rw_big_reader", "std::sync::RwLock"),
    duel("spsc_1+1", "queues/spsc_ring_cached", "rtrb"),
    duel("mpmc_1+1", "queues/mpmc_ring_vyukov", "crossbeam_queue::ArrayQueue"),
    duel("deque_steal", "queues/deque_chase_lev", "crossbeam_deque::Worker"),
];

/// Ours shall take no more bytes, nor for a waiter or a slot.
const NO_LARGER: [Duel; 5] = [
    duel("mutex", "locks/futex", "std::sync::Mutex"),
    duel("mutex", "locks/parking", "parking_lot::Mutex"),
    duel("mutex", "locks/mcs", "mcslock::raw::Mutex"),
    duel("spsc", "queues/spsc_ring_cached", "rtrb"),
    duel("mpmc", "queues/mpmc_ring_vyukov", "crossbeam_queue::ArrayQueue"),
];

/// What the time of one may be of another's, to count as no more.
const MARGIN: f64 = 1.03;

/// The machine with the most cores, and how many.
const MACHINE: &str = "epyc-7742-2s";
const TWO_SOCKETS: usize = 128;

/// A target, and what became of it.
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) found: String,
    pub(crate) met: bool,
}

/// Judges what the parts that ran can tell.
pub(crate) fn judge(all: &[Priced], fought: &[Fought]) -> Vec<Target> {
    let mut targets = counted(all);
    targets.extend(weighed(all).filter(|_| all.iter().any(|priced| !priced.exact.is_empty())));
    targets.extend(fought.iter().map(timed));
    targets.extend(simulated(all));
    targets
}

fn job<'a>(all: &'a [Priced], id: &str) -> Option<&'a Priced> {
    all.iter().find(|priced| priced.job.id == id)
}

/// The targets that are counted.
fn counted(all: &[Priced]) -> Vec<Target> {
    let both = |Duel { job: id, ours, theirs }: &Duel| {
        let priced = job(all, id)?;
        Some((*priced.exact_of(ours)?, *priced.exact_of(theirs)?))
    };
    let no_more = NO_MORE_THAN.iter().filter_map(|duel| {
        let (ours, theirs) = both(duel)?;
        Some(Target {
            what: format!("{}: `{}` ≤ `{}`, counted", duel.job, duel.ours, duel.theirs),
            found: format!(
                "{} instructions and {} RMWs against {} and {}",
                exact(ours.instructions),
                exact(ours.rmw),
                exact(theirs.instructions),
                exact(theirs.rmw)
            ),
            met: ours.instructions <= theirs.instructions && ours.rmw <= theirs.rmw,
        })
    });
    let above = ABOVE.iter().filter_map(|Above { duel, most }| {
        let (ours, base) = both(duel)?;
        let more = ours.instructions - base.instructions;
        Some(Target {
            what: format!(
                "{}: `{}` ≤ {} instructions above `{}`",
                duel.job, duel.ours, most, duel.theirs
            ),
            found: format!(
                "{} above ({} and {})",
                exact(more),
                exact(ours.instructions),
                exact(base.instructions)
            ),
            // What a reset costs is spread over 1024 operations.
            met: more < most + 0.1,
        })
    });
    no_more.chain(above).collect()
}

fn timed(Fought { duel, outcome }: &Fought) -> Target {
    let what = format!("{}: `{}` not slower than `{}`", duel.job, duel.ours, duel.theirs);
    match outcome {
        Ok((estimate, verdict)) => Target {
            what,
            found: format!(
                "{}: ratio {} ({} … {})",
                verdict.word(),
                short(estimate.value),
                short(estimate.low),
                short(estimate.high)
            ),
            met: *verdict != Verdict::Slower,
        },
        Err(reason) => Target { what, found: reason.clone(), met: false },
    }
}

/// The targets in bytes.
fn weighed(all: &[Priced]) -> impl Iterator<Item = Target> {
    NO_LARGER.iter().filter_map(|Duel { job: id, ours, theirs }| {
        let weigh = |candidate: &str| (job(all, id)?.job.candidate(candidate)?.bytes)();
        let (ours_take, theirs_take) = (weigh(ours)?, weigh(theirs)?);
        let text = |bytes: Bytes| match bytes.each {
            Some(each) => format!("{} and {each}", bytes.object),
            None => bytes.object.to_string(),
        };
        Some(Target {
            what: format!("{id}: `{ours}` ≤ `{theirs}` in bytes, and for a waiter or slot"),
            found: format!("{} against {}", text(ours_take), text(theirs_take)),
            met: ours_take.object <= theirs_take.object
                && theirs_take.each.is_none_or(|theirs| ours_take.each <= Some(theirs)),
        })
    })
}

/// The targets in simulated time of one thread for an operation.
fn simulated(all: &[Priced]) -> Vec<Target> {
    let at = |id: &str, candidate: &str, machine: &str, cores: usize| {
        job(all, id)?.simulated_of(candidate, machine, cores).copied()
    };
    let duels = NOT_LATER.iter().flat_map(|duel| {
        MACHINES.map(|machine| {
            let of = |id: &str, cores| at(duel.job, id, machine, cores).map(|f| f.ns_per_op);
            let ratio =
                |&cores: &usize| Some((of(duel.ours, cores)? / of(duel.theirs, cores)?, cores));
            let ratios: Vec<(f64, usize)> = CORES.iter().filter_map(ratio).collect();
            let (worst, cores) =
                ratios.into_iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
            Some(Target {
                what: format!(
                    "{}: `{}` not later than `{}` on `{machine}`",
                    duel.job, duel.ours, duel.theirs
                ),
                found: format!("at most {} times its time, on {cores} cores", short(worst)),
                met: worst <= MARGIN,
            })
        })
    });
    let numa = || {
        let of = |lock: &str| at("mutex_contended", lock, MACHINE, TWO_SOCKETS);
        let mcs = of("locks/mcs")?;
        let times = |lock: &str| Some(mcs.ns_per_op / of(lock)?.ns_per_op);
        let (hmcs, cohort) = (times("locks/hmcs")?, times("locks/cohort_bo_mcs")?);
        Some(Target {
            what: format!(
                "`locks/hmcs` or a cohort ≥ 1.3 times as fast as `locks/mcs` on {TWO_SOCKETS} cores"
            ),
            found: format!("hmcs {}, cohort_bo_mcs {}", short(hmcs), short(cohort)),
            met: hmcs.max(cohort) >= 1.3,
        })
    };
    let tickets = |machine: &str| {
        let of = |cores: usize| {
            let ns = at("mpmc_1+1", "queues/mpmc_ticket", machine, cores)?.ns_per_op;
            Some(cores as f64 * 1e3 / ns)
        };
        let (few, many) = (of(4)?, of(32)?);
        Some(Target {
            what: format!("`queues/mpmc_ticket` keeps half of 2+2 at 16+16 on `{machine}`"),
            found: format!("{} and {} million operations a second", short(few), short(many)),
            met: many * 2.0 >= few,
        })
    };
    let flat = || {
        let of = |cores| at("add_together", "counters/sharded", MACHINE, cores);
        let (two, most) = (of(2)?, of(TWO_SOCKETS)?);
        Some(Target {
            what: format!("`counters/sharded` flat within 1.2 times to {TWO_SOCKETS} cores"),
            found: format!(
                "{} ns an add on 2, {} ns on {TWO_SOCKETS}",
                short(two.ns_per_op),
                short(most.ns_per_op)
            ),
            met: most.ns_per_op <= 1.2 * two.ns_per_op,
        })
    };
    let all_tickets = MACHINES.map(tickets);
    duels.chain([numa(), flat()]).chain(all_tickets).flatten().collect()
}

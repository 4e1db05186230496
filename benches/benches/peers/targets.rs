//! What ours shall cost at the most, and what was found.

use harness::paired::Verdict;
use harness::report::number::{exact, short};

use crate::Priced;
use crate::paired::Fought;
use crate::simulated::Figures;

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

/// The machine and the numbers of cores of the targets that are simulated.
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
    targets.extend(fought.iter().map(timed));
    targets.extend(simulated(all));
    targets
}

fn job<'a>(all: &'a [Priced], id: &str) -> Option<&'a Priced> {
    all.iter().find(|priced| priced.job.id == id)
}

/// The targets that are counted.
pub(crate) fn counted(all: &[Priced]) -> Vec<Target> {
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

fn simulated(all: &[Priced]) -> Vec<Target> {
    let at = |id: &str, candidate: &str, cores: usize| -> Option<Figures> {
        let priced = job(all, id)?;
        let place = priced.job.candidates.iter().position(|one| one.id == candidate)?;
        let mut points = priced.simulated.iter();
        let point = points.find(|point| {
            point.candidate == place && point.machine == MACHINE && point.cores == cores
        });
        point?.figures.as_ref().ok().copied()
    };
    let numa = || {
        let of = |lock: &str| at("mutex_contended", lock, TWO_SOCKETS).map(|f| f.mops_per_s);
        let mcs = of("locks/mcs")?;
        let (hmcs, cohort) = (of("locks/hmcs")?, of("locks/cohort_bo_mcs")?);
        Some(Target {
            what: format!(
                "`locks/hmcs` or a cohort ≥ 1.3 times `locks/mcs` on {TWO_SOCKETS} cores"
            ),
            found: format!("hmcs {}, cohort_bo_mcs {}", short(hmcs / mcs), short(cohort / mcs)),
            met: hmcs.max(cohort) >= 1.3 * mcs,
        })
    };
    let tickets = || {
        let of = |cores| at("mpmc_1+1", "queues/mpmc_ticket", cores).map(|f| f.mops_per_s);
        let (few, many) = (of(4)?, of(32)?);
        Some(Target {
            what: "`queues/mpmc_ticket` within 2 times from 2+2 to 16+16".into(),
            found: format!("{} and {} million operations a second", short(few), short(many)),
            met: many * 2.0 >= few,
        })
    };
    let flat = || {
        let of = |cores| at("add_together", "counters/sharded", cores).map(|f| f.ns_per_op);
        let (two, most) = (of(2)?, of(TWO_SOCKETS)?);
        Some(Target {
            what: format!("`counters/sharded` flat within 1.2 times to {TWO_SOCKETS} cores"),
            found: format!("{} ns an add on 2, {} ns on {TWO_SOCKETS}", short(two), short(most)),
            met: most <= 1.2 * two,
        })
    };
    [numa(), tickets(), flat()].into_iter().flatten().collect()
}

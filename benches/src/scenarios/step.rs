//! Runs one step: makes its job, warms up, measures, checks.

use harness::native::Failure as Broken;
use harness::simulated::on_a_fresh_stack;
use harness::unavailable::Unavailable;

use super::job::{Job, Round};
use super::measured::{Growth, Measured, Quantiles, Reply, Waited};
use super::scenario::{Scenario, Setting, Step, Until};
use super::stage::Stage;
use super::turn::{Log, Shared};

/// Of the operations of a round, the part that the round before it does to warm up.
const WARM_UP: u64 = 4;

/// How long after a round was begun work arrives, in nanoseconds: longer than a job takes to begin.
const LEAD: u64 = 20_000_000;

/// The most times that a thread notes.
const MOST_SAMPLES: u64 = 1 << 16;

/// Runs a step, with its lines watched on request. Figures of simulated steps depend on nothing of
/// the host, if this is the first thing that the process does.
///
/// # Errors
/// When the step cannot be run here, or is broken.
pub(crate) fn run(
    scenario: &Scenario,
    setting: &Setting,
    step: &Step,
    watch: bool,
) -> Result<Reply, Broken> {
    let order = setting.order(&step.placement).map_err(Broken::Unavailable)?;
    let on = step.on.unwrap_or(step.threads);
    if on > order.len() {
        return Err(Broken::Unavailable(Unavailable::because(
            "too_few_cores",
            format!("{on} cores are needed, placement {} gives {}", step.placement, order.len()),
        )));
    }
    let cores: Vec<u32> = order[..on].iter().copied().cycle().take(step.threads).collect();
    let part = if watch { step.watch.unwrap_or(1).max(1) } else { 1 };
    let ops = (step.ops.unwrap_or(setting.ops) / part).max(1);
    match setting.machine() {
        Some(machine) => on_a_fresh_stack(|| {
            let mut stage = Stage::simulated(machine, &cores, setting.seed, watch)?;
            on_stage(&mut stage, scenario, setting, step, ops)
        }),
        None => on_stage(&mut Stage::Native(cores), scenario, setting, step, ops),
    }
}

fn on_stage(
    stage: &mut Stage,
    scenario: &Scenario,
    setting: &Setting,
    step: &Step,
    ops: u64,
) -> Result<Reply, Broken> {
    // Where threads take from one queue, one of them may do several times its share.
    let room = (4 * ops + 256).min(MOST_SAMPLES) as usize;
    let make = || {
        let job: Box<dyn Job + Send> = (scenario.make)(setting, step)?;
        Ok::<_, String>((job, Box::new(Shared::new(step.threads, setting.seed, room))))
    };
    let (job, shared) = stage.once(make)?.map_err(Broken::Broken)?;
    // After a run that stopped, threads stand in the middle of something for ever; the process
    // ends after the step, whatever came of it.
    let (job, shared): (&dyn Job, &Shared) = (Box::leak(job), Box::leak(shared));
    let warm_up = Round { ops: (ops / WARM_UP).max(1), start: 0 };
    one_round(stage, job, shared, step.until, warm_up)?;
    let round = Round { ops, start: 0 };
    one_round(stage, job, shared, step.until, round)
        .map(|(measured, lines)| Reply { measured, lines })
}

type Ended = (Measured, Option<harness::simulated::LineReport>);

fn one_round(
    stage: &mut Stage,
    job: &dyn Job,
    shared: &Shared,
    until: Until,
    round: Round,
) -> Result<Ended, Broken> {
    let round = stage.once(|| {
        shared.reset();
        let round = Round { start: shared.clock.now() + LEAD, ..round };
        job.begin(&round);
        round
    })?;
    let mut then = Vec::new();
    let cost = stage.each(
        until,
        |thread| shared.turn(thread, &round, |turn| job.work(turn)),
        || {
            then = shared.done();
            if until == Until::First {
                shared.stop();
            }
        },
    )?;
    let (done, logs) = (shared.done(), shared.logs());
    let facts = stage.once(|| job.check(&done))?.map_err(Broken::Broken)?;
    let ops_in_all = done.iter().sum();
    let (ops, time_ns) = match until {
        Until::First => (then, cost.first_ns),
        Until::Last => {
            let ended = logs.iter().map(|log| log.ended).max().unwrap_or(0);
            (done, ended.saturating_sub(round.start) as f64)
        }
    };
    let mut facts = facts;
    facts.extend(idle_spread(&logs, &round, time_ns).map(|spread| ("idle_spread".into(), spread)));
    let apart = logs.iter().take_while(|log| log.apart).count();
    let idle = ops[apart..].iter().filter(|done| **done == 0).count();
    let arrived =
        logs.iter().flat_map(|log| log.arrivals.iter().copied().zip(log.latencies.iter().copied()));
    let measured = Measured {
        overlap: Some(overlap(&logs, until)),
        idle: if until == Until::First { idle } else { 0 },
        apart,
        queued_ns: cost.queued_ns,
        growth: Growth::of(arrived.collect()),
        ops,
        time_ns,
        cpu_ns: cost.cpu_ns,
        page_faults: cost.page_faults,
        ops_in_all,
        threads_ns: threads_ns(&logs, &round, until),
        waits: waits(&logs),
        latency: Quantiles::of(logs.into_iter().flat_map(|log| log.latencies).collect()),
        facts,
        counts: cost.counts,
    };
    Ok((measured, cost.lines))
}

/// The time of all threads, without that before work arrives.
fn threads_ns(logs: &[Log], round: &Round, until: Until) -> u64 {
    let start = if until == Until::Last { round.start } else { 0 };
    logs.iter().map(|log| log.ended.saturating_sub(log.began.max(start))).sum()
}

/// The part of the window in which all threads had begun and none had ended. Where there is a given
/// amount of work, some end early by nature.
fn overlap(logs: &[Log], until: Until) -> f64 {
    let began = logs.iter().map(|log| log.began);
    let ended = logs.iter().map(|log| log.ended);
    let end = if until == Until::First { ended.min() } else { ended.max() }.unwrap_or(0);
    let (first, last) = (began.clone().min().unwrap_or(0), began.max().unwrap_or(0));
    end.saturating_sub(last) as f64 / end.saturating_sub(first).max(1) as f64
}

/// The waits of all threads, by lock, the longest first.
fn waits(logs: &[Log]) -> Vec<Waited> {
    let mut all: Vec<Waited> = Vec::new();
    for wait in logs.iter().flat_map(|log| &log.waits) {
        let place = format!("{}:{}", wait.place.file(), wait.place.line());
        match all.iter_mut().find(|waited| waited.place == place) {
            Some(waited) => {
                (waited.ns, waited.times) = (waited.ns + wait.ns, waited.times + wait.times);
            }
            None => all.push(Waited {
                place,
                condition: wait.condition,
                ns: wait.ns,
                times: wait.times,
            }),
        }
    }
    all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.place.cmp(&b.place)));
    all
}

/// The standard deviation of the shares of time that workers had nothing to do, those included
/// that ended early; `None` without two workers.
fn idle_spread(logs: &[Log], round: &Round, time_ns: f64) -> Option<f64> {
    let idle = |log: &Log| {
        let early = round.start as f64 + time_ns - log.ended as f64;
        (early + log.idle_ns as f64) / time_ns
    };
    let shares: Vec<f64> = logs.iter().filter(|log| log.worker).map(idle).collect();
    if shares.len() < 2 || time_ns <= 0.0 {
        return None;
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let squares = shares.iter().map(|share| (share - mean) * (share - mean)).sum::<f64>();
    Some((squares / shares.len() as f64).sqrt())
}

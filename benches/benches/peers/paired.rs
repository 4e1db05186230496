//! Time on this host: windows of all candidates in turn, and a verdict against the fastest of the
//! others' by the rule of `manycore ab`.

use std::time::Duration;

use harness::native::{Conditions, Failure, Make, Native};
use harness::paired::windows::{Windows, measure as windows};
use harness::paired::{Settings, Trial, Verdict, interval};
use harness::placement::Placement;
use harness::stats::{Estimate, median};
use topology::Topology;

use crate::Priced;
use crate::flags::Flags;
use crate::jobs::{Job, Whose};
use crate::targets::{DUELS, Duel};

/// Rounds that choose who is compared with, and tell how far it is from itself.
const PILOT: usize = 12;

/// Looks at the ratios, and the part of the pairs that there are at each.
const LOOKS: [f64; 4] = [0.125, 0.25, 0.5, 1.0];

/// Part of a time by which another is called equal.
const MARGIN: f64 = 0.03;

const SEED: u64 = 1;

/// A job's times on this host.
pub(crate) struct Paired {
    /// The place of the fastest of the others'.
    pub(crate) reference: usize,
    /// Part by which it differs from itself.
    pub(crate) floor: f64,
    pub(crate) times: Vec<Result<Time, String>>,
}

/// One candidate's time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time {
    pub(crate) ns_per_op: f64,
    /// Against the reference, with the 95 % interval; none of the reference, baselines, controls.
    pub(crate) against: Option<(Estimate, Verdict)>,
}

/// One of ours against one of theirs, by itself.
pub(crate) struct Fought {
    pub(crate) duel: &'static Duel,
    pub(crate) outcome: Result<(Estimate, Verdict), String>,
}

/// How much is measured.
struct Effort {
    pairs: usize,
    window: Duration,
}

/// Measures each job that has threads here, and the duels.
pub(crate) fn measure(all: &mut [Priced], flags: &Flags) -> Result<Vec<Fought>, String> {
    let topology = Topology::this_host().map_err(|error| error.to_string())?;
    let mut native = Native::new(topology);
    let effort = match flags.quick {
        true => Effort { pairs: 16, window: Duration::from_millis(2) },
        false => Effort { pairs: 48, window: Duration::from_millis(5) },
    };
    let mut fought = Vec::new();
    for priced in all.iter_mut() {
        let Some(threads) = priced.job.threads else { continue };
        eprintln!("paired: {}", priced.job.id);
        let conditions = conditions(&native, &priced.job, threads);
        let outcome = conditions.as_ref().map_err(Clone::clone);
        let paired =
            outcome.and_then(|conditions| of_job(&mut native, &priced.job, conditions, &effort));
        priced.paired = Some(paired);
        for duel in DUELS.iter().filter(|duel| duel.job == priced.job.id) {
            let arms = [duel.theirs, duel.ours].map(|id| priced.job.candidate(id));
            let [Some(theirs), Some(ours)] = arms else { continue };
            let makes = [theirs.make, ours.make];
            let outcome = conditions.as_ref().map_err(Clone::clone);
            let outcome = outcome.and_then(|conditions| {
                let trial = trial(&mut native, conditions, &makes, &effort)?;
                verdict(&trial, 0)
            });
            fought.push(Fought { duel, outcome });
        }
    }
    Ok(fought)
}

fn conditions(native: &Native, job: &Job, threads: usize) -> Result<Conditions, String> {
    let topology = native.topology();
    let cpus = Placement::Compact.cpus(topology, threads).map_err(|reason| reason.to_string())?;
    let here = topology.parallelism().min(cpus.len());
    if threads > here {
        return Err(format!("{threads} threads need as many CPUs; here are {here}"));
    }
    native.conditions(&cpus, &job.workload, SEED).map_err(|reason| reason.to_string())
}

fn rounds(
    native: &mut Native,
    conditions: &Conditions,
    makes: &[Make],
    rounds: (usize, usize),
    window: Duration,
) -> Result<Windows, String> {
    let never = || false;
    windows(native, conditions, makes, rounds, window, never).map_err(
        |(_, failure)| match failure {
            Failure::Unavailable(reason) => reason.to_string(),
            Failure::Broken(reason) => format!("broken: {reason}"),
        },
    )
}

fn of_job(
    native: &mut Native,
    job: &Job,
    conditions: &Conditions,
    effort: &Effort,
) -> Result<Paired, String> {
    // What cannot run here is left out of the rounds, with its reason.
    let mut times: Vec<Result<Time, String>> = Vec::new();
    for one in &job.candidates {
        let alone = rounds(native, conditions, &[one.make], (0, 1), effort.window);
        times.push(alone.map(|_| Time { ns_per_op: f64::NAN, against: None }));
    }
    let able: Vec<usize> = (0..times.len()).filter(|&at| times[at].is_ok()).collect();
    let makes = |places: &[usize]| -> Vec<Make> {
        places.iter().map(|&at| job.candidates[at].make).collect()
    };
    let pilot = rounds(native, conditions, &makes(&able), (0, PILOT), effort.window)?;
    for (&at, measured) in able.iter().zip(&pilot.ns_per_op) {
        let ns_per_op = median(measured).unwrap_or(f64::NAN);
        times[at] = Ok(Time { ns_per_op, against: None });
    }
    let ns = |at: usize| times[at].as_ref().map_or(f64::NAN, |time| time.ns_per_op);
    let theirs = able.iter().copied().filter(|&at| job.candidates[at].whose == Whose::Theirs);
    let reference = theirs
        .filter(|&at| ns(at).is_finite())
        .min_by(|&one, &other| ns(one).total_cmp(&ns(other)))
        .ok_or("nothing of others' runs here")?;
    let judged = |at: usize| {
        at != reference && matches!(job.candidates[at].whose, Whose::Ours | Whose::Theirs)
    };
    let others: Vec<usize> = able.iter().copied().filter(|&at| judged(at)).collect();
    let mut arms = vec![reference];
    arms.extend(&others);
    let found = trial(native, conditions, &makes(&arms), effort)?;
    for (place, &at) in others.iter().enumerate() {
        let ns_per_op = found.ns[place + 1];
        times[at] = Ok(Time { ns_per_op, against: Some(verdict(&found, place)?) });
    }
    times[reference] = Ok(Time { ns_per_op: found.ns[0], against: None });
    Ok(Paired { reference, floor: found.floor, times })
}

/// A trial that has ended.
struct Ended {
    trial: Trial,
    floor: f64,
    /// Median times by arm.
    ns: Vec<f64>,
}

/// Compares all arms with the first.
fn trial(
    native: &mut Native,
    conditions: &Conditions,
    makes: &[Make],
    effort: &Effort,
) -> Result<Ended, String> {
    let floor = floor(native, conditions, makes[0], effort)?;
    let count = makes.len() - 1;
    let settings = Settings { margin: MARGIN, alpha: 0.05, looks: LOOKS.len() as u32, floor };
    let mut trial = Trial::new(count, settings);
    let mut times = vec![Vec::new(); makes.len()];
    let mut had = 0;
    for part in LOOKS {
        let upto = (effort.pairs as f64 * part).ceil() as usize;
        let open: Vec<usize> = (0..count).filter(|&arm| trial.open(arm)).collect();
        let at: Vec<usize> = std::iter::once(0).chain(open.iter().map(|arm| arm + 1)).collect();
        let arms: Vec<Make> = at.iter().map(|&at| makes[at]).collect();
        let measured = rounds(native, conditions, &arms, (had, upto - had), effort.window)?;
        for (place, &arm) in open.iter().enumerate() {
            let pairs = measured.ns_per_op[place + 1].iter().zip(&measured.ns_per_op[0]);
            trial.add(arm, 0, pairs.map(|(of, to)| of / to));
        }
        for (place, &arm) in at.iter().enumerate() {
            times[arm].extend(&measured.ns_per_op[place]);
        }
        had = upto;
        if trial.look() {
            break;
        }
    }
    let ns = times.iter().map(|times: &Vec<f64>| median(times).unwrap_or(f64::NAN)).collect();
    Ok(Ended { trial, floor, ns })
}

/// How far a candidate is from itself: the end of the interval that is farther from 1, as a part.
fn floor(
    native: &mut Native,
    conditions: &Conditions,
    make: Make,
    effort: &Effort,
) -> Result<f64, String> {
    let measured = rounds(native, conditions, &[make, make], (0, PILOT), effort.window)?;
    let pairs = measured.ns_per_op[1].iter().zip(&measured.ns_per_op[0]);
    let ratios: Vec<f64> = pairs.map(|(of, to)| (of / to).ln()).collect();
    let ln = interval(&[ratios], SEED).ok_or("no operation was completed in a window")?;
    Ok(ln.low.abs().max(ln.high.abs()).exp_m1())
}

fn verdict(ended: &Ended, arm: usize) -> Result<(Estimate, Verdict), String> {
    let estimate = ended.trial.estimate(arm, SEED).ok_or("no ratios")?;
    let verdict = ended.trial.finding(arm).verdict.unwrap_or(Verdict::Inconclusive);
    Ok((estimate, verdict))
}

//! Throughput of the same loops on machines that are not here.

use harness::simulated::{Border, Machine, Measured, band, metrics};

use crate::Priced;
use crate::flags::Flags;
use crate::processes::{SIMULATED, run};

/// The machines.
pub(crate) const MACHINES: [&str; 3] = ["epyc-7742-2s", "graviton3", "xeon-8375c-2s"];

/// Numbers of cores, as far as the machine has them.
const CORES: [usize; 4] = [2, 16, 64, 128];
const FEW_CORES: [usize; 2] = [2, 16];

/// What a target asks for besides: a job, a machine, numbers of cores.
const BESIDES: (&str, &str, [usize; 2]) = ("mpmc_1+1", "epyc-7742-2s", [4, 32]);

/// Operations of each thread.
fn ops(cores: usize) -> u64 {
    if cores > 32 { 64 } else { 256 }
}

/// One candidate on so many cores of a machine.
pub(crate) struct Point {
    pub(crate) candidate: usize,
    pub(crate) machine: &'static str,
    pub(crate) cores: usize,
    pub(crate) figures: Result<Figures, String>,
}

/// What it came to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) mops_per_s: f64,
    pub(crate) ns_per_op: f64,
    pub(crate) fairness: f64,
    /// The factor by which the time may be off.
    pub(crate) band: f64,
}

/// Gives the numbers of cores of a job on a machine.
fn cores(job: &str, machine: &str, quick: bool) -> Result<Vec<usize>, String> {
    if quick {
        return Ok(FEW_CORES.to_vec());
    }
    let most = Machine::named(machine).map_err(|error| error.to_string())?.cores();
    let besides = if BESIDES.0 == job && BESIDES.1 == machine { &BESIDES.2[..] } else { &[] };
    let mut cores: Vec<usize> = CORES.iter().chain(besides).copied().collect();
    cores.retain(|&cores| cores <= most);
    cores.sort_unstable();
    Ok(cores)
}

/// Simulates each job that says something on many cores.
pub(crate) fn simulate(all: &mut [Priced], flags: &Flags) -> Result<(), String> {
    let machines = if flags.quick { &MACHINES[..1] } else { &MACHINES[..] };
    let mut points = Vec::new();
    for (at, priced) in all.iter().enumerate().filter(|(_, priced)| priced.job.simulated) {
        for &machine in machines {
            let cores = cores(priced.job.id, machine, flags.quick)?;
            for (candidate, one) in priced.candidates() {
                for &cores in &cores {
                    let (ops, count) = (ops(cores).to_string(), cores.to_string());
                    let words = [SIMULATED, priced.job.id, one.id, machine, &count, &ops];
                    points.push(((at, candidate, machine, cores), words.map(str::to_owned)));
                }
            }
        }
    }
    let words = points.iter().map(|(_, words)| words.to_vec()).collect();
    let results = run::<Measured>("simulated", words)?;
    for (((at, candidate, machine, cores), _), measured) in points.into_iter().zip(results) {
        let figures = measured
            .and_then(|measured| figures(&measured, all[at].job.primitive(), machine, cores));
        all[at].simulated.push(Point { candidate, machine, cores, figures });
    }
    Ok(())
}

fn figures(
    measured: &Measured,
    primitive: &str,
    machine: &str,
    cores: usize,
) -> Result<Figures, String> {
    let machine = Machine::named(machine).map_err(|error| error.to_string())?;
    let cpus: Vec<u32> = (0..cores as u32).collect();
    let band = band(machine.name(), primitive, Border::of(&machine, &cpus));
    let metrics = metrics(measured, &machine, band);
    let value = |name: &str| {
        let metric = metrics.get(name).and_then(harness::records::Metric::value);
        metric.ok_or_else(|| format!("no {name}"))
    };
    Ok(Figures {
        mops_per_s: value("ops_per_s")? / 1e6,
        ns_per_op: value("ns_per_op")?,
        fairness: value("fairness_jain")?,
        band,
    })
}

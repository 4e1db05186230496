//! Time of the same loops on machines that are not here.

use harness::simulated::{Border, Machine, Measured, band, metrics};

use crate::Priced;
use crate::flags::Flags;
use crate::jobs::Job;
use crate::processes::{SIMULATED, run};

/// The machines.
pub(crate) const MACHINES: [&str; 3] = ["epyc-7742-2s", "graviton3", "xeon-8375c-2s"];

/// Numbers of cores, as far as the machine has them.
pub(crate) const CORES: [usize; 6] = [1, 2, 8, 32, 64, 128];
const FEW_CORES: [usize; 2] = [2, 32];

/// What a target asks for besides: a job and a number of cores.
const BESIDES: (&str, usize) = ("mpmc_1+1", 4);

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
    /// One thread's time for an operation.
    pub(crate) ns_per_op: f64,
    pub(crate) fairness: f64,
    /// The factor by which the time may be off.
    pub(crate) band: f64,
}

/// Gives the numbers of cores of a job on a machine.
fn cores(job: &Job, machine: &str, quick: bool) -> Result<Vec<usize>, String> {
    let machine = Machine::named(machine).map_err(|error| error.to_string())?;
    let mut cores = if quick { FEW_CORES.to_vec() } else { CORES.to_vec() };
    if job.id == BESIDES.0 {
        cores.push(BESIDES.1);
    }
    cores.retain(|&cores| cores <= machine.cores().min(job.most_cores));
    cores.sort_unstable();
    Ok(cores)
}

/// Simulates each job that says something on many cores.
pub(crate) fn simulate(all: &mut [Priced], flags: &Flags) -> Result<(), String> {
    let machines = if flags.quick { &MACHINES[..1] } else { &MACHINES[..] };
    let mut points = Vec::new();
    for (at, priced) in all.iter().enumerate() {
        for &machine in machines {
            let cores = cores(&priced.job, machine, flags.quick)?;
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
        let figures =
            measured.and_then(|measured| figures(&measured, all[at].job.of, machine, cores));
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
    Ok(Figures { ns_per_op: value("ns_per_op")?, fairness: value("fairness_jain")?, band })
}

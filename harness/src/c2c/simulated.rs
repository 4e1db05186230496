//! The matrix of a simulated machine.

use simulator::machine::Machine;
use simulator::{Error, Simulation};
use topology::Pu;

use super::shapes::Lines;
use super::{Cell, Home, Settings};
use crate::stats::Estimate;

/// Round trips: what is simulated repeats, and needs few.
const TRIPS: u64 = 50;

/// Simulates pairs of cores one after the other, with all other cores idle. `each` is told of every
/// pair and ends the simulation with `true`.
///
/// # Errors
/// When the simulator cannot run here.
pub fn simulate(
    machine: &Machine,
    pairs: &[(Pu, Pu)],
    settings: &Settings,
    mut each: impl FnMut(&Cell) -> bool,
) -> Result<Vec<Cell>, Error> {
    let mut cells = Vec::new();
    for &(one, other) in pairs {
        let ns = pair(machine, [one.cpu, other.cpu], settings)?;
        let cell = Cell { one, other, ns: Estimate { value: ns, low: ns, high: ns } };
        cells.push(cell);
        if each(&cell) {
            break;
        }
    }
    Ok(cells)
}

fn pair(machine: &Machine, cpus: [u32; 2], settings: &Settings) -> Result<f64, Error> {
    let simulation = Simulation::on(machine).threads(2).cores(&cpus).seed(settings.seed);
    let mut session = simulation.start()?;
    let home = match settings.home {
        Home::First => 0,
        Home::Second => 1,
    };
    let made = session.each(|rank| (rank == home).then(|| Box::new(Lines::default())))?;
    let Some(lines) = made.results.into_iter().flatten().next() else { return Ok(f64::NAN) };
    let mut done = 0;
    let mut round = |trips: u64| {
        let range = done..done + trips;
        done += trips;
        session.each(|rank| lines.bounce(settings.shape, rank as u64, range.clone()))
    };
    round(TRIPS)?;
    // Beginning and ending cost the same: the difference is what the trips cost.
    let short = round(TRIPS)?.total.time_ns();
    let long = round(2 * TRIPS)?.total.time_ns();
    Ok((long - short) / (2 * TRIPS) as f64)
}

//! The matrix of this host.

use std::sync::Arc;

use topology::{Pu, Topology};

use super::shapes::Lines;
use super::{Cell, Home, Settings, TRIPS};
use crate::clock::Clock;
use crate::memory::{Policy, Shared};
use crate::stats::median_with_interval;
use crate::team::{Team, TeamError};
use crate::unavailable::Unavailable;

/// Measures pairs of CPUs one after the other. `each` is told of every pair and ends the measurement
/// with `true`.
///
/// # Errors
/// When a CPU cannot be used, or no memory is to be had.
pub fn measure(
    host: &Topology,
    pairs: &[(Pu, Pu)],
    settings: &Settings,
    mut each: impl FnMut(&Cell) -> bool,
) -> Result<Vec<Cell>, Unavailable> {
    let clock = Clock::calibrated(&host.cpuid);
    let mut team = Team::new();
    let mut cells = Vec::new();
    for &(one, other) in pairs {
        let mut values = Vec::new();
        for _ in 0..settings.repeat {
            values.push(repetition(&mut team, &clock, [one.cpu, other.cpu], settings)?);
        }
        let Some(ns) = median_with_interval(&values, settings.seed) else { continue };
        let cell = Cell { one, other, ns };
        cells.push(cell);
        if each(&cell) {
            break;
        }
    }
    Ok(cells)
}

fn repetition(
    team: &mut Team,
    clock: &Clock,
    cpus: [u32; 2],
    settings: &Settings,
) -> Result<f64, Unavailable> {
    let refused = |error: TeamError| Unavailable::because("not_pinned", error.to_string());
    let home = match settings.home {
        Home::First => cpus[0],
        Home::Second => cpus[1],
    };
    // Pages lie on the node of the CPU that touches them first.
    let place = || Shared::place(Lines::default(), &Policy::FirstTouch);
    let placed = team.run(&[home], vec![place]).map_err(refused)?;
    let lines = placed.into_iter().next();
    let lines = lines.ok_or_else(|| Unavailable::new("no_thread"))??;
    let lines = Arc::new(lines);
    let shape = settings.shape;
    let jobs = (0..2).map(|rank| {
        let (lines, clock) = (lines.clone(), clock.clone());
        move || {
            let warm = TRIPS / 10;
            lines.bounce(shape, rank, 0..warm);
            let began = clock.now(); // both are there by now
            lines.bounce(shape, rank, warm..warm + TRIPS);
            clock.ns((clock.now() - began) as f64) / (2 * TRIPS) as f64
        }
    });
    let both = team.run(&cpus, jobs.collect()).map_err(refused)?;
    Ok(both.into_iter().fold(0.0, f64::max))
}

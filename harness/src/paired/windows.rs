//! Measures windows of several experiments in turn.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::native::{Conditions, Failure, Make, Native};

/// What was measured, by experiment and in the order of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Windows {
    /// Nanoseconds of one thread for an operation.
    pub ns_per_op: Vec<Vec<f64>>,
    /// Windows in which something disturbed the threads at every attempt.
    pub disturbed: u64,
}

/// How often a window is measured that something disturbs. What is measured again does not depend
/// on its time, so that nothing is favoured.
const ATTEMPTS: u32 = 5;

/// Measures `rounds` rounds, in each of which every experiment gets one window. A round begins with
/// another experiment than the one before, and every second one goes backwards, so that none always
/// follows the same one. `first` counts the rounds before, and `each` is told of every window and
/// ends the measurement with `true`.
///
/// # Errors
/// When an experiment cannot be made or run here, or is broken; its position is given.
pub fn measure(
    native: &mut Native,
    conditions: &Conditions,
    experiments: &[Make],
    (first, rounds): (usize, usize),
    window: Duration,
    mut each: impl FnMut() -> bool,
) -> Result<Windows, (usize, Failure)> {
    let count = experiments.len();
    let mut windows = Windows { ns_per_op: vec![Vec::new(); count], disturbed: 0 };
    for round in first..first + rounds {
        let mut times = vec![f64::NAN; count];
        for at in order(round, count) {
            if each() {
                return Ok(windows);
            }
            for attempt in 1..=ATTEMPTS {
                let measured = native.repetition(conditions, experiments[at], window);
                let measured = measured.map_err(|failure| (at, failure))?;
                times[at] = native.ns_per_op(&measured);
                let disturbed = native.disturbed(&measured);
                windows.disturbed += u64::from(disturbed && attempt == ATTEMPTS);
                if !disturbed {
                    break;
                }
            }
        }
        // A window without an operation has no time, and its round no ratios.
        if times.iter().all(|time| time.is_finite()) {
            windows.ns_per_op.iter_mut().zip(times).for_each(|(all, time)| all.push(time));
        }
    }
    Ok(windows)
}

/// The order of a round.
fn order(round: usize, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).map(|turn| (round / 2 + turn) % count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over 2 × count rounds everybody has every place equally often, and goes before every other
    /// as often as after it.
    #[test]
    fn orders_are_balanced() {
        for count in 1..6 {
            let rounds: Vec<Vec<usize>> = (0..2 * count).map(|round| order(round, count)).collect();
            for at in 0..count {
                for place in 0..count {
                    assert_eq!(rounds.iter().filter(|order| order[place] == at).count(), 2);
                }
                for other in (0..count).filter(|&other| other != at) {
                    let place = |order: &Vec<usize>, who| order.iter().position(|&x| x == who);
                    let before = rounds.iter().filter(|o| place(o, at) < place(o, other)).count();
                    assert_eq!(before, count, "{at} before {other} of {count}");
                }
            }
        }
        assert_eq!([order(0, 2), order(1, 2), order(2, 2)], [[0, 1], [1, 0], [1, 0]]);
    }
}

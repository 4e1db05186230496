//! Two threads that hand a line to each other, near and far.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use harness::placement::Placement;
use harness::simulated::Distance;

use super::effect::ratio;
use super::job::{Facts, Job, Round};
use super::measured::Measured;
use super::reasons::{figure, reason};
use super::scenario::{Scenario, Setting, Step};
use super::text::time;
use super::turn::Turn;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "l3-domain",
    title: "two threads that share data under one L3, under two, in two sockets",
    what: "Two threads take turns with one line: each waits until the other has written. Cores under \
           one L3 find each other's lines there; between two L3 groups a line goes through the \
           socket's interconnect, and between sockets over the link. Which two cores the threads are \
           on decides how often they can take turns, and nothing in the program shows it.",
    reported: "38 ns in one L3 domain, 120 ns across two; L3 hit rates 89.7 % and 68.2 %",
    threads: 2,
    ops: 2048,
    native_ops: 200_000,
    parameters: &[],
    steps: |setting| {
        if setting.threads != 2 {
            return Err("two threads take turns; leave --threads out".into());
        }
        let step = |id: &str, title: &str, placement| Step::new(id, title, 2).placed(placement);
        Ok(vec![
            step("cross_socket", "in two sockets", Placement::CrossNode).watched(4),
            step("cross_l3", "under two L3s of one socket", Placement::CrossL3),
            step("same_l3", "under one L3", Placement::SameL3),
        ])
    },
    make: |setting, step| {
        Ok(Box::new(Turns { whose: CachePadded::default(), machine_ns: machine_ns(setting, step) }))
    },
    effects: |done| {
        let far = |what, far, reported| {
            let ways = [far, "same_l3"].map(|id| figure(done, id, |of| of.fact(ONE_WAY)));
            let told = ways.map(time);
            let near = (
                ways[0] > 0.0 && ways[0] < 1.5 * ways[1],
                format!("the machine file has {} one way, and {} in one L3", told[0], told[1]),
            );
            let effect = ratio(what, done, Measured::ns_per_op, (far, "same_l3"));
            let effect = effect.shown_by(1.5, reason(done, &[far, "same_l3"], [near]));
            if reported > 0.0 { effect.reported(reported) } else { effect }
        };
        vec![
            far("time of a turn, across L3 domains over in one", "cross_l3", 120.0 / 38.0),
            far("time of a turn, across sockets over in one L3 domain", "cross_socket", 0.0),
        ]
    },
};

/// The fact with what the machine file says.
const ONE_WAY: &str = "one_way_by_the_machine_file_ns";

/// What the machine file says of the way between the two cores, in nanoseconds.
fn machine_ns(setting: &Setting, step: &Step) -> Option<f64> {
    let (machine, order) = (setting.machine()?, setting.order(&step.placement).ok()?);
    let distance: Distance = machine.distance(*order.first()?, *order.get(1)?);
    Some(machine.transfer_ps(distance) as f64 / 1e3)
}

struct Turns {
    whose: CachePadded<AtomicU64>,
    machine_ns: Option<f64>,
}

impl Job for Turns {
    fn begin(&self, _round: &Round) {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        self.whose.store(0, Ordering::Relaxed);
    }

    fn work(&self, turn: &mut Turn<'_>) {
        let me = turn.thread as u64;
        let turns = 2 * turn.round.ops;
        let mut next = me;
        while next < turns {
            let began = turn.random.next_u64().is_multiple_of(16).then(|| turn.clock.now());
            // ORDERING: Acquire and Release - what one wrote before its turn ended the other finds in its own.
            while self.whose.load(Ordering::Acquire) != next {
                spin_loop();
            }
            self.whose.store(next + 1, Ordering::Release);
            next += 2;
            if let Some(began) = began {
                turn.took(turn.clock.now() - began);
            }
            turn.did(1);
        }
    }

    fn check(&self, done: &[u64]) -> Result<Facts, String> {
        // ORDERING: Relaxed - before or after the round, when nobody else is at it.
        let turns = self.whose.load(Ordering::Relaxed);
        if turns != done.iter().sum::<u64>() {
            return Err(format!("{turns} turns, and threads say {done:?}"));
        }
        Ok(self.machine_ns.map(|ns| (ONE_WAY.into(), ns)).into_iter().collect())
    }
}

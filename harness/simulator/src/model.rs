//! The figures of a machine that decide what it costs to get a line.

use crate::machine::{Atomics, Distance, HomeVisits, Machine};
use crate::time::Time;

/// Whose turn it is at a line, and for how long it is taken.
#[derive(Debug)]
pub(crate) struct Model {
    transfer: [Time; 5],
    /// Share of a transfer for which a write occupies the line while others wait behind it, in
    /// 1/1024: the line's home already knows where it goes next.
    queued: Time,
    /// For how many operations more a core keeps a line that it got to write, in 1/1024.
    kept: Time,
    /// How long it keeps the line for one of them: for itself, and a little for what is around it.
    one: Time,
    /// How often in a row a near request may pass over an older one.
    pub(crate) near_grants: u32,
    /// How long the first read of an L3 group occupies the line.
    pub(crate) read_group: Time,
    /// A hit in the L3 of one's group.
    pub(crate) group_hit: Time,
    /// What each core costs that has to give a line up.
    pub(crate) invalidate: Time,
    /// How long the line's home is busy with a request, where atomics are done there.
    pub(crate) far_atomic: Option<Time>,
    /// Whether a transfer between groups visits the line's home.
    home_always: bool,
    /// Of a time, in 1/1024: how much the jitter may add or take.
    jitter: Time,
}

impl Model {
    pub(crate) fn of(machine: &Machine) -> Self {
        let share = |of_one: f64| (of_one * 1024.0).round() as Time;
        let transfer = Distance::ALL.map(|distance| match distance {
            Distance::Same => 0,
            distance => machine.transfer_ps(distance),
        });
        let queued = share(machine.rmw_queue_ratio());
        let shortest = transfer.into_iter().filter(|&time| time > 0).min().unwrap_or(0);
        let one = 3 * machine.rmw_owned_ps() / 2;
        Self {
            transfer,
            queued,
            // Nobody waits longer than the shortest transfer takes.
            kept: (machine.hold_ps() * 1024 / machine.rmw_owned_ps().max(1))
                .min(shortest * 1024 / one.max(1)),
            one,
            near_grants: machine.near_grants() as u32,
            read_group: machine.read_group_ps(),
            group_hit: machine.l3().hit_ps,
            invalidate: machine.invalidate_ps(),
            far_atomic: (machine.atomics() == Atomics::Far).then(|| machine.far_atomic_ps()),
            home_always: machine.home_visits() == HomeVisits::Always,
            jitter: share(machine.jitter_percent() / 100.0),
        }
    }

    /// The time of a transfer over a distance, of a line whose home is on the reader's socket or
    /// is not.
    pub(crate) fn transfer(&self, distance: Distance, home_is_near: bool) -> Time {
        let distance = match distance {
            Distance::SameSocket if self.home_always && !home_is_near => Distance::CrossSocket,
            distance => distance,
        };
        self.transfer[distance as usize]
    }

    /// How long a core keeps a line that it got to write, before it answers others.
    pub(crate) fn keeps(&self, random: u64) -> Time {
        (self.kept + (random >> 54)) / 1024 * self.one
    }

    /// A transfer to a core that will write. Measured ones, of two cores that take turns, have in
    /// them how long the line was kept.
    pub(crate) fn transfer_to_write(&self, distance: Distance, home_is_near: bool) -> Time {
        self.transfer(distance, home_is_near).saturating_sub(self.kept * self.one / 1024)
    }

    /// The time for which a transfer occupies a line when others wait for it.
    pub(crate) fn queued(&self, transfer: Time) -> Time {
        transfer * self.queued / 1024
    }

    /// A time as it is this time: regular times would let cores resonate.
    pub(crate) fn jittered(&self, time: Time, random: u64) -> Time {
        let share = ((random & 0xffff_ffff) * (2 * self.jitter + 1)) >> 32;
        time - time * self.jitter / 1024 + time * share / 1024
    }
}

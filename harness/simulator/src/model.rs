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
    /// The time in which half of the requests reach a core that got a line to write.
    half: Time,
    /// How long it keeps the line, on average.
    kept: Time,
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

/// The time after which half of the requests have come to an owner that does nothing but
/// read-modify-writes, if it does as many more until then as fit into `line.hold_ns`.
///
/// A share of 2^(-n·one/half) of the waits is as long as n operations, each with the two other
/// instructions of its loop; the sum over all n is how many there are.
fn half_time(machine: &Machine) -> Time {
    let more = machine.hold_ps() as f64 / machine.rmw_owned_ps() as f64;
    let one = (machine.rmw_owned_ps() + machine.instructions_ps(3)) as f64;
    if more > 0.0 { (one / (1.0 + 1.0 / more).log2()).round() as Time } else { 0 }
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
        // Nobody waits longer than the shortest transfer takes, on average.
        let half = half_time(machine).min(2 * shortest / 3);
        Self {
            transfer,
            queued,
            half,
            kept: 3 * half / 2,
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

    /// How long a core keeps a line that it got to write: until a request of another reaches it,
    /// which may be at any moment, whatever the core does until then.
    pub(crate) fn keeps(&self, random: u64) -> Time {
        // Halves once for each zero in front; between, any moment is as likely.
        let halves = random.leading_zeros().min(16);
        let between = random << (halves + 1) >> 54;
        self.half * Time::from(halves) + ((self.half * between) >> 10)
    }

    /// A transfer to a core that will write. Measured ones, of two cores that take turns, have in
    /// them how long the line was kept.
    pub(crate) fn transfer_to_write(&self, distance: Distance, home_is_near: bool) -> Time {
        self.transfer(distance, home_is_near).saturating_sub(self.kept)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::mix;

    #[test]
    fn an_owner_does_as_many_operations_more_as_were_measured() {
        for name in Machine::names() {
            let machine = Machine::named(name).unwrap();
            let model = Model::of(&machine);
            let one = machine.rmw_owned_ps() + machine.instructions_ps(3);
            let (mut random, mut more, mut kept) = (1, 0, 0);
            for _ in 0..20_000 {
                random = mix(random);
                let keeps = model.keeps(random);
                (more, kept) = (more + keeps / one, kept + keeps);
            }
            let (more, kept) = (more as f64 / 20_000.0, kept / 20_000);
            let measured = machine.hold_ps() as f64 / machine.rmw_owned_ps() as f64;
            println!("{name}: {more:.3} more operations of {measured:.3}, {kept} ps");
            assert!(kept.abs_diff(model.kept) * 20 <= model.kept, "{name}");
            // Transfers between hardware threads must stay what they are.
            let shortest = model.transfer.into_iter().filter(|&time| time > 0).min().unwrap();
            let bounded = model.half == 2 * shortest / 3;
            assert!(more < 1.1 * measured && (bounded || more > 0.9 * measured), "{name}");
        }
    }
}

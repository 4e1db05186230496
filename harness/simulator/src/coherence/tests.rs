//! The directory against a naive model, which keeps for each line what each core has of it.

use std::collections::BTreeMap;

use super::*;

/// What a core has of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    ToRead,
    ToWrite,
}

/// A line as everybody learns it: one writer, or readers.
#[derive(Debug, Default)]
struct Naive {
    cores: BTreeMap<u32, Has>,
    at_home: bool,
}

impl Naive {
    /// Whether another core must be asked, or memory.
    fn misses(&self, cpu: u32, touch: Touch) -> bool {
        match self.cores.get(&cpu) {
            None => true,
            Some(Has::ToRead) => touch.writes(),
            Some(Has::ToWrite) => false,
        }
    }

    fn others(&self, cpu: u32) -> Vec<u32> {
        self.cores.keys().copied().filter(|&other| other != cpu).collect()
    }
}

/// Splits random bits off.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = mix(self.0);
        self.0 % bound
    }
}

const TOUCHES: [Touch; 5] =
    [Touch::Load, Touch::Store, Touch::Update, Touch::Locked, Touch::Arithmetic];

/// Does the same to both, and compares them after each step.
fn compare(machine: &Machine, seed: u64, steps: usize) {
    let mut random = Random(seed);
    let all: Vec<u32> = (0..machine.cores() as u32).collect();
    let cpus: Vec<u32> = (0..24).map(|_| all[random.below(all.len() as u64) as usize]).collect();
    let mut coherence = Coherence::new(machine, &all, seed);
    let mut lines: BTreeMap<u64, Naive> = BTreeMap::new();
    let mut now = 0;
    for _ in 0..steps {
        now += random.below(50_000);
        let cpu = cpus[random.below(cpus.len() as u64) as usize];
        let address = 64 * random.below(5);
        let touch = TOUCHES[random.below(5) as usize];
        let id = coherence.line(address);
        let naive = lines.entry(address).or_default();
        let hit = coherence.hit(id, cpu, touch.writes());
        assert_eq!(hit.is_none(), naive.misses(cpu, touch), "{cpu} {touch:?} {naive:?}");
        if hit.is_some() {
            assert_eq!(hit == Some(true), naive.cores.get(&cpu) == Some(&Has::ToWrite));
            continue;
        }
        let mut others = Vec::new();
        coherence.others(id, cpu, |other| others.push(other));
        assert_eq!(others, naive.others(cpu));
        let in_memory = naive.cores.is_empty() && !naive.at_home;
        assert_eq!(coherence.is_in_memory(id), in_memory);
        let backlog = random.below(3) == 0;
        let at = if backlog { now.max(coherence.free_at(id)) } else { now };
        let asks = Asks { cpu, touch, at, queued: backlog, backlog, memory: 100_000 };
        let free = coherence.free_at(id);
        let access = coherence.get(id, &asks);
        assert!(access.done >= at && coherence.free_at(id) >= free);

        // Every transfer has a cause.
        let farthest = others.iter().map(|&other| machine.distance(cpu, other)).max();
        let nearest = others.iter().map(|&other| machine.distance(cpu, other)).min();
        let had = naive.cores.contains_key(&cpu);
        let owner = naive.cores.iter().find(|(_, has)| **has == Has::ToWrite).map(|(cpu, _)| *cpu);
        if touch.writes() && access.source == Source::Home && !access.may_write {
            assert!(touch == Touch::Arithmetic && coherence.model.far_atomic.is_some());
            *naive = Naive { cores: BTreeMap::new(), at_home: true };
            continue;
        }
        let expected = match (touch.writes(), farthest) {
            (true, Some(distance)) if had => Source::Upgrade(distance),
            (true, Some(distance)) => Source::Core(distance),
            (true, None) if had => Source::Own,
            (false, Some(_)) => Source::Core(nearest.unwrap()),
            (_, None) if naive.at_home => Source::Home,
            (_, None) => Source::Memory,
        };
        assert_eq!(access.source, expected);
        if touch.writes() {
            assert!(access.may_write && access.demoted.is_none());
            naive.cores = BTreeMap::from([(cpu, Has::ToWrite)]);
        } else {
            assert_eq!(access.demoted, owner);
            assert_eq!(access.may_write, in_memory);
            naive.cores.values_mut().for_each(|has| *has = Has::ToRead);
            naive.cores.insert(cpu, if in_memory { Has::ToWrite } else { Has::ToRead });
        }
        naive.at_home = false;
        let writers = naive.cores.values().filter(|has| **has == Has::ToWrite).count();
        assert!(writers == 0 || naive.cores.len() == 1, "one writer or many readers");
    }
}

#[test]
fn one_writer_or_many_readers_and_every_transfer_has_a_cause() {
    for name in Machine::names() {
        let machine = Machine::named(name).unwrap();
        for seed in 0..20 {
            compare(&machine, seed, 2_000);
        }
    }
}

#[test]
fn a_write_with_others_behind_it_takes_a_share_and_a_read_the_whole_way() {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let mut coherence = Coherence::new(&machine, &[0, 1, 64], 0);
    let id = coherence.line(0);
    let mut get = |cpu, touch, at, backlog| {
        let asks = Asks { cpu, touch, at, queued: backlog, backlog, memory: 0 };
        coherence.get(id, &asks).done - at
    };
    get(0, Touch::Store, 0, false);
    let near = |one: u64, other: u64| one.abs_diff(other) * 10 <= other;
    let far = machine.transfer_ps(Distance::CrossSocket);
    assert!(near(get(64, Touch::Locked, 1 << 30, false), far));
    let queued = (far as f64 * machine.rmw_queue_ratio()) as u64;
    assert!(near(get(0, Touch::Locked, 2 << 30, true), queued));
    assert!(near(get(64, Touch::Load, 3 << 30, true), far));
}

#[test]
fn the_second_reader_of_a_group_hits_there() {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let mut coherence = Coherence::new(&machine, &[0, 64, 65], 0);
    let id = coherence.line(0);
    let mut read = |cpu, touch, at| {
        let asks = Asks { cpu, touch, at, queued: false, backlog: false, memory: 0 };
        coherence.get(id, &asks).done - at
    };
    read(0, Touch::Store, 0);
    let first = read(64, Touch::Load, 1 << 30);
    let second = read(65, Touch::Load, 2 << 30);
    assert!(second * 10 < first, "{second} {first}");
}

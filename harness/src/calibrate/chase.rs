//! Caches and memory, by a chase: each load needs the last one's result.

use std::fs;
use std::hint::black_box;

use simulator::machine::{Confidence, FigureValue};
use topology::{Cache, CacheKind, Topology};

use super::{Bench, CalibrateError, Found, Sample, is_virtual};
use crate::clock::Clock;
use crate::memory::{Policy, Region};
use crate::stats::SplitMix;
use crate::team::TeamError;
use crate::unavailable::Unavailable;

/// Bytes of a step of the chase: no two steps on one line, nor on a pair.
const STEP: usize = 128;
/// Loads of a repetition.
const LOADS: usize = 1 << 18;
/// Bytes of the number of the next step's first word.
const WORD: usize = 8;

pub(super) fn measure(
    bench: &mut Bench,
    host: &Topology,
    cpu: u32,
    found: &mut Found,
) -> Result<(), CalibrateError> {
    caches_of_sysfs(host, cpu, found);
    let size = |level: u32| Some(data_cache(host, cpu, level)?.size_bytes? as usize);
    let (second, third) = (size(2), size(3));
    for (field, level, least) in
        [("cache.l2_hit_ns", second, size(1)), ("cache.l3_hit_ns", third, second)]
    {
        let Some(level) = level else {
            found.missing(&[field], "the kernel names no such cache");
            continue;
        };
        // Half of the level, or little enough that the one below does not matter.
        let bytes = (level / 2).min(least.unwrap_or(level / 8) * 8);
        let sample = bench.chase(cpu, bytes, region(bytes)?)?;
        let how = format!("pointer chase through {} KiB", bytes >> 10);
        found.sample(field, &sample, &how);
    }
    memory(bench, host, cpu, third.unwrap_or(0), found)
}

fn memory(
    bench: &mut Bench,
    host: &Topology,
    cpu: u32,
    third: usize,
    found: &mut Found,
) -> Result<(), CalibrateError> {
    let bytes = bench.effort.memory_bytes().min(available_bytes() / 8).max(16 << 20);
    let local = bench.chase(cpu, bytes, region(bytes)?)?;
    let how = format!("pointer chase through {} MiB", bytes >> 20);
    if bytes >= 4 * third {
        found.sample("memory.local_ns", &local, &how);
    } else {
        let how = format!(
            "{how}; {local}; the L3 of {} MiB holds much of them, so that memory is farther",
            third >> 20
        );
        found.derived("memory.local_ns", local.median(), &how);
    }
    let own = host.pu(cpu).and_then(|place| place.package);
    let remote = host.pus().into_iter().find(|place| place.package != own).and_then(|p| p.node);
    let Some(node) = remote else {
        found.missing(&["memory.remote_ns"], "there is one socket");
        return Ok(());
    };
    match Region::map(bytes, &Policy::Node(node)) {
        Ok(mut region) => {
            link(&mut region.bytes_mut()[..bytes]);
            let sample = bench.chase(cpu, bytes, region)?;
            found.sample("memory.remote_ns", &sample, &format!("{how} of node {node}"));
        }
        Err(reason) => found.missing(&["memory.remote_ns"], &reason.to_string()),
    }
    Ok(())
}

impl Bench {
    /// Repeats a chase through the linked part of a region.
    pub(super) fn chase(
        &mut self,
        cpu: u32,
        bytes: usize,
        region: Region,
    ) -> Result<Sample, TeamError> {
        self.on(cpu, move |clock| timed(clock, &region.bytes()[..bytes], LOADS))
    }
}

/// A ring of steps through `bytes` bytes, of huge pages where granted.
///
/// # Errors
/// When no memory can be mapped.
pub(super) fn region(bytes: usize) -> Result<Region, Unavailable> {
    let mut region = Region::map(bytes, &Policy::FirstTouch)?;
    link(&mut region.bytes_mut()[..bytes]);
    Ok(region)
}

/// Makes the steps of the memory one ring, in an order drawn at random (Sattolo's algorithm).
fn link(memory: &mut [u8]) {
    let mut order: Vec<usize> = (0..memory.len() / STEP).collect();
    let mut random = SplitMix(1);
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last));
    }
    for (at, next) in order.into_iter().enumerate() {
        let word = ((next * STEP / WORD) as u64).to_ne_bytes();
        memory[at * STEP..at * STEP + WORD].copy_from_slice(&word);
    }
}

/// The nanoseconds of a load: follows the ring, twice round to warm up what fits into a cache, then
/// timed.
fn timed(clock: &Clock, memory: &[u8], loads: usize) -> f64 {
    let mut at = follow(memory, 0, loads.min(2 * memory.len() / STEP));
    let began = clock.now();
    at = follow(memory, at, loads);
    let ticks = clock.now() - began;
    black_box(at);
    clock.ns(ticks as f64) / loads as f64
}

fn follow(memory: &[u8], mut at: usize, loads: usize) -> usize {
    let (words, _) = memory.as_chunks::<WORD>();
    for _ in 0..loads {
        at = u64::from_ne_bytes(words[at]) as usize;
    }
    at
}

fn data_cache(host: &Topology, cpu: u32, level: u32) -> Option<&Cache> {
    host.caches.iter().find(|cache| {
        cache.level == level && cache.kind != CacheKind::Instruction && cache.cpus.contains(cpu)
    })
}

/// Enters sizes and ways as the kernel has them.
fn caches_of_sysfs(host: &Topology, cpu: u32, found: &mut Found) {
    let fields = [
        (1, "cache.l1_kib", "cache.l1_ways"),
        (2, "cache.l2_kib", "cache.l2_ways"),
        (3, "cache.l3_kib", "cache.l3_ways"),
    ];
    for (level, size, ways) in fields {
        let kib = data_cache(host, cpu, level).and_then(|cache| cache.size_bytes);
        let kib = kib.map(|bytes| bytes as usize / 1024);
        let (Some(kib), Ok(count)) = (kib, ways_of(cpu, level)) else {
            found.missing(&[size, ways], "the kernel does not tell size and ways of the cache");
            continue;
        };
        let line = host.line_bytes().unwrap_or(64) as usize;
        if count == 0 || count > 256 || kib == 0 || !(kib * 1024).is_multiple_of(count * line) {
            found.missing(&[size, ways], "the kernel's size is no whole number of sets");
            continue;
        }
        let (how, trust) = match level == 3 && is_virtual(host) {
            true => (
                "sysfs, as the hypervisor shows it; how much is ours cannot be known",
                Confidence::Assumed,
            ),
            false => ("sysfs", Confidence::Measured),
        };
        found.put(size, FigureValue::Count(kib), how, trust);
        found.put(ways, FigureValue::Count(count), how, trust);
    }
}

/// The ways of a CPU's data cache of this level.
fn ways_of(cpu: u32, level: u32) -> Result<usize, Unavailable> {
    let unknown = || Unavailable::new("ways_unknown");
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let entries = fs::read_dir(&folder).map_err(|_| unknown())?;
    let read = |path: std::path::PathBuf| fs::read_to_string(path).unwrap_or_default();
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| read(path.join("level")).trim() == level.to_string())
        .filter(|path| read(path.join("type")).trim() != "Instruction")
        .find_map(|path| read(path.join("ways_of_associativity")).trim().parse().ok())
        .ok_or_else(unknown)
}

/// What the kernel could give without taking it from others.
pub(super) fn available_bytes() -> usize {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.map_or(1 << 30, |kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_are_one_ring() {
        for steps in [1, 2, 7, 64] {
            let mut memory = vec![0; steps * STEP];
            link(&mut memory);
            let mut seen = vec![false; steps];
            let mut at = 0;
            for _ in 0..steps {
                assert!(!std::mem::replace(&mut seen[at * WORD / STEP], true), "{steps}");
                at = follow(&memory, at, 1);
            }
            assert_eq!(at, 0, "{steps} steps lead back");
        }
    }
}

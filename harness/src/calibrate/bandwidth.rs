//! What memory delivers to one core and to all.

use std::hint::black_box;
use std::sync::{Arc, Barrier};

use topology::Topology;

use super::chase::available_bytes;
use super::{Bench, CalibrateError, Found, Sample};
use crate::clock::Clock;
use crate::memory::{Policy, Region};
use crate::unavailable::Unavailable;

/// The most that a thread reads in a repetition.
const BYTES: usize = 64 << 20;
/// The least: what no second-level cache holds.
const LEAST: usize = 8 << 20;

pub(super) fn measure(
    bench: &mut Bench,
    host: &Topology,
    cpu: u32,
    found: &mut Found,
) -> Result<(), CalibrateError> {
    let one = read_by(bench, &[cpu], &Policy::FirstTouch)?;
    let cpus: Vec<u32> = host.usable().iter().collect();
    let all = read_by(bench, &cpus, &Policy::FirstTouch)?;
    let nodes = host.numa_nodes.len().max(1);
    let third: u64 = host.l3_groups().iter().filter_map(|cache| cache.size_bytes).sum();
    let cached = match (third as usize) < BYTES * cpus.len() {
        true => "",
        false => "; the L3 may have delivered some of it",
    };
    let how = format!("64 MiB read by one thread{cached}; {one}");
    found.derived("memory.core_gb_per_s", one.median(), &how);
    let how = format!(
        "up to 64 MiB read by each of {} threads, nodes: {nodes}{cached}; {all}",
        cpus.len()
    );
    found.derived("memory.node_gb_per_s", all.median() / nodes as f64, &how);
    link(bench, host, cpu, found)
}

/// All CPUs of one socket read what lies on another.
fn link(
    bench: &mut Bench,
    host: &Topology,
    cpu: u32,
    found: &mut Found,
) -> Result<(), CalibrateError> {
    let field = "memory.link_gb_per_s";
    let own = host.pu(cpu).and_then(|place| place.package);
    let places = host.pus();
    let remote = places.iter().find(|place| place.package != own).and_then(|place| place.node);
    let Some(node) = remote else {
        found.missing(&[field], "there is one socket");
        return Ok(());
    };
    let near = places.iter().filter(|place| place.package == own);
    let cpus: Vec<u32> = near.map(|place| place.cpu).collect();
    match read_by(bench, &cpus, &Policy::Node(node)) {
        Ok(sample) => {
            let how = format!(
                "up to 64 MiB of node {node} read by each thread of another socket; {sample}"
            );
            found.derived(field, sample.median(), &how);
        }
        Err(CalibrateError::Memory(reason)) => found.missing(&[field], &reason.to_string()),
        Err(other) => return Err(other),
    }
    Ok(())
}

/// GB/s of all threads together.
fn read_by(bench: &mut Bench, cpus: &[u32], policy: &Policy) -> Result<Sample, CalibrateError> {
    let repetitions = bench.effort.repetitions();
    let bytes = (available_bytes() / 4 / cpus.len()).clamp(LEAST, BYTES);
    let together = Arc::new(Barrier::new(cpus.len()));
    let jobs: Vec<_> = cpus
        .iter()
        .map(|_| {
            let (clock, policy) = (bench.clock.clone(), policy.clone());
            let together = together.clone();
            move || -> Result<Vec<f64>, Unavailable> {
                let region = Region::map(bytes, &policy);
                together.wait(); // with or without a region, or the others would wait for ever
                let region = region?;
                Ok((0..repetitions).map(|_| read(&clock, region.bytes())).collect())
            }
        })
        .collect();
    let by_thread: Result<Vec<Vec<f64>>, Unavailable> =
        bench.team.run(cpus, jobs)?.into_iter().collect();
    let by_thread = by_thread?;
    let summed = |round: usize| by_thread.iter().map(|rates| rates[round]).sum();
    Ok(Sample::new((0..repetitions).map(summed).collect()))
}

fn read(clock: &Clock, memory: &[u8]) -> f64 {
    let began = clock.now();
    let mut sums = [0_u64; 8];
    let (words, _) = memory.as_chunks::<8>();
    for eight in words.as_chunks::<8>().0 {
        for (sum, word) in sums.iter_mut().zip(eight) {
            *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
        }
    }
    black_box(sums);
    memory.len() as f64 / clock.ns((clock.now() - began) as f64)
}

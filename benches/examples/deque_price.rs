//! What a worker pays for a push and a pop of its own deque, in instructions: ours and
//! `crossbeam-deque`'s, on one simulated core, with that many tasks below the one that goes in and
//! out.
//!
//! `cargo run --release -p manycore --example deque_price`

use std::error::Error;
use std::hint::black_box;

use queues::{Boxed, Deque, DequeChaseLev, DequeChaseLevGrowing, DequePackedFifo, WithCapacity};
use queues::{Thief, Worker};
use simulator::Machine;

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

const ROUNDS: u64 = 1000;

/// Instructions of a round: those of 2n rounds less those of n.
fn priced(mut rounds: impl FnMut(u64) + Send) -> Result<f64, Box<dyn Error>> {
    rounds(8);
    let rounds = std::sync::Mutex::new(rounds);
    let counted = |n: u64| -> Result<u64, Box<dyn Error>> {
        let report = Machine::named("epyc-7742-2s")?.run(1, |_| rounds.lock().unwrap()(n))?;
        Ok(report.total.instructions)
    };
    let (once, twice) = (counted(ROUNDS)?, counted(2 * ROUNDS)?);
    Ok((twice - once) as f64 / ROUNDS as f64)
}

#[inline(never)]
fn ours<D: Deque<u64>>(worker: &mut Worker<'_, D, u64>, rounds: u64) {
    for task in 0..rounds {
        assert!(worker.try_push(black_box(task)).is_ok());
        black_box(worker.pop());
    }
}

#[inline(never)]
fn crossbeam(worker: &crossbeam_deque::Worker<u64>, rounds: u64) {
    for task in 0..rounds {
        worker.push(black_box(task));
        black_box(worker.pop());
    }
}

fn of_ours<D: Deque<u64> + Send + Sync>(
    (mut worker, _thief): (Worker<'_, D, u64>, Thief<'_, D, u64>),
    below: u64,
) -> Result<f64, Box<dyn Error>> {
    assert!((0..below).all(|task| worker.try_push(task).is_ok()));
    priced(|rounds| ours(&mut worker, rounds))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| deque | tasks below | instructions of a push and a pop |");
    println!("|---|---|---|");
    for below in [0, 8] {
        let mut fixed = DequeChaseLev::<u64, Boxed>::with_capacity(64)?;
        let mut growing = DequeChaseLevGrowing::<u64>::with_capacity(64)?;
        let mut packed = DequePackedFifo::<u64, Boxed>::with_capacity(64)?;
        let (lifo, fifo) =
            (crossbeam_deque::Worker::new_lifo(), crossbeam_deque::Worker::new_fifo());
        (0..below).for_each(|task| lifo.push(task));
        (0..below).for_each(|task| fifo.push(task));
        for (name, instructions) in [
            ("deque_chase_lev", of_ours(fixed.split(), below)?),
            ("deque_chase_lev_growing", of_ours(growing.split(), below)?),
            ("crossbeam-deque LIFO", priced(move |rounds| crossbeam(&lifo, rounds))?),
            ("deque_packed_fifo", of_ours(packed.split(), below)?),
            ("crossbeam-deque FIFO", priced(move |rounds| crossbeam(&fifo, rounds))?),
        ] {
            println!("| {name} | {below} | {instructions:.1} |");
        }
    }
    Ok(())
}

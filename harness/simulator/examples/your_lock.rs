//! A lock of one's own on simulated cores, beside the standard library's.
//!
//! `cargo run --release -p simulator --example your_lock`

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use simulator::{EngineHeap, Error, Machine};

#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

static LOCKED: AtomicBool = AtomicBool::new(false);
static THEIRS: Mutex<()> = Mutex::new(());

fn yours() {
    while LOCKED.swap(true, Ordering::Acquire) {
        std::hint::spin_loop();
    }
    LOCKED.store(false, Ordering::Release);
}

fn main() -> Result<(), Error> {
    const OPS: u64 = 100;
    let machine = Machine::named("epyc-7742-2s").expect("one of the machines that are built in");
    println!("{:>5}  {:>22}  {:>22}", "cores", "yours: ns, transfers", "std: ns, transfers");
    for cores in [1, 2, 8, 32, 64, 128] {
        let yours = machine.run(cores, |_| (0..OPS).for_each(|_| yours()))?;
        let theirs = machine.run(cores, |_| (0..OPS).for_each(|_| drop(THEIRS.lock())))?;
        let [yours, theirs] = [yours.total, theirs.total].map(|total| {
            let ops = OPS * cores as u64;
            let transfers = total.transfers.total() as f64 / ops as f64;
            format!("{:>10.0} {transfers:>11.2}", total.time_ns() / ops as f64)
        });
        println!("{cores:>5}  {yours}  {theirs}");
    }
    Ok(())
}

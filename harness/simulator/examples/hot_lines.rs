//! Shows which lines of two counters side by side are hot, and what it would cost if they lay apart.

use simulator::{EngineHeap, Machine, Simulation};
use std::sync::atomic::{AtomicU64, Ordering};

#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

#[repr(align(128))]
struct Both([AtomicU64; 2]);
static COUNTERS: Both = Both([AtomicU64::new(0), AtomicU64::new(0)]);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let machine = Machine::named("epyc-7742-2s")?;
    let simulation = Simulation::on(&machine).threads(2).watch_lines(true);
    let count = |thread: usize| {
        for _ in 0..1000 {
            COUNTERS.0[thread].fetch_add(1, Ordering::Relaxed);
        }
    };
    let report = simulation.clone().start()?.each(count)?;
    let lines = report.lines.expect("lines are watched");
    println!("{lines}");
    if let Some(apart) = lines.lines[0].apart.clone() {
        let better = simulation.put_apart(&[apart]).start()?.each(count)?;
        println!("{} ns, apart {} ns", report.total.time_ns(), better.total.time_ns());
    }
    Ok(())
}

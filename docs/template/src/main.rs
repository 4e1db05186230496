//! Your code on simulated cores: `cargo run --release -- [CORES] [MACHINE]`.

use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Mutex;

use simulator::{EngineHeap, Machine, Simulation};

// The engine must not share a heap with what it executes.
#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let cores: usize = arguments.next().map_or(Ok(8), |cores| cores.parse())?;
    let machine = Machine::find(arguments.next().as_deref().unwrap_or("epyc-7742-2s"))?;

    let mut session = Simulation::on(&machine).threads(cores).start()?;
    // Made on simulated core 0: what it allocates lies where the guests' own allocations do.
    let map = session.once(|| Mutex::new(HashMap::new()))?.results.remove(0);
    // Your code, once on every core; all begin together.
    let report = session.each(|core| {
        for key in 0..100 {
            *map.lock().unwrap().entry(key).or_insert(0) += core;
        }
    })?;

    let operations = 100 * cores as u64;
    let per_operation = |count| report.per_operation(count, operations);
    let total = &report.total;
    println!("{} cores of {}, {operations} operations", cores, machine.name());
    println!("instructions  {:10.1} an operation", per_operation(total.instructions));
    println!("transfers     {:10.2}", per_operation(total.transfers.total()));
    println!("system calls  {:10.2}", per_operation(total.syscalls));
    println!("time          {:10.0} ns (simulated)", total.time_ns() / operations as f64);
    assert_eq!(map.lock().unwrap()[&0], cores * (cores - 1) / 2);
    Ok(())
}

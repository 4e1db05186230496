//! Probe.
use simulator::{Machine, Simulation};
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::Instant;
#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

#[derive(Default)]
#[repr(align(128))]
struct A(AtomicU64);

#[inline(never)]
fn ticket(next: &AtomicU64, serving: &AtomicU64, data: &AtomicU64, ops: u64) {
    for _ in 0..ops {
        let mine = next.fetch_add(1, Relaxed);
        while serving.load(Acquire) != mine {
            std::hint::spin_loop();
        }
        data.store(data.load(Relaxed) + 1, Relaxed);
        serving.store(mine + 1, Release);
    }
}

fn main() {
    let a: Vec<String> = std::env::args().collect();
    let threads: usize = a[1].parse().unwrap();
    let ops: u64 = a[2].parse().unwrap();
    let skip = a.get(3).is_none_or(|x| x != "noskip");
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let next = A::default();
    let serving = A::default();
    let data = A::default();
    if threads == 0 {
        let t = Instant::now();
        ticket(&next.0, &serving.0, &data.0, ops);
        let e = t.elapsed();
        println!("native {:?} {:.1} M/s", e, (ops * 11) as f64 / e.as_secs_f64() / 1e6);
        return;
    }
    let mut s = Simulation::on(&machine).threads(threads).skip_spins(skip).start().unwrap();
    let t = Instant::now();
    let r = s.each(|_| ticket(&next.0, &serving.0, &data.0, ops));
    let e = t.elapsed();
    match r {
        Ok(r) => {
            println!("{:?}", r.total);
            let ex = r.total.instructions - r.total.skipped;
            println!(
                "data {} {:?} {:.1} M/s",
                data.0.load(Relaxed),
                e,
                ex as f64 / e.as_secs_f64() / 1e6
            );
        }
        Err(e) => println!("{e}"),
    }
}

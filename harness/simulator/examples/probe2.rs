//! Probe.
use simulator::{Machine, Simulation};
use std::collections::HashMap;
use std::sync::{Barrier, Condvar, Mutex, RwLock, mpsc};
use std::time::Instant;
#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let threads: usize = a[1].parse().unwrap();
    let cores: u32 = a[2].parse().unwrap();
    let ops: u64 = a[3].parse().unwrap();
    let skip = a.get(4).is_none_or(|x| x != "noskip");
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let map = Mutex::new(HashMap::new());
    let total = Mutex::new(0u64);
    let rw = RwLock::new(String::new());
    let (tx, rx) = mpsc::channel::<String>();
    let rx = Mutex::new(rx);
    let cv = (Mutex::new(0usize), Condvar::new());
    let barrier = Barrier::new(threads);
    let mut s = Simulation::on(&machine)
        .threads(threads)
        .cores(&(0..cores).collect::<Vec<_>>())
        .skip_spins(skip)
        .start()
        .unwrap();
    let t = Instant::now();
    let r = s.each(|i| {
        let mut n = 0;
        barrier.wait();
        for k in 0..ops {
            *total.lock().unwrap() += 1;
            let text = format!("{i} {k} {:.3}", k as f64 * 1.5);
            n += text.len();
            tx.send(text.clone()).unwrap();
            map.lock().unwrap().insert(text.clone(), vec![i; (k % 50) as usize]);
            if k % 10 == 0 {
                rw.write().unwrap().push_str(&text)
            } else {
                n += rw.read().unwrap().len() % 2
            }
            if k % 3 == 0 {
                let got = rx.lock().unwrap().try_recv();
                n += got.map_or(0, |g| g.len());
            }
            if k % 100 == 7 {
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        }
        let mut g = cv.0.lock().unwrap();
        *g += 1;
        cv.1.notify_all();
        while *g < threads {
            g = cv.1.wait(g).unwrap();
        }
        n
    });
    let e = t.elapsed();
    match r {
        Ok(r) => {
            println!("{:?}", r.total);
            let ex = r.total.instructions - r.total.skipped;
            println!(
                "total {} map {} rw {} results {} {:?} {:.1} M/s",
                total.lock().unwrap(),
                map.lock().unwrap().len(),
                rw.read().unwrap().len(),
                r.results.iter().sum::<usize>(),
                e,
                ex as f64 / e.as_secs_f64() / 1e6
            );
        }
        Err(e) => println!("{e}"),
    }
}

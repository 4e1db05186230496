//! Probe.
use simulator::{Machine, Simulation};
use std::sync::{Mutex, atomic::*};
#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;
#[inline(never)]
fn overflow(n: u64) -> u64 {
    let a = [n; 100];
    std::hint::black_box(&a);
    if n == 0 { 0 } else { overflow(n - 1) + std::hint::black_box(a[3]) }
}
fn main() {
    let which: String = std::env::args().nth(1).unwrap();
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let (a, b) = (Mutex::new(0), Mutex::new(0));
    let flag = AtomicU64::new(0);
    let zero = std::hint::black_box(0u64);
    let mut s = Simulation::on(&machine)
        .threads(3)
        .budget(std::time::Duration::from_millis(20))
        .start()
        .unwrap();
    let r = s.each(|i| {
        if i != 1 { return 0u64; }
        match which.as_str() {
            "spawn" => { std::thread::spawn(|| ()).join().unwrap(); }
            "fork" => unsafe { libc::fork(); },
            "exec" => { let _ = std::process::Command::new("/bin/true").status(); }
            "ud2" => unsafe { std::arch::asm!("ud2") },
            "abort" => std::process::abort(),
            "div" => unsafe { std::arch::asm!("xor edx,edx", "div rcx", in("rcx") zero, inout("rax") 5u64 => _, out("rdx") _) },
            "divp" => { std::hint::black_box(5 / zero); }
            "null" => { return unsafe { std::ptr::without_provenance::<u64>(8 * zero as usize).read_volatile() } }
            "call0" => unsafe { std::arch::asm!("call {}", in(reg) zero) },
            "stack" => { return overflow(1 << 30); }
            "spin" => while flag.load(Ordering::Acquire) == 0 { std::hint::spin_loop() },
            "loop" => loop { flag.fetch_add(1, Ordering::Relaxed); },
            "idle" => { let mut k = 1u64; loop { k = std::hint::black_box(k * 3); if k == 77 { break } } },
            "panic" => panic!("oh {}", 7),
            "exit" => std::process::exit(3),
            "pexit" => unsafe { libc::pthread_exit(std::ptr::null_mut()) },
            "self" => { let _g = a.lock().unwrap(); let _h = a.lock().unwrap(); }
            "int3" => unsafe { std::arch::asm!("int3") },
            "hlt" => unsafe { std::arch::asm!("hlt") },
            "gs" => unsafe { std::arch::asm!("mov {}, gs:[0]", out(reg) _) },
            "socket" => unsafe { libc::socket(1, 1, 0); },
            "kill" => unsafe { libc::raise(15); },
            "catch" => { return std::panic::catch_unwind(|| { if flag.load(Ordering::Relaxed) == 0 { panic!("inside") } 3 }).unwrap_or(9) }
            _ => {}
        }
        let _ = &b;
        1
    });
    match r {
        Ok(r) => println!("OK {:?} {:?}", r.results, r.total.instructions),
        Err(e) => println!("STOPPED {:?}: {e}", e.reason),
    }
    drop(s);
    println!("alive {}", vec![1; 1000].len());
}

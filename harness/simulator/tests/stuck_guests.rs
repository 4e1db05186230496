//! Guests that never come to an end: whether they can go on decides between "blocked" and "budget
//! used up", skipping computed rounds changes neither, and somebody else can end the run.

use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use std::time::Instant;

use simulator::{Reason, Simulation, Stopped};

#[path = "support/guests.rs"]
mod guests;

use guests::{assert_says, machine, stops};

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

fn on(threads: usize) -> Simulation {
    Simulation::on(&machine()).threads(threads).budget(Duration::from_millis(2))
}

// Waiting for each other.

#[test]
fn a_thread_that_waits_for_itself() {
    let lock = Mutex::new(0);
    let line = line!();
    let stopped = stops(on(1), |_| {
        let first = lock.lock().unwrap();
        let second = lock.lock().unwrap();
        *first + *second
    });
    assert_says(&stopped, Reason::Blocked, &["thread 0 waits for futex"], (file!(), line));
}

#[test]
fn threads_that_take_two_locks_crosswise() {
    let locks = [Mutex::new(0), Mutex::new(0)];
    let both = Barrier::new(2);
    let line = line!();
    let stopped = stops(on(3), |thread| {
        if thread < 2 {
            let _first = locks[thread].lock().unwrap();
            both.wait();
            let _second = locks[1 - thread].lock().unwrap();
        }
    });
    let words = ["thread 0 waits", "thread 1 waits", "!thread 2"];
    assert_says(&stopped, Reason::Blocked, &words, (file!(), line));
}

#[test]
fn threads_that_all_wait_for_a_condition() {
    let (lock, condition) = (Mutex::new(false), Condvar::new());
    let line = line!();
    let stopped = stops(on(40), |_| {
        let mut done = lock.lock().unwrap();
        while !*done {
            done = condition.wait(done).unwrap();
        }
    });
    let words = ["thread 0 waits", "thread 15 waits", "!thread 16", "24 threads more"];
    assert_says(&stopped, Reason::Blocked, &words, (file!(), line));
}

#[test]
fn a_reader_that_wants_to_write() {
    let lock = RwLock::new(0);
    let line = line!();
    let stopped = stops(on(2), |_| {
        let read = lock.read().unwrap();
        *lock.write().unwrap() += *read;
    });
    assert_says(&stopped, Reason::Blocked, &["waits for futex"], (file!(), line));
}

#[test]
fn a_receiver_without_a_message() {
    let (_sender, receiver) = mpsc::channel::<u64>();
    let receiver = Mutex::new(receiver);
    let stopped = stops(on(2), |_| receiver.lock().unwrap().recv());
    assert_eq!(stopped.reason, Reason::Blocked);
}

#[test]
fn a_parked_thread() {
    let stopped = stops(on(1), |_| {
        loop {
            std::thread::park();
        }
    });
    assert_eq!(stopped.reason, Reason::Blocked);
}

// Spinning and computing.

/// The line from which on [`spins`] does so.
const SPINS: u32 = line!();

fn spins(flag: &AtomicU64) {
    while flag.load(Ordering::Acquire) == 0 {
        spin_loop();
    }
}

#[test]
fn spinning_for_ever_is_known_if_rounds_are_computed() {
    for threads in [1, 2, 30] {
        let flag = AtomicU64::new(0);
        let stopped = stops(on(threads), |_| spins(&flag));
        assert_says(&stopped, Reason::Blocked, &["spins for ever on core 0"], (file!(), SPINS));
        let stopped = stops(on(threads).skip_spins(false), |_| spins(&flag));
        assert_says(&stopped, Reason::Budget, &["runs on core 0"], (file!(), SPINS));
    }
}

#[test]
fn spinning_and_waiting_together_are_blocked() {
    let (flag, taken, lock) = (AtomicU64::new(0), AtomicU64::new(0), Mutex::new(()));
    let stopped = stops(on(3), |thread| match thread {
        0 => {
            let _held = lock.lock().unwrap();
            taken.store(1, Ordering::Release);
            spins(&flag);
        }
        1 => {
            spins(&taken);
            drop(lock.lock().unwrap());
        }
        _ => {}
    });
    let words = ["thread 0 spins", "thread 1 waits", "!thread 2"];
    assert_says(&stopped, Reason::Blocked, &words, (file!(), SPINS));
}

#[test]
fn a_spinner_that_may_be_released_is_not_blocked() {
    let flag = AtomicU64::new(0);
    let mut session = on(2).start().unwrap();
    let report = session.each(|thread| match thread {
        0 => spins(&flag),
        _ => {
            std::thread::sleep(Duration::from_millis(1));
            flag.store(1, Ordering::Release);
        }
    });
    assert!(report.unwrap().total.skipped > 1000);
}

#[test]
fn a_spinner_beside_one_that_computes_uses_up_the_budget() {
    let flag = AtomicU64::new(0);
    for skip in [true, false] {
        let stopped = stops(on(2).skip_spins(skip), |thread| match thread {
            0 => spins(&flag),
            _ => computes(),
        });
        assert_says(&stopped, Reason::Budget, &["thread 0", "thread 1"], (file!(), SPINS));
    }
}

fn computes() {
    let mut value = 1_u64;
    while black_box(value) != 77 {
        value = value.wrapping_mul(3);
    }
}

fn adds(flag: &AtomicU64) {
    while flag.fetch_add(2, Ordering::Relaxed) != 1 {}
}

#[test]
fn work_without_end_uses_up_the_budget() {
    let flag = AtomicU64::new(0);
    let works: [(&str, &(dyn Fn() + Sync)); 5] = [
        ("computes", &computes),
        ("registers", &|| {
            let mut value = 1_u64;
            while value != 0 {
                // SAFETY: changes a register.
                unsafe { core::arch::asm!("rol {}, 1", inout(reg) value, options(nomem)) };
            }
        }),
        ("adds", &|| adds(&flag)),
        ("yields", &|| {
            while flag.load(Ordering::Relaxed) != 1 {
                std::thread::yield_now();
            }
        }),
        ("sleeps", &|| {
            while flag.load(Ordering::Relaxed) != 1 {
                std::thread::sleep(Duration::from_micros(10));
            }
        }),
    ];
    for (name, work) in works {
        for (threads, cores) in [(1, 1), (3, 3), (5, 2)] {
            let cores: Vec<u32> = (0..cores).collect();
            let began = Instant::now();
            let simulation = on(threads).cores(&cores).budget(Duration::from_micros(500));
            let stopped = stops(simulation, |_| work());
            assert_eq!(stopped.reason, Reason::Budget, "{name}: {stopped}");
            assert!(began.elapsed() < Duration::from_secs(20), "{name}");
        }
    }
}

#[test]
fn spinners_that_share_a_core_use_up_the_budget() {
    let flag = AtomicU64::new(0);
    let stopped = stops(on(3).cores(&[5]), |_| spins(&flag));
    assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
}

// Budgets.

#[test]
fn a_budget_is_spent_to_the_end_with_and_without_skipping() {
    let run = |skip| {
        let flag = AtomicU64::new(0);
        stops(on(4).skip_spins(skip).budget(Duration::from_micros(100)), |thread| match thread {
            0 => adds(&AtomicU64::new(0)),
            _ => spins(&flag),
        })
    };
    for stopped in [run(true), run(false)] {
        let after = stopped.message.rsplit("after ").next().unwrap();
        let after: u64 = after.split(' ').next().unwrap().parse().unwrap();
        assert!((100_000..101_000).contains(&after), "{stopped}");
    }
}

#[test]
fn a_budget_is_for_each_run() {
    let mut session = on(2).budget(Duration::from_micros(100)).start().unwrap();
    for _ in 0..5 {
        let report = session.each(|_| std::thread::sleep(Duration::from_micros(40))).unwrap();
        assert!(report.total.time_ps < 101_000_000, "{:?}", report.total);
    }
    let stopped = session.each(|_| std::thread::sleep(Duration::from_micros(200))).unwrap_err();
    assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
}

#[test]
fn budgets_without_sense() {
    let stopped = stops(on(2).budget(Duration::ZERO), black_box);
    assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
    let mut session = on(2).budget(Duration::MAX).start().unwrap();
    let report = session.each(|thread| {
        std::thread::sleep(Duration::from_secs(3_000 * thread as u64));
        thread
    });
    assert_eq!(report.unwrap().results, [0, 1]);
    let stopped = session.each(|_| std::thread::sleep(Duration::MAX)).unwrap_err();
    assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
}

// The flag.

fn interrupted(simulation: Simulation, guest: impl Fn() + Sync) -> Stopped {
    let flag = Arc::new(AtomicBool::new(false));
    let setter = std::thread::spawn({
        let flag = flag.clone();
        move || {
            std::thread::sleep(Duration::from_millis(100));
            flag.store(true, Ordering::Relaxed);
        }
    });
    let simulation = simulation.interrupt(&flag).budget(Duration::from_secs(100_000));
    let mut session = simulation.start().unwrap();
    let stopped = session.each(|_| guest()).unwrap_err();
    // That it comes back at all is the point: the budget would last for hours.
    setter.join().unwrap();
    drop(session);
    guests::alive();
    stopped
}

#[test]
fn a_flag_ends_whatever_runs() {
    let flag = AtomicU64::new(0);
    let guests: [(&str, &(dyn Fn() + Sync)); 5] = [
        ("spins", &|| spins(&flag)),
        ("computes", &computes),
        ("adds", &|| adds(&flag)),
        ("yields", &|| {
            while flag.load(Ordering::Relaxed) != 1 {
                std::thread::yield_now();
            }
        }),
        ("sleeps", &|| {
            while flag.load(Ordering::Relaxed) != 1 {
                std::thread::sleep(Duration::from_micros(1));
            }
        }),
    ];
    for (name, guest) in guests {
        for (threads, cores) in [(1, 1), (4, 4), (5, 2)] {
            let cores: Vec<u32> = (0..cores).collect();
            let stopped = interrupted(on(threads).cores(&cores).skip_spins(false), guest);
            assert_eq!(stopped.reason, Reason::Interrupted, "{name} {threads}: {stopped}");
        }
    }
}

#[test]
fn a_flag_ends_one_long_instruction_soon_after() {
    let bytes = vec![0_u8; 1 << 26];
    let stopped = interrupted(on(1), || {
        let mut copy = vec![1_u8; 1 << 26];
        loop {
            copy.copy_from_slice(&bytes);
            black_box(&copy);
        }
    });
    assert_eq!(stopped.reason, Reason::Interrupted, "{stopped}");
}

#[test]
fn a_flag_that_is_set_already_ends_the_run_at_once() {
    let flag = Arc::new(AtomicBool::new(true));
    let stopped = stops(on(2).interrupt(&flag), black_box);
    assert_eq!(stopped.reason, Reason::Interrupted);
}

// What is held when a run stops stays held, and nothing else does.

#[test]
fn a_lock_that_a_stopped_guest_holds_stays_held() {
    let (lock, other) = (Mutex::new(1), Mutex::new(2));
    let stopped = stops(on(2), |thread| {
        if thread == 0 {
            let _held = lock.lock().unwrap();
            computes();
        }
        *other.lock().unwrap() += 1;
    });
    assert_eq!(stopped.reason, Reason::Budget, "{stopped}");
    assert!(lock.try_lock().is_err());
    assert_eq!(*other.lock().unwrap(), 3);
}

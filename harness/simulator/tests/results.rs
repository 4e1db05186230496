//! Programs as others write them end on simulated cores with what they end with on real threads.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::{Barrier, Condvar, Mutex, RwLock, mpsc};
use std::thread;
use std::time::Instant;

use crossbeam_deque::{Injector, Stealer, Worker};
use simulator::{Machine, Report, Simulation};

#[path = "results/state.rs"]
mod state;

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

fn machine() -> Machine {
    Machine::named("epyc-7742-2s").unwrap()
}

fn simulated<R: Send>(threads: usize, cores: usize, work: impl Fn(usize) -> R + Sync) -> Report<R> {
    let cores: Vec<u32> = (0..cores as u32).collect();
    let simulation = Simulation::on(&machine()).threads(threads).cores(&cores);
    let mut session = simulation.seed(threads as u64).start().unwrap();
    session.each(work).unwrap_or_else(|stopped| panic!("{stopped}"))
}

fn native<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let all: Vec<_> = (0..threads).map(|thread| scope.spawn(move || work(thread))).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

/// Makes a program twice; both must give the same, on real threads and on simulated cores.
fn same<R, W>(threads: usize, cores: usize, program: impl Fn() -> W)
where
    R: Send + PartialEq + core::fmt::Debug,
    W: Fn(usize) -> R + Sync,
{
    let began = Instant::now();
    let report = simulated(threads, cores, program());
    assert_eq!(report.results, native(threads, program()));
    println!("{} instructions, {:?}", report.total.instructions, began.elapsed());
}

/// The least recently used goes first.
struct Cache {
    values: HashMap<u64, String>,
    order: VecDeque<u64>,
}

impl Cache {
    fn get(&mut self, key: u64) -> String {
        if let Some(at) = self.order.iter().position(|&one| one == key) {
            self.order.remove(at);
        } else {
            self.values.insert(key, format!("value of {key:#06x}"));
        }
        self.order.push_back(key);
        if self.order.len() > 20
            && let Some(oldest) = self.order.pop_front()
        {
            self.values.remove(&oldest);
        }
        self.values[&key].clone()
    }
}

#[test]
fn cache_under_a_lock() {
    same(128, 128, || {
        let cache = Mutex::new(Cache { values: HashMap::new(), order: VecDeque::new() });
        move |thread| {
            let keys = (0..12).map(|i| (thread as u64 * 7 + i * i) % 50);
            keys.map(|key| cache.lock().unwrap().get(key).len()).sum::<usize>()
        }
    });
}

#[test]
fn log_of_formatted_lines() {
    let lines = |log: Mutex<VecDeque<String>>| {
        let mut lines: Vec<String> = log.into_inner().unwrap().into();
        lines.sort();
        lines
    };
    let work = |log: &Mutex<VecDeque<String>>, thread: usize| {
        for i in 0..10 {
            let line = format!("{thread:>3} {i:?} {:.4e} {:?}", i as f64 / 3.0, Some("text"));
            log.lock().unwrap().push_back(line);
        }
    };
    let (one, other) = (Mutex::default(), Mutex::default());
    simulated(40, 40, |thread| work(&one, thread));
    native(40, |thread| work(&other, thread));
    let (one, other) = (lines(one), lines(other));
    assert_eq!(one.len(), 400);
    assert_eq!(one, other);
}

#[test]
fn maps_of_each_thread_merged() {
    same(16, 16, || {
        let all = Mutex::new(BTreeMap::<String, usize>::new());
        let barrier = Barrier::new(16);
        move |thread| {
            let mut own = HashMap::new();
            for i in 0..200 {
                *own.entry(format!("word {}", (i * (thread + 3)) % 37)).or_insert(0) += i;
            }
            for (word, count) in own {
                *all.lock().unwrap().entry(word).or_insert(0) += count;
            }
            barrier.wait();
            all.lock().unwrap().clone()
        }
    });
}

fn numbers(thread: usize, count: usize) -> Vec<u64> {
    let mut state = thread as u64 + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        state >> 20
    };
    (0..count).map(next).collect()
}

#[test]
fn sorting_on_every_core() {
    same(128, 128, || {
        |thread| {
            let mut all = numbers(thread, 300);
            all.sort_unstable();
            let mut words: Vec<String> = all.iter().rev().map(u64::to_string).collect();
            words.sort();
            words.dedup();
            (all, words.concat().len())
        }
    });
}

#[test]
fn pipeline_of_channels() {
    same(7, 7, || {
        let (start, mut receive) = mpsc::sync_channel::<String>(2);
        let mut stages = Vec::new();
        for _ in 0..5 {
            let (send, next) = mpsc::sync_channel(2);
            stages.push(Mutex::new(Some((receive, send))));
            receive = next;
        }
        let (start, last) = (Mutex::new(Some(start)), Mutex::new(receive));
        move |thread| match thread {
            0 => {
                let start = start.lock().unwrap().take().unwrap();
                (0..40).for_each(|i| start.send(i.to_string()).unwrap());
                String::new()
            }
            6 => last.lock().unwrap().iter().collect(),
            _ => {
                let (receive, send) = stages[thread - 1].lock().unwrap().take().unwrap();
                receive.iter().for_each(|text| send.send(format!("{text}{thread}")).unwrap());
                String::new()
            }
        }
    });
}

#[test]
fn work_that_is_stolen() {
    same(24, 24, || {
        let workers: Vec<_> = (0..24).map(|_| Mutex::new(Worker::new_lifo())).collect();
        let stealers: Vec<Stealer<u64>> =
            workers.iter().map(|worker| worker.lock().unwrap().stealer()).collect();
        let injector = Injector::new();
        (0..200).for_each(|job| injector.push(job));
        let (sum, left) = (AtomicU64::new(0), AtomicUsize::new(400));
        move |thread| {
            let worker = workers[thread].lock().unwrap();
            while left.load(Ordering::Acquire) > 0 {
                let job = worker
                    .pop()
                    .or_else(|| injector.steal_batch_and_pop(&worker).success())
                    .or_else(|| stealers.iter().find_map(|other| other.steal().success()));
                let Some(job) = job else {
                    core::hint::spin_loop();
                    continue;
                };
                if job < 200 {
                    worker.push(1000 + job);
                }
                sum.fetch_add(job * job, Ordering::Relaxed);
                left.fetch_sub(1, Ordering::Release);
            }
            sum.load(Ordering::Relaxed)
        }
    });
}

#[test]
fn strings_that_grow() {
    same(32, 8, || {
        |thread| {
            let mut text = String::new();
            for i in 0..60 {
                let _ = write!(text, "{i:x}-{}; ", "äöü".repeat(thread % 5));
                text.insert(i % 7, char::from(b'a' + (i % 26) as u8));
            }
            let words: HashSet<&str> = text.split("; ").collect();
            (text.to_uppercase(), words.len(), text.replace('-', "+").len())
        }
    });
}

#[test]
fn floating_point_to_the_last_bit() {
    same(48, 16, || {
        |thread| {
            let mut sums = [0.0_f64; 5];
            for i in 1..200 {
                let x = f64::from(i) * 0.37 + thread as f64;
                sums[0] += x.sqrt();
                sums[1] += x.sin() * x.cos();
                sums[2] += (x / 50.0).exp().ln_1p();
                sums[3] += x.powf(1.3).rem_euclid(7.1);
                sums[4] += f64::from((x as f32).cbrt().atan());
            }
            let text = format!("{:?}", sums);
            let parsed: f64 = text[1..].split(',').next().unwrap().parse().unwrap();
            (sums.map(f64::to_bits), text, parsed.to_bits())
        }
    });
}

#[test]
fn copies_of_unaligned_blocks() {
    same(8, 4, || {
        |thread| {
            let source: Vec<u8> = (0..300_000_u64).map(|i| (i * i % 251) as u8).collect();
            let mut target = vec![0_u8; 300_000];
            for (i, size) in [1, 7, 63, 65, 1000, 4097, 70_001, 200_000].into_iter().enumerate() {
                let (from, to) = (13 * thread + i, 31 * thread + 5 * i + 1);
                target[to..to + size].copy_from_slice(&source[from..from + size]);
                target.copy_within(to..to + size, to + 3);
                assert!(target[to + 3..].starts_with(&source[from..from + size]));
                target[to + size / 2..to + size].fill(i as u8);
            }
            target.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
        }
    });
}

#[test]
fn ping_and_pong() {
    same(2, 2, || {
        let (ball, passed) = (Mutex::new((0, String::new())), Condvar::new());
        move |thread| {
            for i in 0..30 {
                let mut ball =
                    passed.wait_while(ball.lock().unwrap(), |ball| ball.0 % 2 != thread).unwrap();
                ball.0 += 1;
                ball.1 += ["ping ", "pong "][(i + thread) % 2];
                passed.notify_one();
            }
            thread
        }
    });
}

#[test]
fn readers_and_writers() {
    same(64, 64, || {
        let text = RwLock::new(vec![0_u64; 10]);
        let barrier = Barrier::new(64);
        move |thread| {
            for i in 0..10 {
                if thread % 8 == 0 {
                    text.write().unwrap().iter_mut().for_each(|word| *word += i);
                } else {
                    let text = text.read().unwrap();
                    assert!(text.iter().all(|word| *word == text[0]));
                }
            }
            barrier.wait();
            text.read().unwrap()[3]
        }
    });
}

#[test]
fn phases() {
    same(96, 32, || {
        let barrier = Barrier::new(96);
        let cells: Vec<_> = (0..96).map(|i| AtomicU64::new(i * i % 17)).collect();
        move |thread| {
            for _ in 0..4 {
                let [left, right] =
                    [thread + 95, thread + 1].map(|i| cells[i % 96].load(Ordering::Relaxed));
                barrier.wait();
                cells[thread].store((left * 3 + right) % 1009, Ordering::Relaxed);
                barrier.wait();
            }
            cells[thread].load(Ordering::Relaxed)
        }
    });
}

#[test]
fn panics_that_are_caught() {
    same(20, 20, || {
        let lock = Mutex::new(0);
        move |thread| {
            let mut texts = String::new();
            for i in 0..5 {
                let caught = std::panic::catch_unwind(|| {
                    let _vector = vec![String::from("dropped"); thread];
                    if (i + thread) % 2 == 0 {
                        std::panic::resume_unwind(Box::new(format!("{i} on {thread}")));
                    }
                    *lock.lock().unwrap() += black_box(1);
                    i
                });
                match caught {
                    Ok(i) => texts += &i.to_string(),
                    Err(payload) => texts += payload.downcast_ref::<String>().unwrap(),
                }
            }
            texts
        }
    });
}

#[test]
fn time_is_simulated_and_does_not_go_back() {
    let latest = Mutex::new(Instant::now());
    let began = simulated(1, 1, |_| Instant::now()).results[0];
    *latest.lock().unwrap() = began;
    let report = simulated(8, 8, |thread| {
        for _ in 0..100 {
            let mut latest = latest.lock().unwrap();
            let now = Instant::now();
            assert!(now >= *latest);
            *latest = now;
        }
        let before = Instant::now();
        thread::sleep(Duration::from_millis(1 + thread as u64));
        before.elapsed()
    });
    for (thread, slept) in report.results.iter().enumerate() {
        let asked = Duration::from_millis(1 + thread as u64);
        assert!((asked..asked + Duration::from_micros(200)).contains(slept), "{slept:?}");
    }
    let (fastest, slowest) = (8_000_000_000, 9_000_000_000);
    assert!((fastest..slowest).contains(&report.total.time_ps), "{:?}", report.total);
}

#[test]
fn waiting_with_a_time_limit_ends() {
    let report = simulated(3, 3, |thread| {
        let (lock, condition) = (Mutex::new(()), Condvar::new());
        let before = Instant::now();
        let limit = Duration::from_micros(300);
        match thread {
            0 => {
                assert!(condition.wait_timeout(lock.lock().unwrap(), limit).unwrap().1.timed_out())
            }
            1 => thread::park_timeout(limit),
            _ => assert!(mpsc::channel::<()>().1.recv_timeout(limit).is_err()),
        }
        before.elapsed()
    });
    for waited in &report.results[..2] {
        assert!((300..500).contains(&waited.as_micros()), "{waited:?}");
    }
}

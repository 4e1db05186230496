//! What a program counts depends on the program alone: not on the environment, the working
//! directory, the program's path, the load, the priority or the standard files.

use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use simulator::{Machine, Report, Simulation};

#[path = "support/child.rs"]
mod child;

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

/// What all threads work on; made by the first one, where addresses are the simulation's.
#[derive(Default)]
struct Shared {
    map: Mutex<HashMap<String, Vec<u64>>>,
    small: parking_lot::Mutex<u64>,
    counter: AtomicU64,
}

fn program(thread: usize, shared: &Shared, send: &mpsc::Sender<String>) -> u64 {
    let mut sum = 0;
    for i in 0..6 {
        let word = format!("{:x}", (thread * 7 + i * i) % 23);
        let mut map = shared.map.lock().unwrap();
        map.entry(word.clone()).or_default().push(i as u64);
        sum += map.len() as u64;
        drop(map);
        *shared.small.lock() += sum;
        sum ^= shared.counter.fetch_add(1, Ordering::Relaxed);
        sum ^= RandomState::new().hash_one(thread) % 1000;
        send.send(word).unwrap();
        if i % 4 == thread % 4 {
            std::thread::sleep(Duration::from_micros(i as u64));
        }
    }
    sum + u64::from(Instant::now().elapsed().subsec_nanos())
}

fn run(threads: usize, cores: usize, seed: u64) -> Report<u64> {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let cores: Vec<u32> = (0..cores as u32).collect();
    let simulation = Simulation::on(&machine).threads(threads).cores(&cores).seed(seed);
    let mut session = simulation.start().unwrap();
    let made = session.once(|| (Box::new(Shared::default()), mpsc::channel())).unwrap();
    let (shared, (send, receive)) = made.results.into_iter().next().unwrap();
    let report = session.each(|thread| program(thread, &shared, &send.clone())).unwrap();
    drop(send);
    assert_eq!(receive.iter().count(), 6 * threads);
    report
}

const SIZES: [(usize, usize); 3] = [(4, 4), (128, 128), (24, 5)];

/// Writes what was counted into the file that the part names; a size follows it.
fn count(part: &str) {
    let (path, size) = part.rsplit_once(':').unwrap();
    let (threads, cores) = SIZES[size.parse::<usize>().unwrap()];
    fs::write(path, format!("{:#?}", run(threads, cores, 5))).unwrap();
}

/// Where and how a child runs.
struct Place {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), program: std::env::current_exe().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a child after `change` and gives what it counted.
    fn counted(
        &self,
        test: &str,
        program: &Path,
        size: usize,
        change: &dyn Fn(&mut Command),
    ) -> String {
        let file = self.path("counted");
        let mut command = child::command(program, test, &format!("{}:{size}", file.display()));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        change(&mut command);
        let output = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        fs::read_to_string(&file).inspect(|_| fs::remove_file(&file).unwrap()).unwrap()
    }
}

/// What is done to a child's command.
type Change<'a> = &'a dyn Fn(&Place, &mut Command);

/// Compares children with one that nothing was done to.
fn compare(test: &str, changes: &[(&str, Change<'_>)]) {
    if let Some(part) = child::part() {
        return count(&part);
    }
    let place = Place::new();
    for size in 0..SIZES.len() {
        let plain = place.counted(test, &place.program, size, &|_| {});
        assert!(plain.contains("instructions: "), "{plain}");
        for (name, change) in changes {
            let other =
                place.counted(test, &place.program, size, &|command| change(&place, command));
            assert_same(&plain, &other, name);
        }
    }
}

#[track_caller]
fn assert_same(one: &str, other: &str, name: &str) {
    for (number, (one, other)) in one.lines().zip(other.lines()).enumerate() {
        assert_eq!(one, other, "line {number} with {name}");
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn nothing_but_another_process() {
    compare("nothing_but_another_process", &[("nothing", &|_, _| {}), ("nothing", &|_, _| {})]);
}

#[test]
fn another_environment() {
    compare(
        "another_environment",
        &[
            ("an empty environment", &|_, command| {
                let kept: Vec<_> = command
                    .get_envs()
                    .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
                    .collect();
                command.env_clear().envs(kept);
            }),
            ("a large environment", &|_, command| {
                command.envs((0..64).map(|i| (format!("LARGE{i}"), "x".repeat(1024))));
            }),
            ("three bytes more", &|_, command| {
                command.env("A", "b");
            }),
        ],
    );
}

#[test]
fn another_place() {
    compare(
        "another_place",
        &[
            ("another working directory", &|_, command| {
                command.current_dir("/");
            }),
            ("a deep working directory", &|place, command| {
                let deep = place.path(&"deep/".repeat(40));
                fs::create_dir_all(&deep).unwrap();
                command.current_dir(deep);
            }),
            ("another name", &|_, command| {
                command.arg0("n".repeat(3000));
            }),
        ],
    );
}

#[test]
fn another_path_of_the_program() {
    let test = "another_path_of_the_program";
    if let Some(part) = child::part() {
        return count(&part);
    }
    let place = Place::new();
    let long = place.path(&"long/".repeat(30));
    fs::create_dir_all(&long).unwrap();
    let other = long.join("program-with-another-name");
    fs::copy(&place.program, &other).unwrap();
    for size in 0..SIZES.len() {
        let plain = place.counted(test, &place.program, size, &|_| {});
        assert_same(&plain, &place.counted(test, &other, size, &|_| {}), "another path");
    }
}

#[test]
fn other_standard_files() {
    compare(
        "other_standard_files",
        &[
            ("files", &|place, command| {
                let file = fs::File::create(place.path("out")).unwrap();
                command.stdout(file).stdin(fs::File::open("/dev/zero").unwrap());
            }),
            ("closed ones", &|_, command| {
                // SAFETY: closes two files between fork and exec.
                unsafe { command.pre_exec(close_two) };
            }),
        ],
    );
}

#[test]
fn another_priority_and_load() {
    let test = "another_priority_and_load";
    let nice = |_: &Place, command: &mut Command| {
        // SAFETY: makes one system call between fork and exec.
        unsafe { command.pre_exec(be_nice) };
    };
    if child::part().is_some() {
        return compare(test, &[]);
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    core::hint::black_box(vec![1_u8; 10_000]);
                }
            });
        }
        let result = std::panic::catch_unwind(|| compare(test, &[("nice", &nice)]));
        stop.store(true, Ordering::Relaxed);
        if let Err(payload) = result {
            std::panic::resume_unwind(payload);
        }
    });
}

/// Contention on memory whose addresses are the same in every run of a process.
fn contended(seed: u64) -> String {
    #[repr(align(4096))]
    struct Page(AtomicU64);
    static WORD: Page = Page(AtomicU64::new(0));
    WORD.0.store(0, Ordering::Relaxed);
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let mut session = Simulation::on(&machine).threads(16).seed(seed).start().unwrap();
    let report = session.each(|_| {
        for _ in 0..20 {
            while WORD.0.swap(1, Ordering::Acquire) % 2 == 1 {
                core::hint::spin_loop();
            }
            WORD.0.store(0, Ordering::Release);
        }
    });
    format!("{:?}", report.unwrap())
}

#[test]
fn runs_within_a_process_repeat_and_seeds_differ() {
    let first: Vec<String> = (0..10).map(contended).collect();
    let again: Vec<String> = (0..10).map(contended).collect();
    assert_eq!(first, again);
    let different: std::collections::HashSet<_> = first.into_iter().collect();
    println!("{} different counts of 10 seeds", different.len());
    assert!(different.len() >= 2);
}

/// Closes standard input and output.
fn close_two() -> std::io::Result<()> {
    for file in [0, 1] {
        // SAFETY: closes a file of this process.
        unsafe { libc::close(file) };
    }
    Ok(())
}

/// Lowers the priority of what is executed next.
fn be_nice() -> std::io::Result<()> {
    // SAFETY: changes the priority of this process.
    unsafe { libc::nice(10) };
    Ok(())
}

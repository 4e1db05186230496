//! What threads have for themselves: registers of every kind, thread-local values, places, random
//! numbers.

use core::arch::asm;
use core::cell::RefCell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::rc::{Rc, Weak};
use std::sync::Barrier;
use std::thread;

use super::{machine, native, same, simulated};

#[derive(Default)]
struct Node {
    value: u64,
    parent: RefCell<Weak<Node>>,
    children: RefCell<Vec<Rc<Node>>>,
}

fn tree(depth: u64, value: u64) -> Rc<Node> {
    let node = Rc::new(Node { value, ..Node::default() });
    if depth > 0 {
        for i in 0..3 {
            let child = tree(depth - 1, value * 3 + i);
            *child.parent.borrow_mut() = Rc::downgrade(&node);
            node.children.borrow_mut().push(child);
        }
    }
    node
}

fn sum(node: &Rc<Node>) -> u64 {
    let above = node.parent.borrow().upgrade().map_or(0, |parent| parent.value);
    node.value * 7 + above + node.children.borrow().iter().map(sum).sum::<u64>()
}

#[test]
fn trees_of_counted_references() {
    same(32, 32, || {
        |thread| {
            let root = tree(4, thread as u64);
            let first = root.children.borrow()[0].clone();
            let all = sum(&root);
            drop(root);
            (all, first.parent.borrow().upgrade().is_none(), Rc::strong_count(&first))
        }
    });
}

/// Keeps different values in the coprocessor, in vector registers and in their control words,
/// while others take the core.
fn registers(thread: usize) -> [u64; 4] {
    let value = thread as u64 + 1;
    let mut results = [0_u64; 4];
    let rounding = [0x037f_u16, 0x077f, 0x0b7f, 0x0f7f][thread % 4];
    let control = 0x1f80_u32 | (thread as u32 % 4) << 13;
    // SAFETY: uses registers that are named below, its own stack, and the array.
    unsafe {
        asm!(
            "fldcw [{rounding}]", "ldmxcsr [{control}]",
            "mov [{results}], {value}", "fild qword ptr [{results}]",
            "vmovq xmm7, {value}", "vpbroadcastq ymm7, xmm7", "vmovdqa ymm8, ymm7",
            "vmovdqa ymm9, ymm7",
            "mov ecx, 12",
            "2:", "mov rax, 24", "mov r8d, ecx", "syscall", "mov ecx, r8d", // sched_yield
            "fld1", "faddp", "vpaddq ymm8, ymm8, ymm7", "paddq xmm9, xmm7",
            "mov eax, 3000", "3:", "dec eax", "jnz 3b",
            "dec ecx", "jnz 2b",
            "fistp qword ptr [{results}]", "vextracti128 xmm6, ymm8, 1",
            "movq [{results} + 8], xmm6", "movq [{results} + 16], xmm9",
            "stmxcsr [{results} + 24]", "fnstcw [{results} + 28]",
            "fninit", "push 0x1f80", "ldmxcsr [rsp]", "pop rax",
            rounding = in(reg) &raw const rounding, control = in(reg) &raw const control,
            value = in(reg) value, results = in(reg) results.as_mut_ptr(),
            out("rax") _, out("rcx") _, out("r8") _, out("r11") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
        );
    }
    results
}

#[test]
fn registers_of_three_threads_for_a_core() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        println!("SKIPPED: no AVX2");
        return;
    }
    for (threads, cores) in [(3, 1), (24, 8), (12, 12)] {
        let expected = |thread: usize| {
            let value = thread as u64 + 1;
            let control = u64::from([0x037f_u16, 0x077f, 0x0b7f, 0x0f7f][thread % 4]);
            let flags = 0x1f80 | (thread as u64 % 4) << 13;
            [value + 12, value * 13, value * 13, flags | control << 32]
        };
        let expected: Vec<_> = (0..threads).map(expected).collect();
        assert_eq!(native(threads, registers), expected);
        assert_eq!(simulated(threads, cores, registers).results, expected);
    }
}

#[test]
fn computing_threads_share_cores() {
    let work = |thread: usize| {
        let mut value = thread as f64 + 1.5;
        let mut bits = thread as u64;
        for i in 0..300_000_u64 {
            value = (value * 1.000_1).sqrt() + 0.25;
            bits = (bits ^ i).rotate_left(7).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (value.to_bits(), bits)
    };
    let report = simulated(9, 3, work);
    assert_eq!(report.results, native(9, work));
    assert!(report.cores.iter().all(|core| core.time_ps > 0));
}

static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Counted(u64);

impl Drop for Counted {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0, Ordering::Relaxed);
    }
}

std::thread_local! {
    static OWN: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
    static LAZY: RefCell<String> = RefCell::new(String::from("begun"));
}

#[test]
fn thread_local_values_with_destructors() {
    let work = |thread: usize| {
        OWN.with_borrow_mut(|own| own.push(Counted(1 << thread)));
        LAZY.with_borrow_mut(|lazy| *lazy += &format!(" by {thread}"));
        thread::yield_now();
        (OWN.with_borrow(Vec::len), LAZY.take())
    };
    let before = DROPPED.load(Ordering::Relaxed);
    let results = simulated(20, 7, work).results;
    assert_eq!(DROPPED.load(Ordering::Relaxed) - before, (1 << 20) - 1);
    assert_eq!(results, native(20, work));
    assert_eq!(DROPPED.load(Ordering::Relaxed) - before, 2 * ((1 << 20) - 1));
}

#[test]
fn places_are_those_of_the_simulated_machine() {
    let cores = [3_u32, 70, 127, 5];
    let mut session =
        simulator::Simulation::on(&machine()).threads(4).cores(&cores).start().unwrap();
    let report = session.each(|_| {
        thread::yield_now();
        // SAFETY: asks where it is.
        let cpu = unsafe { libc::sched_getcpu() };
        (cpu, thread::available_parallelism().unwrap().get())
    });
    let places: Vec<_> = report.unwrap().results;
    assert_eq!(places, cores.map(|core| (core as i32, 4)));
    let report = session.each(|_| {
        thread::yield_now();
        let (mut cpu, mut node, mut both) = (0_u32, 0_u32, 0_u32);
        // SAFETY: writes two words, which are there.
        unsafe { libc::syscall(libc::SYS_getcpu, &raw mut cpu, &raw mut node, 0_usize) };
        // SAFETY: every simulated processor has the instruction.
        unsafe { core::arch::x86_64::__rdtscp(&raw mut both) };
        (cpu, node, both)
    });
    let places: Vec<_> = report.unwrap().results;
    assert!(places.iter().all(|&(cpu, node, both)| both == node << 12 | cpu), "{places:?}");
    assert!(places.iter().any(|&(_, node, _)| node > 0), "{places:?}");
    drop(session);
    let report = simulated(9, 2, |_| {
        thread::yield_now();
        // SAFETY: asks where it is.
        unsafe { libc::sched_getcpu() }
    });
    assert!(report.results.iter().all(|cpu| (0..2).contains(cpu)), "{:?}", report.results);
}

#[test]
fn random_numbers_are_the_seeds() {
    let draw = |seed| {
        let mut session =
            simulator::Simulation::on(&machine()).threads(5).seed(seed).start().unwrap();
        let drawn = session.each(|_| {
            let mut bytes = [0_u8; 20];
            // SAFETY: fills the array.
            let drawn = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), 20, 0) };
            assert_eq!(drawn, 20);
            bytes
        });
        drawn.unwrap().results
    };
    let (one, again, other) = (draw(1), draw(1), draw(2));
    assert_eq!(one, again);
    assert_ne!(one, other);
    assert_ne!(one[0], one[1]);
}

#[test]
fn later_runs_find_what_earlier_ones_left() {
    let mut session = simulator::Simulation::on(&machine()).threads(6).start().unwrap();
    let barrier = Barrier::new(6);
    for round in 1..=4 {
        let report = session.each(|thread| {
            LAZY.with_borrow_mut(|lazy| lazy.push_str(&thread.to_string()));
            barrier.wait();
            LAZY.with_borrow(String::clone)
        });
        for (thread, text) in report.unwrap().results.into_iter().enumerate() {
            assert_eq!(text, format!("begun{}", thread.to_string().repeat(round)));
        }
        assert_eq!(session.once(|| LAZY.with_borrow(String::len)).unwrap().results, [5 + round]);
    }
}

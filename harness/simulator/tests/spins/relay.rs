//! Threads that pass a number on in turn, each waiting in another way.

use core::arch::asm;
use core::arch::x86_64::{
    __cpuid, _mm_cmpeq_epi64, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi64x, _rdtsc,
};
use core::hint::{black_box, spin_loop};
use core::sync::atomic::{AtomicU64, Ordering, fence};
use core::time::Duration;
use std::time::Instant;

use super::{Line, Program};

/// What the threads of a relay share.
#[repr(align(4096))]
#[derive(Default)]
struct Track {
    /// Whose turn it is, twice.
    turn: [AtomicU64; 2],
    /// On the same line: what nobody waits for.
    beside: AtomicU64,
    _pad: Line,
    /// The turn once more, on another line.
    again: Line,
    /// Each sixteenth turn, on lines of their own.
    many: [Line; 16],
    /// The turn once more, across the border of two lines.
    split: Split,
}

#[repr(align(128))]
struct Split([u8; 128]);

impl Default for Split {
    fn default() -> Self {
        Self([0; 128])
    }
}

impl Split {
    fn place(&self) -> *mut u64 {
        (&raw const self.0).cast_mut().cast::<u8>().wrapping_add(60).cast()
    }

    #[inline(always)]
    fn get(&self) -> u64 {
        let value;
        // SAFETY: within the array; the simulated machine reads it in one step.
        unsafe { asm!("mov {}, [{}]", out(reg) value, in(reg) self.place(), options(nostack)) };
        value
    }

    fn set(&self, value: u64) {
        // SAFETY: within the array; only who has the turn writes.
        unsafe { asm!("mov [{}], {}", in(reg) self.place(), in(reg) value, options(nostack)) };
    }
}

fn pass(track: &Track, turn: u64) {
    track.split.set(turn);
    track.again.0.store(turn, Ordering::Relaxed);
    track.many[turn as usize % 16].0.store(turn, Ordering::Release);
    track.turn[1].store(turn, Ordering::Relaxed);
    track.turn[0].store(turn, Ordering::Release);
}

/// Passes a number on from thread to thread; all wait for its last value. `wait` waits for a value
/// and gives what it counted.
fn relay(
    threads: usize,
    wait: fn(&Track, u64) -> u64,
    pass: impl Fn(&Track, u64) + Sync + 'static,
) -> Program {
    let track = Box::new(Track::default());
    let turns = if threads > 16 { 128 / threads } else { 24 };
    Program::new(move |thread| {
        let mut counted = 0;
        for turn in (thread..turns).step_by(threads) {
            if turn > 0 {
                counted += wait(&track, turn as u64);
            }
            black_box(counted);
            pass(&track, turn as u64 + 1);
        }
        counted += wait(&track, turns as u64);
        counted
    })
}

macro_rules! waits {
    ($($name:ident($track:ident, $value:ident) $wait:block)*) => { $(
        pub(crate) fn $name(threads: usize) -> Program {
            fn wait($track: &Track, $value: u64) -> u64 $wait
            relay(threads, wait, pass)
        }
    )* };
}

#[inline(always)]
fn turn(track: &Track) -> u64 {
    track.turn[0].load(Ordering::Acquire)
}

#[inline(never)]
fn turn_of(track: &Track) -> u64 {
    turn(track)
}

waits! {
    with_pause(track, value) {
        while turn(track) != value {
            spin_loop();
        }
        0
    }
    without_pause(track, value) {
        while turn(track) != value {}
        0
    }
    with_lfence(track, value) {
        while turn(track) != value {
            // SAFETY: a fence.
            unsafe { asm!("lfence", options(nostack, preserves_flags)) };
        }
        0
    }
    with_mfence(track, value) {
        while turn(track) != value {
            fence(Ordering::SeqCst);
        }
        0
    }
    with_yield(track, value) {
        let mut yields = 0;
        while turn(track) != value {
            yields += 1;
            std::thread::yield_now();
        }
        yields
    }
    with_sleep(track, value) {
        let mut sleeps = 0;
        while turn(track) != value {
            sleeps += 1;
            std::thread::sleep(Duration::from_micros(3));
        }
        sleeps
    }
    until_a_tick(track, value) {
        let mut late = 0;
        loop {
            // SAFETY: reads the clock.
            let deadline = unsafe { _rdtsc() } + 1000;
            // SAFETY: reads the clock.
            while unsafe { _rdtsc() } < deadline {
                spin_loop();
                if turn(track) == value {
                    return late;
                }
            }
            late += 1;
        }
    }
    until_an_instant(track, value) {
        let began = Instant::now();
        while turn(track) != value {
            if began.elapsed() > Duration::from_secs(1) {
                return u64::MAX;
            }
        }
        0
    }
    by_vector(track, value) {
        // SAFETY: SSE2, which every processor has.
        let wanted = unsafe { _mm_set1_epi64x(value.cast_signed()) };
        loop {
            let place = (&raw const track.turn).cast();
            // SAFETY: 16 aligned bytes; the simulated machine reads them in one step.
            let both = unsafe { _mm_load_si128(black_box(place)) };
            // SAFETY: SSE2.
            let equal = unsafe { _mm_cmpeq_epi64(both, wanted) };
            // SAFETY: SSE2.
            if unsafe { _mm_movemask_epi8(equal) } == 0xffff {
                return 0;
            }
            spin_loop();
        }
    }
    counting_in_a_vector(track, value) {
        let counted: u64;
        // SAFETY: reads the turn; counts rounds in a vector register alone.
        unsafe {
            asm!(
                "pxor xmm5, xmm5", "pcmpeqd xmm6, xmm6", "2:", "psubq xmm5, xmm6", "pause",
                "cmp [{turn}], {value}", "jne 2b", "movq {counted}, xmm5",
                turn = in(reg) &raw const track.turn, value = in(reg) value,
                counted = out(reg) counted, out("xmm5") _, out("xmm6") _, options(nostack),
            );
        }
        counted
    }
    counting_in_a_coprocessor(track, value) {
        let mut counted = 0_u64;
        // SAFETY: reads the turn; counts rounds in the x87 unit alone, which is left empty.
        unsafe {
            asm!(
                "fldz", "2:", "fld1", "faddp", "pause", "cmp [{turn}], {value}", "jne 2b",
                "fistp qword ptr [{counted}]",
                turn = in(reg) &raw const track.turn, value = in(reg) value,
                counted = in(reg) &raw mut counted, options(nostack),
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        counted
    }
    counting_in_a_register(track, value) {
        let mut counted = 0_u64;
        while turn(track) != value {
            counted += 1;
            spin_loop();
        }
        counted
    }
    counting_in_half_a_register(track, value) {
        let counted: u64;
        // SAFETY: reads the turn.
        unsafe {
            asm!(
                "xor eax, eax", "2:", "inc ah", "pause", "cmp [{turn}], {value}", "jne 2b",
                turn = in(reg) &raw const track.turn, value = in(reg) value,
                out("rax") counted, options(nostack),
            );
        }
        counted
    }
    counting_in_a_flag(track, value) {
        let counted: u64;
        // SAFETY: reads the turn; complements the carry each round, which nothing else changes.
        unsafe {
            asm!(
                "xor eax, eax", "xor edx, edx", "2:", "pause", "cmc", "mov rcx, [{turn}]",
                "lea rcx, [rcx + {minus}]", "jrcxz 3f", "jmp 2b", "3:", "setc al",
                turn = in(reg) &raw const track.turn, minus = in(reg) value.wrapping_neg(),
                out("rax") counted, out("rcx") _, out("rdx") _, options(nostack),
            );
        }
        counted
    }
    counting_in_memory(track, value) {
        let mut counted = 0_u64;
        while turn(track) != value {
            counted += 1;
            black_box(&mut counted);
            spin_loop();
        }
        counted
    }
    counting_to_four(track, value) {
        let mut counted = 0_u64;
        while turn(track) != value {
            counted = (counted + 1) & 3;
            spin_loop();
        }
        counted
    }
    counting_in_the_direction(track, value) {
        let counted: u64;
        // SAFETY: reads the turn; the direction flag is cleared again.
        unsafe {
            asm!(
                "2:", "std", "pause", "cmp [{turn}], {value}", "je 3f", "cld", "pause",
                "cmp [{turn}], {value}", "jne 2b", "3:", "pushfq", "cld", "pop {counted}",
                "and {counted}, 0x400",
                turn = in(reg) &raw const track.turn, value = in(reg) value,
                counted = out(reg) counted,
            );
        }
        counted
    }
    in_loops_in_loops(track, value) {
        let mut outer = 0;
        loop {
            for _ in 0..black_box(3) {
                for _ in 0..2 {
                    if turn(track) == value {
                        return outer;
                    }
                }
                spin_loop();
            }
            outer += 1;
        }
    }
    on_two_lines(track, value) {
        while turn(track) != value || track.again.0.load(Ordering::Acquire) != value {
            spin_loop();
        }
        0
    }
    on_many_lines(track, value) {
        while !track.many.iter().any(|line| line.0.load(Ordering::Acquire) == value) {}
        while turn(track) != value {}
        0
    }
    across_two_lines(track, value) {
        while track.split.get() != value {
            spin_loop();
        }
        while turn(track) != value {}
        0
    }
    by_comparing_strings(track, value) {
        let both = [value; 2];
        // SAFETY: compares 16 bytes with 16 bytes until they are equal.
        unsafe {
            asm!(
                "2:", "mov rsi, {wanted}", "mov rdi, {turn}", "mov ecx, 16", "pause",
                "repe cmpsb", "jne 2b",
                wanted = in(reg) &raw const both, turn = in(reg) &raw const track.turn,
                out("rsi") _, out("rdi") _, out("rcx") _, options(nostack),
            );
        }
        0
    }
    by_adding_nothing(track, value) {
        while track.turn[0].fetch_add(0, Ordering::AcqRel) != value {
            spin_loop();
        }
        0
    }
    by_exchanging_equals(track, value) {
        let word = &track.turn[0];
        while word.compare_exchange(value, value, Ordering::AcqRel, Ordering::Acquire).is_err() {
            spin_loop();
        }
        0
    }
    in_a_function(track, value) {
        while turn_of(black_box(track)) != value {}
        0
    }
    through_a_pointer(track, value) {
        let look: fn(&Track) -> u64 = black_box(turn_of);
        while look(track) != value {
            spin_loop();
        }
        0
    }
    with_cpuid(track, value) {
        while turn(track) != value {
            black_box(__cpuid(0));
            spin_loop();
        }
        0
    }
    with_sqrt(track, value) {
        let mut root = 2.0_f64;
        while turn(track) != value {
            root = (root + 1.0).sqrt();
            spin_loop();
        }
        root.to_bits() % 1000
    }
}

/// Whoever has the turn counts on the line on which the others wait.
pub(crate) fn beside_a_counter(threads: usize) -> Program {
    fn wait(track: &Track, value: u64) -> u64 {
        while turn(track) != value {
            spin_loop();
        }
        track.beside.load(Ordering::Relaxed)
    }
    relay(threads, wait, |track, next| {
        for _ in 0..20 {
            let beside = track.beside.load(Ordering::Relaxed);
            track.beside.store(beside + 1, Ordering::Relaxed);
            black_box((0..20).fold(next, |sum, i| black_box(sum * 3 + i)));
        }
        pass(track, next);
    })
}

/// The kernel passes the number on: it reads a file into the word.
pub(crate) fn on_what_the_kernel_writes(threads: usize) -> Program {
    fn wait(track: &Track, value: u64) -> u64 {
        while turn(track) != value {
            spin_loop();
        }
        0
    }
    // SAFETY: a name with its terminator.
    let file = unsafe { libc::memfd_create(c"numbers".as_ptr(), 0) };
    let numbers: Vec<u8> = (0..1024_u64).flat_map(u64::to_ne_bytes).collect();
    // SAFETY: the bytes of the vector.
    unsafe { libc::write(file, numbers.as_ptr().cast(), numbers.len()) };
    relay(threads, wait, move |track, next| {
        let place = (&raw const track.turn[0]).cast_mut().cast();
        // SAFETY: fills the word.
        let read = unsafe { libc::pread(file, place, 8, 8 * next as i64) };
        assert_eq!(read, 8);
    })
}

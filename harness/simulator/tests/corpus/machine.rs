//! Instructions compilers rarely choose, written out.

use std::arch::asm;
use std::arch::is_x86_feature_detected;
use std::cell::UnsafeCell;
use std::hint::black_box;

use super::{Random, mix, mix_bytes};

#[inline(never)]
pub(crate) fn x87(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        // Exact in 53 bits and in 64, so that the precision of the stack does not matter.
        let (a, b, mut result) = (round as f64 + 0.5, 3.25_f64, 0.0_f64);
        let mut whole = 0_u64;
        // SAFETY: reads and writes the operands; the register stack is left as found.
        unsafe {
            asm!(
                "fld qword ptr [{a}]", "fadd qword ptr [{b}]", "fld st(0)", "fmul st(0), st(1)",
                "fxch", "fchs", "fabs", "fsubp st(1), st(0)", "fld1", "faddp st(1), st(0)",
                "fst qword ptr [{result}]", "fistp qword ptr [{whole}]",
                a = in(reg) &raw const a, b = in(reg) &raw const b,
                result = in(reg) &raw mut result, whole = in(reg) &raw mut whole,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            );
        }
        sum = mix(mix(sum, result.to_bits()), whole);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn rep_movsb(ops: u64) -> u64 {
    let from: [u8; 80] = black_box(std::array::from_fn(|place| place as u8 * 3));
    let mut sum = 0;
    for round in 0..ops {
        for count in [0_usize, 1, 5, 64, (round % 80) as usize] {
            let mut to = [0_u8; 80];
            // SAFETY: `count` bytes fit in both arrays.
            unsafe {
                asm!(
                    "rep movsb",
                    inout("rcx") count => _, inout("rsi") from.as_ptr() => _,
                    inout("rdi") to.as_mut_ptr() => _, options(nostack, preserves_flags),
                );
            }
            sum = mix_bytes(sum, &to[..count]);
        }
        let mut words = [0_u64; 10];
        // SAFETY: seven words fit in both arrays.
        unsafe {
            asm!(
                "rep movsq", "rep movsd",
                inout("rcx") 7_usize => _, inout("rsi") from.as_ptr() => _,
                inout("rdi") words.as_mut_ptr() => _, options(nostack, preserves_flags),
            );
        }
        sum = words.iter().fold(sum, |sum, &word| mix(sum, word));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn rep_movsb_backwards(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut bytes: [u8; 64] = black_box(std::array::from_fn(|place| place as u8));
        let count = 20 + (round % 20) as usize;
        let last = bytes.as_mut_ptr().wrapping_add(count - 1);
        // SAFETY: moves `count` bytes up by five within the array; the direction is restored.
        unsafe {
            asm!(
                "std", "rep movsb", "cld",
                inout("rcx") count => _, inout("rsi") last => _,
                inout("rdi") last.wrapping_add(5) => _,
            );
        }
        sum = mix_bytes(sum, &bytes);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn rep_stosq(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        for count in [0_usize, 1, 5, 16] {
            let mut words = black_box([3_u64; 16]);
            // SAFETY: `count` words fit.
            unsafe {
                asm!(
                    "rep stosq",
                    inout("rcx") count => _, inout("rdi") words.as_mut_ptr() => _,
                    in("rax") round, options(nostack, preserves_flags),
                );
            }
            // SAFETY: as above, for bytes.
            unsafe {
                asm!(
                    "rep stosb",
                    inout("rcx") count => _, inout("rdi") words.as_mut_ptr() => _,
                    in("al") 9_u8, options(nostack, preserves_flags),
                );
            }
            sum = words.iter().fold(sum, |sum, &word| mix(sum, word));
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn repe_cmpsb(ops: u64) -> u64 {
    let one = black_box([7_u8; 40]);
    let mut sum = 0;
    for round in 0..ops {
        let mut two = black_box([7_u8; 40]);
        two[(round % 50).min(39) as usize] ^= u8::from(round % 50 < 40);
        for count in [0_usize, 1, 5, 40] {
            let (rest, equal): (usize, u8);
            // SAFETY: reads `count` bytes of both arrays.
            unsafe {
                asm!(
                    "cmp rcx, rcx", "repe cmpsb", "sete {equal}",
                    equal = out(reg_byte) equal,
                    inout("rcx") count => rest, inout("rsi") one.as_ptr() => _,
                    inout("rdi") two.as_ptr() => _, options(nostack),
                );
            }
            sum = mix(sum, rest as u64 * 2 + u64::from(equal));
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn repne_scasb(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut bytes = black_box([7_u8; 40]);
        bytes[(round % 40) as usize] = 0;
        for count in [0_usize, 1, 5, 40] {
            for wanted in [0_u8, 9] {
                let rest: usize;
                // SAFETY: reads at most `count` bytes of the array.
                unsafe {
                    asm!(
                        "repne scasb",
                        inout("rcx") count => rest, inout("rdi") bytes.as_ptr() => _,
                        in("al") wanted, options(nostack),
                    );
                }
                sum = mix(sum, rest as u64);
            }
            let rest: usize;
            // SAFETY: reads at most `count` bytes of the array.
            unsafe {
                asm!(
                    "repe scasb",
                    inout("rcx") count => rest, inout("rdi") bytes.as_ptr() => _,
                    in("al") 7_u8, options(nostack),
                );
            }
            sum = mix(sum, rest as u64);
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn single_string_steps(ops: u64) -> u64 {
    let from = black_box([5_u64, 6, 7, 8]);
    let mut sum = 0;
    for round in 0..ops * 5 {
        let mut to = [0_u64; 4];
        let loaded: u64;
        // SAFETY: three words are read and written, within both arrays.
        unsafe {
            asm!(
                "movsq", "lodsq", "add rax, {round}", "stosq", "scasb",
                round = in(reg) round, out("rax") loaded,
                inout("rsi") from.as_ptr() => _, inout("rdi") to.as_mut_ptr() => _,
                options(nostack),
            );
        }
        sum = mix(sum, loaded ^ to[0] ^ to[1]);
    }
    black_box(sum)
}

#[repr(align(16))]
struct Pair(UnsafeCell<[u64; 2]>);

#[inline(never)]
pub(crate) fn compare_exchange_16(ops: u64) -> u64 {
    let pair = Pair(UnsafeCell::new([0, 0]));
    let (mut low, mut high, mut exchanged) = (0_u64, 0_u64, 0_u64);
    for round in 0..ops * 20 {
        let (new_low, new_high) = (low.wrapping_add(round), high ^ round.rotate_left(7));
        // Every third attempt expects the wrong value.
        let expected = low ^ u64::from(round % 3 == 0);
        let success: u8;
        // SAFETY: the pair is aligned to sixteen; rbx is restored.
        unsafe {
            asm!(
                "xchg r8, rbx", "lock cmpxchg16b [r9]", "sete r10b", "mov rbx, r8",
                inout("r8") new_low => _, in("r9") pair.0.get(),
                out("r10b") success, in("rcx") new_high,
                inout("rax") expected => low, inout("rdx") high => high, options(nostack),
            );
        }
        if success == 1 {
            (low, high) = (expected.wrapping_add(round), new_high);
            exchanged += 1;
        }
    }
    black_box(mix(mix(low, high), exchanged))
}

#[inline(never)]
pub(crate) fn exchange_and_add(ops: u64) -> u64 {
    let (mut one, mut two, mut sum) = (1_u64, 2_u32, 0);
    for round in 0..ops * 20 {
        let (mut a, mut b) = (round, round + 1);
        // SAFETY: both addresses are of locals no one else touches.
        unsafe {
            asm!(
                "xchg [{one}], {a}", "lock xadd [{two}], {b:e}", "lock xadd [{one}], {a}",
                "xchg {a}, {b}",
                one = in(reg) &raw mut one, two = in(reg) &raw mut two,
                a = inout(reg) a, b = inout(reg) b, options(nostack),
            );
        }
        sum = mix(mix(sum, a), b);
    }
    black_box(mix(mix(sum, one), u64::from(two)))
}

#[inline(never)]
pub(crate) fn locked_operations(ops: u64) -> u64 {
    let (mut word, mut sum) = (0x1234_u64, 0);
    for round in 0..ops * 10 {
        let carry: u8;
        // SAFETY: the address is of a local no one else touches.
        unsafe {
            asm!(
                "lock add [{word}], {round}", "lock inc qword ptr [{word}]",
                "lock bts qword ptr [{word}], 5", "setc {carry}", "lock neg qword ptr [{word}]",
                "lock btr qword ptr [{word}], 9", "adc {carry}, 0",
                "lock sub byte ptr [{word}], 3", "lock not dword ptr [{word}]",
                "lock xor word ptr [{word}], 0x55", "lock btc qword ptr [{word}], 40",
                word = in(reg) &raw mut word, round = in(reg) round,
                carry = out(reg_byte) carry, options(nostack),
            );
        }
        sum = mix(sum, word + u64::from(carry));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn flag_transfers(ops: u64) -> u64 {
    const STATUS: u64 = 0x8D5;
    let (mut sum, mut random) = (0, Random::new(2));
    for _ in 0..ops * 10 {
        let (a, b) = (random.next(), random.next() >> 1);
        let (flags, taken, stored): (u64, u16, u64);
        // SAFETY: pushes are matched by pops; only status flags change.
        unsafe {
            asm!(
                "add {a}, {b}", "pushfq", "pop {flags}", "lahf", "mov {taken:x}, ax",
                "xor ah, 0x41", "sahf", "pushfq", "pop {stored}",
                "push {stored}", "popfq", "adc {a}, 0", "cmc", "sbb {a}, 1", "stc", "rcl {a}, 1",
                "clc", "rcr {a}, 3",
                a = inout(reg) a => _, b = in(reg) b, flags = out(reg) flags,
                taken = out(reg) taken, stored = out(reg) stored, inout("rax") 0_u64 => _,
            );
        }
        sum = mix(sum, flags & STATUS);
        sum = mix(sum, u64::from(taken) ^ stored & STATUS);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn enter_leave(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 20 {
        let value: u64;
        // SAFETY: the frame is left before the end, its slots are written before they are read.
        unsafe {
            asm!(
                "enter 48, 0", "mov [rbp - 8], {round}", "mov [rsp], {round}",
                "inc qword ptr [rbp - 8]", "mov {value}, [rbp - 8]", "add {value}, [rsp]", "leave",
                round = in(reg) round, value = out(reg) value,
            );
        }
        sum = mix(sum, value);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn loop_and_jrcxz(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        for count in [0, 1, 7, round % 30] {
            let total: u64;
            // SAFETY: registers only.
            unsafe {
                asm!(
                    "xor {total:e}, {total:e}", "jrcxz 3f",
                    "2:", "add {total}, rcx", "loop 2b",
                    "3:", "mov ecx, 9",
                    "4:", "inc {total}", "test {total:l}, 7", "loopne 4b",
                    "5:", "dec {total}", "test {total:l}, 1", "loope 5b",
                    "jecxz 6f", "inc {total}", "6:",
                    total = out(reg) total, inout("rcx") count => _, options(nostack),
                );
            }
            sum = mix(sum, total);
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn cmov_setcc(ops: u64) -> u64 {
    let (mut sum, mut random) = (0, Random::new(4));
    for _ in 0..ops * 10 {
        let (a, b) = (random.next() >> (random.next() % 64), random.next());
        let (mut x, mut y): (u64, u64) = (a, b);
        let (below, less, sign, parity): (u8, u8, u8, u8);
        // SAFETY: registers only.
        unsafe {
            asm!(
                "cmp {x}, {y}", "setb {below}", "setl {less}", "sets {sign}", "setp {parity}",
                "cmovb {x}, {y}", "cmovg {y}, {x}", "cmovnp {x:e}, {y:e}", "cmovo {y}, {x}",
                "test {x}, {y}", "cmovz {x}, {y}", "cmovns {y}, {x}", "cmovbe {x:x}, {y:x}",
                x = inout(reg) x, y = inout(reg) y, below = out(reg_byte) below,
                less = out(reg_byte) less, sign = out(reg_byte) sign,
                parity = out(reg_byte) parity, options(nostack),
            );
        }
        sum = mix(mix(sum, x), y);
        sum = mix_bytes(sum, &[below, less, sign, parity]);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn flag_arithmetic(ops: u64) -> u64 {
    let (mut sum, mut random) = (0, Random::new(8));
    for round in 0..ops * 10 {
        let (mut low, mut high) = (random.next(), random.next());
        // SAFETY: registers only; a shift by a count of zero keeps the flags it finds.
        unsafe {
            asm!(
                "add {low}, {other}", "adc {high}, {other}", "shl {low}, cl", "sbb {high}, 5",
                "shld {low}, {high}, 9", "shrd {high}, {low}, cl", "rol {low}, cl",
                "adc {high:e}, {low:e}", "sar {low}, cl", "rcr {high}, cl", "bt {low}, {other}",
                "adc {low}, 0", "neg {high}", "sbb {low}, {low}", "xor {low}, {high}",
                low = inout(reg) low, high = inout(reg) high, other = in(reg) round,
                in("rcx") round % 64, options(nostack),
            );
        }
        sum = mix(mix(sum, low), high);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn call_and_ret(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        let value: u64;
        // SAFETY: every call returns, every push is popped.
        unsafe {
            asm!(
                "xor {value:e}, {value:e}", "lea {target}, [rip + 2f]", "call 2f",
                "call {target}", "push {target}", "call qword ptr [rsp]", "pop {target}",
                "lea {target}, [rip + 4f]", "push {value}", "push {target}", "ret 8",
                "2:", "add {value}, {round}", "test {value:l}, 1", "jz 3f", "inc {value}",
                "3:", "ret",
                "4:", "lea {value}, [{value} + {value} * 4 + 3]",
                value = out(reg) value, target = out(reg) _, round = in(reg) round,
            );
        }
        sum = mix(sum, value);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn jump_table(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        let value: u64;
        // SAFETY: the place jumped to is one of four, eight bytes apart.
        unsafe {
            asm!(
                "lea {value}, [rip + 2f]", "lea {value}, [{value} + {which} * 8]", "jmp {value}",
                ".balign 8", "2:", "mov {value:e}, 11", "jmp 3f",
                ".balign 8", "mov {value:e}, 22", "jmp 3f",
                ".balign 8", "mov {value:e}, 33", "jmp 3f",
                ".balign 8", "mov {value:e}, 44",
                "3:",
                value = out(reg) value, which = in(reg) round % 4, options(nostack),
            );
        }
        sum = mix(sum, value);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn stack_operations(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        let (mut cell, value) = (round, round + 1);
        let result: u64;
        // SAFETY: every push is matched by a pop of the same size.
        unsafe {
            asm!(
                "push {value}", "push qword ptr [{cell}]", "push -5", "push {value:x}",
                "pop {result:x}", "pop {result}", "pop qword ptr [{cell}]", "pop {value}",
                "sub rsp, 64", "mov [rsp + 8], {value}", "add {result}, [rsp + 8]",
                "lea rsp, [rsp + 64]", "xchg {result}, {value}", "movsx {value}, {result:l}",
                value = inout(reg) value => _, cell = in(reg) &raw mut cell,
                result = out(reg) result,
            );
        }
        sum = mix(mix(sum, cell), result);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn bit_deposit(ops: u64) -> u64 {
    if !(is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt"))
    {
        return black_box(ops);
    }
    let (mut sum, mut random) = (0, Random::new(6));
    for _ in 0..ops * 10 {
        let (mut value, mask) = (random.next(), random.next());
        let (count, zeros): (u64, u64);
        // SAFETY: the features were detected; registers only.
        unsafe {
            asm!(
                "pdep {value}, {value}, {mask}", "popcnt {count}, {value}",
                "lzcnt {zeros}, {value}", "rorx {value}, {value}, 13",
                "pext {value}, {value}, {mask}", "shlx {value}, {value}, {count}",
                "andn {value}, {zeros}, {value}", "blsr {value}, {value}",
                "tzcnt {mask:e}, {value:e}", "bextr {value}, {value}, {mask}",
                "bzhi {value}, {value}, {count}", "bsf {zeros}, {mask}", "bsr {count}, {count}",
                value = inout(reg) value, mask = inout(reg) mask => _,
                count = out(reg) count, zeros = out(reg) zeros, options(nostack),
            );
        }
        // A scan of zero leaves its target undefined; counts of 1 to 64 have a highest bit.
        black_box(zeros);
        sum = mix(mix(sum, value), count);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn wide_multiply_divide(ops: u64) -> u64 {
    let (mut sum, mut random) = (0, Random::new(10));
    for _ in 0..ops * 10 {
        let (a, b) = (random.next(), random.next() | 1);
        let (quotient, remainder): (u64, u64);
        // SAFETY: the high half is below the divisor, so the quotient fits.
        unsafe {
            asm!(
                "mul {b}", "shr rdx, 1", "cmp rdx, {b}", "cmovae rdx, {zero}", "div {b}",
                "imul rax, rdx, 7", "imul rax, {b}", "cqo", "idiv {b}",
                b = in(reg) b, zero = in(reg) 0_u64,
                inout("rax") a => quotient, out("rdx") remainder, options(nostack),
            );
        }
        let narrow: u32;
        // SAFETY: the divisor is not zero and the dividend has a high half of zero.
        unsafe {
            asm!(
                "xor edx, edx", "div {b:e}", "cdq", "mov {narrow:e}, eax", "movzx eax, ax",
                "mov dl, 0x81", "div dl", "movsx ax, al", "imul dl",
                b = in(reg) b, narrow = out(reg) narrow,
                inout("rax") a >> 40 => _, out("rdx") _, options(nostack),
            );
        }
        sum = mix(mix(sum, quotient ^ u64::from(narrow)), remainder);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn pauses_and_fences(ops: u64) -> u64 {
    let (mut sum, mut cell) = (0, 0_u64);
    for round in 0..ops * 5 {
        // SAFETY: waits and fences; the stores go to a local.
        unsafe {
            asm!(
                "pause", "mfence", "lfence", "sfence", "movnti [{cell}], {round}", "pause",
                "prefetcht0 [{cell}]", "clflush [{cell}]", "nop word ptr [rax + rax]", "endbr64",
                "lock or dword ptr [rsp], 0",
                cell = in(reg) &raw mut cell, round = in(reg) round,
            );
        }
        sum = mix(sum, cell);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn cpuid_and_clock(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 5 {
        // What they say differs between machines: only that they answer is kept.
        let vendor = std::arch::x86_64::__cpuid(0);
        let (low, high): (u64, u64);
        // SAFETY: reads the time stamp counter twice.
        unsafe {
            asm!(
                "rdtsc", "mov {high}, rdx", "rdtsc", out("rax") low, out("rdx") _,
                high = out(reg) high, options(nostack, nomem, preserves_flags),
            );
        }
        sum = mix(sum, round + u64::from(vendor.eax != 0) + u64::from(low.max(high) != 0));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn high_byte_registers(ops: u64) -> u64 {
    let (mut sum, mut random) = (0, Random::new(12));
    for _ in 0..ops * 10 {
        let mut value = random.next();
        // SAFETY: registers only.
        unsafe {
            asm!(
                "mov ah, al", "add ah, dl", "xchg al, ah", "movzx ecx, ah", "sub dh, cl",
                "adc al, dh", "bswap rax", "movsxd rcx, eax", "cwde", "cdqe", "shl dh, 3",
                "xor ch, dh", "add rax, rcx",
                inout("rax") value, inout("rdx") value >> 7 => _, out("rcx") _, options(nostack),
            );
        }
        sum = mix(sum, value);
    }
    black_box(sum)
}

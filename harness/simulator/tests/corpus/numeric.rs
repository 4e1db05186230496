//! Floats, wide integers, bits and hashes.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;

use super::{Random, mix};

#[inline(never)]
pub(crate) fn float64_libm(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 2 {
        let x = black_box(0.37 + round as f64 * 1.25);
        for value in [
            x.sqrt(),
            x.sin(),
            x.cos(),
            x.tan(),
            (x / 50.0).exp(),
            x.ln(),
            x.log2(),
            x.powf(1.3),
            x.cbrt(),
            x.atan2(2.0),
            x.hypot(3.0),
            x.sinh() / 2.0,
            (x * 1e9).sin(),
            x % 0.7,
        ] {
            sum = mix(sum, value.to_bits());
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn float32_libm(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 3 {
        let x = black_box(0.12_f32 + round as f32 * 0.75);
        let values = [x.sqrt(), x.sin(), x.cos(), (x / 9.0).exp(), x.ln(), x.powf(0.4), x.exp2()];
        for value in values {
            sum = mix(sum, u64::from(value.to_bits()));
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn float_rounding(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 5 {
        let x = black_box(round as f64 * 0.3 - 7.7);
        for value in [x.floor(), x.ceil(), x.round(), x.trunc(), x.fract(), x.round_ties_even()] {
            sum = mix(sum, value.to_bits());
        }
        sum = mix(sum, x.max(1.0).to_bits() ^ x.clamp(-2.0, 2.0).to_bits());
        sum = mix(sum, x.mul_add(3.0, 1.0).to_bits() ^ x.abs().copysign(-x).to_bits());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn float_conversions(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 5 {
        let bits = mix(round, 3);
        let value = black_box(bits as f64);
        sum = mix(sum, value as u64 ^ (value as i32) as u64 ^ u64::from(value as u8));
        sum = mix(sum, u64::from((value as f32).to_bits()) ^ (value as u128 >> 3) as u64);
        sum = mix(sum, (bits as i64 as f32).to_bits().into());
        sum = mix(sum, (f64::from(bits as u32) * 1e-300 * 1e-20).to_bits());
        sum += u64::from(f64::from_bits(bits).is_nan());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn mandelbrot(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        for column in 0..8 {
            let (re, im) = (f64::from(column) * 0.3 - 2.0, (round % 20) as f64 * 0.1 - 1.0);
            let (mut x, mut y, mut steps) = (0.0_f64, 0.0_f64, 0);
            while x * x + y * y <= 4.0 && steps < 60 {
                (x, y) = (x * x - y * y + re, 2.0 * x * y + im);
                steps += 1;
            }
            sum = mix(sum, steps);
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn matrix_product(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let one: [[f32; 8]; 8] = black_box([[round as f32 * 0.5 + 1.0; 8]; 8]);
        let two: [[f32; 8]; 8] = black_box([[0.25; 8]; 8]);
        let mut product = [[0.0_f32; 8]; 8];
        for (row, target) in one.iter().zip(&mut product) {
            for (factor, line) in row.iter().zip(&two) {
                for (cell, value) in target.iter_mut().zip(line) {
                    *cell += factor * value;
                }
            }
        }
        sum = mix(sum, u64::from(black_box(product)[3][5].to_bits()));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn n_body(ops: u64) -> u64 {
    let mut bodies = black_box([
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0], 39.5),
        ([4.8, -1.2, -0.1], [0.6, 2.8, -0.02], 0.037),
        ([8.3, 4.1, -0.4], [-1.0, 1.8, 0.008], 0.011_f64),
    ]);
    for _ in 0..ops * 5 {
        for i in 0..bodies.len() {
            for j in i + 1..bodies.len() {
                let delta: [f64; 3] = std::array::from_fn(|k| bodies[i].0[k] - bodies[j].0[k]);
                let square: f64 = delta.iter().map(|d| d * d).sum();
                let strength = 0.01 / (square * square.sqrt());
                for (k, d) in delta.iter().enumerate() {
                    bodies[i].1[k] -= d * bodies[j].2 * strength;
                    bodies[j].1[k] += d * bodies[i].2 * strength;
                }
            }
        }
        for (place, speed, _) in &mut bodies {
            place.iter_mut().zip(speed.iter()).for_each(|(x, v)| *x += 0.01 * v);
        }
    }
    black_box(bodies.iter().fold(0, |sum, body| mix(sum, body.0[0].to_bits())))
}

#[inline(never)]
pub(crate) fn wide_division(ops: u64) -> u64 {
    let mut random = Random::new(9);
    let mut sum = 0;
    for round in 0..ops * 5 {
        let wide = u128::from(random.next()) << 64 | u128::from(random.next());
        let divisors = [u128::from(round) + 3, u128::from(random.next()), wide >> (round % 60 + 1)];
        for divisor in divisors {
            let divisor = black_box(divisor) | 1;
            sum = mix(sum, (wide / divisor) as u64 ^ (wide % divisor) as u64);
            sum = mix(sum, (wide as i128 / (divisor >> 1 | 1) as i128) as u64);
        }
        sum = mix(sum, (wide.wrapping_mul(wide) >> 64) as u64);
        sum = mix(sum, wide.leading_zeros().into());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn checked_arithmetic(ops: u64) -> u64 {
    let mut random = Random::new(21);
    let mut sum = 0_u64;
    for _ in 0..ops * 10 {
        let (a, b) = (black_box(random.next() as i64), black_box(random.next() as i64 >> 31));
        sum = mix(sum, a.checked_add(b).unwrap_or(1) as u64);
        sum = mix(sum, a.saturating_mul(b) as u64);
        sum = mix(sum, a.overflowing_sub(b).0 as u64);
        sum = mix(sum, a.checked_div(b).unwrap_or(2) as u64 ^ a.rem_euclid(b | 1) as u64);
        sum = mix(sum, u64::from(a.unsigned_abs().isqrt() as u32));
        sum = mix(sum, (a as i32).wrapping_pow(5) as u64 ^ u64::from(a.unsigned_abs().ilog10()));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn bit_tricks(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 10 {
        let x = black_box(mix(round, 1));
        sum = mix(sum, u64::from(x.count_ones() + x.leading_zeros() + x.trailing_zeros()));
        sum = mix(sum, x.reverse_bits() ^ x.swap_bytes() ^ (x & x.wrapping_neg()));
        sum = mix(sum, (x >> 40).next_power_of_two());
        sum = mix(sum, x.rotate_left((round % 64) as u32) ^ (x as u16).rotate_right(5) as u64);
        let gray = x ^ x >> 1;
        let mut bits = gray;
        while bits > u64::MAX >> 5 {
            bits &= bits - 1;
        }
        sum = mix(sum, bits);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn prime_sieve(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let limit = black_box(300 + (round % 10) as usize);
        let mut composite = vec![false; limit];
        for number in 2..limit {
            if !composite[number] {
                sum = mix(sum, number as u64);
                for multiple in (number * number..limit).step_by(number) {
                    composite[multiple] = true;
                }
            }
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn sip_hash_std(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 2 {
        let mut hasher = DefaultHasher::new();
        (round, "some text", [1_u8, 2, 3], Some('c'), -5_i16).hash(&mut hasher);
        hasher.write(black_box(b"seventeen bytes !"));
        sum = mix(sum, hasher.finish());
    }
    black_box(sum)
}

fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32).wrapping_add(v[3]);
    v[2] = v[2].wrapping_add(v[1]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}

/// SipHash-2-4.
fn sip_hash(keys: [u64; 2], message: &[u8]) -> u64 {
    let mut v = [
        keys[0] ^ 0x736f_6d65_7073_6575,
        keys[1] ^ 0x646f_7261_6e64_6f6d,
        keys[0] ^ 0x6c79_6765_6e65_7261,
        keys[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut absorb = |word: u64| {
        v[3] ^= word;
        sip_round(&mut v);
        sip_round(&mut v);
        v[0] ^= word;
    };
    let (words, rest) = message.as_chunks::<8>();
    words.iter().for_each(|word| absorb(u64::from_le_bytes(*word)));
    let last = rest.iter().rev().fold(0, |last, &byte| last << 8 | u64::from(byte));
    absorb((message.len() as u64) << 56 | last);
    v[2] ^= 0xFF;
    (0..4).for_each(|_| sip_round(&mut v));
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

#[inline(never)]
pub(crate) fn sip_hash_own(ops: u64) -> u64 {
    let bytes: [u8; 64] = black_box(std::array::from_fn(|place| place as u8));
    let mut sum = 0;
    for round in 0..ops * 2 {
        sum = mix(sum, sip_hash([round, 7], &bytes[..(round % 64) as usize]));
    }
    black_box(sum)
}

/// Rounds shaped like SHA-256's: a message schedule, then 64 steps over eight words.
#[inline(never)]
pub(crate) fn sha_mixing(ops: u64) -> u64 {
    let mut state: [u32; 8] = black_box(std::array::from_fn(|i| 0x6a09_e667 ^ (i as u32 * 77)));
    for round in 0..ops {
        let mut schedule = [round as u32; 64];
        for i in 16..64 {
            let (x, y) = (schedule[i - 15], schedule[i - 2]);
            schedule[i] = (x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3)
                .wrapping_add(y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10)
                .wrapping_add(schedule[i - 16])
                .wrapping_add(schedule[i - 7]);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for word in schedule {
            let one = (e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
                .wrapping_add((e & f) ^ (!e & g))
                .wrapping_add(h)
                .wrapping_add(word);
            let two = (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22))
                .wrapping_add((a & b) ^ (a & c) ^ (b & c));
            (h, g, f, e) = (g, f, e, d.wrapping_add(one));
            (d, c, b, a) = (c, b, a, one.wrapping_add(two));
        }
        for (word, added) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *word = word.wrapping_add(added);
        }
    }
    black_box(state.iter().fold(0, |sum, &word| mix(sum, u64::from(word))))
}

#[inline(never)]
pub(crate) fn crc_table(ops: u64) -> u64 {
    let table: [u32; 256] = std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |crc, _| crc >> 1 ^ (crc & 1).wrapping_neg() & 0xEDB8_8320)
    });
    let table = black_box(table);
    let mut crc = !0_u32;
    for round in 0..ops * 200 {
        crc = table[((crc ^ round as u32) & 0xFF) as usize] ^ crc >> 8;
    }
    black_box(u64::from(crc))
}

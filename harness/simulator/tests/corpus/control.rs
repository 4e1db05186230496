//! Panics, dispatch, recursion and interpreters.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};

use super::{Random, mix};

#[inline(never)]
fn throw(depth: u64) -> u64 {
    if depth == 0 {
        std::panic::resume_unwind(Box::new(41_u64));
    }
    throw(depth - 1) + black_box(depth)
}

#[inline(never)]
pub(crate) fn resume_unwind(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        sum = match catch_unwind(|| throw(round % 5)) {
            Ok(value) => mix(sum, value),
            Err(payload) => mix(sum, payload.downcast_ref::<u64>().map_or(1, |value| value + 1)),
        };
    }
    black_box(sum)
}

#[inline(never)]
fn fail(value: u64) -> u64 {
    assert!(black_box(value) > u64::MAX / 2, "value {value} is too small");
    let empty: &[u64] = black_box(&[]);
    empty[value as usize]
}

#[inline(never)]
pub(crate) fn panic_caught(ops: u64) -> u64 {
    set_hook(Box::new(|_| {}));
    let mut sum = 0;
    for round in 0..ops {
        let value = if round % 2 == 0 { round } else { u64::MAX };
        if let Err(payload) = catch_unwind(|| fail(value)) {
            sum = mix(sum, payload.downcast_ref::<String>().map_or(2, |text| text.len() as u64));
        }
        if let Err(payload) = catch_unwind(|| assert!(black_box(round) == u64::MAX, "a fixed text"))
        {
            sum = mix(sum, payload.downcast_ref::<&str>().map_or(3, |text| text.len() as u64));
        }
    }
    black_box(sum)
}

struct Guard<'a>(&'a mut u64, u64);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.0 = mix(*self.0, self.1 + u64::from(std::thread::panicking()));
    }
}

#[inline(never)]
fn guarded(sum: &mut u64, depth: u64) {
    let guard = Guard(sum, depth);
    let text = black_box(vec![depth; 3]);
    if depth == 0 {
        std::panic::resume_unwind(Box::new(()));
    }
    guarded(guard.0, depth - 1);
    black_box(text);
}

#[inline(never)]
pub(crate) fn panic_with_drops(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let caught = catch_unwind(AssertUnwindSafe(|| guarded(&mut sum, 2 + round % 3)));
        sum = mix(sum, u64::from(caught.is_err()));
    }
    black_box(sum)
}

trait Shape {
    fn area(&self) -> u64;
    fn scale(&mut self, by: u64);
}

struct Square(u64);
struct Rectangle(u64, u64);
struct Pile(Vec<Box<dyn Shape>>);

impl Shape for Square {
    fn area(&self) -> u64 {
        self.0.wrapping_mul(self.0)
    }
    fn scale(&mut self, by: u64) {
        self.0 = self.0.wrapping_mul(by) % 1000;
    }
}

impl Shape for Rectangle {
    fn area(&self) -> u64 {
        self.0.wrapping_mul(self.1)
    }
    fn scale(&mut self, by: u64) {
        self.1 = self.1.wrapping_mul(by) % 1000;
    }
}

impl Shape for Pile {
    fn area(&self) -> u64 {
        self.0.iter().map(|shape| shape.area()).sum()
    }
    fn scale(&mut self, by: u64) {
        self.0.iter_mut().for_each(|shape| shape.scale(by + 1));
    }
}

#[inline(never)]
pub(crate) fn dynamic_dispatch(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
        for turn in 0..12 {
            shapes.push(match (turn + round) % 3 {
                0 => Box::new(Square(turn)),
                1 => Box::new(Rectangle(turn, round)),
                _ => Box::new(Pile(vec![Box::new(Square(round)), Box::new(Rectangle(2, 3))])),
            });
        }
        for shape in &mut *black_box(&mut shapes) {
            shape.scale(3);
            sum = mix(sum, shape.area());
        }
    }
    black_box(sum)
}

fn double(value: u64) -> u64 {
    value.wrapping_mul(2)
}
fn square(value: u64) -> u64 {
    value.wrapping_mul(value)
}
fn invert(value: u64) -> u64 {
    !value
}
fn shift(value: u64) -> u64 {
    value >> 3
}

#[inline(never)]
pub(crate) fn function_pointers(ops: u64) -> u64 {
    let table: [fn(u64) -> u64; 4] = black_box([double, square, invert, shift]);
    let mut value = 5;
    for round in 0..ops * 20 {
        value = mix(table[(value >> 60) as usize % 4](value), round);
    }
    black_box(value)
}

#[inline(never)]
pub(crate) fn closures(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 2 {
        let mut steps: Vec<Box<dyn FnMut(u64) -> u64>> = Vec::new();
        for turn in 0..6 {
            let mut calls = 0;
            steps.push(Box::new(move |value| {
                calls += 1;
                value ^ (turn * calls + round)
            }));
        }
        for turn in 0..10 {
            sum = steps.iter_mut().fold(mix(sum, turn), |value, step| step(value));
        }
    }
    black_box(sum)
}

#[inline(never)]
fn fibonacci(n: u64) -> u64 {
    if black_box(n) < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

#[inline(never)]
fn ackermann(m: u64, n: u64) -> u64 {
    match (black_box(m), n) {
        (0, n) => n + 1,
        (m, 0) => ackermann(m - 1, 1),
        (m, n) => ackermann(m - 1, ackermann(m, n - 1)),
    }
}

#[inline(never)]
pub(crate) fn recursion(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        sum = mix(sum, fibonacci(8 + round % 4) + ackermann(2, round % 5));
    }
    black_box(sum)
}

#[inline(never)]
fn even(n: u64, visits: &mut u64) -> bool {
    *visits += 1;
    black_box(n) == 0 || odd(n - 1, visits)
}

#[inline(never)]
fn odd(n: u64, visits: &mut u64) -> bool {
    *visits += 2;
    black_box(n) != 0 && even(n - 1, visits)
}

#[inline(never)]
pub(crate) fn mutual_recursion(ops: u64) -> u64 {
    let mut visits = 0;
    for round in 0..ops {
        visits = mix(visits, u64::from(even(30 + round, &mut { visits })));
        let parity = odd(20 + round, &mut visits);
        visits += u64::from(parity);
    }
    black_box(visits)
}

/// One byte an instruction, operands on a stack of eight.
fn interpret(code: &[u8], input: u64) -> u64 {
    let mut stack = [0_u64; 8];
    let (mut top, mut sum, mut place, mut budget) = (0_usize, input, 0, 200);
    while place < code.len() && budget > 0 {
        let (a, b) = (stack[top % 8], stack[(top + 7) % 8]);
        let result = match code[place] % 32 {
            0 => a.wrapping_add(b),
            1 => a.wrapping_sub(b),
            2 => a.wrapping_mul(b),
            3 => a.checked_div(b).unwrap_or(1),
            4 => a.checked_rem(b).unwrap_or(2),
            5 => a & b,
            6 => a | b,
            7 => a ^ b,
            8 => !a,
            9 => a.wrapping_neg(),
            10 => a.rotate_left((b % 64) as u32),
            11 => a.rotate_right((b % 64) as u32),
            12 => a.wrapping_shl((b % 64) as u32),
            13 => a.wrapping_shr((b % 64) as u32),
            14 => a.swap_bytes(),
            15 => a.reverse_bits(),
            16 => u64::from(a < b),
            17 => u64::from(a == b),
            18 => u64::from(a.count_ones()),
            19 => u64::from(a.leading_zeros()),
            20 => u64::from(a.trailing_zeros()),
            21 => a.max(b),
            22 => a.min(b),
            23 => a.abs_diff(b),
            24 => u64::from(a as u8),
            25 => a as i16 as u64,
            26 => u64::from(a as u32),
            27 => a as i32 as u64,
            28 => {
                top += 1;
                sum
            }
            29 => {
                top += 7;
                a
            }
            30 => {
                place = place.saturating_sub(usize::from(a % 3 == 0) * 5);
                b
            }
            _ => place as u64,
        };
        stack[top % 8] = result;
        sum = mix(sum, result);
        place += 1;
        budget -= 1;
    }
    sum
}

#[inline(never)]
pub(crate) fn bytecode_interpreter(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut random = Random::new(round);
        let code: Vec<u8> = (0..100).map(|_| random.next() as u8).collect();
        sum = mix(sum, interpret(black_box(&code), round));
    }
    black_box(sum)
}

#[derive(Clone, Copy)]
enum State {
    Start,
    Sign,
    Whole(u64),
    Fraction(u64, u32),
    Failed,
}

#[inline(never)]
pub(crate) fn state_machine(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 2 {
        for text in black_box(["12.50", "-7", "3.x", "", "0.001", "+"]) {
            let state = text.bytes().fold(State::Start, |state, byte| match (state, byte) {
                (State::Start, b'+' | b'-') => State::Sign,
                (State::Start | State::Sign, b'0'..=b'9') => State::Whole(u64::from(byte - b'0')),
                (State::Whole(value), b'0'..=b'9') => {
                    State::Whole(value * 10 + u64::from(byte - b'0'))
                }
                (State::Whole(value), b'.') => State::Fraction(value, 0),
                (State::Fraction(value, digits), b'0'..=b'9') => {
                    State::Fraction(value * 10 + u64::from(byte - b'0'), digits + 1)
                }
                _ => State::Failed,
            });
            sum = mix(sum, round);
            sum = match state {
                State::Start => mix(sum, 1),
                State::Sign => mix(sum, 2),
                State::Whole(value) => mix(sum, value),
                State::Fraction(value, digits) => mix(sum, value ^ u64::from(digits)),
                State::Failed => mix(sum, 3),
            };
        }
    }
    black_box(sum)
}

#[derive(Debug)]
enum Failure {
    Odd(u64),
    Text(String),
}

#[inline(never)]
fn halve(value: u64) -> Result<u64, Failure> {
    if black_box(value) % 2 == 1 { Err(Failure::Odd(value)) } else { Ok(value / 2) }
}

#[inline(never)]
fn quarter(value: u64) -> Result<u64, Failure> {
    let half = halve(value)?;
    halve(half).map_err(|failure| Failure::Text(format!("{failure:?} of {value}")))
}

#[inline(never)]
pub(crate) fn results_and_options(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 4 {
        sum = match quarter(round) {
            Ok(value) => mix(sum, value),
            Err(Failure::Odd(value)) => mix(sum, value + 1),
            Err(Failure::Text(text)) => mix(sum, text.len() as u64),
        };
        let all: Option<Vec<u64>> = (0_u64..5).map(|value| value.checked_sub(round % 2)).collect();
        sum = mix(sum, all.map_or(7, |values| values.len() as u64));
    }
    black_box(sum)
}

//! Formatting, parsing and walking text.

use std::fmt::Write;
use std::hint::black_box;

use super::{Random, mix, mix_bytes};

#[inline(never)]
pub(crate) fn format_integers(ops: u64) -> u64 {
    let mut sum = 0;
    let mut text = String::new();
    for round in 0..ops * 2 {
        let value = mix(round, 11);
        text.clear();
        let _ = write!(text, "{value} {:>24} {value:#x} {value:o}", value as i64);
        let _ = write!(text, "{:<8}|{:^+9}|{:08}|{:b}", round, -3_i8, value as u16, value as u8);
        let _ = write!(text, "{} {:e}", u128::from(value) * u128::from(value), value);
        text.push_str(&round.to_string());
        sum = mix_bytes(sum, text.as_bytes());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn format_floats(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let value = (mix(round, 5) >> 11) as f64 / 3.0;
        let small = black_box(1.5e-7) * (round + 1) as f64;
        let text = format!(
            "{value} {value:.3} {value:e} {small} {small:?} {:10.2} {} {}",
            value as f32,
            f64::NAN,
            f32::MAX
        );
        sum = mix_bytes(sum, text.as_bytes());
    }
    black_box(sum)
}

#[derive(Debug, Clone)]
struct Leaf {
    name: &'static str,
    weight: Option<f32>,
}

#[derive(Debug, Clone)]
enum Tree {
    Empty,
    Leaf(Leaf),
    Branch { left: Box<Tree>, right: Box<Tree>, tags: Vec<(u8, char)> },
}

impl Tree {
    fn weight(&self) -> f32 {
        match self {
            Self::Empty => 0.0,
            Self::Leaf(leaf) => leaf.weight.unwrap_or(leaf.name.len() as f32),
            Self::Branch { left, right, tags } => {
                left.weight() + right.weight() + tags.len() as f32
            }
        }
    }
}

fn tree(depth: u64) -> Tree {
    match depth {
        0 => Tree::Empty,
        1 => Tree::Leaf(Leaf { name: "a \"quoted\"\tname", weight: Some(0.25) }),
        _ => Tree::Branch {
            left: Box::new(tree(depth - 1)),
            right: Box::new(tree(depth - 2)),
            tags: vec![(depth as u8, 'x'), (7, '\u{e9}')],
        },
    }
}

#[inline(never)]
pub(crate) fn format_debug(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let value = tree(black_box(round % 4 + 1));
        sum = mix(sum, u64::from(value.weight().to_bits()));
        sum = mix_bytes(sum, format!("{value:?}").as_bytes());
        sum = mix_bytes(sum, format!("{:#?}", value.clone()).as_bytes());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn parse_integers(ops: u64) -> u64 {
    let texts = black_box([
        "0",
        "-1",
        "18446744073709551615",
        "+77",
        "12x",
        "",
        "999999999999999999999",
        "00042",
    ]);
    let mut sum = 0;
    for round in 0..ops * 5 {
        for text in texts {
            sum = mix(sum, text.parse::<u64>().unwrap_or(round));
            sum = mix(sum, text.parse::<i32>().unwrap_or(5) as u64);
            sum = mix(sum, text.parse::<u8>().map_or(9, u64::from));
            sum = mix(sum, u64::from_str_radix(text, 16).unwrap_or(3));
        }
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn parse_floats(ops: u64) -> u64 {
    let texts = black_box([
        "0",
        "-1.5",
        "3.14159265358979323846264338327950288",
        "1e308",
        "2.2250738585072011e-308",
        "9007199254740993.0000000000000000000001",
        "inf",
        "nope",
        "6.02214076e23",
        "1e-400",
    ]);
    let mut sum = 0;
    for round in 0..ops * 2 {
        for text in texts {
            sum = mix(sum, text.parse::<f64>().map_or(round, f64::to_bits));
            sum = mix(sum, text.parse::<f32>().map_or(2, |value| u64::from(value.to_bits())));
        }
    }
    black_box(sum)
}

const MIXED: &str = "plain ascii text for a while, then \u{e9}\u{fc}\u{df}, \u{4f60}\u{597d}, \
    \u{1f980}\u{1f9ee} and back to plain ascii again, long enough for several words at once";

#[inline(never)]
pub(crate) fn utf8_validation(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops * 3 {
        let mut bytes = black_box(MIXED).as_bytes().to_vec();
        sum = mix(sum, std::str::from_utf8(&bytes).map_or(0, |text| text.len() as u64));
        let place = (round * 7) as usize % bytes.len();
        bytes[place] = 0xFF;
        sum =
            mix(sum, std::str::from_utf8(&bytes).map_or_else(|e| e.valid_up_to(), str::len) as u64);
        sum = mix(sum, String::from_utf8_lossy(&bytes).len() as u64);
        sum = mix(sum, u64::from(bytes.is_ascii()));
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn char_iteration(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let text = black_box(MIXED);
        for (place, character) in text.char_indices() {
            sum = mix(sum, u64::from(character) + place as u64 + round);
            sum += u64::from(character.is_alphabetic()) + character.len_utf16() as u64;
        }
        sum = mix(sum, text.chars().rev().filter(|character| !character.is_ascii()).count() as u64);
        sum = mix_bytes(sum, text.to_uppercase().as_bytes());
        sum = mix(sum, text.encode_utf16().map(u64::from).sum());
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn string_search(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let text = black_box(MIXED);
        for needle in ["ascii", "again, long enough", "\u{1f980}", "absent", "aaab"] {
            sum = mix(sum, text.find(needle).unwrap_or(1) as u64 + round);
            sum = mix(sum, text.matches(needle).count() as u64);
        }
        sum = mix(sum, text.rfind("plain").unwrap_or(0) as u64);
        sum = mix(sum, text.split(", ").map(|part| part.trim().len() as u64).sum());
        sum = mix(sum, u64::from(text.starts_with("plain")) + text.lines().count() as u64);
    }
    black_box(sum)
}

#[inline(never)]
pub(crate) fn string_edit(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let mut text = black_box(MIXED).replace("plain", "fancy");
        text.insert_str(6, "more ");
        text.insert(0, '>');
        text.retain(|character| character != 'a');
        text.truncate(30 + (round % 3) as usize);
        sum = mix_bytes(sum, text.repeat(2).to_ascii_lowercase().as_bytes());
        sum = mix(sum, text.pop().map_or(0, u64::from));
    }
    black_box(sum)
}

/// Keeps the last records, each in a line of fixed size.
struct Ring {
    lines: [[u8; 64]; 8],
    written: usize,
}

struct Line<'a> {
    bytes: &'a mut [u8; 64],
    used: usize,
}

impl Write for Line<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let taken = text.len().min(self.bytes.len() - self.used);
        self.bytes[self.used..self.used + taken].copy_from_slice(&text.as_bytes()[..taken]);
        self.used += taken;
        Ok(())
    }
}

impl Ring {
    fn log(&mut self, level: u8, arguments: std::fmt::Arguments<'_>) {
        let place = self.written % self.lines.len();
        let mut line = Line { bytes: &mut self.lines[place], used: 0 };
        let _ = write!(line, "{:06} [{level}] {arguments}", self.written);
        let used = line.used;
        self.lines[place][used..].fill(b' ');
        self.written += 1;
    }
}

#[inline(never)]
pub(crate) fn log_ring(ops: u64) -> u64 {
    let mut ring = Ring { lines: [[b' '; 64]; 8], written: 0 };
    let mut random = Random::new(3);
    for round in 0..ops * 3 {
        ring.log((round % 5) as u8, format_args!("request {round} took {} us", random.below(900)));
        ring.log(9, format_args!("{:?} {:>5.1}%", Some("state"), round as f32 * 0.5));
    }
    black_box(ring.lines.iter().fold(0, |sum, line| mix_bytes(sum, line)))
}

#[inline(never)]
pub(crate) fn edit_distance(ops: u64) -> u64 {
    let mut sum = 0;
    for round in 0..ops {
        let (one, two) = (black_box("kitten sitting"), black_box("sitting kittens"));
        let mut row: Vec<usize> = (0..=two.len()).collect();
        for (i, a) in one.bytes().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, b) in two.bytes().enumerate() {
                let best = (diagonal + usize::from(a != b)).min(row[j] + 1).min(row[j + 1] + 1);
                diagonal = std::mem::replace(&mut row[j + 1], best);
            }
        }
        sum = mix(sum, row[two.len()] as u64 + round);
    }
    black_box(sum)
}

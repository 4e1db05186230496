//! The two text forms in which the kernel writes a set: lists and masks.

use std::fmt;
use std::fmt::Write as _;

use crate::cpuset::{CpuSet, MAX_CPU};

/// Says why a text is no set of CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuSetError {
    /// A part is neither a number, nor a range, nor a mask word.
    Malformed {
        /// The part, cut to a readable length.
        text: String,
    },
    /// A range runs backwards, or a stride is impossible.
    BadRange {
        /// The range, cut to a readable length.
        text: String,
    },
    /// A number is above [`MAX_CPU`].
    TooLarge {
        /// The number, cut to a readable length.
        text: String,
    },
}

impl fmt::Display for CpuSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CpuSetError::Malformed { text } => {
                write!(f, "{text:?} is no CPU list or mask (expected such as 0-3,8)")
            }
            CpuSetError::BadRange { text } => {
                write!(f, "the range {text:?} runs backwards or has an impossible stride")
            }
            CpuSetError::TooLarge { text } => {
                write!(f, "CPU number {text} is above the limit of {MAX_CPU}")
            }
        }
    }
}

impl std::error::Error for CpuSetError {}

/// Reads `a`, `a-b` and `a-b:used/group`, separated by commas.
pub(crate) fn parse_list(text: &str) -> Result<CpuSet, CpuSetError> {
    let text = trim(text);
    let mut set = CpuSet::new();
    if text.is_empty() {
        return Ok(set);
    }
    for part in text.split(',') {
        insert_part(&mut set, part.trim())?;
    }
    Ok(set)
}

fn insert_part(set: &mut CpuSet, part: &str) -> Result<(), CpuSetError> {
    let (range, stride) = match part.split_once(':') {
        Some((range, stride)) => (range, Some(stride)),
        None => (part, None),
    };
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (number(from, part)?, number(to, part)?),
        None => (number(range, part)?, number(range, part)?),
    };
    let (used, group) = match stride {
        None => (1, 1),
        Some(stride) => {
            let (used, group) = stride.split_once('/').ok_or_else(|| malformed(part))?;
            (number(used, part)?, number(group, part)?)
        }
    };
    if from > to || used == 0 || used > group {
        return Err(CpuSetError::BadRange { text: shorten(part) });
    }
    for id in (from..=to).filter(|id| (id - from) % group < used) {
        set.insert(id)?;
    }
    Ok(())
}

/// Reads hexadecimal words of 32 bits, the highest first. One long word is as good.
pub(crate) fn parse_mask(text: &str) -> Result<CpuSet, CpuSetError> {
    let text = trim(text);
    let text = text.strip_prefix("0x").unwrap_or(text);
    let mut digits = Vec::with_capacity(text.len());
    for (at, word) in text.split(',').enumerate() {
        let word = word.trim();
        let plain = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let fits = word.len() <= 8 || !text.contains(',');
        if !plain || !fits {
            return Err(malformed(word));
        }
        if at > 0 {
            digits.extend(std::iter::repeat_n(b'0', 8 - word.len()));
        }
        digits.extend(word.bytes());
    }
    let words: Vec<u64> = digits.rchunks(16).map(hex_word).collect();
    let highest = words.iter().rposition(|&word| word != 0);
    if highest.is_some_and(|at| at > (MAX_CPU / u64::BITS) as usize) {
        return Err(CpuSetError::TooLarge { text: shorten(text) });
    }
    Ok(CpuSet::from_words(words))
}

/// Folds at most 16 digits, all of them checked to be hexadecimal.
fn hex_word(digits: &[u8]) -> u64 {
    let value = |digit: u8| u64::from((digit as char).to_digit(16).unwrap_or(0));
    digits.iter().fold(0, |word, &digit| word << 4 | value(digit))
}

/// Writes the kernel's list: runs of two and more as `a-b`.
pub(crate) fn format_list(set: &CpuSet) -> String {
    let mut out = String::new();
    let mut ids = set.iter().peekable();
    while let Some(from) = ids.next() {
        let mut to = from;
        while ids.next_if_eq(&(to + 1)).is_some() {
            to += 1;
        }
        let comma = if out.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = if from == to {
            write!(out, "{comma}{from}")
        } else {
            write!(out, "{comma}{from}-{to}")
        };
    }
    out
}

/// Writes the list with strides for regular gaps: `0-110:1/2` for every second number.
pub(crate) fn format_strides(set: &CpuSet) -> String {
    /// Fewer numbers than this in a row are easier to read one by one.
    const FEW: usize = 4;
    let ids: Vec<u32> = set.iter().collect();
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < ids.len() {
        let gap = ids.get(at + 1).map_or(1, |next| next - ids[at]);
        let row = ids[at..].windows(2).take_while(|pair| pair[1] - pair[0] == gap).count() + 1;
        let (from, to) = (ids[at], ids[at + row - 1]);
        let (part, used) = match (gap, row) {
            (1, 2..) => (format!("{from}-{to}"), row),
            (2.., FEW..) => (format!("{from}-{to}:1/{gap}"), row),
            _ => (from.to_string(), 1),
        };
        parts.push(part);
        at += used;
    }
    parts.join(",")
}

fn number(text: &str, part: &str) -> Result<u32, CpuSetError> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed(part));
    }
    match text.parse::<u32>() {
        Ok(id) if id <= MAX_CPU => Ok(id),
        _ => Err(CpuSetError::TooLarge { text: shorten(text) }),
    }
}

/// Takes off what surrounds a value in sysfs; some kernels end it with a NUL.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0')
}

fn malformed(text: &str) -> CpuSetError {
    CpuSetError::Malformed { text: shorten(text) }
}

/// Cuts a text for a message.
fn shorten(text: &str) -> String {
    const KEEP: usize = 40;
    let mut short: String = text.chars().take(KEEP).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::CpuSetError;
    use crate::cpuset::{CpuSet, MAX_CPU};

    #[test]
    fn lists_round_trip() {
        for list in ["", "0", "0-1", "0-3,8,10-14", "1030-2047", "63-64,128", "0,2,4,1048575"] {
            let set = CpuSet::parse_list(list).unwrap();
            assert_eq!(set.to_string(), list);
            assert_eq!(CpuSet::parse_list(&set.to_string()).unwrap(), set);
        }
    }

    #[test]
    fn strides_round_trip() {
        let same = [
            ("0-110:1/2", "0-110:1/2"),
            ("0,2,4", "0,2,4"),
            ("0-3,8,10,12,14", "0-3,8-14:1/2"),
            ("1,5,9,13,14,15", "1-13:1/4,14-15"),
            ("0,52", "0,52"),
            ("7", "7"),
            ("", ""),
        ];
        for (text, strides) in same {
            let set = CpuSet::parse_list(text).unwrap();
            assert_eq!(super::format_strides(&set), strides);
            assert_eq!(CpuSet::parse_list(strides).unwrap(), set);
        }
    }

    #[test]
    fn lists_in_other_spellings() {
        let same = [
            ("3,2,1,0", "0-3"),
            ("0-3,2-5", "0-5"),
            (" 0-1 \n", "0-1"),
            ("0\n\0", "0"),
            ("0-31:2/8", "0-1,8-9,16-17,24-25"),
            ("1-9:1/3", "1,4,7"),
            ("0-5:1/1", "0-5"),
            ("0, 2", "0,2"),
            ("007", "7"),
            ("\n", ""),
        ];
        for (text, list) in same {
            assert_eq!(CpuSet::parse_list(text).unwrap().to_string(), list, "{text:?}");
        }
    }

    #[test]
    fn garbage_is_an_error() {
        let garbage = [
            "x", "0-", "-3", "-1", "1,,2", ",", "0-3:", "0-3:1", "0-3:1/", "0x3", "1.5", "0--3",
            "0 1", "(null)", "１", "0-3;5", "all", "+1", "0-1-2",
        ];
        for text in garbage {
            let error = CpuSet::parse_list(text).unwrap_err();
            assert!(matches!(error, CpuSetError::Malformed { .. }), "{text:?}: {error:?}");
        }
        for text in ["3-0", "0-3:0/2", "0-3:3/2", "0-3:0/0"] {
            let error = CpuSet::parse_list(text).unwrap_err();
            assert!(matches!(error, CpuSetError::BadRange { .. }), "{text:?}: {error:?}");
        }
    }

    #[test]
    fn absurd_numbers_are_an_error_and_cheap() {
        let huge = format!("0-{}", "9".repeat(10_000));
        for text in ["4294967295", "0-4294967295", "1048576", "99999999999999999999", &huge] {
            let error = CpuSet::parse_list(text).unwrap_err();
            assert!(matches!(error, CpuSetError::TooLarge { .. }), "{error:?}");
            assert!(error.to_string().len() < 120, "{error}");
        }
        assert_eq!(CpuSet::parse_list(&MAX_CPU.to_string()).unwrap().last(), Some(MAX_CPU));
    }

    #[test]
    fn masks_read_from_the_right() {
        let same = [
            ("1", "0"),
            ("ffffffff,00000003", "0-1,32-63"),
            ("0000,00000fff", "0-11"),
            ("0x0f", "0-3"),
            ("00000001,00000000,00000000", "64"),
            ("80000000,00000000", "63"),
            ("1,2", "1,32"),
            ("ffffffffffffffffff", "0-71"),
            ("00000000,00000000\n", ""),
            ("0", ""),
            ("AbC\0", "2-5,7,9,11"),
        ];
        for (text, list) in same {
            assert_eq!(CpuSet::parse_mask(text).unwrap().to_string(), list, "{text:?}");
        }
    }

    #[test]
    fn broken_masks_are_an_error() {
        for text in ["", "g", "1,", ",1", "123456789,00000000", "0-3", "-1", "1,,2", "0x"] {
            assert!(CpuSet::parse_mask(text).is_err(), "{text:?}");
        }
        let wide = format!("1,{}", vec!["00000000"; 40_000].join(","));
        let error = CpuSet::parse_mask(&wide).unwrap_err();
        assert!(matches!(error, CpuSetError::TooLarge { .. }), "{error:?}");
        let zeros = format!("{},3", vec!["00000000"; 40_000].join(","));
        assert_eq!(CpuSet::parse_mask(&zeros).unwrap().to_string(), "0-1");
    }
}

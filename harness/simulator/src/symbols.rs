//! Names and source lines of code addresses.
//!
//! A run may stop while its threads hold any lock of the C library and of the loader; so the
//! objects are found in `/proc/self/maps` and read from their files, and nobody is asked.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::fs;

use crate::guest_memory;

/// The part of an object file that is mapped executable.
#[derive(Debug, Clone)]
struct Mapping {
    start: u64,
    end: u64,
    /// What to subtract from an address to get the file's own.
    bias: u64,
    path: String,
}

/// Tells where addresses are in the source.
pub(crate) struct Symbols {
    code: Vec<Mapping>,
    loaders: BTreeMap<String, Option<addr2line::Loader>>,
}

/// A place in the source, inlined functions told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) function: String,
    pub(crate) line: Option<String>,
    /// Whether it is the program's own: not of the standard library or the C library.
    own: bool,
}

impl core::fmt::Display for Frame {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.line {
            Some(line) => write!(f, "{line} ({})", self.function),
            None => f.write_str(&self.function),
        }
    }
}

impl Symbols {
    /// Looks what is mapped.
    pub(crate) fn of_this_process() -> Self {
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        Self { code: mappings(&maps), loaders: BTreeMap::new() }
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        self.code.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))
    }

    /// Gives the frames at an address, innermost first; one without a line if nothing is known.
    pub(crate) fn frames(&mut self, address: u64) -> Vec<Frame> {
        let unknown = |text: String| vec![Frame { function: text, line: None, own: false }];
        let Some(mapping) = self.mapping(address).cloned() else {
            return unknown(format!("{address:#x}"));
        };
        let loader = self
            .loaders
            .entry(mapping.path.clone())
            .or_insert_with(|| addr2line::Loader::new(&mapping.path).ok());
        let object = mapping.path.rsplit('/').next().unwrap_or_default();
        let Some(loader) = loader else { return unknown(format!("{object} {address:#x}")) };
        let at = address - mapping.bias;
        let mut frames = Vec::new();
        if let Ok(mut found) = loader.find_frames(at) {
            while let Ok(Some(frame)) = found.next() {
                let function = frame
                    .function
                    .as_ref()
                    .and_then(|name| Some(name.demangle().ok()?.into_owned()));
                let location = frame.location.as_ref();
                let file = location.and_then(|location| location.file);
                let line = file.map(|file| {
                    let mut text = shortened(file);
                    if let Some(line) = location.and_then(|location| location.line) {
                        let _ = write!(text, ":{line}");
                    }
                    text
                });
                let own = file.is_some_and(|file| !is_library(file));
                frames.push(Frame {
                    function: function.unwrap_or_else(|| format!("{object} {at:#x}")),
                    line,
                    own,
                });
            }
        }
        if frames.is_empty() || frames[0].line.is_none() && frames.len() == 1 {
            let name = loader.find_symbol(at).map(demangled);
            return unknown(name.unwrap_or_else(|| format!("{object} {at:#x}")));
        }
        frames
    }

    /// Says where a thread is: the instruction, and if that is in a library, the place in the
    /// program from which it was reached. The latter is looked for among the return addresses on
    /// the stack, so it may be one that the thread has left already.
    pub(crate) fn place(&mut self, address: u64, stack: u64) -> String {
        let here = self.frames(address);
        let Some(inner) = here.first().cloned() else { return format!("{address:#x}") };
        if inner.own {
            return inner.to_string();
        }
        if let Some(own) = here.iter().find(|frame| frame.own) {
            return format!("{inner}, reached from {own}");
        }
        const WORDS: u64 = 1024;
        for at in (0..WORDS).map(|word| stack + 8 * word) {
            let Some(back) = guest_memory::read::<u64>(at) else { break };
            if self.mapping(back).is_none() || !follows_call(back) {
                continue;
            }
            if let Some(own) = self.frames(back - 1).into_iter().find(|frame| frame.own) {
                return format!("{inner}, reached from {own}");
            }
        }
        inner.to_string()
    }
}

/// Reads the lines of `/proc/self/maps`.
fn mappings(maps: &str) -> Vec<Mapping> {
    let mut first: BTreeMap<&str, u64> = BTreeMap::new();
    let mut code = Vec::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(rights), Some(offset)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let path = line.find('/').map_or("", |at| &line[at..]);
        let number = |text| u64::from_str_radix(text, 16).ok();
        let Some((Some(start), Some(end))) =
            range.split_once('-').map(|(start, end)| (number(start), number(end)))
        else {
            continue;
        };
        if path.is_empty() {
            continue;
        }
        if offset.bytes().all(|byte| byte == b'0') {
            first.insert(path, start); // the one below the code: files may be mapped elsewhere too
        }
        if rights.contains('x') && !path.ends_with("(deleted)") {
            // A program that is not position-independent names its addresses themselves.
            let bias = first.get(path).copied().unwrap_or(0);
            let bias = if bias < 0x1000_0000 { 0 } else { bias };
            code.push(Mapping { start, end, bias, path: path.to_owned() });
        }
    }
    code
}

/// Whether the instruction before an address is a call.
fn follows_call(address: u64) -> bool {
    let Some(bytes) = guest_memory::read::<[u8; 7]>(address.wrapping_sub(7)) else { return false };
    bytes[2] == 0xe8
        || (2..=7).any(|length| {
            let at = 7 - length;
            bytes[at] == 0xff && bytes.get(at + 1).is_some_and(|modrm| modrm >> 3 & 7 == 2)
        })
}

fn demangled(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}

fn is_library(file: &str) -> bool {
    file.starts_with("/rustc/")
        || file.starts_with("/rust/deps/")
        || file.contains("/rustlib/src/")
        || file.contains("/library/std/")
}

/// Leaves out where the sources lay when they were compiled.
fn shortened(file: &str) -> String {
    if let Some(at) = file.find("/library/") {
        return file[at + 1..].to_owned();
    }
    if let Some(at) = file.find("/registry/src/") {
        let rest = &file[at + "/registry/src/".len()..];
        return rest.split_once('/').map_or(rest, |(_, rest)| rest).to_owned();
    }
    let here = std::env::current_dir().ok();
    let relative = here
        .as_ref()
        .and_then(|here| here.to_str())
        .and_then(|here| file.strip_prefix(here)?.strip_prefix('/'));
    relative.unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn known(value: u64) -> u64 {
        value.wrapping_mul(3)
    }

    #[test]
    fn a_function_of_this_file_is_found_with_its_line() {
        let frames = Symbols::of_this_process().frames((known as *const ()).addr() as u64 + 1);
        let frame = frames.last().unwrap();
        assert!(frame.function.contains("known"), "{frames:?}");
        assert!(frame.line.as_ref().unwrap().contains("symbols.rs:"), "{frames:?}");
    }

    #[test]
    fn what_is_no_code_is_shown_as_a_number() {
        let frames = Symbols::of_this_process().frames(0x10);
        assert_eq!(frames[0].to_string(), "0x10");
    }

    #[test]
    fn maps_are_read_by_object() {
        let maps = "\
555555554000-555555560000 r--p 00000000 08:01 12 /opt/a program
555555560000-555555570000 r-xp 0000b000 08:01 12 /opt/a program
7ffff7a00000-7ffff7b00000 rw-p 00000000 00:00 0
garbage
7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0 [stack]
";
        let code = mappings(maps);
        assert_eq!(code.len(), 1);
        assert_eq!(code[0].path, "/opt/a program");
        assert_eq!(code[0].bias, 0x5555_5555_4000);
    }
}

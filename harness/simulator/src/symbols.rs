//! Names and source lines of code addresses.
//!
//! A run may stop while its threads hold any lock of the C library and of the loader; so the
//! objects are found in `/proc/self/maps` and read from their files, and nobody is asked.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::fs;

use crate::enter;
use crate::guest_memory;
use crate::unwind::{Frame, Tables};

/// The part of an object file that is mapped executable.
#[derive(Debug, Clone)]
struct Mapping {
    start: u64,
    end: u64,
    /// What to subtract from an address to get the file's own.
    bias: u64,
    path: String,
}

/// What a function belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Inside {
    /// The program itself.
    Own,
    /// A panic that was told and looks for somebody who catches it.
    Unwinding,
    /// Functions that may hold a lock of the whole process: the allocator's, standard output's.
    Library,
    /// The beginning of a panic, which is told while such a lock is held.
    Panic,
}

/// What a thread is in the middle of.
pub(crate) struct Calls {
    /// Whether it may hold a lock of the whole process.
    pub(crate) holds: bool,
    /// Where the address lies to which the outermost function returns that may hold one.
    pub(crate) returns_at: Option<u64>,
}

/// Tells where addresses are in the source.
pub(crate) struct Symbols {
    code: Vec<Mapping>,
    loaders: BTreeMap<String, Option<addr2line::Loader>>,
    /// What is known of return addresses.
    inside: BTreeMap<u64, Inside>,
    tables: BTreeMap<String, Option<Tables>>,
    /// What was told of instructions.
    told: BTreeMap<u64, Place>,
}

/// A place in the source, inlined functions told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) function: String,
    pub(crate) line: Option<String>,
    /// Whether it is the program's own: not of the standard library or the C library.
    own: bool,
}

impl core::fmt::Display for Place {
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
        Self {
            code: mappings(&maps),
            loaders: BTreeMap::new(),
            inside: BTreeMap::new(),
            tables: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        self.code.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))
    }

    fn loader(&mut self, path: &str) -> Option<&addr2line::Loader> {
        let open = || addr2line::Loader::new(path).ok();
        self.loaders.entry(path.to_owned()).or_insert_with(open).as_ref()
    }

    /// Says what a thread is in the middle of.
    pub(crate) fn calls(&mut self, thread: &Frame) -> Calls {
        const DEEPEST: usize = 10_000;
        let mut inside = self.inside_at(thread.rip);
        let mut returns_at = None;
        let mut outermost = inside != Inside::Own;
        let mut frame = *thread;
        for depth in 0..DEEPEST {
            let Some((caller, back)) = self.caller(&frame, depth > 0) else { break };
            if outermost {
                returns_at = Some(back);
            }
            let here = self.inside_at(caller.rip.wrapping_sub(1));
            if here == Inside::Unwinding {
                // The panic has been told; only what unwinding itself has called may hold a lock.
                returns_at = None;
                break;
            }
            outermost = here != Inside::Own;
            inside = inside.max(here);
            frame = caller;
        }
        match inside {
            Inside::Panic => Calls { holds: true, returns_at: None },
            Inside::Library => Calls { holds: true, returns_at },
            Inside::Own | Inside::Unwinding => Calls { holds: false, returns_at: None },
        }
    }

    /// Gives where a thread is, and where the functions go on that called each other to get there,
    /// innermost first.
    pub(crate) fn chain(&mut self, thread: &Frame, deepest: usize) -> Vec<u64> {
        let mut chain = vec![thread.rip];
        let mut frame = *thread;
        while chain.len() < deepest
            && let Some((caller, _)) = self.caller(&frame, chain.len() > 1)
            && !enter::contains(caller.rip)
            && caller.rip != enter::end_address()
        {
            chain.push(caller.rip);
            frame = caller;
        }
        chain
    }

    fn caller(&mut self, frame: &Frame, called: bool) -> Option<(Frame, u64)> {
        let Mapping { start, path, bias, .. } = self.mapping(frame.rip)?.clone();
        if !self.tables.contains_key(&path) {
            let loader = self.loader(&path)?;
            let section = |name: &str| {
                let range = loader.get_section_range(name.as_bytes())?;
                Some(range.begin + bias..range.end + bias)
            };
            let tables = section(".eh_frame_hdr")
                .zip(section(".eh_frame"))
                .and_then(|(index, frames)| Tables::at(start, index, frames));
            self.tables.insert(path.clone(), tables);
        }
        frame.caller(self.tables.get(&path)?.as_ref()?, called)
    }

    fn inside_at(&mut self, address: u64) -> Inside {
        if let Some(&known) = self.inside.get(&address) {
            return known;
        }
        let Some(Mapping { path, bias, .. }) = self.mapping(address).cloned() else {
            return Inside::Own;
        };
        let object = path.rsplit('/').next().unwrap_or_default();
        let inside = if C_OBJECTS.iter().any(|start| object.starts_with(start)) {
            Inside::Library
        } else {
            let name = self.loader(&path).and_then(|loader| loader.find_symbol(address - bias));
            name.map_or(Inside::Own, |name| inside_of(&demangled(name)))
        };
        self.inside.insert(address, inside);
        inside
    }

    /// Gives the frames at an address, innermost first; one without a line if nothing is known.
    pub(crate) fn frames(&mut self, address: u64) -> Vec<Place> {
        let unknown = |text: String| vec![Place { function: text, line: None, own: false }];
        let Some(mapping) = self.mapping(address).cloned() else {
            return unknown(format!("{address:#x}"));
        };
        let loader = self.loader(&mapping.path);
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
                frames.push(Place {
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

    /// Gives the place that says most about an instruction: of the functions that were inlined
    /// there, the innermost of the program's own.
    pub(crate) fn telling(&mut self, address: u64) -> Place {
        if let Some(known) = self.told.get(&address) {
            return known.clone();
        }
        let frames = self.frames(address);
        let told = frames.iter().find(|frame| frame.own).or(frames.first()).cloned();
        let nothing = || Place { function: format!("{address:#x}"), line: None, own: false };
        let told = told.unwrap_or_else(nothing);
        self.told.insert(address, told.clone());
        told
    }

    /// Gives the name of what lies at an address in the data of the program or of a library, with
    /// the distance from where that begins; the section where there is no name.
    pub(crate) fn datum(&mut self, address: u64) -> Option<String> {
        const SECTIONS: [&str; 5] = [".data", ".bss", ".rodata", ".data.rel.ro", ".got"];
        for Mapping { bias, path, .. } in self.code.clone() {
            let (Some(loader), Some(at)) = (self.loader(&path), address.checked_sub(bias)) else {
                continue;
            };
            let section = SECTIONS.iter().find_map(|name| {
                let range = loader.get_section_range(name.as_bytes())?;
                (range.begin..range.end).contains(&at).then_some((*name, range.begin))
            });
            let Some((section, begin)) = section else { continue };
            let symbol = loader.find_symbol_info(at).filter(|symbol| symbol.address() >= begin);
            let (name, begin) = match symbol {
                Some(symbol) => (demangled(symbol.name()), symbol.address()),
                None => {
                    let object = path.rsplit('/').next().unwrap_or_default();
                    (format!("{object} {section}"), begin)
                }
            };
            return Some(if at == begin { name } else { format!("{name}+{:#x}", at - begin) });
        }
        None
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

/// How the names of the C library's objects begin.
const C_OBJECTS: [&str; 4] = ["libc.", "libc-", "ld-", "libpthread"];

/// Says what a function of the program's own file belongs to, by its name.
fn inside_of(name: &str) -> Inside {
    const PANICS: [&str; 5] = [
        "panicking::begin_panic",
        "panicking::panic_with_hook",
        "panicking::rust_panic_with_hook",
        "panicking::default_hook",
        "__rust_end_short_backtrace",
    ];
    const LIBRARY: [&str; 7] = [
        "std::io::",
        "std::env::",
        "std::sys::",
        "std::backtrace",
        "parking_lot_core::",
        "alloc::alloc::",
        "GlobalAlloc",
    ];
    /// Those of the C library, where it is linked statically.
    const C: [&str; 8] =
        ["malloc", "calloc", "realloc", "free", "memalign", "printf", "puts", "fwrite"];
    if name.ends_with("rust_panic") || name.contains("resume_unwind") {
        return Inside::Unwinding;
    }
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&PANICS) {
        Inside::Panic
    } else if name.contains("__rust_begin_short_backtrace") {
        Inside::Own
    } else if has(&LIBRARY) || name.starts_with("__rust") || !name.contains("::") && has(&C) {
        Inside::Library
    } else {
        Inside::Own
    }
}

fn is_library(file: &str) -> bool {
    file.starts_with("/rustc/")
        || file.starts_with("/rust/deps/")
        || file.contains("/rustlib/src/")
        || file.contains("/library/std/")
}

/// Leaves out folders that a path enters and leaves again.
fn without_detours(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            (".", _) => {}
            ("..", Some(&last)) if last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
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
    let file = without_detours(file);
    if !file.starts_with('/') {
        return file;
    }
    // From the package's folder on: where that lay is a matter of the build.
    for folder in ["/src/", "/tests/", "/benches/", "/examples/"] {
        if let Some(at) = file.rfind(folder) {
            return file[file[..at].rfind('/').map_or(0, |slash| slash + 1)..].to_owned();
        }
    }
    file.rsplit('/').next().unwrap_or_default().to_owned()
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
    fn paths_begin_at_the_package() {
        for (long, short) in [
            ("/home/me/mine/src/deep/main.rs", "mine/src/deep/main.rs"),
            ("/a/mine/tests/one.rs", "mine/tests/one.rs"),
            ("src/main.rs", "src/main.rs"),
            ("a/src/../../b/benches/case.rs", "b/benches/case.rs"),
            ("../b/./case.rs", "../b/case.rs"),
            ("/home/me/a/src/../../b/benches/case.rs", "b/benches/case.rs"),
            ("/rustc/0123/library/core/src/ptr/mod.rs", "library/core/src/ptr/mod.rs"),
            ("/c/registry/src/index-1/lock-1.0/src/lib.rs", "lock-1.0/src/lib.rs"),
            ("/a/b/odd.rs", "odd.rs"),
        ] {
            assert_eq!(shortened(long), short);
        }
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

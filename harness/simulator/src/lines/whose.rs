//! What lies at an address.

use std::fs;

use crate::exchange;
use crate::kernel;
use crate::lend::Lender;
use crate::symbols::Symbols;

/// Tells what addresses are for.
pub(super) struct Memory<'a> {
    lenders: &'a [Lender],
    maps: String,
}

impl<'a> Memory<'a> {
    /// Looks what is mapped.
    pub(super) fn now(lenders: &'a [Lender]) -> Self {
        Self { lenders, maps: fs::read_to_string("/proc/self/maps").unwrap_or_default() }
    }

    /// Gives what lies at an address: a symbol, or the kind of memory.
    pub(super) fn name(&self, address: u64, symbols: &mut Symbols) -> String {
        let thread = self.lenders.iter().position(|one| one.stack().contains(&address));
        if let Some(thread) = thread {
            let storage = address >= self.lenders[thread].storage();
            let what = if storage { "thread-local storage" } else { "stack" };
            return format!("{what} of thread {thread}");
        }
        if exchange::contains(address) {
            return "the closure and its results".to_owned();
        }
        if let Some(name) = symbols.datum(address) {
            return name;
        }
        if kernel::is_placed(address) {
            // What threads map by themselves is large blocks of the allocator's, and its arenas.
            return "heap".to_owned();
        }
        self.mapped(address)
    }

    /// Goes by `/proc/self/maps`.
    fn mapped(&self, address: u64) -> String {
        let line = self.maps.lines().find(|line| {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let number = |text| u64::from_str_radix(text, 16).ok();
            let range = range.and_then(|(start, end)| Some(number(start)?..number(end)?));
            range.is_some_and(|range| range.contains(&address))
        });
        let Some(line) = line else { return "memory that is gone".to_owned() };
        match line.split_ascii_whitespace().nth(5) {
            Some("[stack]") => "stack of the program's first thread".to_owned(),
            Some("[heap]") => "heap".to_owned(),
            Some(path) => path.rsplit('/').next().unwrap_or(path).to_owned(),
            None => "heap".to_owned(),
        }
    }
}

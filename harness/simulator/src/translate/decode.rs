//! Instructions where they lie in memory, and whether they may be executed there.

use iced_x86::{Code, InstructionInfoFactory, OpAccess};

use super::{Decoded, LONGEST_INSTRUCTION};
use crate::guest_memory;

/// What may be executed, as far as it was looked up.
#[derive(Debug, Default)]
pub(super) struct Executable(Vec<core::ops::Range<u64>>);

impl Executable {
    /// Whether an address may be executed.
    pub(super) fn contains(&mut self, address: u64) -> bool {
        if self.knows(address) {
            return true;
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        self.0 = maps.lines().filter_map(executable_range).collect();
        // Where the list cannot be had, whatever can be read passes for code.
        self.knows(address) || maps.is_empty()
    }

    fn knows(&self, address: u64) -> bool {
        self.0.iter().any(|range| range.contains(&address))
    }
}

/// Reads a line of `/proc/self/maps`.
fn executable_range(line: &str) -> Option<core::ops::Range<u64>> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    rest.get(..4)?.contains('x').then_some(number(start)?..number(end)?)
}

/// Decodes the instruction at an address; what is no instruction decodes as invalid.
pub(super) fn decode_at(rip: u64) -> Option<Decoded> {
    let mut bytes = [0; LONGEST_INSTRUCTION];
    let mut present = LONGEST_INSTRUCTION;
    if !guest_memory::copy_out(rip, &mut bytes) {
        present = (4096 - rip % 4096).min(LONGEST_INSTRUCTION as u64) as usize;
        if !guest_memory::copy_out(rip, &mut bytes[..present]) {
            return None;
        }
    }
    let mut decoder = iced_x86::Decoder::with_ip(64, &bytes[..present], rip, 0);
    let instruction = decoder.decode();
    if instruction.code() == Code::INVALID && present < LONGEST_INSTRUCTION {
        return None;
    }
    Some(Decoded { instruction, bytes })
}

/// Whether the instruction at an address reads memory that it writes.
pub(crate) fn reads_what_it_writes(info: &mut InstructionInfoFactory, rip: u64) -> bool {
    decode_at(rip).is_some_and(|one| {
        info.info(&one.instruction)
            .used_memory()
            .iter()
            .any(|memory| matches!(memory.access(), OpAccess::ReadWrite | OpAccess::ReadCondWrite))
    })
}

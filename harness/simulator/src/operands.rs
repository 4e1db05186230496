//! Operands that generated code does not ask for: gathered ones, large ones, repeated ones.

use crate::context::register;
use crate::engine::{Engine, Next};
use crate::translate::Repeat;

impl Engine {
    /// Gives what an operand names whose address generated code does not compute.
    pub(crate) fn computed(&self, at: usize, index: usize, write: bool) -> Vec<(u64, u64, bool)> {
        use iced_x86::{MemorySize, Register};
        let context = &self.cores[at].context;
        let memory = &self.translator.computed[index];
        let bytes = match memory.memory_size() {
            MemorySize::Unknown => crate::context::VECTOR_BYTES as u64,
            size => size.size() as u64,
        };
        let elements = match memory.vsib_size() as usize {
            0 => 1,
            size => memory.index().size() / size,
        };
        let value = |register: Register, element: usize, size: usize| {
            if register == Register::FS {
                Some(context.fs_base)
            } else if register.is_segment_register() {
                Some(0)
            } else if register.is_gpr() {
                let value = context.registers[register.full_register().number()];
                let bits = 8 * register.size() as u32;
                Some(value & u64::MAX.checked_shr(64 - bits).unwrap_or(u64::MAX))
            } else {
                context.vector.element(register.number(), element, size)
            }
        };
        (0..elements)
            .filter_map(|element| Some((memory.virtual_address(element, value)?, bytes, write)))
            .collect()
    }

    /// A string instruction is about to repeat: its lines are asked for if its end is known.
    pub(crate) fn repeat(&mut self, at: usize, exit: u32, remaining: u32, repeat: Repeat) -> Next {
        let core = &mut self.cores[at];
        core.spin.disturb();
        let registers = &core.context.registers;
        let count = registers[register::RCX];
        core.repeats = count;
        if repeat.compares || count == 0 {
            return Next::Go;
        }
        let backwards = core.context.flags & 0x400 != 0;
        let bytes = count.saturating_mul(repeat.element.into());
        let range = |first: u64| {
            if backwards { first.wrapping_sub(bytes - u64::from(repeat.element)) } else { first }
        };
        let mut accesses = Vec::with_capacity(2);
        if repeat.source {
            accesses.push((range(registers[register::RSI]), bytes, false));
        }
        if repeat.writes {
            accesses.push((range(registers[register::RDI]), bytes, true));
        }
        self.accesses(at, exit, remaining, &accesses)
    }

    /// A string instruction has repeated.
    pub(crate) fn repeated(&mut self, at: usize, repeat: Repeat) {
        let instruction = self.translator.costs().of_one(self.cores[at].pace);
        let core = &mut self.cores[at];
        let left = core.context.registers[register::RCX];
        let done = core.repeats - left;
        // Like valgrind: an instruction for each iteration, and one that finds the count at 0. An
        // iteration that ends a comparison is the last one.
        let equal = core.context.flags & 0x40 != 0;
        let stopped = repeat.compares && done > 0 && equal != repeat.while_equal;
        let counted = done + u64::from(!stopped);
        core.counts.instructions += counted - 1; // one was counted with its block
        core.counts.loads += done * (u64::from(repeat.source) + u64::from(repeat.compares));
        core.counts.stores += done * u64::from(repeat.writes);
        // The processor moves 16 bytes and more at a time.
        core.time += done * u64::from(repeat.element) / 16 * instruction;
    }
}

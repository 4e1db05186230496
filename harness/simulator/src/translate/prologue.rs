//! The beginning of a block: whose turn it is, and what the block counts.

use core::mem::offset_of;

use iced_x86::Mnemonic;

use super::{Block, Counted, Decoded, Exit, Kind, Repair, Stub, Translator, access, ending};
use crate::context::Context;

impl Translator {
    /// Asks whether another core comes first, and counts the block.
    pub(super) fn prologue(&mut self, id: u32, flags: bool, vector: bool, x87: bool) {
        let Block { rip, entry, cost, counted, .. } = self.blocks[id as usize];
        let out = |kind| Exit { rip, resume: entry, remaining: 0, kind };
        let repair = || if flags { Repair::Flags } else { Repair::Nothing };
        if flags {
            self.assembler.save_flags();
        }
        if vector {
            let jump = self.assembler.unless_set(offset_of!(Context, vector_loaded));
            let exit = self.exit(out(Kind::Vector));
            self.stubs.push(Stub { jump, exit, repair: repair() });
        }
        // A block without accesses cannot meet another core: it only must not run for ever.
        let silent = counted.loads + counted.stores == 0 && !counted.opaque;
        let least = if silent { -(self.patience as i32) } else { 0 };
        let jump = self.assembler.unless_above(offset_of!(Context, left), least);
        let exit = self.exit(out(if silent { Kind::Rest } else { Kind::Time(id) }));
        self.stubs.push(Stub { jump, exit, repair: repair() });
        self.assembler.subtract(offset_of!(Context, left), cost);
        if silent {
            self.assembler.add(offset_of!(Context, silent), cost);
        } else {
            self.assembler.store_constant(offset_of!(Context, silent), 0);
            self.assembler.store_constant(offset_of!(Context, block), id);
        }
        self.assembler.add(offset_of!(Context, counts), counted.instructions | counted.loads << 16);
        if counted.stores > 0 {
            self.assembler.add(offset_of!(Context, stores), counted.stores);
        }
        if counted.locked | counted.fences > 0 {
            let both = counted.locked | counted.fences << 16;
            self.assembler.add(offset_of!(Context, locked), both);
        }
        if x87 {
            self.assembler.store_constant(offset_of!(Context, x87_used), 1);
        }
        if flags {
            self.assembler.restore_flags();
        }
    }

    pub(super) fn counted(&mut self, decoded: &[Decoded]) -> Counted {
        let mut counted = Counted {
            instructions: decoded.len() as u32,
            opaque: decoded.is_empty(),
            ..Counted::default()
        };
        for one in decoded {
            let instruction = &one.instruction;
            counted.locked += u32::from(ending::is_locked(instruction));
            counted.fences += u32::from(matches!(
                instruction.mnemonic(),
                Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence | Mnemonic::Serialize
            ));
            if access::repeats(instruction).is_some() {
                counted.opaque = true;
                continue; // counted when it is known how often
            }
            for memory in self.info.info(instruction).used_memory() {
                let (loads, stores) = access::direction(memory.access());
                counted.loads += u32::from(loads);
                counted.stores += u32::from(stores);
            }
        }
        counted
    }
}

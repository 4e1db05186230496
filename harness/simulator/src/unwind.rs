//! The calls that a stopped thread is in the middle of, by the unwind tables of the program and of
//! its libraries, which lie in memory with their code.

use core::ops::Range;

use addr2line::gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection,
};

use crate::context::register;
use crate::guest_memory;

/// The unwind tables of an object.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Where its code lies.
    code: u64,
    /// Where `.eh_frame_hdr` lies, and a copy.
    index: (u64, Vec<u8>),
    /// Where `.eh_frame` lies, and a copy.
    frames: (u64, Vec<u8>),
}

impl Tables {
    /// Copies the tables at two ranges of addresses.
    pub(crate) fn at(code: u64, index: Range<u64>, frames: Range<u64>) -> Option<Self> {
        let copied = |range: Range<u64>| {
            const MOST: u64 = 1 << 28;
            let bytes = range.end.checked_sub(range.start).filter(|&bytes| bytes < MOST)?;
            let mut section = vec![0; usize::try_from(bytes).ok()?];
            guest_memory::copy_out(range.start, &mut section).then_some((range.start, section))
        };
        Some(Self { code, index: copied(index)?, frames: copied(frames)? })
    }
}

/// Registers of a frame, in the processor's order, and where it goes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) rip: u64,
    pub(crate) registers: [u64; 16],
}

/// The DWARF number of the return address.
const RETURN_ADDRESS: Register = Register(16);

/// DWARF numbers registers in another order than the processor does.
fn place_of(register: Register) -> Option<usize> {
    const PLACES: [usize; 8] = [
        register::RAX,
        register::RDX,
        register::RCX,
        register::RBX,
        register::RSI,
        register::RDI,
        register::RBP,
        register::RSP,
    ];
    let number = usize::from(register.0);
    PLACES.get(number).copied().or_else(|| (8..16).contains(&number).then_some(number))
}

impl Frame {
    /// Gives the caller's frame and the place of the address at which it goes on; `None` at the end
    /// of a stack, and where no table says how to go on. `called` says that the frame is in the
    /// middle of a call, so that its code is what lies before its address.
    pub(crate) fn caller(&self, tables: &Tables, called: bool) -> Option<(Self, u64)> {
        let bases = BaseAddresses::default()
            .set_text(tables.code)
            .set_eh_frame_hdr(tables.index.0)
            .set_eh_frame(tables.frames.0);
        let index = EhFrameHdr::new(&tables.index.1, LittleEndian).parse(&bases, 8).ok()?;
        let frames = EhFrame::new(&tables.frames.1, LittleEndian);
        let mut context = UnwindContext::new();
        let address = self.rip - u64::from(called);
        let table = index.table()?;
        let row = table
            .unwind_info_for_address(
                &frames,
                &bases,
                &mut context,
                address,
                EhFrame::cie_from_offset,
            )
            .ok()?;
        let stack = self.registers[register::RSP];
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.registers[place_of(*register)?].checked_add_signed(*offset)?
            }
            // Of stubs that jump to other objects: one more word is pushed near their end.
            CfaRule::Expression(_) => stack + if self.rip & 15 < 11 { 8 } else { 16 },
        };
        let back = match row.register(RETURN_ADDRESS) {
            Some(RegisterRule::Offset(offset)) => frame.checked_add_signed(offset)?,
            None => frame.checked_sub(8)?,
            Some(_) => return None,
        };
        let mut registers = self.registers;
        for number in 0..16 {
            if let (Some(place), Some(RegisterRule::Offset(offset))) =
                (place_of(Register(number)), row.register(Register(number)))
            {
                registers[place] = guest_memory::read(frame.checked_add_signed(offset)?)?;
            }
        }
        registers[register::RSP] = frame;
        if frame <= stack && called {
            return None; // a stack grows downwards: this is none
        }
        let rip = guest_memory::read(back)?;
        Some((Self { rip, registers }, back))
    }
}

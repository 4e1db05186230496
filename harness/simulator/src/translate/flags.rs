//! Which of the six flags of arithmetic matter at a point of the code.

use iced_x86::{Instruction, RflagsBits};

/// Carry, parity, adjust, zero, sign, overflow.
pub(crate) const ALL: u32 = RflagsBits::CF
    | RflagsBits::PF
    | RflagsBits::AF
    | RflagsBits::ZF
    | RflagsBits::SF
    | RflagsBits::OF;

/// Gives flags as bits of RFLAGS; direction, which every string instruction reads, among them.
pub(crate) fn in_rflags(flags: u32) -> u32 {
    const PLACES: [(u32, u32); 6] = [
        (RflagsBits::CF, 0x1),
        (RflagsBits::PF, 0x4),
        (RflagsBits::AF, 0x10),
        (RflagsBits::ZF, 0x40),
        (RflagsBits::SF, 0x80),
        (RflagsBits::OF, 0x800),
    ];
    const DIRECTION: u32 = 0x400;
    PLACES
        .iter()
        .filter(|(flag, _)| flags & flag != 0)
        .fold(DIRECTION, |bits, (_, place)| bits | place)
}

/// Gives the flags that matter before `instruction`, from those that matter after it.
pub(crate) fn before(instruction: &Instruction, after: u32) -> u32 {
    // Shifts by a count in CL leave all flags alone if the count is 0: iced lists them as changed.
    let changed = if may_leave_flags(instruction) { 0 } else { instruction.rflags_modified() };
    (after & !changed | instruction.rflags_read()) & ALL
}

/// Whether the instruction, which changes flags, may also leave them as they are.
fn may_leave_flags(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{
        Cmpsb, Cmpsd, Cmpsq, Cmpsw, Rcl, Rcr, Rol, Ror, Sal, Sar, Scasb, Scasd, Scasq, Scasw, Shl,
        Shld, Shr, Shrd,
    };
    match instruction.mnemonic() {
        Rcl | Rcr | Rol | Ror | Sal | Sar | Shl | Shr | Shld | Shrd => true,
        Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq => {
            instruction.has_rep_prefix() || instruction.has_repne_prefix()
        }
        _ => false,
    }
}

//! Which registers an instruction uses, and which are free around it.

use iced_x86::{CpuidFeature, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

use super::Decoded;

/// A set of general registers, by their numbers in machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Set(u16);

impl Set {
    pub(crate) const ALL: Self = Self(0xffff);
    pub(super) const NONE: Self = Self(0);

    fn with(self, number: usize) -> Self {
        Self(self.0 | 1 << number)
    }

    fn without(self, number: usize) -> Self {
        Self(self.0 & !(1 << number))
    }

    /// The registers of both sets.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Gives the set as bits.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn contains(self, register: Register) -> bool {
        self.0 & 1 << register.number() != 0
    }
}

/// General registers by number.
pub(crate) const GENERAL: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The order in which registers are set aside: those first that need no prefix.
const PREFERRED: [Register; 15] = [
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::RBX,
    Register::RBP,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
    Register::RAX,
];

/// Gives the general registers that an instruction names or uses.
pub(crate) fn used(info: &mut InstructionInfoFactory, instruction: &Instruction) -> Set {
    info.info(instruction)
        .used_registers()
        .iter()
        .filter(|used| used.register().is_gpr())
        .fold(Set::NONE, |set, used| set.with(number(used.register())))
}

/// Chooses a register outside of `taken`, from those that are not `live` if there is one.
pub(crate) fn choose(taken: Set, live: Set) -> Register {
    let free = |register: &&Register| !taken.contains(**register);
    PREFERRED
        .iter()
        .filter(free)
        .find(|register| !live.contains(**register))
        .or_else(|| PREFERRED.iter().find(free))
        .copied()
        .unwrap_or(Register::R15)
}

impl Set {
    /// The set with another register.
    pub(crate) fn including(self, register: Register) -> Self {
        self.with(register.number())
    }
}

/// Whether an access may change a register.
pub(super) fn is_written(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn number(register: Register) -> usize {
    register.full_register().number()
}

/// Gives the registers that matter before each instruction; behind the last one all do.
pub(super) fn live(info: &mut InstructionInfoFactory, decoded: &[Decoded]) -> Vec<Set> {
    let mut live = Set::ALL;
    let mut all: Vec<Set> = decoded
        .iter()
        .rev()
        .map(|one| {
            let mut read = Set::NONE;
            for used in info.info(&one.instruction).used_registers() {
                if !used.register().is_gpr() {
                    continue;
                }
                let number = number(used.register());
                // Writing half of a register clears the other half; writing less keeps the rest.
                match used.access() {
                    OpAccess::Write if used.register().size() >= 4 => live = live.without(number),
                    OpAccess::None | OpAccess::NoMemAccess => {}
                    _ => read = read.with(number),
                }
            }
            live = live.and(read);
            live
        })
        .collect();
    all.reverse();
    all
}

/// Whether an instruction touches vector or floating-point state.
pub(super) fn uses_vectors(info: &mut InstructionInfoFactory, one: &Decoded) -> bool {
    use CpuidFeature as F;
    let instruction = &one.instruction;
    if uses_x87(instruction) {
        return true;
    }
    if matches!(instruction.mnemonic(), Mnemonic::Ldmxcsr | Mnemonic::Stmxcsr)
        || matches!(instruction.mnemonic(), Mnemonic::Vldmxcsr | Mnemonic::Vstmxcsr)
        || matches!(instruction.mnemonic(), Mnemonic::Vzeroupper | Mnemonic::Vzeroall)
        || instruction.cpuid_features().iter().any(|feature| {
            matches!(feature, F::FXSR | F::XSAVE | F::XSAVEOPT | F::XSAVEC | F::XSAVES)
        })
    {
        return true;
    }
    info.info(instruction).used_registers().iter().any(|used| {
        let register = used.register();
        register.is_vector_register() || register.is_k() || register.is_mm() || register.is_st()
    })
}

/// Whether an instruction touches the x87 unit.
pub(crate) fn uses_x87(instruction: &Instruction) -> bool {
    use CpuidFeature as F;
    instruction.cpuid_features().iter().any(|feature| {
        matches!(
            feature,
            F::FPU
                | F::FPU287
                | F::FPU287XL_ONLY
                | F::FPU387
                | F::FPU387SL_ONLY
                | F::MMX
                | F::D3NOW
        )
    })
}

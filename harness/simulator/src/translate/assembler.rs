//! Writes the instructions that surround the thread's own.

use core::mem::offset_of;

use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

use crate::context::Context;

/// A field of the core's [`Context`], by its offset.
pub(crate) type Field = usize;

/// A place to jump to, once it is known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jump {
    /// The executed address of the four bytes that hold the distance.
    pub(crate) distance_at: u64,
}

/// Code in the making, at the address at which it will be executed.
pub(crate) struct Assembler {
    encoder: Encoder,
    start: u64,
    bytes: Vec<u8>,
}

impl Assembler {
    pub(crate) fn new() -> Self {
        Self { encoder: Encoder::new(64), start: 0, bytes: Vec::with_capacity(1 << 14) }
    }

    /// Begins anew at an executed address.
    pub(crate) fn begin(&mut self, start: u64) {
        self.start = start;
        self.bytes.clear();
    }

    pub(crate) fn here(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Encodes an instruction if it can be here; what it names relative to itself may be too far.
    pub(crate) fn try_emit(&mut self, instruction: &Instruction) -> bool {
        let here = self.here();
        let done = self.encoder.encode(instruction, here).is_ok();
        let bytes = self.encoder.take_buffer();
        if done {
            self.bytes.extend_from_slice(&bytes);
        }
        self.encoder.set_buffer(cleared(bytes));
        done
    }

    /// Encodes an instruction of our own, which always can be.
    pub(crate) fn emit(&mut self, instruction: Result<Instruction, iced_x86::IcedError>) {
        let done = instruction.is_ok_and(|instruction| self.try_emit(&instruction));
        debug_assert!(done, "an instruction of the translator's own cannot be encoded");
    }

    /// Sets a register aside.
    pub(crate) fn save(&mut self, field: Field, register: Register) {
        self.emit(Instruction::with2(Code::Mov_rm64_r64, of(field), register));
    }

    /// Loads a register from a field.
    pub(crate) fn load(&mut self, register: Register, field: Field) {
        self.emit(Instruction::with2(Code::Mov_r64_rm64, register, of(field)));
    }

    /// Loads a constant, touching no flag.
    pub(crate) fn constant(&mut self, register: Register, value: u64) {
        if let Ok(value) = i32::try_from(value.cast_signed()) {
            self.emit(Instruction::with2(Code::Mov_rm64_imm32, register, value));
        } else {
            self.emit(Instruction::with2(Code::Mov_r64_imm64, register, value));
        }
    }

    /// Stores a constant of 32 bits into a field.
    pub(crate) fn store_constant(&mut self, field: Field, value: u32) {
        self.emit(Instruction::with2(Code::Mov_rm32_imm32, of(field), value));
    }

    /// Computes an address, touching no flag.
    pub(crate) fn address(&mut self, register: Register, memory: MemoryOperand) {
        self.emit(Instruction::with2(Code::Lea_r64_m, register, memory));
    }

    /// Sets the six flags of arithmetic aside in `rax`, whose value is put into `spill[3]`.
    pub(crate) fn save_flags(&mut self) {
        self.save(spill(3), Register::RAX);
        self.emit(Ok(Instruction::with(Code::Lahf)));
        self.emit(Instruction::with1(Code::Seto_rm8, Register::AL));
    }

    /// Undoes [`save_flags`](Self::save_flags).
    pub(crate) fn restore_flags(&mut self) {
        self.emit(Instruction::with2(Code::Add_rm8_imm8, Register::AL, 127));
        self.emit(Ok(Instruction::with(Code::Sahf)));
        self.load(Register::RAX, spill(3));
    }

    /// Jumps to an address not known yet.
    pub(crate) fn jump(&mut self) -> Jump {
        self.branch(Code::Jmp_rel32_64)
    }

    /// Jumps, on a condition or not, to an address not known yet.
    pub(crate) fn branch(&mut self, code: Code) -> Jump {
        let here = self.here();
        self.emit(Instruction::with_branch(code, here));
        Jump { distance_at: self.here() - 4 }
    }

    /// Lets a jump made here lead here.
    pub(crate) fn land(&mut self, jump: Jump) {
        self.lead(jump, self.here());
    }

    /// Lets a jump made here lead to `target`.
    pub(crate) fn lead(&mut self, jump: Jump, target: u64) {
        let at = (jump.distance_at - self.start) as usize;
        let distance = distance(jump, target);
        self.bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }

    /// Leaves generated code, saying where.
    pub(crate) fn leave(&mut self, exit: u32) {
        self.store_constant(offset_of!(Context, exit), exit);
        self.emit(Instruction::with1(Code::Jmp_rm64, of(offset_of!(Context, leave))));
    }
}

fn cleared(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes
}

/// Gives what the four bytes of a jump must hold to lead to `target`.
pub(crate) fn distance(jump: Jump, target: u64) -> i32 {
    // Both lie in the code memory, which is far smaller than 2 GiB.
    target.wrapping_sub(jump.distance_at + 4) as i32
}

/// Gives the operand for a field of the core's context.
pub(crate) fn of(field: Field) -> MemoryOperand {
    MemoryOperand::new(Register::None, Register::None, 1, field as i64, 8, false, Register::GS)
}

/// Gives the operand for an entry of a table in the context.
pub(crate) fn entry_of(table: Field, index: Register) -> MemoryOperand {
    MemoryOperand::new(index, Register::None, 1, table as i64, 8, false, Register::GS)
}

/// Gives one of the fields for registers set aside.
pub(crate) fn spill(n: usize) -> Field {
    offset_of!(Context, spill) + 8 * n
}

impl Assembler {
    /// Jumps away unless a field holds more than `least`.
    pub(crate) fn unless_above(&mut self, field: Field, least: i32) -> Jump {
        let code = if least == 0 { Code::Cmp_rm64_imm8 } else { Code::Cmp_rm64_imm32 };
        self.emit(Instruction::with2(code, of(field), least));
        self.branch(Code::Jle_rel32_64)
    }

    /// Jumps away unless a field is set.
    pub(crate) fn unless_set(&mut self, field: Field) -> Jump {
        self.emit(Instruction::with2(Code::Cmp_rm64_imm8, of(field), 0));
        self.branch(Code::Je_rel32_64)
    }

    /// Adds to a field.
    pub(crate) fn add(&mut self, field: Field, value: u32) {
        self.emit(Instruction::with2(Code::Add_rm64_imm32, of(field), value.cast_signed()));
    }

    /// Subtracts from a field.
    pub(crate) fn subtract(&mut self, field: Field, value: u32) {
        self.emit(Instruction::with2(Code::Sub_rm64_imm32, of(field), value.cast_signed()));
    }
}

//! How a block ends: branches, and instructions that the engine interprets.

use core::mem::offset_of;

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic, OpKind,
    Register,
};

use super::access::State;
use super::assembler::{of, spill};
use super::registers::{GENERAL, Set};
use super::{Decoded, Ending, Exit, Kind, Special, Translator};
use crate::context::Context;

/// Whether an instruction is a locked read-modify-write: by its prefix, or `xchg` with memory.
pub(crate) fn is_locked(instruction: &Instruction) -> bool {
    instruction.has_lock_prefix()
        || instruction.mnemonic() == Mnemonic::Xchg
            && instruction.op_kinds().any(|kind| kind == OpKind::Memory)
}

/// Recognises what is interpreted.
pub(crate) fn special(
    info: &mut InstructionInfoFactory,
    instruction: &Instruction,
) -> Option<Special> {
    use Mnemonic as M;
    let register = || instruction.op0_register();
    let number = || register().full_register().number() as u8;
    if instruction.is_invalid() {
        return Some(Special::Illegal);
    }
    Some(match instruction.mnemonic() {
        M::Syscall => Special::Syscall,
        M::Cpuid => Special::Cpuid,
        M::Rdtsc => Special::Rdtsc { core: false },
        M::Rdtscp => Special::Rdtsc { core: true },
        M::Rdpid => Special::Rdpid(number()),
        M::Rdrand | M::Rdseed => {
            Special::Random { register: number(), bytes: register().size() as u8 }
        }
        M::Umwait | M::Tpause => Special::TimedWait,
        M::Umonitor | M::Monitorx | M::Mwaitx => Special::Monitor,
        M::Xbegin => Special::Xbegin(instruction.near_branch_target()),
        M::Xtest => Special::Xtest,
        M::Ud2 | M::Ud1 | M::Ud0 | M::Hlt => Special::Illegal,
        M::Int3 => Special::Breakpoint,
        M::Int1 | M::Int | M::Into | M::Sysenter => Special::Unsupported,
        M::Rdfsbase | M::Rdgsbase | M::Wrfsbase | M::Wrgsbase => Special::Unsupported,
        M::Xabort | M::Xend => Special::Unsupported,
        _ => return unsupported(info, instruction).then_some(Special::Unsupported),
    })
}

/// Whether an instruction does what cannot be simulated: it names GS or far code, loads a segment.
fn unsupported(info: &mut InstructionInfoFactory, instruction: &Instruction) -> bool {
    let names_gs = info.info(instruction).used_memory().iter().any(|m| m.segment() == Register::GS);
    let loads_segment = instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().is_segment_register();
    let far = matches!(
        instruction.mnemonic(),
        Mnemonic::Retf | Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq
    ) || instruction.is_jmp_far()
        || instruction.is_call_far()
        || instruction.is_jmp_far_indirect()
        || instruction.is_call_far_indirect();
    // A branch through memory at FS with registers in its address: no compiler writes it.
    let through_fs = matches!(
        instruction.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall
    ) && instruction.op0_kind() == OpKind::Memory
        && instruction.memory_segment() == Register::FS
        && instruction.memory_base() != Register::None;
    names_gs || loads_segment || far || through_fs
}

impl Special {
    /// Whether it is an instruction of the thread's.
    pub(crate) fn is_instruction(self) -> bool {
        !matches!(self, Self::End | Self::Vdso(_) | Self::Forbidden(_) | Self::Unmapped)
    }
}

impl Translator {
    /// Writes the block's end.
    pub(super) fn ending(
        &mut self,
        ending: Ending,
        decoded: &[Decoded],
        flags: &[u32],
        live: &[Set],
        rip: u64,
    ) {
        let last = decoded.last().map(|one| one.instruction);
        match (ending, last) {
            (Ending::Special(special), last) => {
                let at = last.map_or(rip, |last| {
                    if special.is_instruction() { last.ip() } else { last.next_ip() }
                });
                let resume = last.map_or(0, |last| last.next_ip());
                let kind = Kind::Special(special);
                let exit = self.exit(Exit { rip: at, resume, remaining: 0, kind });
                self.assembler.leave(exit);
            }
            (Ending::Next, Some(last)) => self.go_to(last.next_ip()),
            (Ending::Flow, Some(last)) => {
                let at = decoded.len() - 1;
                let state = State {
                    rip: last.ip(),
                    remaining: self.costs.of_one(self.pace) as u32,
                    flags: flags[at] != 0,
                    live: live[at],
                    last: true,
                };
                self.branch(&last, state);
            }
            (_, None) => {}
        }
    }

    fn go_to(&mut self, target: u64) {
        let jump = self.assembler.jump();
        self.lead_to(jump, target);
    }

    fn branch(&mut self, instruction: &Instruction, state: State) {
        match instruction.flow_control() {
            FlowControl::UnconditionalBranch => self.go_to(instruction.near_branch_target()),
            FlowControl::ConditionalBranch => self.conditional(instruction),
            FlowControl::Call => {
                self.accesses(instruction, state);
                self.push_return(instruction.next_ip());
                self.go_to(instruction.near_branch_target());
            }
            FlowControl::IndirectBranch => {
                self.accesses(instruction, state);
                self.target(instruction);
                self.go_to_target(state.rip);
            }
            FlowControl::IndirectCall => {
                self.accesses(instruction, state);
                self.target(instruction);
                self.assembler.save(offset_of!(Context, target), Register::RCX);
                self.assembler.load(Register::RCX, spill(0));
                self.push_return(instruction.next_ip());
                self.assembler.save(spill(0), Register::RCX);
                self.assembler.load(Register::RCX, offset_of!(Context, target));
                self.go_to_target(state.rip);
            }
            FlowControl::Return => {
                self.accesses(instruction, state);
                self.assembler.save(spill(0), Register::RCX);
                let top = MemoryOperand::with_base(Register::RSP);
                self.assembler.emit(Instruction::with2(Code::Mov_r64_rm64, Register::RCX, top));
                let dropped = match instruction.op0_kind() {
                    OpKind::Immediate16 => i64::from(instruction.immediate16()),
                    _ => 0,
                };
                let above = MemoryOperand::with_base_displ(Register::RSP, 8 + dropped);
                self.assembler.address(Register::RSP, above);
                self.go_to_target(state.rip);
            }
            // Everything else is interpreted, and was recognised before.
            _ => self.leave_unsupported(state.rip),
        }
    }

    fn leave_unsupported(&mut self, rip: u64) {
        let kind = Kind::Special(Special::Unsupported);
        let exit = self.exit(Exit { rip, resume: 0, remaining: 0, kind });
        self.assembler.leave(exit);
    }

    fn conditional(&mut self, instruction: &Instruction) {
        if instruction.is_jcc_short_or_near() {
            let jump = self.assembler.branch(near_form(instruction));
            self.lead_to(jump, instruction.near_branch_target());
            self.go_to(instruction.next_ip());
            return;
        }
        // `loop` and `jrcxz` reach a few bytes only: over one jump to another.
        let mut short = *instruction;
        short.set_near_branch64(self.assembler.here() + instruction.len() as u64 + 5);
        let done = self.assembler.try_emit(&short);
        debug_assert!(done, "{instruction:?} cannot be encoded anew");
        self.go_to(instruction.next_ip());
        self.go_to(instruction.near_branch_target());
    }

    /// Pushes a return address, touching neither flags nor registers.
    fn push_return(&mut self, address: u64) {
        let (low, high) = (address as u32, (address >> 32) as u32);
        self.assembler.emit(Instruction::with1(Code::Pushq_imm32, low.cast_signed()));
        let upper = MemoryOperand::with_base_displ(Register::RSP, 4);
        self.assembler.emit(Instruction::with2(Code::Mov_rm32_imm32, upper, high));
    }

    /// Sets `rcx` aside and loads an indirect branch's target into it.
    fn target(&mut self, instruction: &Instruction) {
        self.assembler.save(spill(0), Register::RCX);
        match instruction.op0_kind() {
            OpKind::Register => {
                let from = GENERAL[instruction.op0_register().full_register().number()];
                if from != Register::RCX {
                    self.assembler.emit(Instruction::with2(
                        Code::Mov_r64_rm64,
                        Register::RCX,
                        from,
                    ));
                }
            }
            _ => self.load_operand(instruction, Register::RCX),
        }
    }

    /// Goes where `rcx` says; its own value is in `spill[0]`.
    fn go_to_target(&mut self, rip: u64) {
        self.assembler.save(offset_of!(Context, target), Register::RCX);
        self.assembler.save(spill(1), Register::RDX);
        self.assembler.save(spill(2), Register::RAX);
        // Entries have 16 bytes; the low 16 bits of the target choose one.
        self.assembler.emit(Instruction::with2(Code::Movzx_r32_rm16, Register::EDX, Register::CX));
        self.assembler
            .address(Register::RDX, MemoryOperand::with_base_index(Register::RDX, Register::RDX));
        self.assembler.load(Register::RAX, offset_of!(Context, targets));
        let entry = MemoryOperand::with_base_index_scale(Register::RAX, Register::RDX, 8);
        self.assembler.address(Register::RAX, entry);
        let negated = MemoryOperand::with_base(Register::RAX);
        self.assembler.emit(Instruction::with2(Code::Mov_r64_rm64, Register::RDX, negated));
        self.assembler
            .address(Register::RCX, MemoryOperand::with_base_index(Register::RCX, Register::RDX));
        let host = MemoryOperand::with_base_displ(Register::RAX, 8);
        self.assembler.emit(Instruction::with2(Code::Mov_r64_rm64, Register::RDX, host));
        self.assembler.save(offset_of!(Context, jump), Register::RDX);
        self.assembler.load(Register::RAX, spill(2));
        self.assembler.load(Register::RDX, spill(1));
        self.assembler.raw(&[0xe3, 5]); // jrcxz over the jump
        let jump = self.assembler.jump();
        self.assembler.load(Register::RCX, spill(0));
        self.assembler.emit(Instruction::with1(Code::Jmp_rm64, of(offset_of!(Context, jump))));
        self.assembler.land(jump);
        self.assembler.load(Register::RCX, spill(0));
        let exit = self.exit(Exit { rip, resume: 0, remaining: 0, kind: Kind::Indirect });
        self.assembler.leave(exit);
    }
}

/// Gives the form of a conditional jump that reaches everything.
pub(super) fn near_form(instruction: &Instruction) -> Code {
    let mut near = *instruction;
    near.as_near_branch();
    near.code()
}

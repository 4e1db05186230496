//! Rehearsals: the round of a spin loop as a function of its own.
//!
//! A core that spins and lost its line reads it once more and, most times, goes round once more.
//! To find that out, the round's own instructions run on the core's registers, without anything
//! that would have to be put back: such a round writes no memory, and no register or flag that
//! matters at its beginning. A round that would not come back is left, and the core itself executes
//! it.

use iced_x86::{Code, FlowControl, Instruction, MemoryOperand, Mnemonic, Register, UsedMemory};

use super::decode::decode_at;
use super::registers::{self, GENERAL, Set};
use super::{Block, Decoded, Translator, access, ending, flags};
use crate::spin::Round;
use crate::time::Time;

/// What is known of the round of a loop that begins with a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rehearsal {
    /// Nobody has asked.
    Unknown,
    /// It cannot be rehearsed.
    None,
    /// Code for a round of so many instructions that takes so long.
    Code { address: u64, instructions: u64, takes: Time },
}

/// Whether an instruction cannot fault but for its memory operand, and does nothing but compute or
/// branch.
fn is_simple(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let computes = matches!(
        instruction.mnemonic(),
        M::Mov
            | M::Movzx
            | M::Movsx
            | M::Movsxd
            | M::Lea
            | M::Cmp
            | M::Test
            | M::Add
            | M::Sub
            | M::Inc
            | M::Dec
            | M::Neg
            | M::And
            | M::Or
            | M::Xor
            | M::Not
            | M::Shl
            | M::Shr
            | M::Sar
            | M::Rol
            | M::Ror
            | M::Nop
            | M::Endbr64
            | M::Pause
    );
    let branches = instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near();
    !instruction.has_lock_prefix() && (computes || branches)
}

/// The most instructions of a round.
const LONGEST: u64 = 16;

/// An instruction of a round; of a conditional branch, whether it is taken.
type Step = (Decoded, bool);

impl Translator {
    /// Gives the code that rehearses a round from a block's beginning, whose first instruction is
    /// the round's only access; `None` if there is none.
    #[inline]
    pub(crate) fn rehearsal(&mut self, block: u32, round: &Round) -> Option<u64> {
        match self.blocks[block as usize].rehearsal {
            Rehearsal::Code { address, instructions, takes } => {
                (instructions == round.instructions && takes == round.takes).then_some(address)
            }
            Rehearsal::None => None,
            Rehearsal::Unknown => self.rehearse(block, round),
        }
    }

    #[cold]
    fn rehearse(&mut self, block: u32, round: &Round) -> Option<u64> {
        let short = round.instructions <= LONGEST && !self.is_full();
        let address = if short && round.loads == 1 && round.fences == 0 {
            self.round(block, round).and_then(|steps| self.write_round(&steps))
        } else {
            None
        };
        let Round { instructions, takes, .. } = *round;
        self.blocks[block as usize].rehearsal = address
            .map_or(Rehearsal::None, |address| Rehearsal::Code { address, instructions, takes });
        address
    }

    /// Gives the instructions of a round, if only one way round has as many and all are fit for it.
    fn round(&mut self, block: u32, round: &Round) -> Option<Vec<Step>> {
        let begin = self.blocks[block as usize].rip;
        let mut found = Vec::new();
        let mut open = vec![(begin, Vec::<Step>::new())];
        while let Some((at, steps)) = open.pop() {
            if steps.len() as u64 == round.instructions {
                if at == begin {
                    found.push(steps);
                }
                continue;
            }
            let Some(one) = decode_at(at).filter(|_| self.executable.contains(at)) else {
                continue;
            };
            let instruction = one.instruction;
            let mut go = |to: u64, taken: bool| {
                let mut steps = steps.clone();
                steps.push((one, taken));
                open.push((to, steps));
            };
            match instruction.flow_control() {
                FlowControl::Next => go(instruction.next_ip(), false),
                FlowControl::UnconditionalBranch => go(instruction.near_branch_target(), true),
                FlowControl::ConditionalBranch if instruction.is_jcc_short_or_near() => {
                    go(instruction.next_ip(), false);
                    go(instruction.near_branch_target(), true);
                }
                _ => {}
            }
        }
        let [steps] = &found[..] else { return None };
        let Block { live_registers, live_flags, .. } = self.blocks[block as usize];
        let fit = steps
            .iter()
            .enumerate()
            .all(|(i, (one, _))| self.is_fit(&one.instruction, i == 0, live_registers));
        (fit && live_flags & flags::in_rflags(flags::ALL) == flags::in_rflags(0))
            .then(|| steps.clone())
    }

    /// Whether an instruction may be part of a rehearsal; the first one may read memory.
    fn is_fit(&mut self, instruction: &Instruction, first: bool, live: u16) -> bool {
        if !is_simple(instruction) || instruction.memory_segment() == Register::FS {
            return false;
        }
        let info = self.info.info(instruction);
        let reads = |memory: &UsedMemory| access::direction(memory.access()).0;
        let writes = |memory: &UsedMemory| access::direction(memory.access()).1;
        if info.used_memory().iter().any(|memory| writes(memory) || reads(memory) && !first) {
            return false;
        }
        info.used_registers().iter().all(|used| {
            let register = used.register();
            if register.is_segment_register() || register.is_ip() {
                return true;
            }
            let is_general = register.is_gpr() && register.full_register() != Register::RSP;
            is_general
                && (!registers::is_written(used.access())
                    || live & 1 << register.full_register().number() == 0)
        })
    }

    /// Writes a round as a function of the registers' address, which returns 1 if it comes back to
    /// its beginning, and 0 if not.
    fn write_round(&mut self, steps: &[Step]) -> Option<u64> {
        let used = steps.iter().fold(Set::NONE, |set, (one, _)| {
            set.and(registers::used(&mut self.info, &one.instruction))
        });
        let entry = self.code.here();
        let assembler = &mut self.assembler;
        assembler.begin(entry);
        let registers = GENERAL.into_iter().filter(|&one| used.contains(one));
        // The one that holds the registers' address comes last.
        let mut order: Vec<Register> = registers.collect();
        order.sort_by_key(|&one| one == Register::RDI);
        for register in order {
            let place = 8 * register.number() as i64;
            let place = MemoryOperand::with_base_displ(Register::RDI, place);
            assembler.emit(Instruction::with2(Code::Mov_r64_rm64, register, place));
        }
        let mut leaves = Vec::new();
        for (one, taken) in steps {
            let mut instruction = one.instruction;
            match instruction.flow_control() {
                FlowControl::Next if instruction.mnemonic() == Mnemonic::Pause => {}
                FlowControl::Next => {
                    let relative = instruction.is_ip_rel_memory_operand();
                    if relative && !assembler.try_emit(&instruction) {
                        return None;
                    }
                    if !relative {
                        assembler.raw(one.bytes());
                    }
                }
                FlowControl::ConditionalBranch => {
                    if *taken {
                        instruction.negate_condition_code();
                    }
                    leaves.push(assembler.branch(ending::near_form(&instruction)));
                }
                _ => {}
            }
        }
        for value in [1, 0] {
            assembler.emit(Instruction::with2(Code::Mov_r32_imm32, Register::EAX, value));
            assembler.emit(Ok(Instruction::with(Code::Retnq)));
            leaves.drain(..).for_each(|jump| assembler.land(jump));
        }
        self.code.append(self.assembler.bytes());
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use core::arch::global_asm;
    use std::collections::BTreeMap;

    use super::*;
    use crate::context::register::{RAX, RBX, RDI};
    use crate::enter;
    use crate::translate::Costs;

    global_asm!(
        ".pushsection .text.rehearsal_tests,\"ax\",@progbits",
        // Until the word at rdi is ebx.
        "rehearsal_plain:",
        "mov eax, [rdi]",
        "cmp eax, ebx",
        "je 2f",
        "pause",
        "jmp rehearsal_plain",
        "2: ret",
        // It counts: no round is like the one before.
        "rehearsal_counts:",
        "mov eax, [rdi]",
        "inc ebx",
        "cmp eax, ebx",
        "jne rehearsal_counts",
        "ret",
        // Two ways round have as many instructions.
        "rehearsal_forks:",
        "mov eax, [rdi]",
        "test eax, 1",
        "jz 3f",
        "nop",
        "jmp rehearsal_forks",
        "3:",
        "nop",
        "jmp rehearsal_forks",
        ".popsection",
    );

    unsafe extern "C" {
        fn rehearsal_plain();
        fn rehearsal_counts();
        fn rehearsal_forks();
    }

    fn rehearsal(function: unsafe extern "C" fn(), instructions: u64) -> (Translator, Option<u64>) {
        let costs = Costs { instruction: 100, shared: 150, locked: 0, fence: 0, pause: 5000 };
        let mut translator = Translator::new(costs, BTreeMap::new()).unwrap();
        let rip = (function as *const ()).addr() as u64;
        let block = translator.block_at(rip, crate::pace::Pace::Whole);
        let round = Round { takes: 9, instructions, loads: 1, ..Round::default() };
        let code = translator.rehearsal(block, &round);
        assert_eq!(code, translator.rehearsal(block, &round), "it is kept");
        let other = Round { takes: 10, ..round };
        assert_eq!(translator.rehearsal(block, &other), None, "of another round nothing is known");
        (translator, code)
    }

    #[test]
    fn a_round_comes_back_while_the_value_is_another() {
        let (_translator, code) = rehearsal(rehearsal_plain, 5);
        let code = code.expect("the loop is simple");
        let word = 7_u32;
        let address = (&raw const word).addr() as u64;
        let goes_round = |wanted: u64, address: u64| {
            let mut registers = [0; 16];
            (registers[RAX], registers[RBX], registers[RDI]) = (1, wanted, address);
            // SAFETY: made for this loop, which reads what RDI points to.
            let back = unsafe { enter::rehearse(&registers, code, address) };
            assert_eq!((registers[RAX], registers[RBX]), (1, wanted), "registers stay as they are");
            back
        };
        assert!(goes_round(8, address));
        assert!(!goes_round(7, address));
        crate::faults::watch(0..0); // installs the handlers
        assert!(!goes_round(8, 0x10), "there is no memory");
        assert!(goes_round(6, address));
    }

    #[test]
    fn others_are_executed() {
        assert_eq!(rehearsal(rehearsal_counts, 4).1, None);
        assert_eq!(rehearsal(rehearsal_forks, 5).1, None);
        assert_eq!(rehearsal(rehearsal_plain, 6).1, None, "no way round is so long");
    }
}

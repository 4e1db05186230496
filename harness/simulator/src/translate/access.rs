//! One instruction of the straight line: its accesses asked for, then the instruction itself.

use core::mem::offset_of;

use iced_x86::{
    Code, Instruction, MemoryOperand, MemorySize, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

use super::assembler::{entry_of, of, spill};
use super::registers::{self, GENERAL, Set};
use super::{Decoded, Exit, Kind, Repair, Repeat, Stub, Touch, Translator};
use crate::context::{Context, HIT_ENTRIES, Hit};

/// What is known at an instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct State {
    /// Its address.
    pub(crate) rip: u64,
    /// The part of the block's cost that begins here.
    pub(crate) remaining: u32,
    /// Whether flags matter before it.
    pub(crate) flags: bool,
    /// Registers that matter before it.
    pub(crate) live: Set,
    /// Whether no later instruction of its block has an access.
    pub(crate) last: bool,
}

/// A probe of the core's tables, as far as its stub must know it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    index: Register,
    line: Register,
    /// Whether the two were set aside.
    saved: (bool, bool),
    flags: bool,
    place: Place,
}

/// How an address is computed.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// From registers; relative to the thread's FS base if so.
    Registers { memory: MemoryOperand, fs: bool },
    /// It is always the same.
    Constant(u64),
}

/// Whether an access reads, and whether it writes.
pub(crate) fn direction(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
    }
}

/// Whether an instruction exchanges memory with a register, by comparison or without.
fn is_exchange(instruction: &Instruction) -> bool {
    use Mnemonic::{Cmpxchg, Cmpxchg8b, Cmpxchg16b, Xchg};
    super::ending::is_locked(instruction)
        && matches!(instruction.mnemonic(), Xchg | Cmpxchg | Cmpxchg8b | Cmpxchg16b)
}

/// Recognises a string instruction that repeats.
pub(crate) fn repeats(instruction: &Instruction) -> Option<Repeat> {
    use Mnemonic::{
        Cmpsb, Cmpsd, Cmpsq, Cmpsw, Lodsb, Lodsd, Lodsq, Lodsw, Movsb, Movsd, Movsq, Movsw, Scasb,
        Scasd, Scasq, Scasw, Stosb, Stosd, Stosq, Stosw,
    };
    if !instruction.is_string_instruction()
        || !(instruction.has_rep_prefix() || instruction.has_repne_prefix())
    {
        return None;
    }
    let (source, compares, writes) = match instruction.mnemonic() {
        Movsb | Movsw | Movsd | Movsq => (true, false, true),
        Stosb | Stosw | Stosd | Stosq => (false, false, true),
        Lodsb | Lodsw | Lodsd | Lodsq => (true, false, false),
        Cmpsb | Cmpsw | Cmpsd | Cmpsq => (true, true, false),
        Scasb | Scasw | Scasd | Scasq => (false, true, false),
        _ => return None, // ports: the processor refuses them
    };
    let element = instruction.memory_size().size().clamp(1, 8) as u8;
    let while_equal = instruction.has_rep_prefix();
    Some(Repeat { element, source, compares, writes, while_equal })
}

impl Translator {
    /// Writes one instruction.
    pub(super) fn plain(&mut self, one: &Decoded, state: State) {
        let instruction = &one.instruction;
        if let Some(repeat) = repeats(instruction) {
            self.leave_and_return(state, Kind::Repeat(repeat));
            self.assembler.raw(one.bytes());
            self.leave_and_return(state, Kind::Repeated(repeat));
            return;
        }
        self.accesses(instruction, state);
        self.itself(one, state);
    }

    /// Asks for every access of an instruction.
    pub(crate) fn accesses(&mut self, instruction: &Instruction, state: State) {
        let used: Vec<UsedMemory> = self.info.info(instruction).used_memory().to_vec();
        let registers = registers::used(&mut self.info, instruction);
        let is_access = |memory: &&UsedMemory| direction(memory.access()) != (false, false);
        let mut left = used.iter().filter(is_access).count();
        for memory in used.iter().filter(is_access) {
            let touch = match direction(memory.access()) {
                (_, false) => Touch::Load,
                (false, true) => Touch::Store,
                _ if is_exchange(instruction) => Touch::Locked,
                _ if super::ending::is_locked(instruction) => Touch::Arithmetic,
                _ => Touch::Update,
            };
            left -= 1;
            let state = State { last: state.last && left == 0, ..state };
            let bytes = memory.memory_size().size();
            match place(memory) {
                Some(place) if (1..=64).contains(&bytes) && one_line(place, bytes) => {
                    self.probe(place, bytes as u8, touch, registers, state);
                }
                _ => {
                    let index = self.computed.len() as u32;
                    self.computed.push(*memory);
                    self.leave_and_return(state, Kind::Computed { index, write: touch.writes() });
                }
            }
        }
    }

    /// Leaves in the middle of a block, to come back behind.
    fn leave_and_return(&mut self, state: State, kind: Kind) {
        let State { rip, remaining, .. } = state;
        let exit = self.exit(Exit { rip, resume: 0, remaining, kind });
        self.assembler.leave(exit);
        self.exits[exit as usize].resume = self.assembler.here();
    }

    /// Looks whether the line is known to hit, and asks the engine if not.
    fn probe(&mut self, place: Place, bytes: u8, touch: Touch, used: Set, state: State) {
        let field = if touch.writes() { offset_of!(Hit, store) } else { offset_of!(Hit, load) };
        let table = offset_of!(Context, hits) + field;
        let mut taken = used.including(Register::RSP);
        if state.flags {
            taken = taken.including(Register::RAX);
        }
        let line = registers::choose(taken, state.live);
        let index = registers::choose(taken.including(line), state.live);
        let saved = (state.live.contains(index), state.live.contains(line));
        let probe = Probe { index, line, saved, flags: state.flags, place };
        if saved.1 {
            self.assembler.save(spill(1), line);
        }
        let jump = match place {
            Place::Constant(address) => {
                let entry = (address >> 6) as usize % HIT_ENTRIES * size_of::<Hit>();
                self.assembler.constant(line, address & !63);
                self.before_comparison(state.flags);
                self.assembler.emit(Instruction::with2(
                    Code::Cmp_r64_rm64,
                    line,
                    of(table + entry),
                ));
                self.assembler.branch(Code::Jne_rel32_64)
            }
            Place::Registers { memory, fs } => {
                if saved.0 {
                    self.assembler.save(spill(0), index);
                }
                self.compute(index, line, memory, fs);
                self.assembler
                    .address(line, MemoryOperand::with_base_displ(index, i64::from(bytes) - 1));
                self.before_comparison(state.flags);
                const { assert!(size_of::<Hit>() == 16) };
                let (narrow, mask) = (narrow(index), (HIT_ENTRIES as i32 - 1) << 4);
                self.assembler.emit(Instruction::with2(Code::Shr_rm32_imm8, narrow, 2));
                self.assembler.emit(Instruction::with2(Code::And_rm32_imm32, narrow, mask));
                self.assembler.emit(Instruction::with2(Code::And_rm64_imm8, line, -64));
                let entry = entry_of(table, index);
                self.assembler.emit(Instruction::with2(Code::Cmp_r64_rm64, line, entry));
                self.assembler.branch(Code::Jne_rel32_64)
            }
        };
        if state.flags {
            self.assembler.restore_flags();
        }
        self.put_back(&probe);
        let kind = Kind::Access { bytes, touch, last: state.last };
        let State { rip, remaining, .. } = state;
        let resume = self.assembler.here();
        let exit = self.exit(Exit { rip, resume, remaining, kind });
        self.stubs.push(Stub { jump, exit, repair: Repair::Probe(probe) });
    }

    fn before_comparison(&mut self, flags: bool) {
        if flags {
            self.assembler.save_flags();
        }
    }

    /// Computes an address into `into`; `second` is free for the FS base.
    fn compute(&mut self, into: Register, second: Register, memory: MemoryOperand, fs: bool) {
        self.assembler.address(into, memory);
        if fs {
            self.assembler.load(second, offset_of!(Context, fs_base));
            let sum = MemoryOperand::with_base_index(into, second);
            self.assembler.address(into, sum);
        }
    }

    /// Gives the scratch registers of a probe their values back.
    fn put_back(&mut self, probe: &Probe) {
        if probe.saved.0 && matches!(probe.place, Place::Registers { .. }) {
            self.assembler.load(probe.index, spill(0));
        }
        if probe.saved.1 {
            self.assembler.load(probe.line, spill(1));
        }
    }

    /// The stub of a probe: undoes it, and computes the address once more for the engine.
    pub(crate) fn undo(&mut self, probe: &Probe) {
        if probe.flags {
            self.assembler.restore_flags();
        }
        self.put_back(probe);
        let Probe { index, line, .. } = *probe;
        self.assembler.save(spill(0), index);
        self.assembler.save(spill(1), line);
        match probe.place {
            Place::Constant(address) => self.assembler.constant(index, address),
            Place::Registers { memory, fs } => self.compute(index, line, memory, fs),
        }
        self.assembler.save(offset_of!(Context, address), index);
        self.assembler.load(index, spill(0));
        self.assembler.load(line, spill(1));
    }

    /// Writes the instruction: as it is, or with its address made independent of where it stands.
    fn itself(&mut self, one: &Decoded, state: State) {
        let instruction = &one.instruction;
        if instruction.mnemonic() == Mnemonic::Pause {
            return; // its cost is simulated; this processor has nobody to wait for
        }
        let names_fs = instruction.op_kinds().any(|kind| kind == OpKind::Memory)
            && instruction.memory_segment() == Register::FS
            && instruction.mnemonic() != Mnemonic::Lea;
        let relative = instruction.is_ip_rel_memory_operand();
        if !names_fs {
            if !relative {
                self.assembler.raw(one.bytes());
                return;
            }
            if self.assembler.try_emit(instruction) {
                return;
            }
        }
        self.rebased(instruction, names_fs, state);
    }

    /// Writes the instruction with its operand's address in a register of its own.
    fn rebased(&mut self, instruction: &Instruction, fs: bool, state: State) {
        let used = registers::used(&mut self.info, instruction).including(Register::RSP);
        let base = registers::choose(used, state.live);
        let saved = state.live.contains(base);
        if saved {
            self.assembler.save(spill(2), base);
        }
        self.operand_into(instruction, fs, base);
        let mut rebased = *instruction;
        rebased.set_segment_prefix(Register::None);
        rebased.set_memory_base(base);
        rebased.set_memory_index(Register::None);
        rebased.set_memory_index_scale(1);
        rebased.set_memory_displ_size(0);
        rebased.set_memory_displacement64(0);
        let done = self.assembler.try_emit(&rebased);
        debug_assert!(done, "{instruction:?} cannot be encoded anew");
        if saved {
            self.assembler.load(base, spill(2));
        }
    }

    /// Computes the address of an instruction's operand into a register that it does not use.
    fn operand_into(&mut self, instruction: &Instruction, fs: bool, base: Register) {
        if instruction.is_ip_rel_memory_operand() {
            self.assembler.constant(base, instruction.memory_displacement64());
            if fs {
                // No compiler writes this; the sum goes through the context.
                self.assembler.save(spill(1), base);
                self.assembler.load(base, offset_of!(Context, fs_base));
                self.assembler.emit(Instruction::with2(Code::Add_r64_rm64, base, of(spill(1))));
            }
            return;
        }
        if fs {
            self.assembler.load(base, offset_of!(Context, fs_base));
        } else {
            self.assembler.constant(base, 0);
        }
        let displacement = instruction.memory_displacement64().cast_signed();
        let (first, index) = (instruction.memory_base(), instruction.memory_index());
        self.assembler.address(base, MemoryOperand::with_base_displ(base, displacement));
        if first != Register::None {
            // `rsp` cannot be an index, so the operand's own base stays one.
            self.assembler.address(base, MemoryOperand::with_base_index(first, base));
        }
        if index != Register::None {
            let scale = instruction.memory_index_scale();
            let scaled = MemoryOperand::with_base_index_scale(base, index, scale);
            self.assembler.address(base, scaled);
        }
    }

    /// Loads what an instruction's memory operand names into a register of 64 bits.
    pub(crate) fn load_operand(&mut self, instruction: &Instruction, into: Register) {
        let fs = instruction.memory_segment() == Register::FS;
        if fs || instruction.is_ip_rel_memory_operand() {
            self.operand_into(instruction, fs, into);
            let memory = MemoryOperand::with_base(into);
            self.assembler.emit(Instruction::with2(Code::Mov_r64_rm64, into, memory));
        } else {
            let memory = MemoryOperand::new(
                instruction.memory_base(),
                instruction.memory_index(),
                instruction.memory_index_scale(),
                instruction.memory_displacement64().cast_signed(),
                instruction.memory_displ_size(),
                false,
                Register::None,
            );
            self.assembler.emit(Instruction::with2(Code::Mov_r64_rm64, into, memory));
        }
    }
}

/// Tells how the address of an access is computed in code; `None` if the engine shall do it.
fn place(memory: &UsedMemory) -> Option<Place> {
    use iced_x86::CodeSize;
    let general = |register: Register| register == Register::None || register.is_gpr64();
    let fs = memory.segment() == Register::FS;
    let simple = matches!(memory.address_size(), CodeSize::Code64 | CodeSize::Unknown)
        && general(memory.base())
        && general(memory.index())
        && memory.vsib_size() == 0
        && memory.memory_size() != MemorySize::Unknown;
    if !simple || memory.segment() == Register::GS {
        return None;
    }
    let displacement = memory.displacement().cast_signed();
    if memory.base() == Register::None && memory.index() == Register::None && !fs {
        return Some(Place::Constant(memory.displacement()));
    }
    i32::try_from(displacement).ok()?;
    let operand = MemoryOperand::new(
        memory.base(),
        memory.index(),
        if memory.index() == Register::None { 1 } else { memory.scale() },
        displacement,
        if displacement == 0 && memory.base() != Register::None { 0 } else { 8 },
        false,
        Register::None,
    );
    Some(Place::Registers { memory: operand, fs })
}

/// Whether an access at a constant address stays in one line.
fn one_line(place: Place, bytes: usize) -> bool {
    match place {
        Place::Constant(address) => address % 64 + bytes as u64 <= 64,
        Place::Registers { .. } => true,
    }
}

/// Gives the lower half of a register.
fn narrow(register: Register) -> Register {
    const NARROW: [Register; 16] = [
        Register::EAX,
        Register::ECX,
        Register::EDX,
        Register::EBX,
        Register::ESP,
        Register::EBP,
        Register::ESI,
        Register::EDI,
        Register::R8D,
        Register::R9D,
        Register::R10D,
        Register::R11D,
        Register::R12D,
        Register::R13D,
        Register::R14D,
        Register::R15D,
    ];
    debug_assert_eq!(GENERAL[register.number()], register);
    NARROW[register.number()]
}

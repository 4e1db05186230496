//! Turns the thread's instructions into code that runs them, counts them and asks for each access.
//!
//! # Blocks
//! A block is a run of instructions up to a branch, a special instruction, `pause`, or a limit.
//! Its code begins with the question whether another core comes first, counts the whole block, and
//! then holds the thread's own instructions, byte for byte where that can be: the thread's
//! registers are in the processor's registers of the same names. Before an access stands a probe
//! of the core's tables of lines that hit; only when it fails, the engine is asked. Blocks jump to
//! each other directly; indirect branches look into a table.
//!
//! Nothing here touches a flag, a register or memory that the thread could see: registers are set
//! aside in the core's context, flags in `rax` where a later instruction needs them.

mod access;
mod address_map;
mod assembler;
mod costs;
mod decode;
mod ending;
mod flags;
mod prologue;
mod registers;
mod rehearsal;
mod special;

use std::collections::BTreeMap;

use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, UsedMemory};

use self::address_map::AddressMap;
use self::assembler::{Assembler, Jump, distance};
pub(crate) use self::costs::Costs;
pub(crate) use self::decode::reads_what_it_writes;
use self::decode::{Executable, decode_at};
use self::rehearsal::Rehearsal;
pub(crate) use self::special::{Special, Vdso};
use crate::code_memory::CodeMemory;
use crate::context::longest_slice;
use crate::enter;
use crate::pace::Pace;
use crate::time::Time;

/// The most instructions of a block.
const LONGEST: usize = 48;

/// The longest instruction in bytes.
const LONGEST_INSTRUCTION: usize = 15;

/// Code that is kept free for one block.
const ROOM: usize = 64 << 10;

/// Entries of the table for indirect branches, chosen by the low 16 bits of the target.
const TARGETS: usize = 1 << 16;

/// A translated run of instructions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// The address of its first instruction.
    pub(crate) rip: u64,
    /// For cores of which pace.
    pace: Pace,
    /// Where its code begins.
    pub(crate) entry: u64,
    /// What it costs when every access hits, in picoseconds.
    pub(crate) cost: u32,
    /// General registers that matter at its beginning, as far as the block itself tells.
    pub(crate) live_registers: u16,
    /// Flags that matter there, as bits of RFLAGS.
    pub(crate) live_flags: u32,
    /// What it adds to its core's counts.
    pub(crate) counted: Counted,
    /// The round of a loop that begins with it.
    rehearsal: Rehearsal,
}

/// A place at which generated code may leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exit {
    /// The instruction there, or the first that was not executed.
    pub(crate) rip: u64,
    /// Where to go on when the matter is settled; 0 where nothing goes on.
    pub(crate) resume: u64,
    /// How much of what the block has been charged lies behind this place.
    pub(crate) remaining: u32,
    /// What the matter is.
    pub(crate) kind: Kind,
}

/// What an access does to its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    /// It reads.
    Load,
    /// It writes, and nothing waits for that.
    Store,
    /// It reads and writes.
    Update,
    /// It reads and writes as one, and what it writes is not computed from what it reads.
    Locked,
    /// It reads and writes as one, adding or the like: what a line's home could do as well.
    Arithmetic,
}

impl Touch {
    /// Whether it is a locked instruction.
    pub(crate) fn is_locked(self) -> bool {
        matches!(self, Self::Locked | Self::Arithmetic)
    }

    /// Whether the core must have the line alone.
    #[inline]
    pub(crate) fn writes(self) -> bool {
        self != Self::Load
    }
}

/// Why generated code leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A fault that the processor reported.
    Fault,
    /// This block may begin if no other core comes first.
    Time(u32),
    /// A thread has computed for long without an access.
    Rest,
    /// The block needs the thread's vector state.
    Vector,
    /// The jump there leads nowhere yet.
    Link {
        /// Where it shall lead.
        target: u64,
        /// Its distance's address.
        jump: u64,
    },
    /// The target is in the context and not in the table.
    Indirect,
    /// An access that is not known to hit; its address is in the context.
    Access {
        /// Its size.
        bytes: u8,
        /// What it does.
        touch: Touch,
        /// Whether it is the last access of its block.
        last: bool,
    },
    /// An access whose address the engine has to compute.
    Computed {
        /// Its index in [`Translator::computed`].
        index: u32,
        /// Whether it writes.
        write: bool,
    },
    /// A string instruction is about to repeat.
    Repeat(Repeat),
    /// It has.
    Repeated(Repeat),
    /// An instruction that the engine interprets.
    Special(Special),
}

/// A repeating string instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// Bytes of an element.
    pub(crate) element: u8,
    /// Whether it reads at `rsi`.
    pub(crate) source: bool,
    /// Whether it reads at `rdi`.
    pub(crate) compares: bool,
    /// Whether it writes at `rdi`.
    pub(crate) writes: bool,
    /// Whether a comparison goes on while it finds equals, or while it finds none.
    pub(crate) while_equal: bool,
}

/// An instruction with its bytes.
#[derive(Debug, Clone, Copy)]
struct Decoded {
    instruction: Instruction,
    bytes: [u8; LONGEST_INSTRUCTION],
}

impl Decoded {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.instruction.len()]
    }
}

/// What happens at the end of generated code of a block, outside of the straight line.
struct Stub {
    jump: Jump,
    exit: u32,
    repair: Repair,
}

/// What a stub undoes before it leaves.
enum Repair {
    Nothing,
    Flags,
    /// A probe: its scratch registers, whether flags were saved, and the address to be computed.
    Probe(access::Probe),
}

/// Translates, and keeps what is translated.
pub(crate) struct Translator {
    code: CodeMemory,
    assembler: Assembler,
    info: InstructionInfoFactory,
    costs: Costs,
    /// For which pace it writes.
    pace: Pace,
    /// How long a thread may compute without an access before the engine has a look.
    patience: Time,
    /// All blocks; generated code knows them by index.
    pub(crate) blocks: Vec<Block>,
    /// All places at which generated code may leave, by index.
    pub(crate) exits: Vec<Exit>,
    /// Accesses whose address the engine computes.
    pub(crate) computed: Vec<UsedMemory>,
    /// For each pace, blocks by address.
    by_address: [AddressMap; 2],
    /// Generated code by its address: the instruction that begins there. For faults.
    places: BTreeMap<u64, u64>,
    flags_before: BTreeMap<u64, u32>,
    /// For each pace, the table for indirect branches.
    targets: [Box<[Target]>; 2],
    executable: Executable,
    /// Functions that are not executed, by their addresses.
    intercepted: BTreeMap<u64, Special>,
    stubs: Vec<Stub>,
}

/// An entry of the table for indirect branches.
#[repr(C)]
#[derive(Clone, Copy)]
struct Target {
    /// The target's address, negated: a sum of 0 is a hit that needs no flag.
    negated: u64,
    entry: u64,
}

/// An entry that no target finds: of those that look here, none has this address.
fn no_target(index: usize) -> Target {
    Target { negated: u64::from(index == 0), entry: 0 }
}

impl core::fmt::Debug for Translator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Translator").field("blocks", &self.blocks.len()).finish_non_exhaustive()
    }
}

impl Translator {
    /// An empty translator.
    ///
    /// # Errors
    /// When executable memory is refused.
    pub(crate) fn new(costs: Costs, intercepted: BTreeMap<u64, Special>) -> std::io::Result<Self> {
        let mut new = Self {
            code: CodeMemory::new()?,
            assembler: Assembler::new(),
            info: InstructionInfoFactory::new(),
            costs,
            pace: Pace::Whole,
            patience: (2 * longest_slice(costs.instruction)).min(i32::MAX as Time),
            blocks: Vec::new(),
            exits: Vec::new(),
            computed: Vec::new(),
            by_address: [AddressMap::new(), AddressMap::new()],
            places: BTreeMap::new(),
            flags_before: BTreeMap::new(),
            targets: [(); 2].map(|()| (0..TARGETS).map(no_target).collect()),
            executable: Executable::default(),
            intercepted,
            stubs: Vec::new(),
        };
        new.clear();
        Ok(new)
    }

    /// Gives the address of the table for indirect branches of a pace.
    pub(crate) fn targets(&self, pace: Pace) -> u64 {
        self.targets[pace as usize].as_ptr().expose_provenance() as u64
    }

    /// Gives what instructions cost.
    pub(crate) fn costs(&self) -> Costs {
        self.costs
    }

    /// Forgets everything, so that code is made anew.
    pub(crate) fn clear(&mut self) {
        self.code.truncate(0);
        self.blocks.clear();
        self.exits.clear();
        self.computed.clear();
        self.by_address = [AddressMap::new(), AddressMap::new()];
        self.places.clear();
        self.flags_before.clear();
        for table in &mut self.targets {
            table.iter_mut().enumerate().for_each(|(i, entry)| *entry = no_target(i));
        }
        // Index 0 of both stands for none.
        self.blocks.push(Block {
            rip: 0,
            pace: Pace::Whole,
            entry: 0,
            cost: 0,
            live_registers: 0,
            live_flags: 0,
            counted: Counted::default(),
            rehearsal: Rehearsal::Unknown,
        });
        let fault = Exit { rip: 0, resume: 0, remaining: 0, kind: Kind::Fault };
        const { assert!(enter::FAULT_EXIT == 0) };
        self.exits.push(fault);
    }

    /// Whether there may be too little room for another block.
    pub(crate) fn is_full(&self) -> bool {
        self.code.room() < ROOM
    }

    /// Gives the block that begins at an address, for a pace.
    pub(crate) fn block_at(&mut self, rip: u64, pace: Pace) -> u32 {
        match self.by_address[pace as usize].get(rip) {
            Some(block) => block,
            None => self.translate(rip, pace),
        }
    }

    /// Lets a jump lead to a block.
    pub(crate) fn link(&mut self, jump: u64, block: u32) {
        let entry = self.blocks[block as usize].entry;
        self.code.patch(jump, distance(Jump { distance_at: jump }, entry));
    }

    /// Lets indirect branches find a block.
    pub(crate) fn let_find(&mut self, block: u32) {
        let Block { rip, entry, pace, .. } = self.blocks[block as usize];
        let target = Target { negated: rip.wrapping_neg(), entry };
        self.targets[pace as usize][rip as usize % TARGETS] = target;
    }

    /// Whether code was translated that lies in a range.
    pub(crate) fn has_code(&self, range: core::ops::Range<u64>) -> bool {
        self.blocks.iter().any(|block| range.contains(&block.rip))
    }

    /// Gives the executed range of generated code.
    pub(crate) fn code_range(&self) -> core::ops::Range<u64> {
        self.code.base()..self.code.base() + crate::code_memory::CODE_BYTES as u64
    }

    /// Gives the instruction to which an address of generated code belongs.
    pub(crate) fn place(&self, address: u64) -> Option<u64> {
        self.places.range(..=address).next_back().map(|(_, &rip)| rip)
    }

    fn translate(&mut self, rip: u64, pace: Pace) -> u32 {
        self.pace = pace;
        let (decoded, ending) = self.decode(rip);
        let vector = decoded.iter().any(|one| registers::uses_vectors(&mut self.info, one));
        let x87 = decoded.iter().any(|one| registers::uses_x87(&one.instruction));
        let live_flags = self.live_flags(&decoded, ending);
        let live_registers = registers::live(&mut self.info, &decoded);

        let id = self.blocks.len() as u32;
        let pad = self.code.here().next_multiple_of(16) - self.code.here();
        self.code.append(&[0xcc; 16][..pad as usize]);
        let entry = self.code.here();
        self.assembler.begin(entry);
        let (cost, after) = self.cost(&decoded);
        let counted = self.counted(&decoded);
        self.blocks.push(Block {
            rip,
            pace,
            entry,
            cost,
            live_registers: live_registers.first().map_or(u16::MAX, |set| set.bits()),
            live_flags: flags::in_rflags(live_flags[0]),
            counted,
            rehearsal: Rehearsal::Unknown,
        });
        self.by_address[pace as usize].insert(rip, id);
        self.prologue(id, live_flags[0] != 0, vector, x87);
        let straight = match ending {
            Ending::Flow => decoded.len() - 1,
            Ending::Special(special) if special.is_instruction() => decoded.len() - 1,
            _ => decoded.len(),
        };
        let last_access = self.last_access(&decoded);
        for (i, one) in decoded[..straight].iter().enumerate() {
            self.places.insert(self.assembler.here(), one.instruction.ip());
            let state = access::State {
                rip: one.instruction.ip(),
                remaining: after[i],
                flags: live_flags[i] != 0,
                live: live_registers[i],
                last: last_access.is_none_or(|last| i >= last),
            };
            self.plain(one, state);
        }
        self.places
            .insert(self.assembler.here(), decoded.last().map_or(rip, |one| one.instruction.ip()));
        self.ending(ending, &decoded, &live_flags, &live_registers, rip);
        self.stubs();
        self.code.append(self.assembler.bytes());
        id
    }

    /// Decodes up to the block's end.
    fn decode(&mut self, rip: u64) -> (Vec<Decoded>, Ending) {
        let mut decoded = Vec::new();
        let mut at = rip;
        if let Some(&special) = self.intercepted.get(&rip) {
            return (decoded, Ending::Special(special));
        }
        while decoded.len() < LONGEST {
            let one = if self.executable.contains(at) { decode_at(at) } else { None };
            let Some(one) = one else {
                return (decoded, Ending::Special(Special::Unmapped));
            };
            at = one.instruction.next_ip();
            if let Some(special) = ending::special(&mut self.info, &one.instruction) {
                decoded.push(one);
                return (decoded, Ending::Special(special));
            }
            decoded.push(one);
            match one.instruction.flow_control() {
                FlowControl::Next if one.instruction.mnemonic() == Mnemonic::Pause => break,
                // Others may come between two read-modify-writes.
                FlowControl::Next if ending::is_locked(&one.instruction) => break,
                FlowControl::Next => {}
                _ => return (decoded, Ending::Flow),
            }
        }
        (decoded, Ending::Next)
    }

    /// Gives the flags that matter before each instruction.
    fn live_flags(&mut self, decoded: &[Decoded], ending: Ending) -> Vec<u32> {
        let mut live = match (ending, decoded.last()) {
            (Ending::Next, Some(last)) => self.flags_at(last.instruction.next_ip(), 3),
            (Ending::Flow, Some(last)) => self.flags_after(&last.instruction, 3),
            _ => flags::ALL,
        };
        let mut all: Vec<u32> = decoded
            .iter()
            .rev()
            .map(|one| {
                live = flags::before(&one.instruction, live);
                live
            })
            .collect();
        all.reverse();
        if all.is_empty() {
            all.push(flags::ALL);
        }
        all
    }

    /// Gives the flags that matter where a branch leads.
    fn flags_after(&mut self, branch: &Instruction, depth: u32) -> u32 {
        match branch.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::Call => {
                self.flags_at(branch.near_branch_target(), depth)
            }
            FlowControl::ConditionalBranch => {
                self.flags_at(branch.near_branch_target(), depth)
                    | self.flags_at(branch.next_ip(), depth)
            }
            _ => flags::ALL,
        }
    }

    /// Gives the flags that matter at an address, as far as a look ahead can tell.
    fn flags_at(&mut self, rip: u64, depth: u32) -> u32 {
        const LOOK_AHEAD: usize = 8;
        if let Some(&known) = self.flags_before.get(&rip) {
            return known;
        }
        let mut matter = 0;
        let mut open = flags::ALL;
        let mut at = rip;
        for _ in 0..LOOK_AHEAD {
            let Some(Decoded { instruction, .. }) = decode_at(at) else { break };
            matter |= open & flags::before(&instruction, 0);
            open &= flags::before(&instruction, flags::ALL);
            let special = ending::special(&mut self.info, &instruction).is_some();
            if open == 0 || special {
                break;
            }
            if instruction.flow_control() != FlowControl::Next {
                if depth > 0 {
                    open &= self.flags_after(&instruction, depth - 1);
                }
                break;
            }
            at = instruction.next_ip();
        }
        let known = matter | open;
        self.flags_before.insert(rip, known);
        known
    }

    /// Gives the last instruction with an access.
    fn last_access(&mut self, decoded: &[Decoded]) -> Option<usize> {
        let has_access = |one: &Decoded| {
            let memory = self.info.info(&one.instruction).used_memory();
            memory.iter().any(|memory| access::direction(memory.access()) != (false, false))
        };
        decoded.iter().rposition(has_access)
    }

    /// Gives the block's cost, and for each instruction the part of it that begins there.
    fn cost(&self, decoded: &[Decoded]) -> (u32, Vec<u32>) {
        let mut total = 0_u64;
        let mut after: Vec<u32> = decoded
            .iter()
            .rev()
            .map(|one| {
                total += self.costs.of_one(self.pace);
                total += match one.instruction.mnemonic() {
                    Mnemonic::Pause => self.costs.pause,
                    Mnemonic::Mfence | Mnemonic::Serialize => self.costs.fence,
                    _ if ending::is_locked(&one.instruction) => self.costs.locked,
                    _ => 0,
                };
                u32::try_from(total).unwrap_or(u32::MAX)
            })
            .collect();
        after.reverse();
        (u32::try_from(total.max(1)).unwrap_or(u32::MAX), after)
    }

    fn exit(&mut self, exit: Exit) -> u32 {
        self.exits.push(exit);
        self.exits.len() as u32 - 1
    }

    /// Writes what the straight line jumped out to.
    fn stubs(&mut self) {
        for stub in core::mem::take(&mut self.stubs) {
            self.assembler.land(stub.jump);
            match stub.repair {
                Repair::Nothing => {}
                Repair::Flags => self.assembler.restore_flags(),
                Repair::Probe(probe) => self.undo(&probe),
            }
            self.assembler.leave(stub.exit);
        }
    }

    /// A jump that leads to the code for `target`, now or when it is first taken.
    fn lead_to(&mut self, jump: Jump, target: u64) {
        if let Some(block) = self.by_address[self.pace as usize].get(target) {
            let entry = self.blocks[block as usize].entry;
            self.assembler.lead(jump, entry);
            return;
        }
        let kind = Kind::Link { target, jump: jump.distance_at };
        let exit = self.exit(Exit { rip: target, resume: 0, remaining: 0, kind });
        self.stubs.push(Stub { jump, exit, repair: Repair::Nothing });
    }
}

/// How a block ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// With the last instruction, a branch.
    Flow,
    /// It goes on in the next block.
    Next,
    /// The last instruction, if there is any, is interpreted.
    Special(Special),
}

/// What a block adds to its core's counts.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) instructions: u32,
    pub(crate) loads: u32,
    pub(crate) stores: u32,
    pub(crate) locked: u32,
    pub(crate) fences: u32,
    /// Whether there are accesses beside the counted ones, or something to be interpreted.
    opaque: bool,
}

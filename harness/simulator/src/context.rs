//! What generated code and the engine share of a core: reached through the GS segment.

use crate::time::Time;

/// Entries of the table of lines that are known to hit.
pub(crate) const HIT_ENTRIES: usize = 1024;

/// Marks an entry of the table as empty: no line has this address.
const NO_LINE: u64 = 1;

/// Marks a line that another core has got: no access has this address of a line.
const LOST: u64 = 2;

/// Bytes of the area for vector and floating-point state.
pub(crate) const VECTOR_BYTES: usize = 4096;

/// General registers in the order of their numbers in machine code.
pub(crate) mod register {
    pub(crate) const RAX: usize = 0;
    pub(crate) const RCX: usize = 1;
    pub(crate) const RDX: usize = 2;
    pub(crate) const RBX: usize = 3;
    pub(crate) const RSP: usize = 4;
    pub(crate) const RBP: usize = 5;
    pub(crate) const RSI: usize = 6;
    pub(crate) const RDI: usize = 7;
    pub(crate) const R8: usize = 8;
    pub(crate) const R9: usize = 9;
    pub(crate) const R10: usize = 10;
    pub(crate) const R11: usize = 11;
}

/// Vector and floating-point state in the processor's format.
#[repr(C, align(64))]
#[derive(Clone)]
pub(crate) struct VectorState(pub(crate) [u8; VECTOR_BYTES]);

impl VectorState {
    /// The state in which a thread begins.
    pub(crate) fn new() -> Self {
        let mut area = [0; VECTOR_BYTES];
        area[0..2].copy_from_slice(&0x037f_u16.to_le_bytes()); // x87 control word
        area[24..28].copy_from_slice(&0x1f80_u32.to_le_bytes()); // MXCSR
        area[512] = 0b11; // x87 and SSE state are present, the rest is initial
        Self(area)
    }

    /// Gives an element of 4 or 8 bytes of one of the lower 16 vector registers, of its lower 32
    /// bytes: what addresses are gathered from. `None` for others.
    pub(crate) fn element(&self, register: usize, element: usize, bytes: usize) -> Option<u64> {
        const LOW: usize = 160; // the standard format's places of XMM and of the upper half of YMM
        const HIGH: usize = 576;
        let at = element * bytes;
        let area = if at < 16 { LOW + at } else { HIGH + at - 16 };
        if register >= 16 || at >= 32 {
            return None;
        }
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&self.0[area + 16 * register..][..bytes]);
        Some(u64::from_le_bytes(value))
    }
}

/// One core as generated code sees it.
///
/// Registers of the thread on the core are here while the engine runs, and in the processor's own
/// registers while the thread runs.
#[repr(C, align(64))]
pub(crate) struct Context {
    /// General registers.
    pub(crate) registers: [u64; 16],
    /// RFLAGS.
    pub(crate) flags: u64,
    /// Where generated code goes on.
    pub(crate) resume: u64,
    /// Picoseconds until another core must be looked at; a block may begin while it is positive.
    pub(crate) left: i64,
    /// Since the engine last looked: instructions (16 bits), loads (48 bits).
    pub(crate) counts: u64,
    /// Time spent in blocks without accesses since the last block with one began.
    pub(crate) silent: u64,
    /// The block with an access that began last.
    pub(crate) block: u32,
    /// The place at which generated code was left.
    pub(crate) exit: u32,
    /// The address of the access that did not hit.
    pub(crate) address: u64,
    /// Since the engine last looked: stores.
    pub(crate) stores: u64,
    /// Since the engine last looked: locked instructions (16 bits), fences (48 bits).
    pub(crate) locked: u64,
    /// Where generated code goes to leave.
    pub(crate) leave: u64,
    /// The engine's stack while the thread runs.
    pub(crate) engine_stack: u64,
    /// Whether the thread's vector state is in the processor's registers.
    pub(crate) vector_loaded: u64,
    /// The thread's FS base.
    pub(crate) fs_base: u64,
    /// Table of targets of indirect branches.
    pub(crate) targets: u64,
    /// Where an indirect branch goes.
    pub(crate) target: u64,
    /// Host address for it.
    pub(crate) jump: u64,
    /// Registers that generated code sets aside.
    pub(crate) spill: [u64; 4],
    /// Whether the thread has used the x87 unit.
    pub(crate) x87_used: u64,
    /// The address of this structure.
    pub(crate) itself: u64,
    /// Components of vector state to save and restore.
    pub(crate) vector_mask: u64,
    /// Whether every access is put to the engine: the table stays empty.
    pub(crate) watched: bool,
    /// Lines that accesses may touch at the cost of a hit.
    pub(crate) hits: [Hit; HIT_ENTRIES],
    /// Vector state while the engine runs.
    pub(crate) vector: VectorState,
}

/// An entry of the table of lines.
#[repr(C, align(16))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hit {
    /// The line that a load may touch.
    pub(crate) load: u64,
    /// The line that a store may touch.
    pub(crate) store: u64,
}

impl Hit {
    const NONE: Self = Self { load: NO_LINE, store: NO_LINE };
}

impl Context {
    /// The bytes that every core needs that goes on.
    pub(crate) const HOT: usize = core::mem::offset_of!(Self, leave);

    /// Gives the place of a line's entry in the table.
    #[inline]
    pub(crate) const fn hit_of(line: u64) -> usize {
        core::mem::offset_of!(Self, hits) + entry(line) * size_of::<Hit>()
    }

    /// A core without a thread and without lines.
    pub(crate) fn new(vector_mask: u64) -> Self {
        Self {
            registers: [0; 16],
            flags: 0x202,
            resume: 0,
            leave: crate::enter::leave_address(),
            engine_stack: 0,
            fs_base: 0,
            left: 0,
            counts: 0,
            stores: 0,
            locked: 0,
            targets: 0,
            silent: 0,
            block: 0,
            exit: 0,
            address: 0,
            target: 0,
            jump: 0,
            spill: [0; 4],
            vector_loaded: 0,
            x87_used: 0,
            itself: 0,
            vector_mask,
            watched: false,
            hits: [Hit::NONE; HIT_ENTRIES],
            vector: VectorState::new(),
        }
    }

    /// Tells the context where it is; it stays there from now on.
    pub(crate) fn settle(&mut self) {
        self.itself = (&raw const *self).expose_provenance() as u64;
    }

    /// Lets loads, and stores if `write`, of a line pass.
    #[inline]
    pub(crate) fn may(&mut self, line: u64, write: bool) {
        if self.watched {
            return;
        }
        let hit = &mut self.hits[entry(line)];
        hit.load = line;
        if write {
            hit.store = line;
        }
    }

    /// Lets accesses to a line pass no more: another core has got it. It stays in the cache.
    #[inline]
    pub(crate) fn lost(&mut self, line: u64) {
        let hit = &mut self.hits[entry(line)];
        if hit.store == line {
            hit.store = NO_LINE;
        }
        if hit.load == line {
            hit.load = line | LOST;
        }
    }

    /// Lets stores to a line pass no more.
    pub(crate) fn may_not_store(&mut self, line: u64) {
        let hit = &mut self.hits[entry(line)];
        if hit.store == line {
            hit.store = NO_LINE;
        }
    }

    /// A line has left the cache.
    pub(crate) fn gone(&mut self, line: u64) {
        let hit = &mut self.hits[entry(line)];
        if hit.store == line {
            hit.store = NO_LINE;
        }
        if hit.load & !LOST == line {
            hit.load = NO_LINE;
        }
    }

    /// Whether a line is known to be in the L1, though another core may have got it since.
    #[inline]
    pub(crate) fn is_cached(&self, line: u64) -> bool {
        self.hits[entry(line)].load & !LOST == line
    }
}

/// The entry of a line in the table.
#[inline]
const fn entry(line: u64) -> usize {
    (line >> 6) as usize % HIT_ENTRIES
}

/// The most time that may be left, or be overdrawn, when a thread goes on. Blocks without accesses
/// may overdraw twice as much, so that 16 bits hold the instructions of all.
pub(crate) fn longest_slice(instruction: Time) -> Time {
    instruction.max(1) * 0x3fff
}

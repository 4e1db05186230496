//! Probes: a thread's pseudo-random shard, which it leaves when it meets others there.
//! # Algorithm
//! `PROBE` holds the calling thread's number, 0 while it has none. The first one is made of the
//! thread's slot, so that few threads start apart; `advance` takes the next of a xorshift.
//! # Why
//! Against a fixed slot it lets a thread that meets another go elsewhere.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `PROBE` | 4 a thread | 4 | 1 | its thread |
//! # Cost
//! 1 load, 1 compare. The first use in a thread: that of `TlsSlot`.
//! # Progress
//! Wait-free; the first use in a thread is lock-free.
//! # Invariants
//! - I1: a probe that is not 0 never becomes 0.
//! # Synchronization
//! none
//! # Errors and limits
//! One probe a thread for all counters: moving for one moves for all. Where thread-local values
//! without destructors are destroyed too, late destructors use shard 0.
//! # References
//! G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8(14), 2003.

use core::cell::Cell;

use crate::contract::{Reprobe, ShardIndex};
use crate::tls_slot::TlsSlot;

std::thread_local! {
    static PROBE: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread's probe: its slot at first, any number after it has met others.
///
/// ```
/// use counters::{Reprobe, ShardIndex, TlsProbe};
/// let before = TlsProbe::current();
/// assert_eq!(TlsProbe::current(), before);
/// let after = TlsProbe::advance();
/// assert_ne!(after, before);
/// assert_eq!(TlsProbe::current(), after);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TlsProbe;

/// The next number of the sequence, which visits all but 0.
const fn next(mut probe: u32) -> u32 {
    probe ^= probe << 13;
    probe ^= probe >> 17;
    probe ^ (probe << 5)
}

impl ShardIndex for TlsProbe {
    #[inline]
    fn current() -> usize {
        match PROBE.try_with(Cell::get) {
            Ok(0) => first(),
            Ok(probe) => probe as usize,
            Err(_) => 0,
        }
    }
}

impl Reprobe for TlsProbe {
    fn advance() -> usize {
        let probe = next((Self::current() as u32).max(1));
        let _ = PROBE.try_with(|cached| cached.set(probe));
        probe as usize
    }
}

/// Makes the first probe of a thread: its slot, with bits above that set it apart later.
#[cold]
fn first() -> usize {
    let slot = TlsSlot::current() as u32;
    // Odd multiples of a large number: different sequences from different slots. The low bits are
    // the slot's, so that the first shards differ as slots do.
    let probe = ((slot + 1).wrapping_mul(0x9e37_79b9) & !0x3ff) | (slot & 0x3ff);
    let probe = if probe == 0 { 1 << 31 } else { probe };
    let _ = PROBE.try_with(|cached| cached.set(probe));
    probe as usize
}

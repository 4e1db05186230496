//! The suite that every pool passes; yours too.
//!
//! ```
//! # mod my {
//! // In a test file of your crate:
//! alloc_arena::pool_conformance!(alloc_arena::TreiberPool<alloc_arena::Heap, 64>);
//! # }
//! ```
//!
//! The functions return what they found instead of panicking, so that the suite itself can be tested
//! on pools that are broken. A block is written only after its address was checked.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::ptr::NonNull;
use std::sync::Mutex;
use std::thread;

use crate::conformance::{BYTES, Violation, violation};
use crate::contract::Map;
use crate::pool::{Handle, Pool};
use crate::request::Request;

/// Threads of the tests with several.
const THREADS: usize = 4;

fn map<P: Pool + Map>() -> Result<P, Violation> {
    let pool = P::map(BYTES, &Request::new());
    let pool = pool.map_err(|error| Violation(format!("{BYTES} bytes without a wish: {error}")))?;
    let (capacity, reach) = (pool.capacity(), pool.reach());
    if capacity * P::BLOCK.size() < BYTES || reach == 0 || reach > capacity {
        return violation(format!("{BYTES} bytes make {capacity} blocks, {reach} within reach"));
    }
    Ok(pool)
}

fn handle<P: Pool>(pool: &P) -> Result<P::Handle<'_>, Violation> {
    pool.handle().ok_or_else(|| Violation("a pool without handles gives none".into()))
}

/// Blocks that are out: start → pattern.
#[derive(Default)]
struct Out(BTreeMap<usize, (NonNull<u8>, u8)>);

impl Out {
    /// Checks a block against the pool and all that are out, then fills it.
    fn enter<P: Pool>(&mut self, pool: &P, block: NonNull<u8>) -> Result<(), Violation> {
        let (start, layout) = (block.addr().get(), P::BLOCK);
        if start % layout.align() != 0 || pool.number_of(block).is_none() {
            return violation(format!("{start:#x} is no block of the pool"));
        }
        if let Some((&other, _)) = self.0.range(..start + layout.size()).next_back()
            && other + layout.size() > start
        {
            return violation(format!("{start:#x} overlaps {other:#x}, which is out"));
        }
        let pattern = self.0.len() as u8 | 1;
        // SAFETY: the pool promises that the bytes are the getter's; no other block overlaps them.
        unsafe { block.write_bytes(pattern, layout.size()) };
        self.0.insert(start, (block, pattern));
        Ok(())
    }

    /// Checks that a block still holds its pattern, and forgets it.
    fn leave<P: Pool>(&mut self, start: usize) -> Result<NonNull<u8>, Violation> {
        let Some((block, pattern)) = self.0.remove(&start) else {
            return violation(format!("{start:#x} is not out"));
        };
        let bytes = NonNull::slice_from_raw_parts(block, P::BLOCK.size());
        // SAFETY: written in `enter`, and not put since.
        let bytes = unsafe { bytes.as_ref() };
        match bytes.iter().position(|&byte| byte != pattern) {
            Some(at) => violation(format!("byte {at} of the block at {start:#x} has changed")),
            None => Ok(block),
        }
    }
}

/// Blocks are aligned, whole, apart and keep what is written to them, in any order of puts; all that
/// is within reach can be had again and again, and no more.
///
/// # Errors
/// When they are or do not, or it cannot.
pub fn blocks_are_apart_and_come_back<P: Pool + Map>() -> Result<(), Violation> {
    let pool = map::<P>()?;
    let handle = handle(&pool)?;
    let mut seed = 7_usize;
    for round in 0..6 {
        let mut out = Out::default();
        while let Ok(block) = handle.try_get() {
            out.enter(&pool, block)?;
        }
        if out.0.len() != pool.reach() {
            let (got, reach) = (out.0.len(), pool.reach());
            return violation(format!("round {round}: {got} blocks of {reach} within reach"));
        }
        let mut starts: Vec<usize> = out.0.keys().copied().collect();
        while !starts.is_empty() {
            seed = seed.wrapping_mul(0x9e37_79b9).wrapping_add(round + 1);
            let start = match round {
                0 => starts.pop().unwrap_or_default(),
                1 => starts.remove(0),
                _ => starts.swap_remove((seed >> 7) % starts.len()),
            };
            let block = out.leave::<P>(start)?;
            // SAFETY: got above, put once, not used any more.
            unsafe { handle.put(block) };
            // Halfway, one comes and goes.
            if starts.len() == pool.reach() / 2 {
                let Ok(block) = handle.try_get() else {
                    return violation("a pool with free blocks refused".into());
                };
                out.enter(&pool, block)?;
                let block = out.leave::<P>(block.addr().get())?;
                // SAFETY: as above.
                unsafe { handle.put(block) };
            }
        }
    }
    Ok(())
}

/// What a handle kept is there for the next one.
///
/// # Errors
/// When it is lost.
pub fn dropped_handles_lose_nothing<P: Pool + Map>() -> Result<(), Violation> {
    let pool = map::<P>()?;
    let kept: usize = pool.reach() / 3 + 1;
    for round in 0..4 {
        let first = handle(&pool)?;
        let blocks: Vec<NonNull<u8>> = (0..kept).filter_map(|_| first.try_get().ok()).collect();
        if blocks.len() != kept {
            return violation(format!("round {round}: {} of {kept} blocks", blocks.len()));
        }
        drop(first);
        let second = handle(&pool)?;
        for block in blocks {
            // SAFETY: got above from the same pool, put once.
            unsafe { second.put(block) };
        }
        drop(second);
        let third = handle(&pool)?;
        let all: Vec<NonNull<u8>> = core::iter::from_fn(|| third.try_get().ok()).collect();
        if all.len() != pool.reach() {
            return violation(format!("round {round}: {} of {} left", all.len(), pool.reach()));
        }
        for block in all {
            // SAFETY: as above.
            unsafe { third.put(block) };
        }
    }
    Ok(())
}

/// Addresses beside blocks belong to no block, nor do those of another pool.
///
/// # Errors
/// When one does.
pub fn foreign_addresses_have_no_number<P: Pool + Map>() -> Result<(), Violation> {
    let (pool, other) = (map::<P>()?, map::<P>()?);
    let block = handle(&pool)?.try_get();
    let stranger = handle(&other)?.try_get();
    let (Ok(block), Ok(stranger)) = (block, stranger) else {
        return violation("a new pool refused".into());
    };
    let beside = |offset: isize| NonNull::new(block.as_ptr().wrapping_offset(offset));
    let inside = [1, 4, P::BLOCK.size() as isize - 1, -1].map(beside);
    let far = beside((P::BLOCK.size() * (pool.capacity() + 1)) as isize);
    let local = NonNull::from(&pool).cast::<u8>();
    for address in inside.into_iter().flatten().chain(far).chain([stranger, local]) {
        if pool.number_of(address).is_some() {
            return violation(format!("{address:?} passes for a block; {block:?} is one"));
        }
    }
    if pool.number_of(block).is_none_or(|number| number >= pool.capacity()) {
        return violation(format!("{block:?} is a block without a number"));
    }
    Ok(())
}

/// Threads that get and put at once, some of them blocks that others got, never have a block
/// together, and lose none.
///
/// # Errors
/// When they have or do.
pub fn threads_share_no_block<P: Pool + Map>() -> Result<(), Violation> {
    let pool = map::<P>()?;
    let threads = if P::PROPERTIES.thread_safe { THREADS } else { 1 };
    // Blocks on their way from who got them to who puts them.
    let way = Mutex::new(Vec::<Carried>::new());
    let visit = |id: usize, handle: P::Handle<'_>| -> Result<(), Violation> {
        let mut mine: Vec<Carried> = Vec::new();
        for step in 0..4000 {
            if let Some(carried) = mine.pop_if(|_| step % 5 == 4) {
                carried.put::<P>(&handle)?;
            } else if let Ok(block) = handle.try_get() {
                mine.push(Carried::fill::<P>(block, (id * 40 + step % 40) as u8));
            }
            if step % 7 == 0
                && let Ok(mut way) = way.try_lock()
            {
                way.extend(mine.pop());
                let other = way.pop_if(|_| step % 2 == 0);
                drop(way);
                other.map_or(Ok(()), |carried| carried.put::<P>(&handle))?;
            }
            while mine.len() > 12 {
                mine.swap_remove(step % 12).put::<P>(&handle)?;
            }
        }
        mine.into_iter().try_for_each(|carried| carried.put::<P>(&handle))
    };
    thread::scope(|scope| -> Result<(), Violation> {
        let started: Vec<_> = (0..threads)
            .map(|id| handle(&pool).map(|handle| scope.spawn(move || visit(id, handle))))
            .collect::<Result<_, _>>()?;
        started.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => violation("a thread panicked".into()),
        })
    })?;
    let handle = handle(&pool)?;
    if let Ok(way) = way.into_inner() {
        way.into_iter().try_for_each(|carried| carried.put::<P>(&handle))?;
    }
    let mut out = Out::default();
    while let Ok(block) = handle.try_get() {
        out.enter(&pool, block)?;
    }
    // Blocks of other owners are where they belong.
    if out.0.len() != pool.reach() {
        return violation(format!("{} of {} blocks are left", out.0.len(), pool.reach()));
    }
    Ok(())
}

/// A block full of a pattern, that goes from thread to thread.
struct Carried(NonNull<u8>, u8);

// SAFETY: whoever has it has the block alone.
unsafe impl Send for Carried {}

impl Carried {
    fn fill<P: Pool>(block: NonNull<u8>, pattern: u8) -> Self {
        // SAFETY: a block that was got.
        unsafe { block.write_bytes(pattern, P::BLOCK.size()) };
        Self(block, pattern)
    }

    fn put<P: Pool>(self, handle: &P::Handle<'_>) -> Result<(), Violation> {
        let bytes = NonNull::slice_from_raw_parts(self.0, P::BLOCK.size());
        // SAFETY: filled above; got by whoever sent it, and by nobody else.
        if unsafe { bytes.as_ref() }.iter().any(|&byte| byte != self.1) {
            return violation(format!("somebody wrote to {:?} while it was out", self.0));
        }
        // SAFETY: got from the same pool, put once, not used any more.
        unsafe { handle.put(self.0) };
        Ok(())
    }
}

/// Runs the suite over a type that implements [`Pool`] and [`Map`].
///
/// `alloc_arena::pool_conformance!(MyPool)` makes one module of tests; a second pool in the same
/// module needs a name: `alloc_arena::pool_conformance!(other: OtherPool)`.
#[macro_export]
macro_rules! pool_conformance {
    ($pool:ty) => { $crate::pool_conformance!(pool_conformance: $pool); };
    ($name:ident: $pool:ty) => {
        mod $name {
            #[allow(unused_imports, reason = "the type may be written with a full path")]
            use super::*;
            use $crate::pool_conformance as suite;

            #[test]
            fn keeps_blocks_apart_and_takes_them_back() {
                suite::blocks_are_apart_and_come_back::<$pool>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn loses_nothing_with_a_handle() {
                suite::dropped_handles_lose_nothing::<$pool>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn knows_its_blocks() {
                suite::foreign_addresses_have_no_number::<$pool>()
                    .unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn shares_no_block_between_threads() {
                suite::threads_share_no_block::<$pool>().unwrap_or_else(|v| panic!("{v}"));
            }
            #[test]
            fn refuses_impossible_sizes() {
                use $crate::Map;
                let most = isize::MAX as usize;
                for bytes in [0, most, most + 1, usize::MAX - 4096, usize::MAX] {
                    assert!(<$pool>::map(bytes, &$crate::Request::new()).is_err(), "{bytes}");
                }
            }
        }
    };
}

//! Limit counter: an exact upper limit, and adds that meet nobody while it is far away.
//! # Algorithm
//! What may still be added are tokens. `pool` holds some, each of the `N` `allowances` some more,
//! and what is in none of them has been added. `try_add` takes its tokens from its shard's
//! allowance with a CAS. If there are too few it closes `pool`, which is the lock of all that
//! follows: it takes its tokens there, and an `N`th of what is left, up to `ALLOWANCE`, for its
//! shard. If `pool` has too few as well it closes every shard and takes all their tokens; now
//! nothing can move, so if it still has too few, it refuses, and otherwise the rest is `pool`'s.
//! `sub` gives tokens back to its shard, or half of them to `pool` where that would make more than
//! `ALLOWANCE`. `sum` closes everything, looks, and opens it again.
//! # Why
//! Against an `atomic` counter with a compare it removes the transfer from an add, as long as there
//! are tokens for all. Against `batched` and its estimate, no add is refused while there is room,
//! and none is let through when there is none. It adds a CAS to an add, and near the limit a lock
//! and a visit to every shard.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `LimitCounter<N, I>` | 128 (N + 1) | 128 | 2 (N + 1) | each allowance: the threads whose index names it, who closes it; `pool`: whose allowance is spent or full |
//! | `LimitCounter<128, I>` | 16512 | 128 | 258 | as above |
//!
//! 128 bytes are a pair of lines on x86-64 and AArch64; other targets pad to what their CPUs need.
//! # Cost
//! Add: the index, 1 load and 1 RMW on 1 line, and 3 RMWs and a transfer more for each allowance
//! that is spent. An add that `pool` has too few tokens for, and `sum`: `N` RMWs and `N` stores.
//! # Progress
//! Blocking: a thread that is stopped while it has closed `pool` stops those whose allowance does
//! not do, and while it has closed the shards, everybody. Otherwise lock-free. Handlers of signals
//! must not use it.
//! # Invariants
//! - I1: tokens are moved, never made: `limit` is what was added, plus the tokens in all words, plus
//!   those that whoever closed `pool` has in hand.
//! - I2: a word that is `CLOSED` is written by whoever closed `pool`, only; shards are closed by
//!   that one, only.
//! - I3: an allowance that is not `CLOSED` is not negative.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | `open`, the store to `pool` | `close`, the CAS on `pool` | what was done while it was closed (I2) |
//! | E2 | the store that opens a shard | the CAS of an add or a sub there | that all shards were closed before |
//!
//! A count publishes nothing but itself. By E2 whoever adds in a shard that was opened again does
//! not then find another shard as it was before; so all that ever happens in the shards is before
//! or after the moment at which all were closed, and what was found there is what there was.
//! # Errors and limits
//! Limits up to `i64::MAX` (`i32::MAX` without 64-bit atomics). An add is refused if and only if it would pass the limit at one moment
//! between its call and its return. At most `N` · `ALLOWANCE` tokens are in shards
//! ([`LimitCounter::max_hoarded`]); they are room for any add, at the price of a visit to every
//! shard. An add that is refused pays that price too: a counter that stands at its limit is slow.
//! To give back more than was added raises the limit.
//! # References
//! P. E. McKenney, "Is Parallel Programming Hard, And, If So, What Can You Do About It?", chapter
//! "Counting", atomic limit counters. Differs from the text in: shards for threads, tokens instead
//! of counts and maxima, shards that are closed, so that no add is refused wrongly.

use core::fmt;
use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{Explicit, ShardIndex};
use super::hot::{HotField, HotFields, Role};
use super::sync::atomic::{AtomicI64, Ordering};
use super::sync::{const_fn, spin_loop};

/// In place of a number of tokens, which is never negative.
const CLOSED: i64 = -1;

/// The most that a word holds.
const MOST: i64 = if cfg!(target_has_atomic = "64") { i64::MAX } else { i32::MAX as i64 };

/// Counts up to a limit in `N` allowances of up to `ALLOWANCE`; `I` names the calling thread's.
///
/// ```
/// # #[cfg(feature = "std")] {
/// use counters::{AtLimit, LimitCounter, TlsSlot};
/// static CONNECTIONS: LimitCounter<64, TlsSlot> = LimitCounter::new(1000);
/// CONNECTIONS.try_add(998)?;
/// assert_eq!(CONNECTIONS.try_add(3), Err(AtLimit));
/// CONNECTIONS.try_add(2)?;
/// CONNECTIONS.sub(1000);
/// assert_eq!(CONNECTIONS.sum(), 0);
/// # }
/// # Ok::<(), counters::AtLimit>(())
/// ```
pub struct LimitCounter<const N: usize, I = Explicit, const ALLOWANCE: i64 = 1024> {
    allowances: [CachePadded<AtomicI64>; N],
    pool: CachePadded<Pool>,
    index: PhantomData<fn() -> I>,
}

/// Tokens in no allowance, and how many there are in all.
struct Pool {
    tokens: AtomicI64,
    limit: i64,
}

/// An add would have passed the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtLimit;

impl fmt::Display for AtLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the counter is at its limit")
    }
}

impl core::error::Error for AtLimit {}

impl<const N: usize, I, const ALLOWANCE: i64> LimitCounter<N, I, ALLOWANCE> {
    const MASK: usize = {
        assert!(N.is_power_of_two(), "the number of shards is a power of two");
        assert!(ALLOWANCE >= 0, "an allowance is a number of tokens");
        N - 1
    };

    const_fn! {
        /// Makes a counter at zero that never exceeds `limit`, or `i64::MAX` if that is less;
        /// `i32::MAX` where the target has no 64-bit atomics.
        pub fn new(limit: u64) -> Self {
            let _ = Self::MASK;
            let limit = if limit > MOST as u64 { MOST } else { limit as i64 };
            Self {
                allowances: [const { CachePadded::new(AtomicI64::new(0)) }; N],
                pool: CachePadded::new(Pool { tokens: AtomicI64::new(limit), limit }),
                index: PhantomData,
            }
        }
    }

    /// Adds `n` if the total is at most the limit then, in the shard `shard mod N`.
    ///
    /// # Errors
    /// When it would pass the limit; then nothing was added.
    #[inline]
    pub fn try_add_at(&self, shard: usize, n: u64) -> Result<(), AtLimit> {
        let n = i64::try_from(n).map_err(|_| AtLimit)?;
        let allowance = &self.allowances[shard & Self::MASK];
        if change(allowance, |tokens| (tokens >= n).then(|| tokens - n)) {
            return Ok(());
        }
        self.add_from_pool(allowance, n)
    }

    /// Takes `n` back that was added before, in any shard, to the shard `shard mod N`.
    #[inline]
    pub fn sub_at(&self, shard: usize, n: u64) {
        // More than was ever added is the caller's mistake; it must not make a number negative.
        let n = n.min(i64::MAX as u64) as i64;
        let allowance = &self.allowances[shard & Self::MASK];
        let room = |tokens: i64| tokens != CLOSED && n <= ALLOWANCE.saturating_sub(tokens);
        if !change(allowance, |tokens| room(tokens).then(|| tokens + n)) {
            self.sub_to_pool(allowance, n);
        }
    }

    /// Reads the total at one moment at which nothing moves.
    pub fn sum(&self) -> i64 {
        let pool = self.close();
        let tokens = self.close_shards();
        self.open_shards(tokens);
        self.open(pool);
        let left = |left: i64, tokens: &i64| left.wrapping_sub(*tokens);
        tokens.iter().fold(self.limit(), left).wrapping_sub(pool)
    }

    /// Tells the limit.
    pub fn limit(&self) -> i64 {
        self.pool.limit
    }

    /// Tells the most tokens that shards hold while others take theirs from the pool.
    pub const fn max_hoarded(&self) -> u64 {
        (N as u64).saturating_mul(ALLOWANCE as u64)
    }

    #[cold]
    fn add_from_pool(&self, allowance: &AtomicI64, n: i64) -> Result<(), AtLimit> {
        let mut pool = self.close();
        if pool < n {
            let tokens = self.close_shards();
            pool = tokens.iter().fold(pool, |all, tokens| all.saturating_add(*tokens));
            self.open_shards([0; N]);
        }
        let left = pool - n;
        if left >= 0 {
            let share = (left / N as i64).min(ALLOWANCE);
            pool = settle(allowance, left, |tokens| tokens.max(share));
        }
        self.open(pool);
        if left >= 0 { Ok(()) } else { Err(AtLimit) }
    }

    #[cold]
    fn sub_to_pool(&self, allowance: &AtomicI64, n: i64) {
        let pool = self.close().saturating_add(n);
        self.open(settle(allowance, pool, |tokens| tokens.min(ALLOWANCE / 2)));
    }

    /// Closes the pool and gives its tokens.
    fn close(&self) -> i64 {
        loop {
            // ORDERING: Relaxed - a look; the CAS decides.
            let tokens = self.pool.tokens.load(Ordering::Relaxed);
            // ORDERING: Acquire, E1 - what the last one did is done. Relaxed on failure: another
            // look.
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            if tokens != CLOSED
                && self.pool.tokens.compare_exchange(tokens, CLOSED, success, failure).is_ok()
            {
                return tokens;
            }
            spin_loop();
        }
    }

    fn open(&self, tokens: i64) {
        // ORDERING: Release, E1 - the next one finds the shards as they were left.
        self.pool.tokens.store(tokens, Ordering::Release);
    }

    /// Closes all shards, while the pool is, and gives their tokens.
    fn close_shards(&self) -> [i64; N] {
        // ORDERING: Relaxed - each add and sub stands before or after this in the order of one word.
        core::array::from_fn(|shard| self.allowances[shard].swap(CLOSED, Ordering::Relaxed))
    }

    fn open_shards(&self, tokens: [i64; N]) {
        for (allowance, tokens) in self.allowances.iter().zip(tokens) {
            // ORDERING: Release, E2 - whoever goes on here knows that all were closed.
            allowance.store(tokens, Ordering::Release);
        }
    }
}

/// Replaces the tokens of an allowance by what `new` makes of them; `false` if it makes nothing.
#[inline(always)]
fn change(allowance: &AtomicI64, mut new: impl FnMut(i64) -> Option<i64>) -> bool {
    // ORDERING: Relaxed - a look; the CAS decides.
    let mut tokens = allowance.load(Ordering::Relaxed);
    while let Some(changed) = new(tokens) {
        // ORDERING: Acquire, E2 - if the shard was opened again, all had been closed. Relaxed on
        // failure: another look.
        let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
        match allowance.compare_exchange(tokens, changed, success, failure) {
            Ok(_) => return true,
            Err(found) => tokens = found,
        }
    }
    false
}

/// Makes an open allowance what `target` wants, out of `pool` or into it, and gives what `pool` is
/// then.
fn settle(allowance: &AtomicI64, pool: i64, target: impl Fn(i64) -> i64) -> i64 {
    let mut left = pool;
    change(allowance, |tokens| {
        left = pool.saturating_add(tokens - target(tokens));
        Some(target(tokens))
    });
    left
}

impl<const N: usize, I: ShardIndex, const ALLOWANCE: i64> LimitCounter<N, I, ALLOWANCE> {
    /// Adds `n` if the total is at most the limit then.
    ///
    /// # Errors
    /// When it would pass the limit; then nothing was added.
    #[inline]
    pub fn try_add(&self, n: u64) -> Result<(), AtLimit> {
        self.try_add_at(I::current(), n)
    }

    /// Takes `n` back that was added before, by whomever.
    #[inline]
    pub fn sub(&self, n: u64) {
        self.sub_at(I::current(), n);
    }
}

impl<const N: usize, I, const ALLOWANCE: i64> HotFields for LimitCounter<N, I, ALLOWANCE> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { allowances, pool, index: _ } = self;
        for (shard, padded) in allowances.iter().enumerate() {
            // Its threads, and whoever closes it.
            let word = HotField::of("allowances", &**padded).nth(shard).padded_in(padded);
            visit(word.written_by(Role::Anybody));
        }
        let Pool { tokens, limit } = &**pool;
        for word in [HotField::of("pool", tokens), HotField::of("limit", limit)] {
            visit(word.padded_in(pool).written_by(Role::Many("who closes the pool")));
        }
    }
}

impl<const N: usize, I, const ALLOWANCE: i64> fmt::Debug for LimitCounter<N, I, ALLOWANCE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitCounter")
            .field("sum", &self.sum())
            .field("limit", &self.limit())
            .finish_non_exhaustive()
    }
}

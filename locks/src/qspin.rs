//! Queued spin lock: four bytes; the second waiter spins on the lock, all others in a queue.
//! # Algorithm
//! `word` has a bit `LOCKED`, a bit `PENDING` and, above them, the number of the last queued
//! waiter's node in a table that all such locks share. `lock` exchanges 0 for `LOCKED`. If there is
//! a holder and nobody else it sets `PENDING`, waits for `LOCKED` to go and turns one into the
//! other. Otherwise it takes a node from the table, puts its number into `word`, links itself to
//! the node that was there and spins on `waiting` in its own; at the head it waits until both bits
//! are clear, sets `LOCKED`, lets the next one become the head, and gives the node back: a holder
//! has none. `unlock` clears `LOCKED`.
//! # Why
//! Against `mcs` it removes half of the word and whatever a waiter brings, so that guards work and
//! structures keep their size; one waiter costs no node. It adds the search for a node, and a
//! second line to each hand-off in the queue.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `QSpinLock` | 4 | 4 | 1 | holder, arrivals, the head of the queue |
//! | slot | 0 | 1 | 0 | nobody |
//! | node of the table | 128 | 128 | 2 | its waiter, predecessor (`waiting`), successor (`next`) |
//! # Cost
//! Uncontended pair: 2 RMWs, 1 line. Hand-off to the pending waiter: 2 RMWs more; in the queue: 3
//! RMWs more and 1 transfer each for `word` and `waiting`, whatever the number of waiters is.
//! # Progress
//! Blocking; FIFO from setting `PENDING` or from the exchange of the node's number on, as long as
//! the table has nodes: whoever gets none has to find the lock free and may starve. A preempted
//! waiter stops all waiters behind it.
//! # Invariants
//! - I1: `LOCKED` is set exactly while somebody holds the lock.
//! - I2: whoever finds nothing but `LOCKED` when it sets `PENDING` is the only pending waiter until it
//!   turns `PENDING` into `LOCKED`; whoever finds something else clears what it has set.
//! - I3: while somebody is queued, only the pending waiter and the head of the queue set `LOCKED`; the
//!   head does when neither bit is set, and then the pending waiter is not there.
//! - I4: a node is its waiter's from the swap of `taken` to the store of it; meanwhile its `next` is
//!   written once by the successor, and its `waiting` cleared once by the predecessor.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | subtraction in `unlock` | exchange, subtraction or setting that gets `LOCKED` | the critical section's writes |
//! | E2 | exchange of the tail | exchange of the tail by the next arrival | the node's initial values, before the successor writes `next` |
//! | E3 | store of `next` | load of `next` by the head | the successor's `waiting`, before it is cleared |
//! | E4 | store of `waiting` by the last head | load of `waiting` that ends a wait | that `LOCKED` was set, before the new head looks |
//! | E5 | store of `taken` | swap of `taken` | that its last user is done with the node |
//! # Errors and limits
//! At most 65535 nodes. Recursion deadlocks.
//! # References
//! "qspinlock" of Linux 4.2, P. Zijlstra and W. Long, 2015; J. M. Mellor-Crummey, M. L. Scott, ACM
//! TOCS 9(1), 1991, section 2.4. Differs from them in: one width of access, so `unlock` is an RMW; a
//! node is found by search, from the CPU's own on, since a thread may be preempted or migrate.

use core::marker::PhantomData;

use crossbeam_utils::CachePadded;

use super::contract::{
    Fairness, HasWaiters, Properties, RawLock, ThreadOblivious, TryLock, Waiting,
};
use super::hot::{HotField, HotFields, Role};
use super::relax::{Relax, Spin};
use super::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use super::sync::const_fn;

const LOCKED: u32 = 1;
const PENDING: u32 = 1 << 8;
/// Above it is the number of a node, counted from 1.
const TAIL: u32 = 1 << 16;

/// A place for one waiter of any [`QSpinLock`], on a pair of lines of its own.
#[derive(Debug)]
pub struct QueueNode(CachePadded<Node>);

#[derive(Debug)]
struct Node {
    /// Number of the successor's node, 0 as long as there is none.
    next: AtomicU32,
    waiting: AtomicBool,
    taken: AtomicBool,
}

impl QueueNode {
    const_fn! {
        /// Makes a node that nobody uses.
        pub fn new() -> Self {
            Self(CachePadded::new(Node {
                next: AtomicU32::new(0),
                waiting: AtomicBool::new(false),
                taken: AtomicBool::new(false),
            }))
        }
    }

    fn take(&self) -> bool {
        // ORDERING: Relaxed - a hint. Acquire, E5 - its last user is done with it.
        !self.0.taken.load(Ordering::Relaxed) && !self.0.taken.swap(true, Ordering::Acquire)
    }

    fn give_back(&self) {
        // ORDERING: Release, E5 - we are done with it.
        self.0.taken.store(false, Ordering::Release);
    }
}

impl Default for QueueNode {
    fn default() -> Self {
        Self::new()
    }
}

/// Where the locks of one kind find nodes for their waiters: a type parameter of theirs.
pub trait QueueNodes: Send + Sync + 'static {
    /// The one table of all locks of this kind, at most 65535 nodes.
    fn nodes() -> &'static [QueueNode];

    /// Where the caller begins its search; taken modulo the table's length. Must not panic.
    fn begin() -> usize;
}

/// Spins, the first waiter on the lock's word and all others in a queue; `N` says where the nodes
/// are, `PEND` whether the first waiter does without one.
///
/// ```
/// use locks::{Mutex, ProcessNodes, QSpinLock};
/// static TOTAL: Mutex<u64, QSpinLock<ProcessNodes>> = Mutex::new(0);
/// *TOTAL.lock() += 1;
/// assert_eq!(*TOTAL.lock(), 1);
/// ```
#[derive(Debug)]
pub struct QSpinLock<N, const PEND: bool = true, R = Spin> {
    word: AtomicU32,
    policy: PhantomData<fn() -> (N, R)>,
}

impl<N, const PEND: bool, R> QSpinLock<N, PEND, R> {
    const_fn! {
        /// Makes an unlocked lock.
        pub fn new() -> Self {
            Self { word: AtomicU32::new(0), policy: PhantomData }
        }
    }
}

impl<N, const PEND: bool, R> Default for QSpinLock<N, PEND, R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: QueueNodes, const PEND: bool, R: Relax> QSpinLock<N, PEND, R> {
    #[inline]
    fn exchange(&self, from: u32, to: u32) -> bool {
        // ORDERING: Acquire on success, E1 - the winner sees the last holder's writes; Relaxed on
        // failure - nothing is read.
        self.word.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn look(&self) -> u32 {
        // ORDERING: Relaxed - a hint; the step that follows decides, or by I3 nobody else may take
        // what the caller saw.
        self.word.load(Ordering::Relaxed)
    }

    #[cold]
    fn lock_contended(&self) {
        if PEND && self.look() & !LOCKED == 0 && self.pend() {
            return;
        }
        let nodes = N::nodes();
        let begin = N::begin();
        let search = (0..nodes.len()).map(|more| begin.wrapping_add(more) % nodes.len());
        match search.into_iter().find(|&nth| nodes[nth].take()) {
            Some(nth) => {
                self.wait_in_queue(nodes, nth);
                nodes[nth].give_back();
            }
            None => {
                let mut relax = R::new();
                while self.look() != 0 || !self.exchange(0, LOCKED) {
                    relax.relax();
                }
            }
        }
    }

    /// Becomes the pending waiter and then the holder, unless somebody waits already.
    fn pend(&self) -> bool {
        // ORDERING: Relaxed - only the value counts (I2).
        let before = self.word.fetch_or(PENDING, Ordering::Relaxed);
        if before & !LOCKED != 0 {
            if before & PENDING == 0 {
                // ORDERING: Relaxed - as above.
                self.word.fetch_and(!PENDING, Ordering::Relaxed);
            }
            return false;
        }
        let mut relax = R::new();
        while self.look() & LOCKED != 0 {
            relax.relax();
        }
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes.
        self.word.fetch_sub(PENDING - LOCKED, Ordering::Acquire);
        true
    }

    /// Waits in the queue with the node, and becomes the holder.
    fn wait_in_queue(&self, nodes: &[QueueNode], nth: usize) {
        let Node { next, waiting, .. } = &*nodes[nth].0;
        let number = nth as u32 + 1;
        // ORDERING: Relaxed - by I4 ours alone until the exchange publishes it (E2).
        next.store(0, Ordering::Relaxed);
        // ORDERING: Relaxed - as the line above.
        waiting.store(true, Ordering::Relaxed);
        let before = self.become_last(number);
        let mut relax = R::new();
        if let Some(before) = (before as usize).checked_sub(1) {
            // ORDERING: Release, E3 - publishes our `waiting`.
            nodes[before].0.next.store(number, Ordering::Release);
            // ORDERING: Acquire, E4 - what we see of `word` is what the last head made of it.
            while waiting.load(Ordering::Acquire) {
                relax.relax();
            }
        }
        loop {
            let word = self.look();
            if word & (LOCKED | PENDING) != 0 {
                relax.relax();
            } else if word / TAIL != number {
                break;
            } else if self.exchange(word, LOCKED) {
                return;
            }
        }
        // ORDERING: Acquire, E1 - the holder sees the last holder's writes. By I3 nobody else sets
        // the bit.
        self.word.fetch_or(LOCKED, Ordering::Acquire);
        // ORDERING: Acquire, E3 - the successor's `waiting` is set before we clear it.
        let mut successor = next.load(Ordering::Acquire);
        while successor == 0 {
            relax.relax();
            // ORDERING: Acquire, E3 - as above.
            successor = next.load(Ordering::Acquire);
        }
        // ORDERING: Release, E4 - the next head looks after `LOCKED` was set.
        nodes[successor as usize - 1].0.waiting.store(false, Ordering::Release);
    }

    /// Puts the node's number into the word; the number that was there.
    fn become_last(&self, number: u32) -> u32 {
        let mut word = self.look();
        loop {
            let queued = word % TAIL + number * TAIL;
            // ORDERING: AcqRel on success, E2; release - publish our node; acquire - see the
            // predecessor's initial values. Relaxed on failure - the value is compared again.
            let put = self.word.compare_exchange(word, queued, Ordering::AcqRel, Ordering::Relaxed);
            match put {
                Ok(_) => return word / TAIL,
                Err(now) => word = now,
            }
        }
    }
}

impl<N, const PEND: bool, R> HotFields for QSpinLock<N, PEND, R> {
    const ALIGNMENT: usize = 4;
    const ALONE: bool = false;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { word, policy: _ } = self;
        visit(HotField::of("word", word).written_by(Role::Many("holder and waiters")));
    }
}

impl HotFields for QueueNode {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "the waiter arms the words before it queues, and each of the others \
                               writes once: one line moves instead of three";
        let Node { next, waiting, taken } = &*self.0;
        let fields = [
            HotField::of("next", next),
            HotField::of("waiting", waiting),
            HotField::of("taken", taken),
        ];
        for field in fields {
            let field = field.written_by(Role::Many("waiters"));
            visit(field.one_line("node", BECAUSE).padded_in(&self.0));
        }
    }
}

// SAFETY: by I1 to I3 one caller at a time sets `LOCKED` where it was clear: out of 0, as the pending
// waiter, or as the head of the queue. E1 hands the writes on; the slot is empty.
unsafe impl<N: QueueNodes, const PEND: bool, R: Relax> RawLock for QSpinLock<N, PEND, R> {
    type Slot = ();
    const PROPERTIES: Properties =
        Properties { fairness: Fairness::Fifo, waiting: Waiting::Spins, numa_aware: false };

    #[inline]
    unsafe fn lock(&self, _slot: &()) {
        if !self.exchange(0, LOCKED) {
            self.lock_contended();
        }
    }

    #[inline]
    unsafe fn unlock(&self, _slot: &()) {
        // ORDERING: Release, E1 - hands the critical section's writes to the next holder.
        self.word.fetch_sub(LOCKED, Ordering::Release);
    }
}

// SAFETY: as for `RawLock`: success means to have found 0.
unsafe impl<N: QueueNodes, const PEND: bool, R: Relax> TryLock for QSpinLock<N, PEND, R> {
    #[inline]
    unsafe fn try_lock(&self, _slot: &()) -> bool {
        self.look() == 0 && self.exchange(0, LOCKED)
    }
}

// SAFETY: whoever set `PENDING` or queued stays until it has had the lock; who is about to clear
// `PENDING` again found somebody who does.
unsafe impl<N: QueueNodes, const PEND: bool, R: Relax> HasWaiters for QSpinLock<N, PEND, R> {
    #[inline]
    unsafe fn has_waiters(&self, _slot: &()) -> bool {
        self.look() & !LOCKED != 0
    }
}

// SAFETY: nothing depends on which thread unlocks.
unsafe impl<N: QueueNodes, const PEND: bool, R: Relax> ThreadOblivious for QSpinLock<N, PEND, R> {}

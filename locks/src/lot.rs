//! Parking lot: a hash table of queues of sleepers, so that a lock needs two bits and no queue.
//! # Algorithm
//! A sleeper's key, an address, chooses a bucket. `park` takes the bucket's lock, asks whether
//! there is still a reason to sleep, appends a node of its own stack and sleeps on the node's
//! word. `unpark_one` takes the bucket's lock, takes the first node of the key out, asks what to
//! tell it, and wakes it.
//! # Why
//! Locks share the memory for waiting: one byte a lock suffices, whatever the number of locks.
//! What it costs: a second lock in each slow path, and strangers in one bucket.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | bucket | 128 | 128 | 2 | sleepers and wakers of its keys |
//! | node, while parked | 32 | 8 | 1 | its sleeper, its waker |
//! # Cost
//! 2 RMWs for the bucket's lock and 1 for the word, and the parker's system call.
//! # Progress
//! Blocking; first come, first served among the sleepers of a key.
//! # Invariants
//! - I1: the links of a bucket, and those of its nodes, are used under the bucket's lock only.
//! - I2: a node is in a bucket from `park` until a waker takes it out; its sleeper stays until the
//!   waker has written `word`, after which nobody has the node's address but as a number.
//! # Synchronization
//! | edge | release side | acquire side | publishes |
//! |---|---|---|---|
//! | E1 | swap of `word` in `unpark_one` | load of `word` in `park` | what the waker did before |
//! | E2 | unlock of a bucket | lock of it | links and nodes |
//! # Errors and limits
//! The table has a fixed number of buckets: very many sleepers make long queues.
//! # References
//! F. Pizlo, "Locking in WebKit", 2016; A. d'Antras, `parking_lot_core`, 2016. Differs from them
//! in: the table is a value that the user places, and does not grow; no timeouts.

use core::marker::PhantomData;
use core::ptr;

use crossbeam_utils::CachePadded;

use super::array::array_of;
use super::contract::RawLock;
use super::futex::FutexLock;
use super::hot::{HotField, HotFields, Role};
use super::parker::Parker;
use super::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use super::sync::const_fn;

const ASLEEP: u32 = 0;

/// A table of sleepers, shared by many locks.
#[derive(Debug)]
pub struct Lot<P, const BUCKETS: usize = 64> {
    buckets: [CachePadded<Bucket<P>>; BUCKETS],
    parker: PhantomData<fn() -> P>,
}

/// Where the locks of one kind find their [`Lot`]: a type parameter of theirs.
pub trait Parking: Send + Sync + 'static {
    /// Puts the sleepers to sleep.
    type Parker: Parker;

    /// The one table of all locks of this kind.
    fn lot() -> &'static Lot<Self::Parker>;
}

/// What a waker finds.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Whether a sleeper was taken out, to be woken.
    pub one: bool,
    /// Whether there are more of the same key.
    pub more: bool,
    /// Which wake-up of the bucket it is; wraps.
    pub wake_up: u32,
}

#[derive(Debug)]
struct Bucket<P> {
    lock: FutexLock<P>,
    wake_ups: AtomicU32,
    first: AtomicPtr<Node>,
    last: AtomicPtr<Node>,
}

#[derive(Debug)]
struct Node {
    key: usize,
    next: AtomicPtr<Node>,
    word: AtomicU32,
}

impl<P> Bucket<P> {
    const_fn! {
        fn new() -> Self {
            Self {
                lock: FutexLock::new(),
                wake_ups: AtomicU32::new(0),
                first: AtomicPtr::new(ptr::null_mut()),
                last: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }
}

impl<P, const BUCKETS: usize> Lot<P, BUCKETS> {
    const_fn! {
        /// Makes an empty table.
        pub fn new() -> Self {
            Self { buckets: array_of![CachePadded::new(Bucket::new()); BUCKETS], parker: PhantomData }
        }
    }
}

impl<P, const BUCKETS: usize> Default for Lot<P, BUCKETS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Parker> Bucket<P> {
    /// Runs `f` while nobody else uses the bucket.
    fn locked<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: the slot is empty; unlocked below, unless `f`, of this crate, panics.
        unsafe { self.lock.lock(&()) };
        let result = f();
        // SAFETY: taken above.
        unsafe { self.lock.unlock(&()) };
        result
    }

    /// Appends a node; under the bucket's lock.
    fn append(&self, node: &Node) {
        let address = ptr::from_ref(node).cast_mut();
        // ORDERING: Relaxed - by I1 under the lock: E2. So are all links in this file.
        let last = self.last.load(Ordering::Relaxed);
        if last.is_null() {
            // ORDERING: Relaxed - as above.
            self.first.store(address, Ordering::Relaxed);
        } else {
            // SAFETY: by I2 what is in a bucket is alive.
            let link = unsafe { &(*last).next };
            // ORDERING: Relaxed - as above.
            link.store(address, Ordering::Relaxed);
        }
        // ORDERING: Relaxed - as above.
        self.last.store(address, Ordering::Relaxed);
    }

    /// Takes the first node of the key out; the node, and whether there is another.
    fn take(&self, key: usize) -> (Option<&Node>, bool) {
        let (mut taken, mut link, mut before) = (None, &self.first, ptr::null_mut());
        loop {
            // ORDERING: Relaxed - as in `append`.
            let address = link.load(Ordering::Relaxed);
            if address.is_null() {
                return (taken, false);
            }
            // SAFETY: by I2 what is in a bucket is alive.
            let node = unsafe { &*address };
            if node.key != key {
                (link, before) = (&node.next, address);
                continue;
            }
            if taken.is_some() {
                return (taken, true);
            }
            // ORDERING: Relaxed - as in `append`.
            let next = node.next.load(Ordering::Relaxed);
            // ORDERING: Relaxed - as in `append`.
            link.store(next, Ordering::Relaxed);
            if next.is_null() {
                // ORDERING: Relaxed - as in `append`.
                self.last.store(before, Ordering::Relaxed);
            }
            taken = Some(node);
        }
    }
}

impl<P, const BUCKETS: usize> HotFields for Lot<P, BUCKETS> {
    const ALIGNMENT: usize = align_of::<CachePadded<u8>>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        const BECAUSE: &str = "who sleeps or wakes holds the bucket and uses all of it";
        let Self { buckets, parker: _ } = self;
        for (nth, bucket) in buckets.iter().enumerate() {
            let Bucket { lock, wake_ups, first, last } = &**bucket;
            let fields = [
                HotField::of("lock", lock),
                HotField::of("wake_ups", wake_ups),
                HotField::of("first", first),
                HotField::of("last", last),
            ];
            for field in fields {
                let field = field.written_by(Role::Many("sleepers and wakers"));
                visit(field.one_line("bucket", BECAUSE).padded_in(bucket).nth(nth));
            }
        }
    }
}

impl<P: Parker, const BUCKETS: usize> Lot<P, BUCKETS> {
    fn bucket(&self, key: usize) -> &Bucket<P> {
        // Fibonacci hashing: the upper half of the product depends on all lower bits.
        let mixed = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.buckets[mixed as usize % BUCKETS]
    }

    /// Sleeps until it is woken for `key`, unless `reason` says that there is none any more; what
    /// the waker said. `reason` runs while wakers of the key wait, and must not panic.
    pub(super) fn park(&self, key: usize, reason: impl FnOnce() -> bool) -> Option<u32> {
        let next = AtomicPtr::new(ptr::null_mut());
        let node = Node { key, next, word: AtomicU32::new(ASLEEP) };
        let bucket = self.bucket(key);
        let asleep = bucket.locked(|| {
            let asleep = reason();
            if asleep {
                bucket.append(&node);
            }
            asleep
        });
        if !asleep {
            return None;
        }
        loop {
            // ORDERING: Acquire, E1 - whoever was woken sees what the waker did.
            match node.word.load(Ordering::Acquire) {
                ASLEEP => P::park(&node.word, ASLEEP),
                said => return Some(said),
            }
        }
    }

    /// Wakes the first sleeper of `key`, if there is one, and tells it what `say` says, which is
    /// not 0. `say` runs while sleepers of the key wait, and must not panic.
    pub(super) fn unpark_one(&self, key: usize, say: impl FnOnce(Found) -> u32) {
        let bucket = self.bucket(key);
        let woken = bucket.locked(|| {
            let (node, more) = bucket.take(key);
            // ORDERING: Relaxed - under the bucket's lock: E2.
            let wake_up = bucket.wake_ups.load(Ordering::Relaxed).wrapping_add(1);
            // ORDERING: Relaxed - as the line above.
            bucket.wake_ups.store(wake_up, Ordering::Relaxed);
            let said = say(Found { one: node.is_some(), more, wake_up });
            node.map(|node| (&node.word, said))
        });
        if let Some((word, said)) = woken {
            let address = ptr::from_ref(word);
            // ORDERING: Release, E1 - the sleeper sees what we did. From here on its node may be
            // gone: only the address is used.
            word.swap(said, Ordering::Release);
            P::unpark_one(address);
        }
    }
}

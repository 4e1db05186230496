//! Every interleaving that loom can tell apart, on the shipped files that share memory between
//! threads.
//!
//! The files import `super::sync`; here that module is made of loom's types. Each block has a cell
//! beside it that its owner writes: two owners, or one that has not synchronised with the last, are a
//! race that loom reports. The weakening of each ordering that these models catch is listed by
//! `scripts/mutants.sh`.
//!
//! Not compiled again, since one thread at a time uses them: backings, `bump.rs`, `slab.rs`,
//! `typed.rs`; and `pool_checked.rs`, which adds a bit to other pools.

use alloc_arena::contract;
use alloc_arena::hot;
use alloc_arena::pool;
mod backing {
    pub(super) use alloc_arena::Backing;
}
mod map_error {
    pub(super) use alloc_arena::MapError;
}
mod placement {
    pub(super) use alloc_arena::Placement;
}
mod request {
    pub(super) use alloc_arena::Request;
}
mod slice {
    pub(super) use alloc_arena::Slice;
}
#[path = "loom/sync.rs"]
mod sync;

#[path = "../src/blocks.rs"]
mod blocks;
#[path = "../src/bump_atomic.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod bump_atomic;
#[path = "../src/pool_free_list.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod pool_free_list;
#[path = "../src/pool_magazine.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod pool_magazine;
#[path = "../src/pool_mutex.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod pool_mutex;
#[path = "../src/pool_remote.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod pool_remote;
#[path = "../src/pool_ring.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod pool_ring;
#[path = "../src/pool_treiber.rs"]
#[expect(dead_code, unreachable_pub, reason = "the models use a part of the file")]
mod pool_treiber;
#[path = "../src/relax.rs"]
#[expect(unreachable_pub, reason = "the models use a part of the file")]
mod relax;
#[path = "../src/seats.rs"]
mod seats;
#[path = "../src/tagged_stack.rs"]
mod tagged_stack;

use alloc_arena::{Backing, Fallbacks, Map, MapError, Memory, Pages, Placement, Request, Unknown};
use core::ptr::NonNull;
use loom::cell::UnsafeCell;
use pool::{Handle, Pool};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Looks at unchanged words that one execution may make in all before its branches end.
const SPINS: u32 = 4;

/// A block of the heap; loom's words need more room than the shipped ones.
struct Region(NonNull<[u128]>);

// SAFETY: owned.
unsafe impl Send for Region {}
// SAFETY: a shared reference tells where it is.
unsafe impl Sync for Region {}

impl Region {
    fn of(bytes: usize) -> Self {
        Self(NonNull::from(Box::leak(vec![0_u128; bytes / 16].into_boxed_slice())))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: leaked in `of`.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: owned, in place.
unsafe impl Backing for Region {
    const STAYS: bool = true;
    const MEMORY: Memory = Memory::Heap;
    const NUMA_BOUND: bool = false;

    fn region(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.0.cast(), self.0.len() * 16)
    }

    fn placement(&self) -> Placement {
        let pages: Result<Pages, Unknown> = Err(Unknown::CannotAsk);
        let (policy, huge) = (Err(Unknown::CannotAsk), Err(Unknown::CannotAsk));
        let none = Fallbacks::default();
        Placement::judge(alloc_arena::Place::Anywhere, policy, pages, huge, none)
    }
}

impl Map for Region {
    fn map(bytes: usize, _request: &Request) -> Result<Self, MapError> {
        Ok(Self::of(bytes.next_multiple_of(16)))
    }
}

fn explore(
    name: &str,
    threads: usize,
    preemptions: Option<usize>,
    body: impl Fn() + Sync + Send + 'static,
) {
    let executions = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&executions);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    let start = std::time::Instant::now();
    builder.check(move || {
        counted.fetch_add(1, Ordering::Relaxed);
        sync::SPINS_LEFT.with(|left| left.set(SPINS));
        body();
    });
    let seconds = start.elapsed().as_secs_f64();
    let bound = preemptions.map_or("none".into(), |bound| bound.to_string());
    let executions = executions.load(Ordering::Relaxed);
    println!(
        "loom | {name} | threads {threads} | preemption bound {bound} | executions {executions} | \
         {seconds:.1} s"
    );
    assert!(executions > 1, "nothing was explored");
}

/// Blocks of the models.
const BLOCK: usize = 8;

/// A pool and a cell beside each of its blocks.
struct World<P> {
    pool: P,
    cells: Vec<UnsafeCell<u32>>,
    /// Who has a block, for models in which two may.
    out: Vec<AtomicBool>,
}

impl<P: Pool> World<P> {
    fn new(pool: P) -> Self {
        let cells = (0..pool.capacity()).map(|_| UnsafeCell::new(0)).collect();
        let out = (0..pool.capacity()).map(|_| AtomicBool::new(false)).collect();
        Self { pool, cells, out }
    }

    /// Gets a block and writes to its cell.
    fn get(&self, handle: &P::Handle<'_>) -> Option<NonNull<u8>> {
        let block = handle.try_get().ok()?;
        self.write(block);
        Some(block)
    }

    fn write(&self, block: NonNull<u8>) {
        let number = self.pool.number_of(block).expect("a block of the pool");
        // SAFETY: the block is this thread's; loom looks whether it is.
        self.cells[number].with_mut(|cell| unsafe { *cell += 1 });
    }

    fn put(&self, handle: &P::Handle<'_>, block: NonNull<u8>) {
        self.write(block);
        // SAFETY: got from this pool, put once.
        unsafe { handle.put(block) };
    }
}

/// A block on its way to another thread.
struct Carried(NonNull<u8>);
// SAFETY: whoever has it has the block alone.
unsafe impl Send for Carried {}

/// Each of `gets.len()` threads gets up to so many blocks, then puts them in the order of gets; all
/// are there in the end.
fn gets_and_puts<P: Pool + 'static>(
    name: &str,
    bound: Option<usize>,
    gets: &'static [usize],
    make: fn() -> P,
) {
    explore(name, gets.len(), bound, move || {
        let world: *mut World<P> = Box::into_raw(Box::new(World::new(make())));
        // SAFETY: just made; freed below, when the threads are gone.
        let shared: &'static World<P> = unsafe { &*world };
        let work = move |gets: usize, handle: Option<P::Handle<'static>>| {
            let Some(handle) = handle else { return };
            let mine: Vec<_> = (0..gets).filter_map(|_| shared.get(&handle)).collect();
            mine.into_iter().for_each(|block| shared.put(&handle, block));
        };
        let one = P::PROPERTIES.thread_safe;
        let others: Vec<_> = gets[1..]
            .iter()
            .map(|&gets| {
                let handle = if one { shared.pool.handle() } else { None };
                let handle = handle.map(Lent);
                loom::thread::spawn(move || {
                    let handle = handle.map(|Lent(handle)| handle);
                    work(gets, handle.or_else(|| shared.pool.handle()));
                })
            })
            .collect();
        work(gets[0], shared.pool.handle());
        others.into_iter().for_each(|thread| thread.join().unwrap());
        let handle = shared.pool.handle().unwrap();
        let left: Vec<_> = std::iter::from_fn(|| shared.get(&handle)).collect();
        assert_eq!(left.len(), shared.pool.reach(), "blocks that are left");
        drop(handle);
        // SAFETY: the threads and handles are gone.
        drop(unsafe { Box::from_raw(world) });
    });
}

/// A handle on its way to its thread.
struct Lent<H>(H);
// SAFETY: handles may be sent, by the contract of `Pool`; under loom their words cannot tell.
unsafe impl<H> Send for Lent<H> {}

mod models {
    use super::*;

    type Treiber<const TAG_BITS: u32 = 8> =
        crate::pool_treiber::TreiberPool<Region, BLOCK, TAG_BITS>;

    fn exactly<P: Map>(count: usize) -> P {
        P::map(count * BLOCK, &Request::new()).expect("memory for so few blocks")
    }

    mod pool_treiber {
        use super::*;

        #[test]
        fn three_threads() {
            gets_and_puts::<Treiber>("pool_treiber, 3 threads", Some(1), &[1, 1, 1], || exactly(2));
        }
    }

    mod tagged_stack {
        use super::*;

        /// One thread gets; another gets two and puts the first back. Whether some block had two
        /// owners in some interleaving.
        fn two_owners<const TAG_BITS: u32>(name: &str) -> bool {
            let found = Arc::new(AtomicBool::new(false));
            let seen = Arc::clone(&found);
            explore(name, 2, Some(2), move || {
                type World<const TAG_BITS: u32> = super::World<Treiber<TAG_BITS>>;
                let pool = exactly::<Treiber<TAG_BITS>>(3);
                let world: *mut World<TAG_BITS> = Box::into_raw(Box::new(World::new(pool)));
                // SAFETY: just made; freed below, when the threads are gone.
                let shared: &'static World<TAG_BITS> = unsafe { &*world };
                let take = {
                    let seen = Arc::clone(&seen);
                    move |handle: &<Treiber<TAG_BITS> as Pool>::Handle<'_>| {
                        let block = handle.try_get().ok()?;
                        let number = shared.pool.number_of(block)?;
                        if shared.out[number].swap(true, Ordering::Relaxed) {
                            seen.store(true, Ordering::Relaxed);
                        }
                        Some((number, block))
                    }
                };
                let theirs = take.clone();
                let other = loom::thread::spawn(move || {
                    let handle = shared.pool.handle().unwrap();
                    let first = theirs(&handle);
                    theirs(&handle);
                    if let Some((number, block)) = first {
                        shared.out[number].store(false, Ordering::Relaxed);
                        // SAFETY: got above, put once.
                        unsafe { handle.put(block) };
                    }
                });
                let handle = shared.pool.handle().unwrap();
                take(&handle);
                take(&handle);
                other.join().unwrap();
                // SAFETY: the threads are gone.
                drop(unsafe { Box::from_raw(world) });
            });
            found.load(Ordering::Relaxed)
        }

        #[test]
        fn hands_blocks_on() {
            gets_and_puts::<Treiber>("tagged_stack, 2 blocks", Some(2), &[2, 2], || exactly(2));
        }

        /// The mistake that tags are for: a top that was popped and pushed again looks unchanged.
        #[test]
        fn without_enough_tags_a_block_has_two_owners() {
            assert!(two_owners::<0>("tagged_stack, no tag"));
            assert!(two_owners::<1>("tagged_stack, tags of 1 bit"), "two pops come round");
        }

        #[test]
        fn with_enough_tags_it_has_one() {
            assert!(!two_owners::<2>("tagged_stack, tags of 2 bits"));
            assert!(!two_owners::<32>("tagged_stack, tags of 32 bits"));
        }
    }

    mod pool_mutex {
        use super::*;

        #[test]
        fn two_threads() {
            type Shipped = crate::pool_mutex::MutexPool<Region, BLOCK>;
            gets_and_puts::<Shipped>("pool_mutex, 2 blocks", Some(3), &[2, 1], || exactly(2));
        }
    }

    mod pool_ring {
        use super::*;
        type Shipped = crate::pool_ring::RingPool<Region, BLOCK>;

        #[test]
        fn two_threads() {
            gets_and_puts::<Shipped>("pool_ring, 2 blocks", Some(2), &[2, 1], || exactly(2));
        }
    }

    mod pool_magazine {
        use super::*;

        /// Magazines of one round, so that every second operation goes to the depot.
        #[test]
        fn two_threads() {
            type Shipped = crate::pool_magazine::MagazinePool<Region, BLOCK, 2, 2>;
            gets_and_puts::<Shipped>("pool_magazine, 2 blocks", Some(1), &[2, 2], || exactly(2));
        }
    }

    mod pool_remote {
        use super::*;
        type Shipped = crate::pool_remote::RemotePool<Region, BLOCK, 2>;

        /// Another thread puts the owner's blocks while the owner gets.
        #[test]
        fn puts_of_others() {
            explore("pool_remote, puts of others", 3, Some(3), || {
                let pool = exactly::<Shipped>(4);
                let world: *mut World<Shipped> = Box::into_raw(Box::new(World::new(pool)));
                // SAFETY: just made; freed below, when the threads are gone.
                let shared: &'static World<Shipped> = unsafe { &*world };
                let owner = shared.pool.handle().unwrap();
                let out: Vec<_> = (0..2).map(|_| Carried(shared.get(&owner).unwrap())).collect();
                assert!(shared.get(&owner).is_none(), "two blocks each");
                let putting: Vec<_> = out
                    .into_iter()
                    .map(|carried| {
                        let handle = shared.pool.handle().map(Lent);
                        loom::thread::spawn(move || {
                            let Carried(block) = carried;
                            let Some(Lent(handle)) = handle else { return Some(Carried(block)) };
                            shared.put(&handle, block);
                            None
                        })
                    })
                    .collect();
                let mut mine: Vec<_> = (0..2).filter_map(|_| shared.get(&owner)).collect();
                let unput = putting.into_iter().filter_map(|thread| thread.join().unwrap());
                // There are two owners, so the third thread had no handle.
                unput.for_each(|Carried(block)| shared.put(&owner, block));
                mine.extend(std::iter::from_fn(|| shared.get(&owner)));
                assert_eq!(mine.len(), 2, "none is lost, none comes twice");
                drop(owner);
                // SAFETY: the threads and handles are gone.
                drop(unsafe { Box::from_raw(world) });
            });
        }
    }

    mod seats {
        use super::*;

        /// Handles of a list that one owner at a time has, taken by who finds the seat free.
        #[test]
        fn change_hands() {
            type Shipped = crate::pool_free_list::FreeListPool<Region, BLOCK>;
            gets_and_puts::<Shipped>("pool_free_list, one seat", Some(2), &[1, 1], || exactly(1));
        }
    }

    mod bump_atomic {
        use super::*;
        use std::alloc::Layout;
        type Arena = crate::bump_atomic::AtomicBump<Region>;

        /// Threads that ask for `sizes`: what they get is apart and inside; what is left afterwards
        /// can be had, unless additions that passed the end came one behind the other.
        fn apart(name: &str, sizes: &'static [usize], units: usize, all: usize) {
            explore(name, sizes.len(), Some(2), move || {
                let arena = loom::sync::Arc::new(Arena::new(Region::of(units * 16)));
                let ask = |arena: &Arena, size: usize| {
                    let layout = Layout::from_size_align(size, 8).unwrap();
                    let block = arena.try_alloc_layout(layout).ok()?;
                    Some((block.cast::<u8>().addr().get(), size))
                };
                let others: Vec<_> = sizes[1..]
                    .iter()
                    .map(|&size| {
                        let arena = loom::sync::Arc::clone(&arena);
                        loom::thread::spawn(move || ask(&arena, size))
                    })
                    .collect();
                let mut blocks: Vec<_> = ask(&arena, sizes[0]).into_iter().collect();
                blocks.extend(others.into_iter().filter_map(|thread| thread.join().unwrap()));
                blocks.sort_unstable();
                let start = arena.backing().region().addr().get();
                let mut end = start;
                for &(block, size) in &blocks {
                    assert!(block >= end, "{blocks:?} overlap");
                    end = block + size;
                }
                assert!(end <= start + units * 16 && blocks.len() <= all);
                assert!(!blocks.is_empty());
            });
        }

        /// One thread cuts the second unit and gives it back; the other cuts it too, or grows its
        /// first one by it.
        #[cfg(feature = "allocator-api2")]
        fn given_back(name: &str, grows: bool) {
            explore(name, 2, Some(3), move || {
                let world = loom::sync::Arc::new((
                    Arena::new(Region::of(32)),
                    [UnsafeCell::new(0_u32), UnsafeCell::new(0)],
                ));
                let cut = |world: &(Arena, [UnsafeCell<u32>; 2])| {
                    let layout = Layout::from_size_align(16, 8).unwrap();
                    let block = world.0.try_alloc_layout(layout).ok()?.cast::<u8>();
                    let offset = block.addr().get() - world.0.backing().region().addr().get();
                    Some((block, offset / 16))
                };
                // SAFETY: the unit is this thread's; loom looks whether it is.
                let write = |cell: &UnsafeCell<u32>| cell.with_mut(|cell| unsafe { *cell += 1 });
                let (first, _) = cut(&world).unwrap();
                let theirs = loom::sync::Arc::clone(&world);
                let other = loom::thread::spawn(move || {
                    let Some((block, unit)) = cut(&theirs) else { return };
                    write(&theirs.1[unit]);
                    // SAFETY: cut above, not used any more; it may not be the last any more either.
                    unsafe { theirs.0.resize_last(block, 16, 0) };
                });
                if grows {
                    // SAFETY: cut above.
                    if unsafe { world.0.resize_last(first, 16, 32) } {
                        write(&world.1[1]);
                    }
                } else if let Some((_, unit)) = cut(&world) {
                    write(&world.1[unit]);
                }
                other.join().unwrap();
            });
        }

        #[test]
        #[cfg(feature = "allocator-api2")]
        fn what_is_given_back_is_cut_again() {
            given_back("bump_atomic, given back and cut", false);
        }

        #[test]
        #[cfg(feature = "allocator-api2")]
        fn what_is_given_back_is_grown_into() {
            given_back("bump_atomic, given back and grown into", true);
        }

        #[test]
        fn all_fit() {
            apart("bump_atomic, room for all", &[16, 32, 16], 4, 3);
        }

        #[test]
        fn one_too_many() {
            apart("bump_atomic, full", &[32, 32, 16], 3, 2);
        }
    }
}

/// Rows without a model of their own: those of arenas and pools that no two threads share. The free
/// list's seat has one, `seats`.
const WITHOUT_A_MODEL: [&str; 9] = [
    "null",
    "bump_slice",
    "bump_heap",
    "bump_mmap",
    "bump_huge",
    "bump_numa",
    "bump_first_touch",
    "pool_null",
    "pool_free_list",
];

#[test]
fn no_row_is_missing() {
    macro_rules! ids {
        ($($id:ident => $arena:ty, $kind:ident;)*) => { vec![$(stringify!($id)),*] };
    }
    let here = include_str!("loom.rs");
    let mut ids: Vec<&str> = alloc_arena::for_each_arena!(ids);
    ids.extend::<Vec<&str>>(alloc_arena::for_each_pool!(ids));
    for id in ids {
        let modelled = here.contains(&format!("\n    mod {id} {{"));
        assert!(
            modelled != WITHOUT_A_MODEL.contains(&id),
            "{id}: add its module to models in tests/loom.rs, or its reason"
        );
    }
}

//! What pools refuse and what collections make of them.
#![cfg(feature = "alloc")]

use alloc_arena::{
    AtomicBump, Checked, FreeListPool, Handle, Heap, MagazinePool, Map, MapError, Pool, Refused,
    RemotePool, Request, RingPool, Slice, TreiberPool,
};
use core::alloc::Layout;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn all<H: Handle>(handle: &H) -> Vec<NonNull<u8>> {
    std::iter::from_fn(|| handle.try_get().ok()).collect()
}

/// Puts a block that was got from the same pool, once.
fn put<H: Handle>(handle: &H, block: NonNull<u8>) {
    // SAFETY: the callers' blocks are such.
    unsafe { handle.put(block) };
}

fn refuses_what_is_not_out<P: Pool + Map>() {
    let pool = Checked::<P>::map(4096, &Request::new()).unwrap();
    let other = Checked::<P>::map(4096, &Request::new()).unwrap();
    let (handle, strange) = (pool.handle().unwrap(), other.handle().unwrap());
    let (block, foreign) = (handle.try_get().unwrap(), strange.try_get().unwrap());
    // SAFETY: what is refused is not touched; the block is put once.
    let try_put = |block| unsafe { handle.try_put(block) };
    let inside = NonNull::new(block.as_ptr().wrapping_add(4)).unwrap();
    assert_eq!(try_put(foreign), Err(Refused::Foreign));
    assert_eq!(try_put(inside), Err(Refused::Foreign));
    assert_eq!(try_put(NonNull::from(&mut 0_u8)), Err(Refused::Foreign));
    assert_eq!(try_put(block), Ok(()));
    assert_eq!(try_put(block), Err(Refused::Free), "twice");
    let never = NonNull::new(block.as_ptr().wrapping_add(P::BLOCK.size())).unwrap();
    assert_eq!(try_put(never), Err(Refused::Free), "never got");
    // SAFETY: refused, so not touched.
    let panicked = catch_unwind(AssertUnwindSafe(|| unsafe { handle.put(block) }));
    let said = *panicked.unwrap_err().downcast::<String>().unwrap();
    assert!(said.contains("put each block back once"), "{said}");
    let blocks = all(&handle);
    assert_eq!(blocks.len(), pool.reach(), "a refusal changes nothing");
    blocks.into_iter().for_each(|block| put(&handle, block));
}

#[test]
fn double_frees_and_strangers_are_refused() {
    refuses_what_is_not_out::<FreeListPool<Heap, 64>>();
    refuses_what_is_not_out::<TreiberPool<Heap, 64>>();
    refuses_what_is_not_out::<RingPool<Heap, 64>>();
    refuses_what_is_not_out::<MagazinePool<Heap, 64>>();
    refuses_what_is_not_out::<RemotePool<Heap, 64, 2>>();
}

#[test]
fn debug_builds_notice_a_stranger_without_a_checked_pool() {
    if !cfg!(debug_assertions) {
        println!("SKIPPED: this build has no debug assertions");
        return;
    }
    let pool = TreiberPool::<Heap, 64>::map(4096, &Request::new()).unwrap();
    let handle = pool.handle().unwrap();
    // SAFETY: noticed before it is touched.
    let panicked = catch_unwind(AssertUnwindSafe(|| unsafe {
        handle.put(NonNull::from(&mut 0_u8));
    }));
    assert!(panicked.is_err());
}

#[test]
fn handles_are_as_many_as_are_served() {
    let pool = FreeListPool::<Heap, 64>::map(4096, &Request::new()).unwrap();
    let owner = pool.handle();
    assert!(owner.is_some() && pool.handle().is_none());
    drop(owner);
    assert!(pool.handle().is_some());
    let pool = MagazinePool::<Heap, 64, 32, 3>::map(4096, &Request::new()).unwrap();
    let handles: Vec<_> = (0..3).map(|_| pool.handle().unwrap()).collect();
    assert!(pool.handle().is_none());
    drop(handles);
    assert!(pool.handle().is_some());
    let pool = RemotePool::<Heap, 64, 2>::map(4096, &Request::new()).unwrap();
    let handles = [pool.handle().unwrap(), pool.handle().unwrap()];
    assert!(pool.handle().is_none());
    assert_eq!(handles.map(|handle| all(&handle).len()), [32, 32]);
}

#[test]
fn regions_that_hold_no_block_make_empty_pools() {
    for bytes in [0, 1, 63, 64, 130] {
        macro_rules! over {
            ($pool:ty) => {{
                let mut memory = vec![MaybeUninit::<u8>::uninit(); bytes];
                let pool = <$pool>::new(Slice::new(&mut memory));
                assert!(pool.capacity() * 64 <= bytes, "{bytes}: {}", pool.capacity());
                let got = pool.handle().map(|handle| all(&handle).len());
                assert!(got.is_none() || got == Some(pool.reach()), "{bytes}: {got:?}");
            }};
        }
        over!(TreiberPool<_, 64>);
        over!(FreeListPool<_, 64>);
        over!(RingPool<_, 64>);
        over!(MagazinePool<_, 64>);
        over!(RemotePool<_, 64, 2>);
        over!(alloc_arena::MutexPool<_, 64>);
    }
}

#[test]
fn blocks_are_numbered_no_further_than_the_word_allows() {
    // 60 bits of tag leave 4 of number, one of which is none.
    type Narrow = TreiberPool<Heap, 64, { usize::BITS - 4 }>;
    assert_eq!(Narrow::map(15 * 64, &Request::new()).map(|pool| pool.capacity()), Ok(15));
    let too_large = Narrow::map(16 * 64, &Request::new()).map(|pool| pool.capacity());
    assert_eq!(too_large, Err(MapError::TooLarge { most_bytes: 15 * 64 }));
    let pool = Narrow::map(15 * 64, &Request::new()).unwrap();
    let handle = pool.handle().unwrap();
    let blocks: BTreeSet<_> = all(&handle).into_iter().collect();
    assert_eq!(blocks.len(), 15);
    blocks.into_iter().for_each(|block| put(&handle, block));
    assert_eq!(all(&handle).len(), 15);
}

#[test]
fn rings_go_on_when_positions_wrap() {
    for start in [usize::MAX - 3, usize::MAX, isize::MAX as usize - 1, isize::MAX as usize] {
        let mut memory = [MaybeUninit::<u8>::uninit(); 1024];
        let pool = RingPool::<_, 64>::starting_at(Slice::new(&mut memory), start);
        let handle = pool.handle().unwrap();
        let mut last = None;
        for _ in 0..100 {
            let block = handle.try_get().unwrap();
            assert_ne!(Some(block), last.replace(block), "first in, first out");
            put(&handle, block);
        }
        assert_eq!(all(&handle).len(), pool.capacity());
    }
}

/// A handle keeps two magazines' worth; what another one has put in its own is out of reach until it
/// is dropped.
#[test]
fn magazines_keep_what_they_say() {
    let pool = MagazinePool::<Heap, 64>::map(1000 * 64, &Request::new()).unwrap();
    let (one, other) = (pool.handle().unwrap(), pool.handle().unwrap());
    let mut blocks = all(&one);
    assert_eq!(blocks.len(), 1000);
    blocks.drain(..).for_each(|block| put(&other, block));
    let reached = all(&one);
    assert!((1000 - 62..1000).contains(&reached.len()), "{}", reached.len());
    reached.into_iter().for_each(|block| put(&one, block));
    drop(other);
    assert_eq!(all(&one).len(), 1000);
}

#[test]
fn what_others_free_goes_back_to_its_owner() {
    let pool = RemotePool::<Heap, 64, 4>::map(64 * 64, &Request::new()).unwrap();
    let (owner, other) = (pool.handle().unwrap(), pool.handle().unwrap());
    let mine: BTreeSet<_> = all(&owner).into_iter().collect();
    assert_eq!((mine.len(), pool.reach()), (16, 16));
    mine.iter().for_each(|&block| put(&other, block));
    let theirs: BTreeSet<_> = all(&other).into_iter().collect();
    assert!(theirs.len() == 16 && theirs.is_disjoint(&mine), "not to who freed it");
    assert_eq!(all(&owner).into_iter().collect::<BTreeSet<_>>(), mine);
    // Freed when the owner is gone: the seat's next handle has them.
    drop(owner);
    mine.iter().for_each(|&block| put(&other, block));
    let heir = pool.handle().unwrap();
    assert_eq!(all(&heir).into_iter().collect::<BTreeSet<_>>(), mine);
}

#[test]
fn threads_cut_apart_blocks_from_one_arena() {
    for size in [1, 16, 24, 100] {
        let arena = AtomicBump::<Heap>::map(64 << 10, &Request::new()).unwrap();
        let layout = Layout::from_size_align(size, 8).unwrap();
        let cut = || {
            let blocks = std::iter::from_fn(|| arena.try_alloc_layout(layout).ok());
            blocks.map(|block| block.addr().get()).collect::<Vec<_>>()
        };
        let mut blocks: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(cut)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        blocks.sort_unstable();
        let rounded = size.next_multiple_of(16);
        assert_eq!(blocks.len(), (64 << 10) / rounded, "none is lost: all ask for as much");
        assert!(blocks.windows(2).all(|two| two[0] + rounded <= two[1]));
    }
}

#[test]
fn an_atomic_arena_overshoots_without_harm() {
    let mut memory = [MaybeUninit::<u8>::uninit(); 200];
    let arena = AtomicBump::over(&mut memory);
    let capacity = arena.capacity();
    assert!((176..=192).contains(&capacity), "whole units: {capacity}");
    assert_eq!(arena.try_alloc([0_u8; 300]).map(|_| ()).map_err(|full| full.0.len()), Err(300));
    assert!(arena.try_alloc([1_u8; 160]).is_ok());
    assert!(arena.try_alloc([1_u8; 33]).is_err(), "more than is left");
    assert_eq!(arena.used(), 160, "a refusal costs nothing");
    assert!(arena.try_alloc([1_u8; 16]).is_ok());
    for bits in 5..12 {
        let wide = Layout::from_size_align(1, 1 << bits).unwrap();
        let block = arena.try_alloc_layout(wide);
        assert!(block.is_err() || block.unwrap().addr().get() % wide.align() == 0);
    }
    let most = Layout::from_size_align(isize::MAX as usize - 15, 16).unwrap();
    assert!(arena.try_alloc_layout(most).is_err());
    assert_eq!(arena.try_alloc(()), Ok(&mut ()));
}

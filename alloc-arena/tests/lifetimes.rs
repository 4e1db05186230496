//! Scopes, typed arenas and slabs: what is dropped, when, and what is left after a panic.

use alloc_arena::{Bump, Full, Inline, Key, Map, Request, Slab, TypedArena};
use core::cell::{Cell, RefCell};
use core::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn memory<const N: usize>() -> [MaybeUninit<u8>; N] {
    [MaybeUninit::uninit(); N]
}

#[test]
fn a_scope_takes_back_what_it_handed_out_and_nothing_else() {
    let mut memory = memory::<1024>();
    let arena = Bump::over(&mut memory);
    let kept = arena.try_alloc([7_u64; 4]).unwrap();
    let used = arena.used();
    for round in 1..=3 {
        let sum: u64 = arena.scope(|inner| {
            assert_eq!(inner.capacity(), 1024 - used);
            let scratch = inner.try_alloc([round; 8]).unwrap();
            assert_eq!(arena.try_alloc(1_u8), Err(Full(1)));
            assert_eq!(arena.try_alloc(()), Ok(&mut ()), "no bytes are always there");
            assert_eq!(arena.used(), 1024);
            let deeper: u64 = inner.scope(|deeper| {
                assert!(inner.try_alloc(1_u8).is_err());
                deeper.try_alloc([round; 2]).unwrap().iter().sum()
            });
            scratch.iter().sum::<u64>() + deeper + kept[0]
        });
        assert_eq!((sum, arena.used()), (10 * round + 7, used));
    }
    assert_eq!(*kept, [7; 4]);
    assert_eq!(arena.try_alloc(8_u64), Ok(&mut 8));
}

#[test]
fn a_scope_of_a_full_arena_is_empty_and_a_panic_gives_it_back() {
    let mut memory = memory::<64>();
    let arena = Bump::over(&mut memory);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        arena.scope(|inner| {
            inner.try_alloc([1_u8; 64]).unwrap();
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(arena.used(), 0);
    arena.try_alloc([2_u8; 64]).unwrap();
    arena.scope(|inner| {
        assert_eq!(inner.capacity(), 0);
        assert!(inner.try_alloc(1_u8).is_err());
        arena.scope(|same| assert_eq!(same.capacity(), 0));
    });
    assert_eq!(arena.used(), 64);
}

#[test]
fn a_scope_works_in_an_arena_that_carries_its_memory() {
    let arena = Bump::<Inline<256>>::map(200, &Request::new()).unwrap();
    let kept = arena.try_alloc(5_u32).unwrap();
    assert_eq!(arena.scope(|inner| *inner.try_alloc([*kept; 8]).unwrap()), [5; 8]);
    let mut arena = Box::new(arena);
    assert_eq!((arena.capacity(), arena.used()), (200, 4));
    arena.reset();
    assert_eq!(arena.used(), 0);
}

/// Writes its name down when it is dropped, or panics.
struct Named<'log> {
    name: u32,
    panics: bool,
    log: &'log RefCell<Vec<u32>>,
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        self.log.borrow_mut().push(self.name);
        assert!(!self.panics, "on purpose");
    }
}

fn named(log: &RefCell<Vec<u32>>, name: u32, panics: bool) -> Named<'_> {
    Named { name, panics, log }
}

#[test]
fn a_typed_arena_drops_each_value_once_whichever_panics() {
    for bad in 0..=5 {
        let log = RefCell::new(Vec::new());
        let mut memory = memory::<512>();
        let mut arena = TypedArena::over(&mut memory);
        for name in 0..5 {
            assert!(arena.try_alloc(named(&log, name, name == bad)).is_ok());
        }
        let reset = catch_unwind(AssertUnwindSafe(|| arena.reset()));
        assert_eq!(reset.is_err(), bad < 5);
        assert_eq!(*log.borrow(), [4, 3, 2, 1, 0], "the newest first");
        assert!(arena.is_empty());
        assert!(arena.try_alloc(named(&log, 9, false)).is_ok());
        drop(arena);
        assert_eq!(log.borrow()[5..], [9]);
    }
}

#[test]
fn a_full_typed_arena_hands_the_value_back() {
    let mut memory = memory::<100>();
    let mut arena = TypedArena::over(&mut memory);
    let mut kept = 0_u32;
    let refused = loop {
        match arena.try_alloc(Box::new(kept)) {
            Ok(_) => kept += 1,
            Err(Full(value)) => break value,
        }
    };
    assert_eq!(*refused, kept);
    assert_eq!(arena.len(), kept as usize);
    let expected: Vec<u32> = (0..kept).rev().collect();
    let values: Vec<u32> = arena.iter_mut().map(|value| **value).collect();
    assert_eq!(values, expected);
}

#[test]
fn values_without_bytes_and_wide_ones_are_dropped_too() {
    thread_local! { static DROPS: Cell<u32> = const { Cell::new(0) }; }
    struct Nothing;
    #[repr(align(256))]
    struct Wide(u8);
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.set(DROPS.get() + 1);
        }
    }
    impl Drop for Wide {
        fn drop(&mut self) {
            assert_eq!((&raw const *self).addr() % 256, 0);
            DROPS.set(DROPS.get() + u32::from(self.0));
        }
    }
    let nothing = TypedArena::over(&mut []);
    (0..1000).for_each(|_| assert!(nothing.try_alloc(Nothing).is_ok()));
    drop(nothing);
    assert_eq!(DROPS.get(), 1000);
    let mut memory = memory::<2048>();
    let wide = TypedArena::over(&mut memory);
    let count = (0..).take_while(|_| wide.try_alloc(Wide(1)).is_ok()).count();
    assert!(count >= 7, "{count}");
    drop(wide);
    assert_eq!(DROPS.get(), 1000 + count as u32 + 1, "the refused one as well");
}

#[test]
#[cfg(feature = "alloc")]
fn typed_arenas_and_slabs_stand_on_backings_and_go_to_other_threads() {
    use alloc_arena::Heap;
    let arena = TypedArena::<String, Heap>::map(1 << 12, &Request::new()).unwrap();
    assert!(arena.try_alloc("here".into()).is_ok());
    let mut slab = Slab::<String, Heap>::map(1 << 12, &Request::new()).unwrap();
    let key = slab.insert("there".into()).unwrap();
    let joined = std::thread::spawn(move || {
        let mut arena = arena;
        let first = arena.iter_mut().next().unwrap().clone();
        first + slab.get(key).unwrap()
    });
    assert_eq!(joined.join().unwrap(), "herethere");
    let zero = Slab::<u8, Heap>::map(0, &Request::new());
    assert_eq!(zero.err(), Some(alloc_arena::MapError::Zero));
    let strict = TypedArena::<u8, Heap>::map(64, &Request::on_node(0).strict());
    assert_eq!(strict.err(), Some(alloc_arena::MapError::Unsupported));
}

#[test]
fn a_slab_agrees_with_a_map_over_many_random_steps() {
    let mut memory = memory::<1000>();
    let mut slab = Slab::<u64, _>::over(&mut memory[3..]); // an odd start
    let mut model = std::collections::BTreeMap::<Key, u64>::new();
    let mut gone: Vec<Key> = Vec::new();
    let (mut random, mut refused) = (88172645463325252_u64, 0);
    for step in 0..20_000_u64 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if random & 7 < 5 {
            match slab.insert(step) {
                Ok(key) => assert_eq!(model.insert(key, step), None, "a key came twice"),
                Err(Full(value)) => {
                    assert_eq!((value, slab.len()), (step, slab.capacity()));
                    refused += 1;
                }
            }
        } else if let Some((&key, &value)) = model.iter().nth(random as usize / 8 % 20) {
            *slab.get_mut(key).unwrap() += 1;
            assert_eq!(slab.remove(key), Some(value + 1));
            model.remove(&key);
            gone.push(key);
        }
        assert_eq!(slab.len(), model.len());
    }
    assert!(refused > 100 && gone.len() > 1000, "{refused} {}", gone.len());
    assert!(model.iter().all(|(key, value)| slab.get(*key) == Some(value)));
    assert!(gone.iter().all(|&key| !slab.contains(key) && slab.remove(key).is_none()));
    let keys: Vec<Key> = model.into_keys().collect();
    slab.clear();
    assert!(slab.is_empty() && keys.iter().all(|&key| slab.get(key).is_none()));
}

/// With 8 bits an entry serves 256 values; then it is retired, and no old key is ever good again.
#[test]
fn generations_that_are_used_up_retire_the_entry() {
    let mut memory = memory::<40>();
    let mut slab = Slab::<u64, _, 8>::over(&mut memory[..]);
    assert!(slab.capacity() >= 1);
    let capacity = slab.capacity();
    let mut keys = Vec::new();
    while let Ok(key) = slab.insert(keys.len() as u64) {
        assert_eq!(slab.remove(key), Some(keys.len() as u64));
        keys.push(key);
    }
    assert_eq!((keys.len(), slab.retired(), slab.len()), (256 * capacity, capacity, 0));
    let mut unique = keys.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), keys.len(), "no key came twice");
    assert!(keys.into_iter().all(|key| !slab.contains(key)));
}

#[test]
fn keys_of_another_slab_find_nothing_beyond_the_end() {
    let (mut large, mut small) = (memory::<1024>(), memory::<64>());
    let mut large = Slab::<u64, _>::over(&mut large);
    let last = (0..40).map(|n| large.insert(n).unwrap()).last().unwrap();
    let mut small = Slab::<u64, _>::over(&mut small);
    assert_eq!(small.get(last), None);
    assert_eq!(small.remove(last), None);
    let mut none = Slab::<u64, _>::over(&mut []);
    assert_eq!((none.capacity(), none.insert(3)), (0, Err(Full(3))));
}

#[test]
fn a_slab_drops_each_value_once_whichever_panics() {
    for bad in 0..=4 {
        let log = RefCell::new(Vec::new());
        let mut memory = memory::<512>();
        let mut slab = Slab::<_, _>::over(&mut memory);
        let keys: Vec<Key> =
            (0..5).map(|name| slab.insert(named(&log, name, name == bad)).ok().unwrap()).collect();
        if bad != 2 {
            drop(slab.remove(keys[2]));
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(slab)));
        assert!(dropped.is_err());
        let mut names = log.into_inner();
        names.sort_unstable();
        assert_eq!(names, [0, 1, 2, 3, 4]);
    }
}

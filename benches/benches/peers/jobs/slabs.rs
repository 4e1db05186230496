//! Slabs: take the oldest of 64 values out by its key, and put another one in.

use alloc_arena::{Heap, Map, Request, Slab};
use harness::native::{Conditions, Experiment};
use harness::unavailable::Unavailable;
use harness::window::Work;

use super::{Bytes, Job, Whose, candidate, theirs};

/// Values at a time.
const VALUES: usize = 64;

trait Slabs: Sized + Send + 'static {
    type Key: Copy + Send;

    fn new() -> Result<Self, String>;

    fn insert(&mut self, value: u64) -> Option<Self::Key>;

    fn remove(&mut self, key: Self::Key) -> Option<u64>;
}

impl Slabs for Slab<u64, Heap> {
    type Key = alloc_arena::Key;

    fn new() -> Result<Self, String> {
        Self::map(64 * VALUES, &Request::new()).map_err(|error| error.to_string())
    }

    #[inline(always)]
    fn insert(&mut self, value: u64) -> Option<Self::Key> {
        self.insert(value).ok()
    }

    #[inline(always)]
    fn remove(&mut self, key: Self::Key) -> Option<u64> {
        self.remove(key)
    }
}

/// Without generations: a key that was removed may name another value.
impl Slabs for slab::Slab<u64> {
    type Key = usize;

    fn new() -> Result<Self, String> {
        Ok(Self::with_capacity(2 * VALUES))
    }

    #[inline(always)]
    fn insert(&mut self, value: u64) -> Option<usize> {
        Some(self.insert(value))
    }

    #[inline(always)]
    fn remove(&mut self, key: usize) -> Option<u64> {
        self.try_remove(key)
    }
}

/// For many threads, of which here is one.
impl Slabs for sharded_slab::Slab<u64> {
    type Key = usize;

    fn new() -> Result<Self, String> {
        Ok(Self::new())
    }

    #[inline(always)]
    fn insert(&mut self, value: u64) -> Option<usize> {
        sharded_slab::Slab::insert(self, value)
    }

    #[inline(always)]
    fn remove(&mut self, key: usize) -> Option<u64> {
        self.take(key)
    }
}

struct Turning<S: Slabs> {
    slab: S,
    keys: Vec<S::Key>,
    next: u64,
    wrong: u64,
}

impl<S: Slabs> Work for Turning<S> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let (mut next, mut wrong) = (self.next, 0);
        for _ in 0..ops {
            let place = &mut self.keys[next as usize % VALUES];
            wrong += u64::from(self.slab.remove(*place) != Some(next - VALUES as u64));
            match self.slab.insert(next) {
                Some(key) => *place = key,
                None => wrong += 1,
            }
            next += 1;
        }
        (self.next, self.wrong) = (next, self.wrong + wrong);
        ops
    }

    fn period(&self) -> u64 {
        VALUES as u64
    }

    fn finish(&mut self) -> Result<(), String> {
        match self.wrong {
            0 => Ok(()),
            wrong => Err(format!("{wrong} values were not those of their keys")),
        }
    }
}

fn make<S: Slabs>(conditions: &Conditions) -> Result<Experiment, Unavailable> {
    let turning = |_| -> Result<Box<dyn Work>, Unavailable> {
        let refused = |reason: &str| Unavailable::because("no_slab", reason);
        let mut slab = S::new().map_err(|error| refused(&error))?;
        let keys = (0..VALUES as u64).map(|value| slab.insert(value)).collect::<Option<Vec<_>>>();
        let keys = keys.ok_or_else(|| refused("it is full too early"))?;
        Ok(<dyn Work>::boxed(Turning { slab, keys, next: VALUES as u64, wrong: 0 }))
    };
    let works = (0..conditions.threads()).map(turning).collect::<Result<_, _>>()?;
    Ok(Experiment { works, granted: None, verify: Box::new(|_| Ok(vec![])) })
}

pub(super) fn jobs() -> Vec<Job> {
    let candidates = vec![
        candidate("alloc_arena::Slab", Whose::Ours, make::<Slab<u64, Heap>>)
            .taking(|| Bytes::of(size_of::<Slab<u64, Heap>>(), None)),
        theirs("slab::Slab", make::<slab::Slab<u64>>)
            .taking(|| Bytes::of(size_of::<slab::Slab<u64>>(), None)),
        theirs("sharded_slab::Slab", make::<sharded_slab::Slab<u64>>)
            .taking(|| Bytes::of(size_of::<sharded_slab::Slab<u64>>(), None)),
    ];
    vec![Job::alone("slab", "remove the oldest of 64 values, insert another", candidates)]
}

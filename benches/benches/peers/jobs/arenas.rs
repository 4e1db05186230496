//! Arenas: put a value somewhere, and take all back when 1024 are there.

use std::alloc::Layout;
use std::hint::black_box;

use alloc_arena::{Arena, Frees, Heap, Map, Request, TypedArena};
use harness::native::{Conditions, Experiment};
use harness::unavailable::Unavailable;
use harness::window::Work;

use super::{Bytes, Candidate, Job, Whose, candidate, theirs, whose};

/// Values between two resets.
const VALUES: u64 = 1024;

/// Bytes that suffice for that many of the largest.
const BYTES: usize = VALUES as usize * size_of::<[u64; 8]>();

/// Keeps values until it is reset.
trait Keeps<T>: Sized + Send + 'static {
    fn new() -> Result<Self, String>;

    fn keep(&mut self, value: T) -> Option<&mut T>;

    fn reset(&mut self);
}

struct Ours<A>(A);

impl<T, A: Arena + Map + Send + 'static> Keeps<T> for Ours<A> {
    fn new() -> Result<Self, String> {
        A::map(BYTES, &Request::new()).map(Self).map_err(|error| error.to_string())
    }

    #[inline(always)]
    fn keep(&mut self, value: T) -> Option<&mut T> {
        let block = self.0.try_alloc_layout(Layout::new::<T>()).ok()?.cast::<T>();
        // SAFETY: the block is as large and as aligned as `T`, and nobody else's.
        unsafe { block.write(value) };
        // SAFETY: written above; `self` is borrowed as long as the reference lives.
        Some(unsafe { &mut *block.as_ptr() })
    }

    fn reset(&mut self) {
        self.0.reset();
    }
}

impl<T: Send + 'static> Keeps<T> for TypedArena<T, Heap> {
    fn new() -> Result<Self, String> {
        Self::map(BYTES, &Request::new()).map_err(|error| error.to_string())
    }

    #[inline(always)]
    fn keep(&mut self, value: T) -> Option<&mut T> {
        self.try_alloc(value).ok()
    }

    fn reset(&mut self) {
        self.reset();
    }
}

/// Grows where ours says that it is full, which costs it nothing here: it has one chunk.
impl<T> Keeps<T> for bumpalo::Bump {
    fn new() -> Result<Self, String> {
        Self::try_with_capacity(BYTES).map_err(|error| error.to_string())
    }

    #[inline(always)]
    fn keep(&mut self, value: T) -> Option<&mut T> {
        Some(self.alloc(value))
    }

    fn reset(&mut self) {
        self.reset();
    }
}

/// A vector that never grows: no reference stays good when another value is put in.
impl<T: Send + 'static> Keeps<T> for Vec<T> {
    fn new() -> Result<Self, String> {
        Ok(Self::with_capacity(VALUES as usize))
    }

    #[inline(always)]
    fn keep(&mut self, value: T) -> Option<&mut T> {
        if self.len() == self.capacity() {
            return None;
        }
        self.push(value);
        self.last_mut()
    }

    fn reset(&mut self) {
        self.clear();
    }
}

/// The allocator of the C library, behind the engine's test of a thread-local flag.
struct Boxes<T>(Vec<Box<T>>);

impl<T: Send + 'static> Keeps<T> for Boxes<T> {
    fn new() -> Result<Self, String> {
        Ok(Self(Vec::with_capacity(VALUES as usize)))
    }

    #[inline(always)]
    fn keep(&mut self, value: T) -> Option<&mut T> {
        self.0.push(Box::new(value));
        self.0.last_mut().map(|kept| &mut **kept)
    }

    fn reset(&mut self) {
        self.0.clear();
    }
}

struct Keeping<K, T> {
    kept: K,
    value: T,
    left: u64,
    refused: u64,
}

impl<T: Copy + Send + 'static, K: Keeps<T>> Work for Keeping<K, T> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let (mut left, mut refused, value) = (self.left, 0, self.value);
        for _ in 0..ops {
            if left == 0 {
                self.kept.reset();
                left = VALUES;
            }
            left -= 1;
            match self.kept.keep(value) {
                Some(kept) => {
                    black_box(kept);
                }
                None => refused += 1,
            }
        }
        self.left = left;
        self.refused += refused;
        ops
    }

    fn period(&self) -> u64 {
        VALUES
    }

    fn finish(&mut self) -> Result<(), String> {
        match self.refused {
            0 => Ok(()),
            refused => Err(format!("{refused} values found no room in an arena with room")),
        }
    }
}

fn make<T, K>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    T: Default + Copy + Send + 'static,
    K: Keeps<T>,
{
    let keeping = |_| -> Result<Box<dyn Work>, Unavailable> {
        let kept = K::new().map_err(|error| Unavailable::because("not_mapped", error))?;
        Ok(<dyn Work>::boxed(Keeping { kept, value: T::default(), left: VALUES, refused: 0 }))
    };
    let works = (0..conditions.threads()).map(keeping).collect::<Result<_, _>>()?;
    Ok(Experiment { works, granted: None, verify: Box::new(|_| Ok(vec![])) })
}

fn of<T, A>(id: &'static str, whose: Whose) -> Option<Candidate>
where
    T: Default + Copy + Send + 'static,
    A: Arena + Map + Send + 'static,
{
    // The baseline hands out the same block again, of 64 bytes.
    let whose = if A::PROPERTIES.frees == Frees::Nothing { Whose::Nobody } else { whose };
    Some(candidate(id, whose, make::<T, Ours<A>>).taking(|| Bytes::of(size_of::<A>(), None)))
}

macro_rules! ours {
    ($($id:ident => $arena:ty, $kind:ident;)*) => { [$(
        of::<T, $arena>(concat!("alloc-arena/", stringify!($id)), whose!($kind))
    ),*] };
}

fn bumpalo<T: Default + Copy + Send + 'static>() -> Candidate {
    theirs("bumpalo::Bump", make::<T, bumpalo::Bump>)
        .taking(|| Bytes::of(size_of::<bumpalo::Bump>(), None))
}

fn bumps<T: Default + Copy + Send + 'static>() -> Vec<Candidate> {
    let ours = alloc_arena::for_each_arena!(ours);
    let peers = [bumpalo::<T>(), theirs("Box", make::<T, Boxes<T>>)];
    ours.into_iter().flatten().chain(peers).collect()
}

fn typed() -> Vec<Candidate> {
    vec![
        candidate("alloc_arena::TypedArena", Whose::Ours, make::<u64, TypedArena<u64, Heap>>)
            .taking(|| Bytes::of(size_of::<TypedArena<u64, Heap>>(), None)),
        bumpalo::<u64>(),
        theirs("Vec", make::<u64, Vec<u64>>).taking(|| Bytes::of(size_of::<Vec<u64>>(), None)),
        theirs("Box", make::<u64, Boxes<u64>>),
    ]
}

pub(super) fn jobs() -> Vec<Job> {
    vec![
        Job::alone("bump_u32", "put a u32 into the arena, reset after 1024", bumps::<u32>()),
        Job::alone("bump_64", "put 64 bytes into the arena, reset after 1024", bumps::<[u64; 8]>()),
        Job::alone("typed", "put a u64 where it will be dropped, reset after 1024", typed()),
    ]
}

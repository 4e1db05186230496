//! Slab: values under keys that are never mistaken for those of earlier values.
//! # Algorithm
//! The region holds entries: a generation, a link, room for a value. Free entries form a stack
//! through their links, behind it those that were never used. `insert` takes an entry and gives its
//! index and generation as the key; `remove` takes the value out, and with it the key: the entry's
//! generation goes up by one. A key is good while its generation is the entry's. An entry whose
//! generations, 2^`BITS` of them, are used up is retired.
//! # Why
//! Against `TypedArena` values go one by one, and keys may outlive them without harm. It adds 8
//! bytes a value and a comparison to each access.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Slab<T, B, BITS>` | those of `B` + 24 | 8 | 1 or 2 | its owner |
//! | entry | 8 + those of `T`, padded | that of `T`, at least 4 | - | its owner |
//! # Cost
//! Insert and remove: 2 loads and 3 stores besides the value. Get: 1 compare of the index, 1 load
//! and 2 compares.
//! # Progress
//! Wait-free; one thread at a time.
//! # Invariants
//! - I1: entries below `used` are initialised but for their values; the link of an entry that holds
//!   a value is `HELD`, and no other's.
//! - I2: `used` ≤ `capacity` entries fit into the region, aligned, and the region does not move.
//! - I3: the stack from `free` on holds each free entry once, and no retired one.
//! # Synchronization
//! none
//! # Errors and limits
//! A full slab hands the value back. At most 2³² − 2 entries. Retired entries are lost to the slab
//! until it is dropped: with 32 bits after 2³² removals from one entry. Backings that move with the
//! slab are refused when the program is compiled.
//! # References
//! The crates slab and sharded-slab. Differs from them in: fixed memory; no generation comes twice.

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::backing::Backing;
use super::contract::{Full, Map};
use super::map_error::MapError;
use super::request::Request;
use super::slice::Slice;

/// The link of the last free entry, of one that holds a value, and of a retired one.
const NONE: u32 = u32::MAX;
const HELD: u32 = u32::MAX - 1;
/// Entries at most: indices below the marks above.
const MOST: usize = HELD as usize;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    generation: u32,
    link: u32,
}

/// The head comes first, so that a pointer to the entry is one to its head.
#[repr(C)]
struct Entry<T> {
    head: Head,
    value: MaybeUninit<T>,
}

/// Names a value in a slab; good until the value is removed, and never again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// Keeps values of type `T` in the region of `B` under keys with generations of `BITS` bits.
///
/// ```
/// use core::mem::MaybeUninit;
/// let mut memory = [MaybeUninit::<u8>::uninit(); 256];
/// let mut slab = alloc_arena::Slab::<String, _>::over(&mut memory);
/// let one = slab.insert(String::from("one")).unwrap();
/// assert_eq!(slab.remove(one).as_deref(), Some("one"));
/// let two = slab.insert(String::from("two")).unwrap(); // in the same entry
/// assert_eq!((slab.get(one), slab.get(two).map(String::as_str)), (None, Some("two")));
/// ```
pub struct Slab<T, B: Backing, const BITS: u32 = 32> {
    free: u32,
    used: u32,
    len: u32,
    retired: u32,
    capacity: u32,
    backing: B,
    values: PhantomData<T>,
}

impl<'memory, T, const BITS: u32> Slab<T, Slice<'memory>, BITS> {
    /// Makes an empty slab over memory that the caller lends.
    pub fn over(memory: &'memory mut [MaybeUninit<u8>]) -> Self {
        Self::new(Slice::new(memory))
    }
}

impl<T, B: Backing, const BITS: u32> Slab<T, B, BITS> {
    /// The last generation of an entry.
    const LAST: u32 = {
        assert!(B::STAYS, "values must not move with the slab");
        assert!(BITS >= 1 && BITS <= 32, "generations have 1 to 32 bits");
        u32::MAX >> (32 - BITS)
    };

    /// Makes an empty slab over `backing`.
    pub fn new(backing: B) -> Self {
        let _ = Self::LAST;
        let bytes = backing.region().len().saturating_sub(Self::lead(&backing));
        let capacity = (bytes / size_of::<Entry<T>>()).min(MOST) as u32;
        Self { free: NONE, used: 0, len: 0, retired: 0, capacity, backing, values: PhantomData }
    }

    /// Bytes before the first entry, for its alignment.
    fn lead(backing: &B) -> usize {
        let start = backing.region().addr().get();
        start.wrapping_neg() & (align_of::<Entry<T>>() - 1)
    }

    /// The entry at `index`, which is below `capacity`.
    #[inline]
    fn entry(&self, index: u32) -> NonNull<Entry<T>> {
        debug_assert!(index < self.capacity);
        let start = self.backing.region().cast::<u8>();
        let offset = Self::lead(&self.backing) + index as usize * size_of::<Entry<T>>();
        // SAFETY: by I2 the entry is inside the region.
        unsafe { start.add(offset) }.cast()
    }

    /// The head of an entry below `used`.
    #[inline]
    fn head(&self, index: u32) -> Head {
        // SAFETY: by I1 initialised, by I2 inside the region and aligned.
        unsafe { self.entry(index).cast::<Head>().read() }
    }

    fn set_head(&mut self, index: u32, generation: u32, link: u32) {
        // SAFETY: by I2 inside the region and aligned; the slab is borrowed exclusively.
        unsafe { self.entry(index).cast::<Head>().write(Head { generation, link }) };
    }

    /// The room for the value of an entry.
    #[inline]
    fn room(&self, index: u32) -> *mut T {
        // SAFETY: by I2 inside the region.
        unsafe { (&raw mut (*self.entry(index).as_ptr()).value).cast() }
    }

    /// Moves `value` in and names it.
    ///
    /// # Errors
    /// [`Full`] hands the value back when no entry is free.
    pub fn insert(&mut self, value: T) -> Result<Key, Full<T>> {
        let index = self.free;
        let (index, generation) = if index != NONE {
            let Head { generation, link } = self.head(index);
            self.free = link;
            (index, generation)
        } else if self.used < self.capacity {
            self.used += 1;
            (self.used - 1, 0)
        } else {
            return Err(Full(value));
        };
        self.set_head(index, generation, HELD);
        // SAFETY: by I2 room for a value, by I3 of an entry that holds none.
        unsafe { self.room(index).write(value) };
        self.len += 1;
        Ok(Key { index, generation })
    }

    /// Whether the key's value is there.
    #[inline]
    pub fn contains(&self, key: Key) -> bool {
        key.index < self.used
            && self.head(key.index) == Head { generation: key.generation, link: HELD }
    }

    /// Finds the key's value, unless it was removed.
    #[inline]
    pub fn get(&self, key: Key) -> Option<&T> {
        // SAFETY: by I1 an entry that is held has a value; the slab is borrowed.
        self.contains(key).then(|| unsafe { &*self.room(key.index) })
    }

    /// Finds the key's value to change it, unless it was removed.
    #[inline]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        // SAFETY: as in `get`; the slab is borrowed exclusively.
        self.contains(key).then(|| unsafe { &mut *self.room(key.index) })
    }

    /// Takes the key's value out, unless it was removed.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        if !self.contains(key) {
            return None;
        }
        if key.generation == Self::LAST {
            self.set_head(key.index, key.generation, NONE);
            self.retired += 1;
        } else {
            self.set_head(key.index, key.generation + 1, self.free);
            self.free = key.index;
        }
        self.len -= 1;
        // SAFETY: by I1 the entry had a value, which is read once: it is not held any more.
        Some(unsafe { self.room(key.index).read() })
    }

    /// Counts the values.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Values that can be there at once, retired entries among them.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Counts the entries whose generations are used up.
    pub fn retired(&self) -> usize {
        self.retired as usize
    }

    /// Drops all values, in the order of their entries. Their keys are good no more.
    pub fn clear(&mut self) {
        for index in 0..self.used {
            let Head { generation, link } = self.head(index);
            drop((link == HELD).then(|| self.remove(Key { index, generation })));
        }
    }
}

impl<T, B: Backing, const BITS: u32> Drop for Slab<T, B, BITS> {
    /// Drops the values; if one's destructor panics the others are dropped all the same.
    fn drop(&mut self) {
        /// Goes on with the rest while a panic unwinds.
        struct Rest<'slab, T, B: Backing, const BITS: u32>(&'slab mut Slab<T, B, BITS>);
        impl<T, B: Backing, const BITS: u32> Drop for Rest<'_, T, B, BITS> {
            fn drop(&mut self) {
                self.0.clear();
            }
        }
        let rest = Rest(self);
        rest.0.clear();
    }
}

impl<T, B: Backing + Map, const BITS: u32> Map for Slab<T, B, BITS> {
    fn map(bytes: usize, request: &Request) -> Result<Self, MapError> {
        B::map(bytes, request).map(Self::new)
    }
}

impl<T, B: Backing, const BITS: u32> fmt::Debug for Slab<T, B, BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slab").field("len", &self.len()).finish_non_exhaustive()
    }
}

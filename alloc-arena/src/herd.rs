//! Herd: a bump arena for each thread or node, whose blocks all live as long as the herd.
//! # Algorithm
//! `members` are bump arenas, each with a seat. `member` takes a free seat and gives the thread that
//! arena to itself; dropping the [`Member`] gives up the seat, and the next one goes on behind what
//! was handed out. `reset` takes everything back from all of them.
//! # Why
//! Against one `Bump` a thread, blocks outlive the thread that allocated them, so that a parser or a
//! query may start threads and keep what they made. Against `AtomicBump` threads share no line and
//! an allocation costs no RMW. It adds that what is left of a member's region is of no use to others.
//! # Shape
//! | item | bytes | align | lines | written by |
//! |---|---|---|---|---|
//! | `Herd<Heap>` | 32 | 8 | 1 | threads when they take and leave seats |
//! | member | those of `Bump<B>`, padded to 128 | 128 | 2 | the thread that has the seat |
//! | `Member` | 24 | 8 | 1 | nobody |
//! # Cost
//! A block: that of `Bump`. A seat: up to 1 load a member, 1 RMW; leaving it: 1 RMW.
//! # Progress
//! Wait-free, but for the seat, which is lock-free. A preempted thread keeps its seat.
//! # Invariants
//! - I1: one `Member` at a time has a seat, and it alone uses the seat's arena.
//! - I2: a block is the arena's until `reset` or the herd's end, which borrow the herd exclusively;
//!   references to blocks borrow it, and members do not move.
//! # Synchronization
//! S1 of the seats, from a member that is dropped to the seat's next one: where its arena's finger
//! is. Blocks go to other threads by means of the caller's.
//! # Errors and limits
//! At most 128 members (twice as many as a word has bits). `member` is `None` while all seats are
//! taken. A full member hands the value back, though others may have room. Runs no `Drop`.
//! # References
//! The crate bumpalo-herd; R. J. Fleming and others, folly, `ThreadCachedArena`. Differs from both in:
//! fixed regions, which may lie on a node for each member.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crossbeam_utils::CachePadded;

use crate::backing::Backing;
use crate::bump::Bump;
use crate::contract::{AllocError, Full, Map};
use crate::map_error::MapError;
use crate::placement::Placement;
use crate::request::{Place, Request};
use crate::seats::Seats;

const WORDS: usize = 2;

/// Bump arenas for threads, with one lifetime.
///
/// ```
/// use alloc_arena::{Heap, Herd, Request};
/// let herd = Herd::<Heap>::map(4, 4096, &Request::new())?;
/// let words: Vec<&mut String> = std::thread::scope(|scope| {
///     let threads: Vec<_> = ["one", "two", "three"]
///         .into_iter()
///         .map(|word| {
///             let member = herd.member().expect("four seats");
///             scope.spawn(move || member.try_alloc(word.to_owned()).expect("room"))
///         })
///         .collect();
///     threads.into_iter().map(|thread| thread.join().unwrap()).collect()
/// });
/// assert_eq!(words, ["one", "two", "three"], "they outlive their threads");
/// # Ok::<(), alloc_arena::MapError>(())
/// ```
///
/// but not the herd,
///
/// ```compile_fail,E0597
/// use alloc_arena::{Heap, Herd, Request};
/// let word = {
///     let herd = Herd::<Heap>::map(1, 64, &Request::new()).unwrap();
///     herd.member().unwrap().try_alloc(7_u64).unwrap()
/// };
/// assert_eq!(*word, 7);
/// ```
///
/// nor its reset:
///
/// ```compile_fail,E0502
/// use alloc_arena::{Heap, Herd, Request};
/// let mut herd = Herd::<Heap>::map(1, 64, &Request::new()).unwrap();
/// let word = herd.member().unwrap().try_alloc(7_u64).unwrap();
/// herd.reset();
/// assert_eq!(*word, 7);
/// ```
pub struct Herd<B> {
    seats: Seats<WORDS>,
    members: Box<[CachePadded<Bump<B>>]>,
}

// SAFETY: arenas go from thread to thread with their seats (I1), in order by S1; the herd itself only
// asks backings for reports.
unsafe impl<B: Send + Sync> Sync for Herd<B> {}

/// A thread's arena in a [`Herd`].
///
/// What it hands out lives as long as the herd:
///
/// ```
/// use alloc_arena::{Heap, Herd, Request};
/// let herd = Herd::<Heap>::map(1, 64, &Request::new())?;
/// let member = herd.member().unwrap();
/// let seven = member.try_alloc(7).unwrap();
/// drop(member);
/// assert_eq!(*seven, 7);
/// # Ok::<(), alloc_arena::MapError>(())
/// ```
pub struct Member<'herd, B> {
    herd: &'herd Herd<B>,
    arena: &'herd Bump<B>,
    seat: usize,
}

// SAFETY: by I1 it has the arena alone, which may be sent.
unsafe impl<B: Send + Sync> Send for Member<'_, B> {}

impl<B: Backing> Herd<B> {
    /// Members that a herd has at most.
    pub const MOST: usize = Seats::<WORDS>::CAPACITY;

    /// Makes a herd of one arena for each backing.
    ///
    /// # Errors
    /// The first [`MapError`] of a backing; [`MapError::TooLarge`] with more than
    /// [`MOST`](Self::MOST) of them.
    pub fn new(backings: impl IntoIterator<Item = Result<B, MapError>>) -> Result<Self, MapError> {
        const { assert!(B::STAYS, "blocks must not move with the herd") };
        let arenas = backings.into_iter().map(|backing| Ok(CachePadded::new(Bump::new(backing?))));
        let members = arenas.take(Self::MOST + 1).collect::<Result<Vec<_>, MapError>>()?;
        if members.len() > Self::MOST {
            return Err(MapError::TooLarge { most_bytes: Self::MOST });
        }
        Ok(Self { seats: Seats::new(), members: members.into_boxed_slice() })
    }

    /// Makes a herd of `members` arenas of `bytes` bytes each, all where `request` asks.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn map(members: usize, bytes: usize, request: &Request) -> Result<Self, MapError>
    where
        B: Map,
    {
        Self::new((0..members).map(|_| B::map(bytes, request)))
    }

    /// Makes a herd of an arena of `bytes` bytes on each of `nodes`; the seat is the node's place in
    /// the list.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn on_nodes(
        nodes: impl IntoIterator<Item = u32>,
        bytes: usize,
        request: &Request,
    ) -> Result<Self, MapError>
    where
        B: Map,
    {
        let request = |node| Request { place: Place::Node(node), ..*request };
        Self::new(nodes.into_iter().map(|node| B::map(bytes, &request(node))))
    }

    fn sit(&self, seat: usize) -> Member<'_, B> {
        Member { herd: self, arena: &self.members[seat], seat }
    }

    /// Gives the caller a free arena of the herd; `None` if all are taken.
    pub fn member(&self) -> Option<Member<'_, B>> {
        self.seats.claim(self.members.len()).map(|seat| self.sit(seat))
    }

    /// Gives the caller this arena of the herd; `None` if it is taken or there is none.
    pub fn member_at(&self, seat: usize) -> Option<Member<'_, B>> {
        (seat < self.members.len() && self.seats.claim_seat(seat)).then(|| self.sit(seat))
    }

    /// Takes every block back from all members. Runs no destructors.
    pub fn reset(&mut self) {
        // A member that was forgotten left its seat taken; by I2 nobody has one.
        self.seats = Seats::new();
        self.members.iter_mut().for_each(|arena| arena.reset());
    }

    /// Counts the members, whether seats are taken or free.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Reports where each member's region lies now, by seat.
    pub fn placements(&self) -> impl Iterator<Item = Placement> + '_ {
        self.members.iter().map(|arena| arena.placement())
    }
}

impl<'herd, B: Backing> Member<'herd, B> {
    /// Moves `value` into the herd, where it is never dropped.
    ///
    /// # Errors
    /// [`Full`] hands the value back when this member has too little left.
    #[inline]
    pub fn try_alloc<T>(&self, value: T) -> Result<&'herd mut T, Full<T>> {
        self.arena.try_alloc(value)
    }

    /// Copies `values` into the herd.
    ///
    /// # Errors
    /// [`AllocError`] when this member has too little left.
    #[inline]
    pub fn try_alloc_slice_copy<T: Copy>(
        &self,
        values: &[T],
    ) -> Result<&'herd mut [T], AllocError> {
        self.arena.try_alloc_slice_copy(values)
    }

    /// The seat that the member has.
    pub fn seat(&self) -> usize {
        self.seat
    }

    /// Bytes of this member that are handed out, with what alignment cost.
    pub fn used(&self) -> usize {
        self.arena.used()
    }
}

impl<B> Drop for Member<'_, B> {
    fn drop(&mut self) {
        self.herd.seats.release(self.seat);
    }
}

impl<B> fmt::Debug for Herd<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Herd").field("members", &self.members.len()).finish_non_exhaustive()
    }
}

impl<B> fmt::Debug for Member<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("seat", &self.seat).finish_non_exhaustive()
    }
}

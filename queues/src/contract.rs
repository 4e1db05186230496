//! What a queue promises: the traits that every variant implements and every driver uses.
//!
//! Head is the side of the consumers, tail the side of the producers, capacity the number of
//! usable slots.

use core::fmt;

/// A queue of elements that are handed from producers to consumers.
///
/// An implementation guarantees that
/// - an element whose `try_push` returned `Ok` is returned by exactly one `try_pop`, or is dropped
///   once, with the queue;
/// - an element that did not go in comes back in [`Full`];
/// - everything written before a push is visible after the pop that returns its element;
/// - while nobody else is inside an operation, `capacity` elements go in and no more (a queue that
///   is not bounded takes as many as there is memory for), and a queue that holds an element is not
///   empty. What a peer that is inside an operation does to this, the
///   variant says under "Progress".
pub trait Queue<T: Send>: Send + Sync + Sized {
    /// The side that pushes.
    type Producer<'q>: Producer<T> + Send
    where
        Self: 'q;

    /// The side that pops.
    type Consumer<'q>: Consumer<T> + Send
    where
        Self: 'q;

    /// What the algorithm is and is not.
    const PROPERTIES: Properties;

    /// What one more slot costs, in bytes.
    const BYTES_PER_SLOT: usize;

    /// Gives out both sides. The exclusive borrow proves that no others exist; the elements of an
    /// earlier pair stay in the queue.
    fn split(&mut self) -> (Self::Producer<'_>, Self::Consumer<'_>);

    /// How many elements fit; `usize::MAX` if the queue is not bounded.
    fn capacity(&self) -> usize;
}

/// A queue that any number of threads may push to and pop from through a shared reference.
pub trait SharedQueue<T: Send>: Queue<T> {
    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when there is no room.
    fn try_push(&self, value: T) -> Result<(), Full<T>>;

    /// Takes the oldest element, if there is one.
    fn try_pop(&self) -> Option<T>;
}

/// A queue whose capacity is chosen when it is made.
pub trait WithCapacity: Sized {
    /// Makes an empty queue for `capacity` elements, exactly; one that is not bounded begins with
    /// room for as many or fewer, and refuses what no memory could hold.
    ///
    /// # Errors
    /// [`CapacityError`] says which capacity would do; nothing aborts.
    fn with_capacity(capacity: usize) -> Result<Self, CapacityError>;
}

/// The side of a queue that pushes.
pub trait Producer<T> {
    /// Appends `value`.
    ///
    /// # Errors
    /// [`Full`] hands the value back when there is no room.
    fn try_push(&mut self, value: T) -> Result<(), Full<T>>;

    /// Makes one more producer of the same queue; `None` when there may be only one.
    fn try_clone(&self) -> Option<Self>
    where
        Self: Sized;
}

/// The side of a queue that pops.
pub trait Consumer<T> {
    /// Takes the oldest element, if there is one.
    fn try_pop(&mut self) -> Option<T>;

    /// Makes one more consumer of the same queue; `None` when there may be only one.
    fn try_clone(&self) -> Option<Self>
    where
        Self: Sized;
}

/// What an attempt to take from another worker's deque came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steal<T> {
    /// The oldest element.
    Success(T),
    /// There was none.
    Empty,
    /// Another thread was faster; there may be more.
    Retry,
}

impl<T> Steal<T> {
    /// The element, if there is one.
    pub fn success(self) -> Option<T> {
        match self {
            Self::Success(value) => Some(value),
            Self::Empty | Self::Retry => None,
        }
    }
}

/// What an attempt to pop came to where a push that is under way can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pop<T> {
    /// The oldest element.
    Item(T),
    /// There was none.
    Empty,
    /// It cannot be reached until a push that is under way has ended.
    Busy,
}

impl<T> Pop<T> {
    /// The element, if there is one.
    pub fn item(self) -> Option<T> {
        match self {
            Self::Item(value) => Some(value),
            Self::Empty | Self::Busy => None,
        }
    }
}

/// The queue had no room; the value comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(
    /// The value that did not go in.
    pub T,
);

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is full")
    }
}

impl<T> core::error::Error for Full<T> {}

/// A capacity for which no queue was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CapacityError {
    /// A queue of no slots would accept nothing.
    Zero,
    /// More slots than this kind of queue and of storage can number.
    TooLarge {
        /// The largest capacity that can be numbered; memory may set a lower one.
        largest: usize,
    },
    /// The allocator refused.
    OutOfMemory {
        /// How many bytes it was asked for.
        bytes: usize,
    },
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => f.write_str("a queue needs a capacity of at least 1"),
            Self::TooLarge { largest } => write!(f, "the capacity can be {largest} at most"),
            Self::OutOfMemory { bytes } => write!(f, "{bytes} bytes of slots were refused"),
        }
    }
}

impl core::error::Error for CapacityError {}

/// What an algorithm is and is not; the table in the crate's documentation is tested against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// How many may push at once.
    pub producers: Side,
    /// How many may pop at once.
    pub consumers: Side,
    /// Whether the capacity is fixed when the queue is made. Where not, a push allocates, and says
    /// full when the allocator refuses.
    pub bounded: bool,
    /// In which order elements come out.
    pub order: Order,
    /// What a stopped thread does to the others.
    pub progress: Progress,
    /// Whether each operation, `Full` and empty included, takes effect at one instant between its
    /// call and its return. Where not, `try_push` may fail below capacity, and `try_pop` although
    /// a push has returned, while a peer is inside an operation.
    pub linearizable: bool,
}

/// How many threads may use one side at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// One.
    Single,
    /// Any number.
    Multi,
}

/// In which order elements come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// What comes out is not what went in: the null baseline.
    NotAQueue,
    /// First in, first out.
    Fifo,
}

/// What a stopped thread does to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Nothing: every operation ends after a bounded number of its own steps.
    WaitFree,
    /// Nothing to all of them: some operation succeeds after a bounded number of steps.
    LockFree,
    /// No operation waits, yet this is not lock-free: a thread stopped inside an operation lets
    /// those of the other side fail until it goes on.
    Obstructed,
    /// Operations wait for the stopped thread.
    Blocking,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "single",
            Self::Multi => "multi",
        })
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotAQueue => "-",
            Self::Fifo => "FIFO",
        })
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WaitFree => "wait-free",
            Self::LockFree => "lock-free",
            Self::Obstructed => "obstructed",
            Self::Blocking => "blocking",
        })
    }
}

//! Burst: a few elements on the stack, on their way into a ring or out of it.

use core::fmt;
use core::mem::MaybeUninit;

/// At most `N` elements, oldest first; those that nobody took are dropped with it.
///
/// ```
/// let mut burst = queues::Burst::from([1, 2, 3]);
/// assert_eq!(burst.next(), Some(1));
/// assert_eq!(burst.len(), 2);
/// assert_eq!(burst.collect::<Vec<_>>(), [2, 3]);
/// ```
pub struct Burst<T, const N: usize> {
    items: [MaybeUninit<T>; N],
    /// The elements lie from here on.
    next: usize,
    /// And up to here, `N` at most.
    end: usize,
}

impl<T, const N: usize> Burst<T, N> {
    /// Makes a burst without an element.
    pub const fn new() -> Self {
        Self { items: [const { MaybeUninit::uninit() }; N], next: 0, end: 0 }
    }

    /// Appends `value`.
    ///
    /// # Panics
    /// When `N` elements were appended before.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        self.items[self.end].write(value);
        self.end += 1;
    }

    /// Gives the elements back as an array, if there are `N`.
    ///
    /// # Errors
    /// The burst itself, if there are fewer.
    pub fn into_array(mut self) -> Result<[T; N], Self> {
        if self.len() < N {
            return Err(self);
        }
        self.next = self.end;
        // SAFETY: there are `N` elements, so all are written; they are not reached through `self`
        // again.
        Ok(unsafe { core::mem::transmute_copy::<[MaybeUninit<T>; N], [T; N]>(&self.items) })
    }
}

impl<T, const N: usize> From<[T; N]> for Burst<T, N> {
    fn from(items: [T; N]) -> Self {
        Self { items: items.map(MaybeUninit::new), next: 0, end: N }
    }
}

impl<T, const N: usize> Iterator for Burst<T, N> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        let item = self.items[..self.end].get(self.next)?;
        self.next += 1;
        // SAFETY: the elements from `next` up to `end` are written, and this one is past now.
        Some(unsafe { item.assume_init_read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}

impl<T, const N: usize> ExactSizeIterator for Burst<T, N> {}

impl<T, const N: usize> Drop for Burst<T, N> {
    fn drop(&mut self) {
        super::drain::drain(|| self.next());
    }
}

impl<T, const N: usize> Default for Burst<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, const N: usize> fmt::Debug for Burst<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Burst").field("len", &self.len()).finish_non_exhaustive()
    }
}

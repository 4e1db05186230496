//! The calling thread's free slots, of all kinds: what [`Tls`](crate::Tls) takes from.
//!
//! Apart from it, since the models, whose threads are not threads, have a list of their own.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::Cell;

/// Slots that a thread keeps; more are freed.
const KEPT: usize = 8;

std::thread_local! {
    /// Taken out while it is used, so that whoever locks inside finds an empty list.
    static FREE: Cell<Vec<Box<dyn Any>>> = const { Cell::new(Vec::new()) };
}

/// A slot that the thread has left over, or a new one.
#[inline]
pub(super) fn take<S: Any + Default>() -> Box<S> {
    let left_over = FREE.try_with(|free| {
        let mut slots = free.take();
        let nth = slots.iter().rposition(|slot| slot.is::<S>());
        let slot = nth.map(|nth| slots.swap_remove(nth));
        free.set(slots);
        slot
    });
    // An error says that the thread is about to end, and keeps no slots any more.
    let slot = left_over.ok().flatten().and_then(|slot| slot.downcast().ok());
    slot.unwrap_or_default()
}

/// Keeps a free slot for the thread's next acquisition, or frees it.
#[inline]
pub(super) fn put_back<S: Any>(slot: Box<S>) {
    let mut slot = Some(slot as Box<dyn Any>);
    let _ = FREE.try_with(|free| {
        let mut slots = free.take();
        if slots.len() < KEPT {
            slots.extend(slot.take());
        }
        free.set(slots);
    });
}

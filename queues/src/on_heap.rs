//! On the heap: values that a queue allocates while it is used, so that a refusal has to be an answer.

use alloc::alloc::alloc;
use alloc::boxed::Box;
use core::alloc::Layout;
use core::ptr::NonNull;

/// Moves `value` to the heap.
///
/// # Errors
/// Hands the value back when the allocator refuses.
pub(crate) fn try_box<V>(value: V) -> Result<Box<V>, V> {
    const { assert!(size_of::<V>() > 0, "a value without bytes needs no allocation") };
    // SAFETY: the size is not 0.
    let bytes = unsafe { alloc(Layout::new::<V>()) };
    let Some(place) = NonNull::new(bytes.cast::<V>()) else { return Err(value) };
    // SAFETY: the place has the size and alignment of a `V`, and nobody else has it.
    unsafe { place.write(value) };
    // SAFETY: allocated by the global allocator with the layout of a `V`, and holds one.
    Ok(unsafe { Box::from_raw(place.as_ptr()) })
}

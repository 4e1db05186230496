//! Links the crate without std and without an allocator, and uses it.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

// The start-up code and `memcpy`; nothing of the standard library.
#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn on_panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Named by the unwind tables of the precompiled `core`; with `panic = "abort"` never called.
#[unsafe(no_mangle)]
pub extern "C" fn rust_eh_personality() {}

use queues::{Inline, SpscRingCached, WithCapacity};

/// Exits with 0 if the element came out again.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    let Ok(mut queue) = SpscRingCached::<i32, Inline<4>>::with_capacity(4) else { return 1 };
    let (mut producer, mut consumer) = queue.split();
    if producer.try_push(7).is_err() {
        return 2;
    }
    consumer.try_pop().map_or(3, |element| element - 7)
}

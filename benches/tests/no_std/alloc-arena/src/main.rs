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

use alloc_arena::{Bump, Map, Request};

/// Exits with 0 if the value is where it was put.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    let Ok(arena) = Bump::<alloc_arena::Inline<256>>::map(256, &Request::new()) else { return 1 };
    let Ok(value) = arena.try_alloc(5_i32) else { return 2 };
    *value - 5
}

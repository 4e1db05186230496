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

use counters::{AtomicCounter, Counter, Explicit, ShardedCounter};

static HITS: AtomicCounter = AtomicCounter::new();
static SHARDED: ShardedCounter<8, Explicit> = ShardedCounter::new();

/// Exits with 0 if both counted.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    HITS.add(2);
    SHARDED.add_at(3, -2);
    (HITS.sum() + SHARDED.sum()) as i32
}

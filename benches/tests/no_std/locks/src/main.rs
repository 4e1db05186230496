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

static TOTAL: locks::Mutex<i32, locks::McsLock> = locks::Mutex::new(0);

/// Exits with 0 if the lock let one visitor in after the other.
#[unsafe(no_mangle)]
pub extern "C" fn main() -> i32 {
    TOTAL.with(|total| *total += 1);
    let fair = locks::Mutex::<i32, locks::TicketLock>::new(1);
    *fair.lock() -= 1;
    TOTAL.with(|total| *total - 1) + *fair.lock()
}

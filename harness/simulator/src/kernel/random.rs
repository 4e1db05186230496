//! Randomness that is the same in every run with the same seed.

use libc::c_long;

use super::{Call, Caller, Errno, Handler, Kernel, Reply, value};

use crate::guest_memory;

/// A stream of random bytes of a thread (SplitMix64). Each thread has one of its own, so that what
/// a thread draws does not depend on the order in which threads run.
#[derive(Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64, thread: u64) -> Random {
        let mut start = Random { state: seed ^ 0x6d61_6e79_636f_7265 };
        let state = start.next() ^ thread.wrapping_mul(0xd134_2543_de82_ef95);
        Random { state: Random { state }.next() }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

pub(super) fn handler(number: c_long) -> Option<Handler> {
    (number == libc::SYS_getrandom).then_some(getrandom)
}

fn getrandom(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [buffer, length, flags, ..] = call.arguments;
    let flags = flags as u32;
    let known = libc::GRND_NONBLOCK | libc::GRND_RANDOM | libc::GRND_INSECURE;
    let both = libc::GRND_RANDOM | libc::GRND_INSECURE;
    if flags & !known != 0 || flags & both == both {
        return Err(Errno(libc::EINVAL));
    }
    // One call gives no more than the real one.
    let length = length.min(i32::MAX as u64);
    let mut written = 0;
    while written < length {
        let bytes = kernel.threads[caller.thread].random.next().to_le_bytes();
        let part = (length - written).min(8) as usize;
        if !guest_memory::copy_in(buffer.wrapping_add(written), &bytes[..part]) {
            break;
        }
        written += part as u64;
    }
    if written == 0 && length > 0 {
        return Err(Errno(libc::EFAULT));
    }
    kernel.wrote(buffer, written);
    value(written as i64)
}

//! How a guest is declared that does what it should not.

use std::time::Duration;

use simulator::Simulation;

use crate::guests::machine;

/// Three threads with a second of simulated time.
pub(crate) fn three() -> Simulation {
    Simulation::on(&machine()).threads(3).budget(Duration::from_secs(1))
}

/// Declares a test: thread 1 of 3 does it; the run stops for the reason, and the message has the
/// words and names a line of the guest.
macro_rules! bad {
    ($name:ident, $reason:ident, $words:expr, $guest:expr) => {
        #[test]
        fn $name() {
            let line = line!();
            let stopped = $crate::guests::stops($crate::bad::three(), |thread| {
                let guest: fn() = $guest;
                if thread == 1 {
                    core::hint::black_box(guest)();
                }
            });
            $crate::guests::assert_says(
                &stopped,
                simulator::Reason::$reason,
                &$words,
                (file!(), line),
            );
        }
    };
}

//! How figures are had that several metrics share.

pub(super) const WINDOWS: &str = "summed over the windows of all repetitions";
pub(super) const RUSAGE: &[(&str, &str)] =
    &[("native", "getrusage(RUSAGE_THREAD) around each window")];
pub(super) const GRANTED: &[(&str, &str)] =
    &[("native", "what the kernel granted to the shared memory")];
pub(super) const ARENAS: &[(&str, &str)] =
    &[("native", "the arenas' own Placement report after the last repetition")];
pub(super) const ARENAS_BOTH: &[(&str, &str)] =
    &[ARENAS[0], ("simulated", "the same, of what the simulated kernel says")];
pub(super) const SIZES: &[(&str, &str)] =
    &[("native", "size_of the type, stated by the driver"), ("simulated", "the same")];

pub(super) const COUNTERS: &str = "hardware counters of the threads' user space, one group a thread, by rdpmc or \
    read at the borders of the window, what reads the clock included; typed reasons where the group \
    could not be opened or did not count all the time";

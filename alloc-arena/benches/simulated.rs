//! `cargo bench -p alloc-arena`: every arena on simulated cores.

#[expect(dead_code, reason = "the program lists the properties")]
mod case;
mod rows;

use std::process::ExitCode;

/// Whoever simulates allocates apart from whom it simulates.
#[global_allocator]
static HEAP: harness::simulated::EngineHeap = harness::simulated::EngineHeap;

fn main() -> ExitCode {
    harness::front_door::simulated(&rows::benches("simulated"))
}

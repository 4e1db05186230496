//! `cargo bench -p locks`: every lock on the wall clock, then in exact counts.

#[expect(dead_code, reason = "the program lists the properties")]
mod case;
mod rows;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::front_door::run(&rows::benches("locks"))
}

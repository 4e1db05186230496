//! The counts of `cargo bench -p alloc-arena` again, by iai-callgrind.

#[expect(dead_code, reason = "the program lists the properties")]
mod case;
mod rows;

use std::process::ExitCode;

use harness::front_door::{Source, cross_check};

fn main() -> ExitCode {
    let source = Source { manifest_directory: env!("CARGO_MANIFEST_DIR"), file: file!() };
    cross_check(&rows::benches("iai"), source)
}

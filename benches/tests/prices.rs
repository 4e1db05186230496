//! Ours against other crates in exact counts and bytes, in one run of
//! `cargo bench -p manycore --bench peers`; and what that program does with its flags.
//!
//! Built in the release profile, as the approved counts are. That takes minutes, so
//! `scripts/nightly.sh` runs these tests.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn peers(flags: &[&str]) -> Output {
    // Where this very test was built, so that nested builds share the folder.
    let target = Path::new(env!("CARGO_BIN_EXE_manycore")).ancestors().nth(2).unwrap();
    Command::new(env!("CARGO"))
        .args(["bench", "--profile", "release", "--locked", "-p", "manycore", "--bench", "peers"])
        .arg("--")
        .args(flags)
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTC_BOOTSTRAP") // the test runner's; it would build everything anew
        .output()
        .unwrap()
}

/// Missed by one instruction, and because what a waiter brings has a pair of lines of its own; a
/// target that is met has to leave this list.
const MISSED: [&str; 2] = [
    "bump_u32: `alloc-arena/bump_heap` ≤ 10 instructions",
    "mutex: `locks/mcs` ≤ `mcslock::raw::Mutex` in bytes",
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What the queues of the table say of a slot.
fn bytes_per_slot() -> Vec<(&'static str, u64)> {
    macro_rules! stated {
        ($($id:ident => $queue:ty, $kind:ident;)*) => { vec![$({
            type Row<T> = $queue;
            let bytes = <Row<u64> as queues::Queue<u64>>::BYTES_PER_SLOT;
            (concat!("queues/", stringify!($id)), bytes as u64)
        }),*] };
    }
    queues::for_each_queue!(stated)
}

#[test]
#[ignore = "builds an optimised program; scripts/nightly.sh runs it"]
fn targets_are_met_but_for_those_that_are_known() {
    let output = peers(&["--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let stated = bytes_per_slot();
    let (mut prices, mut slots, mut targets) = (0, 0, 0);
    for line in &lines {
        match line["record"].as_str() {
            Some("price") => {
                prices += 1;
                let instructions = line["instructions_per_op"].as_f64();
                assert!(instructions.is_some_and(|count| count >= 1.0), "{line}");
                let stated = stated.iter().find(|(id, _)| line["candidate"] == *id);
                if let (Some((_, stated)), Some(each)) = (stated, line["bytes_each"].as_u64()) {
                    slots += 1;
                    assert_eq!(each, *stated, "as the allocator counts them: {line}");
                }
            }
            Some("target") => {
                targets += 1;
                println!("{line}");
                let what = line["what"].as_str().unwrap();
                let missed = MISSED.iter().any(|known| what.starts_with(known));
                assert_eq!(line["met"], !missed, "{line}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(
        prices >= 100 && slots >= 8 && targets >= 14,
        "{prices} prices, {slots} slots, {targets} targets"
    );
}

#[test]
#[ignore = "builds an optimised program; scripts/nightly.sh runs it"]
fn names_are_listed_and_filtered() {
    let listed = text(&peers(&["--list"]).stdout);
    for name in ["mutex/locks/futex", "spsc_1+1/rtrb", "slab/slab::Slab", "bump_u32/bumpalo::Bump"]
    {
        assert!(listed.lines().any(|line| line == name), "{name} is not in:\n{listed}");
    }
    let filtered = text(&peers(&["--list", "deque_fifo/"]).stdout);
    assert_eq!(filtered.lines().count(), 2, "{filtered}");
    let nothing = peers(&["no-such-thing"]);
    assert!(!nothing.status.success());
    assert!(text(&nothing.stderr).contains("--list shows the names"), "{}", text(&nothing.stderr));
}

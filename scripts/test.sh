#!/usr/bin/env bash
# All tests, as CI runs them. Installs what is missing where it can (as root, with apt), otherwise
# says what is missing. Prints the time of each test.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/needs.sh
need cc gcc
need git git
need tar tar
need python3 python3
need valgrind valgrind
need_rust
# Without a browser the tests of the report's page are skipped and say so.
try chromium chromium || true

export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
# The crates as an embedded project sees them.
step cargo clippy -p counters -p locks -p queues -p alloc-arena --all-targets --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --all-features --no-deps --locked --quiet
step env "CARGO_TARGET_${host}_RUNNER=$PWD/scripts/timed.sh" cargo test --workspace --all-features --locked
# A real kernel with 16 CPUs and 4 nodes; skipped, with the reason, where there is no QEMU.
status=0
# It takes the program that was just tested; by itself it builds a static one.
step bash scripts/numa-vm.sh --program "$CARGO_TARGET_DIR/debug/manycore" || status=$?
[ "$status" = 0 ] || [ "$status" = 77 ] || exit "$status"
printf '\nall tests passed in %s s\n' "$SECONDS"

#!/usr/bin/env bash
# Checks that take long: every ordering weakened in turn, random schedules, and the suites under Miri
# where a nightly toolchain has it. Goes through all, and fails at the end if one failed.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/needs.sh
need cc gcc
need git git
need python3 python3
need_rust

failed=()
step() {
    printf '\n== %s (%s s)\n' "$*" "$SECONDS"
    "$@" || failed+=("$*")
}

step bash scripts/mutants.sh
# The crates as an embedded project sees them, without features.
step cargo test -p counters -p locks -p queues -p alloc-arena --locked --quiet
# 100 000 random schedules a row, in four plans.
step env QUEUES_SCHEDULES=25000 cargo test --release -p queues --all-features --locked --test shuttle
bash scripts/numa-vm.sh --cpus 128 || [ $? = 77 ] || failed+=("numa-vm.sh --cpus 128")

if rustup run nightly cargo miri --version >/dev/null 2>&1; then
    export MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-disable-isolation"
    step rustup run nightly cargo miri test -p locks --features std --test mutex
    step rustup run nightly cargo miri test -p queues --features alloc --doc
    step rustup run nightly cargo miri test -p counters --features std --doc
    step rustup run nightly cargo miri test -p alloc-arena --features alloc --doc
else
    echo "SKIPPED: Miri needs a nightly toolchain: rustup toolchain install nightly --component miri,rust-src"
fi

# The benchmarks through cargo, as a user types it.
step cargo test --locked -p manycore --test front_door -- --ignored

# Instructions of ours and of other crates, counted in one run of an optimised build.
step cargo test --locked -p manycore --test prices -- --ignored

# Comparing a million records: verdicts and memory; the time is printed.
step cargo test --release --locked -p manycore --test compare_large -- --ignored --nocapture

# Every scenario on every machine: what a machine lacks is a reason, nothing may fail.
step cargo build --release --locked -p manycore
for machine in harness/simulator/machines/*.toml; do
    step "${CARGO_TARGET_DIR:-target}/release/manycore" scenario --all --quiet \
        --machine "$(basename "$machine" .toml)"
done

# The recipe for CI, with both builds.
step env MANYCORE_RECIPE_BUILDS=1 cargo test -p manycore --test ci_recipe --locked

if [ "${#failed[@]}" -gt 0 ]; then
    printf '\nfailed:\n'
    printf '  %s\n' "${failed[@]}"
    exit 1
fi
printf '\nall long checks passed in %s s\n' "$SECONDS"

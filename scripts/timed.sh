#!/usr/bin/env bash
# Runs a test binary with the time of each test printed, and what passing tests said (tables of model
# checks, reasons of skipped tests); cargo calls it as the target's runner. A binary that hangs is
# ended after MANYCORE_TEST_SECONDS (900), so that the others are heard of.
# Reporting times is an unstable option of the test library, hence the variable; it is set for the
# test binary only, so that nothing is built with it.
set -euo pipefail
# Tests that run cargo themselves must not get this runner for what they build.
for variable in "${!CARGO_TARGET_@}"; do
    case $variable in *_RUNNER) unset "$variable" ;; esac
done
seconds=${MANYCORE_TEST_SECONDS:-900}
program=$1
case "$program" in
*/deps/*) set -- env RUSTC_BOOTSTRAP=1 "$@" -Zunstable-options --report-time --show-output ;;
esac
status=0
timeout -k 10 "$seconds" "$@" || status=$?
[ "$status" != 124 ] || echo "$program was ended after $seconds s: the test named last, or one that runs beside it, hangs" >&2
exit "$status"

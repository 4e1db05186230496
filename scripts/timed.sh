#!/usr/bin/env bash
# Runs a test binary with the time of each test printed, and what passing tests said (tables of model
# checks, reasons of skipped tests); cargo calls it as the target's runner.
# Reporting times is an unstable option of the test library, hence the variable; it is set for the
# test binary only, so that nothing is built with it.
set -euo pipefail
# Tests that run cargo themselves must not get this runner for what they build.
for variable in "${!CARGO_TARGET_@}"; do
    case $variable in *_RUNNER) unset "$variable" ;; esac
done
case "$1" in
*/deps/*) RUSTC_BOOTSTRAP=1 exec "$@" -Zunstable-options --report-time --show-output ;;
*) exec "$@" ;;
esac

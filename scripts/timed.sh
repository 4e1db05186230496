#!/usr/bin/env bash
# Runs a test binary with the time of each test printed; cargo calls it as the target's runner.
# Reporting times is an unstable option of the test library, hence the variable; it is set for the
# test binary only, so that nothing is built with it.
set -euo pipefail
case "$1" in
*/deps/*) RUSTC_BOOTSTRAP=1 exec "$@" -Zunstable-options --report-time ;;
*) exec "$@" ;;
esac

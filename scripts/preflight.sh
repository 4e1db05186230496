#!/usr/bin/env bash
# Before every commit: format, lints, unit tests, tables and layouts, documentation.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/needs.sh
need cc gcc
need_rust

step() { printf '\n== %s (%s s)\n' "$*" "$SECONDS"; "$@"; }

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --all-features -- -D warnings
step cargo test --workspace --all-features --lib --bins --quiet
step cargo test --workspace --all-features --test layout --test house --quiet
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --all-features --no-deps --quiet
printf '\nready to commit (%s s)\n' "$SECONDS"

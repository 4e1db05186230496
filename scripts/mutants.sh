#!/usr/bin/env bash
# Weakens every memory ordering of the primitive crates, one at a time, and checks that a model
# test notices. See scripts/mutants.py; options: --crate, --file, --list, --no-cache.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 scripts/mutants.py "$@"

#!/usr/bin/env bash
# Writes the machine files of the simulator from the table of figures. See
# scripts/machine-files.py; option: --check compares and writes nothing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
exec python3 scripts/machine-files.py "$@"

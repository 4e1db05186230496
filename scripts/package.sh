#!/usr/bin/env bash
# Makes one statically linked `manycore` that runs on a bare server: no Rust, no libraries, no
# network, no root. Prints where it is.
#
#   scripts/package.sh [FILE]        default: dist/manycore-<version>-<target>
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."
. scripts/needs.sh
need cc gcc
need_rust

host=$(rustc -vV | sed -n 's/^host: //p')
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
file=${1:-dist/manycore-$version-$host}
case $file in /*) ;; *) [ $# -gt 0 ] && file=$here/$file ;; esac
target=${CARGO_TARGET_DIR:-$PWD/target}

# With the target named, the flag reaches the program and not the build scripts; what is built
# lies in a folder of its own and leaves the ordinary build alone.
RUSTFLAGS="-C target-feature=+crt-static" \
    cargo build --release --locked --quiet -p manycore --target "$host"
mkdir -p "$(dirname "$file")"
cp "$target/$host/release/manycore" "$file.new"
strip --strip-debug "$file.new" 2>/dev/null || true

if ldd "$file.new" 2>&1 | grep -q "=>"; then
    rm -f "$file.new"
    echo "error: the program still needs shared libraries; is the static C library installed (libc6-dev)?" >&2
    exit 1
fi
"$file.new" --version >/dev/null
mv "$file.new" "$file"
echo "$file"

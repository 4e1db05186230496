#!/usr/bin/env bash
# Saves what `manycore topology` reads of this machine as an archive, to be read elsewhere with
# `manycore topology --root FILE.tar.gz`. Needs no root, no Rust and no program of ours.
#
#   scripts/save-topology.sh machine.tar.gz
set -euo pipefail

case "${1:-}" in
--help | -h | '')
    sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0"
    [ -n "${1:-}" ] || exit 2
    exit 0
    ;;
esac
case $1 in
/*) out=$1 ;;
*) out=$PWD/$1 ;;
esac
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd /

# tar itself would believe the lengths that these files claim, which are wrong. What may not be read
# by this user is left out.
cp -r --parents --no-preserve=all sys/devices/system/cpu "$tree" 2>/dev/null || true
cp -r --parents --no-preserve=all sys/devices/system/node "$tree" 2>/dev/null || true
cp --parents --no-preserve=all proc/cpuinfo "$tree" 2>/dev/null || true
mkdir -p "$tree/proc/self"
for file in status cgroup cpuset mountinfo mounts; do
    cat "/proc/self/$file" >"$tree/proc/self/$file" 2>/dev/null || rm -f "$tree/proc/self/$file"
done
find sys/fs/cgroup -maxdepth 2 -type d -exec mkdir -p "$tree/{}" \; 2>/dev/null || true
find sys/fs/cgroup -type f \( -name cpu.max -o -name cpu.cfs_quota_us -o -name cpu.cfs_period_us \
    -o -name 'cpuset.*cpus*' -o -name 'cpuset.*mems*' \) -exec cp --parents {} "$tree" \; 2>/dev/null || true

tar czf "$out" -C "$tree" $(ls "$tree")
echo "$out"

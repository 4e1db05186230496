#!/usr/bin/env bash
# Boots a real Linux kernel with many CPUs and NUMA nodes under software emulation (QEMU), and checks
# `manycore` in it: topology, pinning, memory on nodes, refusals, cpusets, quotas, offline CPUs, huge
# pages, the doctor's settings, a short sweep. Needs no KVM, and root only to install QEMU.
#
#   scripts/numa-vm.sh               16 CPUs on 4 nodes, then 8 CPUs on nodes with gaps
#   scripts/numa-vm.sh --cpus 128    128 CPUs on 2 nodes: some minutes
#   scripts/numa-vm.sh --checks FILE a script of your own on the 16 CPUs (see scripts/numa-vm/lib)
#   scripts/numa-vm.sh --program FILE
#                                    with a program that was built before; its libraries go along
#   scripts/numa-vm.sh --kernel FILE with a kernel of your own (needs NUMA, cgroups, serial console)
#
# Exit codes: 0 all checks passed, 1 a check failed or the machine did not come to its end, 2 usage,
# 77 skipped: QEMU, a kernel or busybox cannot be had here; it says which.
set -euo pipefail

here=$PWD
count=16
program=
kernel=
checks=
absolute() { case $1 in /*) echo "$1" ;; *) echo "$here/$1" ;; esac; }
while [ $# -gt 0 ]; do
    case $1 in
    --help | -h)
        sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    --cpus | --program | --kernel | --checks)
        if [ $# -lt 2 ]; then
            echo "error: $1 needs a value; see --help" >&2
            exit 2
        fi
        case $1 in
        --cpus) count=$2 ;;
        --program) program=$(absolute "$2") ;;
        --kernel) kernel=$(absolute "$2") ;;
        --checks) checks=$(absolute "$2") ;;
        esac
        shift 2
        ;;
    *)
        echo "error: unknown word $1; see --help" >&2
        exit 2
        ;;
    esac
done
case $count in 16 | 128) ;; *)
    echo "error: --cpus $count; there are 16 and 128" >&2
    exit 2
    ;;
esac
for file in "$program" "$kernel" "$checks"; do
    if [ -n "$file" ] && [ ! -f "$file" ]; then
        echo "error: $file is not there" >&2
        exit 2
    fi
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/needs.sh

skip() {
    echo "SKIPPED: $1"
    exit 77
}

# What was downloaded stays here.
cache=${CARGO_TARGET_DIR:-$PWD/target}/numa-vm
mkdir -p "$cache"

# fetch PACKAGE: gets a Debian package and unpacks it below the cache; installs nothing.
fetch() {
    command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 1
    local folder
    folder=$(mktemp -d "$cache/fetch.XXXXXX")
    if (cd "$folder" && apt-get download -q "$1" >/dev/null 2>&1) ||
        { [ "$(id -u)" = 0 ] && apt-get update -q >/dev/null 2>&1 &&
            (cd "$folder" && apt-get download -q "$1" >/dev/null 2>&1); }; then
        dpkg -x "$folder"/*.deb "$cache/files"
    fi
    rm -rf "$folder"
}

newest() { find "$@" -maxdepth 1 -name 'vmlinuz*' -type f -readable 2>/dev/null | sort -V | tail -1; }

find_kernel() {
    [ -n "$kernel" ] && return
    kernel=$(newest "$cache/files/boot" || true)
    [ -n "$kernel" ] && return
    local package
    # The name with a version, which the meta package depends on.
    package=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | awk '/Depends:/ {print $2; exit}' || true)
    echo "getting ${package:-a kernel}" >&2
    fetch "${package:-linux-image-cloud-amd64}" || true
    kernel=$(newest "$cache/files/boot" /boot || true)
    [ -n "$kernel" ] || skip "no kernel image; install linux-image-cloud-amd64 (Debian's name), or name one with --kernel"
}

find_busybox() {
    busybox=$cache/files/bin/busybox
    [ -x "$busybox" ] || busybox=$cache/files/usr/bin/busybox
    [ -x "$busybox" ] && return
    fetch busybox-static || true
    for busybox in "$cache/files/bin/busybox" "$cache/files/usr/bin/busybox" /bin/busybox; do
        if [ -x "$busybox" ] && ! ldd "$busybox" 2>&1 | grep -q "=>"; then return; fi
    done
    skip "no static busybox; install busybox-static (Debian's name)"
}

[ "$(uname -m)" = x86_64 ] || skip "the machine is x86-64 and so must the program be; this host is $(uname -m)"
need python3 python3
need gzip gzip
try qemu-system-x86_64 qemu-system-x86 --no-install-recommends || skip "no QEMU; install qemu-system-x86 (Debian's name)"
find_kernel
find_busybox
if [ -z "$program" ]; then
    echo "building (release, static)" >&2
    program=$(bash scripts/package.sh "$cache/manycore")
fi

work=$(mktemp -d "$cache/run.XXXXXX")
qemu=
trap '[ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp,run,etc,checks}
cp "$busybox" "$root/bin/busybox"
strip --strip-debug -o "$root/bin/manycore" "$program" 2>/dev/null || cp "$program" "$root/bin/manycore"
# A program that was linked dynamically needs its libraries there, with their loader.
for library in $(ldd "$program" 2>/dev/null | grep -o '/[^ ]*'); do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
cp scripts/numa-vm/{lib,four-nodes,gaps,many} "$root/checks/"
[ -z "$checks" ] || cp "$checks" "$root/checks/own"
cp scripts/numa-vm/init "$root/init"
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$root/etc/passwd"
chmod +x "$root/init" "$root/bin/manycore"
python3 scripts/numa-vm/pack.py "$root" | gzip -1 >"$work/initramfs"

# Every word was chosen for emulation: no calibration loops, no watchdogs that a slow host trips over,
# a clock that the kernel believes.
words="console=ttyS0 panic=-1 nokaslr quiet mitigations=off lpj=4000000 tsc=reliable no_timer_check"
words="$words nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
# Emulated CPUs read the host's time-stamp counter. Its rate is handed over: measured against an
# emulated timer on a loaded host it would be wrong, and time in the machine run many times too fast.
rate=$("$program" doctor --json 2>/dev/null | sed -n 's/.*"ticks_per_ns":\([0-9.]*\).*/\1/p' || true)
[ -z "$rate" ] || words="$words tsc_early_khz=$(awk -v rate="$rate" 'BEGIN {printf "%d", rate * 1000000}')"

# boot CHECKS SECONDS WORDS QEMU...: boots a machine and runs the checks in it; the exit status is
# theirs, read from the console.
boot() {
    local checks=$1 seconds=$2 more=$3 began=$SECONDS status
    shift 3
    local firmware=()
    [ ! -f /usr/share/qemu/qboot.rom ] || firmware=(-bios /usr/share/qemu/qboot.rom)
    printf '\n%s\n' "-- $checks: $(basename "$kernel")"
    timeout "$seconds" qemu-system-x86_64 -accel tcg,thread=multi -nodefaults -no-user-config \
        -display none -no-reboot -serial "file:$work/console" -machine q35 "${firmware[@]}" \
        -cpu EPYC-Rome,monitor=off,mtrr=off -kernel "$kernel" -initrd "$work/initramfs" \
        -append "$words CHECKS=$checks $more" "$@" </dev/null >"$work/qemu" 2>&1 &
    qemu=$!
    wait "$qemu" || true
    qemu=
    tr -d '\r' <"$work/console" >"$work/text"
    sed '/^@@/d' "$work/text"
    status=$(sed -n 's/^@@EXIT //p' "$work/text" | tail -1)
    if [ -z "$status" ]; then
        echo "FAILED: the machine did not come to its end within $((SECONDS - began)) of $seconds s; QEMU said:"
        grep -v "TCG doesn't support" "$work/qemu" | tail -5 || true
        return 1
    fi
    echo "-- $checks: $((SECONDS - began)) s, status $status"
    [ "$status" = 0 ]
}

memory() { echo "-object memory-backend-ram,id=m$1,size=$2"; }
distance() { echo "-numa dist,src=$1,dst=$2,val=$3"; }

four_nodes() {
    local node
    echo "-m 1G -smp 16,sockets=2,dies=2,cores=4"
    for node in 0 1 2 3; do
        memory $node 256M
        echo "-numa node,nodeid=$node,cpus=$((node * 4))-$((node * 4 + 3)),memdev=m$node"
    done
    distance 0 1 12
    distance 2 3 12
    for node in 2 3; do
        distance 0 $node 32
        distance 1 $node 32
    done
}

gaps() {
    echo "-m 768M -smp 8,sockets=2,cores=4 $(memory 0 512M) $(memory 2 256M)"
    echo "-numa node,nodeid=0,cpus=0-3,memdev=m0 -numa node,nodeid=1,cpus=4-7"
    echo "-numa node,nodeid=2,memdev=m2"
}

many() {
    echo "-m 2G -smp 128,sockets=2,cores=64 $(memory 0 1G) $(memory 1 1G)"
    echo "-numa node,nodeid=0,cpus=0-63,memdev=m0 -numa node,nodeid=1,cpus=64-127,memdev=m1"
}

failed=0
# Words of a machine are split on purpose.
# shellcheck disable=SC2046
if [ -n "$checks" ]; then
    boot own 600 "" $(four_nodes) || failed=1
elif [ "$count" = 128 ]; then
    # One CPU boots; the others are brought up afterwards, which is many times faster.
    boot many 1800 "maxcpus=1 ONLINE=all" $(many) || failed=1
else
    boot four-nodes 600 "" $(four_nodes) || failed=1
    boot gaps 300 "" $(gaps) || failed=1
fi
if [ "$failed" != 0 ]; then
    echo "error: checks failed in the virtual machine, see above" >&2
    exit 1
fi

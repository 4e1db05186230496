#!/usr/bin/env bash
# From a fresh clone to a measured sweep: checks and installs what is missing, builds, and measures
# counters, locks, queues and arenas over the cores and nodes of this machine; then goes on to the 128
# simulated cores of another one. Writes the records and a report, and says where they are.
#
#   scripts/numa-sweep.sh            about five minutes after building (--quick, the default)
#   scripts/numa-sweep.sh --full     longer points, more placements, threads beyond the CPUs
#   scripts/numa-sweep.sh --native-only
#                                    this machine alone
#   scripts/numa-sweep.sh --program FILE
#                                    with a program made by scripts/package.sh: builds nothing,
#                                    needs neither Rust nor root
#   scripts/numa-sweep.sh --quick --primitive locks --critical-ns 50
#                                    what else there is is handed to `manycore sweep`, in any order
set -euo pipefail

mode=quick
simulates=yes
manycore=
engine=native
out=
measures=yes
# What goes to `manycore sweep`.
words=()
needs_value() {
    [ $# -gt 1 ] && return
    echo "error: $1 needs a value; see --help" >&2
    exit 2
}
while [ $# -gt 0 ]; do
    word=$1
    shift
    # The script's own flags, and those whose values it looks at, may be written with a `=`.
    case $word in
    --program=* | --out=* | --engine=*)
        set -- "${word#*=}" "$@"
        word=${word%%=*}
        ;;
    esac
    case $word in
    --quick | --full) mode=${word#--} ;;
    --native-only) simulates= ;;
    --program)
        needs_value "$word" "$@"
        manycore=$1
        shift
        ;;
    --help | -h)
        sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0"
        exit 0
        ;;
    --out | --engine)
        needs_value "$word" "$@"
        value=$1
        shift
        case $word in
        --out) out=$value ;;
        # The caller has an engine of their own in mind.
        --engine) engine=$value simulates= ;;
        esac
        words+=("$word" "$value")
        ;;
    --threads | --threads=*)
        simulates=
        words+=("$word")
        ;;
    --dry-run | --json)
        measures=
        words+=("$word")
        ;;
    *) words+=("$word") ;;
    esac
done
set -- "${words[@]+"${words[@]}"}"

if [ -n "$manycore" ]; then
    if [ ! -x "$manycore" ]; then
        echo "error: $manycore is not a program; scripts/package.sh makes one" >&2
        exit 2
    fi
    manycore=$(cd "$(dirname "$manycore")" && pwd)/$(basename "$manycore")
else
    here=$PWD
    cd "$(dirname "$0")/.."
    . scripts/needs.sh
    need cc gcc
    need_rust
    echo "building (release)" >&2
    cargo build --release --locked --quiet -p manycore
    manycore=${CARGO_TARGET_DIR:-$PWD/target}/release/manycore
    cd "$here"
fi

"$manycore" topology >&2
# What is unfit is said and kept with the run; the sweep goes on.
"$manycore" doctor >&2 || true

# Placements that are the same CPUs on this machine are measured once.
nodes=$(ls -d /sys/devices/system/node/node[0-9]* 2>/dev/null | wc -l)
placement=compact+scatter
memory=local
if [ "$nodes" -gt 1 ]; then
    memory=local,remote
fi
times=()
places=(--placement "$placement" --memory "$memory")
case $mode in
quick) times=(--seconds 1 --budget 3m) ;;
full)
    [ "$nodes" -gt 1 ] && memory=local,remote,interleave
    times=(--seconds 3 --repeat 11)
    places=(--placement "$placement+smt-last+cross-l3+cross-node" --memory "$memory")
    ;;
esac
# Other engines take no time that could be chosen, and lay out no machine that is here.
[ "$engine" = native ] || times=() places=()
set -- "${times[@]+"${times[@]}"}" "${places[@]+"${places[@]}"}" "$@"

# Where the records go, unless the caller says so; the report stands beside them.
[ -n "$measures" ] || exec "$manycore" sweep "$@"
if [ -z "$out" ]; then
    out=results/$(uname -n)/$(date -u +%Y-%m-%dT%H%M%SZ)-sweep.jsonl
    set -- "$@" --out "$out"
fi

# Sweeps the simulated machine: of the words given, those count that say what is done, and where the
# records go.
simulated() {
    local words=() word='' takes=
    for word in "$@"; do
        if [ -n "$takes" ]; then
            words+=("$word")
            takes=
            continue
        fi
        case $word in
        --primitive | --variant | --critical-ns | --think-ns | --read-percent | --capacity | \
            --element-bytes | --alloc-bytes | --arena-bytes | --latency | --rate | --seed | --out)
            words+=("$word")
            takes=yes
            ;;
        --primitive=* | --variant=* | --critical-ns=* | --think-ns=* | --read-percent=* | \
            --capacity=* | --element-bytes=* | --alloc-bytes=* | --arena-bytes=* | --latency=* | \
            --rate=* | --seed=* | --out=* | \
            --resume | --quiet)
            words+=("$word")
            ;;
        esac
    done
    local ops=128
    [ "$mode" = quick ] || ops=1024
    "$manycore" sweep --engine simulated --threads 2,8,32,64,128 --ops "$ops" "${words[@]}"
}

# Looks at the lines of each primitive's control and first variants, for the report's maps: of what
# the caller asked for, or of everything.
lines() {
    local word='' previous='' wanted=,counters,locks,queues,alloc-arena, row count status=0
    for word in "$@"; do
        case $word in
        --variant | --variant=*) return 0 ;;
        --primitive=*) wanted=,${word#--primitive=}, ;;
        esac
        [ "$previous" = --primitive ] && wanted=,$word,
        previous=$word
    done
    for row in counters/packed counters/atomic counters/sharded locks/tas_neighbour locks/tas \
        locks/ticket queues/spsc_ring_unpadded queues/spsc_ring_cached queues/mpmc_ring_vyukov \
        alloc-arena/bump_first_touch alloc-arena/bump_slice; do
        case $wanted in *,"${row%/*}",*) ;; *) continue ;; esac
        local threads='8 128'
        # One pushes and one pops.
        case $row in queues/spsc*) threads=2 ;; esac
        for count in $threads; do
            "$manycore" lines "$row" --threads "$count" --ops 32 --top 3 --timeout 1m \
                --out "$out" >/dev/null || status=$?
            [ "$status" != 130 ] || return 130
        done
    done
    return "$status"
}

# Ctrl-C ends the sweep, which keeps what was measured; the report is written all the same.
trap : INT
status=0
"$manycore" sweep "$@" || status=$?
if [ "$status" = 0 ] && [ -n "$simulates" ]; then
    simulated "$@" || echo "the simulated part is not whole (status $?); what there is of it is kept" >&2
    lines "$@" || echo "not all lines were looked at (status $?)" >&2
fi
trap - INT
if [ "$status" = 0 ] || [ "$status" = 130 ]; then
    report=${out%.jsonl}.html
    if "$manycore" report "$out" --out "$report" >/dev/null; then
        echo "records: $out" >&2
        echo "report:  $report" >&2
    fi
fi
exit "$status"

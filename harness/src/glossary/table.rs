//! The table of metrics, topic by topic.

use super::ways::{ARENAS, ARENAS_BOTH, COUNTERS, GRANTED, RUSAGE, SIZES, WINDOWS};
use super::{Entry, Topic};

/// Every metric that an engine gives.
pub const TABLE: &[Entry] = &[
    Entry {
        name: "ns_per_op",
        topic: Topic::Speed,
        unit: "ns",
        formula: "(Σ over threads of window time − readings of the clock × price of one) ÷ \
            operations",
        means: "One thread's time for one operation. With n busy threads the whole machine \
            completes an operation every ns_per_op ÷ n.",
        beware: "It grows with the number of threads even when throughput stays the same: n \
            threads that take turns each wait n times as long.",
        engines: &[
            (
                "native",
                "serialised readings of the time-stamp counter around batches of about 20 µs",
            ),
            (
                "simulated",
                "predicted from instructions and line transfers with the machine's latencies",
            ),
        ],
    },
    Entry {
        name: "ops_per_s",
        topic: Topic::Speed,
        unit: "1/s",
        formula: "operations of all threads ÷ (last end − first start)",
        means: "Throughput of all threads together.",
        beware: "Never read it without fairness_jain: an unfair primitive is fast because most \
            threads are starved.",
        engines: &[
            ("native", "operations counted by each thread on a line of its own, over the windows"),
            ("simulated", "operations over the predicted time"),
        ],
    },
    Entry {
        name: "ops",
        topic: Topic::Speed,
        unit: "1",
        formula: "operations that ended in the windows, summed over threads and repetitions",
        means: "How much was measured. The per-thread numbers are in per_thread.ops.",
        beware: "",
        engines: &[
            ("native", "counted by each thread; the workload checks its own count against it"),
            ("callgrind", "the number asked for"),
            (
                "simulated",
                "counted by each thread until the first one had done what was asked for, less \
                 those of a shorter window",
            ),
        ],
    },
    Entry {
        name: "fairness_jain",
        topic: Topic::Speed,
        unit: "1",
        formula: "(Σx)² ÷ (n Σx²) over the threads' operations x",
        means: "How evenly n threads were served: 1 when all did the same, 1/n when one did \
            everything.",
        beware: "Over a window of milliseconds. A lock may be fair over seconds and unfair over \
            microseconds; and the index hides one starved thread among 128 (see the least share).",
        engines: &[
            ("native", "from the threads' own counts in each repetition"),
            ("simulated", "from the cores' counts"),
        ],
    },
    Entry {
        name: "overlap",
        topic: Topic::Speed,
        unit: "1",
        formula: "(first end − last start) ÷ (last end − first start)",
        means: "The part of the time in which all threads ran together. Below 0.95 the repetition \
            is made again, up to three times.",
        beware: "With threads that outnumber the CPUs all have begun and none has ended, and still \
            they take turns.",
        engines: &[("native", "first and last reading of each thread's window")],
    },
    Entry {
        name: "latency_ns.*",
        topic: Topic::Speed,
        unit: "ns",
        formula: "quantile of single operations' times: p50, p90, p99, p99.9, max",
        means: "How long single operations take, where ns_per_op is a mean.",
        beware: "Timing single operations slows them, and a quantile needs many samples: p99.9 of \
            1000 operations is one of them.",
        engines: &[
            (
                "native",
                "with --latency: every operation, between two readings of the clock less the price of \
             one (closed), or from when it should have begun (open), into a histogram of three digits; \
             a lock's until it is had; the median of the passes' quantiles",
            ),
            (
                "simulated",
                "with --latency: as natively, in simulated time, in one pass that repeats exactly",
            ),
        ],
    },
    Entry {
        name: "acquire_ns.*",
        topic: Topic::Speed,
        unit: "ns",
        formula: "median of (the lock is had − it was asked for) where its last holder had let go \
            before, by distance of the two: same (the thread itself, or its CPU), smt, same_l3, \
            same_socket, cross_socket",
        means: "What taking a free lock costs, by where its lines lie.",
        beware: "Free when it was asked for: others may have asked in the meantime, and a few of \
            these waits are for them.",
        engines: &[
            ("native", "with --latency: the holder notes its rank and the time of letting go"),
            ("simulated", "with --latency: likewise, in simulated time"),
        ],
    },
    Entry {
        name: "handoff_ns.*",
        topic: Topic::Speed,
        unit: "ns",
        formula: "median of (the waiter has the lock − the holder let go), by distance: same (threads \
            that share a CPU), smt, same_l3, same_socket, cross_socket",
        means: "What handing a lock to a waiting thread costs.",
        beware: "Storing that time is inside.",
        engines: &[
            ("native", "with --latency: the holder notes the time just before it lets go"),
            ("simulated", "with --latency: likewise, in simulated time"),
        ],
    },
    Entry {
        name: "latency_samples",
        topic: Topic::Speed,
        unit: "1",
        formula: "operations that were timed one by one, summed over threads and passes",
        means: "What the quantiles of latency_ns stand on.",
        beware: "",
        engines: &[("native", "with --latency"), ("simulated", "with --latency")],
    },
    Entry {
        name: "offered_ops_per_s",
        topic: Topic::Speed,
        unit: "1/s",
        formula: "operations that were asked for in the open loop ÷ the windows' time",
        means: "What was asked for: about the --rate.",
        beware: "",
        engines: &[
            ("native", "with --latency open: times drawn beforehand (Poisson)"),
            ("simulated", "with --latency open: times drawn beforehand (Poisson)"),
        ],
    },
    Entry {
        name: "served_ops_per_s",
        topic: Topic::Speed,
        unit: "1/s",
        formula: "operations among them that were done ÷ the windows' time",
        means: "What was served of it. Below 95 % the load cannot be served, and its latencies would \
            only say how long the window was.",
        beware: "",
        engines: &[("native", "with --latency open"), ("simulated", "with --latency open")],
    },
    Entry {
        name: "ratio_to_a",
        topic: Topic::Speed,
        unit: "1",
        formula: "ns_per_op ÷ ns_per_op of A in the window before or after it, the median of all pairs",
        means: "Below 1 the variant is faster than the first one that `manycore ab` was given.",
        beware: "Its interval is that of the median; the verdict also heeds how often one looked.",
        engines: &[("native", "manycore ab --out: windows of all variants in turn")],
    },
    Entry {
        name: "cycles_per_op",
        topic: Topic::Speed,
        unit: "1",
        formula: "cycles of all threads ÷ operations of all threads; simulated: ns_per_op × clock rate",
        means: "One thread's clock cycles for one operation, waiting included.",
        beware: "Counted cycles follow the core's clock, which the time-stamp counter does not. A \
            simulated clock rate is the machine file's, and never changes.",
        engines: &[("native", COUNTERS), ("simulated", "predicted time")],
    },
    Entry {
        name: "stall_ns_per_op",
        topic: Topic::Speed,
        unit: "ns",
        formula: "time in which accesses waited for lines, over all cores ÷ operations",
        means: "The part of ns_per_op that went into waiting for lines.",
        beware: "A wait that runs beside other instructions counts as well.",
        engines: &[("simulated", "the coherence directory, with the machine's latencies")],
    },
    Entry {
        name: "lock_wait_ns",
        topic: Topic::Speed,
        unit: "ns",
        formula: "Σ over operations of (acquired − asked) ÷ operations",
        means: "The part of an operation that was spent waiting for others.",
        beware: "Scenarios note it where a lock was found taken, not where it was free.",
        engines: &[
            ("native", "the clock before asking and after getting it, in scenarios"),
            ("simulated", "predicted time between asking for the lock and holding it"),
        ],
    },
    Entry {
        name: "scenario.*",
        topic: Topic::Speed,
        unit: "-",
        formula: "lost_updates: adds − count; idle_spread: standard deviation of workers' idle shares \
            of the time; offered_per_s: arrivals; no_room: pushes that found a queue full; names in _ns \
            are times",
        means: "What one scenario finds out beyond the figures that all have.",
        beware: "Each belongs to its scenario alone; docs/phenomena.md tells it there.",
        engines: &[
            ("native", "what the scenario's threads note"),
            ("simulated", "what the scenario's threads note"),
        ],
    },
    Entry {
        name: "cpu_seconds",
        topic: Topic::Speed,
        unit: "s",
        formula: "user and system time of the threads, summed over the windows",
        means: "What the operations cost in CPU time. Spinning costs it, sleeping does not.",
        beware: "",
        engines: &[
            ("native", "getrusage(RUSAGE_THREAD) around each window"),
            ("simulated", "predicted cycles that were not slept"),
        ],
    },
    Entry {
        name: "instructions_per_op",
        topic: Topic::Counts,
        unit: "1",
        formula: "(I(2n) − I(n)) ÷ n, I the instructions of a run of so many operations",
        means: "Instructions executed for one operation; setting up cancels out.",
        beware: "Exact and repeatable at one thread; with several, spinning adds as many as the \
            waiting takes. Says nothing about cache misses.",
        engines: &[
            ("native", COUNTERS),
            ("callgrind", "Ir inside the measured loop"),
            (
                "simulated",
                "every instruction that the cores execute: one window's less a shorter one's, and \
                 what calling the batches costs subtracted",
            ),
        ],
    },
    Entry {
        name: "accesses_per_op",
        topic: Topic::Counts,
        unit: "1",
        formula: "(loads + stores) ÷ operations, a read-modify-write as one of each",
        means: "Memory operands read and written for one operation.",
        beware: "",
        engines: &[("simulated", "decoded instructions")],
    },
    Entry {
        name: "fences_per_op",
        topic: Topic::Counts,
        unit: "1",
        formula: "mfence, lfence and sfence ÷ operations",
        means: "Fences for one operation. Locked instructions, which order as much, are not among them.",
        beware: "",
        engines: &[("simulated", "decoded instructions")],
    },
    Entry {
        name: "context_switches_per_op",
        topic: Topic::Counts,
        unit: "1",
        formula: "threads that gave way to another on their core, or to none, ÷ operations",
        means: "How often a thread stopped running: it slept, or shared its core.",
        beware: "",
        engines: &[("simulated", "the simulated kernel")],
    },
    Entry {
        name: "rmw_per_op",
        topic: Topic::Counts,
        unit: "1",
        formula: "atomic read-modify-writes ÷ operations",
        means: "Locked instructions (lock …, xchg with memory) for one operation: each takes its \
            line for itself.",
        beware: "A compare-and-swap that fails counts as well.",
        engines: &[
            ("callgrind", "global bus events of --collect-bus=yes"),
            ("simulated", "decoded instructions"),
        ],
    },
    Entry {
        name: "syscalls_per_op",
        topic: Topic::Counts,
        unit: "1",
        formula: "system calls ÷ operations",
        means: "How often the kernel was entered. 0 for all that spins; what sleeps needs them.",
        beware: "Counted in a short pass of its own: the trap slows each call down, so that \
            contention there differs a little.",
        engines: &[
            (
                "native",
                "counted exactly by syscall user dispatch: each call in the window raises SIGSYS",
            ),
            ("simulated", "every call"),
        ],
    },
    Entry {
        name: "bytes_per_object",
        topic: Topic::Counts,
        unit: "bytes",
        formula: "size of the type",
        means: "Memory of one lock, counter, queue or arena, without what it points to.",
        beware: "",
        engines: SIZES,
    },
    Entry {
        name: "bytes_per_waiter",
        topic: Topic::Counts,
        unit: "bytes",
        formula: "size of the slot that a waiter brings",
        means: "Memory that each waiting thread adds to a lock.",
        beware: "",
        engines: SIZES,
    },
    Entry {
        name: "bytes_per_slot",
        topic: Topic::Counts,
        unit: "bytes",
        formula: "size of one more slot of a queue",
        means: "Memory that each unit of capacity takes; more than the element, where slots carry \
            numbers or padding.",
        beware: "",
        engines: SIZES,
    },
    Entry {
        name: "llc_misses",
        topic: Topic::Lines,
        unit: "1",
        formula: "misses of the last-level cache, summed over the windows",
        means: "Lines that came from memory.",
        beware: "A line that comes from another core's cache on the same chip is no miss here, and \
            is what contention costs.",
        engines: &[("native", COUNTERS)],
    },
    Entry {
        name: "foreign_lines_per_op.*",
        topic: Topic::Lines,
        unit: "1",
        formula: "loads served from another core's cache ÷ operations: near, far",
        means: "What hardware saw of contention, true or false sharing alike.",
        beware: "Intel counts loads of lines that another core had modified, in the same socket \
            (near) and in another one (far). AMD counts fills from caches of another group of \
            cores, of addresses of the same node (near) and of another one (far), so that sharing \
            within a group is not seen. Other CPUs: no_event_known.",
        engines: &[("native", COUNTERS)],
    },
    Entry {
        name: "transfers_per_op.*",
        topic: Topic::Lines,
        unit: "1",
        formula: "lines taken from another core's cache ÷ operations, by distance: smt, same_l3, \
            same_socket, cross_socket",
        means: "What contention costs: one transfer takes tens of nanoseconds in a package and \
            hundreds between packages.",
        beware: "",
        engines: &[("simulated", "the coherence directory")],
    },
    Entry {
        name: "invalidations_per_op",
        topic: Topic::Lines,
        unit: "1",
        formula: "copies of lines that a write took from other cores ÷ operations",
        means: "How many readers each write disturbs.",
        beware: "",
        engines: &[("simulated", "the coherence directory")],
    },
    Entry {
        name: "memory_reads_per_op",
        topic: Topic::Lines,
        unit: "1",
        formula: "lines read from memory ÷ operations",
        means: "Traffic to memory. In the steady state 0 for what fits into caches.",
        beware: "No cache of the simulator overflows.",
        engines: &[("simulated", "the coherence directory")],
    },
    Entry {
        name: "memory_reads_per_op.*",
        topic: Topic::Lines,
        unit: "1",
        formula: "lines read from memory ÷ operations, by node: local, remote",
        means: "Traffic to memory, and how much of it leaves the node.",
        beware: "What the store buffer hides costs no time: arenas that are only written to.",
        engines: &[("simulated", "the directory and the page's node")],
    },
    Entry {
        name: "false_sharing_lines",
        topic: Topic::Lines,
        unit: "1",
        formula: "lines that moved between cores of which neither touched what the other wrote",
        means: "Lines that would not move if their fields lay apart. 0 for all but the negative \
            controls.",
        beware: "",
        engines: &[("simulated", "bytes touched by each core while it had the line")],
    },
    Entry {
        name: "pages_present",
        topic: Topic::Placement,
        unit: "1",
        formula: "pages of the arenas that are in memory, summed over the threads",
        means: "How many pages the next two figures are about.",
        beware: "",
        engines: ARENAS_BOTH,
    },
    Entry {
        name: "pages_on_node",
        topic: Topic::Placement,
        unit: "1",
        formula: "pages that lie on the node that was asked for, summed over the threads",
        means: "Equal to pages_present when placement worked.",
        beware: "Pages may be moved later, by NUMA balancing say.",
        engines: &[
            ("native", "move_pages, which tells each page's node"),
            ("simulated", "move_pages of the simulated kernel"),
        ],
    },
    Entry {
        name: "arenas_verified",
        topic: Topic::Placement,
        unit: "1",
        formula: "arenas whose every page lies where it should, counted over the threads",
        means: "Equal to the number of threads when placement worked.",
        beware: "",
        engines: ARENAS_BOTH,
    },
    Entry {
        name: "huge_bytes",
        topic: Topic::Placement,
        unit: "bytes",
        formula: "bytes of the arenas on huge pages, summed over the threads",
        means: "What came of the wish for huge pages.",
        beware: "",
        engines: ARENAS,
    },
    Entry {
        name: "memory_huge_bytes",
        topic: Topic::Placement,
        unit: "bytes",
        formula: "bytes of the shared memory on huge pages",
        means: "Whether the contended object lies on a huge page, so that misses of the TLB do not \
            count.",
        beware: "",
        engines: GRANTED,
    },
    Entry {
        name: "memory_populated",
        topic: Topic::Placement,
        unit: "1",
        formula: "1, or the reason",
        means: "The shared memory was touched before the window: no page fault inside it.",
        beware: "",
        engines: GRANTED,
    },
    Entry {
        name: "memory_locked",
        topic: Topic::Placement,
        unit: "1",
        formula: "1, or the reason",
        means: "The shared memory cannot be paged out.",
        beware: "",
        engines: GRANTED,
    },
    Entry {
        name: "memory_on_node",
        topic: Topic::Placement,
        unit: "1",
        formula: "1, or the reason",
        means: "The shared memory is bound to the node that --memory asks for.",
        beware: "",
        engines: GRANTED,
    },
    Entry {
        name: "overhead_ns_per_op",
        topic: Topic::Disturbance,
        unit: "ns",
        formula: "readings of the clock × price of one ÷ operations",
        means: "What was subtracted from ns_per_op for reading the clock.",
        beware: "Where it is not small against ns_per_op, trust the figure less.",
        engines: &[("native", "the price is the least of many empty readings")],
    },
    Entry {
        name: "latency_overhead_ns",
        topic: Topic::Disturbance,
        unit: "ns",
        formula: "median of the time between two readings of the clock with nothing between them",
        means: "What was subtracted from each latency of the closed loop.",
        beware: "Latencies that are not large against it say little.",
        engines: &[("native", "1001 pairs of readings"), ("simulated", "1001 pairs of readings")],
    },
    Entry {
        name: "latency_saturated",
        topic: Topic::Disturbance,
        unit: "1",
        formula: "latencies of more than a minute",
        means: "How many count as a minute and were longer.",
        beware: "",
        engines: &[("native", "with --latency"), ("simulated", "with --latency")],
    },
    Entry {
        name: "start_skew_ns",
        topic: Topic::Disturbance,
        unit: "ns",
        formula: "last start − first start, median of the repetitions",
        means: "How far apart the threads began.",
        beware: "",
        engines: &[("native", "each thread's first reading of the clock")],
    },
    Entry {
        name: "clock_drift",
        topic: Topic::Disturbance,
        unit: "1",
        formula: "time of a known chain of instructions after the window ÷ before it",
        means: "1 when the core ran at the same rate throughout; above 1.05 or below 0.95 the \
            repetition counts as disturbed.",
        beware: "",
        engines: &[(
            "native",
            "a chain of dependent instructions, timed on each side of the window",
        )],
    },
    Entry {
        name: "voluntary_switches",
        topic: Topic::Disturbance,
        unit: "1",
        formula: WINDOWS,
        means: "How often threads went to sleep by themselves: what blocks does, what spins must not.",
        beware: "",
        engines: RUSAGE,
    },
    Entry {
        name: "involuntary_switches",
        topic: Topic::Disturbance,
        unit: "1",
        formula: WINDOWS,
        means: "How often the kernel gave a thread's CPU to others.",
        beware: "One in the middle of a critical section stops all that wait for it.",
        engines: RUSAGE,
    },
    Entry {
        name: "run_queue_wait_ns",
        topic: Topic::Disturbance,
        unit: "ns",
        formula: WINDOWS,
        means: "How long threads could have run and waited for their CPU.",
        beware: "",
        engines: &[("native", "second figure of `/proc/thread-self/schedstat`")],
    },
    Entry {
        name: "minor_faults",
        topic: Topic::Disturbance,
        unit: "1",
        formula: WINDOWS,
        means: "Page faults that needed no disk.",
        beware: "",
        engines: RUSAGE,
    },
    Entry {
        name: "major_faults",
        topic: Topic::Disturbance,
        unit: "1",
        formula: WINDOWS,
        means: "Page faults that waited for a disk.",
        beware: "",
        engines: RUSAGE,
    },
    Entry {
        name: "migrations",
        topic: Topic::Disturbance,
        unit: "1",
        formula: "threads that ended a window on another CPU than they began it on",
        means: "Whether pinning held.",
        beware: "",
        engines: &[("native", "the CPU's number, read on each side of the window")],
    },
    Entry {
        name: "steal_ticks",
        topic: Topic::Disturbance,
        unit: "ticks",
        formula: WINDOWS,
        means: "Time in which the hypervisor ran something else on the CPUs in use.",
        beware: "A tick is 10 ms: short thefts are not seen.",
        engines: &[("native", "/proc/stat, CPUs in use")],
    },
    Entry {
        name: "throttled_us",
        topic: Topic::Disturbance,
        unit: "µs",
        formula: WINDOWS,
        means: "Time in which a quota stopped the threads.",
        beware: "",
        engines: &[("native", "cpu.stat of the cgroup that limits")],
    },
];

//! What interrupts threads and what loads the host: device interrupts, other people's tests.

use topology::CpuSet;

use super::finding::{Looked, Outcome};
use super::subject::Subject;
use crate::unavailable::Unavailable;

/// Device interrupts in a second of one CPU from which on they show in figures.
const MANY_A_SECOND: f64 = 1000.0;

/// Programs that load a host for a living, as `/proc/PID/comm` has them.
const LOAD_GENERATORS: [&str; 30] = [
    "ab",
    "autocannon",
    "bombardier",
    "cassandra-stres",
    "fio",
    "gatling",
    "ghz",
    "h2load",
    "hey",
    "iperf",
    "iperf3",
    "jmeter",
    "k6",
    "locust",
    "memtier_benchma",
    "mysqlslap",
    "netperf",
    "oha",
    "pgbench",
    "redis-benchmark",
    "siege",
    "stress",
    "stress-ng",
    "sysbench",
    "tsung",
    "vegeta",
    "wrk",
    "wrk2",
    "ycsb",
    "perf-bench",
];

/// A process that is looked at.
struct Process {
    id: String,
    name: String,
}

/// Lists the processes that this one can see.
fn processes(on: &Subject) -> Result<Vec<Process>, Unavailable> {
    let names = on.tree.names("proc")?;
    let ids = names.into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let named = |id: String| {
        // A process may end while it is looked at.
        let name = on.tree.word(&format!("proc/{id}/comm")).ok()?;
        Some(Process { id, name })
    };
    let processes: Vec<Process> = ids.filter_map(named).collect();
    match processes.is_empty() {
        true => Err(Unavailable::because("not_there", "/proc shows no processes")),
        false => Ok(processes),
    }
}

pub(super) fn load_generator(on: &Subject) -> Looked {
    let usable = on.topology.usable();
    let (mut beside, mut apart) = (Vec::new(), Vec::new());
    for process in processes(on)? {
        if !LOAD_GENERATORS.contains(&process.name.as_str()) {
            continue;
        }
        let status = on.tree.text(&format!("proc/{}/status", process.id)).unwrap_or_default();
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let allowed = allowed.and_then(|list| CpuSet::parse_list(list.trim()).ok());
        let shares = allowed.is_none_or(|allowed| !allowed.is_disjoint(usable));
        let said = format!("{} (process {})", process.name, process.id);
        if shares { beside.push(said) } else { apart.push(said) }
    }
    let elsewhere = "run it on another host, or under taskset on CPUs of another package";
    Ok(if !beside.is_empty() {
        Outcome::unfit(format!("{} may use the same CPUs", beside.join(", ")), elsewhere)
    } else if !apart.is_empty() {
        Outcome::warn(format!("{} runs on other CPUs of this host", apart.join(", ")), elsewhere)
    } else {
        Outcome::ok("no load generator among the processes that can be seen")
    })
}

/// Counts the interrupts with a handler that may come to CPUs in use, and to isolated ones.
fn reach(on: &Subject) -> Result<[usize; 2], Unavailable> {
    let isolated = on.topology.cpus.isolated.clone().unwrap_or_default();
    let mut counts = [0, 0];
    let mut read = 0;
    let mut unread = None;
    for number in on.tree.names("proc/irq")? {
        let directory = format!("proc/irq/{number}");
        let files = on.tree.names(&directory).unwrap_or_default();
        // A handler has a directory of its own below the interrupt.
        let handled = files.iter().any(|file| {
            let known = ["affinity", "smp_", "node", "spurious", "effective_"];
            !known.iter().any(|start| file.starts_with(start))
        });
        if !handled {
            continue;
        }
        let effective = on.tree.word(&format!("{directory}/effective_affinity_list"));
        let list = effective.or_else(|_| on.tree.word(&format!("{directory}/smp_affinity_list")));
        match list {
            Ok(list) => {
                let cpus = CpuSet::parse_list(&list).unwrap_or_default();
                read += 1;
                counts[0] += usize::from(!cpus.is_disjoint(on.topology.usable()));
                counts[1] += usize::from(!cpus.is_disjoint(&isolated));
            }
            Err(reason) => unread = Some(reason),
        }
    }
    match unread {
        Some(reason) if read == 0 => Err(reason),
        _ => Ok(counts),
    }
}

pub(super) fn irq_affinity(on: &Subject) -> Looked {
    let [in_use, isolated] = reach(on)?;
    let moves = processes(on)?.iter().any(|process| process.name == "irqbalance");
    let seen = format!("{in_use} device interrupts may come to the CPUs in use");
    let steer = "write the CPUs that do not measure to /proc/irq/N/smp_affinity_list";
    if isolated > 0 {
        let seen = format!("{seen}, {isolated} of them to isolated ones");
        return Ok(Outcome::warn(seen, steer));
    }
    if moves {
        let stop = "sudo systemctl stop irqbalance, or ban the CPUs that measure from it";
        return Ok(Outcome::warn(format!("{seen}, and irqbalance moves them"), stop));
    }
    let watched = on.live().ok().and_then(|live| live.hiccups.as_ref().ok());
    let busiest = watched.and_then(|cpus| {
        let rate = |cpu: &super::hiccups::CpuHiccups| {
            let interrupts = cpu.device_interrupts? as f64;
            (cpu.watched_ns > 0.0).then(|| (interrupts * 1e9 / cpu.watched_ns, cpu.cpu))
        };
        cpus.iter().filter_map(rate).max_by(|one, other| one.0.total_cmp(&other.0))
    });
    Ok(match busiest {
        Some((rate, cpu)) if rate > MANY_A_SECOND => {
            Outcome::warn(format!("{seen}; CPU {cpu} took {rate:.0} a second just now"), steer)
        }
        _ => Outcome::ok(seen),
    })
}

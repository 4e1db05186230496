//! Memory: huge pages, pages that move, are merged or swapped, addresses, locking.

use super::finding::{Looked, Outcome};
use super::subject::Subject;
use super::tree::misread;

pub(super) const THP: &str = "sys/kernel/mm/transparent_hugepage/enabled";
pub(super) const THP_DEFRAG: &str = "sys/kernel/mm/transparent_hugepage/defrag";
pub(super) const NUMA_BALANCING: &str = "proc/sys/kernel/numa_balancing";
pub(super) const KSM: &str = "sys/kernel/mm/ksm/run";
pub(super) const ZONE_RECLAIM: &str = "proc/sys/vm/zone_reclaim_mode";
pub(super) const ASLR: &str = "proc/sys/kernel/randomize_va_space";

/// Bytes of locked memory that a sweep may ask for.
const LOCKED_BYTES: u64 = 64 << 20;

fn set(word: &str, path: &str) -> String {
    format!("echo {word} | sudo tee /{path}, or `manycore doctor --apply`")
}

pub(super) fn thp(on: &Subject) -> Looked {
    let Some(enabled) = on.tree.feature(on.tree.chosen(THP))? else {
        return Ok(Outcome::ok("this kernel has no transparent huge pages"));
    };
    let defrag = on.tree.chosen(THP_DEFRAG)?;
    let seen = format!("transparent huge pages {enabled}, defrag {defrag}");
    Ok(match (enabled.as_str(), defrag.as_str()) {
        ("always", _) => Outcome::warn(seen, set("madvise", THP)),
        ("madvise", "always") => Outcome::warn(seen, set("madvise", THP_DEFRAG)),
        _ => Outcome::ok(seen),
    })
}

pub(super) fn huge_pages(on: &Subject) -> Looked {
    let (total, free) = (on.tree.meminfo("HugePages_Total")?, on.tree.meminfo("HugePages_Free")?);
    let kilobytes = on.tree.meminfo("Hugepagesize")?;
    let seen = format!("{free} of {total} huge pages of {kilobytes} KiB are free");
    let reserve = "echo 64 | sudo tee /sys/devices/system/node/node*/hugepages/hugepages-*kB/\
                   nr_hugepages";
    if free == 0 {
        let transparent = on.tree.feature(on.tree.chosen(THP))?;
        return Ok(match transparent.is_some_and(|enabled| enabled != "never") {
            true => Outcome::ok(format!("{seen}; transparent ones can be had")),
            false => Outcome::warn(format!("{seen}, and no transparent ones"), reserve),
        });
    }
    let without: Vec<String> = on
        .topology
        .numa_nodes
        .iter()
        .filter(|node| node.is_memoryless() != Some(true))
        .map(|node| node.id)
        .filter(|id| {
            let pool = format!("hugepages/hugepages-{kilobytes}kB/free_hugepages");
            on.tree.number(&format!("sys/devices/system/node/node{id}/{pool}")) == Ok(0)
        })
        .map(|id| id.to_string())
        .collect();
    Ok(match without.is_empty() {
        true => Outcome::ok(seen),
        false => Outcome::warn(format!("{seen}, and none on node {}", without.join(", ")), reserve),
    })
}

pub(super) fn numa_balancing(on: &Subject) -> Looked {
    Ok(match (on.tree.feature(on.tree.number(NUMA_BALANCING))?, on.nodes()) {
        (None, _) => Outcome::ok("this kernel has no automatic NUMA balancing"),
        (Some(0), _) => Outcome::ok("automatic NUMA balancing is off"),
        (Some(_), 1) => Outcome::ok("automatic NUMA balancing is on, for one node"),
        (Some(_), nodes) => Outcome::warn(
            format!("automatic NUMA balancing is on, for {nodes} nodes"),
            set("0", NUMA_BALANCING),
        ),
    })
}

pub(super) fn ksm(on: &Subject) -> Looked {
    Ok(match on.tree.feature(on.tree.number(KSM))? {
        None => Outcome::ok("this kernel does not merge pages"),
        Some(1) => Outcome::warn("kernel samepage merging runs", set("0", KSM)),
        Some(_) => Outcome::ok("kernel samepage merging does not run"),
    })
}

pub(super) fn zone_reclaim(on: &Subject) -> Looked {
    Ok(match (on.tree.feature(on.tree.number(ZONE_RECLAIM))?, on.nodes()) {
        (None, _) => Outcome::ok("this kernel has no reclaim by node"),
        (Some(0), _) => Outcome::ok("a full node is not reclaimed before another is used"),
        (Some(mode), 1) => Outcome::ok(format!("zone_reclaim_mode is {mode}, for one node")),
        (Some(mode), nodes) => Outcome::warn(
            format!("zone_reclaim_mode is {mode}, for {nodes} nodes"),
            set("0", ZONE_RECLAIM),
        ),
    })
}

pub(super) fn swap(on: &Subject) -> Looked {
    let (total, free) = (on.tree.meminfo("SwapTotal")?, on.tree.meminfo("SwapFree")?);
    let used = total.saturating_sub(free);
    Ok(match (total, used) {
        (0, _) => Outcome::ok("no swap"),
        (_, 0) => Outcome::ok(format!("{total} KiB of swap, none in use")),
        _ => Outcome::warn(
            format!("{used} of {total} KiB of swap are in use"),
            "free memory and sudo swapoff -a",
        ),
    })
}

pub(super) fn aslr(on: &Subject) -> Looked {
    Ok(match on.tree.number(ASLR)? {
        2 => Outcome::ok("addresses are random, heap included"),
        mode => Outcome::warn(format!("randomize_va_space is {mode}"), set("2", ASLR)),
    })
}

pub(super) fn memlock(on: &Subject) -> Looked {
    const IPC_LOCK: u32 = 14;
    const PATH: &str = "proc/self/limits";
    if on.is_capable(IPC_LOCK)? {
        return Ok(Outcome::ok("this process may lock memory without a limit"));
    }
    let text = on.tree.text(PATH)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    let soft = soft.ok_or_else(|| misread(PATH, "it has no line about locked memory"))?;
    if soft == "unlimited" {
        return Ok(Outcome::ok("no limit for locked memory"));
    }
    let bytes: u64 = soft.parse().map_err(|_| misread(PATH, "the limit is no number"))?;
    let seen = format!("at most {} KiB may be locked", bytes >> 10);
    Ok(match bytes >= LOCKED_BYTES {
        true => Outcome::ok(seen),
        false => Outcome::warn(seen, "ulimit -l unlimited (as root; or limits.conf: memlock)"),
    })
}

//! CPU quotas: at each level of the cgroup tree, the tightest counts.

use serde::Serialize;

use crate::sysfs::{Tree, rooted, shorten};

/// The kernel's period where version 2 gives only the quota.
const DEFAULT_PERIOD_US: u64 = 100_000;

/// Holds the tightest CPU quota over all visible levels of the cgroup tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Quota {
    /// The quota in CPUs, exact: 6.5 for 650 ms of CPU time in each 100 ms.
    pub cpus: f64,
    /// The quota in whole CPUs: rounded down, at least 1.
    pub quota_cpus: u32,
    /// CPU time for each period, in microseconds.
    pub quota_us: u64,
    /// The period in microseconds.
    pub period_us: u64,
    /// The version of the hierarchy.
    pub version: u32,
    /// The file that limits, as seen from the root.
    pub file: String,
    /// How many levels above the process's own cgroup the limit is; 0 is its own.
    pub levels_up: usize,
}

/// Reads every level, the process's own first, and gives the tightest limit.
pub(crate) fn read(tree: &Tree, version: u32, levels: &[String]) -> Option<Quota> {
    let mut tightest = None;
    for (levels_up, level) in levels.iter().enumerate() {
        let found = match version {
            2 => read_v2(tree, level),
            _ => read_v1(tree, level),
        };
        if let Some((quota_us, period_us, path)) = found {
            let quota = Quota {
                cpus: quota_us as f64 / period_us as f64,
                quota_cpus: u32::try_from(quota_us / period_us).unwrap_or(u32::MAX).max(1),
                quota_us,
                period_us,
                version,
                file: rooted(&path),
                levels_up,
            };
            tightest = tighter(tightest, Some(quota));
        }
    }
    tightest
}

/// Gives the smaller of two quotas, the first of two equal ones.
pub(crate) fn tighter(a: Option<Quota>, b: Option<Quota>) -> Option<Quota> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let left = u128::from(a.quota_us) * u128::from(b.period_us);
            let right = u128::from(b.quota_us) * u128::from(a.period_us);
            Some(if right < left { b } else { a })
        }
        (a, b) => a.or(b),
    }
}

/// Reads `cpu.max`: `max 100000`, `650000 100000`, or the quota alone.
fn read_v2(tree: &Tree, level: &str) -> Option<(u64, u64, String)> {
    let path = format!("{level}/cpu.max");
    let text = tree.value(&path)?;
    let mut words = text.split_ascii_whitespace();
    let quota = words.next().unwrap_or("");
    let period = words.next().map_or(Some(DEFAULT_PERIOD_US), |period| period.parse().ok());
    match (quota, quota.parse::<u64>(), period, words.next()) {
        ("max", _, Some(1..), None) => None,
        (_, Ok(quota @ 1..), Some(period @ 1..), None) => Some((quota, period, path)),
        _ => {
            tree.damaged(&path, format!("{:?} is no quota; ignored", shorten(&text)));
            None
        }
    }
}

/// Reads `cpu.cfs_quota_us` (-1: no limit) and `cpu.cfs_period_us`.
fn read_v1(tree: &Tree, level: &str) -> Option<(u64, u64, String)> {
    let path = format!("{level}/cpu.cfs_quota_us");
    let text = tree.value(&path)?;
    let quota = match text.parse::<i64>() {
        Ok(-1) => return None,
        Ok(quota @ 1..) => quota.unsigned_abs(),
        _ => {
            tree.damaged(&path, format!("{:?} is no quota; ignored", shorten(&text)));
            return None;
        }
    };
    let period_path = format!("{level}/cpu.cfs_period_us");
    match tree.number(&period_path) {
        Some(period @ 1..) => Some((quota, period, path)),
        _ => {
            tree.damaged(&period_path, "a quota without a period; ignored");
            None
        }
    }
}

//! Which benchmarks there are: rows × numbers of threads × words of the workload; and how long
//! each may take.

use std::time::Duration;

use topology::Topology;

use crate::sweep::Row;
use crate::workload::Workload;

/// Time of one crate's wall-clock part; four crates with their counts and cross-checks stay below
/// ten minutes.
const WALL_CLOCK: Duration = Duration::from_secs(70);

/// Bounds of one benchmark's share of it.
const LEAST: Duration = Duration::from_millis(300);
const MOST: Duration = Duration::from_secs(4);

/// What a benchmark takes besides warming up and measuring: two experiments made, the analysis.
const AROUND: Duration = Duration::from_millis(120);

/// One wall-clock benchmark.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// Its row.
    pub(crate) row: Row,
    /// Its number of threads.
    pub(crate) threads: usize,
    /// What its threads do.
    pub(crate) workload: Workload,
    /// What follows the row's name in the benchmark's.
    pub(crate) parameter: String,
}

impl Point {
    /// Gives the benchmark's name.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", name(&self.row), self.parameter)
    }
}

/// Gives a row's name, `locks/ticket` say.
pub(crate) fn name(row: &Row) -> String {
    format!("{}/{}", row.primitive, row.id)
}

/// How much is measured, as `MANYCORE_BENCH` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Each row with one thread and with all.
    Short,
    /// Each row with 1, 2, 4 … all threads, under several workloads.
    Full,
}

impl Extent {
    /// Reads the environment.
    ///
    /// # Errors
    /// When `MANYCORE_BENCH` is neither empty nor `short` nor `full`.
    pub(crate) fn from_environment() -> Result<Self, String> {
        match std::env::var("MANYCORE_BENCH").as_deref() {
            Err(_) | Ok("" | "short") => Ok(Self::Short),
            Ok("full") => Ok(Self::Full),
            Ok(other) => Err(format!("MANYCORE_BENCH is `{other}`; it may be short or full")),
        }
    }

    fn threads(self, topology: &Topology) -> Vec<usize> {
        let most = topology.parallelism();
        let mut counts = vec![1];
        if self == Self::Full {
            counts.extend((1..).map(|power| 1 << power).take_while(|&count| count < most));
        }
        if most > 1 {
            counts.push(most);
        }
        counts
    }

    /// The workloads, each with the word by which it differs from the first.
    fn workloads(self, primitive: &str) -> Vec<(String, Workload)> {
        let plain = Workload::default();
        let mut all = vec![(String::new(), plain.clone())];
        if self == Self::Full {
            let mut add = |word: &str, values: &[usize], set: fn(&mut Workload, usize)| {
                for &value in values {
                    let mut workload = plain.clone();
                    set(&mut workload, value);
                    all.push((format!("{word}={value},"), workload));
                }
            };
            match primitive {
                "locks" => add("critical_ns", &[50, 500], |w, value| w.critical_ns = value as u64),
                "counters" => add("read_percent", &[10], |w, value| w.read_percent = value as u64),
                "queues" => add("element_bytes", &[64, 256], |w, value| w.element_bytes = value),
                _ => add("alloc_bytes", &[16, 256], |w, value| w.alloc_bytes = value),
            }
        }
        all
    }

    /// Gives the benchmarks in order.
    pub(crate) fn points(self, topology: &Topology, rows: &[Row]) -> Vec<Point> {
        let mut points = Vec::new();
        for &row in rows {
            for (word, workload) in self.workloads(row.primitive) {
                for threads in self.threads(topology) {
                    let parameter = format!("{word}threads={threads}");
                    points.push(Point { row, threads, workload: workload.clone(), parameter });
                }
            }
        }
        points
    }

    /// Gives the times to warm up and to measure when there are `points` benchmarks. The filter
    /// has no part in it, so that figures with and without one are of equal quality.
    pub(crate) fn times(self, points: usize) -> (Duration, Duration) {
        let share = match self {
            Self::Short => WALL_CLOCK.div_f64(points.max(1) as f64).clamp(LEAST, MOST),
            Self::Full => MOST / 2,
        };
        let left = share.saturating_sub(AROUND);
        // The last round of warming up takes as long as all before it: a quarter becomes a third.
        (left.mul_f64(0.2), left.mul_f64(0.65))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rows_get_less_time_each() {
        for points in [1, 10, 40, 100, 200] {
            let (warm_up, measurement) = Extent::Short.times(points);
            let one = warm_up.mul_f64(1.5) + measurement + AROUND;
            assert!(one <= MOST, "{one:?}");
            assert!(one.mul_f64(points as f64) <= WALL_CLOCK.mul_f64(1.1), "{points}: {one:?}");
            assert!(measurement >= Duration::from_millis(100));
        }
    }

    #[test]
    fn names() {
        let row = Row {
            primitive: "locks",
            id: "tas",
            kind: "variant",
            make: |_| Err(crate::unavailable::Unavailable::new("never")),
        };
        let host = Topology::this_host().unwrap();
        let ids = |extent: Extent| -> Vec<String> {
            extent.points(&host, &[row]).iter().map(Point::id).collect()
        };
        let (short, full) = (ids(Extent::Short), ids(Extent::Full));
        assert_eq!(short[0], "locks/tas/threads=1");
        assert_eq!(short.len(), if host.parallelism() > 1 { 2 } else { 1 });
        assert!(short.iter().all(|id| full.contains(id)));
        assert!(full.contains(&"locks/tas/critical_ns=50,threads=1".to_owned()));
        let distinct: std::collections::BTreeSet<_> = full.iter().collect();
        assert_eq!(distinct.len(), full.len());
    }
}

//! Which metrics are compared, and how: what is counted repeats and is compared exactly, what is
//! timed is compared by intervals.

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Costs.
    Less,
    /// What is had for them.
    More,
}

/// How a metric's figures are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The same on every host that runs the same code, by every engine.
    Layout,
    /// Exact by the engines that count every event; natively only of threads that nobody disturbs.
    Counted,
    /// Measured or predicted time and what follows from it.
    Timed(Better),
}

/// One metric that is compared.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its name in records.
    pub metric: &'static str,
    /// How it is compared.
    pub how: How,
}

const fn counted(metric: &'static str) -> Rule {
    Rule { metric, how: How::Counted }
}

const fn layout(metric: &'static str) -> Rule {
    Rule { metric, how: How::Layout }
}

const fn less(metric: &'static str) -> Rule {
    Rule { metric, how: How::Timed(Better::Less) }
}

/// The metrics that are compared, by name. Of those that say the same (`ns_per_op`, `ops_per_s`,
/// `cycles_per_op`) there is one.
pub const RULES: &[Rule] = &[
    counted("accesses_per_op"),
    less("acquire_ns.cross_socket"),
    less("acquire_ns.same"),
    less("acquire_ns.same_l3"),
    less("acquire_ns.same_socket"),
    less("acquire_ns.smt"),
    layout("bytes_per_object"),
    layout("bytes_per_slot"),
    layout("bytes_per_waiter"),
    counted("context_switches_per_op"),
    Rule { metric: "fairness_jain", how: How::Timed(Better::More) },
    counted("false_sharing_lines"),
    counted("fences_per_op"),
    less("handoff_ns.cross_socket"),
    less("handoff_ns.same"),
    less("handoff_ns.same_l3"),
    less("handoff_ns.same_socket"),
    less("handoff_ns.smt"),
    counted("instructions_per_op"),
    counted("invalidations_per_op"),
    less("latency_ns.max"),
    less("latency_ns.p50"),
    less("latency_ns.p90"),
    less("latency_ns.p99"),
    less("latency_ns.p99.9"),
    counted("memory_reads_per_op"),
    counted("memory_reads_per_op.local"),
    counted("memory_reads_per_op.remote"),
    less("ns_per_op"),
    counted("rmw_per_op"),
    counted("syscalls_per_op"),
    counted("transfers_per_op.cross_socket"),
    counted("transfers_per_op.same_l3"),
    counted("transfers_per_op.same_socket"),
    counted("transfers_per_op.smt"),
];

/// Gives the position of a metric in [`RULES`].
pub(super) fn position(metric: &str) -> Option<usize> {
    RULES.binary_search_by(|rule| rule.metric.cmp(metric)).ok()
}

/// The position of the next metric, where metrics come by their names, as this program writes them:
/// cheaper than looking for each of them.
#[derive(Debug, Default)]
pub(super) struct Cursor(usize);

impl Cursor {
    /// Gives what [`position`] gives.
    pub(super) fn position(&mut self, metric: &str) -> Option<usize> {
        let before = |at: usize| RULES.get(at).is_some_and(|rule| rule.metric < metric);
        if self.0 > 0 && !before(self.0 - 1) {
            return position(metric);
        }
        while before(self.0) {
            self.0 += 1;
        }
        let found = RULES.get(self.0).is_some_and(|rule| rule.metric == metric);
        found.then_some(self.0)
    }
}

/// How the figures of a metric are compared at a point, or `None` where they are not.
pub(super) fn how(rule: &Rule, engine: &str, threads: usize) -> Option<How> {
    match rule.how {
        // The kernel's share in a contended point is chance, hardware counters count the wait.
        How::Counted if engine == "native" => {
            (threads == 1 && rule.metric == "syscalls_per_op").then_some(How::Counted)
        }
        how => Some(how),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::glossary;

    #[test]
    fn rules_are_sorted_and_about_metrics_that_exist() {
        assert!(RULES.windows(2).all(|pair| pair[0].metric < pair[1].metric));
        for (at, rule) in RULES.iter().enumerate() {
            assert!(glossary::entry(rule.metric).is_some(), "{}", rule.metric);
            assert_eq!(position(rule.metric), Some(at));
        }
        assert_eq!(position("ops"), None);
        let others = ["aaa", "ops", "zzz", "latency_ns", "ns_per_op.x"];
        let mut names: Vec<&str> = RULES.iter().map(|rule| rule.metric).chain(others).collect();
        for order in 0..3 {
            let mut cursor = Cursor::default();
            match order {
                0 => names.sort_unstable(),
                1 => names.reverse(),
                _ => names.rotate_left(7),
            }
            for name in &names {
                assert_eq!(cursor.position(name), position(name), "{name}");
            }
        }
    }

    #[test]
    fn natively_little_repeats_exactly() {
        let rule = |metric| &RULES[position(metric).unwrap()];
        assert_eq!(how(rule("instructions_per_op"), "native", 1), None);
        assert_eq!(how(rule("instructions_per_op"), "simulated", 64), Some(How::Counted));
        assert_eq!(how(rule("syscalls_per_op"), "native", 1), Some(How::Counted));
        assert_eq!(how(rule("syscalls_per_op"), "native", 2), None);
        assert_eq!(how(rule("bytes_per_object"), "native", 2), Some(How::Layout));
    }
}

//! The words of the command line that say what threads do.

use clap::Args;
use harness::workload::Workload;

use crate::cli::{size, whole};
use crate::exit::Failure;

/// What the threads do. What is not said is as [`Workload::default`] has it.
#[derive(Debug, Clone, Args)]
pub(crate) struct WorkloadArgs {
    /// Locks: nanoseconds of work in the critical section [default: 0]
    #[arg(long, value_name = "NS", allow_hyphen_values = true, value_parser = nanoseconds)]
    critical_ns: Option<u64>,
    /// Nanoseconds of work between two operations [default: 0]
    #[arg(long, value_name = "NS", allow_hyphen_values = true, value_parser = nanoseconds)]
    think_ns: Option<u64>,
    /// Counters: of 100 operations, how many read the sum; locks: how many only read, together if
    /// the lock is a reader-writer lock [default: 0]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = percent)]
    read_percent: Option<u64>,
    /// Queues: threads that push
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = side)]
    pub(crate) producers: Option<usize>,
    /// Queues: threads that pop
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = side)]
    pub(crate) consumers: Option<usize>,
    /// Queues: slots [default: 1024]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = capacity)]
    capacity: Option<usize>,
    /// Queues: bytes of an element, 8, 64 or 256 [default: 8]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = element_bytes)]
    element_bytes: Option<usize>,
    /// Arenas: bytes of an allocation [default: 64]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = alloc_bytes)]
    alloc_bytes: Option<usize>,
    /// Arenas: bytes of each thread's arena; more than the caches hold comes from memory
    /// [default: 65536]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = arena_bytes)]
    arena_bytes: Option<usize>,
}

impl WorkloadArgs {
    /// Gives the workload, with memory as by default.
    pub(crate) fn workload(&self) -> Workload {
        let default = Workload::default();
        Workload {
            critical_ns: self.critical_ns.unwrap_or(default.critical_ns),
            think_ns: self.think_ns.unwrap_or(default.think_ns),
            read_percent: self.read_percent.unwrap_or(default.read_percent),
            producers: self.producers,
            consumers: self.consumers,
            capacity: self.capacity.unwrap_or(default.capacity),
            element_bytes: self.element_bytes.unwrap_or(default.element_bytes),
            alloc_bytes: self.alloc_bytes.unwrap_or(default.alloc_bytes),
            arena_bytes: self.arena_bytes.unwrap_or(default.arena_bytes),
            ..default
        }
    }

    /// Refuses words that none of these primitives heeds.
    ///
    /// # Errors
    /// Names the primitive that a word is for.
    pub(crate) fn check(&self, primitives: &[&str]) -> Result<(), Failure> {
        let given: [(bool, &str, &[&str]); 8] = [
            (self.critical_ns.is_some(), "critical-ns", &["locks"]),
            (self.read_percent.is_some(), "read-percent", &["counters", "locks"]),
            (self.producers.is_some(), "producers", &["queues"]),
            (self.consumers.is_some(), "consumers", &["queues"]),
            (self.capacity.is_some(), "capacity", &["queues"]),
            (self.element_bytes.is_some(), "element-bytes", &["queues"]),
            (self.alloc_bytes.is_some(), "alloc-bytes", &["alloc-arena"]),
            (self.arena_bytes.is_some(), "arena-bytes", &["alloc-arena"]),
        ];
        let heeded = |of: &[&str]| of.iter().any(|one| primitives.contains(one));
        let mut idle = given.iter().filter(|(given, _, of)| *given && !heeded(of));
        let Some((_, flag, of)) = idle.next() else { return Ok(()) };
        let of = of.join(" and ");
        let mut chosen = primitives.to_vec();
        chosen.dedup();
        let chosen = chosen.join(", ");
        Err(Failure::Usage(format!("--{flag} is for {of}, and says nothing of {chosen}")))
    }
}

/// Writes a workload as the command line has it, for a program that is run with it.
pub(crate) fn workload_words(workload: &Workload) -> Vec<String> {
    let words = [
        ("--critical-ns", workload.critical_ns),
        ("--think-ns", workload.think_ns),
        ("--read-percent", workload.read_percent),
        ("--capacity", workload.capacity as u64),
        ("--element-bytes", workload.element_bytes as u64),
        ("--alloc-bytes", workload.alloc_bytes as u64),
        ("--arena-bytes", workload.arena_bytes as u64),
    ];
    let sides = [("--producers", workload.producers), ("--consumers", workload.consumers)];
    let sides = sides.into_iter().filter_map(|(word, threads)| Some((word, threads? as u64)));
    let words = words.into_iter().chain(sides);
    words.flat_map(|(word, value)| [word.to_owned(), value.to_string()]).collect()
}

fn nanoseconds(text: &str) -> Result<u64, String> {
    whole(text, "a time in nanoseconds", 0, 100_000_000)
}

fn percent(text: &str) -> Result<u64, String> {
    whole(text, "a percentage", 0, 100)
}

fn side(text: &str) -> Result<usize, String> {
    size(text, "a number of producers or consumers", 65_536)
}

fn capacity(text: &str) -> Result<usize, String> {
    size(text, "a queue's capacity", 1 << 30)
}

fn alloc_bytes(text: &str) -> Result<usize, String> {
    size(text, "an allocation's size in bytes", 1 << 20)
}

fn arena_bytes(text: &str) -> Result<usize, String> {
    size(text, "an arena's size in bytes", 1 << 30)
}

fn element_bytes(text: &str) -> Result<usize, String> {
    match text {
        "8" | "64" | "256" => size(text, "an element's size", 256),
        _ => Err("an element has 8, 64 or 256 bytes".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        workload: WorkloadArgs,
    }

    /// What a program that is run with a workload understands.
    #[test]
    fn words_are_read_as_they_are_written() {
        let workload = Workload {
            critical_ns: 1,
            think_ns: 2,
            read_percent: 3,
            producers: Some(4),
            consumers: None,
            capacity: 5,
            element_bytes: 64,
            alloc_bytes: 6,
            arena_bytes: 7,
            ..Workload::default()
        };
        let words = workload_words(&workload);
        let line = Line::parse_from(std::iter::once("manycore".to_owned()).chain(words));
        assert_eq!(line.workload.workload(), workload);
        let nothing = Line::parse_from(["manycore"]).workload;
        assert_eq!(nothing.workload(), Workload::default());
        assert!(nothing.check(&["locks"]).is_ok());
    }

    #[test]
    fn words_that_nobody_heeds_are_refused() {
        let check = |word: &str, value: &str, primitives: &[&str]| {
            let line = Line::parse_from(["manycore", word, value]);
            line.workload.check(primitives).map_err(|failure| failure.to_string())
        };
        for (word, value, of) in [
            ("--critical-ns", "0", "locks"),
            ("--read-percent", "5", "counters"),
            ("--producers", "1", "queues"),
            ("--consumers", "1", "queues"),
            ("--capacity", "1024", "queues"),
            ("--element-bytes", "8", "queues"),
            ("--alloc-bytes", "64", "alloc-arena"),
            ("--arena-bytes", "64", "alloc-arena"),
        ] {
            assert_eq!(check(word, value, &["counters", of]), Ok(()), "{word}");
            let other = if of == "queues" { "alloc-arena" } else { "queues" };
            let error = check(word, value, &[other]).unwrap_err();
            assert!(error.contains(&format!("{word} is for {of}")), "{error}");
        }
        assert_eq!(check("--think-ns", "5", &["alloc-arena"]), Ok(()));
    }

    #[test]
    fn numbers() {
        assert_eq!(nanoseconds("50"), Ok(50));
        for bad in ["-1", "", "x", "1.5", "99999999999999999999999999999999999999999", "100000001"]
        {
            assert!(nanoseconds(bad).is_err(), "{bad}");
        }
    }
}

//! Which lines a run was busy with, who touched which of their bytes, and what that cost.

use serde::{Deserialize, Serialize};

use crate::report::Transfers;

/// Bytes of a line.
const LINE: usize = 64;

/// How cores share a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// One core touched it.
    Private,
    /// Several cores read it, and none wrote it.
    ReadOnly,
    /// Some byte was written by one core and touched by another, and transfers were for what others
    /// had changed or used.
    True,
    /// Several cores touched it, one of them wrote it, and no byte was shared that way; or fewer
    /// than one transfer in a hundred was for such bytes.
    False,
    /// Some transfers were for what others had changed or used, and some, more than one in a
    /// hundred, for bytes that others had left alone.
    Mixed,
    /// As private or read-only by itself; but the other line of its aligned pair is used by other
    /// cores, somebody writes one of the two, and the machine prefetches pairs.
    Pair,
}

impl Sharing {
    /// Gives the kind in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::ReadOnly => "read only",
            Self::True => "true sharing",
            Self::False => "false sharing",
            Self::Mixed => "true and false sharing",
            Self::Pair => "prefetch-pair sharing",
        }
    }
}

/// What one core did to a line. Bit i of a mask is byte i of the line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Touches {
    /// The core, by its number on the machine.
    pub cpu: u32,
    /// Bytes that it read.
    pub read: u64,
    /// Bytes that it wrote.
    pub written: u64,
    /// Accesses that read.
    pub loads: u64,
    /// Accesses that wrote; a read-modify-write is one of each.
    pub stores: u64,
    /// Times that it waited for the line to come from another core.
    pub transfers: u64,
    /// How long it waited for the line, in picoseconds.
    pub stall_ps: u64,
}

impl Touches {
    /// Gives the bytes that it read or wrote.
    pub fn touched(&self) -> u64 {
        self.read | self.written
    }
}

/// An instruction that touched a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HotPlace {
    /// The instruction's address.
    pub rip: u64,
    /// The function, or the address where no symbol tells.
    pub function: String,
    /// File and line, where debug information tells.
    pub line: Option<String>,
    /// Accesses that read.
    pub loads: u64,
    /// Accesses that wrote.
    pub stores: u64,
    /// Times that the line came from another core for it.
    pub transfers: u64,
    /// How long it waited for the line, in picoseconds.
    pub stall_ps: u64,
}

/// A line, and what it cost.
///
/// Rounds of spin loops that were computed instead of executed add nothing to loads and stores
/// here; what they touch was seen in the rounds that were executed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HotLine {
    /// Its address.
    pub address: u64,
    /// What lies there: a symbol with an offset, a thread's stack or thread-local storage, heap.
    pub object: String,
    /// How cores share it.
    pub sharing: Sharing,
    /// Who touched it, by core.
    pub cores: Vec<Touches>,
    /// Transfers by distance.
    pub transfers: Transfers,
    /// Of the transfers, those that were needed: for bytes that others had changed since the core
    /// last had the line, and to write bytes that others had used since it last wrote there, and
    /// what came first to each core, if any byte is shared. All others would not have been if each
    /// field had a line of its own.
    pub true_transfers: u64,
    /// Times that cores lost it by writes of others.
    pub invalidations: u64,
    /// Times that it came from memory.
    pub memory_reads: u64,
    /// How long cores waited for it to come from other cores, in picoseconds.
    pub transfer_ps: u64,
    /// How long cores waited for it to come from memory, in picoseconds.
    pub memory_ps: u64,
    /// The instructions that touched it, the costliest first.
    pub places: Vec<HotPlace>,
    /// How its bytes could lie on lines of their own, if that would end false sharing.
    pub apart: Option<Apart>,
}

impl HotLine {
    /// Gives the bytes that some core wrote and another touched, as a mask.
    pub fn shared_bytes(&self) -> u64 {
        shared_bytes(&self.cores)
    }

    /// Gives what lies there, for memory without a name with the place that uses it most.
    pub fn told(&self) -> String {
        let place = self.places.first().and_then(|place| place.line.as_deref());
        match (self.object.as_str(), place) {
            ("heap", Some(place)) => format!("heap, {place}"),
            (object, _) => object.to_owned(),
        }
    }

    /// Gives the accesses of all cores.
    pub fn accesses(&self) -> u64 {
        self.cores.iter().map(|core| core.loads + core.stores).sum()
    }
}

/// Gives the bytes that some core wrote and another touched.
pub(crate) fn shared_bytes(cores: &[Touches]) -> u64 {
    let (mut touched, mut written, mut shared) = (0, 0, 0);
    for core in cores {
        shared |= core.written & touched | core.touched() & written;
        touched |= core.touched();
        written |= core.written;
    }
    shared
}

/// Bytes of a line that shall lie on lines of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Apart {
    /// The line's address.
    pub line: u64,
    /// Each mask's bytes get a line; bytes in none stay together where they are.
    pub groups: Vec<u64>,
}

/// Why bytes cannot be put apart.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApartError {
    /// The address is not that of a line, or none that a program can have.
    NoLine(u64),
    /// A line is named twice.
    Twice(u64),
    /// A byte is in two groups.
    Overlap(u64),
    /// A group is empty.
    Empty(u64),
}

impl core::fmt::Display for ApartError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NoLine(line) => write!(
                f,
                "{line:#x} is no line of a program's; give a multiple of {LINE} below 2^47"
            ),
            Self::Twice(line) => write!(f, "line {line:#x} is put apart twice; join its groups"),
            Self::Overlap(line) => {
                write!(f, "a byte of line {line:#x} is in two groups; leave it in one")
            }
            Self::Empty(line) => write!(f, "a group of line {line:#x} is empty; leave it out"),
        }
    }
}

impl std::error::Error for ApartError {}

impl Apart {
    /// Looks whether the groups can be.
    ///
    /// # Errors
    /// What cannot be.
    pub(crate) fn check(all: &[Self]) -> Result<(), ApartError> {
        for (i, Self { line, groups }) in all.iter().enumerate() {
            if line % LINE as u64 != 0 || *line == 0 || *line >= 1 << 47 {
                return Err(ApartError::NoLine(*line));
            }
            if all[..i].iter().any(|other| other.line == *line) {
                return Err(ApartError::Twice(*line));
            }
            let mut seen = 0;
            for group in groups {
                if *group == 0 {
                    return Err(ApartError::Empty(*line));
                }
                if seen & group != 0 {
                    return Err(ApartError::Overlap(*line));
                }
                seen |= group;
            }
        }
        Ok(())
    }
}

/// Lines of a run that are not told one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct OtherLines {
    /// How many.
    pub lines: u64,
    /// Their transfers.
    pub transfers: u64,
    /// How long cores waited for them, memory included, in picoseconds.
    pub stall_ps: u64,
}

/// What a core waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wait {
    /// A line, by its address, to come from other cores.
    Line(u64),
    /// A line, by its address, to come from memory.
    Memory(u64),
    /// The kernel, in the call of this name.
    Kernel(String),
    /// Something to do.
    Idle,
}

/// A core waited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// The core, by its number on the machine.
    pub cpu: u32,
    /// When that began, in picoseconds since the run did.
    pub begin_ps: u64,
    /// How long it took, in picoseconds.
    pub takes_ps: u64,
    /// What for.
    pub wait: Wait,
}

/// How long all cores waited for lines in a function, called in a certain way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stack {
    /// The functions, outermost first, those that were inlined among them.
    pub functions: Vec<String>,
    /// The time, in picoseconds.
    pub stall_ps: u64,
}

/// What was seen of the lines of a run, the costliest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LineReport {
    /// The costliest lines: by the time that cores waited for them to come from other cores, then
    /// by transfers, then those that share a pair, then by accesses.
    pub lines: Vec<HotLine>,
    /// All others together.
    pub others: OtherLines,
    /// What cores waited for, in order, if [`Simulation::trace`](crate::Simulation::trace) asked
    /// for it.
    pub events: Vec<Event>,
    /// Events that there was no room for, the last ones.
    pub events_lost: u64,
    /// In which calls cores waited for lines, likewise.
    pub stacks: Vec<Stack>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(cpu: u32, read: u64, written: u64) -> Touches {
        Touches { cpu, read, written, ..Touches::default() }
    }

    #[test]
    fn bytes_are_shared_if_one_writes_and_another_touches() {
        assert_eq!(shared_bytes(&[core(0, 0xff, 0), core(1, 0xff, 0)]), 0);
        assert_eq!(shared_bytes(&[core(0, 0, 0x0f), core(1, 0xf0, 0xf0)]), 0);
        assert_eq!(shared_bytes(&[core(0, 0, 0x0f), core(1, 0x3c, 0)]), 0x0c);
        assert_eq!(shared_bytes(&[core(0, 0x3c, 0), core(1, 0, 0x0f)]), 0x0c);
        assert_eq!(shared_bytes(&[core(0, 0, 1), core(1, 2, 0), core(2, 0, 3)]), 3);
        assert_eq!(shared_bytes(&[core(7, 5, 5)]), 0);
    }

    #[test]
    fn groups_that_cannot_be_are_refused() {
        let apart = |line, groups: &[u64]| Apart { line, groups: groups.to_vec() };
        assert_eq!(Apart::check(&[apart(64, &[1, 2]), apart(128, &[1])]), Ok(()));
        assert_eq!(Apart::check(&[apart(65, &[1])]), Err(ApartError::NoLine(65)));
        assert_eq!(Apart::check(&[apart(0, &[1])]), Err(ApartError::NoLine(0)));
        assert_eq!(Apart::check(&[apart(1 << 50, &[1])]), Err(ApartError::NoLine(1 << 50)));
        let twice = [apart(64, &[1]), apart(64, &[2])];
        assert_eq!(Apart::check(&twice), Err(ApartError::Twice(64)));
        assert_eq!(Apart::check(&[apart(64, &[3, 2])]), Err(ApartError::Overlap(64)));
        assert_eq!(Apart::check(&[apart(64, &[0])]), Err(ApartError::Empty(64)));
    }
}

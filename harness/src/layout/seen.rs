//! What a simulated machine saw of bytes, against what objects say about them.
//!
//! A run whose lines were watched tells which core read and wrote which byte. [`confirm`] finds
//! where that is not what was declared:
//!
//! | [`SeenKind`] | finds |
//! |---|---|
//! | `shared_falsely` | lines that went from core to core for bytes that were not shared, or whose neighbour in a pair did, and no group says that this is meant |
//! | `undeclared` | bytes that one core wrote and another touched, in no declared field |
//! | `wrong_writer` | fields that were written by a thread of another role than declared |
//!
//! A role that is declared [`alone`](super::Field::alone) belongs to one thread, but for
//! [`IN_TURN`], which threads have one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use simulator::{HotLine, LineReport, Sharing as Verdict};

use super::{Field, Object, Role, Sharing, Spot};

/// The role that threads have one after the other, though one thread at a time has it.
pub const IN_TURN: &str = "holder";

/// Bytes of a simulated line.
const LINE: u64 = 64;

/// A thread that was watched.
#[derive(Debug, Clone, Default)]
pub struct Player {
    /// Its core, which no other thread had.
    pub cpu: u32,
    /// Roles that only threads have that name them. Any thread may have those that none names.
    pub roles: Vec<&'static str>,
}

/// What is not as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenKind {
    /// Cores took a line from one another for bytes that they did not share.
    SharedFalsely,
    /// Cores shared bytes of no field.
    Undeclared,
    /// A thread wrote what another should.
    WrongWriter,
}

/// One thing that is not as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenFinding {
    /// What.
    pub kind: SeenKind,
    /// The field with what it declares, or what lies there.
    pub what: String,
    /// What it shares a line or pair with.
    pub with: Option<String>,
    /// Address of its first byte that this is about.
    pub address: u64,
    /// Bytes from there to the last one.
    pub bytes: u64,
    /// Threads that wrote there.
    pub writers: Vec<usize>,
    /// Threads that read there.
    pub readers: Vec<usize>,
    /// Where the program uses the line most, if that is known.
    pub place: Option<String>,
}

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Declared fields of which some byte was touched.
    pub fields: usize,
    /// Lines that one core wrote and another touched.
    pub lines: usize,
    /// What is not as declared, by address.
    pub findings: Vec<SeenFinding>,
}

/// Compares what was seen of a run with what its objects say. The threads' cores are distinct.
pub fn confirm(objects: &[Object], players: &[Player], report: &LineReport) -> Seen {
    let mut fields: Vec<(&Object, &Field)> = objects
        .iter()
        .flat_map(|object| object.fields.iter().map(move |field| (object, field)))
        .filter(|(_, field)| field.bytes > 0)
        .collect();
    // Where several describe a byte, the one that somebody uses counts.
    fields.sort_by_key(|(_, field)| (field.is_hot(), field.start));
    let mut lines: Vec<Owned<'_>> =
        report.lines.iter().map(|line| Owned::of(line, &fields)).collect();
    // What lies on threads' stacks cannot be described.
    lines.retain(|owned| {
        !(owned.owners.is_empty() && owned.line.object.starts_with("stack of thread"))
    });
    lines.sort_by_key(|owned| owned.line.address);
    let eye = Eye { objects, fields, players, lines };
    let mut findings = eye.shared_falsely();
    findings.extend(eye.undeclared());
    findings.extend(eye.wrong_writers());
    findings.sort_by_key(|finding| (finding.address, finding.kind));
    let touched = |owned: &Owned<'_>| owned.owners.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    let fields: BTreeSet<usize> = eye.lines.iter().flat_map(touched).collect();
    let shared = |owned: &&Owned<'_>| is_shared(owned.line);
    Seen { fields: fields.len(), lines: eye.lines.iter().filter(shared).count(), findings }
}

fn is_shared(line: &HotLine) -> bool {
    line.cores.len() > 1 && line.cores.iter().any(|core| core.written != 0)
}

/// Gives the bytes of `start..start + bytes` on a line as bits.
fn mask(line: u64, start: usize, bytes: usize) -> u64 {
    let (start, end) = (start as u64, (start as u64).saturating_add(bytes as u64));
    let (from, to) = (start.max(line), end.min(line + LINE));
    if from >= to {
        return 0;
    }
    (u64::MAX >> (LINE - (to - from))) << (from - line)
}

/// A line, and which of the fields its touched bytes belong to.
struct Owned<'a> {
    line: &'a HotLine,
    /// Number of the field and its touched bytes on the line.
    owners: Vec<(usize, u64)>,
    /// Touched bytes of no field.
    rest: u64,
}

impl<'a> Owned<'a> {
    fn of(line: &'a HotLine, fields: &[(&Object, &Field)]) -> Self {
        let mut rest = line.cores.iter().fold(0, |all, core| all | core.touched());
        let mut owners = Vec::new();
        for (at, (_, field)) in fields.iter().enumerate().rev() {
            let own = rest & mask(line.address, field.start, field.bytes);
            if own != 0 {
                owners.push((at, own));
                rest &= !own;
            }
        }
        Self { line, owners, rest }
    }
}

/// Bytes that may share lines with one another and with nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unit<'a> {
    /// Bytes of no field.
    Rest,
    /// A field.
    Field(usize),
    /// A group of an object, which was declared with its reason.
    Group(usize, &'a str),
}

/// A unit's bytes on a line.
struct Part<'a> {
    unit: Unit<'a>,
    /// Its field; none where there is none.
    field: Option<usize>,
    line: &'a HotLine,
    mask: u64,
}

impl Part<'_> {
    /// Whether a core writes this part, and another one touches the other.
    fn takes(&self, other: &Self) -> bool {
        let writes = |core: &&simulator::Touches| core.written & self.mask != 0;
        self.line.cores.iter().filter(writes).any(|writer| {
            let touches = |core: &simulator::Touches| core.touched() & other.mask != 0;
            other.line.cores.iter().any(|core| core.cpu != writer.cpu && touches(core))
        })
    }

    /// Whether cores share it that do not all touch the same bytes of it.
    fn is_torn(&self) -> bool {
        let mut touched =
            self.line.cores.iter().map(|core| core.touched() & self.mask).filter(|mask| *mask != 0);
        let first = touched.next();
        self.takes(self) && touched.any(|mask| Some(mask) != first)
    }

    fn collides(&self, other: &Self) -> bool {
        self.takes(other) || other.takes(self)
    }
}

struct Eye<'a> {
    objects: &'a [Object],
    fields: Vec<(&'a Object, &'a Field)>,
    players: &'a [Player],
    lines: Vec<Owned<'a>>,
}

impl<'a> Eye<'a> {
    fn parts(&self, owned: &Owned<'a>) -> Vec<Part<'a>> {
        let mut parts: Vec<Part<'a>> = owned
            .owners
            .iter()
            .map(|&(at, mask)| {
                let (object, field) = self.fields[at];
                let unit = match &field.sharing {
                    Sharing::Apart => Unit::Field(at),
                    Sharing::OneLine(group) | Sharing::SideBySide(group) => {
                        Unit::Group(object.start, &group.group)
                    }
                };
                Part { unit, field: Some(at), line: owned.line, mask }
            })
            .collect();
        if owned.rest != 0 {
            parts.push(Part { unit: Unit::Rest, field: None, line: owned.line, mask: owned.rest });
        }
        parts
    }

    fn shared_falsely(&self) -> Vec<SeenFinding> {
        let mut findings = Vec::new();
        for owned in &self.lines {
            let parts = self.parts(owned);
            let others = match owned.line.sharing {
                Verdict::False | Verdict::Mixed => self.parts(owned),
                Verdict::Pair => self
                    .lines
                    .binary_search_by_key(&(owned.line.address ^ LINE), |other| other.line.address)
                    .map_or_else(|_| Vec::new(), |at| self.parts(&self.lines[at])),
                Verdict::Private | Verdict::ReadOnly | Verdict::True => continue,
            };
            let two = parts.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
            let apart = two.clone().filter(|(one, other)| one.unit != other.unit);
            let mut apart = apart.filter(|(one, other)| one.collides(other));
            // A pair is told once, from its first line.
            let second = owned.line.sharing == Verdict::Pair && owned.line.address & LINE != 0;
            if let Some((one, other)) = apart.next() {
                let told = others.iter().any(|other| other.line.sharing == Verdict::Pair);
                if !(second && told) {
                    findings.push(self.finding(SeenKind::SharedFalsely, one, Some(other)));
                }
            } else if owned.line.sharing != Verdict::Pair {
                // Nothing else was on the line, so that the field itself is more than one.
                let within =
                    |part: &&Part<'_>| part.is_torn() && !matches!(part.unit, Unit::Group(..));
                if let Some(part) = parts.iter().find(within) {
                    findings.push(self.finding(SeenKind::SharedFalsely, part, None));
                }
            }
        }
        findings
    }

    fn undeclared(&self) -> impl Iterator<Item = SeenFinding> {
        self.lines.iter().filter_map(|owned| {
            let mask = owned.line.shared_bytes() & owned.rest;
            let part = Part { unit: Unit::Rest, field: None, line: owned.line, mask };
            (mask != 0).then(|| self.finding(SeenKind::Undeclared, &part, None))
        })
    }

    fn wrong_writers(&self) -> Vec<SeenFinding> {
        let mut findings: BTreeMap<usize, SeenFinding> = BTreeMap::new();
        let mut alone: BTreeMap<(usize, String), usize> = BTreeMap::new();
        for owned in &self.lines {
            for &(at, mask) in &owned.owners {
                let (object, field) = self.fields[at];
                let part = Part { unit: Unit::Field(at), field: Some(at), line: owned.line, mask };
                for thread in self.writers(&part) {
                    let wrong = match &field.writers {
                        Role::Nobody => true,
                        Role::Anybody => false,
                        Role::Named { name, nth } => {
                            let one = nth.is_some() || field.alone && name != IN_TURN;
                            let role = (object.start, field.writers.to_string());
                            let first = *alone.entry(role).or_insert(thread);
                            one && first != thread || !self.may(thread, name)
                        }
                    };
                    if wrong {
                        findings
                            .entry(at)
                            .or_insert_with(|| self.finding(SeenKind::WrongWriter, &part, None));
                    }
                }
            }
        }
        findings.into_values().collect()
    }

    /// Whether a thread may have a role.
    fn may(&self, thread: usize, role: &str) -> bool {
        let has = |player: &Player| player.roles.contains(&role);
        self.players.get(thread).is_some_and(has) || !self.players.iter().any(has)
    }

    /// Threads that touched a part in a certain way.
    fn threads(&self, part: &Part<'_>, how: fn(&simulator::Touches) -> u64) -> Vec<usize> {
        let cores = part.line.cores.iter().filter(|core| how(core) & part.mask != 0);
        let number = |cpu| self.players.iter().position(|player| player.cpu == cpu);
        cores.filter_map(|core| number(core.cpu)).collect()
    }

    fn writers(&self, part: &Part<'_>) -> Vec<usize> {
        self.threads(part, |core| core.written)
    }

    fn finding(&self, kind: SeenKind, part: &Part<'_>, with: Option<&Part<'_>>) -> SeenFinding {
        let first = u64::from(part.mask.trailing_zeros());
        SeenFinding {
            kind,
            what: self.told(part),
            with: with.map(|with| self.told(with)),
            address: part.line.address + first,
            bytes: LINE - u64::from(part.mask.leading_zeros()) - first,
            writers: self.writers(part),
            readers: self.threads(part, |core| core.read),
            place: part.line.places.first().and_then(|place| place.line.clone()),
        }
    }

    fn told(&self, part: &Part<'_>) -> String {
        if let Some(at) = part.field {
            let (object, field) = self.fields[at];
            return Spot::of(object, field).to_string();
        }
        let address = part.line.address + u64::from(part.mask.trailing_zeros());
        let last = part.line.address + (LINE - 1) - u64::from(part.mask.leading_zeros());
        let inside = |object: &&Object| {
            let from = object.start as u64;
            (from..from.saturating_add(object.bytes as u64)).contains(&address)
        };
        match self.objects.iter().find(inside) {
            Some(object) => {
                let (from, to) = (address - object.start as u64, last - object.start as u64);
                format!("{} (bytes {from}..{}, in no field)", object.name, to + 1)
            }
            None => format!("{} at {address:#x}, in no field", part.line.object),
        }
    }
}

impl SeenKind {
    /// Gives the word of records and of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::SharedFalsely => "shared_falsely",
            Self::Undeclared => "undeclared",
            Self::WrongWriter => "wrong_writer",
        }
    }
}

impl SeenFinding {
    /// Says in a sentence what to do.
    pub fn remedy(&self) -> &'static str {
        match (self.kind, &self.with) {
            (SeenKind::SharedFalsely, Some(_)) => {
                "put each into CachePadded, or declare them together with the reason"
            }
            (SeenKind::SharedFalsely, None) => {
                "it holds words that different threads use: give each lines of its own, or \
                 declare them one by one, together and with the reason"
            }
            (SeenKind::Undeclared, _) => "declare these bytes, with who writes and who reads them",
            (SeenKind::WrongWriter, _) => {
                "declare who writes it: `Many` where several do, also one after the other; `One` \
                 and `Nth` are one thread, but for the `holder`"
            }
        }
    }
}

fn threads(threads: &[usize]) -> String {
    match threads {
        [] => "no thread".to_owned(),
        [one] => format!("thread {one}"),
        several => {
            let numbers: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("threads {}", numbers.join(","))
        }
    }
}

impl fmt::Display for SeenFinding {
    /// What is wrong, where, and what to do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, with, writers, readers, place, .. } = self;
        let (wrote, read) = (threads(writers), threads(readers));
        match (self.kind, with) {
            (SeenKind::SharedFalsely, Some(with)) => {
                write!(f, "simulated: {what} and {with} took a line from one another")?;
            }
            (SeenKind::SharedFalsely, None) => {
                write!(f, "simulated: {what} was shared falsely within itself")?;
            }
            (SeenKind::Undeclared | SeenKind::WrongWriter, _) => {
                write!(f, "simulated: {what} was written by {wrote} and read by {read}")?;
            }
        }
        if let Some(place) = place {
            write!(f, ", {place}")?;
        }
        write!(f, "; {}", self.remedy())
    }
}

#[cfg(test)]
mod tests;

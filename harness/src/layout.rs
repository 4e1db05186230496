//! Which fields share a line and should not, on plain data: addresses, who writes, who reads.
//!
//! The caller describes objects that exist: where they are and which of their bytes which threads
//! write and read in an operation. [`check`] finds what costs transfers that nobody meant:
//!
//! | [`Kind`] | finds |
//! |---|---|
//! | `line` | two fields on one line, of which a thread writes one and another thread uses the other |
//! | `pair` | the same on two lines that the machine prefetches together |
//! | `neighbours` | the same between two objects, or an object that claims lines of its own and touches another |
//! | `misaligned` | a field or an object that is not aligned as claimed |
//! | `straddles` | a field that is written, that a line would hold, and that lies on two |
//! | `not_together` | fields that are declared together and are not |
//! | `no_reason` | fields that are declared together without a reason |
//!
//! ```
//! use harness::layout::{Field, Lines, Object, Role, check};
//!
//! let (producer, consumer) = (Role::named("producer"), Role::named("consumer"));
//! let tail = Field::at("tail", 0x1000, 8).written_by(producer.clone()).read_by(consumer.clone());
//! let head = Field::at("head", 0x1008, 8).written_by(consumer).read_by(producer);
//! let ring = Object { align: 64, ..Object::at("ring", 0x1000, 64) }.with([tail, head]);
//! let checked = check(&[ring], Lines { line: 64, pair: None });
//! assert_eq!(checked.findings.len(), 1);
//! println!("{}", checked.findings[0]);
//! ```
//!
//! [`confirm`] compares what objects say with what a simulated machine saw of their bytes.
//!
//! Types that describe themselves, with the `HotFields` of a primitive crate, are taken over by
//! [`described!`](crate::described).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

mod described;
mod finding;
mod seen;

pub use described::{index_arrays_only, together};
pub use finding::{Finding, Kind, Spot};
pub use seen::{IN_TURN, Player, Seen, SeenFinding, SeenKind, confirm};

/// Who does something with a field. Equal roles of one object are the same threads; roles of
/// different objects are different ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// No thread.
    Nobody,
    /// The threads of this name, the `nth` of several alike if there is a number.
    Named {
        /// What they are.
        name: Cow<'static, str>,
        /// Which of them.
        nth: Option<usize>,
    },
    /// Any thread: never the same as another role, nor as itself.
    Anybody,
}

/// Whether a field may lie with others on one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sharing {
    /// It may not.
    Apart,
    /// All fields of the group lie on one line.
    OneLine(Together),
    /// The elements of the group follow one another and may share lines.
    SideBySide(Together),
}

/// Fields that share lines on purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Together {
    /// The group, within its object.
    pub group: Cow<'static, str>,
    /// Why.
    pub because: Cow<'static, str>,
}

/// Some bytes and who uses them.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Which element of an array, if it is one.
    pub index: Option<usize>,
    /// Address of the first byte.
    pub start: usize,
    /// Number of bytes.
    pub bytes: usize,
    /// What the address is claimed to be a multiple of.
    pub align: usize,
    /// Who writes it.
    pub writers: Role,
    /// Whether one thread at a time has the writers' role.
    pub alone: bool,
    /// Who reads it, besides its writers.
    pub readers: Role,
    /// Whether it may lie with others on one line.
    pub sharing: Sharing,
}

/// An object with its fields, some of which may lie elsewhere.
#[derive(Debug, Clone)]
pub struct Object {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Address of the first byte.
    pub start: usize,
    /// Number of bytes.
    pub bytes: usize,
    /// What the address is claimed to be a multiple of.
    pub align: usize,
    /// Whether it claims lines (and pairs) of its own.
    pub alone: bool,
    /// What its threads use.
    pub fields: Vec<Field>,
}

/// What the machine moves at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Bytes of a cache line, a power of two.
    pub line: usize,
    /// Bytes of an aligned pair of lines, where the machine prefetches pairs.
    pub pair: Option<usize>,
}

/// What was looked at and found.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// Objects.
    pub objects: usize,
    /// Fields that some thread uses.
    pub fields: usize,
    /// Lines that those fields touch.
    pub lines: usize,
    /// What is wrong, by address.
    pub findings: Vec<Finding>,
}

impl Role {
    /// The threads of this name.
    pub fn named(name: impl Into<Cow<'static, str>>) -> Self {
        Self::Named { name: name.into(), nth: None }
    }

    /// One of several threads alike.
    pub fn nth(name: impl Into<Cow<'static, str>>, nth: usize) -> Self {
        Self::Named { name: name.into(), nth: Some(nth) }
    }

    fn is_somebody(&self) -> bool {
        *self != Self::Nobody
    }

    /// Whether no thread but those of `self` is in `other`.
    fn covers(&self, other: &Self) -> bool {
        !other.is_somebody() || (self == other && *self != Self::Anybody)
    }
}

impl Field {
    /// A field that nobody uses; the other functions say more.
    pub fn at(name: impl Into<Cow<'static, str>>, start: usize, bytes: usize) -> Self {
        Self {
            name: name.into(),
            index: None,
            start,
            bytes,
            align: 1,
            writers: Role::Nobody,
            alone: false,
            readers: Role::Nobody,
            sharing: Sharing::Apart,
        }
    }

    /// Says who writes it.
    #[must_use]
    pub fn written_by(self, writers: Role) -> Self {
        Self { writers, ..self }
    }

    /// Says that one thread at a time writes it; [`confirm`] looks whether it is so.
    #[must_use]
    pub fn alone(self) -> Self {
        Self { alone: true, ..self }
    }

    /// Says who reads it, besides its writers.
    #[must_use]
    pub fn read_by(self, readers: Role) -> Self {
        Self { readers, ..self }
    }

    /// Claims that the address is a multiple of `align`.
    #[must_use]
    pub fn aligned(self, align: usize) -> Self {
        Self { align, ..self }
    }

    /// Declares that it lies on one line with the rest of the group.
    #[must_use]
    pub fn one_line(self, group: &'static str, because: &'static str) -> Self {
        Self { sharing: Sharing::OneLine(together(group, because)), ..self }
    }

    /// Declares that it follows, or is followed by, the rest of the group.
    #[must_use]
    pub fn side_by_side(self, group: &'static str, because: &'static str) -> Self {
        Self { sharing: Sharing::SideBySide(together(group, because)), ..self }
    }

    /// Whether some thread uses it, and it has bytes.
    fn is_hot(&self) -> bool {
        self.bytes > 0 && (self.writers.is_somebody() || self.readers.is_somebody())
    }

    fn last(&self) -> usize {
        self.start.saturating_add(self.bytes - 1)
    }

    /// Whether a thread that writes this field takes it away from a thread that uses `other`.
    fn disturbs(&self, other: &Self, same_object: bool) -> bool {
        let used = other.writers.is_somebody() || other.readers.is_somebody();
        let same_threads = same_object
            && self.writers.covers(&other.writers)
            && self.writers.covers(&other.readers);
        self.writers.is_somebody() && used && !same_threads
    }
}

impl Sharing {
    fn together(&self) -> Option<&Together> {
        match self {
            Self::Apart => None,
            Self::OneLine(together) | Self::SideBySide(together) => Some(together),
        }
    }
}

impl Object {
    /// An object without fields that claims nothing.
    pub fn at(name: impl Into<Cow<'static, str>>, start: usize, bytes: usize) -> Self {
        Self { name: name.into(), start, bytes, align: 1, alone: false, fields: Vec::new() }
    }

    /// Adds fields.
    #[must_use]
    pub fn with(mut self, fields: impl IntoIterator<Item = Field>) -> Self {
        self.fields.extend(fields);
        self
    }
}

/// A field that some thread uses, and the number of its object.
#[derive(Clone, Copy)]
struct Hot<'a> {
    field: &'a Field,
    object: usize,
}

struct Checker<'a> {
    objects: &'a [Object],
    lines: Lines,
    findings: Vec<Finding>,
}

/// Looks at all fields of all objects together.
///
/// A field that disturbs several others on one line is reported once for each that it disturbs,
/// with the one before it in memory that is nearest. Lines of 0 bytes hold nothing: use
/// [`Lines`] from [`crate::line_sizes`].
pub fn check(objects: &[Object], lines: Lines) -> Checked {
    let mut hot: Vec<Hot<'_>> = objects
        .iter()
        .enumerate()
        .flat_map(|(object, fields)| fields.fields.iter().map(move |field| Hot { field, object }))
        .filter(|hot| hot.field.is_hot())
        .collect();
    hot.sort_by_key(|hot| (hot.field.start, hot.object));
    let line = lines.line.max(1);
    let lines = Lines { line, pair: lines.pair.filter(|&pair| pair > line) };
    let mut checker = Checker { objects, lines, findings: Vec::new() };
    checker.alignment(&hot);
    checker.conflicts(&hot);
    checker.claims_of_objects();
    for (number, object) in objects.iter().enumerate() {
        checker.groups(number, object);
    }
    let mut findings = checker.findings;
    findings.sort_by_key(|finding| finding.first.address);
    Checked { objects: objects.len(), fields: hot.len(), lines: touched(&hot, line), findings }
}

/// Counts the lines that sorted fields touch.
fn touched(hot: &[Hot<'_>], line: usize) -> usize {
    let (mut count, mut next) = (0, 0);
    for Hot { field, .. } in hot {
        let (first, last) = (field.start / line, field.last() / line);
        let first = first.max(next);
        if last >= first {
            count += last - first + 1;
            next = last + 1;
        }
    }
    count
}

impl<'a> Checker<'a> {
    fn spot(&self, hot: Hot<'a>) -> Spot {
        Spot::of(&self.objects[hot.object], hot.field)
    }

    fn found(&mut self, kind: Kind, first: Spot, second: Option<Spot>, block: (usize, usize)) {
        let (address, bytes) = block;
        let block = address / bytes.max(1) * bytes.max(1);
        self.findings.push(Finding { kind, first, second, block, block_bytes: bytes });
    }

    fn alignment(&mut self, hot: &[Hot<'a>]) {
        let line = self.lines.line;
        for object in self.objects {
            if object.align > 1 && !object.start.is_multiple_of(object.align) {
                let block = (object.start, object.align);
                self.found(Kind::Misaligned, Spot::whole(object), None, block);
            }
        }
        for &hot in hot {
            let field = hot.field;
            if field.align > 1 && !field.start.is_multiple_of(field.align) {
                let block = (field.start, field.align);
                self.found(Kind::Misaligned, self.spot(hot), None, block);
            }
            let two_lines = field.start / line != field.last() / line;
            let side_by_side = matches!(field.sharing, Sharing::SideBySide(_));
            let written = field.writers.is_somebody();
            if two_lines && written && field.bytes <= line && !side_by_side {
                self.found(Kind::Straddles, self.spot(hot), None, (field.start, line));
            }
        }
    }

    /// Each field against those before it that reach into its first line or pair.
    fn conflicts(&mut self, hot: &[Hot<'a>]) {
        let block = self.lines.pair.unwrap_or(self.lines.line);
        // The farthest byte of all fields up to each.
        let farthest: Vec<usize> = hot
            .iter()
            .scan(0, |far, hot| {
                *far = hot.field.last().max(*far);
                Some(*far)
            })
            .collect();
        for (at, &later) in hot.iter().enumerate() {
            let first = later.field.start / block;
            let before = (0..at).rev().take_while(|&i| farthest[i] / block >= first);
            let near: Vec<Hot<'a>> = before
                .map(|i| hot[i])
                .filter(|earlier| earlier.field.last() / block >= first)
                .filter(|&earlier| conflict(earlier, later))
                .collect();
            let line = later.field.start / self.lines.line;
            let on_line = near.iter().find(|hot| hot.field.last() / self.lines.line >= line);
            let (kind, size, earlier) = match (on_line, near.first()) {
                (Some(&earlier), _) => (Kind::Line, self.lines.line, earlier),
                (None, Some(&earlier)) => (Kind::Pair, block, earlier),
                (None, None) => continue,
            };
            let kind = if earlier.object == later.object { kind } else { Kind::Neighbours };
            let spots = (self.spot(earlier), self.spot(later));
            self.found(kind, spots.0, Some(spots.1), (later.field.start, size));
        }
    }

    /// Objects that claim to be alone and whose first or last lines others reach into.
    fn claims_of_objects(&mut self) {
        let block = self.lines.pair.unwrap_or(self.lines.line);
        let last = |object: &Object| object.start.saturating_add(object.bytes - 1) / block;
        let named: BTreeSet<(usize, usize)> = self
            .findings
            .iter()
            .filter(|finding| finding.kind == Kind::Neighbours)
            .filter_map(|finding| {
                Some((finding.first.object_at, finding.second.as_ref()?.object_at))
            })
            .collect();
        let mut order: Vec<&Object> = self.objects.iter().filter(|o| o.bytes > 0).collect();
        order.sort_by_key(|object| object.start);
        for two in order.windows(2) {
            let touch = last(two[0]) >= two[1].start / block && (two[0].alone || two[1].alone);
            if touch && !named.contains(&(two[0].start, two[1].start)) {
                let spots = (Spot::whole(two[0]), Spot::whole(two[1]));
                self.found(Kind::Neighbours, spots.0, Some(spots.1), (two[1].start, block));
            }
        }
    }

    fn groups(&mut self, number: usize, object: &'a Object) {
        let mut groups: BTreeMap<(bool, &str), Vec<&'a Field>> = BTreeMap::new();
        for field in object.fields.iter().filter(|field| field.is_hot()) {
            if let Some(together) = field.sharing.together() {
                let one_line = matches!(field.sharing, Sharing::OneLine(_));
                groups.entry((one_line, &together.group)).or_default().push(field);
            }
        }
        let line = self.lines.line;
        for ((one_line, _), mut fields) in groups {
            fields.sort_by_key(|field| field.start);
            let spot = |field| Hot { field, object: number };
            let unexplained = |field: &&Field| {
                field.sharing.together().is_some_and(|together| together.because.trim().is_empty())
            };
            if let Some(&field) = fields.iter().find(|field| unexplained(field)) {
                self.found(Kind::NoReason, self.spot(spot(field)), None, (field.start, line));
            }
            let mut reached = fields[0].last();
            for two in fields.windows(2) {
                let (before, after) = (two[0], two[1]);
                // On one line all end where the first begins; side by side no line is left out.
                let apart = if one_line {
                    after.last() / line != fields[0].start / line
                } else {
                    after.start / line > reached / line + 1
                };
                reached = reached.max(after.last());
                if apart {
                    let spots = (self.spot(spot(before)), self.spot(spot(after)));
                    self.found(Kind::NotTogether, spots.0, Some(spots.1), (after.start, line));
                }
            }
        }
    }
}

fn conflict(a: Hot<'_>, b: Hot<'_>) -> bool {
    let same_object = a.object == b.object;
    let declared = same_object
        && a.field.sharing.together().is_some()
        && std::mem::discriminant(&a.field.sharing) == std::mem::discriminant(&b.field.sharing)
        && a.field.sharing.together().map(|t| &t.group)
            == b.field.sharing.together().map(|t| &t.group);
    !declared && (a.field.disturbs(b.field, same_object) || b.field.disturbs(a.field, same_object))
}

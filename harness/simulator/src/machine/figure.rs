//! Figures with where they come from and how much they are to be trusted.

use std::fmt;

/// Says how much a figure is to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// Measured on this machine or on one of the same model.
    Measured,
    /// Stated by the maker.
    Specified,
    /// Computed from measured figures, or measured on a near relative.
    Derived,
    /// Plausible and not checked.
    Assumed,
}

impl Confidence {
    pub(super) const ALL: [Confidence; 4] =
        [Confidence::Measured, Confidence::Specified, Confidence::Derived, Confidence::Assumed];

    /// Gives the word that machine files use.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Confidence::Measured => "measured",
            Confidence::Specified => "specified",
            Confidence::Derived => "derived",
            Confidence::Assumed => "assumed",
        }
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Holds what a field of a machine file may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FigureValue {
    /// How many.
    Count(usize),
    /// A time, a rate or a ratio, in the unit that ends the field's name.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// One of the words that the field knows.
    Word(&'static str),
}

impl fmt::Display for FigureValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FigureValue::Count(count) => write!(f, "{count}"),
            FigureValue::Number(number) => write!(f, "{number}"),
            FigureValue::Flag(flag) => write!(f, "{flag}"),
            FigureValue::Word(word) => f.write_str(word),
        }
    }
}

/// Holds one figure of a machine file.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The field: `transfer.same_l3_ns`.
    pub field: &'static str,
    /// Its value.
    pub value: FigureValue,
    /// Where the value comes from.
    pub source: String,
    /// How much it is to be trusted.
    pub confidence: Confidence,
    /// Whether the file says nothing and this is what holds then.
    pub by_default: bool,
}

/// The figures of a machine. Which fields are there was checked when the file was read; an
/// accessor that is asked for another one is a mistake in this crate and panics.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures(Vec<Figure>);

impl Figures {
    pub(super) fn push(&mut self, figure: Figure) {
        self.0.push(figure);
    }

    /// Orders the figures by what `key` says about their fields.
    pub(super) fn sort_by_key<K: Ord>(&mut self, key: impl Fn(&str) -> K) {
        self.0.sort_by_key(|figure| key(figure.field));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Figure> {
        self.0.iter()
    }

    pub(super) fn get(&self, field: &str) -> Option<FigureValue> {
        self.0.iter().find(|figure| figure.field == field).map(|figure| figure.value)
    }

    pub(super) fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    pub(super) fn number(&self, field: &str) -> f64 {
        match self.get(field) {
            Some(FigureValue::Number(number)) => number,
            other => panic!("{field} is no number of a machine: {other:?}"),
        }
    }

    pub(super) fn count(&self, field: &str) -> usize {
        match self.get(field) {
            Some(FigureValue::Count(count)) => count,
            other => panic!("{field} is no count of a machine: {other:?}"),
        }
    }

    pub(super) fn flag(&self, field: &str) -> bool {
        match self.get(field) {
            Some(FigureValue::Flag(flag)) => flag,
            other => panic!("{field} is no flag of a machine: {other:?}"),
        }
    }

    pub(super) fn word(&self, field: &str) -> &'static str {
        match self.get(field) {
            Some(FigureValue::Word(word)) => word,
            other => panic!("{field} is no word of a machine: {other:?}"),
        }
    }
}

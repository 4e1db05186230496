//! A line of records read for a part of what it holds: accepts what [`Point`] accepts, and
//! allocates next to nothing.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::records::{Point, SCHEMA, Status};
use crate::stats::SplitMix;
use words::Words;

pub(crate) mod words;

/// A point of which the figures are read as `M` reads them.
#[derive(Deserialize)]
#[serde(bound(deserialize = "M: Deserialize<'de>"))]
pub(crate) struct Light<'a, M> {
    #[serde(borrow)]
    record: Cow<'a, str>,
    schema: Option<u64>,
    #[serde(borrow)]
    pub(crate) run: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) engine: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) machine: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) primitive: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) variant: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) workload: Words<'a>,
    pub(crate) threads: usize,
    #[serde(borrow)]
    pub(crate) placement: Cow<'a, str>,
    /// What tells one list of CPUs from another.
    pub(crate) cpus: Numbers<u32>,
    pub(crate) seed: u64,
    pub(crate) repeat: u64,
    pub(crate) status: Status,
    #[serde(rename = "reasons", borrow)]
    _reasons: Vec<Cow<'a, str>>,
    pub(crate) metrics: M,
    #[serde(rename = "per_thread")]
    _per_thread: AnyMap<Numbers<u64>>,
}

impl<'a, M: Deserialize<'a>> Light<'a, M> {
    /// Reads a line that is a whole point of this schema; `None` for all others, among which there
    /// may be points that only [`records::parse`](crate::records::parse) understands.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        // At once: otherwise each text is looked at by itself.
        let light = serde_json::from_str::<Self>(std::str::from_utf8(line).ok()?).ok()?;
        let whole = light.record == "point" && light.schema.is_none_or(|schema| schema <= SCHEMA);
        whole.then_some(light)
    }
}

impl<'a, M> Light<'a, M> {
    /// Shows a point that was read the long way.
    pub(crate) fn of(point: &'a Point, metrics: M) -> Self {
        Self {
            record: Cow::Borrowed(&point.record),
            schema: None,
            run: Cow::Borrowed(&point.run),
            engine: Cow::Borrowed(&point.engine),
            machine: Cow::Borrowed(&point.machine),
            primitive: Cow::Borrowed(&point.primitive),
            variant: Cow::Borrowed(&point.variant),
            workload: Words::of(&point.workload),
            threads: point.threads,
            placement: Cow::Borrowed(&point.placement),
            cpus: Numbers::of(&point.cpus),
            seed: point.seed,
            repeat: point.repeat,
            status: point.status,
            _reasons: Vec::new(),
            metrics,
            _per_thread: AnyMap(PhantomData),
        }
    }
}

/// A map whose values are checked and dropped.
pub(crate) struct AnyMap<V>(PhantomData<V>);

/// Figures that nobody asks for.
pub(crate) type Unread = AnyMap<IgnoredAny>;

impl<V> Default for AnyMap<V> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for AnyMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Each<V> {
            type Value = AnyMap<V>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, V>()?.is_some() {}
                Ok(AnyMap(self.0))
            }
        }
        deserializer.deserialize_map(Each(PhantomData))
    }
}

/// A list of numbers, of which a hash is kept.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Numbers<T>(u64, PhantomData<T>);

impl<T: Copy + Into<u64>> Numbers<T> {
    fn of(numbers: &[T]) -> Self {
        let with = |so_far, &number: &T| Self::with(so_far, number.into());
        Self(numbers.iter().fold(0, with), PhantomData)
    }

    /// Mixes all bits, so that lists of small numbers get hashes far apart.
    fn with(so_far: u64, number: u64) -> u64 {
        SplitMix(so_far.rotate_left(1) ^ number).next_u64()
    }
}

impl<'de, T: Deserialize<'de> + Copy + Into<u64>> Deserialize<'de> for Numbers<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Copy + Into<u64>> Visitor<'de> for Each<T> {
            type Value = Numbers<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut hash = 0;
                while let Some(number) = list.next_element::<T>()? {
                    hash = Numbers::<T>::with(hash, number.into());
                }
                Ok(Numbers(hash, PhantomData))
            }
        }
        deserializer.deserialize_seq(Each(PhantomData))
    }
}

/// A map's key, borrowed from the line where it can be.
#[derive(Deserialize)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

//! A line of records read for a part of what it holds: accepts what [`Point`] accepts, and
//! allocates next to nothing.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use crate::records::{Point, SCHEMA, Status};

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
    pub(crate) workload: Map<String, Value>,
    pub(crate) threads: usize,
    #[serde(borrow)]
    pub(crate) placement: Cow<'a, str>,
    pub(crate) cpus: Vec<u32>,
    pub(crate) seed: u64,
    pub(crate) repeat: u64,
    pub(crate) status: Status,
    #[serde(rename = "reasons", borrow)]
    _reasons: Vec<Cow<'a, str>>,
    pub(crate) metrics: M,
    #[serde(rename = "per_thread")]
    _per_thread: AnyMap<Vec<u64>>,
}

impl<'a, M: Deserialize<'a>> Light<'a, M> {
    /// Reads a line that is a whole point of this schema; `None` for all others, among which there
    /// may be points that only [`records::parse`](crate::records::parse) understands.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        let light = serde_json::from_slice::<Self>(line).ok()?;
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
            workload: point.workload.clone(),
            threads: point.threads,
            placement: Cow::Borrowed(&point.placement),
            cpus: point.cpus.clone(),
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

/// A map's key, borrowed from the line where it can be.
#[derive(Deserialize)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

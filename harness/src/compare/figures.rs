//! The figures of a point that are compared, and where those of a million points are kept.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::rules::{RULES, position};
use crate::light::Key;
use crate::records::Metric;

/// A figure with its interval, which is the figure itself where it has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Lower end of its interval or band.
    pub low: f64,
    /// Upper end of its interval or band.
    pub high: f64,
    /// Whether the record gave the ends.
    pub interval: bool,
}

impl Figure {
    fn new(value: f64, low: Option<f64>, high: Option<f64>) -> Self {
        let interval = low.is_some() && high.is_some();
        let end = |end: Option<f64>| end.filter(|_| interval).unwrap_or(value);
        Self { value, low: end(low), high: end(high), interval }
    }
}

/// What a point has of the metrics that are compared, by position in [`RULES`]; `None` for a figure
/// that has a reason in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures(pub(super) Vec<(usize, Option<Figure>)>);

impl Figures {
    /// Gives the figure of a metric; `None` where the point does not speak of it.
    pub(super) fn of(&self, at: usize) -> Option<Option<Figure>> {
        self.0.iter().find(|(metric, _)| *metric == at).map(|(_, figure)| *figure)
    }

    /// Takes what a point that was read the long way has.
    pub(super) fn from_metrics(metrics: &BTreeMap<String, Metric>) -> Self {
        let figure = |metric: &Metric| match metric {
            Metric::Count { value } => Some(Figure::new(*value as f64, None, None)),
            Metric::Figure { value, low, high } => Some(Figure::new(*value, *low, *high)),
            Metric::Missing(_) | Metric::Other(_) => None,
        };
        let known = metrics.iter().filter_map(|(name, m)| Some((position(name)?, figure(m))));
        Self(known.collect())
    }
}

impl<'de> Deserialize<'de> for Figures {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Figures;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of metrics")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut figures = Vec::with_capacity(RULES.len());
                while let Some(Key(name)) = map.next_key()? {
                    let Some(at) = position(&name) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    let Ends { value, low, high } = map.next_value()?;
                    // Of a name that stands twice the last figure counts, as everywhere.
                    figures.retain(|(metric, _)| *metric != at);
                    figures.push((at, value.map(|value| Figure::new(value, low, high))));
                }
                Ok(Figures(figures))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// A figure as it is written. Other forms make the line take the long way.
#[derive(Deserialize)]
struct Ends {
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// Bytes of a page of the store.
const PAGE: usize = 1 << 20;

/// Figures of many points as bytes, page by page, so that nothing is ever copied to grow.
#[derive(Debug, Default)]
pub(super) struct Store {
    pages: Vec<Vec<u8>>,
}

/// Where the figures of a point are kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    page: u32,
    at: u32,
    figures: u16,
}

impl Store {
    pub(super) fn put(&mut self, figures: &Figures) -> Place {
        // A figure takes 25 bytes at the most.
        let room = figures.0.len() * 25;
        if self.pages.last().is_none_or(|page| page.len() + room > PAGE) {
            self.pages.push(Vec::with_capacity(PAGE));
        }
        let last = self.pages.len() - 1;
        let page = &mut self.pages[last];
        let at = page.len() as u32;
        for (metric, figure) in &figures.0 {
            let kind = match figure {
                None => 0,
                Some(figure) if !figure.interval => 1,
                Some(_) => 2,
            };
            page.push((*metric as u8) << 2 | kind);
            let Some(Figure { value, low, high, interval }) = figure else { continue };
            page.extend(value.to_le_bytes());
            if *interval {
                page.extend(low.to_le_bytes());
                page.extend(high.to_le_bytes());
            }
        }
        Place { page: last as u32, at, figures: figures.0.len() as u16 }
    }

    pub(super) fn get(&self, place: Place) -> Figures {
        let mut bytes = self.pages[place.page as usize][place.at as usize..].iter().copied();
        let number = |bytes: &mut dyn Iterator<Item = u8>| {
            let mut number = [0; 8];
            number.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
            f64::from_le_bytes(number)
        };
        let figures = (0..place.figures).map(|_| {
            let head = bytes.next().unwrap_or_default();
            let figure = match head & 3 {
                0 => None,
                1 => Some(Figure::new(number(&mut bytes), None, None)),
                _ => {
                    let value = number(&mut bytes);
                    let (low, high) = (number(&mut bytes), number(&mut bytes));
                    Some(Figure::new(value, Some(low), Some(high)))
                }
            };
            (usize::from(head >> 2), figure)
        });
        Figures(figures.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out() {
        let mut store = Store::default();
        let figures = Figures(vec![
            (24, None),
            (3, Some(Figure::new(-1.5e300, None, None))),
            (18, Some(Figure::new(2.0, Some(1.0), Some(3.5)))),
        ]);
        let places: Vec<Place> = (0..100_000).map(|_| store.put(&figures)).collect();
        let empty = store.put(&Figures::default());
        assert!(store.pages.len() > 2 && store.pages.iter().all(|page| page.capacity() == PAGE));
        assert!(places.iter().all(|&place| store.get(place) == figures));
        assert_eq!(store.get(empty), Figures::default());
        assert!(RULES.len() < 64, "six bits name a metric");
    }

    #[test]
    fn both_ways_of_reading_see_the_same() {
        let text = r#"{"ns_per_op":{"value":3.5,"low":2.5,"high":4},"ops":{"value":7},
            "rmw_per_op":{"unavailable":"no_pmu"},"bytes_per_object":{"value":64},
            "fairness_jain":{"value":0.5,"low":0.4}}"#;
        let short: Figures = serde_json::from_str(text).unwrap();
        let mut long = Figures::from_metrics(&serde_json::from_str(text).unwrap());
        assert_eq!(short.0.len(), 4);
        let by_place = |(metric, _): &(usize, Option<Figure>)| *metric;
        let mut sorted = short.clone();
        sorted.0.sort_by_key(by_place);
        long.0.sort_by_key(by_place);
        assert_eq!(sorted, long);
        assert_eq!(short.of(position("rmw_per_op").unwrap()), Some(None));
        assert_eq!(short.of(position("fences_per_op").unwrap()), None);
        assert!(serde_json::from_str::<Figures>(r#"{"ns_per_op":{"value":"x"}}"#).is_err());
    }
}

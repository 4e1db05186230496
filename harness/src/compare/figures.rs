//! The figures of a point that are compared, and where those of a million points are kept.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::rules::{Cursor, RULES, position};
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

    /// Widens the interval by what the clock cannot tell apart.
    pub(super) fn widened(self, resolution: f64) -> Self {
        let half = resolution / 2.0;
        Self { low: (self.low - half).max(0.0), high: self.high + half, ..self }
    }

    /// Whether a measurement can have given it: all that is compared is a number of something, and
    /// lies in its interval.
    pub(super) fn is_sound(self) -> bool {
        0.0 <= self.low && self.low <= self.value && self.value <= self.high
    }
}

/// What a point has of the metrics that are compared, by position in [`RULES`], sorted by it; `None`
/// for a figure that has a reason in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures(pub(super) Vec<(usize, Option<Figure>)>);

impl Figures {
    /// Sorts figures. Of a name that stands twice the last figure counts, as everywhere.
    fn sorted(mut figures: Vec<(usize, Option<Figure>)>) -> Self {
        if !figures.is_sorted_by(|(one, _), (next, _)| one < next) {
            figures.reverse();
            figures.sort_by_key(|(metric, _)| *metric);
            figures.dedup_by_key(|(metric, _)| *metric);
        }
        Self(figures)
    }

    /// Gives the metrics of which either point has a figure, with the figures.
    pub(super) fn of_either<'f>(
        &'f self,
        other: &'f Self,
    ) -> impl Iterator<Item = (usize, Option<Figure>, Option<Figure>)> + 'f {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let next = move || {
            let at = match (ours.peek(), theirs.peek()) {
                (None, None) => return None,
                (Some((at, _)), None) | (None, Some((at, _))) => *at,
                (Some((one, _)), Some((other, _))) => *one.min(other),
            };
            let figure = |figure: &(usize, Option<Figure>)| figure.1;
            let our = ours.next_if(|(metric, _)| *metric == at).and_then(figure);
            let their = theirs.next_if(|(metric, _)| *metric == at).and_then(figure);
            Some((at, our, their))
        };
        std::iter::from_fn(next).filter(|(_, our, their)| our.is_some() || their.is_some())
    }

    /// Takes what a point that was read the long way has.
    pub(super) fn from_metrics(metrics: &BTreeMap<String, Metric>) -> Self {
        let figure = |metric: &Metric| match metric {
            Metric::Count { value } => Some(Figure::new(*value as f64, None, None)),
            Metric::Figure { value, low, high } => Some(Figure::new(*value, *low, *high)),
            Metric::Missing(_) | Metric::Other(_) => None,
        };
        let known = metrics.iter().filter_map(|(name, m)| Some((position(name)?, figure(m))));
        Self::sorted(known.collect())
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
                let mut cursor = Cursor::default();
                while let Some(Key(name)) = map.next_key()? {
                    let Some(at) = cursor.position(&name) else {
                        map.next_value::<IgnoredAny>()?;
                        continue;
                    };
                    let Ends { value, low, high } = map.next_value()?;
                    figures.push((at, value.map(|value| Figure::new(value, low, high))));
                }
                Ok(Figures::sorted(figures))
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
    fn figures_meet_by_their_metrics() {
        let figure = |value| Some(Figure::new(value, None, None));
        let one = Figures(vec![(1, figure(1.0)), (3, None), (4, figure(4.0)), (6, None)]);
        let other = Figures(vec![(0, figure(0.0)), (3, None), (4, figure(5.0)), (6, figure(6.0))]);
        let met: Vec<_> = one.of_either(&other).collect();
        let (nothing, none) = (Figures::default(), None);
        assert_eq!(
            met,
            [
                (0, none, figure(0.0)),
                (1, figure(1.0), none),
                (4, figure(4.0), figure(5.0)),
                (6, none, figure(6.0))
            ]
        );
        assert_eq!(one.of_either(&nothing).count(), 2);
        assert_eq!(nothing.of_either(&nothing).count(), 0);
    }

    #[test]
    fn both_ways_of_reading_see_the_same() {
        let text = r#"{"ns_per_op":{"value":3.5,"low":2.5,"high":4},"ops":{"value":7},
            "rmw_per_op":{"unavailable":"no_pmu"},"bytes_per_object":{"value":64},
            "fairness_jain":{"value":0.5,"low":0.4}}"#;
        let short: Figures = serde_json::from_str(text).unwrap();
        let long = Figures::from_metrics(&serde_json::from_str(text).unwrap());
        assert_eq!(short.0.len(), 4);
        assert_eq!(short, long);
        let twice = text.replace("\"ops\":{\"value\":7}", "\"ns_per_op\":{\"value\":1}");
        let twice: Figures = serde_json::from_str(&twice).unwrap();
        let figure = (position("ns_per_op").unwrap(), Some(Figure::new(1.0, None, None)));
        assert!(twice.0.len() == 4 && twice.0.contains(&figure), "the last one counts: {twice:?}");
        assert!(serde_json::from_str::<Figures>(r#"{"ns_per_op":{"value":"x"}}"#).is_err());
    }
}

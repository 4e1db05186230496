//! Records of watched lines: what `manycore lines --out` keeps, and what the report draws.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::records::Metric;
use crate::simulated::{HotLine, Sharing};

/// So many instructions of a line are kept.
const PLACES: usize = 6;

/// The lines of one simulated point that were watched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lines {
    /// The word `lines`.
    pub record: String,
    /// The run it belongs to.
    pub run: String,
    /// What simulated it.
    pub engine: String,
    /// The machine, as in a point.
    pub machine: String,
    /// counters, locks, queues or alloc-arena.
    pub primitive: String,
    /// The row of the primitive's table.
    pub variant: String,
    /// What each thread did, `ops` among it.
    pub workload: Map<String, Value>,
    /// Number of threads.
    pub threads: usize,
    /// The placement policy.
    pub placement: String,
    /// The seed of everything drawn at random.
    pub seed: u64,
    /// Whether the machine fetches pairs of lines.
    pub fetches_pairs: bool,
    /// The point's own figures.
    pub metrics: BTreeMap<String, Metric>,
    /// The hottest lines, the costliest first.
    pub lines: Vec<Line>,
    /// Keys of later versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Its address, in hexadecimal.
    pub address: String,
    /// What lies there.
    pub object: String,
    /// How cores share it.
    pub sharing: Sharing,
    /// Bytes that one core wrote and another touched.
    pub shared_bytes: Bytes,
    /// Who touched it: cores that did the same are one row.
    pub rows: Vec<Row>,
    /// Transfers by distance.
    pub transfers: BTreeMap<String, u64>,
    /// Of the transfers, those that were needed.
    pub true_transfers: u64,
    /// Times that cores lost it by writes of others.
    pub invalidations: u64,
    /// How long cores waited for it to come from other cores, in nanoseconds.
    pub transfer_ns: f64,
    /// The instructions that touched it, the costliest first.
    pub places: Vec<Place>,
    /// Groups of bytes that should lie apart; none where nothing is wrong.
    pub apart: Vec<Bytes>,
    /// The figures with these bytes on lines of their own, if that was tried.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tried: BTreeMap<String, Metric>,
    /// Keys of later versions.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What cores did to a line, all of them the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The cores, by their numbers on the machine.
    pub cores: Vec<u32>,
    /// Bytes that they read.
    pub read: Bytes,
    /// Bytes that they wrote.
    pub written: Bytes,
    /// Times that they waited for the line to come from another core.
    pub transfers: u64,
    /// How long they waited for the line, in nanoseconds.
    pub stall_ns: f64,
}

/// An instruction that touched a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// File and line, or the function, or the address: the first of these that is known.
    pub at: String,
    /// The function.
    pub function: String,
    /// Accesses that read.
    pub loads: u64,
    /// Accesses that wrote.
    pub stores: u64,
    /// Times that the line came from another core for it.
    pub transfers: u64,
}

/// Some of the 64 bytes of a line, bit i for byte i; 16 hexadecimal digits in records, since JSON
/// numbers of other programs lose bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl Bytes {
    /// Says whether a byte is among them.
    pub fn has(self, byte: u32) -> bool {
        self.0.checked_shr(byte).is_some_and(|bits| bits & 1 == 1)
    }

    /// Gives the bytes in runs: the first of each, and how many.
    pub fn runs(self) -> Vec<(u32, u32)> {
        let mut runs = Vec::new();
        let mut at = 0;
        while at < u64::BITS {
            let length = self.0.checked_shr(at).unwrap_or(0).trailing_ones();
            if length > 0 {
                runs.push((at, length));
            }
            at += length.max(1);
        }
        runs
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<String> = self
            .runs()
            .into_iter()
            .map(|(first, length)| match length {
                1 => first.to_string(),
                length => format!("{first}-{}", first + length - 1),
            })
            .collect();
        f.write_str(&told.join(","))
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let plain = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = if plain { u64::from_str_radix(&text, 16).ok() } else { None };
        let wrong = || serde::de::Error::custom("bytes of a line are 16 hexadecimal digits");
        bits.map(Bytes).ok_or_else(wrong)
    }
}

impl Line {
    /// Gives the transfers over all distances; records can say what they please.
    pub fn all_transfers(&self) -> u64 {
        self.transfers.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Takes what was seen of a line.
    pub fn of(line: &HotLine) -> Line {
        let distances = [
            ("smt", line.transfers.smt),
            ("same_l3", line.transfers.same_l3),
            ("same_socket", line.transfers.same_socket),
            ("cross_socket", line.transfers.cross_socket),
        ];
        let places = line.places.iter().take(PLACES).map(|place| Place {
            at: place.line.clone().unwrap_or_else(|| place.function.clone()),
            function: place.function.clone(),
            loads: place.loads,
            stores: place.stores,
            transfers: place.transfers,
        });
        let apart = line.apart.iter().flat_map(|apart| &apart.groups);
        Line {
            address: format!("{:#x}", line.address),
            object: line.told(),
            sharing: line.sharing,
            shared_bytes: Bytes(line.shared_bytes()),
            rows: rows(line),
            transfers: distances.map(|(name, count)| (name.to_owned(), count)).into(),
            true_transfers: line.true_transfers,
            invalidations: line.invalidations,
            transfer_ns: nanoseconds(line.transfer_ps),
            places: places.collect(),
            apart: apart.map(|group| Bytes(*group)).collect(),
            tried: BTreeMap::new(),
            other: Map::new(),
        }
    }
}

fn rows(line: &HotLine) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for core in &line.cores {
        let (read, written) = (Bytes(core.read), Bytes(core.written));
        let (transfers, stall_ns) = (core.transfers, nanoseconds(core.stall_ps));
        match rows.iter_mut().find(|row| row.read == read && row.written == written) {
            Some(row) => {
                row.cores.push(core.cpu);
                row.transfers += transfers;
                row.stall_ns += stall_ns;
            }
            None => rows.push(Row { cores: vec![core.cpu], read, written, transfers, stall_ns }),
        }
    }
    rows
}

fn nanoseconds(picoseconds: u64) -> f64 {
    picoseconds as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_sixteen_digits_and_nothing_else() {
        for bits in [0, 1, u64::MAX, 0xff00_0000_0000_0000] {
            let text = serde_json::to_string(&Bytes(bits)).unwrap();
            assert_eq!(text.len(), 18, "{text}");
            assert_eq!(serde_json::from_str::<Bytes>(&text).unwrap(), Bytes(bits));
        }
        for bad in ["\"\"", "\"ff\"", "\"+00000000000000f\"", "\"00000000000000zz\"", "255", "null"]
        {
            assert!(serde_json::from_str::<Bytes>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn runs_of_bytes() {
        assert_eq!(Bytes(0).to_string(), "");
        assert_eq!(Bytes(u64::MAX).to_string(), "0-63");
        assert_eq!(Bytes(1 << 63 | 0b1101).to_string(), "0,2-3,63");
        assert_eq!(Bytes(0xff << 56).runs(), [(56, 8)]);
        assert!(Bytes(1 << 63).has(63) && !Bytes(1 << 63).has(64) && !Bytes(1).has(63));
    }
}

//! What was seen of lines, as a table and maps of bytes.

use core::fmt::{self, Display, Formatter, Write as _};

use crate::line_report::{Apart, HotLine, HotPlace, LineReport, Sharing, Touches};

/// Lines that are shown if not said otherwise.
const SHOWN: usize = 10;

/// Rows of a map of bytes.
const ROWS: usize = 8;

/// Places of the source that are shown of a line.
const PLACES: usize = 3;

/// The longest names: in the table, of a line's object, of a place of the source.
const NAME: usize = 34;
const OBJECT: usize = 56;
const SOURCE: usize = 45;
/// What the list of bytes that are put apart has.
const APART: usize = 70;
/// What a place of the source and its function have together.
const PLACE: usize = 68;

impl LineReport {
    /// Gives the transfers of all lines.
    pub fn transfers(&self) -> u64 {
        let told: u64 = self.lines.iter().map(|line| line.transfers.total()).sum();
        told + self.others.transfers
    }

    /// Gives a table of the first `top` lines, at most 100 columns wide.
    pub fn table(&self, top: usize) -> String {
        let all = self.transfers();
        let mut text = String::from(
            "  # sharing                transfers   share    waited µs  cores  what lies there\n",
        );
        for (i, line) in self.lines.iter().take(top).enumerate() {
            let transfers = line.transfers.total();
            let _ = writeln!(
                text,
                "{:>3} {:<22} {transfers:>9} {:>7} {:>12.3} {:>6}  {}",
                i + 1,
                line.sharing.text(),
                share(transfers, all),
                line.transfer_ps as f64 / 1e6,
                line.cores.len(),
                cut(&line.told(), NAME),
            );
        }
        let rest = self.lines.iter().skip(top);
        let (lines, transfers) = rest.fold((0, 0), |(lines, transfers), line| {
            (lines + 1, transfers + line.transfers.total())
        });
        let (lines, transfers) = (lines + self.others.lines, transfers + self.others.transfers);
        if lines > 0 {
            let share = share(transfers, all);
            let _ = writeln!(text, "    {:<22} {transfers:>9} {share:>7}", format!("{lines} more"));
        }
        text
    }
}

impl Display for LineReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(SHOWN))?;
        let shared = |line: &&HotLine| !matches!(line.sharing, Sharing::Private);
        for line in self.lines.iter().take(SHOWN).filter(shared) {
            write!(f, "\n{line}")?;
        }
        Ok(())
    }
}

/// Gives a part of all in per cent.
fn share(part: u64, all: u64) -> String {
    match all {
        0 => "-".to_owned(),
        all => format!("{:.1} %", 100.0 * part as f64 / all as f64),
    }
}

/// Shortens a text in its middle.
fn cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most / 2 - 1).collect();
    let tail: String = text.chars().skip(length - (most - most / 2 - 1)).collect();
    format!("{head}..{tail}")
}

impl Display for HotLine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:#x}: {}, {}", self.address, self.sharing.text(), cut(&self.told(), OBJECT))?;
        self.facts(f)?;
        self.map(f)?;
        for place in self.places.iter().take(PLACES) {
            writeln!(f, "  {place}")?;
        }
        if let Some(apart) = &self.apart {
            writeln!(f, "  to be put apart: {apart}")?;
        }
        if self.sharing == Sharing::Pair {
            f.write_str(
                "  to be aligned to 128 bytes; what pairs cost is not in the time above\n",
            )?;
        }
        Ok(())
    }
}

impl HotLine {
    fn facts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let transfers = self.transfers.total();
        let distances = [
            (self.transfers.smt, "same core"),
            (self.transfers.same_l3, "same L3"),
            (self.transfers.same_socket, "same socket"),
            (self.transfers.cross_socket, "across sockets"),
        ];
        write!(f, "  {transfers} transfer{}", if transfers == 1 { "" } else { "s" })?;
        let mut separator = ": ";
        for (count, distance) in distances.iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {distance}")?;
            separator = ", ";
        }
        if self.sharing == Sharing::Mixed {
            let share = share(self.true_transfers, transfers);
            write!(f, "\n  {share} of them for bytes that others had changed or used")?;
        }
        writeln!(f)
    }

    /// A row for each set of cores that did the same.
    fn map(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(Touches, Vec<u32>)> = Vec::new();
        for core in &self.cores {
            let same = |row: &&mut (Touches, Vec<u32>)| {
                (row.0.read, row.0.written) == (core.read, core.written)
            };
            match rows.iter_mut().find(same) {
                Some((_, cpus)) => cpus.push(core.cpu),
                None => rows.push((*core, vec![core.cpu])),
            }
        }
        writeln!(f, "  {:<18}0       8       16      24      32      40      48      56", "byte")?;
        for (touches, cpus) in rows.iter().take(ROWS) {
            let bytes: String = (0..64)
                .map(|bit| match (touches.read >> bit & 1, touches.written >> bit & 1) {
                    (0, 0) => '.',
                    (_, 0) => 'r',
                    (0, _) => 'w',
                    _ => 'x',
                })
                .collect();
            writeln!(f, "  {:<18}{bytes}", cut(&cores(cpus), 17))?;
        }
        if rows.len() > ROWS {
            writeln!(f, "  and {} more such rows", rows.len() - ROWS)?;
        }
        Ok(())
    }
}

/// Names cores, neighbours together.
fn cores(cpus: &[u32]) -> String {
    let word = if cpus.len() == 1 { "core" } else { "cores" };
    format!("{word} {}", ranges(cpus))
}

/// Writes numbers in order as ranges.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

impl Display for HotPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { function, line, loads, stores, .. } = self;
        let line = line.as_ref().map_or_else(|| format!("at {:#x}", self.rip), Clone::clone);
        let line = cut(&line, SOURCE);
        let counts = format!("{:<26}", format!("{loads} loads, {stores} stores:"));
        let taken = line.chars().count() + counts.len() - 26;
        write!(f, "{counts} {line} ({})", cut(function, PLACE.saturating_sub(taken).max(8)))
    }
}

impl Display for Apart {
    /// Names the groups that get lines of their own.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut text = String::from("bytes ");
        for (i, group) in self.groups.iter().enumerate() {
            let bytes: Vec<u32> = (0..64).filter(|bit| group >> bit & 1 != 0).collect();
            let separator = if i == 0 { "" } else { " | " };
            let group = format!("{separator}{}", cut(&ranges(&bytes), 17));
            if text.len() + group.len() > APART {
                let _ = write!(text, " | {} more", self.groups.len() - i);
                break;
            }
            text += &group;
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Transfers;

    fn line() -> HotLine {
        let core = |cpu, read, written| Touches { cpu, read, written, ..Touches::default() };
        HotLine {
            address: 0x1000,
            object: "COUNTERS".into(),
            sharing: Sharing::Mixed,
            cores: vec![core(0, 0xff, 0xf0), core(1, 0xff, 0xf0), core(5, 0, 1 << 63)],
            transfers: Transfers { same_l3: 3, cross_socket: 1, ..Transfers::default() },
            true_transfers: 1,
            invalidations: 0,
            memory_reads: 0,
            transfer_ps: 1_500_000,
            memory_ps: 0,
            places: vec![HotPlace {
                rip: 0x77,
                function: "add".into(),
                line: None,
                loads: 7,
                stores: 8,
                transfers: 4,
                stall_ps: 5,
            }],
            apart: Some(Apart { line: 0x1000, groups: vec![0xf0, 1 << 63] }),
        }
    }

    #[test]
    fn a_line_is_shown_with_its_bytes() {
        let expected = "\
0x1000: true and false sharing, COUNTERS
  4 transfers: 3 same L3, 1 across sockets
  25.0 % of them for bytes that others had changed or used
  byte              0       8       16      24      32      40      48      56
  cores 0-1         rrrrxxxx........................................................
  core 5            ...............................................................w
  7 loads, 8 stores:         at 0x77 (add)
  to be put apart: bytes 4-7 | 63
";
        assert_eq!(line().to_string(), expected);
    }

    #[test]
    fn the_table_is_no_wider_than_100_columns() {
        let long = HotLine { object: "a::very::long::name".repeat(9), ..line() };
        let lines = LineReport { lines: vec![line(), long, line()], ..LineReport::default() };
        let table = lines.table(2);
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
        assert!(table.contains("1 more"), "{table}");
        assert!(table.contains("  1 true and false sharing         4  33.3 %        1.500      3"));
        assert!(lines.to_string().lines().all(|line| line.chars().count() <= 100), "{lines}");
    }

    #[test]
    fn texts_are_cut_in_the_middle() {
        assert_eq!(cut("0123456789", 10), "0123456789");
        assert_eq!(cut("0123456789a", 10), "0123..789a");
        assert_eq!(cut("äöüäöüäöüäöü", 8), "äöü..äöü");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }
}

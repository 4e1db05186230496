//! Bytes on lines of their own, for the memory model only: what if fields lay elsewhere?
//!
//! The lots that a line is cut into are lines whose addresses no program can have: the line's own
//! with the lot's number above bit 56. All else is as it was.

use super::{Access, mask};
use crate::line_report::Apart;

/// Where a lot's number stands in an address.
const SHIFT: u32 = 56;

/// Gives the address that a program has for an address on a lot.
pub(crate) fn real(address: u64) -> u64 {
    address & ((1 << SHIFT) - 1)
}

/// Lines that are cut, by address.
#[derive(Debug)]
pub(super) struct Lots(Vec<Apart>);

impl Lots {
    pub(super) fn new(apart: &[Apart]) -> Self {
        let mut lines = apart.to_vec();
        lines.sort_by_key(|apart| apart.line);
        Self(lines)
    }

    fn of(&self, address: u64) -> Option<&Apart> {
        if self.0.is_empty() {
            return None;
        }
        let at = self.0.binary_search_by_key(&(address & !63), |apart| apart.line).ok()?;
        self.0.get(at)
    }

    /// Gives where an access is, and whether it is there on one line. What was given a place
    /// already keeps it.
    pub(super) fn place(&self, address: u64, bytes: u64) -> (u64, bool) {
        if address % 64 + bytes > 64 {
            return (address, false);
        }
        let Some(apart) = self.of(address) else { return (address, true) };
        let (lot, mask) = (lot(apart, address), mask(address, bytes));
        let whole = match lot {
            0 => apart.groups.iter().all(|group| group & mask == 0),
            lot => mask & !apart.groups[lot - 1] == 0,
        };
        if whole { (on(address, lot), true) } else { (address, false) }
    }

    /// Cuts accesses where lots meet; none if no access touches a line that is cut.
    pub(super) fn pieces(&self, accesses: &[Access]) -> Option<Vec<Access>> {
        let touches = |&(address, bytes, _): &Access| {
            self.0.iter().any(|Apart { line, .. }| {
                address < line + 64 && *line < address.saturating_add(bytes.max(1))
            })
        };
        if !accesses.iter().any(touches) {
            return None;
        }
        let mut pieces: Vec<Access> = Vec::new();
        for access @ &(address, bytes, write) in accesses {
            if !touches(access) {
                pieces.push(*access);
                continue;
            }
            for byte in address..address.saturating_add(bytes.max(1)) {
                let at = self.of(byte).map_or(byte, |apart| on(byte, lot(apart, byte)));
                match pieces.last_mut() {
                    Some((from, long, writes))
                        if *from + *long == at && *writes == write && !at.is_multiple_of(64) =>
                    {
                        *long += 1;
                    }
                    _ => pieces.push((at, 1, write)),
                }
            }
        }
        Some(pieces)
    }
}

/// Gives the lot of a byte; 0 is the line as it is.
fn lot(apart: &Apart, address: u64) -> usize {
    let bit = 1 << (address % 64);
    apart.groups.iter().position(|group| group & bit != 0).map_or(0, |group| group + 1)
}

fn on(address: u64, lot: usize) -> u64 {
    address | (lot as u64) << SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lots() -> Lots {
        Lots::new(&[Apart { line: 0x1000, groups: vec![0xff00, 0xff_0000] }])
    }

    #[test]
    fn bytes_are_where_they_were_put() {
        let lots = lots();
        assert_eq!(lots.place(0x1000, 8), (0x1000, true));
        assert_eq!(lots.place(0x1018, 8), (0x1018, true));
        assert_eq!(lots.place(0x1008, 8), (0x0100_0000_0000_1008, true));
        assert_eq!(lots.place(0x1014, 4), (0x0200_0000_0000_1014, true));
        assert_eq!(lots.place(0x0200_0000_0000_1014, 4), (0x0200_0000_0000_1014, true));
        assert_eq!(lots.place(0x1004, 8), (0x1004, false));
        assert_eq!(lots.place(0x100c, 8), (0x100c, false));
        assert_eq!(lots.place(0x0ffc, 8), (0x0ffc, false));
        assert_eq!(lots.place(0x1040, 8), (0x1040, true));
        assert_eq!(real(0x0200_0000_0000_1014), 0x1014);
    }

    #[test]
    fn accesses_are_cut_where_lots_meet() {
        let lots = lots();
        assert_eq!(lots.pieces(&[(0x2000, 64, true)]), None);
        let pieces = lots.pieces(&[(0x0ff8, 0x60, true), (0x3000, 4, false)]).unwrap();
        let expected = [
            (0x0ff8, 8, true),
            (0x1000, 8, true),
            (0x0100_0000_0000_1008, 8, true),
            (0x0200_0000_0000_1010, 8, true),
            (0x1018, 40, true),
            (0x1040, 24, true),
            (0x3000, 4, false),
        ];
        assert_eq!(pieces, expected);
    }
}

//! From what was seen of lines to what it means.

use core::cmp::Reverse;
use std::collections::BTreeMap;

use super::whose::Memory;
use super::{Line, PlaceSeen};
use crate::lend::Lender;
use crate::line_report::{
    Apart, HotLine, HotPlace, LineReport, OtherLines, Sharing, Touches, shared_bytes,
};
use crate::symbols::{Place, Symbols};

/// Lines that are told one by one.
const KEPT: usize = 256;

/// Instructions that are told of a line.
const PLACES: usize = 8;

/// Transfers of one kind that do not count: less than one in so many.
const FEW: u64 = 100;

/// What lines are sorted by, the least first.
type Rank = (Reverse<u64>, Reverse<u64>, bool, Reverse<u64>, u64);

/// Tells what was seen.
pub(super) fn report(
    lines: &[Line],
    pairs: bool,
    lenders: &[Lender],
    symbols: &mut Symbols,
) -> LineReport {
    // Of lines that lay at the same place one after the other, the last one counts for its pair.
    let by_address: BTreeMap<u64, &Line> = lines.iter().map(|line| (line.address, line)).collect();
    let other = |line: &Line| by_address.get(&(line.address ^ 64)).filter(|_| pairs).copied();
    let mut ranked: Vec<(Rank, Sharing, &Line)> = lines
        .iter()
        .map(|line| {
            let sharing = sharing(line, other(line));
            let accesses: u64 = line.cores.iter().map(|core| core.loads + core.stores).sum();
            let rank = (
                Reverse(line.transfer_ps),
                Reverse(line.transfers.total()),
                sharing != Sharing::Pair,
                Reverse(accesses),
                line.address,
            );
            (rank, sharing, line)
        })
        .collect();
    ranked.sort_by_key(|(rank, ..)| *rank);
    let mut others = OtherLines::default();
    for (.., line) in ranked.iter().skip(KEPT) {
        others.lines += 1;
        others.transfers += line.transfers.total();
        others.stall_ps += line.transfer_ps + line.memory_ps;
    }
    let memory = Memory::now(lenders);
    let lines = ranked.iter().take(KEPT);
    let lines = lines.map(|(_, sharing, line)| hot_line(line, *sharing, &memory, symbols));
    LineReport { lines: lines.collect(), others, ..LineReport::default() }
}

fn hot_line(line: &Line, sharing: Sharing, memory: &Memory<'_>, symbols: &mut Symbols) -> HotLine {
    let first = touched(&line.cores).trailing_zeros().min(63);
    HotLine {
        address: line.address,
        object: memory.name(line.address + u64::from(first), symbols),
        sharing,
        cores: line.cores.clone(),
        transfers: line.transfers,
        true_transfers: if shared_bytes(&line.cores) == 0 { 0 } else { line.true_transfers },
        invalidations: line.invalidations,
        memory_reads: line.memory_reads,
        transfer_ps: line.transfer_ps,
        memory_ps: line.memory_ps,
        places: hot_places(line, symbols),
        apart: matches!(sharing, Sharing::False | Sharing::Mixed).then(|| apart(line)).flatten(),
    }
}

/// Gives the costliest places of the source; of several instructions there, the costliest gives its
/// address.
fn hot_places(line: &Line, symbols: &mut Symbols) -> Vec<HotPlace> {
    let mut seen = line.places.clone();
    seen.sort_by_key(|place| {
        (Reverse(place.stall_ps), Reverse(place.loads + place.stores), place.rip)
    });
    let mut places: Vec<HotPlace> = Vec::new();
    for PlaceSeen { rip, loads, stores, transfers, stall_ps } in seen {
        let Place { function, line, .. } = symbols.telling(rip);
        let same = |place: &&mut HotPlace| place.function == function && place.line == line;
        if let Some(place) = places.iter_mut().find(same) {
            place.loads += loads;
            place.stores += stores;
            place.transfers += transfers;
            place.stall_ps += stall_ps;
        } else {
            places.push(HotPlace { rip, function, line, loads, stores, transfers, stall_ps });
        }
    }
    places.sort_by_key(|place| {
        (Reverse(place.stall_ps), Reverse(place.loads + place.stores), place.rip)
    });
    places.truncate(PLACES);
    places
}

fn touched(cores: &[Touches]) -> u64 {
    cores.iter().fold(0, |all, core| all | core.touched())
}

fn written(cores: &[Touches]) -> u64 {
    cores.iter().fold(0, |all, core| all | core.written)
}

/// Says how cores share a line; `other` is the other one of its pair, if the machine fetches pairs.
fn sharing(line: &Line, other: Option<&Line>) -> Sharing {
    let few = |part: u64| part * FEW < line.transfers.total();
    let alone = if line.cores.len() < 2 {
        Sharing::Private
    } else if written(&line.cores) == 0 {
        Sharing::ReadOnly
    } else if shared_bytes(&line.cores) == 0 || few(line.true_transfers) {
        return Sharing::False;
    } else if line.transfers.total() == 0
        || few(line.transfers.total() - line.true_transfers)
        || line.transfers.total() == line.true_transfers
    {
        return Sharing::True;
    } else {
        return Sharing::Mixed;
    };
    match other {
        Some(other) if collide(&line.cores, &other.cores) => Sharing::Pair,
        _ => alone,
    }
}

/// Whether one writes what would take the other from another core, if both came together.
fn collide(one: &[Touches], other: &[Touches]) -> bool {
    let takes = |writers: &[Touches], users: &[Touches]| {
        let mut writers = writers.iter().filter(|core| core.written != 0);
        writers.any(|writer| users.iter().any(|user| user.cpu != writer.cpu))
    };
    takes(one, other) || takes(other, one)
}

/// Finds bytes that belong together, and those that different cores use.
///
/// Bytes belong together that accesses touched together, and those that the same core alone uses, or
/// that nobody writes. Accesses of more than 16 bytes, copies for example, say nothing about fields.
fn apart(line: &Line) -> Option<Apart> {
    const FIELD: u32 = 16;
    let mut fields: Vec<u64> = Vec::new();
    let single = (0..64).map(|bit| 1 << bit).filter(|bit| touched(&line.cores) & bit != 0);
    let sets = line.sets.iter().copied().filter(|mask| mask.count_ones() <= FIELD);
    for mut mask in sets.chain(single) {
        fields.retain(|field| {
            let meets = field & mask != 0;
            mask |= if meets { *field } else { 0 };
            !meets
        });
        fields.push(mask);
    }
    let mut groups: BTreeMap<(Vec<u32>, Vec<u32>, u64), u64> = BTreeMap::new();
    for field in fields {
        let who = |bytes: &dyn Fn(&Touches) -> u64| {
            let cores = line.cores.iter().filter(|core| bytes(core) & field != 0);
            cores.map(|core| core.cpu).collect::<Vec<_>>()
        };
        let (users, writers) = (who(&|core| core.touched()), who(&|core| core.written));
        let own = if users.len() > 1 && !writers.is_empty() { field } else { 0 };
        *groups.entry((users, writers, own)).or_default() |= field;
    }
    let mut groups: Vec<u64> = groups.into_values().collect();
    groups.sort_by_key(|group| group.trailing_zeros());
    // The first one stays where it is.
    let groups = groups.split_off(1.min(groups.len()));
    (!groups.is_empty()).then_some(Apart { line: line.address, groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With so many transfers, so many of them true.
    fn line(address: u64, cores: &[(u32, u64, u64)], sets: &[u64], transfers: [u64; 2]) -> Line {
        let touches = |&(cpu, read, written)| Touches { cpu, read, written, ..Touches::default() };
        let mut line = Line { address, ..Line::default() };
        line.cores = cores.iter().map(touches).collect();
        line.sets = sets.to_vec();
        [line.transfers.same_l3, line.true_transfers] = transfers;
        line
    }

    #[test]
    fn kinds_of_sharing() {
        let kind = |cores: &[_], transfers| sharing(&line(0, cores, &[], transfers), None);
        assert_eq!(kind(&[(3, 1, 1)], [0, 0]), Sharing::Private);
        assert_eq!(kind(&[(3, 1, 0), (4, 1, 0)], [1, 0]), Sharing::ReadOnly);
        assert_eq!(kind(&[(3, 1, 1), (4, 1, 0)], [9, 9]), Sharing::True);
        assert_eq!(kind(&[(3, 1, 1), (4, 1, 0)], [0, 0]), Sharing::True);
        assert_eq!(kind(&[(3, 1, 1), (4, 2, 0)], [18, 0]), Sharing::False);
        assert_eq!(kind(&[(3, 1, 1), (4, 3, 0)], [10, 9]), Sharing::Mixed);
        // What happens once, at the beginning say, does not count.
        assert_eq!(kind(&[(3, 1, 1), (4, 3, 0)], [1000, 999]), Sharing::True);
        assert_eq!(kind(&[(3, 1, 1), (4, 3, 0)], [1000, 1]), Sharing::False);
    }

    #[test]
    fn pairs_are_shared_if_one_half_is_written_and_another_core_uses_the_other() {
        let writer = line(0, &[(0, 1, 1)], &[], [0, 0]);
        let reader = line(64, &[(1, 1, 0)], &[], [0, 0]);
        assert_eq!(sharing(&writer, Some(&reader)), Sharing::Pair);
        assert_eq!(sharing(&reader, Some(&writer)), Sharing::Pair);
        assert_eq!(sharing(&writer, None), Sharing::Private);
        let same = line(64, &[(0, 1, 1)], &[], [0, 0]);
        assert_eq!(sharing(&writer, Some(&same)), Sharing::Private);
        let idle = line(0, &[(0, 1, 0)], &[], [0, 0]);
        assert_eq!(sharing(&idle, Some(&reader)), Sharing::Private);
    }

    #[test]
    fn fields_of_different_cores_are_put_apart_and_no_field_is_torn() {
        let fields = |cores: &[_], sets: &[_]| {
            let apart = apart(&line(64, cores, sets, [0, 0]));
            apart.map_or(Vec::new(), |apart| apart.groups)
        };
        let two = [(0, 0xff, 0xff), (1, 0xff00, 0xff00)];
        assert_eq!(fields(&two, &[0xff, 0xff00]), [0xff00]);
        // A copy of the whole line by core 0 makes no field of it; what core 1 reads stays whole.
        let copied = [(0, 0, u64::MAX), (1, 0xff00, 0xff00)];
        assert_eq!(fields(&copied, &[u64::MAX, 0xff00, 0x0f00]), [0xff00]);
        // Fields that both use are apart from each other; those of one core stay together.
        let mixed = [(0, 0xffff, 0xffff), (1, 0xffff, 0xffff), (2, 0xff_0000, 1 << 40)];
        let sets = [0xff, 0xff00, 0xff_0000, 1 << 40];
        assert_eq!(fields(&mixed, &sets), [0xff00, 0xff_0000, 1 << 40]);
        assert_eq!(fields(&[(0, 0xff, 0xff)], &[0xf, 0xf0]), [0_u64; 0]);
    }
}

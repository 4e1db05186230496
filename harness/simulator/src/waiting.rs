//! Requests that wait for a line which is under way, and whose turn it is.
//!
//! Who is near to the core that had the line last comes first: its request reaches the line sooner,
//! and what queued up behind a far one would wait for nothing. After a bounded number of such
//! grants in a row the oldest request comes first.

use crate::coherence::LineId;
use crate::time::Time;

/// A core that waits for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// When it asked.
    pub(crate) since: Time,
    /// Its rank among equals.
    pub(crate) rank: u32,
    /// Its number on the machine.
    pub(crate) cpu: u32,
    /// Whether it wants to write.
    pub(crate) write: bool,
}

/// What waits for one line.
#[derive(Debug)]
struct List {
    line: LineId,
    /// The line's address.
    address: u64,
    /// Oldest first.
    requests: Vec<Request>,
    /// Grants in a row that passed over an older request.
    passed_over: u32,
}

/// All lines for which cores wait. There are never more than cores.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    lists: Vec<List>,
    /// Lists that are not in use.
    unused: Vec<usize>,
}

impl Waiting {
    /// Makes a list for a line for which nobody waits yet; gives its number.
    pub(crate) fn begin(&mut self, line: LineId, address: u64) -> usize {
        let at = self.unused.pop().unwrap_or_else(|| {
            self.lists.push(List { line, address, requests: Vec::new(), passed_over: 0 });
            self.lists.len() - 1
        });
        let list = &mut self.lists[at];
        (list.line, list.address, list.passed_over) = (line, address, 0);
        at
    }

    /// Lets a core wait.
    pub(crate) fn join(&mut self, list: usize, request: Request) {
        let requests = &mut self.lists[list].requests;
        let older = |other: &Request| (other.since, other.rank) < (request.since, request.rank);
        let place = requests.iter().rposition(older).map_or(0, |place| place + 1);
        requests.insert(place, request);
    }

    /// Gives a list up, for which nobody waits any more.
    pub(crate) fn end(&mut self, list: usize) {
        self.unused.push(list);
    }

    /// Gives the line that a list is of, and its address.
    pub(crate) fn line(&self, list: usize) -> (LineId, u64) {
        (self.lists[list].line, self.lists[list].address)
    }

    /// Whether nobody waits any more.
    pub(crate) fn is_empty(&self, list: usize) -> bool {
        self.lists[list].requests.is_empty()
    }

    /// Gives the request whose turn it is, by its place: `nearness` says how far a core is from the
    /// line, from 0 on.
    pub(crate) fn next(
        &self,
        list: usize,
        bound: u32,
        nearness: impl Fn(u32) -> u8,
    ) -> Option<(usize, Request)> {
        let List { requests, passed_over, .. } = &self.lists[list];
        let mut best = (0, *requests.first()?);
        if *passed_over >= bound {
            return Some(best);
        }
        let mut nearest = u8::MAX;
        for (place, request) in requests.iter().enumerate() {
            let far = nearness(request.cpu);
            if far < nearest {
                (nearest, best) = (far, (place, *request));
                if far == 0 {
                    break;
                }
            }
        }
        Some(best)
    }

    /// Takes a request out that is granted.
    pub(crate) fn grant(&mut self, list: usize, place: usize) {
        let List { requests, passed_over, .. } = &mut self.lists[list];
        requests.remove(place);
        *passed_over = if place > 0 { *passed_over + 1 } else { 0 };
    }

    /// Takes the reads out that `together` says are served with one that was granted, oldest first.
    pub(crate) fn readers(
        &mut self,
        list: usize,
        together: impl Fn(u32) -> bool,
        into: &mut Vec<Request>,
    ) {
        into.clear();
        self.lists[list].requests.retain(|request| {
            let goes = !request.write && together(request.cpu);
            if goes {
                into.push(*request);
            }
            !goes
        });
    }

    /// Takes a core out, wherever it waits.
    pub(crate) fn withdraw(&mut self, rank: u32) {
        for list in &mut self.lists {
            list.requests.retain(|request| request.rank != rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(since: Time, cpu: u32) -> Request {
        Request { since, rank: cpu, cpu, write: true }
    }

    #[test]
    fn near_ones_come_first_within_a_bound() {
        let mut waiting = Waiting::default();
        let list = waiting.begin(LineId::first(), 64);
        waiting.join(list, request(1, 100));
        (2..9).for_each(|since| waiting.join(list, request(since, since as u32)));
        let far = |cpu: u32| u8::from(cpu >= 100);
        let mut order = Vec::new();
        while let Some((place, next)) = waiting.next(list, 3, far) {
            waiting.grant(list, place);
            order.push(next.cpu);
        }
        assert_eq!(order, [2, 3, 4, 100, 5, 6, 7, 8]);
        assert!(waiting.is_empty(list));
    }

    #[test]
    fn readers_of_a_group_go_together_oldest_first() {
        let mut waiting = Waiting::default();
        let list = waiting.begin(LineId::first(), 0);
        for (since, cpu, write) in [(9, 1, false), (5, 2, false), (7, 3, true), (6, 70, false)] {
            waiting.join(list, Request { write, ..request(since, cpu) });
        }
        let mut read = Vec::new();
        waiting.readers(list, |cpu| cpu < 64, &mut read);
        assert_eq!(read.iter().map(|request| request.cpu).collect::<Vec<_>>(), [2, 1]);
        waiting.withdraw(70);
        assert_eq!(waiting.next(list, 8, |_| 0).unwrap().1.cpu, 3);
    }

    #[test]
    fn a_list_is_used_again() {
        let mut waiting = Waiting::default();
        let list = waiting.begin(LineId::first(), 0);
        waiting.join(list, request(1, 1));
        let (place, _) = waiting.next(list, 8, |_| 0).unwrap();
        waiting.grant(list, place);
        waiting.end(list);
        assert_eq!(waiting.begin(LineId::first(), 64), list);
        assert_eq!(waiting.line(list), (LineId::first(), 64));
        assert!(waiting.is_empty(list));
    }
}

//! Requests that wait for a line which is under way, and whose turn it is.
//!
//! Who is near to the core that had the line last comes first: its request reaches the line sooner,
//! and what queued up behind a far one would wait for nothing. After a bounded number of such
//! grants in a row the oldest request comes first.

use crate::coherence::LineId;
use crate::queue::Key;

/// A core that waits for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// When it asked, and its core's rank among equals.
    pub(crate) key: Key,
    /// The L3 group of its core.
    pub(crate) group: u32,
    /// Whether it wants to write.
    pub(crate) write: bool,
}

/// Where a line was last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The L3 group.
    pub(crate) group: usize,
    /// The L3 groups of its socket.
    pub(crate) socket: (usize, usize),
}

/// Requests from cores under one L3.
#[derive(Debug, Default)]
struct Group {
    /// Oldest first, if it is sorted; those before `first` are gone.
    requests: Vec<Request>,
    first: usize,
    unsorted: bool,
}

impl Group {
    fn join(&mut self, request: Request) {
        self.unsorted |= self.requests.last().is_some_and(|last| last.key > request.key);
        self.requests.push(request);
    }

    /// Gives those that wait, oldest first.
    fn waiting(&mut self) -> &[Request] {
        let waiting = &mut self.requests[self.first..];
        if core::mem::take(&mut self.unsorted) {
            waiting.sort_unstable_by_key(|request| request.key);
        }
        waiting
    }

    /// Takes the oldest out.
    fn grant(&mut self) {
        self.waiting();
        self.first += 1;
        if 2 * self.first >= self.requests.len() {
            self.requests.drain(..self.first);
            self.first = 0;
        }
    }

    /// Takes those out that `goes` says, and gives how many are left.
    fn take(&mut self, mut goes: impl FnMut(&Request) -> bool) -> usize {
        self.waiting();
        self.requests.drain(..core::mem::take(&mut self.first));
        self.requests.retain(|request| !goes(request));
        self.requests.len()
    }

    /// Gives the key of the oldest.
    fn oldest(&mut self) -> Key {
        self.waiting().first().map_or(Key::NEVER, |request| request.key)
    }
}

/// What waits for one line.
#[derive(Debug)]
struct List {
    line: LineId,
    /// The line's address.
    address: u64,
    groups: Vec<Group>,
    /// For each group: the key of its oldest request.
    oldest: Vec<Key>,
    /// How many wait.
    waiting: usize,
    /// Grants in a row that passed over an older request.
    passed_over: u32,
}

/// All lines for which cores wait. There are never more than cores.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// L3 groups of the machine.
    groups: usize,
    lists: Vec<List>,
    /// Lists that are not in use.
    unused: Vec<usize>,
}

impl Waiting {
    /// Nobody waits on a machine with so many L3 groups.
    pub(crate) fn new(groups: usize) -> Self {
        Self { groups, lists: Vec::new(), unused: Vec::new() }
    }

    /// Makes a list for a line for which nobody waits yet; gives its number.
    pub(crate) fn begin(&mut self, line: LineId, address: u64) -> usize {
        let at = self.unused.pop().unwrap_or_else(|| {
            self.lists.push(List {
                line,
                address,
                groups: (0..self.groups).map(|_| Group::default()).collect(),
                oldest: vec![Key::NEVER; self.groups],
                waiting: 0,
                passed_over: 0,
            });
            self.lists.len() - 1
        });
        let list = &mut self.lists[at];
        (list.line, list.address, list.passed_over) = (line, address, 0);
        at
    }

    /// Lets a core wait.
    pub(crate) fn join(&mut self, list: usize, request: Request) {
        let list = &mut self.lists[list];
        let group = request.group as usize;
        list.groups[group].join(request);
        list.oldest[group] = list.oldest[group].min(request.key);
        list.waiting += 1;
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
        self.lists[list].waiting == 0
    }

    /// Gives the request whose turn it is, of a line that was last at `place`, and whether it passes
    /// over an older one.
    pub(crate) fn next(
        &mut self,
        list: usize,
        bound: u32,
        place: Option<Place>,
    ) -> Option<(Request, bool)> {
        let List { groups, oldest, waiting, passed_over, .. } = &mut self.lists[list];
        if *waiting == 0 {
            return None;
        }
        let (first_group, first) = least(oldest, 0, oldest.len());
        let (group, key) = match place {
            Some(Place { group, socket: (from, to) }) if *passed_over < bound => {
                let own = (group, oldest[group]);
                let socket = if own.1 == Key::NEVER { least(oldest, from, to) } else { own };
                if socket.1 == Key::NEVER { (first_group, first) } else { socket }
            }
            _ => (first_group, first),
        };
        let request = *groups[group].waiting().first()?;
        Some((request, key != first))
    }

    /// Takes a request out that is granted.
    pub(crate) fn grant(&mut self, list: usize, (request, passes_over): (Request, bool)) {
        let List { groups, oldest, waiting, passed_over, .. } = &mut self.lists[list];
        let group = request.group as usize;
        groups[group].grant();
        oldest[group] = groups[group].oldest();
        *waiting -= 1;
        *passed_over = if passes_over { *passed_over + 1 } else { 0 };
    }

    /// Takes the reads of a group out that are served with one that was granted, oldest first.
    pub(crate) fn readers(&mut self, list: usize, group: u32, into: &mut Vec<Request>) {
        into.clear();
        let goes = |request: &Request| {
            if !request.write {
                into.push(*request);
            }
            !request.write
        };
        self.lists[list].take(group as usize, goes);
    }

    /// Takes a core out, wherever it waits.
    pub(crate) fn withdraw(&mut self, rank: u32) {
        for list in &mut self.lists {
            (0..list.groups.len()).for_each(|group| list.take(group, |one| one.key.rank() == rank));
        }
    }
}

/// Gives the group with the oldest request of a range, and its key.
#[inline]
fn least(oldest: &[Key], from: usize, to: usize) -> (usize, Key) {
    let mut least = (from, Key::NEVER);
    for (i, &key) in oldest[from..to].iter().enumerate() {
        if key < least.1 {
            least = (from + i, key);
        }
    }
    least
}

impl List {
    /// Takes requests of a group out.
    fn take(&mut self, group: usize, goes: impl FnMut(&Request) -> bool) {
        let Self { groups, oldest, waiting, .. } = self;
        let group_of = &mut groups[group];
        let before = group_of.requests.len() - group_of.first;
        *waiting -= before - group_of.take(goes);
        oldest[group] = group_of.oldest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    /// Two sockets of two groups each.
    fn place(group: usize) -> Option<Place> {
        let socket = if group < 2 { (0, 2) } else { (2, 4) };
        Some(Place { group, socket })
    }

    fn request(since: Time, rank: u32, group: u32) -> Request {
        Request { key: Key::new(since, rank), group, write: true }
    }

    /// Grants everything; gives the ranks. The line is where it was granted last.
    fn all(waiting: &mut Waiting, list: usize, bound: u32, at: Option<Place>) -> Vec<u32> {
        let mut order = Vec::new();
        let mut at = at;
        while let Some((next, passes)) = waiting.next(list, bound, at) {
            waiting.grant(list, (next, passes));
            order.push(next.key.rank());
            at = place(next.group as usize);
        }
        assert!(waiting.is_empty(list));
        order
    }

    #[test]
    fn near_ones_come_first_within_a_bound() {
        let mut waiting = Waiting::new(4);
        let list = waiting.begin(LineId::first(), 64);
        waiting.join(list, request(1, 100, 3));
        (2..9).rev().for_each(|since| waiting.join(list, request(since, since as u32, 0)));
        assert_eq!(all(&mut waiting, list, 3, place(0)), [2, 3, 4, 100, 5, 6, 7, 8]);
    }

    #[test]
    fn the_socket_comes_before_the_others_and_the_group_before_the_socket() {
        let mut waiting = Waiting::new(4);
        let list = waiting.begin(LineId::first(), 64);
        for (since, group) in [(1, 3), (2, 1), (3, 0), (4, 2), (5, 0), (6, 1)] {
            waiting.join(list, request(since, since as u32, group));
        }
        assert_eq!(all(&mut waiting, list, 100, place(0)), [3, 5, 2, 6, 1, 4]);
    }

    #[test]
    fn of_a_line_that_was_nowhere_the_oldest_comes_first() {
        let mut waiting = Waiting::new(4);
        let list = waiting.begin(LineId::first(), 64);
        (0..4).for_each(|i| waiting.join(list, request(9 - Time::from(i), i, i)));
        assert_eq!(waiting.next(list, 8, None), Some((request(6, 3, 3), false)));
    }

    #[test]
    fn readers_of_a_group_go_together_oldest_first() {
        let mut waiting = Waiting::new(4);
        let list = waiting.begin(LineId::first(), 0);
        for (since, rank, group, write) in
            [(9, 1, 0, false), (5, 2, 0, false), (7, 3, 0, true), (6, 70, 2, false)]
        {
            waiting.join(list, Request { write, ..request(since, rank, group) });
        }
        let mut read = Vec::new();
        waiting.readers(list, 0, &mut read);
        assert_eq!(read.iter().map(|request| request.key.rank()).collect::<Vec<_>>(), [2, 1]);
        waiting.withdraw(70);
        assert_eq!(all(&mut waiting, list, 8, place(2)), [3]);
    }

    #[test]
    fn a_list_is_used_again() {
        let mut waiting = Waiting::new(4);
        let list = waiting.begin(LineId::first(), 0);
        waiting.join(list, request(1, 1, 1));
        assert_eq!(all(&mut waiting, list, 8, place(1)), [1]);
        waiting.end(list);
        assert_eq!(waiting.begin(LineId::first(), 64), list);
        assert_eq!(waiting.line(list), (LineId::first(), 64));
        assert!(waiting.is_empty(list));
    }
}

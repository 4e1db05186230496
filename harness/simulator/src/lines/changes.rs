//! Whether a transfer was needed: whether bytes that a core asks for had been changed by others, or
//! bytes that it writes had been used by others, since it last had them.
//!
//! Moments are numbers of accesses to the line. Only lines that several cores touch pay for this.

/// Who did something to a byte last, and when somebody else did before.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    cpu: u32,
    at: u32,
    other_at: u32,
}

impl Last {
    fn by(&mut self, cpu: u32, at: u32) {
        if self.cpu != cpu {
            self.other_at = self.at;
            self.cpu = cpu;
        }
        self.at = at;
    }

    /// When somebody but `cpu` did it last; 0 is never.
    fn by_others(self, cpu: u32) -> u32 {
        if self.cpu == cpu { self.other_at } else { self.at }
    }
}

/// When a core did something to any byte of the line; 0 is never.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    touched: u32,
    wrote: u32,
}

/// What became of each byte of a line.
#[derive(Debug)]
pub(super) struct Changes {
    now: u32,
    written: [Last; 64],
    touched: [Last; 64],
    /// By core, in the order of [`Line::cores`](super::Line::cores).
    seen: Vec<Seen>,
}

impl Changes {
    /// Nothing has happened yet; so many cores are known.
    pub(super) fn new(cores: usize) -> Self {
        Self {
            now: 0,
            written: [Last::default(); 64],
            touched: [Last::default(); 64],
            seen: vec![Seen::default(); cores],
        }
    }

    /// A core is new, at this place of the order.
    pub(super) fn joins(&mut self, place: usize) {
        self.seen.insert(place, Seen::default());
    }

    /// A core, at this place of the order, touches bytes; whether it needed what others did.
    pub(super) fn touch(&mut self, place: usize, cpu: u32, mask: u64, write: bool) -> bool {
        self.now = self.now.saturating_add(1);
        let Seen { touched, wrote } = self.seen[place];
        // What happened before the run is not known.
        let mut needed = touched == 0;
        let mut left = mask;
        while left != 0 {
            let byte = left.trailing_zeros() as usize;
            left &= left - 1;
            needed |= self.written[byte].by_others(cpu) > touched;
            // A copy that others read is in the way of a write, unless they got it before the last.
            needed |= write && self.touched[byte].by_others(cpu) > wrote;
            self.touched[byte].by(cpu, self.now);
            if write {
                self.written[byte].by(cpu, self.now);
            }
        }
        let seen = &mut self.seen[place];
        seen.touched = self.now;
        seen.wrote = if write { self.now } else { wrote };
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two cores, 3 and 8.
    fn two() -> Changes {
        let mut changes = Changes::new(1);
        changes.joins(1);
        changes
    }

    #[test]
    fn what_others_changed_is_needed_once() {
        let mut line = two();
        assert!(line.touch(0, 3, 0xff, true));
        assert!(line.touch(1, 8, 0x0f, false));
        assert!(!line.touch(1, 8, 0x0f, false));
        assert!(!line.touch(1, 8, 0xff00, false));
        assert!(line.touch(0, 3, 0xff, true), "its bytes were read");
        assert!(line.touch(1, 8, 1, false));
    }

    #[test]
    fn bytes_of_ones_own_need_nobody() {
        let mut line = two();
        for round in 0..3 {
            assert_eq!(line.touch(0, 3, 0xff, true), round == 0);
            assert_eq!(line.touch(1, 8, 0xff00, true), round == 0);
        }
    }

    #[test]
    fn a_copy_that_somebody_holds_is_in_the_way_of_a_write() {
        let mut line = two();
        assert!(line.touch(0, 3, 1, true));
        assert!(line.touch(1, 8, 1, false));
        assert!(!line.touch(0, 3, 1, false), "it was read, not changed");
        assert!(line.touch(0, 3, 1, true));
    }
}

//! By how much simulated times may be off.
//!
//! `errors.csv` holds, for each machine and primitive of which something was published, the factor
//! within which four of five simulated times lie of the published ones; `manycore validate --errors`
//! writes it. Where nothing was published, a time may be off by the mark that validation sets, or by
//! as much as the same primitive's times are on other machines, if that is more.

use simulator::machine::Machine;

/// Machine, primitive, border, number of values, factor.
const ERRORS: &str = include_str!("errors.csv");

/// By how much a time may be off in a socket, and across sockets.
pub const MARKS: [f64; 2] = [1.5, 2.0];

/// Whether threads are in one socket or in several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Border {
    /// All threads are in one socket.
    InSocket,
    /// They are in several.
    Across,
}

impl Border {
    /// Says which borders lie between the cores of a machine.
    pub fn of(machine: &Machine, cpus: &[u32]) -> Self {
        let socket = |&cpu: &u32| machine.socket_of(cpu);
        let first = cpus.first().map(socket);
        if cpus.iter().all(|cpu| Some(socket(cpu)) == first) {
            Self::InSocket
        } else {
            Self::Across
        }
    }

    /// Gives the word that stands in the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::InSocket => "in_socket",
            Self::Across => "across_sockets",
        }
    }
}

/// Gives the factor by which a simulated time may be off, either way. `machine` is the name in
/// records: a number of cores behind it does not matter.
pub fn band(machine: &str, primitive: &str, border: Border) -> f64 {
    look_up(ERRORS, machine, primitive, border)
}

fn look_up(errors: &str, machine: &str, primitive: &str, border: Border) -> f64 {
    let machine = machine.split_once('/').map_or(machine, |(name, _)| name);
    let rows = errors.lines().skip(1).filter_map(|line| {
        let mut fields = line.split(',');
        let mut field = || fields.next();
        let (of, what, where_, _) = (field()?, field()?, field()?, field()?);
        Some((of, what, where_, field()?.parse::<f64>().ok()?))
    });
    let mut factor = MARKS[border as usize];
    for (of, _, where_, value) in rows.filter(|row| row.1 == primitive) {
        if (of, where_) == (machine, border.word()) {
            return value;
        }
        factor = factor.max(value);
    }
    factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_that_is_known_holds() {
        let errors = "machine,primitive,border,values,factor\na,locks,in_socket,9,1.30\n\
                      a,locks,across_sockets,9,1.90\nb,counters,in_socket,9,1.10\n";
        let band = |machine, primitive, border| look_up(errors, machine, primitive, border);
        assert_eq!(band("a", "locks", Border::InSocket), 1.3);
        assert_eq!(band("a/64", "locks", Border::Across), 1.9);
        assert_eq!(band("c", "locks", Border::InSocket), 1.9);
        assert_eq!(band("c", "locks", Border::Across), 2.0);
        assert_eq!(band("c", "counters", Border::InSocket), 1.5);
        assert_eq!(band("a", "queues", Border::Across), 2.0);
    }

    #[test]
    fn threads_of_one_socket_are_told_from_others() {
        let machine = Machine::named(super::super::DEFAULT_MACHINE).unwrap();
        assert_eq!(Border::of(&machine, &[0, 63]), Border::InSocket);
        assert_eq!(Border::of(&machine, &[0, 64]), Border::Across);
        assert_eq!(Border::of(&machine, &[]), Border::InSocket);
    }

    #[test]
    fn every_row_of_the_table_is_whole() {
        assert!(ERRORS.lines().count() > 2);
        for line in ERRORS.lines().skip(1) {
            let fields: Vec<&str> = line.split(',').collect();
            let [machine, primitive, border, values, factor] = fields[..] else {
                panic!("{line}");
            };
            assert!(
                Machine::named(machine).is_ok() && values.parse::<u32>().unwrap() > 0,
                "{line}"
            );
            assert!(["counters", "locks"].contains(&primitive), "{line}");
            assert!([Border::InSocket, Border::Across].iter().any(|one| one.word() == border));
            assert!(factor.parse::<f64>().unwrap() >= 1.0, "{line}");
        }
    }
}

//! A group of counters over a stand-in for the kernel.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;

use super::*;

/// A kernel that does as it is told.
#[derive(Default)]
struct Fake {
    devices: BTreeMap<&'static str, &'static str>,
    cpuinfo: &'static str,
    /// Errors by event.
    refused: BTreeMap<u64, i32>,
    opened: RefCell<Vec<(Attributes, Option<usize>)>>,
    readings: RefCell<VecDeque<Reading>>,
    /// What the registers hold, one after the other.
    registers: RefCell<VecDeque<Option<OneReading>>>,
    calls: Cell<u32>,
}

impl Perf for &Fake {
    type Counter = usize;

    fn open(&self, attributes: Attributes, leader: Option<&usize>) -> io::Result<usize> {
        if let Some(&errno) = self.refused.get(&attributes.config) {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let mut opened = self.opened.borrow_mut();
        opened.push((attributes, leader.copied()));
        Ok(opened.len() - 1)
    }

    fn read(&self, leader: &usize, counters: usize) -> io::Result<Reading> {
        assert_eq!((*leader, counters), (0, self.opened.borrow().len()));
        self.calls.set(self.calls.get() + 1);
        self.readings.borrow_mut().pop_front().ok_or(io::Error::from_raw_os_error(libc::EIO))
    }

    fn read_in_user_space(&self, _counter: &usize) -> Option<OneReading> {
        self.registers.borrow_mut().pop_front()?
    }

    fn device(&self, path: &str) -> Option<String> {
        self.devices.get(path).map(|&text| text.to_owned())
    }

    fn cpuinfo(&self) -> String {
        self.cpuinfo.to_owned()
    }
}

const SERVER: &str = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 143\n";
const HYBRID: &str = "vendor_id : GenuineIntel\ncpu family : 6\nmodel : 151\n";

fn reading(enabled_ns: u64, running_ns: u64, values: [u64; 5]) -> Reading {
    Reading { enabled_ns, running_ns, values: values.to_vec() }
}

/// Reads twice, and gives what was counted, by metric.
fn counted(group: &Group<&Fake>) -> BTreeMap<&'static str, Result<u64, String>> {
    let (before, after) = (group.now(), group.now());
    let counts = group.between(&before, &after);
    assert_eq!(counts.len(), METRICS.len());
    counts.into_iter().map(|(name, count)| (name, count.map_err(|reason| reason.code))).collect()
}

#[test]
fn one_group_counts_everything_of_a_thread() {
    let fake = Fake { cpuinfo: SERVER, ..Fake::default() };
    fake.readings.borrow_mut().push_back(reading(100, 100, [1, 2, 3, 4, 5]));
    fake.readings.borrow_mut().push_back(reading(900, 900, [11, 22, 33, 44, 55]));
    let group = Group::open(&fake, 3).unwrap();
    let opened: Vec<(u32, u64, Option<usize>)> = fake
        .opened
        .borrow()
        .iter()
        .map(|&(Attributes { kind, config }, leader)| (kind, config, leader))
        .collect();
    let expected = [
        (0, 1, None),
        (0, 0, Some(0)),
        (0, 3, Some(0)),
        (4, 0x04d2, Some(0)),
        (4, 0x04d3, Some(0)),
    ];
    assert_eq!(opened, expected);
    let counts = counted(&group);
    let values: Vec<u64> = METRICS.iter().map(|name| counts[name].clone().unwrap()).collect();
    assert_eq!(values, [10, 20, 30, 40, 50]);
}

#[test]
fn registers_are_read_where_all_of_them_can_be() {
    let fake = Fake { cpuinfo: SERVER, ..Fake::default() };
    let group = Group::open(&fake, 0).unwrap();
    let register = |value| Some(OneReading { enabled_ns: 7, running_ns: 7, value });
    fake.registers.borrow_mut().extend((0..5).map(register));
    fake.registers.borrow_mut().extend((100..105).map(register));
    assert!(counted(&group).values().all(|count| *count == Ok(100)));
    assert_eq!(fake.calls.get(), 0, "no system call");
    // One counter has left the hardware: all are read by the system call.
    fake.registers.borrow_mut().extend([register(1), register(2), None]);
    fake.readings.borrow_mut().push_back(reading(9, 9, [1, 1, 1, 1, 1]));
    assert_eq!(group.now().unwrap().values, [1, 1, 1, 1, 1]);
    assert_eq!(fake.calls.get(), 1);
}

#[test]
fn a_group_that_did_not_count_all_the_time_has_no_counts() {
    let cases = [
        (reading(100, 100, [0; 5]), reading(900, 899, [9; 5]), "pmu_multiplexed"),
        (reading(100, 50, [0; 5]), reading(900, 700, [9; 5]), "pmu_multiplexed"),
        (reading(0, 0, [0; 5]), reading(900, 0, [0; 5]), "pmu_never_ran"),
    ];
    for (before, after, code) in cases {
        let fake = Fake { cpuinfo: SERVER, ..Fake::default() };
        let group = Group::open(&fake, 0).unwrap();
        fake.readings.borrow_mut().extend([before, after]);
        assert!(counted(&group).values().all(|count| *count == Err(code.to_owned())), "{code}");
    }
    // It had not counted before, and has all the time since.
    let fake = Fake { cpuinfo: SERVER, ..Fake::default() };
    let group = Group::open(&fake, 0).unwrap();
    let (before, after) = (reading(100, 50, [0; 5]), reading(900, 850, [9; 5]));
    fake.readings.borrow_mut().extend([before, after]);
    assert!(counted(&group).values().all(|count| *count == Ok(9)));
}

#[test]
fn each_kind_of_core_has_its_own_unit() {
    let devices = BTreeMap::from([
        ("cpu_core/cpus", "0-15\n"),
        ("cpu_core/type", "4\n"),
        ("cpu_atom/cpus", "16-23\n"),
        ("cpu_atom/type", "10\n"),
    ]);
    let fake = Fake { devices, cpuinfo: HYBRID, ..Fake::default() };
    let group = Group::open(&fake, 2).unwrap();
    let configs: Vec<u64> = fake.opened.borrow().iter().map(|(one, _)| one.config).collect();
    assert_eq!(configs, [4 << 32 | 1, 4 << 32, 4 << 32 | 3, 0x04d2]);
    fake.readings.borrow_mut().push_back(Reading { values: vec![0; 4], ..Reading::default() });
    fake.readings.borrow_mut().push_back(Reading { values: vec![1; 4], ..Reading::default() });
    let counts = counted(&group);
    assert_eq!(counts["foreign_lines_per_op.near"], Ok(1));
    assert_eq!(counts["foreign_lines_per_op.far"], Err("no_event".to_owned()));

    fake.opened.borrow_mut().clear();
    let group = Group::open(&fake, 16).unwrap();
    let configs: Vec<u64> = fake.opened.borrow().iter().map(|(one, _)| one.config).collect();
    assert_eq!(configs, [10 << 32 | 1, 10 << 32, 10 << 32 | 3]);
    let missing: Vec<&str> = group.missing.iter().map(|(_, reason)| reason.code.as_str()).collect();
    assert_eq!(missing, ["no_event_known", "no_event_known"]);
}

#[test]
fn refusals_are_typed() {
    for (errno, code) in [
        (libc::EACCES, "pmu_not_permitted"),
        (libc::EPERM, "pmu_not_permitted"),
        (libc::ENOENT, "no_pmu"),
        (libc::EOPNOTSUPP, "no_pmu"),
        (libc::ENOSYS, "no_pmu"),
        (libc::EMFILE, "no_descriptor"),
    ] {
        let fake = Fake { refused: BTreeMap::from([(1, errno)]), ..Fake::default() };
        assert_eq!(Group::open(&fake, 0).err().unwrap().code, code);
    }
    for (errno, code) in [
        (libc::EINVAL, "pmu_group_full"),
        (libc::ENOENT, "no_event"),
        (libc::EACCES, "pmu_not_permitted"),
    ] {
        let refused = BTreeMap::from([(3, errno)]);
        let fake = Fake { refused, cpuinfo: SERVER, ..Fake::default() };
        let group = Group::open(&fake, 0).unwrap();
        let full = |values: u64| Reading { values: vec![values; 4], ..Reading::default() };
        fake.readings.borrow_mut().extend([full(0), full(2)]);
        let counts = counted(&group);
        assert_eq!(counts["llc_misses"], Err(code.to_owned()));
        assert_eq!(counts["instructions_per_op"], Ok(2), "the others count");
    }
}

#[test]
fn what_cannot_be_read_is_a_reason_of_every_metric() {
    let fake = Fake { cpuinfo: SERVER, ..Fake::default() };
    let group = Group::open(&fake, 0).unwrap();
    assert!(counted(&group).values().all(|count| *count == Err("pmu_not_read".to_owned())));
    fake.readings.borrow_mut().extend([Reading::default(), Reading::default()]);
    assert_eq!(group.now().unwrap_err().code, "pmu_not_read", "fewer counters than were opened");
}

//! Clocks and sleeps.

use super::{Guest, NOWHERE, Outcome, US, at, error, says};

const SECOND: u64 = 1_000_000 * US;
const START: i64 = 1_000;
const DATE: i64 = 1_767_225_600;

impl Guest {
    #[track_caller]
    fn clock(&mut self, thread: usize, now: u64, clock: i32) -> (i64, i64) {
        let mut time = [0_i64; 2];
        let arguments = [clock as u64, at(&mut time)];
        let outcome = self.outcome(thread, now, libc::SYS_clock_gettime, &arguments);
        assert_eq!(outcome, Outcome::Return(0));
        let direct = self.kernel.clock_gettime(clock, thread, now).expect("it is a clock");
        assert_eq!((direct.seconds, direct.nanoseconds), (time[0], time[1]));
        (time[0], time[1])
    }
}

#[test]
fn every_run_begins_at_the_same_moment() {
    let mut guest = Guest::new(1);
    let now = 3 * SECOND + 7_123;
    for clock in [libc::CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC_RAW, libc::CLOCK_BOOTTIME] {
        assert_eq!(guest.clock(0, 0, clock), (START, 0));
        assert_eq!(guest.clock(0, now, clock), (START + 3, 7));
    }
    for clock in [libc::CLOCK_REALTIME, libc::CLOCK_TAI] {
        assert_eq!(guest.clock(0, 0, clock), (DATE, 0));
        assert_eq!(guest.clock(0, now, clock), (DATE + 3, 7));
    }
    assert_eq!(guest.clock(0, 9_999 * US, libc::CLOCK_MONOTONIC_COARSE), (START, 8_000_000));
    assert_eq!(guest.clock(0, 3_999 * US, libc::CLOCK_REALTIME_COARSE), (DATE, 0));
}

#[test]
fn processor_time_stands_still_in_a_sleep() {
    let mut guest = Guest::new(2);
    let (own, all) = (libc::CLOCK_THREAD_CPUTIME_ID, libc::CLOCK_PROCESS_CPUTIME_ID);
    assert_eq!(guest.clock(0, 100 * US, own), (0, 100_000));
    let mut time = [0_i64, 200_000];
    guest.outcome(0, 100 * US, libc::SYS_nanosleep, &[at(&mut time)]);
    assert_eq!(guest.kernel.clock_gettime(own, 0, 150 * US).expect("a clock").nanoseconds, 100_000);
    assert_eq!(guest.clock(1, 200 * US, all), (0, 300_000));
    guest.kernel.expire(SECOND);
    let woken = guest.woken_at()[0].at;
    assert_eq!(guest.clock(0, woken + 50 * US, own), (0, 150_000));
}

#[test]
fn clocks_of_threads_and_processes_have_numbers() {
    let mut guest = Guest::new(2);
    let thread_clock = |tid: i32| !tid << 3 | 6;
    let process_clock = |pid: i32| !pid << 3 | 2;
    assert_eq!(guest.clock(0, 5 * US, thread_clock(1001)), (0, 5_000));
    assert_eq!(guest.clock(0, 5 * US, thread_clock(0)), (0, 5_000));
    assert_eq!(guest.clock(0, 5 * US, process_clock(std::process::id() as i32)), (0, 10_000));
    let mut time = [0_i64; 2];
    for unknown in [thread_clock(4), process_clock(1001), 77, -1] {
        let arguments = [unknown as u64, at(&mut time)];
        assert_eq!(guest.result(libc::SYS_clock_gettime, &arguments), error(libc::EINVAL));
    }
}

#[test]
fn clock_calls_check_their_pointers() {
    let mut guest = Guest::new(1);
    assert_eq!(guest.result(libc::SYS_clock_gettime, &[0, NOWHERE]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_clock_gettime, &[0, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_clock_getres, &[1, NOWHERE]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_clock_getres, &[77, 0]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_gettimeofday, &[NOWHERE, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_nanosleep, &[NOWHERE]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_clock_settime, &[0, 0]), error(libc::EPERM));
}

#[test]
fn resolutions_and_dates_are_told() {
    let mut guest = Guest::new(1);
    let mut time = [9_i64; 2];
    let coarse = libc::CLOCK_MONOTONIC_COARSE as u64;
    for (clock, step) in [(0, 1), (1, 1), (2, 1), (coarse, 4_000_000)] {
        assert_eq!(guest.result(libc::SYS_clock_getres, &[clock, at(&mut time)]), 0);
        assert_eq!(time, [0, step]);
    }
    assert_eq!(guest.result(libc::SYS_clock_getres, &[0, 0]), 0);
    let mut zone = [1_i32; 2];
    let arguments = [at(&mut time), at(&mut zone)];
    assert_eq!(
        guest.outcome(0, 2_500 * US, libc::SYS_gettimeofday, &arguments),
        Outcome::Return(0)
    );
    assert_eq!((time, zone), ([DATE, 2_500], [0, 0]));
    assert_eq!(guest.result(libc::SYS_gettimeofday, &[0, 0]), 0);
    assert_eq!(guest.result(libc::SYS_time, &[at(&mut time[0])]), DATE);
    assert_eq!(time[0], DATE);
    assert_eq!(guest.result(libc::SYS_time, &[0]), DATE);
}

#[test]
fn a_sleep_ends_a_little_later_than_asked_for() {
    let mut guest = Guest::new(1);
    let mut time = [1_i64, 500];
    let outcome = guest.outcome(0, US, libc::SYS_nanosleep, &[at(&mut time), 0]);
    assert_eq!(outcome, Outcome::Block);
    let deadline = US + SECOND + 500_000 + guest.machine.timer_slack_ps();
    assert_eq!(guest.kernel.next_deadline(), Some(deadline));
    says(&guest.kernel.waiting_for(0).expect("it sleeps"), &["a sleep until 1000051500 ns"]);
    guest.kernel.expire(deadline + 5);
    let woken = guest.woken_at();
    assert_eq!((woken[0].thread, woken[0].value), (0, 0));
    assert_eq!(woken[0].at, deadline + guest.machine.wake_latency_ps());
}

#[test]
fn the_slack_is_the_threads_own() {
    let mut guest = Guest::new(1);
    let (set, get) = (libc::PR_SET_TIMERSLACK as u64, libc::PR_GET_TIMERSLACK as u64);
    assert_eq!(guest.result(libc::SYS_prctl, &[get]), 50_000);
    assert_eq!(guest.result(libc::SYS_prctl, &[set, 1]), 0);
    assert_eq!(guest.result(libc::SYS_prctl, &[get]), 1);
    let mut time = [0_i64, 10];
    guest.outcome(0, 0, libc::SYS_nanosleep, &[at(&mut time)]);
    assert_eq!(guest.kernel.next_deadline(), Some(11_000));
    guest.kernel.expire(11_000);
    assert_eq!(guest.result(libc::SYS_prctl, &[set, 0]), 0);
    assert_eq!(guest.result(libc::SYS_prctl, &[get]), 50_000);
}

#[test]
fn absolute_sleeps_end_at_a_reading() {
    let mut guest = Guest::new(1);
    let slack = guest.machine.timer_slack_ps();
    for (clock, start) in [(0, DATE), (1, START), (7, START), (11, DATE)] {
        let mut time = [start + 2, 0];
        let arguments = [clock, 1, at(&mut time)];
        let outcome = guest.outcome(0, SECOND, libc::SYS_clock_nanosleep, &arguments);
        assert_eq!(outcome, Outcome::Block);
        assert_eq!(guest.kernel.next_deadline(), Some(2 * SECOND + slack));
        guest.kernel.expire(2 * SECOND + slack);
        assert_eq!(guest.woken(), [(0, 0)]);
        let outcome = guest.outcome(0, 2 * SECOND, libc::SYS_clock_nanosleep, &arguments);
        assert_eq!(outcome, Outcome::Return(0));
    }
}

#[test]
fn sleeps_that_cannot_be_are_errors() {
    let mut guest = Guest::new(1);
    for time in [[-1, 0], [0, -1], [0, 1_000_000_000]] {
        let mut time: [i64; 2] = time;
        let pointer = at(&mut time);
        assert_eq!(guest.result(libc::SYS_nanosleep, &[pointer]), error(libc::EINVAL));
        assert_eq!(guest.result(libc::SYS_clock_nanosleep, &[1, 0, pointer]), error(libc::EINVAL));
    }
    let mut time = [0_i64; 2];
    let pointer = at(&mut time);
    assert_eq!(guest.result(libc::SYS_nanosleep, &[pointer]), 0);
    assert_eq!(guest.result(libc::SYS_clock_nanosleep, &[99, 0, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_clock_nanosleep, &[3, 0, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_clock_nanosleep, &[2, 0, pointer]), error(libc::EOPNOTSUPP));
    assert_eq!(guest.result(libc::SYS_clock_nanosleep, &[4, 0, pointer]), error(libc::EOPNOTSUPP));
}

#[test]
fn polling_nothing_is_sleeping() {
    let mut guest = Guest::new(2);
    assert_eq!(guest.result(libc::SYS_poll, &[0, 0, 0]), 0);
    assert_eq!(guest.outcome(0, 0, libc::SYS_poll, &[0, 0, 3]), Outcome::Block);
    let slack = guest.machine.timer_slack_ps();
    assert_eq!(guest.kernel.next_deadline(), Some(3_000 * US + slack));
    let outcome = guest.outcome(1, 0, libc::SYS_poll, &[0, 0, u64::from(u32::MAX)]);
    assert_eq!(outcome, Outcome::Block);
    assert_eq!(guest.kernel.waiting_for(1).as_deref(), Some("a sleep without end"));
    guest.kernel.expire(u64::MAX);
    assert_eq!(guest.woken(), [(0, 0)]);
    let mut time = [0_i64, 77];
    assert_eq!(guest.outcome(0, 0, libc::SYS_ppoll, &[0, 0, at(&mut time)]), Outcome::Block);
    assert_eq!(guest.kernel.next_deadline(), Some(77_000 + slack));
}

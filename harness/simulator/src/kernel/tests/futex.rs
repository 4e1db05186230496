//! Who wakes, in which order, and what is an error.

use std::hint::black_box;

use super::{Guest, NOWHERE, Outcome, US, at, error, says};

const WAIT: u64 = 0;
const WAKE: u64 = 1;
const REQUEUE: u64 = 3;
const CMP_REQUEUE: u64 = 4;
const WAKE_OP: u64 = 5;
const WAIT_BITSET: u64 = 9;
const WAKE_BITSET: u64 = 10;
const PRIVATE: u64 = 128;
const REALTIME: u64 = 256;
const ALL: u64 = 0xffff_ffff;
const FUTEX: i64 = libc::SYS_futex;
/// `None` of a timeout.
const FOR_EVER: u64 = 0;

impl Guest {
    #[track_caller]
    fn waits(&mut self, thread: usize, word: u64, expected: u64) {
        let outcome = self.outcome(thread, 0, FUTEX, &[word, WAIT | PRIVATE, expected, FOR_EVER]);
        assert_eq!(outcome, Outcome::Block);
    }

    #[track_caller]
    fn wakes(&mut self, word: u64, count: u64) -> i64 {
        self.result(FUTEX, &[word, WAKE | PRIVATE, count])
    }
}

#[test]
fn the_first_to_wait_is_the_first_to_wake() {
    let (mut guest, mut word) = (Guest::new(6), 7_u32);
    let word = at(&mut word);
    for thread in [3, 1, 5, 2, 4] {
        guest.waits(thread, word, 7);
    }
    assert_eq!(guest.wakes(word, 1), 1);
    assert_eq!(guest.woken(), [(3, 0)]);
    assert_eq!(guest.wakes(word, 2), 2);
    assert_eq!(guest.woken(), [(1, 0), (5, 0)]);
    assert_eq!(guest.wakes(word, 100), 2);
    assert_eq!(guest.woken(), [(2, 0), (4, 0)]);
    assert_eq!(guest.wakes(word, 100), 0);
    assert_eq!(guest.kernel.next_deadline(), None);
}

#[test]
fn waking_costs_each_and_takes_a_while() {
    let (mut guest, mut word) = (Guest::new(3), 0_u32);
    let word = at(&mut word);
    guest.waits(1, word, 0);
    guest.waits(2, word, 0);
    let answer = guest.answer(0, 5 * US, FUTEX, &[word, WAKE, 2]);
    let (call, wake) = (guest.machine.syscall_ps(), guest.machine.futex_wake_ps());
    assert_eq!((answer.outcome, answer.cost), (Outcome::Return(2), call + 2 * wake));
    let latency = guest.machine.wake_latency_ps();
    let times: Vec<_> = guest.woken_at().iter().map(|woken| woken.at).collect();
    assert_eq!(times, [5 * US + call + wake + latency, 5 * US + call + 2 * wake + latency]);
}

#[test]
fn a_word_that_has_changed_is_not_waited_for() {
    let (mut guest, mut word) = (Guest::new(1), 7_u32);
    let word = at(&mut word);
    assert_eq!(guest.result(FUTEX, &[word, WAIT, 8, 0]), error(libc::EAGAIN));
    assert_eq!(guest.kernel.waiting_for(0), None);
    // Only the low half of an argument counts.
    let answer = guest.outcome(0, 0, FUTEX, &[word, WAIT, 0xdead_0000_0007, 0]);
    assert_eq!(answer, Outcome::Block);
}

#[test]
fn waking_at_least_one_is_linux_behaviour() {
    let (mut guest, mut word) = (Guest::new(3), 0_u32);
    let word = at(&mut word);
    guest.waits(1, word, 0);
    guest.waits(2, word, 0);
    assert_eq!(guest.wakes(word, 0), 1);
    assert_eq!(guest.wakes(word, ALL), 1);
    assert_eq!(guest.woken(), [(1, 0), (2, 0)]);
}

#[test]
fn bad_pointers_and_operations_are_errors() {
    let (mut guest, mut word) = (Guest::new(1), [0_u32; 2]);
    let word = at(&mut word);
    for operation in [WAIT, WAIT_BITSET, WAIT | PRIVATE] {
        let with = |address| [address, operation, 0, 0, 0, ALL];
        assert_eq!(guest.result(FUTEX, &with(NOWHERE)), error(libc::EFAULT));
        assert_eq!(guest.result(FUTEX, &with(0)), error(libc::EFAULT));
        assert_eq!(guest.result(FUTEX, &with(word + 1)), error(libc::EINVAL));
        assert_eq!(guest.result(FUTEX, &with(1 << 63)), error(libc::EFAULT));
    }
    assert_eq!(guest.result(FUTEX, &[word, WAIT, 0, NOWHERE]), error(libc::EFAULT));
    assert_eq!(guest.result(FUTEX, &[word + 2, WAKE, 1]), error(libc::EINVAL));
    assert_eq!(guest.result(FUTEX, &[NOWHERE, WAKE, 1]), error(libc::EFAULT));
    assert_eq!(guest.result(FUTEX, &[NOWHERE, WAKE | PRIVATE, 1]), 0);
    assert_eq!(guest.result(FUTEX, &[word, 99, 1]), error(libc::ENOSYS));
    assert_eq!(guest.result(FUTEX, &[word, WAIT | REALTIME, 0]), error(libc::ENOSYS));
    assert_eq!(guest.result(FUTEX, &[word, WAIT_BITSET, 0, 0, 0, 0]), error(libc::EINVAL));
    assert_eq!(guest.result(FUTEX, &[word, WAKE_BITSET, 1, 0, 0, 0]), error(libc::EINVAL));
    for time in [[-1, 0], [0, -1], [0, 1_000_000_000]] {
        let mut time: [i64; 2] = time;
        let arguments = [word, WAIT, 0, at(&mut time)];
        assert_eq!(guest.result(FUTEX, &arguments), error(libc::EINVAL));
    }
    assert_eq!(guest.woken(), []);
}

#[test]
fn a_relative_timeout_ends_the_wait_with_its_slack() {
    let (mut guest, mut word, mut time) = (Guest::new(2), 0_u32, [0_i64, 30_000]);
    let word = at(&mut word);
    let outcome = guest.outcome(1, 10 * US, FUTEX, &[word, WAIT, 0, at(&mut time)]);
    assert_eq!(outcome, Outcome::Block);
    let deadline = 40 * US + guest.machine.timer_slack_ps();
    assert_eq!(guest.kernel.next_deadline(), Some(deadline));
    let text = guest.kernel.waiting_for(1).expect("it waits");
    assert_eq!(text, format!("futex {word:#x} (expects 0) until 90000 ns"));
    guest.kernel.expire(deadline - 1);
    assert_eq!(guest.woken(), []);
    guest.kernel.expire(deadline);
    let woken = guest.woken_at();
    assert_eq!((woken[0].thread, woken[0].value), (1, error(libc::ETIMEDOUT)));
    assert_eq!(woken[0].at, deadline + guest.machine.wake_latency_ps());
    assert_eq!(guest.wakes(word, 1), 0);
    assert_eq!(guest.kernel.next_deadline(), None);
}

#[test]
fn absolute_timeouts_are_readings_of_their_clock() {
    let (mut guest, mut word) = (Guest::new(3), 0_u32);
    let word = at(&mut word);
    let slack = guest.machine.timer_slack_ps();
    for (thread, flag, clock) in
        [(1, 0, libc::CLOCK_MONOTONIC), (2, REALTIME, libc::CLOCK_REALTIME)]
    {
        let mut time = [0_i64; 2];
        guest.result_of(thread, libc::SYS_clock_gettime, &[clock as u64, at(&mut time)]);
        time[1] += 70_000;
        let arguments = [word, WAIT_BITSET | flag, 0, at(&mut time), 0, ALL];
        assert_eq!(guest.outcome(thread, 0, FUTEX, &arguments), Outcome::Block);
        assert_eq!(guest.kernel.next_deadline(), Some(70 * US + slack));
    }
    guest.kernel.expire(70 * US + slack);
    let timed_out = error(libc::ETIMEDOUT);
    assert_eq!(guest.woken(), [(1, timed_out), (2, timed_out)]);
}

#[test]
fn a_time_that_is_past_does_not_sleep() {
    let (mut guest, mut word, mut time) = (Guest::new(1), 0_u32, [0_i64; 2]);
    let word = at(&mut word);
    assert_eq!(guest.result(FUTEX, &[word, WAIT, 0, at(&mut time)]), error(libc::ETIMEDOUT));
    let mut past = [3_i64, 0];
    let arguments = [word, WAIT_BITSET, 0, at(&mut past), 0, ALL];
    assert_eq!(guest.result(FUTEX, &arguments), error(libc::ETIMEDOUT));
    // The word comes first.
    assert_eq!(guest.result(FUTEX, &[word, WAIT, 1, at(&mut time)]), error(libc::EAGAIN));
}

#[test]
fn a_call_wakes_what_has_timed_out_before_it() {
    let (mut guest, mut word, mut time) = (Guest::new(2), 0_u32, [0_i64, 1]);
    let word = at(&mut word);
    guest.outcome(1, 0, FUTEX, &[word, WAIT, 0, at(&mut time)]);
    let late = 1_000 + guest.machine.timer_slack_ps();
    assert_eq!(guest.outcome(0, late, FUTEX, &[word, WAKE, 1]), Outcome::Return(0));
    assert_eq!(guest.woken(), [(1, error(libc::ETIMEDOUT))]);
}

#[test]
fn a_wake_takes_the_deadline_away() {
    let (mut guest, mut word, mut time) = (Guest::new(2), 0_u32, [5_i64, 0]);
    let word = at(&mut word);
    guest.outcome(1, 0, FUTEX, &[word, WAIT, 0, at(&mut time)]);
    assert_eq!(guest.wakes(word, 1), 1);
    assert_eq!(guest.woken(), [(1, 0)]);
    assert_eq!(guest.kernel.next_deadline(), None);
    guest.kernel.expire(u64::MAX);
    assert_eq!(guest.woken(), []);
}

#[test]
fn a_timeout_longer_than_time_is_for_ever() {
    let (mut guest, mut word, mut time) = (Guest::new(1), 0_u32, [i64::MAX, 0]);
    let word = at(&mut word);
    let outcome = guest.outcome(0, US, FUTEX, &[word, WAIT, 0, at(&mut time)]);
    assert_eq!(outcome, Outcome::Block);
    assert_eq!(guest.kernel.next_deadline(), Some(u64::MAX));
    guest.kernel.expire(u64::MAX);
    assert_eq!(guest.woken(), [(0, error(libc::ETIMEDOUT))]);
}

#[test]
fn timeouts_end_in_the_order_of_their_deadlines_then_of_their_waits() {
    let (mut guest, mut word) = (Guest::new(5), 0_u32);
    let word = at(&mut word);
    for (thread, ns) in [(0, 300), (1, 100), (2, 200), (3, 100), (4, 200)] {
        let mut time = [0_i64, ns];
        guest.outcome(thread, 0, FUTEX, &[word, WAIT, 0, at(&mut time)]);
    }
    guest.kernel.expire(US * 1_000);
    let order: Vec<_> = guest.woken().into_iter().map(|(thread, _)| thread).collect();
    assert_eq!(order, [1, 3, 2, 4, 0]);
}

#[test]
fn bits_choose_who_wakes() {
    let (mut guest, mut word) = (Guest::new(5), 0_u32);
    let word = at(&mut word);
    for (thread, bits) in [(1, 0b01), (2, 0b10), (3, 0b11), (4, 0b100)] {
        let arguments = [word, WAIT_BITSET | PRIVATE, 0, 0, 0, bits];
        assert_eq!(guest.outcome(thread, 0, FUTEX, &arguments), Outcome::Block);
    }
    let text = guest.kernel.waiting_for(2).expect("it waits");
    says(&text, &["(expects 0, bits 0x2)"]);
    assert_eq!(guest.result(FUTEX, &[word, WAKE_BITSET | PRIVATE, 9, 0, 0, 0b1000]), 0);
    assert_eq!(guest.result(FUTEX, &[word, WAKE_BITSET | PRIVATE, 9, 0, 0, 0b10]), 2);
    assert_eq!(guest.woken(), [(2, 0), (3, 0)]);
    assert_eq!(guest.wakes(word, 9), 2);
    assert_eq!(guest.woken(), [(1, 0), (4, 0)]);
}

#[test]
fn requeueing_wakes_some_and_moves_some() {
    let (mut guest, mut words) = (Guest::new(7), [5_u32, 6]);
    let (one, other) = (at(&mut words[0]), at(&mut words[1]));
    guest.waits(6, other, 6);
    for thread in 1..6 {
        guest.waits(thread, one, 5);
    }
    assert_eq!(guest.result(FUTEX, &[one, REQUEUE | PRIVATE, 1, 3, other]), 4);
    assert_eq!(guest.woken(), [(1, 0)]);
    let text = guest.kernel.waiting_for(2).expect("it waits");
    assert_eq!(text, format!("futex {other:#x} (expects 5)"));
    assert_eq!(guest.wakes(one, 9), 1);
    assert_eq!(guest.woken(), [(5, 0)]);
    assert_eq!(guest.wakes(other, 9), 4);
    assert_eq!(guest.woken(), [(6, 0), (2, 0), (3, 0), (4, 0)]);
}

#[test]
fn requeueing_compares_where_asked() {
    let (mut guest, mut words) = (Guest::new(3), [5_u32, 6]);
    let (one, other) = (at(&mut words[0]), at(&mut words[1]));
    guest.waits(1, one, 5);
    guest.waits(2, one, 5);
    let mut requeue = |wake, move_, compared| {
        guest.result(FUTEX, &[one, CMP_REQUEUE | PRIVATE, wake, move_, other, compared])
    };
    assert_eq!(requeue(0, 1, 4), error(libc::EAGAIN));
    assert_eq!(requeue(ALL, 1, 5), error(libc::EINVAL));
    assert_eq!(requeue(0, ALL, 5), error(libc::EINVAL));
    assert_eq!(requeue(0, 0, 5), 0);
    assert_eq!(requeue(0, i32::MAX as u64, 5), 2);
    assert_eq!(guest.woken(), []);
    assert_eq!(guest.wakes(other, 1), 1);
    assert_eq!(guest.woken(), [(1, 0)]);
}

#[test]
fn a_requeued_wait_still_times_out() {
    let (mut guest, mut words, mut time) = (Guest::new(2), [0_u32; 2], [0_i64, 500]);
    let (one, other) = (at(&mut words[0]), at(&mut words[1]));
    guest.outcome(1, 0, FUTEX, &[one, WAIT, 0, at(&mut time)]);
    assert_eq!(guest.result(FUTEX, &[one, REQUEUE, 0, 1, other]), 1);
    guest.kernel.expire(u64::MAX);
    assert_eq!(guest.woken(), [(1, error(libc::ETIMEDOUT))]);
    assert_eq!(guest.wakes(other, 1), 0);
}

#[test]
fn requeueing_to_the_same_word_keeps_everybody() {
    let (mut guest, mut word) = (Guest::new(4), 0_u32);
    let word = at(&mut word);
    for thread in 1..4 {
        guest.waits(thread, word, 0);
    }
    assert_eq!(guest.result(FUTEX, &[word, REQUEUE, 0, 9, word]), 3);
    assert_eq!(guest.wakes(word, 9), 3);
    assert_eq!(guest.woken(), [(1, 0), (2, 0), (3, 0)]);
}

#[test]
fn wake_op_changes_a_word_and_asks_about_it() {
    // Operation, its argument, comparison, its argument; word before and after; wakes the second.
    for (operation, argument, comparison, compared, before, after, wakes) in [
        (0, 3, 0, 5, 5_u32, 3_u32, true),
        (1, 2, 1, 5, 5, 7, false),
        (1, 0xfff, 0, 5, 5, 4, true),
        (2, 6, 2, 6, 5, 7, true),
        (3, 4, 3, 5, 5, 1, true),
        (4, 1, 4, 5, 5, 4, false),
        (0, 1, 5, 5, 5, 1, true),
        (8, 4, 0, 5, 5, 16, true),
        (9, 1, 0, 0xfff, u32::MAX, 1, true),
        (0, 9, 2, 0, u32::MAX, 9, true),
    ] {
        let (mut guest, mut words) = (Guest::new(3), [0_u32, before]);
        let (one, other) = (at(&mut words[0]), at(&mut words[1]));
        guest.waits(1, one, 0);
        guest.waits(2, other, u64::from(before));
        let code = operation << 28 | comparison << 24 | argument << 12 | compared;
        let woken = guest.result(FUTEX, &[one, WAKE_OP | PRIVATE, 1, 1, other, code]);
        assert_eq!(black_box(&words)[1], after, "{operation} {argument}");
        assert_eq!(woken, 1 + i64::from(wakes), "{comparison} {compared}");
        let expected = if wakes { vec![(1, 0), (2, 0)] } else { vec![(1, 0)] };
        assert_eq!(guest.woken(), expected);
        let written = super::Effect::Written { address: other, bytes: 4 };
        assert_eq!(guest.effects().last(), Some(&written));
    }
}

#[test]
fn wake_op_refuses_what_it_does_not_know() {
    let (mut guest, mut words) = (Guest::new(1), [0_u32, 0]);
    let (one, other) = (at(&mut words[0]), at(&mut words[1]));
    let mut wake_op = |second, code: u64| guest.result(FUTEX, &[one, WAKE_OP, 1, 1, second, code]);
    assert_eq!(wake_op(other, 5 << 28), error(libc::ENOSYS));
    assert_eq!(wake_op(other, 6 << 24), error(libc::ENOSYS));
    assert_eq!(wake_op(NOWHERE, 0), error(libc::EFAULT));
    assert_eq!(wake_op(other + 1, 0), error(libc::EINVAL));
    assert_eq!(words, [0, 0]);
}

#[test]
fn priority_inheritance_is_refused_by_name() {
    let (mut guest, mut word) = (Guest::new(1), 0_u32);
    for operation in [6, 7, 8, 11, 12, 13, 6 | PRIVATE] {
        let text = guest.refusal(FUTEX, &[at(&mut word), operation]);
        says(&text, &["futex(0x", "priority inheritance"]);
    }
    says(&guest.refusal(libc::SYS_futex_waitv, &[1, 2]), &["futex_waitv(0x1, 0x2", "several"]);
}

//! CPUs, priorities, barriers.

use super::{CpuSet, Guest, NOWHERE, Outcome, at, error, says};

const SET: i64 = libc::SYS_sched_setaffinity;
const GET: i64 = libc::SYS_sched_getaffinity;

#[test]
fn yielding_goes_behind_the_others() {
    let mut guest = Guest::new(1);
    let answer = guest.answer(0, 0, libc::SYS_sched_yield, &[]);
    assert_eq!((answer.outcome, answer.cost), (Outcome::Yield(0), guest.machine.syscall_ps()));
}

#[test]
fn getcpu_tells_the_simulated_cpu_and_its_node() {
    let mut guest = Guest::new(100);
    let (mut cpu, mut node) = (9_u32, 9_u32);
    let arguments = [at(&mut cpu), at(&mut node)];
    for thread in [0, 63, 64, 99] {
        assert_eq!(guest.result_of(thread, libc::SYS_getcpu, &arguments), 0);
        assert_eq!((cpu, node), (thread as u32, u32::from(thread >= 64)));
    }
    assert_eq!(guest.result(libc::SYS_getcpu, &[0, 0, 0]), 0);
    assert_eq!(guest.result(libc::SYS_getcpu, &[NOWHERE, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_getcpu, &[0, NOWHERE]), error(libc::EFAULT));
}

#[test]
fn affinity_is_told_as_the_kernel_does() {
    let mut guest = Guest::new(1);
    let mut words = [0_u64; 16];
    let pointer = at(&mut words);
    assert_eq!(guest.result(GET, &[0, 128, pointer]), 32);
    assert_eq!(words[..5], [u64::MAX, u64::MAX, u64::MAX, u64::MAX, 0]);
    assert_eq!(guest.result(GET, &[1000, 32, pointer]), 32);
    assert_eq!(guest.result(GET, &[0, 24, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(GET, &[0, 33, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(GET, &[4, 128, pointer]), error(libc::ESRCH));
    assert_eq!(guest.result(GET, &[u64::MAX, 128, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(GET, &[0, 128, NOWHERE]), error(libc::EFAULT));
}

#[test]
fn affinity_is_cut_to_the_cpus_that_there_are() {
    let mut guest = Guest::on("graviton2", 2, 1);
    let mut words = [0b1011_u64, u64::MAX];
    let pointer = at(&mut words);
    assert_eq!(guest.result(SET, &[0, 16, pointer]), 0);
    assert_eq!(*guest.kernel.affinity(0), [0, 1, 3].into_iter().collect::<CpuSet>());
    assert_eq!(guest.kernel.affinity(1).len(), 64);
    let mut beyond = [0, u64::MAX];
    assert_eq!(guest.result(SET, &[0, 16, at(&mut beyond)]), error(libc::EINVAL));
    assert_eq!(guest.result(SET, &[0, 0, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(SET, &[0, 8, NOWHERE]), error(libc::EFAULT));
    assert_eq!(guest.kernel.affinity(0).len(), 3);
    let mut ninth = 0x0200_u64;
    assert_eq!(guest.result(SET, &[0, 1, at(&mut ninth)]), error(libc::EINVAL));
    assert_eq!(guest.result(SET, &[1001, 2, at(&mut ninth)]), 0);
    assert_eq!(*guest.kernel.affinity(1), CpuSet::single(9));
}

#[test]
fn whoever_may_not_stay_yields() {
    let mut guest = Guest::new(2);
    let mut word = 0b10_u64;
    let pointer = at(&mut word);
    assert_eq!(guest.outcome(0, 0, SET, &[0, 8, pointer]), Outcome::Yield(0));
    assert_eq!(guest.outcome(1, 0, SET, &[0, 8, pointer]), Outcome::Return(0));
    let mut word = 0b100_u64;
    assert_eq!(guest.outcome(1, 0, SET, &[1000, 8, at(&mut word)]), Outcome::Return(0));
    assert_eq!(*guest.kernel.affinity(0), CpuSet::single(2));
}

#[test]
fn there_is_one_scheduling_policy() {
    let (mut guest, mut priority) = (Guest::new(1), 0_i32);
    let pointer = at(&mut priority);
    assert_eq!(guest.result(libc::SYS_sched_getscheduler, &[0]), 0);
    assert_eq!(guest.result(libc::SYS_sched_getscheduler, &[5]), error(libc::ESRCH));
    assert_eq!(guest.result(libc::SYS_sched_setscheduler, &[0, 0, pointer]), 0);
    assert_eq!(guest.result(libc::SYS_sched_setscheduler, &[0, 1, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_sched_setscheduler, &[0, 0, NOWHERE]), error(libc::EFAULT));
    let mut five = 5_i32;
    let pointer = at(&mut five);
    assert_eq!(guest.result(libc::SYS_sched_setscheduler, &[0, 1, pointer]), error(libc::EPERM));
    assert_eq!(guest.result(libc::SYS_sched_setparam, &[0, pointer]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_sched_getparam, &[0, pointer]), 0);
    assert_eq!(five, 0);
    assert_eq!(guest.result(libc::SYS_sched_get_priority_max, &[1]), 99);
    assert_eq!(guest.result(libc::SYS_sched_get_priority_min, &[1]), 1);
    assert_eq!(guest.result(libc::SYS_sched_get_priority_max, &[0]), 0);
    assert_eq!(guest.result(libc::SYS_sched_get_priority_max, &[9]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_getpriority, &[0, 0]), 20);
    let mut time = [1_i64; 2];
    assert_eq!(guest.result(libc::SYS_sched_rr_get_interval, &[0, at(&mut time)]), 0);
    assert_eq!(time, [0, 3_000_000]);
}

#[test]
fn barriers_need_their_registration_and_cost_an_interrupt() {
    let mut guest = Guest::new(1);
    let barrier = libc::SYS_membarrier;
    assert_eq!(guest.result(barrier, &[0]), 0x27f);
    for (command, registration) in [(8, 16), (32, 64)] {
        assert_eq!(guest.result(barrier, &[command]), error(libc::EPERM));
        assert_eq!(guest.result(barrier, &[registration]), 0);
        let answer = guest.answer(0, 0, barrier, &[command]);
        let cost = guest.machine.syscall_ps() + guest.machine.interrupt_ps();
        assert_eq!((answer.outcome, answer.cost), (Outcome::Return(0), cost));
    }
    assert_eq!(guest.result(barrier, &[4]), 0);
    assert_eq!(guest.result(barrier, &[2]), 0);
    assert_eq!(guest.result(barrier, &[1]), 0);
    assert_eq!(guest.result(barrier, &[512]), 4 | 16 | 64);
    assert_eq!(guest.result(barrier, &[3]), error(libc::EINVAL));
    assert_eq!(guest.result(barrier, &[0, 1]), error(libc::EINVAL));
    says(&guest.refusal(barrier, &[128]), &["membarrier(0x80", "restartable sequences"]);
}

//! No arguments bring the kernel down.

use super::{Guest, Outcome, US};

/// Calls that are answered from simulated state alone.
const SIMULATED: [i64; 38] = [
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_time,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_sched_yield,
    libc::SYS_getcpu,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getparam,
    libc::SYS_sched_setparam,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_membarrier,
    libc::SYS_getrandom,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    libc::SYS_mbind,
    libc::SYS_move_pages,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigpending,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_kill,
    libc::SYS_prctl,
    libc::SYS_getrusage,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_exit_group,
    9_999,
];

/// Numbers at the edges of what types hold; as addresses, nothing is mapped there.
const EDGES: [u64; 14] = [
    0,
    1,
    3,
    8,
    64,
    4_096,
    1 << 20,
    i32::MAX as u64,
    1 << 31,
    u32::MAX as u64,
    1 << 47,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

#[test]
fn no_arguments_bring_it_down_and_all_are_answered_alike() {
    let run = || {
        let (mut state, mut answers) = (1_u64, Vec::new());
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize
        };
        for number in SIMULATED {
            let mut guest = Guest::new(3);
            for step in 0..300 {
                let arguments: [u64; 6] = std::array::from_fn(|_| EDGES[random() % EDGES.len()]);
                let answer = guest.answer(random() % 3, step * US, number, &arguments);
                if answer.outcome == Outcome::Block {
                    guest.kernel.expire(u64::MAX);
                }
                answers.push((answer, guest.woken_at(), guest.effects()));
            }
        }
        answers
    };
    assert!(run() == run());
}

//! Signal state is kept; signals are not delivered.

use super::{Guest, NOWHERE, at, error, says};

#[test]
fn actions_are_kept_for_the_process() {
    let mut guest = Guest::new(2);
    let (mut new, mut old) = ([1_u64, 2, 3, 4], [9_u64; 4]);
    let (set, ask) = (at(&mut new), at(&mut old));
    let action = libc::SYS_rt_sigaction;
    assert_eq!(guest.result(action, &[11, set, ask, 8]), 0);
    assert_eq!(old, [0; 4]);
    assert_eq!(guest.result_of(1, action, &[11, 0, ask, 8]), 0);
    assert_eq!(old, [1, 2, 3, 4]);
    assert_eq!(guest.result(action, &[9, 0, ask, 8]), 0);
    for bad in [[9, set, 0, 8], [19, set, 0, 8], [0, 0, 0, 8], [65, 0, 0, 8], [11, 0, 0, 16]] {
        assert_eq!(guest.result(action, &bad), error(libc::EINVAL));
    }
    assert_eq!(guest.result(action, &[11, NOWHERE, 0, 8]), error(libc::EFAULT));
    assert_eq!(guest.result(action, &[11, 0, NOWHERE, 8]), error(libc::EFAULT));
}

#[test]
fn masks_are_each_threads_own() {
    let mut guest = Guest::new(2);
    let (mut some, mut others, mut all) = (0b1010_u64, 0b0110_u64, u64::MAX);
    let (some, others, all) = (at(&mut some), at(&mut others), at(&mut all));
    let mut old = 7_u64;
    let ask = at(&mut old);
    let mask = libc::SYS_rt_sigprocmask;
    assert_eq!(guest.result(mask, &[0, some, ask, 8]), 0);
    assert_eq!(old, 0);
    assert_eq!(guest.result(mask, &[0, others, ask, 8]), 0);
    assert_eq!(old, 0b1010);
    assert_eq!(guest.result(mask, &[1, others, ask, 8]), 0);
    assert_eq!(old, 0b1110);
    assert_eq!(guest.result(mask, &[2, all, ask, 8]), 0);
    assert_eq!(old, 0b1000);
    assert_eq!(guest.result(mask, &[0, 0, ask, 8]), 0);
    assert_eq!(old, !(1 << 8 | 1 << 18));
    assert_eq!(guest.result_of(1, mask, &[77, 0, ask, 8]), 0);
    assert_eq!(old, 0);
    assert_eq!(guest.result(mask, &[3, some, 0, 8]), error(libc::EINVAL));
    assert_eq!(guest.result(mask, &[0, some, 0, 128]), error(libc::EINVAL));
    assert_eq!(guest.result(mask, &[0, NOWHERE, 0, 8]), error(libc::EFAULT));
}

#[test]
fn alternate_stacks_are_kept() {
    let mut guest = Guest::new(1);
    let (mut used, mut off) = ([0x1000_u64, 0, 8192], [0_u64, 2, 0]);
    let (mut small, mut odd) = ([0x1000_u64, 0, 100], [0x1000_u64, 64, 8192]);
    let mut old = [9_u64; 3];
    let ask = at(&mut old);
    let stack = libc::SYS_sigaltstack;
    assert_eq!(guest.result(stack, &[at(&mut used), ask]), 0);
    assert_eq!(old, [0, 2, 0]);
    assert_eq!(guest.result(stack, &[0, ask]), 0);
    assert_eq!(old, [0x1000, 0, 8192]);
    assert_eq!(guest.result(stack, &[at(&mut off), ask]), 0);
    assert_eq!(old, [0x1000, 0, 8192]);
    assert_eq!(guest.result(stack, &[at(&mut small), 0]), error(libc::ENOMEM));
    assert_eq!(guest.result(stack, &[at(&mut odd), 0]), error(libc::EINVAL));
    assert_eq!(guest.result(stack, &[NOWHERE, 0]), error(libc::EFAULT));
    let mut pending = 3_u64;
    assert_eq!(guest.result(libc::SYS_rt_sigpending, &[at(&mut pending)]), 0);
    assert_eq!(pending, 0);
}

#[test]
fn aborting_is_told_as_such() {
    let mut guest = Guest::new(2);
    let pid = u64::from(std::process::id());
    let text = guest.refusal(libc::SYS_tgkill, &[pid, 1000, 6]);
    says(&text, &["the program aborts", "thread 0", "SIGABRT", "tgkill("]);
    says(&guest.refusal(libc::SYS_tkill, &[1000, 6]), &["the program aborts"]);
    says(&guest.refusal(libc::SYS_kill, &[pid, 6]), &["the program aborts"]);
    says(&guest.refusal(libc::SYS_tgkill, &[pid, 1001, 6]), &["between simulated threads"]);
    says(&guest.refusal(libc::SYS_tgkill, &[pid, 1000, 10]), &["tgkill", "not simulated"]);
    says(&guest.refusal(libc::SYS_kill, &[1, 9]), &["kill(0x1, 0x9", "outside of the simulation"]);
    assert_eq!(guest.result(libc::SYS_tgkill, &[pid, 1001, 0]), 0);
    assert_eq!(guest.result(libc::SYS_tgkill, &[pid, 5, 0]), error(libc::ESRCH));
}

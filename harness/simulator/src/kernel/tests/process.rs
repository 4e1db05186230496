//! Identities, names, randomness, exits, refusals.

use super::{Guest, NOWHERE, Outcome, US, at, error, says};

#[test]
fn identities_are_those_of_the_lenders() {
    let mut guest = Guest::new(3);
    assert_eq!(guest.result_of(2, libc::SYS_gettid, &[]), 1002);
    assert_eq!(guest.result_of(1, libc::SYS_set_tid_address, &[0x1000]), 1001);
    assert_eq!(guest.result(libc::SYS_getpid, &[]), i64::from(std::process::id()));
    assert!(guest.result(libc::SYS_getppid, &[]) >= 0);
    for call in [libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid, libc::SYS_getegid] {
        assert!(guest.result(call, &[]) >= 0);
    }
}

#[test]
fn exits_are_told() {
    let mut guest = Guest::new(2);
    assert_eq!(guest.outcome(1, 5 * US, libc::SYS_exit, &[3]), Outcome::ExitThread);
    let clock = libc::CLOCK_THREAD_CPUTIME_ID;
    let time = guest.kernel.clock_gettime(clock, 1, 900 * US).expect("a clock");
    assert_eq!(time.nanoseconds, 5_000);
    assert_eq!(guest.outcome(0, 0, libc::SYS_exit_group, &[3]), Outcome::ExitProcess(3));
    assert_eq!(guest.outcome(0, 0, libc::SYS_exit_group, &[0x1ff]), Outcome::ExitProcess(255));
}

#[test]
fn registrations_of_the_c_library_are_answered() {
    let mut guest = Guest::new(1);
    assert_eq!(guest.result(libc::SYS_set_robust_list, &[0x1000, 24]), 0);
    assert_eq!(guest.result(libc::SYS_set_robust_list, &[0x1000, 8]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_rseq, &[0x1000, 32, 0, 0]), error(libc::ENOSYS));
}

#[test]
fn threads_have_names() {
    let mut guest = Guest::new(2);
    let mut name = *b"a rather long name of a thread\0";
    let mut read = [9_u8; 16];
    let get = libc::PR_GET_NAME as u64;
    assert_eq!(guest.result(libc::SYS_prctl, &[libc::PR_SET_NAME as u64, at(&mut name)]), 0);
    assert_eq!(guest.result(libc::SYS_prctl, &[get, at(&mut read)]), 0);
    assert_eq!(&read, b"a rather long n\0");
    assert_eq!(guest.result_of(1, libc::SYS_prctl, &[get, at(&mut read)]), 0);
    assert_eq!(&read, b"simulated\0\0\0\0\0\0\0");
    let arguments = [libc::PR_SET_NAME as u64, NOWHERE];
    assert_eq!(guest.result(libc::SYS_prctl, &arguments), error(libc::EFAULT));
}

#[test]
fn other_options_of_prctl_are_refused_or_unknown() {
    let mut guest = Guest::new(1);
    assert_eq!(guest.result(libc::SYS_prctl, &[0x5356_4d41, 0, 0x1000, 4096, 0]), 0);
    assert_eq!(guest.result(libc::SYS_prctl, &[libc::PR_GET_THP_DISABLE as u64]), 0);
    assert_eq!(guest.result(libc::SYS_prctl, &[4_000]), error(libc::EINVAL));
    says(&guest.refusal(libc::SYS_prctl, &[22, 1]), &["prctl(0x16", "PR_SET_SECCOMP"]);
    says(&guest.refusal(libc::SYS_prctl, &[59, 1]), &["PR_SET_SYSCALL_USER_DISPATCH"]);
}

#[test]
fn usage_is_simulated_time() {
    let (mut guest, mut usage) = (Guest::new(2), [9_u64; 18]);
    let arguments = [0, at(&mut usage)];
    guest.outcome(0, 2_000_003 * US, libc::SYS_getrusage, &arguments);
    assert_eq!((usage[0], usage[1], usage[2]), (4, 6, 0));
    guest.outcome(0, 2_000_003 * US, libc::SYS_getrusage, &[1, arguments[1]]);
    assert_eq!((usage[0], usage[1]), (2, 3));
    assert_eq!(guest.result(libc::SYS_getrusage, &[7, arguments[1]]), error(libc::EINVAL));
}

#[test]
fn threads_and_processes_cannot_be_started() {
    let mut guest = Guest::new(1);
    let thread = libc::CLONE_THREAD as u64 | libc::CLONE_VM as u64;
    let text = guest.refusal(libc::SYS_clone, &[thread, 5]);
    says(&text, &["clone(0x10100, 0x5", "may not start threads", "argument of the run"]);
    let mut arguments = [thread; 11];
    let text = guest.refusal(libc::SYS_clone3, &[at(&mut arguments), 88]);
    says(&text, &["clone3(", "may not start threads"]);
    says(&guest.refusal(libc::SYS_clone3, &[NOWHERE, 88]), &["may not start threads"]);
    says(&guest.refusal(libc::SYS_clone, &[17]), &["may not start processes"]);
    says(&guest.refusal(libc::SYS_fork, &[]), &["fork(", "may not start processes"]);
    says(&guest.refusal(libc::SYS_vfork, &[]), &["vfork("]);
    says(&guest.refusal(libc::SYS_execve, &[1, 2, 3]), &["execve(0x1, 0x2, 0x3", "programs"]);
    says(&guest.refusal(libc::SYS_execveat, &[]), &["execveat("]);
}

#[test]
fn what_is_not_simulated_is_named_with_its_arguments() {
    let mut guest = Guest::new(1);
    let text = guest.refusal(libc::SYS_epoll_wait, &[3, 0x1000, 64, u64::MAX]);
    says(&text, &["epoll_wait(0x3, 0x1000, 0x40, 0xffffffffffffffff, 0x0, 0x0)", "not simulated"]);
    says(&guest.refusal(libc::SYS_io_uring_enter, &[]), &["io_uring_enter("]);
    says(&guest.refusal(libc::SYS_socket, &[]), &["socket("]);
    says(&guest.refusal(9_999, &[1]), &["number 9999 (0x1", "no known name"]);
    says(&guest.refusal(-1, &[]), &["number 18446744073709551615"]);
}

#[test]
fn limits_are_told_and_not_changed() {
    let (mut guest, mut limits) = (Guest::new(1), [0_u64; 2]);
    let pointer = at(&mut limits);
    let stack = u64::from(libc::RLIMIT_STACK);
    assert_eq!(guest.result(libc::SYS_prlimit64, &[0, stack, 0, pointer]), 0);
    assert!(limits[0] > 0);
    says(&guest.refusal(libc::SYS_prlimit64, &[0, stack, pointer, 0]), &["prlimit64", "limits"]);
}

fn random(seed: u64, thread: usize, bytes: usize) -> Vec<u8> {
    let mut guest = Guest::on("graviton2", 4, seed);
    let mut buffer = vec![0_u8; bytes];
    let arguments = [at(&mut buffer[0]), bytes as u64, 0];
    assert_eq!(guest.result_of(thread, libc::SYS_getrandom, &arguments), bytes as i64);
    buffer
}

#[test]
fn random_bytes_depend_on_the_seed_and_the_thread_alone() {
    assert_eq!(random(1, 0, 1_000), random(1, 0, 1_000));
    assert_ne!(random(1, 0, 32), random(2, 0, 32));
    assert_ne!(random(1, 0, 32), random(1, 1, 32));
    assert_eq!(random(1, 0, 13)[..8], random(1, 0, 32)[..8]);
    let bytes = random(3, 2, 100_000);
    let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
    assert!((395_000..405_000).contains(&ones), "{ones} of 800000 bits are set");
}

#[test]
fn what_one_thread_draws_does_not_change_another_ones_bytes() {
    let mut guest = Guest::on("graviton2", 2, 1);
    let mut buffer = [0_u8; 32];
    let arguments = [at(&mut buffer), 32, 0];
    guest.result_of(0, libc::SYS_getrandom, &arguments);
    guest.result_of(1, libc::SYS_getrandom, &arguments);
    assert_eq!(buffer[..], random(1, 1, 32)[..]);
    guest.result_of(1, libc::SYS_getrandom, &arguments);
    assert_ne!(buffer[..], random(1, 1, 32)[..]);
}

#[test]
fn getrandom_checks_its_arguments() {
    let (mut guest, mut byte) = (Guest::new(1), [0_u8; 4]);
    let pointer = at(&mut byte);
    assert_eq!(guest.result(libc::SYS_getrandom, &[NOWHERE, 8, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_getrandom, &[NOWHERE, 0, 0]), 0);
    assert_eq!(guest.result(libc::SYS_getrandom, &[pointer, 1, 8]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_getrandom, &[pointer, 1, 6]), error(libc::EINVAL));
    assert_eq!(guest.result(libc::SYS_getrandom, &[pointer, 3, 1]), 3);
    assert_eq!(byte[3], 0);
}

//! Guests that crash, end the process, or ask for what is not simulated: the run stops with the
//! reason and the place, and this process lives on.

use core::hint::black_box;
use core::ptr;
use std::panic::{catch_unwind, resume_unwind};
use std::process::Command;
use std::time::Duration;

use simulator::{Machine, Reason, Session, Simulation};

#[path = "support/child.rs"]
mod child;
#[macro_use]
#[path = "support/bad.rs"]
mod bad;
#[path = "support/guests.rs"]
mod guests;

use bad::three;
use guests::{alive, assert_says, machine, stops};

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

/// Makes a system call.
#[inline(always)]
fn call(number: libc::c_long, arguments: [usize; 3]) -> libc::c_long {
    let [first, second, third] = arguments;
    // SAFETY: the call is refused, fails, or does what the test wants.
    unsafe { libc::syscall(number, first, second, third) }
}

// Threads and processes.

bad!(spawns_a_thread, Refused, ["started a thread"], || {
    std::thread::spawn(|| ()).join().unwrap();
});

bad!(spawns_a_scoped_thread, Refused, ["started a thread"], || {
    std::thread::scope(|scope| scope.spawn(|| ()).join()).unwrap();
});

bad!(forks, Refused, ["started a process"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::fork() });
});

bad!(forks_by_a_system_call, Refused, ["fork", "refused"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::syscall(libc::SYS_fork) });
});

bad!(vforks, Refused, ["fork", "refused"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::syscall(libc::SYS_vfork) });
});

bad!(clones, Refused, ["clone", "refused"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) });
});

bad!(runs_a_program, Refused, ["started a process"], || {
    let _ = Command::new("/bin/true").status();
});

bad!(becomes_a_program, Refused, ["another program"], || {
    let arguments = [c"true".as_ptr(), ptr::null()];
    // SAFETY: refused.
    unsafe { libc::execv(c"/bin/true".as_ptr(), arguments.as_ptr()) };
});

bad!(asks_a_shell, Refused, ["process"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::system(c"true".as_ptr()) });
});

// Ends of the process and of the thread.

bad!(aborts, Exit, ["aborted"], || std::process::abort());

bad!(aborts_in_c, Exit, ["aborted"], || {
    // SAFETY: the engine stops it.
    unsafe { libc::abort() };
});

bad!(exits, Exit, ["exit", "status 3"], || std::process::exit(3));

bad!(exits_in_c, Exit, ["exit", "status 4"], || {
    // SAFETY: the engine stops it.
    unsafe { libc::exit(4) };
});

bad!(exits_at_once, Exit, ["exit", "status 5"], || {
    // SAFETY: the engine stops it.
    unsafe { libc::_exit(5) };
});

bad!(exits_by_a_system_call, Exit, ["ended the process", "status 6"], || {
    // SAFETY: the engine stops it.
    black_box(unsafe { libc::syscall(libc::SYS_exit_group, 6) });
});

bad!(ends_its_thread, Exit, ["pthread_exit"], || {
    // SAFETY: the engine stops it.
    unsafe { libc::pthread_exit(ptr::null_mut()) };
});

bad!(ends_its_thread_by_a_system_call, Exit, ["ended itself"], || {
    // SAFETY: the engine stops it.
    black_box(unsafe { libc::syscall(libc::SYS_exit, 0) });
});

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn panics_twice() {
    // Where output is captured, the test harness locks standard output for ever when it sees a
    // panic that cannot unwind; so this runs in a process of its own, which captures nothing.
    if child::part().is_none() {
        let path = std::env::current_exe().unwrap();
        let output = child::command(&path, "panics_twice", "1").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", output.status);
        return;
    }
    let line = line!();
    let stopped = stops(three(), |_| {
        let _first = PanicsWhenDropped;
        panic!("first");
    });
    assert_says(&stopped, Reason::Exit, &["aborted", "second panic"], (file!(), line));
}

#[test]
fn a_panic_is_told_with_its_message() {
    let stopped = stops(three(), |thread| {
        if thread == 1 {
            panic!("oh {}", 7);
        }
    });
    assert_eq!(stopped.reason, Reason::Panicked);
    assert_eq!(stopped.message, "thread 1 panicked: oh 7");
}

#[test]
fn a_panic_in_a_drop_is_a_panic() {
    let stopped = stops(three(), |thread| (thread == 2).then(|| PanicsWhenDropped).is_some());
    assert_eq!(stopped.reason, Reason::Panicked);
    assert_eq!(stopped.message, "thread 2 panicked: dropped");
}

#[test]
fn a_panic_with_what_is_no_text_is_told() {
    let stopped = stops(three(), |_| resume_unwind(Box::new(7)));
    assert_eq!(stopped.reason, Reason::Panicked);
    assert_eq!(stopped.message, "thread 0 panicked: a value that is no text");
}

#[test]
fn panics_that_are_caught_are_nobodys_business() {
    let mut session = three().start().unwrap();
    let report = session.each(|thread| {
        let caught = catch_unwind(|| {
            let _dropped = vec![thread; 100];
            assert!(black_box(thread) > 100, "thread {thread}");
        });
        let message = caught.unwrap_err().downcast::<String>().unwrap();
        (*message).clone()
    });
    assert_eq!(report.unwrap().results, ["thread 0", "thread 1", "thread 2"]);
}

// What the kernel is asked for.

bad!(socket, Refused, ["socket"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0) });
});
bad!(call_that_nobody_knows, Refused, ["9999"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::syscall(9999, 1, 2, 3) });
});
bad!(raises_a_signal, Refused, ["signal"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::raise(libc::SIGTERM) });
});
bad!(kills_the_process, Refused, ["signal"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::kill(std::process::id() as i32, libc::SIGKILL) });
});
bad!(kills_another_process, Refused, ["outside"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::kill(i32::MAX, libc::SIGTERM) });
});
bad!(raises_an_abort, Refused, ["abort"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::raise(libc::SIGABRT) });
});
bad!(sets_an_alarm, Refused, ["alarm"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::alarm(1) });
});
bad!(waits_for_a_signal, Refused, ["pause"], || {
    // SAFETY: refused.
    black_box(unsafe { libc::pause() });
});
#[inline(never)]
extern "C" fn twice(value: u64) -> u64 {
    black_box(value) * 2
}

bad!(protects_code_that_it_executed, Refused, ["code that changes"], || {
    black_box(twice(21));
    let page = (twice as *const ()).addr() & !4095;
    let page = ptr::without_provenance_mut(page);
    // SAFETY: refused.
    black_box(unsafe { libc::mprotect(page, 4096, libc::PROT_READ) });
});

// Memory.

bad!(asks_for_more_memory_than_there_is, Exit, ["aborted"], || {
    black_box(Vec::<u8>::with_capacity(black_box(1 << 46)));
});

fn mapped(bytes: usize) -> *mut u8 {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping.
    unsafe { libc::mmap(ptr::null_mut(), bytes, rights, flags, -1, 0) }.cast()
}

bad!(reads_what_it_unmapped, Fault, ["may not"], || {
    let place = mapped(8192);
    // SAFETY: mapped above.
    unsafe { place.write_volatile(1) };
    // SAFETY: mapped above.
    unsafe { libc::munmap(place.cast(), 8192) };
    // SAFETY: the engine stops it.
    unsafe { black_box(place).read_volatile() };
});

bad!(writes_what_it_protected, Fault, ["may not"], || {
    let place = mapped(4096);
    // SAFETY: mapped above.
    unsafe { place.write_volatile(1) };
    // SAFETY: mapped above.
    unsafe { libc::mprotect(place.cast(), 4096, libc::PROT_READ) };
    // SAFETY: the engine stops it.
    unsafe { black_box(place).write_volatile(2) };
});

#[test]
fn memory_comes_and_goes() {
    let mut session = three().threads(8).start().unwrap();
    let report = session.each(|thread| {
        let mut sum = 0;
        for round in 1..20 {
            let place = mapped(round << 14);
            for page in (0..round << 14).step_by(4096) {
                // SAFETY: within the mapping.
                unsafe { place.wrapping_add(page).write_volatile(thread as u8) };
            }
            // SAFETY: within the mapping.
            sum += u32::from(unsafe { place.wrapping_add(4096).read_volatile() });
            // SAFETY: the mapping.
            assert_eq!(unsafe { libc::munmap(place.cast(), round << 14) }, 0);
        }
        let large: Vec<u64> = vec![0; 1 << 27]; // a gigabyte, of which one page is touched
        sum + u32::from(large[black_box(1 << 26)] != 0)
            + u32::from(Vec::<u8>::new().try_reserve_exact(isize::MAX as usize).is_ok())
    });
    assert_eq!(report.unwrap().results, (0..8).map(|thread| 19 * thread).collect::<Vec<u32>>());
}

#[test]
fn the_kernel_does_not_follow_pointers_to_nowhere() {
    let mut session = three().threads(1).start().unwrap();
    let report = session.each(|_| {
        let nowhere = 0x1234_5000;
        let results = [
            call(libc::SYS_write, [1, nowhere, 10]),
            call(libc::SYS_futex, [nowhere, libc::FUTEX_WAIT as usize, 0]),
            call(libc::SYS_nanosleep, [nowhere, 0, 0]),
            call(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as usize, nowhere, 0]),
            call(libc::SYS_getrandom, [nowhere, 8, 0]),
            call(libc::SYS_sched_getaffinity, [0, 128, nowhere]),
            call(libc::SYS_getcwd, [nowhere, 100, 0]),
            call(libc::SYS_open, [nowhere, 0, 0]),
            call(libc::SYS_pipe, [nowhere, 0, 0]),
        ];
        (results, std::io::Error::last_os_error().raw_os_error())
    });
    assert_eq!(report.unwrap().results, [([-1; 9], Some(libc::EFAULT))]);
}

// Afterwards.

#[test]
fn a_session_is_one_at_a_time_on_a_thread() {
    let first = three().start().unwrap();
    let second = three().start();
    assert!(matches!(second, Err(simulator::Error::SecondSession)), "{second:?}");
    let elsewhere = std::thread::spawn(|| {
        let mut session = three().start().unwrap();
        session.each(|thread| thread).unwrap().results
    });
    std::thread::sleep(Duration::from_millis(20));
    assert!(!elsewhere.is_finished());
    drop(first);
    assert_eq!(elsewhere.join().unwrap(), [0, 1, 2]);
    three().start().map(drop).unwrap();
}

#[test]
fn numbers_that_do_not_fit_are_refused_in_words() {
    let machine: &Machine = &machine();
    let refused = |simulation: Simulation| {
        let result: Result<Session, _> = simulation.start();
        result.map(drop).unwrap_err().to_string()
    };
    let on = || Simulation::on(machine);
    assert!(refused(on().threads(0)).contains("ask for one at least"));
    assert!(refused(on().threads(2).cores(&[])).contains("ask for one at least"));
    let most = machine.cores();
    let text = format!("{} cores asked for, and epyc-7742-2s has {most}", most + 1);
    assert!(refused(on().threads(most + 1)).contains(&text));
    assert!(refused(on().threads(usize::MAX)).contains(&format!("has {most}")));
    assert!(refused(on().threads(1 << 20).cores(&[1])).contains(&format!("has {most}")));
    let text = format!("no core {most}; its cores are 0 to {}", most - 1);
    assert!(refused(on().cores(&[most as u32])).contains(&text));
    assert!(refused(on().cores(&[3, 4, 3])).contains("core 3 is named twice"));
    assert!(refused(on().cores(&[u32::MAX])).contains("no core 4294967295"));
    alive();
}

#[test]
fn a_session_within_a_guest_is_refused() {
    let mut session = three().start().unwrap();
    let report = session.each(|_| three().start().map(drop).unwrap_err().to_string());
    let text = report.unwrap().results.concat();
    assert!(text.contains("has a session already"), "{text}");
}

//! Hosts that refuse what simulating needs are told what is refused; what is not needed may be
//! refused.

use simulator::{Error, Machine, Simulation};

#[path = "support/child.rs"]
mod child;

#[global_allocator]
static HEAP: simulator::EngineHeap = simulator::EngineHeap;

/// Loads a word of what the filter looks at.
const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
/// Jumps over as many as the first number says if the word has one of the bits, else the second.
const ANY: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
/// The same, if it is the number.
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const NUMBER_AT: u32 = 0;
/// The low half of the third argument.
const THIRD_AT: u32 = 32;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// From now on, this thread and those that it starts get EPERM from the call; if bits are given,
/// when its third argument has one of them.
fn refuse(call: libc::c_long, bits: Option<u32>) {
    let refused = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    let look = match bits {
        Some(bits) => [step(LOAD, 0, 0, THIRD_AT), step(ANY, 0, 1, bits)],
        None => [step(LOAD, 0, 0, NUMBER_AT), step(EQUAL, 0, 1, call as u32)],
    };
    let mut filter = [
        step(LOAD, 0, 0, NUMBER_AT),
        step(EQUAL, 0, 3, call as u32),
        look[0],
        look[1],
        step(ANSWER, 0, 0, refused),
        step(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: gives up rights that it does not have.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: a program that lives during the call.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program, 0, 0) }, 0);
}

fn attempt() -> Result<Vec<usize>, Error> {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let mut session = Simulation::on(&machine).threads(3).start()?;
    Ok(session.each(|thread| format!("{thread}").len() + thread)?.results)
}

/// Does the part in a process of its own.
fn alone(test: &str, part: impl FnOnce()) {
    if child::part().is_some() {
        return part();
    }
    let path = std::env::current_exe().unwrap();
    let output = child::command(&path, test, "1").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
}

#[test]
fn executable_memory() {
    alone("executable_memory", || {
        refuse(libc::SYS_mmap, Some(libc::PROT_EXEC as u32));
        for _ in 0..2 {
            let error = attempt().unwrap_err();
            assert!(matches!(error, Error::NoExecutableMemory(_)), "{error:?}");
            let text = error.to_string();
            assert!(
                text.contains("executable memory is refused (Operation not permitted"),
                "{text}"
            );
            assert!(text.contains("seccomp"), "{text}");
        }
    });
}

#[test]
fn anonymous_files() {
    alone("anonymous_files", || {
        refuse(libc::SYS_memfd_create, None);
        let error = attempt().unwrap_err();
        assert!(matches!(error, Error::NoExecutableMemory(_)), "{error:?}");
    });
}

#[test]
fn personalities_are_not_needed() {
    alone("personalities_are_not_needed", || {
        refuse(libc::SYS_personality, None);
        // SAFETY: asks and changes nothing.
        assert_eq!(unsafe { libc::personality(u64::from(u32::MAX)) }, -1);
        assert_eq!(attempt().unwrap(), [1, 2, 3]);
    });
}

#[test]
fn threads() {
    alone("threads", || {
        // The C library takes the older call when it does not know the newer one.
        refuse(libc::SYS_clone3, None);
        let error = attempt();
        assert!(error.is_err(), "{error:?}");
    });
}

#[test]
fn address_space() {
    alone("address_space", || {
        let limit = libc::rlimit { rlim_cur: 4 << 30, rlim_max: 4 << 30 };
        // SAFETY: a limit that lives during the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
        let error = attempt().unwrap_err();
        assert!(matches!(error, Error::NoAddressSpace), "{error:?}");
        assert!(error.to_string().contains("ulimit -v unlimited"), "{error}");
    });
}

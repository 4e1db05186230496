//! What the placement tests need of the host: its state, children of this process, filters.

use core::ffi::{c_int, c_long};
use core::ptr::NonNull;
use std::fs;
use std::io::Write;
use std::process::Command;

const CHILD: &str = "ALLOC_ARENA_PLACEMENT_CHILD";

/// Says what is not tested, past the harness, which would keep it to itself.
pub(super) fn skip(what: &str, reason: &str) {
    say(&format!("skipped: {what}: {reason}"));
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

pub(super) fn page_bytes() -> usize {
    // SAFETY: reads a constant of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.try_into().unwrap()
}

/// Reads the byte at `offset` of a region that is alive and at least so long.
pub(super) fn read(region: NonNull<[u8]>, offset: usize) -> u8 {
    assert!(offset < region.len());
    // SAFETY: inside the region.
    let byte = unsafe { region.cast::<u8>().add(offset) };
    // SAFETY: anonymous memory is initialised, with zeros.
    unsafe { byte.read_volatile() }
}

/// Writes the byte at `offset` of a region that is alive and at least so long.
pub(super) fn write(region: NonNull<[u8]>, offset: usize, value: u8) {
    assert!(offset < region.len());
    // SAFETY: inside the region.
    let byte = unsafe { region.cast::<u8>().add(offset) };
    // SAFETY: the test owns the arena and has handed nothing out.
    unsafe { byte.write_volatile(value) };
}

/// Writes where nothing may be written; the process must end.
pub(super) fn poke(start: NonNull<u8>, offset: isize) {
    let address = start.as_ptr().wrapping_offset(offset);
    // SAFETY: not safe at all: the page is closed, and the fault is what the test asks for.
    unsafe { address.write_volatile(1) };
}

fn status(key: &str) -> Option<String> {
    let text = fs::read_to_string("/proc/thread-self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(line.trim().to_string())
}

fn kibibytes(key: &str) -> u64 {
    let text = status(key).unwrap();
    text.trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

pub(super) fn locked_bytes() -> u64 {
    kibibytes("VmLck")
}

pub(super) fn address_space_bytes() -> u64 {
    kibibytes("VmSize")
}

fn expand(list: &str) -> Vec<u32> {
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse().unwrap()..=last.parse().unwrap()
    };
    list.trim().split(',').filter(|range| !range.is_empty()).flat_map(range).collect()
}

fn node_list(name: &str) -> Option<Vec<u32>> {
    Some(expand(&fs::read_to_string(format!("/sys/devices/system/node/{name}")).ok()?))
}

pub(super) fn online(node: u32) -> bool {
    node_list("online").is_some_and(|nodes| nodes.contains(&node))
}

/// Nodes that this process may bind memory to; `None`, with the reason printed, if none.
pub(super) fn nodes_to_bind() -> Option<Vec<u32>> {
    let mut mode: c_int = 0;
    let (nothing, zero) = (core::ptr::null_mut::<u64>(), 0_usize);
    // SAFETY: `mode` is there to be written; without a mask and an address nothing else is.
    let asked =
        unsafe { libc::syscall(libc::SYS_get_mempolicy, &raw mut mode, nothing, zero, zero, zero) };
    if asked != 0 {
        skip("binding", &format!("get_mempolicy: {}", std::io::Error::last_os_error()));
        return None;
    }
    let with_memory = node_list("has_memory")?;
    let allowed = expand(&status("Mems_allowed_list")?);
    let nodes: Vec<u32> = allowed.into_iter().filter(|node| with_memory.contains(node)).collect();
    if nodes.is_empty() {
        skip("binding", "no allowed node has memory");
        return None;
    }
    Some(nodes)
}

pub(super) fn free_huge_pages() -> u64 {
    fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
        .map_or(0, |text| text.trim().parse().unwrap())
}

/// The word in brackets of the kernel's setting.
pub(super) fn transparent_mode() -> Option<&'static str> {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    ["always", "madvise", "never"].into_iter().find(|mode| text.contains(&format!("[{mode}]")))
}

/// Runs `body` on a thread of its own for which the call `number` fails with `errno`.
pub(super) fn forbidding(number: c_long, errno: c_int, body: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| match install_filter(number, errno) {
            Ok(()) => body(),
            Err(error) => skip("a seccomp filter", &error.to_string()),
        });
    });
}

fn install_filter(number: c_long, errno: c_int) -> std::io::Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    // The number of the call is the first word of what the filter sees.
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        libc::sock_filter { code: equal, jt: 0, jf: 1, k: number as u32 },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain numbers.
    let first = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the filter and its program are alive during the call.
    let then = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter, 0, 0)
    };
    if first == 0 && then == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// What only a process that ends afterwards may do.
pub(super) struct Child(());

/// Runs `body` in this binary started again, as its only test, `name`.
pub(super) fn in_child(name: &str, body: impl FnOnce(&Child)) {
    if std::env::var(CHILD).is_ok_and(|child| child == name) {
        return body(&Child(()));
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().filter(|line| line.starts_with("skipped: ")).for_each(say);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

impl Child {
    pub(super) fn limit(&self, what: libc::__rlimit_resource_t, bytes: u64) {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: `limit` is there to be written.
        assert_eq!(unsafe { libc::getrlimit(what, &raw mut limit) }, 0);
        limit.rlim_cur = bytes.min(limit.rlim_max);
        // SAFETY: `limit` is there to be read.
        assert_eq!(unsafe { libc::setrlimit(what, &raw const limit) }, 0);
    }

    /// Gives up the right to lock without limit, on this thread.
    pub(super) fn give_up_ipc_lock(&self) -> Result<(), String> {
        const CAP_IPC_LOCK: u32 = 14;
        // Version 3 of the interface; the calling thread. Each set has effective, permitted and
        // inheritable bits, for capabilities 0 … 31 and 32 … 63.
        let mut header = [0x2008_0522_u32, 0];
        let mut sets = [[0_u32; 3]; 2];
        // SAFETY: both arrays have the sizes of version 3.
        let got = unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), &raw mut sets) };
        sets[0].iter_mut().for_each(|bits| *bits &= !(1 << CAP_IPC_LOCK));
        // SAFETY: as above.
        let set = unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), &raw const sets) };
        if got == 0 && set == 0 {
            Ok(())
        } else {
            Err(format!("capset: {}", std::io::Error::last_os_error()))
        }
    }

    pub(super) fn give_up_transparent_pages(&self) -> Result<(), String> {
        // SAFETY: plain numbers.
        match unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) } {
            0 => Ok(()),
            _ => Err(format!("prctl: {}", std::io::Error::last_os_error())),
        }
    }

    /// Opens every other page of a closed mapping until the kernel has no mapping left to give.
    pub(super) fn use_up_mappings(&self) -> Result<(), String> {
        let most = fs::read_to_string("/proc/sys/vm/max_map_count").map_err(|e| e.to_string())?;
        let most: usize = most.trim().parse().map_err(|_| "max_map_count".to_string())?;
        if most > 200_000 {
            return Err(format!("vm.max_map_count is {most}"));
        }
        let (page, pages) = (page_bytes(), most + 10);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, of address space only.
        let start = unsafe {
            libc::mmap(core::ptr::null_mut(), pages * page, libc::PROT_NONE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error().to_string());
        }
        let read_write = libc::PROT_READ | libc::PROT_WRITE;
        for at in (1..pages).step_by(2) {
            let address = start.wrapping_byte_add(at * page);
            // SAFETY: a page of the mapping above, which nobody else knows.
            if unsafe { libc::mprotect(address, page, read_write) } != 0 {
                return Ok(());
            }
        }
        Err("every page could be opened".into())
    }

    /// Runs `body` in a fork, which must end with `signal`.
    pub(super) fn dies_of(&self, signal: c_int, body: impl FnOnce()) {
        // SAFETY: the fork does nothing but `body`, which neither allocates nor locks.
        let fork = unsafe { libc::fork() };
        if fork == 0 {
            body();
            // SAFETY: ends the fork at once.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: `status` is there to be written.
        assert_eq!(unsafe { libc::waitpid(fork, &raw mut status, 0) }, fork);
        assert!(libc::WIFSIGNALED(status), "the fork ended with status {status:#x}");
        assert_eq!(libc::WTERMSIG(status), signal);
    }
}

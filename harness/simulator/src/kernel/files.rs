//! Files: passed to the real kernel as they are.
//!
//! Their contents are those of the host, `/proc` and `/sys` included but for what they say about
//! NUMA nodes ([`node_files`]), and cost a system call and nothing more. A read or a write that would have to wait holds up the whole simulation; after
//! [`PATIENCE_MS`] of real time it is refused.

use libc::c_long;

use super::node_files;
use super::{Call, Caller, Effect, Errno, Handler, Kernel, Reply, get, perform, refuse, value};

/// How long a read or a write waits for its file, in milliseconds of real time.
const PATIENCE_MS: u64 = 5_000;

/// Which guest memory a call writes.
#[derive(Clone, Copy)]
enum Writes {
    Nothing,
    /// As many bytes as the result says, where the argument points.
    Result(usize),
    /// So many bytes, where the argument points.
    Bytes(usize, u64),
    /// As many bytes as the result says, in the buffers of the vector that the second and third
    /// arguments describe.
    Vector,
}

pub(super) fn handler(number: c_long) -> Option<Handler> {
    Some(match number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_pread64 | libc::SYS_preadv => {
            |kernel, caller, call| waiting(kernel, caller, call, libc::POLLIN)
        }
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev => {
            |kernel, caller, call| waiting(kernel, caller, call, libc::POLLOUT)
        }
        libc::SYS_open | libc::SYS_openat => node_files::open,
        libc::SYS_ioctl => ioctl,
        libc::SYS_fcntl => fcntl,
        _ => {
            writes(number)?;
            pass
        }
    })
}

/// What a call that is passed on writes; nothing for calls that are not passed on.
fn writes(number: c_long) -> Option<Writes> {
    Some(match number {
        libc::SYS_open
        | libc::SYS_openat
        | libc::SYS_openat2
        | libc::SYS_creat
        | libc::SYS_close
        | libc::SYS_close_range
        | libc::SYS_lseek
        | libc::SYS_access
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_unlink
        | libc::SYS_unlinkat
        | libc::SYS_mkdir
        | libc::SYS_mkdirat
        | libc::SYS_rmdir
        | libc::SYS_rename
        | libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_truncate
        | libc::SYS_ftruncate
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_dup
        | libc::SYS_dup2
        | libc::SYS_dup3
        | libc::SYS_memfd_create
        | libc::SYS_umask => Writes::Nothing,
        libc::SYS_read | libc::SYS_pread64 => Writes::Result(1),
        libc::SYS_readv | libc::SYS_preadv => Writes::Vector,
        libc::SYS_write | libc::SYS_writev | libc::SYS_pwrite64 | libc::SYS_pwritev => {
            Writes::Nothing
        }
        libc::SYS_readlink | libc::SYS_getdents64 => Writes::Result(1),
        libc::SYS_readlinkat => Writes::Result(2),
        libc::SYS_getcwd => Writes::Result(0),
        libc::SYS_stat | libc::SYS_fstat | libc::SYS_lstat => Writes::Bytes(1, 144),
        libc::SYS_newfstatat => Writes::Bytes(2, 144),
        libc::SYS_statx => Writes::Bytes(4, 256),
        libc::SYS_statfs | libc::SYS_fstatfs => Writes::Bytes(1, 120),
        libc::SYS_uname => Writes::Bytes(0, 390),
        libc::SYS_sysinfo => Writes::Bytes(0, 112),
        libc::SYS_getrlimit => Writes::Bytes(1, 16),
        libc::SYS_pipe | libc::SYS_pipe2 => Writes::Bytes(0, 8),
        _ => return None,
    })
}

pub(super) fn pass(kernel: &mut Kernel, _: Caller, call: &Call) -> Reply {
    let number = call.number as c_long;
    let result = perform(number, &call.arguments)?;
    let written = result.max(0) as u64;
    match writes(number).unwrap_or(Writes::Nothing) {
        Writes::Nothing => {}
        Writes::Result(argument) => kernel.wrote(call.arguments[argument], written),
        Writes::Bytes(argument, bytes) => kernel.wrote(call.arguments[argument], bytes),
        Writes::Vector => {
            let [_, vector, count, ..] = call.arguments;
            let mut rest = written;
            for index in 0..count {
                // A vector that the real kernel has just followed and that is gone now belongs
                // to the guest's own mapping of it.
                let Ok([start, length]) = get::<[u64; 2]>(vector.wrapping_add(index * 16)) else {
                    break;
                };
                let part = rest.min(length);
                kernel.wrote(start, part);
                rest -= part;
            }
        }
    }
    value(result)
}

/// Passes a call on once its file is ready.
fn waiting(kernel: &mut Kernel, caller: Caller, call: &Call, event: i16) -> Reply {
    let mut file = libc::pollfd { fd: call.arguments[0] as i32, events: event, revents: 0 };
    let pointer = (&raw mut file).expose_provenance() as u64;
    // A negative number is no file, and polling it would only wait.
    let polled = file.fd >= 0;
    if polled && perform(libc::SYS_poll, &[pointer, 1, PATIENCE_MS, 0, 0, 0]) == Ok(0) {
        let what = if event == libc::POLLIN { "has nothing to read" } else { "takes nothing" };
        let reason = format!(
            "file {} {what} for {} s, and the whole simulation waits for it",
            file.fd,
            PATIENCE_MS / 1_000
        );
        return Ok(refuse(call, &reason));
    }
    pass(kernel, caller, call)
}

fn ioctl(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    let [_, request, pointer, ..] = call.arguments;
    let bytes = match request {
        libc::TCGETS => 36,
        libc::TIOCGWINSZ => 8,
        libc::FIONREAD | libc::FIONBIO => 4,
        libc::FIOCLEX | libc::FIONCLEX => 0,
        _ => return Ok(refuse(call, "this request is not known to be harmless")),
    };
    let reply = pass(kernel, caller, call)?;
    kernel.wrote(pointer, bytes);
    Ok(reply)
}

fn fcntl(kernel: &mut Kernel, caller: Caller, call: &Call) -> Reply {
    match call.arguments[1] as i32 {
        libc::F_DUPFD
        | libc::F_DUPFD_CLOEXEC
        | libc::F_GETFD
        | libc::F_SETFD
        | libc::F_GETFL
        | libc::F_SETFL
        | libc::F_GETPIPE_SZ
        | libc::F_SETPIPE_SZ
        | libc::F_ADD_SEALS
        | libc::F_GET_SEALS => pass(kernel, caller, call),
        libc::F_SETLK | libc::F_SETLKW | libc::F_GETLK | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
            Ok(refuse(call, "locks on files are not simulated"))
        }
        _ => Err(Errno(libc::EINVAL)),
    }
}

impl Kernel {
    /// Notes that the real kernel has written these bytes.
    pub(super) fn wrote(&mut self, address: u64, bytes: u64) {
        if bytes > 0 && address != 0 {
            self.effects.push_back(Effect::Written { address, bytes });
        }
    }
}

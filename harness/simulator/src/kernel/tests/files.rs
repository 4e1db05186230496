//! Files are the host's.

use std::ffi::CString;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;

use super::{Effect, Guest, NOWHERE, at, error, says};

#[test]
fn a_file_is_written_and_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("file").into_os_string().into_encoded_bytes();
    let mut path = CString::new(path).expect("no zero in it").into_bytes_with_nul();
    let path = at(&mut path[0]);
    let mut guest = Guest::new(1);
    let here = libc::AT_FDCWD as u64;
    let flags = (libc::O_RDWR | libc::O_CREAT) as u64;
    let file = guest.result(libc::SYS_openat, &[here, path, flags, 0o600]) as u64;
    let mut text = *b"hello";
    assert_eq!(guest.result(libc::SYS_write, &[file, at(&mut text), 5]), 5);
    assert_eq!(guest.result(libc::SYS_lseek, &[file, 1, 0]), 1);
    let mut read = [0_u8; 8];
    guest.effects();
    assert_eq!(guest.result(libc::SYS_read, &[file, at(&mut read), 8]), 4);
    assert_eq!(&read, b"ello\0\0\0\0");
    assert_eq!(guest.effects(), [Effect::Written { address: at(&mut read), bytes: 4 }]);
    let (mut one, mut two) = ([0_u8; 2], [0_u8; 9]);
    let mut vector = [at(&mut one), 2, at(&mut two), 9];
    guest.result(libc::SYS_lseek, &[file, 0, 0]);
    assert_eq!(guest.result(libc::SYS_readv, &[file, at(&mut vector), 2]), 5);
    assert_eq!((&one, &two[..4]), (b"he", &b"llo\0"[..]));
    let written = |address, bytes| Effect::Written { address, bytes };
    assert_eq!(guest.effects(), [written(vector[0], 2), written(vector[2], 3)]);
    let mut status = [0_u8; 144];
    assert_eq!(guest.result(libc::SYS_fstat, &[file, at(&mut status)]), 0);
    assert_eq!(status[48], 5);
    assert_eq!(
        guest.result(libc::SYS_ioctl, &[file, libc::TCGETS, at(&mut status)]),
        error(libc::ENOTTY)
    );
    assert_eq!(guest.result(libc::SYS_fcntl, &[file, libc::F_GETFD as u64]), 0);
    assert_eq!(guest.result(libc::SYS_close, &[file]), 0);
    assert_eq!(guest.result(libc::SYS_close, &[file]), error(libc::EBADF));
    assert_eq!(guest.result(libc::SYS_unlink, &[path]), 0);
    assert_eq!(guest.result(libc::SYS_openat, &[here, path, 0]), error(libc::ENOENT));
}

/// Reads a file as a program does.
fn contents(guest: &mut Guest, path: &str) -> String {
    let mut path = CString::new(path).expect("no zero in it").into_bytes_with_nul();
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
    let here = libc::AT_FDCWD as u64;
    let file = guest.result(libc::SYS_openat, &[here, at(&mut path[0]), flags]) as u64;
    assert_eq!(
        guest.result(libc::SYS_fcntl, &[file, libc::F_GETFD as u64]),
        i64::from(libc::FD_CLOEXEC)
    );
    let mut text = [0_u8; 8192];
    let read = guest.result(libc::SYS_read, &[file, at(&mut text), 8192]) as usize;
    assert_eq!(guest.result(libc::SYS_close, &[file]), 0);
    String::from_utf8_lossy(&text[..read]).into_owned()
}

#[test]
fn files_about_nodes_are_the_machines() {
    for (machine, nodes, mask) in [
        ("epyc-7742-2s", "0-1", "00000003"),
        ("xeon-8176-8s", "0-7", "000000ff"),
        ("graviton2", "0", "00000001"),
    ] {
        let mut guest = Guest::on(machine, 1, 1);
        for name in ["online", "possible", "has_cpu", "has_memory", "has_normal_memory"] {
            let path = format!("/sys/devices/system/node/{name}");
            assert_eq!(contents(&mut guest, &path), format!("{nodes}\n"), "{machine} {name}");
        }
        for path in ["/proc/self/status", "/proc/thread-self/status"] {
            let status = contents(&mut guest, path);
            assert!(status.starts_with("Name:"), "{status}");
            for line in [format!("Mems_allowed:\t{mask}"), format!("Mems_allowed_list:\t{nodes}")] {
                assert!(status.lines().any(|told| told == line), "{machine}: {line}: {status}");
            }
        }
        let others = contents(&mut guest, "/proc/self/comm");
        assert_eq!(others, std::fs::read_to_string("/proc/self/comm").expect("a name"));
    }
    let path = CString::new("/sys/devices/system/node/online").expect("no zero in it");
    let path = path.as_ptr().expose_provenance() as u64;
    let mut guest = Guest::new(1);
    let write = libc::O_WRONLY as u64;
    assert!(guest.result(libc::SYS_open, &[path, write]) < 0, "nobody writes there");
    let file = guest.result(libc::SYS_open, &[path, libc::O_RDONLY as u64]) as u64;
    assert_eq!(guest.result(libc::SYS_fcntl, &[file, libc::F_GETFD as u64]), 0);
    assert_eq!(guest.result(libc::SYS_close, &[file]), 0);
}

#[test]
fn the_real_kernel_checks_pointers() {
    let mut guest = Guest::new(1);
    let here = libc::AT_FDCWD as u64;
    assert_eq!(guest.result(libc::SYS_openat, &[here, NOWHERE, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(libc::SYS_read, &[u64::MAX, NOWHERE, 8]), error(libc::EBADF));
    assert_eq!(guest.result(libc::SYS_uname, &[NOWHERE]), error(libc::EFAULT));
    let mut name = [0_u8; 390];
    assert_eq!(guest.result(libc::SYS_uname, &[at(&mut name)]), 0);
    assert!(name.starts_with(b"Linux\0"));
}

#[test]
fn a_pipe_is_read_when_there_is_something() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut guest = Guest::new(1);
    let file = reader.as_raw_fd() as u64;
    writer.write_all(b"ab").expect("it takes two bytes");
    let mut read = [0_u8; 4];
    assert_eq!(guest.result(libc::SYS_read, &[file, at(&mut read), 4]), 2);
    let mut polled = [file | (libc::POLLIN as u64) << 32];
    assert_eq!(guest.result(libc::SYS_poll, &[at(&mut polled), 1, 0]), 0);
    let text = guest.refusal(libc::SYS_poll, &[at(&mut polled), 1, 10]);
    says(&text, &["poll(", "none of the files is ready"]);
    drop(writer);
    assert_eq!(guest.result(libc::SYS_poll, &[at(&mut polled), 1, 10]), 1);
    assert_eq!(guest.result(libc::SYS_read, &[file, at(&mut read), 4]), 0);
}

#[test]
fn requests_that_are_not_known_are_refused() {
    let mut guest = Guest::new(1);
    says(&guest.refusal(libc::SYS_ioctl, &[0, 0x1234, 0]), &["ioctl(0x0, 0x1234", "harmless"]);
    says(&guest.refusal(libc::SYS_fcntl, &[0, libc::F_SETLKW as u64, 0]), &["fcntl", "locks"]);
    assert_eq!(guest.result(libc::SYS_fcntl, &[0, 9_999]), error(libc::EINVAL));
}

//! This host against what it says of itself by other ways.

use std::fs;
use std::process::Command;
use std::thread;

use topology::{AllowedSource, CpuSet, Cpuid, CpuidUnavailable, Topology};

fn status_list(key: &str) -> CpuSet {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    CpuSet::parse_list(line.trim_start_matches(':')).unwrap()
}

#[test]
fn agrees_with_the_status_file_and_nproc() {
    let host = Topology::this_host().unwrap();
    assert!(host.this_host);
    let allowed = status_list("Cpus_allowed_list");
    assert_eq!(host.usable(), &allowed.intersection(&host.cpus.online));
    let nproc = Command::new("nproc").env_remove("OMP_NUM_THREADS").output().unwrap();
    let nproc: usize = String::from_utf8(nproc.stdout).unwrap().trim().parse().unwrap();
    assert_eq!(host.usable().len(), nproc);
    let parallelism = thread::available_parallelism().unwrap().get();
    assert_eq!(host.parallelism(), parallelism, "the standard library cuts by the quota as well");
    assert_eq!(host.cpus.allowed.unwrap().sources[0], AllowedSource::SchedGetaffinity);
}

#[test]
fn agrees_with_the_c_library() {
    let host = Topology::this_host().unwrap();
    let count = |name| {
        // SAFETY: sysconf takes a plain number and touches no memory of ours.
        let value = unsafe { libc::sysconf(name) };
        u64::try_from(value).unwrap()
    };
    assert_eq!(host.cpus.online.len() as u64, count(libc::_SC_NPROCESSORS_ONLN));
    assert_eq!(host.page_bytes, Some(count(libc::_SC_PAGESIZE)));
}

#[test]
fn a_pinned_thread_may_use_its_cpu_only() {
    let host = Topology::this_host().unwrap();
    let cpu = host.usable().last().unwrap();
    let pinned = thread::spawn(move || {
        let mut mask = vec![0_u64; cpu as usize / 64 + 1];
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
        let bytes = size_of_val(mask.as_slice());
        // SAFETY: the mask is a live buffer of `bytes` bytes, which the kernel only reads; 0 is
        // the calling thread, which ends after this test.
        let status = unsafe { libc::sched_setaffinity(0, bytes, mask.as_ptr().cast()) };
        assert_eq!(status, 0);
        Topology::this_host().unwrap()
    });
    let pinned = pinned.join().unwrap();
    assert_eq!(pinned.usable(), &CpuSet::from_ids([cpu]).unwrap());
    assert_eq!(pinned.cpus.online, host.cpus.online);
}

#[test]
fn another_way_to_say_root_is_this_host_too() {
    let host = Topology::this_host().unwrap();
    let mut other = Topology::from_root("/proc/..".as_ref()).unwrap();
    assert_eq!(other.root, std::path::Path::new("/proc/.."));
    other.root = "/".into();
    assert_eq!(other, host);
}

#[test]
fn every_usable_cpu_has_a_place() {
    let host = Topology::this_host().unwrap();
    for pu in host.pus() {
        assert!(pu.core.is_none_or(|core| host.cores[core].cpus.contains(pu.cpu)));
        assert!(pu.package.is_none_or(|package| host.packages[package].cpus.contains(pu.cpu)));
    }
    assert!(host.text().contains("this host"), "{host}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn cpuid_agrees_with_cpuinfo() {
    let host = Topology::this_host().unwrap();
    let info = fs::read_to_string("/proc/cpuinfo").unwrap();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags")).unwrap();
    let flag = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    match &host.cpuid {
        Cpuid::Unavailable(why) => assert_eq!(*why, CpuidUnavailable::Valgrind),
        Cpuid::Read(facts) => {
            assert_eq!(facts.hypervisor.is_some(), flag("hypervisor"));
            assert_eq!(facts.waitpkg, flag("waitpkg"));
            assert!(!facts.invariant_tsc || flag("nonstop_tsc"), "{facts:?}");
            assert_eq!(facts.tsc_hz.is_some(), facts.tsc_hz_source.is_some());
        }
    }
}

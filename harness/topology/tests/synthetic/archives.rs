//! Archives of trees: whole, hostile and damaged ones. Nothing is ever written beside them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use topology::{ArchiveProblem, FindingKind, Topology, TopologyError};

use crate::builder::{CPU, NODE, Root, finding};

/// Writes archives entry by entry, whatever the entries are.
#[derive(Default)]
struct Tar(Vec<u8>);

impl Tar {
    /// Adds one entry: `0` is a file, `1` a hard link, `2` a link, `3` a device, `5` a directory,
    /// `6` a FIFO.
    fn entry(&mut self, kind: u8, name: &str, link: &str, content: &[u8]) -> &mut Tar {
        let claimed = content.len() as u64;
        self.header(kind, name, link, claimed);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    fn header(&mut self, kind: u8, name: &str, link: &str, size: u64) {
        let mut header = [0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..107].copy_from_slice(b"0000644");
        header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
        header[148..156].fill(b' ');
        header[156] = kind;
        header[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header[257..263].copy_from_slice(b"ustar\0");
        header[263..265].copy_from_slice(b"00");
        let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        self.0.extend_from_slice(&header);
    }

    fn file(&mut self, name: &str, text: &str) -> &mut Tar {
        self.entry(b'0', name, "", text.as_bytes())
    }

    /// Two CPUs under a prefix.
    fn machine(&mut self, prefix: &str) -> &mut Tar {
        self.file(&format!("{prefix}{CPU}/online"), "0-1\n");
        for cpu in 0..2 {
            let dir = format!("{prefix}{CPU}/cpu{cpu}/topology");
            self.file(&format!("{dir}/physical_package_id"), "0\n");
            self.file(&format!("{dir}/core_id"), &format!("{cpu}\n"));
            self.file(&format!("{dir}/core_cpus_list"), &format!("{cpu}\n"));
        }
        self
    }

    fn end(&self) -> Vec<u8> {
        let mut bytes = self.0.clone();
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Reads an archive from a directory of its own, and looks that nothing is written there.
fn read(bytes: &[u8]) -> Result<Topology, TopologyError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("saved.tar.gz");
    fs::write(&path, bytes).unwrap();
    let result = Topology::from_root(&path);
    let names: Vec<PathBuf> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, [path]);
    result
}

fn problem(bytes: &[u8]) -> ArchiveProblem {
    match read(bytes).unwrap_err() {
        TopologyError::Archive { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

/// Packs a root as a user does.
fn packed(root: &Root, arguments: &[&str]) -> Topology {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("saved.tar.gz");
    let mut tar = std::process::Command::new("tar");
    tar.arg("czf").arg(&path).args(arguments).current_dir(root.path().parent().unwrap());
    assert!(tar.status().unwrap().success());
    Topology::from_root(&path).unwrap()
}

#[test]
fn an_archive_is_read_like_its_directory() {
    let root = Root::flat(4);
    root.node(0, "0-3", 1 << 20, "10");
    (0..4).for_each(|cpu| root.cache(cpu, 0, 3, "Unified", "8M", "0-3"));
    root.file("proc/cpuinfo", "processor : 0\nmodel name : X\n");
    let unpacked = root.read();
    let ways: [&[&str]; 3] = [&["-C", "root", "sys", "proc"], &["-C", "root", "."], &["root"]];
    for way in ways {
        let mut packed = packed(&root, way);
        assert!(!packed.this_host);
        packed.root.clone_from(&unpacked.root);
        assert_eq!(packed, unpacked, "{way:?}");
    }
}

#[test]
fn compressed_or_not_and_twice() {
    let tar = Tar::default().machine("").end();
    let (one, two) = tar.split_at(1024);
    let members = [gzip(one), gzip(two)].concat();
    for bytes in [tar.clone(), gzip(&tar), members] {
        let topology = read(&bytes).unwrap();
        assert_eq!(topology.usable().to_string(), "0-1");
        assert_eq!(topology.cores.len(), 2);
    }
}

#[test]
fn the_later_of_two_entries_holds_and_hard_links_are_their_file() {
    let mut tar = Tar::default();
    tar.machine("").file(&format!("{CPU}/online"), "0\n");
    tar.entry(b'1', &format!("{CPU}/possible"), &format!("{CPU}/online"), b"");
    let topology = read(&tar.end()).unwrap();
    assert_eq!(topology.cpus.online.to_string(), "0");
    assert_eq!(topology.cpus.possible.unwrap().to_string(), "0");
}

#[test]
fn what_leads_out_is_a_finding_and_goes_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    let there = outside.path().join("there").display().to_string();
    let mut tar = Tar::default();
    tar.file(&there, "0-7").file("../beside", "0-7").file("sys/../../beside", "0-7");
    tar.machine("");
    tar.entry(b'2', &format!("{CPU}/possible"), "/etc/hostname", b"");
    tar.entry(b'2', &format!("{CPU}/present"), "../../../../../../etc/hostname", b"");
    tar.entry(b'2', &format!("{CPU}/isolated"), "isolated", b"");
    tar.entry(b'2', &format!("{CPU}/nohz_full"), "kernel_max", b"");
    tar.entry(b'2', &format!("{CPU}/kernel_max"), "nohz_full", b"");
    let topology = read(&gzip(&tar.end())).unwrap();
    let cpus = &topology.cpus;
    assert_eq!(cpus.online.to_string(), "0-1");
    assert_eq!((&cpus.possible, &cpus.present, &cpus.isolated), (&None, &None, &None));
    assert_eq!((&cpus.nohz_full, cpus.kernel_max), (&None, None));
    for path in ["../beside", "sys/../../beside"] {
        let finding = finding(&topology, FindingKind::Escapes, path);
        assert_eq!(finding.message, "leads out of the archive; ignored");
    }
    for leaf in ["possible", "present"] {
        finding(&topology, FindingKind::Escapes, &format!("{CPU}/{leaf}"));
    }
    for leaf in ["isolated", "nohz_full", "kernel_max"] {
        let finding = finding(&topology, FindingKind::Escapes, &format!("{CPU}/{leaf}"));
        assert!(finding.message.contains("circle"), "{finding}");
    }
    let absolute = topology.findings.iter().any(|finding| finding.message.contains("absolute"));
    assert!(absolute, "{:?}", topology.findings);
    assert!(!Path::new(&there).exists());
}

#[test]
fn devices_and_links_to_nothing_are_named() {
    let mut tar = Tar::default();
    tar.machine("");
    tar.entry(b'3', &format!("{CPU}/possible"), "", b"");
    tar.entry(b'6', &format!("{CPU}/present"), "", b"");
    tar.entry(b'1', &format!("{CPU}/isolated"), "/etc/hostname", b"");
    tar.entry(b'2', &format!("{CPU}/nohz_full"), "", b"");
    tar.file(&format!("{CPU}/online/below"), "0");
    let topology = read(&tar.end()).unwrap();
    finding(&topology, FindingKind::Unreadable, &format!("{CPU}/possible"));
    assert_eq!((&topology.cpus.possible, &topology.cpus.present), (&None, &None));
    let damaged = |leaf: &str| finding(&topology, FindingKind::Damaged, &format!("{CPU}/{leaf}"));
    assert!(damaged("isolated").message.contains("hard link"));
    assert!(damaged("nohz_full").message.contains("nowhere"));
    assert!(damaged("online/below").message.contains("no directory"));
}

#[test]
fn many_bad_entries_are_few_findings() {
    let mut tar = Tar::default();
    for at in 0..10_000 {
        tar.file(&format!("../{at}x{}", "y".repeat(at % 50)), "");
    }
    let topology = read(&gzip(&tar.machine("").end())).unwrap();
    let escapes = topology.findings.iter().filter(|one| one.kind == FindingKind::Escapes).count();
    assert!(escapes <= 8, "{:#?}", topology.findings);
    let rest = finding(&topology, FindingKind::Damaged, "archive");
    assert_eq!(rest.message, "9992 more entries that are ignored");
}

#[test]
fn a_bomb_is_an_error_in_a_moment() {
    let zeros = vec![0_u8; 1 << 20];
    let mut again = GzEncoder::new(Vec::new(), Compression::fast());
    let mut header = Tar::default();
    header.header(b'0', "sys/bomb", "", 7 << 30);
    again.write_all(&header.0).unwrap();
    (0..300).for_each(|_| again.write_all(&zeros).unwrap());
    let bomb = again.finish().unwrap();
    assert!(bomb.len() < 4 << 20);
    assert_eq!(problem(&bomb), ArchiveProblem::TooLarge { most: 256 << 20 });
    let error = read(&bomb).unwrap_err().to_string();
    assert!(error.contains("256 MiB") && error.contains("docs/topology.md"), "{error}");
}

#[test]
fn a_file_that_is_too_long_is_named_and_the_rest_is_read() {
    let mut tar = Tar::default();
    tar.machine("").entry(b'0', &format!("{CPU}/possible"), "", &vec![b' '; (1 << 20) + 1]);
    tar.entry(b'0', "proc/cpuinfo", "", &vec![b' '; 20 << 20]);
    let topology = read(&gzip(&tar.end())).unwrap();
    assert_eq!(topology.cpus.online.to_string(), "0-1");
    for path in [format!("{CPU}/possible"), "proc/cpuinfo".to_owned()] {
        let finding = finding(&topology, FindingKind::Damaged, &path);
        assert!(finding.message.contains("longer than"), "{finding}");
    }
}

#[test]
fn every_cut_is_an_error_that_says_so() {
    let whole = gzip(&Tar::default().machine("").end());
    assert!(read(&whole).is_ok());
    for length in 1..whole.len() {
        let error = read(&whole[..length]).unwrap_err().to_string();
        let told = error.contains("ends in the middle") || error.contains("no .tar.gz");
        assert!(told, "{length} of {}: {error}", whole.len());
    }
    assert_eq!(problem(&whole[..whole.len() - 1]), ArchiveProblem::Truncated);
}

#[test]
fn changed_bytes_never_panic() {
    let mut tar = Tar::default();
    tar.machine("").file(&format!("{NODE}/online"), "0");
    let (plain, packed) = (tar.end(), gzip(&tar.end()));
    let mut errors = 0;
    for (bytes, step) in [(plain, 37), (packed, 1)] {
        for at in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x5a;
            errors += usize::from(read(&changed).is_err());
        }
    }
    assert!(errors > 100, "the checksums see it: {errors}");
}

#[test]
fn what_is_no_archive_is_told() {
    assert_eq!(problem(b""), ArchiveProblem::Empty);
    for (bytes, word) in [
        (&b"\xfd7zXZ\0rest"[..], "xz"),
        (b"\x28\xb5\x2f\xfdrest", "zstd"),
        (b"BZh91AY", "bzip2"),
        (b"PK\x03\x04rest", "zip"),
        (b"{\"record\":\"run\"}", "JSON"),
        (b"hello", "no .tar.gz or .tar"),
        (&[0; 4096], "no .tar.gz or .tar"),
    ] {
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("save-topology"), "{error}");
    }
    assert_eq!(problem(&gzip(b"")), ArchiveProblem::NoEntries);
    assert_eq!(problem(&gzip(&[0; 10240])), ArchiveProblem::NoEntries);
    let text = problem(&gzip("not a tar at all ".repeat(100).as_bytes()));
    assert!(matches!(text, ArchiveProblem::NoArchive { .. }), "{text:?}");
    let mut broken = gzip(&Tar::default().machine("").end());
    broken[12..40].fill(0xff);
    assert!(matches!(problem(&broken), ArchiveProblem::Damaged { .. }), "{:?}", problem(&broken));
    let empty = Tar::default().entry(b'5', "sys", "", b"").end();
    assert!(matches!(read(&empty).unwrap_err(), TopologyError::RootEmpty { .. }));
}

#[test]
fn absurd_numbers_in_an_archive_are_named() {
    for (text, kind) in [
        ("0-4294967295", FindingKind::Damaged),
        ("-1", FindingKind::Damaged),
        ("garbage", FindingKind::Damaged),
    ] {
        let mut tar = Tar::default();
        tar.machine("").file(&format!("{CPU}/online"), text);
        tar.file(&format!("{NODE}/node0/cpulist"), text);
        let topology = read(&gzip(&tar.end())).unwrap();
        assert_eq!(topology.cpus.online.to_string(), "0-1", "from the directories");
        finding(&topology, kind, &format!("{CPU}/online"));
        finding(&topology, kind, &format!("{NODE}/node0/cpulist"));
        assert_eq!(topology.numa_nodes[0].cpus, None, "nothing is invented");
    }
}

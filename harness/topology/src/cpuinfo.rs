//! What `proc/cpuinfo` says: model, microcode, the kind of each ARM core.
//!
//! Its list of processors is no source of the online CPUs: saved trees that were cut down often
//! keep more of them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpuset::CpuSet;
use crate::sysfs::Tree;

/// Where it is read.
const PATH: &str = "proc/cpuinfo";

/// Holds what is taken from `proc/cpuinfo`; a line that is not there is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CpuInfo {
    /// The model's name, of the first processor (`model name`; `cpu` on POWER; `machine` on s390).
    pub model_name: Option<String>,
    /// The maker (`vendor_id`).
    pub vendor: Option<String>,
    /// The microcode revision, as printed.
    pub microcode: Option<String>,
    /// The processors that have an entry.
    pub processors: CpuSet,
    /// ARM only: implementer and part (`0x41:0xd0c`) and the processors of that part.
    pub parts: BTreeMap<String, CpuSet>,
}

/// One processor's entry while it is read.
#[derive(Default)]
struct Entry {
    number: Option<u32>,
    implementer: Option<String>,
    part: Option<String>,
}

/// Reads the file; `None` where it is not there or cannot be read.
pub(crate) fn read(tree: &Tree) -> Option<CpuInfo> {
    let text = tree.read_large(PATH).ok()?;
    let mut info = CpuInfo::default();
    let mut entry = Entry::default();
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key {
            "processor" | "cpu number" => {
                finish(&mut info, std::mem::take(&mut entry));
                entry.number = value.parse().ok();
            }
            "CPU implementer" => entry.implementer = Some(value.to_owned()),
            "CPU part" => entry.part = Some(value.to_owned()),
            "model name" | "cpu" | "machine" => keep_first(&mut info.model_name, value),
            "vendor_id" => keep_first(&mut info.vendor, value),
            "microcode" => keep_first(&mut info.microcode, value),
            _ if key.starts_with("processor ") => s390_line(&mut info, key, value),
            _ => {}
        }
    }
    finish(&mut info, entry);
    if info.processors.is_empty() {
        tree.damaged(PATH, "names no processor");
    }
    Some(info)
}

/// Reads s390's `processor 3: version = 00,  identification = 178B58,  machine = 3931`.
fn s390_line(info: &mut CpuInfo, key: &str, value: &str) {
    let number = key.strip_prefix("processor ").and_then(|number| number.parse().ok());
    finish(info, Entry { number, ..Entry::default() });
    if let Some((_, machine)) = value.split_once("machine = ") {
        keep_first(&mut info.model_name, machine);
    }
}

fn keep_first(slot: &mut Option<String>, value: &str) {
    if slot.is_none() && !value.is_empty() {
        *slot = Some(value.to_owned());
    }
}

/// Files an entry. A number beyond the limit is dropped: no online set can name it either.
fn finish(info: &mut CpuInfo, entry: Entry) {
    let Some(number) = entry.number else { return };
    if info.processors.insert(number).is_err() {
        return;
    }
    if let (Some(implementer), Some(part)) = (entry.implementer, entry.part) {
        let kind = info.parts.entry(format!("{implementer}:{part}")).or_default();
        // The number fitted above.
        let _ = kind.insert(number);
    }
}

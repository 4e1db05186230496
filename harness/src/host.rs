//! The host's fingerprint: what a figure must be read with.

use std::fs;

use serde_json::{Map, Value, json};
use topology::Topology;

use crate::unavailable::Unavailable;

/// What the program knows about its own build.
#[derive(Debug, Clone, Copy)]
pub struct Build {
    /// The compiler that built the program.
    pub rustc: &'static str,
    /// The commit it was built from.
    pub commit: &'static str,
}

/// Gives the fingerprint for a run header. What the host does not say is a typed reason.
pub fn fingerprint(topology: &Topology, build: Build) -> Map<String, Value> {
    let cpuinfo = topology.cpuinfo.as_ref();
    let quota = topology.cgroup.as_ref().and_then(|cgroup| cgroup.quota.as_ref());
    let known = |value: Option<String>, code: &str| match value {
        Some(value) => Value::String(value),
        None => missing(&Unavailable::new(code)),
    };
    let fields = [
        ("name", known(host_name(), "no_host_name")),
        ("cpu", known(cpuinfo.and_then(|info| info.model_name.clone()), "no_cpuinfo")),
        ("microcode", known(cpuinfo.and_then(|info| info.microcode.clone()), "no_microcode")),
        ("kernel", known(first_line("/proc/sys/kernel/osrelease"), "no_procfs")),
        ("cpus_allowed", Value::String(topology.usable().to_string())),
        ("quota_cpus", quota.map_or(Value::Null, |quota| json!(quota.cpus))),
        ("nodes", json!(topology.numa_nodes.iter().map(|node| node.id).collect::<Vec<_>>())),
        ("governor", known(governor(topology), "no_cpufreq")),
        ("smt", known(first_line("/sys/devices/system/cpu/smt/control"), "no_smt_control")),
        ("thp", known(chosen("/sys/kernel/mm/transparent_hugepage/enabled"), "no_thp")),
        ("aslr", known(first_line("/proc/sys/kernel/randomize_va_space"), "no_procfs")),
        ("hypervisor", hypervisor(topology)),
        ("arch", Value::String(std::env::consts::ARCH.into())),
        ("profile", Value::String(profile().into())),
        ("rustc", Value::String(build.rustc.into())),
        ("commit", Value::String(build.commit.into())),
        ("date", Value::String(date("%Y-%m-%dT%H:%M:%SZ"))),
    ];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Gives how the program was built.
pub fn profile() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

/// Gives the time now, in UTC, as `strftime` writes it.
pub fn date(format: &str) -> String {
    jiff::Timestamp::now().strftime(format).to_string()
}

/// Gives the host's name as the kernel has it.
pub fn host_name() -> Option<String> {
    first_line("/proc/sys/kernel/hostname")
}

fn missing(reason: &Unavailable) -> Value {
    serde_json::to_value(reason).unwrap_or(Value::Null)
}

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// The word in brackets of a kernel file that lists its choices.
fn chosen(path: &str) -> Option<String> {
    let line = first_line(path)?;
    let (_, rest) = line.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

fn governor(topology: &Topology) -> Option<String> {
    let cpu = topology.usable().first()?;
    first_line(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
}

fn hypervisor(topology: &Topology) -> Value {
    match &topology.cpuid {
        topology::Cpuid::Read(facts) => match &facts.hypervisor {
            Some(vendor) => json!(vendor),
            None => Value::Null,
        },
        topology::Cpuid::Unavailable(reason) => {
            missing(&Unavailable::because("no_cpuid", reason.reason()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_every_documented_field_and_no_empty_one() {
        let host = Topology::this_host().unwrap();
        let fingerprint = fingerprint(&host, Build { rustc: "rustc 1", commit: "abc" });
        for field in [
            "cpu",
            "microcode",
            "kernel",
            "cpus_allowed",
            "quota_cpus",
            "nodes",
            "governor",
            "smt",
            "thp",
            "aslr",
            "hypervisor",
            "arch",
            "profile",
            "rustc",
            "commit",
            "date",
        ] {
            let value = fingerprint.get(field).unwrap_or_else(|| panic!("{field} is missing"));
            assert_ne!(value, "", "{field}");
        }
        assert_eq!(fingerprint["cpus_allowed"], host.usable().to_string());
    }
}

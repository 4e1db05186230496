//! Clock rates and sleep: governor, turbo, idle states, heat.

use topology::CpuSet;

use super::finding::{Looked, Outcome};
use super::subject::Subject;
use super::tree::Tree;
use crate::unavailable::Unavailable;

/// Microseconds of waking up that are still harmless: an idle state of the first level.
const SHORT_WAKE_US: i64 = 10;

pub(super) fn governor(on: &Subject) -> Looked {
    let governors = on.by_cpu("cpufreq/scaling_governor")?;
    let seen = format!("governor {}", governors.said());
    Ok(match governors.are_all(&["performance"]) {
        true => Outcome::ok(seen),
        false => Outcome::warn(
            seen,
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor, \
             or `manycore doctor --apply`",
        ),
    })
}

/// The switches of turbo, with the word that means that it is on and the one that is off.
pub(super) const TURBO: [(&str, &str, &str); 2] = [
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "0", "1"),
    ("sys/devices/system/cpu/cpufreq/boost", "1", "0"),
];

pub(super) fn turbo(on: &Subject) -> Looked {
    let mut reason = Unavailable::new("not_there");
    for (path, enabled, disabled) in TURBO {
        match on.tree.word(path) {
            Ok(word) if word == enabled => {
                let remedy =
                    format!("echo {disabled} | sudo tee /{path}, or `manycore doctor --apply`");
                return Ok(Outcome::warn("turbo is on", remedy));
            }
            Ok(_) => return Ok(Outcome::ok("turbo is off")),
            // What is there and cannot be read says more than what is not there.
            Err(other) if reason.code == "not_there" => reason = other,
            Err(_) => {}
        }
    }
    Err(reason)
}

/// An idle state of one CPU.
pub(super) struct IdleState {
    /// The directory.
    pub(super) path: String,
    name: String,
    latency_us: i64,
    enabled: bool,
}

impl IdleState {
    /// Whether waking up from it shows in figures.
    pub(super) fn is_deep(&self) -> bool {
        self.enabled && self.latency_us > SHORT_WAKE_US
    }
}

/// Lists the idle states of a CPU.
pub(super) fn idle_states(tree: &Tree, cpu: u32) -> Result<Vec<IdleState>, Unavailable> {
    let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let names = tree.names(&directory)?;
    let states = names.into_iter().filter(|name| name.starts_with("state"));
    let read = |state: String| {
        let path = format!("{directory}/{state}");
        let name = tree.word(&format!("{path}/name"))?;
        let latency_us = tree.number(&format!("{path}/latency"))?;
        let enabled = tree.word(&format!("{path}/disable"))? == "0";
        Ok(IdleState { path, name, latency_us, enabled })
    };
    states.map(read).collect()
}

pub(super) fn c_states(on: &Subject) -> Looked {
    let mut deepest: Option<IdleState> = None;
    let mut states = 0;
    for cpu in on.topology.usable() {
        for state in idle_states(&on.tree, cpu)? {
            states += 1;
            let deeper = deepest.as_ref().is_none_or(|so_far| state.latency_us > so_far.latency_us);
            if state.enabled && deeper {
                deepest = Some(state);
            }
        }
    }
    if states == 0 {
        return Err(Unavailable::because("not_there", "this host shows no idle states"));
    }
    let Some(deepest) = deepest else { return Ok(Outcome::ok("every idle state is disabled")) };
    let seen = format!(
        "the deepest idle state in use is {}, {} µs to wake up",
        deepest.name, deepest.latency_us
    );
    Ok(match deepest.is_deep() {
        false => Outcome::ok(seen),
        true => Outcome::warn(
            seen,
            "sudo cpupower idle-set -D 10, or `manycore doctor --apply`, or boot with \
             processor.max_cstate=1 intel_idle.max_cstate=1",
        ),
    })
}

pub(super) fn thermal(on: &Subject) -> Looked {
    let counts = on.by_cpu("thermal_throttle/core_throttle_count")?;
    let hot = counts.0.iter().filter(|(count, _)| count.as_str() != "0");
    let hot = hot.fold(CpuSet::default(), |all, (_, cpus)| all.union(cpus));
    Ok(match hot.is_empty() {
        true => Outcome::ok("no CPU in use was slowed down by heat since the start"),
        false => Outcome::warn(
            format!("CPUs {hot} were slowed down by heat since the start"),
            "cool the machine, turn turbo off, or use fewer CPUs at once",
        ),
    })
}

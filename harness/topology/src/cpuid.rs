//! What sysfs lacks and CPUID has: the time stamp counter, WAITPKG, the hypervisor.
//!
//! Topology never comes from here. CPUID is asked only on this host, on x86-64, and never under
//! valgrind, whose CPUID describes a made-up CPU.

use serde::Serialize;

/// Holds what CPUID says, or why it was not asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cpuid {
    /// It was asked.
    Read(CpuidFacts),
    /// It was not.
    Unavailable(CpuidUnavailable),
}

impl Cpuid {
    /// Gives the facts, where CPUID was asked.
    #[must_use]
    pub fn facts(&self) -> Option<&CpuidFacts> {
        match self {
            Cpuid::Read(facts) => Some(facts),
            Cpuid::Unavailable(_) => None,
        }
    }
}

/// Says why CPUID was not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CpuidUnavailable {
    /// The tree is not this host's.
    NotThisHost,
    /// This host is no x86-64.
    NotX86,
    /// The process runs under valgrind.
    Valgrind,
}

impl CpuidUnavailable {
    /// Gives the reason as a phrase.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            CpuidUnavailable::NotThisHost => "the tree is not this host's",
            CpuidUnavailable::NotX86 => "this host is no x86-64",
            CpuidUnavailable::Valgrind => "valgrind runs this process and makes up its CPUID",
        }
    }
}

/// Holds what CPUID says on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuidFacts {
    /// The time stamp counter runs at one rate in all power states.
    pub invariant_tsc: bool,
    /// Its rate in Hz; `None` where CPUID does not give it (calibrate then).
    pub tsc_hz: Option<u64>,
    /// Which leaf gave the rate.
    pub tsc_hz_source: Option<TscSource>,
    /// User mode can wait for a line (`umonitor`, `umwait`, `tpause`).
    pub waitpkg: bool,
    /// The hypervisor's name or signature; `None` on bare metal.
    pub hypervisor: Option<String>,
}

/// Names the CPUID leaf that gave the rate of the time stamp counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TscSource {
    /// Leaf 0x15: crystal clock times ratio.
    CrystalRatio,
    /// Leaf 0x40000010 of the hypervisor, in kHz.
    Hypervisor,
}

/// Asks, where it may be asked.
pub(crate) fn read(this_host: bool) -> Cpuid {
    if !this_host {
        return Cpuid::Unavailable(CpuidUnavailable::NotThisHost);
    }
    on_this_host()
}

#[cfg(not(target_arch = "x86_64"))]
fn on_this_host() -> Cpuid {
    Cpuid::Unavailable(CpuidUnavailable::NotX86)
}

#[cfg(target_arch = "x86_64")]
fn on_this_host() -> Cpuid {
    if crate::valgrind::running_under_valgrind() {
        return Cpuid::Unavailable(CpuidUnavailable::Valgrind);
    }
    let cpuid = raw_cpuid::CpuId::new();
    let power = cpuid.get_advanced_power_mgmt_info();
    let features = cpuid.get_extended_feature_info();
    let hypervisor = cpuid.get_hypervisor_info();
    // The hypervisor's word comes first: it knows of migration between hosts. Leaf 0x40000010 is
    // a timing leaf only for those that define it so; Hyper-V, for one, does not.
    let virtual_hz = hypervisor.as_ref().and_then(|info| {
        use raw_cpuid::Hypervisor::{KVM, VMware};
        let timing = matches!(info.identify(), KVM | VMware);
        info.tsc_frequency().filter(|&khz| timing && khz > 0).map(|khz| u64::from(khz) * 1000)
    });
    let crystal_hz = cpuid.get_tsc_info().and_then(|info| info.tsc_frequency());
    let (tsc_hz, tsc_hz_source) = match (virtual_hz, crystal_hz.filter(|&hz| hz > 0)) {
        (Some(hz), _) => (Some(hz), Some(TscSource::Hypervisor)),
        (None, Some(hz)) => (Some(hz), Some(TscSource::CrystalRatio)),
        (None, None) => (None, None),
    };
    Cpuid::Read(CpuidFacts {
        invariant_tsc: power.is_some_and(|power| power.has_invariant_tsc()),
        tsc_hz,
        tsc_hz_source,
        waitpkg: features.is_some_and(|features| features.has_waitpkg()),
        hypervisor: hypervisor.map(|info| hypervisor_name(&info.identify())),
    })
}

#[cfg(target_arch = "x86_64")]
fn hypervisor_name(hypervisor: &raw_cpuid::Hypervisor) -> String {
    match hypervisor {
        raw_cpuid::Hypervisor::Unknown(b, c, d) => {
            let bytes = [b.to_le_bytes(), c.to_le_bytes(), d.to_le_bytes()].concat();
            let printable = bytes.iter().take_while(|&&byte| byte != 0);
            printable
                .map(|&byte| if byte.is_ascii_graphic() { byte as char } else { '?' })
                .collect()
        }
        known => format!("{known:?}"),
    }
}

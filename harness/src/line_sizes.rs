//! What a machine moves between caches at once: its line, and whether it prefetches pairs of them.
//!
//! A pair is not a line: coherence moves lines. On machines whose prefetcher completes an aligned
//! pair, a miss on one line also takes the other one away from whoever wrote it. Which machines do
//! is a table with sources, [`MACHINES`], and never assumed from the architecture alone.

use topology::{CacheKind, Topology};

use crate::layout::Lines;

/// What is known of one maker's CPUs.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// The architecture, as [`std::env::consts::ARCH`] names it.
    pub arch: &'static str,
    /// The maker as `proc/cpuinfo` names it: `vendor_id`, or Arm's implementer with or without the
    /// part; empty for all makers.
    pub maker: &'static str,
    /// Bytes of a line, of the cache with the longest ones.
    pub line: usize,
    /// Whether misses bring aligned pairs of lines.
    pub pairs: bool,
    /// What the sources say.
    pub says: &'static str,
    /// Where.
    pub source: &'static str,
}

const fn machine(
    arch: &'static str,
    maker: &'static str,
    (line, pairs): (usize, bool),
    says: &'static str,
    source: &'static str,
) -> Machine {
    Machine { arch, maker, line, pairs, says, source }
}

const NO_STATEMENT: &str = "no statement about pairs is known";

/// The machines, the particular before the general.
pub const MACHINES: [Machine; 17] = [
    machine(
        "x86_64",
        "GenuineIntel",
        (64, true),
        "the L2 spatial prefetcher completes a line to an aligned pair of 128 bytes",
        "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), data prefetching",
    ),
    machine(
        "x86_64",
        "AuthenticAMD",
        (64, false),
        "no aligned pairs; from Zen on the L2 up/down prefetcher may fetch the next or the previous \
         line, after the history of the accesses",
        "AMD Software Optimization Guides for families 17h (56305), 19h (56665), prefetching",
    ),
    machine(
        "x86_64",
        "HygonGenuine",
        (64, false),
        "Zen 1 under licence: as AMD's",
        "AMD Software Optimization Guide for family 17h",
    ),
    machine("x86_64", "", (64, false), NO_STATEMENT, "CPUID leaf 1, CLFLUSH line size"),
    machine(
        "x86",
        "GenuineIntel",
        (64, true),
        "as on x86-64",
        "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966)",
    ),
    machine(
        "aarch64",
        "0x61",
        (128, false),
        "lines of 128 bytes",
        "Apple, sysctl hw.cachelinesize",
    ),
    machine(
        "aarch64",
        "0x46",
        (256, false),
        "lines of 256 bytes",
        "Fujitsu, A64FX Microarchitecture Manual",
    ),
    machine(
        "aarch64",
        "0x43:0x0a1",
        (128, false),
        "ThunderX: lines of 128 bytes",
        "Linux, arch/arm64 and its cache descriptions",
    ),
    machine(
        "aarch64",
        "0x48",
        (128, false),
        "Kunpeng: 64 in L1 and L2, 128 in L3",
        "Huawei, Kunpeng 920 tuning guide, cache line",
    ),
    machine(
        "aarch64",
        "0x41",
        (64, false),
        "Cortex-A and Neoverse: lines of 64 bytes; prefetchers follow strides and streams",
        "Arm, technical reference manuals of the cores, memory system",
    ),
    machine(
        "aarch64",
        "0xc0",
        (64, false),
        "AmpereOne: lines of 64 bytes",
        "Ampere, product brief; the kernel's coherency_line_size",
    ),
    machine("aarch64", "", (64, false), NO_STATEMENT, "CTR_EL0 of the CPU, by the kernel"),
    machine("powerpc64", "", (128, false), "lines of 128 bytes", "IBM, POWER9 User's Manual"),
    machine("s390x", "", (256, false), "lines of 256 bytes", "IBM, z/Architecture, cache line"),
    machine("riscv64", "", (64, false), "blocks of 64 bytes (Zic64b)", "RISC-V profile RVA22"),
    machine("loongarch64", "", (64, false), NO_STATEMENT, "Loongson 3A5000 Reference Manual"),
    machine("", "", (64, false), "this architecture is not in the table", "none"),
];

/// The smallest and the largest line that can be asked for.
pub const LINE_RANGE: [usize; 2] = [32, 256];

/// What was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The sizes.
    pub lines: Lines,
    /// Why this line.
    pub line_because: String,
    /// Why this pair, or none.
    pub pair_because: String,
}

/// What `--pair` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// No pairs.
    None,
    /// Pairs of this many bytes.
    Bytes(usize),
}

/// Checks that a line has a size that a line can have.
///
/// # Errors
/// A sentence that says what would do.
pub fn line_bytes(bytes: usize) -> Result<usize, String> {
    let [least, most] = LINE_RANGE;
    if !bytes.is_power_of_two() || !(least..=most).contains(&bytes) {
        return Err(format!("a line has a power of two from {least} to {most} bytes, not {bytes}"));
    }
    Ok(bytes)
}

/// Finds the entry of a machine.
pub fn machine_of(arch: &str, makers: &[&str]) -> &'static Machine {
    let fits = |machine: &&Machine| {
        (machine.arch == arch || machine.arch.is_empty())
            && (machine.maker.is_empty()
                || makers.iter().any(|maker| maker.starts_with(machine.maker)))
    };
    // The last one fits everything.
    MACHINES.iter().find(fits).unwrap_or(&MACHINES[MACHINES.len() - 1])
}

/// Chooses line and pair for a machine: what was asked for, else what the kernel says of the line
/// and the table of the rest.
///
/// # Errors
/// When what was asked for cannot be: a line that is no power of two, a pair that is not two lines.
pub fn choose(
    topology: &Topology,
    arch: &str,
    line: Option<usize>,
    pair: Option<Pair>,
) -> Result<Chosen, String> {
    let info = topology.cpuinfo.as_ref();
    let vendor = info.and_then(|info| info.vendor.as_deref());
    let parts = info.map(|info| info.parts.keys().map(String::as_str)).into_iter().flatten();
    let makers: Vec<&str> = vendor.into_iter().chain(parts).collect();
    let machine = machine_of(arch, &makers);
    let who = if makers.is_empty() { "unknown maker".to_owned() } else { makers.join(", ") };
    let kernels = topology
        .caches
        .iter()
        .filter(|cache| cache.kind != CacheKind::Instruction)
        .filter_map(|cache| usize::try_from(cache.line_bytes?).ok())
        .filter(|&bytes| line_bytes(bytes).is_ok())
        .max();
    let (bytes, line_because) = match (line, kernels) {
        (Some(line), _) => (line_bytes(line)?, "--line".to_owned()),
        (None, Some(kernels)) if kernels >= machine.line => {
            (kernels, "coherency_line_size of the kernel".to_owned())
        }
        (None, _) => (machine.line, format!("{who}: {} ({})", machine.says, machine.source)),
    };
    let (pair, pair_because) = match pair {
        Some(Pair::None) => (None, "--pair none".to_owned()),
        Some(Pair::Bytes(pair)) if pair == 2 * bytes => (Some(pair), "--pair".to_owned()),
        Some(Pair::Bytes(pair)) => {
            return Err(format!(
                "a pair is two lines: --pair {} or --pair none with lines of {bytes} bytes, not {pair}",
                2 * bytes
            ));
        }
        None if machine.pairs && bytes <= machine.line => {
            (Some(2 * bytes), format!("{who}: {} ({})", machine.says, machine.source))
        }
        None if machine.pairs => {
            (None, format!("{who}: a line of {bytes} bytes holds the pair of this machine"))
        }
        None => (None, format!("{who}: {} ({})", machine.says, machine.source)),
    };
    Ok(Chosen { lines: Lines { line: bytes, pair }, line_because, pair_because })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_told_apart() {
        let of = |arch, maker| {
            let machine = machine_of(arch, &[maker]);
            (machine.line, machine.pairs)
        };
        assert_eq!(of("x86_64", "GenuineIntel"), (64, true));
        assert_eq!(of("x86_64", "AuthenticAMD"), (64, false));
        assert_eq!(of("x86_64", "CentaurHauls"), (64, false));
        assert_eq!(of("aarch64", "0x41:0xd0c"), (64, false));
        assert_eq!(of("aarch64", "0x61:0x022"), (128, false));
        assert_eq!(of("aarch64", "0x43:0x0a1"), (128, false));
        assert_eq!(of("aarch64", "0x43:0x0af"), (64, false), "ThunderX2");
        assert_eq!(of("powerpc64", ""), (128, false));
        assert_eq!(of("s390x", "IBM/S390"), (256, false));
        assert_eq!(of("sparc64", ""), (64, false));
        assert_eq!(machine_of("x86_64", &[]).says, NO_STATEMENT);
    }

    #[test]
    fn every_machine_has_a_line_and_a_source() {
        for machine in MACHINES {
            assert!(line_bytes(machine.line).is_ok(), "{machine:?}");
            assert!(!machine.says.is_empty() && !machine.source.is_empty(), "{machine:?}");
        }
    }

    #[test]
    fn what_is_asked_for_is_used_or_refused() {
        let host = Topology::this_host().unwrap();
        let ask = |line, pair| choose(&host, "x86_64", line, pair);
        let lines = |chosen: Chosen| (chosen.lines.line, chosen.lines.pair);
        assert_eq!(ask(Some(64), Some(Pair::Bytes(128))).map(lines), Ok((64, Some(128))));
        assert_eq!(ask(Some(128), Some(Pair::None)).map(lines), Ok((128, None)));
        for (line, pair) in [(0, None), (48, None), (16, None), (512, None)] {
            assert!(ask(Some(line), pair).unwrap_err().contains("power of two"), "{line}");
        }
        for pair in [0, 64, 100, 256] {
            let refused = ask(Some(64), Some(Pair::Bytes(pair))).unwrap_err();
            assert!(refused.contains("--pair 128"), "{refused}");
        }
        let chosen = ask(None, None).unwrap();
        assert!(!chosen.line_because.is_empty() && !chosen.pair_because.is_empty());
    }
}

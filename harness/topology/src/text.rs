//! The topology as text for a person.

use std::fmt::{self, Write};

use crate::caches::Cache;
use crate::cgroup::Cgroup;
use crate::cpuid::Cpuid;
use crate::cpus::AllowedSource;
use crate::cpuset::CpuSet;
use crate::nodes::Distances;
use crate::topology::Topology;

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Topology {
    /// Describes the machine in some twenty lines: CPUs, packages, cores, nodes with memory and
    /// distances, L3 groups, offline and isolated CPUs, quota, findings.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_text(&mut out);
        out
    }

    fn write_text(&self, out: &mut String) -> fmt::Result {
        self.write_head(out)?;
        self.write_cpus(out)?;
        self.write_cores(out)?;
        self.write_nodes(out)?;
        self.write_caches(out)?;
        if let Some(cgroup) = &self.cgroup {
            write_cgroup(out, cgroup)?;
        }
        self.write_host(out)?;
        if !self.findings.is_empty() {
            writeln!(out, "findings ({})", self.findings.len())?;
            for finding in &self.findings {
                writeln!(out, "  {finding}")?;
            }
        }
        Ok(())
    }

    fn write_head(&self, out: &mut String) -> fmt::Result {
        let unknown = "unknown model";
        let info = self.cpuinfo.as_ref();
        let model = info.and_then(|info| info.model_name.as_deref()).unwrap_or(unknown);
        let root =
            if self.this_host { "this host".into() } else { self.root.display().to_string() };
        writeln!(out, "{model} ({root})")?;
        let mut summary = vec![
            count(self.packages.len(), "package"),
            count(self.numa_nodes.len(), "NUMA node"),
            count(self.l3_groups().len(), "L3 group"),
            count(self.cores.len(), "core"),
            format!("{} online", count(self.cpus.online.len(), "CPU")),
        ];
        summary.retain(|part| !part.starts_with("0 "));
        writeln!(out, "{}", summary.join(", "))
    }

    fn write_cpus(&self, out: &mut String) -> fmt::Result {
        let cpus = &self.cpus;
        line(
            out,
            "online",
            &format!("{} (from {})", cpus.online.to_strides(), cpus.online_source.word()),
        )?;
        for (name, set) in [("offline", Some(&cpus.offline)), ("isolated", cpus.isolated.as_ref())]
        {
            line_unless_empty(out, name, set)?;
        }
        line_unless_empty(out, "nohz_full", cpus.nohz_full.as_ref())?;
        let source = match &cpus.allowed {
            None => "nothing restricts them".to_owned(),
            Some(allowed) => {
                let words: Vec<&str> =
                    allowed.sources.iter().copied().map(AllowedSource::word).collect();
                format!("allowed by {}", words.join(", "))
            }
        };
        let usable = if cpus.usable.is_empty() { "none".into() } else { cpus.usable.to_strides() };
        line(out, "usable", &format!("{usable} ({}; {source})", cpus.usable.len()))?;
        for kind in &self.kinds {
            line(out, "kind", &format!("{}: CPUs {}", kind.name, kind.cpus.to_strides()))?;
        }
        Ok(())
    }

    fn write_cores(&self, out: &mut String) -> fmt::Result {
        for package in &self.packages {
            let id = package.id.map_or("without number".to_owned(), |id| id.to_string());
            let cores = self.cores.iter().filter(|core| core.cpus.is_subset(&package.cpus)).count();
            let cores = if cores == 0 { "cores unknown".into() } else { count(cores, "core") };
            line(
                out,
                &format!("package {id}"),
                &format!("{cores}, CPUs {}", package.cpus.to_strides()),
            )?;
        }
        let smt = match (self.smt.narrowest, self.smt.widest) {
            (Some(narrow), Some(wide)) if narrow == wide => count(wide, "thread"),
            (Some(narrow), Some(wide)) => format!("{narrow} to {wide} threads"),
            _ => "unknown number of threads".to_owned(),
        };
        let state = match self.smt.active {
            Some(true) => ", SMT active",
            Some(false) => ", SMT not active",
            None => "",
        };
        line(out, "each core", &format!("{smt} online{state}"))?;
        let siblings = self.cores.iter().find(|core| core.cpus.len() > 1);
        if let Some(core) = siblings {
            line(out, "siblings", &format!("as in CPUs {}", core.cpus))?;
        }
        for (name, groups) in [("dies", &self.dies), ("clusters", &self.clusters)] {
            if let Some(groups) = groups {
                let sets: Vec<String> =
                    groups.iter().map(|group| group.cpus.to_strides()).collect();
                line(out, name, &format!("{}: {}", groups.len(), cut(&sets)))?;
            }
        }
        Ok(())
    }

    fn write_nodes(&self, out: &mut String) -> fmt::Result {
        if self.numa_nodes.is_empty() {
            line(out, "NUMA", "unknown; treat as one node")?;
        }
        for node in &self.numa_nodes {
            let cpus = match &node.cpus {
                None => "CPUs unknown".to_owned(),
                Some(cpus) if cpus.is_empty() => "no CPUs".to_owned(),
                Some(cpus) => format!("CPUs {}", cpus.to_strides()),
            };
            let memory = match node.mem_total_kb {
                None => "memory unknown".to_owned(),
                Some(0) => "no memory".to_owned(),
                Some(kb) => bytes(u128::from(kb) << 10),
            };
            line(out, &format!("node {}", node.id), &format!("{memory}, {cpus}"))?;
        }
        match &self.distances {
            Some(distances) if distances.node_ids.len() > 1 => write_distances(out, distances),
            None if self.numa_nodes.len() > 1 => line(out, "distances", "unknown"),
            _ => Ok(()),
        }
    }

    fn write_caches(&self, out: &mut String) -> fmt::Result {
        let mut names: Vec<(String, Vec<&Cache>)> = Vec::new();
        for cache in &self.caches {
            match names.iter_mut().find(|(name, _)| *name == cache.name()) {
                Some((_, alike)) => alike.push(cache),
                None => names.push((cache.name(), vec![cache])),
            }
        }
        for (name, caches) in &names {
            let sizes = caches.iter().filter_map(|cache| cache.size_bytes);
            let mut sizes: Vec<u64> = sizes.collect();
            sizes.sort_unstable();
            sizes.dedup();
            let sizes: Vec<String> = sizes.iter().map(|&size| bytes(u128::from(size))).collect();
            let size = if sizes.is_empty() { "size unknown".into() } else { sizes.join(" or ") };
            line(out, name, &format!("{} × {size}", caches.len()))?;
        }
        let groups = self.l3_groups();
        let sets: Vec<String> = groups.iter().map(|group| group.cpus.to_strides()).collect();
        match groups.first() {
            Some(first) => {
                let title = format!("{} groups", first.name());
                line(out, &title, &format!("{}: {}", groups.len(), cut(&sets)))?;
            }
            None => line(out, "L3 groups", "unknown")?,
        }
        let lines: Vec<String> = self.line_sizes().iter().map(u64::to_string).collect();
        let lines =
            if lines.is_empty() { "unknown".into() } else { lines.join(" and ") + " bytes" };
        line(out, "cache line", &lines)
    }

    fn write_host(&self, out: &mut String) -> fmt::Result {
        if let Some(page) = self.page_bytes {
            line(out, "page", &format!("{page} bytes"))?;
        }
        match &self.cpuid {
            Cpuid::Read(facts) => {
                let rate =
                    facts.tsc_hz.map_or("rate not given".to_owned(), |hz| format!("{hz} Hz"));
                let steady = if facts.invariant_tsc { "invariant" } else { "not invariant" };
                line(out, "TSC", &format!("{steady}, {rate}"))?;
                line(out, "WAITPKG", if facts.waitpkg { "yes" } else { "no" })?;
                line(out, "hypervisor", facts.hypervisor.as_deref().unwrap_or("none"))
            }
            Cpuid::Unavailable(why) if self.this_host => {
                line(out, "CPUID", &format!("not asked: {}", why.reason()))
            }
            Cpuid::Unavailable(_) => Ok(()),
        }
    }
}

fn write_cgroup(out: &mut String, cgroup: &Cgroup) -> fmt::Result {
    let versions: Vec<String> =
        cgroup.versions.iter().map(|version| format!("v{version}")).collect();
    let versions = if versions.is_empty() { "not mounted".into() } else { versions.join(" and ") };
    let path = cgroup.cpuset_path.as_ref().or(cgroup.quota_path.as_ref());
    let path = path.map_or(String::new(), |path| format!(", path {path}"));
    line(out, "cgroup", &format!("{versions}{path}"))?;
    if let Some(cpuset) = &cgroup.cpuset {
        let mems = cpuset.mems.as_ref().map_or(String::new(), |mems| format!(", nodes {mems}"));
        line(out, "cpuset", &format!("CPUs {}{mems} ({})", cpuset.cpus, cpuset.cpus_file))?;
    }
    match &cgroup.quota {
        None => line(out, "quota", "no limit seen"),
        Some(quota) => {
            let up = match quota.levels_up {
                0 => String::new(),
                up => format!(", {} up", count(up, "level")),
            };
            let whole = count(quota.quota_cpus as usize, "CPU");
            line(out, "quota", &format!("{} CPUs, use {whole} ({}{up})", quota.cpus, quota.file))
        }
    }
}

fn write_distances(out: &mut String, distances: &Distances) -> fmt::Result {
    let head: String = distances.node_ids.iter().map(|id| format!(" {id:>3}")).collect();
    line(out, "distances", &head)?;
    for (id, row) in distances.node_ids.iter().zip(&distances.matrix) {
        let row: String = row.iter().map(|distance| format!(" {distance:>3}")).collect();
        line(out, &format!("  from {id}"), &row)?;
    }
    Ok(())
}

fn line(out: &mut String, name: &str, value: &str) -> fmt::Result {
    writeln!(out, "  {name:<12} {value}")
}

fn line_unless_empty(out: &mut String, name: &str, set: Option<&CpuSet>) -> fmt::Result {
    match set {
        Some(set) if !set.is_empty() => {
            line(out, name, &format!("{} ({})", set.to_strides(), set.len()))
        }
        _ => Ok(()),
    }
}

fn count(number: usize, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// Joins sets of CPUs, and cuts a long row of them in the middle.
fn cut(sets: &[String]) -> String {
    const KEEP: usize = 8;
    if sets.len() <= KEEP + 1 {
        return sets.join(" | ");
    }
    let more = sets.len() - KEEP;
    format!("{} | … {more} more", sets[..KEEP].join(" | "))
}

/// Prints bytes in the largest binary unit that keeps at least one digit before the point.
pub(crate) fn bytes(bytes: u128) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.2}");
    format!("{} {}", text.trim_end_matches('0').trim_end_matches('.'), units[unit])
}

//! `manycore doctor`: what about a host spoils measurements.

use std::path::PathBuf;

use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use harness::clock::Clock;
use harness::doctor::{Finding, Live, Look, Subject, Verdict, examine, worst};
use harness::unavailable::Unavailable;
use topology::Topology;

use crate::exit::Failure;
use crate::{doctor_settings, stdout};

pub(crate) const HELP: &str = "\
Examples:
  manycore doctor
      about a second: reads, and watches every CPU for gaps
  sudo manycore doctor --apply -- manycore sweep --primitive locks
      sets what can be set, measures, and puts it back
  sudo manycore doctor --restore
      puts back what a doctor that was killed has left
  manycore doctor --root saved-tree --json
      judges /proc and /sys as copied from another host; one finding a line

Verdicts: ok; warn, figures are worse for it; unfit, figures say little; unknown, with the reason.
--apply sets governor, turbo, deep idle states, transparent huge pages, NUMA balancing, page merging,
zone reclaim, address randomisation and perf_event_paranoid; without a command it holds them until
Ctrl-C. docs/doctor.md says what each verdict takes.
Exit codes: 0 done, 1 failed, 2 usage, 5 unfit; with a command, that command's";

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Judge the tree under this directory instead of this host
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Print JSON, one finding a line
    #[arg(long)]
    json: bool,
    /// Set what can be set until the command that follows, or Ctrl-C, ends it
    #[arg(long)]
    apply: bool,
    /// Put back what a doctor that was killed has left
    #[arg(long, conflicts_with_all = ["apply", "json"])]
    restore: bool,
    /// Keep what there was before in this file [default: run/manycore-doctor.json under the root]
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<PathBuf>,
    /// The command to run under these settings, after --
    #[arg(last = true, value_name = "COMMAND", requires = "apply")]
    pub(crate) command: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// When the host cannot be read, is unfit, or settings cannot be set or put back.
pub(crate) fn run(arguments: &DoctorArgs) -> Result<(), Failure> {
    if arguments.restore {
        return doctor_settings::restore(arguments);
    }
    let root = arguments.root.as_deref().unwrap_or_else(|| "/".as_ref());
    let host = Topology::from_root(root).map_err(|error| Failure::Failed(error.to_string()))?;
    if arguments.apply {
        return doctor_settings::hold(arguments, &host, || show(arguments, &host).map(|_| ()));
    }
    let findings = show(arguments, &host)?;
    match worst(&findings) {
        Verdict::Unfit => Err(Failure::Unfit(format!(
            "this host is unfit for measurements: {}",
            names(&findings, Verdict::Unfit)
        ))),
        _ => Ok(()),
    }
}

/// Examines and prints.
fn show(arguments: &DoctorArgs, host: &Topology) -> Result<Vec<Finding>, Failure> {
    let live = match host.this_host {
        true => Ok(Live::measured(host, &Clock::calibrated(&host.cpuid), Look::Thorough)),
        false => Err(Unavailable::because("not_this_host", "a saved tree cannot be measured")),
    };
    let subject = Subject::new(host, live).map_err(|reason| Failure::Failed(reason.to_string()))?;
    let findings = examine(&subject);
    if arguments.json {
        let lines: Vec<String> = findings.iter().map(|f| f.to_json().to_string()).collect();
        stdout::print(&lines.join("\n"))?;
    } else {
        stdout::print(&text(&findings))?;
    }
    Ok(findings)
}

fn text(findings: &[Finding]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    for finding in findings {
        let mut lines = vec![match &finding.reason {
            Some(reason) => format!("not known: {reason}"),
            None => finding.seen.clone(),
        }];
        if finding.verdict >= Verdict::Warn {
            lines.push(format!("so: {}", finding.effect));
        }
        lines.extend(finding.remedy.as_ref().map(|remedy| format!("do: {remedy}")));
        table.add_row([finding.verdict.word(), finding.check, &lines.join("\n")]);
    }
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let as_known = if count(Verdict::Unknown) > 0 { " as far as is known" } else { "" };
    let summary = match worst(findings) {
        Verdict::Unfit => format!("unfit: {}", names(findings, Verdict::Unfit)),
        Verdict::Warn => format!("fit{as_known}, with warnings"),
        Verdict::Ok | Verdict::Unknown => format!("fit{as_known}"),
    };
    format!(
        "{}\n\n→ {summary} ({} ok, {} warn, {} unfit, {} unknown)",
        table.trim_fmt(),
        count(Verdict::Ok),
        count(Verdict::Warn),
        count(Verdict::Unfit),
        count(Verdict::Unknown),
    )
}

/// Names the checks with a verdict.
pub(crate) fn names(findings: &[Finding], verdict: Verdict) -> String {
    let those = findings.iter().filter(|finding| finding.verdict == verdict);
    those.map(|finding| finding.check).collect::<Vec<_>>().join(", ")
}

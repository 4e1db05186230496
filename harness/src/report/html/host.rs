//! One host: its environment, and what each engine measured on it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::report::html::notes::shape;
use crate::report::html::{Page, machine, maps, panel, text};
use crate::report::model::{Family, Host, Model, Section, told, words};
use crate::report::number::plural;

/// What the items of a run header mean, in the order in which they are shown.
const ITEMS: [(&str, &str); 15] = [
    ("name", "the host's name as the kernel has it"),
    ("cpu", "the processor's model; figures hold for it alone"),
    ("microcode", "its firmware, which changes the price of atomics and fences"),
    ("kernel", "the kernel's release; it decides about futexes, scheduling, placement"),
    ("cpus_allowed", "CPUs that this process may use"),
    (
        "quota_cpus",
        "CPU time that the tightest cgroup allows, in CPUs; beyond it threads are stopped",
    ),
    ("nodes", "NUMA nodes: memory with CPUs near to it"),
    ("governor", "what sets the clock rate; all but `performance` change it with the load"),
    ("smt", "whether two threads share a core"),
    ("thp", "transparent huge pages: fewer misses of the TLB, where granted"),
    ("aslr", "randomised addresses: other collisions in the caches from run to run"),
    ("hypervisor", "what runs below this host and may take its CPUs away"),
    ("rustc", "the compiler that built the program"),
    ("commit", "the source that it was built from; `-modified` when files had changed"),
    ("date", "when the run began, in UTC"),
];

/// So many values of an item, findings or runs are listed.
const LISTED: usize = 12;

/// Writes a host. Gives the number of groups of points that were left out, because the page had
/// `most` bytes already.
pub(super) fn section(page: &mut Page, model: &Model, at: usize, most: usize) -> u64 {
    let host = &model.hosts[at];
    let sections = model.sections(at);
    if sections.is_empty() {
        return 0;
    }
    if page.len() > most {
        let panels = sections.iter().flat_map(|s| &s.families).map(|f| f.panels.len() as u64);
        return panels.sum();
    }
    page.put(format_args!(
        "<section class=\"host\" id=\"host-{at}\"><h2>{} <span class=\"sub\">{}</span></h2>",
        text(&host.name, 80),
        text(&host.cpu, 80)
    ));
    findings(page, host);
    environment(page, host);
    let mut omitted = 0;
    for section in &sections {
        page.put(format_args!(
            "<section class=\"engine\"><h3>{}</h3><p class=\"note\">{}</p>",
            badge(section, true),
            explained(section.engine)
        ));
        machine::drawing(page, model, at, section, most);
        for family in &section.families {
            omitted += self::family(page, model, family, section.engine, most);
        }
        omitted += maps::section(page, section, most);
        page.put(format_args!("</section>"));
    }
    page.put(format_args!("</section>"));
    omitted
}

/// The engine as a word that is seen to be another, and its machine.
pub(super) fn badge(section: &Section<'_>, with_host: bool) -> String {
    let class = match section.engine {
        "native" => "native",
        "callgrind" => "callgrind",
        "simulated" => "simulated",
        _ => "other",
    };
    let machine = match section.machine {
        "this-host" if with_host => " this host".into(),
        "this-host" => String::new(),
        machine => format!(" {}", text(machine, 60)),
    };
    format!("<span class=\"badge {class}\">{}</span>{machine}", text(section.engine, 30))
}

fn explained(engine: &str) -> &'static str {
    match engine {
        "native" => {
            "Measured in time on this host's cores. Intervals are 95 % bootstrap intervals of the \
             median of the repetitions."
        }
        "callgrind" => {
            "Counted instruction by instruction under valgrind: exact and repeatable, and no time."
        }
        "simulated" => {
            "Predicted by a model of the machine that is named, from the program's own machine \
             code. An interval, where there is one, is the band of the model's validated error. \
             Not measured."
        }
        _ => {
            "An engine that this version does not know; its figures are shown as they were \
             recorded."
        }
    }
}

fn findings(page: &mut Page, host: &Host) {
    let mut seen = BTreeSet::new();
    let word = |finding: &Value, key: &str| finding.get(key).map(told).unwrap_or_default();
    let findings: Vec<(String, String)> = host
        .runs
        .iter()
        .flat_map(|run| run.spoilers())
        .map(|finding| match finding {
            Value::Object(_) => (word(finding, "check"), word(finding, "message")),
            other => ("finding".into(), told(other)),
        })
        .filter(|(check, message)| seen.insert((check.clone(), shape(message))))
        .collect();
    if findings.is_empty() {
        if !host.runs.is_empty() {
            page.put(format_args!(
                "<p class=\"note\">Nothing was found about this host that spoils measurements.</p>"
            ));
        }
        return;
    }
    page.put(format_args!(
        "<div class=\"findings\"><p><b>What about this host spoils measurements</b></p><ul>"
    ));
    for (check, message) in findings.iter().take(LISTED) {
        page.put(format_args!("<li><b>{}</b> {}</li>", text(check, 40), text(message, 300)));
    }
    if findings.len() > LISTED {
        page.put(format_args!("<li>and {} more</li>", findings.len() - LISTED));
    }
    page.put(format_args!("</ul></div>"));
}

fn environment(page: &mut Page, host: &Host) {
    if host.runs.is_empty() {
        page.put(format_args!(
            "<p class=\"notice\">The run header of these points is in none of the files: nothing \
             is known about where they were measured.</p>"
        ));
        return;
    }
    page.put(format_args!(
        "<details><summary>Environment: {}</summary><div class=\"scroll\"><table class=\"facts\">\
         <thead><tr><th scope=\"col\">item</th><th scope=\"col\">value</th><th scope=\"col\">what it means</th></tr></thead><tbody>",
        summary(host)
    ));
    let known = ITEMS.iter().copied();
    let mut others: Vec<&str> =
        host.runs.iter().flat_map(|run| run.host.keys()).map(String::as_str).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|key| ITEMS.iter().all(|(item, _)| item != key));
    let unknown = others.into_iter().take(40).map(|key| (key, "not known to this version"));
    for (key, means) in known.chain(unknown) {
        let values = distinct(host, key);
        page.put(format_args!(
            "<tr><th scope=\"row\">{}</th><td>{values}</td><td class=\"means\">{means}</td></tr>",
            text(key, 40)
        ));
    }
    page.put(format_args!("</tbody></table></div>"));
    runs(page, host);
    page.put(format_args!("</details>"));
}

/// The values of an item over the host's runs; more than one is worth knowing.
fn distinct(host: &Host, key: &str) -> String {
    let mut values: Vec<String> = Vec::new();
    for value in host.runs.iter().filter_map(|run| run.host.get(key)).map(told) {
        if !values.contains(&value) && values.len() < LISTED {
            values.push(value);
        }
    }
    if values.is_empty() {
        return "<i>not recorded</i>".into();
    }
    values.iter().map(|value| text(value, 200)).collect::<Vec<_>>().join("<br>")
}

fn summary(host: &Host) -> String {
    let one = |key: &str| host.runs[0].host.get(key).map(told);
    let mut parts = vec![plural(host.runs.len() as u64, "run")];
    parts.extend(one("cpus_allowed").map(|cpus| format!("CPUs {cpus}")));
    parts.extend(one("nodes").map(|nodes| format!("nodes {nodes}")));
    parts.extend(one("kernel").map(|kernel| format!("kernel {kernel}")));
    parts.extend(one("commit").map(|commit| format!("commit {commit}")));
    text(&parts.join(", "), 200)
}

fn runs(page: &mut Page, host: &Host) {
    page.put(format_args!(
        "<div class=\"scroll\"><table class=\"facts\"><caption>Runs</caption><thead><tr>\
         <th scope=\"col\">run</th><th scope=\"col\">commit</th><th scope=\"col\">command line</th>\
         </tr></thead><tbody>"
    ));
    for run in host.runs.iter().take(LISTED) {
        page.put(format_args!(
            "<tr><td>{}</td><td>{}</td><td><code>{}</code></td></tr>",
            text(&run.run, 60),
            text(&run.host.get("commit").map(told).unwrap_or_default(), 60),
            text(&run.argv.join(" "), 300)
        ));
    }
    if host.runs.len() > LISTED {
        page.put(format_args!(
            "<tr><td colspan=\"3\">and {} more</td></tr>",
            host.runs.len() - LISTED
        ));
    }
    page.put(format_args!("</tbody></table></div>"));
}

fn family(page: &mut Page, model: &Model, family: &Family<'_>, engine: &str, most: usize) -> u64 {
    if page.len() > most {
        return family.panels.len() as u64;
    }
    page.put(format_args!("<section class=\"family\"><h4>{}</h4>", text(family.primitive, 60)));
    let verdicts = family.verdicts(&model.kinds);
    for (workload, verdict) in verdicts.iter().take(LISTED) {
        let words =
            if verdicts.len() > 1 { format!("With {}: ", words(workload)) } else { String::new() };
        page.put(format_args!(
            "<p class=\"verdict\">{}</p>",
            text(&format!("{words}{}", verdict.sentence()), 600)
        ));
    }
    let mut omitted = 0;
    for panel in &family.panels {
        let mut drawn = Page::default();
        panel::figure(&mut drawn, panel, engine, model.points.len() <= super::TIPS_MOST);
        if page.len() + drawn.len() > most {
            omitted += 1;
        } else {
            page.0.push_str(&drawn.0);
        }
    }
    page.put(format_args!("</section>"));
    omitted
}

//! The page with all scenarios, in Markdown.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use harness::report::number::short;
use harness::simulated::Border;

use super::plot;
use super::text::{COLUMNS, cells, notes, place, told};
use crate::exit::Failure;
use crate::scenario_run::{Plan, band_of};

/// Writes the page, and a plot of each scenario beside it.
///
/// # Errors
/// When a file cannot be written.
pub(crate) fn write(path: &Path, plans: &[Plan], machine: Option<&str>) -> Result<(), Failure> {
    let put = |path: &Path, text: &str| {
        fs::write(path, text)
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))
    };
    let plots = path.with_extension("");
    let folder = plots.file_name().map_or_else(String::new, |name| name.display().to_string());
    fs::create_dir_all(&plots)
        .map_err(|error| Failure::Failed(format!("{}: {error}", plots.display())))?;
    for plan in plans {
        put(
            &plots.join(format!("{}.svg", plan.scenario.name)),
            &plot::svg(plan, &place(plan, machine)),
        )?;
    }
    put(path, &page(plans, machine, &folder))
}

/// Describes all scenarios; plots lie in `folder`.
fn page(plans: &[Plan], machine: Option<&str>, folder: &str) -> String {
    let simulated = plans.iter().find_map(|plan| plan.setting.machine());
    let bands = simulated.map_or_else(String::new, |simulated| {
        let [near, far] =
            [Border::InSocket, Border::Across].map(|at| short(band_of(simulated, at)));
        format!(
            "Simulated times may be off by a factor of {near} in a socket and of\n{far} across \
             ([validation.md](validation.md)), which is the band of a ratio; counts are exact.\n"
        )
    });
    let mut page = format!(
        "\
# Phenomena of big machines

Written by `manycore scenario --all --markdown docs/phenomena.md` of commit {}: each
section is a scenario that `manycore scenario NAME` runs. {bands}Figures of
the field reports are of their machines and programs, and show direction and order of magnitude.
`L3|socket|cross` are lines that came from cores under the same L3, from the rest of the socket, and
from another socket; P50 and P99 are of single operations, or of the mean of 64 where one takes a few
nanoseconds, from when they should have begun where they arrive by themselves; lock wait is what
threads note who find a lock taken or wait for a condition. An effect is within the model's error
where its band reaches 1.

",
        env!("MANYCORE_COMMIT")
    );
    for plan in plans {
        let _ = writeln!(page, "- [{0}](#{0}): {1}", plan.scenario.name, plan.scenario.title);
    }
    for plan in plans {
        let _ = write!(page, "\n{}", section(plan, machine, folder));
    }
    page
}

fn section(plan: &Plan, machine: Option<&str>, folder: &str) -> String {
    let scenario = plan.scenario;
    let (name, title) = (scenario.name, scenario.title);
    let mut text = format!(
        "## {name}\n\n{}: {title}. {}\n\n![{title}]({folder}/{name}.svg)\n\n{}\n\n",
        capital(name),
        scenario.what,
        capital(place(plan, machine).trim_matches(['(', ')']))
    );
    let _ = writeln!(text, "| {} |", COLUMNS.map(|column| column.replace('|', "\\|")).join(" | "));
    let _ = writeln!(text, "|---|{}", "---:|".repeat(COLUMNS.len() - 1));
    for one in &plan.steps {
        let mut row = cells(one);
        row.resize(COLUMNS.len(), String::new());
        let row: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text.push('\n');
    for one in &plan.steps {
        for note in notes(one) {
            let _ = writeln!(text, "- `{}`: {note}", one.step.id);
        }
    }
    let _ = writeln!(text, "\nField report: {}.\n", scenario.reported);
    for effect in plan.effects() {
        let _ = writeln!(text, "- {}", told(&effect));
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

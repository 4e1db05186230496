//! The drawing of the machine that points were measured or simulated on.

use serde_json::Value;
use topology::{Plan, SvgStyle};

use crate::records::Run;
use crate::report::html::{Page, text};
use crate::report::model::{Model, Section};
use crate::simulated::recorded_plan;

/// Machines of records may have so many parts, cores and PUs.
const PARTS_MOST: usize = 20_000;

/// Draws the machine of a section, if the page stays below `most` bytes; where the records do not
/// describe it, says so.
pub(super) fn drawing(
    page: &mut Page,
    model: &Model,
    host: usize,
    section: &Section<'_>,
    most: usize,
) {
    let key = match section.engine {
        "native" => "topology",
        "simulated" => "machine",
        _ => return,
    };
    let described = runs(model, host, section).find_map(|run| run.other.get(key));
    let Some(described) = described else {
        page.put(format_args!(
            "<p class=\"note\">The run headers do not describe this machine, so it is not \
             drawn.</p>"
        ));
        return;
    };
    let plan = if key == "machine" { recorded_plan(described) } else { plan(described) };
    match plan {
        Ok(plan) => {
            let svg = plan.nest().svg(SvgStyle::InPage);
            if page.len() + svg.len() > most {
                page.put(format_args!(
                    "<p class=\"note\">The drawing of the machine does not fit in a page of 2 \
                     MB.</p>"
                ));
                return;
            }
            page.put(format_args!(
                "<details class=\"machine\" open><summary>The machine</summary><div \
                 class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Drawing of the \
                 machine\">{svg}</div></details>"
            ));
        }
        Err(reason) => page.put(format_args!(
            "<p class=\"note\">The machine cannot be drawn: {}</p>",
            text(&reason, 300)
        )),
    }
}

/// The headers of a section's points and lines, the newest first.
fn runs<'a>(model: &'a Model, host: usize, section: &Section<'_>) -> impl Iterator<Item = &'a Run> {
    let (engine, machine) = (section.engine.to_owned(), section.machine.to_owned());
    let same = move |one: &str, on: &str| one == engine && on == machine;
    let of_points = model.points.iter().rev().filter(move |shown| shown.host == host);
    let of_points = of_points.map(|shown| (shown.run, &shown.point.engine, &shown.point.machine));
    let of_lines = model.lines.iter().rev().filter(move |shown| shown.host == host);
    let of_lines = of_lines.map(|shown| (shown.run, &shown.lines.engine, &shown.lines.machine));
    of_points
        .chain(of_lines)
        .filter(move |(_, engine, machine)| same(engine, machine))
        .filter_map(move |(run, _, _)| model.hosts[host].runs.get(run?))
}

/// Reads the description of a host.
fn plan(described: &Value) -> Result<Plan, String> {
    let plan: Plan =
        serde_json::from_value(described.clone()).map_err(|error| error.to_string())?;
    let pus: usize = plan.cores.iter().map(|core| core.cpus.len()).sum();
    let parts = plan.parts.len().max(plan.cores.len()).max(pus);
    match parts > PARTS_MOST {
        true => Err(format!("{parts} parts are more than {PARTS_MOST}")),
        false => Ok(plan),
    }
}

//! A plot of a scenario: throughput and P99 of its steps, as bars.

use std::fmt::Write as _;

use super::effect::Figure;
use super::measured::Measured;
use super::text::{rate, time};
use crate::scenario_run::Plan;

/// Writes a figure.
type Write = fn(f64) -> String;

const WIDTH: f64 = 760.0;
const ROW: f64 = 24.0;
const NAMES: f64 = 170.0;
const BAR: f64 = 190.0;
const GAP: f64 = 100.0;

/// Draws the steps of a scenario. Bars are linear and begin at 0.
pub(crate) fn svg(plan: &Plan) -> String {
    let steps: Vec<(&str, Option<&Measured>)> = plan
        .steps
        .iter()
        .map(|one| (one.step.id.as_str(), one.measured.as_ref().and_then(|m| m.as_ref().ok())))
        .collect();
    let height = 46.0 + ROW * steps.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <title>{}: {}</title>\n",
        plan.scenario.name, plan.scenario.title
    );
    let panels: [(&str, f64, &str, Figure, Write); 2] = [
        ("operations a second", NAMES, "#2a6f97", Measured::throughput, rate),
        ("P99 of an operation", NAMES + BAR + GAP, "#bc4749", Measured::p99, time),
    ];
    for (title, left, colour, figure, write) in panels {
        let _ = writeln!(svg, "<text x=\"{left}\" y=\"22\" fill=\"#333\">{title}</text>");
        let values = steps.iter().map(|(_, one)| one.and_then(figure));
        let most = values.clone().flatten().fold(0.0, f64::max);
        for (at, value) in values.enumerate() {
            let top = 34.0 + ROW * at as f64;
            let text = top + 13.0;
            let Some(value) = value else {
                let _ = writeln!(svg, "<text x=\"{left}\" y=\"{text}\" fill=\"#777\">-</text>");
                continue;
            };
            let wide = (BAR * value / most).max(1.0);
            let _ = writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{wide:.1}\" height=\"17\" \
                 fill=\"{colour}\"/>\n<text x=\"{:.1}\" y=\"{text}\" fill=\"#333\">{}</text>",
                left + wide + 6.0,
                write(value)
            );
        }
    }
    for (at, (id, _)) in steps.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"end\" fill=\"#333\">{id}</text>",
            NAMES - 8.0,
            47.0 + ROW * at as f64
        );
    }
    svg.push_str("</svg>\n");
    svg
}

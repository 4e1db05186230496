//! Points that differ in variant and threads only: plots, fairness, and what was counted.

use crate::records::{Point, Status};
use crate::report::chart::{self, Chart, Line, Mark};
use crate::report::html::{Page, facts, text};
use crate::report::model::{Panel, Series, words};
use crate::report::number::{exact, short};
use crate::report::scale::Scale;
use crate::report::verdict::{Kind, interval};

/// A figure that is plotted.
struct Measure {
    metric: &'static str,
    title: &'static str,
    /// From the unit of the record to that of the plot.
    factor: f64,
    unit: &'static str,
    higher_is_better: bool,
    written: fn(f64) -> String,
}

const MEASURES: [Measure; 3] = [
    Measure {
        metric: "ops_per_s",
        title: "Throughput, Mops/s",
        factor: 1e-6,
        unit: "Mops/s",
        higher_is_better: true,
        written: short,
    },
    Measure {
        metric: "ns_per_op",
        title: "Time for one operation, ns",
        factor: 1.0,
        unit: "ns",
        higher_is_better: false,
        written: short,
    },
    Measure {
        metric: "instructions_per_op",
        title: "Instructions for one operation",
        factor: 1.0,
        unit: "instructions",
        higher_is_better: false,
        written: exact,
    },
];

/// More variants than that cannot be told apart.
const SERIES_MOST: usize = 40;

pub(super) fn figure(page: &mut Page, panel: &Panel<'_>, engine: &str, tips: bool) {
    let all = panel.series.len();
    let panel = &foremost(panel);
    page.put(format_args!(
        "<figure><figcaption>{}</figcaption><div class=\"charts\">",
        text(&format!("placement {}, {}", panel.placement, words(panel.workload)), 300)
    ));
    for measure in &MEASURES {
        let chart = Chart {
            title: measure.title,
            better: if measure.higher_is_better { "higher is better" } else { "lower is better" },
            higher_is_better: measure.higher_is_better,
            scale: None,
            lines: lines(panel, measure, tips),
            bands: engine == "simulated",
            tips,
            written: measure.written,
        };
        drawn(page, &chart);
    }
    fairness_chart(page, panel, tips);
    page.put(format_args!("</div>"));
    if all > panel.series.len() {
        page.put(format_args!(
            "<p class=\"notice\">The {SERIES_MOST} of {all} variants with the highest throughput \
             are drawn; the table has all.</p>"
        ));
    }
    legend(page, panel, engine);
    shares(page, panel);
    page.put(format_args!("</figure>"));
    without_figures(page, panel);
    facts::tables(page, panel, engine);
}

/// The panel with no more variants than can be told apart: baselines, and those with the highest
/// throughput at their most threads, in the order of the panel.
fn foremost<'a>(panel: &Panel<'a>) -> Panel<'a> {
    let mut panel = panel.clone();
    if panel.series.len() > SERIES_MOST {
        let speed = |series: &Series<'_>| {
            let last = series.points.values().next_back();
            let speed = last.and_then(|point| interval(point, "ops_per_s"));
            let speed = speed.map_or(f64::NEG_INFINITY, |(_, value, _)| value);
            if series.kind == Kind::Baseline { f64::INFINITY } else { speed }
        };
        let mut speeds: Vec<f64> = panel.series.iter().map(speed).collect();
        speeds.sort_by(|a, b| b.total_cmp(a));
        let least = speeds[SERIES_MOST - 1];
        panel.series.retain(|series| speed(series) >= least);
        panel.series.truncate(SERIES_MOST);
    }
    panel
}

fn drawn(page: &mut Page, chart: &Chart<'_>) {
    let mut svg = String::new();
    chart.svg(&mut svg);
    if !svg.is_empty() {
        page.put(format_args!("<div class=\"chart\">{svg}</div>"));
    }
}

fn lines<'a>(panel: &Panel<'a>, measure: &Measure, tips: bool) -> Vec<Line<'a>> {
    let mark = |(&threads, point): (&usize, &&Point)| {
        let (low, value, high) = interval(point, measure.metric)?;
        let [low, value, high] = [low, value, high].map(|figure| figure * measure.factor);
        if ![low, value, high].iter().all(|figure| figure.is_finite()) {
            return None;
        }
        let tip = if tips { tip(point, [low, value, high], measure.unit) } else { String::new() };
        Some(Mark { threads, low, value, high, noisy: point.status != Status::Ok, tip })
    };
    let line = |series: &Series<'a>| Line {
        name: series.variant,
        kind: series.kind,
        colour: series.colour,
        marks: series.points.iter().filter_map(mark).collect(),
    };
    let lines: Vec<Line> = panel.series.iter().map(line).collect();
    lines.into_iter().filter(|line| !line.marks.is_empty()).collect()
}

fn tip(point: &Point, [low, value, high]: [f64; 3], unit: &str) -> String {
    let threads = point.threads;
    let plural = if threads == 1 { "" } else { "s" };
    let mut tip = format!(
        "{}, {threads} thread{plural}: {} {unit} ({}–{})",
        point.variant,
        short(value),
        short(low),
        short(high)
    );
    if point.status != Status::Ok {
        tip.push_str(&format!("\n{}: {}", point.status, point.reasons.join("; ")));
    }
    crate::report::number::cut(&tip, 260)
}

/// Fairness against threads, where there are enough numbers of threads for a line.
fn fairness_chart(page: &mut Page, panel: &Panel<'_>, tips: bool) {
    let measure = Measure {
        metric: "fairness_jain",
        title: "Fairness (Jain)",
        factor: 1.0,
        unit: "Jain",
        higher_is_better: true,
        written: short,
    };
    let mut lines = lines(panel, &measure, tips);
    lines.iter_mut().for_each(|line| line.marks.retain(|mark| mark.threads > 1));
    lines.retain(|line| line.marks.len() > 1);
    if lines.is_empty() {
        return;
    }
    let chart = Chart {
        title: measure.title,
        better: "1 is even",
        higher_is_better: true,
        scale: Some(Scale::Linear { high: 1.03 }),
        lines,
        bands: false,
        tips,
        written: short,
    };
    drawn(page, &chart);
}

fn legend(page: &mut Page, panel: &Panel<'_>, engine: &str) {
    let any = |kind| panel.series.iter().any(|series| series.kind == kind);
    let points = || panel.series.iter().flat_map(|series| series.points.values());
    let mut parts = Vec::new();
    let has_interval = |point: &&&Point| {
        let metrics = ["ns_per_op", "ops_per_s"];
        metrics.iter().any(|m| interval(point, m).is_some_and(|(low, _, high)| low < high))
    };
    if points().any(|point| has_interval(&point)) {
        parts.push(match engine {
            "simulated" => "bands or whiskers: from low to high, the model's validated error",
            _ => "whiskers or bands: 95 % interval",
        });
    }
    if points().any(|point| point.status == Status::Noisy) {
        parts.insert(0, "<span class=\"key\">○</span> disturbed");
        parts.insert(0, "<span class=\"key\">●</span> undisturbed");
    }
    if any(Kind::Baseline) {
        parts.push("<span class=\"key\">- -</span> grey: baseline, the loop without the primitive");
    }
    if any(Kind::Control) {
        parts.push(
            "<span class=\"key\">×</span> dotted: negative control, built wrongly on purpose",
        );
    }
    if !parts.is_empty() {
        page.put(format_args!("<p class=\"legend\">{}</p>", parts.join(" · ")));
    }
}

/// What each thread did at the largest number of threads.
fn shares(page: &mut Page, panel: &Panel<'_>) {
    let most = panel.series.iter().filter_map(|s| s.points.keys().next_back()).max();
    let Some(&most) = most.filter(|&&threads| threads > 1) else { return };
    let bars: Vec<(&Series<'_>, &Point, &Vec<u64>)> = panel
        .series
        .iter()
        .filter_map(|series| {
            let point = series.points.get(&most)?;
            let ops = point.per_thread.get("ops")?;
            (ops.len() > 1 && ops.iter().any(|&ops| ops > 0)).then_some((series, *point, ops))
        })
        .collect();
    if bars.is_empty() {
        return;
    }
    page.put(format_args!(
        "<h5>Who was served: operations of each of {most} threads <span class=\"hint\">dashed: the \
         fair share; all repetitions together, Jain of the median one</span></h5><div class=\"bars\">"
    ));
    for (series, point, ops) in bars {
        let (least, most) = (ops.iter().min().copied(), ops.iter().max().copied());
        let ratio = least.unwrap_or(0) as f64 / most.unwrap_or(1).max(1) as f64;
        let jain = point.metrics.get("fairness_jain").and_then(crate::records::Metric::value);
        let jain = jain.map_or_else(String::new, |jain| format!("Jain {jain:.2} · "));
        let mut svg = String::new();
        chart::shares(&mut svg, &chart::colour_class(series.kind, series.colour), ops);
        page.put(format_args!(
            "<div class=\"bar\"><b>{}</b>{svg}<span class=\"note\">{jain}min÷max \
             {ratio:.2}</span></div>",
            text(series.variant, 24)
        ));
    }
    page.put(format_args!("</div>"));
}

/// Points that have no figure are named with the reason, never drawn as zero.
fn without_figures(page: &mut Page, panel: &Panel<'_>) {
    let mut rows: Vec<(String, Vec<usize>)> = Vec::new();
    for series in &panel.series {
        for (&threads, point) in &series.points {
            if matches!(point.status, Status::Broken | Status::Unavailable) {
                let reason =
                    format!("{}|{}|{}", series.variant, point.status, point.reasons.join("; "));
                match rows.iter_mut().find(|(other, _)| *other == reason) {
                    Some((_, counts)) => counts.push(threads),
                    None => rows.push((reason, vec![threads])),
                }
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    page.put(format_args!("<ul class=\"absent\">"));
    for (reason, counts) in rows.iter().take(40) {
        let mut parts = reason.splitn(3, '|');
        let mut part = || parts.next().unwrap_or_default();
        let (variant, status, reason) = (part(), part(), part());
        let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
        page.put(format_args!(
            "<li><b>{}</b> <span class=\"status {}\">{}</span> at {} threads: {}</li>",
            text(variant, 40),
            text(status, 20),
            text(status, 20),
            text(&counts.join(", "), 60),
            text(reason, 300)
        ));
    }
    page.put(format_args!("</ul>"));
}

//! From what was measured to a machine file.

use std::fmt::Write as _;

use simulator::machine::{Confidence, Figure as Known, FigureValue, Machine};
use topology::Topology;

use super::shape::Shape;
use super::{CalibrateError, Figure, Found, is_virtual};

/// The machine that says everything that a machine file can say.
const WHOLE: &str = "epyc-7742-2s";

/// Times that must not fall from one to the next, nearest first.
const RISING: [&[&str]; 2] = [
    &["cache.l2_hit_ns", "cache.l3_hit_ns", "memory.local_ns", "memory.remote_ns"],
    &[
        "transfer.smt_ns",
        "transfer.same_l3_ns",
        "transfer.same_socket_ns",
        "transfer.cross_socket_ns",
    ],
];

/// The known machine that is nearest to the host.
fn like(host: &Topology) -> &'static str {
    let vendor = host.cpuinfo.as_ref().and_then(|info| info.vendor.as_deref()).unwrap_or_default();
    match vendor {
        _ if cfg!(target_arch = "aarch64") => "graviton3",
        "AuthenticAMD" | "HygonGenuine" => "epyc-9654-2s",
        _ => "xeon-8375c-2s",
    }
}

/// Figures that say how cores, caches and memory are arranged, and what comes of that.
fn arranges(field: &str) -> bool {
    let of_all = ["cache.l3_kib", "cache.l3_ways", "memory.node_gb_per_s", "memory.link_gb_per_s"];
    field.starts_with("topology.") || of_all.contains(&field)
}

/// All figures of a machine of this shape: those that were found, the others as on a known machine.
/// `model` is one whose arrangement takes the place of the host's.
pub(super) fn figures(
    host: &Topology,
    shape: &Shape,
    mut found: Found,
    model: Option<&Machine>,
) -> Vec<Figure> {
    let like = model.map_or_else(|| like(host), Machine::name);
    let known =
        |name: &str| Machine::named(name).map(|machine| machine.figures().cloned().collect());
    let (near, whole): (Vec<Known>, Vec<Known>) =
        (known(like).unwrap_or_default(), known(WHOLE).unwrap_or_default());
    if model.is_some() {
        found.figures.retain(|field, _| !arranges(field));
    }
    let has = |field: &&str| match model {
        Some(_) => near.iter().any(|figure| figure.field == *field),
        None => shape.has(field),
    };
    let mut figures: Vec<Figure> = Vec::new();
    for field in whole.iter().map(|figure| figure.field).filter(has) {
        if let Some(figure) = found.figures.remove(field) {
            figures.push(figure);
            continue;
        }
        let (name, from) = match near.iter().find(|figure| figure.field == field) {
            Some(figure) => (like, figure),
            None => match whole.iter().find(|figure| figure.field == field) {
                Some(figure) => (WHOLE, figure),
                None => continue,
            },
        };
        let why = match found.missing.get(field) {
            _ if model.is_some() && arranges(field) => "arranged like it, as was asked for",
            Some(why) => why,
            None => "this command does not measure it",
        };
        let source = format!("as on {name}: {why}");
        figures.push(Figure { field, value: from.value, source, confidence: Confidence::Assumed });
    }
    agree(&mut figures);
    figures
}

/// Makes figures agree that were measured one after another on a host that is never quite still,
/// or of which some are another machine's.
fn agree(figures: &mut [Figure]) {
    let first_level = number(figures, "cache.l1_hit_cycles").unwrap_or(0.0)
        / number(figures, "clock.core_ghz").unwrap_or(1.0);
    for fields in RISING {
        // A little more than the first level, so that rounding cannot turn them round.
        let mut nearer = first_level * 1.01;
        for field in fields {
            raise(figures, field, nearer);
            nearer = number(figures, field).unwrap_or(nearer);
        }
    }
    let one = number(figures, "memory.core_gb_per_s").unwrap_or(0.0);
    raise(figures, "memory.node_gb_per_s", one);
    let (l1, l2) = (count(figures, "cache.l1_kib"), count(figures, "cache.l2_kib"));
    let cores = count(figures, "topology.cores_per_l3_group");
    if count(figures, "cache.l3_kib") < cores * l2 {
        set(
            figures,
            "cache.l3_inclusive",
            FigureValue::Flag(false),
            "smaller than the L2 caches are together",
        );
    }
    if l2 < l1 {
        let value = FigureValue::Count(l1 * count(figures, "cache.l2_ways"));
        set(figures, "cache.l2_kib", value, "not smaller than the L1");
    }
}

fn find<'a>(figures: &'a [Figure], field: &str) -> Option<&'a Figure> {
    figures.iter().find(|figure| figure.field == field)
}

fn number(figures: &[Figure], field: &str) -> Option<f64> {
    match find(figures, field)?.value {
        FigureValue::Number(number) => Some(number),
        _ => None,
    }
}

fn count(figures: &[Figure], field: &str) -> usize {
    match find(figures, field).map(|figure| figure.value) {
        Some(FigureValue::Count(count)) => count,
        _ => 0,
    }
}

fn raise(figures: &mut [Figure], field: &str, least: f64) {
    if number(figures, field).is_some_and(|value| value < least) {
        set(figures, field, FigureValue::Number(least), "raised to what is nearer");
    }
}

fn set(figures: &mut [Figure], field: &str, value: FigureValue, why: &str) {
    if let Some(figure) = figures.iter_mut().find(|figure| figure.field == field) {
        figure.value = value;
        figure.source = format!("{}; {why}", figure.source);
        figure.confidence = figure.confidence.max(Confidence::Derived);
    }
}

/// Writes the machine file.
pub(super) fn text(host: &Topology, figures: &[Figure], like: Option<&Machine>) -> String {
    let model = host.cpuinfo.as_ref().and_then(|info| info.model_name.as_deref());
    let place = if is_virtual(host) { ", in a virtual machine" } else { "" };
    let arranged = like.map_or(String::new(), |like| format!(", arranged like {}", like.name()));
    let title = format!("This host: {}{place}{arranged}", model.unwrap_or("unknown processor"));
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86-64" };
    let mut text = format!(
        "# Measured by `manycore calibrate`.\n\nname = \"this-host\"\ntitle = {}\narchitecture = \"{architecture}\"\n",
        quoted(&title)
    );
    let mut section = "";
    for figure in figures {
        let (table, key) = figure.field.split_once('.').unwrap_or(("", figure.field));
        if table != section {
            section = table;
            let _ = writeln!(text, "\n[{table}]");
        }
        let (value, source) = (value(figure.value), quoted(&figure.source));
        let _ = writeln!(
            text,
            "{key} = {{ value = {value}, source = {source}, confidence = \"{}\" }}",
            figure.confidence
        );
    }
    text
}

fn value(value: FigureValue) -> String {
    match value {
        FigureValue::Number(number) => rounded(number).to_string(),
        FigureValue::Word(word) => quoted(word),
        other => other.to_string(),
    }
}

/// Four digits that count.
fn rounded(number: f64) -> f64 {
    if number <= 0.0 {
        return 0.0;
    }
    let digits = 3 - number.log10().floor() as i32;
    let scale = 10_f64.powi(digits);
    (number * scale).round() / scale
}

/// A text in TOML's quotes.
fn quoted(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() || c == '"' || c == '\\' { ' ' } else { c })
        .collect();
    format!("\"{plain}\"")
}

/// Reads the file as the simulator will.
pub(super) fn check(text: &str) -> Result<(), CalibrateError> {
    Machine::from_toml(text, "the measured machine").map(drop).map_err(CalibrateError::Machine)
}

//! Plots as inline SVG. Colours and strokes are named by class; the page's style gives them, in
//! light and dark.

use std::fmt::Write;

use crate::report::escape::Html;
use crate::report::number::{align_points, cut, short};
use crate::report::scale::{Scale, Threads};
use crate::report::verdict::Kind;

/// One measured point of a line; its figures are finite.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) threads: usize,
    pub(crate) low: f64,
    pub(crate) value: f64,
    pub(crate) high: f64,
    /// Whether it was disturbed.
    pub(crate) noisy: bool,
    /// What is shown when it is pointed at.
    pub(crate) tip: String,
}

/// The marks of one variant, by threads.
#[derive(Debug, Clone)]
pub(crate) struct Line<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) colour: usize,
    pub(crate) marks: Vec<Mark>,
}

/// A plot of a figure against threads.
#[derive(Debug)]
pub(crate) struct Chart<'a> {
    /// What is plotted, with its unit.
    pub(crate) title: &'a str,
    /// `higher is better` say.
    pub(crate) better: &'a str,
    /// Which end of the figures is the good one; rows of dots are ordered by it.
    pub(crate) higher_is_better: bool,
    /// The scale, when it is not chosen by the figures.
    pub(crate) scale: Option<Scale>,
    pub(crate) lines: Vec<Line<'a>>,
    /// Whether intervals are bands however few numbers of threads there are.
    pub(crate) bands: bool,
    /// Whether marks say what they are when they are pointed at.
    pub(crate) tips: bool,
    /// How a figure is written.
    pub(crate) written: fn(f64) -> String,
}

/// Colours in the style; more lines than that differ in the form of their marks as well.
const COLOURS: usize = 8;
const WIDTH: f64 = 520.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;
/// Height of a line of labels.
const ROW: f64 = 14.5;
/// Mean width of a letter.
const LETTER: f64 = 7.2;
const LONGEST_NAME: usize = 22;

/// A length without needless digits.
fn px(length: f64) -> String {
    let text = format!("{length:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn class(line: &Line) -> String {
    match line.kind {
        Kind::Baseline => "s baseline".into(),
        Kind::Variant => {
            let form = if (line.colour / COLOURS) % 2 == 1 { " square" } else { "" };
            format!("s c{}{form}", line.colour % COLOURS)
        }
        Kind::Control => format!("s c{} control", line.colour % COLOURS),
    }
}

/// The name at a line's end. A line that lies beyond the scale is not drawn: its name says where
/// it is.
fn label(line: &Line, scale: Scale) -> (String, bool) {
    let name = cut(line.name, LONGEST_NAME);
    let Some(beyond) = line.marks.iter().find(|mark| !scale.holds(mark.value)) else {
        return (name, true);
    };
    let values = || line.marks.iter().map(|mark| mark.value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let arrow = if scale.at(beyond.value) > 0.5 { '↑' } else { '↓' };
    let range = match (short(least), short(most)) {
        (least, most) if least == most => most,
        (least, most) => format!("{least}–{most}"),
    };
    (format!("{name} {arrow} {range}"), false)
}

fn width<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    names.map(|name| name.chars().count()).max().unwrap_or(0) as f64 * LETTER
}

impl Chart<'_> {
    /// Writes the plot; nothing when no line has a figure.
    pub(crate) fn svg(&self, out: &mut String) {
        let Some(scale) = self.scale.or_else(|| self.fitted()) else { return };
        let mut counts: Vec<usize> =
            self.lines.iter().flat_map(|line| &line.marks).map(|mark| mark.threads).collect();
        counts.sort_unstable();
        counts.dedup();
        match counts.as_slice() {
            [] => {}
            [threads] => self.dots(out, scale, *threads),
            _ => self.curves(out, scale, &counts),
        }
    }

    /// The scale of the variants and controls; the baseline may lie far beyond, and would leave
    /// the rest no room.
    fn fitted(&self) -> Option<Scale> {
        let figures = |baseline: bool| {
            let lines = self.lines.iter().filter(move |l| baseline || l.kind != Kind::Baseline);
            lines.flat_map(|line| &line.marks).flat_map(|m| [m.low, m.value, m.high])
        };
        Scale::fit(figures(false)).or_else(|| Scale::fit(figures(true)))
    }

    fn open(&self, out: &mut String, height: f64, scale: Scale, note: &str) {
        let log = if scale.is_log() { ", log scale" } else { "" };
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 {} {}\"{} role=\"img\" aria-label=\"{}{log}{note}; {}\">\
             <text class=\"title\" x=\"0\" y=\"13\">{}<tspan class=\"hint\">{log}{note} — {}</tspan></text>",
            px(WIDTH),
            px(height),
            if self.lines.iter().any(|line| line.marks.len() > 6) {
                " class=\"dense\""
            } else {
                ""
            },
            Html(self.title),
            Html(self.better),
            Html(self.title),
            Html(self.better),
        );
    }

    /// Lines against threads, each with its name at its end.
    fn curves(&self, out: &mut String, scale: Scale, counts: &[usize]) {
        let plot_height = (self.lines.len() as f64 * ROW).max(200.0);
        let names: Vec<(String, bool)> = self.lines.iter().map(|line| label(line, scale)).collect();
        let right = width(names.iter().map(|(name, _)| name.as_str())) + 26.0;
        let inner = (WIDTH - LEFT - right).max(120.0);
        let threads = Threads::fit(counts);
        self.open(out, TOP + plot_height + BOTTOM, scale, "");
        let y = |figure: f64| TOP + plot_height * (1.0 - scale.at(figure));
        for (figure, label) in scale.ticks((plot_height / 38.0) as usize) {
            let at = px(y(figure));
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{} {at}h{}\"/><text class=\"tick\" x=\"{}\" y=\"{at}\" \
                 dy=\".34em\" text-anchor=\"end\">{label}</text>",
                px(LEFT),
                px(inner),
                px(LEFT - 7.0),
            );
        }
        // Lines of few points stand side by side, so that their intervals do not hide each other.
        let inset = if counts.len() <= 6 { 22.0 } else { 8.0 };
        let x = |count: usize| LEFT + inset + (inner - 2.0 * inset) * threads.at(count);
        self.threads_axis(out, counts, threads, &x, TOP + plot_height, inner);
        let apart = if counts.len() <= 6 { (30.0 / self.lines.len() as f64).min(5.0) } else { 0.0 };
        let labels = self.label_places(&y, plot_height);
        for (at, line) in self.lines.iter().enumerate() {
            if line.marks.is_empty() {
                continue;
            }
            let shift = apart * (at as f64 - (self.lines.len() - 1) as f64 / 2.0);
            let places: Vec<(f64, &Mark)> =
                line.marks.iter().map(|mark| (x(mark.threads) + shift, mark)).collect();
            let _ = write!(out, "<g class=\"{}\"><title>{}</title>", class(line), Html(line.name));
            let (name, drawn) = &names[at];
            let (label_y, label_x) = (labels[at], LEFT + inner + 12.0);
            if *drawn {
                curve(out, &places, &y, self.bands || counts.len() > 6);
                marks(out, line.kind, &places, &y);
                let (end, last) = places[places.len() - 1];
                let (from_x, from_y) = (px(end + 6.0), px(y(last.value)));
                let (to_x, to_y) = (px(label_x - 3.0), px(label_y));
                let _ =
                    write!(out, "<path class=\"leader\" d=\"M{from_x} {from_y}L{to_x} {to_y}\"/>");
                self.tips(out, &places, |mark| y(mark.value));
            }
            let _ = write!(
                out,
                "<text class=\"name\" x=\"{}\" y=\"{}\" dy=\".34em\">{}</text>",
                px(label_x),
                px(label_y),
                Html(name),
            );
            out.push_str("</g>");
        }
        out.push_str("</svg>");
    }

    fn threads_axis(
        &self,
        out: &mut String,
        counts: &[usize],
        threads: Threads,
        x: &dyn Fn(usize) -> f64,
        bottom: f64,
        inner: f64,
    ) {
        let log = if threads.is_log() { "threads, log scale" } else { "threads" };
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{} {}h{}\"/><text class=\"tick\" x=\"{}\" y=\"{}\" \
             text-anchor=\"middle\">{log}</text>",
            px(LEFT),
            px(bottom),
            px(inner),
            px(LEFT + inner / 2.0),
            px(bottom + 33.0),
        );
        // The last count is always written; of the others those that have room.
        let mut written: Vec<(usize, f64)> = Vec::new();
        let last = counts.last().copied();
        for &count in last.iter().chain(counts) {
            let (at, width) = (x(count), count.to_string().len() as f64 * LETTER + 8.0);
            if written.iter().all(|(_, other)| (other - at).abs() >= width) {
                written.push((count, at));
            }
        }
        for (count, at) in written {
            let _ = write!(
                out,
                "<path class=\"axis\" d=\"M{at} {}v4\"/><text class=\"tick\" x=\"{at}\" y=\"{}\" \
                 text-anchor=\"middle\">{count}</text>",
                px(bottom),
                px(bottom + 17.0),
                at = px(at),
            );
        }
    }

    /// Where the names stand: at the last mark, moved apart where they would overlap.
    fn label_places(&self, y: &dyn Fn(f64) -> f64, plot_height: f64) -> Vec<f64> {
        let wish = |line: &Line| line.marks.last().map_or(0.0, |mark| y(mark.value));
        let mut order: Vec<(usize, f64)> =
            self.lines.iter().enumerate().map(|(at, line)| (at, wish(line))).collect();
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let bottom = TOP + plot_height;
        // Down, so that each stands below the one before it, then up from the bottom.
        let mut least = TOP;
        for (_, place) in &mut order {
            *place = place.max(least);
            least = *place + ROW;
        }
        let mut most = bottom;
        for (_, place) in order.iter_mut().rev() {
            *place = place.min(most);
            most = *place - ROW;
        }
        let mut places = vec![0.0; self.lines.len()];
        order.into_iter().for_each(|(at, place)| places[at] = place);
        places
    }

    /// One row a variant, where there is one number of threads only.
    fn dots(&self, out: &mut String, scale: Scale, threads: usize) {
        const HEIGHT: f64 = 24.0;
        let mut rows: Vec<(&Line, &Mark)> =
            self.lines.iter().filter_map(|line| Some((line, line.marks.first()?))).collect();
        rows.sort_by(|(a, x), (b, y)| {
            let by_value = x.value.total_cmp(&y.value);
            let by_value = if self.higher_is_better { by_value.reverse() } else { by_value };
            a.kind.cmp(&b.kind).then(by_value)
        });
        let names: Vec<String> =
            self.lines.iter().map(|line| cut(line.name, LONGEST_NAME)).collect();
        let left = width(names.iter().map(String::as_str)) + 14.0;
        let column = 58.0;
        let inner = (WIDTH - left - column - 8.0).max(80.0);
        let bottom = TOP + rows.len() as f64 * HEIGHT;
        let note = format!(", {threads} thread{}", if threads == 1 { "" } else { "s" });
        self.open(out, bottom + 24.0, scale, &note);
        let x = |figure: f64| left + inner * scale.at(figure);
        for (figure, label) in scale.ticks((inner / 60.0) as usize) {
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{at} {}V{}\"/><text class=\"tick\" x=\"{at}\" y=\"{}\" \
                 text-anchor=\"middle\">{label}</text>",
                px(TOP - 4.0),
                px(bottom),
                px(bottom + 16.0),
                at = px(x(figure)),
            );
        }
        let mut figures: Vec<String> =
            rows.iter().map(|(_, mark)| (self.written)(mark.value)).collect();
        align_points(&mut figures);
        for (at, (line, mark)) in rows.into_iter().enumerate() {
            let y = TOP + (at as f64 + 0.5) * HEIGHT;
            let _ = write!(
                out,
                "<g class=\"{}\"><title>{}</title><text class=\"name\" x=\"{}\" y=\"{y}\" \
                 dy=\".34em\" text-anchor=\"end\">{}</text>",
                class(line),
                Html(line.name),
                px(left - 12.0),
                Html(&cut(line.name, LONGEST_NAME)),
                y = px(y),
            );
            let centre = [(x(mark.value), mark)];
            if scale.holds(mark.value) {
                lying_whisker(out, [mark.low, mark.high].map(x), y);
                marks(out, line.kind, &centre, &|_| y);
            } else {
                let arrow = if scale.at(mark.value) > 0.5 { '→' } else { '←' };
                let _ = write!(
                    out,
                    "<text class=\"name\" x=\"{}\" y=\"{}\" dy=\".34em\" \
                     text-anchor=\"middle\">{arrow}</text>",
                    px(centre[0].0),
                    px(y),
                );
            }
            let _ = write!(
                out,
                "<text class=\"figure\" x=\"{}\" y=\"{}\" dy=\".34em\" \
                 text-anchor=\"end\">{}</text>",
                px(WIDTH - 2.0),
                px(y),
                figures[at],
            );
            self.tips(out, &centre, |_| y);
            out.push_str("</g>");
        }
        out.push_str("</svg>");
    }

    fn tips(&self, out: &mut String, places: &[(f64, &Mark)], y: impl Fn(&Mark) -> f64) {
        for (x, mark) in places.iter().filter(|(_, mark)| self.tips && !mark.tip.is_empty()) {
            let _ = write!(
                out,
                "<circle class=\"tip\" cx=\"{}\" cy=\"{}\" r=\"8\"><title>{}</title></circle>",
                px(*x),
                px(y(mark)),
                Html(&mark.tip),
            );
        }
    }
}

/// The line through the values, with bands over its intervals, or a whisker at each. Points without
/// an interval interrupt a band, and one alone has a whisker.
fn curve(out: &mut String, places: &[(f64, &Mark)], y: &dyn Fn(f64) -> f64, bands: bool) {
    let path = |places: &[(f64, &Mark)], figure: &dyn Fn(&Mark) -> f64| -> Vec<String> {
        let point = |(x, mark): &(f64, &Mark)| format!("{} {}", px(*x), px(y(figure(mark))));
        places.iter().map(point).collect()
    };
    let mut whiskers = String::new();
    for run in places.chunk_by(|(_, one), (_, next)| (one.low < one.high) == (next.low < next.high))
    {
        if run[0].1.low >= run[0].1.high {
            continue;
        }
        if bands && run.len() > 1 {
            let (upper, mut lower) = (path(run, &|mark| mark.high), path(run, &|mark| mark.low));
            lower.reverse();
            let (upper, lower) = (upper.join("L"), lower.join("L"));
            let _ = write!(out, "<path class=\"band\" d=\"M{upper}L{lower}Z\"/>");
            continue;
        }
        for (x, mark) in run {
            let (low, high) = (px(y(mark.low)), px(y(mark.high)));
            let left = px(x - 3.0);
            let _ = write!(whiskers, "M{left} {low}h6M{} {low}V{high}M{left} {high}h6", px(*x));
        }
    }
    if !whiskers.is_empty() {
        let _ = write!(out, "<path class=\"whisker\" d=\"{whiskers}\"/>");
    }
    if places.len() > 1 {
        let _ = write!(
            out,
            "<path class=\"line\" d=\"M{}\"/>",
            path(places, &|mark| mark.value).join("L")
        );
    }
}

fn lying_whisker(out: &mut String, [low, high]: [f64; 2], y: f64) {
    if low < high {
        let (top, middle, low, high) = (px(y - 4.0), px(y), px(low), px(high));
        let _ = write!(
            out,
            "<path class=\"whisker\" d=\"M{low} {top}v8M{low} {middle}H{high}M{high} {top}v8\"/>"
        );
    }
}

/// Marks are strokes of no length with round or square ends: a whole line of them is one path.
/// What was disturbed is hollow.
fn marks(out: &mut String, kind: Kind, places: &[(f64, &Mark)], y: &dyn Fn(f64) -> f64) {
    let path = |noisy: Option<bool>| -> String {
        let chosen =
            places.iter().filter(|(_, mark)| noisy.is_none_or(|noisy| noisy == mark.noisy));
        let one = |(x, mark): &(f64, &Mark)| match kind {
            Kind::Control => {
                let (x, y) = (*x, y(mark.value));
                let (left, top) = (px(x - 3.5), px(y - 3.5));
                format!("M{left} {top}l7 7M{left} {}l7-7", px(y + 3.5))
            }
            _ => format!("M{} {}h0", px(*x), px(y(mark.value))),
        };
        chosen.map(one).collect()
    };
    if kind == Kind::Control {
        let _ = write!(out, "<path class=\"cross\" d=\"{}\"/>", path(None));
        return;
    }
    let _ = write!(out, "<path class=\"mark\" d=\"{}\"/>", path(None));
    let holes = path(Some(true));
    if !holes.is_empty() {
        let _ = write!(out, "<path class=\"hole\" d=\"{holes}\"/>");
    }
}

/// Bars of what each thread did, beside the share that each would have had in fairness.
pub(crate) fn shares(out: &mut String, line_class: &str, ops: &[u64]) {
    const HEIGHT: f64 = 54.0;
    const ACROSS: f64 = 168.0;
    let total: f64 = ops.iter().map(|&ops| ops as f64).sum();
    if ops.is_empty() || total <= 0.0 {
        return;
    }
    let fair = total / ops.len() as f64;
    let most = ops.iter().copied().max().unwrap_or(0) as f64;
    let full = most.max(fair * 1.25);
    let step = ACROSS / ops.len() as f64;
    let bar = (step * 0.78).min(22.0);
    let mut path = String::new();
    for (at, &ops) in ops.iter().enumerate() {
        let height = HEIGHT * ops as f64 / full;
        let x = (at as f64 + 0.5) * step;
        let _ = write!(path, "M{} {}v-{}", px(x), px(HEIGHT), px(height));
    }
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {ACROSS} {}\" class=\"shares\" aria-hidden=\"true\"><g \
         class=\"{line_class}\" stroke-width=\"{}\">\
         <path class=\"bars\" d=\"{path}\"/></g><path class=\"fair\" d=\"M0 {}h{ACROSS}\"/>\
         <path class=\"axis\" d=\"M0 {HEIGHT}h{ACROSS}\"/></svg>",
        HEIGHT + 1.0,
        px(bar.max(0.3)),
        px(HEIGHT * (1.0 - fair / full)),
    );
}

/// Gives the class by which the style colours a variant.
pub(crate) fn colour_class(kind: Kind, colour: usize) -> String {
    class(&Line { name: "", kind, colour, marks: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, kind: Kind, figures: &[(usize, f64)]) -> Line<'static> {
        let mark = |&(threads, value): &(usize, f64)| Mark {
            threads,
            low: value * 0.9,
            value,
            high: value * 1.1,
            noisy: threads == 2,
            tip: format!("<{name}>"),
        };
        let name: &'static str = name.to_owned().leak();
        Line { name, kind, colour: 0, marks: figures.iter().map(mark).collect() }
    }

    fn svg(lines: Vec<Line<'_>>) -> String {
        let (title, better, scale) = ("Speed", "higher is better", None);
        let chart = Chart {
            title,
            better,
            higher_is_better: true,
            scale,
            lines,
            bands: false,
            tips: true,
            written: short,
        };
        let mut out = String::new();
        chart.svg(&mut out);
        out
    }

    /// The places at which names stand, from the top.
    fn names(svg: &str) -> Vec<f64> {
        let place = |text: &str| text.split("y=\"").nth(1)?.split('"').next()?.parse().ok();
        let mut places: Vec<f64> = svg.split("class=\"name\"").skip(1).filter_map(place).collect();
        places.sort_by(f64::total_cmp);
        places
    }

    #[test]
    fn names_never_overlap_and_stay_inside() {
        for count in [2, 13, 40] {
            let alike =
                (0..count).map(|n| line(&format!("v{n}"), Kind::Variant, &[(1, 5.0), (2, 7.0)]));
            let svg = svg(alike.collect());
            let places = names(&svg);
            assert_eq!(places.len(), count);
            assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= ROW - 0.2), "{places:?}");
            assert!(places[0] >= TOP - 0.1, "{places:?}");
        }
    }

    #[test]
    fn odd_figures_draw_something_sound() {
        let odd = [0.0, -1.0, 1e-320, 1e308];
        for figure in odd {
            for counts in [vec![(1, figure)], vec![(0, figure), (usize::MAX, 3.0)]] {
                let svg =
                    svg(vec![line("a", Kind::Variant, &counts), line("b", Kind::Control, &counts)]);
                assert!(!svg.contains("NaN") && !svg.contains("inf"), "{figure}: {svg}");
            }
        }
        assert_eq!(svg(Vec::new()), "");
    }

    #[test]
    fn a_baseline_far_beyond_is_named_and_not_drawn() {
        let variant = line("tas", Kind::Variant, &[(1, 10.0), (2, 12.0)]);
        let far =
            svg(vec![line("null", Kind::Baseline, &[(1, 900.0), (2, 950.0)]), variant.clone()]);
        assert!(far.contains("null ↑ 900–950") && !far.contains("log scale"), "{far}");
        let near = svg(vec![line("null", Kind::Baseline, &[(1, 2.0), (2, 3.0)]), variant]);
        assert!(near.contains(">null</text>"), "{near}");
        assert!(!near.contains("<tas>") && near.contains("&lt;tas&gt;"));
    }
}

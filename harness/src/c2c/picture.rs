//! The matrix as a heat map: for the terminal, and as SVG.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Cell;
use crate::report::escape::Html;
use crate::report::number::short;

/// So many CPUs are shown with figures; more only as shades.
const FIGURES: usize = 16;
/// From near to far.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// A matrix ready to be drawn.
#[derive(Debug)]
pub struct Matrix {
    cpus: Vec<u32>,
    ns: BTreeMap<(u32, u32), f64>,
    least: f64,
    most: f64,
}

impl Matrix {
    /// Arranges the pairs.
    pub fn new(cells: &[Cell]) -> Self {
        let mut cpus: Vec<u32> = cells.iter().flat_map(|c| [c.one.cpu, c.other.cpu]).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let both = |cell: &Cell| {
            let (one, other, ns) = (cell.one.cpu, cell.other.cpu, cell.ns.value);
            [((one, other), ns), ((other, one), ns)]
        };
        let times = || cells.iter().map(|cell| cell.ns.value);
        Self {
            cpus,
            ns: cells.iter().flat_map(both).collect(),
            least: times().fold(f64::INFINITY, f64::min),
            most: times().fold(0.0, f64::max),
        }
    }

    /// Where a time lies between the least and the most, on a logarithmic scale.
    fn part(&self, ns: f64) -> f64 {
        let range = (self.most / self.least).ln();
        if range > 0.0 { ((ns / self.least).ln() / range).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Draws it for a terminal: figures of few CPUs, shades of many. A blank is a pair that was not
    /// measured.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.cpus.len() <= FIGURES {
            let head: String = self.cpus.iter().map(|cpu| format!("{cpu:>6}")).collect();
            let _ = writeln!(text, "   CPU{head}");
        }
        for row in &self.cpus {
            let _ = write!(text, "{row:>6}");
            for column in &self.cpus {
                let ns = self.ns.get(&(*row, *column));
                match ns {
                    Some(ns) if self.cpus.len() <= FIGURES => {
                        let _ = write!(text, "{:>6}", short(*ns));
                    }
                    Some(ns) => text.push(self.shade(*ns)),
                    None if self.cpus.len() <= FIGURES => {
                        text.push_str(if row == column { "     -" } else { "      " });
                    }
                    None => text.push(if row == column { '\\' } else { ' ' }),
                }
            }
            text.push('\n');
        }
        if self.cpus.len() > FIGURES {
            let step = |at: usize| {
                let part = at as f64 / SHADES.len() as f64;
                short(self.least * (self.most / self.least).powf(part))
            };
            let steps = SHADES.iter().enumerate();
            let steps: Vec<String> =
                steps.map(|(at, c)| format!("{c} from {} ns", step(at))).collect();
            let _ = writeln!(text, "{}", steps.join("   "));
        }
        text
    }

    fn shade(&self, ns: f64) -> char {
        let at = (self.part(ns) * SHADES.len() as f64) as usize;
        SHADES[at.min(SHADES.len() - 1)]
    }

    /// Draws it as SVG with a title.
    pub fn svg(&self, title: &str) -> String {
        let count = self.cpus.len().max(1);
        let size = (640.0 / count as f64).clamp(5.0, 40.0);
        let (left, top) = (40.0, 50.0);
        let (least, most) = (short(self.least), short(self.most));
        let legend = format!("one way, from {least} ns (light) to {most} ns (dark)");
        // Letters are as wide as half their height and a little more.
        let wide = |text: &str, font: f64| 0.58 * font * text.chars().count() as f64;
        let inside = (size * count as f64).max(wide(title, 14.0)).max(wide(&legend, 11.0));
        let (width, height) = (left + inside + 20.0, top + size * count as f64 + 50.0);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{left}\" y=\"20\" font-size=\"14\">{}</text>\n",
            Html(title)
        );
        let every = count.div_ceil(16);
        for (y, row) in self.cpus.iter().enumerate() {
            let at = top + size * y as f64;
            if y % every == 0 {
                let base = at + size / 2.0 + 4.0;
                let _ = writeln!(
                    svg,
                    "<text x=\"{}\" y=\"{base:.1}\" text-anchor=\"end\">{row}</text>",
                    left - 4.0
                );
                let middle = left + size * (y as f64 + 0.5);
                let _ = writeln!(
                    svg,
                    "<text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\">{row}</text>",
                    top - 5.0
                );
            }
            for (x, column) in self.cpus.iter().enumerate() {
                let Some(&ns) = self.ns.get(&(*row, *column)) else { continue };
                let left = left + size * x as f64;
                let colour = self.colour(ns);
                let _ = writeln!(
                    svg,
                    "<rect x=\"{left:.1}\" y=\"{at:.1}\" width=\"{size:.1}\" height=\"{size:.1}\" \
                     fill=\"{colour}\"><title>{row} – {column}: {} ns</title></rect>",
                    short(ns)
                );
            }
        }
        let _ =
            writeln!(svg, "<text x=\"{left}\" y=\"{:.0}\">{legend}</text>\n</svg>", height - 20.0);
        svg
    }

    /// Light yellow to dark blue; the lightness alone tells the order.
    fn colour(&self, ns: f64) -> String {
        let part = self.part(ns);
        let mix = |from: f64, to: f64| (from + (to - from) * part).round() as u8;
        let (red, green, blue) = (mix(255.0, 20.0), mix(240.0, 40.0), mix(190.0, 110.0));
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::places;
    use super::*;
    use crate::stats::Estimate;

    fn cells(count: u32) -> Vec<Cell> {
        let host = places(count, count, 2, 1);
        let cell = |(one, other): (topology::Pu, topology::Pu)| {
            let value = if one.l3_group == other.l3_group { 10.0 } else { 1000.0 };
            Cell { one, other, ns: Estimate { value, low: value, high: value } }
        };
        super::super::pairs(&host, usize::MAX).into_iter().map(cell).collect()
    }

    #[test]
    fn few_cpus_are_figures_and_many_are_shades() {
        let few = Matrix::new(&cells(4)).text();
        assert_eq!(few.lines().nth(1), Some("     0     -  10.0  1000  1000"));
        let many = Matrix::new(&cells(32)).text();
        let first = many.lines().next().unwrap();
        assert_eq!(first, format!("     0\\{}{}", "·".repeat(15), "█".repeat(16)));
        assert!(many.ends_with("█ from 398 ns\n"), "{many}");
    }

    #[test]
    fn the_svg_has_a_square_for_each_pair_and_its_title_is_text() {
        let svg = Matrix::new(&cells(20)).svg("<b> & co");
        assert_eq!(svg.matches("<rect x=").count(), 20 * 19);
        assert!(svg.contains("&lt;b&gt; &amp; co"));
        assert!(svg.contains("#fff0be") && svg.contains("#14286e"));
        let width = |svg: &str| -> f64 {
            svg.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let title = "core to core, one line by compare-and-swap: 1 of 1 pairs";
        assert!(width(&Matrix::new(&cells(2)).svg(title)) > 400.0, "titles of small matrices fit");
    }
}

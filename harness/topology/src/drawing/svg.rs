//! The drawing as SVG: one file that needs nothing else.

use std::fmt::Write as _;

use super::layout::{Rows, rows};
use super::text::wrapped;
use super::{Block, Collapse, CoreTile, Drawing, PartKind};
use crate::cpuset::CpuSet;

/// Says where an SVG will stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SvgStyle {
    /// In a file of its own: it brings its colours, for light and for dark backgrounds.
    Alone,
    /// In a page, which has rules for the classes `m-package`, `m-node`, `m-cache`, `m-core`,
    /// `m-pu`, `m-off` and `m-title`.
    InPage,
}

const STYLE: &str = include_str!("alone.css");

/// More PUs than that are drawn small, without the names and caches of cores.
const LARGE_FROM: usize = 64;

/// More PUs than that, and boxes alike are told instead of drawn.
const ALL_UP_TO: usize = 1024;

/// How wide a drawing should be at most.
const WIDTH_MOST: usize = 1080;

/// How wide at least, for the title and the notes.
const WIDTH_LEAST: usize = 480;

/// Width of a letter of the title, of labels, and of PUs in small drawings.
const TITLE_LETTER: usize = 8;
const LETTER: usize = 7;
const SMALL_LETTER: usize = 6;
const LINE: usize = 17;
const PAD: usize = 6;
const GAP: usize = 6;

/// Sizes that hold for a whole drawing.
struct Pen<'a> {
    small: bool,
    cell: (usize, usize),
    unusable: &'a CpuSet,
}

/// A box with the places of what is in it.
struct Laid<'a> {
    block: Option<&'a Block>,
    cores: &'a [CoreTile],
    core_rows: Rows,
    inner: Vec<Laid<'a>>,
    inner_rows: Rows,
    /// Lines of text below.
    told: Vec<String>,
    size: (usize, usize),
}

impl Drawing {
    /// Draws the machine as SVG. Up to 64 PUs, cores show their names and caches; beyond 1024,
    /// boxes alike are drawn once, with a list of the others.
    #[must_use]
    pub fn svg(&self, style: SvgStyle) -> String {
        let pus = self.pus();
        let how = if pus > ALL_UP_TO { Collapse::All } else { Collapse::Nothing };
        let drawing = self.collapsed(how);
        let small = pus > LARGE_FROM;
        let digits = drawing.last_pu().to_string().len().max(2);
        let cell = match small {
            true => (digits * SMALL_LETTER + 6, 15),
            false => (digits * LETTER + 12, 20),
        };
        let pen = Pen { small, cell, unusable: &drawing.unusable };
        let top = pen.laid(None, &drawing.blocks, &drawing.cores);
        let width = top.size.0.max(WIDTH_LEAST) + 2 * PAD;
        let notes = drawing.told(width / SMALL_LETTER);
        let height = PAD + LINE + top.size.1 + notes.len() * 15 + 2 * PAD;
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"m-drawing\" viewBox=\"0 0 {width} \
             {height}\" width=\"{width}\" height=\"{height}\" role=\"img\"><title>{}</title>",
            xml(&drawing.title)
        );
        if style == SvgStyle::Alone {
            let _ = write!(
                out,
                "<style>{STYLE}</style><rect class=\"m-paper\" width=\"{width}\" \
                 height=\"{height}\"/>"
            );
        }
        let _ = write!(
            out,
            "<text class=\"m-title\" x=\"{PAD}\" y=\"{}\">{}</text>",
            PAD + 12,
            xml(&fitting(&drawing.title, width))
        );
        pen.draw(&mut out, &top, (PAD, PAD + LINE));
        for (at, note) in notes.iter().enumerate() {
            let y = PAD + LINE + top.size.1 + PAD + 11 + at * 15;
            let _ =
                write!(out, "<text class=\"m-note\" x=\"{PAD}\" y=\"{y}\">{}</text>", xml(note));
        }
        out.push_str("</svg>\n");
        out
    }

    /// The lines below the boxes.
    fn told(&self, letters: usize) -> Vec<String> {
        let mut notes = vec!["boxes with numbers: a core with its PUs (logical CPUs)".to_owned()];
        if !self.unusable.is_empty() {
            notes.push("crossed out: a PU that this process may not use".to_owned());
        }
        notes.extend(self.core_caches());
        notes.extend(self.notes.iter().cloned());
        notes.iter().flat_map(|note| wrapped(note, letters)).collect()
    }
}

impl Pen<'_> {
    fn laid<'a>(
        &self,
        block: Option<&'a Block>,
        blocks: &'a [Block],
        cores: &'a [CoreTile],
    ) -> Laid<'a> {
        let inner: Vec<Laid<'a>> = blocks
            .iter()
            .map(|block| self.laid(Some(block), &block.blocks, &block.cores))
            .collect();
        let sizes: Vec<(usize, usize)> = inner.iter().map(|laid| laid.size).collect();
        let inner_rows = rows(&sizes, GAP, WIDTH_MOST);
        let sizes: Vec<(usize, usize)> = cores.iter().map(|core| self.core_size(core)).collect();
        let core_rows = rows(&sizes, if self.small { 3 } else { GAP }, WIDTH_MOST);
        let content = inner_rows.width.max(core_rows.width);
        let told = block.map_or(Vec::new(), |block| told(block, content));
        let texts = told.iter().map(|line| line.chars().count() * SMALL_LETTER).max().unwrap_or(0);
        let label = block.map_or(0, |block| block.label().chars().count() * LETTER);
        let between = if cores.is_empty() || blocks.is_empty() { 0 } else { GAP };
        let height = inner_rows.height + between + core_rows.height + told.len() * 15;
        let size = match block {
            Some(_) => (content.max(texts).max(label) + 2 * PAD, LINE + height + 2 * PAD),
            None => (content, height),
        };
        Laid { block, cores, core_rows, inner, inner_rows, told, size }
    }

    fn columns(core: &CoreTile) -> usize {
        let pus = core.cpus.len();
        if pus <= 2 { pus.max(1) } else { pus.div_ceil(pus.div_ceil(4)) }
    }

    fn core_size(&self, core: &CoreTile) -> (usize, usize) {
        let columns = Self::columns(core);
        let lines = core.cpus.len().div_ceil(columns).max(1);
        let (width, height) = (columns * self.cell.0 + 4, lines * self.cell.1 + 4);
        if self.small {
            return (width, height);
        }
        let texts = core.caches.iter().chain([&core.name]);
        let text = texts.map(|text| text.chars().count() * SMALL_LETTER).max().unwrap_or(0);
        (width.max(text + 8), height + 14 * (core.caches.len() + 1))
    }

    fn draw(&self, out: &mut String, laid: &Laid<'_>, (x, y): (usize, usize)) {
        let (mut left, mut top) = (x, y);
        if let Some(block) = laid.block {
            let class = match block.kind {
                PartKind::Package => "m-package",
                PartKind::Node => "m-node",
                PartKind::Cache => "m-cache",
            };
            let _ = write!(
                out,
                "<g class=\"{class}\"><rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" \
                 rx=\"3\"/><text x=\"{}\" y=\"{}\">{}</text>",
                laid.size.0,
                laid.size.1,
                x + PAD,
                y + 14,
                xml(&block.label())
            );
            (left, top) = (x + PAD, y + LINE + PAD);
        }
        for (core, corner) in laid.cores.iter().zip(&laid.core_rows.corners) {
            self.core(out, core, (left + corner.0, top + corner.1));
        }
        let between = if laid.cores.is_empty() || laid.inner.is_empty() { 0 } else { GAP };
        top += laid.core_rows.height + between;
        for (inner, corner) in laid.inner.iter().zip(&laid.inner_rows.corners) {
            self.draw(out, inner, (left + corner.0, top + corner.1));
        }
        top += laid.inner_rows.height;
        for (at, line) in laid.told.iter().enumerate() {
            let y = top + 12 + at * 15;
            let _ =
                write!(out, "<text class=\"m-note\" x=\"{left}\" y=\"{y}\">{}</text>", xml(line));
        }
        if laid.block.is_some() {
            out.push_str("</g>");
        }
    }

    fn core(&self, out: &mut String, core: &CoreTile, (x, y): (usize, usize)) {
        let (width, height) = self.core_size(core);
        let title: Vec<&str> =
            [&core.name].into_iter().chain(&core.caches).map(String::as_str).collect();
        let _ = write!(
            out,
            "<g class=\"m-core{}\"><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" \
             height=\"{height}\" rx=\"2\"/>",
            if self.small { " m-small" } else { "" },
            xml(&title.join(", "))
        );
        let mut top = y + 2;
        if !self.small {
            for (at, text) in title.iter().enumerate() {
                let _ = write!(
                    out,
                    "<text x=\"{}\" y=\"{}\">{}</text>",
                    x + 4,
                    y + 12 + at * 14,
                    xml(text)
                );
            }
            top += 14 * title.len();
        }
        let columns = Self::columns(core);
        let cell_width = (width - 4) / columns;
        for (at, &cpu) in core.cpus.iter().enumerate() {
            let corner = (x + 2 + at % columns * cell_width, top + at / columns * self.cell.1);
            self.pu(out, cpu, corner, cell_width);
        }
        out.push_str("</g>");
    }

    fn pu(&self, out: &mut String, cpu: u32, (x, y): (usize, usize), width: usize) {
        let (width, height) = (width - 1, self.cell.1 - 1);
        let barred = self.unusable.contains(cpu);
        let _ = write!(
            out,
            "<g class=\"m-pu{}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>",
            if barred { " m-off" } else { "" }
        );
        if barred {
            let _ = write!(out, "<path d=\"M{x} {}L{} {y}\"/>", y + height, x + width);
        }
        let _ = write!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{cpu}</text></g>",
            x + width / 2,
            y + height / 2 + 4
        );
    }
}

/// What stands below the cores of a box: the boxes alike, and how many cores are left out.
fn told(block: &Block, width: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if block.cores_left_out > 0 {
        notes.push(format!("… {} more cores", block.cores_left_out));
    }
    if !block.alike.is_empty() {
        let others: Vec<String> = block
            .alike
            .iter()
            .map(|(name, cpus)| format!("{name} {}", cpus.to_strides()).trim().to_owned())
            .collect();
        notes.push(format!("and {} alike, with PUs {}", others.len(), others.join(" | ")));
    }
    let letters = (width / SMALL_LETTER).max(24);
    notes.iter().flat_map(|note| wrapped(note, letters)).collect()
}

fn fitting(text: &str, width: usize) -> String {
    let most = width.saturating_sub(2 * PAD) / TITLE_LETTER;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Escapes a text; control characters, which XML cannot hold, are replaced.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

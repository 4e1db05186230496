//! The drawing as text for a terminal.

use super::{Block, Collapse, CoreTile, Drawing};
use crate::cpuset::CpuSet;

/// More lines than that, and boxes alike are told instead of drawn.
const LINES_MOST: usize = 60;

/// Narrower than this, nothing can be drawn.
const NARROWEST: usize = 40;

/// A rectangle of text: all lines are equally wide.
struct Area {
    width: usize,
    lines: Vec<String>,
}

impl Area {
    fn of(lines: Vec<String>) -> Area {
        let width = lines.iter().map(|line| wide(line)).max().unwrap_or(0);
        let lines = lines.into_iter().map(|line| padded(&line, width)).collect();
        Area { width, lines }
    }
}

fn wide(text: &str) -> usize {
    text.chars().count()
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(wide(text))))
}

fn cut(text: &str, most: usize) -> String {
    if wide(text) <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// How PUs are written.
#[derive(Clone, Copy)]
struct Cells<'a> {
    digits: usize,
    unusable: &'a CpuSet,
}

impl Cells<'_> {
    /// Writes a core: `[0 64]`, and `[0 (64)]` where 64 cannot be used.
    fn core(&self, core: &CoreTile) -> String {
        let pu = |&cpu: &u32| {
            if self.unusable.is_empty() {
                return format!("{cpu:>digits$}", digits = self.digits);
            }
            let barred = self.unusable.contains(cpu);
            let cell = if barred { format!("({cpu})") } else { format!("{cpu} ") };
            format!("{cell:>digits$}", digits = self.digits + 2)
        };
        let pus: Vec<String> = core.cpus.iter().map(pu).collect();
        format!("[{}]", pus.join(" "))
    }
}

impl Drawing {
    /// Draws the machine at most `width` characters wide (and at least 40). Large machines have
    /// boxes alike drawn once, with a list of the others.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let width = width.max(NARROWEST);
        let mut lines = Vec::new();
        for how in [Collapse::Nothing, Collapse::Innermost, Collapse::All] {
            lines = self.collapsed(how).lines(width);
            if lines.len() <= LINES_MOST {
                break;
            }
        }
        let mut text = lines.join("\n");
        text.push('\n');
        text
    }

    fn lines(&self, width: usize) -> Vec<String> {
        let digits = self.last_pu().to_string().len();
        let cells = Cells { digits, unusable: &self.unusable };
        let mut out = vec![cut(&self.title, width)];
        out.extend(inside(&self.blocks, &self.cores, cells, width).lines);
        let legend = match self.unusable.is_empty() {
            true => "[ ]: a core with its PUs".to_owned(),
            false => "[ ]: a core with its PUs; ( ): a PU that this process may not use".to_owned(),
        };
        let told = [legend].into_iter().chain(self.core_caches()).chain(self.notes.iter().cloned());
        out.extend(told.flat_map(|note| wrapped(&note, width)));
        out.iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Lays boxes and cores out in rows.
fn inside(blocks: &[Block], cores: &[CoreTile], cells: Cells<'_>, width: usize) -> Area {
    let mut lines = core_lines(cores, cells, width);
    let mut areas: Vec<Area> = blocks.iter().map(|block| boxed(block, cells, width, 0)).collect();
    let widest = areas.iter().map(|area| area.width).max().unwrap_or(0);
    // Boxes that stand below each other are equally wide.
    if areas.len() > 1 && 2 * widest + 1 > width {
        areas = blocks.iter().map(|block| boxed(block, cells, width, widest)).collect();
    }
    let mut row: Vec<Area> = Vec::new();
    let mut used = 0;
    for area in areas {
        if !row.is_empty() && used + 1 + area.width > width {
            lines.extend(side_by_side(&std::mem::take(&mut row)));
            used = 0;
        }
        used += area.width + usize::from(!row.is_empty());
        row.push(area);
    }
    lines.extend(side_by_side(&row));
    for block in blocks.iter().filter(|block| !block.alike.is_empty()) {
        lines.extend(more(block, width));
    }
    Area::of(lines)
}

fn side_by_side(row: &[Area]) -> Vec<String> {
    let height = row.iter().map(|area| area.lines.len()).max().unwrap_or(0);
    let line = |at: usize| {
        let parts: Vec<String> = row
            .iter()
            .map(|area| area.lines.get(at).map_or_else(|| " ".repeat(area.width), String::clone))
            .collect();
        parts.join(" ")
    };
    (0..height).map(line).collect()
}

/// Draws a box, at least `least` wide.
fn boxed(block: &Block, cells: Cells<'_>, width: usize, least: usize) -> Area {
    let room = width.saturating_sub(4).max(8);
    let mut content = inside(&block.blocks, &block.cores, cells, room);
    if block.cores_left_out > 0 {
        content.lines.push(format!("… {} more cores", block.cores_left_out));
        content = Area::of(content.lines);
    }
    let label = cut(&block.label(), room);
    let inner = content.width.max(wide(&label) + 1).max(least.saturating_sub(4)).min(room);
    let rule = "─".repeat((inner + 1).saturating_sub(wide(&label) + 1));
    let mut lines = vec![format!("┌ {label} {rule}┐")];
    lines.extend(content.lines.iter().map(|line| format!("│ {} │", padded(line, inner))));
    lines.push(format!("└{}┘", "─".repeat(inner + 2)));
    Area::of(lines)
}

/// Writes cores in rows that are about equally long.
fn core_lines(cores: &[CoreTile], cells: Cells<'_>, width: usize) -> Vec<String> {
    let tiles: Vec<String> = cores.iter().map(|core| cells.core(core)).collect();
    let Some(widest) = tiles.iter().map(|tile| wide(tile)).max() else { return Vec::new() };
    let fit = ((width + 1) / (widest + 1)).max(1);
    let wanted = if tiles.len() <= 4 { tiles.len() } else { tiles.len().div_ceil(2) };
    let rows = tiles.len().div_ceil(wanted.min(fit));
    let columns = tiles.len().div_ceil(rows);
    let padded = |tile: &String| padded(tile, widest);
    let row = |row: &[String]| row.iter().map(padded).collect::<Vec<_>>().join(" ");
    tiles.chunks(columns).map(row).collect()
}

/// Tells the boxes that are like the one that is drawn.
fn more(block: &Block, width: usize) -> Vec<String> {
    let told: Vec<String> = block
        .alike
        .iter()
        .map(|(name, cpus)| match name.is_empty() {
            true => cpus.to_strides(),
            false => format!("{name}: {}", cpus.to_strides()),
        })
        .collect();
    let what = match (block.name().is_empty(), told.len()) {
        (true, count) => format!("{count} more {} alike, PUs ", block.label()),
        (false, count) => format!("{count} more alike, PUs of "),
    };
    wrapped(&format!("{what}{}", told.join(" | ")), width)
}

/// Breaks a note at spaces, and what is longer than a line where it must be.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.trim().is_empty() {
            if wide(&line) + 1 + wide(word) > width {
                lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
            } else {
                line.push(' ');
            }
        }
        for letter in word.chars() {
            if wide(&line) >= width {
                lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
            }
            line.push(letter);
        }
    }
    lines.push(line);
    lines
}

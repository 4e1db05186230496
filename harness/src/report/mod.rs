//! Reports: what files of records hold, as one page, as Markdown, as comma-separated values.
//!
//! [`make`] does it all: it reads, judges, draws and writes, whole or not at all.

pub mod csv;
pub mod error;
pub mod escape;
pub mod html;
pub mod markdown;
pub mod model;
pub mod number;
pub mod output;
pub mod scan;
pub mod verdict;

mod chart;
mod scale;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use error::ReportError;
use verdict::Kinds;

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One page with plots.
    Html,
    /// A row a point, for other programs.
    Csv,
    /// Tables and verdicts as text.
    Markdown,
}

impl Format {
    /// Gives the ending of its files.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Csv => "csv",
            Self::Markdown => "md",
        }
    }
}

/// What was made of the records.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// Points in the files.
    pub points: u64,
    /// Records of watched lines in the files.
    pub watched: u64,
    /// Lines that were not understood.
    pub skipped: u64,
    /// Points that the report shows in another's place or not at all.
    pub folded: u64,
}

/// Makes a report of the files in `format` and writes it to `out`.
///
/// # Errors
/// When a file cannot be read, there is no point in any of them, or the report cannot be written;
/// what stood in its place is as it was.
pub fn make(
    inputs: &[PathBuf],
    out: &Path,
    format: Format,
    kinds: Kinds,
) -> Result<Made, ReportError> {
    let report = Report::of(inputs, format, kinds)?;
    output::write(out, inputs, |out| report.write(out))?;
    Ok(report.made())
}

/// Makes a report and writes it to a stream.
///
/// # Errors
/// As [`make`].
pub fn to(
    inputs: &[PathBuf],
    out: &mut dyn Write,
    format: Format,
    kinds: Kinds,
) -> Result<(), ReportError> {
    let report = Report::of(inputs, format, kinds)?;
    let failed = |error| ReportError::Write("standard output".into(), error);
    report.write(out).and_then(|()| out.flush()).map_err(failed)
}

/// A report that is ready to be written.
enum Report<'a> {
    Text { text: String, made: Made },
    Csv { inputs: &'a [PathBuf], columns: csv::Columns, kinds: Kinds },
}

impl<'a> Report<'a> {
    fn of(inputs: &'a [PathBuf], format: Format, kinds: Kinds) -> Result<Self, ReportError> {
        if format == Format::Csv {
            return Ok(Self::Csv { inputs, columns: csv::Columns::of(inputs)?, kinds });
        }
        let model = model::load(inputs, kinds)?;
        let text = if format == Format::Html { html::page(&model) } else { markdown::text(&model) };
        let sum = |count: fn(&scan::Input) -> u64| model.inputs.iter().map(count).sum();
        let made = Made {
            points: sum(|input| input.points),
            watched: sum(|input| input.lines),
            skipped: sum(|input| input.skipped_lines),
            folded: model.folded + model.left_out,
        };
        Ok(Self::Text { text, made })
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Text { text, .. } => out.write_all(text.as_bytes()),
            Self::Csv { inputs, columns, kinds } => csv::write(out, inputs, columns, kinds),
        }
    }

    fn made(&self) -> Made {
        match self {
            Self::Text { made, .. } => *made,
            Self::Csv { columns, .. } => {
                Made { points: columns.points(), watched: 0, skipped: columns.skipped(), folded: 0 }
            }
        }
    }
}

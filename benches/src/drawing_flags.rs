//! `--draw` and `--svg`: a machine as boxes, for the terminal and as a file.

use std::path::{Path, PathBuf};

use clap::Args;
use harness::report::error::ReportError;
use harness::report::output;
use topology::{Drawing, SvgStyle};

use crate::exit::Failure;
use crate::stdout;

/// How wide the text is.
const COLUMNS: usize = 80;

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct DrawingFlags {
    /// Draw packages, NUMA nodes, L3 groups, cores and PUs as boxes of text
    #[arg(long, conflicts_with = "json")]
    draw: bool,
    /// Write the drawing to this file as SVG; `-` is standard output
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    svg: Option<PathBuf>,
}

impl DrawingFlags {
    /// Says whether there is anything to draw.
    pub(crate) fn any(&self) -> bool {
        self.draw || self.svg.is_some()
    }

    /// Draws; says where the file is, if that is all there is to say.
    ///
    /// # Errors
    /// When the file or standard output cannot be written.
    pub(crate) fn run(&self, drawing: &Drawing) -> Result<(), Failure> {
        if self.draw {
            stdout::print(drawing.text(COLUMNS).trim_end())?;
        }
        let Some(file) = &self.svg else { return Ok(()) };
        let svg = drawing.svg(SvgStyle::Alone);
        if file == Path::new("-") {
            return stdout::print(svg.trim_end());
        }
        output::write(file, &[], |out| out.write_all(svg.as_bytes())).map_err(refused)?;
        if self.draw { Ok(()) } else { stdout::print(&file.display().to_string()) }
    }
}

fn refused(error: ReportError) -> Failure {
    Failure::Failed(match error {
        ReportError::Write(path, error) => format!(
            "cannot write the drawing to {}: {error}; choose another file with --svg",
            path.display()
        ),
        ReportError::Directory(path) => format!(
            "cannot write the drawing to {}: it is a directory; name a file with --svg",
            path.display()
        ),
        other => other.to_string(),
    })
}

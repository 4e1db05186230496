//! Where the records of a command go that measures without a plan.

use std::path::Path;

use harness::records::Appender;
use serde::Serialize;

use crate::exit::Failure;
use crate::stdout;

/// A file and standard output, if anybody wants them.
pub(crate) struct Written {
    pub(crate) file: Option<Appender>,
    to_stdout: bool,
}

impl Written {
    /// Opens the file, if there is to be one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn open(out: Option<&Path>, to_stdout: bool) -> Result<Self, Failure> {
        let refused = |path: &Path, error| {
            let path = path.display();
            Failure::Failed(format!(
                "cannot write records to {path}: {error}; choose another file with --out"
            ))
        };
        let open = |path: &Path| Appender::open(path).map_err(|error| refused(path, error));
        Ok(Self { file: out.map(open).transpose()?, to_stdout })
    }

    /// Writes a record.
    ///
    /// # Errors
    /// When it could not be written.
    pub(crate) fn write(&mut self, record: &impl Serialize) -> Result<(), Failure> {
        if let Some(file) = &mut self.file {
            let written = file.append(record);
            written.map_err(|error| {
                Failure::Failed(format!("cannot add to {}: {error}", file.path().display()))
            })?;
        }
        if self.to_stdout {
            let line = serde_json::to_string(record);
            stdout::print(&line.map_err(|error| Failure::Failed(error.to_string()))?)?;
        }
        Ok(())
    }
}

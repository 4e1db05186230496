//! Standard output that may be closed: `manycore list | head` ends quietly.

use std::io::{self, Write};

use crate::exit::Failure;

/// Prints `text` and a line's end. A closed pipe is not an error: the reader has seen enough.
///
/// # Errors
/// When standard output cannot be written for another reason.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints to standard error, where nothing can be done about a failure.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

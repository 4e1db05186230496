//! Standard output that may be closed: `manycore list | head` ends quietly.

use std::io::{self, Write};

use harness::report::escape;

use crate::exit::Failure;

/// Prints `text` and a line's end, control characters as marks. A closed pipe is not an error: the reader has seen enough.
///
/// # Errors
/// When standard output cannot be written for another reason.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let (mut out, text) = (io::stdout().lock(), escape::terminal(text));
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Lets `write` write to standard output. A closed pipe is not an error, as in [`print()`].
pub(crate) fn stream<E>(write: impl FnOnce(&mut dyn Write) -> Result<(), E>) -> Result<(), E> {
    write(&mut UntilClosed(io::BufWriter::new(io::stdout().lock())))
}

/// Takes what nobody reads any more for written.
struct UntilClosed<W>(W);

impl<W: Write> Write for UntilClosed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}

/// Prints to standard error, where nothing can be done about a failure.
pub(crate) fn note(text: &str) {
    let _ = writeln!(io::stderr(), "{}", escape::terminal(text));
}

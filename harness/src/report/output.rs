//! Writing a report whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::error::ReportError;

/// Writes a file by what `fill` writes: beside it first, and in its place when all is written.
/// A device or a pipe is written to as it is.
///
/// # Errors
/// When the file cannot be written, is a directory, or is one of the `inputs`; what stood there
/// is as it was.
pub fn write(
    path: &Path,
    inputs: &[PathBuf],
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ReportError> {
    let failed = |error| ReportError::Write(path.into(), error);
    match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(ReportError::Directory(path.into())),
        Ok(there) if there.is_file() => {
            // What a link points to is replaced, not the link.
            let real = fs::canonicalize(path).map_err(failed)?;
            if inputs.iter().any(|input| fs::canonicalize(input).is_ok_and(|input| input == real)) {
                return Err(ReportError::Input(path.into()));
            }
            replace(&real, fill).map_err(failed)
        }
        Ok(_) => {
            let device = fs::OpenOptions::new().write(true).open(path).map_err(failed)?;
            filled(device, fill).map(drop).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            replace(path, fill).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!(".manycore-{}-{number}.part", std::process::id());
    let beside = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => parent.join(name),
        None => PathBuf::from(name),
    };
    if path.file_name().is_none() {
        return Err(io::Error::other("this names no file"));
    }
    let file = File::create_new(&beside)?;
    // A disk may report late that it is full.
    filled(file, fill)
        .and_then(|file| file.sync_all())
        .and_then(|()| fs::rename(&beside, path))
        .inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
}

fn filled(file: File, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<File> {
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failure_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("report.html");
        write(&path, &[], |out| out.write_all(b"first")).unwrap();
        let broken = write(&path, &[], |out| {
            out.write_all(b"sec")?;
            Err(io::Error::other("disk on fire"))
        });
        assert!(broken.unwrap_err().to_string().contains("disk on fire"));
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(directory.path()), ["report.html"]);
    }

    #[test]
    fn inputs_directories_and_full_devices_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let input = directory.path().join("r.jsonl");
        fs::write(&input, "records").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&input, &link).unwrap();
        let to = |path: &Path| write(path, std::slice::from_ref(&input), |out| out.write_all(b"x"));
        assert!(matches!(to(&link), Err(ReportError::Input(_))));
        assert!(matches!(to(directory.path()), Err(ReportError::Directory(_))));
        assert!(to(Path::new("/dev/full")).unwrap_err().to_string().contains("/dev/full"));
        assert!(to(&directory.path().join("no/such/report.html")).is_err());
        assert_eq!(fs::read(&input).unwrap(), b"records");
        assert_eq!(names(directory.path()).len(), 2);
    }

    #[test]
    fn a_link_stays_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, &[], |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }
}

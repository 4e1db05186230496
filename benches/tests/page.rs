//! The report's page in a browser: it loads without a complaint, sorts, filters, and is drawn in
//! light and dark, wide and narrow.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A browser that hangs is ended.
const PATIENCE: Duration = Duration::from_secs(120);

fn browser() -> Option<PathBuf> {
    let known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let found = known.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        println!("SKIPPED: no Chromium; install it: apt-get install chromium");
    }
    found
}

fn open(browser: &Path, directory: &Path, more: &[&str], url: &str) -> Output {
    let profile = tempfile::tempdir_in(directory).unwrap();
    let child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--hide-scrollbars", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    within(child, PATIENCE)
}

/// Waits for a child, and ends it when it takes too long.
fn within(mut child: Child, patience: Duration) -> Output {
    let began = Instant::now();
    let (mut stdout, mut stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let read = |pipe: &mut dyn std::io::Read| {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    };
    std::thread::scope(|scope| {
        let stdout = scope.spawn(move || read(&mut stdout));
        let stderr = scope.spawn(move || read(&mut stderr));
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > patience {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        Output { status, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Makes the page of the sample in `directory` and gives its address.
fn page(directory: &Path, records: &Path) -> String {
    let page = directory.join("page.html");
    let output = Command::new(env!("CARGO_BIN_EXE_manycore"))
        .arg("report")
        .arg(records)
        .arg("--out")
        .arg(&page)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    format!("file://{}", page.display())
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sample/results.jsonl")
}

/// Opens the page so that it tries itself; gives what it found, and what the console said.
fn selftest(browser: &Path, directory: &Path, records: &Path) -> (String, Vec<String>) {
    let url = format!("{}#selftest", page(directory, records));
    let output = open(browser, directory, &["--dump-dom"], &url);
    let document = text(&output.stdout);
    let outcome = document
        .split_once("data-selftest=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or_else(|| "did not run".to_owned(), |(outcome, _)| outcome.to_owned());
    let said = text(&output.stderr);
    let console = said.lines().filter(|line| line.contains("CONSOLE"));
    (outcome, console.map(str::to_owned).collect())
}

#[test]
fn sorts_and_filters_without_a_complaint() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (outcome, console) = selftest(&browser, directory.path(), &sample());
    assert!(outcome.starts_with("passed with "), "{outcome} {console:?}");
    assert!(console.is_empty(), "{console:?}");
}

#[test]
fn hostile_strings_do_nothing() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().unwrap();
    let hostile =
        r#"</script><img src=x onerror=\"document.title='owned'\"><script>throw 1</script>"#;
    let records = fs::read_to_string(sample()).unwrap();
    for word in ["\"ticket\"", "\"compact\"", "\"vm\"", "\"KVM\"", "\"locks\""] {
        let records = records.replace(word, &format!("\"{hostile}\""));
        let file = directory.path().join("hostile.jsonl");
        fs::write(&file, records).unwrap();
        let (outcome, console) = selftest(&browser, directory.path(), &file);
        assert!(outcome.starts_with("passed with "), "{word}: {outcome} {console:?}");
        assert!(console.is_empty(), "{word}: {console:?}");
    }
}

/// Draws the page and gives the colour of its first pixel.
fn drawn(browser: &Path, directory: &Path, url: &str, more: &[&str]) -> (u64, Vec<u8>) {
    let image = directory.join("page.png");
    let shot = format!("--screenshot={}", image.display());
    open(browser, directory, &[&[shot.as_str()], more].concat(), url);
    let bytes = fs::read(&image).unwrap_or_default();
    fs::remove_file(&image).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"), "no image");
    (bytes.len() as u64, bytes)
}

#[test]
fn is_drawn_in_light_and_dark_wide_and_narrow() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().unwrap();
    let url = page(directory.path(), &sample());
    let mut seen: Vec<Vec<u8>> = Vec::new();
    for size in ["--window-size=1240,2000", "--window-size=500,2000"] {
        for theme in ["preferredColorScheme=1", "preferredColorScheme=0"] {
            let settings = format!("--blink-settings={theme}");
            let (length, bytes) = drawn(&browser, directory.path(), &url, &[size, &settings]);
            assert!(length > 30_000, "{size} {theme}: {length} bytes show next to nothing");
            assert!(!seen.contains(&bytes), "{size} {theme} looks like another");
            seen.push(bytes);
        }
    }
}

/// Nothing but the table of all points may be wider than a narrow window.
#[test]
fn fits_a_narrow_window() {
    let Some(browser) = browser() else { return };
    let directory = tempfile::tempdir().unwrap();
    let url = page(directory.path(), &sample());
    // A window cannot be narrower than 500 pixels; a frame can.
    let frame = directory.path().join("frame.html");
    let script = "document.documentElement.dataset.width = \
                  document.querySelector('iframe').contentDocument.documentElement.scrollWidth";
    fs::write(
        &frame,
        format!(
            "<!doctype html><iframe src=\"{url}\" width=\"400\" height=\"800\" \
             onload=\"{script}\" style=\"border:0\"></iframe>"
        ),
    )
    .unwrap();
    let address = format!("file://{}", frame.display());
    let flags = ["--dump-dom", "--allow-file-access-from-files"];
    let document = text(&open(&browser, directory.path(), &flags, &address).stdout);
    let width = document.split_once("data-width=\"").and_then(|(_, rest)| rest.split_once('"'));
    let width: u32 = width.map_or("none", |(width, _)| width).parse().unwrap();
    assert!(width <= 400, "the page is {width} pixels wide in a frame of 400");
}

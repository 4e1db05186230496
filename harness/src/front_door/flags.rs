//! The flags of `cargo bench -p … -- FLAGS`: criterion's, read once for every part.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use regex::Regex;

/// Rows whose names match, at one thread and at all of this host's; what their words mean is in
/// docs/benchmarks.md.
#[derive(Debug, Clone, Parser)]
#[command(name = "cargo bench -p … --", disable_version_flag = true)]
pub(crate) struct Flags {
    /// Only benchmarks whose name matches this regular expression
    #[arg(value_name = "FILTER", value_parser = pattern)]
    pub(crate) filter: Option<Regex>,
    /// Only the benchmark, or the row, of exactly this name
    #[arg(long)]
    pub(crate) exact: bool,
    /// List the benchmarks of every part and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// How to list
    #[arg(long, value_name = "FORMAT", value_parser = ["pretty", "terse"], default_value = "pretty")]
    pub(crate) format: String,
    /// Compare with this baseline, then overwrite it
    #[arg(long, short, value_name = "NAME", value_parser = baseline, default_value = "base",
          conflicts_with_all = ["baseline", "baseline_lenient", "discard_baseline"])]
    pub(crate) save_baseline: String,
    /// Compare with nothing saved, save nothing
    #[arg(long, conflicts_with_all = ["baseline", "baseline_lenient"])]
    pub(crate) discard_baseline: bool,
    /// Compare with this baseline and leave it as it is; a row that it lacks is new
    #[arg(long, short, value_name = "NAME", value_parser = baseline,
          conflicts_with = "baseline_lenient")]
    pub(crate) baseline: Option<String>,
    /// The same as --baseline
    #[arg(long, value_name = "NAME", value_parser = baseline)]
    pub(crate) baseline_lenient: Option<String>,
    /// Measure nothing; take the figures of this baseline as those of now
    #[arg(long, value_name = "NAME", value_parser = baseline, requires = "baseline",
          conflicts_with = "profile_time")]
    pub(crate) load_baseline: Option<String>,
    /// Stop each wall-clock row as soon as two measurements agree
    #[arg(long, conflicts_with = "sample_size")]
    pub(crate) quick: bool,
    /// Samples of a wall-clock row, 10 or more
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) sample_size: Option<u64>,
    /// Seconds that a wall-clock row is measured
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) measurement_time: Option<Duration>,
    /// Seconds that a wall-clock row warms up
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub(crate) warm_up_time: Option<Duration>,
    /// Resamples of the bootstrap
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) nresamples: Option<u64>,
    /// Smallest relative change that counts
    #[arg(long, value_name = "X", value_parser = positive)]
    pub(crate) noise_threshold: Option<f64>,
    /// Level of the confidence intervals, between 0 and 1
    #[arg(long, value_name = "X", value_parser = share)]
    pub(crate) confidence_level: Option<f64>,
    /// Level of the significance tests, between 0 and 1
    #[arg(long, value_name = "X", value_parser = share)]
    pub(crate) significance_level: Option<f64>,
    /// Run each wall-clock row for this long under a profiler, 1 second or more; nothing is counted
    #[arg(long, value_name = "S", value_parser = a_second_or_more, conflicts_with_all = ["test", "list"])]
    pub(crate) profile_time: Option<Duration>,
    /// Run each row once and time nothing
    #[arg(long, conflicts_with = "list")]
    pub(crate) test: bool,
    /// Given by `cargo bench`; without it each row runs once, as under `cargo test --benches`
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
    /// criterion's own lines, or those of the standard library's benchmarks
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "criterion")]
    pub(crate) output_format: OutputFormat,
    /// When to colour
    #[arg(long, short, alias = "colour", value_name = "WHEN",
          value_parser = ["auto", "always", "never"], default_value = "auto")]
    pub(crate) color: String,
    /// Say more: statistics of the samples, functions that hold the instructions
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Say less: results and what was skipped
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// No plots; there are none unless --plotting-backend asks for them
    #[arg(long, short)]
    pub(crate) noplot: bool,
    /// Draw plots with this program
    #[arg(long, value_name = "BACKEND", value_parser = ["gnuplot"])]
    pub(crate) plotting_backend: Option<String>,
    /// Run nothing: no benchmark is marked so
    #[arg(long, hide = true)]
    pub(crate) ignored: bool,
    /// No effect; known to the standard library's tests
    #[arg(long, hide = true)]
    pub(crate) nocapture: bool,
    /// No effect; known to the standard library's tests
    #[arg(long, hide = true)]
    pub(crate) show_output: bool,
    /// No effect; known to the standard library's tests
    #[arg(long, hide = true)]
    pub(crate) include_ignored: bool,
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// As criterion prints them.
    Criterion,
    /// `test NAME ... bench: 10 ns/iter (+/- 0)`.
    Bencher,
}

/// Which saved figures are compared with, and whether they are overwritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Baseline<'a> {
    /// Compared with, and saved under, this name.
    pub(crate) name: &'a str,
    /// Whether the figures of now are saved.
    pub(crate) save: bool,
}

impl Flags {
    /// Tells whether each row runs just once.
    pub(crate) fn once(&self) -> bool {
        self.test || !self.bench
    }

    /// Tells whether the lines of the standard library's benchmarks are asked for.
    pub(crate) fn bencher(&self) -> bool {
        self.output_format == OutputFormat::Bencher
    }

    /// Tells whether a benchmark of the row `row` called `id` is asked for.
    pub(crate) fn selects(&self, row: &str, id: &str) -> bool {
        match &self.filter {
            _ if self.ignored => false,
            None => true,
            Some(name) if self.exact => name.as_str() == id || name.as_str() == row,
            Some(pattern) => pattern.is_match(id),
        }
    }

    /// Gives what to compare with.
    pub(crate) fn compared_with(&self) -> Baseline<'_> {
        match self.baseline.as_ref().or(self.baseline_lenient.as_ref()) {
            Some(name) => Baseline { name, save: false },
            None => Baseline { name: &self.save_baseline, save: !self.discard_baseline },
        }
    }
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

/// A baseline is a folder's and a file's name.
fn baseline(name: &str) -> Result<String, String> {
    match name {
        "" | "." | ".." => Err("a baseline needs a name".into()),
        "new" | "change" | "report" => Err(format!("criterion keeps `{name}` for itself")),
        name if name.contains(['/', '\\']) => Err("a baseline's name holds no slash".into()),
        name => Ok(name.into()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("not a number above 0".into()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    positive(text).ok().filter(|share| *share < 1.0).ok_or("not between 0 and 1".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = positive(text)?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| format!("{text} seconds cannot be waited for"))
}

fn a_second_or_more(text: &str) -> Result<Duration, String> {
    seconds(text).and_then(|time| {
        if time < Duration::from_secs(1) { Err("less than a second".into()) } else { Ok(time) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Result<Flags, String> {
        Flags::try_parse_from([&["locks"], words].concat()).map_err(|error| error.to_string())
    }

    #[test]
    fn filters_select() {
        let selects = |words: &[&str], id: &str| flags(words).unwrap().selects("locks/tas", id);
        assert!(selects(&[], "locks/tas/threads=1"));
        assert!(selects(&["tas"], "locks/tas/threads=1"));
        assert!(selects(&["^locks/t.*=1$"], "locks/tas/threads=1"));
        assert!(!selects(&["mcs"], "locks/tas/threads=1"));
        assert!(!selects(&["tas", "--ignored"], "locks/tas/threads=1"));
        assert!(selects(&["--exact", "locks/tas"], "locks/tas/threads=1"));
        assert!(selects(&["--exact", "locks/tas/threads=1"], "locks/tas/threads=1"));
        assert!(!selects(&["--exact", "tas"], "locks/tas/threads=1"));
    }

    #[test]
    fn baselines() {
        let compared = |words: &[&str]| {
            let flags = flags(words).unwrap();
            let baseline = flags.compared_with();
            (baseline.name.to_owned(), baseline.save)
        };
        assert_eq!(compared(&[]), ("base".into(), true));
        assert_eq!(compared(&["--save-baseline", "x"]), ("x".into(), true));
        assert_eq!(compared(&["--baseline", "x"]), ("x".into(), false));
        assert_eq!(compared(&["--baseline-lenient", "x"]), ("x".into(), false));
        assert_eq!(compared(&["--load-baseline", "y", "--baseline", "x"]), ("x".into(), false));
        assert_eq!(compared(&["--discard-baseline"]), ("base".into(), false));
    }

    #[test]
    fn what_criterion_would_panic_at_is_refused() {
        for words in [
            &["("][..],
            &["a", "b"],
            &["--sample-size", "9"],
            &["--measurement-time", "0"],
            &["--warm-up-time", "-1"],
            &["--profile-time", "0.5"],
            &["--confidence-level", "1"],
            &["--baseline", "a/b"],
            &["--save-baseline", "new"],
            &["--baseline", "x", "--save-baseline", "y"],
            &["--no-such-flag"],
            &["--output-format", "json"],
        ] {
            assert!(flags(words).is_err(), "{words:?}");
        }
        assert!(flags(&["--bench", "--noplot", "-v", "--color", "never"]).unwrap().verbose);
        assert!(flags(&["--test"]).unwrap().once() && flags(&[]).unwrap().once());
        assert!(!flags(&["--bench"]).unwrap().once());
    }
}

//! The wall-clock part: criterion over experiments on pinned threads.
//!
//! An iteration is one operation of every thread. Its time is that from the first thread's start
//! to the last one's end, over the iterations; the start is a tick of the clock for all.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkFilter, BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput,
};
use topology::Topology;

use super::flags::Flags;
use super::grid::Point;
use super::shift::Shift;
use super::{note, skipped, target_directory};
use crate::native::{Conditions, Failure, Native};
use crate::placement::Placement;
use crate::team::Team;
use crate::unavailable::Unavailable;

/// Samples of a benchmark and resamples of its bootstrap, unless flags say otherwise: with those
/// of criterion (100 and 100,000) the analysis would last longer than the measurement.
const SAMPLES: usize = 40;
const RESAMPLES: usize = 10_000;

/// Operations of the check before a benchmark is timed.
const OPS_OF_THE_CHECK: u64 = 1000;

/// Runs the benchmarks and gives the number of broken ones.
pub(super) fn run(
    topology: &Topology,
    points: &[Point],
    (warm_up, measurement): (Duration, Duration),
    flags: &Flags,
) -> usize {
    if points.is_empty() {
        if !flags.ignored {
            note("wall clock: the filter leaves no benchmark of this part");
        }
        return 0;
    }
    let home = home();
    let mut criterion = criterion(home.clone(), warm_up, measurement, flags);
    let native = Native::new(topology.clone());
    if let Some(reason) = &native.clock().not_tsc {
        note(&format!("wall clock: not the time-stamp counter: {reason}"));
    }
    let mut part = Part { native, team: Team::new(), home };
    let (mut missing, mut broken) = (Vec::new(), 0);
    let mut group = criterion.benchmark_group(points[0].row.primitive);
    group.sampling_mode(SamplingMode::Flat);
    for point in points {
        match part.point(&mut group, point, flags) {
            Ok(()) => {}
            Err(Failure::Unavailable(reason)) => {
                skipped(&point.id(), &reason);
                missing.push(point.id());
            }
            Err(Failure::Broken(reason)) => {
                note(&format!("BROKEN {}: {reason}", point.id()));
                broken += 1;
            }
        }
    }
    group.finish();
    criterion.final_summary();
    if !flags.quiet {
        let (all, left_out) = (points.len(), missing.len());
        note(&format!("wall clock: {} of {all} benchmarks ran", all - left_out - broken));
    }
    broken
}

/// Where criterion keeps its figures; `None` leaves it to `CRITERION_HOME`.
fn home() -> Option<PathBuf> {
    match std::env::var_os("CRITERION_HOME") {
        Some(_) => None,
        None => target_directory().map(|target| target.join("criterion")),
    }
}

/// Criterion reads the same flags, which our own parser has found sound.
fn criterion(
    home: Option<PathBuf>,
    warm_up: Duration,
    measurement: Duration,
    flags: &Flags,
) -> Criterion {
    let mut criterion = Criterion::default()
        .sample_size(SAMPLES)
        .nresamples(RESAMPLES)
        .warm_up_time(warm_up)
        .measurement_time(measurement)
        .configure_from_args()
        // The benchmarks were chosen already, by rules that hold for every part.
        .with_benchmark_filter(BenchmarkFilter::AcceptAll);
    if let Some(home) = home {
        criterion = criterion.output_directory(&home);
    }
    if flags.plotting_backend.is_none() {
        criterion = criterion.without_plots();
    }
    let compared = flags.compared_with();
    if !compared.save && !flags.discard_baseline {
        // Leniently: a row that the baseline lacks is new, and no reason to panic.
        criterion = criterion.retain_baseline(compared.name.to_owned(), false);
    }
    criterion
}

struct Part {
    native: Native,
    team: Team,
    home: Option<PathBuf>,
}

impl Part {
    fn point(
        &mut self,
        group: &mut BenchmarkGroup<'_, WallTime>,
        point: &Point,
        flags: &Flags,
    ) -> Result<(), Failure> {
        if let Some(saved) = &flags.load_baseline {
            self.has_saved(point, saved)?;
        }
        let conditions = self.conditions(point).map_err(Failure::Unavailable)?;
        let clock = self.native.clock();
        if flags.load_baseline.is_none() && !flags.once() {
            let mut check = Shift::begin(&mut self.team, clock, &conditions, point.row.make)?;
            check.run(OPS_OF_THE_CHECK)?;
            check.end()?;
        }
        let mut shift = Shift::begin(&mut self.team, clock, &conditions, point.row.make)?;
        group.throughput(Throughput::Elements(point.threads as u64));
        let name = BenchmarkId::new(point.row.id, &point.parameter);
        if flags.bencher() && (flags.quick || flags.load_baseline.is_some()) {
            // Criterion prints this beginning only where it takes samples.
            let _ = write!(std::io::stdout(), "test {} ... ", point.id());
        }
        // A failure leaves criterion by unwinding, silently: it has no other way out.
        let measured = catch_unwind(AssertUnwindSafe(|| {
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|iterations| match shift.run(iterations) {
                    Ok(time) => time,
                    Err(failure) => resume_unwind(Box::new(failure)),
                });
            });
        }));
        match measured {
            Ok(()) => shift.end(),
            Err(payload) => Err(match payload.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(_) => Failure::Broken("criterion panicked".into()),
            }),
        }
    }

    fn conditions(&self, point: &Point) -> Result<Conditions, Unavailable> {
        let cpus = Placement::Compact.cpus(self.native.topology(), point.threads)?;
        self.native.conditions(&cpus, &point.workload, 1)
    }

    /// Criterion panics when the figures it shall load do not exist.
    fn has_saved(&self, point: &Point, name: &str) -> Result<(), Failure> {
        let home = self.home.clone();
        let home = home.or_else(|| std::env::var_os("CRITERION_HOME").map(PathBuf::from));
        let folder = home.unwrap_or_default().join(point.id()).join(name);
        if folder.join("sample.json").exists() {
            return Ok(());
        }
        let detail = format!("nothing in {}", folder.display());
        Err(Failure::Unavailable(Unavailable::because("not_saved", detail)))
    }
}

use super::super::rules::position;
use super::*;
use crate::stats::{SplitMix, median_with_interval};

fn side(metric: &str, value: f64, ends: Option<(f64, f64)>) -> Side<'static> {
    let (low, high) = ends.unwrap_or((value, value));
    let figure = Figure { value, low, high, interval: ends.is_some() };
    let figures = Figures(vec![(position(metric).unwrap(), Some(figure))]);
    Side { status: Status::Ok, repeat: 5, figures: Cow::Owned(figures) }
}

fn judged(engine: &str, old: &Side, new: &Side, settings: &Settings) -> Verdict {
    let found = pair(old, new, (engine, 1), &Barriers::default(), settings);
    assert_eq!(found.compared, 1);
    found.different.first().map_or(Verdict::Equal, |finding| finding.verdict)
}

fn counts(old: f64, new: f64, settings: &Settings) -> Verdict {
    let (old, new) = (side("rmw_per_op", old, None), side("rmw_per_op", new, None));
    judged("callgrind", &old, &new, settings)
}

fn times(old: (f64, f64, f64), new: (f64, f64, f64)) -> Verdict {
    let of = |(low, value, high)| side("ns_per_op", value, Some((low, high)));
    judged("native", &of(old), &of(new), &Settings::default())
}

#[test]
fn counts_are_exact_unless_something_else_is_asked_for() {
    let exact = Settings::default();
    assert_eq!(counts(5.0, 5.0, &exact), Verdict::Equal);
    assert_eq!(counts(5.0, 5.000_000_1, &exact), Verdict::Regressed);
    assert_eq!(counts(5.0, 4.999_999_9, &exact), Verdict::Improved);
    assert_eq!(counts(0.0, 1e-12, &exact), Verdict::Regressed);
    let mut some = Settings { tolerance: 0.01, ..Settings::default() };
    assert_eq!(counts(100.0, 101.0, &some), Verdict::Equal);
    assert_eq!(counts(100.0, 101.1, &some), Verdict::Regressed);
    assert_eq!(counts(100.0, 98.9, &some), Verdict::Improved);
    assert_eq!(counts(0.0, 1e-12, &some), Verdict::Regressed, "part of nothing is nothing");
    some.tolerances.insert("rmw_per_op".into(), 0.5);
    assert_eq!(counts(100.0, 150.0, &some), Verdict::Equal);
}

#[test]
fn times_are_told_by_their_intervals_and_the_margin() {
    assert_eq!(times((99.0, 100.0, 101.0), (99.5, 100.5, 101.5)), Verdict::Equal);
    assert_eq!(times((99.0, 100.0, 101.0), (118.0, 120.0, 122.0)), Verdict::Regressed);
    assert_eq!(times((99.0, 100.0, 101.0), (78.0, 80.0, 82.0)), Verdict::Improved);
    assert_eq!(times((70.0, 100.0, 140.0), (90.0, 120.0, 160.0)), Verdict::Inconclusive);
    // Beyond doubt, and smaller than the margin.
    assert_eq!(times((100.0, 100.0, 100.0), (102.0, 102.0, 102.0)), Verdict::Equal);
    assert_eq!(times((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), Verdict::Inconclusive);
}

#[test]
fn latencies_are_whole_nanoseconds() {
    let of = |value, ends| side("latency_ns.p50", value, Some(ends));
    let settings = Settings::default();
    let judged = |old: &Side, new: &Side| judged("native", old, new, &settings);
    let (five, six) = (of(5.0, (5.0, 5.0)), of(6.0, (6.0, 6.0)));
    assert_eq!(judged(&five, &six), Verdict::Inconclusive);
    assert_eq!(judged(&six, &five), Verdict::Inconclusive);
    assert_eq!(judged(&five, &of(500.0, (500.0, 500.0))), Verdict::Regressed);
    // Nothing at all is a time too.
    let nothing = of(0.0, (0.0, 0.0));
    let one = of(1.0, (1.0, 1.0));
    assert_eq!(judged(&nothing, &one), Verdict::Equal);
    assert_eq!(judged(&nothing, &of(2.0, (0.0, 9.0))), Verdict::Inconclusive);
    assert_eq!(judged(&nothing, &of(50.0, (48.0, 52.0))), Verdict::Regressed);
    assert_eq!(judged(&of(50.0, (48.0, 52.0)), &nothing), Verdict::Improved);
    let noisy = Side { status: Status::Noisy, ..of(50.0, (48.0, 52.0)) };
    assert_eq!(judged(&nothing, &noisy), Verdict::Inconclusive);
}

#[test]
fn more_fairness_is_better() {
    let of = |value| side("fairness_jain", value, Some((value, value)));
    let settings = Settings::default();
    assert_eq!(judged("native", &of(1.0), &of(0.6), &settings), Verdict::Regressed);
    assert_eq!(judged("native", &of(0.6), &of(1.0), &settings), Verdict::Improved);
}

#[test]
fn disturbed_points_and_single_repetitions_prove_no_change() {
    let settings = Settings::default();
    let old = side("ns_per_op", 100.0, Some((99.0, 101.0)));
    let mut new = side("ns_per_op", 200.0, Some((199.0, 201.0)));
    assert_eq!(judged("native", &old, &new, &settings), Verdict::Regressed);
    new.status = Status::Noisy;
    assert_eq!(judged("native", &old, &new, &settings), Verdict::Inconclusive);
    new.status = Status::Ok;
    new.repeat = 1;
    assert_eq!(judged("native", &old, &new, &settings), Verdict::Inconclusive);
    assert_eq!(judged("native", &new, &new, &settings), Verdict::Equal);
}

#[test]
fn simulated_times_tie_inside_the_band() {
    let settings = Settings::default();
    let of = |value, ends| side("ns_per_op", value, ends);
    let old = of(100.0, Some((80.0, 120.0)));
    let cases = [
        (of(118.0, Some((90.0, 140.0))), Verdict::Equal),
        (of(200.0, Some((160.0, 240.0))), Verdict::Regressed),
        (of(50.0, Some((40.0, 60.0))), Verdict::Improved),
        // Without a band, the factor.
        (of(149.0, None), Verdict::Equal),
        (of(151.0, None), Verdict::Regressed),
        (of(66.0, None), Verdict::Improved),
    ];
    for (new, verdict) in cases {
        assert_eq!(judged("simulated", &old, &new, &settings), verdict, "{new:?}");
    }
    let exact = Settings { model_factor: 1.0, ..settings };
    assert_eq!(judged("simulated", &of(9.0, None), &of(9.1, None), &exact), Verdict::Regressed);
}

#[test]
fn barriers_keep_apart_what_cannot_be_compared() {
    let settings = Settings::default();
    let (old, new) = (side("ns_per_op", 1.0, Some((0.9, 1.1))), side("ns_per_op", 9.0, None));
    let hosts = Barriers { times: true, ..Barriers::default() };
    let found = pair(&old, &new, ("native", 1), &hosts, &settings);
    assert_eq!((found.refused, found.compared, found.different.len()), (1, 0, 0));
    // Nobody's host matters to what is simulated.
    assert_eq!(pair(&old, &new, ("simulated", 1), &hosts, &settings).refused, 0);
    let machine = Barriers { machine: true, ..Barriers::default() };
    assert_eq!(pair(&old, &new, ("simulated", 1), &machine, &settings).refused, 1);
    let (old, new) = (side("rmw_per_op", 1.0, None), side("rmw_per_op", 2.0, None));
    assert_eq!(pair(&old, &new, ("callgrind", 1), &hosts, &settings).different.len(), 1);
}

/// Two medians of five repetitions of the same thing, many times: false alarms are as rare as they
/// were asked to be, and a doubling is seen.
#[test]
fn false_alarms_are_rare_and_changes_are_found() {
    let settings = Settings { margin: 0.0, ..Settings::default() };
    let mut random = SplitMix(7);
    let mut measured = |scale: f64| {
        let mut sample = || {
            // Twelve uniform numbers make a normal one.
            let sum: f64 = (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum();
            scale * (0.05 * (sum - 6.0)).exp()
        };
        let samples: Vec<f64> = (0..5).map(|_| sample()).collect();
        let found = median_with_interval(&samples, 3).unwrap();
        side("ns_per_op", found.value, Some((found.low, found.high)))
    };
    let rounds = 400;
    let mut alarms = 0;
    let mut found = 0;
    for _ in 0..rounds {
        let (old, same, double) = (measured(10.0), measured(10.0), measured(20.0));
        let changed = |verdict| verdict == Verdict::Regressed || verdict == Verdict::Improved;
        alarms += u32::from(changed(judged("native", &old, &same, &settings)));
        found += u32::from(judged("native", &old, &double, &settings) == Verdict::Regressed);
    }
    println!("{alarms} false alarms and {found} changes found in {rounds}");
    assert!(f64::from(alarms) <= f64::from(rounds) * 0.06, "{alarms} of {rounds}");
    assert!(found * 100 >= rounds * 99, "{found} of {rounds}");
}

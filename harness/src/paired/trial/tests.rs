use super::*;

fn uniform(random: &mut SplitMix) -> f64 {
    (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30)
}

fn normal(random: &mut SplitMix) -> f64 {
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

type Noise = fn(&mut SplitMix) -> f64;

/// Pairs of the looks of an experiment.
const PAIRS: [usize; 4] = [12, 12, 24, 48];

/// Runs a trial of variants whose ratio at a process and pair is the exponential of `ln_ratio`.
fn trial(
    settings: Settings,
    variants: usize,
    processes: usize,
    mut ln_ratio: impl FnMut(usize, usize, usize) -> f64,
) -> Vec<Finding> {
    let mut trial = Trial::new(variants, settings);
    let mut at = 0;
    for (look, pairs) in PAIRS.into_iter().enumerate() {
        for process in 0..processes {
            for _ in 0..pairs.div_ceil(processes) {
                for variant in 0..variants {
                    let process = if processes == 1 { 0 } else { look * processes + process };
                    trial.add(variant, process, [ln_ratio(variant, process, at).exp()]);
                }
                at += 1;
            }
        }
        if trial.look() {
            break;
        }
    }
    (0..variants).map(|variant| trial.finding(variant)).collect()
}

fn differs(finding: &Finding) -> bool {
    matches!(finding.verdict, Some(Verdict::Faster | Verdict::Slower))
}

/// Counts the experiments in which some variant that is A was called faster or slower.
fn false_alarms(experiments: u64, variants: usize, processes: usize, noise: Noise) -> u64 {
    let settings = Settings { margin: 0.0, ..Settings::default() };
    let wrong = (0..experiments).filter(|&seed| {
        let mut random = SplitMix(seed * 7919 + 1);
        trial(settings, variants, processes, |_, _, _| noise(&mut random)).iter().any(differs)
    });
    wrong.count() as u64
}

/// Without any margin, and looking four times: what is the same is called different in at most
/// α of the experiments. 2400 experiments at α = 0.05: 120, and three standard deviations are 32.
#[test]
fn the_same_is_hardly_ever_called_different() {
    let (experiments, most) = (2400, 120);
    let noises: [(&str, Noise); 4] = [
        ("normal", |random| 0.05 * normal(random)),
        ("heavy-tailed", |random| 0.01 * normal(random) / normal(random).abs().max(1e-6)),
        ("bimodal", |random| if random.below(2) == 0 { -0.1 } else { 0.1 } + 0.01 * normal(random)),
        ("skewed", |random| -0.01 * (uniform(random).ln() + std::f64::consts::LN_2)),
    ];
    for (name, noise) in noises {
        let wrong = false_alarms(experiments, 1, 1, noise);
        println!("{name}: {wrong} of {experiments}");
        assert!(wrong <= most, "{name}: {wrong} of {experiments}");
    }
    let several = false_alarms(experiments, 5, 1, |random| 0.05 * normal(random));
    println!("five variants: {several} of {experiments}");
    assert!(several <= most, "five variants: {several} of {experiments}");
}

/// Each process has a layout of its own, which its pairs share: pairs alone would be fooled.
#[test]
fn processes_that_differ_are_not_taken_for_variants_that_do() {
    let settings = Settings { margin: 0.0, ..Settings::default() };
    let wrong = |processes: usize| {
        let experiments = (0..2000).filter(|&seed| {
            let mut random = SplitMix(seed * 104_729 + 3);
            let layout: Vec<f64> = (0..64).map(|_| 0.05 * normal(&mut random)).collect();
            let ratio = |_, process: usize, _| layout[process] + 0.005 * normal(&mut random);
            trial(settings, 1, processes, ratio).iter().any(differs)
        });
        experiments.count()
    };
    let (one, five) = (wrong(1), wrong(5));
    println!("one process: {one}, five: {five} of 2000");
    assert!(one > 1000, "one process sees one layout: {one}");
    assert!(five <= 100, "{five} of 2000");
}

#[test]
fn changes_are_found_and_their_direction_is_right() {
    for (change, verdict) in [(0.1, Verdict::Slower), (-0.1, Verdict::Faster)] {
        let found = (0..500).filter(|&seed| {
            let mut random = SplitMix(seed + 11);
            let ratio = |_, _, _| change + 0.08 * normal(&mut random);
            trial(Settings::default(), 1, 1, ratio)[0].verdict == Some(verdict)
        });
        let found = found.count();
        assert!(found >= 490, "{verdict:?}: {found} of 500");
    }
}

#[test]
fn what_is_near_is_called_equal_and_what_is_at_the_margin_is_not_decided() {
    let count = |change: f64, wanted: Verdict| {
        let of = |seed: u64| {
            let mut random = SplitMix(seed + 23);
            trial(Settings::default(), 1, 1, |_, _, _| change + 0.01 * normal(&mut random))
        };
        (0..500).filter(|&seed| of(seed)[0].verdict == Some(wanted)).count()
    };
    assert!(count(0.0, Verdict::Equal) >= 495);
    assert!(count(0.01, Verdict::Equal) >= 490);
    assert_eq!(count(0.06, Verdict::Equal), 0);
    assert!(count(0.06, Verdict::Slower) >= 490);
}

#[test]
fn constant_ratios_are_decided_at_once() {
    for (change, verdict) in [
        (0.0, Verdict::Equal),
        (0.02, Verdict::Equal),
        (0.5, Verdict::Slower),
        (-0.5, Verdict::Faster),
    ] {
        for processes in [1, 4] {
            let found = trial(Settings::default(), 1, processes, |_, _, _| change)[0];
            assert_eq!(found.verdict, Some(verdict), "{change} in {processes}");
            assert_eq!((found.pairs, found.flags), (12, Flags::default()));
            assert!([found.ratio, found.low, found.high, found.p].iter().all(|x| x.is_finite()));
        }
    }
}

#[test]
fn two_modes_and_drifts_are_inconclusive_unless_both_parts_agree() {
    let mut random = SplitMix(3);
    let bimodal = |low: f64, high: f64| {
        move |_: usize, _: usize, at: usize| if at.is_multiple_of(3) { high } else { low }
    };
    let settings = Settings::default();
    let both_slower = trial(settings, 1, 1, bimodal(0.2, 0.5))[0];
    assert_eq!(both_slower.verdict, Some(Verdict::Slower));
    assert!(both_slower.flags.modes.is_some());
    let one_slower = trial(settings, 1, 1, bimodal(0.2, -0.2))[0];
    assert_eq!(one_slower.verdict, Some(Verdict::Inconclusive));
    // From somewhat faster to much slower: the median means nothing.
    let drifts = |_, _, at: usize| -0.04 + 0.003 * at as f64 + 0.06 * normal(&mut random);
    let drifting = trial(settings, 1, 1, drifts)[0];
    assert!(drifting.flags.drift.is_some(), "{drifting:?}");
    assert_eq!(drifting.verdict, Some(Verdict::Inconclusive));
}

#[test]
fn small_changes_are_not_believed_below_the_noise_floor() {
    let settings = Settings { floor: 0.2, ..Settings::default() };
    let found = trial(settings, 1, 1, |_, _, _| 0.1)[0];
    assert_eq!(found.verdict, Some(Verdict::Inconclusive));
    assert_eq!(trial(settings, 1, 1, |_, _, _| 0.3)[0].verdict, Some(Verdict::Slower));
    assert_eq!(trial(settings, 1, 1, |_, _, _| 0.0)[0].verdict, Some(Verdict::Equal));
}

#[test]
fn what_is_no_ratio_is_left_out_and_nothing_is_inconclusive() {
    let mut trial = Trial::new(1, Settings::default());
    trial.add(0, 0, [f64::NAN, 0.0, -1.0, f64::INFINITY, 1.0]);
    (0..3).for_each(|_| assert!(!trial.look()));
    assert!(trial.look() && trial.look());
    let found = trial.finding(0);
    assert_eq!((found.verdict, found.pairs), (Some(Verdict::Inconclusive), 1));
    let mut empty = Trial::new(1, Settings { looks: 1, ..Settings::default() });
    assert_eq!(empty.estimate(0, 1), None);
    assert!(empty.look());
    assert_eq!(empty.finding(0).verdict, Some(Verdict::Inconclusive));
}

#[test]
fn bootstrap_intervals_of_processes_are_wider_than_those_of_their_samples() {
    let mut random = SplitMix(17);
    let processes: Vec<Vec<f64>> = (0..6)
        .map(|_| {
            let layout = normal(&mut random);
            (0..20).map(|_| layout + 0.1 * normal(&mut random)).collect()
        })
        .collect();
    let together = interval(&processes, 1).unwrap();
    let pooled = interval(&[processes.concat()], 1).unwrap();
    assert_eq!(together.value, pooled.value);
    assert!(together.high - together.low > 2.0 * (pooled.high - pooled.low));
    assert_eq!(interval(&processes, 1), interval(&processes, 1));
}

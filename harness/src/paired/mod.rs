//! Is B faster than A? Windows of both in turn, their ratios, and a rule that says when it is known.
//!
//! Whatever drifts meets both windows of a pair alike, so the ratio of a pair is steadier than either
//! time. [`Trial`] takes ratios from wherever they come and decides; it measures nothing and draws
//! nothing at random. [`windows`] measures pairs natively.
//!
//! # The rule
//! Ratios are looked at a fixed number of times, and each look spends an equal part of α, so that
//! looking often does not find what is not there. At a look the change is put between two order
//! statistics of the ratios, which hold the median whatever the distribution is (the sign test's
//! interval). With several processes the interval also holds Student's interval of the processes'
//! medians, since layout of memory differs between processes and not within one. B is *slower* or
//! *faster* when the sign test says so, corrected for the looks and for how many variants are
//! compared with A (Holm), and the change is beyond margin and noise floor; *equal* when the whole
//! interval lies within the margin. Otherwise the trial goes on, and is *inconclusive* after the last
//! look. So is one whose ratios have two modes, or drift, when the parts would get other verdicts.
//!
//! ```
//! use harness::paired::{Settings, Trial, Verdict};
//! let mut trial = Trial::new(1, Settings { margin: 0.02, ..Settings::default() });
//! // B takes 10 % more, give or take 1 %.
//! let ratios: Vec<f64> = (0..12).map(|at| 1.10 + 0.001 * f64::from(at % 10 - 5)).collect();
//! trial.add(0, 0, ratios);
//! assert!(trial.look());
//! assert_eq!(trial.finding(0).verdict, Some(Verdict::Slower));
//! ```

mod order;
mod shape;
mod trial;
pub mod windows;

pub use shape::Flags;
pub use trial::{Finding, Settings, Trial, Verdict, interval};

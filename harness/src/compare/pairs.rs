//! Pairs points of the newer file with those of the older one.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use super::figures::{Figures, Place, Store};
use super::judge::{self, Barriers, Finding, Findings, Settings, Side, Verdict};
use super::names::{Identity, Names};
use super::reader::{Input, Origin, Taken, barriers};
use super::{Alone, Comparison, Pair, Tally};
use crate::light::Light;
use crate::records::Status;
use crate::stats::holm;

/// So many pairs that are equal are kept by name.
const EQUAL_KEPT: u64 = 20_000;
/// So many other pairs are kept by name.
const OTHERS_KEPT: u64 = 200_000;
/// So many points that only one file has are kept by name.
const ALONE_KEPT: usize = 20_000;

/// So many notes of hosts and builds that differ are told.
const NOTES_KEPT: usize = 20;

/// No position in a table.
const NONE: u32 = u32::MAX;

/// A point of the older file.
#[derive(Debug)]
struct Slot {
    identity: Identity,
    host: u64,
    place: Place,
    /// Another host's point of the same identity.
    next: u32,
    origin: u32,
    repeat: u32,
    status: Status,
    matched: bool,
}

/// The points of the older file, by what they are.
#[derive(Debug, Default)]
pub(super) struct Known {
    slots: Vec<Slot>,
    first: HashMap<Identity, u32>,
    store: Store,
}

/// Whose a point is: natively the host's, otherwise nobody's.
fn host(light: &Light<Figures>, origin: Option<(u32, &Origin)>) -> u64 {
    match origin {
        Some((_, origin)) if light.engine == "native" => origin.whose,
        _ => 0,
    }
}

impl Known {
    /// Keeps a point, in the place of an earlier one if there is one.
    pub(super) fn put(
        &mut self,
        identity: Identity,
        light: &Light<Figures>,
        origin: Option<(u32, &Origin)>,
    ) -> Taken {
        let host = host(light, origin);
        let place = self.store.put(&light.metrics);
        let slot = Slot {
            identity,
            host,
            place,
            next: NONE,
            origin: origin.map_or(NONE, |(at, _)| at),
            repeat: u32::try_from(light.repeat).unwrap_or(u32::MAX),
            status: light.status,
            matched: false,
        };
        if let Some(at) = self.of_host(identity, host) {
            let next = self.slots[at].next;
            self.slots[at] = Slot { next, ..slot };
            return Taken::Again;
        }
        let at = self.slots.len() as u32;
        let next = self.first.insert(identity, at).unwrap_or(NONE);
        self.slots.push(Slot { next, ..slot });
        Taken::First
    }

    fn of_host(&self, identity: Identity, host: u64) -> Option<usize> {
        let mut at = *self.first.get(&identity)?;
        while at != NONE {
            let slot = &self.slots[at as usize];
            if slot.host == host {
                return Some(at as usize);
            }
            at = slot.next;
        }
        None
    }

    /// The same host's point, else another host's.
    fn partner(&self, identity: Identity, host: u64) -> Option<usize> {
        let any = || self.first.get(&identity).map(|&at| at as usize);
        self.of_host(identity, host).or_else(any)
    }
}

/// What became of a point of the newer file.
#[derive(Debug)]
struct Outcome {
    identity: Identity,
    /// Its partner in the older file, or [`NONE`].
    slot: u32,
    verdict: Verdict,
    compared: u32,
    tests: u32,
    refused: u32,
    detail: Option<Box<Detail>>,
}

#[derive(Debug)]
struct Detail {
    why: &'static str,
    findings: Vec<Finding>,
}

/// The comparison while the newer file is read.
pub(super) struct Pairing<'a> {
    names: Names,
    known: Known,
    old_origins: &'a [Origin],
    settings: &'a Settings,
    outcomes: Vec<Outcome>,
    at: HashMap<(Identity, u64), u32>,
    barriers: HashMap<(u32, u32), Barriers>,
    notes: Vec<String>,
    noted: HashSet<String>,
}

impl<'a> Pairing<'a> {
    pub(super) fn new(
        names: Names,
        known: Known,
        old_origins: &'a [Origin],
        settings: &'a Settings,
    ) -> Self {
        Self {
            names,
            known,
            old_origins,
            settings,
            outcomes: Vec::new(),
            at: HashMap::new(),
            barriers: HashMap::new(),
            notes: Vec::new(),
            noted: HashSet::new(),
        }
    }

    /// Judges a point of the newer file; a later one of the same kind takes its place.
    pub(super) fn take(&mut self, light: &Light<Figures>, origin: Option<(u32, &Origin)>) -> Taken {
        let identity = self.names.identity(light);
        let host = host(light, origin);
        let outcome = match self.known.partner(identity, host) {
            Some(slot) => self.judge(identity, slot, light, origin),
            None => Outcome {
                identity,
                slot: NONE,
                verdict: Verdict::Unmeasured,
                compared: 0,
                tests: 0,
                refused: 0,
                detail: None,
            },
        };
        match self.at.entry((identity, host)) {
            Entry::Occupied(at) => {
                self.outcomes[*at.get() as usize] = outcome;
                Taken::Again
            }
            Entry::Vacant(at) => {
                at.insert(self.outcomes.len() as u32);
                self.outcomes.push(outcome);
                Taken::First
            }
        }
    }

    fn judge(
        &mut self,
        identity: Identity,
        at: usize,
        light: &Light<Figures>,
        origin: Option<(u32, &Origin)>,
    ) -> Outcome {
        let slot = &mut self.known.slots[at];
        slot.matched = true;
        let old = Side {
            status: slot.status,
            repeat: slot.repeat.into(),
            figures: Cow::Owned(self.known.store.get(slot.place)),
        };
        let figures = Cow::Borrowed(&light.metrics);
        let new = Side { status: light.status, repeat: light.repeat, figures };
        let key = (slot.origin, origin.map_or(NONE, |(at, _)| at));
        let between = self.barriers.entry(key).or_insert_with(|| {
            let old = self.old_origins.get(key.0 as usize);
            let allowed = self.settings.allow_different_hosts;
            let (barriers, notes) = barriers(old, origin.map(|(_, origin)| origin), allowed);
            for note in notes {
                if self.noted.insert(note.clone()) && self.noted.len() <= NOTES_KEPT {
                    self.notes.push(note);
                }
            }
            barriers
        });
        let (found, without) = match without_figures(old.status, new.status) {
            Some(without) => (Findings::default(), Some(without)),
            None => {
                let engine = self.names.engine(identity);
                (judge::pair(&old, &new, engine, between, self.settings), None)
            }
        };
        let (verdict, why) = without.unwrap_or_else(|| sum(&found));
        let detail = (!found.different.is_empty() || !why.is_empty())
            .then(|| Box::new(Detail { why, findings: found.different }));
        let (compared, tests, refused) = (found.compared, found.tests, found.refused);
        Outcome { identity, slot: at as u32, verdict, compared, tests, refused, detail }
    }

    /// Corrects for the number of tests, and gives the comparison.
    pub(super) fn finish(mut self, old: Input, new: Input) -> Comparison {
        if self.noted.len() > NOTES_KEPT {
            let more = self.noted.len() - NOTES_KEPT;
            self.notes.push(format!("{more} more differences between hosts and builds"));
        }
        let tests = self.outcomes.iter().map(|outcome| u64::from(outcome.tests)).sum();
        self.correct(tests);
        let mut comparison = Comparison {
            old,
            new,
            tally: Tally::default(),
            pairs: Vec::new(),
            left_out: 0,
            only_old: Alone::default(),
            only_new: Alone::default(),
            tests,
            refused: self.outcomes.iter().map(|outcome| u64::from(outcome.refused)).sum(),
            notes: self.notes,
        };
        let (mut equal, mut others) = (0, 0);
        for outcome in self.outcomes {
            let name = || self.names.name(outcome.identity);
            if outcome.slot == NONE {
                alone(&mut comparison.only_new, name);
                continue;
            }
            comparison.tally.count(outcome.verdict);
            let (kept, most) = match outcome.verdict {
                Verdict::Equal => (&mut equal, EQUAL_KEPT),
                _ => (&mut others, OTHERS_KEPT),
            };
            if *kept == most {
                comparison.left_out += 1;
                continue;
            }
            *kept += 1;
            let (why, findings) =
                outcome.detail.map_or(("", Vec::new()), |detail| (detail.why, detail.findings));
            comparison.pairs.push(Pair {
                name: name(),
                verdict: outcome.verdict,
                why: why.into(),
                compared: outcome.compared,
                findings,
            });
        }
        for slot in self.known.slots.iter().filter(|slot| !slot.matched) {
            alone(&mut comparison.only_old, || self.names.name(slot.identity));
        }
        comparison
    }

    /// Takes back what does not stand once it is one of many tests.
    fn correct(&mut self, tests: u64) {
        let alpha = self.settings.alpha;
        let changed = |finding: &&mut Finding| {
            finding.p.is_some() && finding.verdict != Verdict::Inconclusive
        };
        let details = self.outcomes.iter_mut().filter_map(|outcome| outcome.detail.as_mut());
        let ps: Vec<f64> = details
            .flat_map(|detail| &mut detail.findings)
            .filter(changed)
            .filter_map(|finding| finding.p)
            .collect();
        let mut corrected = holm(&ps, tests).into_iter();
        for outcome in &mut self.outcomes {
            let Some(detail) = &mut outcome.detail else { continue };
            for finding in detail.findings.iter_mut().filter(changed) {
                let p = corrected.next().unwrap_or(1.0);
                finding.p = Some(p);
                if p > alpha {
                    finding.verdict = Verdict::Inconclusive;
                    finding.why = format!("one of {tests} tests; {}", finding.why).into();
                }
            }
            let worst = detail.findings.iter().map(|finding| finding.verdict).max();
            outcome.verdict = worst.unwrap_or(outcome.verdict);
        }
    }
}

/// The verdict on two points of which one has no figures.
fn without_figures(old: Status, new: Status) -> Option<(Verdict, &'static str)> {
    use Status::{Broken, Noisy, Ok, Unavailable};
    Some(match (old, new) {
        (Ok | Noisy, Ok | Noisy) => return None,
        (Broken, Broken) => (Verdict::Unmeasured, "broken in both"),
        (_, Broken) => (Verdict::Regressed, "broken now"),
        (Broken, Ok | Noisy) => (Verdict::Improved, "was broken"),
        (Ok | Noisy, Unavailable) => (Verdict::Inconclusive, "unavailable now"),
        (Unavailable, Ok | Noisy) => (Verdict::Unmeasured, "was unavailable"),
        (Broken | Unavailable, Unavailable) => (Verdict::Unmeasured, "unavailable"),
    })
}

/// The verdict on a pair: the worst of its figures'.
fn sum(found: &Findings) -> (Verdict, &'static str) {
    let worst = found.different.iter().map(|finding| finding.verdict).max();
    match worst {
        Some(Verdict::Regressed) => (Verdict::Regressed, ""),
        _ if found.refused > 0 => (Verdict::Inconclusive, "hosts or builds differ"),
        Some(worst) => (worst, ""),
        None if found.compared == 0 => (Verdict::Inconclusive, "no figure to compare"),
        None => (Verdict::Equal, ""),
    }
}

fn alone(alone: &mut Alone, name: impl FnOnce() -> super::Name) {
    alone.points += 1;
    if alone.names.len() < ALONE_KEPT {
        alone.names.push(name());
    }
}

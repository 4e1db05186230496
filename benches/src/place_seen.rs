//! What a simulated machine saw of the rows' bytes, each row in a process of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::layout::{Lines, Seen, SeenFinding};
use harness::native::Failure as Broken;
use harness::placement::Placement;
use harness::simulated::child::{Answer, Ended, Follow, Pool, RANDOMISED};
use harness::unavailable::Unavailable;
use harness::workload::Workload;
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::place::Complaint;
use crate::rows::Variant;
use crate::simulated_words::SimulatedWords;
use crate::sweep_command::catch_signals;
use crate::target::Target;

/// Bytes of a line of every simulated machine.
const LINE: usize = 64;

/// The machines: one that prefetches pairs of lines, and one that does not.
const WITH_PAIRS: &str = "xeon-8176-8s";
const WITHOUT_PAIRS: &str = "epyc-7742-2s";

/// Threads, where a row bears so many, and operations of each.
const THREADS: usize = 4;
const OPS: u64 = 256;

/// Real time after which a row is given up.
const LIMIT: Duration = Duration::from_secs(120);

/// What became of a row.
pub(crate) enum Sight {
    /// It was not asked for.
    LeftOut,
    /// This is what was seen.
    Seen(Seen),
    /// It cannot be simulated here.
    Unavailable(Unavailable),
    /// It failed when it was simulated.
    Broken(String),
}

/// What was seen of a row, and where.
pub(crate) struct Sighting {
    pub(crate) machine: &'static str,
    pub(crate) threads: usize,
    pub(crate) sight: Sight,
    /// Whether figures are the same each time.
    pub(crate) fixed_addresses: bool,
}

impl Sighting {
    pub(crate) fn new(machine: &'static str, threads: usize, sight: Sight) -> Self {
        Self { machine, threads, sight, fixed_addresses: true }
    }

    /// Rows that are not simulated.
    pub(crate) fn left_out(rows: usize) -> Vec<Self> {
        (0..rows).map(|_| Self::new("", 0, Sight::LeftOut)).collect()
    }

    /// Whether the machine saw nothing wrong, though it looked.
    pub(crate) fn is_clean(&self) -> bool {
        matches!(&self.sight, Sight::Seen(seen) if seen.findings.is_empty())
    }

    /// Gives what is wrong with a row of so many declared fields.
    pub(crate) fn complaints(&self, fields: usize) -> Vec<Complaint> {
        match &self.sight {
            Sight::LeftOut | Sight::Unavailable(_) => Vec::new(),
            Sight::Broken(reason) => {
                vec![complaint("broken", format!("simulated: {reason}"))]
            }
            Sight::Seen(seen) if seen.fields == 0 && fields > 0 => vec![complaint(
                "not_used",
                "simulated: no declared field was used; describe the object that the threads have"
                    .to_owned(),
            )],
            Sight::Seen(seen) => seen.findings.iter().map(told).collect(),
        }
    }

    /// Gives why nothing was seen, or what weakens it.
    pub(crate) fn unavailable(&self) -> Option<Unavailable> {
        match &self.sight {
            Sight::Unavailable(reason) => Some(reason.clone()),
            _ if self.fixed_addresses => None,
            _ => Some(Unavailable::because("addresses_randomised", RANDOMISED)),
        }
    }

    /// The table's column.
    pub(crate) fn cell(&self) -> String {
        match &self.sight {
            Sight::LeftOut | Sight::Unavailable(_) => "-".to_owned(),
            Sight::Broken(_) => "broken".to_owned(),
            Sight::Seen(seen) => seen.findings.len().to_string(),
        }
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        match &self.sight {
            Sight::LeftOut => json!({ "unavailable": "not_asked_for" }),
            Sight::Unavailable(reason) => json!(reason),
            Sight::Broken(reason) => {
                json!({ "machine": self.machine, "threads": self.threads, "broken": reason })
            }
            Sight::Seen(seen) => json!({
                "machine": self.machine, "threads": self.threads, "ops": OPS,
                "fields": seen.fields, "lines": seen.lines, "findings": seen.findings.len(),
            }),
        }
    }
}

fn complaint(kind: &str, text: String) -> Complaint {
    let detail = json!({ "kind": kind, "text": text });
    Complaint { text, detail }
}

fn told(finding: &SeenFinding) -> Complaint {
    let mut detail = json!(finding);
    if let Some(detail) = detail.as_object_mut() {
        detail.insert("address".to_owned(), format!("{:#x}", finding.address).into());
        detail.insert("remedy".to_owned(), finding.remedy().into());
    }
    Complaint { text: finding.to_string(), detail }
}

/// Simulates rows on a machine with such lines.
///
/// # Errors
/// When no process can be begun, or somebody interrupted.
pub(crate) fn sightings(variants: &[Variant], lines: Lines) -> Result<Vec<Sighting>, Failure> {
    let machine = if lines.pair.is_some() { WITH_PAIRS } else { WITHOUT_PAIRS };
    let workloads: Vec<(usize, Workload)> = variants.iter().map(workload).collect();
    if lines.line != LINE {
        let why = format!("simulated machines have lines of {LINE} bytes, not {}", lines.line);
        let reason = Unavailable::because("line_not_simulated", why);
        let sighting = |_| Sighting::new(machine, 0, Sight::Unavailable(reason.clone()));
        return Ok(variants.iter().map(sighting).collect());
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let target = Target::of(Some(machine), None)?;
    let jobs = variants.iter().zip(&workloads).map(|(variant, (threads, workload))| {
        let words = SimulatedWords {
            target: &target,
            primitive: variant.row.primitive,
            variant: variant.row.id,
            threads: *threads,
            placement: &Placement::Scatter,
            ops: OPS,
            seed: 1,
            workload,
        };
        let more = ["--place".to_owned()];
        Some(words.words().into_iter().chain(more).collect())
    });
    let jobs: Vec<Option<Vec<String>>> = jobs.collect();
    let program = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    let mut rest = Rest { machine, workloads: &workloads, interrupted, sightings: Vec::new() };
    let outcome = Pool::new(&program, None, LIMIT).run(&jobs, &mut rest);
    match outcome.map_err(|error| Failure::Failed(error.to_string()))? {
        true => Err(Failure::Interrupted("interrupted; nothing is kept".into())),
        false => Ok(rest.sightings.into_iter().zip(variants).map(without_blocks).collect()),
    }
}

/// Queues whose blocks come and go while they are used: what lies outside of declared fields may be
/// one that is gone, with something else in its place.
const BLOCKS_COME_AND_GO: [&str; 3] =
    ["deque_chase_lev_growing", "mpmc_segmented", "spsc_unbounded"];

/// Takes out what is not known of a row whose blocks come and go.
fn without_blocks((mut sighting, variant): (Sighting, &Variant)) -> Sighting {
    if let Sight::Seen(seen) = &mut sighting.sight
        && BLOCKS_COME_AND_GO.contains(&variant.row.id)
    {
        seen.findings.retain(|finding| !finding.what.ends_with("in no field"));
    }
    sighting
}

/// How many threads a row bears, and what they do.
fn workload(variant: &Variant) -> (usize, Workload) {
    let single =
        |name: &str| variant.properties.iter().any(|(key, of)| *key == name && of == "single");
    let side = |name| single(name).then_some(1);
    let (producers, consumers) = (side("producers"), side("consumers"));
    let threads = if producers.and(consumers).is_some() { 2 } else { THREADS };
    let workload = Workload {
        critical_ns: 20,
        think_ns: 50,
        read_percent: 10,
        capacity: 64,
        producers,
        consumers,
        ..Workload::default()
    };
    (threads, workload)
}

fn sight(outcome: Result<Seen, Broken>) -> Sight {
    match outcome {
        Ok(seen) => Sight::Seen(seen),
        Err(Broken::Broken(reason)) => Sight::Broken(reason),
        Err(Broken::Unavailable(reason)) => Sight::Unavailable(reason),
    }
}

struct Rest<'a> {
    machine: &'static str,
    workloads: &'a [(usize, Workload)],
    interrupted: Arc<AtomicBool>,
    sightings: Vec<Sighting>,
}

impl Follow for Rest<'_> {
    fn stop(&mut self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    fn ended(&mut self, _: usize) {}

    fn result(&mut self, job: usize, ended: Ended) -> io::Result<()> {
        let (fixed_addresses, sight) = match ended {
            Ended::Answered(said) => match Answer::<Seen>::parse(&said) {
                Ok(answer) => (answer.fixed_addresses, sight(answer.outcome())),
                Err(reason) => (true, Sight::Broken(reason)),
            },
            Ended::Failed(reason) => (true, Sight::Broken(reason)),
            Ended::Killed | Ended::Nothing => {
                (true, Sight::Unavailable(Unavailable::new("not_simulated")))
            }
        };
        let (threads, _) = self.workloads[job];
        let sighting = Sighting::new(self.machine, threads, sight);
        self.sightings.push(Sighting { fixed_addresses, ..sighting });
        Ok(())
    }
}

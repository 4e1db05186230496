//! `manycore place`: whether what different threads write lies on lines of its own, and pages
//! where they were asked for.

use clap::Args;
use comfy_table::{CellAlignment, Table, presets};
use harness::line_sizes::{self, Chosen, Pair};
use harness::placement::ThreadCounts;
use serde_json::{Value, json};
use topology::Topology;

use crate::exit::Failure;
use crate::place::{Ask, Complaint, Examined, MOST};
use crate::place_seen::{Sighting, sightings};
use crate::rows::{self, PRIMITIVES, Variant};
use crate::{select, stdout};

/// What stands below the flags.
pub(crate) const HELP: &str = "\
Examples:
  manycore place
      every variant, with 1, 2, 3 ... 128 shards, slots and neighbours
  manycore place --primitive locks --variant 'mcs,t*' --shards 1,2,64
  manycore place --line 64 --pair none
      as on a machine that prefetches no pairs
  manycore place --line 128 --json
      as on POWER, one JSON object a row

  manycore place --variant mcs --no-simulate
      addresses only, who writes what is believed

Real objects are made and their addresses looked at. Then a few threads use one on a simulated
machine, and who wrote and touched which byte is compared with what the object declares. A variant
must have no finding; a control is built wrongly on purpose and must have one of each kind. docs/placement.md says what is checked, and how to
describe a type of your own.
Exit codes: 0 all is as it must be, 1 a variant has a finding or a control has none, 2 usage";

/// Findings that are shown of a row, and kept in its JSON.
const SHOWN: usize = 3;
const KEPT: usize = 50;

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct PlaceArgs {
    /// Only these: counters, locks, queues, alloc-arena
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    primitive: Vec<String>,
    /// Only these variants; `*` and `?` are wild
    #[arg(long, value_name = "GLOBS", value_delimiter = ',')]
    variant: Vec<String>,
    /// Bytes of a cache line [default: this machine's]
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_parser = line)]
    line: Option<usize>,
    /// Bytes of a pair of lines that is prefetched together, or none [default: this machine's]
    #[arg(long, value_name = "BYTES|none", allow_hyphen_values = true, value_parser = pair)]
    pair: Option<Pair>,
    /// Numbers of shards, slots and neighbours, from 1 to 128
    #[arg(long, value_name = "LIST", default_value = "1..128", allow_hyphen_values = true, value_parser = shards)]
    shards: Shards,
    /// Do not look, on a simulated machine, whether threads use bytes as declared
    #[arg(long)]
    no_simulate: bool,
    /// Print JSON, one row a line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone)]
struct Shards(Vec<usize>);

fn line(text: &str) -> Result<usize, String> {
    let bytes = text.parse().map_err(|_| format!("`{text}` is not a number of bytes; 64, say"))?;
    line_sizes::line_bytes(bytes)
}

fn pair(text: &str) -> Result<Pair, String> {
    match text {
        "none" => Ok(Pair::None),
        _ => text
            .parse()
            .map(Pair::Bytes)
            .map_err(|_| format!("`{text}` is not a number of bytes; two lines, 128 say, or none")),
    }
}

fn shards(text: &str) -> Result<Shards, String> {
    match text.parse::<ThreadCounts>() {
        Ok(ThreadCounts::These(counts)) => match counts.last() {
            Some(&last) if last > MOST => Err(format!("{last} is more than {MOST}")),
            _ => Ok(Shards(counts)),
        },
        Ok(ThreadCounts::Auto) => Err("write 1,2,4..16 or 1..128*2".into()),
        Err(error) => Err(error.replace(" or auto", "").replace("threads", "shards")),
    }
}

/// Controls that are wrong in something else than where their fields lie: they lie as variants must.
const WRONG_ELSEWHERE: [&str; 1] = ["lossy"];

fn kind(variant: &Variant) -> &'static str {
    if WRONG_ELSEWHERE.contains(&variant.row.id) { "variant" } else { variant.row.kind }
}

/// How a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Clean,
    Found,
    ControlFound,
    ControlClean,
    ControlUnseen,
    Undecided,
}

impl Verdict {
    /// A baseline describes nothing that threads use.
    fn of(kind: &str, examined: &Examined, sighting: &Sighting) -> Self {
        let found = !examined.complaints.is_empty();
        // What a control of pages does wrong is not in its lines.
        let shares =
            examined.complaints.iter().any(|complaint| complaint.detail["kind"] != "pages");
        let seen = !sighting.complaints(examined.fields).is_empty();
        match kind {
            "control" if shares && sighting.is_clean() => Self::ControlUnseen,
            "baseline" | "variant" if seen => Self::Found,
            "control" if found => Self::ControlFound,
            "control" if examined.undecided => Self::Undecided,
            "control" => Self::ControlClean,
            "baseline" if examined.fields > 0 => Self::Found,
            "variant" if examined.fields == 0 && !examined.undecided => Self::Found,
            _ if found => Self::Found,
            _ if examined.undecided => Self::Undecided,
            _ => Self::Clean,
        }
    }

    fn is_bad(self) -> bool {
        matches!(self, Self::Found | Self::ControlClean | Self::ControlUnseen)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Found => "found",
            Self::ControlFound => "control_found",
            Self::ControlClean => "control_clean",
            Self::ControlUnseen => "control_unseen",
            Self::Undecided => "undecided",
        }
    }

    fn text(self, kind: &str, padded: bool) -> &'static str {
        match (self, kind) {
            (Self::Clean, "variant") if padded => "clean, each in CachePadded",
            (Self::Clean, "baseline") => "baseline: describes nothing, as it must be",
            (Self::Clean, _) => "clean",
            (Self::Found, "baseline") => "BASELINE DESCRIBES OR SHARES FIELDS",
            (Self::Found, _) => "FOUND",
            (Self::ControlFound, _) => "control: found, as it must be",
            (Self::ControlClean, _) => "CONTROL: NOTHING FOUND",
            (Self::ControlUnseen, _) => "CONTROL: FOUND, BUT NOT SEEN WHEN SIMULATED",
            (Self::Undecided, _) => "cannot be decided here, see below",
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When the command line asks for what cannot be, or a row is not as it must be.
pub(crate) fn run(arguments: &PlaceArgs) -> Result<(), Failure> {
    let variants = select::variants(rows::all(), &arguments.primitive, &arguments.variant)?;
    let topology = Topology::this_host().map_err(|error| Failure::Failed(error.to_string()))?;
    let arch = std::env::consts::ARCH;
    let chosen = line_sizes::choose(&topology, arch, arguments.line, arguments.pair);
    let chosen = chosen.map_err(Failure::Usage)?;
    let nodes = topology.numa_nodes.iter().filter(|node| node.is_memoryless() != Some(true));
    let ask = Ask {
        lines: chosen.lines,
        counts: arguments.shards.0.clone(),
        nodes: nodes.map(|node| node.id).collect(),
    };
    let sightings = match arguments.no_simulate {
        true => Sighting::left_out(variants.len()),
        false => sightings(&variants, ask.lines)?,
    };
    let looked_at: Vec<LookedAt<'_>> = variants
        .iter()
        .zip(sightings)
        .map(|(variant, sighting)| LookedAt::new(variant, (variant.examine)(&ask), sighting))
        .collect();
    if arguments.json {
        for row in &looked_at {
            stdout::print(&row.json(&chosen).to_string())?;
        }
    } else {
        print(&looked_at, &chosen)?;
    }
    let bad: Vec<String> = looked_at.iter().filter_map(LookedAt::accusation).collect();
    if bad.is_empty() { Ok(()) } else { Err(Failure::Failed(bad.join("; "))) }
}

/// A row, and what is known of it.
struct LookedAt<'a> {
    variant: &'a Variant,
    examined: Examined,
    sighting: Sighting,
    /// What was wrong when it was simulated.
    seen: Vec<Complaint>,
    verdict: Verdict,
}

impl<'a> LookedAt<'a> {
    fn new(variant: &'a Variant, mut examined: Examined, sighting: Sighting) -> Self {
        let verdict = Verdict::of(kind(variant), &examined, &sighting);
        let seen = sighting.complaints(examined.fields);
        examined.unavailable.extend(sighting.unavailable());
        Self { variant, examined, sighting, seen, verdict }
    }

    fn name(&self) -> String {
        format!("{}/{}", self.variant.row.primitive, self.variant.row.id)
    }

    fn findings(&self) -> usize {
        self.examined.complaints.len() + self.seen.len()
    }

    /// What is not as it must be.
    fn accusation(&self) -> Option<String> {
        let name = self.name();
        self.verdict.is_bad().then(|| match self.verdict {
            Verdict::ControlClean => format!("control {name} has no finding"),
            Verdict::ControlUnseen => format!("control {name} has no finding when simulated"),
            _ => format!("{name} has {}", counted(self.findings(), "finding")),
        })
    }

    /// The first findings, what is known of pages, and what could not be seen.
    fn details(&self) -> Option<String> {
        let shown = if self.verdict == Verdict::ControlFound { 1 } else { SHOWN };
        let mut lines = Vec::new();
        for complaints in [&self.examined.complaints, &self.seen] {
            lines.extend(complaints.iter().take(shown).map(|complaint| complaint.text.clone()));
            if let Some(more @ 1..) = complaints.len().checked_sub(shown) {
                lines.push(format!("... and {more} more, up to {KEPT} with --json"));
            }
        }
        lines.extend(self.examined.pages.iter().cloned());
        let reasons = self.examined.unavailable.iter();
        lines.extend(reasons.map(|reason| format!("unavailable: {reason}")));
        (!lines.is_empty()).then(|| format!("{}\n  {}", self.name(), lines.join("\n  ")))
    }

    fn json(&self, chosen: &Chosen) -> Value {
        let Self { variant, examined, sighting, seen, verdict } = self;
        let first = |complaints: &[Complaint]| {
            complaints.iter().take(KEPT).map(|it| it.detail.clone()).collect::<Vec<Value>>()
        };
        let findings = [first(&examined.complaints), first(seen)].concat();
        json!({
            "primitive": variant.row.primitive,
            "variant": variant.row.id,
            "kind": kind(variant),
            "line_bytes": chosen.lines.line,
            "line_because": chosen.line_because,
            "pair_bytes": chosen.lines.pair,
            "pair_because": chosen.pair_because,
            "objects": examined.objects,
            "padded": examined.padded,
            "fields": examined.fields,
            "lines": examined.lines,
            "verdict": verdict.word(),
            "findings": self.findings(),
            "first_findings": findings,
            "simulated": sighting.json(),
            "pages": examined.pages,
            "unavailable": examined.unavailable,
        })
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn pair_text(pair: Option<usize>) -> String {
    pair.map_or_else(|| "none".to_owned(), |bytes| format!("{bytes} bytes"))
}

fn print(rows: &[LookedAt<'_>], chosen: &Chosen) -> Result<(), Failure> {
    let mut text = vec![format!(
        "line {} bytes: {}\npair {}: {}",
        chosen.lines.line,
        chosen.line_because,
        pair_text(chosen.lines.pair),
        chosen.pair_because
    )];
    for primitive in PRIMITIVES {
        let section: Vec<_> =
            rows.iter().filter(|row| row.variant.row.primitive == primitive).collect();
        if section.is_empty() {
            continue;
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["variant", "objects", "fields", "lines", "findings", "simulated", ""]);
        for LookedAt { variant, examined, sighting, verdict, .. } in section {
            table.add_row([
                variant.row.id.to_owned(),
                examined.objects.to_string(),
                examined.fields.to_string(),
                examined.lines.to_string(),
                examined.complaints.len().to_string(),
                sighting.cell(),
                verdict.text(kind(variant), examined.padded).to_owned(),
            ]);
        }
        for column in 1..6 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        text.push(format!("{primitive}\n{}", table.trim_fmt()));
    }
    let details: Vec<String> = rows.iter().filter_map(LookedAt::details).collect();
    text.extend((!details.is_empty()).then(|| details.join("\n")));
    stdout::print(&text.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use harness::layout::{Seen, SeenFinding, SeenKind};

    use super::*;
    use crate::place::Complaint;
    use crate::place_seen::Sight;

    #[test]
    fn verdicts() {
        let of = |kind, fields, complaints: usize, undecided| {
            let complaint = || Complaint { text: String::new(), detail: Value::Null };
            let complaints = std::iter::repeat_with(complaint).take(complaints).collect();
            let examined = Examined { fields, complaints, undecided, ..Examined::default() };
            Verdict::of(kind, &examined, &Sighting::left_out(1)[0])
        };
        assert_eq!(of("variant", 1, 0, false), Verdict::Clean);
        assert_eq!(of("variant", 1, 1, true), Verdict::Found);
        assert_eq!(of("variant", 0, 0, false), Verdict::Found);
        assert_eq!(of("variant", 1, 0, true), Verdict::Undecided);
        assert_eq!(of("control", 1, 1, true), Verdict::ControlFound);
        assert_eq!(of("control", 1, 0, true), Verdict::Undecided);
        assert_eq!(of("control", 1, 0, false), Verdict::ControlClean);
        assert_eq!(of("baseline", 0, 0, false), Verdict::Clean);
        assert_eq!(of("baseline", 1, 0, false), Verdict::Found);
        let bad = [Verdict::Found, Verdict::ControlClean, Verdict::ControlUnseen];
        let good = [Verdict::Clean, Verdict::ControlFound, Verdict::Undecided];
        assert!(bad.iter().all(|it| it.is_bad()) && !good.iter().any(|it| it.is_bad()));
    }

    /// What a simulated machine saw decides too; and what it did not see.
    #[test]
    fn verdicts_of_what_was_seen() {
        let finding = SeenFinding {
            kind: SeenKind::SharedFalsely,
            what: String::new(),
            with: None,
            address: 0,
            bytes: 1,
            writers: vec![0],
            readers: vec![1],
            place: None,
        };
        let of = |kind, complaints: &[&str], fields, found: bool| {
            let complaint =
                |kind: &&str| Complaint { text: String::new(), detail: json!({ "kind": kind }) };
            let complaints = complaints.iter().map(complaint).collect();
            let examined = Examined { fields: 1, complaints, ..Examined::default() };
            let findings = found.then(|| finding.clone()).into_iter().collect();
            let seen = Seen { fields, findings, lines: 1 };
            let sighting = Sighting::new("epyc-7742-2s", 4, Sight::Seen(seen));
            Verdict::of(kind, &examined, &sighting)
        };
        assert_eq!(of("variant", &[], 1, false), Verdict::Clean);
        assert_eq!(of("variant", &[], 1, true), Verdict::Found);
        assert_eq!(of("variant", &[], 0, false), Verdict::Found, "no field of it was used");
        assert_eq!(of("control", &["line"], 1, true), Verdict::ControlFound);
        assert_eq!(of("control", &["line"], 1, false), Verdict::ControlUnseen);
        assert_eq!(of("control", &["pages"], 1, false), Verdict::ControlFound);
    }

    #[test]
    fn numbers() {
        assert_eq!(line("64"), Ok(64));
        for bad in ["0", "48", "-64", "x", "", "16", "1024"] {
            assert!(line(bad).is_err(), "{bad}");
        }
        assert_eq!(pair("none"), Ok(Pair::None));
        for bad in ["some", "", "-1"] {
            assert!(pair(bad).is_err(), "{bad}");
        }
        for bad in ["0", "129", "1..129", "auto", "x", ""] {
            assert!(shards(bad).is_err(), "{bad}");
        }
    }
}

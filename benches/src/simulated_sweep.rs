//! `manycore sweep --engine simulated`: the points on a machine that is not here, each in a process
//! of its own.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use harness::simulated::child::Pool;
use harness::simulated::{self, Cores};
use harness::sweep::{self, Block, Row, Settings};
use topology::Topology;

use crate::cli::SweepArgs;
use crate::exit::Failure;
use crate::simulated_words::SimulatedWords;
use crate::stdout::note;
use crate::sweep_command::{catch_signals, header, list_points, points, report_same_as_before};
use crate::sweep_follower::Follower;
use crate::sweep_records::{MACHINE, Records};
use crate::target::Target;

/// Operations of each thread.
pub(crate) const OPS: u64 = 1024;

/// Real time after which a point is given up.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Runs the sweep.
///
/// # Errors
/// As `sweep_command::run`, and when the machine is unknown or its file is bad.
pub(crate) fn run(
    arguments: &SweepArgs,
    settings: Settings,
    host: &Topology,
) -> Result<(), Failure> {
    let target = Target::of(arguments.machine.as_deref(), arguments.cores)?;
    let settings = Settings { repeat: 1, ..settings };
    let plan = sweep::plan(&Cores::of(&target.machine), &settings)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let ops = arguments.ops.unwrap_or(OPS);
    if arguments.dry_run {
        list_points(&plan, arguments.json)?;
        let all = points(plan.points());
        note(&format!("{all} on {}, {ops} operations of each thread", target.name()));
        report_same_as_before(&plan);
        return Ok(());
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let mut header = header(host);
    header.other.insert(MACHINE.into(), target.description());
    let mut records = Records::open(arguments)?;
    let skip = records.measured_already(arguments, &header)?;
    records.write(&header)?;
    let mut follower = Follower::new(arguments, &plan, (1, None), records, interrupted);
    let program = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    let pool = Pool::new(&program, target.stdin()?, arguments.timeout.unwrap_or(TIMEOUT));
    let point = |block: &Block, row: &Row| words(&target, block, row, ops, settings.seed);
    let simulated = simulated::Settings {
        machine: &target.machine,
        machine_name: &target.name(),
        ops,
        sweep: &settings,
        arguments: &point,
    };
    let outcome = simulated::run(&pool, &plan, &simulated, &header.run, &skip, &mut follower);
    follower.finish(outcome, &plan)
}

/// The hidden command for one point.
fn words(target: &Target, block: &Block, row: &Row, ops: u64, seed: u64) -> Vec<String> {
    let words = SimulatedWords {
        target,
        primitive: row.primitive,
        variant: row.id,
        threads: block.threads,
        placement: &block.placement,
        ops,
        seed,
        workload: &block.workload,
    };
    words.words()
}

//! Runs the steps of scenarios, each in a process of its own, and hands on what came of them.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::clock::Clock;
use harness::native::Failure as Broken;
use harness::simulated::child::{Answer, Child, Ended, Follow, Pool, RANDOMISED};
use harness::simulated::{Border, LineReport, Machine, band};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use topology::Topology;

use crate::exit::Failure;
use crate::scenario_step_command::words;
use crate::scenarios::{
    Done, Effect, Measured, Reply, Scenario, Setting, Step, page, records, text,
};
use crate::stdout::{self, note};
use crate::sweep_command::{catch_signals, doctor, header};
use crate::sweep_records::MACHINE;
use crate::target::Target;
use crate::written::Written;

/// What to do with what comes of it.
pub(crate) struct Wanted<'a> {
    pub(crate) target: Option<&'a Target>,
    pub(crate) host: &'a Topology,
    pub(crate) timeout: Duration,
    pub(crate) out: Option<&'a Path>,
    pub(crate) markdown: Option<&'a Path>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

/// A scenario that is to be run, and what has come of it so far.
pub(crate) struct Plan {
    pub(crate) scenario: &'static Scenario,
    pub(crate) setting: Setting,
    pub(crate) steps: Vec<Outcome>,
}

/// A step, and what has come of it so far.
pub(crate) struct Outcome {
    pub(crate) step: Step,
    pub(crate) measured: Option<Result<Measured, Broken>>,
    pub(crate) lines: Option<LineReport>,
    /// By which factor its times may be wrong; 1 natively.
    pub(crate) factor: f64,
}

/// What scenarios are made of: their times are wrong by as much as these are, each by itself.
const PARTS: [&str; 3] = ["counters", "locks", "queues"];

/// By which factor simulated times of scenarios may be wrong.
pub(crate) fn band_of(machine: &Machine, border: Border) -> f64 {
    PARTS.iter().map(|part| band(machine.name(), part, border)).fold(1.0, f64::max)
}

impl Plan {
    /// Plans the steps of a scenario.
    pub(crate) fn new(scenario: &'static Scenario, setting: Setting, steps: Vec<Step>) -> Self {
        let steps = steps
            .into_iter()
            .map(|step| Outcome {
                factor: factor(&setting, &step),
                step,
                measured: None,
                lines: None,
            })
            .collect();
        Self { scenario, setting, steps }
    }

    /// Gives what the steps show, as far as they have figures.
    pub(crate) fn effects(&self) -> Vec<Effect> {
        let done = self.steps.iter().map(|one| Done {
            setting: &self.setting,
            step: &one.step,
            measured: one.measured.as_ref().and_then(|measured| measured.as_ref().ok()),
            factor: one.factor,
        });
        let mut effects = (self.scenario.effects)(&done.collect::<Vec<_>>());
        effects.retain(|effect| effect.planned);
        effects
    }

    fn is_begun(&self) -> bool {
        self.steps.iter().any(|one| one.measured.is_some())
    }
}

fn factor(setting: &Setting, step: &Step) -> f64 {
    let Some(machine) = setting.machine() else { return 1.0 };
    let cores = setting.order(&step.placement).unwrap_or_default();
    let used = step.on.unwrap_or(step.threads).min(cores.len());
    band_of(machine, Border::of(machine, &cores[..used]))
}

/// A process: of which scenario, which step, and whether its lines are watched.
#[derive(Debug, Clone, Copy)]
struct Job {
    plan: usize,
    step: usize,
    watch: bool,
}

/// Runs all steps, and prints each scenario when it is done.
///
/// # Errors
/// When a step fails, a file cannot be written, or somebody interrupts.
pub(crate) fn follow(plans: Vec<Plan>, wanted: &Wanted<'_>) -> Result<(), Failure> {
    let mut jobs = Vec::new();
    for (plan, one) in plans.iter().enumerate() {
        for (step, outcome) in one.steps.iter().enumerate() {
            jobs.push(Job { plan, step, watch: false });
            let watch = outcome.step.watch.is_some() && wanted.target.is_some();
            jobs.extend(watch.then_some(Job { plan, step, watch: true }));
        }
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    catch_signals(&interrupted)?;
    let mut head = header(wanted.host);
    match wanted.target {
        Some(target) => {
            head.other.insert(MACHINE.into(), target.description());
        }
        None => head.doctor = doctor(wanted.host, &Clock::calibrated(&wanted.host.cpuid)),
    }
    let mut records = Written::open(wanted.out, wanted.json)?;
    records.write(&head)?;
    let mut follower = Follower {
        bar: bar(jobs.len(), wanted.quiet),
        run: head.run.clone(),
        plans,
        jobs,
        records,
        interrupted,
        json: wanted.json,
        printed: 0,
        failed: Vec::new(),
        failure: None,
        randomised: false,
        machine: wanted.target.map(Target::name),
    };
    let ended = run_all(&mut follower, wanted);
    follower.finish(ended, wanted)
}

fn bar(jobs: usize, quiet: bool) -> ProgressBar {
    let shown = !quiet && io::stderr().is_terminal();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(jobs as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}% {eta:>5} left  {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Runs the processes: simulated ones as many at once as there are CPUs, native ones one by one.
fn run_all(follower: &mut Follower, wanted: &Wanted<'_>) -> Result<io::Result<bool>, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    let stdin = wanted.target.map(Target::stdin).transpose()?.flatten();
    let name = wanted.target.map(Target::for_children);
    let all: Vec<Option<Vec<String>>> = follower
        .jobs
        .iter()
        .map(|job| {
            let Plan { scenario, setting, .. } = &follower.plans[job.plan];
            Some(words(scenario, setting, name, (job.step, job.watch)))
        })
        .collect();
    if wanted.target.is_some() {
        return Ok(Pool::new(&program, stdin, wanted.timeout).run(&all, follower));
    }
    let kill = follower.interrupted.clone();
    for (at, arguments) in all.iter().flatten().enumerate() {
        let child = Child { program: &program, arguments, environment: &[], stdin: None };
        let ended = child.run(wanted.timeout, &kill);
        if ended == Ended::Killed {
            return Ok(Ok(true));
        }
        follower.ended(at);
        if let Err(error) = follower.result(at, ended) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(false))
}

struct Follower {
    plans: Vec<Plan>,
    jobs: Vec<Job>,
    bar: ProgressBar,
    records: Written,
    run: String,
    interrupted: Arc<AtomicBool>,
    json: bool,
    /// Scenarios that were printed.
    printed: usize,
    failed: Vec<String>,
    failure: Option<Failure>,
    randomised: bool,
    machine: Option<String>,
}

impl Follow for Follower {
    fn stop(&mut self) -> bool {
        // ORDERING: Relaxed - a flag that a signal sets; it may be seen a little later.
        self.interrupted.load(Ordering::Relaxed)
    }

    fn ended(&mut self, job: usize) {
        let Job { plan, step, .. } = self.jobs[job];
        let plan = &self.plans[plan];
        self.bar.set_message(format!("{} {}", plan.scenario.name, plan.steps[step].step.id));
        self.bar.inc(1);
    }

    fn result(&mut self, job: usize, ended: Ended) -> io::Result<()> {
        let Job { plan, step, watch } = self.jobs[job];
        let reply = self.reply(ended);
        if let Err(failure) = self.keep(plan, step, watch, reply) {
            return Err(self.stopped_by(failure));
        }
        let last = self.jobs.get(job + 1).is_none_or(|next| next.plan != plan);
        if last { self.print_until(plan + 1) } else { Ok(()) }
    }
}

impl Follower {
    fn reply(&mut self, ended: Ended) -> Result<Reply, Broken> {
        let said = match ended {
            Ended::Answered(said) => said,
            Ended::Failed(reason) => return Err(Broken::Broken(reason)),
            Ended::Killed | Ended::Nothing => return Err(Broken::Broken("it was killed".into())),
        };
        let answer = Answer::<Reply>::parse(&said).map_err(Broken::Broken)?;
        if !answer.fixed_addresses && !self.randomised && self.machine.is_some() {
            self.randomised = true;
            note(RANDOMISED);
        }
        answer.outcome()
    }

    fn keep(
        &mut self,
        plan: usize,
        step: usize,
        watch: bool,
        reply: Result<Reply, Broken>,
    ) -> Result<(), Failure> {
        let Plan { scenario, setting, steps } = &mut self.plans[plan];
        let outcome = &mut steps[step];
        let id = format!("{} {}", scenario.name, outcome.step.id);
        if let Err(why @ Broken::Broken(_)) = &reply {
            let what = if watch { ", its lines" } else { "" };
            self.failed.push(format!("{id}{what}: {}", text::why(why)));
        }
        if watch {
            outcome.lines = reply.ok().and_then(|reply| reply.lines);
            return Ok(());
        }
        outcome.measured = Some(reply.map(|reply| reply.measured));
        let machine = self.machine.as_deref();
        let point = records::point(scenario, setting, outcome, &self.run, machine);
        self.records.write(&point)
    }

    /// Remembers why the run ends before all is done.
    fn stopped_by(&mut self, failure: Failure) -> io::Error {
        let error = io::Error::other(failure.to_string());
        self.failure = Some(failure);
        error
    }

    /// Prints the scenarios up to one of them.
    fn print_until(&mut self, plan: usize) -> io::Result<()> {
        while self.printed < plan {
            let plan = &self.plans[self.printed];
            self.printed += 1;
            let text = self.bar.suspend(|| text::scenario(plan, self.machine.as_deref()));
            if self.json {
                note(&text);
            } else {
                stdout::print(&text).map_err(|failure| self.stopped_by(failure))?;
            }
        }
        Ok(())
    }

    fn finish(
        mut self,
        ended: Result<io::Result<bool>, Failure>,
        wanted: &Wanted<'_>,
    ) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let stopped = match (ended?, self.failure.take()) {
            (_, Some(failure)) => return Err(failure),
            (Err(error), None) => return Err(Failure::Failed(error.to_string())),
            (Ok(stopped), None) => stopped,
        };
        if stopped {
            let begun = self.plans.iter().rposition(Plan::is_begun).map_or(0, |last| last + 1);
            let _ = self.print_until(begun);
            let steps = self.plans.iter().flat_map(|plan| &plan.steps);
            let kept = steps.filter(|one| one.measured.is_some()).count();
            let all = self.plans.iter().map(|plan| plan.steps.len()).sum::<usize>();
            let place = match wanted.out {
                Some(out) => format!("kept {kept} of {all} steps in {}", out.display()),
                None => format!("{kept} of {all} steps were measured; --out keeps them"),
            };
            let page =
                wanted.markdown.map_or("", |_| "; no page was written, as it is of whole runs");
            return Err(Failure::Interrupted(format!("interrupted; {place}{page}")));
        }
        if let Some(path) = wanted.markdown {
            page::write(path, &self.plans, self.machine.as_deref())?;
        }
        if let Some(out) = wanted.out {
            note(&format!("records in {}", out.display()));
        }
        if self.failed.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("steps that failed: {}", self.failed.join("; "))))
    }
}

//! `manycore doctor --apply` and `--restore`: settings for a measurement, and back.

use std::io::{self, IsTerminal};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use harness::doctor::Tree;
use harness::doctor::settings::{self, Change, Fate, SettingsError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use topology::Topology;

use crate::doctor_command::DoctorArgs;
use crate::exit::Failure;
use crate::stdout::note;

/// How often it is looked whether the command or a signal has ended the wait.
const LOOK: Duration = Duration::from_millis(20);

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::Failed(error.to_string())
    }
}

fn tree(arguments: &DoctorArgs) -> Result<Tree, Failure> {
    let root = arguments.root.as_deref().unwrap_or_else(|| "/".as_ref());
    Tree::open(root)
        .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", root.display())))
}

/// Puts back what was left.
///
/// # Errors
/// When another process holds the settings, or something cannot be put back.
pub(crate) fn restore(arguments: &DoctorArgs) -> Result<(), Failure> {
    let tree = tree(arguments)?;
    let state = arguments.state.clone().unwrap_or_else(|| settings::default_state(&tree));
    let fates = settings::restore(&tree, &state)?;
    if fates.is_empty() {
        note(&format!("nothing to put back: there is no {}", state.display()));
    }
    told_back(&fates)
}

/// Sets what can be set, lets `show` say how the host is now, waits for the command or for a signal,
/// and puts everything back.
///
/// # Errors
/// When settings cannot be set or put back, or the command fails.
pub(crate) fn hold(
    arguments: &DoctorArgs,
    host: &Topology,
    show: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let tree = tree(arguments)?;
    let state = arguments.state.clone().unwrap_or_else(|| settings::default_state(&tree));
    // Before the first change: from here on a signal ends the wait, not the process.
    let signal = caught_signal()?;
    let applied = settings::apply(&tree, settings::wanted(&tree, host), &state)?;
    told_made(&applied.made);
    if applied.set_nothing() {
        told_back(&applied.restore()?)?;
        return Err(Failure::Failed("no setting could be made, see above; run as root".into()));
    }
    let shown = show();
    let ended = shown.and_then(|()| match arguments.command.split_first() {
        Some((program, words)) => run_under(program, words, &signal),
        None => {
            note("the settings are in force until Ctrl-C");
            while signal.load(Ordering::Relaxed) == 0 {
                sleep(LOOK);
            }
            Ok(())
        }
    });
    told_back(&applied.restore()?)?;
    ended
}

/// Gives a word that holds the number of the last signal; 0 before the first.
fn caught_signal() -> Result<Arc<AtomicUsize>, Failure> {
    let word = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let value = usize::try_from(signal).unwrap_or_default();
        signal_hook::flag::register_usize(signal, word.clone(), value).map_err(|error| {
            Failure::Failed(format!("cannot set a handler for signal {signal}: {error}"))
        })?;
    }
    Ok(word)
}

/// Runs the command; a signal to this process is handed on to it.
fn run_under(program: &str, words: &[String], signal: &AtomicUsize) -> Result<(), Failure> {
    let mut child = Command::new(program).args(words).spawn().map_err(|error| {
        Failure::Failed(format!("cannot run {program}: {error}; the settings are put back"))
    })?;
    let waited = wait(&mut child, signal);
    let status = waited.map_err(|error| {
        Failure::Failed(format!("cannot wait for {program}: {error}; the settings are put back"))
    })?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => {
            let message = format!("{program} ended with exit code {code}");
            Err(Failure::Command { code: u8::try_from(code).unwrap_or(1), message })
        }
        (None, number) => {
            let number = number.unwrap_or_default();
            let message = format!("{program} was ended by signal {number}");
            Err(Failure::Command { code: u8::try_from(128 + number).unwrap_or(1), message })
        }
    }
}

fn wait(child: &mut Child, signal: &AtomicUsize) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let caught = signal.swap(0, Ordering::Relaxed);
        if caught != 0 && !(reached_the_command_too(caught)) {
            let process = libc::pid_t::try_from(child.id()).map_err(io::Error::other)?;
            let caught = i32::try_from(caught).map_err(io::Error::other)?;
            // SAFETY: sends a signal to a child that has not been waited for, so that its number is
            // still its own.
            unsafe { libc::kill(process, caught) };
        }
        sleep(LOOK);
    }
}

/// Ctrl-C on a terminal reaches every process of the foreground group.
fn reached_the_command_too(signal: usize) -> bool {
    if i32::try_from(signal) != Ok(SIGINT) || !io::stdin().is_terminal() {
        return false;
    }
    // SAFETY: asks about a descriptor; touches no memory.
    let foreground = unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) };
    // SAFETY: takes nothing and touches nothing.
    foreground == unsafe { libc::getpgrp() }
}

fn told_made(made: &[(Change, Fate)]) {
    if made.is_empty() {
        note("nothing to set: what can be set is as it should be, or cannot be read");
    }
    for (Change { path, was, set, .. }, fate) in made {
        match fate {
            Fate::Refused(reason) => note(&format!("not set: {reason}")),
            _ => note(&format!("set /{path} to {set}, it was {was}")),
        }
    }
}

fn told_back(fates: &[(Change, Fate)]) -> Result<(), Failure> {
    let mut refused = 0;
    for (Change { path, was, set, .. }, fate) in fates {
        note(&match fate {
            Fate::Done => format!("put back /{path} to {was}"),
            Fate::Already => format!("/{path} is {was}, as it was"),
            Fate::Foreign(now) => {
                format!("left /{path} alone: somebody has set it to {now}, not to {set}")
            }
            Fate::Refused(reason) => {
                refused += 1;
                format!("not put back: {reason}")
            }
        });
    }
    match refused {
        0 => Ok(()),
        _ => Err(Failure::Failed(format!(
            "{refused} settings could not be put back; run `manycore doctor --restore` as root"
        ))),
    }
}

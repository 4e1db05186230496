//! Sets what can be set for a measurement, and puts it back.
//!
//! Before anything is changed, what there was is written to a state file; it is removed when all is
//! as it was. Whoever is killed in between leaves the file, and [`restore`] does the rest.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use topology::Topology;

use super::memory::{ASLR, KSM, NUMA_BALANCING, THP, THP_DEFRAG, ZONE_RECLAIM};
use super::power::{TURBO, idle_states};
use super::timing::{MOST_PARANOID, PARANOID};
use super::tree::Tree;
use crate::unavailable::Unavailable;

/// One file that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The file, relative to the root.
    pub path: String,
    /// What was in force.
    pub was: String,
    /// The whole text of the file; a saved tree gets it back as it was.
    text: String,
    /// What is set.
    pub set: String,
}

/// What became of a change when it was made or taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Done, and read back.
    Done,
    /// Nothing was to do: it had its old value.
    Already,
    /// Somebody else has set it to this meanwhile; it was left alone.
    Foreign(String),
    /// It could not be written, or another value is in force.
    Refused(Unavailable),
}

/// Why nothing was set, or not all put back.
#[derive(Debug)]
pub enum SettingsError {
    /// Another process holds the settings.
    Held {
        /// The state file.
        state: PathBuf,
        /// The process.
        process: u32,
    },
    /// A process that held them was killed.
    Left {
        /// The state file.
        state: PathBuf,
    },
    /// The state file cannot be read or written.
    State {
        /// The file.
        state: PathBuf,
        /// What the system said, or what is wrong with it.
        error: io::Error,
    },
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held { state, process } => write!(
                f,
                "process {process} holds the settings ({}); end it, and it puts them back",
                state.display()
            ),
            Self::Left { state } => write!(
                f,
                "an earlier `manycore doctor --apply` was killed and its settings are still in \
                 force ({}); run `manycore doctor --restore` first",
                state.display()
            ),
            Self::State { state, error } => write!(
                f,
                "cannot use the state file {}: {error}; run as root, or name another one with \
                 --state",
                state.display()
            ),
        }
    }
}

impl std::error::Error for SettingsError {}

/// What the state file holds.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    process: u32,
    /// When that process began, by the kernel's clock: another may get its number.
    began: Option<u64>,
    changes: Vec<Change>,
}

/// Settings in force; they are put back when this is dropped.
#[derive(Debug)]
pub struct Applied {
    tree: Tree,
    state: PathBuf,
    changes: Vec<Change>,
    /// What became of each change when it was made.
    pub made: Vec<(Change, Fate)>,
}

/// Lists what would be set: only what is not as it should be, and can be put back exactly.
pub fn wanted(tree: &Tree, host: &Topology) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut want = |path: &str, set: &str, is_bad: &dyn Fn(&str) -> bool| {
        if let (Ok(was), Ok(text)) = (tree.chosen(path), tree.text(path))
            && is_bad(&was)
        {
            changes.push(Change { path: path.into(), was, text, set: set.into() });
        }
    };
    for cpu in host.usable() {
        let directory = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
        let offered = tree.text(&format!("{directory}/scaling_available_governors"));
        // Where the file is missing, the kernel decides when it is written.
        if offered.is_ok_and(|offered| !offered.split_whitespace().any(|one| one == "performance"))
        {
            continue;
        }
        want(&format!("{directory}/scaling_governor"), "performance", &|was| was != "performance");
    }
    for (path, enabled, disabled) in TURBO {
        want(path, disabled, &|was| was == enabled);
    }
    for cpu in host.usable() {
        for state in idle_states(tree, cpu).unwrap_or_default() {
            if state.is_deep() {
                want(&format!("{}/disable", state.path), "1", &|was| was == "0");
            }
        }
    }
    for path in [THP, THP_DEFRAG] {
        want(path, "madvise", &|was| was == "always");
    }
    for path in [NUMA_BALANCING, ZONE_RECLAIM] {
        want(path, "0", &|was| was != "0");
    }
    want(KSM, "0", &|was| was == "1");
    want(ASLR, "2", &|was| was != "2");
    want(PARANOID, &MOST_PARANOID.to_string(), &|was| {
        was.parse().is_ok_and(|level: i64| level > MOST_PARANOID)
    });
    changes
}

/// Names the state file of a root, where none is named.
pub fn default_state(tree: &Tree) -> PathBuf {
    tree.seen("run/manycore-doctor.json")
}

/// Makes the changes, with what there was in the state file; without changes there is no file.
///
/// # Errors
/// When the state file is there already or cannot be written; nothing is changed then.
pub fn apply(tree: &Tree, changes: Vec<Change>, state: &Path) -> Result<Applied, SettingsError> {
    if let Some(left) = read_state(state)? {
        return Err(in_the_way(state, &left));
    }
    let mut applied =
        Applied { tree: tree.clone(), state: state.into(), changes: vec![], made: vec![] };
    if changes.is_empty() {
        return Ok(applied);
    }
    let process = std::process::id();
    let saved = State { process, began: began(process), changes: changes.clone() };
    write_state(state, &saved, true)?;
    applied.changes = changes;
    for change in &applied.changes {
        let fate = match write(tree, &change.path, &change.set, &change.set) {
            Ok(()) => Fate::Done,
            Err(reason) => Fate::Refused(reason),
        };
        applied.made.push((change.clone(), fate));
    }
    Ok(applied)
}

impl Applied {
    /// Tells whether something was to be set and every change was refused.
    pub fn set_nothing(&self) -> bool {
        let refused = |(_, fate): &(Change, Fate)| matches!(fate, Fate::Refused(_));
        !self.made.is_empty() && self.made.iter().all(refused)
    }

    /// Puts everything back, last change first.
    ///
    /// # Errors
    /// When the state file cannot be removed or rewritten.
    pub fn restore(mut self) -> Result<Vec<(Change, Fate)>, SettingsError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Vec<(Change, Fate)>, SettingsError> {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return Ok(vec![]);
        }
        finish(&self.tree, changes, &self.state)
    }
}

impl Drop for Applied {
    fn drop(&mut self) {
        // What cannot be put back stays in the state file.
        let _ = self.put_back();
    }
}

/// Puts back what a process that was killed has left; nothing where there is no state file.
///
/// # Errors
/// When the process still runs, or the state file cannot be used.
pub fn restore(tree: &Tree, state: &Path) -> Result<Vec<(Change, Fate)>, SettingsError> {
    let Some(left) = read_state(state)? else { return Ok(vec![]) };
    if is_alive(&left) {
        return Err(in_the_way(state, &left));
    }
    finish(tree, left.changes, state)
}

/// Puts changes back; what is refused stays in the state file for another attempt.
fn finish(
    tree: &Tree,
    changes: Vec<Change>,
    state: &Path,
) -> Result<Vec<(Change, Fate)>, SettingsError> {
    let fates: Vec<(Change, Fate)> = changes
        .into_iter()
        .rev()
        .map(|change| (change.clone(), take_back(tree, &change)))
        .collect();
    let refused = fates.iter().filter(|(_, fate)| matches!(fate, Fate::Refused(_)));
    let mut refused: Vec<Change> = refused.map(|(change, _)| change.clone()).collect();
    if refused.is_empty() {
        let failed = |error| SettingsError::State { state: state.into(), error };
        fs::remove_file(state).map_err(failed)?;
    } else {
        refused.reverse();
        write_state(state, &State { process: 0, began: None, changes: refused }, false)?;
    }
    Ok(fates)
}

fn take_back(tree: &Tree, change: &Change) -> Fate {
    match tree.chosen(&change.path) {
        Ok(now) if now == change.was => Fate::Already,
        Ok(now) if now != change.set => Fate::Foreign(now),
        Err(reason) => Fate::Refused(reason),
        Ok(_) => {
            let text = if tree.is_this_host() { &change.was } else { &change.text };
            match write(tree, &change.path, text, &change.was) {
                Ok(()) => Fate::Done,
                Err(reason) => Fate::Refused(reason),
            }
        }
    }
}

/// Writes a file inside the root and reads back what is in force.
fn write(tree: &Tree, path: &str, text: &str, expected: &str) -> Result<(), Unavailable> {
    let real = tree.locate(path)?;
    fs::write(real, text).map_err(|error| {
        let code = match error.kind() {
            io::ErrorKind::PermissionDenied => "not_permitted",
            _ => "not_writable",
        };
        Unavailable::because(code, format!("/{path}: {error}"))
    })?;
    match tree.chosen(path)? {
        now if now == expected => Ok(()),
        now => {
            let what = format!("/{path} is {now} after {expected} was written");
            Err(Unavailable::because("not_in_force", what))
        }
    }
}

fn in_the_way(state: &Path, left: &State) -> SettingsError {
    match is_alive(left) {
        true => SettingsError::Held { state: state.into(), process: left.process },
        false => SettingsError::Left { state: state.into() },
    }
}

fn is_alive(state: &State) -> bool {
    state.began.is_some() && began(state.process) == state.began
}

/// When a process began, in ticks since the machine started.
fn began(process: u32) -> Option<u64> {
    const FIELD_AFTER_NAME: usize = 19;
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may hold anything but ends at the last parenthesis.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(FIELD_AFTER_NAME)?.parse().ok()
}

fn read_state(state: &Path) -> Result<Option<State>, SettingsError> {
    let failed = |error| SettingsError::State { state: state.into(), error };
    match fs::read_to_string(state) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
            let what = format!("it is damaged ({error}); look at it, then remove it");
            failed(io::Error::new(io::ErrorKind::InvalidData, what))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Writes the whole state or nothing; a new one only where there is none yet.
fn write_state(state: &Path, saved: &State, is_new: bool) -> Result<(), SettingsError> {
    let mut name = state.as_os_str().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(name);
    if let (true, Some(folder)) = (is_new, state.parent()) {
        // A saved tree has no `run`; where it cannot be made, the file cannot either, and says why.
        let _ = fs::create_dir(folder);
    }
    let written = (|| {
        let mut file = File::create(&part)?;
        file.write_all(serde_json::to_string_pretty(saved)?.as_bytes())?;
        file.sync_all()?;
        match is_new {
            // Unlike a rename, a link does not take the place of another process's file.
            true => fs::hard_link(&part, state),
            false => fs::rename(&part, state),
        }
    })();
    let _ = fs::remove_file(&part); // after a rename it is gone
    written.map_err(|error| SettingsError::State { state: state.into(), error })
}

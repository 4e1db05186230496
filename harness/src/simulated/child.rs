//! Processes that simulate: each begins with nothing of its caller's, answers in JSON, and may
//! crash or hang without harm to others.
//!
//! A simulated thread reaches all memory of its process. So that lines and pages lie where they
//! lay last time, a child has no environment but what it is given, the root as directory, a fixed
//! first argument and path, and fixed addresses (`personality(ADDR_NO_RANDOMIZE)`).

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::native::Failure;
use crate::unavailable::Unavailable;

/// The first argument of every child, whatever the program is called.
const NAME: &str = "manycore";

/// Kills children when it is set.
pub type Kill = AtomicBool;

/// Why the figures of a child may differ from run to run.
pub const RANDOMISED: &str = "addresses are randomised, since personality(ADDR_NO_RANDOMIZE) is \
     refused here: figures may differ from run to run";

/// What a child says about a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer<T> {
    /// Whether its addresses are the same each time.
    pub fixed_addresses: bool,
    #[serde(flatten)]
    said: Said<T>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said<T> {
    Figures(T),
    Broken(String),
    Unavailable(Unavailable),
}

impl<T> Answer<T> {
    /// Makes the answer of this process.
    pub fn new(outcome: Result<T, Failure>) -> Self {
        // SAFETY: asks for this process's flags and changes none.
        let flags = unsafe { libc::personality(0xffff_ffff) };
        let said = match outcome {
            Ok(figures) => Said::Figures(figures),
            Err(Failure::Broken(reason)) => Said::Broken(reason),
            Err(Failure::Unavailable(reason)) => Said::Unavailable(reason),
        };
        Self { fixed_addresses: flags & libc::ADDR_NO_RANDOMIZE != 0, said }
    }

    /// Gives what was found out.
    ///
    /// # Errors
    /// Why there is nothing.
    pub fn outcome(self) -> Result<T, Failure> {
        match self.said {
            Said::Figures(figures) => Ok(figures),
            Said::Broken(reason) => Err(Failure::Broken(reason)),
            Said::Unavailable(reason) => Err(Failure::Unavailable(reason)),
        }
    }
}

impl<T: DeserializeOwned> Answer<T> {
    /// Reads an answer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|error| {
            let begin: String = String::from_utf8_lossy(text).chars().take(200).collect();
            format!("its answer is not understood: {error}: `{}`", begin.trim_end())
        })
    }
}

/// A process to be.
#[derive(Debug, Clone, Copy)]
pub struct Child<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [String],
    /// Its whole environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// Its standard input; empty if not said.
    pub stdin: Option<&'a File>,
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With exit code 0; what it wrote to standard output.
    Answered(Vec<u8>),
    /// In any other way, in words.
    Failed(String),
    /// It was killed, or not begun, because somebody asked for it.
    Killed,
    /// There was nothing to run.
    Nothing,
}

impl Child<'_> {
    /// Runs the child to its end, but not longer than `limit`.
    pub fn run(&self, limit: Duration, kill: &Kill) -> Ended {
        if kill.load(Ordering::Relaxed) {
            return Ended::Killed;
        }
        match self.try_run(limit, kill) {
            Ok(ended) => ended,
            Err(error) => Ended::Failed(format!("the simulating process: {error}")),
        }
    }

    fn try_run(&self, limit: Duration, kill: &Kill) -> io::Result<Ended> {
        // Files in memory never fill up while nobody reads, as a pipe does.
        let (mut out, mut err) = (memory_file()?, memory_file()?);
        let stdin = match self.stdin {
            Some(file) => Stdio::from(file.try_clone()?),
            None => Stdio::null(),
        };
        let mut command = Command::new(self.program);
        command
            .arg0(NAME)
            .args(self.arguments)
            .env_clear()
            .envs(self.environment.iter().copied())
            .current_dir("/")
            .stdin(stdin)
            .stdout(out.try_clone()?)
            .stderr(err.try_clone()?)
            // Ctrl-C is for the parent, which then kills it.
            .process_group(0);
        // SAFETY: the function makes two system calls, which need no memory and no lock.
        unsafe { command.pre_exec(prepare) };
        let mut child = command.spawn()?;
        let began = Instant::now();
        let mut pause = Duration::from_micros(500);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            let (late, unwanted) = (began.elapsed() > limit, kill.load(Ordering::Relaxed));
            if late || unwanted {
                // Gone already is as good.
                let _ = child.kill();
                child.wait()?;
                return Ok(if unwanted { Ended::Killed } else { Ended::Failed(too_late(limit)) });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        let said = contents(&mut err)?;
        match status.code() {
            Some(0) => contents(&mut out).map(Ended::Answered),
            _ => Ok(Ended::Failed(how(status, &said))),
        }
    }
}

fn too_late(limit: Duration) -> String {
    format!(
        "not done after {} s of real time and killed; --timeout allows more, --ops fewer \
         operations",
        limit.as_secs_f64()
    )
}

fn how(status: ExitStatus, said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let last: Vec<&str> = text.lines().rev().take(3).collect();
    let last = last.into_iter().rev().collect::<Vec<_>>().join(" / ");
    let words = if last.is_empty() { String::new() } else { format!(": {last}") };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the simulating process ended with exit code {code}{words}"),
        (None, signal) => {
            let signal = signal.unwrap_or(0);
            format!("the simulating process was killed by signal {signal}{words}")
        }
    }
}

/// Before the program begins: fixed addresses, and no life without its parent.
fn prepare() -> io::Result<()> {
    // SAFETY: changes a flag of this process. Refused, the child notices and says so.
    unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
    // SAFETY: asks for a signal.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    Ok(())
}

fn memory_file() -> io::Result<File> {
    // SAFETY: the name ends with a zero.
    let file = unsafe { libc::memfd_create(c"manycore".as_ptr(), libc::MFD_CLOEXEC) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { File::from_raw_fd(file) })
}

/// Makes a file in memory that holds `text`, for children to read as `/dev/stdin`.
///
/// # Errors
/// When there is no memory or no descriptor for it.
pub fn text_file(text: &str) -> io::Result<File> {
    let mut file = memory_file()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn contents(file: &mut File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Several children at a time.
#[derive(Debug)]
pub struct Pool {
    program: PathBuf,
    stdin: Option<File>,
    limit: Duration,
    at_once: usize,
}

/// Follows children.
pub trait Follow {
    /// Is asked often; `true` kills what is running.
    fn stop(&mut self) -> bool;

    /// Is told when a child has ended, in whatever order.
    fn ended(&mut self, job: usize);

    /// Is given how the children ended, in the order of the jobs; those that were killed because
    /// of [`stop`](Self::stop) are left out.
    ///
    /// # Errors
    /// Kills what is running.
    fn result(&mut self, job: usize, ended: Ended) -> io::Result<()>;
}

impl Pool {
    /// Runs `program`, as many at once as there are CPUs that may be used, none longer than
    /// `limit`. Each may read `stdin` as a file of its own.
    pub fn new(program: &Path, stdin: Option<File>, limit: Duration) -> Self {
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        Self { program: program.into(), stdin, limit, at_once }
    }

    /// Runs a child for each list of arguments, where there is one; gives whether the follower
    /// ended it early.
    ///
    /// # Errors
    /// What the follower's `result` returned.
    pub fn run(&self, jobs: &[Option<Vec<String>>], follow: &mut dyn Follow) -> io::Result<bool> {
        let (next, kill) = (AtomicUsize::new(0), Kill::default());
        let (send, ended) = mpsc::channel();
        let send = Mutex::new(send);
        std::thread::scope(|scope| {
            for _ in 0..self.at_once.min(jobs.len()) {
                let send = send.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
                let (next, kill) = (&next, &kill);
                scope.spawn(move || {
                    // Relaxed: the number alone is shared.
                    while let Some(at) = claim(next, jobs.len()) {
                        let child = jobs[at].as_ref().map(|arguments| self.child(arguments));
                        let ended =
                            child.map_or(Ended::Nothing, |child| child.run(self.limit, kill));
                        if send.send((at, ended)).is_err() {
                            break;
                        }
                    }
                });
            }
            let outcome = collect(jobs.len(), &ended, &kill, follow);
            // Nobody begins another one, and who runs is killed.
            kill.store(true, Ordering::Relaxed);
            outcome
        })
    }

    fn child<'a>(&'a self, arguments: &'a [String]) -> Child<'a> {
        Child { program: &self.program, arguments, environment: &[], stdin: self.stdin.as_ref() }
    }
}

fn claim(next: &AtomicUsize, jobs: usize) -> Option<usize> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    (at < jobs).then_some(at)
}

/// Hands results on in order, and looks at whether to stop.
fn collect(
    jobs: usize,
    ended: &mpsc::Receiver<(usize, Ended)>,
    kill: &Kill,
    follow: &mut dyn Follow,
) -> io::Result<bool> {
    const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
    let mut waiting: Vec<Option<Ended>> = (0..jobs).map(|_| None).collect();
    let (mut given, mut arrived, mut stopped) = (0, 0, false);
    while arrived < jobs {
        if !stopped && follow.stop() {
            stopped = true;
            kill.store(true, Ordering::Relaxed);
        }
        let Ok((at, how)) = ended.recv_timeout(BETWEEN_LOOKS) else { continue };
        arrived += 1;
        if how != Ended::Killed {
            follow.ended(at);
        }
        waiting[at] = Some(how);
        while given < jobs
            && let Some(how) = waiting[given].take()
        {
            if how != Ended::Killed {
                follow.result(given, how)?;
            }
            given += 1;
        }
    }
    Ok(stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Ended {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let program = Path::new("/bin/sh");
        let child = Child { program, arguments: &arguments, environment: &[], stdin: None };
        child.run(limit, &Kill::default())
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn a_child_has_nothing_of_its_callers() {
        let said = shell("pwd; echo \"$0 $HOME$PATH_OF_THE_CALLER\"", LONG);
        assert_eq!(said, Ended::Answered(b"/\nmanycore \n".to_vec()));
        let file = text_file("a machine").unwrap();
        let arguments = ["/dev/stdin".to_owned()];
        let program = Path::new("/bin/cat");
        let child = Child { program, arguments: &arguments, environment: &[], stdin: Some(&file) };
        // Each has a place of its own in the file.
        for _ in 0..2 {
            let said = child.run(LONG, &Kill::default());
            assert_eq!(said, Ended::Answered(b"a machine".to_vec()));
        }
    }

    #[test]
    fn whatever_happens_to_a_child_is_a_reason() {
        let failed = |script: &str, limit: Duration| match shell(script, limit) {
            Ended::Failed(reason) => reason,
            other => panic!("{script}: {other:?}"),
        };
        assert!(failed("echo why >&2; exit 3", LONG).ends_with("exit code 3: why"));
        assert!(failed("kill -SEGV $$", LONG).ends_with("killed by signal 11"));
        let late = failed("sleep 1000", Duration::from_millis(50));
        assert!(late.contains("0.05 s of real time"), "{late}");
        let arguments = [];
        let program = Path::new("/no/such/program");
        let child = Child { program, arguments: &arguments, environment: &[], stdin: None };
        assert!(matches!(child.run(LONG, &Kill::default()), Ended::Failed(_)));
        assert_eq!(child.run(LONG, &Kill::new(true)), Ended::Killed);
    }

    #[test]
    fn answers_are_read_and_nonsense_is_a_reason() {
        let answers: [Result<u64, Failure>; 3] = [
            Ok(5),
            Err(Failure::Broken("lost".into())),
            Err(Failure::Unavailable(Unavailable::because("one_node", "here"))),
        ];
        for answer in answers {
            let expected = format!("{answer:?}");
            let text = serde_json::to_string(&Answer::new(answer)).unwrap();
            let read = Answer::<u64>::parse(text.as_bytes()).unwrap();
            assert_eq!(format!("{:?}", read.outcome()), expected);
        }
        for text in ["", "x", "{}", "[1]"] {
            assert!(Answer::<u64>::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    /// Keeps what it is given; ends early when it has so many results.
    #[derive(Default)]
    struct Keep {
        results: Vec<(usize, Ended)>,
        ended: usize,
        enough: Option<usize>,
        full: bool,
    }

    impl Follow for Keep {
        fn stop(&mut self) -> bool {
            self.enough.is_some_and(|enough| self.results.len() >= enough)
        }

        fn ended(&mut self, _: usize) {
            self.ended += 1;
        }

        fn result(&mut self, job: usize, ended: Ended) -> io::Result<()> {
            self.results.push((job, ended));
            if self.full { Err(io::Error::other("full")) } else { Ok(()) }
        }
    }

    fn pool() -> Pool {
        let mut pool = Pool::new(Path::new("/bin/sh"), None, LONG);
        pool.at_once = 3;
        pool
    }

    fn scripts(scripts: &[&str]) -> Vec<Option<Vec<String>>> {
        let words = |script: &&str| match *script {
            "" => None,
            script => Some(vec!["-c".into(), script.into()]),
        };
        scripts.iter().map(words).collect()
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let jobs = scripts(&["sleep 0.3; echo 0", "echo 1", "", "exit 1", "echo 4"]);
        let mut keep = Keep::default();
        assert!(!pool().run(&jobs, &mut keep).unwrap());
        assert_eq!(keep.ended, 5);
        let said = |text: &str| Ended::Answered(text.into());
        assert_eq!(keep.results[0], (0, said("0\n")));
        assert_eq!(keep.results[1], (1, said("1\n")));
        assert_eq!(keep.results[2], (2, Ended::Nothing));
        assert!(matches!(keep.results[3], (3, Ended::Failed(_))));
        assert_eq!(keep.results[4], (4, said("4\n")));
        assert!(!pool().run(&[], &mut Keep::default()).unwrap());
    }

    #[test]
    fn who_stops_or_cannot_write_ends_all_children() {
        let jobs = scripts(&["echo 0", "sleep 1000", "sleep 1000", "sleep 1000"]);
        let mut keep = Keep { enough: Some(1), ..Keep::default() };
        assert!(pool().run(&jobs, &mut keep).unwrap());
        assert_eq!(keep.results.len(), 1);
        let mut keep = Keep { full: true, ..Keep::default() };
        assert_eq!(pool().run(&jobs, &mut keep).unwrap_err().to_string(), "full");
    }
}

//! A machine with threads on it, ready to execute closures.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::error::{Error, Stopped};
use crate::exchange::Exchange;
use crate::faults::{HandlerStack, NoSignals};
use crate::heap::EngineThread;
use crate::host::Host;
use crate::lend;
use crate::report::Report;
use crate::simulation::Simulation;
use crate::work::Workshop;

impl Simulation {
    /// Creates the threads and the engine that executes them.
    ///
    /// One session at a time exists in a process: this waits until a session of another thread is
    /// dropped.
    ///
    /// # Errors
    /// When the numbers do not fit the machine, when this host cannot simulate, or when the
    /// program does not declare the engine's heap.
    pub fn start(self) -> Result<Session, Error> {
        let host = if self.native { Host::unchecked() } else { Host::check()? };
        let turn = Turn::take()?;
        self.check()?;
        let desk = Arc::new(Desk::default());
        let (settings, theirs) = (self.clone(), desk.clone());
        let engine = thread::Builder::new()
            .name("engine".into())
            .spawn(move || serve(&settings, host, &theirs))
            .map_err(Error::Thread)?;
        let opened = |state: &DeskState| !matches!(state, DeskState::Opening);
        match desk.take(opened, DeskState::Idle) {
            DeskState::Idle => {}
            state => {
                let _ = engine.join();
                let DeskState::Refused(error) = state else { return Err(Error::Engine) };
                return Err(error);
            }
        }
        Ok(Session {
            threads: self.threads,
            desk,
            engine: Some(engine),
            over: false,
            turn,
            here: PhantomData,
        })
    }
}

type Job = Box<dyn FnOnce(&mut Workshop) + Send>;

/// Where the engine's thread gets its jobs. Nothing here allocates, as a channel does when it
/// happens to wait: what the program has allocated must not depend on real time.
#[derive(Default)]
struct Desk {
    state: Mutex<DeskState>,
    changed: Condvar,
}

#[derive(Default)]
enum DeskState {
    /// The engine is being made.
    #[default]
    Opening,
    /// It cannot be made.
    Refused(Error),
    /// It waits for a job.
    Idle,
    /// There is one.
    Job(Job),
    /// It does one.
    Busy,
    /// Nobody will bring jobs any more.
    Closing,
    /// Nobody will do jobs any more.
    Closed,
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, DeskState> {
        // A state is replaced as a whole, so a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: DeskState) {
        *self.lock() = state;
        self.changed.notify_all();
    }

    /// Waits until the state is one of those wanted, and gives it away, leaving another.
    fn take(&self, wanted: impl Fn(&DeskState) -> bool, leave: DeskState) -> DeskState {
        let mut state = self.lock();
        while !wanted(&state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let taken = core::mem::replace(&mut *state, leave);
        drop(state);
        self.changed.notify_all();
        taken
    }
}

/// Closes the desk when the engine's thread ends, in whatever way.
struct Close<'a>(&'a Desk);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.set(DeskState::Closed);
    }
}

/// The engine's thread: makes everything, then does one job after the other.
fn serve(settings: &Simulation, host: Host, desk: &Desk) {
    let _signals = NoSignals::new();
    let made = HandlerStack::new().map_err(Error::Thread).and_then(|stack| {
        if settings.native {
            return Ok((stack, Workshop::native(settings)?, None));
        }
        let engine = EngineThread::enter().map_err(Error::from)?;
        Ok((stack, Workshop::new(settings, host)?, Some(engine)))
    });
    match made {
        Err(error) => desk.set(DeskState::Refused(error)),
        Ok((_stack, mut workshop, _engine)) => {
            let _close = Close(desk);
            desk.set(DeskState::Idle);
            let wanted =
                |state: &DeskState| matches!(state, DeskState::Job(_) | DeskState::Closing);
            while let DeskState::Job(job) = desk.take(wanted, DeskState::Busy) {
                job(&mut workshop);
                desk.set(DeskState::Idle);
            }
            workshop.close();
        }
    }
}

/// Threads on simulated cores. They execute one closure after the other, and keep what they hold:
/// thread-local values, caches, pages.
pub struct Session {
    threads: usize,
    desk: Arc<Desk>,
    engine: Option<thread::JoinHandle<()>>,
    /// Whether a run stopped: the threads are in the middle of something.
    over: bool,
    #[expect(dead_code, reason = "held until the session ends")]
    turn: Turn,
    /// The session stays on its thread: a second one would wait for the first for ever.
    here: PhantomData<*const ()>,
}

/// A thread's result: the closure's value, or what it panicked with.
type Ended<R> = Option<thread::Result<R>>;

/// What a thread finds when it begins.
struct Task<F, R> {
    closure: F,
    results: *mut Ended<R>,
    /// Bytes from one result to the next.
    stride: usize,
}

/// The first function of every thread.
extern "C" fn first<F: Fn(usize) -> R, R>(task: *const Task<F, R>, index: usize) {
    // SAFETY: `Session::all` keeps the task until every thread has ended.
    let task = unsafe { &*task };
    let result = catch_unwind(AssertUnwindSafe(|| (task.closure)(index)));
    let place = task.results.wrapping_byte_add(index * task.stride);
    // SAFETY: there is a place for each thread, and this one is this thread's alone.
    unsafe { place.write(Some(result)) };
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Session {
    /// Executes the closure on every thread, with the thread's number; all begin together.
    ///
    /// # Errors
    /// What stopped it: see [`Stopped`]. The session is over then, except after a panic, which
    /// ends its thread's closure only.
    pub fn each<R, F>(&mut self, closure: F) -> Result<Report<R>, Stopped>
    where
        R: Send,
        F: Fn(usize) -> R + Sync,
    {
        self.all(self.threads, closure, || ())
    }

    /// Like [`each`](Self::each), and calls `first_ended` on the engine's thread at the moment at
    /// which the first thread ends: what is counted until then is in [`Report::window`]. In it all
    /// threads were running, so figures are not diluted by those that end last.
    ///
    /// `first_ended` may look at what threads have written, as they are stopped. It must not wait
    /// for anything that a thread may hold, a lock say.
    ///
    /// # Errors
    /// As for [`each`](Self::each).
    pub fn each_until<R, F, W>(&mut self, closure: F, first_ended: W) -> Result<Report<R>, Stopped>
    where
        R: Send,
        F: Fn(usize) -> R + Sync,
        W: FnOnce() + Send,
    {
        self.all(self.threads, closure, first_ended)
    }

    /// Executes the closure on the first thread, while the others do nothing.
    ///
    /// # Errors
    /// As for [`each`](Self::each).
    pub fn once<R, F>(&mut self, closure: F) -> Result<Report<R>, Stopped>
    where
        R: Send,
        F: FnOnce() -> R + Send,
    {
        let closure = Mutex::new(Some(closure));
        self.all(
            1,
            |_| {
                let closure = closure.lock().ok().and_then(|mut closure| closure.take());
                closure.map(|closure| closure())
            },
            || (),
        )
        .map(|report| Report {
            results: report.results.into_iter().flatten().collect(),
            cores: report.cores,
            total: report.total,
            window: report.window,
            lines: report.lines,
        })
    }

    fn all<R, F, W>(
        &mut self,
        threads: usize,
        closure: F,
        first_ended: W,
    ) -> Result<Report<R>, Stopped>
    where
        R: Send,
        F: Fn(usize) -> R + Sync,
        W: FnOnce() + Send,
    {
        if self.over {
            return Err(Stopped::over());
        }
        let task = Task { closure, results: core::ptr::null_mut(), stride: 0 };
        let mut exchange = Exchange::new(task, threads, || None::<thread::Result<R>>)
            .map_err(|error| Stopped::no_memory(&error))?;
        let (results, stride) = exchange.results();
        (exchange.closure_mut().results, exchange.closure_mut().stride) = (results, stride);
        let task = exchange.closure().expose_provenance() as u64;
        let entry = (first::<F, R> as *const ()).expose_provenance() as u64;
        let mut first_ended = Some(first_ended);
        let mut watch = || {
            if let Some(first_ended) = first_ended.take() {
                first_ended();
            }
        };
        let mut outcome = None;
        let place = &mut outcome;
        let job: Box<dyn FnOnce(&mut Workshop) + Send + '_> = Box::new(|workshop| {
            *place = Some(workshop.run(threads, entry, task, &mut watch));
        });
        // SAFETY: this function waits until the job is done or its thread has ended, before
        // anything goes that it borrows.
        let job =
            unsafe { core::mem::transmute::<Box<dyn FnOnce(&mut Workshop) + Send + '_>, Job>(job) };
        let idle = |state: &DeskState| matches!(state, DeskState::Idle | DeskState::Closed);
        if let DeskState::Idle = self.desk.take(idle, DeskState::Job(job)) {
            let done = self.desk.take(idle, DeskState::Idle);
            if let DeskState::Closed = done {
                self.desk.set(DeskState::Closed);
            }
        } else {
            self.desk.set(DeskState::Closed);
        }
        let counts = match outcome {
            Some(Ok(counts)) => counts,
            stopped => {
                self.over = true;
                // Threads that did not end may hold on to what they were given.
                exchange.abandon();
                return Err(match stopped {
                    Some(Err(stopped)) => *stopped,
                    _ => Stopped::over(),
                });
            }
        };
        let results = exchange.take();
        let mut values = Vec::with_capacity(threads);
        for (thread, result) in results.into_iter().enumerate() {
            match result {
                Some(Ok(value)) => values.push(value),
                Some(Err(payload)) => return Err(Stopped::panicked(thread, &message(&*payload))),
                None => return Err(Stopped::over()),
            }
        }
        Ok(Report {
            results: values,
            cores: counts.cores,
            total: counts.total,
            window: counts.window,
            lines: counts.lines,
        })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.desk.take(|state| !matches!(state, DeskState::Busy), DeskState::Closing);
        if let Some(engine) = self.engine.take() {
            let _ = engine.join();
        }
    }
}

/// Gives the message of a panic.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|&text| text.to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned())
}

/// The right to be the process's only session.
#[derive(Debug)]
struct Turn(());

/// The thread whose session there is; 0 is none.
static HOLDER: AtomicU64 = AtomicU64::new(0);

impl Turn {
    fn take() -> Result<Self, Error> {
        let here = 0_u8;
        if lend::is_stack((&raw const here).addr() as u64) {
            return Err(Error::SecondSession); // a simulated thread wants to simulate
        }
        // SAFETY: asks for this thread's id.
        let me = unsafe { libc::syscall(libc::SYS_gettid) }.cast_unsigned();
        loop {
            match HOLDER.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(Self(())),
                Err(holder) if holder == me => return Err(Error::SecondSession),
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HOLDER.store(0, Ordering::Release);
    }
}

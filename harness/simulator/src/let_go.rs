//! What happens to threads that a stop finds in the middle of something: the process goes on without
//! them, and may need what they hold.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::enter;
use crate::guest_memory;
use crate::halt::Halt;
use crate::os::State;
use crate::queue::LATEST;
use crate::symbols::Symbols;
use crate::time::{NANOSECOND, Time};
use crate::unwind::Frame;

impl Engine {
    /// After a run was stopped: lets the threads that are in the middle of a function of the C
    /// library or the standard library leave it, so that no lock of the whole process stays held,
    /// the allocator's say. Threads that are in the program's own functions end where they are.
    ///
    /// It is no promise: a thread may call back into the program in between, which may take for
    /// ever, and the program has locks of its own.
    pub(crate) fn let_go(&mut self, halt: &Halt, symbols: &mut Symbols) {
        const PATIENCE: Duration = Duration::from_secs(20);
        const LONGEST: Time = 1_000_000 * NANOSECOND;
        self.give_up_at = Some(Instant::now() + PATIENCE);
        self.interrupt = Arc::default();
        let mut stopped = halt.core();
        let mut slice = 2_000 * NANOSECOND;
        loop {
            // Again and again: a place may be one that no table describes, a function's very end say.
            for thread in 0..self.threads.len() {
                self.end_on_return(thread, symbols);
            }
            if let Some(at) = stopped
                && self.leave(at).is_err()
            {
                return;
            }
            for at in 0..self.cores.len() {
                while self.cores[at].thread.is_some() && !self.holds(at, symbols) {
                    if self.leave(at).is_err() {
                        return;
                    }
                }
            }
            let Some(first) = self.queue.first() else { return };
            self.deadline = (first.time() + slice).min(LATEST - 1);
            slice = (2 * slice).min(LONGEST);
            match self.run(&mut || ()).map_err(|halt| *halt) {
                Err(Halt::Budget) => stopped = None,
                Err(another) if another.core().is_some() => stopped = another.core(),
                _ => return,
            }
        }
    }

    /// Whether the thread of a core may hold a lock of the whole process.
    fn holds(&self, at: usize, symbols: &mut Symbols) -> bool {
        let thread = self.cores[at].thread;
        thread.is_some_and(|thread| symbols.calls(&self.frame_of(thread)).holds)
    }

    /// Lets a thread end when it returns to the program's own functions.
    fn end_on_return(&self, thread: usize, symbols: &mut Symbols) {
        if self.threads[thread].state != State::Ended
            && let Some(place) = symbols.calls(&self.frame_of(thread)).returns_at
        {
            let _ = guest_memory::write(place, enter::end_address());
        }
    }

    /// Where a thread is, and its registers.
    fn frame_of(&self, thread: usize) -> Frame {
        let rip = match self.threads[thread].state {
            State::Running(core) => self.running_at(core),
            _ => self.threads[thread].rip,
        };
        Frame { rip, registers: *self.registers_of(thread) }
    }

    /// Ends the thread of a core where it is; the core takes another one.
    fn leave(&mut self, at: usize) -> Result<(), Box<Halt>> {
        if let Some(thread) = self.cores[at].thread {
            self.unfinished -= 1;
            self.threads[thread].state = State::Ended;
        }
        self.cores[at].pending = None;
        self.waiting.withdraw(self.cores[at].rank);
        self.cores[at].stands = false;
        self.next_thread(at)
    }

    /// Where the thread of a core is, running.
    pub(crate) fn running_at(&self, core: usize) -> u64 {
        let core = &self.cores[core];
        let exit = core.pending.unwrap_or(core.context.exit);
        self.translator.exits.get(exit as usize).map_or(0, |exit| exit.rip)
    }
}

//! Where nothing can be simulated: on other processors and operating systems. Everything has the
//! same form here, and says so.

use core::convert::Infallible;
use std::alloc::{GlobalAlloc, Layout, System};

use crate::error::{Error, Stopped};
use crate::report::Report;
use crate::simulation::Simulation;

impl Simulation {
    /// Says that this host cannot simulate.
    ///
    /// # Errors
    /// Always.
    pub fn start(self) -> Result<Session, Error> {
        self.check()?;
        Err(Error::Architecture)
    }
}

/// A session that cannot be had.
#[derive(Debug)]
pub struct Session(Infallible);

impl Session {
    /// Executes the closure on every thread.
    ///
    /// # Errors
    /// None: there is no session.
    pub fn each<R, F>(&mut self, _: F) -> Result<Report<R>, Stopped>
    where
        R: Send,
        F: Fn(usize) -> R + Sync,
    {
        match self.0 {}
    }

    /// Executes the closure on every thread, and calls back when the first one ends.
    ///
    /// # Errors
    /// None: there is no session.
    pub fn each_until<R, F, W>(&mut self, _: F, _: W) -> Result<Report<R>, Stopped>
    where
        R: Send,
        F: Fn(usize) -> R + Sync,
        W: FnOnce() + Send,
    {
        match self.0 {}
    }

    /// Executes the closure on the first thread.
    ///
    /// # Errors
    /// None: there is no session.
    pub fn once<R, F>(&mut self, _: F) -> Result<Report<R>, Stopped>
    where
        R: Send,
        F: FnOnce() -> R + Send,
    {
        match self.0 {}
    }
}

/// The system's allocator: without an engine, nobody needs another one.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineHeap;

// SAFETY: everything goes to the system's allocator.
unsafe impl GlobalAlloc for EngineHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's block and layout.
        unsafe { System.dealloc(block, layout) }
    }
}

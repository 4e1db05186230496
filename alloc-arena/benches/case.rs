//! The workload of an arena: each thread allocates from one of its own, writes to the block, and
//! resets the arena when all of it is handed out. Arenas that threads can share, and pools, have
//! workloads of their own, in files beside this one.
//!
//! One file for the crate's benchmark and for the program, which include it by `#[path]`.

use core::alloc::Layout;
use std::sync::{Arc, Mutex};

use alloc_arena::{Arena, Frees, HotFields, Map, Place, Placement, Properties, Request};
use harness::layout::Object;
use harness::memory::Policy;
use harness::native::{Conditions, Experiment};
use harness::records::Metric;
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;
use harness::workload::Memory;

#[path = "pool_case.rs"]
pub(crate) mod pools;
#[path = "shared_case.rs"]
mod shared;

harness::described!(described, alloc_arena);

struct Allocating<A> {
    arena: A,
    bytes: usize,
    request: Request,
    layout: Layout,
    /// Blocks that fill the arena, and those still to come before the next reset.
    blocks: usize,
    left: usize,
    think: u64,
    misaligned: u64,
    exhausted: u64,
    placements: Arc<Mutex<Vec<Placement>>>,
    failed: Option<String>,
}

impl<A: Arena + HotFields + Map + Send> Work for Allocating<A> {
    /// Maps the arena again from the pinned thread: where pages lie may depend on who asks.
    fn prepare(&mut self) {
        match A::map(self.bytes, &self.request) {
            Ok(arena) => self.arena = arena,
            Err(error) => self.failed = Some(error.to_string()),
        }
    }

    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        // Locals, so that the loop keeps them in registers whatever the block may alias.
        let (layout, think) = (self.layout, self.think);
        let (mut misaligned, mut exhausted, mut left) = (0, 0, self.left);
        for _ in 0..ops {
            // Not when it is full: a backing that rounds up to a huge page would walk all of it.
            if left == 0 {
                self.arena.reset();
                left = self.blocks;
            }
            left -= 1;
            let block = self.arena.try_alloc_layout(layout);
            let Ok(block) = block else {
                exhausted += 1;
                continue;
            };
            let first = block.cast::<u8>();
            // An `and`: a division by the run-time alignment would cost more than the allocation.
            misaligned += u64::from(first.addr().get() & (layout.align() - 1) != 0);
            // SAFETY: the block is this thread's, at least one byte long, until the next reset.
            unsafe { first.write_volatile(1) };
            chain(think);
        }
        self.left = left;
        self.misaligned += misaligned;
        self.exhausted += exhausted;
        ops
    }

    /// The baseline's block is the workload's: the arena has none.
    fn objects(&self) -> Vec<Object> {
        let is_an_arena = A::PROPERTIES.frees != Frees::Nothing;
        is_an_arena.then(|| described("arena".into(), &self.arena)).into_iter().collect()
    }

    fn period(&self) -> u64 {
        self.blocks as u64
    }

    fn finish(&mut self) -> Result<(), String> {
        if let Some(error) = self.failed.take() {
            return Err(format!("the arena could be mapped once but not again: {error}"));
        }
        if self.misaligned > 0 || self.exhausted > 0 {
            return Err(format!(
                "{} blocks were misaligned, {} allocations failed in an arena with room",
                self.misaligned, self.exhausted
            ));
        }
        if let Ok(mut placements) = self.placements.lock() {
            placements.push(self.arena.placement());
        }
        Ok(())
    }
}

/// Turns the thread's memory policy into a wish of the arena.
fn request(policy: &Policy, memory: Memory, numa_bound: bool) -> Result<Request, Unavailable> {
    if memory == Memory::Local {
        // Where the row cannot place its pages, or may not, that shows in its placement.
        return Ok(match policy {
            Policy::Prefer(node) | Policy::Node(node) => Request::on_node(*node),
            Policy::Interleave(_) => Request::interleaved(),
            Policy::FirstTouch => Request::new(),
        });
    }
    if !numa_bound {
        return Err(Unavailable::because("not_numa_bound", "this arena cannot choose a node"));
    }
    match policy {
        Policy::Prefer(node) | Policy::Node(node) => Ok(Request::on_node(*node).strict()),
        Policy::FirstTouch => Ok(Request::new()),
        Policy::Interleave(_) => Ok(Request::interleaved().strict()),
    }
}

/// Builds the experiment for one arena; every block must be aligned, every empty arena must serve.
///
/// # Errors
/// When an arena of that kind cannot be had, or the allocation does not fit it.
pub(crate) fn experiment<A>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    A: Arena + HotFields + Map + Send + 'static,
{
    let workload = &conditions.workload;
    let layout = Layout::from_size_align(workload.alloc_bytes, 8)
        .map_err(|error| Unavailable::because("bad_layout", error.to_string()))?;
    let bytes = workload.arena_bytes;
    let blocks = bytes / layout.pad_to_align().size();
    if blocks == 0 {
        return Err(Unavailable::because(
            "too_large",
            format!("{} bytes do not fit", layout.size()),
        ));
    }
    if A::PROPERTIES.thread_safe {
        return shared::experiment::<A>(conditions, layout, blocks);
    }
    let placements = Arc::new(Mutex::new(Vec::new()));
    let work = |policy: &Policy| -> Result<Box<dyn Work>, Unavailable> {
        let request = request(policy, workload.memory, A::PROPERTIES.numa_bound)?;
        let refused =
            |error: &dyn core::fmt::Display| Unavailable::because("not_mapped", error.to_string());
        let arena = A::map(bytes, &request).map_err(|error| refused(&error))?;
        arena.try_alloc_layout(layout).map_err(|_| {
            Unavailable::because("too_large", format!("{} bytes do not fit", layout.size()))
        })?;
        Ok(<dyn Work>::boxed(Allocating {
            arena,
            bytes,
            request,
            layout,
            blocks,
            left: blocks,
            think: conditions.steps.steps(workload.think_ns),
            misaligned: 0,
            exhausted: 0,
            placements: placements.clone(),
            failed: None,
        }))
    };
    let works = conditions.own_memory.iter().map(work).collect::<Result<_, _>>()?;
    Ok(Experiment {
        works,
        granted: None,
        verify: Box::new(move |_| {
            let placements = placements.lock().map_err(|error| error.to_string())?;
            let mut facts =
                vec![("bytes_per_object", Metric::Count { value: size_of::<A>() as u64 })];
            if A::PROPERTIES.frees != Frees::Nothing {
                facts.extend(placement_facts(&placements));
            }
            Ok(facts)
        }),
    })
}

/// Where the pages of all threads' arenas were, as the kernel said.
fn placement_facts(placements: &[Placement]) -> Vec<(&'static str, Metric)> {
    let sum = |of: &dyn Fn(&Placement) -> Result<u64, String>, code: &str| match placements
        .iter()
        .map(of)
        .sum::<Result<u64, String>>()
    {
        Ok(value) => Metric::Count { value },
        Err(detail) => Metric::Missing(Unavailable::because(code, detail)),
    };
    let pages = |placement: &Placement, count: &dyn Fn(&alloc_arena::Pages) -> u64| {
        placement.pages.as_ref().map(count).map_err(ToString::to_string)
    };
    let on_node = |placement: &Placement| match placement.requested {
        Place::Node(node) => pages(placement, &|pages| pages.on(node)),
        _ => Err("no node was asked for".to_owned()),
    };
    let verified = |placement: &Placement| match &placement.unverified {
        None => Ok(1),
        Some(reason) => Err(reason.to_string()),
    };
    let huge = |placement: &Placement| match &placement.huge_bytes {
        Ok(bytes) => Ok(*bytes),
        Err(reason) => Err(reason.to_string()),
    };
    vec![
        ("pages_present", sum(&|p| pages(p, &alloc_arena::Pages::present), "pages_uncounted")),
        ("pages_on_node", sum(&on_node, "pages_uncounted")),
        ("arenas_verified", sum(&verified, "placement_unverified")),
        ("huge_bytes", sum(&huge, "huge_pages_unknown")),
    ]
}

/// Gives what the type states about itself, by name.
pub(crate) fn properties<A: Arena>() -> Vec<(&'static str, String)> {
    stated(A::PROPERTIES, size_of::<A>())
}

fn stated(stated: Properties, bytes: usize) -> Vec<(&'static str, String)> {
    let yes = |it: bool| if it { "yes" } else { "no" }.to_owned();
    vec![
        ("memory", stated.memory.to_string()),
        ("numa_bound", yes(stated.numa_bound)),
        ("frees", stated.frees.to_string()),
        ("thread_safe", yes(stated.thread_safe)),
        ("runs_drop", yes(stated.runs_drop)),
        ("bytes", bytes.to_string()),
    ]
}

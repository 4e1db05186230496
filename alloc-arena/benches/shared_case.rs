//! The workload of an arena that threads share: all allocate from one, and whoever finds it full
//! takes everything back. Blocks are written by atomic stores, since one that was taken back may
//! have two owners.

use core::alloc::Layout;
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use alloc_arena::{Arena, HotFields, Map};
use harness::layout::Object;
use harness::native::{Conditions, Experiment};
use harness::records::Metric;
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;

/// An arena that says that threads may share it.
struct Shared<A>(A);

// SAFETY: made in `experiment` only, which looks whether the arena is `thread_safe`; then references
// may be shared by the contract of `Arena`, and whoever drops it last has it alone.
unsafe impl<A: Send> Sync for Shared<A> {}

struct Allocating<A> {
    arena: Arc<Shared<A>>,
    layout: Layout,
    /// Blocks of an arena of one thread.
    blocks: usize,
    think: u64,
    misaligned: u64,
    exhausted: u64,
}

impl<A: Arena + HotFields + Send> Work for Allocating<A> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let (arena, layout, think) = (&self.arena.0, self.layout, self.think);
        let (mut misaligned, mut exhausted) = (0, 0);
        for _ in 0..ops {
            let mut block = arena.try_alloc_layout(layout);
            if block.is_err() {
                // SAFETY: blocks are written by atomic stores only, here, and forgotten.
                unsafe { arena.reset_shared() };
                block = arena.try_alloc_layout(layout);
            }
            let Ok(block) = block else {
                exhausted += 1;
                continue;
            };
            let first = block.cast::<u8>();
            misaligned += u64::from(first.addr().get() & (layout.align() - 1) != 0);
            // SAFETY: a byte of the arena, which is alive, and written by such stores only.
            unsafe { AtomicU8::from_ptr(first.as_ptr()) }.store(1, Ordering::Relaxed);
            chain(think);
        }
        self.misaligned += misaligned;
        self.exhausted += exhausted;
        ops
    }

    fn objects(&self) -> Vec<Object> {
        vec![super::described("arena".into(), &self.arena.0)]
    }

    fn period(&self) -> u64 {
        self.blocks as u64
    }

    fn finish(&mut self) -> Result<(), String> {
        // Others may have filled the arena again between the two looks: rare, and no failure.
        if self.misaligned > 0 {
            return Err(format!("{} blocks were misaligned", self.misaligned));
        }
        Ok(())
    }
}

/// Builds the experiment for one arena that threads share, with room for what each would have alone.
///
/// # Errors
/// When an arena of that kind cannot be had.
pub(super) fn experiment<A>(
    conditions: &Conditions,
    layout: Layout,
    blocks: usize,
) -> Result<Experiment, Unavailable>
where
    A: Arena + HotFields + Map + Send + 'static,
{
    let workload = &conditions.workload;
    let refused =
        |error: &dyn core::fmt::Display| Unavailable::because("not_mapped", error.to_string());
    let request =
        super::request(&conditions.shared_memory, workload.memory, A::PROPERTIES.numa_bound)?;
    let bytes = workload.arena_bytes.saturating_mul(conditions.threads());
    let arena = A::map(bytes, &request).map_err(|error| refused(&error))?;
    assert!(A::PROPERTIES.thread_safe, "only such arenas are shared");
    let arena = Arc::new(Shared(arena));
    let work = |_| -> Box<dyn Work> {
        <dyn Work>::boxed(Allocating {
            arena: arena.clone(),
            layout,
            blocks,
            think: conditions.steps.steps(workload.think_ns),
            misaligned: 0,
            exhausted: 0,
        })
    };
    Ok(Experiment {
        works: (0..conditions.threads()).map(work).collect(),
        granted: None,
        verify: Box::new(move |_| {
            let mut facts =
                vec![("bytes_per_object", Metric::Count { value: size_of::<A>() as u64 })];
            facts.extend(super::placement_facts(&[arena.0.placement()]));
            Ok(facts)
        }),
    })
}

//! The workload of a pool: each thread gets a block, writes its number there, thinks, looks whether
//! it still stands there, and puts the block back. Threads share a pool that they can share;
//! otherwise each has one of its own.

use std::sync::Arc;

use alloc_arena::{Frees, Handle, HotFields, Map, Pool, Request};
use harness::layout::Object;
use harness::memory::Policy;
use harness::native::{Conditions, Experiment};
use harness::records::Metric;
use harness::spin::chain;
use harness::unavailable::Unavailable;
use harness::window::Work;

struct Pooling<P: Pool + 'static> {
    // Before `pool`: dropped first.
    handle: P::Handle<'static>,
    /// Keeps alive what the handle borrows.
    pool: Arc<P>,
    id: u64,
    think: u64,
    refused: u64,
    overwritten: u64,
}

impl<P: Pool + HotFields> Work for Pooling<P> {
    #[inline(never)]
    fn batch(&mut self, ops: u64) -> u64 {
        let (id, think, handle) = (self.id, self.think, &self.handle);
        let (mut refused, mut overwritten) = (0, 0);
        for _ in 0..ops {
            let Ok(block) = handle.try_get() else {
                refused += 1;
                continue;
            };
            let number = block.cast::<u64>();
            // SAFETY: the block is this thread's, and long and aligned enough for a number.
            unsafe { number.write_volatile(id) };
            chain(think);
            // SAFETY: as above.
            overwritten += u64::from(unsafe { number.read_volatile() } != id);
            // SAFETY: got above, not used any more.
            unsafe { handle.put(block) };
        }
        self.refused += refused;
        self.overwritten += overwritten;
        ops
    }

    /// The baseline's block is the workload's: the pool has none.
    fn objects(&self) -> Vec<Object> {
        let is_a_pool = P::PROPERTIES.frees != Frees::Nothing;
        is_a_pool.then(|| super::described("pool".into(), &*self.pool)).into_iter().collect()
    }

    fn finish(&mut self) -> Result<(), String> {
        if self.refused > 0 || self.overwritten > 0 {
            return Err(format!(
                "{} gets failed in a pool with room, {} blocks had two owners",
                self.refused, self.overwritten
            ));
        }
        Ok(())
    }
}

/// Builds the experiment for one pool; no block may have two owners, and none may be lost.
///
/// # Errors
/// When a pool of that kind cannot be had, serves fewer threads, or its blocks are too small.
pub(crate) fn experiment<P>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    P: Pool + HotFields + Map + 'static,
{
    let workload = &conditions.workload;
    let (wanted, size) = (workload.alloc_bytes, P::BLOCK.size());
    if wanted > size {
        let detail = format!("{wanted} bytes do not fit blocks of {size}");
        return Err(Unavailable::because("too_large", detail));
    }
    let map = |policy: &Policy, bytes: usize| -> Result<Arc<P>, Unavailable> {
        let request: Request = super::request(policy, workload.memory, P::PROPERTIES.numa_bound)?;
        let pool = P::map(bytes, &request);
        pool.map(Arc::new).map_err(|e| Unavailable::because("not_mapped", e.to_string()))
    };
    let threads = conditions.threads();
    let pools = if P::PROPERTIES.thread_safe {
        let bytes = workload.arena_bytes.saturating_mul(threads);
        vec![map(&conditions.shared_memory, bytes)?; threads]
    } else {
        let own = conditions.own_memory.iter();
        own.map(|policy| map(policy, workload.arena_bytes)).collect::<Result<_, _>>()?
    };
    let work = |(id, pool): (usize, &Arc<P>)| -> Result<Box<dyn Work>, Unavailable> {
        // SAFETY: the work keeps the pool alive, in place, until after its handle is dropped.
        let lent: &'static P = unsafe { &*Arc::as_ptr(pool) };
        let handle = lent.handle().ok_or_else(|| {
            Unavailable::because("too_many_threads", format!("no handle for thread {id}"))
        })?;
        let (pool, id, think) =
            (pool.clone(), id as u64, conditions.steps.steps(workload.think_ns));
        Ok(<dyn Work>::boxed(Pooling { handle, pool, id, think, refused: 0, overwritten: 0 }))
    };
    let works = pools.iter().enumerate().map(work).collect::<Result<_, _>>()?;
    Ok(Experiment { works, granted: None, verify: Box::new(move |_| verify(&pools)) })
}

/// What is known when all threads have ended. Handles may be alive still.
fn verify<P: Pool>(pools: &[Arc<P>]) -> Result<Vec<(&'static str, Metric)>, String> {
    let mut facts = vec![("bytes_per_object", Metric::Count { value: size_of::<P>() as u64 })];
    if P::PROPERTIES.frees != Frees::Nothing {
        let different = if P::PROPERTIES.thread_safe { &pools[..1] } else { pools };
        let placements: Vec<_> = different.iter().map(|pool| pool.placement()).collect();
        facts.extend(super::placement_facts(&placements));
    }
    Ok(facts)
}

/// Gives what the type states about itself, by name.
pub(crate) fn properties<P: Pool>() -> Vec<(&'static str, String)> {
    super::stated(P::PROPERTIES, size_of::<P>())
}

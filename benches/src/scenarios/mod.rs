//! The phenomena of big machines, each a scenario: what happens and why, before and after, beside
//! the figures of the field reports that described it.
//!
//! | file | holds |
//! |---|---|
//! | `scenario`, `effect` | what a scenario says about itself, and what its steps have to show |
//! | `job`, `turn`, `clock` | what threads do, what they note down, and the time they read |
//! | `stage`, `step`, `measured` | a step on simulated cores or on this host's, and its figures |
//! | `reasons`, `source` | what the figures say of what does not appear, and source lines |
//! | `text`, `page`, `plot`, `records` | what came of it, for readers and for programs |
//! | `lru`, `zipf`, `mailbox`, `arrivals`, `shards` | what several scenarios are built from |
//! | the others | a scenario each |
//!
//! Another scenario is a file with a `SCENARIO`, a line in [`ALL`], its shape in
//! `benches/tests/scenarios.rs`, and the page made again.

mod arrivals;
mod atomic_vs_sharded;
mod barrier_cost;
mod batching;
mod clock;
mod double_queue;
mod effect;
mod false_sharing;
mod gateway;
mod gateway_effects;
mod gateway_parts;
mod global_lru;
mod job;
mod l3_domain;
mod lru;
mod mailbox;
mod measured;
mod numa_local;
pub(crate) mod page;
mod pages;
mod plot;
mod pool_oversize;
mod reasons;
pub(crate) mod records;
mod scenario;
mod shards;
mod shared_queue_spike;
mod source;
mod stage;
mod steal_zipf;
mod step;
pub(crate) mod text;
mod thread_cap;
mod turn;
mod zipf;

pub(crate) use effect::{Done, Effect};
pub(crate) use measured::{Measured, Reply};
pub(crate) use scenario::{Engine, Scenario, Setting, Step, Where};
pub(crate) use step::run;

/// Every scenario, in the order in which they are told.
pub(crate) const ALL: [&Scenario; 13] = [
    &false_sharing::SCENARIO,
    &atomic_vs_sharded::SCENARIO,
    &barrier_cost::SCENARIO,
    &global_lru::SCENARIO,
    &shared_queue_spike::SCENARIO,
    &thread_cap::SCENARIO,
    &l3_domain::SCENARIO,
    &numa_local::SCENARIO,
    &steal_zipf::SCENARIO,
    &pool_oversize::SCENARIO,
    &double_queue::SCENARIO,
    &batching::SCENARIO,
    &gateway::SCENARIO,
];

//! Whether threads use bytes as the objects say that they lie in.

use std::collections::BTreeMap;

use super::Request;
use super::lines::Watch;
use super::point::{Rig, conditions, on_a_fresh_stack, start, step_rate};
use super::work::Quota;
use crate::layout::{self, Object, Player, Seen};
use crate::memory::make_plain;
use crate::native::{Failure, Make};
use crate::unavailable::Unavailable;

/// Simulates an experiment, each thread on a core of its own, watches which core touches which
/// byte, and compares that with what the works describe
/// ([`Work::objects`](crate::window::Work::objects)), and with objects that no work knows: tables that
/// many objects share.
///
/// What counts is a round of `request.ops` operations of each thread and more, after others that
/// warm up: what threads do in their first operations only is not seen.
///
/// # Errors
/// When the experiment cannot be made or simulated here, or is broken.
pub fn confirm(make: Make, request: &Request<'_>, tables: &[Object]) -> Result<Seen, Failure> {
    on_a_fresh_stack(|| simulate(make, request, tables))
}

fn simulate(make: Make, request: &Request<'_>, tables: &[Object]) -> Result<Seen, Failure> {
    let unavailable = |code: &str, why: &str| Failure::Unavailable(Unavailable::because(code, why));
    let shared = |at: usize| request.cores[..at].contains(&request.cores[at]);
    if (0..request.cores.len()).any(shared) {
        let why = "who wrote a byte is known by the core; give each thread one of its own";
        return Err(unavailable("cores_shared", why));
    }
    make_plain();
    let mut session = start(request, Some(&Watch::default()))?;
    let steps = step_rate(&mut session)?;
    let all = conditions(request, request.cores, request.workload, steps)?;
    let mut rig = Rig::make(&mut session, make, &all)?;
    rig.rounds([Quota::batches(request.ops.div_ceil(4)), Quota::batches(request.ops)])?;
    // Afterwards: what was allocated in the meantime is theirs as well.
    let (mut objects, mut players) = (BTreeMap::new(), Vec::new());
    for (work, &cpu) in rig.works().zip(request.cores) {
        players.push(Player { cpu, roles: work.roles().to_vec() });
        for object in work.objects() {
            objects.insert((object.start, object.name.clone()), object);
        }
    }
    let objects: Vec<Object> = objects.into_values().chain(tables.iter().cloned()).collect();
    let lines = rig.lines.take();
    rig.end()?;
    let lines = lines.ok_or_else(|| Failure::Broken("no line was watched".into()))?;
    if lines.others.transfers > 0 {
        let why = "more lines went from core to core than are told one by one; fewer operations \
                   or smaller objects touch fewer";
        return Err(unavailable("lines_left_out", why));
    }
    Ok(layout::confirm(&objects, &players, &lines))
}

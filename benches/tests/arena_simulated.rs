//! Arenas on nodes of simulated machines: where the simulated kernel says that their pages lie, and
//! where lines come from when threads use them.

use std::ptr::NonNull;

use alloc_arena::{
    Asked, Backing, Bump, FirstTouch, Handle, Heap, MagazinePool, Map, MapError, MutexPool, Numa,
    Place, Placement, Policy, Pool, RemotePool, Request, RingPool, TreiberPool, Unverified,
};
use simulator::{EngineHeap, Machine, Session, Simulation};

#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

const BYTES: usize = 1 << 20;
const PAGE: usize = 4096;
const LINE: usize = 64;
const PAGES: u64 = (BYTES / PAGE) as u64;
const LINES: u64 = (BYTES / LINE) as u64;

/// The machines, and a core of the second node.
const MACHINES: [(&str, u32); 2] = [("epyc-7742-2s", 64), ("xeon-8176-8s", 28)];

/// A machine, a session on a core of its first node and one of its second, in that order.
fn sessions() -> impl Iterator<Item = (Machine, Session)> {
    MACHINES.into_iter().map(|(name, far)| {
        let machine = Machine::named(name).unwrap();
        assert_eq!((machine.node_of(0), machine.node_of(far)), (0, 1));
        let simulation = Simulation::on(&machine).threads(2).cores(&[0, far]);
        let session = simulation.start().unwrap();
        (machine, session)
    })
}

fn once<R: Send>(session: &mut Session, closure: impl FnOnce() -> R + Send) -> R {
    session.once(closure).unwrap().results.remove(0)
}

/// Maps an arena on the first node's core.
fn map<B: Backing + Map + Send>(
    session: &mut Session,
    request: Request,
) -> Result<(Bump<B>, Placement), MapError> {
    once(session, || {
        Bump::<B>::map(BYTES, &request).map(|arena| {
            let placement = arena.placement();
            (arena, placement)
        })
    })
}

/// Where an arena's bytes begin, for a closure of another thread.
#[derive(Clone, Copy)]
struct Start(NonNull<u8>);

// SAFETY: threads of a test use the bytes one after the other.
unsafe impl Send for Start {}
// SAFETY: as above.
unsafe impl Sync for Start {}

impl Start {
    fn of<B: Backing>(arena: &Bump<B>) -> Self {
        let region = arena.backing().region();
        assert!(region.len() >= BYTES);
        Self(region.cast())
    }

    fn add(self, offset: usize) {
        // SAFETY: inside of the region, of which nothing is allocated.
        let byte = unsafe { self.0.add(offset) };
        // SAFETY: as above; one thread at a time.
        let before = unsafe { byte.read_volatile() };
        // SAFETY: as above.
        unsafe { byte.write_volatile(before + 1) };
    }
}

/// Adds to bytes of the arena from one of the cores; how many lines came from its own node's
/// memory and from others', and how long it waited.
fn reads(session: &mut Session, thread: usize, start: Start, from: usize, step: usize) -> [u64; 3] {
    let report = session.each(|at| {
        for offset in (from..BYTES).step_by(step).filter(|_| at == thread) {
            start.add(offset);
        }
    });
    let counts = report.unwrap().cores[thread];
    [counts.memory_reads - counts.remote_reads, counts.remote_reads, counts.time_ps]
}

/// A few lines of the closure's own come too.
fn about(lines: u64) -> std::ops::Range<u64> {
    lines..lines + 32
}

#[test]
fn pages_lie_on_the_node_that_was_asked_for() {
    for (machine, mut session) in sessions() {
        for node in 0..machine.nodes() as u32 {
            let (_arena, placement) = map::<Numa>(&mut session, Request::on_node(node).strict())
                .unwrap_or_else(|error| panic!("{} {node}: {error}", machine.name()));
            assert!(placement.verified(), "{placement:?}");
            assert_eq!(placement.policy, Ok(Policy::Bind(node)));
            let pages = placement.pages.unwrap();
            assert_eq!((pages.on(node), pages.present()), (PAGES, PAGES), "node {node}");
            assert!(placement.fallbacks.is_empty());
            let (_arena, advised) = map::<Numa>(&mut session, Request::on_node(node)).unwrap();
            assert_eq!(advised.policy, Ok(Policy::Preferred(node)));
            assert!(advised.verified(), "{advised:?}");
        }
    }
}

#[test]
fn pages_lie_in_turn_on_all_nodes() {
    for (machine, mut session) in sessions() {
        let nodes = machine.nodes() as u64;
        for request in [Request::interleaved(), Request::interleaved().strict()] {
            let (arena, placement) = map::<Numa>(&mut session, request).unwrap();
            assert!(placement.verified() && placement.fallbacks.is_empty(), "{placement:?}");
            assert_eq!(placement.policy, Ok(Policy::Interleaved { nodes: nodes as u32 }));
            let pages = placement.pages.unwrap();
            assert_eq!(pages.present(), PAGES);
            assert!((0..nodes as u32).all(|node| pages.on(node).abs_diff(PAGES / nodes) <= 1));
            // Used from the second node, which has one share of them.
            let [here, elsewhere, _] = reads(&mut session, 1, Start::of(&arena), 0, LINE);
            let share = LINES / nodes;
            assert!(here.abs_diff(share) <= PAGES + 32, "{}: {here} local", machine.name());
            assert!(elsewhere >= LINES - share - PAGES, "{}: {elsewhere}", machine.name());
            // Kept, so that no arena lies where lines of another are in caches still.
            std::mem::forget(arena);
        }
    }
}

#[test]
fn local_pages_lie_where_they_are_mapped() {
    for (machine, mut session) in sessions() {
        let (_arena, placement) = map::<Numa>(&mut session, Request::local().strict()).unwrap();
        assert_eq!(placement.requested, Place::Node(0), "{}", machine.name());
        assert!(placement.verified(), "{placement:?}");
    }
}

#[test]
fn a_node_that_the_machine_lacks_is_absent_whatever_the_host_has() {
    for (machine, mut session) in sessions() {
        for node in [machine.nodes() as u32, 63, 1000] {
            let absent = MapError::NodeAbsent(node);
            let strict = map::<Numa>(&mut session, Request::on_node(node).strict());
            assert_eq!(strict.map(|_| ()).unwrap_err(), absent);
            let (_arena, advised) = map::<Numa>(&mut session, Request::on_node(node)).unwrap();
            assert_eq!(advised.fallbacks.why(Asked::Node), Some(absent));
            assert_eq!(advised.unverified, Some(Unverified::NotBound(absent)));
        }
    }
}

#[test]
fn lines_come_from_the_node_and_cost_what_that_costs() {
    for (machine, mut session) in sessions() {
        // Kept, so that no arena lies where lines of another are in caches still.
        let mut kept = Vec::new();
        let mut lines = |node| {
            let (arena, _) = map::<Numa>(&mut session, Request::on_node(node).strict()).unwrap();
            let start = Start::of(&arena);
            kept.push(arena);
            reads(&mut session, 1, start, 0, LINE)
        };
        // Used from the second node.
        let [here, elsewhere, time] = lines(1);
        assert!(about(LINES).contains(&here), "{}: {here} local", machine.name());
        assert!(about(0).contains(&elsewhere), "{}: {elsewhere} remote", machine.name());
        let [here, elsewhere, longer] = lines(0);
        assert!(about(0).contains(&here), "{}: {here} local", machine.name());
        assert!(about(LINES).contains(&elsewhere), "{}: {elsewhere} remote", machine.name());
        let more = LINES * (machine.memory_remote_ps() - machine.memory_local_ps());
        assert!(longer > time + more / 2, "{}: {longer} ps, {time} ps", machine.name());
        once(&mut session, move || drop(kept));
    }
}

/// The control: the thread that maps the arena is the first to write to its pages, and another
/// one uses them.
#[test]
fn pages_of_the_control_lie_on_the_wrong_node() {
    for (machine, mut session) in sessions() {
        let (arena, placement) = map::<FirstTouch>(&mut session, Request::new()).unwrap();
        assert_eq!(placement.unverified, Some(Unverified::NothingPresent));
        let start = Start::of(&arena);
        reads(&mut session, 0, start, 0, PAGE);
        let (arena, pages) = once(&mut session, move || {
            let pages = arena.placement().pages;
            (arena, pages.unwrap())
        });
        assert_eq!((pages.on(0), pages.on(1)), (PAGES, 0));
        // The lines that the first one has come from it.
        let mut others = [0; 3];
        for line in 1..(PAGE / LINE) {
            let more = reads(&mut session, 1, start, line * LINE, PAGE);
            others = std::array::from_fn(|at| others[at] + more[at]);
        }
        let [here, elsewhere, _] = others;
        assert!(elsewhere >= LINES - PAGES, "{}: {elsewhere} remote", machine.name());
        assert!(here < LINES / 50, "{}: {here} local", machine.name());
        once(&mut session, move || drop(arena));
    }
}

/// Threads get up to three blocks at a time and write to all of each; how many found something
/// else there when they put them back, and how many blocks are left in the end.
fn conflicts<P: Pool + Map>(threads: usize) -> (u64, usize, usize) {
    let machine = Machine::named("epyc-7742-2s").unwrap();
    let pool = P::map(threads * 1024, &Request::new()).unwrap();
    let mut session = Simulation::on(&machine).threads(threads).start().unwrap();
    let report = session.each(|at| {
        let handle = pool.handle().expect("a handle for each thread");
        let (mut held, mut found) = ([None; 3], 0);
        for step in 0..60 {
            let place = &mut held[step % 3];
            if let Some(block) = place.take() {
                found += u64::from(!is_filled::<P>(block, at as u8));
                // SAFETY: got below, put once.
                unsafe { handle.put(block) };
            }
            *place = handle.try_get().ok().inspect(|block| {
                // SAFETY: the block is this thread's.
                unsafe { block.write_bytes(at as u8, P::BLOCK.size()) };
            });
        }
        for block in held.into_iter().flatten() {
            found += u64::from(!is_filled::<P>(block, at as u8));
            // SAFETY: as above.
            unsafe { handle.put(block) };
        }
        found
    });
    let found = report.unwrap().results.into_iter().sum();
    let handle = pool.handle().unwrap();
    let left = std::iter::from_fn(|| handle.try_get().ok()).count();
    (found, left, pool.reach())
}

fn is_filled<P: Pool>(block: NonNull<u8>, with: u8) -> bool {
    let bytes = NonNull::slice_from_raw_parts(block, P::BLOCK.size());
    // SAFETY: written when it was got.
    unsafe { bytes.as_ref() }.iter().all(|&byte| byte == with)
}

#[test]
fn blocks_have_one_owner_on_many_simulated_cores() {
    for threads in [2, 7, 33] {
        let found = [
            conflicts::<MutexPool<Heap, 64>>(threads),
            conflicts::<TreiberPool<Heap, 64>>(threads),
            conflicts::<RingPool<Heap, 64>>(threads),
            conflicts::<MagazinePool<Heap, 64>>(threads),
            conflicts::<RemotePool<Heap, 64, 64>>(threads),
        ];
        assert!(found.iter().all(|&(found, left, reach)| found == 0 && left == reach), "{found:?}");
    }
}

//! Locks of somebody else whose declarations are wrong in ways that addresses do not show, under
//! the simulator's eyes.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use harness::layout::{Seen, SeenKind, check, confirm};
use harness::native::{Failure, Make};
use harness::simulated::{self, EngineHeap, Machine, Request};
use harness::workload::{Memory, Workload};
use locks::{Fairness, HotField, HotFields, Properties, RawLock, Role, Waiting};

#[path = "../../locks/benches/case.rs"]
#[expect(dead_code, reason = "what the rows of the table need besides")]
mod case;

#[global_allocator]
static HEAP: EngineHeap = EngineHeap;

harness::described!(described, locks);

const WITHOUT_PAIRS: &str = "epyc-7742-2s";
const WITH_PAIRS: &str = "xeon-8176-8s";

/// Simulates four threads on cores of their own.
fn seen(make: Make, machine: &str) -> Result<Seen, Failure> {
    seen_on(make, machine, &[0, 1, 2, 3], Workload::default())
}

fn seen_on(make: Make, machine: &str, cores: &[u32], workload: Workload) -> Result<Seen, Failure> {
    let machine = Machine::named(machine).unwrap();
    let workload = &Workload { critical_ns: 20, think_ns: 50, ..workload };
    let request = Request { machine: &machine, cores, ops: 128, seed: 1, workload };
    simulated::confirm(make, &request, &[])
}

/// What was found of a lock, and what was told of the first finding.
fn found<L>(machine: &str) -> (Vec<SeenKind>, String)
where
    L: RawLock + HotFields + Default + 'static,
    L::Slot: Send + HotFields,
{
    let seen = match seen(case::experiment::<L>, machine) {
        Ok(seen) => seen,
        Err(error) => panic!("{error:?}"),
    };
    assert!(seen.fields > 0 && seen.lines > 0, "{seen:?}");
    let text = seen.findings.first().map(ToString::to_string).unwrap_or_default();
    (seen.findings.iter().map(|finding| finding.kind).collect(), text)
}

const PROPERTIES: Properties =
    Properties { fairness: Fairness::None, waiting: Waiting::Spins, numa_aware: false };

fn take(locked: &AtomicBool) {
    while locked.swap(true, Ordering::Acquire) {
        while locked.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
}

/// A lock that counts its turns beside it; what it says of the count is the parameter's.
#[derive(Default)]
#[repr(C)]
struct Counting<S> {
    locked: CachePadded<AtomicBool>,
    turns: AtomicU64,
    says: S,
}

/// What a lock says of its count of turns.
trait Says: Default + Send + Sync + 'static {
    fn say(turns: HotField) -> Option<HotField>;
}

macro_rules! says {
    ($($name:ident: $turns:ident => $say:expr;)*) => { $(
        #[derive(Default)]
        struct $name;
        impl Says for $name {
            fn say($turns: HotField) -> Option<HotField> {
                $say
            }
        }
    )* };
}

says! {
    Truth: turns => Some(turns.written_by(Role::One("holder")));
    ManyDo: turns => Some(turns.written_by(Role::Many("waiters")));
    Nothing: _turns => None;
    OneProducer: turns => Some(turns.written_by(Role::One("producer")));
    OneShard: turns => Some(turns.written_by(Role::Nth("shard", 3)));
    NobodyDoes: turns => Some(turns);
    OnlyRead: turns => Some(turns.read_by(Role::Anybody));
}

impl<S: Says> HotFields for Counting<S> {
    const ALIGNMENT: usize = align_of::<Self>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { locked, turns, says: _ } = self;
        visit(HotField::of("locked", &**locked).written_by(Role::Many("holder and waiters")));
        S::say(HotField::of("turns", turns)).into_iter().for_each(visit);
    }
}

// SAFETY: one swap from `false` succeeds at a time; its acquire pairs with the release store.
unsafe impl<S: Says> RawLock for Counting<S> {
    type Slot = ();
    const PROPERTIES: Properties = PROPERTIES;

    unsafe fn lock(&self, _slot: &()) {
        take(&self.locked);
        self.turns.store(self.turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    unsafe fn unlock(&self, _slot: &()) {
        self.locked.store(false, Ordering::Release);
    }
}

#[test]
fn a_lock_that_says_what_it_does_is_clean() {
    for machine in [WITHOUT_PAIRS, WITH_PAIRS] {
        assert_eq!(found::<Counting<Truth>>(machine), (vec![], String::new()));
        assert_eq!(found::<Counting<ManyDo>>(machine), (vec![], String::new()));
    }
}

#[test]
fn bytes_that_nobody_declared_are_found() {
    let (kinds, text) = found::<Counting<Nothing>>(WITHOUT_PAIRS);
    assert_eq!(kinds, [SeenKind::Undeclared], "{text}");
    assert!(text.contains("lock (bytes 128..136, in no field)"), "{text}");
    assert!(text.contains("written by threads 0,1,2,3"), "{text}");
    let (kinds, text) = found::<Owning>(WITHOUT_PAIRS);
    assert_eq!(kinds, [SeenKind::Undeclared], "{text}");
    assert!(text.contains("heap at 0x"), "{text}");
}

#[test]
fn writers_of_another_role_are_found() {
    let wrong = |(kinds, text): (Vec<SeenKind>, String), who: &str| {
        assert_eq!(kinds, [SeenKind::WrongWriter], "{text}");
        assert!(text.contains(&format!("lock.turns (bytes 128..136, written by {who}")), "{text}");
        assert!(text.contains("was written by threads 0,1,2,3"), "{text}");
    };
    wrong(found::<Counting<OneProducer>>(WITHOUT_PAIRS), "producer");
    wrong(found::<Counting<OneShard>>(WITHOUT_PAIRS), "shard 3");
    wrong(found::<Counting<NobodyDoes>>(WITHOUT_PAIRS), "nobody");
    wrong(found::<Counting<OnlyRead>>(WITH_PAIRS), "nobody");
}

/// Counts its turns in memory that it owns and does not speak of.
#[derive(Default)]
struct Owning {
    locked: CachePadded<AtomicBool>,
    turns: Box<CachePadded<AtomicU64>>,
}

impl HotFields for Owning {
    const ALIGNMENT: usize = align_of::<Self>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { locked, turns } = self;
        visit(HotField::of("locked", &**locked).written_by(Role::Many("holder and waiters")));
        visit(HotField::of("address of turns", turns).read_by(Role::Anybody));
    }
}

// SAFETY: as for `Counting`.
unsafe impl RawLock for Owning {
    type Slot = ();
    const PROPERTIES: Properties = PROPERTIES;

    unsafe fn lock(&self, _slot: &()) {
        take(&self.locked);
        self.turns.store(self.turns.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    unsafe fn unlock(&self, _slot: &()) {
        self.locked.store(false, Ordering::Release);
    }
}

/// A word of each thread, `BYTES` apart, told as words of all of them.
#[repr(C, align(128))]
struct Flags<const BYTES: usize> {
    locked: CachePadded<AtomicBool>,
    /// Word `thread * BYTES / 8` is the thread's.
    words: [AtomicU64; 64],
}

impl<const BYTES: usize> Default for Flags<BYTES> {
    fn default() -> Self {
        Self { locked: CachePadded::default(), words: [const { AtomicU64::new(0) }; 64] }
    }
}

/// The number of a thread.
struct Number(CachePadded<usize>);

impl Default for Number {
    fn default() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self(CachePadded::new(NEXT.fetch_add(1, Ordering::Relaxed) % 4))
    }
}

impl HotFields for Number {
    const ALIGNMENT: usize = align_of::<Self>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        visit(HotField::of("number", &*self.0).read_by(Role::One("waiter")));
    }
}

impl<const BYTES: usize> HotFields for Flags<BYTES> {
    const ALIGNMENT: usize = align_of::<Self>();
    const ALONE: bool = true;

    fn hot_fields(&self, visit: &mut dyn FnMut(HotField)) {
        let Self { locked, words } = self;
        visit(HotField::of("locked", &**locked).written_by(Role::Many("holder and waiters")));
        if BYTES == 8 {
            // All in one: nothing lies beside it.
            visit(HotField::of("words", words).written_by(Role::Many("waiters")));
            return;
        }
        for (at, word) in words.iter().enumerate() {
            visit(HotField::of("words", word).nth(at).written_by(Role::Many("waiters")));
        }
    }
}

// SAFETY: as for `Counting`.
unsafe impl<const BYTES: usize> RawLock for Flags<BYTES> {
    type Slot = Number;
    const PROPERTIES: Properties = PROPERTIES;

    unsafe fn lock(&self, slot: &Number) {
        let word = &self.words[*slot.0 * BYTES / 8];
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        take(&self.locked);
    }

    unsafe fn unlock(&self, _slot: &Number) {
        self.locked.store(false, Ordering::Release);
    }
}

#[test]
fn false_sharing_that_a_declaration_hides_is_found() {
    let shared = [SeenKind::SharedFalsely];
    let (kinds, text) = found::<Flags<8>>(WITHOUT_PAIRS);
    assert_eq!(kinds, shared, "{text}");
    assert!(text.contains("lock.words") && text.contains("within itself"), "{text}");
    let (kinds, text) = found::<Flags<32>>(WITHOUT_PAIRS);
    assert_eq!(kinds, [shared, shared].concat(), "two lines of two words each: {text}");
    assert!(text.contains("lock.words[0]") && text.contains("lock.words[4]"), "{text}");
    // A word on each line: only a machine that fetches pairs minds.
    assert_eq!(found::<Flags<64>>(WITHOUT_PAIRS).0, []);
    let (kinds, text) = found::<Flags<64>>(WITH_PAIRS);
    assert_eq!(kinds, [shared, shared].concat(), "two pairs of two words each: {text}");
    assert!(text.contains("lock.words[0]") && text.contains("lock.words[8]"), "{text}");
    assert_eq!(found::<Flags<128>>(WITH_PAIRS).0, []);
    // Addresses and roles show none of it.
    for pair in [None, Some(128)] {
        let lines = harness::layout::Lines { line: 64, pair };
        let (dense, wide) = (Flags::<8>::default(), Flags::<64>::default());
        let objects = [described("dense".into(), &dense), described("wide".into(), &wide)];
        assert_eq!(check(&objects, lines).findings.len(), 0);
    }
}

#[test]
fn what_cannot_be_looked_at_is_a_reason() {
    let make: Make = case::experiment::<Counting<Truth>>;
    let code = |outcome: Result<Seen, Failure>| match outcome {
        Err(Failure::Unavailable(reason)) => reason.code,
        other => panic!("{other:?}"),
    };
    let plain = Workload::default;
    assert_eq!(code(seen_on(make, WITHOUT_PAIRS, &[0, 1, 0], plain())), "cores_shared");
    assert_eq!(code(seen_on(make, WITHOUT_PAIRS, &[0, 999], plain())), "not_simulated");
    let absent = Workload { memory: Memory::Node(2), ..plain() };
    assert_eq!(code(seen_on(make, WITHOUT_PAIRS, &[0, 1], absent)), "node_absent");
}

#[test]
fn a_closure_is_looked_at_without_any_trait() {
    use harness::layout::{Field, Object, Player};

    static WORDS: CachePadded<[AtomicU64; 2]> = CachePadded::new([const { AtomicU64::new(0) }; 2]);
    let machine = Machine::named(WITHOUT_PAIRS).unwrap();
    let simulation = harness::simulated::Simulation::on(&machine).threads(2).watch_lines(true);
    let mut session = simulation.start().unwrap();
    let report = session.each(|_| {
        for _ in 0..50 {
            WORDS[0].fetch_add(1, Ordering::Relaxed);
        }
    });
    let lines = report.unwrap().lines.unwrap();
    let players = [0, 1].map(|cpu| Player { cpu, roles: Vec::new() });
    let kinds = |writers: harness::layout::Role| {
        let field = Field::at("word", WORDS.as_ptr().addr(), 8).written_by(writers);
        let object = Object::at("words", WORDS.as_ptr().addr(), 16).with([field]);
        let seen = confirm(&[object], &players, &lines);
        let of_words = seen.findings.into_iter().filter(|found| found.what.contains("words"));
        of_words.map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(harness::layout::Role::named("adders")), []);
    assert_eq!(kinds(harness::layout::Role::Nobody), [SeenKind::WrongWriter]);
}

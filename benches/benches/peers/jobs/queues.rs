//! Queues, by the driver of `cargo bench -p queues`: an operation is a push or a pop that succeeded.

mod adapters;

use harness::native::{Conditions, Experiment};
use harness::unavailable::Unavailable;
use harness::workload::Workload;
use queues::{HotFields, Queue, WithCapacity};

use super::{Bytes, Candidate, Job, Whose, candidate, whose};
use adapters::{Halved, HeaplessSpsc, Many};

#[expect(dead_code, reason = "the program lists the properties")]
#[path = "../../../../queues/benches/case.rs"]
mod case;

/// What goes through: a word.
type T = case::Element<1>;

/// Slots of every queue; `heapless` needs it when it is compiled, and for many a power of two.
const CAPACITY: usize = 1024;

fn make<Q>(conditions: &Conditions) -> Result<Experiment, Unavailable>
where
    Q: Queue<T> + HotFields + WithCapacity + 'static,
{
    case::experiment::<1, Q>(conditions)
}

macro_rules! ours {
    ($($id:ident => $queue:ty, $kind:ident;)*) => { vec![$(
        of::<$queue>(concat!("queues/", stringify!($id)), whose!($kind))
    ),*] };
}

/// A candidate, with the bytes that the allocator says.
fn of<Q>(id: &'static str, whose: Whose) -> Candidate
where
    Q: Queue<T> + HotFields + WithCapacity + 'static,
{
    candidate(id, whose, make::<Q>).taking(bytes::<Q>)
}

/// Bytes of a queue besides its slots, on the heap too, and of a slot: what one of twice the capacity
/// takes more.
fn bytes<Q: Queue<T> + WithCapacity>() -> Option<Bytes> {
    let once = on_heap(|| Q::with_capacity(CAPACITY).ok())?;
    let slots = on_heap(|| Q::with_capacity(2 * CAPACITY).ok())?.checked_sub(once)?;
    // Slots that are there anyhow are part of the queue, and so are those of one without a bound.
    let each = (slots > 0).then_some(slots / CAPACITY);
    Bytes::of(size_of::<Q>() + once.saturating_sub(slots), each)
}

/// Bytes of the heap that are in use for what `make` makes, with those that the allocator rounds up.
fn on_heap<Q>(make: impl Fn() -> Option<Q>) -> Option<usize> {
    // SAFETY: it reads the allocator's own figures.
    let in_use = || unsafe { libc::mallinfo2() }.uordblks;
    // More than the allocator keeps of a size, which count as in use all the time.
    let mut made: Vec<Q> = (0..8).map(|_| make()).collect::<Option<_>>()?;
    // Some get a block that is larger than what they asked for.
    let mut least = usize::MAX;
    for _ in 0..8 {
        made.reserve(1);
        let before = in_use();
        made.push(make()?);
        least = least.min(in_use().checked_sub(before)?);
    }
    Some(least)
}

/// Whether a queue serves one thread on each side only.
fn one_to_one<Q: Queue<T>>() -> bool {
    use queues::Side::Single;
    let properties = Q::PROPERTIES;
    properties.producers == Single && properties.consumers == Single
}

macro_rules! sides {
    ($($id:ident => $queue:ty, $kind:ident;)*) => { [$(one_to_one::<$queue>()),*] };
}

/// Ours for one thread on each side, and ours for many.
fn ours() -> (Vec<Candidate>, Vec<Candidate>) {
    let all: Vec<Candidate> = queues::for_each_queue!(ours);
    let single = queues::for_each_queue!(sides);
    let pairs = all.into_iter().zip(single);
    let (for_two, for_many): (Vec<_>, Vec<_>) = pairs.partition(|(_, single)| *single);
    let alone = |pairs: Vec<(Candidate, bool)>| pairs.into_iter().map(|(one, _)| one).collect();
    (alone(for_two), alone(for_many))
}

fn peer<Q>(id: &'static str) -> Candidate
where
    Q: Queue<T> + HotFields + WithCapacity + 'static,
{
    of::<Q>(id, Whose::Theirs)
}

fn for_two() -> Vec<Candidate> {
    let mut all = ours().0;
    all.extend([
        peer::<Halved<rtrb::Producer<T>, rtrb::Consumer<T>>>("rtrb"),
        peer::<Halved<ringbuf::HeapProd<T>, ringbuf::HeapCons<T>>>("ringbuf::HeapRb"),
        peer::<HeaplessSpsc<T, { CAPACITY + 1 }>>("heapless::spsc"),
        peer::<Halved<std::sync::mpsc::SyncSender<T>, std::sync::mpsc::Receiver<T>>>(
            "std::sync::mpsc::sync_channel",
        ),
        peer::<Many<crossbeam_queue::ArrayQueue<T>>>("crossbeam_queue::ArrayQueue"),
    ]);
    all
}

fn for_many() -> Vec<Candidate> {
    let mut all = ours().1;
    // The deque has a job of its own.
    all.retain(|candidate| !candidate.id.contains("deque"));
    all.extend([
        peer::<Many<crossbeam_queue::ArrayQueue<T>>>("crossbeam_queue::ArrayQueue"),
        peer::<Many<adapters::Channel<T>>>("crossbeam_channel::bounded"),
        peer::<Many<concurrent_queue::ConcurrentQueue<T>>>("concurrent_queue::bounded"),
        peer::<Many<heapless::mpmc::Queue<T, CAPACITY>>>("heapless::mpmc"),
        peer::<Many<adapters::LockedRing<T>>>("std::sync::Mutex<VecDeque>"),
    ]);
    all
}

pub(super) fn jobs() -> Vec<Job> {
    let baseline = |candidate: &Candidate| candidate.whose != Whose::Nobody;
    let workload = || Workload { capacity: CAPACITY, ..Workload::default() };
    let several = |mut all: Vec<Candidate>| {
        all.retain(baseline);
        all
    };
    let null = ours().1.into_iter().filter(|candidate| candidate.whose == Whose::Nobody);
    let for_two_alone = for_two().into_iter().chain(null).collect();
    let two = "one producer, one consumer: a push or a pop";
    let many = "half of the threads push, half pop: a push or a pop";
    let mut jobs = vec![
        Job::alone("spsc", "push and pop in turn by one thread, each counted", for_two_alone),
        Job { most_cores: 2, ..Job::together("spsc_1+1", two, 2, several(for_two())) },
        Job::alone("mpmc", "push and pop in turn by one thread, each counted", for_many()),
        Job::together("mpmc_1+1", many, 2, several(for_many())),
        Job { most_cores: 0, ..Job::together("mpmc_2+2", many, 4, several(for_many())) },
    ];
    jobs.iter_mut().for_each(|job| job.workload = workload());
    jobs
}

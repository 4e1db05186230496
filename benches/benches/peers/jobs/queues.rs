//! Queues, by the driver of `cargo bench -p queues`: an operation is a push or a pop that succeeded.

mod adapters;

use harness::native::{Conditions, Experiment};
use harness::unavailable::Unavailable;
use harness::workload::Workload;
use queues::{HotFields, Queue, WithCapacity};

use super::{Candidate, Job, Whose, theirs, whose};
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
    ($($id:ident => $queue:ty, $kind:ident;)*) => { vec![$(Candidate {
        id: concat!("queues/", stringify!($id)),
        whose: whose!($kind),
        make: make::<$queue>,
    }),*] };
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

fn for_two() -> Vec<Candidate> {
    let mut all = ours().0;
    all.extend([
        theirs("rtrb", make::<Halved<rtrb::Producer<T>, rtrb::Consumer<T>>>),
        theirs("ringbuf::HeapRb", make::<Halved<ringbuf::HeapProd<T>, ringbuf::HeapCons<T>>>),
        theirs("heapless::spsc", make::<HeaplessSpsc<T, { CAPACITY + 1 }>>),
        theirs(
            "std::sync::mpsc::sync_channel",
            make::<Halved<std::sync::mpsc::SyncSender<T>, std::sync::mpsc::Receiver<T>>>,
        ),
        theirs("crossbeam_queue::ArrayQueue", make::<Many<crossbeam_queue::ArrayQueue<T>>>),
    ]);
    all
}

fn for_many() -> Vec<Candidate> {
    let mut all = ours().1;
    // The deque has a job of its own.
    all.retain(|candidate| !candidate.id.contains("deque"));
    all.extend([
        theirs("crossbeam_queue::ArrayQueue", make::<Many<crossbeam_queue::ArrayQueue<T>>>),
        theirs("crossbeam_channel::bounded", make::<Many<adapters::Channel<T>>>),
        theirs("concurrent_queue::bounded", make::<Many<concurrent_queue::ConcurrentQueue<T>>>),
        theirs("heapless::mpmc", make::<Many<heapless::mpmc::Queue<T, CAPACITY>>>),
        theirs("std::sync::Mutex<VecDeque>", make::<Many<adapters::LockedRing<T>>>),
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
        Job { simulated: false, ..Job::together("spsc_1+1", two, 2, several(for_two())) },
        Job::alone("mpmc", "push and pop in turn by one thread, each counted", for_many()),
        Job::together("mpmc_1+1", many, 2, several(for_many())),
        Job { simulated: false, ..Job::together("mpmc_2+2", many, 4, several(for_many())) },
    ];
    jobs.iter_mut().for_each(|job| job.workload = workload());
    jobs
}

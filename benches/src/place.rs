//! Real objects of every row, at real addresses, and what is wrong with where they lie.

use std::collections::BTreeSet;
use std::fmt::Display;

use alloc_arena::{Arena, Asked, Map, Memory, Placement, Pool, Request, Unverified};
use counters::{
    BatchedCounter, Counter, NodeCounter, PackedCounter, PerThreadCounter, ShardedCounter,
    StripedCounter,
};
use crossbeam_utils::CachePadded;
use harness::layout::{Lines, Object, check};
use harness::unavailable::Unavailable;
#[cfg(target_os = "linux")]
use locks::{LinuxLot, Parking};
use locks::{ProcessNodes, QueueNodes, RawLock};
use queues::WithCapacity;

/// The most shards, slots or neighbours that are looked at together.
pub(crate) const MOST: usize = 128;

/// Fields of objects side by side that are enough: more would repeat the same addresses.
const ENOUGH_FIELDS: usize = 2048;

/// Bytes of an arena: what the smallest row holds; of one that is asked for its pages.
const ARENA_BYTES: usize = 4 << 10;
const PAGES_BYTES: usize = 64 << 10;
const HUGE_BYTES: usize = 4 << 20;

/// What is to be looked at.
pub(crate) struct Ask {
    /// What the machine moves at once.
    pub(crate) lines: Lines,
    /// Numbers of shards, slots and neighbours.
    pub(crate) counts: Vec<usize>,
    /// The nodes that have memory.
    pub(crate) nodes: Vec<u32>,
}

/// Something wrong.
pub(crate) struct Complaint {
    /// What is wrong and what to do.
    pub(crate) text: String,
    /// The same for programs.
    pub(crate) detail: serde_json::Value,
}

/// What was looked at, and what is wrong.
#[derive(Default)]
pub(crate) struct Examined {
    /// Objects.
    pub(crate) objects: usize,
    /// Whether each was kept in padding, because its type does not keep its lines to itself.
    pub(crate) padded: bool,
    /// Fields that threads use, of all objects.
    pub(crate) fields: usize,
    /// Lines that those fields touch.
    pub(crate) lines: usize,
    /// What is wrong.
    pub(crate) complaints: Vec<Complaint>,
    /// What is known of pages.
    pub(crate) pages: Vec<String>,
    /// What this host does not let us see.
    pub(crate) unavailable: Vec<Unavailable>,
    /// Whether that leaves open whether anything is wrong.
    pub(crate) undecided: bool,
}

/// Looks at one row.
pub(crate) type Examine = fn(&Ask) -> Examined;

harness::described!(counter_object, counters);
harness::described!(lock_object, locks);
harness::described!(queue_object, queues);
harness::described!(arena_object, alloc_arena);

/// Objects side by side, as their type wants them: bare if it keeps its lines to itself, else each
/// in padding.
enum Row<T> {
    Bare(Vec<T>),
    Padded(Vec<CachePadded<T>>),
}

impl<T> Row<T> {
    fn of(alone: bool, objects: impl IntoIterator<Item = T>) -> Self {
        let objects = objects.into_iter();
        if alone {
            Self::Bare(objects.collect())
        } else {
            Self::Padded(objects.map(CachePadded::new).collect())
        }
    }

    fn make(alone: bool, count: usize, make: impl FnMut() -> T) -> Self {
        Self::of(alone, std::iter::repeat_with(make).take(count))
    }

    fn describe(&self, what: &str, describe: fn(String, &T) -> Object) -> Vec<Object> {
        let name = |at: usize| format!("{what} {at}");
        match self {
            Self::Bare(row) => (0..).zip(row).map(|(at, it)| describe(name(at), it)).collect(),
            Self::Padded(row) => (0..).zip(row).map(|(at, it)| describe(name(at), it)).collect(),
        }
    }
}

impl Examined {
    fn look_at(&mut self, objects: &[Object], lines: Lines) {
        let checked = check(objects, lines);
        self.objects += checked.objects;
        self.fields += checked.fields;
        self.lines += checked.lines;
        self.complaints.extend(checked.findings.iter().map(|finding| Complaint {
            text: finding.to_string(),
            detail: serde_json::json!({
                "kind": finding.kind,
                "first": finding.first,
                "second": finding.second,
                "block": format!("{:#x}", finding.block),
                "block_bytes": finding.block_bytes,
                "remedy": finding.remedy(),
            }),
        }));
    }

    fn complain_of_pages(&mut self, text: String) {
        let detail = serde_json::json!({ "kind": "pages", "text": text });
        self.complaints.push(Complaint { text, detail });
    }

    fn cannot(&mut self, code: &str, reason: &dyn Display, undecided: bool) {
        self.unavailable.push(Unavailable::because(code, reason.to_string()));
        self.undecided |= undecided;
    }
}

/// What all objects of a kind share.
pub(crate) fn tables() -> Vec<Object> {
    let nodes = ProcessNodes::nodes().iter().enumerate();
    let mut tables: Vec<Object> = nodes
        .map(|(nth, node)| lock_object(format!("node {nth} of all queued spin locks"), node))
        .collect();
    #[cfg(target_os = "linux")]
    tables.push(lock_object("sleepers of all parking locks".into(), LinuxLot::lot()));
    tables
}

/// A counter of some number of shards, two of them side by side.
type OfShards = (usize, fn(&mut Examined, Lines));

fn two_counters<C: counters::HotFields + Default>(examined: &mut Examined, lines: Lines) {
    let two = Row::make(C::ALONE, 2, C::default);
    examined.look_at(&two.describe("counter", counter_object), lines);
}

macro_rules! of_shards {
    ($counter:ident: $($shards:literal)*) => {
        &[$(($shards, two_counters::<$counter<$shards>>)),*]
    };
}

type OfCpus<const N: usize> = counters::PerCpuCounter<N, ()>;

/// The row's counter with other numbers of shards. A row whose number of shards is a parameter
/// stands here.
pub(crate) fn family(id: &str) -> &'static [OfShards] {
    match id {
        "sharded" => of_shards!(ShardedCounter: 1 2 4 8 16 32 64 128),
        "per_cpu" => of_shards!(OfCpus: 1 2 4 8 16 32 64 128),
        "per_node" => of_shards!(NodeCounter: 1 2 4 8 16 32 64 128),
        "per_thread" => of_shards!(PerThreadCounter: 1 2 4 8 16 32 64 128),
        "batched" => of_shards!(BatchedCounter: 1 2 4 8 16 32 64 128),
        "striped" => of_shards!(StripedCounter: 1 2 4 8 16 32 64 128),
        "packed" => of_shards!(PackedCounter: 1 2 4 8 16 32 64 128),
        _ => &[],
    }
}

/// Looks at counters: the row's own side by side, and its family.
pub(crate) fn counter<C>(ask: &Ask, family: &[OfShards]) -> Examined
where
    C: Counter + counters::HotFields + Default,
{
    let mut examined = Examined { padded: !C::ALONE, ..Examined::default() };
    let enough = (ENOUGH_FIELDS / C::PROPERTIES.shards.max(1)).clamp(2, MOST);
    let counts: BTreeSet<usize> = ask.counts.iter().map(|&count| count.min(enough)).collect();
    for count in counts {
        let row = Row::make(C::ALONE, count, C::default);
        examined.look_at(&row.describe("counter", counter_object), ask.lines);
    }
    for (_, look) in family.iter().filter(|(shards, _)| ask.counts.contains(shards)) {
        look(&mut examined, ask.lines);
    }
    if C::PROPERTIES.shards > 1 && family.is_empty() {
        examined.complaints.push(Complaint {
            text: "it has shards, and `family` in place.rs has no line for other numbers of them"
                .into(),
            detail: serde_json::json!({ "kind": "no_family" }),
        });
    }
    examined
}

/// Looks at locks side by side, with as many waiters' slots.
pub(crate) fn lock<L>(ask: &Ask) -> Examined
where
    L: RawLock + locks::HotFields + Default,
    L::Slot: locks::HotFields,
{
    let mut examined = Examined { padded: !L::ALONE, ..Examined::default() };
    for &count in &ask.counts {
        let locks = Row::make(L::ALONE, count, L::default);
        let alone = <L::Slot as locks::HotFields>::ALONE;
        let slots =
            Row::make(alone, if size_of::<L::Slot>() == 0 { 0 } else { count }, L::Slot::default);
        let mut objects = locks.describe("lock", lock_object);
        objects.extend(slots.describe("slot", lock_object));
        examined.look_at(&objects, ask.lines);
    }
    examined
}

/// Looks at two queues of each capacity, and at small queues side by side.
pub(crate) fn queue<Q: WithCapacity + queues::HotFields>(ask: &Ask) -> Examined {
    let mut examined = Examined { padded: !Q::ALONE, ..Examined::default() };
    let each_capacity = ask.counts.iter().chain(&[1000]).map(|&capacity| (2, capacity));
    for (count, capacity) in each_capacity.chain(ask.counts.iter().map(|&count| (count, 2))) {
        let made: Result<Vec<Q>, _> = (0..count).map(|_| Q::with_capacity(capacity)).collect();
        match made {
            Ok(queues) => {
                let row = Row::of(Q::ALONE, queues);
                examined.look_at(&row.describe("queue", queue_object), ask.lines);
            }
            Err(error) => examined.cannot("no_queue", &error, true),
        }
    }
    examined
}

/// Looks at arenas side by side, and at their pages.
pub(crate) fn arena<A: Arena + Map + alloc_arena::HotFields>(ask: &Ask) -> Examined {
    let mut examined = Examined { padded: !A::ALONE, ..Examined::default() };
    let count = ask.counts.iter().copied().max().unwrap_or(1);
    // Each arena of huge pages takes some at once.
    let count = if A::PROPERTIES.memory == Memory::HugePages { count.min(2) } else { count };
    let made: Result<Vec<A>, _> =
        (0..count).map(|_| A::map(ARENA_BYTES, &Request::new())).collect();
    match made {
        Ok(arenas) => {
            let row = Row::of(A::ALONE, arenas);
            examined.look_at(&row.describe("arena", arena_object), ask.lines);
        }
        Err(error) => examined.cannot("not_mapped", &error, true),
    }
    if matches!(A::PROPERTIES.memory, Memory::Pages | Memory::HugePages) {
        let wishes: Vec<Option<u32>> = match ask.nodes.as_slice() {
            nodes if A::PROPERTIES.numa_bound && !nodes.is_empty() => {
                nodes.iter().copied().map(Some).collect()
            }
            _ => vec![None],
        };
        for wish in wishes {
            pages::<A>(&mut examined, wish);
        }
        if A::PROPERTIES.numa_bound && ask.nodes.len() < 2 {
            let reason = "pages cannot lie elsewhere on this host, so that they lie on the node \
                          that was asked for proves little";
            examined.cannot("one_node", &reason, false);
        }
    }
    examined
}

/// Looks at pools side by side.
pub(crate) fn pool<P: Pool + Map + alloc_arena::HotFields>(ask: &Ask) -> Examined {
    let mut examined = Examined { padded: !P::ALONE, ..Examined::default() };
    for &count in &ask.counts {
        let made: Result<Vec<P>, _> =
            (0..count).map(|_| P::map(ARENA_BYTES, &Request::new())).collect();
        match made {
            Ok(pools) => {
                let row = Row::of(P::ALONE, pools);
                examined.look_at(&row.describe("pool", arena_object), ask.lines);
            }
            Err(error) => examined.cannot("not_mapped", &error, true),
        }
    }
    examined
}

/// Maps an arena on a node, if there is a wish, and asks the kernel where its pages are.
fn pages<A: Arena + Map>(examined: &mut Examined, wish: Option<u32>) {
    let huge = A::PROPERTIES.memory == Memory::HugePages;
    let bytes = if huge { HUGE_BYTES } else { PAGES_BYTES };
    let request = wish.map_or(Request::new(), Request::on_node);
    let arena = match A::map(bytes, &request) {
        Ok(arena) => arena,
        Err(error) => return examined.cannot("not_mapped", &error, true),
    };
    let placement = arena.placement();
    let of_node = wish.map_or_else(String::new, |node| format!(" of node {node}"));
    match placement.unverified {
        Some(Unverified::NotBound(error)) => examined.cannot("not_bound", &error, true),
        Some(Unverified::Uncounted(unknown)) => {
            examined.cannot("pages_not_counted", &unknown, true);
        }
        // A preference that the kernel could not follow is no fault of the arena: asked strictly it
        // says so.
        Some(Unverified::Elsewhere { pages }) => {
            let said = format!("{pages} pages{of_node} lie on other nodes");
            match A::map(bytes, &request.strict()) {
                Ok(_) => {
                    examined.complain_of_pages(format!("{said}, where there is room for them"))
                }
                Err(error) => {
                    let said = format!("{said}; asked strictly: {error}");
                    examined.cannot("not_on_node", &said, true);
                }
            }
        }
        Some(unverified) => examined.complain_of_pages(format!("pages{of_node}: {unverified}")),
        None => {
            if let Ok(pages) = &placement.pages {
                let (present, absent) = (pages.present(), pages.absent_pages + pages.zero_pages);
                if absent > 0 {
                    examined.complain_of_pages(format!(
                        "{absent} of {} pages{of_node} are not there before the first use; \
                         populate them when they are mapped",
                        present + absent
                    ));
                } else {
                    let bytes = pages.page_bytes;
                    let page = if present == 1 { "page" } else { "pages" };
                    let all = format!("{present} {page} of {bytes} bytes, all there");
                    examined.pages.push(match wish {
                        Some(node) => format!("{all}, all on node {node} as asked"),
                        None => all,
                    });
                }
            }
        }
    }
    if huge {
        huge_pages(examined, &placement, arena.capacity());
    }
}

fn huge_pages(examined: &mut Examined, placement: &Placement, capacity: usize) {
    match placement.huge_bytes {
        Ok(bytes) if bytes == capacity as u64 => {
            examined.pages.push(format!("all {capacity} bytes on huge pages"));
        }
        Ok(bytes) => {
            let whys: Vec<String> = [Asked::HugeTlb, Asked::Transparent]
                .into_iter()
                .filter_map(|asked| Some(format!("{asked}: {}", placement.fallbacks.why(asked)?)))
                .collect();
            let refused = placement.fallbacks.why(Asked::Transparent).is_some();
            let said = format!("{bytes} of {capacity} bytes on huge pages; {}", whys.join("; "));
            if refused {
                examined.cannot("no_huge_pages", &said, false);
            } else {
                examined.complain_of_pages(format!(
                    "{said}; the kernel took the wish and did not grant it: look at \
                     /sys/kernel/mm/transparent_hugepage/defrag and at free memory"
                ));
            }
        }
        Err(unknown) => examined.cannot("huge_pages_unknown", &unknown, false),
    }
}

//! Where memory lies, as the kernel says: what was asked, what was given, what is not known.

#[cfg(feature = "alloc")]
use alloc::vec::Vec;
use core::error::Error;
use core::fmt;

use super::map_error::MapError;
use super::request::Place;

/// Where the memory of a backing lies. A figure that is missing is a typed reason, never zero.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// What was asked for; anywhere in [`Mode::Off`](crate::Mode::Off), and the node that
    /// [`Place::Local`] was then.
    pub requested: Place,
    /// The policy of the memory, read back from the kernel.
    pub policy: Result<Policy, Unknown>,
    /// The pages, counted by the kernel.
    pub pages: Result<Pages, Unknown>,
    /// Bytes on huge pages, of either kind.
    pub huge_bytes: Result<u64, Unknown>,
    /// The wishes that were given up, with reasons.
    pub fallbacks: Fallbacks,
    /// Why the memory is not known to lie as asked; `None` when it is.
    pub unverified: Option<Unverified>,
}

impl Placement {
    /// Whether the kernel counted the pages and each page that is present lies on the requested
    /// node, or as many on each of the nodes, if that was requested.
    pub fn verified(&self) -> bool {
        self.unverified.is_none()
    }

    /// Puts a report together and draws its verdict: a wish given up outweighs all figures.
    pub fn judge(
        requested: Place,
        policy: Result<Policy, Unknown>,
        pages: Result<Pages, Unknown>,
        huge_bytes: Result<u64, Unknown>,
        fallbacks: Fallbacks,
    ) -> Self {
        let unverified = if let Some(because) = fallbacks.why(Asked::Node) {
            Some(Unverified::NotBound(because))
        } else {
            match &pages {
                Err(unknown) => Some(Unverified::Uncounted(*unknown)),
                Ok(pages) if pages.present() == 0 => Some(Unverified::NothingPresent),
                Ok(pages) => pages.misplaced(requested, &policy, &huge_bytes),
            }
        };
        Self { requested, policy, pages, huge_bytes, fallbacks, unverified }
    }
}

/// The kernel's policy for a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// None of its own: pages lie where they are first touched, or where the thread's policy says.
    FirstTouch,
    /// On this node or nowhere.
    Bind(u32),
    /// On this node while it has room.
    Preferred(u32),
    /// In turn on as many nodes.
    Interleaved {
        /// How many.
        nodes: u32,
    },
    /// Anything else, by the kernel's number.
    Other(i32),
}

/// Pages of a region, as the kernel counted them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pages {
    /// Size of the pages counted.
    pub page_bytes: usize,
    /// Pages that were never touched, or are swapped out.
    pub absent_pages: u64,
    /// Pages that were only read: all of them are the one shared page of zeros, on no node.
    pub zero_pages: u64,
    /// Pages of which the kernel said something else.
    pub other_pages: u64,
    #[cfg(feature = "alloc")]
    per_node: Vec<(u32, u64)>,
}

impl Pages {
    /// Starts a count of pages of `page_bytes` bytes each.
    pub fn new(page_bytes: usize) -> Self {
        Self {
            page_bytes,
            absent_pages: 0,
            zero_pages: 0,
            other_pages: 0,
            #[cfg(feature = "alloc")]
            per_node: Vec::new(),
        }
    }

    /// Counts one page on `node`.
    #[cfg(feature = "alloc")]
    pub fn add(&mut self, node: u32) {
        match self.per_node.binary_search_by_key(&node, |&(node, _)| node) {
            Ok(at) => self.per_node[at].1 += 1,
            Err(at) => self.per_node.insert(at, (node, 1)),
        }
    }

    /// Iterates over the nodes that have pages and their number of pages, by node.
    pub fn per_node(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        #[cfg(feature = "alloc")]
        return self.per_node.iter().copied();
        #[cfg(not(feature = "alloc"))]
        return core::iter::empty();
    }

    /// Number of pages on `node`.
    pub fn on(&self, node: u32) -> u64 {
        self.per_node().find(|&(other, _)| other == node).map_or(0, |(_, pages)| pages)
    }

    /// Number of pages that lie on any node.
    pub fn present(&self) -> u64 {
        self.per_node().map(|(_, pages)| pages).sum()
    }

    /// The numbers of pages on the node with most and on the one with fewest of `nodes` nodes.
    pub fn extremes(&self, nodes: u32) -> (u64, u64) {
        let counts = || self.per_node().map(|(_, pages)| pages);
        let missing = counts().count() < nodes as usize;
        let least = counts().min().filter(|_| !missing).unwrap_or(0);
        (counts().max().unwrap_or(0), least)
    }

    /// Whether pages lie in turn on `nodes` nodes, a huge page at a time where there are some.
    pub(crate) fn is_even(&self, nodes: u32, huge_bytes: u64) -> bool {
        const HUGE_BYTES: usize = 2 << 20;
        let (most, least) = self.extremes(nodes);
        let step = if huge_bytes > 0 { HUGE_BYTES.div_ceil(self.page_bytes.max(1)) } else { 1 };
        self.per_node().count() <= nodes as usize && most - least <= step as u64
    }

    /// What is wrong with where the pages lie.
    fn misplaced(
        &self,
        requested: Place,
        policy: &Result<Policy, Unknown>,
        huge_bytes: &Result<u64, Unknown>,
    ) -> Option<Unverified> {
        match (requested, policy) {
            (Place::Anywhere | Place::Local, _) => None,
            (Place::Node(node), _) => {
                let pages = self.present() - self.on(node);
                (pages > 0).then_some(Unverified::Elsewhere { pages })
            }
            (Place::Interleaved, Ok(Policy::Interleaved { nodes })) => {
                let even = self.is_even(*nodes, huge_bytes.unwrap_or(0));
                let (most, least) = self.extremes(*nodes);
                (!even).then_some(Unverified::Uneven { most, least })
            }
            (Place::Interleaved, _) => Some(Unverified::NotBound(MapError::InterleaveNotKept)),
        }
    }

    /// Pages on `node` ÷ pages present; `None` when none is present.
    pub fn ratio_on(&self, node: u32) -> Option<f64> {
        let present = self.present();
        (present > 0).then(|| self.on(node) as f64 / present as f64)
    }
}

/// Why a figure is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown {
    /// This build cannot ask the kernel.
    CannotAsk,
    /// The kernel did not answer.
    Refused(MapError),
    /// The region is a part of a mapping, of which the kernel gives one figure.
    PartOfAMapping,
}

/// Why memory is not known to lie as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unverified {
    /// The pages could not be counted.
    Uncounted(Unknown),
    /// No page is present yet.
    NothingPresent,
    /// The wish for a place was given up.
    NotBound(MapError),
    /// Pages lie on other nodes.
    Elsewhere {
        /// How many.
        pages: u64,
    },
    /// Pages do not lie in turn on the nodes.
    Uneven {
        /// Pages on the node that has most.
        most: u64,
        /// Pages on the node that has fewest.
        least: u64,
    },
}

/// What can be asked of a kernel backing beyond memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Asked {
    /// Pages on a node, or on all in turn.
    Node,
    /// Huge pages from the reserved pool.
    HugeTlb,
    /// Transparent huge pages.
    Transparent,
    /// Pages locked in memory.
    Lock,
}

impl Asked {
    const ALL: [Self; 4] = [Self::Node, Self::HugeTlb, Self::Transparent, Self::Lock];
}

/// The wishes that were given up, each with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fallbacks([Option<MapError>; Asked::ALL.len()]);

impl Fallbacks {
    /// Notes that `asked` was given up; the first reason stays.
    pub fn record(&mut self, asked: Asked, because: MapError) {
        self.0[asked as usize].get_or_insert(because);
    }

    /// Returns why `asked` was given up, if it was.
    pub fn why(&self, asked: Asked) -> Option<MapError> {
        self.0[asked as usize]
    }

    /// Iterates over what was given up and why.
    pub fn iter(&self) -> impl Iterator<Item = (Asked, MapError)> + '_ {
        Asked::ALL.into_iter().filter_map(|asked| Some((asked, self.why(asked)?)))
    }

    /// Whether nothing was given up.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Node => "node",
            Self::HugeTlb => "hugetlb pages",
            Self::Transparent => "transparent huge pages",
            Self::Lock => "locked pages",
        })
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotAsk => {
                f.write_str("this build cannot ask the kernel; enable memmap2, on Linux")
            }
            Self::Refused(error) => error.fmt(f),
            Self::PartOfAMapping => f.write_str(
                "the region shares its mapping with other memory; use a backing with a mapping of \
                 its own",
            ),
        }
    }
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uncounted(unknown) => write!(f, "the pages could not be counted: {unknown}"),
            Self::NothingPresent => f.write_str("no page is present yet; write to the memory"),
            Self::NotBound(error) => write!(f, "the memory was not bound: {error}"),
            Self::Elsewhere { pages } => {
                write!(f, "{pages} pages lie on other nodes; free memory on the one asked for")
            }
            Self::Uneven { most, least } => {
                write!(f, "one node has {most} pages, another {least}; free memory on the latter")
            }
        }
    }
}

impl Error for Unknown {}
impl Error for Unverified {}

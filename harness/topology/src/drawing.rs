//! A machine as nested boxes: packages, NUMA nodes, shared caches, cores and their PUs.
//!
//! Whoever knows a machine fills a [`Plan`]; [`Plan::nest`] puts each part into the smallest one
//! that holds all of its CPUs, and a [`Drawing`] comes out as text or as SVG. Nothing else is
//! supposed about which part lies in which: an L3 may hold several nodes, and a node several L3
//! groups.
//!
//! ```
//! let host = topology::Topology::this_host()?;
//! let drawing = host.plan().nest();
//! println!("{}", drawing.text(80));
//! assert!(drawing.svg(topology::SvgStyle::Alone).starts_with("<svg "));
//! # Ok::<(), topology::TopologyError>(())
//! ```

mod from_topology;
mod layout;
mod svg;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cpuset::CpuSet;

pub use svg::SvgStyle;

/// What a box stands for. The order is that of boxes that hold the same CPUs, outermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// A package (socket).
    Package,
    /// A NUMA node.
    Node,
    /// A cache that is drawn around the cores that share it.
    Cache,
}

/// Describes one box.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it stands for.
    pub kind: PartKind,
    /// What is told of this one alone: `node 0, 64 GiB`. May be empty.
    pub name: String,
    /// What it has in common with others alike: `L3 16 MiB`. May be empty.
    pub detail: String,
    /// Its CPUs; none for a node of memory alone.
    pub cpus: CpuSet,
}

/// Describes a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreTile {
    /// Its name: `core 3`.
    pub name: String,
    /// Its PUs, the first hardware thread first.
    pub cpus: Vec<u32>,
    /// Its own caches: `L2 512 KiB`.
    pub caches: Vec<String>,
}

/// Describes a machine that is to be drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What machine it is.
    pub title: String,
    /// The boxes, in any order.
    pub parts: Vec<Part>,
    /// The cores.
    pub cores: Vec<CoreTile>,
    /// PUs that are there and cannot be used.
    pub unusable: CpuSet,
    /// What is not known or not drawn.
    pub notes: Vec<String>,
}

/// Holds one box with what is in it.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) kind: PartKind,
    /// Names of the parts that hold exactly these CPUs, outermost first.
    names: Vec<String>,
    details: Vec<String>,
    pub(crate) cpus: CpuSet,
    pub(crate) blocks: Vec<Block>,
    pub(crate) cores: Vec<CoreTile>,
    /// Blocks alike that are told and not drawn: their names and CPUs.
    pub(crate) alike: Vec<(String, CpuSet)>,
    /// Cores that are not drawn, at the end.
    pub(crate) cores_left_out: usize,
}

impl Block {
    fn of(part: Part) -> Block {
        let told = |text: String| if text.is_empty() { Vec::new() } else { vec![text] };
        Block {
            kind: part.kind,
            names: told(clean(&part.name)),
            details: told(clean(&part.detail)),
            cpus: part.cpus,
            blocks: Vec::new(),
            cores: Vec::new(),
            alike: Vec::new(),
            cores_left_out: 0,
        }
    }

    /// Gives what stands at the top of the box.
    pub(crate) fn label(&self) -> String {
        let parts: Vec<&str> = self.names.iter().chain(&self.details).map(String::as_str).collect();
        parts.join(" · ")
    }

    /// Gives the name alone, for one in a row of boxes alike.
    pub(crate) fn name(&self) -> String {
        self.names.join(" · ")
    }

    /// Says whether two boxes look the same but for names and numbers.
    fn is_like(&self, other: &Block, unusable: &CpuSet) -> bool {
        let same_core = |(a, b): (&CoreTile, &CoreTile)| {
            let barred = |core: &CoreTile| -> Vec<bool> {
                core.cpus.iter().map(|&cpu| unusable.contains(cpu)).collect()
            };
            a.caches == b.caches && barred(a) == barred(b)
        };
        self.kind == other.kind
            && self.details == other.details
            && self.names.len() == other.names.len()
            && self.cores.len() == other.cores.len()
            && self.blocks.len() == other.blocks.len()
            && self.cores.iter().zip(&other.cores).all(same_core)
            && self.blocks.iter().zip(&other.blocks).all(|(a, b)| a.is_like(b, unusable))
    }

    /// Takes the only box inside into this one where both hold the same CPUs.
    fn merge(&mut self) {
        self.blocks.iter_mut().for_each(Block::merge);
        let same = self.blocks.len() == 1 && self.cores.is_empty();
        if same && self.blocks[0].cpus == self.cpus {
            let Some(inner) = self.blocks.pop() else { return };
            self.names.extend(inner.names);
            self.details.extend(inner.details);
            (self.blocks, self.cores) = (inner.blocks, inner.cores);
        }
    }
}

/// How much of boxes that are alike is told instead of drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Collapse {
    /// Nothing.
    Nothing,
    /// Boxes that hold cores and no other boxes.
    Innermost,
    /// All.
    All,
}

/// Holds a machine as it is drawn.
#[derive(Debug, Clone)]
pub struct Drawing {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
    /// Cores in no box.
    pub(crate) cores: Vec<CoreTile>,
    pub(crate) unusable: CpuSet,
    pub(crate) notes: Vec<String>,
}

/// Cores of one box that are drawn; of more, the first ones.
const CORES_MOST: usize = 512;

/// Longest name that is shown.
const NAME_MOST: usize = 120;

impl Plan {
    /// Puts each part into the smallest one that holds all of its CPUs. A part that cuts across
    /// another one is a note instead.
    #[must_use]
    pub fn nest(mut self) -> Drawing {
        let mut notes = std::mem::take(&mut self.notes);
        self.parts.sort_by_key(|part| (usize::MAX - part.cpus.len(), part.kind, part.cpus.first()));
        // The smallest part so far that holds a CPU, and the part around each part.
        let mut innermost: BTreeMap<u32, usize> = BTreeMap::new();
        let mut parents: Vec<Option<usize>> = Vec::new();
        let mut blocks: Vec<Block> = Vec::new();
        for part in self.parts {
            let parent = part.cpus.first().and_then(|cpu| innermost.get(&cpu).copied());
            if part.cpus.iter().any(|cpu| innermost.get(&cpu).copied() != parent) {
                let told = [part.name.as_str(), part.detail.as_str()].join(" ");
                notes.push(format!(
                    "{} (CPUs {}) cuts across other parts and is not drawn",
                    told.trim(),
                    part.cpus
                ));
                continue;
            }
            for cpu in &part.cpus {
                innermost.insert(cpu, blocks.len());
            }
            parents.push(parent);
            blocks.push(Block::of(part));
        }
        let mut loose = Vec::new();
        for core in self.cores {
            let within = core.cpus.first().and_then(|cpu| innermost.get(cpu));
            match within {
                Some(&at) => blocks[at].cores.push(core),
                None => loose.push(core),
            }
        }
        if loose.len() > CORES_MOST {
            notes.push(format!("{} more cores are not drawn", loose.len() - CORES_MOST));
            loose.truncate(CORES_MOST);
        }
        Drawing {
            title: clean(&self.title),
            blocks: assembled(blocks, &parents),
            cores: loose,
            unusable: self.unusable,
            notes,
        }
    }
}

/// Cuts a name, and replaces what would change how the text around it is shown.
fn clean(name: &str) -> String {
    let shown = |letter: char| match letter {
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        letter if letter.is_control() => '\u{fffd}',
        letter => letter,
    };
    name.chars().map(shown).take(NAME_MOST).collect()
}

/// Makes a forest of blocks of which each names the one around it; inner ones come later.
fn assembled(blocks: Vec<Block>, parents: &[Option<usize>]) -> Vec<Block> {
    let mut slots: Vec<Option<Block>> = blocks.into_iter().map(Some).collect();
    let mut top = Vec::new();
    for at in (0..slots.len()).rev() {
        let Some(mut block) = slots[at].take() else { continue };
        in_order(&mut block.blocks);
        match parents[at].and_then(|parent| slots[parent].as_mut()) {
            Some(parent) => parent.blocks.push(block),
            None => top.push(block),
        }
    }
    in_order(&mut top);
    top.iter_mut().for_each(Block::merge);
    top
}

/// By first CPU; what has none last, in the order of the plan, which is reversed so far.
fn in_order(blocks: &mut [Block]) {
    blocks.reverse();
    blocks.sort_by_key(|block| block.cpus.first().unwrap_or(u32::MAX));
}

impl Drawing {
    /// Counts the PUs that are drawn.
    pub(crate) fn pus(&self) -> usize {
        fn of(blocks: &[Block]) -> usize {
            blocks.iter().map(|block| cores(&block.cores) + of(&block.blocks)).sum()
        }
        fn cores(cores: &[CoreTile]) -> usize {
            cores.iter().map(|core| core.cpus.len()).sum()
        }
        of(&self.blocks) + cores(&self.cores)
    }

    /// Gives the largest number of a PU.
    pub(crate) fn last_pu(&self) -> u32 {
        fn of(blocks: &[Block]) -> u32 {
            blocks.iter().map(|block| cores(&block.cores).max(of(&block.blocks))).max().unwrap_or(0)
        }
        fn cores(cores: &[CoreTile]) -> u32 {
            cores.iter().flat_map(|core| &core.cpus).copied().max().unwrap_or(0)
        }
        of(&self.blocks).max(cores(&self.cores))
    }

    /// Tells boxes alike instead of drawing each.
    pub(crate) fn collapsed(&self, how: Collapse) -> Drawing {
        let mut drawing = self.clone();
        drawing.blocks = collapse(drawing.blocks, how, &self.unusable);
        drawing
    }

    /// Says which caches each core has: one line for each kind of core.
    pub(crate) fn core_caches(&self) -> Vec<String> {
        fn gather<'a>(blocks: &'a [Block], kinds: &mut Vec<(&'a [String], CpuSet)>) {
            for block in blocks {
                block.cores.iter().for_each(|core| count(core, kinds));
                gather(&block.blocks, kinds);
            }
        }
        fn count<'a>(core: &'a CoreTile, kinds: &mut Vec<(&'a [String], CpuSet)>) {
            let at = kinds.iter().position(|(caches, _)| *caches == core.caches);
            let at = at.unwrap_or_else(|| {
                kinds.push((&core.caches, CpuSet::new()));
                kinds.len() - 1
            });
            for &cpu in &core.cpus {
                // Numbers of PUs come from sets, so they fit into one.
                let _ = kinds[at].1.insert(cpu);
            }
        }
        let mut kinds = Vec::new();
        gather(&self.blocks, &mut kinds);
        self.cores.iter().for_each(|core| count(core, &mut kinds));
        let told = |caches: &[String]| match caches {
            [] => "no caches of its own known".to_owned(),
            caches => caches.join(", "),
        };
        match kinds.as_slice() {
            [] => Vec::new(),
            [(caches, _)] => vec![format!("each core: {}", told(caches))],
            several => several
                .iter()
                .take(8)
                .map(|(caches, cpus)| {
                    format!("each core of PUs {}: {}", cpus.to_strides(), told(caches))
                })
                .collect(),
        }
    }
}

fn collapse(blocks: Vec<Block>, how: Collapse, unusable: &CpuSet) -> Vec<Block> {
    let mut kept: Vec<Block> = Vec::new();
    for mut block in blocks {
        let innermost = block.blocks.is_empty();
        if how == Collapse::All || innermost && how == Collapse::Innermost {
            let alike = !block.cpus.is_empty();
            let same = kept.iter_mut().find(|other| alike && other.is_like(&block, unusable));
            if let Some(other) = same {
                other.alike.push((block.name(), block.cpus));
                continue;
            }
        }
        if block.cores.len() > CORES_MOST {
            block.cores_left_out = block.cores.len() - CORES_MOST;
            block.cores.truncate(CORES_MOST);
        }
        kept.push(block);
    }
    for block in &mut kept {
        block.blocks = collapse(std::mem::take(&mut block.blocks), how, unusable);
    }
    kept
}

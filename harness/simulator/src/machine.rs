//! The machine that is simulated: its shape and what things cost on it, read from a file.
//!
//! A machine file is TOML in which every figure says where it comes from and how much it is to be
//! trusted; `docs/machines.md` describes each field, and what holds for the few that may be
//! absent. A figure that is missing, impossible or in contradiction with another one is an error
//! that names the file, the field and what to do.

mod absent;
mod contradictions;
mod detail;
mod error;
mod fields;
mod figure;
mod file;
mod named;
mod nearest;
mod scale;
mod shape;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use detail::{Atomics, Cache, HomeVisits};
pub use error::{FieldProblem, MachineError};
pub use figure::{Confidence, Figure, FigureValue};
pub use shape::Distance;

use figure::Figures;
use shape::{Places, Shape};

use crate::time::{NANOSECOND, Time};

/// The most hardware threads that a machine may have.
pub const MAX_CORES: usize = 1024;

/// Describes a machine: how its cores are arranged, and what an access, a transfer or a system
/// call costs on it. All costs come out in picoseconds.
///
/// A *core* here is a hardware thread that can run one simulated core. Number 0 is the first
/// thread of the first core of the first L3 group of the first socket; numbers rise through the
/// cores of the group, the groups of the socket, the sockets. The second hardware threads follow
/// in the same order, so that the first [`physical_cores`](Machine::physical_cores) numbers
/// share no core.
///
/// ```
/// use simulator::machine::{Distance, Machine};
///
/// let machine = Machine::named("epyc-7742-2s")?;
/// assert_eq!(machine.physical_cores(), 128);
/// assert_eq!(machine.distance(0, 3), Distance::SameL3);
/// assert_eq!(machine.distance(0, 4), Distance::SameSocket);
/// assert_eq!(machine.distance(0, 64), Distance::CrossSocket);
/// assert_eq!(machine.distance(0, 128), Distance::Smt);
/// assert!(Machine::named("epyc-7724").is_err());
/// # Ok::<(), simulator::machine::MachineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    name: String,
    title: String,
    architecture: String,
    shape: Shape,
    places: Places,
    figures: Figures,
    costs: Costs,
    grown: bool,
}

/// The figures that are asked for all the time, in picoseconds.
#[derive(Clone, Debug)]
struct Costs {
    transfer: [Time; 5],
    /// Femtoseconds, since a picosecond is too coarse for one instruction.
    instruction_fs: u64,
    l1_hit: Time,
    rmw_owned: Time,
    fence: Time,
    pause: Time,
    memory_local: Time,
    memory_remote: Time,
    memory_only: Time,
    syscall: Time,
    futex_wake: Time,
    wake_latency: Time,
    context_switch: Time,
    page_fault: Time,
    time_slice: Time,
    timer_slack: Time,
    interrupt: Time,
}

impl Machine {
    /// Gives the machine of this name among those that come with the simulator.
    ///
    /// # Errors
    /// [`MachineError::Unknown`] lists all names and the nearest one.
    pub fn named(name: &str) -> Result<Machine, MachineError> {
        named::text(name)
            .and_then(|text| Machine::from_toml(text, &format!("machines/{name}.toml")))
    }

    /// Lists the names that [`named`](Machine::named) knows, in alphabetical order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        named::names()
    }

    /// Reads a machine from the text of a machine file; `origin` is what messages call it.
    ///
    /// # Errors
    /// Says which field is missing, unknown, of the wrong type, impossible or contradictory.
    pub fn from_toml(text: &str, origin: &str) -> Result<Machine, MachineError> {
        file::parse(text, origin)
    }

    /// Reads a machine file.
    ///
    /// # Errors
    /// As [`from_toml`](Machine::from_toml), and where the file cannot be read, is no text or is
    /// larger than 1 MB.
    pub fn read(path: &Path) -> Result<Machine, MachineError> {
        file::read(path)
    }

    /// Finds a machine as a command line names it: a path if it holds a `/` or ends in `.toml`,
    /// else a name.
    ///
    /// # Errors
    /// As [`read`](Machine::read) or [`named`](Machine::named).
    pub fn find(name_or_path: &str) -> Result<Machine, MachineError> {
        if name_or_path.contains('/') || name_or_path.ends_with(".toml") {
            Machine::read(Path::new(name_or_path))
        } else {
            Machine::named(name_or_path)
        }
    }

    /// Gives the machine with exactly `cores` cores.
    ///
    /// Fewer: the first so many stay, everything else is switched off; no figure changes. More:
    /// each socket gets the same number of further L3 groups of the same size, or, where a socket
    /// is a single L3 group, that group gets further cores; distances and costs stay as they are,
    /// so the result is extrapolated and [`is_grown`](Machine::is_grown) says so.
    ///
    /// # Errors
    /// [`MachineError::Cores`] for none, and for more than [`MAX_CORES`].
    pub fn with_cores(&self, cores: usize) -> Result<Machine, MachineError> {
        scale::with_cores(self, cores)
    }

    /// Gives the short name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the name in full.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Gives the instruction set of the real machine: `x86-64` or `arm64`. What is executed is
    /// x86-64 code in either case.
    #[must_use]
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// Says whether the machine was grown beyond what its file describes.
    #[must_use]
    pub fn is_grown(&self) -> bool {
        self.grown
    }

    /// Lists the figures of the file in the order of `docs/machines.md`.
    pub fn figures(&self) -> impl Iterator<Item = &Figure> {
        self.figures.iter()
    }

    /// Counts the hardware threads that can be simulated cores, second threads included.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.places.len()
    }

    /// Counts the cores that share no core with another: the first so many of
    /// [`cores`](Machine::cores).
    #[must_use]
    pub fn physical_cores(&self) -> usize {
        self.shape.physical_cores().min(self.cores())
    }

    /// Counts the sockets, those included that [`with_cores`](Machine::with_cores) switched off.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.shape.sockets
    }

    /// Counts the NUMA nodes: those of all sockets, and behind them those without CPUs.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.cpu_nodes() + self.shape.memory_only_nodes
    }

    /// Counts the NUMA nodes with CPUs: the first so many of [`nodes`](Machine::nodes).
    #[must_use]
    pub fn cpu_nodes(&self) -> usize {
        self.shape.cpu_nodes()
    }

    /// Says whether a NUMA node has memory.
    #[must_use]
    pub fn has_memory(&self, node: usize) -> bool {
        let with_cpus = self.cpu_nodes();
        node < with_cpus - self.shape.memoryless_nodes || (with_cpus..self.nodes()).contains(&node)
    }

    /// Gives the node whose memory is nearest to a core among those that have some and are asked
    /// for; the core's own goes before others that are as near.
    pub(crate) fn nearest_memory(&self, cpu: u32, asked: impl Fn(usize) -> bool) -> Option<usize> {
        let own = self.node_of(cpu);
        let nodes = (0..self.nodes()).filter(|&node| self.has_memory(node) && asked(node));
        nodes.min_by_key(|&node| (self.memory_ps(cpu, node), node != own))
    }

    /// Counts the L3 groups of all sockets.
    #[must_use]
    pub fn l3_groups(&self) -> usize {
        self.shape.sockets * self.shape.l3_groups_per_socket
    }

    /// Gives the number of hardware threads of a core.
    #[must_use]
    pub fn threads_per_core(&self) -> usize {
        self.shape.threads_per_core
    }

    /// Says how far apart two cores are. Panics for a core that the machine does not have.
    #[must_use]
    #[inline]
    pub fn distance(&self, a: u32, b: u32) -> Distance {
        self.places.distance(a, b)
    }

    /// Gives the socket of a core. Panics for a core that the machine does not have.
    #[must_use]
    #[inline]
    pub fn socket_of(&self, cpu: u32) -> usize {
        usize::from(self.places.of(cpu).socket)
    }

    /// Gives the NUMA node of a core. Panics for a core that the machine does not have.
    #[must_use]
    #[inline]
    pub fn node_of(&self, cpu: u32) -> usize {
        usize::from(self.places.of(cpu).node)
    }

    /// Gives the L3 group of a core, counted through all sockets. Panics for a core that the
    /// machine does not have.
    #[must_use]
    #[inline]
    pub fn l3_of(&self, cpu: u32) -> usize {
        usize::from(self.places.of(cpu).l3)
    }

    /// Gives the physical core of a core. Panics for a core that the machine does not have.
    #[must_use]
    #[inline]
    pub fn physical_core_of(&self, cpu: u32) -> usize {
        usize::from(self.places.of(cpu).core)
    }

    /// Gives the socket of a NUMA node, or the one that it hangs on.
    #[must_use]
    pub fn socket_of_node(&self, node: usize) -> usize {
        match node.checked_sub(self.cpu_nodes()) {
            None => node / self.shape.nodes_per_socket,
            Some(without_cpus) => without_cpus % self.shape.sockets,
        }
    }
}

/// What things cost.
impl Machine {
    /// Gives the clock rate of a core under load.
    #[must_use]
    pub fn clock_ghz(&self) -> f64 {
        self.figures.number("clock.core_ghz")
    }

    /// Gives how long so many clock cycles take.
    #[must_use]
    pub fn cycles_ps(&self, cycles: f64) -> u64 {
        (cycles * NANOSECOND as f64 / self.clock_ghz()).round() as u64
    }

    /// Gives the instructions that a core sustains per cycle when nothing stalls it.
    #[must_use]
    pub fn instructions_per_cycle(&self) -> f64 {
        self.figures.number("core.instructions_per_cycle")
    }

    /// Gives how long so many instructions take when nothing stalls them.
    #[must_use]
    #[inline]
    pub fn instructions_ps(&self, instructions: u64) -> u64 {
        instructions * self.costs.instruction_fs / 1_000
    }

    /// Gives the size of a cache line.
    #[must_use]
    pub fn line_bytes(&self) -> usize {
        self.figures.count("cache.line_bytes")
    }

    /// Says whether a miss fetches the other line of an aligned pair as well.
    #[must_use]
    pub fn adjacent_line_prefetch(&self) -> bool {
        self.figures.flag("cache.adjacent_line_prefetch")
    }

    /// Gives the time of a load that hits the first-level cache.
    #[must_use]
    pub fn l1_hit_ps(&self) -> u64 {
        self.costs.l1_hit
    }

    /// Gives how long a modified line takes from one core to another, one way.
    #[must_use]
    #[inline]
    pub fn transfer_ps(&self, distance: Distance) -> u64 {
        self.costs.transfer[distance as usize]
    }

    /// Gives the time of an atomic read-modify-write of a line that the core owns.
    #[must_use]
    pub fn rmw_owned_ps(&self) -> u64 {
        self.costs.rmw_owned
    }

    /// Gives the time of a full fence with nothing to wait for.
    #[must_use]
    pub fn fence_ps(&self) -> u64 {
        self.costs.fence
    }

    /// Gives the time of a spin-wait hint.
    #[must_use]
    pub fn pause_ps(&self) -> u64 {
        self.costs.pause
    }

    /// Gives the time of a read of memory that hangs on the core's own socket.
    #[must_use]
    pub fn memory_local_ps(&self) -> u64 {
        self.costs.memory_local
    }

    /// Gives the time of a read of another socket's memory.
    #[must_use]
    pub fn memory_remote_ps(&self) -> u64 {
        self.costs.memory_remote
    }

    /// Gives the time of a read of a node's memory by a core.
    #[must_use]
    #[inline]
    pub fn memory_ps(&self, cpu: u32, node: usize) -> u64 {
        let Costs { memory_local, memory_remote, memory_only, .. } = self.costs;
        let near = self.socket_of_node(node) == self.socket_of(cpu);
        let way = if near { 0 } else { memory_remote - memory_local };
        way + if node < self.cpu_nodes() { memory_local } else { memory_only }
    }

    /// Gives the time to enter the kernel and leave it again.
    #[must_use]
    pub fn syscall_ps(&self) -> u64 {
        self.costs.syscall
    }

    /// Gives what a waker pays for each thread that it wakes.
    #[must_use]
    pub fn futex_wake_ps(&self) -> u64 {
        self.costs.futex_wake
    }

    /// Gives the time from being woken to running on an idle core.
    #[must_use]
    pub fn wake_latency_ps(&self) -> u64 {
        self.costs.wake_latency
    }

    /// Gives the time to change from one ready thread of a core to another.
    #[must_use]
    pub fn context_switch_ps(&self) -> u64 {
        self.costs.context_switch
    }

    /// Gives the time of the first touch of a page.
    #[must_use]
    pub fn page_fault_ps(&self) -> u64 {
        self.costs.page_fault
    }

    /// Gives how long a thread runs before another ready one of its core gets its turn.
    #[must_use]
    pub fn time_slice_ps(&self) -> u64 {
        self.costs.time_slice
    }

    /// Gives how much later than asked for a sleep or a timeout ends.
    #[must_use]
    pub fn timer_slack_ps(&self) -> u64 {
        self.costs.timer_slack
    }

    /// Gives the time of an interrupt sent to other cores until they have all answered.
    #[must_use]
    pub fn interrupt_ps(&self) -> u64 {
        self.costs.interrupt
    }
}

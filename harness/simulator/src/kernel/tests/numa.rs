//! Which node a page is on.

use super::super::PAGE_BYTES;
use super::{Guest, Machine, NOWHERE, at, error};

const DEFAULT: u64 = 0;
const PREFERRED: u64 = 1;
const BIND: u64 = 2;
const INTERLEAVE: u64 = 3;
const LOCAL: u64 = 4;
const PREFERRED_MANY: u64 = 5;
const STRICT: u64 = 1;
const MOVE: u64 = 2;
const ASK_NODE: u64 = 1;
const ASK_ADDRESS: u64 = 2;
const ASK_ALLOWED: u64 = 4;
/// A CPU of the first and one of the second socket of the machine.
const NEAR: u32 = 0;
const FAR: u32 = 64;

/// Pages of the test's own memory.
struct Pages {
    _memory: Vec<u8>,
    start: u64,
}

impl Pages {
    fn new(count: u64) -> Pages {
        let memory = vec![0; ((count + 1) * PAGE_BYTES) as usize];
        let start = (memory.as_ptr().expose_provenance() as u64).next_multiple_of(PAGE_BYTES);
        Pages { _memory: memory, start }
    }

    fn address(&self, page: u64) -> u64 {
        self.start + page * PAGE_BYTES
    }

    fn number(&self, page: u64) -> u64 {
        self.address(page) / PAGE_BYTES
    }
}

impl Guest {
    #[track_caller]
    fn bind(&mut self, pages: &Pages, count: u64, mode: u64, mut nodes: u64, flags: u64) -> i64 {
        let bytes = count * PAGE_BYTES;
        let arguments = [pages.address(0), bytes, mode, at(&mut nodes), 65, flags];
        self.result(libc::SYS_mbind, &arguments)
    }

    #[track_caller]
    fn policy(&mut self, mode: u64, mut nodes: u64) -> i64 {
        self.result(libc::SYS_set_mempolicy, &[mode, at(&mut nodes), 65])
    }

    /// The nodes on which pages go that a CPU touches one after another.
    fn touched(&mut self, pages: &Pages, count: u64, cpu: u32) -> Vec<u16> {
        (0..count).map(|page| self.kernel.touch(pages.number(page), 0, cpu)).collect()
    }

    /// What `move_pages` says about pages, moving them if nodes are given.
    fn status(&mut self, mut addresses: Vec<u64>, nodes: Option<Vec<i32>>) -> (i64, Vec<i32>) {
        let mut status = vec![99_i32; addresses.len()];
        let mut nodes = nodes.unwrap_or_default();
        let given = if nodes.is_empty() { 0 } else { at(&mut nodes[0]) };
        let count = addresses.len() as u64;
        let arguments = [0, count, at(&mut addresses[0]), given, at(&mut status[0]), MOVE];
        let result = self.result(libc::SYS_move_pages, &arguments);
        (result, status)
    }
}

#[test]
fn the_first_touch_decides_and_later_ones_do_not() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(2));
    assert_eq!(guest.kernel.home_of(pages.number(0)), None);
    assert_eq!(guest.kernel.touch(pages.number(0), 0, FAR), 1);
    assert_eq!(guest.kernel.touch(pages.number(0), 0, NEAR), 1);
    assert_eq!(guest.kernel.touch(pages.number(1), 0, NEAR), 0);
    assert_eq!(guest.kernel.home_of(pages.number(0)), Some(1));
}

#[test]
fn a_bound_range_goes_to_its_nodes() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(4));
    assert_eq!(guest.bind(&pages, 2, BIND, 0b10, 0), 0);
    assert_eq!(guest.touched(&pages, 4, NEAR), [1, 1, 0, 0]);
    let (mut guest, pages) = (Guest::new(1), Pages::new(2));
    assert_eq!(guest.bind(&pages, 2, BIND, 0b11, 0), 0);
    assert_eq!(guest.touched(&pages, 1, FAR), [1]);
    assert_eq!(guest.kernel.touch(pages.number(1), 0, NEAR), 0);
}

#[test]
fn preferences_and_locality_are_followed() {
    for (mode, nodes, cpu, node) in [
        (PREFERRED, 0b10, NEAR, 1),
        (PREFERRED, 0b11, FAR, 0),
        (PREFERRED, 0, FAR, 1),
        (LOCAL, 0, FAR, 1),
        (PREFERRED_MANY, 0b11, FAR, 1),
        (PREFERRED_MANY, 0b01, FAR, 0),
        (DEFAULT, 0, FAR, 1),
    ] {
        let (mut guest, pages) = (Guest::new(1), Pages::new(1));
        assert_eq!(guest.bind(&pages, 1, mode, nodes, 0), 0);
        assert_eq!(guest.touched(&pages, 1, cpu), [node], "{mode} {nodes}");
        let (mut guest, pages) = (Guest::new(1), Pages::new(1));
        assert_eq!(guest.policy(mode, nodes), 0);
        assert_eq!(guest.touched(&pages, 1, cpu), [node], "{mode} {nodes}");
    }
}

#[test]
fn interleaving_goes_round() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(6));
    assert_eq!(guest.bind(&pages, 6, INTERLEAVE, 0b11, 0), 0);
    let nodes = guest.touched(&pages, 6, NEAR);
    let first = (pages.number(0) % 2) as u16;
    assert_eq!(nodes, [first, 1 - first, first, 1 - first, first, 1 - first]);
    // A thread's own policy goes by its own touches.
    let (mut guest, pages) = (Guest::new(2), Pages::new(4));
    assert_eq!(guest.policy(INTERLEAVE, 0b11), 0);
    assert_eq!(guest.touched(&pages, 3, FAR), [0, 1, 0]);
    assert_eq!(guest.kernel.touch(pages.number(3), 1, FAR), 1);
}

#[test]
fn a_range_overrides_the_thread_and_default_gives_it_back() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(2));
    assert_eq!(guest.policy(BIND, 0b10), 0);
    assert_eq!(guest.bind(&pages, 2, BIND, 0b01, 0), 0);
    assert_eq!(guest.kernel.touch(pages.number(0), 0, FAR), 0);
    assert_eq!(guest.bind(&pages, 2, DEFAULT, 0, 0), 0);
    assert_eq!(guest.kernel.touch(pages.number(1), 0, NEAR), 1);
}

#[test]
fn nodes_are_checked() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(1));
    let invalid = error(libc::EINVAL);
    for (mode, nodes) in [
        (BIND, 0),
        (INTERLEAVE, 0),
        (DEFAULT, 1),
        (LOCAL, 1),
        (BIND, 0b100),
        (PREFERRED, 0b100),
        (99, 1),
    ] {
        assert_eq!(guest.policy(mode, nodes), invalid, "{mode} {nodes}");
        assert_eq!(guest.bind(&pages, 1, mode, nodes, 0), invalid, "{mode} {nodes}");
    }
    // What the machine does not have is left out; what is relative is folded.
    assert_eq!(guest.policy(BIND, 0b110), 0);
    assert_eq!(guest.policy(BIND | 1 << 14, 0b100), 0);
    assert_eq!(guest.policy(BIND | 1 << 14 | 1 << 15, 0b1), invalid);
    assert_eq!(guest.policy(INTERLEAVE | 1 << 13, 0b1), invalid);
    let set = libc::SYS_set_mempolicy;
    assert_eq!(guest.result(set, &[BIND, NOWHERE, 65]), error(libc::EFAULT));
    assert_eq!(guest.result(set, &[BIND, NOWHERE, 1 << 20]), invalid);
    let mut words = [1_u64; 32];
    assert_eq!(guest.result(set, &[BIND, at(&mut words), 2048]), invalid);
    // A mask of one bit ends before node 1.
    let mut word = 0b11_u64;
    assert_eq!(guest.result(set, &[BIND, at(&mut word), 2]), 0);
    let (mut mode, mut nodes) = (0_i32, 0_u64);
    let arguments = [at(&mut mode), at(&mut nodes), 64, 0, 0];
    assert_eq!(guest.result(libc::SYS_get_mempolicy, &arguments), 0);
    assert_eq!((mode, nodes), (BIND as i32, 0b01));
}

#[test]
fn ranges_are_checked() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(2));
    let mut node = 1_u64;
    let mask = at(&mut node);
    let start = pages.address(0);
    let mut bind =
        |start, bytes, flags| guest.result(libc::SYS_mbind, &[start, bytes, BIND, mask, 65, flags]);
    assert_eq!(bind(start + 1, PAGE_BYTES, 0), error(libc::EINVAL));
    assert_eq!(bind(start, u64::MAX, 0), error(libc::EINVAL));
    assert_eq!(bind(start, PAGE_BYTES, 8), error(libc::EINVAL));
    assert_eq!(bind(start, 0, 0), 0);
    assert_eq!(bind(PAGE_BYTES, PAGE_BYTES, 0), error(libc::EFAULT));
}

#[test]
fn binding_can_insist_and_can_move() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(3));
    assert_eq!(guest.touched(&pages, 2, NEAR), [0, 0]);
    assert_eq!(guest.bind(&pages, 3, BIND, 0b10, STRICT), error(libc::EIO));
    assert_eq!(guest.bind(&pages, 3, BIND, 0b10, 0), 0);
    assert_eq!(guest.kernel.home_of(pages.number(0)), Some(0));
    assert_eq!(guest.bind(&pages, 3, BIND, 0b10, MOVE | STRICT), 0);
    assert_eq!(guest.kernel.home_of(pages.number(0)), Some(1));
    assert_eq!(guest.kernel.home_of(pages.number(2)), None);
    assert_eq!(guest.bind(&pages, 2, BIND, 0b10, STRICT), 0);
}

#[test]
fn pages_are_asked_about_and_moved() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(3));
    guest.kernel.touch(pages.number(0), 0, NEAR);
    guest.kernel.touch(pages.number(1), 0, FAR);
    let addresses = vec![pages.address(1) + 17, pages.address(0), pages.address(2), NOWHERE];
    let (absent, unmapped) = (-libc::ENOENT, -libc::EFAULT);
    assert_eq!(guest.status(addresses.clone(), None), (0, vec![1, 0, absent, unmapped]));
    let moved = guest.status(addresses.clone(), Some(vec![0, 1, 1, 1]));
    assert_eq!(moved, (0, vec![0, 1, absent, unmapped]));
    assert_eq!(guest.status(addresses, None), (0, vec![0, 1, absent, unmapped]));
    assert_eq!(guest.status(vec![pages.address(0)], Some(vec![2])).0, error(libc::ENODEV));
    assert_eq!(guest.status(vec![pages.address(0)], Some(vec![-1])).0, error(libc::ENODEV));
}

#[test]
fn move_pages_checks_its_arguments() {
    let mut guest = Guest::new(1);
    let (mut page, mut status) = (NOWHERE, 0_i32);
    let (pages, answers) = (at(&mut page), at(&mut status));
    let call = libc::SYS_move_pages;
    assert_eq!(guest.result(call, &[0, 0, 0, 0, 0, 0]), 0);
    assert_eq!(guest.result(call, &[0, 1, pages, 0, answers, 1]), error(libc::EINVAL));
    assert_eq!(guest.result(call, &[1, 1, pages, 0, answers, 0]), error(libc::ESRCH));
    assert_eq!(guest.result(call, &[0, 1, NOWHERE, 0, answers, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(call, &[0, 1, pages, 0, NOWHERE, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(call, &[0, 1, pages, NOWHERE, answers, 0]), error(libc::EFAULT));
    assert_eq!(guest.result(call, &[1000, 1, pages, 0, answers, 0]), 0);
}

#[test]
fn policies_are_told() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(2));
    let (mut mode, mut nodes) = (9_i32, 9_u64);
    let (mode_at, nodes_at) = (at(&mut mode), at(&mut nodes));
    let call = libc::SYS_get_mempolicy;
    assert_eq!(guest.result(call, &[mode_at, nodes_at, 64, 0, ASK_ALLOWED]), 0);
    assert_eq!((mode, nodes), (0, 0b11));
    assert_eq!(guest.result(call, &[mode_at, nodes_at, 64, 0, 0]), 0);
    assert_eq!((mode, nodes), (0, 0));
    guest.policy(INTERLEAVE, 0b11);
    assert_eq!(guest.bind(&pages, 1, BIND | 1 << 15, 0b10, 0), 0);
    let bound = pages.address(0);
    assert_eq!(guest.result(call, &[mode_at, nodes_at, 64, bound, ASK_ADDRESS]), 0);
    assert_eq!((mode, nodes), ((BIND | 1 << 15) as i32, 0b10));
    assert_eq!(guest.result(call, &[mode_at, nodes_at, 64, pages.address(1), ASK_ADDRESS]), 0);
    assert_eq!((mode, nodes), (INTERLEAVE as i32, 0b11));
    // Asking for the node of a page touches it.
    assert_eq!(guest.result(call, &[mode_at, 0, 0, bound, ASK_ADDRESS | ASK_NODE]), 0);
    assert_eq!(mode, 1);
    assert_eq!(guest.kernel.home_of(pages.number(0)), Some(1));
    assert_eq!(guest.result(call, &[mode_at, 0, 0, 0, ASK_NODE]), 0);
    assert_eq!(mode, 0);
    assert_eq!(guest.result(call, &[0, 0, 0, 0, 0]), 0);
}

#[test]
fn questions_about_policies_are_checked() {
    let mut guest = Guest::new(1);
    let (mut mode, mut nodes) = (9_i32, 9_u64);
    let (mode_at, nodes_at) = (at(&mut mode), at(&mut nodes));
    let mut ask = |arguments: [u64; 5]| guest.result(libc::SYS_get_mempolicy, &arguments);
    let (invalid, fault) = (error(libc::EINVAL), error(libc::EFAULT));
    assert_eq!(ask([mode_at, nodes_at, 64, 0, 8]), invalid);
    assert_eq!(ask([mode_at, nodes_at, 1, 0, 0]), invalid);
    assert_eq!(ask([mode_at, nodes_at, 64, 0, ASK_ALLOWED | ASK_NODE]), invalid);
    assert_eq!(ask([mode_at, nodes_at, 64, 0x1000, 0]), invalid);
    assert_eq!(ask([mode_at, 0, 0, 0, ASK_NODE]), invalid);
    assert_eq!(ask([mode_at, 0, 0, PAGE_BYTES, ASK_ADDRESS]), fault);
    assert_eq!(ask([NOWHERE, 0, 0, 0, 0]), fault);
    assert_eq!(ask([mode_at, NOWHERE, 64, 0, ASK_ALLOWED]), fault);
}

#[test]
fn moving_costs_each_page() {
    let (mut guest, pages) = (Guest::new(1), Pages::new(2));
    guest.touched(&pages, 2, NEAR);
    let mut addresses = [pages.address(0), pages.address(1)];
    let (mut nodes, mut status) = ([1_i32, 0], [9_i32; 2]);
    let arguments = [0, 2, at(&mut addresses), at(&mut nodes), at(&mut status), MOVE];
    let answer = guest.answer(0, 0, libc::SYS_move_pages, &arguments);
    assert_eq!(answer.cost, guest.machine.syscall_ps() + guest.machine.page_fault_ps());
    assert_eq!(status, [1, 0]);
}

#[test]
fn a_machine_of_one_node_has_one() {
    let (mut guest, pages) = (Guest::on("graviton2", 1, 1), Pages::new(1));
    assert_eq!(guest.policy(BIND, 0b10), error(libc::EINVAL));
    assert_eq!(guest.policy(INTERLEAVE, 0b1), 0);
    assert_eq!(guest.kernel.touch(pages.number(0), 0, 63), 0);
}

#[test]
fn pages_go_where_there_is_memory() {
    let text = include_str!("../../../machines/epyc-7742-2s.toml")
        .replace("memory_only_nodes = { value = 0,", "memory_only_nodes = { value = 1,")
        .replace("memoryless_nodes = { value = 0,", "memoryless_nodes = { value = 1,")
        .replace("[memory]", "[memory]\nmemory_only_ns = { value = 250, source = \"a test\", confidence = \"assumed\" }");
    let mut guest = Guest::of(Machine::from_toml(&text, "a test").unwrap(), 1, 1);
    let pages = Pages::new(6);
    // The second socket has no memory: the first one's is nearer than that without CPUs.
    assert_eq!(guest.touched(&pages, 1, FAR), [0]);
    assert_eq!(guest.bind(&pages, 6, BIND, 0b010, 0), error(libc::EINVAL));
    assert_eq!(guest.bind(&pages, 6, BIND, 0b100, MOVE), 0);
    assert_eq!(guest.touched(&pages, 2, FAR), [2, 2]);
    let pages = Pages::new(4);
    assert_eq!(guest.bind(&pages, 4, INTERLEAVE, 0b111, 0), 0);
    let mut nodes = guest.touched(&pages, 4, NEAR);
    nodes.sort_unstable();
    assert_eq!(nodes, [0, 0, 2, 2]);
    let (mut page, mut wanted, mut status) = (pages.address(0), 1_i32, 0_i32);
    let mut arguments = [0, 1, at(&mut page), at(&mut wanted), at(&mut status), MOVE];
    assert_eq!(guest.result(libc::SYS_move_pages, &arguments), error(libc::ENODEV));
    wanted = 2;
    arguments[3] = at(&mut wanted);
    assert_eq!(guest.result(libc::SYS_move_pages, &arguments), 0);
    assert_eq!(std::hint::black_box(status), 2);
    let mut mask = 0_u64;
    let arguments = [0, at(&mut mask), 64, 0, ASK_ALLOWED];
    assert_eq!(guest.result(libc::SYS_get_mempolicy, &arguments), 0);
    assert_eq!(std::hint::black_box(mask), 0b101);
}

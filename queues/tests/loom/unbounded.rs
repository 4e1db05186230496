//! Unbounded queues: blocks that are freed and used again, and answers that the plans do not ask for.

use super::*;

/// Makes a queue that is freed by hand, when all that borrow it are gone.
fn leaked<Q: WithCapacity>() -> *mut Q {
    Box::into_raw(Box::new(Q::with_capacity(1).unwrap()))
}

mod mpmc_segmented {
    use super::*;
    use crate::mpmc_segmented::MpmcSegmented;

    /// Two threads read out a block of three, `own` and `others` elements, and one of them goes on to
    /// push, first into the next block and then, if it got it, into this one again.
    fn reader_pushes(name: &str, own: usize, others: usize, bound: Option<usize>) {
        explore(name, 2, bound, move || {
            type Segmented = MpmcSegmented<Element, 3>;
            let queue: *mut Segmented = leaked();
            // SAFETY: freed below, when the other thread has ended.
            let shared: &'static Segmented = unsafe { &*queue };
            let drops = Arc::new(AtomicUsize::new(0));
            let push = |number| {
                let element = Element { producer: 0, number, drops: Arc::clone(&drops) };
                assert!(shared.try_push(element).is_ok());
            };
            (0..5).for_each(push);
            let pop = |_| shared.try_pop().map(|element| element.number);
            let reading =
                loom::thread::spawn(move || (0..others).filter_map(pop).collect::<Vec<_>>());
            let mut seen: Vec<usize> = (0..own).filter_map(pop).collect();
            (5..8).for_each(push);
            seen.extend(reading.join().unwrap());
            // SAFETY: the other thread has ended.
            drop(unsafe { Box::from_raw(queue) });
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2], "the oldest, each once");
            assert_eq!(drops.load(Ordering::Relaxed), 8, "each element is dropped once");
        });
    }

    /// Two threads read out a block of three, of which either may be the last to leave, while a
    /// third pushes into the next one and may get the block again.
    fn readers_leave(name: &str, wanted: [usize; 2], more: usize, bound: Option<usize>) {
        explore(name, 3, bound, move || {
            type Segmented = MpmcSegmented<Element, 3>;
            let queue: *mut Segmented = leaked();
            // SAFETY: freed below, when all threads have ended.
            let shared: &'static Segmented = unsafe { &*queue };
            let drops = Arc::new(AtomicUsize::new(0));
            let element = |number| Element { producer: 0, number, drops: Arc::clone(&drops) };
            for number in 0..3 {
                assert!(shared.try_push(element(number)).is_ok());
            }
            let reading = wanted.map(|most| {
                loom::thread::spawn(move || {
                    let mut seen = Vec::new();
                    shared.pop_each(most, |element| seen.push(element.number));
                    seen.extend(shared.try_pop().map(|element| element.number));
                    seen
                })
            });
            for number in 3..3 + more {
                assert!(shared.try_push(element(number)).is_ok());
            }
            let mut seen: Vec<usize> = Vec::new();
            for thread in reading {
                let own = thread.join().unwrap();
                assert!(own.is_sorted(), "{own:?}");
                seen.extend(own);
            }
            // SAFETY: all threads have ended.
            drop(unsafe { Box::from_raw(queue) });
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..seen.len()), "the oldest first: {seen:?}");
            assert_eq!(drops.load(Ordering::Relaxed), 3 + more, "each element is dropped once");
        });
    }

    #[test]
    fn either_reader_is_the_last_to_leave() {
        readers_leave("mpmc_segmented 2 readers", [1, 1], 0, Some(3));
    }

    /// Blocks of one slot: each push links a block, each pop passes one on and frees it.
    fn blocks_of_one(
        name: &str,
        producers: &'static [usize],
        consumers: &'static [usize],
        bound: Option<usize>,
    ) {
        let plan = Plan { capacity: 1, producers, consumers };
        model::<MpmcSegmented<Element, 1>>(name, plan, bound);
    }

    #[test]
    fn a_block_of_one_comes_back() {
        blocks_of_one("mpmc_segmented 1P1C blocks of one", &[3], &[2], Some(3));
    }

    #[test]
    fn two_producers_link_blocks_of_one() {
        blocks_of_one("mpmc_segmented 2P1C blocks of one", &[1, 2], &[2], Some(1));
    }

    #[test]
    fn two_consumers_free_blocks_of_one() {
        blocks_of_one("mpmc_segmented 1P2C blocks of one", &[3], &[2, 1], Some(1));
    }

    #[test]
    fn who_frees_a_block_uses_it_again() {
        reader_pushes("mpmc_segmented 2 readers, one frees and pushes", 2, 1, Some(3));
    }

    #[test]
    fn who_relieves_a_reader_uses_the_block_again() {
        reader_pushes("mpmc_segmented 2 readers, one relieves and pushes", 1, 2, Some(3));
    }
}

mod mpsc_unbounded {
    use super::*;
    use crate::mpsc_unbounded::MpscUnbounded;
    use contract::Pop;

    /// Who has pushed and finds nothing is told that another push is under way, never that the queue
    /// is empty; and when all have ended, nothing is kept back.
    #[test]
    fn empty_is_not_said_of_what_was_pushed() {
        explore("mpsc_unbounded 1 producer, who has pushed", 2, Some(3), || {
            let queue: *mut MpscUnbounded<Element> = leaked();
            // SAFETY: just made; freed below, when the endpoints are not used again.
            let (producer, mut consumer) = unsafe { &mut *queue }.split();
            let other = producer.clone();
            let drops = Arc::new(AtomicUsize::new(0));
            let element = |number| Element { producer: 0, number, drops: Arc::clone(&drops) };
            let late = element(1);
            assert!(producer.try_push(element(0)).is_ok());
            let pushing = loom::thread::spawn(move || assert!(other.try_push(late).is_ok()));
            let first = consumer.pop();
            assert!(!matches!(first, Pop::Empty), "it is inside");
            let mut seen: Vec<usize> = first.item().into_iter().map(|item| item.number).collect();
            pushing.join().unwrap();
            while let Pop::Item(item) = consumer.pop() {
                seen.push(item.number);
            }
            assert_eq!(seen, [0, 1]);
            assert!(matches!(consumer.pop(), Pop::Empty), "all pushes have ended");
            // SAFETY: neither endpoint is used again.
            drop(unsafe { Box::from_raw(queue) });
            assert_eq!(drops.load(Ordering::Relaxed), 2, "each element is dropped once");
        });
    }
}

mod spsc_unbounded {
    use super::*;

    /// Blocks of two slots: the block of the first elements comes back while the others are read.
    #[test]
    fn blocks_of_two_come_back() {
        type Queue = crate::spsc_unbounded::SpscUnbounded<Element, 2>;
        let plan = Plan { capacity: 1, producers: &[6], consumers: &[4] };
        model::<Queue>("spsc_unbounded 1P1C blocks of two", plan, Some(3));
    }
}

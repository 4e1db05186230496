//! Unbounded queues: blocks that are freed and used again, and answers that the plans do not ask for.

use super::*;

/// Makes a queue that is freed by hand, when all that borrow it are gone.
fn leaked<Q: WithCapacity>() -> *mut Q {
    Box::into_raw(Box::new(Q::with_capacity(1).unwrap()))
}

mod mpmc_segmented {
    use super::*;
    use crate::mpmc_segmented::MpmcSegmented;

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

//! Deques whose worker pops too: what the plans for producers and consumers do not do.

use super::contract::WithCapacity;
use super::deque_ends::{Deque, Thief, Worker};
use super::*;
use queues::Steal;

/// A deque with its two ends, each of which is one thread's to begin with.
type Ends<D> = (Worker<'static, D, Element>, Thief<'static, D, Element>);

/// What the worker does, one letter a step: `+` pushes, `-` pops. Each thief steals once.
fn worker_and_thieves<D>(
    name: &str,
    split: fn(&'static mut D) -> Ends<D>,
    (capacity, steps): (usize, &'static str),
    thieves: usize,
    bound: Option<usize>,
) where
    D: Deque<Element> + WithCapacity + Send + Sync + 'static,
{
    explore(name, thieves + 1, bound, move || {
        let deque: *mut D = Box::into_raw(Box::new(D::with_capacity(capacity).unwrap()));
        let drops = Arc::new(AtomicUsize::new(0));
        // SAFETY: just made by `Box`; freed below, when the endpoints are gone.
        let (mut worker, thief) = split(unsafe { &mut *deque });
        let stealing: Vec<_> = (0..thieves)
            .map(|_| {
                let thief = thief.clone();
                loom::thread::spawn(move || match thief.steal() {
                    Steal::Success(element) => vec![element.number],
                    Steal::Empty | Steal::Retry => vec![],
                })
            })
            .collect();
        let (mut pushed, mut taken) = (0, Vec::new());
        for step in steps.chars() {
            if step == '+' {
                let element = Element { producer: 0, number: pushed, drops: Arc::clone(&drops) };
                pushed += usize::from(worker.try_push(element).is_ok());
            } else {
                let popped = worker.pop().map(|element| element.number);
                assert!(popped.is_none_or(|number| number < pushed));
                taken.extend(popped);
            }
        }
        for thief in stealing {
            taken.extend(thief.join().unwrap());
        }
        // SAFETY: all endpoints are gone.
        drop(unsafe { Box::from_raw(deque) });
        taken.sort_unstable();
        assert!(taken.windows(2).all(|two| two[0] < two[1]), "taken twice: {taken:?}");
        let made = steps.matches('+').count();
        assert_eq!(drops.load(Ordering::Relaxed), made, "each element is dropped once");
    });
}

/// The models of a row: a capacity, what the worker does, thieves, and the bound.
macro_rules! worker_models {
    ($deque:ty: $($test:ident: $plan:expr, $thieves:literal at $bound:expr;)*) => { $(
        #[test]
        fn $test() {
            let name = concat!(stringify!($deque), " ", stringify!($test));
            worker_and_thieves::<$deque>(name, |deque| deque.split(), $plan, $thieves, $bound);
        }
    )* };
}

mod deque_chase_lev {
    use super::*;

    type Fixed = crate::deque_chase_lev::DequeChaseLev<Element, queues::Inline<2>>;
    worker_models! { Fixed:
        the_last_element_goes_to_one: (2, "+-+-"), 1 at Some(4);
        a_thief_meets_pops_of_two: (2, "++--+"), 1 at Some(4);
        two_thieves_and_a_worker_that_pops: (2, "++--"), 2 at Some(2);
        a_slot_is_used_again_while_thieves_are_late: (2, "++-++"), 2 at Some(2);
    }
}

#[cfg(feature = "alloc")]
mod deque_chase_lev_growing {
    use super::*;

    type Growing = crate::deque_chase_lev_growing::DequeChaseLevGrowing<Element>;
    worker_models! { Growing:
        the_last_element_goes_to_one: (2, "+-+-"), 1 at Some(4);
        a_thief_meets_pops_of_two: (2, "++--+"), 1 at Some(4);
        two_thieves_and_a_worker_that_pops: (2, "++--"), 2 at Some(2);
        it_grows_under_a_thief: (1, "++--"), 1 at Some(4);
        it_grows_twice_under_two_thieves: (1, "+++-"), 2 at Some(1);
        a_slot_is_used_again_after_growth: (1, "++++"), 2 at Some(1);
    }
}

mod deque_packed_fifo {
    use super::*;

    type Packed = crate::deque_packed_fifo::DequePackedFifo<Element, queues::Inline<2>>;
    worker_models! { Packed:
        the_last_element_goes_to_one: (2, "+-+-"), 1 at Some(4);
        a_thief_meets_pops_of_two: (2, "++--+"), 1 at Some(3);
        a_slot_is_used_again_while_thieves_are_late: (2, "++-++"), 2 at Some(1);
    }

    /// A thief takes half into a deque of its own, of which another thief takes in turn.
    #[test]
    fn half_goes_on_to_a_third() {
        explore("deque_packed_fifo half", 3, Some(2), || {
            let make = || Box::into_raw(Box::new(Packed::with_capacity(2).unwrap()));
            let (from, into) = (make(), make());
            // SAFETY: just made by `Box`; freed below, when the endpoints are gone.
            let (mut busy, thief) = unsafe { &mut *from }.split();
            // SAFETY: as above.
            let (mut mine, third) = unsafe { &mut *into }.split();
            let drops = Arc::new(AtomicUsize::new(0));
            let element = |number| Element { producer: 0, number, drops: Arc::clone(&drops) };
            assert!(busy.try_push(element(0)).is_ok());
            let stealing = loom::thread::spawn(move || {
                let moved = thief.steal_half_into(&mut mine).success().unwrap_or(0);
                let own: Vec<_> =
                    std::iter::from_fn(|| mine.pop()).map(|element| element.number).collect();
                assert!(own.len() <= moved);
                own
            });
            let last =
                loom::thread::spawn(move || third.steal().success().map(|element| element.number));
            let mut pushed = 1;
            let mut taken = Vec::new();
            for number in 1..3 {
                pushed += usize::from(busy.try_push(element(number)).is_ok());
            }
            taken.extend(busy.pop().map(|element| element.number));
            taken.extend(stealing.join().unwrap());
            taken.extend(last.join().unwrap());
            // SAFETY: all endpoints are gone.
            drop(unsafe { Box::from_raw(from) });
            // SAFETY: as above.
            drop(unsafe { Box::from_raw(into) });
            taken.sort_unstable();
            assert!(taken.windows(2).all(|two| two[0] < two[1]), "taken twice: {taken:?}");
            assert!(pushed >= 2);
            assert_eq!(drops.load(Ordering::Relaxed), 3, "each element is dropped once");
        });
    }
}

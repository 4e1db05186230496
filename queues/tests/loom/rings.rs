//! What the plans do not do: reservations, runs of many elements, and rings of indices whose
//! threshold passes 0. Modules are named after files, as `scripts/mutants.sh` wants them.

use super::{Arc, AtomicUsize, Element, Ordering, WithCapacity, explore, judge};

mod spsc_reserve {
    use super::*;

    /// Reservations, one of them dropped and one committed in part, against elements read in
    /// place, across the wrap of a ring of two slots.
    #[test]
    fn reservations_on_the_cached_ring() {
        type Ring = crate::spsc_ring_cached::SpscRingCached<Element, queues::Inline<2>>;
        explore("spsc_ring_cached reservations", 2, Some(4), || {
            let ring: *mut Ring = Box::into_raw(Box::new(Ring::with_capacity(2).unwrap()));
            let drops = Arc::new(AtomicUsize::new(0));
            // SAFETY: just made by `Box`; freed below, when the endpoints are gone.
            let (mut producer, mut consumer) = unsafe { &mut *ring }.split();
            let ledger = Arc::clone(&drops);
            let pushing = loom::thread::spawn(move || {
                let (mut made, mut next) = (0, 0);
                for most in [0, 1, 2] {
                    let mut reserved = producer.reserve_up_to(2);
                    for number in next..next + reserved.room() {
                        let drops = Arc::clone(&ledger);
                        let element = Element { producer: 0, number, drops };
                        assert!(reserved.push(element).is_ok());
                        made += 1;
                    }
                    next += reserved.commit_first(most);
                }
                (made, next)
            });
            let mut seen = Vec::new();
            for most in [1, 2] {
                let ready = consumer.ready_up_to(2);
                let numbers = (0..most).map_while(|n| ready.get(n)).map(|it| it.number);
                seen.extend(numbers);
                ready.release(most);
            }
            let (made, committed) = pushing.join().unwrap();
            seen.extend(std::iter::from_fn(|| consumer.try_pop()).map(|it| it.number));
            // SAFETY: both endpoints are gone.
            drop(unsafe { Box::from_raw(ring) });
            assert_eq!(seen, (0..committed).collect::<Vec<_>>(), "in order, each once");
            assert_eq!(drops.load(Ordering::Relaxed), made, "each element is dropped once");
        });
    }
}

mod mpmc_ring_rte {
    use super::*;
    use crate::burst::Burst;

    /// A run and a single element from two producers, against bursts.
    #[test]
    fn runs_against_bursts() {
        type Ring = crate::mpmc_ring_rte::MpmcRingRte<(usize, usize), queues::Inline<4>>;
        explore("mpmc_ring_rte 2P1C runs", 3, Some(2), || {
            let ring = Arc::new(Ring::with_capacity(3).unwrap());
            let pushing: Vec<_> = (0..2)
                .map(|who| {
                    let ring = Arc::clone(&ring);
                    loom::thread::spawn(move || {
                        if who == 0 {
                            return if ring.push_bulk([(0, 0), (0, 1)]).is_ok() { 2 } else { 0 };
                        }
                        let mut burst = Burst::from([(1, 0), (1, 1)]);
                        ring.push_burst(&mut burst)
                    })
                })
                .collect();
            let history: Vec<_> = ring.pop_burst::<2>().collect();
            let joined = pushing.into_iter().map(|thread| thread.join().unwrap());
            let accepted: Vec<_> = joined.enumerate().collect();
            let rest = ring.pop_burst::<4>().collect();
            judge(&accepted, vec![history], rest);
        });
    }
}

mod index_ring {
    use super::super::contract::{CapacityError, Properties, Queue};
    use super::super::shared::{SharedConsumer, SharedProducer};
    use super::super::{Plan, model};
    use super::*;
    use queues::Inline;

    type Scq = crate::mpmc_scq::MpmcScq<Element, Inline<2>>;

    /// Its threshold is for three threads, and its positions wrap.
    struct Few(Scq);

    impl WithCapacity for Few {
        fn with_capacity(capacity: usize) -> Result<Self, CapacityError> {
            Scq::for_threads(capacity, usize::MAX, 3, 3).map(Self)
        }
    }

    impl Queue<Element> for Few {
        type Producer<'q> = SharedProducer<'q, Scq, Element>;
        type Consumer<'q> = SharedConsumer<'q, Scq, Element>;
        const PROPERTIES: Properties = <Scq as Queue<Element>>::PROPERTIES;
        const BYTES_PER_SLOT: usize = <Scq as Queue<Element>>::BYTES_PER_SLOT;

        fn split(&mut self) -> (Self::Producer<'_>, Self::Consumer<'_>) {
            self.0.split()
        }

        fn capacity(&self) -> usize {
            self.0.capacity()
        }
    }

    #[test]
    fn one_slot() {
        let plan = Plan { capacity: 1, producers: &[2], consumers: &[2] };
        model::<Few>("index_ring 1P1C capacity 1", plan, Some(3));
    }

    #[test]
    fn two_slots() {
        let plan = Plan { capacity: 2, producers: &[3], consumers: &[2] };
        model::<Few>("index_ring 1P1C capacity 2", plan, Some(2));
    }

    #[test]
    fn two_producers() {
        let plan = Plan { capacity: 2, producers: &[1, 1], consumers: &[2] };
        model::<Few>("index_ring 2P1C capacity 2", plan, Some(2));
    }

    #[test]
    fn two_consumers() {
        let plan = Plan { capacity: 2, producers: &[2], consumers: &[1, 1] };
        model::<Few>("index_ring 1P2C capacity 2", plan, Some(2));
    }

    /// A consumer finds nothing until the threshold says so, and the push after that all the same.
    #[test]
    fn emptiness_that_was_said_is_taken_back() {
        let plan = Plan { capacity: 1, producers: &[1], consumers: &[8] };
        model::<Few>("index_ring 1P1C threshold", plan, Some(2));
    }
}

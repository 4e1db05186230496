//! Sides that wait: nothing is lost, waiting ends, and a queue closes when one side is gone.
#![cfg(feature = "std")]

use queues::{
    Blocking, Boxed, Closed, Consumer, MpmcRingVyukov, MutexRing, Park, Producer, Queue, SpinYield,
    SpscRingCached, Wait, WithCapacity,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sends `items` numbers from each sender and sums up what all receivers get.
fn totals<Q, W: Wait>(capacity: usize, senders: u64, receivers: usize, items: u64) -> (u64, u64)
where
    Q: Queue<u64> + WithCapacity,
{
    let mut queue = Blocking::<_, W>::new(Q::with_capacity(capacity).unwrap());
    let (sender, receiver) = queue.split();
    let (sum, count) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut sending: Vec<_> = (1..senders).map(|_| sender.try_clone().unwrap()).collect();
    let mut receiving: Vec<_> = (1..receivers).map(|_| receiver.try_clone().unwrap()).collect();
    sending.push(sender);
    receiving.push(receiver);
    std::thread::scope(|scope| {
        for mut sender in sending {
            scope.spawn(move || (1..=items).for_each(|number| sender.send(number).unwrap()));
        }
        for mut receiver in receiving {
            let (sum, count) = (&sum, &count);
            scope.spawn(move || {
                while let Some(number) = receiver.receive() {
                    sum.fetch_add(number, Ordering::Relaxed);
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    (sum.into_inner(), count.into_inner())
}

/// Every row under one policy: one thread a side, and as many as the sides take.
fn every_row<W: Wait>() {
    const ITEMS: u64 = 2_000;
    macro_rules! rows {
        ($($id:ident => $queue:ty, $kind:ident;)*) => { $(
            if stringify!($kind) != "baseline" {
                type T = u64;
                let properties = <$queue as Queue<u64>>::PROPERTIES;
                let many = |side| if side == queues::Side::Multi { 3 } else { 1 };
                let (senders, receivers) = (many(properties.producers), many(properties.consumers));
                for (capacity, senders, receivers) in
                    [(1, 1, 1), (3, 1, 1), (1, senders, receivers), (64, senders, receivers)]
                {
                    let (sum, count) =
                        totals::<$queue, W>(capacity, senders, receivers as usize, ITEMS);
                    let what = format!("{} {senders}:{receivers} of {capacity}", stringify!($id));
                    assert_eq!(count, senders * ITEMS, "{what}");
                    assert_eq!(sum, senders * ITEMS * (ITEMS + 1) / 2, "{what}");
                }
            }
        )* };
    }
    queues::for_each_queue!(rows);
}

#[test]
fn nothing_is_lost_by_threads_that_yield() {
    every_row::<SpinYield>();
}

#[test]
fn nothing_is_lost_and_nobody_sleeps_for_ever_by_threads_that_park() {
    every_row::<Park>();
}

type Ring<W> = Blocking<MutexRing<u64, Boxed>, W>;

fn ring<W: Wait>(capacity: usize) -> Ring<W> {
    Blocking::new(MutexRing::with_capacity(capacity).unwrap())
}

#[test]
fn a_sender_that_sleeps_wakes_when_the_receivers_are_gone() {
    let mut queue = ring::<Park>(1);
    let (mut sender, receiver) = queue.split();
    sender.send(1).unwrap();
    std::thread::scope(|scope| {
        let sending = scope.spawn(move || sender.send(2));
        drop(receiver);
        assert_eq!(sending.join().unwrap(), Err(Closed(2)), "the value comes back");
    });
    let (_, mut receiver) = queue.split();
    assert_eq!((receiver.receive(), receiver.receive()), (Some(1), None), "what was in it stays");
}

#[test]
fn a_receiver_that_sleeps_wakes_when_the_senders_are_gone() {
    let mut queue = ring::<Park>(1);
    let (sender, mut receiver) = queue.split();
    let more = sender.try_clone().unwrap();
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || receiver.receive());
        drop(sender);
        drop(more);
        assert_eq!(receiving.join().unwrap(), None);
    });
}

#[test]
fn a_closed_queue_is_emptied_first() {
    for by_sender in [true, false] {
        let mut queue = ring::<SpinYield>(4);
        let (mut sender, mut receiver) = queue.split();
        for number in 0..3 {
            sender.send(number).unwrap();
        }
        if by_sender {
            sender.close()
        } else {
            receiver.close()
        }
        assert_eq!(sender.send(9), Err(Closed(9)));
        let rest: Vec<_> = std::iter::from_fn(|| receiver.receive()).collect();
        assert_eq!(rest, [0, 1, 2]);
        drop((sender, receiver));
        let (mut sender, mut receiver) = queue.split();
        assert_eq!(sender.send(5), Ok(()), "a new pair opens it again");
        assert_eq!(receiver.receive(), Some(5));
        drop((sender, receiver));
        assert_eq!(queue.into_inner().try_pop(), None);
    }
}

#[test]
fn sides_for_one_hand_out_no_more() {
    let ring = SpscRingCached::<u64, Boxed>::with_capacity(2).unwrap();
    let mut queue = Blocking::<_, SpinYield>::new(ring);
    let (sender, receiver) = queue.split();
    assert!(sender.try_clone().is_none() && receiver.try_clone().is_none());
}

/// Elements are dropped once: received ones by the receiver, the rest with the queue.
#[test]
fn exits_against_drains() {
    struct Counted(Arc<AtomicU64>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    for leave_after in 0..40 {
        let drops = Arc::new(AtomicU64::new(0));
        let ring = MpmcRingVyukov::<Counted, Boxed>::with_capacity(3).unwrap();
        let mut queue = Blocking::<_, Park>::new(ring);
        let (sender, mut receiver) = queue.split();
        let senders = [sender.try_clone().unwrap(), sender];
        let made: u64 = std::thread::scope(|scope| {
            let sending = senders.map(|mut sender| {
                let drops = &drops;
                scope.spawn(move || {
                    let all = (1..=100).map(|_| sender.send(Counted(Arc::clone(drops))));
                    all.take_while(Result::is_ok).count() as u64
                })
            });
            for _ in 0..leave_after {
                assert!(receiver.receive().is_some());
            }
            drop(receiver);
            sending.map(|thread| thread.join().unwrap()).iter().sum()
        });
        drop(queue);
        // Each sender was refused once, and that element came back and was dropped.
        assert_eq!(drops.load(Ordering::Relaxed), made + 2, "{leave_after} received");
    }
}

#[test]
fn batches_that_panic_publish_what_is_done() {
    let mut ring = SpscRingCached::<u64, Boxed>::with_capacity(8).unwrap();
    let (mut producer, mut consumer) = ring.split();
    let pushed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        producer.push_from((0..).inspect(|&number| assert!(number < 5, "boom")))
    }));
    assert!(pushed.is_err());
    let mut seen = Vec::new();
    let popped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        consumer.pop_each(8, |number| {
            seen.push(number);
            assert!(number < 2, "boom");
        })
    }));
    assert!(popped.is_err());
    assert_eq!(seen, [0, 1, 2], "the element that the panic met was taken");
    assert_eq!(consumer.pop_each(8, |number| seen.push(number)), 2);
    assert_eq!(seen, [0, 1, 2, 3, 4]);
    assert_eq!(producer.push_from(0..100), 8, "all room is there again");
}

#[test]
fn batches_and_single_operations_mix_at_every_offset() {
    for capacity in 1..=17 {
        let mut ring = SpscRingCached::<u64, Boxed>::with_capacity(capacity).unwrap();
        let (mut producer, mut consumer) = ring.split();
        let (mut next, mut expected) = (0, 0);
        for round in 0..200 {
            let mut batch = next..next + round % (capacity as u64 + 3);
            producer.push_from(&mut batch);
            next = batch.start;
            if Producer::try_push(&mut producer, next).is_ok() {
                next += 1;
            }
            let most = (round * 7 % (capacity as u64 + 2)) as usize;
            consumer.pop_each(most, |number| {
                assert_eq!(number, expected);
                expected += 1;
            });
            if let Some(number) = Consumer::try_pop(&mut consumer) {
                assert_eq!(number, expected);
                expected += 1;
            }
            assert_eq!(consumer.len() as u64, next - expected, "capacity {capacity}");
        }
        assert!(expected > 150 && next > 150, "the batches came to nothing");
    }
}

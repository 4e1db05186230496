//! What stands beside the table: a limit that holds exactly, a total that grows by steps.

use super::{Arc, explore, spawn_at, touched};
use crate::approximate::ApproximateCounter;
use crate::contract::Explicit;
use crate::limit::{AtLimit, LimitCounter};

type Limit<const ALLOWANCE: i64> = LimitCounter<2, Explicit, ALLOWANCE>;

/// Three want one each of two: one is refused, whichever shard has the last one.
#[test]
fn the_limit_is_reached_and_never_passed() {
    explore("limit, three for two", 3, Some(2), || {
        let counter = touched(Limit::<1>::new(2));
        let others: Vec<_> = [0, 1]
            .into_iter()
            .map(|shard| {
                let counter = Arc::clone(&counter);
                spawn_at(shard, move || counter.try_add_at(shard, 1))
            })
            .collect();
        let mut let_in = u64::from(counter.try_add_at(0, 1).is_ok());
        for other in others {
            let_in += u64::from(other.join().unwrap().is_ok());
        }
        assert_eq!((let_in, counter.sum()), (2, 2));
        assert_eq!(counter.try_add_at(1, 1), Err(AtLimit));
    });
}

/// Room that moves from shard to shard is room all the time: nobody is refused.
#[test]
fn room_that_moves_is_seen() {
    explore("limit, moving room", 2, Some(3), || {
        let counter = touched(Limit::<1>::new(2));
        // One token in shard 1, one added.
        counter.try_add_at(0, 1).unwrap();
        counter.try_add_at(1, 1).unwrap();
        counter.sub_at(1, 1);
        let mover = Arc::clone(&counter);
        let mover = spawn_at(0, move || {
            mover.sub_at(0, 1);
            mover.try_add_at(1, 1)
        });
        assert_eq!(counter.try_add_at(0, 1), Ok(()));
        assert_eq!(mover.join().unwrap(), Ok(()));
        assert_eq!(counter.sum(), 2);
    });
}

/// A sum is the total at one moment, while one is taken back and another one added.
#[test]
fn a_sum_is_a_snapshot() {
    explore("limit, sum", 2, Some(3), || {
        let counter = touched(Limit::<1>::new(8));
        counter.try_add_at(0, 1).unwrap();
        let mover = Arc::clone(&counter);
        let mover = spawn_at(0, move || {
            mover.try_add_at(1, 1).unwrap();
            mover.sub_at(0, 1);
        });
        let sum = counter.sum();
        assert!((1..=2).contains(&sum), "{sum}");
        mover.join().unwrap();
        assert_eq!(counter.sum(), 1);
    });
}

/// Everybody's number lets them in, so that the steps are those of one thread: 1, 2, 4.
#[test]
fn steps_are_taken_from_what_they_are_for() {
    explore("approximate", 3, None, || {
        let counter = touched(ApproximateCounter::<1>::new());
        let others: Vec<_> = (0..2)
            .map(|shard| {
                let counter = Arc::clone(&counter);
                spawn_at(shard, move || counter.inc_with(0))
            })
            .collect();
        counter.inc_with(0);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(counter.estimate(), 4);
    });
}

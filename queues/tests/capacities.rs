//! Capacities that are asked for and cannot be had: which one could, says the error.

use queues::{
    CapacityError, DequeChaseLev, DequePackedFifo, Inline, MpmcMichaelScott, MpmcRingRte,
    MpmcRingVyukov, MpmcScq, MpmcTicket, MutexRing, SpscFastForward, SpscLamport, SpscRingCached,
    SpscRingUnpadded, WithCapacity,
};

fn refusal<Q: WithCapacity>(capacity: usize) -> Option<CapacityError> {
    Q::with_capacity(capacity).err()
}

/// Every kind of ring says the same about `Inline<24>`, at and around its number of slots.
macro_rules! all_of_24 {
    ($($ring:ident)*) => { $(
        for capacity in [1, 2, 23, 24] {
            assert_eq!(refusal::<$ring<u64, Inline<24>>>(capacity), None, stringify!($ring));
        }
        let zero = refusal::<$ring<u64, Inline<24>>>(0);
        assert_eq!(zero, Some(CapacityError::Zero), stringify!($ring));
        let larger = refusal::<$ring<u64, Inline<24>>>(25);
        assert_eq!(larger, Some(CapacityError::TooLarge { largest: 24 }), stringify!($ring));
        for capacity in [usize::MAX, usize::MAX / 2 + 1, isize::MAX as usize] {
            let largest = refusal::<$ring<u64, Inline<24>>>(capacity);
            assert!(matches!(largest, Some(CapacityError::TooLarge { .. })), stringify!($ring));
        }
    )* };
}

#[test]
fn slots_inside_are_as_many_as_they_say() {
    all_of_24!(SpscRingCached SpscRingUnpadded SpscLamport SpscFastForward DequeChaseLev);
    all_of_24!(MpmcRingVyukov MpmcMichaelScott MutexRing);
}

#[test]
fn some_rings_need_a_power_of_two_and_say_what_fits() {
    fn of<const N: usize>(capacity: usize) -> Option<CapacityError> {
        let ticket = refusal::<MpmcTicket<u64, Inline<N>>>(capacity);
        let packed = refusal::<DequePackedFifo<u64, Inline<N>>>(capacity);
        assert!(capacity == usize::MAX || packed == ticket, "{packed:?} {ticket:?}");
        assert_eq!(ticket, refusal::<MpmcRingRte<u64, Inline<N>>>(capacity));
        let indices = refusal::<MpmcScq<u64, Inline<N>>>(capacity);
        let too_large = |error| matches!(error, Some(CapacityError::TooLarge { .. }));
        if !(too_large(ticket) && too_large(indices) && capacity > 40) {
            assert_eq!(ticket, indices); // else each has a largest capacity of its own
        }
        ticket.and(packed)
    }
    for capacity in 1..=16 {
        assert_eq!(of::<24>(capacity), None, "{capacity}");
    }
    for capacity in 17..=40 {
        let fits = CapacityError::TooLarge { largest: 16 };
        assert_eq!(of::<24>(capacity), Some(fits), "{capacity}");
    }
    assert_eq!(of::<24>(0), Some(CapacityError::Zero));
    assert_eq!(of::<2>(1), None, "one element needs two slots");
    assert_eq!(of::<1>(1), Some(CapacityError::TooLarge { largest: 0 }), "and one has no room");
    assert!(matches!(of::<24>(usize::MAX), Some(CapacityError::TooLarge { .. })));
}

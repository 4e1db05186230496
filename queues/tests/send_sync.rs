//! What may be sent and what may be shared: every row and its endpoints, with elements that may be
//! sent only, neither, or both.
#![expect(
    unused_imports,
    reason = "the question imports what answers where the bound does not hold"
)]

use queues::{Inline, Queue, SplitOnce};
use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;

/// Asks a type for a trait without requiring it: the inherent constant, which exists only if the
/// bound holds, goes before the trait's.
macro_rules! ask {
    ($asked:ident: $bound:path) => {
        mod $asked {
            pub(super) struct Ask<T: ?Sized>(std::marker::PhantomData<T>);
            pub(super) trait Else {
                const HOLDS: bool = false;
            }
            impl<T: ?Sized> Else for Ask<T> {}
            impl<T: ?Sized + $bound> Ask<T> {
                pub(super) const HOLDS: bool = true;
            }
        }
    };
}
ask!(send: Send);
ask!(sync: Sync);

macro_rules! is_send_and_sync {
    ($type:ty) => {{
        let send = {
            use send::Else as _;
            <send::Ask<$type>>::HOLDS
        };
        let sync = {
            use sync::Else as _;
            <sync::Ask<$type>>::HOLDS
        };
        (send, sync)
    }};
}

/// May be sent, and not shared.
type Sendable = Cell<u64>;
/// May be neither.
type Bound = Rc<u64>;

#[test]
fn the_question_is_answered() {
    assert_eq!(is_send_and_sync!(u64), (true, true));
    assert_eq!(is_send_and_sync!(Sendable), (true, false));
    assert_eq!(is_send_and_sync!(Bound), (false, false));
    assert_eq!(is_send_and_sync!(PhantomData<Bound>), (false, false));
}

#[test]
fn queues_of_elements_that_may_be_sent_may_be_shared_and_no_others() {
    macro_rules! rows {
        ($($id:ident => $queue:ty, $kind:ident;)*) => { $({
            type Of<T> = $queue;
            // A baseline keeps no element, so it is bound to nothing.
            let baseline = stringify!($kind) == "baseline";
            assert_eq!(is_send_and_sync!(Of<u64>), (true, true), stringify!($id));
            assert_eq!(is_send_and_sync!(Of<Sendable>), (true, true), stringify!($id));
            let bound = is_send_and_sync!(Of<Bound>);
            assert_eq!(bound, (baseline, baseline), stringify!($id));
        })* };
    }
    queues::for_each_queue!(rows);
}

#[test]
fn endpoints_may_be_sent_and_single_ones_not_shared() {
    macro_rules! endpoints {
        ($($queue:ident: $single_producer:literal $single_consumer:literal;)*) => { $({
            type Of<T> = queues::$queue<T, Inline<4>>;
            type Push<T> = <Of<T> as Queue<T>>::Producer<'static>;
            type Pop<T> = <Of<T> as Queue<T>>::Consumer<'static>;
            let name = stringify!($queue);
            assert_eq!(is_send_and_sync!(Push<u64>), (true, !$single_producer), "{name}");
            assert_eq!(is_send_and_sync!(Pop<u64>), (true, !$single_consumer), "{name}");
            assert_eq!(is_send_and_sync!(Push<Sendable>), (true, !$single_producer), "{name}");
            assert_eq!(is_send_and_sync!(Pop<Sendable>), (true, !$single_consumer), "{name}");
        })* };
    }
    endpoints! {
        SpscRingCached: true true;
        SpscRingUnpadded: true true;
        SpscLamport: true true;
        SpscFastForward: true true;
        DequeChaseLev: true false;
        DequePackedFifo: true false;
        MpmcRingVyukov: false false;
        MpmcTicket: false false;
        MpmcRingRte: false false;
        MpmcScq: false false;
        MpmcMichaelScott: false false;
        MutexRing: false false;
    }
}

#[test]
#[cfg(feature = "alloc")]
fn ends_of_what_allocates_are_alike() {
    use queues::{
        DequeChaseLevGrowing, MpscConsumer, MpscProducer, Thief, UnboundedConsumer,
        UnboundedProducer, Worker,
    };
    type Push<T> = Worker<'static, DequeChaseLevGrowing<T>, T>;
    type Pop<T> = Thief<'static, DequeChaseLevGrowing<T>, T>;
    assert_eq!(is_send_and_sync!(Push<Sendable>), (true, false));
    assert_eq!(is_send_and_sync!(Pop<Sendable>), (true, true));
    assert_eq!(is_send_and_sync!(Push<Bound>), (false, false));
    assert_eq!(is_send_and_sync!(Pop<Bound>), (false, false));
    assert_eq!(is_send_and_sync!(MpscProducer<'static, Sendable>), (true, true));
    assert_eq!(is_send_and_sync!(MpscConsumer<'static, Sendable>), (true, false));
    assert_eq!(is_send_and_sync!(MpscProducer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(MpscConsumer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(UnboundedProducer<'static, u64>), (true, false));
    assert_eq!(is_send_and_sync!(UnboundedConsumer<'static, u64>), (true, false));
    assert_eq!(is_send_and_sync!(UnboundedProducer<'static, Sendable>), (true, false));
    assert_eq!(is_send_and_sync!(UnboundedConsumer<'static, Sendable>), (true, false));
    assert_eq!(is_send_and_sync!(UnboundedProducer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(UnboundedConsumer<'static, Bound>), (false, false));
}

#[test]
fn endpoints_of_elements_that_are_bound_to_a_thread_are_so_too() {
    use queues::{
        DequeChaseLev, FastForwardConsumer, FastForwardProducer, LamportConsumer, LamportProducer,
        SpscConsumer, SpscProducer, Thief, Worker,
    };
    assert_eq!(is_send_and_sync!(SpscProducer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(SpscConsumer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(LamportProducer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(LamportConsumer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(FastForwardProducer<'static, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(FastForwardConsumer<'static, Bound>), (false, false));
    type Deque<T> = DequeChaseLev<T, Inline<4>>;
    assert_eq!(is_send_and_sync!(Worker<'static, Deque<Bound>, Bound>), (false, false));
    assert_eq!(is_send_and_sync!(Thief<'static, Deque<Bound>, Bound>), (false, false));
    type Once<T> = SplitOnce<Deque<T>>;
    assert_eq!(is_send_and_sync!(Once<u64>), (true, true));
    assert_eq!(is_send_and_sync!(Once<Bound>), (false, false));
}

//! What may be sent and what may be shared: the safe faces and their guards, with values that may be
//! sent only, shared only, neither, or both.
#![expect(
    unused_imports,
    reason = "the question imports what answers where the bound does not hold"
)]

use locks::{
    McsLock, Mutex, MutexGuard, PoisonMutex, ReadGuard, RwLock, RwSpinLock, TicketLock, WriteGuard,
};
use std::cell::Cell;
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

/// Asserts of each type whether it is `Send` and whether it is `Sync`.
macro_rules! matrix {
    ($($type:ty => $send:literal, $sync:literal;)*) => { $({
        let send = {
            use send::Else as _;
            <send::Ask<$type>>::HOLDS
        };
        let sync = {
            use sync::Else as _;
            <sync::Ask<$type>>::HOLDS
        };
        assert_eq!((send, sync), ($send, $sync), "Send and Sync of {}", stringify!($type));
    })* };
}

/// May be sent, and not shared.
type Sendable = Cell<u8>;
/// May be shared, and not sent.
type Shareable = std::sync::MutexGuard<'static, u8>;
/// May be neither.
type Bound = Rc<u8>;

#[test]
fn the_question_is_answered() {
    matrix! {
        u8 => true, true;
        Sendable => true, false;
        Shareable => false, true;
        Bound => false, false;
    }
}

#[test]
fn a_mutex_may_be_shared_if_its_value_may_be_sent() {
    matrix! {
        Mutex<u8, TicketLock> => true, true;
        Mutex<Sendable, TicketLock> => true, true;
        Mutex<Sendable, McsLock> => true, true;
        Mutex<Shareable, TicketLock> => false, false;
        Mutex<Bound, McsLock> => false, false;
        PoisonMutex<Sendable, TicketLock> => true, true;
        PoisonMutex<Shareable, TicketLock> => false, false;
    }
}

#[test]
fn a_readers_lock_may_be_shared_if_its_value_may_be_both() {
    matrix! {
        RwLock<u8, RwSpinLock> => true, true;
        RwLock<Sendable, RwSpinLock> => true, false;
        RwLock<Shareable, RwSpinLock> => false, false;
        RwLock<Bound, RwSpinLock> => false, false;
    }
}

#[test]
fn guards_stay_with_their_threads_and_are_shared_as_their_values_are() {
    matrix! {
        MutexGuard<'static, u8, TicketLock> => false, true;
        MutexGuard<'static, Sendable, TicketLock> => false, false;
        MutexGuard<'static, Shareable, TicketLock> => false, true;
        ReadGuard<'static, u8, RwSpinLock> => false, true;
        ReadGuard<'static, Sendable, RwSpinLock> => false, false;
        WriteGuard<'static, u8, RwSpinLock> => false, true;
        WriteGuard<'static, Sendable, RwSpinLock> => false, false;
    }
}

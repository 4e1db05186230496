//! What may be sent and what may be shared: arenas with values that may be sent only, shared only,
//! neither, or both.
#![expect(
    unused_imports,
    reason = "the question imports what answers where the bound does not hold"
)]

use alloc_arena::{Bump, Inline, Slab, Slice, TypedArena};
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
fn arenas_may_be_sent_with_their_values_and_slabs_shared_too() {
    matrix! {
        Bump<Slice<'static>> => true, false;
        Bump<Inline<64>> => true, false;
        TypedArena<u8, Slice<'static>> => true, false;
        TypedArena<Sendable, Slice<'static>> => true, false;
        TypedArena<Shareable, Slice<'static>> => false, false;
        TypedArena<Bound, Slice<'static>> => false, false;
        Slab<u8, Slice<'static>> => true, true;
        Slab<Sendable, Slice<'static>> => true, false;
        Slab<Shareable, Slice<'static>> => false, true;
        Slab<Bound, Slice<'static>> => false, false;
    }
}

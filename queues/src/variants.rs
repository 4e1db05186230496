//! The table of this crate: one row a variant, `id => type, kind;`.
//!
//! Kinds: `baseline` (the loop without a queue), `variant`, `control` (must look bad). The type is
//! written with the element type `T`, which the callback binds.

/// Calls the macro named by the argument once with every row of the table.
///
/// Each row's type is written with the element type `T`, which the callback binds, for instance
/// by `type Row<T> = $queue;`. With feature `alloc` the rings are `Boxed`; without it they are
/// `Inline<1024>`, which takes every capacity up to that, and the rows that allocate are not there.
///
/// ```
/// macro_rules! capacities {
///     ($($id:ident => $queue:ty, $kind:ident;)*) => { $({
///         type Row<T> = $queue;
///         let queue = <Row<u64> as queues::WithCapacity>::with_capacity(5).unwrap();
///         println!("{} {}", stringify!($id), queues::Queue::capacity(&queue));
///     })* };
/// }
/// queues::for_each_queue!(capacities);
/// ```
#[macro_export]
macro_rules! for_each_queue {
    ($($callback:ident)::+) => { $crate::__queue_rows_of_the_storage! { $($callback)::+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __queue_rows {
    ([$($callback:ident)::+] $storage:ty; $($more:tt)*) => { $($callback)::+! {
        null => $crate::NullQueue<T>, baseline;
        spsc_ring_cached => $crate::SpscRingCached<T, $storage>, variant;
        spsc_lamport => $crate::SpscLamport<T, $storage>, variant;
        spsc_fastforward => $crate::SpscFastForward<T, $storage>, variant;
        deque_chase_lev => $crate::DequeChaseLev<T, $storage>, variant;
        deque_packed_fifo => $crate::DequePackedFifo<T, $storage>, variant;
        mpmc_ring_vyukov => $crate::MpmcRingVyukov<T, $storage>, variant;
        mpmc_ring_rte => $crate::MpmcRingRte<T, $storage>, variant;
        mpmc_ticket => $crate::MpmcTicket<T, $storage>, variant;
        mpmc_scq => $crate::MpmcScq<T, $storage>, variant;
        mpmc_michael_scott => $crate::MpmcMichaelScott<T, $storage>, variant;
        mutex_ring => $crate::MutexRing<T, $storage>, variant;
        $($more)*
        spsc_ring_unpadded => $crate::SpscRingUnpadded<T, $storage>, control;
    } };
}

// A `#[cfg]` inside an exported macro would be evaluated in the caller's crate, so the part of the
// rows that needs an allocator is a table that exists in two forms.
#[cfg(feature = "alloc")]
#[doc(hidden)]
#[macro_export]
macro_rules! __queue_rows_of_the_storage {
    ($($callback:ident)::+) => { $crate::__queue_rows! { [$($callback)::+] $crate::Boxed;
        deque_chase_lev_growing => $crate::DequeChaseLevGrowing<T>, variant;
        mpmc_segmented => $crate::MpmcSegmented<T>, variant;
        spsc_unbounded => $crate::SpscUnbounded<T>, variant;
    } };
}

#[cfg(not(feature = "alloc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __queue_rows_of_the_storage {
    ($($callback:ident)::+) => { $crate::__queue_rows! { [$($callback)::+] $crate::Inline<1024>; } };
}

//! The tables of this crate: one row a variant, `id => type, kind;`; arenas that hand out blocks of
//! any layout, and pools of blocks of one size.
//!
//! Kinds: `baseline` (the loop without an arena), `variant`, `control` (must look bad).

/// Calls the macro named by the argument once with every row of the table.
///
/// ```
/// macro_rules! ids {
///     ($($id:ident => $arena:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
/// }
/// assert!(alloc_arena::for_each_arena!(ids).contains(&"bump_slice"));
/// ```
#[macro_export]
macro_rules! for_each_arena {
    ($($callback:ident)::+) => { $crate::__arena_rows_of_the_heap! { $($callback)::+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __arena_rows {
    ([$($callback:ident)::+] [$($rows_of_the_heap:tt)*] [$($variants_of_the_kernel:tt)*]
     [$($controls_of_the_kernel:tt)*]) => { $($callback)::+! {
        null => $crate::NullArena, baseline;
        bump_slice => $crate::Bump<$crate::Inline<65536>>, variant;
        $($rows_of_the_heap)*
        $($variants_of_the_kernel)*
        $($controls_of_the_kernel)*
    } };
}

// A `#[cfg]` inside an exported macro would be evaluated in the caller's crate, so the rows that
// need the heap or the kernel are sub-tables that exist in two forms.
#[cfg(feature = "alloc")]
#[doc(hidden)]
#[macro_export]
macro_rules! __arena_rows_of_the_heap {
    ($($callback:ident)::+) => { $crate::__arena_rows_of_the_kernel! { [$($callback)::+] [
        bump_heap => $crate::Bump<$crate::Heap>, variant;
        bump_atomic => $crate::AtomicBump<$crate::Heap>, variant;
    ] } };
}

#[cfg(not(feature = "alloc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __arena_rows_of_the_heap {
    ($($callback:ident)::+) => { $crate::__arena_rows_of_the_kernel! { [$($callback)::+] [] } };
}

#[cfg(all(feature = "memmap2", target_os = "linux"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __arena_rows_of_the_kernel {
    ($callback:tt $rows_of_the_heap:tt) => {
        $crate::__arena_rows! { $callback $rows_of_the_heap [
            bump_mmap => $crate::Bump<$crate::Mmap>, variant;
            bump_huge => $crate::Bump<$crate::Huge>, variant;
            bump_numa => $crate::Bump<$crate::Numa>, variant;
        ] [
            bump_first_touch => $crate::Bump<$crate::FirstTouch>, control;
        ] }
    };
}

#[cfg(not(all(feature = "memmap2", target_os = "linux")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __arena_rows_of_the_kernel {
    ($callback:tt $rows_of_the_heap:tt) => {
        $crate::__arena_rows! { $callback $rows_of_the_heap [] [] }
    };
}

/// Calls the macro named by the argument once with every row of the table of pools. Without feature
/// `alloc` it has the baseline only.
///
/// ```
/// macro_rules! ids {
///     ($($id:ident => $pool:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
/// }
/// assert!(alloc_arena::for_each_pool!(ids).contains(&"pool_null"));
/// ```
#[macro_export]
macro_rules! for_each_pool {
    ($($callback:ident)::+) => { $crate::__pool_rows_of_the_heap! { $($callback)::+ } };
}

#[cfg(feature = "alloc")]
#[doc(hidden)]
#[macro_export]
macro_rules! __pool_rows_of_the_heap {
    ($($callback:ident)::+) => { $($callback)::+! {
        pool_null => $crate::NullPool, baseline;
        pool_free_list => $crate::FreeListPool<$crate::Heap, 64>, variant;
        pool_mutex => $crate::MutexPool<$crate::Heap, 64>, variant;
        pool_treiber => $crate::TreiberPool<$crate::Heap, 64>, variant;
        pool_ring => $crate::RingPool<$crate::Heap, 64>, variant;
        pool_magazine => $crate::MagazinePool<$crate::Heap, 64>, variant;
        pool_remote => $crate::RemotePool<$crate::Heap, 64, 128>, variant;
    } };
}

#[cfg(not(feature = "alloc"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __pool_rows_of_the_heap {
    ($($callback:ident)::+) => { $($callback)::+! {
        pool_null => $crate::NullPool, baseline;
    } };
}

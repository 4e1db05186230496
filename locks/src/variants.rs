//! The table of this crate: one row a variant, `id => type, kind;`.
//!
//! Kinds: `baseline` (the loop without a lock), `variant`, `control` (must look bad).

/// Calls the macro named by the argument once with every row of the table.
///
/// ```
/// macro_rules! ids {
///     ($($id:ident => $lock:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
/// }
/// assert!(locks::for_each_lock!(ids).contains(&"ticket"));
/// ```
#[macro_export]
macro_rules! for_each_lock {
    ($($callback:ident)::+) => { $crate::__lock_rows_of_the_os! { $($callback)::+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows {
    ([$($callback:ident)::+] $($rows_of_the_os:tt)*) => { $($callback)::+! {
        null => $crate::NullLock, baseline;
        tas => $crate::TasLock, variant;
        ticket => $crate::TicketLock, variant;
        mcs => $crate::McsLock, variant;
        $($rows_of_the_os)*
        tas_neighbour => $crate::TasNeighbourLock, control;
    } };
}

// A `#[cfg]` inside an exported macro would be evaluated in the caller's crate, so the rows that
// need the operating system are a sub-table that exists in two forms.
#[cfg(all(feature = "libc", target_os = "linux"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows_of_the_os {
    ($($callback:ident)::+) => { $crate::__lock_rows! { [$($callback)::+]
        futex => $crate::FutexLock<$crate::LinuxFutex>, variant;
    } };
}

#[cfg(not(all(feature = "libc", target_os = "linux")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows_of_the_os {
    ($($callback:ident)::+) => { $crate::__lock_rows! { [$($callback)::+] } };
}

macro_rules! const_init {
    ($($id:ident => $lock:ty, $kind:ident;)*) => { $(
        impl $crate::ConstInit for $lock {
            const INIT: Self = <$lock>::new();
        }
    )* };
}
for_each_lock!(const_init);

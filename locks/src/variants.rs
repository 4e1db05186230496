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
    ($($callback:ident)::+) => { $crate::__lock_rows_of_std! { $($callback)::+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows {
    ([$($callback:ident)::+] [$($rows_of_std:tt)*] [$($rows_of_the_os:tt)*]) => {
        $($callback)::+! {
            null => $crate::NullLock, baseline;
            tas => $crate::TasLock, variant;
            ttas => $crate::TtasLock, variant;
            ttas_backoff => $crate::TtasLock<$crate::Exponential>, variant;
            ticket => $crate::TicketLock, variant;
            ticket_proportional => $crate::ProportionalTicketLock, variant;
            ticket_two_lines => $crate::TwoLineTicketLock, variant;
            anderson => $crate::AndersonLock, variant;
            mcs => $crate::McsLock, variant;
            mcs_try => $crate::McsTryLock, variant;
            mcs_k42 => $crate::K42Lock, variant;
            qspin => $crate::QSpinLock<$crate::ProcessNodes>, variant;
            $($rows_of_std)*
            cohort_bo_mcs => $crate::CohortLock<
                $crate::TtasLock<$crate::Exponential>,
                $crate::McsLock,
                $crate::CpuBlocks<64, 64, 128>,
                2,
            >, variant;
            cohort_ticket => $crate::CohortLock<
                $crate::TicketLock,
                $crate::Telling<$crate::TicketLock>,
                $crate::CpuBlocks<4, 64, 128>,
                32,
            >, variant;
            hmcs => $crate::HmcsLock<$crate::CpuBlocks<4, 64, 128>, 2, 32>, variant;
            rw_spin => $crate::RwSpinLock, variant;
            rw_phase_fair => $crate::RwPhaseFairLock, variant;
            rw_big_reader => $crate::RwBigReaderLock<
                $crate::TicketLock,
                $crate::CpuBlocks<4, 64, 128>,
                32,
            >, variant;
            $($rows_of_the_os)*
            tas_neighbour => $crate::TasNeighbourLock, control;
        }
    };
}

// A `#[cfg]` inside an exported macro would be evaluated in the caller's crate, so the rows that
// need something are sub-tables that exist in two forms.
#[cfg(feature = "std")]
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows_of_std {
    ($($callback:ident)::+) => { $crate::__lock_rows_of_the_os! { [$($callback)::+] [
        clh => $crate::ClhLock, variant;
    ] } };
}

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows_of_std {
    ($($callback:ident)::+) => { $crate::__lock_rows_of_the_os! { [$($callback)::+] [] } };
}

#[cfg(all(feature = "libc", target_os = "linux"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows_of_the_os {
    ($callback:tt $rows_of_std:tt) => {
        $crate::__lock_rows! { $callback $rows_of_std [
            futex => $crate::FutexLock<$crate::LinuxFutex>, variant;
        parking => $crate::ParkingLock<$crate::LinuxLot>, variant;
        parking_fair => $crate::ParkingLock<$crate::LinuxLot, 16>, variant;
        ticket_park => $crate::TicketParkLock<$crate::LinuxFutex>, variant;
        mcs_park => $crate::McsParkLock<$crate::LinuxFutex>, variant;
        rw_futex => $crate::RwFutexLock<$crate::LinuxFutex>, variant;
        ] }
    };
}

#[cfg(not(all(feature = "libc", target_os = "linux")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __lock_rows_of_the_os {
    ($callback:tt $rows_of_std:tt) => {
        $crate::__lock_rows! { $callback $rows_of_std [] }
    };
}

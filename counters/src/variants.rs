//! The table of this crate: one row a variant, `id => type, kind;`.
//!
//! Kinds: `baseline` (the loop without a counter), `variant`, `control` (must look bad).

/// Calls the macro named by the argument once with every row of the table.
///
/// ```
/// macro_rules! ids {
///     ($($id:ident => $counter:ty, $kind:ident;)*) => { [$(stringify!($id)),*] };
/// }
/// assert!(counters::for_each_counter!(ids).contains(&"atomic"));
/// ```
#[macro_export]
macro_rules! for_each_counter {
    ($($callback:ident)::+) => { $crate::__counter_rows_of_std! { $($callback)::+ } };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __counter_rows {
    ([$($callback:ident)::+] $($rows_of_std:tt)*) => { $($callback)::+! {
        null => $crate::NullCounter, baseline;
        atomic => $crate::AtomicCounter, variant;
        $($rows_of_std)*
        lossy => $crate::LossyCounter, control;
    } };
}

// A `#[cfg]` inside an exported macro would be evaluated in the caller's crate, so the rows that
// need the standard library are a sub-table that exists in two forms.
#[cfg(feature = "std")]
#[doc(hidden)]
#[macro_export]
macro_rules! __counter_rows_of_std {
    ($($callback:ident)::+) => { $crate::__counter_rows! { [$($callback)::+]
        sharded => $crate::ShardedCounter<128, $crate::TlsSlot>, variant;
        per_thread => $crate::PerThreadCounter<128, $crate::TlsSlot>, variant;
        per_cpu => $crate::PerCpuCounter<128, $crate::Rseq>, variant;
        per_node => $crate::NodeCounter<16, $crate::NodeId>, variant;
        batched => $crate::BatchedCounter<128, 4096, $crate::TlsSlot>, variant;
        striped => $crate::StripedCounter<128, $crate::TlsProbe>, variant;
        packed => $crate::PackedCounter<64, $crate::TlsSlot>, control;
    } };
}

#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __counter_rows_of_std {
    ($($callback:ident)::+) => { $crate::__counter_rows! { [$($callback)::+] } };
}

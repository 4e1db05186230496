//! Which locks can stand in a `static`: all whose parts can.
//!
//! Apart from their files, since the models' types have no `const` constructors.

use crate::contract::ConstInit;

macro_rules! in_statics {
    ($([$($parameters:tt)*] $lock:ty;)*) => { $(
        impl<$($parameters)*> ConstInit for $lock {
            const INIT: Self = Self::new();
        }
    )* };
}

in_statics! {
    [] crate::NullLock;
    [R] crate::TasLock<R>;
    [R] crate::TasNeighbourLock<R>;
    [R] crate::TtasLock<R>;
    [R] crate::TicketLock<R>;
    [R] crate::ProportionalTicketLock<R>;
    [R] crate::TwoLineTicketLock<R>;
    [const PLACES: usize, R] crate::AndersonLock<PLACES, R>;
    [R] crate::McsLock<R>;
    [R] crate::McsTryLock<R>;
    [R] crate::K42Lock<R>;
    [G: ConstInit, L: ConstInit, T: ConstInit, const GROUPS: usize, const PASSES: u32]
        crate::CohortLock<G, L, T, GROUPS, PASSES>;
    [T: ConstInit, const LEVELS: usize, const GROUPS: usize, const PASSES: u32, R]
        crate::HmcsLock<T, LEVELS, GROUPS, PASSES, R>;
    [L: ConstInit] crate::Telling<L>;
    [N, const PEND: bool, R] crate::QSpinLock<N, PEND, R>;
    [P, R] crate::RwSpinLock<P, R>;
    [R] crate::RwPhaseFairLock<R>;
    [W: ConstInit, T: ConstInit, const PLACES: usize, R]
        crate::RwBigReaderLock<W, T, PLACES, R>;
    [P, const SPINS: u32, R] crate::RwFutexLock<P, SPINS, R>;
    [P, const PLACES: usize, const SPINS: u32, R]
        crate::TicketParkLock<P, PLACES, SPINS, R>;
    [P, const SPINS: u32, R] crate::FutexLock<P, SPINS, R>;
    [P, const SPINS: u32, R] crate::McsParkLock<P, SPINS, R>;
    [L, const EVERY: u32, const SPINS: u32, R] crate::ParkingLock<L, EVERY, SPINS, R>;
}

#[cfg(feature = "std")]
in_statics! {
    [R] crate::ClhLock<R>;
}

#[cfg(feature = "std")]
impl<L: crate::RawLock + ConstInit, const SPARE: usize> ConstInit for crate::Pooled<L, SPARE> {
    const INIT: Self = Self::new(L::INIT);
}

#[cfg(feature = "std")]
impl<L: crate::RawLock + ConstInit> ConstInit for crate::Tls<L> {
    const INIT: Self = Self::new(L::INIT);
}

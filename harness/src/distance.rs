//! How far apart two CPUs of this host are, in the words that the simulator has for its cores.

use topology::Pu;

pub use simulator::machine::Distance;

/// The distances of two different CPUs, the nearest first.
pub const APART: [Distance; 4] =
    [Distance::Smt, Distance::SameL3, Distance::SameSocket, Distance::CrossSocket];

/// The distances of two CPUs, or of one to itself, the nearest first.
pub const ALL: [Distance; 5] =
    [Distance::Same, Distance::Smt, Distance::SameL3, Distance::SameSocket, Distance::CrossSocket];

/// Gives the position of a distance in [`ALL`].
pub fn place(distance: Distance) -> usize {
    ALL.iter().position(|one| *one == distance).unwrap_or(0)
}

/// Gives the distance of two CPUs.
pub fn between(one: &Pu, other: &Pu) -> Distance {
    if one.cpu == other.cpu {
        Distance::Same
    } else if one.package != other.package {
        Distance::CrossSocket
    } else if one.core.is_some() && one.core == other.core {
        Distance::Smt
    } else if one.l3_group == other.l3_group {
        Distance::SameL3
    } else {
        Distance::SameSocket
    }
}

/// Gives the position of a distance in [`APART`]; the nearest for the same CPU.
pub fn position(distance: Distance) -> usize {
    APART.iter().position(|apart| *apart == distance).unwrap_or(0)
}

/// Gives the word for a distance, as names of metrics have it.
pub fn word(distance: Distance) -> &'static str {
    match distance {
        Distance::Same => "same",
        Distance::Smt => "smt",
        Distance::SameL3 => "same_l3",
        Distance::SameSocket => "same_socket",
        Distance::CrossSocket => "cross_socket",
    }
}

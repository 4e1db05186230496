//! The machine files that come with the simulator.

use super::error::MachineError;
use super::nearest::nearest;

/// Names, in alphabetical order, and texts.
const MACHINES: [(&str, &str); 10] = [
    ("altra-max-128", include_str!("../../machines/altra-max-128.toml")),
    ("epyc-7742-2s", include_str!("../../machines/epyc-7742-2s.toml")),
    ("epyc-7763-2s", include_str!("../../machines/epyc-7763-2s.toml")),
    ("epyc-9654-2s", include_str!("../../machines/epyc-9654-2s.toml")),
    ("epyc-9754", include_str!("../../machines/epyc-9754.toml")),
    ("graviton2", include_str!("../../machines/graviton2.toml")),
    ("graviton3", include_str!("../../machines/graviton3.toml")),
    ("xeon-8176-8s", include_str!("../../machines/xeon-8176-8s.toml")),
    ("xeon-8275cl-2s", include_str!("../../machines/xeon-8275cl-2s.toml")),
    ("xeon-8375c-2s", include_str!("../../machines/xeon-8375c-2s.toml")),
];

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

pub(super) fn text(name: &str) -> Result<&'static str, MachineError> {
    let found = MACHINES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| MachineError::Unknown {
        name: name.into(),
        nearest: nearest(name, names()),
        known: names().collect(),
    })
}

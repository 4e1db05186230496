//! Arrays of values whose constructors are `const`, made in a `const fn`.

/// Emits an array of `$n` times `$value`; the models, whose constructors are not const, have a
/// macro of this name that calls them one by one.
macro_rules! array_of {
    ($value:expr; $n:expr) => {
        [const { $value }; $n]
    };
}
pub(crate) use array_of;

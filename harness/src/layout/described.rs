//! From what a type says about itself, in the words of a primitive crate, to the checker's.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Field, Together};

/// Defines `fn $function<T: $from::HotFields>(name: String, object: &T) -> Object`, which describes
/// an object for [`check`](crate::layout::check).
///
/// `$from` is a crate that has the module `hot` of the primitive crates at its root: each of them
/// has one of its own, because none depends on another nor on this crate.
///
/// ```text
/// harness::described!(lock_object, locks);
/// let checked = check(&[lock_object("ticket".into(), &lock)], lines);
/// ```
#[macro_export]
macro_rules! described {
    ($function:ident, $from:ident) => {
        /// Puts what an object says about itself into the checker's terms.
        fn $function<T: $from::HotFields>(name: String, object: &T) -> $crate::layout::Object {
            use $crate::layout::{Field, Object, Role, Sharing, together};
            let role = |role| match role {
                $from::Role::Nobody => Role::Nobody,
                $from::Role::One(name) | $from::Role::Many(name) => Role::named(name),
                $from::Role::Nth(name, nth) => Role::nth(name, nth),
                $from::Role::Anybody => Role::Anybody,
            };
            let mut fields = Vec::new();
            object.hot_fields(&mut |hot| {
                fields.push(Field {
                    index: Some(hot.index),
                    align: hot.align,
                    writers: role(hot.writers),
                    alone: matches!(hot.writers, $from::Role::One(_)),
                    readers: role(hot.readers),
                    sharing: match hot.sharing {
                        $from::Sharing::Apart => Sharing::Apart,
                        $from::Sharing::OneLine { group, because } => {
                            Sharing::OneLine(together(group, because).of_element(hot.index))
                        }
                        $from::Sharing::SideBySide { group, because } => {
                            Sharing::SideBySide(together(group, because))
                        }
                    },
                    ..Field::at(hot.name, hot.start, hot.bytes)
                });
            });
            $crate::layout::index_arrays_only(&mut fields);
            let start = ::core::ptr::from_ref(object).addr();
            let (align, alone) = (T::ALIGNMENT, T::ALONE);
            Object { align, alone, ..Object::at(name, start, size_of::<T>()) }.with(fields)
        }
    };
}

/// A group of fields that share lines on purpose.
pub fn together(group: &'static str, because: &'static str) -> Together {
    Together { group: Cow::Borrowed(group), because: Cow::Borrowed(because) }
}

impl Together {
    /// Gives the group of an element of an array: each has one of its own.
    pub fn of_element(self, index: usize) -> Self {
        match index {
            0 => self,
            index => Self { group: format!("{} {index}", self.group).into(), ..self },
        }
    }
}

/// Takes the index 0 from fields that are no element of an array, for people to read.
pub fn index_arrays_only(fields: &mut [Field]) {
    let arrays: BTreeSet<_> = fields
        .iter()
        .filter(|field| field.index > Some(0))
        .map(|field| field.name.clone())
        .collect();
    for field in fields {
        field.index = field.index.filter(|_| arrays.contains(&field.name));
    }
}

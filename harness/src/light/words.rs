//! The words of a workload, borrowed from their line.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::Key;

/// Words with their values, in the order in which they are written.
pub(crate) struct Words<'a>(Vec<(Cow<'a, str>, Word<'a>)>);

/// A word's value: what is usual is borrowed or a number.
#[derive(Debug, PartialEq)]
pub(crate) enum Word<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Anything else; numbers allocate nothing.
    Other(Value),
}

impl fmt::Display for Word<'_> {
    /// Writes it as JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
        match self {
            Self::Text(text) if text.bytes().all(plain) => write!(f, "\"{text}\""),
            Self::Text(text) => Value::from(&**text).fmt(f),
            Self::Other(value) => value.fmt(f),
        }
    }
}

impl<'a> Words<'a> {
    /// Shows those of a point that was read the long way.
    pub(super) fn of(words: &'a Map<String, Value>) -> Self {
        let word = |value: &'a Value| match value {
            Value::String(text) => Word::Text(Cow::Borrowed(text)),
            other => Word::Other(other.clone()),
        };
        let words = words.iter().map(|(name, value)| (Cow::Borrowed(&**name), word(value)));
        Self::by_name(words.collect())
    }

    /// Another version may write them in another order. Of a name that stands twice the last word
    /// counts, as everywhere.
    fn by_name(mut words: Vec<(Cow<'a, str>, Word<'a>)>) -> Self {
        if !words.is_sorted_by(|(one, _), (next, _)| one < next) {
            words.reverse();
            words.sort_by(|(one, _), (other, _)| one.cmp(other));
            words.dedup_by(|(later, _), (first, _)| later == first);
        }
        Self(words)
    }

    /// Gives them by their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Word<'a>)> {
        self.0.iter().map(|(name, word)| (&**name, word))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Words<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Words<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of words")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut words = Vec::with_capacity(8);
                while let Some((Key(name), word)) = map.next_entry()? {
                    words.push((name, word));
                }
                Ok(Words::by_name(words))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Word<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Word::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Word::Text(Cow::Owned(text.into())))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Word::Other(number.into()))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Word::Other(number.into()))
            }
            fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
                Ok(Word::Other(number.into()))
            }
            fn visit_bool<E: Error>(self, is: bool) -> Result<Self::Value, E> {
                Ok(Word::Other(is.into()))
            }
            fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
                Ok(Word::Other(Value::Null))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(SeqAccessDeserializer::new(list)).map(Word::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(Word::Other)
            }
        }
        deserializer.deserialize_any(Each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each with what serde_json itself makes of it.
    #[test]
    fn words_are_told_as_they_are_read_the_long_way() {
        let text = r#"{"think_ns":0,"memory":"local","text":"a\"b\u001f\\c","ä":"ö","is":true,"no":null,
            "half":0.5,"less":-7,"list":[1,"x",{"y":2}],"map":{"b":1,"a":2},"memory":"node=1"}"#;
        let told = |words: &Words<'_>| {
            words.iter().map(|(name, word)| format!("{name} {word}")).collect::<Vec<_>>()
        };
        let short = told(&serde_json::from_str(text).unwrap());
        let map: Map<String, Value> = serde_json::from_str(text).unwrap();
        assert_eq!(short, told(&Words::of(&map)));
        let mut long: Vec<_> = map.iter().map(|(name, value)| format!("{name} {value}")).collect();
        long.sort();
        let mut sorted = short.clone();
        sorted.sort();
        assert_eq!(sorted, long);
        assert_eq!(short.len(), 10);
        assert!(short.contains(&r#"memory "node=1""#.to_owned()), "{short:?}");
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for bad in ["[]", "7", "\"x\"", "{\"a\":}"] {
            assert!(serde_json::from_str::<Words<'_>>(bad).is_err(), "{bad}");
        }
    }
}

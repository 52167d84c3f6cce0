//! The shapes of records as defined in FORMAT.md, independent of the types that read them.

use Shape::{Classes, Digest, Keep, List, Object, OneOf, Optional, OrNull, Sample, Text, U8, U32, U64};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt::Debug;

/// The expected shape of a JSON value.
pub enum Shape {
    U8,
    U32,
    U64,
    Text,
    /// `first`, `last` or `ends`.
    Keep,
    /// Named classes, such as `1-2=negative,3=neutral,4-5=positive`.
    Classes,
    /// The threshold of a sample, 1 to 2^32 - 1.
    Sample,
    /// 32 lower-case hexadecimal digits.
    Digest,
    /// An optional member.
    OrNull(&'static Shape),
    /// A member that may be omitted and is not null.
    Optional(&'static Shape),
    /// An object with exactly one of two members.
    OneOf([&'static str; 2], &'static Shape),
    List(&'static Shape),
    /// An object with exactly these members.
    Object(&'static [(&'static str, Shape)]),
}

pub const SETTINGS: Shape = OneOf(["positive_from", "labels"], &MEMBERS_OF_SETTINGS);

const MEMBERS_OF_SETTINGS: Shape = Object(&[
    ("cleaning_version", U32),
    ("unicode_version", Text),
    ("stop_words", List(&Text)),
    ("max_tokens", U32),
    ("keep", Keep),
    ("positive_from", Optional(&U8)),
    ("labels", Optional(&Classes)),
    ("sample", Optional(&Sample)),
]);

pub const REDUCER_COUNTS: Shape = Object(&[
    ("reviews", U64),
    ("distinct", U64),
    ("not_sampled", Optional(&U64)),
    ("not_labelled", Optional(&U64)),
    ("only_stopwords", U64),
    ("rows", U64),
]);

/// Checks that bytes are accepted exactly if they have the shape of a record, and that writing returns what was read.
pub fn check<T: DeserializeOwned + Serialize + PartialEq + Debug>(bytes: &[u8], shape: &Shape) {
    let record: Option<T> = serde_json::from_slice(bytes).ok();
    let value: Option<Value> = serde_json::from_slice(bytes).ok();
    match (record, value) {
        (None, None) => {}
        (Some(record), Some(value)) => {
            assert!(shape.fits(&value), "this was read: {value}");
            let mut written = serde_json::to_vec_pretty(&record).expect("a record is JSON");
            written.push(b'\n');
            let again: T = serde_json::from_slice(&written).expect("what was written is a record");
            assert_eq!(again, record);
            let written: Value = serde_json::from_slice(&written).expect("what was written is JSON");
            assert_eq!(shape.without_nulls(written), shape.without_nulls(value));
        }
        // Records have no duplicate members. In a JSON value the last one replaced the others.
        (None, Some(value)) if shape.fits(&value) => {
            let found = serde_json::from_slice::<T>(value.to_string().as_bytes());
            found.expect("a value of the shape is a record");
        }
        (None, Some(_)) => {}
        (Some(record), None) => panic!("this was no JSON: {record:?}"),
    }
}

impl Shape {
    fn fits(&self, value: &Value) -> bool {
        let at_most = |max| value.as_u64().is_some_and(|number| number <= max);
        match self {
            U8 => at_most(u8::MAX.into()),
            U32 => at_most(u32::MAX.into()),
            U64 => at_most(u64::MAX),
            Text => value.is_string(),
            Keep => matches!(value.as_str(), Some("first" | "last" | "ends")),
            Classes => value.as_str().is_some_and(are_classes),
            Sample => value.as_u64().is_some_and(|threshold| (1..1 << 32).contains(&threshold)),
            Digest => value.as_str().is_some_and(|hex| {
                hex.len() == 32 && hex.bytes().all(|digit| b"0123456789abcdef".contains(&digit))
            }),
            OrNull(shape) => value.is_null() || shape.fits(value),
            Optional(shape) => shape.fits(value),
            OneOf(names, shape) => {
                shape.fits(value) && names.iter().filter(|name| value.get(**name).is_some()).count() == 1
            }
            List(shape) => value.as_array().is_some_and(|list| list.iter().all(|value| shape.fits(value))),
            Object(shapes) => value.as_object().is_some_and(|members| {
                members.keys().all(|name| shapes.iter().any(|(known, _)| known == name))
                    && shapes.iter().all(|(name, shape)| match (members.get(*name), shape) {
                        (None, Optional(_)) => true,
                        (found, shape) => shape.fits(found.unwrap_or(&Value::Null)),
                    })
            }),
        }
    }

    /// Returns a matching value without its optional members that are null.
    fn without_nulls(&self, value: Value) -> Value {
        match (self, value) {
            (OrNull(shape) | Optional(shape), value) if !value.is_null() => shape.without_nulls(value),
            (OneOf(_, shape), value) => shape.without_nulls(value),
            (List(shape), Value::Array(list)) => {
                list.into_iter().map(|value| shape.without_nulls(value)).collect()
            }
            (Object(shapes), Value::Object(mut members)) => {
                let member = |(name, shape): &(&str, Shape)| {
                    let value = members.remove(*name).filter(|value| !value.is_null())?;
                    Some((name.to_string(), shape.without_nulls(value)))
                };
                Value::Object(shapes.iter().filter_map(member).collect::<Map<_, _>>())
            }
            (_, value) => value,
        }
    }
}

/// Whether a text lists classes as a program writes them.
fn are_classes(list: &str) -> bool {
    let (mut ratings, mut names) = (Vec::new(), Vec::new());
    for pair in list.split(',') {
        let Some((range, name)) = pair.split_once('=') else { return false };
        let range: Vec<char> = range.chars().collect();
        match range[..] {
            [first @ '1'..='5', '-', last @ '1'..='5'] if first < last => ratings.extend(first..=last),
            [rating @ '1'..='5'] => ratings.push(rating),
            _ => return false,
        }
        if name.is_empty() || name.len() > 64 || name.chars().any(|c| c == '=' || c.is_control()) {
            return false;
        }
        names.push(name);
    }
    let n_classes = names.len();
    let n_ratings = ratings.len();
    ratings.sort_unstable();
    ratings.dedup();
    names.sort_unstable();
    names.dedup();
    n_classes >= 2 && names.len() == n_classes && ratings.len() == n_ratings
}

//! The review of a JSON line according to serde_json.

use std::collections::BTreeMap;

use corpus::entry::{DEPTH_MAX, Reject};
use corpus::format::{FieldPath, Fields};
use serde_json::value::RawValue;

/// The text and the rating of a line. The members of each object are first read as raw JSON, then parsed
/// separately.
pub fn oracle(line: &str, fields: &Fields) -> Result<(String, u8), Reject> {
    // When serde_json reads bytes, it accepts control characters, so this call checks the syntax separately.
    let _: serde::de::IgnoredAny = serde_json::from_str(line).map_err(|_| Reject::BadLine)?;
    let _: BTreeMap<Bytes, &RawValue> = serde_json::from_str(line).map_err(|_| Reject::BadLine)?;
    if naive_depth(line) > DEPTH_MAX {
        return Err(Reject::BadLine);
    }
    let field = |path: &FieldPath| path.names().iter().try_fold(line, |object, name| member(object, name));
    let string = |raw: &str| {
        serde_json::from_str::<Bytes>(raw).ok().filter(|_| raw.starts_with('"')).map(|b| b.lossy())
    };
    let texts: Vec<_> = fields.text.iter().filter_map(|path| field(path).and_then(string)).collect();
    if texts.is_empty() {
        return Err(Reject::NoText);
    }
    let rating = field(&fields.rating).and_then(|raw| match string(raw) {
        Some(spelled) => [1, 2, 3, 4, 5].into_iter().find(|stars| {
            let trimmed = spelled.trim_matches([' ', '\t']);
            trimmed
                .split_once('.')
                .map_or(trimmed, |(whole, zeros)| if zeros.trim_matches('0').is_empty() { whole } else { "" })
                == stars.to_string()
        }),
        None => [1, 2, 3, 4, 5].into_iter().find(|&stars| raw.parse() == Ok(f64::from(stars))),
    });
    Ok((texts.join(" "), rating.ok_or(Reject::BadRating)?))
}

/// The raw value of the last member with this name, if the raw value is an object.
fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let members: BTreeMap<Bytes, &RawValue> = serde_json::from_str(object).ok()?;
    members.get(&Bytes(name.as_bytes().to_vec())).map(|raw| raw.get())
}

fn naive_depth(line: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for character in line.chars() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => in_string = !in_string,
            '[' | '{' if !in_string => depth += 1,
            ']' | '}' if !in_string => depth -= 1,
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// A string as serde_json returns it as bytes: a lone surrogate is three bytes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn lossy(&self) -> String {
        let mut bytes = self.0.clone();
        for at in 0..bytes.len().saturating_sub(2) {
            if bytes[at] == 0xED && bytes[at + 1] >= 0xA0 {
                bytes[at..at + 3].copy_from_slice("\u{FFFD}".as_bytes());
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}

impl<'de> serde::Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;
            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Visitor)
    }
}

//! The values of an entry's columns, and the ways to write them: as JSON, CSV or Parquet.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use reading::RowValue;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use tables::{Nullable, NullableWriter};

/// The beginning of the name of an added column that the input has, too.
pub(super) const PREDICTED: &str = "predicted_";

/// An entry's columns and their values.
pub(super) type Kept = Vec<(Arc<str>, Cell)>;

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Cell {
    /// No value.
    Null,
    /// A text.
    Text(String),
    /// Another value, as JSON.
    Json(String),
    /// A number.
    #[serde(serialize_with = "float_bits", deserialize_with = "float_of_bits")]
    Float(f32),
    /// A label.
    Whole(u32),
    /// true or false.
    Bool(bool),
    /// An integer.
    Long(i64),
    /// A number of 64 bits.
    #[serde(serialize_with = "double_bits", deserialize_with = "double_of_bits")]
    Double(f64),
}

// JSON has only finite numbers.
fn float_bits<S: Serializer>(number: &f32, out: S) -> Result<S::Ok, S::Error> {
    number.to_bits().serialize(out)
}

fn float_of_bits<'de, D: Deserializer<'de>>(bits: D) -> Result<f32, D::Error> {
    u32::deserialize(bits).map(f32::from_bits)
}

fn double_bits<S: Serializer>(number: &f64, out: S) -> Result<S::Ok, S::Error> {
    number.to_bits().serialize(out)
}

fn double_of_bits<'de, D: Deserializer<'de>>(bits: D) -> Result<f64, D::Error> {
    u64::deserialize(bits).map(f64::from_bits)
}

impl Cell {
    /// The value as a text; `None` if it is null.
    fn text(&self) -> Option<String> {
        match self {
            Self::Null => None,
            Self::Text(text) | Self::Json(text) => Some(text.clone()),
            Self::Float(number) => Some(number.to_string()),
            Self::Whole(number) => Some(number.to_string()),
            Self::Bool(value) => Some(value.to_string()),
            Self::Long(number) => Some(number.to_string()),
            Self::Double(number) => Some(number.to_string()),
        }
    }

    /// The column of Parquet for such values; `None` if any column can have it.
    pub(super) fn column(&self) -> Option<Nullable> {
        Some(match self {
            Self::Null => return None,
            Self::Text(_) | Self::Json(_) => text(),
            Self::Float(_) => Nullable::Float(Vec::new()),
            Self::Whole(_) => Nullable::Whole(Vec::new()),
            Self::Bool(_) => Nullable::Bool(Vec::new()),
            Self::Long(_) => Nullable::Long(Vec::new()),
            Self::Double(_) => Nullable::Double(Vec::new()),
        })
    }

    /// Whether a column of Parquet can have the value.
    pub(super) fn fits(&self, column: &Nullable) -> bool {
        let of_value = self.column();
        // Integers up to 2^53 are exact.
        let is_widened = match (column, self) {
            (Nullable::Double(_), Self::Long(number)) => number.unsigned_abs() <= 1 << 53,
            (Nullable::Double(_), Self::Float(_)) | (Nullable::Text(_), _) => true,
            _ => false,
        };
        is_widened || of_value.is_none_or(|of| std::mem::discriminant(&of) == std::mem::discriminant(column))
    }

    /// Memory that the value has.
    pub(super) fn bytes(&self) -> usize {
        let text = if let Self::Text(text) | Self::Json(text) = self { text.len() } else { 0 };
        size_of::<(Arc<str>, Self)>() + text
    }
}

impl From<RowValue<'_>> for Cell {
    fn from(value: RowValue<'_>) -> Self {
        match value {
            RowValue::Null => Self::Null,
            RowValue::Bool(value) => Self::Bool(value),
            RowValue::Whole(number) => Self::Long(number),
            // Parquet has them as texts.
            RowValue::Unsigned(number) => Self::Json(number.to_string()),
            RowValue::Float(number) => Self::Float(number),
            RowValue::Number(number) => Self::Double(number),
            RowValue::Text(text) => Self::Text(String::from_utf8_lossy(text).into_owned()),
        }
    }
}

/// The members of an object, in their order. Of members with the same name, the last is kept.
pub(super) struct Members(pub(super) Kept);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let (mut members, mut places): (Kept, HashMap<Arc<str>, usize>) = Default::default();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    let cell = match serde_json::from_str(value.get()) {
                        Ok(Some(text)) => Cell::Text(text),
                        Ok(None) => Cell::Null,
                        Err(_) => Cell::Json(value.get().to_owned()),
                    };
                    let name: Arc<str> = name.into();
                    match places.get(&name) {
                        Some(&known) => members[known].1 = cell,
                        None => {
                            places.insert(Arc::clone(&name), members.len());
                            members.push((name, cell));
                        }
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// A column of texts.
pub(super) fn text() -> Nullable {
    Nullable::Text(Vec::new())
}

/// Writes a row as an object. Its error is a member if there is one.
pub(super) fn object(out: &mut impl Write, row: &Kept, added: &[String], cells: &[Cell]) -> io::Result<()> {
    let is_error = |name: &str| name.trim_start_matches(PREDICTED) == "error";
    let members = row.iter().map(|(name, cell)| (&**name, cell));
    let added = added.iter().map(String::as_str).zip(cells);
    let added = added.filter(|(name, cell)| !is_error(name) || **cell != Cell::Null);
    for (number, (name, cell)) in members.chain(added).enumerate() {
        out.write_all(if number == 0 { b"{" } else { b"," })?;
        serde_json::to_writer(&mut *out, name)?;
        out.write_all(b":")?;
        match cell {
            Cell::Null => out.write_all(b"null")?,
            Cell::Text(text) => serde_json::to_writer(&mut *out, text)?,
            Cell::Json(json) => out.write_all(json.as_bytes())?,
            Cell::Float(number) => serde_json::to_writer(&mut *out, number)?,
            Cell::Double(number) => serde_json::to_writer(&mut *out, number)?,
            Cell::Whole(number) => write!(out, "{number}")?,
            Cell::Long(number) => write!(out, "{number}")?,
            Cell::Bool(value) => write!(out, "{value}")?,
        }
    }
    out.write_all(b"}\n")
}

/// Writes a record of CSV.
pub(super) fn record(out: &mut impl Write, values: &[Cell], delimiter: u8) -> io::Result<()> {
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            out.write_all(&[delimiter])?;
        }
        let Some(text) = value.text() else { continue };
        if text.bytes().any(|byte| byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r')) {
            write!(out, "\"{}\"", text.replace('"', "\"\""))?;
        } else {
            out.write_all(text.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}

/// Adds a row to a Parquet file.
pub(super) fn add(out: &mut NullableWriter<File>, values: Vec<Cell>) -> io::Result<()> {
    let mut n_bytes = 0;
    for (column, value) in out.columns().iter_mut().zip(values) {
        n_bytes += size_of::<Cell>();
        match (column, value) {
            (Nullable::Whole(column), Cell::Whole(number)) => column.push(i32::try_from(number).ok()),
            (Nullable::Float(column), Cell::Float(number)) => column.push(Some(number)),
            (Nullable::Bool(column), Cell::Bool(value)) => column.push(Some(value)),
            (Nullable::Long(column), Cell::Long(number)) => column.push(Some(number)),
            (Nullable::Double(column), Cell::Double(number)) => column.push(Some(number)),
            (Nullable::Double(column), Cell::Float(number)) => column.push(Some(number.into())),
            (Nullable::Double(column), Cell::Long(number)) => column.push(Some(number as f64)),
            (Nullable::Whole(column), _) => column.push(None),
            (Nullable::Float(column), _) => column.push(None),
            (Nullable::Bool(column), _) => column.push(None),
            (Nullable::Long(column), _) => column.push(None),
            (Nullable::Double(column), _) => column.push(None),
            (Nullable::Text(column), value) => {
                let text = value.text().map(String::into_bytes);
                n_bytes += text.as_ref().map_or(0, Vec::len);
                column.push(text);
            }
        }
    }
    out.end_row(n_bytes).map_err(io::Error::other)
}

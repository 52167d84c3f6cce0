//! Writes columns of numbers, texts and lists into one Parquet file, and reads it back to verify it.
//!
//! The bytes of a file depend only on its schema, its metadata and its rows: the writer's name is fixed, no time
//! is stored, and a row group ends after a number of rows or bytes ([`RowGroup::is_full`]). Threads encode the row
//! groups and have no effect on the bytes. Memory holds a few row groups, however large the table is.
//!
//! The name of the file is the caller's: it passes a temporary path, and renames the file once it is verified.
//!
//! ```
//! use std::num::NonZeroUsize;
//! use tables::{Column, Kind, RowGroup, Schema, TableWriter, Value, verify};
//!
//! let schema = Schema::new(vec![Column::new("hash", Kind::U64), Column::new("text", Kind::Text)]);
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("texts.parquet");
//! let threads = NonZeroUsize::MIN;
//! let mut table = TableWriter::create(&path, &schema, &[("format", "example")], threads)?;
//! let mut rows = RowGroup::of(&schema);
//! for (hash, text) in [(7, "good"), (8, "bad")] {
//!     rows.push(&[Value::Number(hash), Value::Text(text.as_bytes())]);
//!     if rows.is_full() {
//!         table.write(std::mem::replace(&mut rows, RowGroup::of(&schema)))?;
//!     }
//! }
//! table.write(rows)?;
//! let written = table.finish()?;
//! assert_eq!(written.n_rows(), 2);
//! verify::<tables::Error>(&path, &schema, &written, threads, |_| Ok(()), |_| Ok(()))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod encode;
mod error;
pub mod foreign;
mod nullable;
pub mod origins;
mod reader;
mod row_group;
mod schema;
mod verify;
mod writer;

pub use error::{Error, Result};
pub use nullable::{Nullable, NullableWriter};
pub use reader::TableReader;
pub use row_group::{BYTES_MAX, ROWS_MAX, RowGroup, Value};
pub use schema::{Column, Kind, Schema};
pub use verify::verify;
pub use writer::{TableWriter, Written};

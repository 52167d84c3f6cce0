#![doc = include_str!("../FORMAT.md")]

mod chunk_index;
mod chunk_writer;
mod column;
mod column_writer;
mod dataset_settings;
mod deflate;
mod digest_table;
mod encoded_rows;
mod error;
mod ffi;
mod file;
mod header;
mod in_order;
mod kept_words;
mod layout;
mod nothing_elsewhere;
mod parts;
mod row_columns;
mod rows_writer;
mod schema;
mod stored_file;
mod words;

pub mod card;
pub mod chunk;
pub mod collect;
pub mod commit;
pub mod dataset_file;
pub mod hashes;
pub mod manifest;
pub mod merge_sorted;
pub mod shard;
pub mod spool;
pub mod vocabulary;

use hdf5_sys::HDF5_VERSION;

pub use chunk::Scalar;
pub use chunk_writer::COMPRESSORS_MAX;
pub use column::{Column, Scratch};
pub use dataset_settings::DatasetSettings;
pub use encoded_rows::{EncodedRows, encode_rows};
pub use error::{Error, Result};
pub use header::Digests;
pub use in_order::{in_order, threads};
pub use kept_words::KeptWords;
pub use parts::Before;
pub use row_columns::{Row, RowColumns, RowsReader, RowsSize, TokenColumn, TokenType};
pub use schema::{CHUNK_ROWS, PADDED_CHUNK_IDS, SCHEMA_VERSION};
pub use stored_file::Fetch;
pub use words::{RULE_OF_WORDS, WordList, WordViolation, WordsReader};

/// Returns the version of the HDF5 library that is built in.
pub fn hdf5_version() -> String {
    format!("{}.{}.{}", HDF5_VERSION.major, HDF5_VERSION.minor, HDF5_VERSION.micro)
}

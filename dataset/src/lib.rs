#![doc = include_str!("../FORMAT.md")]

mod chunk;
mod column;
mod digest_table;
mod error;
mod ffi;
mod file;
mod header;
mod rows;
mod schema;
mod words;

pub mod commit;
pub mod dataset_file;
pub mod manifest;
pub mod merge_sorted;
pub mod sha256;
pub mod shard;
pub mod spool;
pub mod vocabulary;

pub use error::{Error, Result};
pub use header::Digests;
pub use rows::{Row, TokenType};
pub use schema::{CHUNK_ROWS, PADDED_CHUNK_IDS, SCHEMA_VERSION};
pub use words::{WordList, WordsReader};

//! Reads many inputs with many threads, and passes each line or row to exactly one of them.
//!
//! A plain file is split into ranges, a compressed file into groups of its members if their ends can be
//! found, a Parquet file into its row groups, and an Arrow file into its record batches. Each thread takes and reads
//! these pieces itself. Inputs that can only be read sequentially (other compressed files, CSV, JSON arrays, standard
//! input, pipes, objects of a bucket and files on web servers) are decompressed and split into lines by threads of this
//! module, at most one per consumer, which pass the lines on in batches. The assignment of lines to threads and the
//! order of lines are undefined.
//!
//! Memory is bounded for every input. Each consumer thread requires the following memory. A reader has a
//! buffer and one line of maximum length (see [`ReadingOptions::line_bytes_max`]). Each of three batches of
//! lines has 1 MiB, one line of maximum length and a table of 2 MiB. There is one decoder for the thread and
//! one for a stream (a zstd file may require 128 MiB). An object has three parts of 8 MiB. The Parquet
//! columns that are read have pages with some hundred rows, whose size their writer has chosen. The lists of names, of
//! ranges (24 bytes per 16 MiB), of groups of members (8 bytes each), of record batches (64 bytes each) and of row
//! groups (about 2 KiB each) grow with the inputs.
//!
//! All threads together have [`ReadingOptions::batches_bytes`] for the columns of Arrow record batches and the
//! dictionaries that they need. A thread waits until its batch fits. A single batch needs its columns and dictionaries,
//! at most 256 MiB each, and if they are compressed, their compressed bytes while they are decompressed. The same memory
//! holds the pages of Parquet files; those of a row group may take twice as much, if they are alone.
//!
//! The content of lines is not interpreted, except by [`Reviews`].
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "a panic of a test is its failure"))]

mod arrow;
mod class_folders;
mod columns;
mod dialects;
mod entries;
mod entry;
mod error;
mod extension;
mod json_lines;
mod line_numbers;
mod manner;
mod members;
mod memory;
mod options;
mod parquet;
mod ranges;
mod reading;
mod reviews;
mod sequence;
mod source;
mod state;
mod streams;
mod stretch;

pub use class_folders::class_folders;
pub use corpus::rejects::Content;
pub use dialects::FoundTables;
pub use entry::{EntryUnit, InputEntry, InputPlace, RowColumns, RowValue};
pub use error::Error;
pub use extension::{OtherExtension, format_of, is_table_name, of_extension};
pub use json_lines::JsonLines;
pub use options::{KeptColumns, ReadingOptions};
pub use reading::Reading;
pub use reviews::{InputFindings, Judgement, Reviews};
pub use sequence::{Chunk, Keep, Passed, Place, Position, Resumed, SequenceOptions, read_sequence};
pub use source::{Source, find, unpacked};

#[cfg(test)]
mod tests;

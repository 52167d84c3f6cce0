//! Writes the cleaned texts of all rows to a Parquet file: the deduplicated corpus, for other programs. Its rows are
//! those of the dataset, in the same order.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::{Digest, text_hash};
use corpus::record::Votes;
use corpus::settings::Settings;
use tables::{Column, Kind, RowGroup, Schema, TableWriter, Value, Written, verify};

use crate::error::{Error, Result, of_table};
use crate::parquet::{Field, Stop, metadata};

/// Value of the key `format` in the file's metadata.
const FORMAT: &str = "sentimill texts";

const TEXT: usize = 0;
const HASH: usize = 4;

/// Meanings of the columns, for their description.
pub(crate) const FIELDS: [Field; 6] = [
    Field::text("text", "The cleaned text, with all its words"),
    Field::LABEL,
    Field::number("rating", "The most frequent rating, from 1 to 5; in a tie the smaller one"),
    Field::VOTES,
    Field::HASH,
    Field::SPLIT,
];

fn schema() -> Schema {
    Schema::new(vec![
        Column::new("text", Kind::Text),
        Column::repeating("label", Kind::U8),
        Column::repeating("rating", Kind::U8),
        Column::repeating("votes", Kind::ListOfU32),
        Column::new("hash", Kind::U64),
        Column::repeating("split", Kind::U16),
    ])
}

/// A row of a file of texts.
#[derive(Clone, Copy, Debug)]
pub struct TextRow<'a> {
    /// The cleaned text.
    pub text: &'a [u8],
    /// The label.
    pub label: u8,
    /// The votes, whose mode is the rating.
    pub votes: Votes,
    /// XXH3-64 of the text.
    pub hash: u64,
    /// The split value.
    pub split: u16,
}

/// Writer of a file of texts. Row groups are made by its threads, so that making them takes no time of the thread
/// that feeds it.
pub struct TextsWriter {
    table: TableWriter,
    schema: Schema,
    name: TableName,
}

/// What messages about a table name.
#[derive(Clone, Debug)]
pub(crate) enum TableName {
    /// The path that it gets.
    Final(PathBuf),
    /// Its temporary path, because it is put into a bucket.
    Temporary(PathBuf),
}

impl TableName {
    fn explained(&self, error: tables::Error) -> Error {
        match self {
            Self::Final(path) => of_table(path, error),
            Self::Temporary(path) => of_table(path, error).in_tmpdir(),
        }
    }
}

impl TextsWriter {
    /// Creates the file, which must not exist.
    pub(crate) fn create(
        path: &Path,
        name: TableName,
        settings: &Settings,
        row_digest: Digest,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let schema = schema();
        let pairs = metadata(FORMAT, settings, "row_digest", row_digest);
        let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, &value[..])).collect();
        let table = TableWriter::create(path, &schema, &pairs, threads);
        Ok(Self { table: table.map_err(|error| name.explained(error))?, schema, name })
    }

    /// Writes the next row group. `each_row` passes its rows, at least one, on another thread. The rows of a row
    /// group must not depend on anything but the rows of the dataset.
    pub fn row_group(
        &mut self,
        each_row: impl FnOnce(&mut dyn FnMut(TextRow<'_>)) + Send + 'static,
    ) -> Result<()> {
        let schema = self.schema.clone();
        let written = self.table.write_with(move || {
            let mut rows = RowGroup::of(&schema);
            each_row(&mut |TextRow { text, label, votes, hash, split }| {
                rows.push(&[
                    Value::Text(text),
                    Value::Number(label.into()),
                    Value::Number(votes.mode().into()),
                    Value::List(&votes.0),
                    Value::Number(hash),
                    Value::Number(split.into()),
                ]);
            });
            Ok(rows)
        });
        written.map_err(|error| self.name.explained(error))
    }

    /// Completes the file.
    pub(crate) fn finish(self) -> Result<Written> {
        self.table.finish().map_err(|error| self.name.explained(error))
    }
}

/// Reads the file back and compares it with what was written, and each text with its hash.
pub(crate) fn verified(
    path: &Path,
    written: &Written,
    threads: NonZeroUsize,
    mut go_on: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let check = |rows: &RowGroup| {
        let other = (0..rows.n_rows()).find(|&row| text_hash(rows.text(TEXT, row)) != rows.number(HASH, row));
        match other {
            None => Ok(()),
            Some(row) => Err(format!("a text does not have its hash {:016x}", rows.number(HASH, row))),
        }
    };
    let go_on = |n_read| go_on(n_read).map_err(Stop::Interrupted);
    verify(path, &schema(), written, threads, check, go_on).map_err(|stop| stop.named(path))
}

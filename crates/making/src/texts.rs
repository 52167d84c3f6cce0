//! Writes the cleaned texts of all rows to a Parquet file: the deduplicated corpus, for other programs. Its rows are
//! those of a dataset or of a shard, in the same order.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::{Digest, text_hash};
use corpus::record::Votes;
use corpus::settings::Settings;
use tables::{BYTES_MAX, Column, Kind, ROWS_MAX, RowGroup, Schema, TableWriter, Value, verify};

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

/// The size of a row group of texts. It depends on the texts only, so that files of equal rows have equal bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct GroupSize {
    n_rows: usize,
    text_bytes: usize,
}

impl GroupSize {
    /// Adds a row with a text of this length.
    pub fn add(&mut self, text_bytes: usize) {
        self.n_rows += 1;
        self.text_bytes += text_bytes;
    }

    /// Whether there are no rows.
    pub fn is_empty(self) -> bool {
        self.n_rows == 0
    }

    /// Whether the row group ends here.
    pub fn is_full(self) -> bool {
        self.n_rows >= ROWS_MAX || self.text_bytes >= BYTES_MAX
    }
}

/// Writer of a file of texts. Row groups are made by its threads, so that making them takes no time of the thread
/// that feeds it.
pub struct TextsWriter {
    table: TableWriter,
    schema: Schema,
    path: PathBuf,
    name: TableName,
    threads: NonZeroUsize,
}

/// What messages about a table name.
#[derive(Clone, Debug)]
pub(crate) enum TableName {
    /// The path that it gets.
    Final(PathBuf),
    /// Its temporary path, because it is put into a bucket or a run.
    Temporary,
}

impl TableName {
    fn explained(&self, path: &Path, error: tables::Error) -> Error {
        match self {
            Self::Final(path) => of_table(path, error),
            Self::Temporary => of_table(path, error).in_tmpdir(),
        }
    }
}

impl TextsWriter {
    /// Creates the file in the folder for temporary files. It must not exist. `row_digest` is the digest of its rows.
    pub fn temporary(
        path: &Path,
        settings: &Settings,
        row_digest: Digest,
        threads: NonZeroUsize,
    ) -> Result<Self> {
        Self::create(path, TableName::Temporary, settings, row_digest, threads)
    }

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
        let table = table.map_err(|error| name.explained(path, error))?;
        Ok(Self { table, schema, path: path.to_owned(), name, threads })
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
        written.map_err(|error| self.name.explained(&self.path, error))
    }

    /// Completes the file of this number of rows and reads it back. The rows are compared with those written, and
    /// each text with its hash. Calls `go_on` with the number of rows read so far; an error from it stops the reading.
    pub fn finish(self, n_rows: u64, mut go_on: impl FnMut(u64) -> Result<()>) -> Result<()> {
        let Self { table, schema, path, name, threads } = self;
        let written = table.finish().map_err(|error| name.explained(&path, error))?;
        if written.n_rows() != n_rows {
            let found = format!("{} rows of {n_rows}", written.n_rows());
            return Err(name.explained(&path, tables::Error::Differs(found)));
        }
        let check = |rows: &RowGroup| {
            let is_other = |&row: &usize| text_hash(rows.text(TEXT, row)) != rows.number(HASH, row);
            match (0..rows.n_rows()).find(is_other) {
                None => Ok(()),
                Some(row) => Err(format!("a text does not have its hash {:016x}", rows.number(HASH, row))),
            }
        };
        let go_on = |n_read| go_on(n_read).map_err(Stop::Interrupted);
        let verified = verify(&path, &schema, &written, threads, check, go_on);
        verified.map_err(|stop| match stop {
            Stop::Interrupted(error) => error,
            Stop::Table(error) => name.explained(&path, error),
        })
    }
}

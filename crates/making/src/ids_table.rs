//! Writes the rows of a dataset to a Parquet file: lists of ids, labels, votes, hashes and splits. The file is a
//! function of the dataset, so every program that makes the dataset writes the same bytes.

use std::num::NonZeroUsize;
use std::path::Path;

use dataset::dataset_file::DatasetReader;
use dataset::{Row, TokenType};
use tables::{Column, Kind, RowGroup, Schema, TableWriter, Value, Written, verify};

use crate::error::{Result, of_table};
use crate::parquet::{Field, Stop, metadata};

/// Value of the key `format` in the file's metadata.
const FORMAT: &str = "sentimill ids";

/// Number of rows between two calls of `go_on`.
const ROWS_TOGETHER: u64 = 1 << 10;

fn schema(ids: TokenType) -> Schema {
    let ids = match ids {
        TokenType::U16 => Kind::ListOfU16,
        TokenType::U32 => Kind::ListOfU32,
    };
    Schema::new(vec![
        Column::repeating("ids", ids),
        Column::repeating("label", Kind::U8),
        Column::repeating("votes", Kind::ListOfU32),
        Column::new("hash", Kind::U64),
        Column::repeating("split", Kind::U16),
    ])
}

/// Meanings of the columns, for their description.
pub(crate) const FIELDS: [Field; 5] = [
    Field::list(
        "ids",
        "Ids of the kept tokens: 0 is padding, 1 an unknown word, 2 the first word of the vocabulary",
    ),
    Field::LABEL,
    Field::VOTES,
    Field::HASH,
    Field::SPLIT,
];

/// Writes the table, reads it back, and compares. `go_on` is called at intervals with the number of rows written or
/// read, up to twice the number of rows.
pub(crate) fn write(
    dataset: &DatasetReader,
    path: &Path,
    threads: NonZeroUsize,
    mut go_on: impl FnMut(u64) -> Result<()>,
) -> Result<()> {
    let schema = schema(dataset.columns().token_type());
    let written = write_rows(dataset, path, &schema, threads, &mut go_on)?;
    let n_rows = written.n_rows();
    verify(
        path,
        &schema,
        &written,
        threads,
        |_| Ok(()),
        |n_read| go_on(n_rows + n_read).map_err(Stop::Interrupted),
    )
    .map_err(|stop| stop.named(path))
}

fn write_rows(
    dataset: &DatasetReader,
    path: &Path,
    schema: &Schema,
    threads: NonZeroUsize,
    go_on: &mut impl FnMut(u64) -> Result<()>,
) -> Result<Written> {
    let failed = |error| of_table(path, error);
    let pairs = metadata(FORMAT, &dataset.settings().rows, "id_digest", dataset.digests().id_digest);
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| (*key, &value[..])).collect();
    let mut table = TableWriter::create(path, schema, &pairs, threads).map_err(failed)?;
    let (mut reader, mut row, mut rows) = (dataset.rows(), Row::default(), RowGroup::of(schema));
    for at in 0..dataset.n_rows() {
        if at % ROWS_TOGETHER == 0 {
            go_on(at)?;
        }
        reader.read(at, &mut row)?;
        rows.push(&[
            Value::List(&row.tokens),
            Value::Number(row.label.into()),
            Value::List(&row.votes.0),
            Value::Number(row.hash),
            Value::Number(row.split.into()),
        ]);
        if rows.is_full() {
            table.write(std::mem::replace(&mut rows, RowGroup::of(schema))).map_err(failed)?;
        }
    }
    table.write(rows).map_err(failed)?;
    table.finish().map_err(failed)
}

//! Reads a table back and compares it with what was written.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use program::threads::spawn;

use crate::error::{Error, Result, io};
use crate::row_group::{RowGroup, Values};
use crate::schema::{Kind, Schema};
use crate::writer::Written;

const READ: &str = "read it back";

/// Reads the whole file on several threads, and compares the rows of each row group with those written. Passes
/// them to `check`, which returns what else is wrong with them. Calls `go_on` with the number of rows read so far;
/// an error from it stops the reading.
pub fn verify<E: From<Error>>(
    path: &Path,
    schema: &Schema,
    written: &Written,
    threads: NonZeroUsize,
    check: impl Fn(&RowGroup) -> Result<(), String> + Sync,
    mut go_on: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let file = open(path)?;
    let n_groups = written.row_groups.len();
    let is_same = file.metadata().file_metadata().schema_descr().root_schema() == &*schema.root()
        && file.num_row_groups() == n_groups;
    if !is_same {
        return Err(Error::Differs("another schema or number of row groups".to_owned()).into());
    }
    let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (done, results) = channel();
    let work = || -> Result<()> {
        let file = open(path)?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(&(n_rows, digest)) = written.row_groups.get(number) else { return Ok(()) };
            if stopped.load(Ordering::Relaxed) {
                return Ok(());
            }
            let read = file.get_row_group(number).and_then(|group| read(schema, &*group, n_rows));
            let rows = read.map_err(|error| Error::of(READ, error))?;
            if rows.digest() != digest {
                return Err(Error::Differs(format!("row group {number} has other values")));
            }
            check(&rows).map_err(Error::Differs)?;
            // The receiver waits for all threads.
            let _ = done.send(rows.n_rows() as u64);
        }
    };
    thread::scope(|scope| {
        let mut threads = Vec::from_iter((0..threads.get().min(n_groups)).map(|_| spawn(scope, work)));
        let mut n_read = 0;
        let mut outcome = Ok(());
        while !threads.is_empty() {
            while let Ok(n_rows) = results.recv_timeout(TICK) {
                n_read += n_rows;
            }
            if outcome.is_ok() {
                outcome = go_on(n_read);
                stopped.fetch_or(outcome.is_err(), Ordering::Relaxed);
            }
            for thread in threads.extract_if(.., |thread| thread.is_finished()) {
                let ended = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                stopped.fetch_or(ended.is_err(), Ordering::Relaxed);
                outcome = outcome.and(ended.map_err(E::from));
            }
        }
        outcome
    })
}

/// Interval at which the end of threads is detected.
const TICK: std::time::Duration = std::time::Duration::from_millis(2);

fn open(path: &Path) -> Result<SerializedFileReader<File>> {
    let file = io(READ, File::open(path))?;
    SerializedFileReader::new(file).map_err(|error| Error::of(READ, error))
}

/// Reads the rows of a row group.
pub(crate) fn read(schema: &Schema, group: &dyn RowGroupReader, n_rows: usize) -> ParquetResult<RowGroup> {
    let mut rows = Vec::new();
    for (number, (column, empty)) in
        schema.columns().iter().zip(RowGroup::of(schema).into_columns()).enumerate()
    {
        let is_list = matches!(column.kind(), Kind::ListOfU16 | Kind::ListOfU32);
        rows.push(match (group.get_column_reader(number)?, empty) {
            (ColumnReader::Int32ColumnReader(reader), Values::Int32 { max, .. }) => {
                Values::Int32 { values: values(reader, n_rows, is_list)?.0, max }
            }
            (ColumnReader::Int64ColumnReader(reader), Values::Int64(_)) => {
                Values::Int64(values(reader, n_rows, is_list)?.0)
            }
            (ColumnReader::ByteArrayColumnReader(reader), Values::Text { mut bytes, mut ends }) => {
                for text in values(reader, n_rows, is_list)?.0 {
                    bytes.extend_from_slice(text.data());
                    ends.push(bytes.len() as u64);
                }
                Values::Text { bytes, ends }
            }
            (ColumnReader::Int32ColumnReader(reader), Values::List { max, .. }) => {
                let (values, ends) = values(reader, n_rows, is_list)?;
                Values::List { values, ends, max }
            }
            _ => return Err(ParquetError::General(format!("{} has another type", column.name()))),
        });
    }
    Ok(RowGroup::read(rows, n_rows))
}

/// Reads the values of a column, and the ends of its lists.
fn values<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    n_rows: usize,
    is_list: bool,
) -> ParquetResult<(Vec<T::T>, Vec<u64>)> {
    let (mut definition, mut repetition) = (Vec::new(), Vec::new());
    let (mut values, mut ends, mut n_read) = (Vec::new(), Vec::new(), 0);
    // A call may end at the end of a page.
    while n_read < n_rows {
        let levels = is_list.then_some((&mut definition, &mut repetition));
        let (definition, repetition) = levels.unzip();
        match reader.read_records(n_rows - n_read, definition, repetition, &mut values)? {
            (0, ..) => return Err(ParquetError::EOF(format!("{n_read} rows, expected {n_rows}"))),
            (n, ..) => n_read += n,
        }
    }
    let mut end = 0;
    for (at, (&level, &repeated)) in definition.iter().zip(&repetition).enumerate() {
        if repeated == 0 && at > 0 {
            ends.push(end);
        }
        end += u64::from(level > 0);
    }
    if is_list {
        ends.push(end);
    }
    Ok((values, ends))
}

//! Writes a table: threads encode row groups, and the calling thread appends them to the file in order.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use parquet::errors::Result as ParquetResult;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::writer::SerializedFileWriter;

use crate::encode::{EncodedGroup, encode};
use crate::error::{Error, Result, io};
use crate::row_group::RowGroup;
use crate::schema::Schema;

/// Number of row groups per thread that wait for it.
const WAITING_MAX: usize = 1;

/// Makes the rows of a row group on another thread, or returns what is wrong with them.
type Make = Box<dyn FnOnce() -> Result<RowGroup, String> + Send>;

/// Writer of a table.
pub struct TableWriter {
    file: SerializedFileWriter<File>,
    encoders: Vec<Encoder>,
    /// Number of the encoder for the next row group.
    next: usize,
    /// The encoders of the row groups that are not in the file yet.
    under_way: VecDeque<usize>,
    written: Written,
}

/// Digests of the rows in a file, by which [`crate::verify()`] compares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Per row group, the number of rows and their digest.
    pub(crate) row_groups: Vec<(usize, u128)>,
}

impl Written {
    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.row_groups.iter().map(|(n_rows, _)| *n_rows as u64).sum()
    }
}

/// A thread that encodes row groups.
struct Encoder {
    there: SyncSender<Make>,
    back: Receiver<Result<EncodedGroup>>,
}

impl Encoder {
    fn start(schema: Schema, properties: WriterPropertiesPtr) -> io::Result<Self> {
        let (there, to_do) = sync_channel::<Make>(WAITING_MAX);
        let (done, back) = sync_channel(WAITING_MAX);
        // The thread ends when the other end of either channel is closed.
        let work = move || {
            for make in to_do {
                let encoded = make().map_err(Error::Differs).and_then(|rows| {
                    encode(&schema, &properties, rows).map_err(|error| Error::of(ENCODE, error))
                });
                if done.send(encoded).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(work)?;
        Ok(Self { there, back })
    }
}

const ENCODE: &str = "encode rows";
const WRITE: &str = "write rows";
const ENDS_LATER: &str = "a thread that encodes ends after the one that feeds it";

impl TableWriter {
    /// Creates the file, which must not exist, for rows of this schema. The pairs of `metadata` are stored in the
    /// file's footer. `threads` encode rows.
    pub fn create(
        path: &Path,
        schema: &Schema,
        metadata: &[(&str, &str)],
        threads: NonZeroUsize,
    ) -> Result<Self> {
        let file = io("create the file", File::options().write(true).create_new(true).open(path))?;
        let properties = schema.properties(metadata);
        let start = |_| Encoder::start(schema.clone(), properties.clone());
        let encoders = io("start a thread", (0..threads.get()).map(start).collect())?;
        let file = SerializedFileWriter::new(file, schema.root(), properties);
        let file = file.map_err(|error| Error::of(WRITE, error))?;
        Ok(Self { file, encoders, next: 0, under_way: VecDeque::new(), written: Written::default() })
    }

    /// Writes a row group. No rows are no row group.
    pub fn write(&mut self, rows: RowGroup) -> Result<()> {
        if rows.n_rows() == 0 { Ok(()) } else { self.write_with(move || Ok(rows)) }
    }

    /// Writes a row group whose rows, at least one, are made by the thread that encodes them. If `make` returns
    /// what is wrong with the rows, this is [`Error::Differs`] of a later call.
    pub fn write_with(
        &mut self,
        make: impl FnOnce() -> Result<RowGroup, String> + Send + 'static,
    ) -> Result<()> {
        if self.under_way.len() == (1 + WAITING_MAX) * self.encoders.len() {
            self.append_next()?;
        }
        let encoder = self.next;
        self.next = (encoder + 1) % self.encoders.len();
        self.encoders[encoder].there.send(Box::new(make)).expect(ENDS_LATER);
        self.under_way.push_back(encoder);
        Ok(())
    }

    /// Completes the file and syncs it to disk.
    pub fn finish(mut self) -> Result<Written> {
        while !self.under_way.is_empty() {
            self.append_next()?;
        }
        // `into_inner` would make a text of the system's error.
        self.file.finish().map_err(|error| Error::of(WRITE, error))?;
        io("sync the file", self.file.inner().sync_all())?;
        Ok(self.written)
    }

    /// Appends the oldest row group to the file.
    fn append_next(&mut self) -> Result<()> {
        let Some(encoder) = self.under_way.pop_front() else { return Ok(()) };
        let group = self.encoders[encoder].back.recv().expect(ENDS_LATER)?;
        self.written.row_groups.push((group.n_rows, group.digest));
        append(&mut self.file, group).map_err(|error| Error::of(WRITE, error))
    }
}

fn append(file: &mut SerializedFileWriter<File>, group: EncodedGroup) -> ParquetResult<()> {
    let mut row_group = file.next_row_group()?;
    for (bytes, closed) in group.columns {
        row_group.append_column(&bytes, closed)?;
    }
    row_group.close().map(|_| ())
}

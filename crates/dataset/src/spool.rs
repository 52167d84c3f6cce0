//! Temporary files for rows, words and numbers: sorted runs of data that does not fit in memory.
//!
//! All runs of a spool are in one unnamed file, one after the other. The operating system deletes the file
//! when the program exits, even if the program is killed. Each run is read through its own small buffer, so
//! any number of runs can be merged with one file descriptor. The format is internal and has no version.

use std::fs;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus::record::Votes;

use crate::error::{Error, Result};
use crate::row_columns::Row;

/// An unnamed file that holds runs.
pub struct Spool {
    folder: PathBuf,
    file: Arc<fs::File>,
    end: u64,
}

/// The byte range of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    start: u64,
    end: u64,
}

impl Spool {
    /// Creates the file in this folder.
    pub fn create(folder: &Path) -> Result<Self> {
        let file = temporary(folder, "create a temporary file", tempfile::tempfile_in(folder))?;
        Ok(Self { folder: folder.to_owned(), file: Arc::new(file), end: 0 })
    }

    /// Starts a run after all others. It is part of the spool once it is finished.
    pub fn append(&mut self) -> RunWriter<'_> {
        let pen = self.pen(self.end);
        RunWriter { spool: self, start: pen.position, pen }
    }

    /// Reserves a run of exactly this number of numbers, so that several such runs can be written
    /// alternately.
    pub fn reserve_numbers(&mut self, n_numbers: u64) -> NumbersWriter {
        let pen = self.pen(self.end);
        self.end += n_numbers * size_of::<u32>() as u64;
        NumbersWriter { run: Run { start: pen.position, end: self.end }, pen }
    }

    fn pen(&self, position: u64) -> Pen {
        Pen { folder: self.folder.clone(), file: self.file.clone(), position, buffer: Vec::new() }
    }

    /// Reads the rows of a run, through a buffer of this size.
    pub fn rows(&self, run: Run, buffer_bytes: usize) -> impl Iterator<Item = Result<Row>> + use<> {
        let folder = self.folder.clone();
        let mut input = self.reader(run, buffer_bytes);
        std::iter::from_fn(move || temporary(&folder, READ, next_entry(&mut input, read_row)).transpose())
    }

    /// Reads the words of a run with their counts, through a buffer of this size.
    pub fn words(
        &self,
        run: Run,
        buffer_bytes: usize,
    ) -> impl Iterator<Item = Result<(Vec<u8>, u64)>> + use<> {
        let folder = self.folder.clone();
        let mut input = self.reader(run, buffer_bytes);
        std::iter::from_fn(move || temporary(&folder, READ, next_entry(&mut input, read_word)).transpose())
    }

    /// Reads all numbers of a run.
    pub fn numbers(&self, run: Run) -> Result<Vec<u32>> {
        let mut bytes = vec![0; (run.end - run.start) as usize];
        temporary(&self.folder, READ, self.file.read_exact_at(&mut bytes, run.start))?;
        Ok(bytes.chunks_exact(4).map(|n| u32::from_le_bytes([n[0], n[1], n[2], n[3]])).collect())
    }

    fn reader(&self, run: Run, buffer_bytes: usize) -> BufReader<RunReader> {
        BufReader::with_capacity(buffer_bytes, RunReader { file: self.file.clone(), left: run })
    }
}

const READ: &str = "read a temporary file";

/// Adds the folder and the failed action to an error.
pub(crate) fn temporary<T>(folder: &Path, action: &'static str, result: io::Result<T>) -> Result<T> {
    result.map_err(|source| Error::Temporary { path: folder.to_owned(), action, source })
}

/// Writes at one position of the file, in large blocks.
struct Pen {
    folder: PathBuf,
    file: Arc<fs::File>,
    position: u64,
    buffer: Vec<u8>,
}

impl Pen {
    fn flush_from(&mut self, bytes: usize) -> Result<()> {
        if self.buffer.len() >= bytes {
            let written = self.file.write_all_at(&self.buffer, self.position);
            temporary(&self.folder, "write a temporary file", written)?;
            self.position += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Writes runs of rows or of words.
pub struct RunWriter<'a> {
    spool: &'a mut Spool,
    start: u64,
    pen: Pen,
}

const APPEND_BYTES: usize = 1 << 20;

impl RunWriter<'_> {
    /// Writes the next row.
    pub fn row(&mut self, row: &Row) -> Result<()> {
        append_row(row, &mut self.pen.buffer);
        self.pen.flush_from(APPEND_BYTES)
    }

    /// Writes the next rows, which [`append_row`] encoded.
    pub fn rows(&mut self, rows: &[u8]) -> Result<()> {
        self.pen.buffer.extend_from_slice(rows);
        self.pen.flush_from(APPEND_BYTES)
    }

    /// Ends a run and begins the next one. It can be read once the last one is finished.
    pub fn end_run(&mut self) -> Run {
        let end = self.pen.position + self.pen.buffer.len() as u64;
        Run { start: std::mem::replace(&mut self.start, end), end }
    }

    /// Writes the next word.
    pub fn word(&mut self, word: &[u8], count: u64) -> Result<()> {
        let out = &mut self.pen.buffer;
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&(word.len() as u32).to_le_bytes());
        out.extend_from_slice(word);
        self.pen.flush_from(APPEND_BYTES)
    }

    /// Completes the run.
    pub fn finish(mut self) -> Result<Run> {
        self.pen.flush_from(0)?;
        self.spool.end = self.pen.position;
        Ok(Run { start: self.start, end: self.pen.position })
    }
}

/// Appends a row in the form in which runs have it.
pub fn append_row(row: &Row, out: &mut Vec<u8>) {
    out.extend_from_slice(&row.hash.to_le_bytes());
    out.extend(row.votes.0.iter().flat_map(|n| n.to_le_bytes()));
    out.extend_from_slice(&[row.label]);
    out.extend_from_slice(&row.split.to_le_bytes());
    out.extend_from_slice(&row.source.to_le_bytes());
    out.extend_from_slice(&(row.tokens.len() as u32).to_le_bytes());
    out.extend(row.tokens.iter().flat_map(|token| token.to_le_bytes()));
}

/// Writes one run of numbers.
pub struct NumbersWriter {
    run: Run,
    pen: Pen,
}

const NUMBERS_BYTES: usize = 16 << 10;

impl NumbersWriter {
    /// Writes the next number.
    pub fn push(&mut self, number: u32) -> Result<()> {
        self.pen.buffer.extend_from_slice(&number.to_le_bytes());
        self.pen.flush_from(NUMBERS_BYTES)
    }

    /// Completes the run.
    pub fn finish(mut self) -> Result<Run> {
        self.pen.flush_from(0)?;
        assert_eq!(self.pen.position, self.run.end, "as many numbers are written as were reserved");
        Ok(self.run)
    }
}

/// Reads one run at its own position of the file.
struct RunReader {
    file: Arc<fs::File>,
    left: Run,
}

impl Read for RunReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min((self.left.end - self.left.start) as usize);
        let n = self.file.read_at(&mut buffer[..most], self.left.start)?;
        if n == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left.start += n as u64;
        Ok(n)
    }
}

/// The next entry of a run; `None` after the last.
fn next_entry<R: io::BufRead, T>(
    input: &mut R,
    read: impl Fn(&mut R) -> io::Result<T>,
) -> io::Result<Option<T>> {
    if input.fill_buf()?.is_empty() { Ok(None) } else { read(input).map(Some) }
}

fn read_row(input: &mut impl Read) -> io::Result<Row> {
    let hash = u64::from_le_bytes(read_bytes(input)?);
    let mut votes = Votes::default();
    for n in &mut votes.0 {
        *n = u32::from_le_bytes(read_bytes(input)?);
    }
    let [label] = read_bytes(input)?;
    let split = u16::from_le_bytes(read_bytes(input)?);
    let source = u32::from_le_bytes(read_bytes(input)?);
    let n_tokens = u32::from_le_bytes(read_bytes(input)?);
    let mut bytes = vec![0; n_tokens as usize * 4];
    input.read_exact(&mut bytes)?;
    let tokens = bytes.chunks_exact(4).map(|n| u32::from_le_bytes([n[0], n[1], n[2], n[3]])).collect();
    Ok(Row { hash, tokens, votes, label, split, source })
}

fn read_word(input: &mut impl Read) -> io::Result<(Vec<u8>, u64)> {
    let count = u64::from_le_bytes(read_bytes(input)?);
    let length = u32::from_le_bytes(read_bytes(input)?);
    let mut word = vec![0; length as usize];
    input.read_exact(&mut word)?;
    Ok((word, count))
}

fn read_bytes<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(hash: u64, tokens: &[u32]) -> Row {
        Row { hash, tokens: tokens.to_vec(), votes: Votes::one(3), label: 1, split: 999, source: 7 }
    }

    #[test]
    fn runs_of_all_kinds_survive_the_round_trip_through_one_file() {
        let mut spool = Spool::create(&std::env::temp_dir()).unwrap();
        let rows = [row(1, &[5, 6]), row(2, &[]), row(u64::MAX, &[u32::MAX])];
        let mut writer = spool.append();
        rows.iter().for_each(|row| writer.row(row).unwrap());
        let row_run = writer.finish().unwrap();

        let mut writer = spool.append();
        let mut encoded = Vec::new();
        rows[..2].iter().for_each(|row| append_row(row, &mut encoded));
        writer.rows(&encoded).unwrap();
        let first = writer.end_run();
        writer.row(&rows[2]).unwrap();
        let runs = [first, writer.finish().unwrap()];

        let (mut odd, mut even) = (spool.reserve_numbers(10_000), spool.reserve_numbers(10_000));
        for n in 0..10_000 {
            odd.push(2 * n + 1).unwrap();
            even.push(2 * n).unwrap();
        }
        let (odd, even) = (odd.finish().unwrap(), even.finish().unwrap());

        let mut writer = spool.append();
        writer.word("größe".as_bytes(), 12).unwrap();
        writer.word(b"", u64::MAX).unwrap();
        let word_run = writer.finish().unwrap();

        assert_eq!(spool.rows(row_run, 8).map(Result::unwrap).collect::<Vec<_>>(), rows);
        let read = runs.map(|run| spool.rows(run, 8).map(Result::unwrap).collect::<Vec<_>>());
        assert_eq!(read, [rows[..2].to_vec(), rows[2..].to_vec()]);
        let words: Vec<_> = spool.words(word_run, 8).map(Result::unwrap).collect();
        assert_eq!(words, [("größe".as_bytes().to_vec(), 12), (Vec::new(), u64::MAX)]);
        assert_eq!(spool.numbers(odd).unwrap()[..3], [1, 3, 5]);
        assert_eq!(spool.numbers(even).unwrap().len(), 10_000);
        let empty = spool.append().finish().unwrap();
        assert_eq!(spool.rows(empty, 8).count(), 0);
    }
}

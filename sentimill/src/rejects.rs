//! Collects the bad lines of all threads and writes them in the order of the input.
//!
//! Each thread reads the lines of a source in order, so its bad lines of one source are a sorted run. The runs are
//! stored in blocks and merged, source by source. The file therefore does not depend on the number of threads, and
//! memory holds one block per run of a source.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};

use corpus::entry::{RatingValue, Reject};
use corpus::ledger::NoReview;
use corpus::lines::LineContent;
use corpus::rejects::{Content, Position, write_reject};
use program::temporary::TemporaryPath;
use reading::{InputEntry, InputPlace};

use crate::Result;
use crate::encoded::{take, take_slice};
use crate::extra_file::ExtraFile;
use crate::job::Job;
use crate::scratch::{Scratch, Stored};

/// Approximate size of a block.
const BLOCK_BYTES: usize = 128 << 10;

/// The bad lines of one thread.
pub struct Rejects<'a> {
    scratch: &'a Scratch,
    /// The last entries, which are all of one run.
    block: Vec<u8>,
    /// The run of the last entry.
    current: Option<(usize, usize)>,
    runs: HashMap<usize, Vec<RejectRun>>,
}

/// Bad lines of one source, in order.
#[derive(Default)]
struct RejectRun {
    blocks: Vec<Stored>,
    last: Option<InputPlace>,
}

impl<'a> Rejects<'a> {
    /// Creates an empty collection.
    pub fn new(scratch: &'a Scratch) -> Self {
        Self { scratch, block: Vec::new(), current: None, runs: HashMap::new() }
    }

    /// Adds a bad line.
    pub fn add(&mut self, entry: &InputEntry<'_>, reason: NoReview) -> Result<()> {
        let source = entry.place.source;
        if self.block.len() >= BLOCK_BYTES || self.current.is_some_and(|(of, _)| of != source) {
            self.store()?;
        }
        let runs = self.runs.entry(source).or_default();
        // A new run is needed only if the lines of a source ever arrive in another order.
        if runs.last().is_none_or(|run| run.last > Some(entry.place)) {
            if self.current.is_some() {
                self.store()?;
            }
            self.runs.entry(source).or_default().push(RejectRun::default());
        }
        let runs = self.runs.entry(source).or_default();
        let number = runs.len() - 1;
        runs[number].last = Some(entry.place);
        self.current = Some((source, number));
        write_entry(&mut self.block, entry, reason);
        Ok(())
    }

    fn store(&mut self) -> Result<()> {
        if let Some((source, number)) = self.current.take() {
            let stored = self.scratch.keep(&self.block)?;
            self.runs.entry(source).or_default()[number].blocks.push(stored);
            self.block.clear();
        }
        Ok(())
    }

    /// Returns all runs, by source.
    pub fn finish(mut self) -> Result<StoredRejects> {
        self.store()?;
        Ok(StoredRejects(self.runs))
    }
}

/// The stored bad lines of one thread.
pub struct StoredRejects(HashMap<usize, Vec<RejectRun>>);

/// Writes the bad lines of all threads to a file, which does not have its name yet.
pub fn write(mut threads: Vec<StoredRejects>, file: &ExtraFile, job: &Job<'_>) -> Result<TemporaryPath> {
    let Job { reading, scratch, .. } = job;
    let temporary = file.temporary()?;
    let created = File::create_new(&temporary).map_err(|error| file.failed(&error))?;
    let mut output = BufWriter::with_capacity(BLOCK_BYTES, &created);
    let mut line = Vec::new();
    for (number, source) in reading.sources().iter().enumerate() {
        let runs = threads.iter_mut().filter_map(|StoredRejects(runs)| runs.remove(&number)).flatten();
        let mut runs = runs.map(|run| Cursor::of(run, scratch)).collect::<Result<Vec<_>>>()?;
        let has_rows = reading.has_rows(number);
        loop {
            let places = runs.iter().enumerate().filter_map(|(at, run)| Some((run.place(number)?, at)));
            let Some((place, first)) = places.min() else { break };
            let (reason, content) = runs[first].entry();
            let at = reading.offset(place);
            let position = match has_rows {
                true => Position::Row(at),
                false => Position::Offset { split_start: None, offset: at },
            };
            line.clear();
            write_reject(&mut line, reason, &source.name, position, content);
            output.write_all(&line).map_err(|error| file.failed(&error))?;
            runs[first].advance(scratch)?;
        }
    }
    let written = output.flush();
    drop(output);
    written.and_then(|()| created.sync_all()).map_err(|error| file.failed(&error))?;
    Ok(temporary)
}

/// A run while it is read.
struct Cursor {
    blocks: std::vec::IntoIter<Stored>,
    block: Vec<u8>,
    /// Start of the next entry.
    at: usize,
}

impl Cursor {
    fn of(run: RejectRun, scratch: &Scratch) -> Result<Self> {
        let mut cursor = Self { blocks: run.blocks.into_iter(), block: Vec::new(), at: 0 };
        cursor.refill(scratch)?;
        Ok(cursor)
    }

    /// The position of the next entry; `None` at the end.
    fn place(&self, source: usize) -> Option<InputPlace> {
        let mut rest = self.block.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (group, offset) = (take_number(&mut rest), take_number(&mut rest));
        Some(InputPlace::in_group(source, group as usize, offset))
    }

    fn entry(&self) -> (NoReview, Content<'_>) {
        read_entry(&mut &self.block[self.at + PLACE_BYTES..])
    }

    fn advance(&mut self, scratch: &Scratch) -> Result<()> {
        let mut rest = &self.block[self.at + PLACE_BYTES..];
        read_entry(&mut rest);
        self.at = self.block.len() - rest.len();
        if self.at == self.block.len() { self.refill(scratch) } else { Ok(()) }
    }

    fn refill(&mut self, scratch: &Scratch) -> Result<()> {
        self.block.clear();
        self.at = 0;
        match self.blocks.next() {
            Some(stored) => scratch.take(stored, &mut self.block),
            None => Ok(()),
        }
    }
}

// The encoding of an entry, little-endian: group u64, offset u64, reason u8, kind u8, then by kind. A line: its
// bytes. A line that is too long: its length u64. A row: its text and its rating, each with a kind u8. Bytes are
// preceded by their length u64.

const PLACE_BYTES: usize = 16;

/// The reasons of bad lines, by their numbers.
const REASONS: [NoReview; 4] = [
    NoReview::TooLong,
    NoReview::Rejected(Reject::BadLine),
    NoReview::Rejected(Reject::NoText),
    NoReview::Rejected(Reject::BadRating),
];

fn write_entry(out: &mut Vec<u8>, entry: &InputEntry<'_>, reason: NoReview) {
    let (group, offset) = entry.place.within();
    out.extend_from_slice(&(group as u64).to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
    out.push(REASONS.iter().position(|&listed| listed == reason).expect("only bad lines are collected") as u8);
    match entry.what {
        Content::Line(LineContent::Bytes(line)) => {
            out.push(0);
            write_bytes(out, line);
        }
        Content::Line(LineContent::TooLong { bytes, .. }) => {
            out.push(1);
            out.extend_from_slice(&bytes.to_le_bytes());
        }
        Content::Row { text, rating } => {
            out.push(2);
            out.push(text.is_some().into());
            if let Some(text) = text {
                write_bytes(out, text);
            }
            match rating {
                RatingValue::Missing => out.push(0),
                RatingValue::Number(number) => {
                    out.push(1);
                    out.extend_from_slice(&number.to_bits().to_le_bytes());
                }
                RatingValue::Text(text) => {
                    out.push(2);
                    write_bytes(out, text);
                }
            }
        }
    }
}

/// Reads an entry without its position.
fn read_entry<'a>(bytes: &mut &'a [u8]) -> (NoReview, Content<'a>) {
    let reason = REASONS[usize::from(take_byte(bytes))];
    let content = match take_byte(bytes) {
        0 => Content::Line(LineContent::Bytes(take_bytes(bytes))),
        1 => Content::Line(LineContent::TooLong { bytes: take_number(bytes), blank: false }),
        _ => Content::Row {
            text: (take_byte(bytes) == 1).then(|| take_bytes(bytes)),
            rating: match take_byte(bytes) {
                0 => RatingValue::Missing,
                1 => RatingValue::Number(f64::from_bits(take_number(bytes))),
                _ => RatingValue::Text(take_bytes(bytes)),
            },
        },
    };
    (reason, content)
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take_byte(bytes: &mut &[u8]) -> u8 {
    let [byte] = take(bytes);
    byte
}

fn take_number(bytes: &mut &[u8]) -> u64 {
    u64::from_le_bytes(take(bytes))
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = take_number(bytes) as usize;
    take_slice(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(source: usize, offset: u64, what: Content<'a>) -> InputEntry<'a> {
        InputEntry { place: InputPlace::at(source, offset), number: 0, what, columns: None, values: &[] }
    }

    #[test]
    fn entries_survive_the_round_trip() {
        let contents = [
            Content::Line(LineContent::Bytes(b"")),
            Content::Line(LineContent::Bytes(b"a\xFFb")),
            Content::Line(LineContent::TooLong { bytes: u64::MAX, blank: false }),
            Content::Row { text: None, rating: RatingValue::Missing },
            Content::Row { text: Some(b"a"), rating: RatingValue::Number(-0.5) },
            Content::Row { text: Some(b""), rating: RatingValue::Text(b"x") },
        ];
        let mut bytes = Vec::new();
        for (number, what) in contents.into_iter().enumerate() {
            write_entry(&mut bytes, &entry(0, number as u64, what), REASONS[number % 4]);
        }
        let mut rest = &bytes[..];
        for (number, what) in contents.into_iter().enumerate() {
            assert_eq!([take_number(&mut rest), take_number(&mut rest)], [0, number as u64]);
            assert_eq!(read_entry(&mut rest), (REASONS[number % 4], what));
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn runs_are_separate_by_source_and_wherever_the_order_breaks() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(folder.path(), 100);
        let mut rejects = Rejects::new(&scratch);
        let line = vec![b'x'; BLOCK_BYTES / 2];
        let places = [(0, 1), (1, 5), (0, 2), (0, 3), (0, 4), (1, 4), (1, 6), (0, 9)];
        for (source, offset) in places {
            let what = Content::Line(LineContent::Bytes(&line));
            rejects.add(&entry(source, offset, what), NoReview::Rejected(Reject::BadLine)).unwrap();
        }
        let StoredRejects(mut runs) = rejects.finish().unwrap();
        let mut of_source = |source: usize| -> Vec<Vec<u64>> {
            let offsets = |run: RejectRun| {
                let mut cursor = Cursor::of(run, &scratch).unwrap();
                let mut offsets = Vec::new();
                while let Some(place) = cursor.place(source) {
                    offsets.push(place.within().1);
                    assert_eq!(cursor.entry().1, Content::Line(LineContent::Bytes(&line)));
                    cursor.advance(&scratch).unwrap();
                }
                offsets
            };
            runs.remove(&source).unwrap().into_iter().map(offsets).collect()
        };
        assert_eq!(of_source(0), [[1, 2, 3, 4, 9].to_vec()]);
        assert_eq!(of_source(1), [vec![5], vec![4, 6]]);
    }
}

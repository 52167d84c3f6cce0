//! A dataset: the rows of a whole run, with token ids of one vocabulary.

use std::cmp::Ordering;
use std::io::Read;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use corpus::digest::{Digest, RowDigester, split};

use crate::dataset_settings::DatasetSettings;
use crate::encoded_rows::{Encoded, EncodedRows};
use crate::error::{Error, Result, Violation};
use crate::file::{FileReader, FileWriter, Value};
use crate::header::{
    Digests, check_format, read_digests, read_settings, write_digests, write_format, write_settings,
};
use crate::parts::{Before, OfPart, encode_parts};
use crate::row_columns::{
    OF_IDS, Row, RowColumns, RowRules, RowsReader, RowsSize, TokenType, VerifiedRows, in_blocks,
    order_violation,
};
use crate::rows_writer::RowsWriter;
use crate::schema::{
    DATASET, DATASET_ATTRIBUTES, HASH, LABEL, ROWS, SPLIT, VOCABULARY_OF, VOCABULARY_SIZE, VOTES, WITHOUT,
};
use crate::stored_file::StoredFile;
use crate::vocabulary::{FIRST_WORD, PADDING, UNKNOWN, Vocabulary};
use crate::words::{WordsReader, WordsWriter};

const VOCABULARY: &str = "vocabulary";

/// Writer of a dataset.
pub struct DatasetWriter {
    path: PathBuf,
    file: FileWriter,
    rows: RowsWriter,
    id_digest: Digest,
    vocabulary_digest: Digest,
}

impl DatasetWriter {
    /// Creates the file, which must not exist, for this number of rows and tokens, and writes the vocabulary.
    pub fn create(
        path: &Path,
        settings: &DatasetSettings,
        vocabulary: &Vocabulary,
        size: RowsSize,
    ) -> Result<Self> {
        let mut file = FileWriter::create(path)?;
        write_format(&mut file, DATASET)?;
        write_dataset_settings(&mut file, settings)?;
        let n_words = vocabulary.words.len() as u64;
        let mut words = WordsWriter::create(&mut file, VOCABULARY, n_words, vocabulary.words.n_bytes())?;
        for (word, &count) in vocabulary.words.iter().zip(&vocabulary.counts) {
            words.push(&mut file, word, count)?;
        }
        words.finish(&mut file)?;
        let rows = RowsWriter::create(&mut file, size, vocabulary.token_type())?;
        let (id_digest, vocabulary_digest) = (Digest::default(), vocabulary.digest());
        Ok(Self { path: path.to_owned(), file, rows, id_digest, vocabulary_digest })
    }

    /// Writes all rows, in consecutive parts of these sizes. Several threads call `each_row`, which visits the rows
    /// of a part in order; their tokens are vocabulary ids. Each of these threads compresses the chunks of its part.
    /// After each part, calls `written` on the calling thread, in the order of the parts.
    ///
    /// The bytes of the file do not depend on the parts or the number of threads: chunks get their places in the
    /// order in which one thread would fill them.
    pub fn parts<E: From<Error> + Send>(
        &mut self,
        sizes: &[RowsSize],
        threads: NonZeroUsize,
        each_row: impl Fn(usize, &mut dyn FnMut(&Row) -> Result<()>) -> Result<(), E> + Sync,
        mut written: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { path, file, rows, id_digest, .. } = self;
        encode_parts(rows, path, Before::Nothing, sizes, threads, each_row, |of_part| match of_part {
            OfPart::Piece(piece) => Ok(file.chunks.put(piece)?),
            OfPart::End { part, digest } => {
                *id_digest += digest;
                written(part)
            }
        })
    }

    /// Writes the next rows, which another program encoded for a file of this size. All rows of a file are written in
    /// this way, or none. Calls `written` with the number of rows of each part.
    pub fn encoded(
        &mut self,
        encoded: &mut EncodedRows<impl Read>,
        mut written: impl FnMut(u64),
    ) -> Result<()> {
        let mut n_rows = 0;
        while let Some(next) = encoded.next()? {
            match next {
                Encoded::Piece(piece) => self.file.chunks.put(piece.behind(self.rows.first_column()))?,
                Encoded::End { rows, digest } => {
                    self.id_digest += digest;
                    n_rows += rows;
                    written(rows);
                }
            }
        }
        encoded.check_end(n_rows)
    }

    /// Writes all rows.
    pub fn rows(&mut self, rows: &[Row]) -> Result<()> {
        let each = |_, visit: &mut dyn FnMut(&Row) -> Result<()>| rows.iter().try_for_each(visit);
        self.parts(&[RowsSize::of(rows)], NonZeroUsize::MIN, each, |_| Ok(()))
    }

    /// Completes the file and syncs it to disk. All declared rows and tokens must have been written.
    pub fn finish(mut self, row_digest: Digest) -> Result<Digests> {
        self.rows.finish(&mut self.file)?;
        let digests =
            Digests { row_digest, id_digest: self.id_digest, vocabulary_digest: self.vocabulary_digest };
        write_digests(&mut self.file, digests)?;
        self.file.finish()?;
        Ok(digests)
    }
}

fn write_dataset_settings(file: &mut FileWriter, settings: &DatasetSettings) -> Result<()> {
    let digest_or_empty =
        |digest: Option<Digest>| Value::Text(digest.map(|d| d.to_string()).unwrap_or_default());
    write_settings(file, &settings.rows)?;
    file.attribute(VOCABULARY_SIZE, &Value::Number(settings.vocabulary_size))?;
    file.attribute(VOCABULARY_OF, &digest_or_empty(settings.vocabulary_of))?;
    file.attribute(WITHOUT, &digest_or_empty(settings.without))
}

/// An open dataset. Its table of digests, attributes, layout and vocabulary have been checked; the chunks of
/// its rows are checked when they are read. Any number of threads can read it at once, each with its own
/// [`RowsReader`].
#[derive(Debug)]
pub struct DatasetReader {
    file: Arc<StoredFile>,
    settings: DatasetSettings,
    digests: Digests,
    columns: RowColumns,
    vocabulary: Vocabulary,
}

impl DatasetReader {
    /// Opens a dataset and checks the rules of FORMAT.md. Of the rules about the content of rows, only those
    /// about lengths and hashes are checked here; the others are checked when rows are read.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = FileReader::open(path)?;
        check_format(&file, DATASET, &DATASET_ATTRIBUTES)?;
        let digest = |name: &str| match file.text(name)? {
            "" => Ok(None),
            _ => file.digest(name).map(Some),
        };
        let settings = DatasetSettings {
            rows: read_settings(&file)?,
            vocabulary_size: file.number(VOCABULARY_SIZE)?,
            vocabulary_of: digest(VOCABULARY_OF)?,
            without: digest(WITHOUT)?,
        };
        let digests = read_digests(&file)?;
        let mut words = WordsReader::open(&mut file, VOCABULARY)?;
        let largest_id = words.n_words().saturating_add(u64::from(UNKNOWN));
        let rules = RowRules { settings: settings.rows.clone(), ids: u64::from(UNKNOWN)..largest_id + 1 };
        let columns = RowColumns::open(&mut file, rules)?;
        let file = file.finish()?;
        check_vocabulary_size(&words, &file)?;
        let vocabulary = read_vocabulary(&mut words)?;
        let violation = vocabulary.violation(&settings, digests.vocabulary_digest);
        violation.map_or(Ok(()), |violation| Err(file.broken(violation)))?;
        if columns.token_type() != vocabulary.token_type() {
            let bits = |of: TokenType| format!("{} bits", of.bits());
            let found = bits(columns.token_type());
            let expected = format!("{}, for ids up to {largest_id}", bits(vocabulary.token_type()));
            return Err(file.broken(Violation::new("F26", "the type of tokens", found, expected)));
        }
        columns.check_places()?;
        Ok(Self { file, settings, digests, columns, vocabulary })
    }

    /// Settings of the dataset.
    pub fn settings(&self) -> &DatasetSettings {
        &self.settings
    }

    /// The digests recorded in the file. [`DatasetReader::verify`] compares two of them with the rows and
    /// words.
    pub fn digests(&self) -> Digests {
        self.digests
    }

    /// The vocabulary, with counts in this data.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Number of rows.
    pub fn n_rows(&self) -> u64 {
        self.columns.n_rows()
    }

    /// Number of tokens of all rows.
    pub fn n_tokens(&self) -> u64 {
        self.columns.tokens.n_tokens() as u64
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &RowColumns {
        &self.columns
    }

    /// A reader of the rows for one thread.
    pub fn rows(&self) -> RowsReader {
        self.columns.reader()
    }

    /// Reads and checks everything once: all chunks by their digests; order, labels and ids of the rows; and
    /// the id digest. The row digest cannot be computed, because a dataset does not contain the words outside
    /// its vocabulary. Calls `each` for every row, in order.
    pub fn verify(&self, mut each: impl FnMut(&Row) -> Result<()>) -> Result<()> {
        let all = self.verify_rows(0..self.n_rows(), |_, row| each(row))?;
        self.file.check_digest(OF_IDS, all.id_digest, self.digests.id_digest)
    }

    /// Verifies as [`DatasetReader::verify`] does, with several threads, in blocks. For each block `empty`
    /// creates a value, and `each` adds the rows of the block with their indexes to the value. `take`
    /// receives all values in order, and its first error ends the verification. At most one value per thread exists that
    /// `take` has not received.
    pub fn verify_blocks<B: Send, E: From<Error> + Send>(
        &self,
        threads: NonZeroUsize,
        empty: impl Fn() -> B + Sync,
        each: impl Fn(&mut B, u64, &Row) + Sync,
        mut take: impl FnMut(B) -> Result<(), E>,
    ) -> Result<(), E> {
        let verify = |places, made: &mut B| {
            self.verify_rows(places, |at, row| {
                each(made, at, row);
                Ok(())
            })
        };
        let (mut id_digest, mut last) = (Digest::default(), None);
        in_blocks(self.n_rows(), threads, empty, verify, |rows, made| {
            if let Some(last) = &last {
                self.check_order(rows.first_at, last, &rows.first)?;
            }
            last = Some(rows.last);
            id_digest += rows.id_digest;
            take(made)
        })?;
        Ok(self.file.check_digest(OF_IDS, id_digest, self.digests.id_digest)?)
    }

    /// Checks the split of a row against its words, if the vocabulary contains all of them.
    pub fn check_split(&self, at: u64, row: &Row) -> Result<()> {
        if row.tokens.contains(&UNKNOWN) {
            return Ok(());
        }
        let words: Vec<&[u8]> = row.tokens.iter().filter_map(|&id| self.known(id)).collect();
        let expected = split(&words.join(&b' '));
        if row.split == expected {
            return Ok(());
        }
        let (thing, expected) =
            (format!("the split of row {at}"), format!("{expected}, computed from its words"));
        Err(self.file.broken(Violation::new("F31", thing, row.split.to_string(), expected)))
    }

    fn verify_rows(
        &self,
        places: Range<u64>,
        mut each: impl FnMut(u64, &Row) -> Result<()>,
    ) -> Result<VerifiedRows> {
        let mut reader = self.rows();
        let mut digester = RowDigester::default();
        let mut row = Row::default();
        let mut verified = VerifiedRows { first_at: places.start, ..VerifiedRows::default() };
        for at in places.clone() {
            reader.read(at, &mut row)?;
            if at == places.start {
                verified.first.clone_from(&row);
            } else {
                self.check_order(at, &verified.last, &row)?;
            }
            verified.id_digest += digester.of_ids(row.hash, row.label, row.votes, row.tokens.iter().copied());
            each(at, &row)?;
            std::mem::swap(&mut row, &mut verified.last);
        }
        Ok(verified)
    }

    /// Checks the order of two consecutive rows. Rows with equal hashes can be compared up to the first
    /// different word, as long as the vocabulary contains the words.
    fn check_order(&self, at: u64, before: &Row, row: &Row) -> Result<()> {
        let is_less = match row.hash.cmp(&before.hash) {
            Ordering::Equal => {
                let words = |row: &Row| row.tokens.iter().map(|&id| self.known(id)).collect::<Vec<_>>();
                let (one, other) = (words(before), words(row));
                let same =
                    one.iter().zip(&other).take_while(|(one, other)| one.is_some() && one == other).count();
                match (one.get(same), other.get(same)) {
                    (None, None) => row.votes < before.votes,
                    (None, Some(_)) => false,
                    (Some(_), None) => true,
                    (Some(Some(one)), Some(Some(other))) => other < one,
                    // Words after an unknown word cannot be compared.
                    _ => false,
                }
            }
            order => order.is_lt(),
        };
        if is_less { Err(self.file.broken(order_violation(at))) } else { Ok(()) }
    }

    /// The word of a checked id; `None` for the unknown word.
    fn known(&self, id: u32) -> Option<&[u8]> {
        id.checked_sub(FIRST_WORD).map(|place| self.vocabulary.words.get(place as usize))
    }
}

/// A vocabulary of up to this size in memory is always read.
const VOCABULARY_BYTES_SURE: u64 = 64 << 20;
/// Maximum ratio of the size of a larger vocabulary in memory to its size in the file. Distinct words do not
/// compress further than this; a file crafted to exhaust memory does.
const VOCABULARY_INFLATION_MAX: u64 = 64;

fn check_vocabulary_size(words: &WordsReader, file: &StoredFile) -> Result<()> {
    let in_memory =
        words.n_bytes().saturating_add(words.n_words().saturating_mul(2 * size_of::<u64>() as u64));
    let most = words.stored_bytes().saturating_mul(VOCABULARY_INFLATION_MAX).max(VOCABULARY_BYTES_SURE);
    if in_memory <= most {
        return Ok(());
    }
    let (found, expected) = (format!("{in_memory} bytes in memory"), format!("at most {most}"));
    Err(file.broken(Violation::new("F24", "the vocabulary", found, expected)))
}

fn read_vocabulary(words: &mut WordsReader) -> Result<Vocabulary> {
    let mut vocabulary = Vocabulary::default();
    let mut word = Vec::new();
    for at in 0..words.n_words() {
        vocabulary.counts.push(words.read(at, &mut word)?);
        vocabulary.words.push(&word);
    }
    Ok(vocabulary)
}

/// Writes a copy of a dataset that other programs can load as a table. `rows` has `length` ids per row,
/// truncated or padded with zeros, and the label as last column. `go_on` is called at intervals with the
/// number of rows written; an error from it stops the copy.
pub fn write_padded<E: From<Error>>(
    dataset: &DatasetReader,
    path: &Path,
    length: usize,
    go_on: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let mut file = FileWriter::create(path)?;
    write_format(&mut file, DATASET)?;
    write_dataset_settings(&mut file, &dataset.settings)?;
    write_digests(&mut file, dataset.digests)?;
    match dataset.columns.token_type() {
        TokenType::U16 => write_padded_rows(dataset, &mut file, length, |id| id as u16, go_on)?,
        TokenType::U32 => write_padded_rows(dataset, &mut file, length, |id| id, go_on)?,
    }
    Ok(file.finish_without_digests()?)
}

/// Number of rows between two calls of `go_on`.
const ROWS_TOGETHER: u64 = 1 << 10;

fn write_padded_rows<T: crate::chunk::Scalar, E: From<Error>>(
    dataset: &DatasetReader,
    file: &mut FileWriter,
    length: usize,
    narrowed: impl Fn(u32) -> T,
    mut go_on: impl FnMut(u64) -> Result<(), E>,
) -> Result<(), E> {
    let n = dataset.n_rows() as usize;
    let mut rows = file.column(ROWS, n, Some(length + 1))?;
    let mut label = file.column(LABEL, n, None)?;
    let mut votes = file.column(VOTES, n, Some(5))?;
    let mut hash = file.column(HASH, n, None)?;
    let mut split = file.column(SPLIT, n, None)?;
    let mut reader = dataset.rows();
    let mut padded = Vec::with_capacity(length + 1);
    let mut row = Row::default();
    for at in 0..dataset.n_rows() {
        if at % ROWS_TOGETHER == 0 {
            go_on(at)?;
        }
        reader.read(at, &mut row)?;
        padded.clear();
        padded.extend(row.tokens.iter().take(length).map(|&id| narrowed(id)));
        padded.resize_with(length, || narrowed(PADDING));
        padded.push(narrowed(u32::from(row.label)));
        let chunks = &mut file.chunks;
        rows.push(chunks, &padded)?;
        label.push(chunks, &[row.label])?;
        votes.push(chunks, &row.votes.0)?;
        hash.push(chunks, &[row.hash])?;
        split.push(chunks, &[row.split])?;
    }
    file.finish_column(rows)?;
    file.finish_column(label)?;
    file.finish_column(votes)?;
    file.finish_column(hash)?;
    Ok(file.finish_column(split)?)
}

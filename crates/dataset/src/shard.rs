//! A shard: the rows of one reduce partition, with its own dictionary.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use corpus::digest::{Digest, RowDigester, VocabularyDigester, split};
use corpus::settings::Settings;
use program::exit::quoted;
use program::progress::Progress;

use crate::error::{At, Error, Result, Violation};
use crate::file::{FileReader, FileWriter};
use crate::header::{
    Digests, check_format, read_digests, read_settings, write_digests, write_format, write_settings,
};
use crate::kept_words::KeptWords;
use crate::row_columns::{
    OF_IDS, Row, RowColumns, RowRules, RowsReader, RowsSize, TokenType, VerifiedRows, in_blocks,
    order_violation,
};
use crate::rows_writer::RowsWriter;
use crate::schema::{SHARD, SHARD_ATTRIBUTES};
use crate::stored_file::{Fetch, StoredFile};
use crate::words::{RULE_OF_WORDS, WordsReader, WordsWriter};

const DICTIONARY: &str = "dictionary";

/// HDF5 writes the structure of a file at its start, with the first chunk of each column, and at its end, with the table
/// of digests: 33 bytes per chunk of up to 100 KiB. A shard of 21 MB has 9 KB of it in the first MB and 8 KB at the end.
const START_BYTES: u64 = 1 << 20;
const END_BYTES: u64 = 256 << 10;

/// Sizes of a shard, which HDF5 requires in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardSize {
    /// Number of rows.
    pub rows: u64,
    /// Number of kept tokens of all rows.
    pub tokens: u64,
    /// Number of words of the dictionary.
    pub words: u64,
    /// Total length of these words in bytes.
    pub word_bytes: u64,
}

/// Writer of a shard. Words come in byte order and rows in row order, and the two may be interleaved in any
/// way.
pub struct ShardWriter {
    file: FileWriter,
    rows: RowsWriter,
    dictionary: WordsWriter,
    id_digester: RowDigester,
    id_digest: Digest,
    dictionary_digester: VocabularyDigester,
    progress: Progress,
}

impl ShardWriter {
    /// Creates the file, which must not exist.
    pub fn create(path: &Path, settings: &Settings, size: ShardSize) -> Result<Self> {
        let mut file = FileWriter::create(path)?;
        write_format(&mut file, SHARD)?;
        write_settings(&mut file, settings)?;
        let dictionary = WordsWriter::create(&mut file, DICTIONARY, size.words, size.word_bytes)?;
        let rows = RowsSize { rows: size.rows, tokens: size.tokens };
        let mut rows = RowsWriter::create(&mut file, rows, TokenType::U32)?;
        rows.begin(&mut file.chunks)?;
        Ok(Self {
            file,
            rows,
            dictionary,
            id_digester: RowDigester::default(),
            id_digest: Digest::default(),
            dictionary_digester: VocabularyDigester::default(),
            progress: Progress::default(),
        })
    }

    /// Returns the writer with this progress, in which each word and row is a step.
    pub fn reporting(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Writes the next word of the dictionary, with its count over all distinct texts.
    pub fn word(&mut self, word: &[u8], count: u64) -> Result<()> {
        self.progress.advance(1);
        self.dictionary_digester.add(word, count);
        self.dictionary.push(&mut self.file, word, count)
    }

    /// Writes the next row, whose tokens are indexes into the dictionary.
    pub fn row(&mut self, row: &Row) -> Result<()> {
        self.progress.advance(1);
        self.id_digest += self.id_digester.of_ids(row.hash, row.label, row.votes, row.tokens.iter().copied());
        self.rows.push(&mut self.file.chunks, row)
    }

    /// Completes the file and syncs it to disk. All declared rows and words must have been written.
    pub fn finish(mut self, row_digest: Digest) -> Result<()> {
        self.rows.finish(&mut self.file)?;
        self.dictionary.finish(&mut self.file)?;
        let (id_digest, vocabulary_digest) = (self.id_digest, self.dictionary_digester.digest());
        write_digests(&mut self.file, Digests { row_digest, id_digest, vocabulary_digest })?;
        self.file.finish()
    }
}

/// An open shard. Its table of digests, attributes and layout have been checked; chunks are checked when they
/// are read.
pub struct ShardReader {
    file: Arc<StoredFile>,
    settings: Settings,
    digests: Digests,
    columns: RowColumns,
    rows: RowsReader,
    dictionary: WordsReader,
    kept_dictionary: Option<KeptWords>,
    digester: RowDigester,
}

impl ShardReader {
    /// Opens a shard.
    pub fn open(path: &Path) -> Result<Self> {
        Self::of(FileReader::open(path)?)
    }

    /// Opens a partial copy of a shard of this size. Chunks are fetched when they are read.
    pub fn open_partial(path: &Path, bytes: u64, fetch: &Arc<dyn Fetch>) -> Result<Self> {
        let mut of_start = START_BYTES;
        loop {
            let of_end = of_start / START_BYTES * END_BYTES;
            let fetched =
                fetch.fetch(0..of_start).and_then(|()| fetch.fetch(bytes.saturating_sub(of_end)..bytes));
            fetched.at(path, "fetch its structure")?;
            // All of the structure has signatures and checksums, so none of it is mistaken for absent bytes.
            match FileReader::open_partial(path, Arc::clone(fetch)).and_then(Self::of) {
                Err(_) if of_start < bytes => of_start = of_start.saturating_mul(4),
                opened => return opened,
            }
        }
    }

    fn of(mut file: FileReader) -> Result<Self> {
        check_format(&file, SHARD, &SHARD_ATTRIBUTES)?;
        let settings = read_settings(&file)?;
        let digests = read_digests(&file)?;
        let dictionary = WordsReader::open(&mut file, DICTIONARY)?;
        let rules = RowRules { settings: settings.clone(), ids: 0..dictionary.n_words() };
        let columns = RowColumns::open(&mut file, rules)?;
        Ok(Self {
            file: file.finish()?,
            settings,
            digests,
            rows: columns.reader(),
            columns,
            dictionary,
            kept_dictionary: None,
            digester: RowDigester::default(),
        })
    }

    /// Settings of the shard.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The digests recorded in the file. [`ShardReader::verify_blocks`] compares them with rows and words.
    pub fn digests(&self) -> Digests {
        self.digests
    }

    /// Sizes of the shard.
    pub fn size(&self) -> ShardSize {
        ShardSize {
            rows: self.columns.n_rows(),
            tokens: self.columns.tokens.n_tokens() as u64,
            words: self.dictionary.n_words(),
            word_bytes: self.dictionary.n_bytes(),
        }
    }

    /// The columns of the rows.
    pub fn columns(&self) -> &RowColumns {
        &self.columns
    }

    /// Reads the row at this index into `row`.
    pub fn row(&mut self, at: u64, row: &mut Row) -> Result<()> {
        self.rows.read(at, row)
    }

    /// The words and counts of the dictionary.
    pub fn dictionary(&mut self) -> &mut WordsReader {
        &mut self.dictionary
    }

    /// The indexes of the rows with this hash.
    pub fn rows_with_hash(&mut self, hash: u64) -> Result<Range<u64>> {
        let from = self.first_row_where(|other| other >= hash)?;
        let to = self.first_row_where(|other| other > hash)?;
        Ok(from..to)
    }

    fn first_row_where(&mut self, passed: impl Fn(u64) -> bool) -> Result<u64> {
        let (mut from, mut to) = (0, self.rows.n_rows());
        while from < to {
            let middle = from + (to - from) / 2;
            if passed(self.rows.hash(middle)?) { to = middle } else { from = middle + 1 }
        }
        Ok(from)
    }

    /// Loads the dictionary into memory if it takes at most this number of bytes. Otherwise the words of rows
    /// are read from the file, which is slow but takes no memory.
    pub fn keep_dictionary(&mut self, bytes_max: u64) -> Result<()> {
        let ShardSize { words, word_bytes, .. } = self.size();
        if KeptWords::memory_bytes(words, word_bytes) > bytes_max {
            return Ok(());
        }
        let mut kept = KeptWords::with_capacity(words as usize);
        let mut word = Vec::new();
        for at in 0..words {
            self.dictionary.read(at, &mut word)?;
            kept.push(&word);
        }
        self.kept_dictionary = Some(kept);
        Ok(())
    }

    /// Writes the words of a row of this shard to `joined`, separated by spaces. No byte of a word is as
    /// small as a space, so joined words have the same order as lists of words.
    pub fn join_words(&mut self, row: &Row, joined: &mut Vec<u8>) -> Result<()> {
        if let Some(kept) = &self.kept_dictionary {
            kept.join(&row.tokens, joined);
            return Ok(());
        }
        joined.clear();
        let mut word = Vec::new();
        for &token in &row.tokens {
            self.dictionary.read(u64::from(token), &mut word)?;
            joined.extend_from_slice(&word);
            joined.push(b' ');
        }
        joined.pop();
        Ok(())
    }

    /// The row digest of one row of this shard.
    pub fn digest_of(&mut self, row: &Row) -> Result<Digest> {
        let mut joined = Vec::new();
        self.join_words(row, &mut joined)?;
        Ok(self.digester.of_words(row.hash, row.label, row.votes, row.tokens.len(), &joined))
    }

    /// Reads and checks everything once: all chunks by their digests, the order of words and rows, each row
    /// by the settings, and the digests of dictionary and ids. If the dictionary is in memory, the row digest
    /// and the splits are also computed from the words of the rows.
    ///
    /// Several threads work in blocks. For each block `empty` creates a value, and `each` adds the rows of
    /// the block to the value. `take` receives all values in order. At most one value per thread exists that
    /// `take` has not received.
    pub fn verify_blocks<B: Send>(
        &mut self,
        threads: NonZeroUsize,
        empty: impl Fn() -> B + Sync,
        each: impl Fn(&mut B, &Row) + Sync,
        mut take: impl FnMut(B),
    ) -> Result<()> {
        self.verify_dictionary()?;
        let shard = &*self;
        let verify = |places, made: &mut B| shard.verify_rows(places, |row| each(made, row));
        let (mut id_digest, mut row_digest) = (Digest::default(), Digest::default());
        let mut last = None;
        in_blocks::<_, _, Error>(shard.columns.n_rows(), threads, empty, verify, |rows, made| {
            if last.as_ref().is_some_and(|last| rows.first < *last) {
                return Err(shard.file.broken(order_violation(rows.first_at)));
            }
            last = Some(rows.last);
            id_digest += rows.id_digest;
            row_digest += rows.row_digest;
            take(made);
            Ok(())
        })?;
        let Digests { row_digest: claimed_rows, id_digest: claimed_ids, .. } = shard.digests;
        shard.file.check_digest(OF_IDS, id_digest, claimed_ids)?;
        let row_digest = if shard.kept_dictionary.is_some() { row_digest } else { claimed_rows };
        shard.file.check_digest(("F34", "the row digest of the rows"), row_digest, claimed_rows)
    }

    fn verify_rows(&self, places: Range<u64>, mut each: impl FnMut(&Row)) -> Result<VerifiedRows> {
        let (mut reader, mut digester) = (self.columns.reader(), RowDigester::default());
        let (mut row, mut joined) = (Row::default(), Vec::new());
        let mut verified = VerifiedRows { first_at: places.start, ..VerifiedRows::default() };
        for at in places.clone() {
            reader.read(at, &mut row)?;
            if at == places.start {
                verified.first.clone_from(&row);
            } else if row < verified.last {
                return Err(self.file.broken(order_violation(at)));
            }
            verified.id_digest += digester.of_ids(row.hash, row.label, row.votes, row.tokens.iter().copied());
            if let Some(kept) = &self.kept_dictionary {
                kept.join(&row.tokens, &mut joined);
                let expected = split(&joined);
                if row.split != expected {
                    let thing = format!("the split of row {at}");
                    let expected = format!("{expected}, computed from its words");
                    return Err(self.file.broken(Violation::new(
                        "F31",
                        thing,
                        row.split.to_string(),
                        expected,
                    )));
                }
                let n_words = row.tokens.len();
                verified.row_digest += digester.of_words(row.hash, row.label, row.votes, n_words, &joined);
            }
            each(&row);
            std::mem::swap(&mut row, &mut verified.last);
        }
        Ok(verified)
    }

    fn verify_dictionary(&mut self) -> Result<()> {
        let mut digester = VocabularyDigester::default();
        let mut cleaner = self.settings.cleaner();
        let mut stop_words = self.settings.stop_words.iter().map(String::as_bytes).peekable();
        let (mut word, mut before) = (Vec::new(), Vec::new());
        for at in 0..self.dictionary.n_words() {
            let count = self.dictionary.read(at, &mut word)?;
            let violation = |rule, expected: &str| {
                let thing = format!("word {at} of the dictionary");
                Err(self.file.broken(Violation::new(rule, thing, quoted(&word), expected)))
            };
            if !self.settings.is_word(&mut cleaner, &word) {
                return violation(RULE_OF_WORDS, "a cleaned word");
            }
            if at > 0 && word <= before {
                return violation("F20", "a word after the previous word in byte order");
            }
            // Both lists are in byte order.
            while stop_words.next_if(|stop_word| *stop_word < &word[..]).is_some() {}
            if stop_words.peek().is_some_and(|stop_word| *stop_word == &word[..]) {
                return violation("F19", "none of the stop words");
            }
            if count == 0 {
                return violation("F22", "a word with a count of 1 or more");
            }
            digester.add(&word, count);
            std::mem::swap(&mut word, &mut before);
        }
        let of_words = ("F23", "the digest of the dictionary");
        self.file.check_digest(of_words, digester.digest(), self.digests.vocabulary_digest)
    }
}

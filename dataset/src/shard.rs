//! A shard: the rows of one reduce partition, with a dictionary of its own.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use corpus::digest::{Digest, RowDigester, VocabularyDigester, split};
use corpus::progress::Progress;
use corpus::settings::Settings;

use crate::error::{Error, Result};
use crate::file::{FileReader, FileWriter};
use crate::header::{
    Digests, check_format, read_digests, read_settings, write_digests, write_format, write_settings,
};
use crate::kept_words::KeptWords;
use crate::rows::{Row, RowColumns, RowsReader, RowsWriter, TokenType, in_blocks};
use crate::schema::SHARD;
use crate::stored_file::StoredFile;
use crate::words::{WordsReader, WordsWriter};

const DICTIONARY: &str = "dictionary";

/// How much will be written, which HDF5 wants to know first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShardSize {
    /// Rows.
    pub rows: u64,
    /// Kept words of all rows.
    pub tokens: u64,
    /// Words of the dictionary.
    pub words: u64,
    /// Their bytes.
    pub word_bytes: u64,
}

/// Writes a shard: words in byte order, rows in row order, in any mixture of both.
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
        let rows = RowsWriter::create(&mut file, size.rows, size.tokens, TokenType::U32)?;
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

    /// The same writer, each word and row of which is a step.
    pub fn reporting(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// The next word of the dictionary, with its count over all distinct texts.
    pub fn word(&mut self, word: &[u8], count: u64) -> Result<()> {
        self.progress.advance(1);
        self.dictionary_digester.add(word, count);
        self.dictionary.push(&mut self.file, word, count)
    }

    /// The next row; its tokens are places in the dictionary.
    pub fn row(&mut self, row: &Row) -> Result<()> {
        self.progress.advance(1);
        self.id_digest += self.id_digester.of_ids(row.hash, row.label, row.votes, row.tokens.iter().copied());
        self.rows.push(&mut self.file, row)
    }

    /// Completes the file and makes it durable. All that the size promised must have been written.
    pub fn finish(mut self, row_digest: Digest) -> Result<()> {
        self.rows.finish(&mut self.file)?;
        self.dictionary.finish(&mut self.file)?;
        let (id_digest, vocabulary_digest) = (self.id_digest, self.dictionary_digester.digest());
        write_digests(&mut self.file, Digests { row_digest, id_digest, vocabulary_digest })?;
        self.file.finish()
    }
}

/// A shard, opened; its table of digests, attributes and layout have been checked, its chunks are as they are read.
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
        let mut file = FileReader::open(path)?;
        check_format(&file, SHARD)?;
        let settings = read_settings(&file)?;
        let digests = read_digests(&file)?;
        let columns = RowColumns::open(&mut file)?;
        let dictionary = WordsReader::open(&mut file, DICTIONARY)?;
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

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The digests that it claims; [`ShardReader::verify_blocks`] holds them against rows and words.
    pub fn digests(&self) -> Digests {
        self.digests
    }

    /// How much it holds.
    pub fn size(&self) -> ShardSize {
        ShardSize {
            rows: self.columns.n_rows(),
            tokens: self.columns.tokens.n_tokens() as u64,
            words: self.dictionary.n_words(),
            word_bytes: self.dictionary.n_bytes(),
        }
    }

    /// Reads the row at this place into `row`.
    pub fn row(&mut self, at: u64, row: &mut Row) -> Result<()> {
        self.rows.read(at, row)
    }

    /// The words and counts of its dictionary.
    pub fn dictionary(&mut self) -> &mut WordsReader {
        &mut self.dictionary
    }

    /// The places of the rows with this hash.
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

    /// Keeps the dictionary in memory if it takes at most this many bytes. Words of rows are read from the file where
    /// it is not kept, which is slow, but takes no memory.
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

    /// Writes the words of a row of this shard into `joined`, a space between. Words hold no byte as small as a
    /// space, so that joined words are ordered as the words are.
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

    /// Reads everything once and checks it: all chunks by their digests, the order of words and rows, each row by the
    /// settings, and the digests of dictionary and ids. The row digest and the rows' splits are worked out again
    /// from the rows' own words where the dictionary is kept in memory.
    ///
    /// It is done by several threads, in blocks: for each `empty` makes something that `each` adds the block's rows to,
    /// and `take` gets all of these in order. Besides what `take` has there is one of them a thread at a time.
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
                return Err(shard.file.damaged("the order of rows"));
            }
            last = Some(rows.last);
            id_digest += rows.id_digest;
            row_digest += rows.row_digest;
            take(made);
            Ok(())
        })?;
        if id_digest != shard.digests.id_digest {
            return Err(shard.file.damaged("the id digest"));
        }
        if shard.kept_dictionary.is_some() && row_digest != shard.digests.row_digest {
            return Err(shard.file.damaged("the row digest"));
        }
        Ok(())
    }

    fn verify_rows(&self, places: Range<u64>, mut each: impl FnMut(&Row)) -> Result<VerifiedRows> {
        let n_words = self.dictionary.n_words();
        let (mut reader, mut digester) = (self.columns.reader(), RowDigester::default());
        let (mut row, mut joined) = (Row::default(), Vec::new());
        let mut verified = VerifiedRows::default();
        for at in places.clone() {
            reader.read(at, &mut row)?;
            if at == places.start {
                verified.first.clone_from(&row);
            } else if row < verified.last {
                return Err(self.file.damaged("the order of rows"));
            }
            if let Some(fault) = row.fault(&self.settings, 0..n_words) {
                return Err(self.file.damaged(fault));
            }
            verified.id_digest += digester.of_ids(row.hash, row.label, row.votes, row.tokens.iter().copied());
            if let Some(kept) = &self.kept_dictionary {
                kept.join(&row.tokens, &mut joined);
                if row.split != split(&joined) {
                    return Err(self.file.damaged("the split of a row"));
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
        let (mut word, mut before) = (Vec::new(), Vec::new());
        for at in 0..self.dictionary.n_words() {
            let count = self.dictionary.read(at, &mut word)?;
            if (at > 0 && word <= before) || std::str::from_utf8(&word).is_err() {
                return Err(self.file.damaged("the order of words"));
            }
            digester.add(&word, count);
            std::mem::swap(&mut word, &mut before);
        }
        if digester.digest() == self.digests.vocabulary_digest {
            Ok(())
        } else {
            Err(self.file.damaged("the dictionary digest"))
        }
    }
}

/// What is known of neighbouring rows once they are verified.
#[derive(Default)]
struct VerifiedRows {
    id_digest: Digest,
    /// Zero where no dictionary is kept.
    row_digest: Digest,
    first: Row,
    last: Row,
}

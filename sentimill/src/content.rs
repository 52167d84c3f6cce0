//! The folded rows and words, as the content of a dataset.

use std::num::NonZeroUsize;
use std::sync::Arc;

use corpus::settings::Settings;
use corpus::words::Dictionary;
use dataset::Row;
use dataset::merge_sorted::sum_words;
use dataset::spool::Spool;
use making::{DatasetContent, Ids, Size, TextRow, TextsWriter};
use program::exit::Failed;
use tables::{BYTES_MAX, ROWS_MAX};

use crate::codebook::Codebook;
use crate::encoded::{Row as Encoded, Word, each_word, read_row, short_codes};
use crate::folding::Folded;
use crate::scratch::{Scratch, Stored};
use crate::{Result, interrupted};

/// Total size of the buffers for runs of words, unless there are very many runs.
const WORDS_BUFFERS_BYTES: usize = 8 << 20;

const LABELLED: &str = "a text without a class is no row";

/// Rows in order, and all words with their counts.
pub struct DatasetRows<'a> {
    /// Settings of rows.
    pub settings: &'a Settings,
    /// The codes of words.
    pub codebook: Arc<Codebook>,
    /// The results of all threads.
    pub folded: Vec<Folded>,
    /// The rows in order, in pieces.
    pub rows: Vec<Stored>,
    /// Storage of the rows.
    pub scratch: &'a Scratch,
    /// Storage of the counts of words without a code.
    pub spool: Spool,
    /// Totals of the rows.
    pub size: Size,
    /// Number of threads that encode or read Parquet files.
    pub table_threads: NonZeroUsize,
    /// Whether the program was interrupted.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

impl DatasetContent for DatasetRows<'_> {
    type Error = Failed;

    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<()> {
        for code in 0..self.codebook.n_words() {
            let count = self.folded.iter().map(|folded| folded.coded[code]).sum();
            // The words of dropped texts have codes, too, and encoded stop words.
            if count > 0 {
                visit(self.codebook.word(code as u32), count);
            }
        }
        let runs: Vec<_> = self.folded.iter_mut().flat_map(|folded| folded.spelt_runs.drain(..)).collect();
        if runs.is_empty() {
            let mut spelt = Dictionary::new(&[]);
            for folded in &mut self.folded {
                // The first dictionary is used directly, and the others are added to it.
                let other = std::mem::replace(&mut folded.spelt, Dictionary::new(&[]));
                if spelt.n_words() == 0 { spelt = other } else { spelt.add(&other) }
            }
            for (number, count) in (0..).zip(spelt.counts()) {
                visit(spelt.get(number), count);
            }
            return Ok(());
        }
        let buffer_bytes = (WORDS_BUFFERS_BYTES / runs.len()).clamp(1 << 10, 64 << 10);
        let lists = runs.into_iter().map(|run| self.spool.words(run, buffer_bytes));
        let is_interrupted = self.is_interrupted;
        let each = |word: &[u8], count| {
            visit(word, count);
            if is_interrupted() { Err(interrupted()) } else { Ok(()) }
        };
        sum_words(lists, |_, _| Ok::<_, Failed>(()), each)
    }

    fn size(&mut self) -> Result<Size> {
        Ok(self.size)
    }

    fn table_threads(&self) -> NonZeroUsize {
        self.table_threads
    }

    fn is_interrupted(&self) -> bool {
        (self.is_interrupted)()
    }

    fn each_row(
        &mut self,
        ids: &Ids<'_>,
        texts: Option<&mut TextsWriter>,
        visit: &mut dyn FnMut(&Row) -> making::Result<()>,
    ) -> Result<()> {
        // The counts are no longer needed, and writing needs the memory.
        self.folded = Vec::new();
        let by_code: Vec<u32> =
            (0..self.codebook.n_words()).map(|code| ids.of_word(self.codebook.word(code as u32))).collect();
        match texts {
            None => self.each_row_of_tokens(&by_code, ids, visit),
            Some(texts) => self.each_row_of_words(&by_code, ids, texts, visit),
        }
    }
}

impl DatasetRows<'_> {
    /// Visits rows that contain their kept tokens.
    fn each_row_of_tokens(
        &mut self,
        by_code: &[u32],
        ids: &Ids<'_>,
        visit: &mut dyn FnMut(&Row) -> making::Result<()>,
    ) -> Result<()> {
        let (mut bytes, mut row) = (Vec::new(), Row::default());
        for stored in std::mem::take(&mut self.rows) {
            if (self.is_interrupted)() {
                return Err(interrupted());
            }
            self.scratch.take(stored, &mut bytes)?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let encoded = read_row(&mut rest);
                (row.hash, row.votes, row.split) = (encoded.hash, encoded.votes, encoded.split);
                row.label = self.settings.label(encoded.votes).expect(LABELLED);
                row.tokens.clear();
                match short_codes(encoded.words) {
                    Some(codes) => row.tokens.extend(codes.map(|code| by_code[code as usize])),
                    None => each_word(encoded.words, |word| {
                        row.tokens.push(match word {
                            Word::Coded(code) => by_code[code as usize],
                            Word::Spelt(word) => ids.of_word(word),
                        });
                    }),
                }
                visit(&row)?;
            }
        }
        Ok(())
    }

    /// Visits rows that contain all words of their texts, and writes the texts.
    fn each_row_of_words(
        &mut self,
        by_code: &[u32],
        ids: &Ids<'_>,
        texts: &mut TextsWriter,
        visit: &mut dyn FnMut(&Row) -> making::Result<()>,
    ) -> Result<()> {
        let settings = Arc::new(self.settings.clone());
        let (mut bytes, mut tokens, mut row) = (Vec::new(), Vec::new(), Row::default());
        let mut group = RowGroup::default();
        for stored in std::mem::take(&mut self.rows) {
            if (self.is_interrupted)() {
                return Err(interrupted());
            }
            self.scratch.take(stored, &mut bytes)?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let from = rest;
                let encoded = read_row(&mut rest);
                (row.hash, row.votes, row.split) = (encoded.hash, encoded.votes, encoded.split);
                row.label = settings.label(encoded.votes).expect(LABELLED);
                self.tokens_of(encoded.words, by_code, ids, &mut tokens);
                let (front, back) = settings.kept(&tokens);
                row.tokens.clear();
                row.tokens.extend_from_slice(front);
                row.tokens.extend_from_slice(back);
                visit(&row)?;
                group.rows.extend_from_slice(&from[..from.len() - rest.len()]);
                group.n_rows += 1;
                group.text_bytes += encoded.text_bytes as usize;
                if group.is_full() {
                    std::mem::take(&mut group).write(texts, &self.codebook, &settings)?;
                }
            }
        }
        if group.n_rows > 0 {
            group.write(texts, &self.codebook, &settings)?;
        }
        Ok(())
    }

    /// The ids of the words that rows do not omit.
    fn tokens_of(&self, words: &[u8], by_code: &[u32], ids: &Ids<'_>, tokens: &mut Vec<u32>) {
        tokens.clear();
        match short_codes(words) {
            Some(codes) if !self.codebook.omits_words() => {
                tokens.extend(codes.map(|code| by_code[code as usize]));
            }
            _ => each_word(words, |word| match word {
                Word::Coded(code) if self.codebook.omits_code(code) => {}
                Word::Coded(code) => tokens.push(by_code[code as usize]),
                Word::Spelt(word) if self.codebook.omits_word(word) => {}
                Word::Spelt(word) => tokens.push(ids.of_word(word)),
            }),
        }
    }
}

/// Encoded rows of one row group of texts. Row groups depend on the texts only, not on partitions or codes.
#[derive(Default)]
struct RowGroup {
    rows: Vec<u8>,
    n_rows: usize,
    text_bytes: usize,
}

impl RowGroup {
    fn is_full(&self) -> bool {
        self.n_rows >= ROWS_MAX || self.text_bytes >= BYTES_MAX
    }

    /// Writes the rows. A thread of `texts` decodes them.
    fn write(
        self,
        texts: &mut TextsWriter,
        codebook: &Arc<Codebook>,
        settings: &Arc<Settings>,
    ) -> making::Result<()> {
        let (codebook, settings) = (Arc::clone(codebook), Arc::clone(settings));
        texts.row_group(move |push| {
            let (mut rest, mut places, mut text) = (&self.rows[..], Vec::new(), Vec::new());
            while !rest.is_empty() {
                let Encoded { hash, votes, split, words, .. } = read_row(&mut rest);
                codebook.decode(words, &mut places, &mut text);
                let label = settings.label(votes).expect(LABELLED);
                push(TextRow { text: &text, label, votes, hash, split });
            }
        })
    }
}

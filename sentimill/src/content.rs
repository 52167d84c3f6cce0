//! The folded rows and words, as the content of a dataset.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use corpus::settings::Settings;
use corpus::words::Dictionary;
use dataset::merge_sorted::sum_words;
use dataset::spool::Spool;
use dataset::{Row, RowsSize};
use making::{DatasetContent, GroupSize, Ids, Parts, Rows, Size, TextRow, TextsWriter};
use program::exit::Failed;
use program::threads::locked;

use crate::Result;
use crate::codebook::{Codebook, StoredWords};
use crate::encoded::{EncodedRow, Word, each_word, read_row, short_codes};
use crate::folding::{Folded, StoredRows};
use crate::job::{Job, interrupted};
use crate::scratch::Stored;

/// Total size of the buffers for runs of words, unless there are very many runs.
const WORDS_BUFFERS_BYTES: usize = 8 << 20;

const LABELLED: &str = "a text without a class is no row";

/// Rows in order, and all words with their counts.
pub struct DatasetRows<'a> {
    /// The run.
    pub job: &'a Job<'a>,
    /// The codes of words.
    pub codebook: Arc<Codebook>,
    /// The results of all threads.
    pub folded: Vec<Folded>,
    /// The rows in order, in parts.
    pub rows: Vec<StoredRows>,
    /// Storage of the counts of words without a code.
    pub spool: Spool,
    /// Totals of the rows.
    pub size: Size,
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
        let job = self.job;
        let each = |word: &[u8], count| {
            visit(word, count);
            if job.is_interrupted() { Err(interrupted()) } else { Ok(()) }
        };
        sum_words(lists, |_, _| Ok::<_, Failed>(()), each)
    }

    fn size(&mut self) -> Result<Size> {
        Ok(self.size)
    }

    fn table_threads(&self) -> NonZeroUsize {
        self.job.options.table_threads()
    }

    fn is_interrupted(&self) -> bool {
        self.job.is_interrupted()
    }

    fn rows<'p>(&'p mut self, ids: &'p Ids<'p>) -> Result<Rows<'p, Failed>> {
        // The counts are no longer needed, and writing needs the memory.
        self.folded = Vec::new();
        let word = |code: usize| self.codebook.word(code as u32);
        let by_code = (0..self.codebook.n_words()).map(|code| ids.of_word(word(code))).collect();
        let rows = std::mem::take(&mut self.rows);
        Ok(Rows::Parts(Box::new(RowParts {
            job: self.job,
            codebook: Arc::clone(&self.codebook),
            settings: Arc::new(self.job.options.settings.clone()),
            ids,
            by_code,
            sizes: rows.iter().map(|rows| rows.size).collect(),
            stored: rows.into_iter().map(|rows| Mutex::new(Some(rows.stored))).collect(),
            row_group: Mutex::default(),
        })))
    }

    fn threads(&self) -> NonZeroUsize {
        self.job.options.threads
    }
}

/// The rows in order, in parts.
struct RowParts<'a> {
    job: &'a Job<'a>,
    codebook: Arc<Codebook>,
    settings: Arc<Settings>,
    ids: &'a Ids<'a>,
    /// The id of the word with each code.
    by_code: Vec<u32>,
    sizes: Vec<RowsSize>,
    /// The rows that were not read yet, or whose texts were not written yet.
    stored: Vec<Mutex<Option<Stored>>>,
    /// The beginning of the next row group of texts.
    row_group: Mutex<EncodedRows>,
}

impl Parts for RowParts<'_> {
    type Error = Failed;

    fn sizes(&self) -> &[RowsSize] {
        &self.sizes
    }

    fn each_row(&self, part: usize, visit: &mut dyn FnMut(&Row) -> dataset::Result<()>) -> Result<()> {
        if self.job.is_interrupted() {
            return Err(interrupted());
        }
        let bytes = self.take(part)?;
        let (mut rest, mut row) = (&bytes[..], Row::default());
        while !rest.is_empty() {
            let encoded = read_row(&mut rest);
            (row.hash, row.votes, row.split) = (encoded.hash, encoded.votes, encoded.split);
            row.label = self.settings.label(encoded.votes).expect(LABELLED);
            self.read_tokens(encoded.words, &mut row.tokens);
            let (front, back) = self.settings.kept(&row.tokens);
            let dropped = front.len()..row.tokens.len() - back.len();
            row.tokens.drain(dropped);
            visit(&row).map_err(making::Error::from)?;
        }
        if self.job.options.stored_words() == StoredWords::All {
            *locked(&self.stored[part]) = Some(Stored::Memory(bytes));
        }
        Ok(())
    }

    fn write_texts(&self, part: usize, texts: &mut TextsWriter) -> making::Result<()> {
        let Some(Stored::Memory(bytes)) = locked(&self.stored[part]).take() else { return Ok(()) };
        let mut group = locked(&self.row_group);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let from = rest;
            let encoded = read_row(&mut rest);
            group.rows.extend_from_slice(&from[..from.len() - rest.len()]);
            group.size.add(encoded.text_bytes as usize);
            if group.size.is_full() {
                std::mem::take(&mut *group).write(texts, &self.codebook, &self.settings)?;
            }
        }
        if part + 1 < self.sizes.len() || group.size.is_empty() {
            return Ok(());
        }
        std::mem::take(&mut *group).write(texts, &self.codebook, &self.settings)
    }
}

impl RowParts<'_> {
    fn take(&self, part: usize) -> Result<Vec<u8>> {
        let stored = locked(&self.stored[part]).take().expect("the rows of a part are read once");
        let mut bytes = Vec::new();
        self.job.scratch.take(stored, &mut bytes)?;
        Ok(bytes)
    }

    /// Replaces `tokens` by the ids of the words that rows do not omit.
    fn read_tokens(&self, words: &[u8], tokens: &mut Vec<u32>) {
        let Self { codebook, ids, by_code, .. } = self;
        tokens.clear();
        match short_codes(words) {
            Some(codes) if !codebook.omits_words() => {
                tokens.extend(codes.map(|code| by_code[code as usize]));
            }
            _ => each_word(words, |word| match word {
                Word::Coded(code) if codebook.omits_code(code) => {}
                Word::Coded(code) => tokens.push(by_code[code as usize]),
                Word::Spelt(word) if codebook.omits_word(word) => {}
                Word::Spelt(word) => tokens.push(ids.of_word(word)),
            }),
        }
    }
}

/// Encoded rows of one row group of texts.
#[derive(Default)]
struct EncodedRows {
    rows: Vec<u8>,
    size: GroupSize,
}

impl EncodedRows {
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
                let EncodedRow { hash, votes, split, words, .. } = read_row(&mut rest);
                codebook.decode(words, &mut places, &mut text);
                let label = settings.label(votes).expect(LABELLED);
                push(TextRow { text: &text, label, votes, hash, split });
            }
        })
    }
}

//! The folded rows and words, as the content of a dataset.

use corpus::settings::Settings;
use dataset::Row;
use dataset::merge_sorted::sum_words;
use dataset::spool::Spool;
use making::{DatasetContent, Ids, Size};
use words::Dictionary;

use crate::codebook::Codebook;
use crate::encoded::{Word, each_word, read_row, short_codes};
use crate::error::{Error, Result};
use crate::folding::Folded;
use crate::scratch::{Scratch, Stored};

/// Total size of the buffers for runs of words, unless there are very many runs.
const WORDS_BUFFERS_BYTES: usize = 8 << 20;

/// Rows in order, and all words with their counts.
pub struct Milled<'a> {
    /// Settings of rows.
    pub settings: &'a Settings,
    /// The codes of words.
    pub codebook: &'a Codebook,
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
    /// Whether the program was interrupted.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

impl DatasetContent for Milled<'_> {
    type Error = Error;

    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<()> {
        for code in 0..self.codebook.n_words() {
            let count = self.folded.iter().map(|folded| folded.coded[code]).sum();
            // The words of dropped texts have codes, too.
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
            if is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
        };
        sum_words(lists, |_, _| Ok::<_, Error>(()), each)
    }

    fn size(&mut self) -> Result<Size> {
        Ok(self.size)
    }

    fn is_interrupted(&self) -> bool {
        (self.is_interrupted)()
    }

    fn each_row(&mut self, ids: &Ids<'_>, visit: &mut dyn FnMut(&Row) -> making::Result<()>) -> Result<()> {
        // The counts are no longer needed, and writing needs the memory.
        self.folded = Vec::new();
        let by_code: Vec<u32> =
            (0..self.codebook.n_words()).map(|code| ids.of_word(self.codebook.word(code as u32))).collect();
        let (mut bytes, mut row) = (Vec::new(), Row::default());
        for stored in std::mem::take(&mut self.rows) {
            if (self.is_interrupted)() {
                return Err(Error::Interrupted);
            }
            self.scratch.take(stored, &mut bytes)?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let encoded = read_row(&mut rest);
                (row.hash, row.votes, row.split) = (encoded.hash, encoded.votes, encoded.split);
                row.label = self.settings.label(encoded.votes).expect("a text without a class is no row");
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
}

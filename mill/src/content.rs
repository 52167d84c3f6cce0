//! What was folded, as what a dataset is made of.

use corpus::settings::Settings;
use dataset::Row;
use dataset::merge_sorted::sum_words;
use dataset::spool::Spool;
use merge::{Content, Ids, Size};
use reducer::dictionary::Dictionary;

use crate::codebook::{Codebook, SPELT};
use crate::encoded::{Word, coded, each_word, read_row};
use crate::error::{Error, Result};
use crate::folding::Folded;
use crate::scratch::{Scratch, Stored};

/// A run of words is read through a buffer of this size.
const WORDS_BUFFER_BYTES: usize = 64 << 10;

/// Rows in order, and all words with their counts.
pub struct Milled<'a> {
    /// What decides a row.
    pub settings: &'a Settings,
    /// The codes of words.
    pub codebook: &'a Codebook,
    /// What each thread has folded.
    pub folded: Vec<Folded>,
    /// The rows in order, in pieces.
    pub rows: Vec<Stored>,
    /// Where they wait.
    pub scratch: &'a Scratch,
    /// Where the counts of words without a code wait.
    pub spool: Spool,
    /// What the rows add up to.
    pub size: Size,
    /// Whether the program was asked to end.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

impl Content for Milled<'_> {
    type Error = Error;

    fn each_word(&mut self, visit: &mut dyn FnMut(&[u8], u64)) -> Result<()> {
        for code in 0..self.codebook.n_words() {
            let count = self.folded.iter().map(|folded| folded.coded[code]).sum();
            visit(self.codebook.word(code as u16), count);
        }
        type Words<'a> = Box<dyn Iterator<Item = dataset::Result<(Vec<u8>, u64)>> + 'a>;
        let mut lists: Vec<Words<'_>> = Vec::new();
        for folded in &self.folded {
            lists.push(Box::new(in_byte_order(&folded.spelt).map(Ok)));
            for &run in &folded.spelt_runs {
                lists.push(Box::new(self.spool.words(run, WORDS_BUFFER_BYTES)));
            }
        }
        let each = |word: &[u8], count| {
            visit(word, count);
            Ok(())
        };
        sum_words(lists, |_, _| Ok::<_, Error>(()), each)
    }

    fn size(&mut self) -> Result<Size> {
        Ok(self.size)
    }

    fn each_row(&mut self, ids: &Ids<'_>, visit: &mut dyn FnMut(&Row) -> merge::Result<()>) -> Result<()> {
        // Only counted; the memory is wanted for what is written.
        self.folded = Vec::new();
        let by_code: Vec<u32> =
            (0..self.codebook.n_words()).map(|code| ids.of_word(self.codebook.word(code as u16))).collect();
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
                row.label = self.settings.label(encoded.votes);
                row.tokens.clear();
                if coded(encoded.words).all(|code| code != SPELT) {
                    row.tokens.extend(coded(encoded.words).map(|code| by_code[usize::from(code)]));
                } else {
                    each_word(encoded.words, |word| {
                        row.tokens.push(match word {
                            Word::Coded(code) => by_code[usize::from(code)],
                            Word::Spelt(word) => ids.of_word(word),
                        });
                    });
                }
                visit(&row)?;
            }
        }
        Ok(())
    }
}

fn in_byte_order(words: &Dictionary) -> impl Iterator<Item = (Vec<u8>, u64)> + '_ {
    let counts = words.counts();
    words.in_byte_order().into_iter().map(move |number| (words.get(number).to_vec(), counts[number as usize]))
}

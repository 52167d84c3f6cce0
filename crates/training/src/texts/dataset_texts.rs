//! Reads a split of a dataset, in the order of its rows. Its tokens are the words of the vocabulary; the label of a row
//! is its class.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use batches::{Division, Part};
use classifiers::{Builders, Reading, Texts, TextsBuilder};
use corpus::settings::{Keep, Settings};
use dataset::DatasetSettings;
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use dataset::vocabulary::FIRST_WORD;
use program::threads;

use crate::texts::error::{Result, TextsError};
use crate::texts::labels::in_order_of;

/// A dataset whose splits can be read.
#[derive(Debug)]
pub struct DatasetTexts {
    dataset: DatasetReader,
    division: Division,
    threads: NonZeroUsize,
}

/// The texts of a split, and what its rows lack.
#[derive(Debug)]
pub struct Split {
    /// The texts.
    pub texts: Texts,
    /// Tokens whose word is not in the vocabulary. Texts do not have them.
    pub n_unknown: u64,
    /// Rows of the maximum length, which may have been longer.
    pub n_cut: u64,
}

impl DatasetTexts {
    /// Opens a dataset.
    pub fn open(path: &Path, division: Division, threads: NonZeroUsize) -> Result<Self> {
        Ok(Self { dataset: DatasetReader::open(path)?, division, threads })
    }

    /// The settings of the dataset.
    pub fn settings(&self) -> &DatasetSettings {
        self.dataset.settings()
    }

    /// The dataset.
    pub fn dataset(&self) -> &DatasetReader {
        &self.dataset
    }

    /// Reads the rows of a split, and verifies all rows.
    pub fn read(&self, part: Part, how: Reading) -> Result<Split> {
        let builders = Builders::new(how);
        // A block takes a builder and returns it. Blocks begin in order, so the blocks of a builder do, too.
        let idle = Mutex::new(Vec::new());
        let locked = || threads::locked(&idle);
        let names = self.settings().rows.labels.names();
        let empty = || {
            let builder = locked().pop().unwrap_or_else(|| builders.builder());
            Block { builder, has_begun: false, added: Ok(()), n_unknown: 0, n_cut: 0 }
        };
        let add = |block: &mut Block, at: u64, row: &Row| {
            if block.added.is_ok() {
                block.added = self.add(block, (at, row), part, &names);
            }
        };
        let (mut n_unknown, mut n_cut) = (0, 0);
        self.dataset.verify_blocks(self.threads, empty, add, |block| {
            block.added?;
            n_unknown += block.n_unknown;
            n_cut += block.n_cut;
            locked().push(block.builder);
            Ok::<_, TextsError>(())
        })?;
        let texts = builders.merge(idle.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        Ok(Split { texts: in_order_of(names, texts), n_unknown, n_cut })
    }

    fn add(&self, block: &mut Block, (at, row): (u64, &Row), part: Part, names: &[&str]) -> Result<()> {
        if !block.has_begun {
            block.has_begun = true;
            block.builder.begin(at)?;
        }
        if self.division.part_of(row.hash, row.split) != Some(part) {
            return Ok(());
        }
        let Settings { max_tokens, .. } = self.settings().rows;
        block.n_cut += u64::from(max_tokens > 0 && row.tokens.len() >= max_tokens as usize);
        let words = &self.dataset.vocabulary().words;
        let known = row.tokens.iter().filter_map(|id| id.checked_sub(FIRST_WORD));
        block.n_unknown += row.tokens.len() as u64;
        let n_unknown = &mut block.n_unknown;
        let known = known.inspect(|_| *n_unknown -= 1);
        // Readers refuse a label without a class.
        let label = names.get(usize::from(row.label)).map(|name| name.as_bytes()).unwrap_or_default();
        block.builder.set_key(row.hash);
        block.builder.add_known(known, |at| words.get(at as usize), &[label])?;
        Ok(())
    }

    /// What the preparation of the rows costs a model of n-grams; nothing if rows have all words of their texts.
    pub fn warnings(&self, name: &str, split: &Split) -> Vec<String> {
        let DatasetSettings { rows, .. } = self.settings();
        let mut warnings = Vec::new();
        if !rows.stop_words.is_empty() {
            warnings.push(format!(
                "warning: {name}: its rows lack {} stop words, and n-grams such as `not good`; without those of nltk, the \
                 accuracy on the movie reviews of IMDB is 0.898 instead of 0.911: make the dataset with --stopwords none",
                rows.stop_words.len()
            ));
        }
        if split.n_cut > 0 {
            let kept = match rows.keep {
                Keep::First => "first",
                Keep::Last => "last",
                Keep::Ends => "first and last",
            };
            warnings.push(format!(
                "warning: {name}: {} of {} rows have the maximum length and may be only the {kept} {} words of a text; make \
                 the dataset with --max-tokens 0, which keeps all",
                split.n_cut,
                split.texts.n_texts(),
                rows.max_tokens
            ));
        }
        if split.n_unknown > 0 {
            let all = split.texts.counts().n_tokens + split.n_unknown;
            warnings.push(format!(
                "warning: {name}: {} of {all} tokens are not in the vocabulary and are skipped; make the dataset with \
                 a --vocabulary-size that no text exceeds, such as 4000000000",
                split.n_unknown
            ));
        }
        warnings
    }
}

/// Rows that one thread reads.
struct Block {
    builder: TextsBuilder,
    has_begun: bool,
    added: Result<()>,
    n_unknown: u64,
    n_cut: u64,
}

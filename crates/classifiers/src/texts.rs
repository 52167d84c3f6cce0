//! Texts of numbered words with their labels, in memory or in a temporary file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::dictionary::Dictionary;
use crate::error::{Error, Result};

/// A token that is not in the dictionary. The next element is the hash of the word.
pub const UNKNOWN: u32 = u32::MAX;

/// Texts in the order of the input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub(crate) tokens: Vec<u32>,
    pub(crate) ends: Vec<u32>,
    pub(crate) labels: Vec<u32>,
    pub(crate) label_ends: Vec<u32>,
    /// The halves of each key, the lower one first; empty if texts have no keys.
    pub(crate) keys: Vec<u32>,
}

/// A text of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextRef<'a> {
    /// Numbers of words. [`UNKNOWN`] is followed by the hash of the word.
    pub tokens: &'a [u32],
    /// Numbers of labels; at least one.
    pub labels: &'a [u32],
    /// The key that the reader gave to the text.
    pub key: Option<u64>,
}

/// The weight of a text with these labels in the loss: the mean of the weights of its labels, which are all 1 if `weights` is
/// empty.
pub(crate) fn weight_of(labels: &[u32], weights: &[f32]) -> f32 {
    if weights.is_empty() || labels.is_empty() {
        return 1.0;
    }
    labels.iter().map(|&label| weights[label as usize]).sum::<f32>() / labels.len() as f32
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Texts with at least one label.
    pub n_texts: u64,
    /// Of those, texts without words.
    pub n_empty: u64,
    /// Lines without a label, which are skipped.
    pub n_unlabelled: u64,
    /// Words of all texts.
    pub n_tokens: u64,
    /// Of those, words that are not in the dictionary.
    pub n_unknown: u64,
    /// Lines of fastText's format with several labels, or with a label that is not at the head of the line.
    pub n_other_labels: u64,
}

/// A dictionary and texts, which any thread can read any number of times.
#[derive(Debug)]
pub struct Texts {
    /// Words and labels.
    pub dictionary: Dictionary,
    pub(crate) counts: Counts,
    pub(crate) blocks: Vec<StoredBlock>,
    pub(crate) folder: PathBuf,
}

/// A block in memory or in a file without a name.
#[derive(Debug)]
pub(crate) enum StoredBlock {
    Memory(Block),
    File(Spilled),
}

/// A block whose tokens are numbers of one builder.
#[derive(Debug)]
pub(crate) struct Spilled {
    pub file: Arc<File>,
    pub from: u64,
    /// Lengths of the lists of a [`Block`].
    pub lengths: [usize; 5],
    pub numbering: Arc<Numbering>,
}

/// Converts the numbers of one builder to those of the dictionary.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    /// By number of the builder; [`UNKNOWN`] for a word that is not in the dictionary.
    pub words: Vec<u32>,
    /// The hash of each word of the builder, if the texts have words that are not in the dictionary.
    pub hashes: Option<Vec<u32>>,
    pub labels: Vec<u32>,
    /// Numbers by hash, if a table of words was full.
    pub by_hash: Arc<std::collections::HashMap<u32, u32>>,
}

impl Texts {
    /// What was read.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of texts.
    pub fn n_texts(&self) -> u64 {
        self.counts.n_texts
    }

    /// Whether each text has one label.
    pub fn has_one_label_each(&self) -> bool {
        self.dictionary.label_counts().iter().sum::<u64>() == self.counts.n_texts
    }

    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether all texts are in memory.
    pub fn is_in_memory(&self) -> bool {
        self.blocks.iter().all(|block| matches!(block, StoredBlock::Memory(_)))
    }

    /// Memory of the texts in bytes, without those in a file.
    pub fn memory_bytes(&self) -> u64 {
        (0..self.n_blocks())
            .filter_map(|index| self.in_memory(index))
            .map(|block| block.n_bytes() as u64)
            .sum()
    }

    /// A block, if it is in memory.
    #[inline]
    pub fn in_memory(&self, index: usize) -> Option<&Block> {
        match &self.blocks[index] {
            StoredBlock::Memory(block) => Some(block),
            StoredBlock::File(_) => None,
        }
    }

    /// Number of words of a block; of a block in a file an upper bound.
    pub fn block_tokens(&self, index: usize) -> usize {
        match &self.blocks[index] {
            StoredBlock::Memory(block) => block.tokens.len(),
            StoredBlock::File(spilled) => 2 * spilled.lengths[0],
        }
    }

    /// A block by index. `scratch` holds a block that is read from the temporary file.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn block<'a>(&'a self, index: usize, scratch: &'a mut Block) -> Result<&'a Block> {
        match &self.blocks[index] {
            StoredBlock::Memory(block) => Ok(block),
            StoredBlock::File(spilled) => {
                let read = spilled.read(scratch);
                read.map_err(|source| Error::Spill { folder: self.folder.clone(), source })?;
                spilled.numbering.apply(scratch);
                Ok(scratch)
            }
        }
    }

    /// A digest of all words, labels and texts.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn digest(&self) -> Result<u64> {
        let mut digest = Xxh3::new();
        for names in [self.dictionary.words(), self.dictionary.labels()] {
            digest.update(&(names.len() as u64).to_le_bytes());
            for name in names.iter() {
                digest.update(&(name.len() as u64).to_le_bytes());
                digest.update(name);
            }
        }
        let mut scratch = Block::default();
        let mut bytes = Vec::new();
        for index in 0..self.n_blocks() {
            let block = self.block(index, &mut scratch)?;
            // Words and labels determine a text; its key does not count.
            for list in &block.lists()[..4] {
                bytes.clear();
                bytes.extend((list.len() as u32).to_le_bytes());
                bytes.extend(list.iter().flat_map(|number| number.to_le_bytes()));
                digest.update(&bytes);
            }
        }
        Ok(digest.digest())
    }
}

impl Block {
    /// Number of texts.
    #[inline]
    pub fn n_texts(&self) -> usize {
        self.ends.len()
    }

    /// A text by index.
    #[inline]
    pub fn text(&self, index: usize) -> TextRef<'_> {
        TextRef {
            tokens: span(&self.tokens, &self.ends, index),
            labels: span(&self.labels, &self.label_ends, index),
            key: self
                .keys
                .as_chunks()
                .0
                .get(index)
                .map(|&[low, high]| u64::from(high) << 32 | u64::from(low)),
        }
    }

    /// All texts in order.
    pub fn texts(&self) -> impl ExactSizeIterator<Item = TextRef<'_>> {
        (0..self.n_texts()).map(|index| self.text(index))
    }

    pub(crate) fn lists(&self) -> [&Vec<u32>; 5] {
        [&self.tokens, &self.ends, &self.labels, &self.label_ends, &self.keys]
    }

    /// Ends the current text.
    pub(crate) fn end_text(&mut self) {
        self.ends.push(self.tokens.len() as u32);
        self.label_ends.push(self.labels.len() as u32);
    }

    /// Memory of all lists in bytes.
    pub(crate) fn n_bytes(&self) -> usize {
        self.lists().iter().map(|list| 4 * list.len()).sum()
    }
}

#[inline]
fn span<'a>(numbers: &'a [u32], ends: &[u32], index: usize) -> &'a [u32] {
    let from = if index == 0 { 0 } else { ends[index - 1] };
    &numbers[from as usize..ends[index] as usize]
}

impl TextRef<'_> {
    /// Words of the text: `Ok` for a number of the dictionary, `Err` for the hash of an unknown word.
    #[inline]
    pub fn words(&self) -> Tokens<'_> {
        Tokens(self.tokens)
    }
}

/// Iterates over the tokens of a text.
#[derive(Clone, Debug)]
pub struct Tokens<'a>(pub &'a [u32]);

impl Iterator for Tokens<'_> {
    type Item = std::result::Result<u32, u32>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match *self.0 {
            [UNKNOWN, hash, ref rest @ ..] => {
                self.0 = rest;
                Some(Err(hash))
            }
            [word, ref rest @ ..] => {
                self.0 = rest;
                Some(Ok(word))
            }
            [] => None,
        }
    }
}

impl Spilled {
    /// Reads the block with the numbers of its builder.
    pub fn read(&self, block: &mut Block) -> io::Result<()> {
        let mut bytes = vec![0; 4 * self.lengths.iter().sum::<usize>()];
        self.file.read_exact_at(&mut bytes, self.from)?;
        let mut rest = &bytes[..];
        let Block { tokens, ends, labels, label_ends, keys } = block;
        let lists = [tokens, ends, labels, label_ends, keys];
        for (list, length) in lists.into_iter().zip(self.lengths) {
            let (numbers, others) = rest.split_at(4 * length);
            list.clear();
            list.extend(numbers.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)));
            rest = others;
        }
        Ok(())
    }
}

impl Numbering {
    /// Converts the numbers of a block.
    pub fn apply(&self, block: &mut Block) {
        block.labels.iter_mut().for_each(|label| *label = self.labels[*label as usize]);
        let Some(hashes) = &self.hashes else {
            block.tokens.iter_mut().for_each(|token| *token = self.words[*token as usize]);
            return;
        };
        let old = std::mem::take(&mut block.tokens);
        let mut from = 0;
        for end in &mut block.ends {
            for token in Tokens(&old[from..*end as usize]) {
                let (number, hash) = match token {
                    Ok(word) => (self.words[word as usize], hashes[word as usize]),
                    Err(hash) => (self.by_hash.get(&hash).copied().unwrap_or(UNKNOWN), hash),
                };
                block.tokens.push(number);
                if number == UNKNOWN {
                    block.tokens.push(hash);
                }
            }
            from = *end as usize;
            *end = block.tokens.len() as u32;
        }
    }
}

//! Joins the words and texts of several builders.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use program::threads::spawn;

use crate::builder::{Builders, LABELS_MAX, Reading, TextsBuilder, Unnumbered};
use crate::dictionary::{Dictionary, hash};
use crate::error::{Error, Result};
use crate::names::Names;
use crate::numbers::Numbers;
use crate::texts::{Block, Counts, Numbering, Spilled, StoredBlock, Texts, Tokens, UNKNOWN};

impl Builders {
    /// Joins the texts of all builders in the order of their chunks.
    ///
    /// # Errors
    /// If there are too many labels, or the temporary file fails.
    pub fn merge(&self, builders: Vec<TextsBuilder>) -> Result<Texts> {
        let reading = self.reading();
        let mut builders: Vec<_> = builders.into_iter().map(TextsBuilder::finish).collect::<Result<_>>()?;
        let (labels, label_numbers) = join(&mut builders, |builder| &mut builder.labels);
        if labels.names().len() > LABELS_MAX {
            return Err(Error::TooManyLabels { max: LABELS_MAX });
        }
        let label_order = Ordered::of(labels.names(), &labels.counts(), 1, 1);
        let label_numbers = label_numbers.iter().map(|numbers| label_order.renumber(numbers));

        let is_any_over = builders.iter().any(|builder| builder.words.is_over());
        let (words, word_numbers) = join(&mut builders, |builder| &mut builder.words);
        let is_over = is_any_over
            || words.names().len() > reading.words_max
            || words.names().n_bytes() > reading.words_bytes_max;
        // The table of all words begins with the words of the first builder.
        let all_names = std::iter::once(words.names())
            .chain(builders.iter().skip(1).map(|builder| builder.words.names()));
        let own_names: Vec<_> =
            all_names.zip(&word_numbers).map(|(names, own)| names.iter().take(own.len())).collect();
        let hashes_of = |builder: usize| own_names[builder].clone().map(hash).collect::<Vec<u32>>();
        let Kept { names: kept, by_hash } = if is_over {
            first_words(reading, &builders, &own_names)
        } else {
            Kept { names: Cow::Borrowed(words.names()), by_hash: HashMap::new() }
        };
        let by_hash = Arc::new(by_hash);
        let mut numberings: Vec<Numbering> = label_numbers
            .zip(&word_numbers)
            .enumerate()
            .map(|(builder, (labels, words))| {
                if !is_over {
                    return Numbering {
                        words: words.clone(),
                        hashes: None,
                        labels,
                        by_hash: Arc::clone(&by_hash),
                    };
                }
                let hashes = hashes_of(builder);
                let words = hashes.iter().map(|hash| by_hash.get(hash).copied().unwrap_or(UNKNOWN)).collect();
                Numbering { words, hashes: Some(hashes), labels, by_hash: Arc::clone(&by_hash) }
            })
            .collect();
        let counts =
            if is_over { count_again(reading, &builders, &numberings, kept.len())? } else { words.counts() };

        let order = Ordered::of(&kept, &counts, reading.count_min.max(1), builders.len());
        let by_hash =
            Arc::new(by_hash.iter().map(|(&hash, &word)| (hash, order.numbers[word as usize])).collect());
        for (builder, numbering) in numberings.iter_mut().enumerate() {
            numbering.by_hash = Arc::clone(&by_hash);
            numbering.words = order.renumber(&numbering.words);
            if numbering.hashes.is_none() && numbering.words.contains(&UNKNOWN) {
                numbering.hashes = Some(hashes_of(builder));
            }
        }
        drop(own_names);
        let has_unknown = numberings.iter().any(|numbering| numbering.hashes.is_some());
        let dictionary = Dictionary::new(order.names, order.counts, label_order.names, label_order.counts);
        let counts = sum(&builders);
        let blocks = stored(builders, numberings);
        let mut texts = Texts { dictionary, counts, blocks, folder: reading.folder.clone() };
        let n_unknown = if has_unknown { count_unknown(&texts)? } else { 0 };
        texts.counts.n_unknown = n_unknown;
        texts.counts.n_tokens = texts.dictionary.n_tokens() + n_unknown;
        Ok(texts)
    }
}

/// Joins a table of all builders, which it takes from the first one. Returns it and the number of each name, by builder.
fn join(
    builders: &mut [TextsBuilder],
    of: impl Fn(&mut TextsBuilder) -> &mut Numbers,
) -> (Numbers, Vec<Vec<u32>>) {
    let Some((first, others)) = builders.split_first_mut() else {
        return (Numbers::new(0, 0), Vec::new());
    };
    let mut joined = std::mem::replace(of(first), Numbers::new(0, 0)).without_limits();
    let mut numbers: Vec<Vec<u32>> = vec![(0..joined.names().len() as u32).collect()];
    for builder in others {
        let own = of(builder);
        let counted = own
            .names()
            .iter()
            .zip(own.counts())
            .map(|(name, count)| joined.count(name, count).unwrap_or(UNKNOWN));
        numbers.push(counted.collect());
    }
    (joined, numbers)
}

/// The words of a dictionary with bounded size.
struct Kept<'a> {
    names: Cow<'a, Names>,
    by_hash: HashMap<u32, u32>,
}

/// The first words of the input. Of several words with equal hash the first one is kept.
fn first_words<'a>(
    reading: &Reading,
    builders: &[TextsBuilder],
    names: &[impl Iterator<Item = &'a [u8]> + Clone],
) -> Kept<'a> {
    let mut firsts: HashMap<&[u8], (u64, u32)> = HashMap::new();
    for (builder, names) in builders.iter().zip(names) {
        let mut chunks = builder.chunks.iter().peekable();
        let mut chunk = 0;
        for (number, name) in (0..).zip(names.clone()) {
            while let Some((next, _)) = chunks.next_if(|(_, n_before)| *n_before <= number) {
                chunk = *next;
            }
            let first = firsts.entry(name).or_insert((chunk, number));
            *first = (*first).min((chunk, number));
        }
    }
    let mut order: Vec<_> = firsts.into_iter().map(|(name, first)| (first, name)).collect();
    order.sort_unstable();
    let (mut kept, mut by_hash) = (Names::default(), HashMap::new());
    // The dictionary of a builder has no more words than that of all builders at the same position.
    let closed = builders.iter().filter_map(|builder| builder.closed).min();
    let mut n_bytes = 0;
    for (first, name) in order.into_iter().take(reading.words_max) {
        n_bytes += name.len();
        if n_bytes > reading.words_bytes_max || closed.is_some_and(|closed| first >= closed) {
            break;
        }
        by_hash.entry(hash(name)).or_insert_with(|| {
            kept.push(name);
            kept.len() as u32 - 1
        });
    }
    Kept { names: Cow::Owned(kept), by_hash }
}

/// Counts the words of all texts, of those that arrived when a table was full too.
fn count_again(
    reading: &Reading,
    builders: &[TextsBuilder],
    numberings: &[Numbering],
    n_words: usize,
) -> Result<Vec<u64>> {
    let mut counts = vec![0; n_words];
    let mut scratch = Block::default();
    for (builder, numbering) in builders.iter().zip(numberings) {
        for (_, block) in &builder.blocks {
            let block = match block {
                Unnumbered::Memory(block) => block,
                Unnumbered::File { file, from, lengths } => {
                    let spilled = Spilled {
                        file: Arc::clone(file),
                        from: *from,
                        lengths: *lengths,
                        numbering: Arc::default(),
                    };
                    let read = spilled.read(&mut scratch);
                    read.map_err(|source| Error::Spill { folder: reading.folder.clone(), source })?;
                    &scratch
                }
            };
            // Only whole texts are concatenated, so a hash always follows its mark.
            for token in Tokens(&block.tokens) {
                let number = match token {
                    Ok(word) => numbering.words[word as usize],
                    Err(hash) => numbering.by_hash.get(&hash).copied().unwrap_or(UNKNOWN),
                };
                if let Some(count) = counts.get_mut(number as usize) {
                    *count += 1;
                }
            }
        }
    }
    Ok(counts)
}

/// Count, first bytes and number of a name.
type Key = (Reverse<u64>, u64, u32);

/// Names by descending count, then by bytes.
struct Ordered {
    names: Names,
    counts: Vec<u64>,
    /// The new number of each name; [`UNKNOWN`] if its count is too low.
    numbers: Vec<u32>,
}

impl Ordered {
    fn of(names: &Names, counts: &[u64], count_min: u64, threads: usize) -> Self {
        let start = |name: &[u8]| {
            let mut first = [0; 8];
            let length = name.len().min(8);
            first[..length].copy_from_slice(&name[..length]);
            u64::from_be_bytes(first)
        };
        let keys = (0..).zip(counts).filter(|(_, count)| **count >= count_min);
        let mut order: Vec<Key> =
            keys.map(|(number, &count)| (Reverse(count), start(names.get(number)), number)).collect();
        // Most comparisons are decided by the count and the first bytes.
        let compare = |one: &Key, other: &Key| {
            (one.0, one.1).cmp(&(other.0, other.1)).then_with(|| names.get(one.2).cmp(names.get(other.2)))
        };
        let share = order.len().div_ceil(threads.max(1)).max(1);
        thread::scope(|scope| {
            order.chunks_mut(share).for_each(|part| {
                spawn(scope, move || part.sort_unstable_by(compare));
            });
        });
        // The stable sort finds the sorted parts and merges them.
        order.sort_by(compare);
        let mut ordered = Self {
            names: Names::with_capacity(order.len(), names.n_bytes()),
            counts: Vec::with_capacity(order.len()),
            numbers: vec![UNKNOWN; names.len()],
        };
        for (new, (Reverse(count), _, old)) in (0..).zip(order) {
            ordered.names.push(names.get(old));
            ordered.counts.push(count);
            ordered.numbers[old as usize] = new;
        }
        ordered
    }

    fn renumber(&self, numbers: &[u32]) -> Vec<u32> {
        numbers.iter().map(|&number| self.numbers.get(number as usize).copied().unwrap_or(UNKNOWN)).collect()
    }
}

fn sum(builders: &[TextsBuilder]) -> Counts {
    let mut sum = Counts::default();
    for counts in builders.iter().map(|builder| builder.counts) {
        sum.n_texts += counts.n_texts;
        sum.n_empty += counts.n_empty;
        sum.n_unlabelled += counts.n_unlabelled;
        sum.n_other_labels += counts.n_other_labels;
    }
    sum
}

/// All blocks in the order of their chunks. Converts those in memory, in one thread per builder.
fn stored(builders: Vec<TextsBuilder>, numberings: Vec<Numbering>) -> Vec<StoredBlock> {
    let mut blocks: Vec<(u64, StoredBlock)> = thread::scope(|scope| {
        let threads: Vec<_> = builders
            .into_iter()
            .zip(numberings)
            .map(|(builder, numbering)| {
                spawn(scope, move || {
                    let numbering = Arc::new(numbering);
                    let numbered = builder.blocks.into_iter().map(|(chunk, block)| match block {
                        Unnumbered::Memory(mut block) => {
                            numbering.apply(&mut block);
                            (chunk, StoredBlock::Memory(block))
                        }
                        Unnumbered::File { file, from, lengths } => (
                            chunk,
                            StoredBlock::File(Spilled {
                                file,
                                from,
                                lengths,
                                numbering: Arc::clone(&numbering),
                            }),
                        ),
                    });
                    numbered.collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    // Stable: blocks of one chunk are in order already.
    blocks.sort_by_key(|&(chunk, _)| chunk);
    blocks.into_iter().map(|(_, block)| block).collect()
}

fn count_unknown(texts: &Texts) -> Result<u64> {
    let mut scratch = Block::default();
    let mut n_unknown = 0;
    for index in 0..texts.n_blocks() {
        let has_unknown = match &texts.blocks[index] {
            StoredBlock::Memory(_) => true,
            StoredBlock::File(spilled) => spilled.numbering.hashes.is_some(),
        };
        if has_unknown {
            let block = texts.block(index, &mut scratch)?;
            n_unknown += Tokens(&block.tokens).filter(std::result::Result::is_err).count() as u64;
        }
    }
    Ok(n_unknown)
}

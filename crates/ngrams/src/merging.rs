//! Joins the words and texts of several builders.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread;

use crate::builder::{LABELS_MAX, Reading, TextsBuilder, Unnumbered};
use crate::dictionary::{Dictionary, hash};
use crate::error::{Error, Result};
use crate::names::Names;
use crate::numbers::Numbers;
use crate::texts::{Block, Counts, Numbering, Spilled, Stored, Texts, Tokens, UNKNOWN};

pub(crate) fn merge(reading: &Reading, builders: Vec<TextsBuilder>) -> Result<Texts> {
    let (labels, label_numbers) = join(&builders, |builder| &builder.labels);
    if labels.names().len() > LABELS_MAX || builders.iter().any(|builder| builder.labels.is_over()) {
        return Err(Error::TooManyLabels { max: LABELS_MAX });
    }
    let (words, word_numbers) = join(&builders, |builder| &builder.words);
    let label_order = Ordered::of(labels.names(), &labels.counts(), 1);
    let label_numbers = label_numbers.iter().map(|numbers| label_order.renumber(numbers));

    let is_over = words.names().len() > reading.words_max
        || words.names().n_bytes() > reading.words_bytes_max
        || builders.iter().any(|builder| builder.words.is_over());
    let kept = if is_over {
        first_words(reading, &builders)
    } else {
        Kept { names: words.names().clone(), by_hash: HashMap::new() }
    };
    let by_hash = Arc::new(kept.by_hash);
    let mut numberings: Vec<Numbering> = label_numbers
        .zip(&builders)
        .zip(word_numbers)
        .map(|((labels, builder), words)| {
            if !is_over {
                return Numbering { words, hashes: None, labels, by_hash: Arc::clone(&by_hash) };
            }
            let hashes: Vec<u32> = builder.words.names().iter().map(hash).collect();
            let words = hashes.iter().map(|hash| by_hash.get(hash).copied().unwrap_or(UNKNOWN)).collect();
            Numbering { words, hashes: Some(hashes), labels, by_hash: Arc::clone(&by_hash) }
        })
        .collect();
    let counts = if is_over {
        count_again(reading, &builders, &numberings, kept.names.len())?
    } else {
        words.counts()
    };

    let order = Ordered::of(&kept.names, &counts, reading.count_min.max(1));
    let by_hash =
        Arc::new(by_hash.iter().map(|(&hash, &word)| (hash, order.numbers[word as usize])).collect());
    for (numbering, builder) in numberings.iter_mut().zip(&builders) {
        numbering.by_hash = Arc::clone(&by_hash);
        numbering.words = order.renumber(&numbering.words);
        if numbering.hashes.is_none() && numbering.words.contains(&UNKNOWN) {
            numbering.hashes = Some(builder.words.names().iter().map(hash).collect());
        }
    }
    let dictionary = Dictionary::new(order.names, order.counts, label_order.names, label_order.counts);
    let counts = sum(&builders);
    let blocks = stored(builders, numberings);
    let mut texts = Texts { dictionary, counts, blocks, folder: reading.folder.clone() };
    let n_unknown = count_unknown(&texts)?;
    texts.counts.n_unknown = n_unknown;
    texts.counts.n_tokens = texts.dictionary.n_tokens() + n_unknown;
    Ok(texts)
}

/// Joins a table of all builders. Returns it and the number of each name, by builder.
fn join<'a>(
    builders: &'a [TextsBuilder],
    of: impl Fn(&'a TextsBuilder) -> &'a Numbers,
) -> (Numbers, Vec<Vec<u32>>) {
    let mut joined =
        builders.first().map_or_else(|| Numbers::new(0, 0), |builder| of(builder).without_limits());
    let mut numbers: Vec<Vec<u32>> =
        builders.first().map(|builder| (0..of(builder).names().len() as u32).collect()).into_iter().collect();
    for builder in builders.iter().skip(1) {
        let (names, counts) = (of(builder).names(), of(builder).counts());
        let counted =
            names.iter().zip(counts).map(|(name, count)| joined.count(name, count).unwrap_or(UNKNOWN));
        numbers.push(counted.collect());
    }
    (joined, numbers)
}

/// The words of a dictionary with bounded size.
struct Kept {
    names: Names,
    by_hash: HashMap<u32, u32>,
}

/// The first words of the input. Of several words with equal hash the first one is kept.
fn first_words(reading: &Reading, builders: &[TextsBuilder]) -> Kept {
    let mut firsts: HashMap<&[u8], (u64, u32)> = HashMap::new();
    for builder in builders {
        let mut chunks = builder.chunks.iter().peekable();
        let mut chunk = 0;
        for (number, name) in (0..).zip(builder.words.names().iter()) {
            while let Some((next, _)) = chunks.next_if(|(_, n_before)| *n_before <= number) {
                chunk = *next;
            }
            let first = firsts.entry(name).or_insert((chunk, number));
            *first = (*first).min((chunk, number));
        }
    }
    let mut order: Vec<_> = firsts.into_iter().map(|(name, first)| (first, name)).collect();
    order.sort_unstable();
    let mut kept = Kept { names: Names::default(), by_hash: HashMap::new() };
    // The dictionary of a builder has no more words than that of all builders at the same position.
    let closed = builders.iter().filter_map(|builder| builder.closed).min();
    let mut n_bytes = 0;
    for (first, name) in order.into_iter().take(reading.words_max) {
        n_bytes += name.len();
        if n_bytes > reading.words_bytes_max || closed.is_some_and(|closed| first >= closed) {
            break;
        }
        kept.by_hash.entry(hash(name)).or_insert_with(|| {
            kept.names.push(name);
            kept.names.len() as u32 - 1
        });
    }
    kept
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

/// Names by descending count, then by bytes.
struct Ordered {
    names: Names,
    counts: Vec<u64>,
    /// The new number of each name; [`UNKNOWN`] if its count is too low.
    numbers: Vec<u32>,
}

impl Ordered {
    fn of(names: &Names, counts: &[u64], count_min: u64) -> Self {
        let start = |name: &[u8]| {
            let mut first = [0; 8];
            let length = name.len().min(8);
            first[..length].copy_from_slice(&name[..length]);
            u64::from_be_bytes(first)
        };
        let keys = (0..).zip(counts).filter(|(_, count)| **count >= count_min);
        let mut order: Vec<_> =
            keys.map(|(number, &count)| (Reverse(count), start(names.get(number)), number)).collect();
        // Most comparisons are decided by the count and the first bytes.
        order.sort_unstable_by(|one, other| {
            (one.0, one.1).cmp(&(other.0, other.1)).then_with(|| names.get(one.2).cmp(names.get(other.2)))
        });
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
    }
    sum
}

/// All blocks in the order of their chunks. Converts those in memory, in one thread per builder.
fn stored(builders: Vec<TextsBuilder>, numberings: Vec<Numbering>) -> Vec<Stored> {
    let mut blocks: Vec<(u64, Stored)> = thread::scope(|scope| {
        let threads: Vec<_> = builders
            .into_iter()
            .zip(numberings)
            .map(|(builder, numbering)| {
                scope.spawn(move || {
                    let numbering = Arc::new(numbering);
                    let numbered = builder.blocks.into_iter().map(|(chunk, block)| match block {
                        Unnumbered::Memory(mut block) => {
                            numbering.apply(&mut block);
                            (chunk, Stored::Memory(block))
                        }
                        Unnumbered::File { file, from, lengths } => (
                            chunk,
                            Stored::File(Spilled { file, from, lengths, numbering: Arc::clone(&numbering) }),
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
            Stored::Memory(_) => true,
            Stored::File(spilled) => spilled.numbering.hashes.is_some(),
        };
        if has_unknown {
            let block = texts.block(index, &mut scratch)?;
            n_unknown += Tokens(&block.tokens).filter(std::result::Result::is_err).count() as u64;
        }
    }
    Ok(n_unknown)
}

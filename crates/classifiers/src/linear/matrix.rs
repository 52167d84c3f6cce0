//! Lists the n-grams of all texts by row, without those of too few texts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::distinct::Distinct;
use super::keys::{self, NgramNumbering};
use super::model::LinearModel;
use super::parallel;
use super::row_index::{self, RowIndex};
use super::settings::{Counting, LinearSettings, NgramTable};
use crate::error::{Error, Result};
use crate::texts::{Block, Texts};

/// Memory per n-gram of an exact table.
const EXACT_BYTES: usize = 48;

/// All texts, in parts, which are the blocks of [`Texts`].
#[derive(Debug)]
pub(super) struct NgramMatrix {
    pub parts: Vec<Part>,
    /// Part and index within it of each text.
    pub positions: Vec<(u32, u32)>,
    pub n_rows: usize,
}

/// Some texts.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Distinct rows of each text.
    rows: Vec<u32>,
    /// A value per row; empty if all are 1.
    values: Vec<f32>,
    ends: Vec<usize>,
    labels: Vec<u32>,
    label_ends: Vec<u32>,
}

/// A text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    pub rows: &'a [u32],
    /// Empty if all are 1.
    values: &'a [f32],
    pub labels: &'a [u32],
}

impl NgramMatrix {
    /// Numbers the n-grams of all texts, and lists them without those of fewer than [`LinearSettings::texts_min`]
    /// texts. N-grams of `model` have a row in any case.
    pub fn of(
        texts: &Texts,
        settings: &LinearSettings,
        model: Option<&LinearModel>,
    ) -> Result<(Self, RowIndex)> {
        let (parts, counts, numbering) = match settings.table {
            NgramTable::Hashed { bits } => {
                let (parts, counts) = hashed(texts, settings, bits)?;
                (parts, counts, None)
            }
            NgramTable::Exact => {
                let (parts, counts, numbering) = exact(texts, settings)?;
                (parts, counts, Some(numbering))
            }
        };
        let is_kept = |number: u32| u32::from(counts[number as usize]) >= settings.texts_min;
        let (parts, rows) = match (numbering, settings.table) {
            (None, NgramTable::Hashed { bits }) => {
                let is_of_model = |hash: u32| model.is_some_and(|model| model.has_hash(hash));
                let rows = RowIndex::hashed(bits, |hash| is_kept(hash) || is_of_model(hash));
                let parts = match &rows {
                    RowIndex::Hashed { words, .. } => {
                        renumbered(parts, settings, |hash| row_index::row_of_hash(words, hash))
                    }
                    RowIndex::Exact { .. } => parts,
                };
                (parts, rows)
            }
            (numbering, _) => {
                let mut next = 0;
                let row_of: Vec<Option<u32>> = (0..counts.len() as u32)
                    .map(|number| {
                        let row = is_kept(number).then_some(next);
                        next += u32::from(row.is_some());
                        row
                    })
                    .collect();
                let numbers = numbering.unwrap_or_default().numbers;
                let kept =
                    numbers.into_iter().filter_map(|(key, number)| Some((key, row_of[number as usize]?)));
                let rows = RowIndex::Exact { rows: kept.collect() };
                (renumbered(parts, settings, |number| row_of[number as usize]), rows)
            }
        };
        let positions = (0..).zip(&parts).flat_map(|(part, texts): (u32, &Part)| {
            (0..texts.ends.len() as u32).map(move |index| (part, index))
        });
        Ok((Self { positions: positions.collect(), parts, n_rows: rows.n_rows() }, rows))
    }

    /// Number of texts.
    pub fn n_texts(&self) -> usize {
        self.positions.len()
    }

    /// A text by number.
    #[inline]
    pub fn text(&self, number: usize) -> Row<'_> {
        let (part, index) = self.positions[number];
        self.parts[part as usize].text(index as usize)
    }

    /// All texts in order.
    pub fn texts(&self) -> impl Iterator<Item = Row<'_>> {
        self.parts.iter().flat_map(|part| (0..part.ends.len()).map(|index| part.text(index)))
    }

    /// The texts of a part with their numbers.
    pub fn part(&self, part: usize) -> impl Iterator<Item = (usize, Row<'_>)> {
        let from: usize = self.parts[..part].iter().map(|part| part.ends.len()).sum();
        let part = &self.parts[part];
        (0..part.ends.len()).map(move |index| (from + index, part.text(index)))
    }

    /// Number of texts of each row that `counts` accepts.
    pub fn count_texts(&self, threads: usize, counts: impl Fn(Row<'_>) -> bool + Sync) -> Vec<u32> {
        let state = || vec![0; self.n_rows];
        let (_, counted) =
            parallel::map_with(threads, self.parts.len(), state, |counted: &mut Vec<u32>, part| {
                let part = &self.parts[part];
                for text in (0..part.ends.len()).map(|index| part.text(index)).filter(|&text| counts(text)) {
                    text.rows.iter().for_each(|&row| counted[row as usize] += 1);
                }
            });
        let mut sums = counted.into_iter();
        let first = sums.next().unwrap_or_else(state);
        sums.fold(first, |mut sum, other| {
            sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
            sum
        })
    }
}

impl Part {
    #[inline]
    fn text(&self, index: usize) -> Row<'_> {
        let span = if index == 0 { 0 } else { self.ends[index - 1] }..self.ends[index];
        let labels = if index == 0 { 0 } else { self.label_ends[index - 1] }..self.label_ends[index];
        Row {
            rows: &self.rows[span.clone()],
            values: if self.values.is_empty() { &[] } else { &self.values[span] },
            labels: &self.labels[labels.start as usize..labels.end as usize],
        }
    }

    fn n_bytes(&self) -> usize {
        4 * (self.rows.len() + self.values.len())
    }

    fn begin(block: &Block) -> Self {
        let mut part = Self::default();
        for text in block.texts() {
            part.labels.extend_from_slice(text.labels);
            part.label_ends.push(part.labels.len() as u32);
        }
        part
    }

    /// Adds the distinct numbers of a text.
    #[inline]
    fn add(&mut self, distinct: &mut Distinct, numbers: &[u32], counting: Counting) {
        let from = self.rows.len();
        distinct.begin(numbers.len());
        for &number in numbers {
            let next = (self.rows.len() - from) as u32;
            let position = distinct.position(number, next);
            if position == next {
                self.rows.push(number);
                if counting != Counting::Binary {
                    self.values.push(1.0);
                }
            } else if counting != Counting::Binary {
                self.values[from + position as usize] += 1.0;
            }
        }
        self.ends.push(self.rows.len());
    }
}

impl Row<'_> {
    /// The value of a row by position, without the scale of the text.
    #[inline]
    pub fn value(&self, position: usize) -> f32 {
        if self.values.is_empty() { 1.0 } else { self.values[position] }
    }

    /// Whether all values are 1.
    #[inline]
    pub fn is_binary(&self) -> bool {
        self.values.is_empty()
    }
}

/// The value of an n-gram that occurs `n` times.
#[inline]
pub(super) fn value(counting: Counting, n: f32) -> f32 {
    match counting {
        Counting::Binary => 1.0,
        Counting::Linear => n,
        Counting::Logarithmic => 1.0 + n.ln(),
    }
}

/// Parts with hashes, and the number of texts of each hash, of 255 or more as 255.
fn hashed(texts: &Texts, settings: &LinearSettings, bits: u32) -> Result<(Vec<Part>, Vec<u8>)> {
    // A table of counts per thread.
    let threads = settings.threads.min(8);
    let memory = Memory::of(settings);
    struct State {
        counts: Vec<u8>,
        distinct: Distinct,
        words: Vec<u32>,
        hashes: Vec<u32>,
        scratch: Block,
    }
    let state = || State {
        counts: vec![0; 1 << bits],
        distinct: Distinct::default(),
        words: Vec::new(),
        hashes: Vec::new(),
        scratch: Block::default(),
    };
    let (parts, states) = parallel::map_with(threads, texts.n_blocks(), state, |state, index| {
        let block = texts.block(index, &mut state.scratch)?;
        let mut part = Part::begin(block);
        let room = keys::n_ngrams(settings, texts.block_tokens(index));
        part.rows.reserve(room);
        for text in block.texts() {
            keys::word_hashes(text, &texts.dictionary, &mut state.words);
            state.hashes.clear();
            keys::each_hash(settings, bits, &state.words, |hash, _| state.hashes.push(hash));
            let from = part.rows.len();
            part.add(&mut state.distinct, &state.hashes, settings.counting);
            for &hash in &part.rows[from..] {
                let count = &mut state.counts[hash as usize];
                *count = count.saturating_add(1);
            }
        }
        part.rows.shrink_to_fit();
        memory.add(part.n_bytes())?;
        Ok(part)
    });
    let mut counts = states.into_iter().map(|state| state.counts);
    let first = counts.next().unwrap_or_else(|| vec![0; 1 << bits]);
    let counts = counts.fold(first, |mut sum, other| {
        sum.iter_mut().zip(other).for_each(|(sum, other)| *sum = sum.saturating_add(other));
        sum
    });
    Ok((parts.into_iter().collect::<Result<Vec<_>>>()?, counts))
}

/// Parts with exact n-grams in order of first appearance, and the number of texts of each.
fn exact(texts: &Texts, settings: &LinearSettings) -> Result<(Vec<Part>, Vec<u8>, NgramNumbering)> {
    let memory = Memory::of(settings);
    let (mut numbering, mut counts) = (NgramNumbering::default(), Vec::<u8>::new());
    let (mut distinct, mut words, mut numbers) = (Distinct::default(), Vec::new(), Vec::new());
    let mut scratch = Block::default();
    let mut parts = Vec::new();
    for index in 0..texts.n_blocks() {
        let block = texts.block(index, &mut scratch)?;
        let (mut part, n_before) = (Part::begin(block), numbering.numbers.len());
        for text in block.texts() {
            words.clear();
            words.extend(text.words().map(std::result::Result::ok));
            numbers.clear();
            keys::each_exact(settings, &words, |ngram, _| numbers.push(numbering.number(ngram)));
            let from = part.rows.len();
            part.add(&mut distinct, &numbers, settings.counting);
            counts.resize(numbering.numbers.len(), 0);
            for &number in &part.rows[from..] {
                counts[number as usize] = counts[number as usize].saturating_add(1);
            }
        }
        memory.add(part.n_bytes() + EXACT_BYTES * (numbering.numbers.len() - n_before))?;
        parts.push(part);
    }
    Ok((parts, counts, numbering))
}

/// Repositions numbers by rows, and removes n-grams without one.
fn renumbered(
    parts: Vec<Part>,
    settings: &LinearSettings,
    row_of: impl Fn(u32) -> Option<u32> + Sync,
) -> Vec<Part> {
    let n = parts.len();
    let parts: Vec<_> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
    parallel::map(settings.threads, n, |index| {
        let taken = parts[index].lock().ok().and_then(|mut part| part.take());
        let mut part = taken.unwrap_or_default();
        let (mut from, mut kept) = (0, 0);
        for text in 0..part.ends.len() {
            let to = part.ends[text];
            for at in from..to {
                if !part.values.is_empty() {
                    part.values[at] = value(settings.counting, part.values[at]);
                }
                if let Some(row) = row_of(part.rows[at]) {
                    part.rows[kept] = row;
                    if !part.values.is_empty() {
                        part.values[kept] = part.values[at];
                    }
                    kept += 1;
                }
            }
            part.ends[text] = kept;
            from = to;
        }
        part.rows.truncate(kept);
        part.values.truncate(kept);
        part
    })
}

/// Memory of the n-grams of all texts.
struct Memory {
    max: u64,
    used: AtomicU64,
}

impl Memory {
    fn of(settings: &LinearSettings) -> Self {
        Self { max: settings.memory_bytes, used: AtomicU64::new(0) }
    }

    fn add(&self, n_bytes: usize) -> Result<()> {
        let needed = self.used.fetch_add(n_bytes as u64, Relaxed) + n_bytes as u64;
        if needed > self.max { Err(Error::Memory { needed, max: self.max }) } else { Ok(()) }
    }
}

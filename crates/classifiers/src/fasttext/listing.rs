//! Lists the rows of all texts before a training.
//!
//! Reading a list in each epoch takes less time than hashing n-grams again. If the lists exceed a limit, only the set of
//! rows is kept, and the rows of a text are computed in each epoch.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use program::threads::spawn;

use super::row_set::RowSet;
use crate::error::Result;
use crate::features::{FeatureRows, FeatureScratch};
use crate::texts::{Block, Texts};

/// The rows of all texts.
pub(crate) struct Listing {
    pub met: RowSet,
    /// By block: the positions of the rows of each text.
    pub lists: Option<Vec<List>>,
    /// Memory of the lists.
    pub n_bytes: u64,
}

/// The rows of the texts of a block.
#[derive(Default)]
pub(crate) struct List {
    rows: Vec<u32>,
    ends: Vec<usize>,
}

impl List {
    /// The rows of a text.
    #[inline]
    pub fn of(&self, text: usize) -> &[u32] {
        let from = if text == 0 { 0 } else { self.ends[text - 1] };
        &self.rows[from..self.ends[text]]
    }
}

impl Listing {
    /// Lists the rows of all texts. The set also has the rows `more`. The lists are kept if their size in bytes is at most
    /// `bytes_max`.
    ///
    /// # Errors
    /// If a temporary file cannot be read.
    pub fn of(
        texts: &Texts,
        rows: &FeatureRows,
        more: &[u32],
        threads: usize,
        bytes_max: usize,
    ) -> Result<Self> {
        let (next, n_bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let lists: Vec<Mutex<List>> = (0..texts.n_blocks()).map(|_| Mutex::default()).collect();
        let find = || -> Result<Vec<u64>> {
            let mut met = vec![0_u64; rows.n_rows().div_ceil(64)];
            let (mut scratch, mut block) = (FeatureScratch::default(), Block::default());
            loop {
                let index = next.fetch_add(1, Relaxed);
                if index >= texts.n_blocks() {
                    return Ok(met);
                }
                let block = texts.block(index, &mut block)?;
                let is_kept = n_bytes.load(Relaxed) <= bytes_max;
                let mut list = List::default();
                list.rows.reserve(if is_kept {
                    block.tokens.len() * rows.features().ngrams.min(8) as usize
                } else {
                    0
                });
                for text in block.texts() {
                    let from = if is_kept { list.rows.len() } else { 0 };
                    list.rows.truncate(from);
                    rows.of_tokens(&texts.dictionary, text.tokens, &mut scratch, &mut list.rows);
                    list.rows[from..].iter().for_each(|&row| met[row as usize / 64] |= 1 << (row % 64));
                    list.ends.push(list.rows.len());
                }
                if is_kept {
                    n_bytes.fetch_add(4 * list.rows.len() + 8 * list.ends.len(), Relaxed);
                    *lists[index].lock().expect("no panic") = list;
                }
            }
        };
        let met = thread::scope(|scope| -> Result<_> {
            let others: Vec<_> = (1..threads).map(|_| spawn(scope, find)).collect();
            let mut met = find()?;
            more.iter().for_each(|&row| met[row as usize / 64] |= 1 << (row % 64));
            for thread in others {
                let other = thread.join().expect("no panic")?;
                met.iter_mut().zip(other).for_each(|(met, other)| *met |= other);
            }
            Ok(met)
        })?;
        let met = RowSet::of_bits(&met, rows.n_rows());
        let n_bytes = n_bytes.into_inner();
        if n_bytes > bytes_max {
            return Ok(Self { met, lists: None, n_bytes: 0 });
        }
        let mut lists: Vec<List> =
            lists.into_iter().map(|list| list.into_inner().expect("no panic")).collect();
        let share = lists.len().div_ceil(threads.max(1)).max(1);
        thread::scope(|scope| {
            for lists in lists.chunks_mut(share) {
                let met = &met;
                spawn(scope, move || lists.iter_mut().for_each(|list| to_positions(met, &mut list.rows)));
            }
        });
        Ok(Self { met, lists: Some(lists), n_bytes: n_bytes as u64 })
    }
}

/// Replaces row numbers by positions. Rows without a position are removed.
pub(crate) fn to_positions(met: &RowSet, rows: &mut Vec<u32>) {
    let mut kept = 0;
    for at in 0..rows.len() {
        if let Some(position) = met.position(rows[at]) {
            rows[kept] = position;
            kept += 1;
        }
    }
    rows.truncate(kept);
}

//! Reads a dataset that does not fit in memory: one window of blocks at a time.
//!
//! A block is 16,384 rows of the dataset, one chunk of its widest column. Each epoch shuffles the blocks, splits
//! their list into windows of `blocks_at_once` blocks, and reads one window after the other. Blocks of a window are
//! read in file order; its rows are arranged as in [`crate::order`]. The dataset is sorted by text hash, so a block
//! is a random sample of it. Every row occurs exactly once per epoch, as with rows in memory. Unlike with rows in
//! memory, two rows can be in one batch only if their blocks are in one window. A plan with a single window gives
//! the same order as rows in memory.
//!
//! At most two windows exist at a time: the current and the next one. Together with the rows carried over between
//! them, they stay within the memory limit. A resumed training reads the window in which it was interrupted. If that
//! window starts with carried rows, the previous window is read too.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dataset::dataset_file::DatasetReader;
use dataset::{CHUNK_ROWS, Row, RowsReader, TokenType};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::order::{Arrangement, Order};
use crate::part::Part;
use crate::random::Purpose;
use crate::reading::Reading;
use crate::table::{ROW_BYTES, Table, token_bytes};

/// Maximum windows at a time.
pub(crate) const WINDOWS_MAX: usize = 2;

/// How a dataset is read in blocks. The order of an epoch depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Rows per block; the last block may have fewer.
    pub block_rows: u64,
    /// Blocks per window; the last window may have fewer.
    pub blocks_at_once: usize,
}

/// Size of one split's rows in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockSize {
    rows: u64,
    tokens: u64,
    longest: u64,
}

impl BlockSize {
    /// Counts one row.
    pub(crate) fn count(&mut self, tokens: &[u32]) {
        self.rows += 1;
        self.tokens += tokens.len() as u64;
        self.longest = self.longest.max(tokens.len() as u64);
    }

    fn bytes(self, token_bytes: u64) -> u64 {
        self.rows * ROW_BYTES + self.tokens * token_bytes
    }
}

/// A dataset that is read in blocks. Several threads may read at the same time.
pub(crate) struct Blocks {
    dataset: DatasetReader,
    reading: Reading,
    sizes: Vec<[BlockSize; 3]>,
    n_rows: u64,
    token_type: TokenType,
}

impl Blocks {
    /// Rows per block: the rows of a chunk of the column with the smallest chunks. Each of its chunks is then decoded
    /// once. A chunk of tokens may be decoded twice, for two adjacent blocks.
    pub(crate) fn rows_of_a_block() -> u64 {
        CHUNK_ROWS.iter().map(|&(_, rows)| rows as u64).min().expect("a dataset has columns")
    }

    /// Takes a verified dataset and the size of each split in each block.
    pub(crate) fn new(dataset: DatasetReader, reading: Reading, sizes: Vec<[BlockSize; 3]>) -> Self {
        let (n_rows, token_type) = (dataset.n_rows(), dataset.vocabulary().token_type());
        Self { dataset, reading, sizes, n_rows, token_type }
    }

    fn size(&self, block: usize, part: Part) -> BlockSize {
        self.sizes[block][part as usize]
    }

    /// Indices of the blocks that contain rows of the split.
    fn of_part(&self, part: Part) -> Vec<usize> {
        (0..self.sizes.len()).filter(|&block| self.size(block, part).rows > 0).collect()
    }

    /// The most blocks per window such that two windows, with the rows carried into and out of each, fit into
    /// `memory_bytes`.
    pub(crate) fn plan(&self, part: Part, batch_rows: usize, memory_bytes: u64, path: &Path) -> Result<Plan> {
        let token_bytes = token_bytes(self.token_type);
        let mut sizes: Vec<BlockSize> = self.of_part(part).iter().map(|&at| self.size(at, part)).collect();
        let longest = sizes.iter().map(|size| size.longest).max().unwrap_or(0);
        let carried_bytes = 2 * batch_rows as u64 * (ROW_BYTES + longest * token_bytes);
        // The largest blocks must fit, in case the shuffle puts them into one window.
        sizes.sort_unstable_by_key(|size| std::cmp::Reverse(size.bytes(token_bytes)));
        let bytes_of = |blocks: usize| {
            let largest: u64 = sizes[..blocks].iter().map(|size| size.bytes(token_bytes)).sum();
            WINDOWS_MAX as u64 * (largest + carried_bytes)
        };
        let blocks_at_once = (1..=sizes.len()).take_while(|&blocks| bytes_of(blocks) <= memory_bytes).count();
        // A window of one block would shuffle too little: the same rows would always share batches.
        let fewest_blocks = sizes.len().min(2);
        if blocks_at_once < fewest_blocks {
            let (path, expected_bytes) = (path.to_owned(), bytes_of(fewest_blocks));
            return Err(Error::Memory { path, found_bytes: memory_bytes, expected_bytes });
        }
        // A window carries over less than one batch of rows, all of which must be from the window itself.
        let mut rows: Vec<u64> = sizes.iter().map(|size| size.rows).collect();
        rows.sort_unstable();
        let fewest: u64 = rows.iter().take(blocks_at_once).sum();
        if blocks_at_once < sizes.len() && fewest < batch_rows as u64 {
            let expected =
                format!("at most {fewest}, the rows of the smallest window; raise the memory limit");
            return Err(Error::setting("the batch size", format!("{batch_rows} rows"), &expected));
        }
        Ok(Plan { block_rows: Self::rows_of_a_block(), blocks_at_once: blocks_at_once.max(1) })
    }

    /// Appends the split's rows of one block to `table`.
    fn read(&self, reader: &mut RowsReader, block: usize, part: Part, table: &mut Table) -> Result<()> {
        let mut row = Row::default();
        for at in self.rows_of(block) {
            reader.read(at, &mut row)?;
            if self.reading.division.part_of(row.hash, row.split) == Some(part) {
                table.push(at as u32, &row, self.reading.read_of(&row));
            }
        }
        Ok(())
    }

    fn rows_of(&self, block: usize) -> Range<u64> {
        let start = block as u64 * Self::rows_of_a_block();
        start..(start + Self::rows_of_a_block()).min(self.n_rows)
    }

    fn empty_table(&self, n_rows: u64, n_tokens: u64) -> Table {
        Table::with_capacity(self.token_type, n_rows as usize, n_tokens as usize)
    }
}

/// The windows of one epoch.
pub(crate) struct Windows {
    blocks: Arc<Blocks>,
    part: Part,
    arrangement: Arrangement,
    batch_rows: usize,
    /// Blocks of each window.
    windows: Vec<Vec<usize>>,
    /// Rows in all windows before each window, and at the end the total.
    rows_before: Vec<u64>,
}

impl Windows {
    pub(crate) fn new(
        blocks: Arc<Blocks>,
        part: Part,
        arrangement: Arrangement,
        batch_rows: usize,
        plan: Plan,
    ) -> Self {
        let mut order = blocks.of_part(part);
        if let Arrangement::Shuffled { seed, epoch } = arrangement {
            Purpose::Blocks.stream(&[seed, epoch]).shuffle(&mut order);
        }
        let mut windows: Vec<Vec<usize>> = order.chunks(plan.blocks_at_once).map(<[usize]>::to_vec).collect();
        let mut rows_before = vec![0];
        for window in &mut windows {
            // File order: reading only moves forward, and a single window has the same order as rows in memory.
            window.sort_unstable();
            let rows: u64 = window.iter().map(|&block| blocks.size(block, part).rows).sum();
            rows_before.push(rows_before[rows_before.len() - 1] + rows);
        }
        Self { blocks, part, arrangement, batch_rows, windows, rows_before }
    }

    /// The number of windows.
    pub(crate) fn len(&self) -> usize {
        self.windows.len()
    }

    /// The first step that takes its batch from this window.
    pub(crate) fn first_step(&self, window: usize) -> u64 {
        self.rows_before[window] / self.batch_rows as u64
    }

    /// The window of this step's batch.
    pub(crate) fn with_step(&self, step: u64) -> usize {
        let last = self.len().saturating_sub(1);
        (0..last).find(|&window| self.first_step(window + 1) > step).unwrap_or(last)
    }

    /// Number of rows carried over into this window.
    fn n_carried(&self, window: usize) -> usize {
        (self.rows_before[window] % self.batch_rows as u64) as usize
    }

    /// Reads the rows carried over into this window. Returns `None` if `stop` was set meanwhile.
    pub(crate) fn carried(&self, window: usize, stop: &AtomicBool) -> Result<Option<Table>> {
        let nothing = self.blocks.empty_table(0, 0);
        if self.n_carried(window) == 0 {
            return Ok(Some(nothing));
        }
        // The rows that a window carries over do not depend on those carried into it.
        let Some(table) = self.read(window - 1, &nothing, stop)? else { return Ok(None) };
        let n_carried = self.n_carried(window - 1);
        let lengths = [vec![0; n_carried], table.lengths()].concat();
        let order = self.order(window - 1, &lengths);
        let left = order.left().iter().map(|&place| place as usize - n_carried);
        Ok(Some(self.select(&table, left)))
    }

    /// Reads a window's rows and places them after the carried ones. Returns `None` if `stop` was set meanwhile.
    pub(crate) fn read(&self, window: usize, carried: &Table, stop: &AtomicBool) -> Result<Option<Table>> {
        let blocks = &self.windows[window];
        let sizes = blocks.iter().map(|&block| self.blocks.size(block, self.part));
        let (rows, tokens) =
            sizes.fold((0, 0), |(rows, tokens), size| (rows + size.rows, tokens + size.tokens));
        let mut table =
            self.blocks.empty_table(rows + carried.n_rows() as u64, tokens + carried.tokens().len() as u64);
        table.extend(carried, 0..carried.n_rows());
        let mut reader = self.blocks.dataset.rows();
        for &block in blocks {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            self.blocks.read(&mut reader, block, self.part, &mut table)?;
        }
        Ok(Some(table))
    }

    /// The order of a window's rows.
    pub(crate) fn order(&self, window: usize, lengths: &[u32]) -> Order {
        let n_carried = self.n_carried(window);
        Order::of_window(self.arrangement, window as u64, n_carried, lengths, self.batch_rows)
    }

    /// Copies some rows of a window's table into a new table.
    pub(crate) fn select(&self, table: &Table, places: impl Iterator<Item = usize>) -> Table {
        let mut selected = self.blocks.empty_table(0, 0);
        selected.extend(table, places);
        selected
    }
}

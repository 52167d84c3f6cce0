//! The rows of a table on one server, in blocks with a lock each.
//!
//! An update of a block increases its version. A snapshot copies one block at a time while others are updated; recovery
//! repeats the updates of the log and leaves out those that the copy of a block contains.

use std::io::{self, Read, Write};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::messages::RowUpdates;
use crate::refusal::Refusal;
use crate::spec::{Optimizer, Spec};
use crate::values::{Encoded, floats, of_bytes};

/// Rows per block.
const BLOCK_ROWS: usize = 64;
/// Keeps Adagrad's divisor above 0.
const EPSILON: f32 = 1e-8;

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) spec: Spec,
    shard: u32,
    n_shards: u32,
    width: usize,
    blocks: Vec<RwLock<Block>>,
}

#[derive(Debug)]
struct Block {
    /// The number of the last update of its rows.
    version: u64,
    values: Box<[f32]>,
}

/// Memory of tables in bytes.
pub(crate) fn tables_bytes<'a>(
    specs: impl IntoIterator<Item = &'a Spec>,
    shard: u32,
    n_shards: u32,
) -> usize {
    let of = |spec: &Spec| spec.rows_of(shard, n_shards).saturating_mul(spec.width()).saturating_mul(4);
    specs.into_iter().map(of).fold(0, usize::saturating_add)
}

impl Table {
    /// A table with its first values.
    pub(crate) fn new(spec: Spec, shard: u32, n_shards: u32) -> Self {
        let (width, n_rows) = (spec.width(), spec.rows_of(shard, n_shards));
        let blocks = (0..n_rows).step_by(BLOCK_ROWS).map(|from| {
            let n = BLOCK_ROWS.min(n_rows - from);
            let mut values = vec![0.0; n * width].into_boxed_slice();
            for (local, row) in (from..).zip(values.chunks_exact_mut(width)) {
                spec.begin(local as u64 * u64::from(n_shards) + u64::from(shard), row);
            }
            RwLock::new(Block { version: 0, values })
        });
        let blocks = blocks.collect();
        Self { spec, shard, n_shards, width, blocks }
    }

    /// The place of a row among those of this server.
    fn local(&self, row: u32) -> Result<usize, Refusal> {
        if u64::from(row) >= self.spec.n_rows || row % self.n_shards != self.shard {
            let Self { spec: Spec { name, n_rows, .. }, shard, n_shards, .. } = self;
            return Err(Refusal::invalid(format!(
                "row {row} of table {name:?}, expected one of {n_rows} rows with remainder {shard} modulo {n_shards}"
            )));
        }
        Ok((row / self.n_shards) as usize)
    }

    /// The values of rows as bytes.
    pub(crate) fn read(&self, rows: &[u8]) -> Result<Vec<u8>, Refusal> {
        let dim = self.spec.dim as usize;
        let rows = of_bytes(rows)?;
        let mut bytes = Vec::with_capacity(4 * dim * rows.len());
        let mut held: Option<(usize, RwLockReadGuard<'_, Block>)> = None;
        for row in rows {
            let local = self.local(row)?;
            let block = match held {
                Some((at, block)) if at == local / BLOCK_ROWS => block,
                _ => {
                    drop(held);
                    self.blocks[local / BLOCK_ROWS].read().unwrap_or_else(PoisonError::into_inner)
                }
            };
            let values = &block.values[local % BLOCK_ROWS * self.width..][..dim];
            let from = bytes.len();
            bytes.resize(from + 4 * dim, 0);
            let to = bytes[from..].as_chunks_mut().0;
            to.iter_mut().zip(values).for_each(|(to, value)| *to = value.to_le_bytes());
            held = Some((local / BLOCK_ROWS, block));
        }
        Ok(bytes)
    }

    /// Refuses an update that [`Table::apply`] cannot apply.
    pub(crate) fn check(&self, update: &RowUpdates) -> Result<(), Refusal> {
        let rows = of_bytes(&update.rows)?;
        Encoded::of(update, rows.len(), self.spec.dim as usize)?;
        if !rows.clone().zip(rows.clone().skip(1)).all(|(a, b)| a < b) {
            return Err(Refusal::invalid("row numbers of an update, expected ascending ones"));
        }
        rows.into_iter().try_for_each(|row| self.local(row).map(|_| ()))
    }

    /// Applies an update of a step that was checked, unless a block has it already.
    pub(crate) fn apply(&self, update: &RowUpdates, version: u64, step: u64) -> Result<(), Refusal> {
        let rows = of_bytes(&update.rows)?;
        let encoded = Encoded::of(update, rows.len(), self.spec.dim as usize)?;
        // All rows of a block are updated under one lock, so that a snapshot has all of them or none.
        let mut held: Option<(usize, bool, RwLockWriteGuard<'_, Block>)> = None;
        for (at, row) in rows.enumerate() {
            let local = self.local(row)?;
            let (is_new, mut block) = match held {
                Some((of, is_new, block)) if of == local / BLOCK_ROWS => (is_new, block),
                _ => {
                    drop(held);
                    let block = &self.blocks[local / BLOCK_ROWS];
                    let mut block = block.write().unwrap_or_else(PoisonError::into_inner);
                    let is_new = block.version < version;
                    block.version = block.version.max(version);
                    (is_new, block)
                }
            };
            if is_new {
                let row = &mut block.values[local % BLOCK_ROWS * self.width..][..self.width];
                self.update(row, at, &encoded, step);
            }
            held = Some((local / BLOCK_ROWS, is_new, block));
        }
        Ok(())
    }

    #[inline]
    fn update(&self, row: &mut [f32], at: usize, encoded: &Encoded<'_>, step: u64) {
        let dim = self.spec.dim as usize;
        match self.spec.optimizer {
            Optimizer::Sum => encoded.row(at, |at, value| row[at] += value),
            Optimizer::Adagrad { rate } => {
                let (values, sums) = row.split_at_mut(dim);
                encoded.row(at, |at, gradient| {
                    sums[at] += gradient * gradient;
                    values[at] -= rate * gradient / (sums[at].sqrt() + EPSILON);
                });
            }
            Optimizer::Mean => {
                let (values, rest) = row.split_at_mut(dim);
                let (before, rest) = rest.split_at_mut(dim);
                let (sums, rest) = rest.split_at_mut(dim);
                let [n, last] = rest else { return };
                if *n == 0.0 || last.to_bits() != step as u32 {
                    (*n, *last) = (0.0, f32::from_bits(step as u32));
                    before.copy_from_slice(values);
                    sums.fill(0.0);
                }
                *n += 1.0;
                encoded.row(at, |at, value| sums[at] += value);
                let sums = before.iter().zip(sums);
                values.iter_mut().zip(sums).for_each(|(value, (before, sum))| *value = *before + *sum / *n);
            }
        }
    }

    /// Sets the values of a row, of a table without updates.
    pub(crate) fn set(&mut self, row: u32, values: &[f32]) -> Result<(), Refusal> {
        let local = self.local(row)?;
        let block = self.blocks[local / BLOCK_ROWS].get_mut().unwrap_or_else(PoisonError::into_inner);
        let row = &mut block.values[local % BLOCK_ROWS * self.width..];
        row[..self.spec.dim as usize].copy_from_slice(values);
        Ok(())
    }

    /// The number of the last update.
    pub(crate) fn version(&self) -> u64 {
        let of = |block: &RwLock<Block>| block.read().unwrap_or_else(PoisonError::into_inner).version;
        self.blocks.iter().map(of).max().unwrap_or_default()
    }

    /// Writes all blocks: version `u64`, then its values. Updates continue meanwhile.
    pub(crate) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        for block in &self.blocks {
            bytes.clear();
            {
                let block = block.read().unwrap_or_else(PoisonError::into_inner);
                bytes.extend(block.version.to_le_bytes());
                bytes.extend(block.values.iter().flat_map(|value| value.to_le_bytes()));
            }
            output.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Reads the blocks that [`Table::write`] wrote into a new table, up to the end of the input.
    pub(crate) fn restore(&mut self, input: &mut impl Read) -> io::Result<()> {
        self.read_blocks(input)?;
        match input.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(io::Error::other("the file is longer than the table")),
        }
    }

    /// Reads the blocks that [`Table::write`] wrote.
    pub(crate) fn read_blocks(&mut self, input: &mut impl Read) -> io::Result<()> {
        for block in &mut self.blocks {
            let block = block.get_mut().unwrap_or_else(PoisonError::into_inner);
            let mut bytes = vec![0; 8 + 4 * block.values.len()];
            input.read_exact(&mut bytes)?;
            let (version, values) = bytes.split_at(8);
            block.version = version.try_into().map_or(0, u64::from_le_bytes);
            block.values.iter_mut().zip(floats(values)).for_each(|(to, value)| *to = value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Initial;
    use crate::values::to_bytes;

    fn spec(optimizer: Optimizer) -> Spec {
        let initial = Initial::Uniform { key: vec![7, 1], divisor: 2.0 };
        Spec {
            name: "t".into(),
            n_rows: 1000,
            dim: 2,
            initial,
            optimizer,
            content: String::new(),
            min_count: 0,
        }
    }

    fn update(rows: &[u32], values: &[f32]) -> RowUpdates {
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        RowUpdates { rows: to_bytes(rows).into(), values: values.into(), ..RowUpdates::default() }
    }

    fn read(table: &Table, rows: &[u32]) -> Vec<f32> {
        floats(&table.read(&to_bytes(rows)).unwrap()).collect()
    }

    #[test]
    fn first_values_do_not_depend_on_the_number_of_servers() {
        let whole = Table::new(spec(Optimizer::Sum), 0, 1);
        let shards: Vec<Table> = (0..3).map(|shard| Table::new(spec(Optimizer::Sum), shard, 3)).collect();
        for row in [0, 1, 2, 500, 999] {
            let found = read(&shards[row as usize % 3], &[row]);
            assert_eq!(found, read(&whole, &[row]));
            assert!(found.iter().all(|value| value.abs() <= 0.25 && *value != 0.0), "{found:?}");
        }
    }

    #[test]
    fn a_row_of_another_server_is_refused() {
        let table = Table::new(spec(Optimizer::Sum), 1, 3);
        let message = "row 5 of table \"t\", expected one of 1000 rows with remainder 1 modulo 3";
        assert_eq!(table.read(&to_bytes(&[4, 5])), Err(Refusal::invalid(message)));
        assert!(table.read(&to_bytes(&[1000])).is_err());
        assert_eq!(table.check(&update(&[4, 5], &[0.0; 4])), Err(Refusal::invalid(message)));
        let message = "row numbers of an update, expected ascending ones";
        assert_eq!(table.check(&update(&[4, 4], &[0.0; 4])), Err(Refusal::invalid(message)));
    }

    #[test]
    fn adagrad_divides_by_the_root_of_the_sum_of_squares() {
        let optimizer = Optimizer::Adagrad { rate: 0.5 };
        let table = Table::new(Spec { initial: Initial::Zero, ..spec(optimizer) }, 0, 1);
        table.apply(&update(&[3], &[3.0, 0.0]), 1, 0).unwrap();
        table.apply(&update(&[3], &[4.0, 0.0]), 2, 0).unwrap();
        assert_eq!(read(&table, &[3]), [-0.5 - 0.5 * 4.0 / 5.0, 0.0]);
    }

    #[test]
    fn a_row_is_changed_by_the_mean_over_the_workers_that_push_it_in_a_step() {
        let mut table = Table::new(Spec { initial: Initial::Zero, ..spec(Optimizer::Mean) }, 0, 1);
        table.set(4, &[1.0, 1.0]).unwrap();
        let pushes =
            [(0, &[3, 4][..], &[2.0, 4.0, 1.0, 1.0][..]), (0, &[3], &[4.0, 0.0]), (1, &[3], &[1.0, 1.0])];
        for (version, (step, rows, values)) in (1..).zip(pushes) {
            table.apply(&update(rows, values), version, step).unwrap();
        }
        assert_eq!(read(&table, &[3, 4, 5]), [4.0, 3.0, 2.0, 2.0, 0.0, 0.0]);
    }

    #[test]
    fn an_update_that_a_block_has_is_not_applied_again() {
        let table = Table::new(Spec { initial: Initial::Zero, ..spec(Optimizer::Sum) }, 0, 1);
        let updates = [update(&[3, 70], &[1.0, 2.0, 3.0, 4.0]), update(&[3], &[10.0, 10.0])];
        table.apply(&updates[0], 1, 0).unwrap();
        let mut copy = Vec::new();
        table.write(&mut copy).unwrap();
        let mut again = Table::new(table.spec.clone(), 0, 1);
        again.restore(&mut &copy[..]).unwrap();
        for (version, update) in (1..).zip(&updates) {
            again.apply(update, version, 0).unwrap();
        }
        assert_eq!(read(&again, &[3, 70]), [11.0, 12.0, 3.0, 4.0]);
        assert!(again.restore(&mut &copy[1..]).is_err());
    }
}

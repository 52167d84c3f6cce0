//! The rows that a rank has changed since the last exchange.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use launch::interrupt::Asked;
use ngrams::Error as NgramsError;
use skipgram::{Rows, Table, Training};

use crate::commands::ngrams::Group;
use crate::error::{Error, Result};

/// How the differences of a row on several ranks are added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    /// All of them, in the order of ranks.
    Sum,
    /// The mean over the ranks that changed the row.
    Mean,
}

/// What a rank has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub(super) exchanges: u64,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// The values of changed rows before the first change, by table and row.
#[derive(Debug)]
pub(super) struct Changes {
    combine: Combine,
    before: [HashMap<u32, Vec<f32>>; 2],
    sent: Sent,
}

impl Changes {
    pub(super) fn new(combine: Combine) -> Self {
        Self { combine, before: Default::default(), sent: Sent::default() }
    }

    pub(super) fn sent(&self) -> Sent {
        self.sent
    }

    /// Keeps the values of rows that are about to be changed, unless they have changed before.
    pub(super) fn keep(&mut self, training: &Training, rows: &Rows) {
        let tables = tables(training).into_iter().zip([&rows.input, &rows.output]);
        for (before, (table, rows)) in self.before.iter_mut().zip(tables) {
            for &row in rows {
                if let Entry::Vacant(entry) = before.entry(row) {
                    let mut values = vec![0.0; table.dim()];
                    table.read(row, 0, &mut values);
                    entry.insert(values);
                }
            }
        }
    }

    /// Exchanges the differences of all ranks, and adds them to the rows as they were. Then all ranks have the same rows.
    /// Returns the action for all ranks, as [`Group::agree`].
    ///
    /// Errors: a rank cannot be reached, or the vectors are not finite at this step.
    pub(super) fn exchange(
        &mut self,
        training: &Training,
        group: Group<'_>,
        asked: Option<Asked>,
        step: u64,
    ) -> Result<Option<Asked>> {
        let mut message = vec![Group::number_of(asked)];
        for (table, before) in tables(training).into_iter().zip(&mut self.before) {
            self.sent.rows += before.len() as u64;
            write_differences(table, std::mem::take(before), &mut message);
        }
        self.sent.exchanges += 1;
        self.sent.bytes += message.len() as u64;
        let messages = group.gather(&message)?;
        let mut asked = 0;
        let mut means: [HashMap<u32, (f32, Vec<f32>)>; 2] = Default::default();
        for message in &messages {
            let (&[of_rank], mut rest) = message.split_first_chunk().ok_or_else(invalid)?;
            asked = asked.max(of_rank);
            for (table, means) in tables(training).into_iter().zip(&mut means) {
                rest = each_difference(table, rest, step, |row, difference| match self.combine {
                    Combine::Sum => add(table, row, difference),
                    Combine::Mean => {
                        let (n, sum) = means.entry(row).or_insert_with(|| (0.0, vec![0.0; table.dim()]));
                        *n += 1.0;
                        sum.iter_mut().zip(difference).for_each(|(sum, value)| *sum += value);
                    }
                })?;
            }
        }
        for (table, means) in tables(training).into_iter().zip(means) {
            for (row, (n, mut sum)) in means {
                sum.iter_mut().for_each(|value| *value /= n);
                add(table, row, &sum);
            }
        }
        Ok(Group::asked_of(asked))
    }
}

fn tables(training: &Training) -> [&Table; 2] {
    [training.input(), training.output()]
}

/// Writes the number of rows, the rows in order, and their differences. The table gets its former values.
fn write_differences(table: &Table, before: HashMap<u32, Vec<f32>>, message: &mut Vec<u8>) {
    let mut before: Vec<(u32, Vec<f32>)> = before.into_iter().collect();
    before.sort_unstable_by_key(|&(row, _)| row);
    message.extend((before.len() as u32).to_le_bytes());
    before.iter().for_each(|(row, _)| message.extend(row.to_le_bytes()));
    let mut after = vec![0.0; table.dim()];
    for (row, before) in before {
        table.read(row, 0, &mut after);
        let differences = after.iter().zip(&before).map(|(after, before)| after - before);
        differences.for_each(|value| message.extend(value.to_le_bytes()));
        table.write(row, 0, &before);
    }
}

/// Reads what [`write_differences`] has written. Returns the rest of the message.
fn each_difference<'a>(
    table: &Table,
    message: &'a [u8],
    step: u64,
    mut take: impl FnMut(u32, &[f32]),
) -> Result<&'a [u8]> {
    let (n_rows, rest) = message.split_first_chunk().ok_or_else(invalid)?;
    let n_rows = u32::from_le_bytes(*n_rows) as usize;
    let (rows, rest) = rest.split_at_checked(n_rows * size_of::<u32>()).ok_or_else(invalid)?;
    let of_row = table.dim() * size_of::<f32>();
    let (values, rest) = rest.split_at_checked(n_rows * of_row).ok_or_else(invalid)?;
    let mut difference = Vec::with_capacity(table.dim());
    for (row, values) in rows.as_chunks().0.iter().zip(values.chunks_exact(of_row)) {
        let row = u32::from_le_bytes(*row);
        if row as usize >= table.n_rows() {
            return Err(invalid());
        }
        difference.clear();
        difference.extend(values.as_chunks().0.iter().map(|value| f32::from_le_bytes(*value)));
        if difference.iter().any(|value| !value.is_finite()) {
            return Err(Error::VectorsDiverged { step });
        }
        take(row, &difference);
    }
    Ok(rest)
}

fn add(table: &Table, row: u32, difference: &[f32]) {
    let mut values = vec![0.0; table.dim()];
    table.read(row, 0, &mut values);
    values.iter_mut().zip(difference).for_each(|(value, difference)| *value += difference);
    table.write(row, 0, &values);
}

fn invalid() -> Error {
    let source = "a rank sent an invalid message; start all ranks with the same program".into();
    NgramsError::Exchange { source }.into()
}

//! Skip-gram on ranks: the rows that a rank has changed since the last exchange, as differences.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use launch::interrupt::Asked;
use skipgram::{Decay, Done, Rows, Table, Training, Vocabulary, Work};

use super::exchange::{RankModel, RankTraffic, invalid};
use crate::arguments::Embed;
use crate::commands::embed::model::tables;
use crate::commands::embed::out;
use crate::commands::embed::settings;
use crate::commands::group::Group;
use crate::commands::texts_out::TextsOut;
use crate::error::{Error, Result};

/// How the differences of a row on several ranks are added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Combine {
    /// All of them, in the order of ranks.
    Sum,
    /// The mean over the ranks that changed the row.
    Mean,
}

/// The training of a rank.
pub(super) struct Differences {
    training: Training,
    combine: Combine,
    /// The values of changed rows before the first change, by table and row.
    before: [HashMap<u32, Vec<f32>>; 2],
    sent: RankTraffic,
}

impl Differences {
    /// A training with its first values.
    pub(super) fn new(arguments: &Embed, vocabulary: &Vocabulary) -> Result<Self> {
        let training = Training::new(settings(arguments), vocabulary.n_words())?;
        (0..vocabulary.n_words() as u32).for_each(|word| training.draw(word));
        let combine = if arguments.average_every.is_some() { Combine::Mean } else { Combine::Sum };
        Ok(Self { training, combine, before: Default::default(), sent: RankTraffic::default() })
    }

    /// Keeps the values of rows that are about to be changed, unless they have changed before.
    fn keep(&mut self, rows: &Rows) {
        let tables = tables(&self.training).into_iter().zip([&rows.input, &rows.output]);
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
}

impl RankModel for Differences {
    type Of = Training;

    fn model(&self) -> &Training {
        &self.training
    }

    fn model_mut(&mut self) -> &mut Training {
        &mut self.training
    }

    fn step(&mut self, work: Work, decay: Decay) -> Result<Done> {
        self.keep(&self.training.rows(&work));
        Ok(self.training.run_once(decay, &work)?)
    }

    /// Adds the differences of all ranks to the rows as they were.
    fn exchange(&mut self, group: Group<'_>, asked: Option<Asked>, step: u64) -> Result<Option<Asked>> {
        let training = &self.training;
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

    fn sent(&self) -> RankTraffic {
        self.sent
    }

    fn save(&self, out: &mut TextsOut, vocabulary: &Vocabulary, place: &[u8]) -> Result<()> {
        out::save(out, &self.training, vocabulary, place)
    }

    fn restore(&mut self, mut state: &[u8], check: impl FnOnce(&[u8]) -> Result<()>) -> Result<()> {
        let n_rows = self.training.input().n_rows();
        let (_, place) = self.training.restore(n_rows, &mut state)?;
        check(&place)
    }

    fn into_model(self) -> Result<Training> {
        Ok(self.training)
    }
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
            return Err(Error::vectors_diverged(step));
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

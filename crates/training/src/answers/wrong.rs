//! The wrong predictions of an evaluation, the most confident first. A prediction is wrong if its label is none of those that
//! the text has.
//!
//! Until all of them are known, they wait in a temporary file without a name; memory has 16 bytes for each.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

use batches::{Division, Part};
use classifiers::Words;
use corpus::labels::Labels;
use corpus::settings::Settings;
use program::exit::{Exit, Failed};
use program::system::cause_and_remedy;
use tables::Nullable;

use super::cell::{Cell, Kept, text};
use super::file::Added;
use super::lines::{EntryText, Format, Written};
use super::output::KEPT_BYTES;
use super::{Answer, Result};
use crate::texts::{Hashed, labels_of};

/// What the predictions for labels are that a model does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherLabels {
    /// Wrong.
    Wrong,
    /// No part of the evaluation.
    Omitted,
}

/// The wrong predictions so far.
pub struct Wrong {
    labels: Labels,
    others: OtherLabels,
    /// The division whose test split is evaluated; `None`: all texts are.
    division: Option<Division>,
    hashed: Hashed,
    /// The confidence of each, and the place of its row in the file.
    found: Vec<(f32, u32, u64)>,
    rows: BufWriter<File>,
    n_bytes: u64,
}

/// A row of the file, and the values of the added columns.
type Row = (Kept, Vec<Cell>);

/// The added columns.
pub(super) fn columns() -> Vec<Added> {
    vec![
        ("true_label".to_owned(), text()),
        ("predicted_label".to_owned(), text()),
        ("probability".to_owned(), Nullable::Float(Vec::new())),
    ]
}

impl Wrong {
    /// Those for texts that are split into such words, of the test split of a division of rows with these settings.
    pub fn new(
        (words, rows): (Words, Option<&Settings>),
        division: Division,
        others: OtherLabels,
    ) -> Result<Self> {
        let file = tempfile::tempfile().map_err(|error| temporary(&error))?;
        Ok(Self {
            labels: Labels::PositiveFrom(4),
            others,
            division: (!division.is_all(Part::Test)).then_some(division),
            hashed: Hashed::of(words, rows),
            found: Vec::new(),
            rows: BufWriter::new(file),
            n_bytes: 0,
        })
    }

    /// Number of wrong predictions so far.
    pub fn n_found(&self) -> u64 {
        self.found.len() as u64
    }

    /// Sets the labels of the ratings that follow.
    pub fn rate_by(&mut self, labels: Labels) {
        self.labels = labels;
    }

    /// The labels of an entry; none if it is not evaluated.
    pub(super) fn labels(
        &mut self,
        entry: EntryText<'_>,
        written: Written<'_>,
        format: &Format,
    ) -> Vec<String> {
        let EntryText { text, rating } = entry;
        let text = if *format == Format::FastText { text.trim_ascii() } else { text };
        // The evaluation skips such a text.
        let is_empty = rating.is_some() && str::from_utf8(text).is_ok_and(|text| text.trim().is_empty());
        let hashed = &mut self.hashed;
        let mut is_in_split =
            |division: Division| division.part(hashed.text(text).split()) == Some(Part::Test);
        if is_empty || !self.division.is_none_or(&mut is_in_split) {
            return Vec::new();
        }
        let named = |label: &[u8]| String::from_utf8_lossy(label).into_owned();
        match (format, written, rating) {
            (Format::FastText, Written::Line(line), _) => labels_of(line).into_iter().map(named).collect(),
            (_, _, Some((_, Some(label)))) => vec![named(label)],
            (_, _, Some((rating, None))) => {
                let label = self.labels.label(rating.stars()).map(usize::from);
                label
                    .iter()
                    .filter_map(|&label| self.labels.names().get(label).map(|name| (*name).to_owned()))
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    /// The values of the added columns, if an answer is wrong.
    pub(super) fn cells(
        &self,
        labels: &[String],
        answer: &Answer<'_>,
        classes: &[String],
    ) -> Option<[Cell; 3]> {
        let predicted = classes.get(answer.label()? as usize)?;
        let is_omitted = match self.others {
            OtherLabels::Wrong => labels.is_empty(),
            OtherLabels::Omitted => !labels.iter().any(|label| classes.contains(label)),
        };
        (!is_omitted && !labels.contains(predicted)).then(|| {
            let probability = answer.probability().map_or(Cell::Null, Cell::Float);
            [Cell::Text(labels.join(" ")), Cell::Text(predicted.clone()), probability]
        })
    }

    /// Adds a wrong prediction.
    pub(super) fn add(&mut self, confidence: f32, (columns, cells): Row) -> Result<()> {
        let columns: Vec<(&str, &Cell)> = columns.iter().map(|(name, cell)| (&**name, cell)).collect();
        let row = serde_json::to_vec(&(columns, cells)).map_err(Failed::defect)?;
        self.rows.write_all(&row).map_err(|error| temporary(&error))?;
        self.found.push((confidence, row.len() as u32, self.n_bytes));
        self.n_bytes += row.len() as u64;
        Ok(())
    }

    /// All rows, the most confident first, otherwise in the order of the input.
    pub(super) fn in_order(mut self) -> Result<InOrder> {
        self.found.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
        let rows = self.rows.into_inner().map_err(|error| temporary(error.error()))?;
        Ok(InOrder { found: self.found.into_iter(), rows })
    }
}

/// The error of the temporary file.
fn temporary(error: &io::Error) -> Failed {
    Failed::new(Exit::Io, format!("{}: {}", std::env::temp_dir().display(), cause_and_remedy(error)))
}

/// Rows in their order.
pub(super) struct InOrder {
    found: std::vec::IntoIter<(f32, u32, u64)>,
    rows: File,
}

impl InOrder {
    /// The next rows, as many as memory holds; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Vec<Row>>> {
        let (mut next, mut n_bytes) = (Vec::new(), 0);
        while n_bytes < KEPT_BYTES
            && let Some((_, length, from)) = self.found.next()
        {
            let mut row = vec![0; length as usize];
            self.rows.read_exact_at(&mut row, from).map_err(|error| temporary(&error))?;
            n_bytes += row.len();
            let (columns, cells): (Vec<(String, Cell)>, Vec<Cell>) =
                serde_json::from_slice(&row).map_err(Failed::defect)?;
            next.push((columns.into_iter().map(|(name, cell)| (name.into(), cell)).collect(), cells));
        }
        Ok((!next.is_empty()).then_some(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_temporary_file_are_exact() {
        let of_all = (Words::Spaces, None);
        let mut wrong = Wrong::new(of_all, Division::all_test(), OtherLabels::Wrong).unwrap();
        let numbers = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.1 + 0.2, f64::MIN_POSITIVE];
        let columns: Kept = numbers.map(|number| ("a".into(), Cell::Double(number))).into();
        wrong.add(0.5, (columns, vec![Cell::Float(f32::NAN)])).unwrap();
        let mut rows = wrong.in_order().unwrap();
        let [(columns, cells)] = &rows.next().unwrap().unwrap()[..] else { panic!("one row") };
        for ((_, cell), number) in columns.iter().zip(numbers) {
            assert!(matches!(cell, Cell::Double(found) if found.to_bits() == number.to_bits()), "{cell:?}");
        }
        assert!(matches!(cells[..], [Cell::Float(number)] if number.is_nan()), "{cells:?}");
        assert!(rows.next().unwrap().is_none());
    }
}

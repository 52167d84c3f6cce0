//! The values of a training as rows of tables that several processes share, and the gradients of the rows of a step.
//!
//! The rows of a generator are its weights one after another, as differences from the first ones, which every process
//! draws. Here the optimizer is that of the tables.

use crate::skipgram::{Distribution, Done, Sentences};
use kernels::Linear;

use super::{Output, SpellingTraining};
use crate::spelling::adam::Learner;
use crate::spelling::batches::{Batch, Part};
use crate::spelling::settings::SpellingSettings;

/// Values per row of a generator.
const WIDTH: usize = 256;

/// A table, whose first values are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Number of rows.
    pub n_rows: usize,
    /// Values per row.
    pub dim: usize,
}

/// The positions of a step, and their words.
#[derive(Debug)]
pub struct Drawn {
    batch: Batch,
    n_tokens: u64,
}

impl SpellingTraining {
    /// The tables of the rows: of inputs, and of outputs unless the generator is shared.
    pub fn tables(&self) -> Vec<TableSizes> {
        let of = |learner: &Learner| TableSizes { n_rows: learner.n_rows(WIDTH), dim: WIDTH };
        let output = match &self.output {
            Output::Table(_) => {
                let n_rows = self.words.len();
                Some(TableSizes { n_rows, dim: self.settings.dim })
            }
            Output::Generator(output) => Some(of(output)),
            Output::Shared => None,
        };
        std::iter::once(of(&self.input)).chain(output).collect()
    }

    /// Draws the windows and samples of all positions of some sentences. `number` determines the random numbers, together
    /// with the seed.
    pub fn draw(&self, sentences: &Sentences, distribution: &Distribution, number: u64) -> Drawn {
        let settings = SpellingSettings { batch: usize::MAX, ..self.settings.clone() };
        let part = Part::new(sentences, distribution, number, &settings);
        let mut batch = Batch::default();
        if part.n_batches() > 0 {
            batch.draw(&part, 0, distribution, &settings);
        }
        Drawn { batch, n_tokens: sentences.n_tokens() }
    }

    /// The rows that a step reads and changes, ascending, of each table.
    pub fn rows(&self, drawn: &Drawn) -> Vec<Vec<u32>> {
        let is_empty = drawn.batch.positions.is_empty();
        let of = |learner: &Learner| {
            if is_empty { Vec::new() } else { (0..learner.n_rows(WIDTH) as u32).collect() }
        };
        let output = match &self.output {
            Output::Table(_) => {
                let mut words = drawn.batch.outputs.words.clone();
                words.sort_unstable();
                Some(words)
            }
            Output::Generator(output) => Some(of(output)),
            Output::Shared => None,
        };
        std::iter::once(of(&self.input)).chain(output).collect()
    }

    /// Sets rows of each table.
    pub fn write_rows(&mut self, rows: &[Vec<u32>], values: &[Vec<f32>]) {
        let mut tables = rows.iter().zip(values);
        if let Some((rows, values)) = tables.next() {
            self.input.write_rows(rows, values, WIDTH);
        }
        if let Some((rows, values)) = tables.next() {
            match &mut self.output {
                Output::Table(output) => output.write_rows(rows, values),
                Output::Generator(output) => output.write_rows(rows, values, WIDTH),
                Output::Shared => {}
            }
        }
    }

    /// Computes the gradients of the mean loss of the positions, of their [`SpellingTraining::rows`].
    pub fn gradients(&mut self, drawn: &Drawn, rows: &[Vec<u32>]) -> (Done, Vec<Vec<f32>>) {
        let batch = &drawn.batch;
        self.n_tokens += drawn.n_tokens;
        let mut done = Done { n_tokens: drawn.n_tokens, ..Done::default() };
        if batch.positions.is_empty() {
            return (done, vec![Vec::new(); rows.len()]);
        }
        self.differentiate(batch);
        (done.n_pairs, done.loss) = (batch.n_pairs, self.gradients[0].loss);
        let mut gradients = vec![self.input.take_gradients(&rows[0], WIDTH)];
        match &mut self.output {
            Output::Table(_) => gradients.push(self.gradients_of_outputs(batch)),
            Output::Generator(output) => gradients.push(output.take_gradients(&rows[1], WIDTH)),
            Output::Shared => {}
        }
        (done, gradients)
    }

    /// The gradients of output vectors, by ascending words.
    fn gradients_of_outputs(&self, batch: &Batch) -> Vec<f32> {
        let (dim, stride) = (self.settings.dim, Linear::stride(self.settings.dim));
        let mut ordered: Vec<usize> = (0..batch.outputs.words.len()).collect();
        ordered.sort_unstable_by_key(|&at| batch.outputs.words[at]);
        let of_word = |at: usize| &self.gradients[0].of_outputs[at * stride..][..dim];
        ordered.into_iter().flat_map(of_word).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spelling::settings::Outputs;
    use crate::spelling::tests::{ALL_WORDS, new, sentences};
    use crate::spelling::weights::Weights;

    const ALL: [Outputs; 3] = [Outputs::Table, Outputs::Generator, Outputs::Shared];

    /// All values, one weight after another.
    fn flat(weights: &Weights) -> Vec<f32> {
        weights.all().concat()
    }

    /// Values of all rows of all tables, each with its own.
    fn all_rows(training: &SpellingTraining, value: impl Fn(usize) -> f32) -> (Vec<Vec<u32>>, Vec<Vec<f32>>) {
        let of = |TableSizes { n_rows, dim }: TableSizes| {
            ((0..n_rows as u32).collect(), (0..n_rows * dim).map(&value).collect())
        };
        training.tables().into_iter().map(of).unzip()
    }

    #[test]
    fn rows_are_differences_from_the_first_weights_in_their_order() {
        for outputs in ALL {
            let mut training = new(outputs, 1);
            let first = (training.vectors(&ALL_WORDS), training.outputs(&ALL_WORDS));
            let weights = flat(&training.input.weights);
            let of_output = match &training.output {
                Output::Generator(output) => Some(flat(&output.weights)),
                Output::Table(_) | Output::Shared => None,
            };
            let (rows, values) = all_rows(&training, |at| (at % 8191) as f32 / 16.0);
            training.write_rows(&rows, &values);
            let check = |found: &Weights, first: &[f32], values: &[f32]| {
                let found = flat(found);
                assert!(values.len() - found.len() < WIDTH);
                let differences = first.iter().zip(values).map(|(first, value)| first + value);
                assert!(found.into_iter().eq(differences), "{outputs:?}");
            };
            check(&training.input.weights, &weights, &values[0]);
            match (&training.output, of_output) {
                (Output::Generator(output), Some(first)) => check(&output.weights, &first, &values[1]),
                (Output::Table(table), _) => assert_eq!(table.all(), values[1]),
                _ => assert_eq!(values.len(), 1),
            }
            // Some rows only.
            training.write_rows(&[vec![1], vec![1]][..rows.len()], &vec![vec![0.5; WIDTH]; rows.len()]);
            let mut expected = values[0].clone();
            expected[WIDTH..2 * WIDTH].fill(0.5);
            check(&training.input.weights, &weights, &expected);
            let (rows, zeros) = all_rows(&training, |_| 0.0);
            training.write_rows(&rows, &zeros);
            assert_eq!((training.vectors(&ALL_WORDS), training.outputs(&ALL_WORDS)), first, "{outputs:?}");
        }
    }

    #[test]
    fn gradients_of_rows_are_those_of_the_step() {
        let distribution = Distribution::new(&[150; 8], 1, 0.75, 0.0);
        for outputs in ALL {
            let (mut training, mut other) = (new(outputs, 1), new(outputs, 1));
            let drawn = training.draw(&sentences(), &distribution, 3);
            let rows = training.rows(&drawn);
            // Vectors of zeros would have no gradients.
            let (all, values) = all_rows(&training, |at| (at % 7) as f32 / 70.0);
            training.write_rows(&all, &values);
            other.write_rows(&all, &values);
            let (_, found) = training.gradients(&drawn, &rows);
            other.differentiate(&drawn.batch);
            let check = |found: &[f32], learner: &Learner| {
                let expected = flat(&learner.gradients);
                let (found, padding) = found.split_at(expected.len());
                assert!(found == expected && expected.iter().any(|value| *value != 0.0), "{outputs:?}");
                assert!(padding.iter().all(|value| *value == 0.0));
            };
            check(&found[0], &other.input);
            match &other.output {
                Output::Generator(output) => check(&found[1], output),
                Output::Table(_) => {
                    let dim = other.settings.dim;
                    assert!(rows[1].is_sorted() && found[1].len() == rows[1].len() * dim);
                    for (word, found) in rows[1].iter().zip(found[1].chunks_exact(dim)) {
                        let at = drawn.batch.outputs.words.iter().position(|other| other == word).unwrap();
                        assert_eq!(found, &other.gradients[0].of_outputs[at * Linear::stride(dim)..][..dim]);
                    }
                }
                Output::Shared => {}
            }
            // The gradients of the next step begin at 0.
            assert!(flat(&training.input.gradients).iter().all(|value| *value == 0.0));
        }
    }
}

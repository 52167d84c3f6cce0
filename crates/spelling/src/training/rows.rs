//! The values of a training as rows of tables that several processes share, and the gradients of the rows of a step.
//!
//! The rows of a generator are its weights one after another, as differences from the first ones, which every process
//! draws. Here the optimizer is that of the tables.

use kernels::Linear;
use skipgram::{Distribution, Done, Sentences};

use super::{Output, Training};
use crate::adam::Learner;
use crate::batches::{Batch, Part};
use crate::settings::Settings;

/// Values per row of a generator.
const WIDTH: usize = 256;

/// A table, whose first values are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Its name.
    pub name: &'static str,
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

impl Training {
    /// The tables of the rows.
    pub fn tables(&self) -> Vec<TableSizes> {
        let of = |name, learner: &Learner| TableSizes { name, n_rows: learner.n_rows(WIDTH), dim: WIDTH };
        let output = match &self.output {
            Output::Table(_) => {
                let n_rows = self.words.ends.len();
                Some(TableSizes { name: "outputs", n_rows, dim: self.settings.dim })
            }
            Output::Generator(output) => Some(of("output-weights", output)),
            Output::Shared => None,
        };
        std::iter::once(of("weights", &self.input)).chain(output).collect()
    }

    /// Draws the windows and samples of all positions of some sentences. `number` determines the random numbers, together
    /// with the seed.
    pub fn draw(&self, sentences: &Sentences, distribution: &Distribution, number: u64) -> Drawn {
        let settings = Settings { batch: usize::MAX, ..self.settings.clone() };
        let part = Part::new(sentences, distribution, number, &settings);
        let mut batch = Batch::new(self.words.ends.len());
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

    /// Computes the gradients of the mean loss of the positions, of their [`Training::rows`].
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

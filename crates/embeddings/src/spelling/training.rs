//! Trains a generator on sentences, in batches.

use std::sync::Arc;

use crate::skipgram::{Decay, Distribution, Done, Sentences, Vocabulary};
use kernels::{Adam, Linear, Team};

use crate::spelling::adam::{Learner, Table};
use crate::spelling::batches::{Batch, Part};
use crate::spelling::characters::{Characters, GrowingCharacters};
use crate::spelling::generator::{Generator, team, vectors};
use crate::spelling::scores::{self, Gradients, Vectors};
use crate::spelling::settings::{Outputs, SpellingSettings};
use crate::spelling::weights::Sizes;

#[cfg(test)]
mod gradients;
mod growing;
mod shared_tables;

pub use shared_tables::{Drawn, TableSizes};

/// β of Adam's moments. The vectors depend on their bits as 32-bit floats.
const BETAS: [f32; 2] = [0.9, 0.999];

/// A training: the generators, and the number of tokens so far.
pub struct SpellingTraining {
    settings: SpellingSettings,
    team: Arc<Team>,
    pub(crate) characters: GrowingCharacters,
    /// The ids of the words of the vocabulary.
    words: Vec<Vec<i64>>,
    input: Learner,
    output: Output,
    batch: Batch,
    /// One per thread.
    gradients: Vec<Gradients>,
    pub(crate) n_tokens: u64,
    pub(crate) n_steps: u64,
}

enum Output {
    Table(Table),
    Generator(Box<Learner>),
    Shared,
}

impl SpellingTraining {
    /// A training of the vectors of the words of a vocabulary.
    pub fn new(settings: SpellingSettings, vocabulary: &Vocabulary, n_threads: usize) -> Self {
        let characters = Characters::count(vocabulary.iter());
        let words = vocabulary.iter().map(|(word, _)| characters.ids(word)).collect();
        let n_ids = characters.n_ids();
        let characters = GrowingCharacters { numbered: characters, ..GrowingCharacters::default() };
        Self::of(settings, characters, n_ids, words, n_threads)
    }

    fn of(
        settings: SpellingSettings,
        characters: GrowingCharacters,
        n_ids: usize,
        words: Vec<Vec<i64>>,
        n_threads: usize,
    ) -> Self {
        let team = team(n_threads);
        let &SpellingSettings { char_dim, hidden, dim, seed, .. } = &settings;
        let sizes = Sizes { ids: n_ids, char_dim, hidden, dim };
        let output = match settings.outputs {
            Outputs::Table => Output::Table(Table::new(words.len(), dim)),
            Outputs::Generator => Output::Generator(Box::new(Learner::new(sizes, seed, 1, &team))),
            Outputs::Shared => Output::Shared,
        };
        Self {
            input: Learner::new(sizes, seed, 0, &team),
            output,
            batch: Batch::default(),
            gradients: (0..team.n_threads()).map(|_| Gradients::default()).collect(),
            words,
            characters,
            team,
            settings,
            n_tokens: 0,
            n_steps: 0,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &SpellingSettings {
        &self.settings
    }

    /// The characters of the vocabulary.
    pub fn characters(&self) -> &Characters {
        &self.characters.numbered
    }

    /// Number of tokens so far.
    pub fn n_tokens(&self) -> u64 {
        self.n_tokens
    }

    /// Continues after this number of tokens.
    pub fn set_n_tokens(&mut self, n_tokens: u64) {
        self.n_tokens = n_tokens;
    }

    /// Splits sentences into batches. `number` determines the random numbers, together with the seed.
    pub fn part(&self, sentences: &Sentences, distribution: &Distribution, number: u64) -> Part {
        Part::new(sentences, distribution, number, &self.settings)
    }

    /// Trains on a batch of a part.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn step(&mut self, part: &Part, batch: usize, distribution: &Distribution, decay: Decay) -> Done {
        assert!(batch < part.n_batches(), "no such batch");
        let mut drawn = std::mem::take(&mut self.batch);
        drawn.draw(part, batch, distribution, &self.settings);
        let rate = decay.rate(self.settings.rate, self.n_tokens);
        self.n_steps += 1;
        self.differentiate(&drawn);
        self.update(&drawn, &Adam::at(self.n_steps, rate.into(), BETAS.map(f64::from)));
        self.batch = drawn;
        let before = if batch == 0 { 0 } else { part.n_tokens_to(batch - 1) };
        let n_tokens = part.n_tokens_to(batch) - before;
        self.n_tokens += n_tokens;
        Done { n_tokens, n_pairs: self.batch.n_pairs, loss: self.gradients[0].loss }
    }

    /// Computes the gradients of the loss of the batch: the mean over its positions, so that they do not depend on its
    /// size.
    fn differentiate(&mut self, batch: &Batch) {
        let Self { team, words, input, output, gradients, settings, .. } = self;
        let stride = Linear::stride(settings.dim);
        let ids = |numbers: &[u32]| {
            numbers.iter().map(|&word| &words[word as usize][..]).collect::<Vec<_>>().into_iter()
        };
        let scale = 1.0 / batch.positions.len() as f32;
        let sum = |gradients: &mut [Gradients], inputs: &[f32], outputs: &[f32]| {
            scores::gradients(team, batch, Vectors { inputs, outputs, stride }, scale, gradients);
        };
        match output {
            Output::Table(table) => {
                let inputs = input.vectors(ids(&batch.inputs.words));
                sum(gradients, &inputs, table.vectors(&batch.outputs.words));
                input.back(&gradients[0].of_inputs);
            }
            Output::Generator(output) => {
                let inputs = input.vectors(ids(&batch.inputs.words));
                let outputs = output.vectors(ids(&batch.outputs.words));
                sum(gradients, &inputs, &outputs);
                output.back(&gradients[0].of_outputs);
                input.back(&gradients[0].of_inputs);
            }
            Output::Shared => {
                let all = [&batch.inputs.words[..], &batch.outputs.words].concat();
                let vectors = input.vectors(ids(&all));
                let (inputs, outputs) = vectors.split_at(batch.inputs.words.len() * stride);
                sum(gradients, inputs, outputs);
                input.back(&[&gradients[0].of_inputs[..], &gradients[0].of_outputs].concat());
            }
        }
    }

    /// Updates weights and table by the gradients.
    fn update(&mut self, batch: &Batch, rule: &Adam) {
        let Self { team, input, output, gradients, .. } = self;
        input.update(team, rule);
        match output {
            Output::Table(table) => {
                table.update(team, &batch.outputs.words, &mut gradients[0].of_outputs, rule);
            }
            Output::Generator(output) => output.update(team, rule),
            Output::Shared => {}
        }
    }

    /// The vectors `[words, D]` of words of the vocabulary.
    pub fn vectors(&mut self, words: &[u32]) -> Vec<f32> {
        let ids = words.iter().map(|&word| &self.words[word as usize][..]);
        vectors(&mut self.input.engine, &self.input.weights, ids)
    }

    /// The output vectors `[words, D]` of words of the vocabulary.
    pub fn outputs(&mut self, words: &[u32]) -> Vec<f32> {
        let dim = self.settings.dim;
        let ids = words.iter().map(|&word| &self.words[word as usize][..]);
        match &mut self.output {
            Output::Table(table) => {
                words.iter().flat_map(|&word| &table.all()[word as usize * dim..][..dim]).copied().collect()
            }
            Output::Generator(output) => vectors(&mut output.engine, &output.weights, ids),
            Output::Shared => self.vectors(words),
        }
    }

    /// The generator of the vectors.
    pub fn generator(&self) -> Generator {
        let characters = self.characters().clone();
        let weights = self.input.weights.clone().of_first(characters.n_ids());
        Generator::new(characters, weights)
    }

    /// All values that change.
    pub(crate) fn state(&mut self) -> Vec<&mut Vec<f32>> {
        let of_output: Vec<&mut Vec<f32>> = match &mut self.output {
            Output::Table(table) => table.state().collect(),
            Output::Generator(output) => output.state().collect(),
            Output::Shared => Vec::new(),
        };
        self.input.state().chain(of_output).collect()
    }
}

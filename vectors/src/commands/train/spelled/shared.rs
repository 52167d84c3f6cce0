//! `--model char-lstm` on several processes: gradients of weights and output vectors, to which the tables apply Adagrad.

use std::io::Write;

use embeddings::skipgram::{Decay, Done, Vocabulary, Work};
use embeddings::spelling::{Drawn, SpellingTraining, TableSizes};
use parameters::{Initial, Optimizer, Server, Spec, Tables};
use serde_json::{Map, Value};
use training::texts_out::TextsOut;
use training::{Error, Result};

use crate::arguments::Train;
use crate::commands::train::comparisons::Comparisons;
use crate::commands::train::model::{Model, TABLES};
use crate::commands::train::out::Vectors;
use crate::commands::train::progress::Progress;
use crate::commands::train::settings::{Processes, spelling_settings, written};

/// A training whose weights and output vectors several processes share.
pub(in crate::commands::train) struct SharedTraining {
    training: SpellingTraining,
    /// Number of pairs since the loss was taken, and its sum.
    recent: (u64, f64),
}

impl SharedTraining {
    pub(in crate::commands::train) fn new(arguments: &Train, vocabulary: &Vocabulary) -> Result<Self> {
        let settings = spelling_settings(arguments, Processes::Several);
        Ok(Self { training: SpellingTraining::new(settings, vocabulary, 1), recent: (0, 0.0) })
    }
}

impl Model for SharedTraining {
    type Work = Drawn;

    fn settings_written(&self) -> Result<Map<String, Value>> {
        written(self.training.settings())
    }

    fn sampling(&self) -> [f64; 2] {
        [self.training.settings().power, self.training.settings().sample]
    }

    fn specs(&self, content: &str) -> Vec<Spec> {
        let of = |(name, TableSizes { n_rows, dim }): (&str, TableSizes)| Spec {
            name: name.to_owned(),
            n_rows: n_rows as u64,
            dim: dim as u32,
            initial: Initial::Zero,
            optimizer: Optimizer::Adagrad { rate: self.training.settings().rate },
            content: content.to_owned(),
            min_count: 0,
        };
        TABLES.into_iter().zip(self.training.tables()).map(of).collect()
    }

    fn work_on(&self, Work { sentences, distribution, number, .. }: Work) -> Drawn {
        self.training.draw(&sentences, &distribution, number)
    }

    fn rows_of(&self, work: &Drawn) -> Vec<Vec<u32>> {
        self.training.rows(work)
    }

    fn write(&mut self, rows: &[Vec<u32>], values: &[Vec<f32>]) {
        self.training.write_rows(rows, values);
    }

    /// Gradients. The rate of Adagrad decreases by itself.
    fn train(
        &mut self,
        works: &[Drawn],
        rows: &[Vec<u32>],
        _: &[Vec<f32>],
        _: Decay,
    ) -> Result<(Done, Vec<Vec<f32>>)> {
        let [work] = works else { return Err(Error::internal(&"gradients of several steps")) };
        let (done, gradients) = self.training.gradients(work, rows);
        self.recent = (self.recent.0 + done.loss.0, self.recent.1 + done.loss.1);
        Ok((done, gradients))
    }

    /// The rows with the state of Adagrad, which only the server has.
    fn save_shared(&self, server: &Server, out: &mut TextsOut, _: &Vocabulary, place: &[u8]) -> Result<()> {
        let state = server.save(place)?;
        out.save(|file| file.write_all(&state))
    }

    fn restore_shared(
        &mut self,
        tables: &mut Tables,
        state: &[u8],
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        check(Tables::place(state)?)?;
        Ok(tables.restore(state)?)
    }

    fn n_tokens(&self) -> u64 {
        self.training.n_tokens()
    }

    fn set_n_tokens(&mut self, n_tokens: u64) {
        self.training.set_n_tokens(n_tokens);
    }

    fn take_loss(&mut self) -> Option<f64> {
        let (n, sum) = std::mem::take(&mut self.recent);
        (n > 0).then(|| sum / n as f64)
    }

    fn compare(&self, comparisons: &mut Comparisons, vocabulary: &Vocabulary, progress: &mut Progress) {
        comparisons.compare_spelled(&self.training, vocabulary, progress);
    }

    fn into_vectors(self) -> Vectors {
        Vectors::Spelled(Box::new(self.training))
    }
}

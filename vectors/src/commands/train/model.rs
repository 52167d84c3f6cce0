//! Models whose rows several processes share: parameter servers hold them.

use embeddings::skipgram::{
    Decay, Distribution, Done, SkipGramTraining, Subwords, Table, TableRows, Vocabulary, Work,
};
use parameters::{Initial, Optimizer, Read, Server, Spec, Tables, Update};
use program::exit::{Exit, Failed};
use report::whole;
use serde_json::{Map, Value};
use training::texts_out::TextsOut;
use training::{Error, Result};

use super::comparisons::Comparisons;
use super::out::{self, Vectors};
use super::progress::Progress;
use super::settings::{skip_gram_settings, written};
use crate::arguments::Train;

/// Names of the tables of input and output vectors, or of the weights of their generators, and of the rows of character
/// n-grams. All models have the first one, so that workers with different models are refused before they create a table.
pub(super) const TABLES: [&str; 3] = ["inputs", "outputs", "ngrams"];

/// A model that is trained in steps. A step reads rows of tables, trains, and returns what is pushed for these rows.
pub(super) trait Model {
    /// What a step trains on.
    type Work;

    /// The settings that affect the vectors.
    fn settings_written(&self) -> Result<Map<String, Value>>;

    /// The exponent of counts in the distribution of negative samples, and the subsampling threshold.
    fn sampling(&self) -> [f64; 2];

    /// The distribution of negative samples.
    fn distribution(&self, vocabulary: &Vocabulary) -> Distribution {
        let [power, sample] = self.sampling();
        Distribution::new(&vocabulary.counts(), 1, power, sample)
    }

    /// The character n-grams of the words, of a model that has some.
    fn subwords(&self, _: &Vocabulary) -> Option<Subwords> {
        None
    }

    /// The tables, with this content.
    fn specs(&self, content: &str) -> Vec<Spec>;

    /// The work of a step on these sentences.
    fn work_on(&self, sentences: Work) -> Self::Work;

    /// The rows that a step reads and changes, ascending, of each table.
    fn rows_of(&self, work: &Self::Work) -> Vec<Vec<u32>>;

    /// Sets rows of each table.
    fn write(&mut self, rows: &[Vec<u32>], values: &[Vec<f32>]);

    /// Trains on rows that were set to the values `before`, step by step. Returns what is pushed for them.
    fn train(
        &mut self,
        works: &[Self::Work],
        rows: &[Vec<u32>],
        before: &[Vec<f32>],
        decay: Decay,
    ) -> Result<(Done, Vec<Vec<f32>>)>;

    /// Saves a checkpoint with bytes of the caller. The model and the server of rank 0 have the same rows.
    fn save_shared(
        &self,
        server: &Server,
        out: &mut TextsOut,
        vocabulary: &Vocabulary,
        place: &[u8],
    ) -> Result<()>;

    /// Reads a checkpoint of the same settings and words into tables. `check` refuses the caller's bytes of another training.
    fn restore_shared(
        &mut self,
        tables: &mut Tables,
        state: &[u8],
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()>;

    /// Number of tokens so far.
    fn n_tokens(&self) -> u64;

    /// Continues after this number of tokens.
    fn set_n_tokens(&mut self, n_tokens: u64);

    /// The mean loss of a pair since the last call.
    fn take_loss(&mut self) -> Option<f64>;

    /// Reads the sentences of `--held-out`, of a model that has such a loss.
    fn read_held_out(&self, _: &Train, _: &Vocabulary, _: &mut Comparisons) -> Result<()> {
        Ok(())
    }

    /// Compares the vectors of this moment, and logs the results.
    fn compare(&self, comparisons: &mut Comparisons, vocabulary: &Vocabulary, progress: &mut Progress);

    /// The vectors.
    fn into_vectors(self) -> Vectors;
}

/// All rows of each table that are among `n` from row `from` on.
pub(super) fn rows_from(specs: &[Spec], from: u64, n: u64) -> Vec<Vec<u32>> {
    let of = |spec: &Spec| (from.min(spec.n_rows) as u32..(from + n).min(spec.n_rows) as u32).collect();
    specs.iter().map(of).collect()
}

/// The reads of rows of each table.
pub(super) fn reads(rows: &[Vec<u32>]) -> Vec<Read> {
    (0..).zip(rows).map(|(table, rows)| Read { table, rows: rows.clone() }).collect()
}

/// The updates of rows of each table.
pub(super) fn updates(rows: Vec<Vec<u32>>, pushed: Vec<Vec<f32>>) -> Vec<Update> {
    let tables = (0..).zip(rows.into_iter().zip(pushed));
    tables.map(|(table, (rows, values))| Update { table, rows, values }).collect()
}

/// Refuses updates of this step, from 1, that are not finite.
pub(super) fn check_finite(updates: &[Update], step: u64) -> Result<()> {
    match updates.iter().flat_map(|update| &update.values).all(|value| value.is_finite()) {
        true => Ok(()),
        false => Err(Error::vectors_diverged(step)),
    }
}

/// Words whose vectors are checked while all are trained. The first ones are frequent, so they diverge first.
pub(super) const CHECKED_WORDS: usize = 1000;

/// Refuses a training whose first `n_words` vectors have a value that no file can have. `epoch`: the current one, from 1.
pub(super) fn check_vectors(training: &SkipGramTraining, n_words: usize, epoch: Option<u32>) -> Result<()> {
    let mut vector = vec![0.0; training.settings().dim];
    let is_sound = |word: u32| {
        training.input().read(word, 0, &mut vector);
        vector.iter().all(embeddings::is_sound)
    };
    match (0..n_words as u32).all(is_sound) {
        true => Ok(()),
        false => Err(diverging(epoch, training.n_tokens())),
    }
}

/// The error of a training that diverged.
pub(super) fn diverging(epoch: Option<u32>, n_tokens: u64) -> Error {
    let epoch = epoch.map_or_else(String::new, |epoch| format!("epoch {epoch}, "));
    let message = format!(
        "{epoch}token {}: the training diverged: a vector is not finite; lower --rate, and start again with --force",
        whole(n_tokens)
    );
    Failed::new(Exit::Settings, message).into()
}

/// A training by skip-gram whose rows, also those of character n-grams, are on servers.
pub(super) fn shared_skip_gram(arguments: &Train, vocabulary: &Vocabulary) -> Result<SkipGramTraining> {
    let training = SkipGramTraining::new(skip_gram_settings(arguments), vocabulary.n_words())?;
    // All processes have the same words, so they number the same rows.
    training.subwords(vocabulary);
    Ok(training)
}

impl Model for SkipGramTraining {
    type Work = Work;

    fn settings_written(&self) -> Result<Map<String, Value>> {
        written(self.settings())
    }

    fn sampling(&self) -> [f64; 2] {
        [self.settings().power, self.settings().sample]
    }

    fn specs(&self, content: &str) -> Vec<Spec> {
        let dim = self.settings().dim;
        let [of_inputs, of_ngrams] =
            self.keys().map(|key| Initial::Uniform { key: key.to_vec(), divisor: dim as f32 });
        let of = |((name, initial), (_, n_rows)): ((&str, Initial), (&Table, u32))| Spec {
            name: name.to_owned(),
            n_rows: n_rows.into(),
            dim: dim as u32,
            initial,
            optimizer: Optimizer::Sum,
            content: content.to_owned(),
            min_count: 0,
        };
        TABLES.into_iter().zip([of_inputs, Initial::Zero, of_ngrams]).zip(tables(self)).map(of).collect()
    }

    fn subwords(&self, vocabulary: &Vocabulary) -> Option<Subwords> {
        self.subwords(vocabulary)
    }

    fn work_on(&self, sentences: Work) -> Work {
        sentences
    }

    fn rows_of(&self, work: &Work) -> Vec<Vec<u32>> {
        let TableRows { input, output, ngrams } = self.rows(work);
        let mut rows = vec![input, output, ngrams];
        rows.truncate(tables(self).len());
        rows
    }

    fn write(&mut self, rows: &[Vec<u32>], values: &[Vec<f32>]) {
        for (((table, _), rows), values) in tables(self).into_iter().zip(rows).zip(values) {
            for (row, values) in rows.iter().zip(values.chunks_exact(table.dim())) {
                table.write(*row, 0, values);
            }
        }
    }

    /// The differences of rows to their values before the steps.
    fn train(
        &mut self,
        works: &[Work],
        rows: &[Vec<u32>],
        before: &[Vec<f32>],
        decay: Decay,
    ) -> Result<(Done, Vec<Vec<f32>>)> {
        let mut done = Done::default();
        for work in works {
            done.add(&self.run_once(decay, work)?);
        }
        let mut after = vec![0.0; self.settings().dim];
        let mut differences = |table: &Table, rows: &[u32], before: &[f32]| {
            let mut values: Vec<f32> = Vec::with_capacity(before.len());
            for (row, before) in rows.iter().zip(before.chunks_exact(table.dim())) {
                table.read(*row, 0, &mut after);
                values.extend(after.iter().zip(before).map(|(after, before)| after - before));
            }
            values
        };
        let tables = tables(self).into_iter().zip(rows.iter().zip(before));
        let changed = tables.map(|((table, _), (rows, before))| differences(table, rows, before));
        Ok((done, changed.collect()))
    }

    fn save_shared(
        &self,
        _: &Server,
        out: &mut TextsOut,
        vocabulary: &Vocabulary,
        place: &[u8],
    ) -> Result<()> {
        out::save(out, self, vocabulary, place)
    }

    fn restore_shared(
        &mut self,
        shared: &mut Tables,
        mut state: &[u8],
        check: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let (_, place) = self.restore(self.input().n_rows(), &mut state)?;
        check(&place)?;
        let mut values = vec![0.0; self.settings().dim];
        for (number, (table, n_rows)) in (0..).zip(tables(self)) {
            for row in 0..n_rows {
                table.read(row, 0, &mut values);
                shared.set(number, row, &values)?;
            }
        }
        Ok(())
    }

    fn n_tokens(&self) -> u64 {
        Self::n_tokens(self)
    }

    fn set_n_tokens(&mut self, n_tokens: u64) {
        Self::set_n_tokens(self, n_tokens);
    }

    fn take_loss(&mut self) -> Option<f64> {
        Self::take_loss(self)
    }

    fn read_held_out(
        &self,
        arguments: &Train,
        vocabulary: &Vocabulary,
        comparisons: &mut Comparisons,
    ) -> Result<()> {
        comparisons.read_held_out(arguments, self, vocabulary)
    }

    fn compare(&self, comparisons: &mut Comparisons, vocabulary: &Vocabulary, progress: &mut Progress) {
        comparisons.compare_tables(self, vocabulary, progress);
    }

    fn into_vectors(self) -> Vectors {
        Vectors::Table(Box::new(self))
    }
}

/// The tables of the rows, and their numbers of rows. Words may have no character n-grams.
fn tables(training: &SkipGramTraining) -> Vec<(&Table, u32)> {
    let n_words = training.input().n_rows() as u32;
    let sizes = [n_words, n_words, training.n_ngram_rows()];
    training.tables().into_iter().zip(sizes).filter(|(_, n_rows)| *n_rows > 0).collect()
}

//! The loss of sentences that a training does not learn from.

use program::random::Random;

use crate::skipgram::draws::{Draws, Position, SENTENCES};
use crate::skipgram::kernel::PROBABILITY_MIN;
use crate::skipgram::training::{SkipGramTraining, Work};

impl SkipGramTraining {
    /// The mean loss of a pair with its negative samples, as [`crate::skipgram::Done::loss`], of all positions of some work. Windows
    /// and samples depend on the seed and the number of the work only. `None` without pairs.
    pub fn held_out_loss(&self, work: &Work) -> Option<f64> {
        if work.distribution.is_empty() {
            return None;
        }
        let mut random = Random::of(&[SENTENCES, self.settings().seed, work.number]);
        let mut draws = Draws::default();
        let (mut n_positions, mut sum) = (0u64, 0.0);
        let dim = self.settings().dim;
        let (mut word_vector, mut target) = (vec![0.0; dim], vec![0.0; dim]);
        let mut position = |position: Position<'_>| {
            let (before, after) = position.around(position.words);
            let n_words = before.len() + after.len();
            if n_words == 0 {
                return;
            }
            let mut loss = 0.0;
            for &word in before.iter().chain(after) {
                let rows = work.subwords.as_ref().map_or(&[][..], |subwords| subwords.rows(word));
                self.read_vector(word, rows, &mut word_vector);
                let targets = std::iter::once((position.word(), 1.0));
                for (row, sign) in targets.chain(position.samples.iter().map(|&sample| (sample, -1.0))) {
                    self.output().read(row, 0, &mut target);
                    let product: f64 = word_vector.iter().zip(&target).map(|(a, b)| f64::from(a * b)).sum();
                    let probability = 1.0 / (1.0 + (-sign * product).exp());
                    loss -= probability.max(f64::from(PROBABILITY_MIN)).ln();
                }
            }
            n_positions += 1;
            sum += loss / n_words as f64;
        };
        for sentence in work.sentences.iter() {
            let settings = self.settings();
            draws.sentence(settings, sentence, &work.distribution, &mut random, |_| (), &mut position);
        }
        (n_positions > 0).then(|| sum / n_positions as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::skipgram::{
        Decay, Distribution, NgramBuckets, Sentences, SkipGramSettings, SkipGramTraining, Vocabulary, Work,
    };

    fn work(vocabulary: &Vocabulary, training: &SkipGramTraining) -> Work {
        let mut sentences = Sentences::default();
        (0..500).for_each(|n| sentences.push((0..12).map(|at| (n * 7 + at * at) % 30), 12));
        Work {
            sentences: Arc::new(sentences),
            distribution: Arc::new(Distribution::new(&vocabulary.counts(), 1, 0.75, 0.0)),
            subwords: training.subwords(vocabulary).map(Arc::new),
            number: 3,
        }
    }

    fn vocabulary() -> Vocabulary {
        let words: Vec<String> = (0..30).map(|n| format!("word{n}")).collect();
        Vocabulary::of(30, words.iter().map(|word| (word.as_bytes(), 9)), 0, 0)
    }

    #[test]
    fn before_a_training_each_pair_is_a_guess_and_the_loss_decreases() {
        for characters in [None, Some(NgramBuckets { min: 3, max: 4, buckets: 100 })] {
            let settings = SkipGramSettings {
                dim: 16,
                min_count: 1,
                sample: 0.0,
                characters,
                ..SkipGramSettings::default()
            };
            let vocabulary = vocabulary();
            let training = SkipGramTraining::new(settings, 30).unwrap();
            (0..30).for_each(|word| training.draw(word));
            let work = work(&vocabulary, &training);
            // Output vectors are 0: the probability of a word and of each of five samples is 1/2.
            let guess = 6.0 * 2f64.ln();
            assert!((training.held_out_loss(&work).unwrap() - guess).abs() < 1e-9);
            training.run_once(Decay::Constant, &work).unwrap();
            let found = training.held_out_loss(&work).unwrap();
            assert!(found < guess - 0.1, "{found}");
        }
    }

    #[test]
    fn it_is_the_loss_that_a_training_without_a_rate_reports() {
        let vocabulary = vocabulary();
        let of_rate = |rate| SkipGramSettings {
            dim: 16,
            min_count: 1,
            sample: 0.0,
            rate,
            ..SkipGramSettings::default()
        };
        let run =
            |training: &SkipGramTraining, work: &Work| training.run_once(Decay::Constant, work).unwrap();
        let training = SkipGramTraining::new(of_rate(0.5), 30).unwrap();
        (0..30).for_each(|word| training.draw(word));
        let work = work(&vocabulary, &training);
        run(&training, &work);
        // The same vectors with a rate that hardly changes them.
        let still = SkipGramTraining::new(of_rate(1e-6), 30).unwrap();
        for (from, to) in [(training.input(), still.input()), (training.output(), still.output())] {
            let mut values = vec![0.0; 16];
            for row in 0..30 {
                from.read(row, 0, &mut values);
                to.write(row, 0, &values);
            }
        }
        let (expected, found) = (still.held_out_loss(&work).unwrap(), run(&still, &work).loss().unwrap());
        // A training computes the loss of some positions only.
        assert!((expected - found).abs() < 0.15, "{expected} {found}");
    }
}

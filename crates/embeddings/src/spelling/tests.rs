//! Trainings, as a caller runs them.

use crate::skipgram::{Decay, Distribution, Sentences, Vocabulary};

use crate::spelling::{Outputs, SpellingSettings, SpellingTraining};

/// Words of two topics, with one stem each.
const WORDS: [&str; 8] = ["brewing", "brewed", "brewer", "brews", "storied", "stories", "storyline", "story"];
/// Their numbers.
pub(crate) const ALL_WORDS: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
const EPOCHS: u64 = 12;

fn settings(outputs: Outputs) -> SpellingSettings {
    SpellingSettings {
        dim: 20,
        char_dim: 8,
        hidden: 32,
        outputs,
        batch: 128,
        rate: 0.01,
        sample: 0.0,
        ..SpellingSettings::default()
    }
}

/// Sentences of words of one topic.
pub(crate) fn sentences() -> Sentences {
    let mut sentences = Sentences::default();
    for at in 0..150u32 {
        let topic = 4 * (at % 2);
        sentences.push((0..8).map(|word| topic + (at * 7 + word * word + word) % 4), 8);
    }
    sentences
}

pub(crate) fn new(outputs: Outputs, n_threads: usize) -> SpellingTraining {
    let words = WORDS.iter().map(|word| (word.as_bytes(), 150));
    SpellingTraining::new(settings(outputs), &Vocabulary::of(8, words, 1200, 0), n_threads)
}

/// Trains from a step on; stops before another one.
fn train(training: &mut SpellingTraining, steps: std::ops::Range<u64>) -> Option<f64> {
    let (sentences, distribution) = (sentences(), Distribution::new(&[150; 8], 1, 0.75, 0.0));
    let decay = Decay::Linear { n_tokens: EPOCHS * sentences.n_tokens() };
    let mut number = 0;
    let mut loss = None;
    for epoch in 0..EPOCHS {
        let part = training.part(&sentences, &distribution, epoch);
        for batch in 0..part.n_batches() {
            if steps.contains(&number) {
                loss = training.step(&part, batch, &distribution, decay).loss();
            }
            number += 1;
        }
    }
    loss
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn words_that_never_occurred_are_near_words_of_their_spelling() {
    for outputs in [Outputs::Table, Outputs::Generator, Outputs::Shared] {
        let mut training = new(outputs, 2);
        let first = train(&mut training, 0..1).unwrap();
        let last = train(&mut training, 1..u64::MAX).unwrap();
        assert!(last < first, "{outputs:?}: loss {first}, then {last}");
        assert_eq!(training.n_tokens(), EPOCHS * 1200);
        let generator = training.generator();
        let [brew, story] = ["brewd", "storry"].map(|word| generator.vector(word.as_bytes()));
        let all = training.vectors(&ALL_WORDS);
        let mean = |vector: &[f32], from: usize| {
            let topic = all.chunks_exact(20).skip(from).take(4);
            topic.map(|word| cosine(vector, word)).sum::<f32>() / 4.0
        };
        // A shared generator also has to tell a word from the others of its topic, which are samples.
        let margin = if outputs == Outputs::Shared { 0.0 } else { 0.3 };
        for (vector, own, other) in [(&brew, 0, 4), (&story, 4, 0)] {
            let (own, other) = (mean(vector, own), mean(vector, other));
            assert!(own > other + margin, "{outputs:?}: {own} {other}");
        }
        assert_eq!(training.outputs(&ALL_WORDS).len(), all.len());
    }
}

#[test]
fn a_restored_training_ends_with_the_same_bits() {
    for outputs in [Outputs::Table, Outputs::Generator, Outputs::Shared] {
        let mut whole = new(outputs, 2);
        train(&mut whole, 0..u64::MAX);
        let mut first = new(outputs, 2);
        train(&mut first, 0..37);
        let mut state = Vec::new();
        first.save(b"step 37", &mut state).unwrap();
        let mut rest = new(outputs, 2);
        assert_eq!(rest.restore(&mut &state[..]).unwrap(), b"step 37");
        train(&mut rest, 37..u64::MAX);
        assert_eq!(rest.vectors(&ALL_WORDS), whole.vectors(&ALL_WORDS), "{outputs:?}");
        assert_eq!(rest.outputs(&ALL_WORDS), whole.outputs(&ALL_WORDS), "{outputs:?}");
    }
}

#[test]
fn a_damaged_state_is_refused() {
    let mut training = new(Outputs::Table, 1);
    let mut state = Vec::new();
    training.save(b"", &mut state).unwrap();
    let refused = |state: &[u8], training: &mut SpellingTraining| {
        std::error::Error::source(&training.restore(&mut &state[..]).unwrap_err()).unwrap().to_string()
    };
    assert!(refused(&state, &mut new(Outputs::Shared, 1)).contains("other sizes or words"));
    for at in [40, state.len() / 2, state.len() - 1] {
        let mut damaged = state.clone();
        damaged[at] ^= 1;
        assert!(refused(&damaged, &mut training).contains("the file is damaged"), "byte {at}");
    }
    assert!(!refused(&state[..state.len() - 9], &mut training).is_empty());
    state.push(0);
    assert!(refused(&state, &mut training).contains("the file is damaged"));
}

/// Trains by gradients of rows, which Adagrad applies to the rows of all tables.
fn train_rows(training: &mut SpellingTraining, steps: std::ops::Range<u64>) -> Vec<f64> {
    let (sentences, distribution) = (sentences(), Distribution::new(&[150; 8], 1, 0.75, 0.0));
    let tables = training.tables();
    let mut values: Vec<Vec<[f32; 2]>> = tables.iter().map(|of| vec![[0.0; 2]; of.n_rows * of.dim]).collect();
    let mut losses = Vec::new();
    for number in steps {
        let drawn = training.draw(&sentences, &distribution, number);
        let rows = training.rows(&drawn);
        let read = |(at, rows): (usize, &Vec<u32>)| {
            let dim = tables[at].dim;
            let of_row = |row: &u32| values[at][*row as usize * dim..][..dim].iter().map(|[value, _]| *value);
            rows.iter().flat_map(of_row).collect()
        };
        let read: Vec<Vec<f32>> = rows.iter().enumerate().map(read).collect();
        training.write_rows(&rows, &read);
        let (done, gradients) = training.gradients(&drawn, &rows);
        losses.push(done.loss().unwrap());
        for (at, (rows, gradients)) in rows.iter().zip(&gradients).enumerate() {
            let dim = tables[at].dim;
            for (row, gradients) in rows.iter().zip(gradients.chunks_exact(dim)) {
                let values = values[at][*row as usize * dim..][..dim].iter_mut();
                for ([value, sum], gradient) in values.zip(gradients) {
                    *sum += gradient * gradient;
                    *value -= 0.05 * gradient / (sum.sqrt() + 1e-8);
                }
            }
        }
    }
    losses
}

#[test]
fn rows_that_another_optimizer_changes_are_trained() {
    for outputs in [Outputs::Table, Outputs::Generator, Outputs::Shared] {
        let mut training = new(outputs, 1);
        let losses = train_rows(&mut training, 0..40);
        assert!(losses[39] < 0.9 * losses[0], "{outputs:?}: {losses:?}");
        assert_eq!(training.n_tokens(), 40 * 1200);
        assert_eq!(training.tables().len(), if outputs == Outputs::Shared { 1 } else { 2 });
    }
}

#[test]
fn a_step_without_positions_has_no_rows() {
    let mut training = new(Outputs::Generator, 1);
    let drawn = training.draw(&Sentences::default(), &Distribution::new(&[150; 8], 1, 0.75, 0.0), 0);
    let rows = training.rows(&drawn);
    assert_eq!(rows, [[0u32; 0], []]);
    let (done, gradients) = training.gradients(&drawn, &rows);
    assert_eq!((done.loss(), gradients), (None, vec![Vec::new(), Vec::new()]));
}

//! Compares the gradients of a step with finite differences of its loss, in plain 64-bit code.

use super::*;

const SIZES: Sizes = Sizes { ids: 0, char_dim: 5, hidden: 16, dim: 9 };
const WORDS: [&str; 12] = [
    "дом",
    "дома",
    "мода",
    "a",
    "ab",
    "ba",
    "abba",
    "été",
    "té",
    "猫",
    "猫a",
    "a-very-long-word-of-many-letters",
];

type Wide = [Vec<f64>; 7];

fn training(outputs: Outputs, n_threads: usize) -> (SpellingTraining, Distribution) {
    let settings = SpellingSettings {
        dim: SIZES.dim,
        char_dim: SIZES.char_dim,
        hidden: SIZES.hidden,
        outputs,
        batch: 100,
        window: 3,
        negatives: 7,
        ..SpellingSettings::default()
    };
    let counts: Vec<u64> = (1..=WORDS.len() as u64).collect();
    let words = WORDS.iter().map(|word| word.as_bytes()).zip(counts.iter().copied());
    let vocabulary = Vocabulary::of(WORDS.len(), words, 100, 0);
    let mut training = SpellingTraining::new(settings, &vocabulary, n_threads);
    // Weights with gradients of a useful size, and output vectors other than 0.
    for values in training.state() {
        for (at, value) in values.iter_mut().enumerate() {
            *value += ((at * 7919 + 13) % 101) as f32 / 400.0 - 0.12;
        }
    }
    let distribution = Distribution::new(&counts, 1, 0.75, 0.0);
    let mut sentences = Sentences::default();
    sentences.push([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 11], 12);
    sentences.push([8, 10, 7, 0], 4);
    let part = training.part(&sentences, &distribution, 1);
    training.batch.draw(&part, 0, &distribution, &training.settings);
    (training, distribution)
}

fn wide(weights: &crate::spelling::Weights) -> Wide {
    weights.all().each_ref().map(|values| values.iter().copied().map(f64::from).collect())
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn dense(weights: &[f64], bias: &[f64], x: &[f64]) -> Vec<f64> {
    let product = |row: &[f64]| row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
    weights.chunks_exact(x.len()).zip(bias).map(|(row, bias)| bias + product(row)).collect()
}

/// The vector of a word.
fn vector([embedding, of_inputs, of_states, one, other, linear, bias]: &Wide, ids: &[i64]) -> Vec<f64> {
    let (mut state, mut cell) = (vec![0.0; SIZES.hidden], vec![0.0; SIZES.hidden]);
    for &id in ids {
        let gates = dense(of_inputs, one, &embedding[id as usize * SIZES.char_dim..][..SIZES.char_dim]);
        let more = dense(of_states, other, &state);
        let gate = |number: usize, unit: usize| {
            let at = number * SIZES.hidden + unit;
            gates[at] + more[at]
        };
        for unit in 0..SIZES.hidden {
            cell[unit] = sigmoid(gate(1, unit)) * cell[unit] + sigmoid(gate(0, unit)) * gate(2, unit).tanh();
            state[unit] = sigmoid(gate(3, unit)) * cell[unit].tanh();
        }
    }
    dense(linear, bias, &state)
}

/// The mean loss of the positions of the batch.
fn loss(training: &SpellingTraining, input: &Wide, output: &dyn Fn(u32) -> Vec<f64>) -> f64 {
    let batch = &training.batch;
    let of_input = |&word: &u32| vector(input, &training.words[word as usize]);
    let inputs_of: Vec<Vec<f64>> = batch.inputs.words.iter().map(of_input).collect();
    let outputs_of: Vec<Vec<f64>> = batch.outputs.words.iter().map(|&word| output(word)).collect();
    let sum: f64 = batch
        .positions
        .iter()
        .map(|position| {
            let rows = &batch.rows[position.begin..][..position.n_targets + position.n_inputs];
            let (targets, inputs) = rows.split_at(position.n_targets);
            let mut sum = 0.0;
            for &row in inputs {
                for (k, &target) in targets.iter().enumerate() {
                    let pair = inputs_of[row as usize].iter().zip(&outputs_of[target as usize]);
                    let score: f64 = pair.map(|(a, b)| a * b).sum();
                    sum -= sigmoid(if k == 0 { score } else { -score }).ln();
                }
            }
            sum
        })
        .sum();
    sum / batch.positions.len() as f64
}

/// Compares the gradients of some values with the slopes of a loss.
fn check(name: &str, gradients: &[f32], loss: impl Fn(usize, f64) -> f64) {
    const STEP: f64 = 1e-5;
    let largest = gradients.iter().fold(0.0, |most, value| f32::max(most, value.abs()));
    for at in (0..gradients.len()).step_by((gradients.len() / 25).max(1)) {
        let slope = (loss(at, STEP) - loss(at, -STEP)) / (2.0 * STEP);
        let difference = (f64::from(gradients[at]) - slope).abs();
        assert!(
            difference <= 2e-5 * f64::from(largest) + 1e-8,
            "{name} at {at}: {} and {slope}, of {largest}",
            gradients[at]
        );
    }
}

fn moved(values: &Wide, which: usize, at: usize, by: f64) -> Wide {
    let mut values = values.clone();
    values[which][at] += by;
    values
}

#[test]
fn gradients_match_finite_differences() {
    for (outputs, n_threads) in
        [Outputs::Table, Outputs::Generator, Outputs::Shared].into_iter().flat_map(|one| [(one, 1), (one, 3)])
    {
        let (mut training, _) = training(outputs, n_threads);
        let batch = std::mem::take(&mut training.batch);
        training.differentiate(&batch);
        training.batch = batch;
        let input = wide(&training.input.weights);
        let names = SIZES.shapes().map(|(name, _)| name);
        let of_input = training.input.gradients.all().clone();
        match &training.output {
            Output::Table(table) => {
                let all: Vec<f64> = table.all().iter().copied().map(f64::from).collect();
                let row = |all: &[f64], word: u32| all[word as usize * SIZES.dim..][..SIZES.dim].to_vec();
                for (which, name) in names.iter().enumerate() {
                    check(name, &of_input[which], |at, by| {
                        loss(&training, &moved(&input, which, at, by), &|word| row(&all, word))
                    });
                }
                let stride = Linear::stride(SIZES.dim);
                for (at, &word) in training.batch.outputs.words.iter().enumerate() {
                    let of_row = &training.gradients[0].of_outputs[at * stride..][..SIZES.dim];
                    check("table", of_row, |at, by| {
                        let mut all = all.clone();
                        all[word as usize * SIZES.dim + at] += by;
                        loss(&training, &input, &|word| row(&all, word))
                    });
                }
            }
            Output::Generator(other) => {
                let output = wide(&other.weights);
                let of_word = |weights: &Wide, word: u32| vector(weights, &training.words[word as usize]);
                for (which, name) in names.iter().enumerate() {
                    check(name, &of_input[which], |at, by| {
                        loss(&training, &moved(&input, which, at, by), &|word| of_word(&output, word))
                    });
                    check(name, &other.gradients.all()[which], |at, by| {
                        let output = moved(&output, which, at, by);
                        loss(&training, &input, &|word| of_word(&output, word))
                    });
                }
            }
            Output::Shared => {
                for (which, name) in names.iter().enumerate() {
                    check(name, &of_input[which], |at, by| {
                        let both = moved(&input, which, at, by);
                        let of_word = |word: u32| vector(&both, &training.words[word as usize]);
                        loss(&training, &both, &of_word)
                    });
                }
            }
        }
    }
}

#[test]
fn the_vector_of_a_word_is_its_own_whatever_the_order_of_lengths() {
    let (mut training, _) = training(Outputs::Generator, 3);
    let weights = wide(&training.input.weights);
    let all = training.vectors(&(0..WORDS.len() as u32).collect::<Vec<_>>());
    let generator = training.generator();
    for (number, found) in all.chunks_exact(SIZES.dim).enumerate() {
        for (found, expected) in found.iter().zip(vector(&weights, &training.words[number])) {
            assert!((f64::from(*found) - expected).abs() < 2e-6, "{number}: {found} {expected}");
        }
        assert_eq!(generator.vector(WORDS[number].as_bytes()), found, "alone: {}", WORDS[number]);
    }
    // In another order, and with an unknown word among them.
    let order = ["猫a", "unbekanntes", "дом", "a-very-long-word-of-many-letters", "a"];
    let found = generator.vectors(order.iter().map(|word| word.as_bytes()), 2);
    for (word, found) in order.iter().zip(found.chunks_exact(SIZES.dim)) {
        assert_eq!(generator.vector(word.as_bytes()), found, "{word}");
    }
}

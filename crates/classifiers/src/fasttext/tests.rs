//! Tests of trainings as a whole, compared with naive formulas in double precision.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::io::Write;
use std::path::Path;

use ::program::random::Random;
use kernels::simd::{Processor, Table, table_bytes};

use super::*;
use crate::builder::Reading;
use crate::error::Error;
use crate::features::{FeatureScratch, Features};
use crate::files::to_program;
use crate::texts::Texts;
use crate::tree::{Paths, Tree};
use crate::words::Words;
use crate::{Classifier, Model};

fn texts_with(lines: &str, reading: Reading) -> Texts {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    crate::read_fasttext_file(file.path(), 2, reading).unwrap()
}

pub(super) fn texts(lines: &str) -> Texts {
    texts_with(lines, Reading::default())
}

pub(super) fn settings() -> FastTextSettings {
    FastTextSettings {
        features: Features { ngrams: 2, buckets: 500, ..Features::default() },
        ..FastTextSettings::default()
    }
}

/// Texts of three labels. Each label has its own words; all share others.
pub(super) fn lines(n_texts: usize) -> String {
    let mut random = Random::of(&[9]);
    let mut lines = String::new();
    for text in 0..n_texts {
        let label = text % 3;
        lines.push_str(&format!("__label__l{label}"));
        for _ in 0..random.bits() % 12 + 3 {
            let word = random.bits() % 40;
            match random.bits() % 2 {
                0 => lines.push_str(&format!(" own{label}x{}", word % 8)),
                _ => lines.push_str(&format!(" word{word}")),
            }
        }
        lines.push('\n');
    }
    lines
}

pub(super) fn train(texts: &Texts, settings: FastTextSettings) -> FastTextModel {
    finish(Training::new(texts, settings).unwrap())
}

pub(super) fn finish(mut training: Training<'_>) -> FastTextModel {
    while training.step().unwrap().is_some() {}
    training.finish()
}

/// All weights of a table, with the moments of its optimizer.
fn values(table: &Table) -> Vec<f32> {
    let mut all = Vec::new();
    let mut values = vec![0.0; table.dim()];
    for row in 0..table.n_rows() as u32 {
        for part in 0..table.parts() {
            table.read(row, part, &mut values);
            all.extend_from_slice(&values);
        }
    }
    all
}

pub(super) fn bits(model: &FastTextModel) -> Vec<u32> {
    [model.input(), model.output()].iter().flat_map(|table| values(table)).map(f32::to_bits).collect()
}

pub(super) fn accuracy(model: &FastTextModel, texts: &Texts) -> f64 {
    let mut scores = Scores::default();
    let (mut n_right, mut scratch) = (0, crate::Block::default());
    for index in 0..texts.n_blocks() {
        for text in texts.block(index, &mut scratch).unwrap().texts() {
            let probabilities = model.scores_of_tokens(text.tokens, &mut scores);
            let of_label = probabilities[text.labels[0] as usize];
            n_right += usize::from(probabilities.iter().all(|&other| other <= of_label));
        }
    }
    n_right as f64 / texts.n_texts() as f64
}

/// Weights and moments in double precision: by part, row and element.
type Weights = Vec<Vec<Vec<f64>>>;

fn naive(table: &Table) -> Weights {
    let read = |row, part| {
        let mut values = vec![0.0; table.dim()];
        table.read(row, part, &mut values);
        values.into_iter().map(f64::from).collect()
    };
    (0..table.parts()).map(|part| (0..table.n_rows() as u32).map(|row| read(row, part)).collect()).collect()
}

/// The loss of a text, without L2.
fn loss_of(
    [input, output]: &[Vec<Vec<f64>>; 2],
    rows: &[u32],
    labels: &[u32],
    loss: Loss,
    paths: &Paths,
) -> f64 {
    let dim = input[0].len();
    let mean: Vec<f64> = (0..dim)
        .map(|d| rows.iter().map(|&row| input[row as usize][d]).sum::<f64>() / rows.len() as f64)
        .collect();
    let logits: Vec<f64> =
        output.iter().map(|row| row.iter().zip(&mean).map(|(weight, mean)| weight * mean).sum()).collect();
    match loss {
        Loss::HierarchicalSoftmax => {
            let of_node = |&(node, is_right): &(u32, bool)| {
                let right = 1.0 / (1.0 + (-logits[node as usize]).exp());
                -(if is_right { right } else { 1.0 - right }).ln()
            };
            labels.iter().flat_map(|&label| paths.of(label)).map(of_node).sum::<f64>() / labels.len() as f64
        }
        Loss::Softmax => {
            let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
            -labels.iter().map(|&label| (logits[label as usize].exp() / sum).ln()).sum::<f64>()
                / labels.len() as f64
        }
        Loss::Bce => logits
            .iter()
            .enumerate()
            .map(|(label, logit)| {
                let probability = 1.0 / (1.0 + (-logit).exp());
                let is_label = labels.contains(&(label as u32));
                -(if is_label { probability } else { 1.0 - probability }).ln()
            })
            .sum(),
    }
}

/// Applies one step of an optimizer to a weight and its moments.
fn step_of(optimizer: Optimizer, weight: &mut [f64], gradient: f64, rate: f64) {
    match optimizer {
        Optimizer::Sgd => weight[0] -= rate * gradient,
        Optimizer::Adagrad => {
            weight[1] += gradient * gradient;
            weight[0] -= rate * gradient / (weight[1].sqrt() + 1e-10);
        }
        Optimizer::LazyAdam => {
            weight[1] = 0.9 * weight[1] + 0.1 * gradient;
            weight[2] = 0.999 * weight[2] + 0.001 * gradient * gradient;
            let mean = weight[1] / (1.0 - 0.9);
            let square = weight[2] / (1.0 - 0.999);
            weight[0] -= rate * mean / (square.sqrt() + 1e-8);
        }
    }
}

/// One step of a text, with gradients by finite differences, compared with the step of a training.
fn compare_one_step(settings: &FastTextSettings, lines: &str, processor: Processor) {
    let texts = texts(lines);
    let FastTextSettings { optimizer, loss, l2, rate, .. } = *settings;
    let mut training = Training::new(&texts, settings.clone()).unwrap().with_processor(processor);
    let mut random = Random::of(&[1]);
    for table in [&training.input, &training.output] {
        for row in 0..table.n_rows() as u32 {
            for part in 0..table.parts() {
                // Squares are not negative.
                let low =
                    if part == 0 || (part == 1 && optimizer == Optimizer::LazyAdam) { 0.5 } else { 0.0 };
                let values: Vec<f32> = (0..settings.dim).map(|_| random.uniform() - low).collect();
                table.write(row, part, &values);
            }
        }
    }
    let mut block = crate::Block::default();
    let text = texts.block(0, &mut block).unwrap().text(0);
    let (tokens, labels) = (text.tokens.to_vec(), text.labels.to_vec());
    let mut rows = Vec::new();
    training.rows.of_tokens(&texts.dictionary, &tokens, &mut FeatureScratch::default(), &mut rows);
    listing::to_positions(&training.listing.met, &mut rows);

    let paths = Tree::new(texts.dictionary.label_counts()).paths();
    let n_nodes = if loss == Loss::HierarchicalSoftmax { labels.len() - 1 } else { labels.len() };
    let before = [naive(&training.input), naive(&training.output)];
    let mut expected = before.clone();
    for table in 0..2 {
        for row in 0..before[table][0].len() {
            // The text has all labels, and a tree has one node less.
            if table == 0 && !rows.contains(&(row as u32)) || table == 1 && row >= n_nodes {
                continue;
            }
            for d in 0..settings.dim {
                let loss_at = |shift: f64| {
                    let mut weights = [before[0][0].clone(), before[1][0].clone()];
                    weights[table][row][d] += shift;
                    loss_of(&weights, &rows, &labels, loss, &paths)
                };
                let gradient =
                    (loss_at(1e-5) - loss_at(-1e-5)) / 2e-5 + f64::from(l2) * before[table][0][row][d];
                let mut weight: Vec<f64> = before[table].iter().map(|part| part[row][d]).collect();
                step_of(optimizer, &mut weight, gradient, f64::from(rate));
                for (part, value) in weight.into_iter().enumerate() {
                    expected[table][part][row][d] = value;
                }
            }
        }
    }
    training.step().unwrap();
    for (table, expected) in [&training.input, &training.output].into_iter().zip(expected) {
        let found = naive(table);
        for (part, expected) in expected.iter().enumerate() {
            for (row, expected) in expected.iter().enumerate() {
                for (d, expected) in expected.iter().enumerate() {
                    let found = found[part][row][d];
                    // f32 has 24 bits, and Adam divides by small roots.
                    let error = (found - expected).abs() / (1.0 + expected.abs());
                    assert!(error < 2e-5, "{settings:?} part {part} row {row} {d}: {found} {expected}");
                }
            }
        }
    }
}

#[test]
fn one_step_of_each_optimizer_equals_its_formula() {
    for processor in Processor::all() {
        for optimizer in [Optimizer::Sgd, Optimizer::Adagrad, Optimizer::LazyAdam] {
            for (l2, dim) in [(0.0, 10), (0.1, 10), (0.0, 16), (0.1, 37), (0.0, 100)] {
                for loss in [Loss::Softmax, Loss::Bce] {
                    let settings =
                        FastTextSettings { optimizer, l2, dim, loss, epochs: 1, rate: 0.05, ..settings() };
                    compare_one_step(&settings, "__label__a x y x z x y\n", processor);
                    let two = "__label__a __label__b x y x z x y q w e r t u\n";
                    compare_one_step(&settings, two, processor);
                    let deterministic = FastTextSettings { threads: 2, is_deterministic: true, ..settings };
                    compare_one_step(&deterministic, two, processor);
                }
            }
        }
    }
}

#[test]
fn a_step_of_a_tree_updates_each_node_above_the_labels_once() {
    let lines =
        ["__label__a __label__b x y x z x y\n", "__label__a __label__b __label__c __label__d x y z q w\n"];
    for optimizer in [Optimizer::Sgd, Optimizer::Adagrad, Optimizer::LazyAdam] {
        for l2 in [0.0, 0.1] {
            let (loss, processor) = (Loss::HierarchicalSoftmax, Processor::best());
            let settings = FastTextSettings { optimizer, l2, loss, epochs: 1, rate: 0.05, ..settings() };
            let deterministic = FastTextSettings { threads: 2, is_deterministic: true, ..settings.clone() };
            for lines in lines {
                compare_one_step(&settings, lines, processor);
                compare_one_step(&deterministic, lines, processor);
            }
        }
    }
}

#[test]
fn each_optimizer_and_loss_separates_the_labels() {
    let texts = texts(&lines(600));
    for (optimizer, rate) in [(Optimizer::Sgd, 0.5), (Optimizer::Adagrad, 0.1), (Optimizer::LazyAdam, 0.01)] {
        for loss in [Loss::Softmax, Loss::Bce, Loss::HierarchicalSoftmax] {
            for (threads, is_deterministic) in [(1, false), (3, false), (3, true)] {
                let settings = FastTextSettings {
                    optimizer,
                    loss,
                    rate,
                    threads,
                    is_deterministic,
                    epochs: 30,
                    ..settings()
                };
                let accuracy = accuracy(&train(&texts, settings.clone()), &texts);
                assert!(accuracy > 0.97, "{accuracy} {settings:?}");
            }
        }
    }
}

#[test]
fn a_deterministic_training_has_equal_bits_and_depends_on_the_seed() {
    let texts = texts(&lines(200));
    for threads in [1, 2, 3] {
        for (optimizer, l2) in [(Optimizer::Sgd, 0.0), (Optimizer::LazyAdam, 1e-4)] {
            let (dropout, subsampling, is_deterministic) = (0.2, 1e-2, true);
            let settings = FastTextSettings {
                threads,
                optimizer,
                l2,
                dropout,
                subsampling,
                is_deterministic,
                ..settings()
            };
            let first = bits(&train(&texts, settings.clone()));
            assert_eq!(first, bits(&train(&texts, settings.clone())), "{settings:?}");
            assert_ne!(first, bits(&train(&texts, FastTextSettings { seed: 1, ..settings })));
        }
    }
}

#[test]
fn rows_computed_in_each_epoch_equal_those_of_the_lists() {
    let texts = texts(&lines(200));
    let computed = FastTextSettings { lists_bytes: 0, ..settings() };
    assert_eq!(bits(&train(&texts, settings())), bits(&train(&texts, computed)));
    // The lists are kept if they fit beside the texts and the tables.
    let listed = Training::new(&texts, settings()).unwrap();
    let rows = (listed.listing.met.len() + texts.dictionary.labels().len()) as u64;
    let needed = texts.memory_bytes() + listed.listing.n_bytes + table_bytes(rows, 10, 1).unwrap();
    for (memory_bytes, is_listed) in [(needed, true), (needed - 1, false)] {
        let limited = FastTextSettings { memory_bytes, ..settings() };
        let training = Training::new(&texts, limited.clone()).unwrap();
        assert_eq!(training.listing.lists.is_some(), is_listed);
        assert_eq!(bits(&train(&texts, settings())), bits(&train(&texts, limited)));
    }
}

#[test]
fn a_resumed_training_equals_an_uninterrupted_one() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines(300).as_bytes()).unwrap();
    for (memory_bytes, n_steps) in [(1 << 30, 9), (0, 50)] {
        let reading = Reading { memory_bytes, ..Reading::default() };
        let texts = crate::reading::read_chunks(file.path(), 2, reading, 1000).unwrap();
        assert_eq!(texts.is_in_memory(), memory_bytes > 0);
        for optimizer in [Optimizer::Sgd, Optimizer::Adagrad, Optimizer::LazyAdam] {
            let settings =
                FastTextSettings { optimizer, threads: 2, is_deterministic: true, epochs: 3, ..settings() };
            let expected = bits(&train(&texts, settings.clone()));
            // Within a window, between windows and between epochs.
            let mut training = Training::new(&texts, settings.clone()).unwrap();
            let mut n_done = 0;
            while training.step().unwrap().is_some() {
                n_done += 1;
                if n_done % 4 == 1 {
                    let mut state = Vec::new();
                    training.save(&mut state).unwrap();
                    let resumed = Training::resume(&texts, settings.clone(), None, &mut &state[..]).unwrap();
                    assert_eq!(bits(&finish(resumed)), expected, "after {n_done} steps");
                }
            }
            assert!(n_done >= n_steps, "{n_done} steps");
        }
    }
}

#[test]
fn a_resumed_training_has_its_tree_its_weights_of_labels_and_its_first_model() {
    let model = train(&texts(&lines(60)), settings());
    let mut texts = texts(&lines(150));
    texts.dictionary.add_words(model.dictionary());
    for (loss, model) in [(Loss::Softmax, Some(&model)), (Loss::HierarchicalSoftmax, None)] {
        let label_weights = vec![0.5, 1.0, 3.0];
        let settings = FastTextSettings { loss, label_weights, epochs: 2, ..settings() };
        let start = || Training::starting_from(&texts, settings.clone(), model).unwrap();
        let expected = bits(&finish(start()));
        let mut training = start();
        training.step().unwrap();
        let mut state = Vec::new();
        training.save(&mut state).unwrap();
        let resumed = |settings| Training::resume(&texts, settings, model, &mut &state[..]);
        assert_eq!(bits(&finish(resumed(settings.clone()).unwrap())), expected, "{loss:?}");
        for other in [vec![], vec![0.5, 1.0, 2.0]] {
            let other = FastTextSettings { label_weights: other, ..settings.clone() };
            let error = resumed(other).err().unwrap().to_string();
            assert!(error.starts_with("the checkpoint is of other texts or settings"), "{error}");
        }
    }
}

#[test]
fn an_epoch_has_each_text_once_in_an_order_of_the_seed() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let lines: String = (0..200).map(|text| format!("__label__a x{text}\n")).collect();
    file.write_all(lines.as_bytes()).unwrap();
    for memory_bytes in [1 << 30, 0] {
        let reading = Reading { memory_bytes, ..Reading::default() };
        let texts = crate::reading::read_chunks(file.path(), 2, reading, 100).unwrap();
        let order = |seed, epoch| {
            let mut order = Vec::new();
            for (at, blocks) in (0..).zip(order::windows(&texts, seed, epoch)) {
                let window = order::Window::open(&texts, &blocks, [seed, u64::from(epoch), at], 2).unwrap();
                order.extend((0..window.n_texts()).map(|position| window.text(position).tokens[0]));
            }
            order
        };
        let first = order(0, 0);
        assert_eq!(first, order(0, 0));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 200);
        assert!(first != order(0, 1) && first != order(1, 0));
    }
}

#[test]
fn checkpoints_of_versions_with_ranks_are_of_the_same_settings() {
    let found = state::described(0xfe, &FastTextSettings { lists_bytes: 7, ..FastTextSettings::default() });
    let expected = "00000000000000fe Settings { words: Spaces, features: Features { ngrams: 1, buckets: 0, \
                    characters_min: 0, characters_max: 0, hashes_unknown: false }, dim: 10, loss: Softmax, \
                    optimizer: Sgd, schedule: Linear, rate: 0.1, epochs: 5, l2: 0.0, dropout: 0.0, \
                    subsampling: 0.0, threads: 1, is_deterministic: false, round_texts: 2500, seed: 0, \
                    memory_bytes: 0, lists_bytes: 0 } 1";
    assert_eq!(found, expected);
}

#[test]
fn a_damaged_or_foreign_checkpoint_is_refused() {
    let texts = texts(&lines(20));
    let mut state = Vec::new();
    Training::new(&texts, settings()).unwrap().save(&mut state).unwrap();
    let resume = |settings, state: &[u8]| {
        Training::resume(&texts, settings, None, &mut &*state).err().map(|e| e.to_string())
    };
    assert_eq!(resume(settings(), &state), None);

    let other = FastTextSettings { rate: 0.3, ..settings() };
    let expected =
        "the checkpoint is of other texts or settings; resume with the same input and flags, or start again";
    assert_eq!(resume(other, &state).unwrap(), expected);
    let damaged = "cannot read the checkpoint: the file is damaged; use an older checkpoint or start again";
    for at in [40, state.len() / 2, state.len() - 1] {
        let mut changed = state.clone();
        changed[at] ^= 1;
        assert_eq!(resume(settings(), &changed).unwrap(), damaged, "byte {at}");
    }
    state.push(0);
    assert_eq!(resume(settings(), &state).unwrap(), damaged);
    for length in 0..40 {
        assert!(resume(settings(), &state[..length]).is_some());
    }
}

#[test]
fn a_loss_that_is_not_a_number_is_an_error_with_a_remedy() {
    let texts = texts(&lines(50));
    for threads in [1, 2] {
        let settings = FastTextSettings { rate: 1e30, threads, ..settings() };
        let mut training = Training::new(&texts, settings).unwrap();
        let error = (0..5).find_map(|_| training.step().err()).unwrap().to_string();
        assert!(error.starts_with("the loss is not a number in epoch "), "{error}");
        assert!(error.ends_with("; set a lower --rate than 1e30"), "{error}");
    }
}

#[test]
fn tables_above_the_limit_are_refused_before_they_are_allocated() {
    let texts = texts(&lines(50));
    let settings = FastTextSettings { memory_bytes: 10_000, ..settings() };
    let Some(Error::TooLarge { n_rows, dim, needed, max }) = Training::new(&texts, settings.clone()).err()
    else {
        panic!("a limit of 10,000 bytes")
    };
    assert_eq!((dim, max, needed), (10, 10_000, 64 * (n_rows as u64 + 3)));
    assert!(Training::new(&texts, FastTextSettings { memory_bytes: needed, ..settings.clone() }).is_ok());
    let settings = FastTextSettings {
        features: Features { buckets: u32::MAX, ngrams: 2, ..Features::default() },
        ..settings
    };
    let error = Training::new(&texts, settings).err().unwrap().to_string();
    assert!(error.ends_with(" words and buckets, the maximum is 4294967294; reduce --buckets"), "{error}");
}

#[test]
fn rows_that_no_text_has_are_not_stored() {
    let texts = texts("__label__a x y\n__label__b y x\n");
    let features = Features { ngrams: 2, buckets: 1 << 30, ..Features::default() };
    let model = train(&texts, FastTextSettings { features, ..settings() });
    // x, y, </s>, `x y`, `y </s>`, `y x`, `x </s>`
    assert_eq!((model.met().len(), model.input().n_rows()), (7, 7));
}

#[test]
fn texts_without_words_and_a_single_label_can_be_trained() {
    let reading = Reading { words: crate::Words::Punctuation, ..Reading::default() };
    let texts = texts_with("__label__a\n__label__a x\n__label__a\n", reading.clone());
    let model = train(&texts, FastTextSettings { words: crate::Words::Punctuation, ..settings() });
    assert_eq!(model.scores(b"x", &mut Scores::default()), [1.0]);
    assert_eq!(model.scores(b"", &mut Scores::default()), [1.0]);

    let empty = texts_with("__label__a\nno label\n", reading);
    let error = Training::new(&empty, settings()).err().unwrap().to_string();
    let expected =
        "no text with a label and a word (1 lines without a label); check the input and the label prefix";
    assert_eq!(error, expected);
}

#[test]
fn a_label_met_once_and_several_labels_of_a_text_are_learned() {
    let lines = format!("{}__label__once rare\n", "__label__a __label__b x y\n__label__c z\n".repeat(20));
    let texts = texts(&lines);
    let model = train(&texts, FastTextSettings { epochs: 100, rate: 0.5, ..settings() });
    let label = |name: &str| model.dictionary().label(name.as_bytes()).unwrap() as usize;
    let mut scores = Scores::default();
    let probabilities = model.scores(b"rare", &mut scores).to_vec();
    assert!(probabilities.iter().all(|&other| other <= probabilities[label("once")]), "{probabilities:?}");
    let probabilities = model.scores(b"x y", &mut scores).to_vec();
    for name in ["a", "b"] {
        assert!((probabilities[label(name)] - 0.5).abs() < 0.1, "{probabilities:?}");
    }
}

#[test]
fn an_explanation_sums_to_the_difference_of_logits() {
    let texts = texts(&lines(300));
    let model = train(&texts, FastTextSettings { epochs: 20, rate: 0.5, ..settings() });
    let line = b"own0x1 word3 own0x1 unseen word5";
    let probabilities = model.scores(line, &mut Scores::default()).to_vec();
    for label in 0..3 {
        let others =
            (0..3).filter(|&other| other != label).map(|other| probabilities[other].ln()).sum::<f32>() / 2.0;
        let shares = model.explain(line, label as u32);
        let sum: f32 = shares.iter().map(|(_, share)| share).sum();
        assert!((sum - (probabilities[label].ln() - others)).abs() < 1e-4, "{sum} {probabilities:?}");
        assert_eq!(shares.iter().filter(|(text, _)| text == "own0x1").count(), 1);
    }
}

#[test]
fn an_explanation_with_a_tree_sums_to_the_log_odds_along_the_path() {
    let texts = texts(&lines(300));
    let loss = Loss::HierarchicalSoftmax;
    let model =
        train(&texts, FastTextSettings { loss, words: Words::Spaces, epochs: 20, rate: 0.5, ..settings() });
    let line = b"own0x1 word3 own0x1 unseen word5";
    let probabilities = model.scores(line, &mut Scores::default()).to_vec();
    let paths = model.paths().unwrap();
    // The probability of the labels on a side of an inner node.
    let side = |inner: u32, is_right: bool| -> f32 {
        let labels = (0..3).filter(|&label| paths.of(label).contains(&(inner, is_right)));
        labels.map(|label| probabilities[label as usize]).sum()
    };
    let program =
        Classifier::new(Model::Program(Box::new(to_program(Path::new("model.bin"), &model).unwrap())));
    assert_eq!((0..3).map(|label| paths.of(label).len()).max(), Some(2));
    for label in 0..3 {
        let odds = |&(inner, is_right): &(u32, bool)| (side(inner, is_right) / side(inner, !is_right)).ln();
        let expected: f32 = paths.of(label).iter().map(odds).sum();
        let shares = model.explain(line, label);
        let sum: f32 = shares.iter().map(|(_, share)| share).sum();
        assert!((sum - expected).abs() < 1e-3, "{sum} {expected} {probabilities:?}");
        let of_program = program.reader().contributions(line, label);
        assert_eq!(of_program.len(), shares.len());
        for ((ngram, share), (of_program, found)) in shares.iter().zip(&of_program) {
            assert_eq!(ngram, of_program);
            assert!((f64::from(*share) - found).abs() < 1e-4, "{ngram}: {share} {found}");
        }
    }
}

#[test]
fn dropout_and_subsampling_change_the_updates() {
    let texts = texts(&lines(100));
    let plain = bits(&train(&texts, settings()));
    assert_ne!(plain, bits(&train(&texts, FastTextSettings { dropout: 0.5, ..settings() })));
    assert_ne!(plain, bits(&train(&texts, FastTextSettings { subsampling: 1e-3, ..settings() })));
    // A threshold of 1 keeps all words.
    assert_eq!(plain, bits(&train(&texts, FastTextSettings { subsampling: 1.0, ..settings() })));
}

#[test]
fn all_instruction_sets_train_alike() {
    let texts = texts(&lines(100));
    for dim in [10, 37] {
        let train = |processor| {
            finish(
                Training::new(&texts, FastTextSettings { dim, ..settings() })
                    .unwrap()
                    .with_processor(processor),
            )
        };
        let trained: Vec<_> =
            Processor::all().into_iter().map(|processor| values(train(processor).input())).collect();
        for other in &trained[1..] {
            let error =
                trained[0].iter().zip(other).map(|(one, other)| (one - other).abs()).fold(0.0, f32::max);
            assert!(error < 1e-4, "{error}");
        }
    }
}

#[test]
fn a_training_that_starts_from_a_model_has_its_rows_and_its_answers() {
    let first = texts("__label__a good film\n__label__b bad plot\n__label__a good good plot\n");
    let model = train(&first, FastTextSettings { epochs: 20, rate: 0.5, ..settings() });
    // Other words, other numbers of words and labels.
    let mut second = texts("__label__b bad bad kettle\n__label__b awful plot\n__label__a lovely kettle\n");
    second.dictionary.add_words(model.dictionary());
    assert_eq!(second.dictionary.n_words(), 8);
    let start = |model| Training::starting_from(&second, settings(), model).unwrap();
    let found = start(Some(&model)).finish();
    for line in ["good film", "bad plot", "good good plot", "film bad"] {
        let (mut one, mut other) = (Scores::default(), Scores::default());
        for label in [&b"a"[..], b"b"] {
            let of = |model: &FastTextModel, scores: &mut Scores| {
                model.scores(line.as_bytes(), scores)[model.dictionary().label(label).unwrap() as usize]
            };
            assert_eq!(of(&found, &mut one), of(&model, &mut other), "{line}");
        }
    }
    // New words have the weights that they have without a model.
    let random = start(None).finish();
    let row = |model: &FastTextModel, word: &[u8]| {
        let mut values = vec![0.0; model.dim()];
        let row = model.dictionary().word(word).unwrap();
        model.input().read(model.met().position(row).unwrap(), 0, &mut values);
        values
    };
    assert_eq!(row(&found, b"lovely"), row(&random, b"lovely"));
    assert_ne!(row(&found, b"bad"), row(&random, b"bad"));
    // The model without a text of its words keeps them.
    let trained = finish(start(Some(&model)));
    assert_eq!(row(&trained, b"film"), row(&model, b"film"));
    assert_ne!(row(&trained, b"bad"), row(&model, b"bad"));
}

#[test]
fn the_loss_of_a_tree_is_that_of_its_probabilities_and_its_steps_lower_it() {
    let mut content = lines(300);
    content.push_str("__label__l0 __label__l2 own0x1 own2x1\n__label__l9 word1 own0x2\n");
    let texts = texts(&content);
    let loss = Loss::HierarchicalSoftmax;
    let trained = |rate: f32, epochs: u32| {
        let mut training =
            Training::new(&texts, FastTextSettings { loss, rate, epochs, ..settings() }).unwrap();
        let (mut sum, mut n) = (0.0, 0);
        let mut before = 0;
        while let Some(done) = training.step().unwrap() {
            (sum, n) = (sum + done.loss * (done.n_done - before) as f64, done.n_done);
            before = done.n_done;
        }
        (training.finish(), sum / n as f64)
    };
    let mean_loss = |model: &FastTextModel| {
        let mut scores = Scores::default();
        let losses: Vec<f64> = content
            .lines()
            .map(|line| {
                let (labels, words): (Vec<&str>, Vec<&str>) =
                    line.split(' ').partition(|word| word.starts_with("__label__"));
                let found = model.scores(words.join(" ").as_bytes(), &mut scores);
                assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                let of = |label: &&str| {
                    let label = model.dictionary().label(&label.as_bytes()[9..]).unwrap();
                    -f64::from(found[label as usize]).ln()
                };
                labels.iter().map(of).sum::<f64>() / labels.len() as f64
            })
            .collect();
        losses.iter().sum::<f64>() / losses.len() as f64
    };
    // The weights stay as they are.
    let (first, loss_of_steps) = trained(1e-9, 1);
    assert!((mean_loss(&first) - loss_of_steps).abs() < 1e-4, "{loss_of_steps}");
    let (last, _) = trained(0.5, 20);
    assert!(mean_loss(&last) < 0.3 * mean_loss(&first), "{}", mean_loss(&last));
}

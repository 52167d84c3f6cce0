//! Tests of the whole training against naive versions.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::builder::{Builders, Reading};
use crate::error::Error;
use crate::texts::Texts;
use crate::words::Words;

const WORDS: Words = Words::Cleaned;

fn texts(lines: &[(&str, &[&str])]) -> Texts {
    let builders = Builders::new(Reading { words: WORDS, ..Reading::default() });
    let mut builder = builders.builder();
    for (line, labels) in lines {
        let labels: Vec<&[u8]> = labels.iter().map(|label| label.as_bytes()).collect();
        builder.add_line(line.as_bytes(), &labels).unwrap();
    }
    builders.merge(vec![builder]).unwrap()
}

/// Lines of random words, of which some depend on the label.
fn random_lines(n: usize, labels: &[&'static str]) -> Vec<(String, &'static str)> {
    let mut state = 42u64;
    let mut random = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut line = || {
        let label = random(labels.len() as u64);
        let words = (0..3 + random(12)).map(|_| match random(4) {
            0 => format!("w{label}{}", random(5)),
            _ => format!("v{}", random(40)),
        });
        (words.collect::<Vec<_>>().join(" "), labels[label as usize])
    };
    (0..n).map(|_| line()).collect()
}

fn random_texts(n: usize, labels: &[&'static str]) -> Texts {
    let lines = random_lines(n, labels);
    let labels: Vec<[&str; 1]> = lines.iter().map(|(_, label)| [*label]).collect();
    texts(
        &lines.iter().zip(&labels).map(|((line, _), label)| (line.as_str(), &label[..])).collect::<Vec<_>>(),
    )
}

/// Settings that keep all n-grams of two texts.
fn settings() -> LinearSettings {
    let weighting = Weighting::NaiveBayes { smoothing: 1.0 };
    LinearSettings { gap: 0, ending: 0, texts_min: 2, weighting, ..LinearSettings::default() }
}

fn trained(texts: &Texts, settings: LinearSettings) -> LinearModel {
    train(texts, WORDS, &settings, |_| ()).unwrap()
}

fn probabilities(model: &LinearModel, line: &str) -> Vec<f32> {
    let mut found = Vec::new();
    model.probabilities(line.as_bytes(), &mut LinearScratch::default(), &mut found);
    found
}

fn score(model: &LinearModel, line: &str) -> f64 {
    let mut found = Vec::new();
    model.scores(line.as_bytes(), &mut LinearScratch::default(), &mut found);
    f64::from(found[0])
}

/// Unigram values of all lines in f64, with naive-Bayes weights, and the labels as 1 and -1.
fn naive_values(lines: &[(String, &str)], first: &str) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut vocabulary: Vec<&str> = lines.iter().flat_map(|(line, _)| line.split(' ')).collect();
    vocabulary.sort_unstable();
    vocabulary.dedup();
    let has = |line: &str, word: &str| line.split(' ').any(|other| other == word);
    let count = |word: &str, is_first: bool| {
        1.0 + lines.iter().filter(|(line, label)| (*label == first) == is_first && has(line, word)).count()
            as f64
    };
    let (p, q): (Vec<f64>, Vec<f64>) =
        vocabulary.iter().map(|word| (count(word, true), count(word, false))).unzip();
    let (sum_p, sum_q) = (p.iter().sum::<f64>(), q.iter().sum::<f64>());
    let ratios: Vec<f64> = p.iter().zip(q).map(|(p, q)| ((p / sum_p) / (q / sum_q)).ln()).collect();
    let value = |line: &str, word: &str, ratio: f64| if has(line, word) { ratio } else { 0.0 };
    let row = |line: &str| {
        let words = vocabulary.iter().zip(&ratios).map(|(word, ratio)| value(line, word, *ratio));
        words.chain([1.0]).collect::<Vec<_>>()
    };
    let labels = lines.iter().map(|(_, label)| if *label == first { 1.0 } else { -1.0 });
    (lines.iter().map(|(line, _)| row(line)).collect(), labels.collect())
}

fn loss(loss: MarginLoss, margin: f64) -> (f64, f64) {
    match loss {
        MarginLoss::Logistic => ((-margin).exp().ln_1p(), -1.0 / (1.0 + margin.exp())),
        MarginLoss::SquaredHinge => ((1.0 - margin).max(0.0).powi(2), -2.0 * (1.0 - margin).max(0.0)),
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Gradient descent with soft thresholds in f64. The last weight is the bias.
fn naive_weights(values: &[Vec<f64>], labels: &[f64], settings: &LinearSettings) -> Vec<f64> {
    let cost = f64::from(settings.cost);
    let n = values[0].len();
    let mut weights = vec![0.0; n];
    let squares: f64 = values.iter().map(|row| dot(row, row)).sum();
    let step = 1.0 / (1.0 + 2.0 * cost * squares);
    let mut before = weights.clone();
    for round in 0..200_000u32 {
        // Nesterov's momentum.
        let momentum = f64::from(round) / f64::from(round + 3);
        let ahead: Vec<f64> = weights.iter().zip(&before).map(|(w, b)| w + momentum * (w - b)).collect();
        let mut gradient: Vec<f64> =
            if settings.penalty == Penalty::L2 { ahead.clone() } else { vec![0.0; n] };
        for (row, label) in values.iter().zip(labels) {
            let slope = cost * label * loss(settings.loss, label * dot(row, &ahead)).1;
            gradient.iter_mut().zip(row).for_each(|(g, value)| *g += slope * value);
        }
        before = std::mem::take(&mut weights);
        weights = ahead.iter().zip(&gradient).map(|(w, g)| w - step * g).collect();
        if settings.penalty == Penalty::L1 {
            let (_, penalised) = weights.split_last_mut().unwrap();
            penalised.iter_mut().for_each(|w| *w = w.signum() * (w.abs() - step).max(0.0));
        }
        let change = weights.iter().zip(&before).map(|(w, b)| (w - b).abs()).fold(0.0, f64::max);
        if change < 1e-10 {
            break;
        }
    }
    weights
}

/// Difference of the scores of a model and those of the naive weights, relative to the greatest score.
fn difference(settings: LinearSettings) -> f64 {
    let lines = random_lines(60, &["a", "b"]);
    let texts = random_texts(60, &["a", "b"]);
    let model = trained(&texts, settings);
    let first = std::str::from_utf8(model.labels().get(0)).unwrap();
    let (values, labels) = naive_values(&lines, first);
    let weights = naive_weights(&values, &labels, &settings);
    let expected: Vec<f64> = values.iter().map(|row| dot(row, &weights)).collect();
    let greatest = expected.iter().fold(0.0f64, |max, score| max.max(score.abs()));
    assert!(greatest > 0.5, "a trivial solution");
    let differences =
        lines.iter().zip(expected).map(|((line, _), expected)| (score(&model, line) - expected).abs());
    differences.fold(0.0, f64::max) / greatest
}

fn unigrams() -> LinearSettings {
    LinearSettings { ngrams: 1, texts_min: 1, epochs: 400, ..settings() }
}

#[test]
fn dual_coordinate_descent_finds_the_minimum_of_a_naive_solver() {
    for loss in [MarginLoss::Logistic, MarginLoss::SquaredHinge] {
        for cost in [0.1, 1.0] {
            let found = difference(LinearSettings { loss, cost, ..unigrams() });
            assert!(found < 2e-3, "{loss:?} {cost}: {found}");
        }
    }
}

#[test]
fn coordinate_descent_with_an_l1_penalty_finds_the_minimum_of_a_naive_solver() {
    for loss in [MarginLoss::Logistic, MarginLoss::SquaredHinge] {
        let settings = LinearSettings { loss, penalty: Penalty::L1, epochs: 4000, ..unigrams() };
        let found = difference(settings);
        assert!(found < 5e-3, "{loss:?}: {found}");
    }
}

#[test]
fn an_l1_penalty_makes_most_weights_zero() {
    let texts = random_texts(300, &["a", "b"]);
    let settings = LinearSettings { epochs: 50, ..settings() };
    let dense = trained(&texts, settings);
    let sparse = trained(&texts, LinearSettings { penalty: Penalty::L1, cost: 0.2, ..settings });
    assert!(dense.n_weights() * 10 > dense.n_rows() * 9);
    assert!(sparse.n_weights() * 2 < sparse.n_rows() && sparse.n_weights() > 0);
}

#[test]
fn threads_without_locks_find_the_minimum_of_one_thread() {
    let texts = random_texts(2000, &["a", "b"]);
    for (loss, penalty) in [
        (MarginLoss::Logistic, Penalty::L2),
        (MarginLoss::SquaredHinge, Penalty::L2),
        (MarginLoss::Logistic, Penalty::L1),
    ] {
        let settings = LinearSettings { loss, penalty, ngrams: 2, epochs: 60, ..settings() };
        let (one, four) =
            (trained(&texts, settings), trained(&texts, LinearSettings { threads: 4, ..settings }));
        let lines = random_lines(300, &["a", "b"]);
        let scores =
            |model: &LinearModel| lines.iter().map(|(line, _)| score(model, line)).collect::<Vec<_>>();
        let (one, four) = (scores(&one), scores(&four));
        let agree = one.iter().zip(&four).filter(|(one, four)| (**one > 0.0) == (**four > 0.0)).count();
        assert!(agree > 285, "{loss:?} {penalty:?}: {agree} of 300");
    }
}

#[test]
fn deterministic_training_gives_the_same_bits_with_any_number_of_threads() {
    for labels in [&["a", "b"][..], &["a", "b", "c"]] {
        let texts = random_texts(500, labels);
        for penalty in [Penalty::L1, Penalty::L2] {
            let settings =
                LinearSettings { is_deterministic: true, penalty, gap: 2, ending: 4, ..settings() };
            let stored = |threads| {
                let model = trained(&texts, LinearSettings { threads, ..settings });
                StoredModel { settings, ..model.stored().clone() }
            };
            assert_eq!(stored(1), stored(2));
            assert_eq!(stored(1), stored(5));
        }
    }
}

#[test]
fn hashed_ngrams_without_collisions_give_the_answers_of_exact_ones() {
    let texts = random_texts(120, &["a", "b"]);
    for counting in [Counting::Binary, Counting::Linear, Counting::Logarithmic] {
        for (weighting, is_normalized) in [
            (Weighting::NaiveBayes { smoothing: 1.0 }, true),
            (Weighting::TfIdf, true),
            (Weighting::None, false),
        ] {
            let settings = LinearSettings {
                counting,
                weighting,
                is_normalized,
                gap: 1,
                ending: 3,
                table: NgramTable::Hashed { bits: 25 },
                ..settings()
            };
            let hashed = trained(&texts, settings);
            let exact = trained(&texts, LinearSettings { table: NgramTable::Exact, ..settings });
            assert_eq!(hashed.n_rows(), exact.n_rows());
            for (line, _) in random_lines(120, &["a", "b"]).iter().chain(&[("new v1 w12 v1".to_owned(), "")])
            {
                assert_eq!(score(&hashed, line), score(&exact, line), "{settings:?}");
                assert_eq!(hashed.explain(line.as_bytes(), 1), exact.explain(line.as_bytes(), 1));
            }
        }
    }
}

#[test]
fn ngrams_of_too_few_texts_are_ignored() {
    let lines: [(&str, &[&str]); 3] =
        [("good good film", &["a"]), ("good one", &["a"]), ("bad film", &["b"])];
    let texts = texts(&lines);
    let model = trained(&texts, LinearSettings { ngrams: 1, ..settings() });
    let ngrams =
        |line: &str| model.explain(line.as_bytes(), 0).into_iter().map(|c| c.ngram).collect::<Vec<_>>();
    assert_eq!(model.n_rows(), 2);
    let mut found = ngrams("good one bad film");
    found.sort_unstable();
    assert_eq!(found, ["film", "good"]);
}

#[test]
fn contributions_and_the_bias_add_up_to_the_score() {
    let texts = random_texts(400, &["a", "b", "c"]);
    for settings in [
        LinearSettings { is_normalized: true, counting: Counting::Linear, gap: 1, ending: 2, ..settings() },
        LinearSettings { is_normalized: true, weighting: Weighting::TfIdf, ..settings() },
    ] {
        let model = trained(&texts, settings);
        let mut scores = Vec::new();
        for (line, _) in random_lines(50, &["a", "b", "c"]) {
            model.scores(line.as_bytes(), &mut LinearScratch::default(), &mut scores);
            for (label, score) in (0..).zip(&scores) {
                let sum: f32 = model.explain(line.as_bytes(), label).iter().map(|c| c.weight).sum();
                let bias = model.stored().biases[label as usize];
                assert!((sum + bias - score).abs() < 1e-4, "{} {score}", sum + bias);
            }
        }
    }
}

#[test]
fn labels_of_random_texts_are_learned() {
    for labels in [&["a", "b"][..], &["a", "b", "c", "d"]] {
        let texts = random_texts(1000, labels);
        for (loss, penalty) in [
            (MarginLoss::Logistic, Penalty::L2),
            (MarginLoss::SquaredHinge, Penalty::L2),
            (MarginLoss::SquaredHinge, Penalty::L1),
        ] {
            let model =
                trained(&texts, LinearSettings { loss, penalty, cost: 0.3, threads: 2, ..settings() });
            let lines = random_lines(1000, labels);
            let is_right = |(line, label): &&(String, &str)| {
                let found = probabilities(&model, line);
                assert!((found.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                let best = (0..found.len()).max_by(|a, b| found[*a].total_cmp(&found[*b])).unwrap();
                model.labels().get(best as u32) == label.as_bytes()
            };
            let n_right = lines.iter().filter(is_right).count();
            assert!(n_right > 850, "{labels:?} {loss:?} {penalty:?}: {n_right}");
        }
    }
}

#[test]
fn texts_with_several_labels_have_a_probability_per_label() {
    let mut lines: Vec<(&str, &[&str])> = Vec::new();
    for _ in 0..20 {
        lines.extend([
            ("red round", &["red", "round"][..]),
            ("red box", &["red"]),
            ("green round", &["round"]),
            ("green box", &["other"]),
        ]);
    }
    let model = trained(&texts(&lines), settings());
    assert_eq!(model.stored().outputs, Outputs::AnyOf);
    let found = probabilities(&model, "red round");
    let of =
        |label: &str| found[(0..3).find(|&n| model.labels().get(n) == label.as_bytes()).unwrap() as usize];
    assert!(of("red") > 0.8 && of("round") > 0.8 && of("other") < 0.3, "{found:?}");
}

#[test]
fn the_only_label_is_the_answer_to_every_text() {
    let lines: [(&str, &[&str]); 3] = [("good film", &["a"]), ("film", &["a"]), ("", &["a"])];
    for loss in [MarginLoss::Logistic, MarginLoss::SquaredHinge] {
        for penalty in [Penalty::L1, Penalty::L2] {
            let model = trained(&texts(&lines), LinearSettings { loss, penalty, ..settings() });
            for line in ["film", "new", ""] {
                assert_eq!(probabilities(&model, line), [1.0]);
            }
        }
    }
}

#[test]
fn texts_without_known_ngrams_have_the_probabilities_of_the_bias() {
    let lines: [(&str, &[&str]); 5] = [
        ("good film", &["a"]),
        ("good one", &["a"]),
        ("bad film", &["b"]),
        ("bad one", &["b"]),
        ("", &["b"]),
    ];
    for is_normalized in [false, true] {
        let model = trained(&texts(&lines), LinearSettings { is_normalized, ..settings() });
        let bias = model.stored().biases[0];
        for line in ["", "unseen words", "🦀\u{0}\u{feff}"] {
            assert_eq!(score(&model, line), f64::from(bias));
            assert!(model.explain(line.as_bytes(), 0).is_empty());
            assert!(probabilities(&model, line).iter().all(|p| p.is_finite()));
        }
    }
    let empty: [(&str, &[&str]); 2] = [("", &["a"]), ("", &["b"])];
    for penalty in [Penalty::L1, Penalty::L2] {
        let model = trained(&texts(&empty), LinearSettings { penalty, ..settings() });
        assert_eq!(model.n_rows(), 0);
        assert!((probabilities(&model, "film")[0] - 0.5).abs() < 0.3);
    }
}

#[test]
fn tf_idf_values_are_those_of_scikit_learn() {
    // TfidfVectorizer(token_pattern="[a-c]").fit_transform(["a b", "a c", "a"]) is 0.50854232 and 0.861037 in the first
    // text. Contributions divided by weights are these values.
    let lines: [(&str, &[&str]); 3] = [("a b", &["x"]), ("a c", &["y"]), ("a", &["y"])];
    let settings = LinearSettings {
        weighting: Weighting::TfIdf,
        is_normalized: true,
        ngrams: 1,
        texts_min: 1,
        ..settings()
    };
    let mut model = trained(&texts(&lines), settings);
    let frequencies = model.stored().frequencies.clone();
    model.stored.weights = frequencies;
    let sign = if model.labels().get(0) == b"x" { 0 } else { 1 };
    let found: Vec<_> = model.explain(b"a b", 0).into_iter().map(|c| (c.ngram, c.weight)).collect();
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), ("b", "a"), "{sign}");
    assert!((found[0].1 - 0.861_037).abs() < 1e-5 && (found[1].1 - 0.508_542).abs() < 1e-5, "{found:?}");
}

#[test]
fn the_strongest_ngrams_have_names() {
    let mut lines: Vec<(&str, &[&str])> = Vec::new();
    for _ in 0..10 {
        lines.extend([
            ("not a good film", &["neg"][..]),
            ("a good film", &["pos"]),
            ("not bad", &["pos"]),
            ("bad film", &["neg"]),
        ]);
    }
    let model = trained(&texts(&lines), LinearSettings { gap: 1, n_named: 20, ..settings() });
    let label = (0..2).find(|&label| model.labels().get(label) == b"neg").unwrap();
    let named: Vec<_> = model.stored().named.iter().filter(|named| named.label == label).collect();
    assert_eq!(named.len(), model.n_weights());
    assert!(named.is_sorted_by(|a, b| a.weight >= b.weight));
    assert!(
        named.iter().any(|named| named.ngram == "not … good" && named.weight > 0.0 && named.count == 10),
        "{named:?}"
    );
    assert!(named.iter().any(|named| named.ngram == "not bad" && named.weight < 0.0), "{named:?}");
}

#[test]
fn a_stored_model_gives_the_same_answers_and_an_inconsistent_one_is_refused() {
    let texts = random_texts(300, &["a", "b", "c"]);
    for table in [NgramTable::Hashed { bits: 20 }, NgramTable::Exact] {
        let settings = LinearSettings { table, loss: MarginLoss::SquaredHinge, ..settings() };
        let model = trained(&texts, settings);
        let again = LinearModel::of(model.stored().clone()).unwrap();
        for (line, _) in random_lines(50, &["a", "b", "c"]) {
            assert_eq!(probabilities(&model, &line), probabilities(&again, &line));
        }
        let changed = |change: fn(&mut StoredModel)| {
            let mut stored = model.stored().clone();
            change(&mut stored);
            LinearModel::of(stored).is_none()
        };
        assert!(changed(|stored| stored.weights.truncate(1)));
        assert!(changed(|stored| stored.biases.push(0.0)));
        assert!(changed(|stored| stored.outputs = Outputs::Two));
        assert!(changed(|stored| stored.settings.table = NgramTable::Hashed { bits: 12 }));
        assert!(changed(|stored| stored.named[0].label = 3));
        assert!(changed(|stored| stored.frequencies.push(1.0)));
    }
}

#[test]
fn hinge_probabilities_are_close_to_the_shares_of_unseen_texts() {
    let labels = ["a", "b"];
    let all = random_lines(6000, &labels);
    let label_of: Vec<[&str; 1]> = all.iter().map(|(_, label)| [*label]).collect();
    let lines: Vec<_> =
        all.iter().zip(&label_of).map(|((line, _), label)| (line.as_str(), &label[..])).collect();
    let settings = LinearSettings { loss: MarginLoss::SquaredHinge, ngrams: 2, epochs: 20, ..settings() };
    let model = trained(&texts(&lines[..2000]), settings);
    let first = std::str::from_utf8(model.labels().get(0)).unwrap();
    let (mut expected, mut found, mut n) = (0.0, 0.0, 0);
    for (line, label) in &all[2000..] {
        let probability = probabilities(&model, line)[0];
        if (0.6..0.9).contains(&probability) {
            expected += probability;
            found += f32::from(u8::from(*label == first));
            n += 1;
        }
    }
    assert!(n > 100);
    let (expected, found) = (expected / n as f32, found / n as f32);
    assert!((expected - found).abs() < 0.1, "{expected} {found} of {n}");
}

#[test]
fn training_without_texts_or_memory_is_an_error() {
    let error = train(&texts(&[]), WORDS, &settings(), |_| ()).unwrap_err();
    assert!(matches!(error, Error::NoTexts { n_unlabelled: 0 }));
    let texts = random_texts(100, &["a", "b"]);
    for table in [NgramTable::Hashed { bits: 20 }, NgramTable::Exact] {
        let settings = LinearSettings { memory_bytes: 1000, table, ..settings() };
        let error = train(&texts, WORDS, &settings, |_| ()).unwrap_err();
        assert!(matches!(error, Error::Memory { needed, max: 1000 } if needed > 1000));
    }
}

#[test]
fn numbered_ngrams_serve_several_trainings() {
    let texts = random_texts(200, &["a", "b"]);
    let deterministic = LinearSettings { is_deterministic: true, ..settings() };
    let numbered = Numbered::of(&texts, &deterministic, None).unwrap();
    for changed in [
        deterministic,
        LinearSettings { cost: 0.1, epochs: 2, ..deterministic },
        LinearSettings { loss: MarginLoss::SquaredHinge, weighting: Weighting::None, ..deterministic },
    ] {
        assert!(numbered.is_for(&changed));
        let found = numbered.train(&texts, WORDS, &changed, &[], |_| (), &|| false).unwrap();
        assert_eq!(found.stored(), trained(&texts, changed).stored());
    }
    for other in [
        LinearSettings { ngrams: 2, ..deterministic },
        LinearSettings { texts_min: 3, ..deterministic },
        LinearSettings { table: NgramTable::Exact, ..deterministic },
        LinearSettings { counting: Counting::Linear, ..deterministic },
    ] {
        assert!(!numbered.is_for(&other));
    }
}

#[test]
fn a_training_ends_soon_after_it_is_stopped() {
    let texts = random_texts(200, &["a", "b"]);
    for (penalty, threads) in [(Penalty::L2, 1), (Penalty::L2, 2), (Penalty::L1, 2)] {
        let endless = LinearSettings { epochs: u32::MAX, penalty, threads, ..settings() };
        let numbered = Numbered::of(&texts, &endless, None).unwrap();
        let n_asked = AtomicUsize::new(0);
        let is_stopped = || n_asked.fetch_add(1, Ordering::Relaxed) > 50;
        let error = numbered.train(&texts, WORDS, &endless, &[], |_| (), &is_stopped).unwrap_err();
        assert!(matches!(error, Error::Stopped));
    }
    // A classifier that has not begun is not set up, which takes seconds with many texts.
    let texts = random_texts(200, &["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
    let one_thread = LinearSettings { threads: 1, ..settings() };
    let numbered = Numbered::of(&texts, &one_thread, None).unwrap();
    let n_asked = AtomicUsize::new(0);
    let is_stopped = || n_asked.fetch_add(1, Ordering::Relaxed) < usize::MAX;
    assert!(numbered.train(&texts, WORDS, &one_thread, &[], |_| (), &is_stopped).is_err());
    assert_eq!(n_asked.into_inner(), texts.dictionary.labels().len());
}

#[test]
fn a_text_of_weight_3_counts_as_three_texts() {
    let lines = random_lines(300, &["a", "b", "c"]);
    let of = |copies: usize| {
        let all = lines
            .iter()
            .flat_map(|(line, label)| vec![(line, [*label]); if *label == "b" { copies } else { 1 }]);
        let all: Vec<_> = all.collect();
        texts(&all.iter().map(|(line, label)| (line.as_str(), &label[..])).collect::<Vec<_>>())
    };
    let (once, repeated) = (of(1), of(3));
    for (loss, penalty) in [
        (MarginLoss::Logistic, Penalty::L2),
        (MarginLoss::SquaredHinge, Penalty::L2),
        (MarginLoss::Logistic, Penalty::L1),
    ] {
        // Naive-Bayes log-ratios and the n-grams of too few texts depend on the number of copies.
        let settings = LinearSettings {
            loss,
            penalty,
            weighting: Weighting::None,
            texts_min: 1,
            epochs: 200,
            is_deterministic: true,
            ..settings()
        };
        let label = once.dictionary.label(b"b").unwrap() as usize;
        let mut weights = [1.0; 3];
        weights[label] = 3.0;
        let numbered = Numbered::of(&once, &settings, None).unwrap();
        let weighted = numbered.train(&once, WORDS, &settings, &weights, |_| (), &|| false).unwrap();
        let (equal, copied) = (trained(&once, settings), trained(&repeated, settings));
        let of_b = |model: &LinearModel, line: &str| {
            probabilities(model, line)[model.dictionary().label(b"b").unwrap() as usize]
        };
        // The hinge's probabilities are fitted on scores without the text's own part, which its copies keep.
        let score_of_b = |model: &LinearModel, line: &str| {
            let mut scores = Vec::new();
            model.scores(line.as_bytes(), &mut LinearScratch::default(), &mut scores);
            scores[model.dictionary().label(b"b").unwrap() as usize]
        };
        let (mut difference, mut raised) = (0.0f32, 0.0);
        for (line, _) in &lines[..50] {
            difference = difference.max((score_of_b(&weighted, line) - score_of_b(&copied, line)).abs());
            raised += of_b(&weighted, line) - of_b(&equal, line);
        }
        assert!(difference < 0.05 && raised > 1.0, "{loss:?} {penalty:?}: {difference} {raised}");
    }
}

#[test]
fn a_training_that_starts_from_a_model_keeps_what_the_texts_do_not_contradict() {
    let names = [&["a", "b"][..], &["a", "b", "c"]];
    for (labels, penalty) in names.into_iter().flat_map(|names| [(names, Penalty::L2), (names, Penalty::L1)])
    {
        let settings = LinearSettings { penalty, is_deterministic: true, epochs: 30, ..settings() };
        let all = random_lines(600, labels);
        let of = |lines: &[(String, &'static str)]| {
            let labels: Vec<[&str; 1]> = lines.iter().map(|(_, label)| [*label]).collect();
            texts(
                &lines
                    .iter()
                    .zip(&labels)
                    .map(|((line, _), label)| (line.as_str(), &label[..]))
                    .collect::<Vec<_>>(),
            )
        };
        let first = trained(&of(&all[..300]), settings);
        // The next texts have a new word, and most of them the last label, so that labels have other numbers.
        let mut next: Vec<(String, &'static str)> = all[300..312].to_vec();
        let last = labels[labels.len() - 1];
        next.extend((0..20).map(|at| (format!("new{} fresh", at % 3), last)));
        let next = of(&next);
        let numbered = Numbered::of(&next, &settings, Some(&first)).unwrap();
        let second = numbered.train(&next, WORDS, &settings, &[], |_| (), &|| false).unwrap();
        assert_ne!(second.labels().get(0), first.labels().get(0));
        let right = |model: &LinearModel| {
            let is_right = |(line, label): &&(String, &'static str)| {
                let found = probabilities(model, line);
                let best = (0..labels.len()).max_by(|&a, &b| found[a].total_cmp(&found[b])).unwrap();
                model.labels().get(best as u32) == label.as_bytes()
            };
            all[340..].iter().filter(is_right).count()
        };
        // The texts alone are too few to learn the labels from.
        let alone = trained(&next, settings);
        assert!(right(&second) > right(&alone) + 20, "{} {}", right(&second), right(&alone));
        let of_last = |model: &LinearModel| {
            probabilities(model, "new1 fresh")[model.dictionary().label(last.as_bytes()).unwrap() as usize]
        };
        assert!(of_last(&second) > of_last(&first) + 0.1, "{} {}", of_last(&second), of_last(&first));

        // Without a cost of the losses, the model stays as it is, except a bias without a penalty.
        if penalty == Penalty::L1 {
            continue;
        }
        let still = LinearSettings { cost: 1e-9, ..settings };
        let still = Numbered::of(&next, &still, Some(&first)).unwrap().train(
            &next,
            WORDS,
            &still,
            &[],
            |_| (),
            &|| false,
        );
        let still = still.unwrap();
        for (line, _) in &all[..20] {
            for label in labels {
                let of = |model: &LinearModel| {
                    probabilities(model, line)[model.dictionary().label(label.as_bytes()).unwrap() as usize]
                };
                assert!((of(&still) - of(&first)).abs() < 1e-3, "{line}");
            }
        }
    }
}

//! `trainer explain` on a model that learned planted words: the words come out on top.
#![allow(clippy::unwrap_used)]

mod command;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use batches::random::{Purpose, Random};
use command::{run, trainer};
use corpus::record::Votes;
use dataset::Row;
use dataset::vocabulary::{FIRST_WORD, UNKNOWN};
use fixtures::{dataset_of, word};
use runs::recipe::Dropout;
use serde_json::Value;
use tch::{Device, Kind, Tensor};
use tempfile::TempDir;
use trainer::families::read_classifier;

/// Words of the vocabulary. The first ones are planted: six per label, then 200 without a meaning.
const N_WORDS: u32 = 212;
const PLANTED: u32 = 6;
const N_ROWS: u32 = 2_000;

/// The words of a text with this label, as indices in the vocabulary: 15 words without a meaning, among which one
/// planted word of the label stands twice, another one once, and in every third text one of the other label.
fn text(key: u64, label: u8) -> Vec<u32> {
    let mut random = Purpose::Order.stream(&[key]);
    let of =
        |label: u8, random: &mut Random| u32::from(label) * PLANTED + random.below(PLANTED.into()) as u32;
    let mut words: Vec<u32> =
        (0..15).map(|_| 2 * PLANTED + random.below((N_WORDS - 2 * PLANTED).into()) as u32).collect();
    let twice = of(label, &mut random);
    let mut planted = vec![twice, twice, of(label, &mut random)];
    if key.is_multiple_of(3) {
        planted.push(of(1 - label, &mut random));
    }
    for word in planted {
        let at = random.below(words.len() as u64 + 1) as usize;
        words.insert(at, word);
    }
    words
}

/// The label that a word was planted for.
fn planted(word: u32) -> Option<u8> {
    (word < 2 * PLANTED).then_some((word / PLANTED) as u8)
}

fn row(at: u32) -> Row {
    let label = (at % 2) as u8;
    let mut votes = [0; 5];
    votes[if label == 1 { 4 } else { 0 }] = 1;
    Row {
        hash: u64::from(at),
        tokens: text(at.into(), label).into_iter().map(|word| FIRST_WORD + word).collect(),
        votes: Votes(votes),
        label,
        split: (at.wrapping_mul(37) % 1000) as u16,
        source: 0,
    }
}

/// A model of these rows, in a temporary folder.
fn model() -> (TempDir, PathBuf) {
    let (folder, dataset) = dataset_of(N_ROWS, N_WORDS, row);
    let out = folder.path().join("planted.model");
    let mut fit = trainer();
    fit.arg("fit").arg(dataset).arg("--out").arg(&out).args(["--device", "cpu", "--quiet"]);
    fit.args([
        "--embedding",
        "16",
        "--hidden",
        "16",
        "--linear",
        "8",
        "--epochs",
        "12",
        "--test-fraction",
        "0",
    ]);
    let (code, _, told) = run(fit);
    assert_eq!(code, Some(0), "{told}");
    (folder, out)
}

/// Texts that the model was not trained on, and their labels.
fn new_texts() -> Vec<(Vec<u32>, u8)> {
    (0..120).map(|at| (text(1_000_000 + at, (at % 2) as u8), (at % 2) as u8)).collect()
}

fn explained(model: &Path, texts: &[(Vec<u32>, u8)], more: &[&str]) -> String {
    let lines: Vec<String> = texts
        .iter()
        .map(|(words, _)| words.iter().map(|&at| word(at)).collect::<Vec<_>>().join(" ") + "\n")
        .collect();
    let path = model.with_extension("txt");
    fs::write(&path, lines.concat()).unwrap();
    let mut explain = trainer();
    explain.arg("explain").arg(model).arg("--input").arg(path).args(["--format", "text", "--device", "cpu"]);
    let (code, said, told) = run({
        explain.args(more);
        explain
    });
    assert_eq!((code, told.as_str()), (Some(0), ""));
    said
}

#[test]
fn planted_words_come_out_on_top() {
    let (_folder, out) = model();
    let texts = new_texts();
    let said = explained(&out, &texts, &["--json", "--top", "2"]);
    assert_eq!(explained(&out, &texts, &["--json", "--top", "2"]), said, "twice the same");
    let index = |value: &Value| (0..N_WORDS).find(|&at| value["word"] == word(at)).unwrap();
    let (mut by_occlusion, mut by_gradient, mut against, mut n_against, mut n_wrong) = (0, 0, 0, 0, 0);
    let gradients = gradients(&out, &texts);
    for ((line, (words, label)), gradients) in said.lines().zip(&texts).zip(&gradients) {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["label"] != *label {
            // A wrong prediction has the words of the other label on top.
            n_wrong += 1;
            continue;
        }
        assert_eq!(line["name"], ["negative", "positive"][usize::from(*label)]);
        let wanted: BTreeSet<u32> =
            words.iter().copied().filter(|&word| planted(word) == Some(*label)).collect();
        let top = |found: Vec<u32>| found.iter().take(wanted.len()).all(|found| wanted.contains(found));
        by_occlusion += u32::from(top(line["for"].as_array().unwrap().iter().map(index).collect()));
        by_gradient += u32::from(top(best(gradients, *label)));
        if words.iter().any(|&word| planted(word) == Some(1 - label)) {
            n_against += 1;
            against += u32::from(planted(index(&line["against"][0])) == Some(1 - label));
        }
    }
    eprintln!(
        "occlusion {by_occlusion}, gradient x input {by_gradient} of {}; against {against} of {n_against}",
        texts.len()
    );
    assert!(n_wrong <= 2, "{n_wrong} wrong predictions");
    let n = texts.len() as u32 - n_wrong;
    assert!(by_occlusion * 100 >= n * 97, "{by_occlusion} of {n}");
    assert!(against * 100 >= n_against * 97, "{against} of {n_against}");
    // The reason for the method.
    assert!(by_occlusion >= by_gradient, "occlusion {by_occlusion}, gradient {by_gradient}");
}

/// Gradient × input, the other method: per text and distinct word, the gradient of the score by the word's embedding,
/// times the difference of that embedding and the unknown word's.
fn gradients(model: &Path, texts: &[(Vec<u32>, u8)]) -> Vec<Vec<(u32, f64)>> {
    let saved = read_classifier(&model.join("model"), Device::Cpu).unwrap();
    let of_text = |(words, _): &(Vec<u32>, u8)| {
        let ids: Vec<i64> = words.iter().map(|&word| i64::from(FIRST_WORD + word)).collect();
        let tokens = Tensor::from_slice(&ids).view([1, -1]);
        let lengths = Tensor::from_slice(&[ids.len() as i64]);
        let embedding = saved.model.lstm().embedding();
        let mut gradient = embedding.grad();
        if gradient.defined() {
            let _ = gradient.zero_();
        }
        saved.model.forward(&tokens, &lengths, Dropout::default()).unwrap().sum(Kind::Float).backward();
        let gradient = embedding.grad();
        let input = embedding.detach() - embedding.detach().select(0, UNKNOWN.into());
        let weights = (gradient * input).sum_dim_intlist(1, false, Kind::Double);
        let distinct: BTreeSet<u32> = words.iter().copied().collect();
        let weight = |&word: &u32| (word, weights.double_value(&[(FIRST_WORD + word).into()]));
        distinct.iter().map(weight).collect::<Vec<_>>()
    };
    texts.iter().map(of_text).collect()
}

/// The two words with the largest weights for a label.
fn best(weights: &[(u32, f64)], label: u8) -> Vec<u32> {
    let sign = if label == 1 { 1.0 } else { -1.0 };
    let mut sorted = weights.to_vec();
    sorted.sort_by(|one, other| (sign * other.1).total_cmp(&(sign * one.1)));
    sorted.iter().map(|(word, _)| *word).take(2).collect()
}

#[test]
fn a_text_is_an_argument_and_lines_are_read_as_predict_reads_them() {
    let (folder, out) = model();
    let explain = |more: &[&str]| {
        let mut explain = trainer();
        explain.arg("explain").arg(&out).args(["--device", "cpu"]).args(more);
        run(explain)
    };
    let [planted, plain] = [word(PLANTED), word(50)];
    let (code, said, told) = explain(&[&format!("{planted}!\n{plain} Qwertz")]);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    let (head, rest) = said.split_once('\n').unwrap();
    assert!(head.starts_with("line 1: positive, probability 0."), "{said}");
    assert!(rest.starts_with("  for       +") && rest.contains(&format!("  {planted}\n")), "{said}");
    assert!(
        said.ends_with(&format!("\n\n  {planted} {plain} [qwertz]\n  [not in the vocabulary]\n\n")),
        "{said}"
    );
    assert!(!said.contains('\x1b'), "no terminal, no colours");

    let lines = folder.path().join("lines.json");
    fs::write(&lines, format!("{{\"reviewText\": \"{planted} {planted}\"}}\nno json\n{{}}\n")).unwrap();
    let lines = lines.to_str().unwrap();
    let (code, said, told) = explain(&["--json", "--input", lines]);
    let expected = "trainer: 2 of 3 lines: an error in place of a result (bad_line 1, no_text 1)";
    assert_eq!((code, told.as_str()), (Some(0), expected));
    let said: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&said[0]["for"][0]["word"], &said[0]["for"][0]["times"]), (&planted.into(), &2.into()));
    assert_eq!((&said[1]["error"], &said[2]["error"]), (&"bad_line".into(), &"no_text".into()));
    assert_eq!((&said[1]["file"], &said[1]["line"]), (&lines.into(), &2.into()));

    let (code, _, told) = explain(&["--format", "text", "a text"]);
    assert_eq!(code, Some(64));
    assert!(told.contains("cannot be used with"), "{told}");
    let (code, _, told) = explain(&["--input", lines, "--preset", "yelp"]);
    assert_eq!(code, Some(65));
    assert!(told.contains("no line could be read"), "{told}");
}

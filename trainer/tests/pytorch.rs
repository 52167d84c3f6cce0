//! The trainer computes the same results as PyTorch. `bench/pytorch.py` uses torch.nn.LSTM and torch.optim, and
//! shares no code with the trainer. From the same weights and rows, it gets the same losses, and from a saved model
//! the same predictions.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod command;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use command::{plain, trainer};
use corpus::clean::Rules;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::Row;
use runs::recipe::{ClassifierSettings, Dropout, LstmSettings, Objective, Pool};
use serde_json::Value;
use tch::{Device, Kind, Tensor};
use tests::ranks::python;
use trainer::families::{Classifier, Start};

const N_ROWS: u32 = 500;
const N_WORDS: u32 = 300;
/// Maximum length of a row. The trainer and bench/pytorch.py both truncate rows to 20 tokens.
const LENGTH_MAX: u32 = 30;
const TOKENS: usize = 20;
/// An epoch of about 400 rows has 24 steps, of which the last one is short. 9 epochs have more than 200
/// steps.
const SIZES: &[&str] =
    &["--tokens", "20", "--batch", "17", "--embedding", "12", "--hidden", "8", "--linear", "6"];
const N_STEPS: usize = 200;
/// Texts as people write them: references, tags, quotes, a dotted capital I, a final sigma, marks and emoji.
const RAW: &[&str] = &[
    "CAF&Eacute; <br/>Don\u{2019}t \u{2018}\u{39f}\u{394}\u{39f}\u{3a3}\u{2019}!! 10/10 \u{2764}\u{fe0f}",
    "\u{130}STANBUL don&#146;t &lt;b&gt;E\u{301}T\u{c9}\u{1f600}caf&#xe9;\u{a0}'don't'",
    "&amp;eacute; &#0; \u{301}caf\u{e9} I <3 don't \u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940}",
];

#[test]
fn losses_are_pytorchs_for_200_steps() {
    let Some(python) = python("the same training in PyTorch") else { return };
    let (folder, dataset) = rows();
    let first = folder.path().join("first");
    fit(&dataset, &first, &["--precision", "f64", "--epochs", "1", "--rate", "1e-9"]);
    let model = first.join("model");
    let weights = model.join("model.safetensors");

    let rules = [
        "adam --weight-decay 0.01",
        "sgd --rate 0.02 --base-batch 4 --warm-up 30 --momentum 0.9 --weight-decay 0.001",
        "adamw --rate 0.003 --weight-decay 0.1 --clip 0.5 --decay cosine",
    ];
    std::thread::scope(|scope| {
        for (at, rule) in rules.into_iter().enumerate() {
            let out = folder.path().join(format!("{at}"));
            let (python, dataset, model, weights) = (&python, &dataset, &model, &weights);
            let mut asked: Vec<&str> = ["--optimizer"].into_iter().chain(rule.split(' ')).collect();
            asked.extend(["--precision", "f64", "--epochs", "9", "--seed", "5", "--log-steps", "1"]);
            scope.spawn(move || {
                let mut ours = asked.clone();
                ours.extend(["--init-from", model.to_str().unwrap()]);
                fit(dataset, &out, &ours);
                let ours = losses(&fs::read_to_string(out.join("metrics.jsonl")).unwrap());

                asked.extend(["--steps", "200", "--init-from", weights.to_str().unwrap()]);
                let theirs = losses(&script(python, dataset, &asked));

                assert_eq!(theirs.len(), N_STEPS);
                assert!(ours[0] > ours[N_STEPS - 1], "{rule} learns nothing: {ours:?}");
                for (step, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                    let apart = (ours - theirs).abs() / theirs;
                    assert!(apart < 1e-9, "{rule}, step {step}: {ours}, PyTorch {theirs}");
                }
            });
        }
    });
}

#[test]
fn a_saved_model_gives_pytorchs_answers() {
    let Some(python) = python("the same training in PyTorch") else { return };
    let (folder, dataset) = rows();
    for (name, pool) in [("last", Pool::Last), ("mean-max", Pool::MeanMax)] {
        let out = folder.path().join(name);
        fit(&dataset, &out, &["--embedding-std", "1", "--epochs", "3", "--rate", "0.01", "--pool", name]);
        let weights = out.join("model/model.safetensors");

        let ids = i64::from(N_WORDS) + 2;
        let sizes = LstmSettings { ids, embedding: 12, hidden: 8, layers: 2, bidirectional: false };
        let objective = Objective::Label { pos_weight: 1.0 };
        let settings = ClassifierSettings { objective, pool, linear: 6 };
        let mut model = Classifier::new(
            &sizes,
            settings,
            Start { seed: 0, embedding_std: 1.0 },
            (Kind::Float, Device::Cpu),
        )
        .unwrap();
        model.lstm_mut().parameters_mut().read(&weights).unwrap();
        let (tokens, lengths) = batch_of_all();
        let ours = model.forward(&tokens, &lengths, Dropout::default()).unwrap().squeeze_dim(1);
        let ours: Vec<f64> = Vec::try_from(&ours.to_kind(Kind::Double)).unwrap();

        let asked = ["--logits", "--pool", name, "--init-from", weights.to_str().unwrap()];
        let theirs: Vec<f64> =
            script(&python, &dataset, &asked).lines().map(|line| line.parse().unwrap()).collect();

        assert_eq!(ours.len(), theirs.len());
        assert!(ours.iter().any(|logit| *logit > 0.5) && ours.iter().any(|logit| *logit < -0.5), "{ours:?}");
        for (row, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert!((ours - theirs).abs() < 1e-5, "{name}, row {row}: {ours}, PyTorch {theirs}");
        }
    }
}

/// The Python file that `export` writes makes the same predictions as `predict`.
#[test]
fn an_exported_model_predicts_by_its_own_python_file() {
    let Some(python) = python("an exported model's predict.py") else { return };
    let letter = |n: u32| char::from(b'a' + (n % 26) as u8);
    let named = ["caf\u{e9}", "don't", "e\u{301}t\u{e9}", "i\u{307}stanbul", "\u{3bf}\u{3b4}\u{3bf}\u{3c2}"];
    let made = (0..N_WORDS - named.len() as u32).map(|at| format!("wo{}{}", letter(at / 26), letter(at)));
    let mut words: Vec<String> = named.map(str::to_owned).into_iter().chain(made).collect();
    words.sort();
    let (folder, dataset) = fixtures::dataset_with(N_ROWS, &words, row);
    let text = |at: u32| {
        let tokens = row(at).tokens;
        let read: Vec<&str> = tokens.iter().map(|&id| words[id as usize - 2].as_str()).collect();
        // Stop words are removed; an unknown word is kept. Every other text is cleaned.
        match at % 2 {
            0 => format!("the {} nobodyknows {}\n", read[0], read.join(" ")),
            _ => format!(
                "{} The <b>{}</b>; Nobodyknows!\n",
                RAW[at as usize % RAW.len()],
                read.join(", ").to_uppercase()
            ),
        }
    };
    let lines: String = (0..100).map(text).chain(["10/10\n\nqwertz\n".to_owned()]).collect();
    let texts = folder.path().join("texts");
    fs::write(&texts, &lines).unwrap();
    for (name, asked) in [
        ("last", "--layers 1 --epochs 3 --rate 0.01"),
        ("mean-max", "--pool mean-max --layers 3 --epochs 3 --rate 0.01"),
        ("both", "--bidirectional --layers 2 --epochs 3 --rate 0.01"),
        ("both-mean-max", "--bidirectional --pool mean-max --layers 1 --epochs 3 --rate 0.01"),
        ("ngrams", "--with-ngrams --layers 1 --epochs 3 --rate 0.01 --validation-fraction 0.1"),
        ("rating", "--loss rating --layers 2 --epochs 3 --rate 0.01"),
        ("five", "--loss five-ratings --precision f64 --epochs 12 --rate 0.02"),
        ("warm", "--layers 1 --epochs 3 --rate 0.01 --calibrate temperature --validation-fraction 0.2"),
        ("platt", "--layers 1 --epochs 3 --rate 0.01 --calibrate platt --validation-fraction 0.2"),
        (
            "warm-five",
            "--loss five-ratings --epochs 16 --rate 0.02 --calibrate temperature --validation-fraction 0.1",
        ),
    ] {
        let [run, exported] = ["run", "exported"].map(|what| folder.path().join(format!("{what}-{name}")));
        let asked: Vec<&str> = asked.split(' ').chain(["--embedding-std", "1"]).collect();
        fit(&dataset, &run, &asked);
        let mut export = trainer();
        output(export.arg("export").arg(run.join("model")).arg("--out").arg(&exported));

        let mut predict = trainer();
        predict.arg("predict").arg(&exported).args(["--format", "text"]);
        let ours = output(predict.stdin(fs::File::open(&texts).unwrap())).stdout;
        let ours = String::from_utf8(ours).unwrap();
        let objects: Vec<Value> = ours.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let ours: Vec<f64> = objects.iter().map(|line| line["score"].as_f64().unwrap_or(f64::NAN)).collect();
        let theirs = of_file(&python, &exported, &texts);
        assert_eq!((ours.len(), theirs.len()), (103, 103));
        assert!(ours.iter().any(|score| (score - ours[0]).abs() > 0.01), "{name}: {ours:?}");
        for (line, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let is_equal = (ours - theirs).abs() < 1e-5 || line >= 100 && ours.is_nan() && theirs.is_nan();
            assert!(is_equal, "{name}, line {line}: {ours}, predict.py {theirs}");
        }
        let file = folder.path().join(format!("{name}.onnx"));
        output(trainer().arg("export").arg(run.join("model")).arg("--out").arg(&file));
        if let Some(found) = tests::oracle::onnx(&file, &exported, lines.as_bytes()) {
            assert_eq!(found.lines().count(), objects.len(), "{name}");
            let found = found.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            for (line, (ours, found)) in objects.iter().zip(found).take(100).enumerate() {
                let pairs = [("score", &found["score"]), ("probability", &found["probabilities"][1])];
                for (ours, found) in pairs.map(|(value, found)| (&ours[value], found)) {
                    let is_equal = match (ours.as_f64(), found.as_f64()) {
                        (Some(ours), Some(found)) => (ours - found).abs() < 1e-5,
                        (ours, found) => ours.is_none() && found.is_none(),
                    };
                    assert!(is_equal, "{name}, line {line}: {ours}, ONNX {found}");
                }
            }
        }
        let sums = Command::new("sha256sum")
            .args(["--check", "--quiet", "SHA256SUMS"])
            .current_dir(&exported)
            .status();
        assert!(sums.unwrap().success());
    }
}

/// The Python file of a model of words of punctuation cleans texts with them.
#[test]
fn an_exported_model_of_punctuation_predicts_by_its_own_python_file() {
    let Some(python) = python("an exported model's predict.py") else { return };
    let mut words: Vec<String> =
        ["!", ",", "10", "3d", "/", "\u{2764}", "good", "it's"].map(str::to_owned).to_vec();
    words.sort();
    let settings = Settings { cleaning_version: Rules::Punctuation.version(), ..Settings::default() };
    let of_words = |at| {
        let row = row(at);
        let tokens = row.tokens.iter().map(|&token| 2 + token % words.len() as u32).collect();
        Row { tokens, ..row }
    };
    let (folder, dataset) = fixtures::dataset_of_words(N_ROWS, &words, settings, of_words);
    let [run, exported] = ["run", "exported"].map(|name| folder.path().join(name));
    fit(&dataset, &run, &["--with-ngrams", "--epochs", "2", "--validation-fraction", "0.1"]);
    output(trainer().arg("export").arg(run.join("model")).arg("--out").arg(&exported));
    let [raw, cleaned] = ["raw", "cleaned"].map(|name| folder.path().join(name));
    fs::write(&raw, "It's GOOD, 10/10!\n3D \u{2764}\u{fe0f}\n").unwrap();
    fs::write(&cleaned, "it's good , 10 / 10 !\n3d \u{2764}\n").unwrap();
    let mut predict = trainer();
    predict.arg("predict").arg(&exported).args(["--format", "text"]).stdin(fs::File::open(&raw).unwrap());
    let score = |line: &str| serde_json::from_str::<Value>(line).unwrap()["score"].as_f64().unwrap();
    let ours = String::from_utf8(output(&mut predict).stdout).unwrap();
    let ours: Vec<f64> = ours.lines().map(score).collect();
    for texts in [&raw, &cleaned] {
        let theirs = of_file(&python, &exported, texts);
        assert_eq!((ours.len(), theirs.len()), (2, 2));
        assert!(
            ours.iter().zip(&theirs).all(|(ours, theirs)| (ours - theirs).abs() < 1e-5),
            "{ours:?}, {theirs:?}"
        );
    }
}

/// The scores that the Python file of an exported model prints for a file of texts.
fn of_file(python: &Path, exported: &Path, texts: &Path) -> Vec<f64> {
    let mut script = Command::new(python);
    // Texts are UTF-8 whatever the locale.
    script.env("LC_ALL", "C").env("PYTHONUTF8", "0").arg(exported.join("predict.py"));
    let printed = output(script.stdin(fs::File::open(texts).unwrap())).stdout;
    String::from_utf8(printed).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}

/// Rows of all lengths, whose words mostly determine the label.
fn rows() -> (tempfile::TempDir, PathBuf) {
    fixtures::dataset_of(N_ROWS, N_WORDS, row)
}

fn row(at: u32) -> Row {
    let label = at / 3 % 2;
    let length = at.wrapping_mul(2_654_435_761) % LENGTH_MAX + 1;
    let tokens = (0..length).map(|n| {
        let draw = (at * LENGTH_MAX + n).wrapping_mul(2_246_822_519) >> 8;
        // One label has words with even ids, the other has words with any ids.
        2 + if label == 1 { draw % N_WORDS } else { draw % (N_WORDS / 2) * 2 }
    });
    Row {
        hash: u64::from(at),
        tokens: tokens.collect(),
        votes: Votes(if label == 1 { [0, 0, 0, 0, 1] } else { [1, 0, 0, 0, 0] }),
        label: label as u8,
        split: (at * 7 % 1000) as u16,
        source: 0,
    }
}

/// All rows of the dataset as one batch: tokens, [B, T], and lengths, [B].
fn batch_of_all() -> (Tensor, Tensor) {
    let rows: Vec<Vec<u32>> = (0..N_ROWS).map(|at| row(at).tokens[..].to_vec()).collect();
    let lengths: Vec<i64> = rows.iter().map(|row| row.len().min(TOKENS) as i64).collect();
    let tokens: Vec<i64> = rows
        .iter()
        .flat_map(|row| (0..TOKENS).map(|place| row.get(place).map_or(0, |&token| i64::from(token))))
        .collect();
    let shape = [i64::from(N_ROWS), TOKENS as i64];
    (Tensor::from_slice(&tokens).view(shape), Tensor::from_slice(&lengths))
}

/// The losses of steps in lines of metrics.
fn losses(lines: &str) -> Vec<f64> {
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "steps").map(|line| line["loss"].as_f64().unwrap()).collect()
}

fn fit(dataset: &Path, out: &Path, asked: &[&str]) {
    let mut command = trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out).args(plain(&[SIZES, asked].concat()));
    output(&mut command);
}

fn script(python: &Path, dataset: &Path, asked: &[&str]) -> String {
    let mut command = Command::new(python);
    // A process that another test started while this dataset was written may still hold the writer's lock.
    command.env("HDF5_USE_FILE_LOCKING", "FALSE");
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("bench/pytorch.py")).arg(dataset);
    String::from_utf8(output(command.args(SIZES).args(asked)).stdout).unwrap()
}

fn output(command: &mut Command) -> Output {
    // One thread, because with small tensors several threads mostly wait for each other.
    let output = command.env("OMP_NUM_THREADS", "1").output().unwrap();
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

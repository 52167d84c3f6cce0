//! The files of a training for programs in Python: TensorBoard, NumPy and tokenizers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use dataset::Row;
use fixtures::{dataset_with, review, reviews};
use runs::tensorboard::EventFile;
use runs::training::{Line, StepsLine};
use serde_json::Value;

use super::command::{events, trainer};
use super::{done, fit, word};

/// The Python that reads the trainer's files for other programs; `None`, with a notice, if it is not
/// installed.
pub(super) fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.deps/report/bin/python");
    if python.exists() {
        return Some(python);
    }
    tests::skipped(&format!("files for TensorBoard and NumPy: no {}; run `make setup`", python.display()));
    None
}

pub(super) fn script(python: &Path, script: &str, arguments: &[&Path]) -> Value {
    let output = done(Command::new(python).args(["-c", script]).args(arguments));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The steps and values of each tag, as TensorBoard reads them.
pub(super) const READ_EVENTS: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()['scalars']}))
";

#[test]
fn tensorboard_reads_what_metrics_jsonl_says() {
    let Some(python) = python() else { return };
    let (data, dataset) = reviews(600);
    let run = data.path().join("run");
    fit(&dataset, &run, "--epochs 2 --validation-fraction 0.2 --clip 1");

    let found = script(&python, READ_EVENTS, &[&run.join("tensorboard")]);

    let expected = |event: &str, number: &str| -> Vec<(u64, f64)> {
        events(&run, event)
            .iter()
            .map(|line| (line["step"].as_u64().unwrap(), line.pointer(number).unwrap().as_f64().unwrap()))
            .collect()
    };
    for (tag, event, number) in [
        ("training/loss", "steps", "/loss"),
        ("training/rate", "steps", "/rate"),
        ("training/gradient_norm", "steps", "/gradient_norm"),
        ("speed/reviews_per_s", "steps", "/reviews_per_s"),
        ("training/epoch_loss", "epoch", "/loss"),
        ("validation/f1", "epoch", "/validation/f1"),
        ("test/accuracy", "test", "/metrics/accuracy"),
    ] {
        let expected = expected(event, number);
        let values = found[tag].as_array().unwrap_or_else(|| panic!("{tag} is not in {found}"));
        assert_eq!(values.len(), expected.len(), "{tag}");
        for (value, expected) in values.iter().zip(expected) {
            assert_eq!(value[0], expected.0, "{tag}");
            assert!(
                (value[1].as_f64().unwrap() - expected.1).abs() <= 1e-6 * expected.1.abs(),
                "{tag}: {value}"
            );
        }
    }
    assert!(found["rank_0/waited_for_batches_share"].is_array(), "{found}");
}

#[test]
fn tensorboard_forgets_what_a_resumed_training_does_again() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let steps = |step: u64, loss: f64| {
        Line::Steps(StepsLine {
            epoch: 1,
            step,
            loss,
            rate: 0.1,
            gradient_norm: None,
            drift: None,
            reviews_per_s: 1.0,
            waited_share: 0.0,
            elapsed_s: None,
            shares: Vec::new(),
        })
    };
    let mut first = EventFile::create(folder.path(), 0).unwrap();
    (1..=5).for_each(|step| first.add(&steps(step, 1.0)).unwrap());
    let mut second = EventFile::create(folder.path(), 3).unwrap();
    (4..=6).for_each(|step| second.add(&steps(step, 2.0)).unwrap());

    let found = script(&python, READ_EVENTS, &[folder.path()]);

    assert_eq!(found["training/loss"].to_string(), "[[1,1.0],[2,1.0],[3,1.0],[4,2.0],[5,2.0],[6,2.0]]");
}

#[test]
fn numpy_reads_the_scores_of_the_test_rows() {
    let Some(python) = python() else { return };
    let (data, dataset) = reviews(600);
    let run = data.path().join("run");
    fit(&dataset, &run, "--epochs 1");
    let script_of_scores = "
import json, sys, numpy
rows = numpy.load(sys.argv[1])
called = rows['score'] > 0
print(json.dumps({'rows': rows['row'].tolist(), 'right': int((called == (rows['label'] == 1)).sum())}))
";
    let found = script(&python, script_of_scores, &[&run.join("scores.npy")]);

    let evaluation: Value = serde_json::from_slice(&fs::read(run.join("evaluation.json")).unwrap()).unwrap();
    let metrics = &evaluation["metrics"];
    let expected: Vec<u32> = (0..600).filter(|&at| review(at).split < 100).collect();
    assert_eq!(found["rows"], serde_json::json!(expected));
    let right = metrics["accuracy"].as_f64().unwrap() * metrics["rows"].as_f64().unwrap();
    assert!((found["right"].as_f64().unwrap() - right).abs() < 1e-6);
    for wrong in evaluation["wrong"].as_array().unwrap() {
        let row: Row = review(wrong["row"].as_u64().unwrap() as u32);
        let words: Vec<String> = row.tokens.iter().map(|id| fixtures::word(id - 2)).collect();
        assert_eq!(wrong["words"], serde_json::json!(words));
        assert_eq!(wrong["label"], row.label);
        assert_ne!(wrong["score"].as_f64().unwrap() > 0.0, row.label == 1);
    }
}

#[test]
fn tokenizers_gives_the_ids_of_an_exported_model() {
    let Some(python) = python() else { return };
    let words: Vec<String> = (0..50).map(word).collect();
    let (data, dataset) = dataset_with(300, &words, review);
    let [run, exported] = ["run", "exported"].map(|name| data.path().join(name));
    fit(&dataset, &run, "--epochs 1");
    done(trainer().arg("export").arg(run.join("model")).arg("--out").arg(&exported));
    let script_of_ids = "
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
texts = ['woaa nobody woab', ' '.join(['wobx'] * 30)]
print(json.dumps([[e.ids, sum(e.attention_mask)] for e in tokenizer.encode_batch(texts)]))
";
    let found = script(&python, script_of_ids, &[&exported.join("tokenizer.json")]);

    let mut padded = vec![2, 1, 3];
    padded.resize(20, 0);
    assert_eq!(found, serde_json::json!([[padded, 3], [vec![51; 20], 20]]));
}

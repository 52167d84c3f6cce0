//! N-grams beside the LSTM (`--with-ngrams`), and as the teacher of rows without labels (`--unlabelled`).
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use classifiers::files::read_part;
use classifiers::linear::LinearScratch;
use command::{done, events, fit, program, refused, trainer};
use corpus::record::Votes;
use dataset::Row;
use fixtures::{dataset_of, review, reviews, word};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tests::ranks::Rank;

/// Settings by which the LSTM learns the planted words.
const SETTINGS: [&str; 10] = [
    "--epochs",
    "4",
    "--rate",
    "0.01",
    "--validation-fraction",
    "0.2",
    "--embedding-std",
    "1",
    "--log-steps",
    "1",
];

struct Data {
    folder: TempDir,
    dataset: PathBuf,
}

impl Data {
    fn new() -> Self {
        let (folder, dataset) = reviews(1500);
        Self { folder, dataset }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn fit(&self, name: &str, more: &[&str]) -> Command {
        fit(&self.dataset, &self.path(name), &[&SETTINGS[..], more].concat())
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn of_file(path: &Path) -> Value {
    json(&fs::read_to_string(path).unwrap())
}

/// The files of a model by name, without those that have the time or the folder.
fn files(model: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(model).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// The text of a row; unknown words are omitted.
fn text(row: &Row) -> String {
    row.tokens.iter().map(|id| word(id - 2)).collect::<Vec<_>>().join(" ")
}

/// The scores of texts by `predict`.
fn scores(model: &Path, texts: &Path) -> Vec<f64> {
    let mut predict = trainer();
    predict.arg("predict").arg(model).arg(texts).args(["--format", "text", "--device", "cpu"]);
    let (said, _) = done(predict);
    said.lines().map(|line| json(line)["score"].as_f64().unwrap()).collect()
}

#[test]
fn outputs_are_those_of_the_lstm_and_of_the_ngrams_by_the_factors() {
    let data = Data::new();
    done(data.fit("lstm", &[]));
    let (said, told) = done(data.fit("both", &["--with-ngrams", "--json"]));
    let [lstm, both] = ["lstm", "both"].map(|name| data.path(name));
    let weights = |out: &Path| fs::read(out.join("model/model.safetensors")).unwrap();
    assert!(weights(&lstm) == weights(&both), "the LSTM is trained as without n-grams");

    let parts = &json(&said)["parts"];
    let accuracy = |part: &str| parts[part]["accuracy"].as_f64().unwrap();
    assert!(told.contains(&format!("validation accuracy {:.4} with n-grams", accuracy("both"))), "{told}");
    let kept = json(&said)["validation"]["accuracy"].as_f64().unwrap();
    assert!((accuracy("lstm") - kept).abs() < 1e-9, "{kept} {parts}");
    assert!(accuracy("both") >= accuracy("lstm").max(accuracy("ngrams")) - 0.01, "{parts}");

    let factors = &of_file(&both.join("model/config.json"))["model"]["head"];
    assert_eq!(factors, &parts["factors"]);
    let [of_lstm, of_ngrams] = ["lstm", "ngrams"].map(|part| factors[part].as_f64().unwrap());
    assert!(of_lstm > 0.0 && of_ngrams > 0.0, "{factors}");
    let texts: Vec<String> = (0..200).map(|at| text(&review(7000 + at))).collect();
    let file = data.path("texts");
    fs::write(&file, texts.join("\n")).unwrap();
    let ngrams = read_part(&both.join("model")).unwrap().unwrap();
    assert!(ngrams.labels().iter().eq([b"negative", b"positive"]) || ngrams.labels().get(0) == b"positive");
    let sign = if ngrams.labels().get(0) == b"positive" { 1.0 } else { -1.0 };
    let (mut scratch, mut found) = (LinearScratch::default(), Vec::new());
    for ((text, lstm), both) in texts.iter().zip(scores(&lstm, &file)).zip(scores(&both, &file)) {
        ngrams.scores(text.as_bytes(), &mut scratch, &mut found);
        let expected = of_lstm * lstm + of_ngrams * sign * f64::from(found[0]);
        assert!((both - expected).abs() < 1e-4, "{text}: {both} {expected}");
    }

    // The saved model has the metrics of the training, and explains its predictions.
    let mut evaluate = trainer();
    evaluate.arg("evaluate").arg(&both).arg(&data.dataset).args([
        "--test-fraction",
        "0.1",
        "--device",
        "cpu",
    ]);
    let (said, _) = done(evaluate);
    let trained = &of_file(&both.join("evaluation.json"))["metrics"];
    assert_eq!(json(&said)["confusion"], trained["confusion"]);
    let mut explain = trainer();
    explain.arg("explain").arg(&both).arg(&texts[3]).args(["--json", "--device", "cpu"]);
    let (said, _) = done(explain);
    let explained = json(&said);
    let words = |of: &str| explained[of].as_array().unwrap().len();
    assert!(words("for") + words("against") > 1, "{said}");
    // A further training starts from the LSTM alone.
    done(fit(&data.dataset, &data.path("further"), &["--init-from", both.to_str().unwrap()]));
    assert!(!data.path("further/model/ngrams.json").exists());
}

#[test]
fn a_killed_training_resumes_to_the_same_model() {
    let data = Data::new();
    let (_folder, other) =
        dataset_of(400, 50, |at| Row { votes: Votes([1, 0, 0, 0, 0]), label: 0, ..review(20_000 + at) });
    let asked = ["--with-ngrams", "--unlabelled", other.to_str().unwrap(), "--checkpoint-steps", "7"];
    done(data.fit("whole", &asked));
    let mut rank = Rank::start(0, data.fit("killed", &asked));
    rank.wait_for_lines(" step ", 20);
    rank.signal(Signal::KILL);
    drop(rank.end());
    assert!(!data.path("killed/model").exists());
    refused(data.fit("killed", &[&asked[1..], &["--resume"]].concat()), 78, "--with-ngrams");
    let (_, told) = done(data.fit("killed", &[&asked[..], &["--resume"]].concat()));
    assert!(told.contains("resuming after step"), "{told}");
    assert_eq!(files(&data.path("whole/model")), files(&data.path("killed/model")));
}

#[test]
fn ranks_add_the_same_ngrams() {
    let data = Data::new();
    let mut launch = trainer();
    launch.args(["launch", "--nproc", "2", "--"]);
    let asked = data.fit("two", &["--with-ngrams"]);
    launch.args(asked.get_args());
    done(launch);
    done(data.fit("one", &["--with-ngrams"]));
    let weights = |name: &str| fs::read(data.path(name).join("model/ngrams.safetensors")).unwrap();
    assert!(weights("one") == weights("two"));
}

#[test]
fn ngrams_teach_rows_without_labels() {
    let (folder, few) = reviews(200);
    let (_more, more) =
        dataset_of(2000, 50, |at| Row { votes: Votes([1, 0, 0, 0, 0]), label: 0, ..review(20_000 + at) });
    let (_test, test) = dataset_of(1000, 50, |at| review(40_000 + at));
    let accuracy = |name: &str, asked: &[&str]| {
        let out = folder.path().join(name);
        let asked = [&SETTINGS[..], &["--test", test.to_str().unwrap()], asked].concat();
        done(fit(&few, &out, &asked));
        of_file(&out.join("evaluation.json"))["metrics"]["accuracy"].as_f64().unwrap()
    };
    let (alone, taught) =
        (accuracy("alone", &[]), accuracy("taught", &["--unlabelled", more.to_str().unwrap()]));
    assert!(taught > alone + 0.05, "alone {alone}, with a teacher {taught}");
    let settings = of_file(&folder.path().join("taught/settings.json"));
    assert_eq!(settings["unlabelled"]["rows"], 2000);
    assert!(!folder.path().join("taught/model/ngrams.json").exists());
    assert_eq!(events(&folder.path().join("taught"), "epoch").len(), 4);
}

#[test]
fn what_ngrams_cannot_do_is_refused() {
    let data = Data::new();
    let ngrams = |more: &[&str]| fit(&data.dataset, &data.path("a"), &[&["--with-ngrams"], more].concat());
    let none = "--with-ngrams is set, expected a validation split; pass --validation or a";
    refused(ngrams(&["--validation-fraction", "0"]), 78, none);
    refused(ngrams(&["--loss", "rating"]), 64, "--with-ngrams has no effect without --loss label");
    let other = data.dataset.to_str().unwrap();
    let unlabelled = fit(&data.dataset, &data.path("a"), &["--loss", "five-ratings", "--unlabelled", other]);
    refused(unlabelled, 64, "--unlabelled has no effect without --loss label");
    assert!(!data.path("a/model").exists());

    done(data.fit("model", &["--with-ngrams"]));
    let model = data.path("model/model");
    let predict = || {
        let mut predict = trainer();
        predict.arg("predict").arg(&model).args(["--device", "cpu"]).arg(&data.dataset).arg("--soft");
        predict.arg(data.path("soft.npy"));
        predict
    };
    // Each of the files is verified, and both the head and the n-grams are required.
    let weights = fs::read(model.join("ngrams.safetensors")).unwrap();
    let mut altered = weights.clone();
    *altered.last_mut().unwrap() ^= 1;
    fs::write(model.join("ngrams.safetensors"), altered).unwrap();
    refused(predict(), 66, "ngrams.safetensors: its SHA-256 is");
    fs::write(model.join("ngrams.safetensors"), &weights).unwrap();
    let sums = fs::read_to_string(model.join("SHA256SUMS")).unwrap();
    let kept: String =
        sums.lines().filter(|line| !line.contains("ngrams")).map(|line| format!("{line}\n")).collect();
    fs::write(model.join("SHA256SUMS"), kept).unwrap();
    refused(predict(), 66, "without n-grams, expected two finite factors, and n-grams");
    fs::write(model.join("SHA256SUMS"), sums).unwrap();
    done(predict());
    // The n-grams are no model of their own.
    let mut alone = program("ngrams");
    alone.arg("predict").arg(&model);
    refused(alone, 64, "run `trainer predict");
}

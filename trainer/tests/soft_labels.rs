//! Soft labels: predict writes them for a dataset, and fit learns from them, also for rows without labels.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use batches::{Division, Reading, Rows};
use classifiers::fasttext::{FastTextSettings, Loss, Training};
use classifiers::files::ModelRef;
use classifiers::{Classifier, Features, Words, read_fasttext_file};
use command::{ended, losses, plain, program, refused, run, trainer};
use corpus::record::Votes;
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use fixtures::{dataset_of, review, reviews};
use runs::soft_labels::{Digests, Labelled, SoftLabels};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tests::ranks::{Rank, python};

const N_ROWS: u32 = 600;

struct Data {
    folder: TempDir,
    dataset: PathBuf,
}

impl Data {
    fn new() -> Self {
        let (folder, dataset) = reviews(N_ROWS);
        Self { folder, dataset }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes soft labels of a dataset with `n_rows` rows.
    fn soft(&self, name: &str, of: &Path, n_rows: u32, row: impl Fn(u32) -> [f32; 2]) -> PathBuf {
        let mut labels = SoftLabels::zeros(n_rows as usize, 2);
        (0..n_rows).for_each(|at| labels.put(at as usize, &row(at)));
        let path = self.path(name);
        labels.write(&path, digests(&opened(of))).unwrap();
        path
    }

    fn fit(&self, name: &str, soft: &Path, more: &[&str]) -> Command {
        let mut command = fit(&self.dataset, &self.path(name), more);
        command.arg("--soft-labels").arg(soft);
        command
    }

    fn weights(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name).join("model/model.safetensors")).unwrap()
    }
}

/// A training of a small model. `more` replaces its settings.
fn fit(dataset: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out).args(["--device", "cpu"]).args(more);
    let is_given = |option: &str| more.iter().any(|given| given.split('=').next() == Some(option));
    for setting in ["--batch=32", "--embedding=8", "--hidden=6", "--linear=5", "--epochs=1"] {
        if !setting.split('=').next().is_some_and(is_given) {
            command.arg(setting);
        }
    }
    command
}

fn opened(dataset: &Path) -> Rows {
    let reading = Reading { division: Division::all_test(), tokens_max: 0, memory_bytes: 1 << 30 };
    Rows::open(dataset, &reading).unwrap()
}

fn digests(rows: &Rows) -> Digests {
    Digests { id: rows.id_digest(), text: rows.text_digest() }
}

#[track_caller]
fn trained(command: Command) -> String {
    let (code, told) = ended(command);
    assert_eq!(code, Some(0), "{told}");
    told
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn predicted(model: &Path, dataset: &Path, out: &Path) -> Command {
    let mut command = trainer();
    command.arg("predict").arg(model).arg(dataset).arg("--soft").arg(out).args(["--device", "cpu"]);
    command
}

fn predicted_by_ngrams(model: &Path, dataset: &Path, out: &Path) -> Command {
    let mut command = program("ngrams");
    command.arg("predict").arg(model).arg(dataset).arg("--soft").arg(out);
    command
}

/// Any probabilities.
fn probabilities(at: u32) -> [f32; 2] {
    let positive = (at * 37 % 100) as f32 / 100.0;
    [1.0 - positive, positive]
}

#[test]
fn probabilities_of_a_dataset_are_those_of_its_evaluation_and_numpy_reads_them() {
    let data = Data::new();
    let model = data.path("model");
    trained(fit(&data.dataset, &model, &["--epochs", "2", "--test-fraction", "0.3"]));
    let out = data.path("soft.npy");
    let told = trained(predicted(&model, &data.dataset, &out));
    assert!(
        told.contains("of these rows are training rows of the model, so their probabilities are too"),
        "{told}"
    );
    assert!(told.ends_with(&format!("the probabilities of 600 rows are in {}", out.display())), "{told}");

    let rows = opened(&data.dataset);
    let name = rows.name();
    let known = Labelled { name: &name, digests: digests(&rows), n_rows: 600, n_classes: 2 };
    let (_, labels) = SoftLabels::read(&out, &[known]).unwrap();
    let text: Vec<String> = (0..600)
        .map(|at| review(at).tokens.iter().map(|&id| fixtures::word(id - 2)).collect::<Vec<_>>().join(" "))
        .collect();
    fs::write(data.path("lines.txt"), text.join("\n")).unwrap();
    let mut lines = trainer();
    lines
        .arg("predict")
        .arg(&model)
        .arg(data.path("lines.txt"))
        .args(["--format", "text", "--device", "cpu"]);
    let (_, said, _) = run(lines);
    for (at, line) in said.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
        let found: Vec<f32> = labels.row(at).collect();
        let expected = line["probability"].as_f64().unwrap();
        assert!(
            (f64::from(found[1]) - expected).abs() < 1e-6 && (found[0] + found[1] - 1.0).abs() < 1e-6,
            "{line}"
        );
    }

    // Nothing is overwritten, and the refusal precedes the computation.
    refused(predicted(&model, &data.dataset, &out), 64, "soft.npy: already exists");
    let elsewhere = data.path("no folder/soft.npy");
    refused(
        predicted(&model, &data.dataset, &elsewhere),
        64,
        "no folder: no such folder, expected one to write into",
    );
    let lines = data.path("lines.txt");
    refused(predicted(&model, &lines, &data.path("a.npy")), 66, "a text file, expected a dataset written by");
    let (_other, other) = dataset_of(9, 51, review);
    refused(predicted(&model, &other, &data.path("a.npy")), 78, "its vocabulary differs");
    let of_rating = data.path("rating");
    trained(fit(&data.dataset, &of_rating, &["--loss", "rating"]));
    refused(predicted(&of_rating, &data.dataset, &data.path("a.npy")), 78, "predicts no probability");
    assert!(!data.path("a.npy").exists());

    let Some(python) = python("soft labels in NumPy") else { return };
    let script = "\
import hashlib, json, sys, numpy
soft = numpy.load(sys.argv[1])
assert soft.shape == (600, 2) and soft.dtype == numpy.float32 and abs(soft.sum(1) - 1).max() < 1e-6
assert (numpy.load(sys.argv[1], mmap_mode='r') == soft).all()
line = json.loads(open(sys.argv[1], 'rb').read().rsplit(b'\\n', 2)[1])
assert line['sha256'] == hashlib.sha256(soft.tobytes()).hexdigest()
with open(sys.argv[2], 'wb') as file:
    numpy.save(file, soft)
    file.write(b'\\n' + json.dumps({'id_digest': line['id_digest']}).encode())
numpy.save(sys.argv[3], soft)
";
    let (again, bare) = (data.path("again.npy"), data.path("bare.npy"));
    let done = Command::new(python).args(["-c", script]).args([&out, &again, &bare]).status().unwrap();
    assert!(done.success());
    // A file of Python has the same array.
    assert_eq!(SoftLabels::read(&again, &[known]).unwrap().1, labels);
    refused(
        data.fit("bare", &bare, &[]),
        65,
        "bare.npy: no line behind the array, expected a line with the id digest",
    );
}

/// An n-gram model of these rows, with the names of their labels, and the probability of the second name for each text.
fn ngrams_model(folder: &Path, words: Words, loss: Loss, names: [&str; 2]) -> Classifier {
    let lines = (0..N_ROWS).map(|at| {
        let row = review(at);
        format!("__label__{} {}\n", names[usize::from(row.label)], text(&row))
    });
    let path = folder.with_extension("txt");
    fs::write(&path, lines.collect::<String>()).unwrap();
    let texts = read_fasttext_file(&path, 1, classifiers::Reading { words, ..Default::default() }).unwrap();
    let features = Features { ngrams: 2, buckets: 1000, ..Features::default() };
    let settings = FastTextSettings {
        words,
        features,
        loss,
        rate: 0.5,
        is_deterministic: true,
        ..FastTextSettings::default()
    };
    let mut training = Training::new(&texts, settings).unwrap();
    while training.step().unwrap().is_some() {}
    classifiers::files::write(folder, ModelRef::FastText(&training.finish())).unwrap();
    Classifier::read(folder).unwrap()
}

/// The words of a row; unknown ones are omitted.
fn text(row: &Row) -> String {
    let words = row.tokens.iter().filter_map(|token| Some(fixtures::word(token.checked_sub(2)?)));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn an_n_gram_model_predicts_the_words_of_rows() {
    let (folder, dataset) = dataset_of(300, 50, |at| {
        let mut row = review(at);
        // An unknown word, which is not the only one of the row.
        if row.tokens.len() > 3 {
            row.tokens[1] = 1;
        }
        row
    });
    let path = |name: &str| folder.path().join(name);
    let rows = opened(&dataset);
    let name = rows.name();
    let known = Labelled { name: &name, digests: digests(&rows), n_rows: 300, n_classes: 2 };
    for (at, (words, loss)) in
        [(Words::Cleaned, Loss::Softmax), (Words::Spaces, Loss::Softmax), (Words::Cleaned, Loss::Bce)]
            .into_iter()
            .enumerate()
    {
        let (model, out) = (path(&format!("ngrams-{at}")), path(&format!("{at}.npy")));
        let ngrams = ngrams_model(&model, words, loss, ["negative", "positive"]);
        trained(predicted_by_ngrams(&model, &dataset, &out));
        let (_, labels) = SoftLabels::read(&out, &[known]).unwrap();
        let place = |name: &str| ngrams.label(name.as_bytes()).unwrap() as usize;
        let mut row = Row::default();
        let (mut reader, mut answers) = (DatasetReader::open(&dataset).unwrap().rows(), ngrams.reader());
        for number in 0..300 {
            reader.read(number, &mut row).unwrap();
            let scores = answers.probabilities(text(&row).as_bytes()).unwrap();
            let expected = scores[place("positive")] / (scores[0] + scores[1]);
            let found: Vec<f32> = labels.row(number as usize).collect();
            assert!((found[1] - expected).abs() < 1e-6, "{number}: {found:?} {expected}");
        }
    }
    let other = path("other");
    ngrams_model(&other, Words::Cleaned, Loss::Softmax, ["0", "1"]);
    let expected = "expected negative, positive, the labels of ";
    refused(predicted_by_ngrams(&other, &dataset, &path("other.npy")), 66, expected);
    // An LSTM learns from them.
    let mut student = fit(&dataset, &path("student"), &[]);
    student.arg("--soft-labels").arg(path("0.npy"));
    trained(student);
}

#[test]
fn probabilities_of_zero_and_one_train_the_bits_of_labels() {
    let data = Data::new();
    let hard = data.soft("hard.npy", &data.dataset, N_ROWS, |at| match review(at).label {
        0 => [1.0, 0.0],
        _ => [0.0, 1.0],
    });
    for (name, more) in [
        ("kernels", &["--hidden=16", "--pos-weight=0.3"][..]),
        ("pytorch", &["--compute=pytorch", "--row-weight=log"]),
        ("f64", &["--precision=f64"]),
    ] {
        let (labels, soft) = (format!("{name} labels"), format!("{name} soft"));
        trained(fit(&data.dataset, &data.path(&labels), more));
        trained(data.fit(&soft, &hard, more));
        assert!(data.weights(&labels) == data.weights(&soft), "{name}");
    }
}

#[test]
fn kernels_and_pytorch_learn_the_same_soft_labels_and_metrics_have_labels() {
    let data = Data::new();
    let soft = data.soft("soft.npy", &data.dataset, N_ROWS, probabilities);
    let losses_of = |name: &str, more: &[&str]| {
        let more =
            [&["--hidden=16", "--epochs=2", "--log-steps=1", "--validation-fraction=0.2"], more].concat();
        trained(data.fit(name, &soft, &plain(&more)));
        losses(&data.path(name), "steps")
    };
    let kernels = losses_of("kernels", &[]);
    let exact = losses_of("exact", &["--precision=f64"]);
    assert_eq!(kernels.len(), exact.len());
    for (found, expected) in kernels.iter().zip(&exact) {
        assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    }
    // The loss of the validation and of the test split is that of the labels.
    let evaluated = json(&data.path("exact/evaluation.json"));
    let mut command = trainer();
    command.arg("evaluate").arg(data.path("exact")).arg(&data.dataset);
    let (code, said, told) = run({
        command.args(["--test-fraction", "0.1", "--device", "cpu"]);
        command
    });
    assert_eq!(code, Some(0), "{told}");
    let said: Value = serde_json::from_str(&said).unwrap();
    let [found, expected] = [&evaluated["metrics"], &said].map(|of| of["loss"].as_f64().unwrap());
    assert!((found - expected).abs() < 1e-5, "{found} {expected}");
}

#[test]
fn soft_labels_that_do_not_fit_are_refused() {
    let data = Data::new();
    let (_other, other) = reviews(300);
    let of_other = data.soft("other.npy", &other, 300, probabilities);
    // The same texts with another vocabulary are not another dataset.
    let (_ids, other_ids) = dataset_of(N_ROWS, 51, |at| {
        let row = review(at);
        Row { tokens: row.tokens.iter().map(|token| token + 1).collect(), ..row }
    });
    let of_ids = data.soft("ids.npy", &other_ids, N_ROWS, probabilities);
    trained(data.fit("same texts", &of_ids, &[]));
    refused(data.fit("a", &of_other, &[]), 78, "other.npy: soft labels of the dataset with id digest");
    let short = data.soft("short.npy", &data.dataset, N_ROWS - 1, probabilities);
    refused(data.fit("a", &short, &[]), 65, "short.npy: shape (599, 2), expected (600, 2) as in");
    let invalid = |name: &str, row: [f32; 2]| {
        data.soft(name, &data.dataset, N_ROWS, |at| if at == 77 { row } else { probabilities(at) })
    };
    let nan = invalid("nan.npy", [f32::NAN, 0.5]);
    refused(data.fit("a", &nan, &[]), 65, "nan.npy: NaN in row 77, expected probabilities from 0 to 1");
    let sum = invalid("sum.npy", [0.5, 0.75]);
    refused(data.fit("a", &sum, &[]), 65, "sum.npy: the sum 1.25 in row 77, expected probabilities");
    refused(data.fit("a", &data.path("none.npy"), &[]), 66, "none.npy: no such file, expected soft labels");

    let soft = data.soft("soft.npy", &data.dataset, N_ROWS, probabilities);
    let with = |more: &[&str]| data.fit("a", &soft, more);
    refused(with(&["--soft-labels", soft.to_str().unwrap()]), 78, "--soft-labels is two files for");
    refused(
        with(&["--pos-weight", "balanced"]),
        78,
        "--pos-weight is balanced, expected numbers with --soft-labels",
    );
    refused(with(&["--loss", "rating"]), 64, "--soft-labels has no effect without --loss label");
    assert!(!data.path("a/model").exists());
}

#[test]
fn a_killed_training_resumes_with_its_soft_labels_only() {
    let data = Data::new();
    let soft = data.soft("soft.npy", &data.dataset, N_ROWS, probabilities);
    let settings = ["--epochs", "4", "--checkpoint-steps", "3", "--log-steps", "1"];
    trained(data.fit("whole", &soft, &settings));
    let resumed = [&settings[..], &["--resume"]].concat();
    let mut rank = Rank::start(0, data.fit("killed", &soft, &settings));
    rank.wait_for_lines(" step ", 8);
    rank.signal(Signal::KILL);
    drop(rank.end());
    assert!(!data.path("killed/model").exists());

    let other = data.soft("other.npy", &data.dataset, N_ROWS, |at| probabilities(at + 1));
    refused(data.fit("killed", &other, &resumed), 78, "SHA-256 of --soft-labels is");
    let without = fit(&data.dataset, &data.path("killed"), &resumed);
    refused(without, 78, "SHA-256 of --soft-labels is");
    let told = trained(data.fit("killed", &soft, &resumed));
    assert!(told.contains("resuming after step"), "{told}");
    assert!(data.weights("killed") == data.weights("whole"));
    // The file may be a copy with another name.
    let copy = data.path("copy.npy");
    fs::copy(&soft, &copy).unwrap();
    assert!(trained(data.fit("killed", &copy, &resumed)).contains("already complete"));
}

/// A row whose text is not in the dataset, with a label that is no review's.
fn unlabelled(at: u32, label: u8) -> Row {
    let votes = if label == 0 { [1, 0, 0, 0, 0] } else { [0, 0, 0, 0, 1] };
    Row { votes: Votes(votes), label, ..review(N_ROWS + at) }
}

#[test]
fn labels_of_rows_without_labels_affect_nothing() {
    let data = Data::new();
    let mut results = Vec::new();
    for label in [0, 1] {
        let (_folder, other) = dataset_of(400, 50, |at| unlabelled(at, label));
        let soft = data.soft(&format!("{label}.npy"), &other, 400, probabilities);
        let (name, other) = (format!("out-{label}"), other.to_str().unwrap());
        let told = trained(data.fit(&name, &soft, &["--unlabelled", other, "--validation-fraction", "0.2"]));
        assert!(!told.contains("omitted"), "{told}");
        let settings = json(&data.path(&name).join("settings.json"));
        assert_eq!(settings["unlabelled"]["rows"], 400);
        assert_eq!(settings["soft_labels"][0], soft.to_str().unwrap());
        let rows: Vec<u64> =
            settings["dataset"]["rows"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        assert_eq!(rows.iter().sum::<u64>(), u64::from(N_ROWS));
        let evaluated = json(&data.path(&name).join("evaluation.json"));
        assert_eq!(evaluated["metrics"]["rows"], rows[2]);
        let steps = settings["steps_of_epoch"].as_u64().unwrap();
        assert_eq!(steps, (rows[0] + 400).div_ceil(32));
        results.push((data.weights(&name), evaluated["metrics"].clone(), rows));
    }
    assert!(results[0] == results[1]);
    // The rows are trained on: without them, the weights differ.
    trained(fit(&data.dataset, &data.path("alone"), &["--validation-fraction", "0.2"]));
    assert!(results[0].0 != data.weights("alone"));

    let report = data.path("report.html");
    let mut command = trainer();
    command.arg("report").arg(data.path("out-0")).arg("--out").arg(&report);
    trained(command);
    let page = fs::read_to_string(report).unwrap();
    assert!(
        page.contains("training rows without labels")
            && page.contains("SHA-256 of the soft labels of --unlabelled")
    );
}

#[test]
fn rows_without_labels_whose_text_is_in_the_dataset_are_omitted() {
    let data = Data::new();
    let (_folder, other) = dataset_of(400, 50, |at| unlabelled(at, 0));
    let (_folder, shared) =
        dataset_of(500, 50, |at| if at < 100 { review(at) } else { unlabelled(at - 100, 0) });
    for (name, of, n_rows) in [("new", &other, 400), ("shared", &shared, 500)] {
        let soft = data.soft(&format!("{name}.npy"), of, n_rows, |at| probabilities(at + 500 - n_rows));
        let told = trained(data.fit(name, &soft, &["--unlabelled", of.to_str().unwrap()]));
        assert_eq!(told.contains("omitted 100 rows, which are texts of "), name == "shared", "{told}");
    }
    assert_eq!(
        json(&data.path("new/settings.json"))["steps_of_epoch"],
        json(&data.path("shared/settings.json"))["steps_of_epoch"]
    );
}

/// A dataset of one label can be trained on if no row is learned or evaluated by its label.
#[test]
fn a_dataset_without_labels_is_trained_on_alone() {
    let data = Data::new();
    let (_folder, other) = dataset_of(400, 50, |at| unlabelled(at, 0));
    let soft = data.soft("soft.npy", &other, 400, probabilities);
    let with = |more: &[&str]| {
        let mut command = fit(&other, &data.path("a"), more);
        command.arg("--soft-labels").arg(&soft);
        command
    };
    refused(with(&[]), 78, "--test-fraction is above 0, expected 0 or another dataset as --test");
    refused(with(&["--test-fraction", "0"]), 78, "expected 0 or another dataset as --validation, because");
    let none = ["--test-fraction", "0", "--validation-fraction", "0"];
    refused(fit(&other, &data.path("a"), &none), 65, "have label 0, expected both labels");
    let test = data.dataset.to_str().unwrap();
    trained(with(&["--test", test, "--validation-fraction", "0"]));
    assert_eq!(json(&data.path("a/evaluation.json"))["metrics"]["rows"], 600);
}

#[test]
fn a_model_of_few_labels_learns_from_the_soft_labels_of_a_teacher() {
    let (folder, dataset) = reviews(3000);
    let path = |name: &str| folder.path().join(name);
    let sizes = ["--epochs", "8", "--hidden", "16", "--batch", "16", "--validation-fraction", "0"];
    trained(fit(&dataset, &path("teacher"), &sizes));
    let (_few, few) = dataset_of(60, 50, |at| review(10_000 + at));
    let (_more, more) =
        dataset_of(2000, 50, |at| Row { votes: Votes([1, 0, 0, 0, 0]), label: 0, ..review(20_000 + at) });
    let (_test, test) = dataset_of(1000, 50, |at| review(40_000 + at));
    trained(predicted(&path("teacher"), &more, &path("more.npy")));

    let accuracy = |name: &str, asked: &[&str]| {
        let out = path(name);
        let asked = [&sizes[..], &["--test", test.to_str().unwrap()], asked].concat();
        trained(fit(&few, &out, &asked));
        json(&out.join("evaluation.json"))["metrics"]["accuracy"].as_f64().unwrap()
    };
    let (labels, more) = (path("more.npy"), more.to_str().unwrap());
    let alone = accuracy("alone", &[]);
    let taught = accuracy("taught", &["--unlabelled", more, "--soft-labels", labels.to_str().unwrap()]);
    assert!(taught > alone + 0.05, "alone {alone}, with a teacher {taught}");
}

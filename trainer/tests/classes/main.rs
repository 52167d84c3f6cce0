//! Three and more named classes, from the training to the report. Reviews of each class have words of their own.
#![allow(clippy::unwrap_used)]

#[path = "../command/mod.rs"]
mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use batches::random::Purpose;
use command::{done, events, losses, run, trainer};
use corpus::labels::Labels;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::Row;
use fixtures::{dataset_prepared, word};
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::ranks::python;

const THREE: &str = "1-2=negative,3=neutral,4-5=positive";
const N_ROWS: u32 = 900;
const N_WORDS: u32 = 60;

fn settings(labels: &str) -> Settings {
    Settings { max_tokens: 0, labels: Labels::Classes(labels.parse().unwrap()), ..Settings::default() }
}

/// Row `at`: most reviews are positive, few neutral. Every third word is one of the 12 words of its rating, and the
/// others are words of any rating.
fn review(at: u32, labels: &Labels) -> Row {
    let mut random = Purpose::Order.stream(&[7, u64::from(at)]);
    let rating = [1, 2, 3, 3, 4, 4, 5, 5, 5, 5][random.below(10) as usize];
    let length = 3 + random.below(20) as u32;
    let tokens = (0..length).map(|n| match n % 3 {
        0 => 2 + 12 * (rating - 1) + random.below(12) as u32,
        _ => 2 + random.below(u64::from(N_WORDS)) as u32,
    });
    let mut votes = [0; 5];
    votes[rating as usize - 1] = 1;
    Row {
        hash: u64::from(at),
        tokens: tokens.collect(),
        votes: Votes(votes),
        label: labels.label(rating as u8).unwrap(),
        split: (at.wrapping_mul(37) % 1000) as u16,
        source: 0,
    }
}

fn dataset(labels: &str) -> (TempDir, PathBuf) {
    let settings = settings(labels);
    let labels = settings.labels.clone();
    dataset_prepared(N_ROWS, N_WORDS, settings, |at| review(at, &labels))
}

/// A training that learns the planted words.
fn fit(dataset: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out).args(["--device", "cpu", "--batch", "16"]);
    command.args(["--embedding", "16", "--hidden", "16", "--linear", "8", "--log-steps", "1"]);
    command.args(["--dropout-words", "0", "--dropout-head", "0"]).args(more);
    if !more.contains(&"--rate") {
        command.args(["--rate", "0.01"]);
    }
    if !more.contains(&"--epochs") {
        command.args(["--epochs", "4"]);
    }
    command
}

#[track_caller]
fn refused(command: Command, code: i32, expected: &str) {
    let (found, said, told) = run(command);
    assert_eq!((found, said.as_str()), (Some(code), ""), "{told}");
    assert!(told.lines().count() == 1 && told.contains(expected), "{told}");
}

fn command(name: &str, paths: &[&Path]) -> Command {
    let mut command = trainer();
    command.arg(name).args(paths);
    command
}

fn evaluate(model: &Path, dataset: &Path) -> Command {
    let mut evaluate = command("evaluate", &[model, dataset]);
    evaluate.args(["--device", "cpu"]);
    evaluate
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The predictions of a model for these lines of text.
fn predicted(model: &Path, lines: &str) -> Vec<Value> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), lines).unwrap();
    let mut predict = command("predict", &[model]);
    predict.args(["--format", "text", "--device", "cpu"]).stdin(fs::File::open(file.path()).unwrap());
    done(predict).0.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn planted_classes_are_learned_evaluated_and_predicted_by_name() {
    let (data, dataset) = dataset(THREE);
    let out = data.path().join("out");
    let (_, told) = done(fit(&dataset, &out, &["--validation-fraction", "0.1", "--embedding-std", "1"]));

    let test = events(&out, "test").remove(0)["metrics"].clone();
    assert!(test["accuracy"].as_f64().unwrap() > 0.85 && test["f1"].as_f64().unwrap() > 0.8, "{test}");
    let line =
        told.lines().find(|line| line.starts_with("trainer: macro F1 ")).unwrap_or_else(|| panic!("{told}"));
    assert!(
        line.starts_with(&format!("trainer: macro F1 {:.4} [95 %: 0.", test["f1"].as_f64().unwrap()))
            && line.contains("] (baseline: 0.2"),
        "{line}"
    );
    assert!(told.contains("(majority-class baseline, class positive: 0."), "{told}");
    assert!(told.contains("\ntrainer: class neutral: F1 "), "{told}");

    // `evaluate` has the same metrics, from its own reading of the saved model.
    let mut again = evaluate(&out, &dataset);
    again.args(["--test-fraction", "0.1"]);
    let again: Value = serde_json::from_str(&done(again).0).unwrap();
    for name in ["loss", "accuracy", "f1", "precision", "recall", "auc", "confusion", "rows"] {
        assert_eq!(again[name], test[name], "{name}");
    }
    let names: Vec<&str> =
        again["classes"].as_array().unwrap().iter().map(|class| class["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["negative", "neutral", "positive"]);
    let mean =
        again["classes"].as_array().unwrap().iter().map(|class| class["f1"].as_f64().unwrap()).sum::<f64>()
            / 3.0;
    assert!((mean - again["f1"].as_f64().unwrap()).abs() < 1e-12);

    // Words of ratings 1, 3 and 5.
    let texts = [0, 24, 48].map(|first| (first..first + 8).map(word).collect::<Vec<_>>().join(" "));
    let found = predicted(&out, &(texts.join("\n") + "\nqwertz\n"));
    for (line, name) in found.iter().zip(["negative", "neutral", "positive"]) {
        assert_eq!(line["class"], name, "{line}");
        let probabilities = line["probabilities"].as_object().unwrap();
        assert_eq!(probabilities.keys().collect::<Vec<_>>(), ["negative", "neutral", "positive"]);
        let sum: f64 = probabilities.values().map(|one| one.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{line}");
        let largest = probabilities.values().map(|one| one.as_f64().unwrap()).fold(0.0, f64::max);
        assert_eq!(probabilities[name], largest, "{line}");
    }
    assert_eq!(found[3], json!({"line": 4, "error": "only_unknown"}));
    let config = read_json(&out.join("model/config.json"));
    assert_eq!(config["preparation"]["labels"], THREE);
    assert_eq!(config["scoring"], json!({"classes": {"classes": 3}}));
}

#[test]
fn five_classes_and_classes_in_another_order_are_trained_too() {
    for labels in ["1=one,2=two,3=three,4=four,5=five", "4-5=good,1-2=bad,3=fair"] {
        let (data, dataset) = dataset(labels);
        let out = data.path().join("out");
        done(fit(&dataset, &out, &["--class-weight", "balanced", "--epochs", "8"]));
        let test = events(&out, "test").remove(0)["metrics"].clone();
        // The macro F1 of a constant prediction is 0.13 for five classes and 0.27 for three.
        assert!(test["f1"].as_f64().unwrap() > 0.5, "{labels}: {test}");
        let found = predicted(&out, &(48..56).map(word).collect::<Vec<_>>().join(" "));
        assert_eq!(found[0]["class"], if labels.starts_with('1') { "five" } else { "good" });
        let weights = read_json(&out.join("settings.json"))["recipe"]["family"]["classifier"]["objective"]["classes"]
            ["class_weights"]
            .clone();
        assert_eq!(weights.as_array().unwrap().len(), labels.split(',').count());
        assert!(weights[0].as_f64().unwrap() != 1.0);
    }
}

#[test]
fn two_named_classes_are_trained_as_two_labels_and_shown_by_name() {
    let (data, dataset) = dataset("1-3=bad,4-5=good");
    let (other, by_rating) = {
        let settings = Settings { max_tokens: 0, ..Settings::default() };
        let labels = settings.labels.clone();
        dataset_prepared(N_ROWS, N_WORDS, settings, |at| review(at, &labels))
    };
    let [named, out] = [&data, &other].map(|folder| folder.path().join("out"));
    let (_, told) = done(fit(&dataset, &named, &["--epochs", "2"]));
    done(fit(&by_rating, &out, &["--epochs", "2"]));
    let weights = |run: &Path| fs::read(run.join("model/model.safetensors")).unwrap();
    assert!(weights(&named) == weights(&out), "the same labels give the same weights");
    assert!(
        told.contains("(majority-class baseline, class good: 0.") && told.contains("(of class good; "),
        "{told}"
    );
    let found = predicted(&named, &(48..56).map(word).collect::<Vec<_>>().join(" "));
    assert_eq!((&found[0]["class"], &found[0]["label"]), (&json!("good"), &json!(1)));
    assert!(found[0]["probability"].as_f64().unwrap() > 0.5);
    refused(evaluate(&out, &dataset), 78, "labels --labels 1-3=bad,4-5=good, expected --positive-from 4");
    for loss in ["rating", "five-ratings"] {
        let expected =
            format!("--loss is {loss}, expected label for a dataset made with --labels; omit --loss");
        refused(fit(&dataset, &data.path().join("new"), &["--loss", loss]), 78, &expected);
    }
    let expected = "--class-weight is set, expected no --class-weight for two classes; pass --pos-weight";
    refused(fit(&dataset, &data.path().join("new"), &["--class-weight", "balanced"]), 78, expected);
}

#[test]
fn options_of_two_classes_are_refused_for_three_by_name() {
    let (data, dataset) = dataset(THREE);
    let new = data.path().join("new");
    for (flags, expected) in [
        (["--threshold", "0.7"], "--threshold is 0.7, expected no threshold for three or more classes"),
        (
            ["--pos-weight", "2"],
            "--pos-weight is set, expected no --pos-weight for three or more classes; pass --class-weight",
        ),
        (["--loss", "rating"], "--loss is rating, expected label for a dataset made with --labels; "),
        (
            ["--loss", "five-ratings"],
            "--loss is five-ratings, expected label for a dataset made with --labels; ",
        ),
        (
            ["--class-weight", "1,2"],
            "--class-weight is 2 weights, expected 3 weights, of negative, neutral, positive",
        ),
    ] {
        refused(fit(&dataset, &new, &flags), 78, expected);
    }
    let (code, _, told) = run(fit(&dataset, &new, &["--class-weight", "1,0,2"]));
    assert_eq!(code, Some(64), "{told}");
    assert!(
        told.contains(
            "expected balanced, or numbers from 0.000001 to 1000000 separated by commas, one per class"
        ),
        "{told}"
    );
}

#[test]
fn a_class_without_training_rows_is_refused() {
    let settings = settings("1-2=negative,3=neutral,4-5=positive");
    let labels = settings.labels.clone();
    let (data, dataset) = dataset_prepared(200, N_WORDS, settings, |at| {
        let row = review(at, &labels);
        if row.label == 1 { Row { votes: Votes([1, 0, 0, 0, 0]), label: 0, ..row } } else { row }
    });
    let expected = "no rows for training have class neutral, expected one or more; check the ratings";
    refused(fit(&dataset, &data.path().join("out"), &[]), 65, expected);
}

#[test]
fn a_model_is_refused_for_a_dataset_with_other_labels() {
    let (data, dataset_of_three) = dataset(THREE);
    let out = data.path().join("out");
    done(fit(&dataset_of_three, &out, &["--epochs", "1"]));
    for labels in ["1-2=negative,3-4=neutral,5=positive", "1-2=bad,3=neutral,4-5=positive", "1-3=no,4-5=yes"]
    {
        let (_other, other) = dataset(labels);
        let expected = format!("labels --labels {labels}, expected --labels {THREE}");
        refused(evaluate(&out, &other), 78, &expected);
        refused(
            fit(&dataset_of_three, &data.path().join("new"), &["--test", other.to_str().unwrap()]),
            78,
            "labels ",
        );
    }
    // Initial weights may come from a model of the same number of classes only.
    let (_other, two) = dataset("1-3=no,4-5=yes");
    let mut begun = fit(&two, &data.path().join("new"), &[]);
    begun.arg("--init-from").arg(&out);
    refused(
        begun,
        78,
        "a model of 3 classes, expected a model of two labels and --loss label, or of `trainer pretrain`",
    );
    let mut begun = fit(&dataset_of_three, &data.path().join("begun"), &["--epochs", "1", "--rate", "1e-30"]);
    begun.arg("--init-from").arg(&out);
    done(begun);
    let [first, second] =
        ["out", "begun"].map(|name| events(&data.path().join(name), "test").remove(0)["metrics"].clone());
    assert_eq!(first["confusion"], second["confusion"]);
}

#[test]
fn two_ranks_train_and_evaluate_as_one() {
    let (data, dataset) = dataset(THREE);
    for (compute, more) in [("auto", ["--precision", "f32"]), ("pytorch", ["--precision", "f64"])] {
        let train = |name: &str, world_size: &str| {
            let out = data.path().join(format!("{name}-{compute}"));
            let single =
                fit(&dataset, &out, &["--epochs", "2", "--compute", compute, "--validation-fraction", "0.1"]);
            let mut launch = trainer();
            launch.args(["launch", "--nproc", world_size, "--"]).args(single.get_args()).args(more);
            done(launch);
            out
        };
        let [one, two] = [("one", "1"), ("two", "2")].map(|(name, world_size)| train(name, world_size));
        let (one_losses, two_losses) = (losses(&one, "steps"), losses(&two, "steps"));
        assert!(one_losses.len() > 80 && one_losses.len() == two_losses.len());
        let tolerance = if compute == "pytorch" { 1e-9 } else { 1e-4 };
        for (step, (one, two)) in one_losses.iter().zip(&two_losses).enumerate() {
            assert!((one - two).abs() <= tolerance * one, "{compute}, step {step}: {one} and {two}");
        }
        let confusion = |run: &Path| events(run, "test").remove(0)["metrics"]["confusion"].clone();
        assert_eq!(confusion(&one), confusion(&two));

        // One model, evaluated by one and by two ranks: the same metrics in every bit.
        let of = |world_size: &str| {
            let single = evaluate(&one, &dataset);
            let mut launch = trainer();
            launch.args(["launch", "--nproc", world_size, "--"]).args(single.get_args());
            done(launch).0
        };
        assert_eq!(of("1"), of("2"));
    }
}

#[test]
fn a_resumed_training_has_the_same_weights() {
    let (data, dataset) = dataset(THREE);
    let [whole, resumed] = ["whole", "resumed"].map(|name| data.path().join(name));
    let flags =
        ["--epochs", "2", "--checkpoint-steps", "30", "--class-weight", "1,3,1", "--dropout-words", "0.2"];
    let fit = |out: &Path, more: &[&str]| {
        let flags: Vec<&str> = flags.iter().chain(more).copied().collect();
        let mut command = trainer();
        command.arg("fit").arg(&dataset).arg("--out").arg(out).args(["--device", "cpu", "--batch", "16"]);
        command.args(["--embedding", "16", "--hidden", "16", "--linear", "8"]).args(flags);
        command
    };
    done(fit(&whole, &[]));
    done(fit(&resumed, &[]));
    // The state after a checkpoint in the second epoch.
    fs::remove_dir_all(resumed.join("model")).unwrap();
    let checkpoints = resumed.join("checkpoints");
    let newest = fs::read_to_string(checkpoints.join("latest")).unwrap();
    let (_, told) = done(fit(&resumed, &["--resume"]));
    assert!(told.contains("resuming after step "), "{newest}: {told}");
    let weights = |run: &Path| fs::read(run.join("model/model.safetensors")).unwrap();
    assert!(weights(&whole) == weights(&resumed));

    // Other names of the same classes, and other weights, are another training.
    fs::remove_dir_all(resumed.join("model")).unwrap();
    let settings = settings("1-2=bad,3=fair,4-5=good");
    let labels = settings.labels.clone();
    let (_other, other) = dataset_prepared(N_ROWS, N_WORDS, settings, |at| review(at, &labels));
    let mut command = fit(&resumed, &["--resume"]);
    let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
    command = trainer();
    command.args(
        arguments.into_iter().map(|one| if one == dataset.as_os_str() { other.clone().into() } else { one }),
    );
    refused(command, 78, "labels is --labels ");
}

#[test]
fn kernels_and_pytorch_train_three_classes_alike() {
    let (data, dataset) = dataset(THREE);
    let losses = ["auto", "pytorch"].map(|compute| {
        let out = data.path().join(compute);
        done(fit(&dataset, &out, &["--compute", compute, "--epochs", "1", "--class-weight", "1,2,0.5"]));
        losses(&out, "steps")
    });
    assert!(losses[0].len() > 40 && losses[0].len() == losses[1].len());
    for (step, (kernels, pytorch)) in losses[0].iter().zip(&losses[1]).enumerate() {
        assert!((kernels - pytorch).abs() < 2e-4 * pytorch, "step {step}: {kernels} and {pytorch}");
    }
}

/// Writes a configuration and the list of digests again.
fn write_config(model: &Path, config: &Value) {
    fs::write(model.join("config.json"), serde_json::to_vec(config).unwrap()).unwrap();
    let script = "rm SHA256SUMS && sha256sum * > ../sums && mv ../sums SHA256SUMS";
    assert!(Command::new("sh").args(["-c", script]).current_dir(model).status().unwrap().success());
}

#[test]
fn hostile_classes_in_a_configuration_are_refused_as_invalid_input() {
    let (data, dataset) = dataset(THREE);
    let out = data.path().join("out");
    done(fit(&dataset, &out, &["--epochs", "1"]));
    let model = out.join("model");
    let config = read_json(&model.join("config.json"));
    let weights = |list: Value| json!({"sentiment": {"classes": {"class_weights": list}}});
    for (place, value) in [
        ("/preparation/labels", json!("1-2=negative,3=neutral")),
        ("/preparation/labels", json!("1-2=negative,3=neutral,4=good,5=positive")),
        ("/preparation/labels", json!("1-2=negative,3=neutral,3-5=positive")),
        ("/preparation/labels", json!("1-2=,3=neutral,4-5=positive")),
        ("/preparation/labels", json!("1-2=a\u{1b}[2J,3=neutral,4-5=positive")),
        ("/preparation/labels", json!("")),
        ("/preparation/labels", json!(3)),
        ("/preparation/labels", Value::Null),
        ("/model/task", weights(json!([1.0, 1.0]))),
        ("/model/task", weights(json!([1.0, 1.0, 1.0, 1.0]))),
        ("/model/task", weights(json!([1.0, 0.0, 1.0]))),
        ("/model/task", weights(json!([]))),
        ("/model/task", json!({"sentiment": {"label": {"pos_weight": 1.0}}})),
        ("/model/task", json!({"sentiment": "five-ratings"})),
        ("/model/lstm/head/classifier/outputs", json!(5)),
        ("/scoring", json!({"classes": {"classes": 4}})),
        ("/scoring", json!({"classes": {"classes": 200}})),
        ("/scoring", json!("logit")),
        ("/scoring", Value::Null),
    ] {
        let mut hostile = config.clone();
        *hostile.pointer_mut(place).unwrap() = value.clone();
        write_config(&model, &hostile);
        let mut predict = command("predict", &[&out]);
        predict.args(["--format", "text", "--device", "cpu"]).stdin(Stdio::null());
        for command in [evaluate(&out, &dataset), predict] {
            let (code, _, told) = run(command);
            assert_eq!((code, told.lines().count()), (Some(66), 1), "{place} {value}: {told}");
            assert!(told.contains("/config.json: ") && !told.contains('\u{1b}'), "{place} {value}: {told}");
        }
    }
    write_config(&model, &config);
    done(evaluate(&out, &dataset));
}

#[test]
fn the_report_shows_classes_by_name_and_leaves_out_the_curves_of_two() {
    let (data, dataset) = dataset(THREE);
    let run = data.path().join("three");
    done(fit(&dataset, &run, &["--validation-fraction", "0.1", "--epochs", "3"]));
    let record = read_json(&run.join("evaluation.json"));
    assert_eq!(record["classes"], json!(["negative", "neutral", "positive"]));
    let wrong = &record["wrong"][0];
    assert_ne!(wrong["predicted"], wrong["label"]);

    let page = data.path().join("report.html");
    let mut report = command("report", &[&run]);
    report.arg("--out").arg(&page);
    done(report);
    let page = fs::read_to_string(page).unwrap();
    let f1 = record["metrics"]["f1"].as_f64().unwrap();
    let name = ["negative", "neutral", "positive"][wrong["label"].as_u64().unwrap() as usize];
    for text in [
        &format!("<dt>macro F1</dt><dd>{f1:.4}</dd>"),
        "<th scope=\"col\">predicted neutral</th>",
        "<th scope=\"row\">label neutral</th>",
        "aria-label=\"Classes of three\"",
        "<th scope=\"row\">mean of the classes</th>",
        "ROC curve, calibration plot and certainty are of two classes; this training has three or more.",
        "A model that always answers positive is right for ",
        &format!(", is <b>{name}</b>"),
        "% neutral, ",
        "<th scope=\"row\">--class-weight</th><td>[1.0,1.0,1.0]</td>",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("true positive rate") && !page.contains("predicted positive with"));
    assert!(!page.contains("is missing, so there is no ROC curve"));

    // Beside a training of two labels, each has its own metrics.
    let (other, of_label) = fixtures::reviews(600);
    let two = other.path().join("two");
    done(fit(&of_label, &two, &["--epochs", "1"]));
    let page = data.path().join("both.html");
    let mut report = command("report", &[&run, &two]);
    report.arg("--out").arg(&page);
    done(report);
    let page = fs::read_to_string(page).unwrap();
    for text in [
        "<th scope=\"row\">macro F1</th>",
        "<th scope=\"row\">F1 (label 1, or macro)</th>",
        "<th scope=\"row\">F1</th>",
        "true positive rate",
        "predicted neutral",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

/// Exports a model, and compares its Python file with the program.
fn predict_py(data: &TempDir, model: &Path, python: &Path) {
    let exported = model.with_extension("export");
    let mut export = command("export", &[model]);
    export.arg("--out").arg(&exported);
    done(export);

    let text = |at| {
        format!("<p>{}</p>\u{2026}", (at..at + 7).map(word).collect::<Vec<_>>().join(", ").to_uppercase())
    };
    let texts: Vec<String> = (0..30).map(text).collect();
    let file = data.path().join("texts");
    fs::write(&file, texts.join("\n") + "\n").unwrap();
    let ours = predicted(&exported, &fs::read_to_string(&file).unwrap());
    let mut script = Command::new(python);
    script.arg(exported.join("predict.py")).stdin(fs::File::open(&file).unwrap());
    let (theirs, _) = done(script);
    let theirs = theirs.lines().map(|line| line.split(' ').map(|one| one.parse().unwrap()).collect());
    assert_same_probabilities(&ours, theirs.collect());

    let onnx = model.with_extension("onnx");
    let mut export = command("export", &[model]);
    export.arg("--out").arg(&onnx);
    done(export);
    let Some(found) = tests::oracle::onnx(&onnx, &exported, &fs::read(&file).unwrap()) else { return };
    let found =
        found.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["probabilities"].take());
    assert_same_probabilities(&ours, found.map(|all| serde_json::from_value(all).unwrap()).collect());
}

fn assert_same_probabilities(ours: &[Value], theirs: Vec<Vec<f64>>) {
    assert_eq!((ours.len(), theirs.len()), (30, 30));
    for (ours, theirs) in ours.iter().zip(theirs) {
        let ours: Vec<f64> =
            ours["probabilities"].as_object().unwrap().values().map(|one| one.as_f64().unwrap()).collect();
        assert_eq!(ours.len(), theirs.len());
        assert!(
            ours.iter().zip(&theirs).all(|(ours, theirs)| (ours - theirs).abs() < 1e-5),
            "{ours:?} {theirs:?}"
        );
    }
}

/// The Python file that `export` writes has the probabilities of `predict`, and NumPy reads those of the test rows.
#[test]
fn an_exported_model_and_the_scores_are_read_in_python() {
    let Some(python) = python("an exported model of three classes") else { return };
    let (data, dataset) = dataset(THREE);
    let out = data.path().join("out");
    done(fit(&dataset, &out, &["--epochs", "2"]));
    predict_py(&data, &out, &python);
    let with_ngrams = data.path().join("with ngrams");
    done(fit(&dataset, &with_ngrams, &["--epochs", "2", "--with-ngrams", "--validation-fraction", "0.1"]));
    predict_py(&data, &with_ngrams, &python);

    // The confusion matrix follows from the scores, by NumPy.
    let confusion = r"
import json, sys, numpy
scores = numpy.load(sys.argv[1])
found = numpy.zeros((3, 3), int)
numpy.add.at(found, (scores['label'], scores['probabilities'].argmax(1)), 1)
print(json.dumps(found.tolist()))";
    let mut script = Command::new(&python);
    script.args(["-c", confusion]).arg(out.join("scores.npy"));
    let found: Value = serde_json::from_str(&done(script).0).unwrap();
    assert_eq!(found, read_json(&out.join("evaluation.json"))["metrics"]["confusion"]);
}

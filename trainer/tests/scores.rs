//! Thresholds, calibrations and confidence intervals of trainings: chosen on the validation split, kept in the model,
//! used by predict and evaluate.
#![allow(clippy::unwrap_used)]

mod command;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{fit, run, trainer};
use dataset::Row;
use fixtures::{dataset_of, review, reviews};
use serde_json::Value;
use tempfile::TempDir;

/// A training with a validation split, and its summary.
fn trained(dataset: &Path, name: &str, more: &[&str]) -> (PathBuf, Value, String) {
    let out = dataset.with_file_name(name);
    let (code, said, told) = run(training(dataset, &out, more));
    assert_eq!(code, Some(0), "{told}");
    (out, serde_json::from_str(&said).unwrap(), told)
}

fn training(dataset: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = fit(dataset, out, &["--epochs", "4", "--json"]);
    command.args(["--validation-fraction", "0.3", "--test-fraction", "0.3"]).args(more);
    command
}

fn config(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("model/config.json")).unwrap()).unwrap()
}

fn evaluated(out: &Path, dataset: &Path, ranks: Option<&str>) -> Value {
    let mut command = trainer();
    if let Some(ranks) = ranks {
        command.args(["launch", "--nproc", ranks, "--"]);
    }
    command.arg("evaluate").arg(out).arg(dataset).args(["--test-fraction", "0.3", "--device", "cpu"]);
    // The batch size of the training: with another one, the last bits of scores differ.
    command.args(["--batch", "32"]);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    serde_json::from_str(&said).unwrap()
}

/// The predictions for texts of the vocabulary.
fn predicted(out: &Path) -> Vec<Value> {
    let lines: Vec<String> = (0..60)
        .map(|at| review(at).tokens.iter().map(|&id| fixtures::word(id - 2)).collect::<Vec<_>>().join(" "))
        .collect();
    let path = out.with_extension("txt");
    fs::write(&path, lines.join("\n")).unwrap();
    let mut command = trainer();
    command.arg("predict").arg(out).arg(path).args(["--format", "text", "--device", "cpu"]);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn data() -> (TempDir, PathBuf) {
    reviews(900)
}

#[test]
fn a_threshold_is_kept_in_the_model_and_used_by_predict_and_evaluate() {
    let (_data, dataset) = data();
    let (plain, default, _) = trained(&dataset, "plain", &[]);
    assert_eq!((&config(&plain)["format_version"], &config(&plain)["threshold"]), (&1.into(), &Value::Null));
    assert_eq!(default["evaluation"]["threshold"], Value::Null);

    let (strict, summary, told) = trained(&dataset, "strict", &["--threshold", "0.8"]);
    assert!(told.contains("threshold at probability 0.8000"), "{told}");
    let kept = config(&strict);
    assert_eq!((&kept["format_version"], &kept["threshold"]["by"]), (&2.into(), &"probability".into()));
    assert!((number(&kept["threshold"]["score"]) - 4.0f64.ln()).abs() < 1e-6, "{kept}");
    assert_eq!(summary["evaluation"]["threshold"], kept["threshold"]);
    let predictions = predicted(&strict);
    for prediction in &predictions {
        assert_eq!(prediction["label"], u8::from(number(&prediction["probability"]) > 0.8), "{prediction}");
    }
    // The weights and the scores are those of the training without a threshold.
    let weights = |out: &Path| fs::read(out.join("model/model.safetensors")).unwrap();
    assert_eq!(weights(&strict), weights(&plain));
    let scores = |predictions: &[Value]| predictions.iter().map(|of| of["score"].clone()).collect::<Vec<_>>();
    assert_eq!(scores(&predictions), scores(&predicted(&plain)));

    let test = evaluated(&strict, &dataset, None);
    assert_eq!(test["confusion"], summary["evaluation"]["confusion"]);
    assert_ne!(test["confusion"], default["evaluation"]["confusion"]);
    assert_eq!(test["auc"], default["evaluation"]["auc"]);
    assert_eq!(test["threshold"], kept["threshold"]);
}

#[test]
fn the_threshold_with_the_highest_f1_is_chosen_on_the_validation_split() {
    let (_data, dataset) = data();
    let (out, _, told) = trained(&dataset, "f1", &["--threshold", "f1"]);
    assert!(told.contains(", the highest F1 on the validation split"), "{told}");
    // The rows of the validation split, as a dataset, have the highest F1 at the threshold.
    let of_validation: Vec<Row> =
        (0..900).map(review).filter(|row| (300..600).contains(&row.split)).collect();
    let rows = of_validation.clone();
    let (_validation, validation) = dataset_of(rows.len() as u32, 50, move |at| rows[at as usize].clone());
    let f1 = |score: Option<f64>| {
        if let Some(score) = score {
            let config = out.join("model/config.json");
            let mut changed: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
            changed["threshold"]["score"] = score.into();
            fs::write(&config, changed.to_string()).unwrap();
            let script =
                "sha256sum config.json model.safetensors trained_on.json vocabulary.txt > SHA256SUMS";
            let mut sums = Command::new("sh");
            assert!(sums.args(["-c", script]).current_dir(out.join("model")).status().unwrap().success());
        }
        let mut command = trainer();
        command.arg("evaluate").arg(&out).arg(&validation).args(["--device", "cpu"]);
        let (code, said, told) = run(command);
        assert_eq!(code, Some(0), "{told}");
        number(&serde_json::from_str::<Value>(&said).unwrap()["f1"])
    };
    let best = f1(None);
    let chosen = number(&config(&out)["threshold"]["score"]);
    for other in [0.0, chosen - 0.3, chosen + 0.3, -9.0, chosen - 0.05, chosen + 0.05] {
        assert!(f1(Some(other)) <= best, "{other} is better than {chosen}");
    }
}

#[test]
fn a_calibration_is_kept_in_the_model_and_changes_probabilities() {
    let (_data, dataset) = data();
    let (plain, _, _) = trained(&dataset, "plain", &[]);
    let before = predicted(&plain);
    for method in ["temperature", "platt"] {
        let (out, summary, _) = trained(&dataset, method, &["--calibrate", method]);
        let kept = &config(&out)["calibration"][method];
        let calibrated = |score: f64| match method {
            "temperature" => score / number(kept),
            _ => number(&kept["slope"]) * score + number(&kept["intercept"]),
        };
        for (now, before) in predicted(&out).iter().zip(&before) {
            assert_eq!(now["score"], before["score"]);
            let expected = 1.0 / (1.0 + (-calibrated(number(&now["score"]))).exp());
            assert!((number(&now["probability"]) - expected).abs() < 1e-6, "{now} {expected}");
            assert_eq!(now["label"], u8::from(expected > 0.5), "{now}");
        }
        let evaluation = evaluated(&out, &dataset, None);
        let quality = &evaluation["probabilities"];
        assert_eq!(quality, &summary["evaluation"]["probabilities"]);
        let without = evaluated(&plain, &dataset, None);
        let of_plain = &without["probabilities"];
        assert_eq!(&quality["uncalibrated"], of_plain);
        assert_ne!(quality["brier"], of_plain["brier"]);
        assert!(number(&quality["calibration_error"]) < 1.0);
    }
}

#[test]
fn intervals_do_not_depend_on_the_number_of_ranks_and_contain_the_metrics() {
    let (_data, dataset) = data();
    let (out, summary, told) = trained(&dataset, "out", &["--threshold", "accuracy", "--calibrate", "platt"]);
    assert!(told.contains(" [95 %: 0."), "{told}");
    let alone = evaluated(&out, &dataset, None);
    assert_eq!(evaluated(&out, &dataset, Some("2")), alone);
    assert_eq!(alone["intervals"], summary["evaluation"]["intervals"]);
    for metric in ["loss", "accuracy", "f1", "precision", "recall", "auc"] {
        let [low, value, high] =
            [&alone["intervals"][metric][0], &alone[metric], &alone["intervals"][metric][1]].map(number);
        assert!(low < value && value < high, "{metric}: {low} {value} {high}");
    }
    let mut table = trainer();
    table.arg("evaluate").arg(&out).arg(&dataset).args(["--text", "--device", "cpu", "--quiet"]);
    let (code, said, _) = run(table);
    assert_eq!(code, Some(0));
    for line in ["accuracy ", "F1 ", "AUC ", "loss ", "Brier score ", "  uncalibrated ", "label 1 "] {
        assert!(said.lines().any(|found| found.starts_with(line)), "{line}: {said}");
    }
    // The same choice on two ranks. The last bits of the weights differ, and the slope is ill-conditioned, because the
    // planted labels are almost separable.
    let other = dataset.with_file_name("two");
    let mut two = trainer();
    two.args(["launch", "--nproc", "2", "--"]);
    two.args(training(&dataset, &other, &["--threshold", "accuracy", "--calibrate", "platt"]).get_args());
    let (code, _, told) = run(two);
    assert_eq!(code, Some(0), "{told}");
    let slope = |out: &Path| number(&config(out)["calibration"]["platt"]["slope"]);
    assert!((slope(&other) / slope(&out)).ln().abs() < 0.2, "{} {}", slope(&other), slope(&out));
}

#[test]
fn a_choice_without_a_validation_split_is_refused_by_name() {
    let (_data, dataset) = data();
    let refused = |more: &[&str]| {
        let out = dataset.with_file_name("refused");
        let (code, _, told) = run(fit(&dataset, &out, more));
        assert_eq!(code, Some(78), "{told}");
        assert!(!out.join("model").exists());
        told
    };
    for (flags, expected) in [
        (["--threshold", "f1"], "--threshold is f1, expected a validation split"),
        (["--threshold", "accuracy"], "--threshold is accuracy, expected a validation split"),
        (["--calibrate", "platt"], "--calibrate is platt, expected a validation split"),
    ] {
        let told = refused(&[&flags[..], &["--validation-fraction", "0"]].concat());
        assert!(told.contains(expected), "{told}");
    }
    let told = refused(&["--threshold", "0.3", "--loss", "rating"]);
    assert!(told.contains("--threshold is 0.3, expected f1 or accuracy with --loss rating"), "{told}");
    for value in ["0", "1", "nan", "best"] {
        let out = dataset.with_file_name("refused");
        let (code, _, told) = run(fit(&dataset, &out, &["--threshold", value]));
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains("expected f1, accuracy, or a probability above 0 and below 1"), "{told}");
    }
}

#[test]
fn the_report_shows_the_predictions_of_the_chosen_threshold() {
    let (_data, dataset) = data();
    let (out, _, _) = trained(&dataset, "strict", &["--threshold", "0.97"]);
    let (page, mut command) = (dataset.with_file_name("report.html"), trainer());
    command.arg("report").arg(&out).arg("--out").arg(&page);
    let (code, _, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    let page = fs::read_to_string(&page).unwrap();
    let verdicts: Vec<&str> =
        page.split("class=\"verdict\"").skip(1).map(|of| of.split("</p>").next().unwrap()).collect();
    assert!(!verdicts.is_empty());
    let mut of_label_1 = 0;
    for verdict in verdicts {
        let names: Vec<&str> =
            verdict.split("<b>").skip(1).map(|of| of.split("</b>").next().unwrap()).collect();
        assert_ne!(names[0], names[1], "{verdict}");
        of_label_1 += u32::from(names[1] == "positive");
    }
    assert!(of_label_1 > 0, "no row of label 1 is shown");
}

#[test]
fn metrics_of_the_rows_that_fitted_the_threshold_are_marked() {
    let (_data, dataset) = data();
    let mark = "threshold or calibration was fitted on these rows";
    let with = |name: &str, more: &[&str]| {
        let out = dataset.with_file_name(name);
        let common = ["--epochs", "1", "--validation-fraction", "0.3"];
        let (code, _, told) = run(fit(&dataset, &out, &[&common[..], more].concat()));
        assert_eq!(code, Some(0), "{told}");
        told
    };
    assert!(with("no-test", &["--test-fraction", "0", "--threshold", "f1"]).contains(mark));
    assert!(with("calibrated", &["--test-fraction", "0", "--calibrate", "temperature"]).contains(mark));
    assert!(!with("test", &["--test-fraction", "0.3", "--threshold", "f1"]).contains(mark));
    assert!(!with("given", &["--test-fraction", "0", "--threshold", "0.6"]).contains(mark));
}

#[test]
fn another_threshold_is_another_training() {
    let (_data, dataset) = data();
    let (out, _, _) = trained(&dataset, "out", &["--threshold", "f1"]);
    for (more, expected) in
        [(&["--threshold", "0.3"][..], "--threshold f1, expected"), (&[], "--threshold f1, expected missing")]
    {
        let (code, _, told) = run(training(&dataset, &out, &[more, &["--resume"]].concat()));
        assert_eq!(code, Some(78), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn texts_are_evaluated_as_the_rows_of_their_dataset() {
    let (_data, dataset) = data();
    let (mut csv, mut json) = ("id,text,stars,kind\n".to_owned(), String::new());
    for at in 0..900 {
        let Row { tokens, votes, label, .. } = review(at);
        let text = tokens.iter().map(|&id| fixtures::word(id - 2)).collect::<Vec<_>>().join(" ");
        let (stars, kind) = (votes.mode(), ["negative", "positive"][usize::from(label)]);
        let _ = writeln!(csv, "{at},\"{text},\n\"\"!\"\"\",{stars},{kind}");
        let _ = writeln!(json, "{{\"text\": \"{text}\\n!\", \"stars\": {stars}, \"kind\": \"{kind}\"}}");
    }
    // A blank line, a bad one, and a label that the model does not have.
    let more = "\n7,too,many,columns,here\n8,waaaah,3,unsure\n";
    let csv = csv + more;
    let files = [("a.csv", csv.into_bytes()), ("a.json.gz", tests::compressed::gzip(json.as_bytes()))];
    let paths = files.map(|(name, content)| {
        let path = dataset.with_file_name(name);
        fs::write(&path, content).unwrap();
        path
    });
    let evaluated = |out: &Path, file: &Path, more: &[&str], ranks: Option<&str>| {
        let mut command = trainer();
        if let Some(ranks) = ranks {
            command.args(["launch", "--nproc", ranks, "--"]);
        }
        command.arg("evaluate").arg(out).arg(file).args(["--device", "cpu", "--batch", "8"]).args(more);
        let (code, said, told) = run(command);
        assert_eq!(code, Some(0), "{told}");
        (serde_json::from_str::<Value>(&said).unwrap(), told)
    };
    let close =
        |one: &Value, other: &Value| assert!((number(one) - number(other)).abs() < 1e-5, "{one} {other}");
    let (out, _, _) = trained(&dataset, "chosen", &["--threshold", "0.6", "--calibrate", "platt"]);
    let (of_rows, _) = evaluated(&out, &dataset, &[], None);
    let by_label = ["--text-field", "text", "--label-field", "kind"];
    for path in &paths {
        let (of_texts, told) = evaluated(&out, path, &by_label, None);
        for name in ["confusion", "rows", "threshold", "calibration"] {
            assert_eq!(of_texts[name], of_rows[name], "{name}: {told}");
        }
        close(&of_texts["loss"], &of_rows["loss"]);
        close(&of_texts["probabilities"]["brier"], &of_rows["probabilities"]["brier"]);
        assert_eq!(evaluated(&out, path, &by_label, Some("2")).0, of_texts);
        let wrong = path.with_extension("jsonl");
        evaluated(&out, path, &[&by_label[..], &["--wrong", wrong.to_str().unwrap()]].concat(), Some("2"));
        let wrong = fs::read_to_string(wrong).unwrap();
        let confusion = &of_texts["confusion"];
        let n_wrong = number(&confusion["false_positive"]) + number(&confusion["false_negative"]);
        assert_eq!(wrong.lines().count() as f64, n_wrong, "{confusion}");
        for row in wrong.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            assert!(row["true_label"] == row["kind"] && row["predicted_label"] != row["kind"], "{row}");
        }
    }
    let (of_texts, told) = evaluated(&out, &paths[0], &by_label, None);
    let ledger = &of_texts["ledger"];
    assert_eq!(
        (&ledger["blank"], &ledger["bad_line"], &of_texts["unknown_label"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert!(
        told.contains("a.csv:1803: bad_line") && told.contains("1 of 901 texts have a label that"),
        "{told}"
    );

    let by_rating = ["--text-field", "text", "--rating-field", "stars"];
    let (out, _, _) = trained(&dataset, "five", &["--loss", "five-ratings"]);
    let (of_rows, _) = evaluated(&out, &dataset, &[], None);
    let (of_texts, _) = evaluated(&out, &paths[1], &by_rating, None);
    assert_eq!(of_texts["confusion"], of_rows["confusion"]);
    close(&of_texts["loss"], &of_rows["loss"]);
    for (flags, code, expected) in [
        (
            &by_label[..],
            78,
            "--label-field is kind, expected --rating-field, because the model predicts ratings",
        ),
        (&[], 65, "found no column \"reviewText\" among id, text, stars, kind"),
    ] {
        let mut command = trainer();
        command.arg("evaluate").arg(&out).arg(&paths[0]).args(["--device", "cpu"]).args(flags);
        let (found, _, told) = run(command);
        assert!(found == Some(code) && told.contains(expected), "{found:?} {told}");
    }
}

#[test]
fn the_test_split_of_texts_is_that_of_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let [json, stop_words, dataset] =
        ["reviews.json", "stop.txt", "reviews.h5"].map(|name| folder.path().join(name));
    let mut lines = String::new();
    for at in 0..900 {
        let Row { tokens, votes, .. } = review(at);
        let words: Vec<_> = tokens.iter().map(|&id| format!("{} the", fixtures::word(id - 2))).collect();
        let text = format!("the u{} {}", fixtures::word(at), words.join(" "));
        let _ = writeln!(lines, "{{\"reviewText\": \"{text}\", \"overall\": {}}}", votes.mode());
    }
    fs::write(&json, lines).unwrap();
    fs::write(&stop_words, "the\n").unwrap();
    let mut sentimill = command::program("sentimill");
    sentimill.arg(&json).arg("--out").arg(&dataset).arg("--stopwords").arg(&stop_words);
    sentimill.args(["--max-tokens", "5"]);
    command::done(sentimill);
    for (name, flags) in
        [("two", &[][..]), ("rating", &["--loss", "rating"]), ("five", &["--loss", "five-ratings"])]
    {
        let (out, _, _) = trained(&dataset, name, flags);
        let (of_rows, of_texts) = (evaluated(&out, &dataset, None), evaluated(&out, &json, None));
        assert!(number(&of_rows["rows"]) > 200.0, "{of_rows}");
        for name in ["rows", "confusion", "trained_on"] {
            assert_eq!(of_texts[name], of_rows[name], "{name}");
        }
        // The wrong ones are of this split, and as many as in the metrics.
        let wrong = out.with_extension("csv");
        let mut evaluate = trainer();
        evaluate.arg("evaluate").arg(&out).arg(&json).args(["--test-fraction", "0.3", "--device", "cpu"]);
        evaluate.arg("--wrong").arg(&wrong);
        command::done(evaluate);
        let n_wrong = number(&of_rows["rows"]) * (1.0 - number(&of_rows["accuracy"]));
        assert_eq!(fs::read_to_string(wrong).unwrap().lines().count() - 1, n_wrong.round() as usize);
    }

    // Each rank would get other texts of a pipe.
    let out = folder.path().join("two");
    let mut launch = trainer();
    launch.args(["launch", "--nproc", "2", "--", "evaluate"]).arg(&out).args(["-", "--device", "cpu"]);
    command::refused(launch, 64, "2 ranks: found -, which can be read once only; write the texts to a file");

    fs::write(&json, "{\"reviewText\": \"the the\", \"overall\": 5}\n").unwrap();
    let mut evaluate = trainer();
    evaluate.arg("evaluate").arg(&out).arg(&json).args(["--device", "cpu"]);
    command::refused(evaluate, 65, "the texts with a label of the model have stop words only");
}

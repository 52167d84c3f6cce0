//! N-gram models: training, evaluation, predictions, explanations, the report and exports, as a user runs them.
#![allow(clippy::unwrap_used)]

mod command;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use command::{ended, run, trainer};
use serde_json::Value;
use tempfile::TempDir;

/// Words that speak for a label, and words that do not.
const GOOD: [&str; 6] = ["great", "lovely", "perfect", "solid", "charming", "bright"];
const BAD: [&str; 6] = ["awful", "broken", "useless", "flimsy", "dull", "noisy"];
const OTHERS: [&str; 12] =
    ["the", "kettle", "lid", "handle", "was", "very", "box", "and", "spout", "came", "with", "a"];

/// Lines of fastText's format: label 2 has more good words, label 1 more bad words.
fn lines(n: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut lines = String::new();
    for _ in 0..n {
        let label = draw(2);
        let own = if label == 1 { GOOD } else { BAD };
        let _ = write!(lines, "__label__{}", label + 1);
        for _ in 0..10 {
            let word = if draw(4) == 0 { own[draw(own.len())] } else { OTHERS[draw(OTHERS.len())] };
            let _ = write!(lines, " {word}");
        }
        let _ = writeln!(lines, " {}", own[draw(own.len())]);
    }
    lines
}

/// A folder with the files `train.txt` and `test.txt`.
fn corpus() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (train, test) = (folder.path().join("train.txt"), folder.path().join("test.txt"));
    fs::write(&train, lines(2000, 1)).unwrap();
    fs::write(&test, lines(500, 2)).unwrap();
    (folder, train, test)
}

fn ngrams(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = trainer();
    command
        .arg("ngrams")
        .arg("--input")
        .arg(input)
        .args(["--format", "fasttext", "--out"])
        .arg(out)
        .args(more);
    command
}

#[track_caller]
fn trained(input: &Path, out: &Path, more: &[&str]) -> String {
    let (code, told) = ended(ngrams(input, out, more));
    assert_eq!(code, Some(0), "{told}");
    told
}

fn trainer_of(command: &str, model: &Path, more: &[&str]) -> Command {
    let mut trainer = trainer();
    trainer.arg(command).arg(model).args(more);
    trainer
}

#[track_caller]
fn evaluated(model: &Path, file: &Path, more: &[&str]) -> Value {
    let mut command = trainer_of("evaluate", model, &[]);
    command.arg(file).args(["--format", "fasttext"]).args(more);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    serde_json::from_str(&said).unwrap()
}

/// Standard output of a command that reads `input`.
#[track_caller]
fn said(mut command: Command, input: &str) -> String {
    let mut process =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Names and content of all files below a folder, without the times in metrics.
fn model_files(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(out.join("model"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// The flags of each kind of model.
const MODELS: [&[&str]; 2] = [&["--model", "linear"], &["--model", "fasttext", "--buckets", "20000"]];

#[test]
fn both_models_learn_and_are_evaluated() {
    let (folder, train, test) = corpus();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        let told = trained(&train, &out, model);
        assert!(told.contains("2,000 texts"), "{told}");
        assert!(told.ends_with(&format!("the model is in {}", out.join("model").display())), "{told}");

        let found = evaluated(&out, &test, &[]);
        assert!(found["accuracy"].as_f64().unwrap() > 0.9, "{model:?} {found}");
        assert_eq!(found["accuracy"], found["precision_at_1"], "{found}");
        assert_eq!((&found["rows"], &found["without_label"]), (&500.into(), &0.into()), "{found}");
        let names: Vec<&str> =
            found["classes"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["1", "2"]);
        let confusion = &found["confusion"];
        let right =
            confusion["true_positive"].as_u64().unwrap() + confusion["true_negative"].as_u64().unwrap();
        assert_eq!(right as f64 / 500.0, found["accuracy"].as_f64().unwrap(), "{found}");
        assert_eq!(found, evaluated(&out.join("model"), &test, &[]));
    }
}

#[test]
fn predictions_have_labels_and_probabilities_in_the_order_of_lines() {
    let (folder, train, _) = corpus();
    let input = "great lovely kettle\n\nawful broken lid\nqwertz\n";
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, model);
        let answers = objects(&said(trainer_of("predict", &out, &["--format", "text"]), input));
        assert_eq!(answers.len(), 4, "{answers:?}");
        let of = |at: usize| {
            let answer = &answers[at];
            assert_eq!(answer["line"], at as u64 + 1);
            (answer["label"].as_u64(), answer["class"].as_str(), answer["error"].as_str())
        };
        assert_eq!([of(0), of(2)], [(Some(1), Some("2"), None), (Some(0), Some("1"), None)], "{answers:?}");
        assert_eq!(of(1).2, Some("blank"));
        let (score, probability) =
            (answers[0]["score"].as_f64().unwrap(), answers[0]["probability"].as_f64().unwrap());
        assert!(score > 0.0 && probability > 0.5, "{answers:?}");

        let both = objects(&said(trainer_of("predict", &out, &["--format", "text", "--top", "2"]), input));
        let names: Vec<&String> = both[2]["probabilities"].as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 2, "{both:?}");
        assert_eq!(both[2]["class"], "1");
        let of_second = both[0]["probabilities"]["2"].as_f64().unwrap();
        assert!((of_second - probability).abs() < 1e-6, "{both:?}");
        let sure =
            objects(&said(trainer_of("predict", &out, &["--format", "text", "--threshold", "0.5"]), input));
        assert_eq!(sure[0]["probabilities"].as_object().unwrap().len(), 1, "{sure:?}");

        let labelled =
            said(trainer_of("predict", &out, &["--format", "fasttext"]), "__label__1 great lovely kettle\n");
        assert_eq!(objects(&labelled)[0], answers[0], "{labelled}");
    }
}

#[test]
fn explanations_name_the_ngrams_that_decide() {
    let (folder, train, _) = corpus();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, model);
        let (code, said, told) =
            run(trainer_of("explain", &out, &["the kettle was great but noisy qwertz", "--json"]));
        assert_eq!(code, Some(0), "{told}");
        let found: Value = serde_json::from_str(&said).unwrap();
        let words = |side: &str| -> Vec<String> {
            let words = found[side].as_array().unwrap().iter();
            words.map(|word| word["word"].as_str().unwrap().to_owned()).collect()
        };
        let all = [words("for"), words("against")].concat();
        assert!(all.iter().any(|word| word.contains("great")), "{found}");
        assert!(all.iter().any(|word| word.contains("noisy")), "{found}");
        let marked = found["text"].as_array().unwrap();
        let unknown = marked.iter().find(|word| word["word"] == "qwertz").unwrap();
        assert_eq!(unknown["mark"], "unknown", "{found}");
    }
}

#[test]
fn a_report_shows_settings_and_the_ngrams_of_each_label() {
    let (folder, train, test) = corpus();
    let test = test.to_str().unwrap();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, &[model, &["--epochs", "3", "--test", test]].concat());
        let page = folder.path().join(format!("{}.html", model[1]));
        let (code, told) = ended(trainer_of("report", &out, &["--out", page.to_str().unwrap()]));
        assert_eq!(code, Some(0), "{told}");
        let page = fs::read_to_string(page).unwrap();
        for expected in
            ["--epochs", "--ngrams", "N-grams of 1", "N-grams of 2", "lovely", "useless", "500 rows"]
        {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(!page.contains("cannot be read"), "{page}");
    }
}

#[test]
fn flags_of_the_other_model_are_refused_by_name() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    for (flags, expected) in [
        (&["--model", "linear", "--dim", "10"][..], "--dim has no effect with --model linear"),
        (&["--model", "fasttext", "--c", "2"], "--c has no effect with --model fasttext"),
        (&["--dim", "10", "--weights", "nb"], "--weights has no effect with --model fasttext"),
        (&["--model", "linear", "--loss", "softmax"], "--loss softmax has no effect with --model linear"),
        (&["--loss", "logistic", "--rate", "0.1"], "--loss logistic has no effect with --model fasttext"),
        (&["--s3", "region=eu-central-1"], "--s3 has no effect without an s3:// URL"),
    ] {
        let (code, told) = ended(ngrams(&train, &out, flags));
        assert_eq!((code, told.lines().count()), (Some(64), 1), "{told}");
        assert!(told.contains(expected), "{told}");
        assert!(!out.exists());
    }
}

#[test]
fn flags_without_an_effect_on_the_family_of_the_model_are_refused() {
    let (folder, train, test) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &[]);
    let test = test.to_str().unwrap();
    for (command, flags, expected) in [
        ("evaluate", &[test, "--test-fraction", "0.1"][..], "--test-fraction has no effect with the model"),
        ("evaluate", &[test, "--device", "cpu"], "--device has no effect"),
        ("predict", &["--compute", "auto"], "--compute has no effect"),
        ("explain", &["--device", "cpu"], "--device has no effect"),
    ] {
        let (code, told) = ended(trainer_of(command, &out, flags));
        assert_eq!((code, told.lines().count()), (Some(64), 1), "{told}");
        assert!(told.contains(expected) && told.contains("expected an LSTM"), "{told}");
    }
}

#[test]
fn an_occupied_folder_is_refused_and_replaced_by_force() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &["--deterministic"]);
    let before = model_files(&out);
    let (code, told) = ended(ngrams(&train, &out, &[]));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("already exists: found a training, expected a new name"), "{told}");
    assert_eq!(model_files(&out), before);
    fs::write(out.join("notes.txt"), "mine").unwrap();
    let (code, told) = ended(ngrams(&train, &out, &["--force"]));
    assert_eq!(code, Some(64), "{told}");
    assert_eq!(model_files(&out), before);
    fs::remove_file(out.join("notes.txt")).unwrap();
    trained(&train, &out, &["--force", "--ngrams", "1"]);
    assert_ne!(model_files(&out), before);
}

#[test]
fn a_complete_training_is_resumed_without_work_and_other_settings_are_refused() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &["--epochs", "3"]);
    let before = model_files(&out);
    let told = trained(&train, &out, &["--epochs", "3", "--resume"]);
    assert!(told.contains("already complete"), "{told}");
    assert_eq!(model_files(&out), before);
    let (code, told) = ended(ngrams(&train, &out, &["--epochs", "4", "--resume"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--epochs is 3 in the training and 4 in this command"), "{told}");
}

#[test]
fn inputs_without_use_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines.txt");
    let out = folder.path().join("out");
    for (content, code, expected) in [
        ("", 65, "found no label in 0 lines"),
        ("a text without a label\n", 65, "found no label in 1 line"),
        ("__label__1 good\n__label__1 bad\n", 65, "every text has the label 1"),
        ("__label__1\n__label__2\n", 65, "no text has a word"),
    ] {
        fs::write(&file, content).unwrap();
        let (found, told) = ended(ngrams(&file, &out, &["--words", "punctuation"]));
        assert_eq!((found, told.lines().count()), (Some(code), 1), "{told}");
        assert!(told.contains(expected), "{told}");
        assert!(!out.exists(), "{told}");
    }
    let (code, told) = ended(ngrams(&folder.path().join("missing.txt"), &out, &[]));
    assert_eq!(code, Some(66), "{told}");
}

#[test]
fn lines_without_a_label_and_empty_texts_have_a_meaning() {
    let (folder, train, test) = corpus();
    let mut content = fs::read_to_string(&train).unwrap();
    content += "no label here\n\n__label__1\n__label__once lonely\n";
    fs::write(&train, content).unwrap();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        let told = trained(&train, &out, model);
        assert!(told.contains("2 lines without a label are skipped"), "{told}");
        assert!(told.contains("1 of 3 labels occurs in one text only"), "{told}");
        let found = evaluated(&out, &test, &[]);
        assert!(found["accuracy"].as_f64().unwrap() > 0.9, "{model:?} {found}");
        assert_eq!(found["classes"].as_array().unwrap().len(), 3);
        let none = folder.path().join("none.txt");
        fs::write(&none, "text\n").unwrap();
        let mut command = trainer_of("evaluate", &out, &[none.to_str().unwrap()]);
        command.args(["--format", "fasttext"]);
        let (code, told) = ended(command);
        assert_eq!(code, Some(65), "{told}");
        fs::write(&none, "__label__other text\n").unwrap();
        let mut command = trainer_of("evaluate", &out, &[none.to_str().unwrap()]);
        command.args(["--format", "fasttext"]);
        let (code, told) = ended(command);
        assert_eq!(code, Some(65), "{told}");
        assert!(told.contains("no text has a label of the model"), "{told}");
    }
}

#[test]
fn several_labels_of_a_line_count_as_precision_and_recall_at_one() {
    let folder = tempfile::tempdir().unwrap();
    let train = folder.path().join("train.txt");
    let content = "__label__a __label__b red\n__label__a __label__c blue\n".repeat(300);
    fs::write(&train, content).unwrap();
    let out = folder.path().join("out");
    trained(&train, &out, &["--model", "fasttext", "--loss", "bce", "--epochs", "20", "--buckets", "1000"]);
    let found = evaluated(&out, &train, &[]);
    assert_eq!(found["precision_at_1"], 1.0, "{found}");
    assert_eq!(found["recall_at_1"], 0.5, "{found}");
    assert_eq!(found["accuracy"], 1.0, "{found}");
    assert_eq!(found["confusion"], Value::Null, "{found}");
    let both = said(trainer_of("predict", &out, &["--format", "text", "--threshold", "0.5"]), "red\n");
    let names = objects(&both)[0]["probabilities"].as_object().unwrap().len();
    assert_eq!(names, 2, "{both}");
}

#[test]
fn a_killed_training_resumes_to_the_same_bits() {
    let (folder, train, test) = corpus();
    let content = fs::read_to_string(&train).unwrap().repeat(8);
    fs::write(&train, content).unwrap();
    let flags =
        ["--model", "fasttext", "--epochs", "40", "--deterministic", "--threads", "2", "--buckets", "5000"];
    let whole = folder.path().join("whole");
    trained(&train, &whole, &flags);
    let killed = folder.path().join("killed");
    let mut process = ngrams(&train, &killed, &[&flags[..], &["--checkpoint-every", "0.001"]].concat());
    let mut process = process.stderr(Stdio::null()).spawn().unwrap();
    let state = killed.join("checkpoints/ngrams.state");
    while !state.exists() && process.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(state.exists() && !killed.join("model").exists());
    let told = trained(&train, &killed, &[&flags[..], &["--resume"]].concat());
    assert!(told.contains("resuming from the checkpoint"), "{told}");
    assert_eq!(model_files(&killed), model_files(&whole));
    assert!(!killed.join("checkpoints").exists());
    assert_eq!(evaluated(&killed, &test, &[]), evaluated(&whole, &test, &[]));
}

#[test]
fn a_training_that_cannot_work_is_refused_with_a_remedy() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let large = ["--ngrams", "5", "--dim", "4096", "--memory", "64MiB"];
    let (code, told) = ended(ngrams(&train, &out, &large));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("bytes of memory") && told.contains("reduce --buckets or --dim"), "{told}");
    let (code, told) = ended(ngrams(&train, &out, &["--rate", "1e30", "--force"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("the loss is not a number in epoch 1; set a lower --rate"), "{told}");
    assert!(!out.join("model").exists());
}

#[test]
fn an_exported_file_has_the_answers_of_its_model() {
    let (folder, train, test) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &["--model", "fasttext", "--buckets", "20000"]);
    let expected = evaluated(&out, &test, &[]);
    for (name, more) in [("model.bin", &[][..]), ("model.ftz", &["--rows", "5000"]), ("model.vec", &[])] {
        let file = folder.path().join(name);
        let (code, told) =
            ended(trainer_of("export", &out, &[&["--out", file.to_str().unwrap()], more].concat()));
        assert_eq!(code, Some(0), "{told}");
        if name != "model.vec" {
            let found = evaluated(&file, &test, &[]);
            assert_eq!(
                (&found["rows"], &found["accuracy"]),
                (&expected["rows"], &expected["accuracy"]),
                "{name}"
            );
            let (_, explained, _) = run(trainer_of("explain", &file, &["a lovely kettle", "--json"]));
            assert!(explained.contains("\"name\":\"2\"") && explained.contains("lovely"), "{explained}");
        } else {
            let vectors = fs::read_to_string(&file).unwrap();
            assert!(vectors.starts_with("25 10\n") && vectors.lines().count() == 26, "{vectors:.99}");
        }
        let (code, told) = ended(trainer_of("export", &out, &["--out", file.to_str().unwrap()]));
        assert_eq!(code, Some(64), "{told}");
    }
    let (code, told) = ended(trainer_of("export", &out, &["--out", "model.txt"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("a file with the extension .bin, .ftz or .vec"), "{told}");
}

//! Models of other programs: their labels, and the command for them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Command;

use corpus::labels::Labels;
use corpus::settings::Settings;
use dataset::Row;
use fixtures::{dataset_prepared, word};
use serde_json::Value;
use tests::command::{ended, program, run};

#[track_caller]
fn done(command: Command) -> String {
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    said
}

/// Row `at` of a dataset: its words are those of its rating, 1 to 5.
fn row(at: u32, labels: &Labels) -> Row {
    let rating = at % 5 + 1;
    let mut votes = [0; 5];
    votes[rating as usize - 1] = 1;
    Row {
        hash: u64::from(at),
        tokens: (0..6).map(|n| 2 + 6 * (rating - 1) + (at / 5 + n) % 6).collect(),
        votes: corpus::record::Votes(votes),
        label: labels.label(rating as u8).unwrap(),
        split: (at * 37 % 1000) as u16,
        source: 0,
    }
}

#[test]
fn a_text_has_the_same_label_in_a_model_of_ngrams_and_in_an_lstm() {
    let labels = Labels::Classes("4-5=fine,3=so so,1-2=awful".parse().unwrap());
    let settings = Settings { labels: labels.clone(), max_tokens: 0, ..Settings::default() };
    let (folder, dataset) = dataset_prepared(900, 30, settings, |at| row(at, &labels));
    let [ngrams, lstm] = ["ngrams", "lstm"].map(|name| folder.path().join(name));
    let mut train = program("ngrams");
    train
        .arg("train")
        .arg("--input")
        .arg(&dataset)
        .arg("--out")
        .arg(&ngrams)
        .args(["--test-fraction", "0.1"]);
    done(train);
    let mut fit = program("trainer");
    fit.arg("fit")
        .arg(&dataset)
        .arg("--out")
        .arg(&lstm)
        .args(["--device", "cpu", "--batch", "16", "--rate", "0.02"]);
    done({
        fit.args([
            "--embedding",
            "16",
            "--hidden",
            "16",
            "--linear",
            "8",
            "--epochs",
            "6",
            "--dropout-words",
            "0",
        ]);
        fit
    });
    let texts: String =
        [0, 6, 12, 18, 24].iter().map(|at| format!("{} {}\n", word(*at), word(at + 1))).collect();
    let of = |model: &Path| -> Vec<(Value, Value)> {
        let of = if model == lstm.as_path() { "trainer" } else { "ngrams" };
        let mut predict = program(of);
        predict.arg("predict").arg(model).args(["--format", "text"]);
        let lines = folder.path().join("texts");
        fs::write(&lines, &texts).unwrap();
        let answers = done({
            predict.arg(&lines);
            predict
        });
        let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        answers.map(|answer| (answer["label"].clone(), answer["class"].clone())).collect()
    };
    let expected = [(2, "awful"), (2, "awful"), (1, "so so"), (0, "fine"), (0, "fine")];
    assert_eq!(of(&ngrams), expected.map(|(label, class)| (label.into(), class.into())));
    assert_eq!(of(&lstm), of(&ngrams));
    // Both were tested on the same rows.
    let mut report = program("ngrams");
    report.arg("report").arg(&ngrams);
    let page = folder.path().join("page.html");
    report.arg(&lstm).arg("--out").arg(&page);
    done(report);
    let page = fs::read_to_string(page).unwrap();
    assert!(!page.contains("different rows") && !page.contains("not known"), "another test");
}

#[test]
fn a_model_of_another_program_is_refused_with_the_command_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let [train, out, words] = ["train.txt", "out", "words"].map(|name| folder.path().join(name));
    fs::write(&train, "__label__1 good kettle good\n__label__2 bad kettle bad\n".repeat(20)).unwrap();
    for (name, out) in [("ngrams", &out), ("vectors", &words)] {
        let mut training = program(name);
        training.arg("train").arg("--input").arg(&train).arg("--out").arg(out);
        training.args(["--threads", "1", "--format", "fasttext"]);
        done(training);
    }
    let lstm = folder.path().join("lstm");
    fs::create_dir(&lstm).unwrap();
    fs::write(lstm.join("config.json"), "{}").unwrap();
    for command in ["evaluate", "predict", "explain", "export"] {
        for (of, model, other) in [("trainer", &out, "ngrams"), ("ngrams", &lstm, "trainer")] {
            let mut refused = program(of);
            refused.arg(command).arg(model);
            if command == "evaluate" {
                refused.arg(&train);
            }
            let (code, told) = ended(refused);
            assert_eq!((code, told.lines().count()), (Some(64), 1), "{told}");
            let expected = format!("run `{other} {command} {}`", model.display());
            assert!(told.ends_with(&expected), "{told}");
        }
        let mut refused = program("trainer");
        refused.arg(command).arg(&words);
        if command == "evaluate" {
            refused.arg(&train);
        }
        let (code, told) = ended(refused);
        assert_eq!(code, Some(78), "{command}: {told}");
        assert!(told.contains("word vectors, expected a classifier; train one with"), "{command}: {told}");
    }
    // A file in the place of a model is of no program.
    let mut swapped = program("ngrams");
    let (code, told) = ended({
        swapped.arg("predict").arg(&train).arg(&out);
        swapped
    });
    assert!(code == Some(66) && told.contains("MODEL is a file, expected a model folder"), "{told}");
}

//! Checks whether a model can be evaluated on rows. They must have its vocabulary and settings. A warning is printed
//! for rows on which the model was trained.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{ended, events, fit, run, trainer};
use corpus::labels::Labels;
use corpus::settings::{Keep, Settings};
use dataset::Row;
use dataset::dataset_file::DatasetReader;
use fixtures::{dataset_of, dataset_prepared, review, reviews};
use serde_json::Value;
use tempfile::TempDir;

fn trained(dataset: &Path, out: &Path, more: &[&str]) -> String {
    let (code, _, told) = run(fit(dataset, out, more));
    assert_eq!(code, Some(0), "{told}");
    told
}

/// The result of an evaluation on standard output, and its warnings on standard error.
fn evaluated(model: &Path, dataset: &Path, more: &[&str]) -> (Value, String) {
    let mut command = trainer();
    command.arg("evaluate").arg(model).arg(dataset).args(["--device", "cpu"]).args(more);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    (serde_json::from_str(&said).unwrap(), told)
}

fn other_hashes(at: u32) -> Row {
    Row { hash: u64::from(at) + (1 << 40), ..review(at) }
}

const WARNING: &str = "of these rows are training rows of the model, so its metrics are too high; ";

#[test]
fn an_evaluation_on_training_rows_warns_and_one_on_others_does_not() {
    let (data, dataset) = reviews(600);
    let out = data.path().join("out");
    trained(&dataset, &out, &["--validation-fraction", "0.1"]);
    let model = out.join("model");
    let (_other, held_out) = dataset_of(200, 50, other_hashes);
    let splits =
        |range: std::ops::Range<u16>| (0..600).filter(|&at| range.contains(&review(at).split)).count();
    let n_training = splits(200..1000);

    let (all, told) = evaluated(&model, &dataset, &[]);
    assert_eq!(all["trained_on"], n_training);
    assert!(told.contains(&format!("at least {n_training} {WARNING}")), "{told}");
    // The same test split as in `fit`, and a part of it.
    for fraction in ["0.1", "0.05"] {
        let (held_out, told) = evaluated(&model, &dataset, &["--test-fraction", fraction]);
        assert_eq!((&held_out["trained_on"], told.as_str()), (&Value::from(0), ""));
    }
    let (more, told) = evaluated(&model, &dataset, &["--test-fraction", "0.3"]);
    assert_eq!(more["trained_on"], splits(200..300));
    assert!(told.contains(WARNING), "{told}");
    assert_eq!(evaluated(&model, &held_out, &[]).0["trained_on"], 0);

    // An exported model also contains the hashes of its training rows; a model of an older version does not.
    let exported = data.path().join("exported");
    let mut export = trainer();
    export.arg("export").arg(&model).arg("--out").arg(&exported);
    assert_eq!(run(export).0, Some(0));
    assert_eq!(evaluated(&exported, &dataset, &[]).0["trained_on"], n_training);
    fs::remove_file(exported.join("trained_on.json")).unwrap();
    let sums = fs::read_to_string(exported.join("SHA256SUMS")).unwrap();
    let without: Vec<&str> = sums.lines().filter(|line| !line.contains("trained_on")).collect();
    fs::write(exported.join("SHA256SUMS"), without.join("\n")).unwrap();
    let (older, told) = evaluated(&exported, &dataset, &[]);
    assert_eq!((&older["trained_on"], told.as_str()), (&Value::Null, ""));
}

#[test]
fn a_test_on_training_rows_warns() {
    let (data, dataset) = reviews(600);
    let (_other, held_out) = dataset_of(200, 50, other_hashes);
    let test = |name: &str, path: &Path| {
        trained(
            &dataset,
            &data.path().join(name),
            &["--test", path.to_str().unwrap(), "--validation-fraction", "0"],
        )
    };
    assert!(test("same", &dataset).contains(&format!("at least 600 {WARNING}")));
    assert!(!test("other", &held_out).contains("warning"));
    let model = data.path().join("other/model");
    let kept: Value = serde_json::from_slice(&fs::read(model.join("trained_on.json")).unwrap()).unwrap();
    assert_eq!(
        (&kept["rows"], &kept["has_test"], &kept["test_fraction"]),
        (&600.into(), &true.into(), &0.0.into())
    );
    assert_eq!(kept["smallest_hashes"].as_array().unwrap().len(), 600);
}

/// Review `at`, with a hash whose lower half is spread.
fn spread(at: u32) -> Row {
    Row { hash: u64::from(at) << 32 | u64::from(at.wrapping_mul(0x9e37_79b9)), ..review(at) }
}

fn is_in_half(row: &Row) -> bool {
    row.hash % (1 << 32) < 1 << 31
}

#[test]
fn a_sample_trains_on_the_rows_of_a_dataset_that_is_the_same_sample() {
    let (data, dataset) = dataset_of(600, 50, spread);
    let of_half: Vec<Row> = (0..600).map(spread).filter(is_in_half).collect();
    let rows = Settings { max_tokens: 0, sample: "0.5".parse().unwrap(), ..Settings::default() };
    let (_half, half) = dataset_prepared(of_half.len() as u32, 50, rows, |at| of_half[at as usize].clone());
    let train = |name: &str, dataset: &Path, more: &[&str]| {
        let out = data.path().join(name);
        let told = trained(dataset, &out, &[&["--validation-fraction", "0.1"], more].concat());
        let document =
            |name: &str| -> Value { serde_json::from_slice(&fs::read(out.join(name)).unwrap()).unwrap() };
        (told, document("settings.json"), document("model/trained_on.json"), document("model/config.json"))
    };
    let (told, sampled, trained_on, config) = train("sampled", &dataset, &["--sample", "0.5"]);
    let (_, of_dataset, of_dataset_on, of_dataset_config) = train("half", &half, &[]);

    assert!(told.contains(&format!("sample 0.5: {} of 600 rows are used", of_half.len())), "{told}");
    assert_eq!(sampled["dataset"]["rows"], of_dataset["dataset"]["rows"]);
    let n_rows: u64 =
        sampled["dataset"]["rows"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(n_rows, of_half.len() as u64);
    assert_eq!(trained_on["smallest_hashes"], of_dataset_on["smallest_hashes"]);
    assert_eq!(trained_on["rows"], of_dataset_on["rows"]);
    assert_eq!(
        (&sampled["recipe"]["sample"], &of_dataset["recipe"]["sample"]),
        (&"0.5".into(), &Value::Null)
    );
    // A model prepares texts, which no sample changes.
    for config in [config, of_dataset_config] {
        assert_eq!(config["preparation"].get("sample"), None, "{config}");
    }
    // Both models can be evaluated on both datasets.
    for (model, dataset) in [("sampled", &half), ("half", &dataset)] {
        evaluated(&data.path().join(model).join("model"), dataset, &["--test-fraction", "0.1"]);
    }
}

#[test]
fn a_sample_of_all_rows_is_the_same_as_no_flag_and_other_numbers_are_refused() {
    let (data, dataset) = dataset_of(300, 50, spread);
    let weights = |name: &str, more: &[&str]| {
        trained(&dataset, &data.path().join(name), more);
        fs::read(data.path().join(name).join("model/model.safetensors")).unwrap()
    };
    assert!(weights("whole", &[]) == weights("all", &["--sample", "1"]));
    for share in ["0", "-1", "1.5", "NaN"] {
        let (code, told) = ended(fit(&dataset, &data.path().join("refused"), &["--sample", share]));
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains("expected a number above 0 and up to 1"), "{told}");
    }
}

#[test]
fn a_resumed_training_has_the_same_sample() {
    let (data, dataset) = dataset_of(300, 50, spread);
    let out = data.path().join("out");
    trained(&dataset, &out, &["--sample", "0.5"]);
    assert_eq!(ended(fit(&dataset, &out, &["--sample", "0.50", "--resume"])).0, Some(0));
    for (more, found) in [(&["--sample", "0.25"][..], "0.25"), (&[], "missing")] {
        let (code, told) = ended(fit(&dataset, &out, &[more, &["--resume"]].concat()));
        assert_eq!(code, Some(78), "{told}");
        assert!(told.contains("--sample") && told.contains(found), "{told}");
    }
}

#[test]
fn a_validation_dataset_chooses_the_epoch_and_is_recorded() {
    let (data, dataset) = reviews(600);
    let (_other, validation) = dataset_of(200, 50, other_hashes);
    let out = data.path().join("out");
    let flags = ["--epochs", "3", "--rate", "0.01", "--test-every", "--json"];
    let mut command = fit(&dataset, &out, &[&flags[..], &["--validation"]].concat());
    command.arg(&validation);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    assert!(!told.contains("warning"), "{told}");
    let document =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(out.join(name)).unwrap()).unwrap() };
    let settings = document("settings.json");
    // No row of the dataset is held out for validation.
    let n_test = (0..600).filter(|&at| review(at).split < 100).count();
    assert_eq!(settings["dataset"]["rows"], serde_json::json!([600 - n_test, 0, n_test]));
    assert_eq!(settings["validation"]["rows"], serde_json::json!([0, 200, 0]));
    assert!(settings["validation"]["path"].as_str().unwrap().ends_with("reviews.h5"));

    let epochs = events(&out, "epoch");
    assert_eq!(epochs.len(), 3);
    let loss = |epoch: &Value| epoch["validation"]["loss"].as_f64().unwrap();
    let best = epochs.iter().min_by(|one, other| loss(one).total_cmp(&loss(other))).unwrap();
    let summary: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(summary["kept"]["epoch"], best["epoch"]);
    assert_eq!(summary["validation"], best["validation"]);
    assert_eq!(best["validation"]["rows"], 200);
    assert!(epochs.iter().all(|epoch| epoch["test"]["rows"] == n_test));
    // The final test is that of the best epoch, whose weights are in the model.
    assert_eq!(summary["evaluation"]["confusion"], best["test"]["confusion"]);
    let (evaluated, _) = evaluated(&out.join("model"), &validation, &[]);
    assert_eq!(evaluated["confusion"], best["validation"]["confusion"]);
}

#[test]
fn a_validation_dataset_alone_is_the_final_evaluation() {
    let (data, dataset) = reviews(600);
    let (_other, validation) = dataset_of(200, 50, other_hashes);
    let out = data.path().join("out");
    let path = validation.to_str().unwrap();
    let told = trained(&dataset, &out, &["--validation", path, "--test-fraction", "0", "--patience", "1"]);
    assert!(told.contains("on 200 validation rows"), "{told}");
}

#[test]
fn a_resumed_training_needs_the_same_validation_dataset() {
    let (data, dataset) = reviews(600);
    let (_other, validation) = dataset_of(200, 50, other_hashes);
    let (_third, smaller) = dataset_of(100, 50, other_hashes);
    let out = data.path().join("out");
    let resume = |validation: Option<&Path>| {
        let mut command = fit(&dataset, &out, &["--resume"]);
        validation.map(|path| command.arg("--validation").arg(path));
        ended(command)
    };
    trained(&dataset, &out, &["--validation", validation.to_str().unwrap()]);
    assert_eq!(resume(Some(&validation)).0, Some(0));
    for other in [Some(&*smaller), None] {
        let (code, told) = resume(other);
        assert_eq!(code, Some(78), "{told}");
        assert!(told.contains("found a complete training with "), "{told}");
    }
}

#[test]
fn texts_of_the_training_split_in_a_validation_dataset_are_counted() {
    let (data, dataset) = reviews(600);
    let out = data.path().join("out");
    // Hashes of 300 rows, of which some are in the test split.
    let (_other, validation) = dataset_of(500, 50, |at| if at < 300 { review(at) } else { other_hashes(at) });
    let told = trained(&dataset, &out, &["--validation", validation.to_str().unwrap()]);
    let shared = (0..300).filter(|&at| review(at).split >= 100).count();
    let expected = format!(
        "{shared} of 500 rows are texts of the training split, so the validation loss is too low; remove them with \
         --without {} of sentimill or merge",
        dataset.display()
    );
    assert!(shared < 300 && told.contains(&expected), "{told}");
}

#[test]
fn a_validation_dataset_that_does_not_fit_is_refused_in_one_line() {
    let (data, dataset) = reviews(600);
    let (_words, other_words) = dataset_of(200, 51, other_hashes);
    let settings = Settings { max_tokens: 40, keep: Keep::First, ..Settings::default() };
    let (_settings, other_settings) = dataset_prepared(200, 50, settings, other_hashes);
    let raw = data.path().join("raw.json");
    fs::write(&raw, "{\"overall\": 5}\n").unwrap();
    let missing = data.path().join("missing.h5");
    for (path, code, expected) in [
        (&other_words, 78, "its vocabulary differs from that of "),
        (&other_settings, 78, "max-tokens 40, expected 0 as in "),
        (&raw, 66, "a JSON file, expected a dataset written by sentimill or merge; make one with "),
        (&missing, 66, "no such file, expected a dataset written by sentimill or merge"),
    ] {
        let out = data.path().join("out");
        let (found, told) = ended(fit(&dataset, &out, &["--validation", path.to_str().unwrap()]));
        assert_eq!(found, Some(code), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains(&path.display().to_string()) && told.contains(expected), "{told}");
        assert!(!out.exists());
    }
}

#[test]
fn what_a_model_was_trained_on_is_refused_where_it_is_not_as_written() {
    let (data, dataset) = reviews(300);
    let out = data.path().join("out");
    trained(&dataset, &out, &[]);
    let model = out.join("model");
    let path = model.join("trained_on.json");
    let written = fs::read_to_string(&path).unwrap();
    let n_rows = serde_json::from_str::<Value>(&written).unwrap()["rows"].as_u64().unwrap();
    for (from, to) in [
        ("\"format_version\":1", "\"format_version\":2"),
        ("\"test_fraction\":0.1", "\"test_fraction\":1.5"),
        ("\"smallest_hashes\":[", "\"smallest_hashes\":[9,"),
        ("\"smallest_hashes\":[", "\"smallest_hashes\":[-1,"),
        (&format!("\"rows\":{n_rows}"), "\"rows\":18446744073709551615"),
        ("{", "{\"more\":1,"),
        ("{", ""),
    ] {
        assert!(written.contains(from), "{from}: {written:.200}");
        fs::write(&path, written.replacen(from, to, 1)).unwrap();
        let script = "sha256sum [a-z]* > SHA256SUMS";
        assert!(Command::new("sh").args(["-c", script]).current_dir(&model).status().unwrap().success());
        let mut command = trainer();
        command.arg("evaluate").arg(&model).arg(&dataset).args(["--device", "cpu"]);
        let (code, _, told) = run(command);
        assert_eq!((code, told.lines().count()), (Some(66), 1), "{to}: {told}");
        assert!(told.contains("trained_on.json: its content is "), "{to}: {told}");
    }
}

/// A dataset with the same rows and other settings.
fn prepared(rows: Settings) -> (TempDir, PathBuf) {
    dataset_prepared(600, 50, rows, review)
}

#[test]
fn rows_that_were_made_by_other_settings_are_refused_by_the_name_of_the_setting() {
    let own = Settings { stop_words: vec!["the".to_owned()], max_tokens: 0, ..Settings::default() };
    let (data, dataset) = prepared(own.clone());
    let out = data.path().join("out");
    trained(&dataset, &out, &["--checkpoint-steps", "5"]);
    let model = out.join("model");
    let interrupted = data.path().join("interrupted");
    assert!(Command::new("cp").arg("-r").arg(&out).arg(&interrupted).status().unwrap().success());
    fs::remove_dir_all(interrupted.join("model")).unwrap();
    let keep = if own.keep == Keep::First { Keep::Last } else { Keep::First };
    let others = [
        ("stop words 0 words", Settings { stop_words: Vec::new(), ..own.clone() }),
        ("max-tokens 100, expected 0", Settings { max_tokens: 100, ..own.clone() }),
        ("keep ", Settings { keep, ..own.clone() }),
        ("cleaning version 7, expected 1", Settings { cleaning_version: 7, ..own.clone() }),
        (
            "Unicode version 16.0.0, expected 17.0.0",
            Settings { unicode_version: "16.0.0".to_owned(), ..own.clone() },
        ),
    ];
    for (expected, settings) in others {
        let (_data, other) = prepared(settings.clone());
        let mut evaluate = trainer();
        evaluate.arg("evaluate").arg(&model).arg(&other).args(["--device", "cpu"]);
        let tested = fit(&dataset, &data.path().join("new"), &["--test", other.to_str().unwrap()]);
        for command in [evaluate, tested] {
            let (code, said, told) = run(command);
            assert_eq!((code, said.as_str(), told.lines().count()), (Some(78), "", 1), "{told}");
            assert!(told.contains(&format!("reviews.h5: {expected}")), "{told}");
        }
        for folder in [&out, &interrupted] {
            let (code, _, told) = run(fit(&other, folder, &["--checkpoint-steps", "5", "--resume"]));
            assert_eq!((code, told.lines().count()), (Some(78), 1), "{told}");
            let named = expected.split(' ').next().unwrap();
            assert!(told.contains(named), "{told}");
        }
    }
    // With another `positive_from`, labels and digests differ.
    let (_data, other) =
        dataset_prepared(600, 50, Settings { labels: Labels::PositiveFrom(3), ..own }, |at| {
            let row = review(at);
            Row { label: u8::from(row.votes.mode() >= 3), ..row }
        });
    let mut evaluate = trainer();
    evaluate.arg("evaluate").arg(&model).arg(&other).args(["--device", "cpu"]);
    let (code, _, told) = run(evaluate);
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("positive-from 3, expected 4"), "{told}");
}

#[test]
fn a_training_says_what_its_flags_do_not_reach() {
    let (data, dataset) = reviews(100);
    let words = DatasetReader::open(&dataset).unwrap().vocabulary().words.clone();
    let mut vectors = "3 8\n".to_owned();
    for word in [words.get(0), words.get(2), b"unseen"] {
        vectors.push_str(&format!("{} 1 2 3 4 5 6 7 8\n", String::from_utf8_lossy(word)));
    }
    let file = data.path().join("some.vec");
    fs::write(&file, vectors).unwrap();
    let told = trained(&dataset, &data.path().join("of-vectors"), &["--init-from", file.to_str().unwrap()]);
    let n_words = words.len();
    assert!(told.contains(&format!("2 of {n_words} words of the vocabulary have a vector in ")), "{told}");
    let told = trained(&dataset, &data.path().join("balanced"), &["--balance", "dynamic"]);
    assert!(told.contains("--balance has no effect, because there is one rank"), "{told}");
    let told = trained(&dataset, &data.path().join("plain"), &[]);
    assert!(!told.contains("--balance") && !told.contains("vector"), "{told}");
}

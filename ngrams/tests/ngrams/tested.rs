//! Evaluated texts: copies of a text, tests of one label, and whether two models were tested on the same texts.

use super::*;

/// Test texts, one of which has 60 copies that no model predicts: their words are good, and their label is 1.
fn copied() -> String {
    lines(400, 2)
        + &"__label__1 Great lovely perfect kettle!\n__label__1 great  lovely perfect KETTLE\n".repeat(30)
}

fn page(runs: &[&Path]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("page.html");
    let mut report = program("ngrams");
    report.arg("report").args(runs).arg("--out").arg(&out);
    let (code, told) = ended(report);
    assert_eq!(code, Some(0), "{told}");
    fs::read_to_string(out).unwrap()
}

#[test]
fn copies_of_a_text_are_counted_told_and_drawn_together() {
    let (folder, train, test) = corpus();
    fs::write(&test, copied()).unwrap();
    let once = folder.path().join("once.txt");
    fs::write(&once, lines(400, 2) + "__label__1 Great lovely perfect kettle!\n").unwrap();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        let (code, said, told) =
            run(ngrams(&train, &out, &[model, &["--test", test.to_str().unwrap(), "--json"]].concat()));
        assert_eq!(code, Some(0), "{told}");
        let found = &serde_json::from_str::<Value>(&said).unwrap()["evaluation"];
        assert_eq!((&found["rows"], &found["distinct_texts"]), (&460.into(), &401.into()), "{found}");
        assert!(told.contains(" on 460 test texts, 401 of them distinct "), "{told}");
        let of = |name: &str| found[name].as_f64().unwrap();
        assert!(
            told.contains(&format!("accuracy {:.4} with each distinct text once", of("distinct_accuracy"))),
            "{told}"
        );
        let expected =
            "60 of 460 texts are copies of one text (13.0 %), which counts as often in the metrics";
        assert!(told.contains("ngrams: warning: ") && told.contains(expected), "{told}");
        assert!(of("distinct_accuracy") > of("accuracy") + 0.1, "{found}");

        let distinct = evaluated(&out, &once, &[]);
        assert_eq!(
            (&distinct["rows"], &distinct["distinct_texts"]),
            (&401.into(), &401.into()),
            "{distinct}"
        );
        assert!(
            (distinct["accuracy"].as_f64().unwrap() - of("distinct_accuracy")).abs() < 1e-9,
            "{distinct}"
        );
        assert_eq!(distinct["distinct_accuracy"], distinct["accuracy"]);
        // The interval of all texts contains the accuracy without the copies.
        let again = evaluated(&out, &test, &[]);
        assert_eq!(again["intervals"], found["intervals"]);
        let end = |found: &Value, at: usize| found["intervals"]["accuracy"][at].as_f64().unwrap();
        assert!(
            end(&again, 1) > of("distinct_accuracy") && end(&again, 0) < of("accuracy") - 0.05,
            "{again}"
        );
        assert!(end(&again, 1) - end(&again, 0) > 2.0 * (end(&distinct, 1) - end(&distinct, 0)));

        let mut evaluate = command_of("evaluate", &out, &[]);
        evaluate.arg(&test).args(["--format", "fasttext", "--text"]);
        let (_, said, told) = run(evaluate);
        assert!(said.contains("distinct texts           401\n") && told.contains(expected), "{said}{told}");
        assert!(page(&[&out, &out]).contains("<th scope=\"row\">distinct texts</th><td>401</td>"));
    }
}

#[test]
fn a_test_of_one_label_names_what_is_missing() {
    let (folder, train, test) = corpus();
    fs::write(&test, "__label__2 a great lovely kettle\n__label__2 perfect lid\n").unwrap();
    let told = trained(&train, &folder.path().join("out"), &["--test", test.to_str().unwrap()]);
    let expected = "warning: every evaluated text has label 2, so these metrics do not show whether the model distinguishes \
                    labels; test on texts of all labels";
    assert!(told.contains(expected) && !told.contains("train on more"), "{told}");
}

#[test]
fn models_are_compared_if_they_were_tested_on_the_same_texts() {
    let (folder, train, test) = corpus();
    let other_test = folder.path().join("other.txt");
    fs::write(&other_test, lines(500, 9)).unwrap();
    let [one, two, other, older] = ["one", "two", "other", "older"].map(|name| folder.path().join(name));
    // Words do not matter.
    let of = |out: &Path, test: &Path, more: &[&str]| {
        trained(&train, out, &[&["--test", test.to_str().unwrap()], more].concat());
    };
    of(&one, &test, &["--ngrams", "1", "--words", "spaces"]);
    of(&two, &test, &["--words", "punctuation"]);
    of(&other, &other_test, &[]);
    of(&older, &test, &[]);
    let file = older.join("ngrams.json");
    let mut json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(json.as_object_mut().unwrap().remove("tested").is_some());
    fs::write(&file, serde_json::to_vec(&json).unwrap()).unwrap();
    let different = "They were tested on different rows or classes, so these numbers cannot be compared.";
    let not_known = "It is not known whether they were tested on the same rows";
    for (runs, expected) in [
        ([&*one, &two], "points before"),
        ([&*one, &other], different),
        ([&*one, &older], not_known),
        ([&*older, &older], not_known),
    ] {
        let page = page(&runs);
        for text in ["points before", different, not_known] {
            assert_eq!(page.contains(text), text == expected, "{runs:?}: {text}");
        }
    }
}

#[test]
fn splits_of_one_file_are_the_same_texts_for_all_models() {
    let (folder, train, _) = corpus();
    let tenth = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        trained(&train, &out, more);
        let json: Value = serde_json::from_slice(&fs::read(out.join("ngrams.json")).unwrap()).unwrap();
        json["tested"].clone()
    };
    let linear = tenth("linear", &["--test-fraction", "0.1"]);
    assert_eq!(
        tenth("fasttext", &["--test-fraction", "0.1", "--model", "fasttext", "--buckets", "20000"]),
        linear
    );
    let fifth = tenth("fifth", &["--test-fraction", "0.2"]);
    assert!(fifth["digest"].as_str().unwrap().len() == 32 && fifth["digest"] != linear["digest"], "{fifth}");
    assert_eq!((&linear["part"], &linear["texts"]), (&"test".into(), &linear["distinct_texts"]), "{linear}");
    let content = fs::read_to_string(&train).unwrap();
    fs::write(&train, content + &lines(2, 70).repeat(30)).unwrap();
    let told = trained(&train, &folder.path().join("copies"), &["--test-fraction", "0.9"]);
    let place = format!("warning: {}, test split: 30 of ", train.display());
    assert!(told.contains(&place), "{told}");
}

#[test]
fn splits_are_evaluated_after_every_epoch_if_asked() {
    let (folder, train, test) = corpus();
    let out = folder.path().join("out");
    let test = test.to_str().unwrap();
    let flags =
        ["--epochs", "4", "--test", test, "--validation-fraction", "0.2", "--test-every", "--threads", "1"];
    let told = trained(&train, &out, &flags);
    let epochs = |out: &Path| {
        let lines = objects(&fs::read_to_string(out.join("metrics.jsonl")).unwrap());
        lines.into_iter().filter(|line| line["event"] == "epoch").collect::<Vec<_>>()
    };
    let found = epochs(&out);
    assert_eq!(found.len(), 4);
    for (at, line) in found.iter().enumerate() {
        let [validation, tested] =
            ["validation", "test"].map(|part| line[part]["accuracy"].as_f64().unwrap());
        let expected = format!("epoch {} of 4: loss ", at + 1);
        let line = told.lines().find(|line| line.contains(&expected)).unwrap();
        assert!(
            line.contains(&format!(", test accuracy {tested:.4}, validation accuracy {validation:.4}")),
            "{line}"
        );
    }
    // The last epoch has the metrics of the model, and the evaluations do not change the training.
    assert_eq!(found[3]["test"]["accuracy"], evaluated(&out, Path::new(test), &[])["accuracy"]);
    assert!(
        found[0]["test"]["loss"].as_f64().unwrap() > found[3]["test"]["loss"].as_f64().unwrap(),
        "{found:?}"
    );
    let without = folder.path().join("without");
    trained(&train, &without, &[&["--model", "fasttext"], &flags[..6], &flags[7..]].concat());
    assert_eq!(model_files(&without), model_files(&out));
    assert!(epochs(&without).iter().all(|line| line["test"].is_null() && line["validation"].is_null()));
}

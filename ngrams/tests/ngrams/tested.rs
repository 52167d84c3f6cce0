//! Evaluated texts: copies of a text, tests of one label, and whether two models were tested on the same texts.

use super::*;

/// Test texts, one of which has 60 copies that no model predicts: their words are good, and their label is 1.
fn copied() -> String {
    lines(400, 2)
        + &"__label__1 Great lovely perfect kettle!\n__label__1 great  lovely perfect KETTLE\n".repeat(30)
}

/// The JSON document of a training.
fn document(out: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(out.join(name)).unwrap()).unwrap()
}

/// The lines of epochs of a log.
fn epochs(out: &Path) -> Vec<Value> {
    let lines = objects(&fs::read_to_string(out.join("metrics.jsonl")).unwrap());
    lines.into_iter().filter(|line| line["event"] == "epoch").collect()
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
    let mut json = document(&older, "ngrams.json");
    assert!(json.as_object_mut().unwrap().remove("tested").is_some());
    fs::write(older.join("ngrams.json"), serde_json::to_vec(&json).unwrap()).unwrap();
    fs::remove_file(older.join("evaluation.json")).unwrap();
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
        document(&out, "ngrams.json")["tested"].clone()
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

#[test]
fn a_training_keeps_its_evaluation_and_the_report_shows_it() {
    let (folder, train, test) = corpus();
    fs::write(&test, copied()).unwrap();
    let outs = MODELS.map(|model| {
        let out = folder.path().join(model[1]);
        trained(&train, &out, &[model, &["--test", test.to_str().unwrap(), "--epochs", "3"]].concat());
        let (record, evaluated) = (document(&out, "evaluation.json"), evaluated(&out, &test, &[]));
        for name in ["accuracy", "f1", "auc", "loss", "rows"] {
            assert_eq!(record["metrics"][name], evaluated[name], "{name}");
        }
        for name in ["intervals", "probabilities"] {
            assert_eq!(record[name], evaluated[name], "{name}");
        }
        assert_eq!((&record["part"], &record["classes"][0]), (&"test".into(), &"1".into()));
        // 9 bytes per text follow the header.
        assert_eq!(fs::metadata(out.join("scores.npy")).unwrap().len(), 192 + 9 * 460);
        let wrong = record["wrong"].as_array().unwrap();
        let score = |row: &Value| row["score"].as_f64().unwrap().abs();
        assert!(wrong.len() >= 30 && wrong.windows(2).all(|at| score(&at[0]) >= score(&at[1])), "{record}");
        // The copies have the hash of one text, and their own words.
        let copies: Vec<&Value> = wrong.iter().filter(|row| row["row"].as_u64().unwrap() >= 400).collect();
        assert!(copies.len() > 10, "{record}");
        for row in copies {
            assert_eq!((&row["label"], &row["hash"]), (&0.into(), &copies_hash(wrong)), "{row}");
            let words = row["words"].as_array().unwrap();
            assert_eq!(words[1], "lovely", "{row}");
        }
        out
    });
    let page = page(&[&outs[0], &outs[1]]);
    for text in [
        "id=\"wrong\"",
        "predicted <b>2</b> with ",
        ", is <b>1</b>",
        "lovely",
        "<th scope=\"col\">95 % confidence intervals</th>",
        "share of positive rows over predicted probability",
    ] {
        assert!(page.contains(text), "{text}");
    }
    for name in ["training time", "reviews/s"] {
        let row = page.split(&format!("<th scope=\"row\">{name}</th>")).nth(1).unwrap();
        let row = row.split("</tr>").next().unwrap();
        assert!(!row.contains('–') && row.matches("<td").count() == 2, "{name}: {row}");
    }
    // Several classifiers may be trained at the same time, so all epochs have one line.
    let linear = epochs(&outs[0]);
    let [line] = &linear[..] else { panic!("{linear:?}") };
    assert_eq!((&line["epoch"], &line["from_step"], &line["loss"]), (&3.into(), &0.into(), &Value::Null));
    assert!(line["seconds"].as_f64().unwrap() > 0.0, "{line}");
    assert_eq!(epochs(&outs[1]).len(), 3);
}

/// The hash of the last wrong row of the copies.
fn copies_hash(wrong: &[Value]) -> Value {
    let last = wrong.iter().rfind(|row| row["row"].as_u64().unwrap() >= 400).unwrap();
    assert_eq!(last["hash"].as_str().unwrap().len(), 16);
    last["hash"].clone()
}

/// Texts of 7 labels, some of them with a word of another label. With `is_of_several`, each text has two labels.
fn of_many_labels(n: usize, is_of_several: bool) -> String {
    // Splits are of texts without their digits.
    let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
    let line = |at: usize| {
        let label = at % 7;
        let shown = if at % 10 == 3 { label + 1 } else { label };
        let second = if is_of_several { format!(" __label__m{}", label % 2) } else { String::new() };
        let own = letter(shown % 7);
        format!("__label__l{label}{second} own{own} some{} more{}\n", letter(at / 7), letter(at / 182))
    };
    (0..n).map(line).collect()
}

#[test]
fn trainings_of_many_and_of_several_labels_have_curves_and_wrong_predictions() {
    let folder = tempfile::tempdir().unwrap();
    for (name, is_of_several) in [("many", false), ("several", true)] {
        let [train, test, out] =
            ["train", "test", "out"].map(|file| folder.path().join(format!("{name}.{file}")));
        fs::write(&train, of_many_labels(1400, is_of_several)).unwrap();
        fs::write(&test, of_many_labels(700, is_of_several)).unwrap();
        let test_flag = ["--test", test.to_str().unwrap(), "--test-every", "--validation-fraction", "0.2"];
        let flags = ["--epochs", "3", "--buckets", "20000", "--threads", "1"];
        let told = trained(&train, &out, &[&flags[..], &test_flag].concat());
        let found = epochs(&out);
        assert_eq!(found.len(), 3);
        let expected = evaluated(&out, &test, &[]);
        for name in ["loss", "accuracy", "f1", "precision", "recall", "rows"] {
            assert_eq!(found[2]["test"][name], expected[name], "{name}: {told}");
            assert!(found.iter().all(|line| line["validation"][name].is_number()), "{name}: {found:?}");
        }
        assert!(found[0]["test"]["loss"].as_f64() > found[2]["test"]["loss"].as_f64(), "{found:?}");
        let log = objects(&fs::read_to_string(out.join("metrics.jsonl")).unwrap());
        let last = log.last().unwrap();
        assert_eq!((&last["event"], &last["metrics"]), (&"test".into(), &found[2]["test"]));

        assert!(!out.join("evaluation.json").exists());
        let top = document(&out, "ngrams.json");
        let wrong = top["evaluation"]["wrong"].as_array().unwrap();
        assert_eq!(wrong.len(), 50);
        let probability = |text: &Value| text["probability"].as_f64().unwrap();
        assert!(wrong.windows(2).all(|at| probability(&at[0]) >= probability(&at[1])), "{top}");
        let all = fs::read_to_string(&test).unwrap();
        for text in wrong {
            let line = all.lines().nth(text["text"].as_u64().unwrap() as usize).unwrap();
            let strings = |name: &str| -> Vec<String> {
                let all = text[name].as_array().unwrap().iter();
                all.map(|one| one.as_str().unwrap().to_owned()).collect()
            };
            let labels =
                strings("labels").iter().map(|label| format!("__label__{label} ")).collect::<String>();
            assert_eq!(labels + &strings("words").join(" "), line);
            assert!(!strings("labels").contains(&text["predicted"].as_str().unwrap().to_owned()), "{text}");
        }
        let page = page(&[&out]);
        for text in ["test, by epoch", "id=\"wrong\"", "id=\"epochs\"", "predicted <b>", "macro F1"] {
            assert!(page.contains(text), "{name}: {text}");
        }
    }
}

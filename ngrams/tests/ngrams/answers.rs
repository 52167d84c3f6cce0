//! Predictions, explanations and exported files.

use serde_json::json;
use tests::hadoop::{Heard, as_task};

use super::*;

#[test]
fn predictions_have_labels_and_probabilities_in_the_order_of_lines() {
    let (folder, train, _) = corpus();
    let input = "great lovely kettle\n\nawful broken lid\nqwertz\n";
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, model);
        let answers = objects(&said(command_of("predict", &out, &["--format", "text"]), input));
        assert_eq!(answers.len(), 4, "{answers:?}");
        let of = |at: usize| {
            let answer = &answers[at];
            assert_eq!(answer["line"], at as u64 + 1);
            (answer["label"].as_u64(), answer["class"].as_str(), answer["error"].as_str())
        };
        assert_eq!([of(0), of(2)], [(Some(1), Some("2"), None), (Some(0), Some("1"), None)], "{answers:?}");
        assert_eq!([of(1).2, of(3).2], [Some("blank"), Some("only_unknown")]);
        let (score, probability) =
            (answers[0]["score"].as_f64().unwrap(), answers[0]["probability"].as_f64().unwrap());
        assert!(score > 0.0 && probability > 0.5, "{answers:?}");

        let both = objects(&said(command_of("predict", &out, &["--format", "text", "--top", "2"]), input));
        let names: Vec<&String> = both[2]["probabilities"].as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 2, "{both:?}");
        assert_eq!(both[2]["class"], "1");
        let of_second = both[0]["probabilities"]["2"].as_f64().unwrap();
        assert!((of_second - probability).abs() < 1e-6, "{both:?}");
        let sure =
            objects(&said(command_of("predict", &out, &["--format", "text", "--threshold", "0.5"]), input));
        assert_eq!(sure[0]["probabilities"].as_object().unwrap().len(), 1, "{sure:?}");

        let labelled =
            said(command_of("predict", &out, &["--format", "fasttext"]), "__label__1 great lovely kettle\n");
        assert_eq!(objects(&labelled)[0], answers[0], "{labelled}");
    }
}

#[test]
fn a_cr_within_a_line_is_part_of_its_text() {
    let (folder, train, _) = corpus();
    let file = folder.path().join("lines.txt");
    fs::write(&file, "__label__2 great\rlovely kettle\r\n__label__1 awful\rlid\n").unwrap();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, model);
        assert_eq!(evaluated(&out, &file, &[])["rows"], 2);
        let flags = [file.to_str().unwrap(), "--format", "fasttext"];
        let answers = objects(&said(command_of("predict", &out, &flags), ""));
        let labels: Vec<u64> = answers.iter().map(|answer| answer["label"].as_u64().unwrap()).collect();
        assert_eq!(labels, [1, 0], "{answers:?}");
        let spaces =
            objects(&said(command_of("predict", &out, &["--format", "text"]), "great lovely kettle\n"));
        assert_eq!(spaces[0]["score"], answers[0]["score"], "{answers:?}");
    }
}

#[test]
fn a_text_of_unseen_words_is_evaluated_and_has_no_answer() {
    let (folder, train, test) = corpus();
    let content = fs::read_to_string(&test).unwrap() + "__label__1 qwertz\n__label__2\n";
    fs::write(&test, content).unwrap();
    for model in [MODELS[0], &["--model", "fasttext", "--ngrams", "1", "--words", "punctuation"]] {
        let out = folder.path().join(model[1]);
        trained(&train, &out, model);
        let found = evaluated(&out, &test, &[]);
        assert_eq!((&found["rows"], &found["only_unknown"]), (&502.into(), &0.into()), "{found}");
        let answer = objects(&said(command_of("predict", &out, &["--format", "text"]), "qwertz\n"));
        assert_eq!(answer[0]["error"], "only_unknown", "{answer:?}");
        let (code, shown, told) = run(command_of("explain", &out, &["qwertz"]));
        assert_eq!(code, Some(0), "{told}");
        assert_eq!(shown, "line 1: no prediction: only_unknown\n\n");
    }
}

#[test]
fn explanations_name_the_ngrams_that_decide() {
    let (folder, train, _) = corpus();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, model);
        let (code, said, told) =
            run(command_of("explain", &out, &["the kettle was great but noisy qwertz", "--json"]));
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

        // An n-gram at the end of a text is the same as one within it.
        let (_, said, told) = run(command_of("explain", &out, &["noisy the noisy", "--json", "--top", "20"]));
        let found: Value = serde_json::from_str(&said).unwrap();
        let sides = ["for", "against"].map(|side| found[side].as_array().unwrap().clone()).concat();
        let words: Vec<&str> = sides.iter().map(|word| word["word"].as_str().unwrap()).collect();
        assert!(
            words.iter().all(|word| !word.ends_with(" </s>") && !word.contains("(at the end)")),
            "{said} {told}"
        );
        let distinct: std::collections::BTreeSet<&str> = words.iter().copied().collect();
        assert!(distinct.len() == words.len() && words.contains(&"noisy"), "{said}");
    }
    let out = folder.path().join(MODELS[0][1]);
    let (code, _, told) = run(command_of("explain", &out, &[train.to_str().unwrap()]));
    assert_eq!(code, Some(64), "{told}");
    assert!(
        told.contains("train.txt: found a file, expected a text; pass the texts of a file with --input "),
        "{told}"
    );
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
    let both = said(command_of("predict", &out, &["--format", "text", "--threshold", "0.5"]), "red\n");
    let names = objects(&both)[0]["probabilities"].as_object().unwrap().len();
    assert_eq!(names, 2, "{both}");
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
            ended(command_of("export", &out, &[&["--out", file.to_str().unwrap()], more].concat()));
        assert_eq!(code, Some(0), "{told}");
        if name != "model.vec" {
            let found = evaluated(&file, &test, &[]);
            assert_eq!(
                (&found["rows"], &found["accuracy"]),
                (&expected["rows"], &expected["accuracy"]),
                "{name}"
            );
            let (_, explained, _) = run(command_of("explain", &file, &["a lovely kettle", "--json"]));
            assert!(explained.contains("\"name\":\"2\"") && explained.contains("lovely"), "{explained}");
            // The program hashes the n-gram of an unknown word and the end.
            let (_, explained, _) = run(command_of("explain", &file, &["a lovely qwertz", "--json"]));
            assert!(explained.contains("{\"word\":\"qwertz\",\"mark\":\"unknown\"}"), "{explained}");
        } else {
            let vectors = fs::read_to_string(&file).unwrap();
            assert!(vectors.starts_with("25 10\n") && vectors.lines().count() == 26, "{vectors:.99}");
        }
        let (code, told) = ended(command_of("export", &out, &["--out", file.to_str().unwrap()]));
        assert_eq!(code, Some(64), "{told}");
    }
}

#[test]
fn a_file_with_a_tree_of_labels_is_explained() {
    let (folder, train, _) = corpus();
    let (out, file) = (folder.path().join("out"), folder.path().join("model.bin"));
    trained(&train, &out, &["--model", "fasttext", "--buckets", "20000"]);
    let (code, told) = ended(command_of("export", &out, &["--out", file.to_str().unwrap()]));
    assert_eq!(code, Some(0), "{told}");
    // Two numbers and six settings precede the loss; 1 is hierarchical softmax.
    let mut bytes = fs::read(&file).unwrap();
    bytes[32..36].copy_from_slice(&1_i32.to_le_bytes());
    fs::write(&file, bytes).unwrap();
    let (code, said, told) =
        run(command_of("explain", &file, &["a lovely kettle", "--json", "--top", "100"]));
    assert_eq!(code, Some(0), "{told}");
    let found: Value = serde_json::from_str(&said).unwrap();
    let weights = ["for", "against"].map(|side| found[side].as_array().unwrap().clone()).concat();
    let sum: f64 = weights.iter().map(|ngram| ngram["weight"].as_f64().unwrap()).sum();
    // The log-odds of the predicted label; those of the second label are the score.
    let expected = found["score"].as_f64().unwrap().abs();
    assert!(!weights.is_empty() && (sum - expected).abs() < 1e-3, "{sum} {expected}: {said}");
}

#[test]
fn labels_may_be_anywhere_in_a_line() {
    let (folder, train, test) = corpus();
    let content = fs::read_to_string(&train).unwrap();
    let inside = content.lines().map(|line| {
        let (label, text) = line.split_once(' ').unwrap();
        let (first, rest) = text.split_once(' ').unwrap();
        format!("{first} {label} {rest}\n")
    });
    let moved = folder.path().join("moved.txt");
    fs::write(&moved, inside.collect::<String>()).unwrap();
    for model in MODELS {
        let [as_usual, out] =
            ["usual", "moved"].map(|name| folder.path().join(format!("{name}-{}", model[1])));
        let flags = [model, &["--words=punctuation", "--deterministic"]].concat();
        trained(&train, &as_usual, &flags);
        trained(&moved, &out, &flags);
        assert_eq!(evaluated(&out, &test, &[]), evaluated(&as_usual, &test, &[]));
    }
}

#[test]
fn a_label_may_begin_with_the_prefix_of_labels() {
    let (folder, train, test) = corpus();
    for file in [&train, &test] {
        let content = fs::read_to_string(file).unwrap();
        fs::write(file, content.replace("__label__2", "__label____label__2")).unwrap();
    }
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, model);
        assert!(evaluated(&out, &test, &[])["accuracy"].as_f64().unwrap() > 0.9);
    }
}

#[test]
fn labels_that_the_model_does_not_have_lower_the_f1_and_are_told() {
    let (folder, train, test) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &[]);
    let alone = evaluated(&out, &test, &[])["f1"].as_f64().unwrap();
    let content = fs::read_to_string(&test).unwrap();
    let n = content.lines().count();
    fs::write(&test, format!("{content}{}", "__label__9 a kettle\n".repeat(10))).unwrap();
    let told = trained(&train, &folder.path().join("tested"), &["--test", test.to_str().unwrap()]);
    assert!(
        told.contains(&format!("10 of {} texts have a label that the model does not have", n + 10)),
        "{told}"
    );
    let found = evaluated(&out, &test, &[])["f1"].as_f64().unwrap();
    assert!(found < 0.7 * alone, "{found} {alone}");
    let mut report = command_of("report", &folder.path().join("tested"), &[]);
    let page = folder.path().join("page.html");
    report.arg("--out").arg(&page);
    let (code, told) = ended(report);
    assert_eq!(code, Some(0), "{told}");
    let page = fs::read_to_string(&page).unwrap();
    assert!(
        page.contains("rows are predicted correctly") && !page.contains("quality of the model is unknown")
    );
}

#[test]
fn a_hadoop_task_counts_its_lines_and_fails_by_the_limit_of_the_mapper() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, &[]);
    let task = || {
        let mut predict = command_of("predict", &out, &["--format", "json"]);
        as_task(&mut predict)
            .env("mapreduce_map_input_file", "hdfs:///new/a.json")
            .env("mapreduce_map_input_start", "512");
        predict
    };
    let finished = tests::programs::run(&mut task(), b"{\"reviewText\": \"lovely\"}\nbad\n\n");
    let finished = finished.succeeded();
    let lines: Vec<Value> = objects(&finished.said());
    assert_eq!(
        lines[1],
        json!({"file": "hdfs:///new/a.json", "split_start": 512, "line": 2, "error": "bad_line"})
    );
    assert_eq!((&lines[0]["split_start"], &lines[0]["label"]), (&json!(512), &json!(1)));
    let heard = Heard::of(&finished.stderr);
    let counters = heard.counters.iter().map(|((group, name), n)| (group.as_str(), name.as_str(), *n));
    let expected = [
        ("ngrams", "bad_line", 1),
        ("ngrams", "blank", 1),
        ("ngrams", "lines", 3),
        ("ngrams", "predicted", 1),
    ];
    assert_eq!(counters.collect::<Vec<_>>(), expected);

    let refused = tests::programs::run(&mut task(), "bad\n".repeat(1000).as_bytes()).with_code(65);
    let expected = "1000 of 1000 lines are bad (bad_line 1000), expected at most";
    let heard = Heard::of(&refused.stderr);
    assert!(heard.statuses.last().unwrap().starts_with(&format!("FATAL ngrams: {expected}")), "{heard:?}");
    assert_eq!(heard.counters[&("ngrams".to_owned(), "bad_line".to_owned())], 1000);
}

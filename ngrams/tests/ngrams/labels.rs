//! The order of labels, lines of fastText's format in all commands, and models in the place of files.

use super::*;

/// Reviews as JSON lines: those with five stars have good words, those with one star bad ones.
fn reviews(n: usize, seed: u64) -> String {
    let review = |line: &str| {
        let (label, text) = line.split_once(' ').unwrap();
        let stars = if label == "__label__2" { 5 } else { 1 };
        format!("{{\"reviewText\": \"{text}\", \"overall\": {stars}}}\n")
    };
    lines(n, seed).lines().map(review).collect()
}

#[track_caller]
fn done(command: Command) -> (String, String) {
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    (said, told)
}

fn train(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = program("ngrams");
    command.arg("train").arg("--input").arg(input).arg("--out").arg(out).args(more);
    command
}

/// Label, class and probability of the second label, for a good and for a bad text.
fn answers(model: &Path) -> [(u64, String, f64); 2] {
    let said =
        said(command_of("predict", model, &["--format", "text"]), "great lovely bright\nawful broken dull\n");
    [0, 1].map(|at| {
        let answer = &objects(&said)[at];
        (
            answer["label"].as_u64().unwrap(),
            answer["class"].as_str().unwrap().to_owned(),
            answer["probability"].as_f64().unwrap(),
        )
    })
}

#[test]
fn labels_have_the_order_of_the_flag_as_in_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let [input, test] = ["reviews.json", "test.json"].map(|name| folder.path().join(name));
    fs::write(&input, reviews(2000, 1)).unwrap();
    fs::write(&test, reviews(300, 2)).unwrap();
    for model in MODELS {
        let of = |labels: &str| {
            let out = folder.path().join(format!("{}-{labels}", model[1]));
            let test = test.to_str().unwrap();
            let more = ["--labels", labels, "--deterministic", "--test", test, "--json"];
            let (said, _) = done(train(&input, &out, &[model, &more].concat()));
            (out, serde_json::from_str::<Value>(&said).unwrap()["evaluation"].clone())
        };
        // In the order of bytes, "good" is first.
        let (poor_first, of_good) = of("1-2=poor,4-5=good");
        let (good_first, of_poor) = of("4-5=good,1-2=poor");
        let [good, poor] = answers(&poor_first);
        assert_eq!([(good.0, &*good.1), (poor.0, &*poor.1)], [(1, "good"), (0, "poor")]);
        assert!(good.2 > 0.5 && poor.2 < 0.5, "{good:?} {poor:?}");
        let [good, poor] = answers(&good_first);
        assert_eq!([(good.0, &*good.1), (poor.0, &*poor.1)], [(0, "good"), (1, "poor")]);
        assert!(good.2 < 0.5 && poor.2 > 0.5, "{good:?} {poor:?}");
        // F1 is that of label 1.
        let named = |evaluation: &Value, at: usize| evaluation["classes"][at].clone();
        for (evaluation, names) in [(&of_good, ["poor", "good"]), (&of_poor, ["good", "poor"])] {
            assert_eq!([0, 1].map(|at| named(evaluation, at)["name"].clone()), names);
            assert_eq!(evaluation["f1"], named(evaluation, 1)["f1"], "{evaluation}");
            assert_eq!(evaluation["recall"], named(evaluation, 1)["recall"], "{evaluation}");
        }
        assert_eq!(of_good["confusion"]["true_positive"], of_poor["confusion"]["true_negative"]);
        // The order of labels changes no weight. It is stored only if it is not that of the names.
        let files = |out: &Path| model_files(out).into_iter().filter(|(name, _)| name != "SHA256SUMS");
        for ((name, one), (_, other)) in files(&poor_first).zip(files(&good_first)) {
            assert_eq!(one == other, name != "config.json", "{name}");
        }
        let has_order =
            |out: &Path| fs::read_to_string(out.join("model/config.json")).unwrap().contains("\"classes\"");
        assert_eq!([has_order(&poor_first), has_order(&good_first)], [true, false]);
        let settings: Value =
            serde_json::from_str(&fs::read_to_string(poor_first.join("settings.json")).unwrap()).unwrap();
        assert_eq!(settings["dataset"]["classes"][0][0], "poor", "{settings}");
    }
}

#[test]
fn a_label_without_a_text_is_refused_as_by_fit() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("reviews.json"), folder.path().join("out"));
    fs::write(&input, reviews(200, 1)).unwrap();
    let (code, told) = ended(train(&input, &out, &["--labels", "1-2=poor,3=fair,4-5=good"]));
    assert_eq!((code, told.lines().count()), (Some(65), 1), "{told}");
    assert!(told.contains("no text has the label fair; omit it from --labels"), "{told}");
    assert!(!out.exists());
}

#[test]
fn a_byte_order_mark_hides_no_line_from_any_command() {
    let (folder, train, _) = corpus();
    let marked = folder.path().join("marked.txt");
    let content = fs::read_to_string(&train).unwrap();
    fs::write(&marked, format!("\u{feff}{content}\u{feff}__label__2 great lovely kettle\n")).unwrap();
    let plain = folder.path().join("plain.txt");
    fs::write(&plain, format!("{content}__label__2 great lovely kettle\n")).unwrap();
    for model in [MODELS[0], MODELS[1], &["--model", "linear", "--words", "spaces"]] {
        let [of_marked, of_plain] = ["of-marked", "of-plain"].map(|name| folder.path().join(name));
        for (input, out) in [(&marked, &of_marked), (&plain, &of_plain)] {
            trained(input, out, &[model, &["--force", "--deterministic"]].concat());
        }
        assert!(model_files(&of_marked) == model_files(&of_plain), "{model:?}");
        let found = evaluated(&of_marked, &marked, &[]);
        assert_eq!((&found["rows"], &found["without_label"]), (&2001.into(), &0.into()));
        let said = |file: &Path| {
            let mut predict = command_of("predict", &of_marked, &[]);
            predict.arg(file).args(["--format", "fasttext"]);
            objects(&done(predict).0).into_iter().map(|answer| answer["score"].clone()).collect::<Vec<_>>()
        };
        assert_eq!(said(&marked), said(&plain));
    }
}

#[test]
fn lines_with_other_labels_for_sentimill_are_a_warning_with_their_number() {
    let (folder, train, test) = corpus();
    let content = fs::read_to_string(&train).unwrap();
    let out = folder.path().join("out");
    assert!(!trained(&train, &out, &[]).contains("several labels"));
    let others = "__label__1 awful __label__2 kettle\n__label__1 __label__2 dull kettle\n lid __label__2\n";
    fs::write(&train, content + others).unwrap();
    let (said, told) = done(ngrams(&train, &out, &["--force", "--json"]));
    let expected = "warning: 3 lines have several labels, or a label behind the text: each word that starts with __label__ \
                    is a label; sentimill reads only the first one at the start of a line";
    assert!(told.contains(expected), "{told}");
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["ledger"]["other_labels"], 3, "{said}");
    let mut evaluate = command_of("evaluate", &out, &[]);
    fs::write(&test, lines(50, 2) + "__label__1 __label__2 dull kettle\n").unwrap();
    evaluate.arg(&test).args(["--format", "fasttext"]);
    assert!(done(evaluate).1.contains("warning: 1 line has several labels"), "{told}");
}

#[test]
fn any_number_of_labels_is_learned_from_a_column() {
    let folder = tempfile::tempdir().unwrap();
    let kinds = ["bug", "billing", "feature request", "praise", "question", "spam, paid"];
    let table = |n: usize| -> String {
        let row = |at: usize| format!("\"{} of {at}, please\",\"{}\"\n", OTHERS[at % 6], kinds[at % 6]);
        "body,kind\n".to_owned() + &(0..n).map(row).collect::<String>()
    };
    let [input, test] = ["tickets.csv", "more.csv"].map(|name| folder.path().join(name));
    fs::write(&input, table(600)).unwrap();
    fs::write(&test, table(60)).unwrap();
    let fields = ["--format", "csv", "--text-field", "body", "--label-field", "kind"];
    for model in MODELS {
        let out = folder.path().join(model[1]);
        let (_, told) = done(train(&input, &out, &[model, &fields].concat()));
        assert!(told.contains("and 6 labels"), "{told}");
        let mut evaluate = command_of("evaluate", &out, &[]);
        let found: Value = serde_json::from_str(
            &done({
                evaluate.arg(&test).args(fields);
                evaluate
            })
            .0,
        )
        .unwrap();
        assert_eq!((&found["rows"], &found["accuracy"]), (&60.into(), &1.0.into()), "{found}");
        let intervals = &found["intervals"];
        let certain = serde_json::json!([1.0, 1.0]);
        assert_eq!((&intervals["accuracy"], &intervals["auc"]), (&certain, &Value::Null), "{found}");
        // The model knows the field of its labels.
        let mut evaluate = command_of("evaluate", &out, &[]);
        evaluate.arg(&test).args(&fields[..4]);
        assert_eq!(serde_json::from_str::<Value>(&done(evaluate).0).unwrap(), found);
        let mut evaluate = command_of("evaluate", &out, &[]);
        evaluate.arg(&test).args(&fields[..4]).args(["--rating-field", "kind"]);
        let (code, told) = ended(evaluate);
        assert!(code == Some(65) && told.contains("--rating-field"), "{told}");
        let answer =
            said(command_of("predict", &out, &["--format", "text", "--top", "1"]), "lid of 1, please\n");
        // In the order of bytes, billing is first.
        let answer = &objects(&answer)[0];
        assert_eq!((&answer["label"], &answer["class"]), (&2.into(), &"feature request".into()), "{answer}");
        let settings: Value =
            serde_json::from_str(&fs::read_to_string(out.join("settings.json")).unwrap()).unwrap();
        assert_eq!(
            (&settings["recipe"]["label-field"], &settings["recipe"]["positive-from"]),
            (&"kind".into(), &Value::Null)
        );
    }
    for (more, expected) in [
        (&["--format", "csv", "--text-field", "body", "--label-field", "king"][..], "--label-field"),
        (
            &["--format", "fasttext", "--label-field", "kind"],
            "--label-field is not used by the format fasttext",
        ),
        (&["--label-field", "kind", "--labels", "1-2=a,3-5=b"], "--labels"),
        (&["--label-field", "kind", "--rating-field", "stars"], "--rating-field"),
    ] {
        let (code, told) = ended(train(&input, &folder.path().join("none"), more));
        assert!(matches!(code, Some(64 | 65)) && told.contains(expected), "{told}");
    }
}

#[test]
fn texts_of_many_labels_have_the_metrics_of_few() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("lines");
    // Each text is another one, also after cleaning.
    let own =
        |at: usize| at.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect::<String>();
    let line = |at: usize| format!("__label__{} {} of {}\n", at % 7, OTHERS[at % 6], own(at));
    fs::write(&input, (0..700).map(line).collect::<String>()).unwrap();
    let (out, page) = (folder.path().join("out"), folder.path().join("page.html"));
    let split = ["--format", "fasttext", "--model", "linear", "--test-fraction", "0.3"];
    let (_, told) = done(train(&input, &out, &split));
    let line = |what: &str| told.lines().find(|line| line.contains(what)).unwrap_or_else(|| panic!("{told}"));
    assert!(line("accuracy ").contains(" [95 %: 0."), "{told}");
    let baseline = line("accuracy ").split_once("(majority-class baseline: 0.").unwrap().1;
    assert!(baseline.starts_with("1") || baseline.starts_with("2"), "{told}");
    done(command_of("report", &out, &["--out", page.to_str().unwrap()]));
    let page = fs::read_to_string(&page).unwrap();
    for expected in [
        " test rows are predicted correctly. A model that always answers ",
        "Metrics with 95 % confidence intervals",
        "<dt>macro F1</dt>",
        // The number of the log.
        line("n-grams with a weight").trim_start_matches("ngrams: "),
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    // Several labels per text have no intervals.
    fs::write(&input, "__label__a __label__b kettle\n__label__c lid\n".repeat(50)).unwrap();
    let (_, told) = done(train(
        &input,
        &folder.path().join("several"),
        &["--format", "fasttext", "--test", input.to_str().unwrap()],
    ));
    assert!(told.contains("precision at 1 1.0000, recall at 1 0.6667 on 100 test texts"), "{told}");
}

#[test]
fn an_array_without_the_field_is_refused_with_the_fields_that_it_has() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    trained(&train, &out, MODELS[0]);
    let array = folder.path().join("all.json");
    for (content, expected) in [
        (r#"[{"text": "a lid", "kind": "b"}, {"text": "x", "kind": "b"}]"#, "found the fields text, kind"),
        (r#"{"reviews": [{"text": "a lid"}]}"#, "found the fields reviews[].text"),
    ] {
        fs::write(&array, content).unwrap();
        let mut predict = command_of("predict", &out, &[]);
        predict.arg(&array);
        let (code, told) = ended(predict);
        assert!(code == Some(65) && told.contains(expected), "{told}");
        let (code, told) = ended(self::train(&array, &folder.path().join("none"), &[]));
        assert!(code == Some(65) && told.contains(expected), "{told}");
    }
    let mut predict = command_of("predict", &out, &["--format", "csv"]);
    predict.arg(&array);
    let (code, told) = ended(predict);
    let expected =
        "found JSON in the first line, expected a header with names of columns; pass --format json";
    assert!(code == Some(65) && told.contains(expected), "{told}");
}

#[test]
fn two_models_are_refused_by_both_names() {
    let (folder, train, _) = corpus();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    trained(&train, &one, MODELS[1]);
    fs::create_dir_all(other.join("model")).unwrap();
    let file = folder.path().join("other.bin");
    done(command_of("export", &one, &["--out", file.to_str().unwrap()]));
    for (command, more) in [("predict", &[][..]), ("explain", &["--input"])] {
        for other in [&other, &file, &other.join("model")] {
            fs::write(folder.path().join("other/model/config.json"), "{}").unwrap();
            let mut command = command_of(command, &one, more);
            command.arg(other);
            let (code, told) = ended(command);
            assert_eq!((code, told.lines().count()), (Some(64), 1), "{told}");
            let both = format!("found two models, {} and {}, ", one.display(), other.display());
            assert!(told.contains(&both) && told.ends_with("omit one of the models"), "{told}");
        }
    }
}

/// Good and bad words are the same; the punctuation behind them decides.
#[test]
fn a_dataset_of_punctuation_has_n_grams_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let [input, dataset, model] = ["a.json", "a.h5", "a.ngrams"].map(|name| folder.path().join(name));
    let review = |at: usize| {
        let (marks, stars) = if at.is_multiple_of(2) { ("!!", 5) } else { ("...", 1) };
        format!(
            "{{\"reviewText\": \"w{} fine{marks} 10/{}\", \"overall\": {stars}}}\n",
            "x".repeat(at % 7),
            at % 50
        )
    };
    fs::write(&input, (0..400).map(review).collect::<String>()).unwrap();
    let mut sentimill = program("sentimill");
    sentimill.arg(&input).arg("--out").arg(&dataset).arg("--punctuation");
    done(sentimill);
    let (code, _, told) = run(train(&dataset, &model, &[]));
    let expected =
        format!("--words is cleaned, expected cleaned-punctuation for the dataset {}", dataset.display());
    assert!(code == Some(78) && told.contains(&expected), "{code:?} {told}");
    done(train(&dataset, &model, &["--words", "cleaned-punctuation"]));
    let said =
        said(command_of("predict", &model, &["--format", "text"]), "W FINE!! 10/10\nw fine... 10/10\n");
    let labels: Vec<u64> = objects(&said).iter().map(|answer| answer["label"].as_u64().unwrap()).collect();
    assert_eq!(labels, [1, 0], "{said}");
    let soft = folder.path().join("soft.npy");
    let mut predict = command_of("predict", &model, &[]);
    predict.arg(&dataset).arg("--soft").arg(&soft);
    let (_, told) = done(predict);
    assert!(!told.contains("warning"), "{told}");
}

//! Thresholds and calibrations that are chosen on the validation split.

use super::*;

/// Lines whose label is another one in a fourth of them, so that probabilities that are near 0 or 1 are wrong.
fn mislabelled(n: usize, seed: u64) -> String {
    let other = |line: &str| match line.strip_prefix("__label__1") {
        Some(text) => format!("__label__2{text}"),
        None => line.replacen("__label__2", "__label__1", 1),
    };
    let lines = lines(n, seed);
    let lines = lines.lines().enumerate();
    lines.map(|(at, line)| if at * 7 % 4 == 0 { other(line) } else { line.to_owned() } + "\n").collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn choice_of(out: &Path) -> Value {
    serde_json::from_slice::<Value>(&fs::read(out.join("model/config.json")).unwrap()).unwrap()["choice"]
        .clone()
}

#[test]
fn a_threshold_is_kept_in_the_model_and_used_by_every_command() {
    let (folder, train, test) = corpus();
    fs::write(&train, mislabelled(2000, 8)).unwrap();
    let texts: String =
        lines(50, 4).lines().map(|line| format!("{}\n", &line["__label__1".len()..])).collect();
    for model in MODELS {
        let of = |name: &str, more: &[&str]| {
            let out = folder.path().join(format!("{name}{}", model[1]));
            let flags = ["--validation-fraction", "0.2", "--deterministic", "--threads", "1"];
            (trained(&train, &out, &[model, &flags, more].concat()), out)
        };
        let (_, plain) = of("plain", &[]);
        assert_eq!(choice_of(&plain), Value::Null);
        let (told, strict) = of("strict", &["--threshold", "0.7"]);
        assert!(told.contains("threshold at probability 0.7000"), "{told}");
        assert!((number(&choice_of(&strict)["threshold"]["score"]) - (0.7f64 / 0.3).ln()).abs() < 1e-5);

        let answers = |out: &Path, command: &str, more: &[&str]| {
            objects(&said(command_of(command, out, &[&["--format", "text"], more].concat()), &texts))
        };
        let [before, after] = [&plain, &strict].map(|out| answers(out, "predict", &[]));
        let mut n_changed = 0;
        for (before, after) in before.iter().zip(&after) {
            assert_eq!((&before["score"], &before["probability"]), (&after["score"], &after["probability"]));
            let label = u8::from(number(&after["probability"]) > 0.7);
            assert_eq!(
                (&after["label"], &after["class"]),
                (&label.into(), &["1", "2"][usize::from(label)].into())
            );
            n_changed += usize::from(before["label"] != after["label"]);
        }
        assert!(n_changed > 0, "{after:?}");
        for (command, more) in [("predict", &["--top", "2"][..]), ("explain", &["--input", "-", "--json"])] {
            let found = answers(&strict, command, more);
            for (found, expected) in found.iter().zip(&after) {
                assert_eq!(found["label"], expected["label"], "{command}: {found}");
            }
        }
        // The predicted label is listed first, or there is none.
        let [first, above] =
            [["--top", "1"], ["--threshold", "0.5"]].map(|more| answers(&strict, "predict", &more));
        let mut n_none = 0;
        for ((first, above), expected) in first.iter().zip(&above).zip(&after) {
            let class = expected["class"].as_str().unwrap();
            assert_eq!(
                (&first["label"], &first["class"]),
                (&expected["label"], &expected["class"]),
                "{first}"
            );
            assert_eq!(first["probabilities"].as_object().unwrap().keys().collect::<Vec<_>>(), [class]);
            let is_listed = above["probabilities"].get(class).is_some();
            assert_eq!(above["class"].as_str(), is_listed.then_some(class), "{above}");
            n_none += usize::from(!is_listed);
        }
        assert!(n_none > 0, "{above:?}");
        // Exports of scores state the threshold, and those of the fastText program that they have none.
        let export = |name: &str| {
            let out = folder.path().join(name);
            (ended(command_of("export", &strict, &["--out", out.to_str().unwrap()])), out)
        };
        let ((code, told), exported) = export(&format!("{}.export", model[1]));
        assert_eq!(code, Some(0), "{told}");
        let card = fs::read_to_string(exported.join("README.md")).unwrap();
        let expected = format!("one above {:.4} is a prediction of 2.", (0.7f64 / 0.3).ln());
        assert!(card.contains(&expected), "{card}");
        if model[1] == "fasttext" {
            for (name, is_told) in [("threshold.bin", true), ("threshold.vec", false)] {
                let ((code, told), _) = export(name);
                let found =
                    told.contains("warning: the fastText program predicts without the calibration and");
                assert!(code == Some(0) && found == is_told, "{name}: {told}");
            }
        }
        let [loose, found] = [&plain, &strict].map(|out| evaluated(out, &test, &[]));
        assert_eq!(found["threshold"], choice_of(&strict)["threshold"]);
        assert!(number(&found["classes"][0]["recall"]) > number(&loose["classes"][0]["recall"]), "{found}");
        assert_eq!(found["auc"], loose["auc"]);
    }
}

#[test]
fn the_threshold_with_the_highest_f1_is_chosen_on_the_validation_split() {
    let (folder, train, _) = corpus();
    fs::write(&train, mislabelled(2000, 8)).unwrap();
    let f1 = |threshold: &str| {
        let out = folder.path().join(threshold);
        let flags = ["--validation-fraction", "0.3", "--deterministic", "--threads", "1", "--json"];
        let (code, said, told) =
            run(ngrams(&train, &out, &[&flags[..], &["--threshold", threshold]].concat()));
        assert_eq!(code, Some(0), "{told}");
        let is_fitted = told.contains("warning: threshold or calibration was fitted on these rows");
        assert_eq!(is_fitted, threshold == "f1", "{told}");
        let found: Value = serde_json::from_str(&said).unwrap();
        number(&found["evaluation"]["f1"])
    };
    let best = f1("f1");
    for other in ["0.2", "0.35", "0.5", "0.65", "0.8"] {
        assert!(f1(other) <= best, "{other}");
    }
}

#[test]
fn a_calibration_improves_probabilities_and_changes_no_score() {
    let (folder, train, test) = corpus();
    fs::write(&train, mislabelled(2000, 8)).unwrap();
    fs::write(&test, mislabelled(1000, 9)).unwrap();
    for model in [MODELS[0], &["--model", "fasttext", "--buckets", "20000", "--epochs", "50"]] {
        for (method, name) in [("temperature", "temperature "), ("platt", "Platt calibration with slope ")] {
            let out = folder.path().join(format!("{method}{}", model[1]));
            let flags = ["--validation-fraction", "0.3", "--calibrate", method];
            let told = trained(&train, &out, &[model, &flags].concat());
            assert!(told.contains(name), "{told}");
            let found = evaluated(&out, &test, &[]);
            let (after, before) = (&found["probabilities"], &found["probabilities"]["uncalibrated"]);
            for metric in ["brier", "calibration_error"] {
                assert!(number(&after[metric]) < number(&before[metric]) - 0.01, "{model:?} {found}");
            }
            // Probabilities are nearer to a half than those of the scores, on the whole.
            let texts = lines(50, 4).replace("__label__1 ", "").replace("__label__2 ", "");
            let answers = objects(&said(command_of("predict", &out, &["--format", "text"]), &texts));
            let distance =
                |of: fn(&Value) -> f64| answers.iter().map(|answer| (of(answer) - 0.5).abs()).sum::<f64>();
            let after = distance(|answer| number(&answer["probability"]));
            let before = distance(|answer| 1.0 / (1.0 + (-number(&answer["score"])).exp()));
            assert!(after < before - 1.0, "{model:?} {method}: {after} {before}");
            let mut table = command_of("evaluate", &out, &["--text", "--format", "fasttext"]);
            table.arg(&test);
            let (code, said, told) = run(table);
            assert!(code == Some(0) && said.contains("\n  uncalibrated "), "{said}{told}");
        }
    }
}

#[test]
fn a_choice_without_suitable_validation_texts_is_refused_by_name() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let three = folder.path().join("three.txt");
    fs::write(&three, lines(300, 1).replace("__label__1 the", "__label__3 the")).unwrap();
    let several = folder.path().join("several.txt");
    fs::write(&several, lines(300, 1).replace("__label__1 the", "__label__1 __label__2 the")).unwrap();
    let skewed = folder.path().join("skewed.txt");
    fs::write(&skewed, lines(300, 1).replace("__label__1", "__label__2") + "__label__1 dull noisy box\n")
        .unwrap();
    let fifth = ["--validation-fraction", "0.2"];
    for (input, flags, more, expected_code, expected) in [
        (
            &train,
            ["--threshold", "f1"],
            &[][..],
            78,
            "--threshold is f1, expected a validation split; pass a",
        ),
        (&train, ["--calibrate", "platt"], &[], 78, "--calibrate is platt, expected a validation split"),
        (
            &three,
            ["--threshold", "0.3"],
            &fifth,
            78,
            "--threshold is 0.3, expected no threshold for three or more",
        ),
        (
            &three,
            ["--calibrate", "platt"],
            &fifth,
            78,
            "--calibrate is platt, expected temperature or none for three",
        ),
        (&several, ["--calibrate", "temperature"], &fifth, 78, "expected texts with one label each; omit it"),
        (&several, ["--threshold", "0.9"], &[], 78, "--threshold is 0.9, expected texts with one label each"),
        (
            &train,
            ["--threshold", "0.9"],
            &["--loss", "bce"],
            78,
            "--threshold is 0.9, expected --loss softmax:",
        ),
        (
            &skewed,
            ["--threshold", "accuracy"],
            &fifth,
            65,
            "every text of the validation split has the label 2",
        ),
        (
            &train,
            ["--threshold", "2"],
            &fifth,
            64,
            "expected f1, accuracy, or a probability above 0 and below 1",
        ),
    ] {
        let (code, told) = ended(ngrams(input, &out, &[&flags, more].concat()));
        assert!(code == Some(expected_code) && told.contains(expected), "{flags:?}: {told}");
        assert!(!out.join("model").exists());
    }
}

#[test]
fn a_search_is_evaluated_on_the_validation_split_that_its_command_holds_out() {
    let (folder, train, test) = corpus();
    let mut search = program("ngrams");
    search.args([
        "autotune",
        "--format",
        "fasttext",
        "--threads",
        "1",
        "--minutes",
        "5",
        "--trials",
        "4",
        "--input",
    ]);
    search.arg(&train).args(["--validation-fraction", "0.2", "--out"]).arg(folder.path().join("best"));
    let (code, said, told) = run(search);
    assert_eq!(code, Some(0), "{told}");
    assert!(said.contains("--validation-fraction 0.2"), "{said}");
    let shell = said.trim_end().replacen("ngrams", program("ngrams").get_program().to_str().unwrap(), 1);
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} --json")]);
    let (code, summary, told_again) = run(command);
    assert_eq!(code, Some(0), "{told_again}");
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["evaluated"], "validation");
    let accuracy = number(&summary["evaluation"]["accuracy"]);
    assert!(told.contains(&format!("accuracy {accuracy:.4}")), "{accuracy}: {told}");

    for (more, code, expected) in [
        (&[][..], 64, "--validation <FILE>"),
        (&["--validation-fraction", "0"], 78, "--validation-fraction is 0, expected above 0, or other texts"),
        (
            &["--validation", test.to_str().unwrap(), "--threshold", "f1"],
            78,
            "--threshold is f1, expected no --validation: the printed command",
        ),
    ] {
        let mut search = program("ngrams");
        search.args(["autotune", "--minutes", "1", "--format", "fasttext", "--input"]).arg(&train).args(more);
        let (found, told) = ended(search);
        assert!(found == Some(code) && told.contains(expected), "{told}");
    }
}

#[test]
fn a_search_refuses_the_texts_that_its_command_refuses() {
    let (folder, _, _) = corpus();
    let several = folder.path().join("several.txt");
    fs::write(&several, lines(300, 1).replace("__label__1 the", "__label__1 __label__2 the")).unwrap();
    let mut search = program("ngrams");
    search.args(["autotune", "--minutes", "1", "--format", "fasttext", "--validation-fraction", "0.2"]);
    search.args(["--calibrate", "temperature", "--input"]).arg(&several);
    let (code, told) = ended(search);
    assert!(code == Some(78) && told.contains("expected texts with one label each; omit it"), "{told}");
    assert!(told.contains("warning: each trial fits its threshold or calibration"), "{told}");
}

#[test]
fn a_tree_of_seven_labels_is_calibrated_and_explained() {
    let (folder, train, _) = corpus();
    // Splits are of texts without their digits.
    let letter = |at: usize| char::from(b'a' + at as u8);
    // A third of the texts have the word of another label.
    let line = |at: usize| {
        let label = at % 7;
        let shown = if (at / 7).is_multiple_of(3) { (label + 1 + at / 21 % 6) % 7 } else { label };
        let [own, one, other] = [shown, at % 26, at / 26 % 26].map(letter);
        format!("__label__l{label} own{own} own{own} common{one} more{other}\n")
    };
    fs::write(&train, (0..2100).map(line).collect::<String>()).unwrap();
    let answers = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let flags =
            ["--loss", "hs", "--buckets", "20000", "--epochs", "2", "--rate", "0.1", "--threads", "1"];
        let told = trained(&train, &out, &[&flags[..], &["--validation-fraction", "0.3"], more].concat());
        let texts: String = (0..7).map(|label| format!("own{} commond\n", letter(label))).collect();
        let answers = command_of("predict", &out, &["--format", "text", "--top", "7"]);
        (objects(&said(answers, &texts)), told, out)
    };
    let (before, _, _) = answers("plain", &[]);
    let (after, told, out) = answers("calibrated", &["--calibrate", "temperature"]);
    let temperature = number(&choice_of(&out)["calibration"]["temperature"]);
    assert!(told.contains(&format!("temperature {temperature:.4}")), "{told}");
    assert!((temperature - 1.0).abs() > 0.05, "{temperature}");
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before["label"], after["label"]);
        let power = |(name, of): (&String, &Value)| (name.clone(), number(of).powf(1.0 / temperature));
        let powers: Vec<_> = before["probabilities"].as_object().unwrap().iter().map(power).collect();
        let sum: f64 = powers.iter().map(|(_, power)| power).sum();
        assert_eq!(powers.len(), 7);
        for (name, power) in powers {
            let found = number(&after["probabilities"][&name]);
            assert!((found - power / sum).abs() < 1e-4, "{name}: {before} {after}");
        }
    }
    let explained = said(command_of("explain", &out, &["ownb commonc", "--json"]), "");
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let first = explained["for"][0]["word"].as_str().unwrap();
    assert!(explained["name"] == "l1" && first.contains("ownb"), "{explained}");
    // So is the report.
    let top: Value = serde_json::from_slice(&fs::read(out.join("ngrams.json")).unwrap()).unwrap();
    let ngrams_of = |at: usize| top["labels"][at]["ngrams"].as_array().unwrap();
    assert!(ngrams_of(1).iter().any(|ngram| ngram["ngram"].as_str().unwrap().contains("ownb")), "{top}");
}

#[test]
fn a_tree_of_too_many_labels_has_no_file_of_onnx() {
    let (folder, train, _) = corpus();
    let line = |at: usize| format!("__label__l{0} w{0}\n", at % 4097);
    fs::write(&train, (0..2 * 4097).map(line).collect::<String>()).unwrap();
    let out = folder.path().join("tree");
    trained(&train, &out, &["--loss", "hs", "--ngrams", "1", "--epochs", "1"]);
    let file = folder.path().join("tree.onnx");
    let (code, told) = ended(command_of("export", &out, &["--out", file.to_str().unwrap()]));
    let expected =
        "expected one of at most 4096 labels with hierarchical softmax; export it as a folder or as .bin";
    assert!(code == Some(78) && told.contains(expected) && !file.exists(), "{told}");
}

//! Trainings, their metrics and their report.

use tests::compressed::gzip;

use super::*;

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
fn a_model_that_is_not_better_than_the_majority_class_baseline_is_told_so() {
    let (folder, train, test) = corpus();
    // Nearly all of one label, so that no model is better.
    let of_one: String = lines(500, 2).replace("__label__1", "__label__2");
    fs::write(&test, of_one.replacen("__label__2", "__label__1", 1)).unwrap();
    let told = trained(&train, &folder.path().join("out"), &["--test", test.to_str().unwrap()]);
    let expected = "the accuracy is not above that of the majority-class baseline (label 2 for every text); \
                    train on more texts, longer, or search settings with `ngrams autotune`";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_report_shows_settings_and_the_ngrams_of_each_label() {
    let (folder, train, test) = corpus();
    let test = test.to_str().unwrap();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        trained(&train, &out, &[model, &["--epochs", "3", "--test", test]].concat());
        let page = folder.path().join(format!("{}.html", model[1]));
        let (code, told) = ended(command_of("report", &out, &["--out", page.to_str().unwrap()]));
        assert_eq!(code, Some(0), "{told}");
        let page = fs::read_to_string(page).unwrap();
        for expected in
            ["--epochs", "--ngrams", "N-grams of 1", "N-grams of 2", "lovely", "useless", "500 rows"]
        {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        assert!(!page.contains("cannot be read"), "{page}");
        assert!(page.contains("3 epochs ·") && !page.contains("0 epochs"), "{page}");
        assert!(!page.contains("No epoch is finished"), "{page}");
        // The classes are those of the texts, in the order of their names.
        assert!(page.contains("predicted 1") && !page.contains("predicted negative"), "{page}");
        assert!(page.contains("Most wrong") && !page.contains("Speed and waiting"), "{page}");
        assert_eq!(page.contains("Curves"), model[1] == "fasttext", "{page}");
    }
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
        let mut command = command_of("evaluate", &out, &[none.to_str().unwrap()]);
        command.args(["--format", "fasttext"]);
        let (code, told) = ended(command);
        assert_eq!(code, Some(65), "{told}");
        fs::write(&none, "__label__other text\n").unwrap();
        let mut command = command_of("evaluate", &out, &[none.to_str().unwrap()]);
        command.args(["--format", "fasttext"]);
        let (code, told) = ended(command);
        assert_eq!(code, Some(65), "{told}");
        assert!(told.contains("no text has a label of the model"), "{told}");
    }
}

#[test]
fn naive_bayes_weights_are_the_default() {
    let (folder, train, _) = corpus();
    let files = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        trained(&train, &out, &[&["--deterministic", "--threads", "1"], more].concat());
        model_files(&out)
    };
    assert_eq!(files("default", &[]), files("nb", &["--weights", "nb"]));
    assert_ne!(files("none", &["--weights", "none"]), files("tf-idf", &["--weights", "tf-idf"]));
}

#[test]
fn texts_from_standard_input_have_the_model_of_their_file() {
    let (folder, train, _) = corpus();
    let (text, flags) = (fs::read(&train).unwrap(), ["--deterministic", "--threads", "1"]);
    let of_file = folder.path().join("file");
    trained(&train, &of_file, &flags);
    for (name, input) in [("plain", &text), ("gzip", &gzip(&text))] {
        let out = folder.path().join(name);
        said(ngrams(Path::new("-"), &out, &flags), input);
        assert_eq!(model_files(&out), model_files(&of_file), "{name}");
    }
}

#[test]
fn the_report_of_a_training_with_rare_words_names_the_others() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let text = fs::read_to_string(&train).unwrap();
    fs::write(&train, format!("__label__1 seldom kettle rarely\n{text}")).unwrap();
    trained(&train, &out, &["--model", "fasttext", "--min-count", "2"]);
    let top: Value = serde_json::from_str(&fs::read_to_string(out.join("ngrams.json")).unwrap()).unwrap();
    let of_good = top["labels"][1]["ngrams"].to_string();
    assert!(of_good.contains("\"ngram\":\"lovely\""), "{of_good}");
    assert!(!top.to_string().contains("seldom"), "{top}");
}

#[test]
fn weights_of_labels_raise_the_recall_of_a_rare_one() {
    let (folder, _, test) = corpus();
    // One text of 20 has label 1. Half of the words of a text are of its label, so that texts are not told apart without
    // an error.
    let skewed = folder.path().join("skewed.txt");
    let mut n = 0;
    let of_label_1 = |line: &&str| line.starts_with("__label__1");
    let kept = lines(4000, 5);
    let kept = kept.lines().filter(|line| {
        n += usize::from(of_label_1(line));
        !of_label_1(line) || n.is_multiple_of(20)
    });
    fs::write(&skewed, kept.map(noisy).collect::<String>()).unwrap();
    fs::write(&test, lines(1000, 6).lines().map(noisy).collect::<String>()).unwrap();
    let losses: [&[&str]; 5] = [
        &["--model", "linear"],
        &["--model", "linear", "--loss", "squared-hinge"],
        &["--model", "linear", "--l1"],
        &["--model", "fasttext", "--buckets", "20000"],
        &["--model", "fasttext", "--buckets", "20000", "--loss", "bce", "--deterministic", "--threads", "2"],
    ];
    for (at, model) in losses.into_iter().enumerate() {
        let recall = |weight: &[&str]| {
            let out = folder.path().join(format!("{at}{}", weight.concat()));
            trained(&skewed, &out, &[model, weight].concat());
            let found = evaluated(&out, &test, &[]);
            (found["classes"][0]["recall"].as_f64().unwrap(), found["f1"].as_f64().unwrap())
        };
        let (equal, balanced) = (recall(&[]), recall(&["--class-weight", "balanced"]));
        assert!(balanced.0 > equal.0 + 0.02, "{model:?}: {equal:?} {balanced:?}");
        // Weights by hand, in the order of the names: the other label counts more.
        let other = recall(&["--class-weight", "0.2,1"]);
        assert!(other.0 < equal.0, "{model:?}: {equal:?} {other:?}");
    }
    let out = folder.path().join("refused");
    let (code, told) = ended(ngrams(&skewed, &out, &["--class-weight", "1,2,3"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--class-weight is 3 weights, expected 2 weights, of 1, 2"), "{told}");
    let balanced = folder.path().join("0--class-weightbalanced");
    let (code, told) = ended(ngrams(&skewed, &balanced, &["--resume", "--class-weight", "1,2"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--class-weight is balanced in the training and [1.0,2.0]"), "{told}");
}

/// A line of which each second word has another beginning in some lines, as with noise.
fn noisy(line: &str) -> String {
    let at = line.bytes().map(usize::from).sum::<usize>();
    let swapped = [GOOD, BAD][at % 2][at % 6];
    format!("{line} {swapped} {}\n", [BAD, GOOD][at % 3 / 2][at / 7 % 6])
}

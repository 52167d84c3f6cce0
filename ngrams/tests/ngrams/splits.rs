//! Splits of an input, bad lines, and the counts of lines.

use super::*;

/// The summary of a training.
#[track_caller]
fn summary(input: &Path, out: &Path, more: &[&str]) -> (Value, String) {
    let (code, said, told) = run(ngrams(input, out, &[more, &["--json"]].concat()));
    assert_eq!(code, Some(0), "{told}");
    (serde_json::from_str(&said).unwrap(), told)
}

/// A training with the default format, JSON.
fn ngrams_of_json(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = program("ngrams");
    command.arg("train").arg("--input").arg(input).arg("--out").arg(out).args(more);
    command
}

#[test]
fn a_share_of_the_texts_is_held_out_and_evaluated_alone() {
    let (folder, train, _) = corpus();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        let (found, told) = summary(&train, &out, &[model, &["--test-fraction", "0.2"]].concat());
        let n_tested = found["evaluation"]["rows"].as_u64().unwrap();
        assert!((300..500).contains(&n_tested), "{found}");
        assert_eq!(found["texts"].as_u64().unwrap() + n_tested, 2000, "{found}");
        assert_eq!(found["evaluated"], "test", "{found}");
        assert!(told.contains(&format!(" on {n_tested} test texts")), "{told}");
        // The same texts are the test split later, in any number of threads.
        let again = evaluated(&out, &train, &["--test-fraction", "0.2"]);
        assert_eq!(again["accuracy"], found["evaluation"]["accuracy"], "{again}");
        assert_eq!(again["rows"], n_tested, "{again}");
        let settings: Value =
            serde_json::from_str(&fs::read_to_string(out.join("settings.json")).unwrap()).unwrap();
        assert_eq!(settings["dataset"]["rows"][2], n_tested);
        let (code, told) = ended(ngrams(&train, &out, &[model, &["--resume"]].concat()));
        assert_eq!(code, Some(78), "{told}");
        assert!(told.contains("--test-fraction is 0.2 in the training and 0"), "{told}");
    }
}

#[test]
fn equal_texts_are_in_one_split_and_validation_texts_are_no_test_texts() {
    let (folder, train, _) = corpus();
    // Case, punctuation and the label do not separate equal texts.
    let content = fs::read_to_string(&train).unwrap();
    let again = content.replace("__label__1", "__label__2").replace("kettle", "Kettle!").repeat(2);
    let doubled = folder.path().join("doubled.txt");
    fs::write(&doubled, content + &again).unwrap();
    let rows = |input: &Path, more: &[&str]| {
        let out = folder.path().join("out");
        let more = [&["--model", "linear", "--force", "--threads", "2"], more].concat();
        let (found, _) = summary(input, &out, &more);
        let evaluated = found["evaluation"]["rows"].as_u64().unwrap();
        let unknown = found["evaluated"].as_str().unwrap().to_owned();
        (found["texts"].as_u64().unwrap(), evaluated, unknown)
    };
    let (training, validation, name) = rows(&train, &["--validation-fraction", "0.2"]);
    assert_eq!((training + validation, &*name), (2000, "validation"));
    let (of_all, validation_of_all, _) = rows(&doubled, &["--validation-fraction", "0.2"]);
    assert_eq!((of_all, validation_of_all), (3 * training, 3 * validation));
    let both = ["--test-fraction", "0.1", "--validation-fraction", "0.2"];
    let (training, test, name) = rows(&train, &both);
    assert_eq!(name, "test");
    assert!((1300..1500).contains(&training) && (100..300).contains(&test), "{training} {test}");
}

#[test]
fn fractions_that_leave_nothing_are_refused() {
    let (folder, train, test) = corpus();
    let out = folder.path().join("out");
    let test = test.to_str().unwrap();
    let few = folder.path().join("few.txt");
    fs::write(&few, lines(20, 5)).unwrap();
    for (input, flags, code, expected) in [
        (&train, &["--test-fraction", "0.6", "--validation-fraction", "0.5"][..], 78, "less than 1, because"),
        (&train, &["--test-fraction", "0.1", "--test", test], 64, "cannot be used with"),
        (&few, &["--test-fraction", "0.001"], 65, "no text is in the test split"),
        (
            &few,
            &["--test-fraction", "0.999"],
            65,
            "no text with a label is in the training split; check --format, or",
        ),
    ] {
        let (found, told) = ended(ngrams(input, &out, flags));
        assert!(told.contains(expected), "{told}");
        assert_eq!(found, Some(code), "{told}");
        assert!(!out.join("settings.json").exists());
    }
}

#[test]
fn more_bad_lines_than_allowed_are_refused_and_skipped_lines_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("reviews.json");
    let mut content = String::new();
    for (at, line) in lines(900, 3).lines().enumerate() {
        let (label, text) = line.split_once(' ').unwrap();
        let stars = if label == "__label__2" { 5 } else { 1 };
        let _ = writeln!(content, "{{\"reviewText\": \"{text}\", \"overall\": {stars}}}");
        if at % 9 == 0 {
            content.push_str("no json\n");
        }
    }
    content.push_str("\n{\"reviewText\": \"fair\", \"overall\": 3}\n");
    fs::write(&input, content).unwrap();
    for model in MODELS {
        let out = folder.path().join(model[1]);
        let (code, told) = ended(ngrams_of_json(&input, &out, model));
        assert_eq!(code, Some(65), "{told}");
        assert!(told.contains("100 of 1001 lines are bad (bad_line 100)"), "{told}");
        assert!(!out.join("settings.json").exists());
        let more = ["--bad-lines-max", "0.2", "--labels", "1-2=bad,4-5=good", "--json"];
        let (code, said, told) = run(ngrams_of_json(&input, &out, &[model, &more].concat()));
        assert_eq!(code, Some(0), "{told}");
        let expected = "1002 lines = 1 blank + 100 bad_line + 901 reviews, 1 of them not_labelled";
        assert!(told.contains(expected), "{told}");
        let found: Value = serde_json::from_str(&said).unwrap();
        let ledger = &found["ledger"];
        let of = |name: &str| ledger[name].as_u64().unwrap();
        assert_eq!(
            ["lines", "blank", "bad_line", "reviews", "not_labelled"].map(of),
            [1002, 1, 100, 901, 1],
            "{found}"
        );
        assert_eq!(found["texts"], 900, "{found}");
    }
}

#[test]
fn an_evaluation_on_training_texts_is_a_warning_with_the_share_of_the_training() {
    let (folder, train, test) = corpus();
    let (tenth, none) = (folder.path().join("tenth"), folder.path().join("none"));
    trained(&train, &tenth, &["--test-fraction", "0.1"]);
    trained(&train, &none, &[]);
    let told = |out: &Path, file: &Path, more: &[&str]| {
        let (code, told) = ended(command_of(
            "evaluate",
            out,
            &[&[file.to_str().unwrap(), "--format", "fasttext"], more].concat(),
        ));
        assert_eq!(code, Some(0), "{told}");
        told
    };
    let remedy =
        "was trained on texts of this file, so its metrics are too high; pass its --test-fraction 0.1";
    for more in [&["--test-fraction", "0.2"][..], &[]] {
        assert!(told(&tenth, &train, more).contains(remedy), "{more:?}");
    }
    let within = folder.path().join("within");
    std::fs::create_dir(&within).unwrap();
    let spelled = within.join("..").join(train.file_name().unwrap());
    assert!(told(&tenth, &spelled, &[]).contains(remedy));
    assert_eq!(told(&tenth, &train, &["--test-fraction", "0.1"]), "");
    assert_eq!(told(&tenth, &test, &[]), "");
    assert!(told(&none, &train, &["--test-fraction", "0.1"]).contains("too high; evaluate other texts"));
}

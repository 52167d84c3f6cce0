//! Trainings that continue.

use std::io::{BufRead, BufReader};

use rustix::process::{Pid, Signal, kill_process};

use super::*;

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
fn a_complete_training_is_not_taken_for_one_of_another_input_format_or_labels() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let review = |line: &str| {
        let (label, text) = line.split_once(' ').unwrap();
        let stars = if label == "__label__2" { 5 } else { 1 };
        format!("{{\"reviewText\": \"{text}\", \"overall\": {stars}}}\n")
    };
    let reviews: String = lines(500, 1).lines().map(review).collect();
    fs::write(at("reviews.json"), &reviews).unwrap();
    fs::write(at("others.json"), &reviews).unwrap();
    let train = |input: &str, more: &[&str]| {
        let mut command = program("ngrams");
        command.arg("train").arg("--input").arg(at(input)).arg("--out").arg(at("out")).args(more);
        ended(command)
    };
    let (code, told) = train("reviews.json", &[]);
    assert_eq!(code, Some(0), "{told}");
    for (input, flags, expected) in [
        ("others.json", &["--quiet"][..], "--input is ["),
        ("reviews.json", &["--format", "fasttext"], "--format is json in the training and fasttext in this"),
        ("reviews.json", &["--text-field", "text"], "--text-field is reviewText in the training and text in"),
        ("reviews.json", &["--rating-field", "stars"], "--rating-field is overall in the training and stars"),
        ("reviews.json", &["--positive-from", "3"], "--positive-from is 4 in the training and 3 in"),
        ("reviews.json", &["--labels", "1-2=bad,4-5=good"], "--labels is not set in the training and 1-2"),
    ] {
        let (code, told) = train(input, &[flags, &["--resume"]].concat());
        assert_eq!(code, Some(78), "{flags:?} {told}");
        assert!(told.contains(expected), "{flags:?} {told}");
    }
    // Older versions did not write these settings.
    let settings = at("out/settings.json");
    let mut older: Value = serde_json::from_slice(&fs::read(&settings).unwrap()).unwrap();
    let written = ["family", "test_fraction", "validation_fraction", "epochs", "ngrams"];
    older["recipe"].as_object_mut().unwrap().retain(|name, _| written.contains(&name.as_str()));
    fs::write(&settings, older.to_string()).unwrap();
    let (code, told) = train("reviews.json", &["--resume"]);
    assert!(code == Some(0) && told.contains("already complete"), "{told}");
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
    let is_saved = || killed.join("checkpoints/latest").exists();
    while !is_saved() && process.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(is_saved() && !killed.join("model").exists());
    // A refused training leaves the folder as it is.
    let settings = fs::read(killed.join("settings.json")).unwrap();
    let (code, told) = ended(ngrams(&test, &killed, &[&flags[..], &["--resume"]].concat()));
    assert_eq!(code, Some(78), "{told}");
    assert!(fs::read(killed.join("settings.json")).unwrap() == settings);
    let told = trained(&train, &killed, &[&flags[..], &["--resume"]].concat());
    assert!(told.contains("resuming from the checkpoint"), "{told}");
    assert_eq!(model_files(&killed), model_files(&whole));
    assert!(!killed.join("checkpoints").exists());
    assert_eq!(evaluated(&killed, &test, &[]), evaluated(&whole, &test, &[]));
}

#[test]
fn a_linear_training_that_was_killed_starts_again_and_has_the_same_bits() {
    let (folder, train, test) = corpus();
    let content = fs::read_to_string(&train).unwrap().repeat(40);
    fs::write(&train, content).unwrap();
    let flags = ["--model", "linear", "--epochs", "50", "--deterministic", "--threads", "2"];
    let whole = folder.path().join("whole");
    trained(&train, &whole, &flags);
    let killed = folder.path().join("killed");
    let mut process = ngrams(&train, &killed, &flags).stderr(Stdio::null()).spawn().unwrap();
    while !killed.join("settings.json").exists() && process.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!killed.join("model").exists());
    let told = trained(&train, &killed, &[&flags[..], &["--resume"]].concat());
    assert!(told.contains("starting from the first text"), "{told}");
    assert_eq!(model_files(&killed), model_files(&whole));
    assert_eq!(evaluated(&killed, &test, &[]), evaluated(&whole, &test, &[]));
}

#[test]
fn a_linear_training_that_is_interrupted_says_so() {
    let (folder, train, _) = corpus();
    let out = folder.path().join("out");
    let endless = ["--model", "linear", "--epochs", "100000", "--threads", "2"];
    let mut process = ngrams(&train, &out, &endless).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(process.stderr.take().unwrap());
    // The line after which signals are awaited.
    let mut lines =
        stderr.lines().map(Result::unwrap).skip_while(|line| !line.contains("n-grams with a weight"));
    assert!(lines.next().is_some());
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    let told = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(process.wait().unwrap().code(), Some(75), "{told}");
    assert!(
        told.contains("interrupted; a linear training has no checkpoints: --resume starts it again"),
        "{told}"
    );
    let again = [&endless[..2], &["--epochs", "2", "--force"]].concat();
    trained(&train, &out, &again);
}

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use program::exit::chain;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use scoring::Criterion;

const WEIGHTS_WRITTEN: &str = "no real weights\n";

fn config() -> Config {
    Config {
        preparation: Settings { stop_words: vec!["the".to_owned()], ..Settings::original() },
        tokens_max: 100,
        scoring: Some(Scoring::Logit),
        calibration: None,
        threshold: None,
        dataset: Digest(0xab),
        model: serde_json::json!({ "kind": "lstm", "hidden": 32 }),
    }
}

fn vocabulary(words: &[&str]) -> WordList {
    let mut list = WordList::default();
    words.iter().for_each(|word| list.push(word.as_bytes()));
    list
}

fn save(folder: &Path) -> Result<()> {
    write(folder, &config(), &vocabulary(&["good", "don't", "é"]), |path| fs::write(path, WEIGHTS_WRITTEN))
}

/// A saved model in a temporary folder.
fn saved() -> (TempDir, PathBuf) {
    let within = tempfile::tempdir().unwrap();
    let folder = within.path().join("model");
    save(&folder).unwrap();
    (within, folder)
}

/// The message of an error as a user sees it. The folder's name replaces its path.
fn message(error: &Error, folder: &Path) -> String {
    chain(error).replace(&folder.display().to_string(), "model")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Rewrites a file of a saved model, and the list of digests.
fn alter(folder: &Path, name: &str, content: &[u8]) {
    fs::write(folder.join(name), content).unwrap();
    let script = "sha256sum config.json model.safetensors vocabulary.txt > SHA256SUMS";
    assert!(Command::new("sh").args(["-c", script]).current_dir(folder).status().unwrap().success());
}

#[test]
fn a_saved_model_round_trips() {
    let (_within, folder) = saved();
    let expected = Saved {
        config: config(),
        vocabulary: vocabulary(&["good", "don't", "é"]),
        weights: folder.join("model.safetensors"),
        trained_on: None,
    };
    assert_eq!(read(&folder).unwrap(), expected);
    assert_eq!(fs::read_to_string(expected.weights).unwrap(), WEIGHTS_WRITTEN);
}

#[test]
fn a_saved_model_has_the_documented_files() {
    let (_within, folder) = saved();
    assert_eq!(names(&folder), ["SHA256SUMS", "config.json", "model.safetensors", "vocabulary.txt"]);
    assert_eq!(fs::read_to_string(folder.join("vocabulary.txt")).unwrap(), "good\ndon't\né\n");
    let expected = r#"{
  "format_version": 1,
  "sentimill": "0.1.0",
  "vocabulary": {
    "words": 3,
    "sha256": "VOCABULARY"
  },
  "preparation": {
    "cleaning_version": 1,
    "unicode_version": "17.0.0",
    "stop_words": [
      "the"
    ],
    "max_tokens": 100,
    "keep": "first",
    "positive_from": 4
  },
  "tokens_max": 100,
  "scoring": "logit",
  "dataset": "000000000000000000000000000000ab",
  "model": {
    "hidden": 32,
    "kind": "lstm"
  }
}
"#;
    let sha256 = output::summary(&folder.join("vocabulary.txt")).unwrap().sha256;
    let config = fs::read_to_string(folder.join("config.json")).unwrap();
    assert_eq!(config.replace(&sha256, "VOCABULARY"), expected);
}

#[test]
fn sha256sum_checks_a_saved_model() {
    let (_within, folder) = saved();
    let mut command = Command::new("sha256sum");
    let output = command.args(["--check", "--strict", "SHA256SUMS"]).current_dir(&folder).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, "config.json: OK\nmodel.safetensors: OK\nvocabulary.txt: OK\n");
}

#[test]
fn a_model_folder_follows_the_umask() {
    let (within, folder) = saved();
    fs::create_dir(within.path().join("other")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&folder), mode(&within.path().join("other")));
}

#[test]
fn a_flipped_bit_of_any_file_is_refused() {
    for name in ["SHA256SUMS", "config.json", "model.safetensors", "vocabulary.txt"] {
        let (_within, folder) = saved();
        let path = folder.join(name);
        let written = fs::read(&path).unwrap();
        for at in 0..written.len() {
            let mut flipped = written.clone();
            flipped[at] ^= 1;
            fs::write(&path, flipped).unwrap();
            let error = read(&folder).unwrap_err();
            assert_eq!(error.exit() as u8, 66, "{name} at {at}: {error}");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    for name in ["SHA256SUMS", "config.json", "model.safetensors", "vocabulary.txt"] {
        let (_within, folder) = saved();
        fs::remove_file(folder.join(name)).unwrap();
        let error = read(&folder).unwrap_err();
        let expected = format!("model/{name}: not found, expected a file of a model; check the name");
        assert_eq!(message(&error, &folder), expected);
        assert_eq!(error.exit() as u8, 66);
    }
    let error = read(Path::new("/nowhere/model")).unwrap_err();
    assert_eq!(error.exit() as u8, 66);
}

#[test]
fn an_unlisted_file_is_refused() {
    for name in ["config.json", "model.safetensors", "vocabulary.txt"] {
        let (_within, folder) = saved();
        let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
        let others: String =
            sums.lines().filter(|line| !line.ends_with(name)).map(|line| format!("{line}\n")).collect();
        fs::write(folder.join("SHA256SUMS"), others).unwrap();
        let error = read(&folder).unwrap_err();
        let expected = format!("model/SHA256SUMS: the SHA-256 of {name} is missing, expected one; ");
        assert!(message(&error, &folder).starts_with(&expected), "{error}");
    }
}

#[test]
fn a_damaged_file_is_named_with_both_digests() {
    let (_within, folder) = saved();
    fs::write(folder.join("model.safetensors"), "other weights\n").unwrap();
    let error = read(&folder).unwrap_err();
    assert_eq!(
        message(&error, &folder),
        "model/model.safetensors: its SHA-256 is 4b2d93dd, expected 377f3b8c; the file was damaged or altered: copy \
         or train the model again"
    );
}

#[test]
fn an_altered_vocabulary_is_refused_even_with_an_altered_digest() {
    let (_within, folder) = saved();
    for altered in ["don't\ngood\né\n", "good\ndon't\n", "good\ndon't\né\nbad\n", "good\r\ndon't\né\n", ""]
    {
        alter(&folder, "vocabulary.txt", altered.as_bytes());
        let error = read(&folder).unwrap_err();
        let message = message(&error, &folder);
        assert!(message.starts_with("model/vocabulary.txt: the vocabulary is "), "{message}");
        assert!(message.contains(" words (SHA-256 ") && message.contains("expected the model's 3 words"));
        assert_eq!(error.exit() as u8, 66);
    }
    alter(&folder, "vocabulary.txt", "good\ndon't\né\n".as_bytes());
    read(&folder).unwrap();
}

/// The word's count and digest in the configuration are correct.
#[test]
fn an_impossible_word_is_refused() {
    for (words, expected) in [
        (["good", "bad word", "fit"], "word 1 is \"bad word\", expected a cleaned word"),
        (["good", "Bad", "fit"], "word 1 is \"Bad\", expected a cleaned word"),
        (["good", "bad", "good"], "word 2 is \"good\", expected a word that is listed once"),
        (["good", "the", "fit"], "word 1 is \"the\", expected none of the stop words"),
    ] {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("model");
        let words = vocabulary(&words);
        write(&folder, &config(), &words, |path| fs::write(path, "")).unwrap();
        let error = read(&folder).unwrap_err();
        let message = message(&error, &folder);
        assert!(message.starts_with(&format!("model/vocabulary.txt: {expected}; ")), "{message}");
        assert_eq!(error.exit() as u8, 66);
    }
    let (_within, folder) = saved();
    let written = fs::read_to_string(folder.join("config.json")).unwrap();
    alter(&folder, "config.json", written.replace("\"the\"", "\"the\", \"a\"").as_bytes());
    let error = read(&folder).unwrap_err();
    assert!(message(&error, &folder).starts_with("model/config.json: stop words is \"a\" behind"), "{error}");
}

#[test]
fn a_newer_format_is_refused_by_version() {
    let (_within, folder) = saved();
    alter(&folder, "config.json", br#"{"format_version": 3, "sentimill": "0.3.0", "unheard": "of"}"#);
    let error = read(&folder).unwrap_err();
    let expected =
        "model/config.json: the format version is 3, expected 1 to 2; use sentimill 0.3.0, which wrote it";
    assert_eq!(message(&error, &folder), expected);
}

#[test]
fn a_calibration_and_a_threshold_are_kept_in_a_newer_format() {
    let within = tempfile::tempdir().unwrap();
    let folder = within.path().join("model");
    let calibration = Some(Calibrator::Platt { slope: 0.3123456789, intercept: -1.5 });
    let threshold = Some(Threshold { by: Criterion::F1, score: 0.1 });
    let chosen = Config { calibration, threshold, ..config() };
    write(&folder, &chosen, &vocabulary(&["good"]), |path| fs::write(path, WEIGHTS_WRITTEN)).unwrap();
    let json = fs::read_to_string(folder.join("config.json")).unwrap();
    assert!(json.starts_with("{\n  \"format_version\": 2,"), "{json}");
    assert_eq!(read(&folder).unwrap().config, chosen);
}

#[test]
fn an_invalid_calibration_or_threshold_is_refused() {
    let (_within, folder) = saved();
    let written = fs::read_to_string(folder.join("config.json")).unwrap();
    let with = |choice: &str| written.replace("\"scoring\":", &format!("{choice}, \"scoring\":"));
    let threshold = |score: &str| with(&format!(r#""threshold": {{"by": "f1", "score": {score}}}"#));
    let temperature = |value: &str| with(&format!(r#""calibration": {{"temperature": {value}}}"#));
    let slope =
        |value: &str| with(&format!(r#""calibration": {{"platt": {{"slope": {value}, "intercept": 0}}}}"#));
    let rating = |json: String| json.replace("\"logit\"", r#"{"rating": {"positive_from": 4}}"#);
    for (bad, expected) in [
        (threshold("1e300"), "threshold is inf, expected a finite number"),
        (threshold("-1e300"), "threshold is -inf, expected a finite number"),
        (threshold("1e999"), "its content is number out of range"),
        (threshold("null"), "its content is invalid type: "),
        (with(r#""threshold": {"by": "luck", "score": 1}"#), "its content is unknown variant `luck`"),
        (temperature("0"), "temperature is 0, expected a number above 0"),
        (temperature("-2"), "temperature is -2, expected a number above 0"),
        (temperature("1e999"), "its content is number out of range"),
        (slope("-0.5"), "slope is -0.5, expected a number above 0"),
        (with(r#""calibration": {"platt": {"slope": 1}}"#), "its content is missing field `intercept`"),
        (
            rating(temperature("2")),
            "calibration is set, expected none, because the model predicts no probability",
        ),
    ] {
        alter(&folder, "config.json", bad.as_bytes());
        let error = read(&folder).unwrap_err();
        let found = message(&error, &folder);
        assert!(found.starts_with(&format!("model/config.json: {expected}")), "{bad}: {found}");
        assert_eq!(error.exit() as u8, 66);
    }
    alter(&folder, "config.json", rating(threshold("0.5")).as_bytes());
    assert_eq!(read(&folder).unwrap().config.threshold, Some(Threshold { by: Criterion::F1, score: 0.5 }));
}

#[test]
fn an_invalid_config_is_refused() {
    let (_within, folder) = saved();
    let written = fs::read_to_string(folder.join("config.json")).unwrap();
    for bad in ["", "[]", "{}", &written[..written.len() / 2], &written.replace("\"keep\"", "\"keeps\"")] {
        alter(&folder, "config.json", bad.as_bytes());
        let error = read(&folder).unwrap_err();
        assert!(message(&error, &folder).starts_with("model/config.json: its content is "), "{error}");
        assert_eq!(error.exit() as u8, 66);
    }
}

#[test]
fn an_invalid_positive_from_is_refused() {
    let (_within, folder) = saved();
    let written = fs::read_to_string(folder.join("config.json")).unwrap();
    let five = |from: u8| format!("\"scoring\": {{\"five-ratings\": {{\"positive_from\": {from}}}}}");
    alter(&folder, "config.json", written.replace("\"scoring\": \"logit\"", &five(4)).as_bytes());
    assert_eq!(read(&folder).unwrap().config.scoring, Some(Scoring::FiveRatings { positive_from: 4 }));
    for bad in [
        written.replace("\"scoring\": \"logit\"", &five(3)),
        written.replace("\"positive_from\": 4", "\"positive_from\": 0"),
        written.replace("\"positive_from\": 4", "\"positive_from\": 6"),
    ] {
        alter(&folder, "config.json", bad.as_bytes());
        let error = read(&folder).unwrap_err();
        assert!(message(&error, &folder).starts_with("model/config.json: positive_from is "), "{error}");
    }
}

#[test]
fn an_oversized_file_is_refused() {
    let (_within, folder) = saved();
    let sums = folder.join("SHA256SUMS");
    fs::OpenOptions::new().write(true).open(&sums).unwrap().set_len(1 << 40).unwrap();
    let error = read(&folder).unwrap_err();
    assert_eq!(
        message(&error, &folder),
        "model/SHA256SUMS: the number of bytes is greater, expected at most 1048576; copy or train the model again"
    );
}

#[test]
fn a_named_pipe_is_refused() {
    let (_within, folder) = saved();
    let path = folder.join("model.safetensors");
    fs::remove_file(&path).unwrap();
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(read(&folder).unwrap_err().exit() as u8, 66);
}

#[test]
fn an_existing_folder_is_refused_and_unchanged() {
    let (within, folder) = saved();
    let error = save(&folder).unwrap_err();
    assert_eq!(
        message(&error, &folder),
        "model: already exists: found a folder, expected a new name; move it away, or choose another path"
    );
    assert_eq!(error.exit() as u8, 64);
    read(&folder).unwrap();
    let file = within.path().join("file");
    fs::write(&file, "mine").unwrap();
    let error = save(&file).unwrap_err();
    assert!(error.to_string().contains("already exists: found a file, expected "), "{error}");
    assert_eq!(names(within.path()), ["file", "model"]);
}

#[test]
fn a_failed_write_of_weights_leaves_no_files() {
    let within = tempfile::tempdir().unwrap();
    let folder = within.path().join("model");
    let failed = write(&folder, &config(), &vocabulary(&["other"]), |path| {
        fs::write(path, "half")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    let error = failed.unwrap_err();
    assert_eq!(
        message(&error, &folder),
        "model/model.safetensors: disk full while writing; free space there or choose another path"
    );
    assert_eq!(error.exit() as u8, 74);
    assert_eq!(names(within.path()), [""; 0]);
}

#[test]
fn missing_weights_are_an_error() {
    let within = tempfile::tempdir().unwrap();
    let folder = within.path().join("model");
    let error = write(&folder, &config(), &vocabulary(&[]), |_| Ok(())).unwrap_err();
    assert_eq!(error.exit() as u8, 74);
    assert!(!folder.exists());
}

#[test]
fn a_word_with_a_line_end_is_not_saved() {
    let within = tempfile::tempdir().unwrap();
    for word in ["a\nb", "a\r", "", "\n"] {
        let folder = within.path().join("model");
        let words = vocabulary(&["good", word]);
        let error = write(&folder, &config(), &words, |_| Ok(())).unwrap_err();
        assert_eq!(
            error.to_string(),
            "word 1 of the vocabulary contains a control character or is empty: this is a defect of sentimill, please report it"
        );
        assert_eq!(error.exit() as u8, 70);
    }
    assert_eq!(names(within.path()), [""; 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn words_keep_their_order(words in prop::collection::hash_set("[a-zéβ]{4,8}", 0..40)) {
        let within = tempfile::tempdir().unwrap();
        let folder = within.path().join("deep/model");
        let words = vocabulary(&words.iter().map(|word| &**word).collect::<Vec<_>>());
        write(&folder, &config(), &words, |path| fs::write(path, "")).unwrap();
        prop_assert_eq!(read(&folder).unwrap().vocabulary, words);
    }
}

use std::fs;
use std::path::{Path, PathBuf};

use durable::output;
use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::*;
use crate::fasttext::{FastTextSettings, Loss, Scores, Training};
use crate::{Reading, Words};

const FILES: [&str; 4] = ["SHA256SUMS", "config.json", "model.safetensors", "words.txt"];
const LINES: [&str; 4] = ["a good film", "bad, b\u{e4}d film", "the film was good </s> bad", ""];

/// A model of the family `fasttext`, of texts with these labels.
fn fasttext_model(words: Words, loss: Loss, labels: [&[u8]; 2]) -> crate::fasttext::FastTextModel {
    let reading = Reading { words, ..Reading::default() };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for round in 0..40 {
        let texts = [&b"a good film"[..], "a b\u{e4}d film".as_bytes()];
        let line = [b"__label__", labels[round % 2], b" ", texts[round % 2], b"\n"].concat();
        std::io::Write::write_all(&mut file, &line).unwrap();
    }
    let texts = crate::read_fasttext_file(file.path(), 1, reading).unwrap();
    let features =
        Features { ngrams: 2, buckets: 1000, characters_min: 2, characters_max: 3, ..Features::default() };
    let settings =
        FastTextSettings { words, features, loss, dim: 5, rate: 0.5, ..FastTextSettings::default() };
    let mut training = Training::new(&texts, settings).unwrap();
    while training.step().unwrap().is_some() {}
    training.finish()
}

fn model() -> crate::fasttext::FastTextModel {
    fasttext_model(Words::Spaces, Loss::Softmax, [b"pos", b"neg"])
}

/// The path of a written model.
fn written() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    write(&path, ModelRef::FastText(&model())).unwrap();
    (folder, path)
}

/// Replaces a file, and its digests in the other files.
fn replace(folder: &Path, name: &str, bytes: &[u8]) {
    let digest = |name: &str| output::summary(&folder.join(name)).unwrap().sha256;
    let (old, old_config) = (digest(name), digest("config.json"));
    fs::write(folder.join(name), bytes).unwrap();
    for (listing, old, name) in
        [("config.json", &old, name), ("SHA256SUMS", &old, name), ("SHA256SUMS", &old_config, "config.json")]
    {
        let text = fs::read_to_string(folder.join(listing)).unwrap();
        fs::write(folder.join(listing), text.replace(old, &digest(name))).unwrap();
    }
}

/// Alters `config.json`, and its digest.
fn alter(folder: &Path, change: impl FnOnce(&mut Value)) {
    let mut config: Value = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    change(&mut config);
    replace(folder, "config.json", &serde_json::to_vec(&config).unwrap());
}

fn refused(folder: &Path) -> String {
    let error = read(folder).expect_err("the folder is refused").to_string();
    error.replace(&format!("{}/", folder.display()), "")
}

#[test]
fn a_written_model_is_read_back() {
    for (words, loss) in [
        (Words::Spaces, Loss::Softmax),
        (Words::Punctuation, Loss::HierarchicalSoftmax),
        (Words::Cleaned, Loss::Bce),
    ] {
        let model = fasttext_model(words, loss, [b"pos", b"\xff\xfe"]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("parent/model");
        write(&path, ModelRef::FastText(&model)).unwrap();
        assert!(is_folder(&path));
        let Model::FastText(found) = read(&path).unwrap() else { panic!("another kind") };
        assert_eq!(found.dictionary(), model.dictionary());
        for line in LINES {
            let line = line.as_bytes();
            let (mut ours, mut theirs) = (Scores::default(), Scores::default());
            assert_eq!(found.scores(line, &mut theirs), model.scores(line, &mut ours));
        }
        // The same model gives the same bytes.
        let again = folder.path().join("again");
        write(&again, ModelRef::FastText(&found)).unwrap();
        for name in FILES {
            assert!(fs::read(path.join(name)).unwrap() == fs::read(again.join(name)).unwrap(), "{name}");
        }
    }
}

#[test]
fn a_folder_has_these_files() {
    let (_folder, path) = written();
    let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, FILES);
    assert_eq!(
        fs::read_to_string(path.join("words.txt")).unwrap(),
        "</s> 40\na 40\nfilm 40\nb\u{e4}d 20\ngood 20\n"
    );
    let config: Value = serde_json::from_slice(&fs::read(path.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["family"], "ngrams");
    assert_eq!(config["kind"], "fasttext");
    assert_eq!(
        config["labels"],
        serde_json::json!([{"name": "neg", "texts": 20}, {"name": "pos", "texts": 20}])
    );
    let sums = fs::read_to_string(path.join("SHA256SUMS")).unwrap();
    for name in &FILES[1..] {
        let digest: String = Sha256::digest(fs::read(path.join(name)).unwrap())
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert!(sums.contains(&format!("{digest}  {name}\n")), "{sums}");
    }
}

#[test]
fn rows_that_no_text_has_are_not_stored() {
    let (_folder, path) = written();
    let n_met = model().met().len();
    assert!(n_met < 100);
    let bytes = fs::read(path.join("model.safetensors")).unwrap().len();
    assert!(bytes < 600 + 1005 / 8 + (n_met + 2) * 5 * 4, "{bytes} bytes, {n_met} rows");
}

#[test]
fn an_existing_path_is_refused() {
    let (_folder, path) = written();
    let error = write(&path, ModelRef::FastText(&model())).unwrap_err().to_string();
    let expected =
        "already exists: found a folder, expected a new name; move it away, or choose another path";
    assert_eq!(error, format!("{}: {expected}", path.display()));
    assert_eq!(check_place(&path).unwrap_err().to_string(), error);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    read(&path).unwrap();
}

#[test]
fn an_altered_file_is_refused() {
    for name in FILES {
        let (_folder, path) = written();
        let file = path.join(name);
        let mut bytes = fs::read(&file).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(&file, bytes).unwrap();
        refused(&path);
    }
    let (_folder, path) = written();
    fs::write(path.join("words.txt"), "a 1\n").unwrap();
    let found = refused(&path);
    assert!(
        found.starts_with("words.txt: its SHA-256 is ") && found.ends_with("copy or train the model again"),
        "{found}"
    );
}

#[test]
fn a_missing_or_cut_file_is_refused() {
    for name in FILES {
        let (_folder, path) = written();
        fs::remove_file(path.join(name)).unwrap();
        assert_eq!(refused(&path), format!("{name}: not found, expected a file of a model; check the name"));
    }
    for name in ["model.safetensors", "words.txt"] {
        let (_folder, path) = written();
        let bytes = fs::read(path.join(name)).unwrap();
        fs::write(path.join(name), &bytes[..bytes.len() - 1]).unwrap();
        refused(&path);
    }
}

#[test]
fn a_setting_out_of_range_is_refused_by_name() {
    let remedy = "; copy or train the model again";
    let cases: [(&str, Value, &str); 10] = [
        ("/format_version", 2.into(), "format_version is 2, expected 1"),
        ("/family", "lstm".into(), "family is lstm, expected ngrams"),
        ("/words", 7.into(), "the number of words is 5, expected 7"),
        ("/settings/dim", 0.into(), "dim is 0, expected 1 to 1048576"),
        ("/settings/ngrams", 256.into(), "ngrams is 256, expected 0 to 255"),
        ("/settings/buckets", u32::MAX.into(), "buckets is 4294967295, expected at most 4294967294 rows"),
        ("/settings/buckets", 5000.into(), "the array met is [16], expected [79] of U64"),
        ("/settings/dim", 6.into(), "the array input is "),
        ("/labels", serde_json::json!([]), "labels is empty, expected one label or more"),
        (
            "/labels/1/texts",
            2_000_000_000_000_000_u64.into(),
            "labels.texts is 2000000000000000, expected at most 1000000000000",
        ),
    ];
    for (pointer, value, expected) in cases {
        let (_folder, path) = written();
        alter(&path, |config| *config.pointer_mut(pointer).unwrap() = value);
        let found = refused(&path);
        let (_, found) = found.split_once(": ").unwrap();
        assert!(found.starts_with(expected) && found.ends_with(remedy), "{found}, expected {expected}");
    }
}

#[test]
fn a_threshold_or_calibration_that_no_training_chooses_is_refused_by_name() {
    let platt =
        |slope: f64| serde_json::json!({"calibration": {"platt": {"slope": slope, "intercept": 0.5}}});
    let threshold = serde_json::json!({"threshold": {"by": "f1", "score": 0.5}});
    let of_two = "choice is one of two labels, expected one of 3 labels: a temperature";
    for (choice, n_labels, expected) in [
        (platt(2.0), 2, None),
        (serde_json::json!({"calibration": {"temperature": 2.0}}), 2, None),
        (threshold.clone(), 2, None),
        (
            serde_json::json!({"calibration": {"temperature": 0.0}}),
            2,
            Some("choice.temperature is 0, expected"),
        ),
        (platt(-1.0), 2, Some("choice.slope is -1, expected a number above 0")),
        (platt(2.0), 3, Some(of_two)),
        (threshold, 3, Some(of_two)),
        (
            serde_json::json!({"threshold": {"by": "f1", "score": null}}),
            2,
            Some("its content is invalid type: null"),
        ),
        (serde_json::json!({"margin": 1.0}), 2, Some("its content is unknown field `margin`")),
    ] {
        let (_folder, path) = written();
        alter(&path, |config| {
            config["choice"] = choice.clone();
            let labels = config["labels"].as_array_mut().unwrap();
            labels.extend((2..n_labels).map(|_| serde_json::json!({"name": "third", "texts": 1})));
        });
        match expected {
            None => assert!(read(&path).is_ok(), "{choice}"),
            Some(expected) => {
                let found = refused(&path);
                assert!(found.contains(expected), "{choice}: {found}, expected {expected}");
            }
        }
    }
}

#[test]
fn weights_that_are_not_finite_are_refused() {
    let (_folder, path) = written();
    let mut bytes = fs::read(path.join("model.safetensors")).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    replace(&path, "model.safetensors", &bytes);
    let found = refused(&path);
    assert_eq!(
        found,
        "model.safetensors: value 9 of output is NaN, expected a finite value; copy or train the model again"
    );
}

#[test]
fn arrays_that_do_not_fill_the_file_are_refused() {
    let header = |json: &str| [&(json.len() as u64).to_le_bytes()[..], json.as_bytes()].concat();
    let cases: [(Vec<u8>, &str); 6] = [
        (vec![1, 2], "the number of bytes is 2, expected 8 or more"),
        (
            u64::MAX.to_le_bytes().to_vec(),
            "the length of the header is 18446744073709551615, expected 0 to 0",
        ),
        (header(" {}"), "the first byte of the header is ' ', expected '{'"),
        (header("{}").into_iter().chain([0]).collect(), "the number of bytes of the arrays is 1, expected 0"),
        (
            header(r#"{"met":{"dtype":"U64","shape":[1],"data_offsets":[8,16]}}"#),
            "an offset is 8 to 16, expected from 0",
        ),
        (
            header(r#"{"met":{"dtype":"U64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}"#),
            "the shape of met is [4294967296, 4294967296] in 0 bytes, expected the elements of these bytes",
        ),
    ];
    for (bytes, expected) in cases {
        let (_folder, path) = written();
        replace(&path, "model.safetensors", &bytes);
        let length = bytes.len();
        alter(&path, |config| config["files"]["model.safetensors"]["bytes"] = length.into());
        assert_eq!(refused(&path), format!("model.safetensors: {expected}; copy or train the model again"));
    }
}

#[test]
fn another_folder_is_no_model() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!is_folder(folder.path()) && !is_folder(Path::new("/nowhere")));
    fs::write(folder.path().join("config.json"), r#"{"format_version": 1, "family": "lstm"}"#).unwrap();
    assert!(!is_folder(folder.path()));
}

#[test]
fn a_file_of_the_program_gives_the_same_answers() {
    let folder = tempfile::tempdir().unwrap();
    for (name, loss) in [("softmax", Loss::Softmax), ("bce", Loss::Bce), ("tree", Loss::HierarchicalSoftmax)]
    {
        let path = folder.path().join(name);
        let model = fasttext_model(Words::Spaces, loss, [b"pos", b"neg"]);
        write_bin(&path, &model).unwrap();
        let (mut ours, mut theirs) = (Scores::default(), bin::answers::BinScratch::default());
        let read = bin::BinModel::read(&path).unwrap();
        // A label within a line is no word.
        for line in LINES.into_iter().chain(["a __label__pos film"]) {
            let found = read.probabilities(line.as_bytes(), &mut theirs).unwrap();
            for (found, expected) in found.iter().zip(model.scores(line.as_bytes(), &mut ours)) {
                assert!((found - expected - 1e-5).abs() < 1e-6, "{name}: {line}: {found}, {expected}");
            }
        }
        // In memory, the model is the same.
        let again = folder.path().join(format!("{name}.again"));
        to_program(&again, &model).unwrap().write(&again).unwrap();
        assert!(fs::read(path).unwrap() == fs::read(again).unwrap());
    }
}

#[test]
fn a_model_that_splits_lines_in_another_way_is_no_file_of_the_program() {
    let model = fasttext_model(Words::Punctuation, Loss::Softmax, [b"pos", b"neg"]);
    let error = write_bin(Path::new("model.bin"), &model).unwrap_err().to_string();
    let expected = "model.bin: the split of lines is by punctuation, but the format allows by spaces; train with --words \
                    spaces";
    assert_eq!(error, expected);
    assert!(!Path::new("model.bin").exists());
}

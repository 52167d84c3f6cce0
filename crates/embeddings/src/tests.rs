//! Folders: what is written is read back, and damaged folders are refused.

use std::fs;
use std::path::{Path, PathBuf};

use crate::spelling::{Characters, Generator, Sizes, Weights};
use classifiers::Names;
use durable::output;
use program::random::Random;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::folder::{self, Parts, WriteRow};
use crate::{CharacterNgrams, Embedding};

const WORDS: [&str; 4] = ["the", "film", "b\u{e4}d", "a b"];

pub(crate) fn names(words: &[&str]) -> Names {
    words.iter().map(|word| word.as_bytes()).collect()
}

pub(crate) fn plain() -> Embedding {
    let vectors = (0..12).map(|at| at as f32 / 8.0 - 0.7).collect();
    Embedding::new(names(&WORDS), Some(vec![9, 5, 2, 2]), 3, vectors)
}

pub(crate) fn with_characters() -> Embedding {
    let floats = |n: usize, from: f32| (0..n).map(|at| ((at * 37) % 101) as f32 / 50.0 - from).collect();
    let characters =
        CharacterNgrams { min: 2, max: 4, buckets: 50, rows: floats(150, 1.0), own: floats(12, 0.5) };
    Embedding::with_characters(names(&WORDS), Some(vec![9, 5, 2, 2]), 3, characters)
}

/// The vectors of words by a generator.
pub(crate) fn generated() -> Embedding {
    let characters =
        Characters::count(WORDS.iter().chain(&["film b\u{e4}d"]).map(|word| (word.as_bytes(), 1)));
    let sizes = Sizes { ids: characters.n_ids(), char_dim: 4, hidden: 16, dim: 3 };
    let generator = Generator::new(characters, Weights::draw(sizes, 1, 0));
    let vectors = generator.vectors(WORDS.iter().map(|word| word.as_bytes()), 1);
    let embedding = Embedding::new(names(&WORDS), Some(vec![9, 5, 2, 2]), 3, vectors);
    Embedding { generator: Some(generator), ..embedding }
}

/// Words w0, w1, …, with random vectors.
pub(crate) fn random(n_words: usize, dim: usize, seed: u64) -> Embedding {
    let mut random = Random::of(&[seed]);
    let vectors = (0..n_words * dim).map(|_| random.uniform() - 0.5).collect();
    let words: Vec<String> = (0..n_words).map(|word| format!("w{word}")).collect();
    Embedding::new(words.iter().map(|word| word.as_bytes()).collect(), None, dim, vectors)
}

fn written(embedding: &Embedding) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    folder::write_embedding(&path, embedding, None, json!({"epochs": 5})).unwrap();
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

fn refused(folder: &Path) -> String {
    let error = folder::read(folder).expect_err("the folder is refused").to_string();
    error.replace(&format!("{}/", folder.display()), "")
}

fn altered(change: impl FnOnce(&mut Value)) -> String {
    let (_folder, path) = written(&with_characters());
    let mut config: Value = serde_json::from_slice(&fs::read(path.join("config.json")).unwrap()).unwrap();
    change(&mut config);
    replace(&path, "config.json", &serde_json::to_vec(&config).unwrap());
    refused(&path)
}

#[test]
fn a_written_folder_is_read_back() {
    for embedding in [plain(), with_characters(), generated()] {
        let (_folder, path) = written(&embedding);
        assert!(folder::is_folder(&path));
        assert_eq!(folder::read(&path).unwrap(), embedding);
        assert_eq!(folder::settings(&path).unwrap(), json!({"epochs": 5}));
        assert_eq!(folder::read_with_outputs(&path).unwrap(), (embedding, None));
    }
}

#[test]
fn outputs_are_read_back_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let outputs: Vec<f32> = (0..12).map(|at| at as f32).collect();
    folder::write_embedding(&path, &plain(), Some(&outputs), Value::Null).unwrap();
    assert_eq!(folder::read_with_outputs(&path).unwrap().1, Some(outputs));
}

#[test]
fn a_folder_has_these_files() {
    let (_folder, path) = written(&with_characters());
    let mut files: Vec<_> = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["SHA256SUMS", "config.json", "ngrams.npy", "vectors.npy", "words.txt"]);
    assert_eq!(fs::read_to_string(path.join("words.txt")).unwrap(), "the 9\nfilm 5\nb\u{e4}d 2\na b 2\n");
    let config: Value = serde_json::from_slice(&fs::read(path.join("config.json")).unwrap()).unwrap();
    assert_eq!(config["family"], "word-vectors");
    assert_eq!((config["words"].as_u64(), config["dim"].as_u64()), (Some(4), Some(3)));
    assert_eq!(config["characters"], json!({"min": 2, "max": 4, "buckets": 50}));
    assert_eq!(fs::metadata(path.join("ngrams.npy")).unwrap().len(), 128 + 54 * 3 * 4);
}

#[test]
fn an_existing_path_is_not_replaced() {
    let (_folder, path) = written(&plain());
    let told = folder::write_embedding(&path, &plain(), None, Value::Null).unwrap_err().to_string();
    assert!(told.contains("already exists: found a folder"), "{told}");
}

#[test]
fn a_value_that_is_not_finite_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let vectors: WriteRow<'_> = &|row, to| to.fill(if row == 2 { f32::NAN } else { 0.5 });
    let words = plain().words;
    let parts = Parts {
        words: &words,
        dim: 3,
        vectors,
        outputs: None,
        characters: None,
        generator: None,
        settings: Value::Null,
    };
    let told = folder::write(&path, &parts).unwrap_err().to_string();
    assert!(told.contains("vectors.npy: a value is NaN, but the format allows finite values"), "{told}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    folder::replace(&path, &Parts { vectors: &|_, to| to.fill(0.5), settings: Value::Null, ..parts })
        .unwrap();
    assert!(folder::replace(&path, &parts).unwrap_err().to_string().contains("a value is NaN"));
    assert_eq!(folder::read(&path).unwrap().vectors, [0.5; 12]);
}

#[test]
fn a_word_with_a_line_break_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let embedding = Embedding::new(names(&["a\nb"]), None, 1, vec![0.0]);
    let told = folder::write_embedding(&folder.path().join("model"), &embedding, None, Value::Null)
        .unwrap_err()
        .to_string();
    assert!(told.contains(r#"words.txt: a word is "a\nb", but the format allows"#), "{told}");
}

#[test]
fn altered_files_are_refused() {
    for name in ["config.json", "words.txt", "vectors.npy", "ngrams.npy"] {
        let (_folder, path) = written(&with_characters());
        let mut bytes = fs::read(path.join(name)).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        fs::write(path.join(name), bytes).unwrap();
        let told = refused(&path);
        assert!(told.starts_with(&format!("{name}: its SHA-256 is ")), "{told}");
    }
}

#[test]
fn arrays_of_another_shape_or_with_bad_values_are_refused() {
    let (_folder, path) = written(&plain());
    let bytes = fs::read(path.join("vectors.npy")).unwrap();
    let mut bad = bytes.clone();
    bad[128..132].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let of_shape = |rows: usize, columns: usize, values: usize| {
        [durable::npy::header(rows, columns), vec![0; values * 4]].concat()
    };
    for (bytes, expected) in [
        (bad, "vectors.npy: value 0 of the array is inf, expected a finite value"),
        (bytes[..bytes.len() - 1].to_vec(), "the array is cut off after 47 bytes, expected 48 bytes"),
        ([&bytes[..], b"x"].concat(), "the number of bytes after the array is 1, expected 0"),
        (of_shape(3, 4, 12), "the shape is (3, 4), expected (4, 3); copy or train the model again"),
        (of_shape(1 << 60, 3, 12), "the array is cut off after 48 bytes"),
        (b"PK\x03\x04".to_vec(), "its content is something else, expected an array of NumPy"),
    ] {
        replace(&path, "vectors.npy", &bytes);
        let told = refused(&path);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn sizes_out_of_range_are_refused() {
    let cases: [(&str, Value, &str); 6] = [
        ("dim", json!(0), "config.json: dim is 0, expected 1 to 1048576; copy or train the model again"),
        ("words", json!(1u64 << 40), "config.json: words is 1099511627776, expected 1 to 4294967293"),
        ("words", json!(3), "words.txt: the number of words is 4, expected 3"),
        (
            "characters",
            json!({"min": 2, "max": 300, "buckets": 50}),
            "characters.max is 300, expected 1 to 255",
        ),
        ("characters", json!({"min": 2, "max": 4, "buckets": 0}), "characters.buckets is 0, expected 1 to"),
        ("family", json!("ngrams"), "config.json: family is ngrams, expected word-vectors"),
    ];
    for (field, value, expected) in cases {
        let told = altered(|config| config[field] = value);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_word_has_the_mean_of_its_rows() {
    let embedding = with_characters();
    let characters = embedding.characters.as_ref().unwrap();
    let mean = |own: Option<&[f32]>, ngrams: &[&str]| -> Vec<f32> {
        let rows = ngrams.iter().map(|ngram| classifiers::hash(ngram.as_bytes()) as usize % 50);
        let rows: Vec<&[f32]> =
            own.into_iter().chain(rows.map(|row| &characters.rows[row * 3..][..3])).collect();
        (0..3).map(|at| rows.iter().map(|row| row[at]).sum::<f32>() / rows.len() as f32).collect()
    };
    let close = |found: &[f32], expected: &[f32]| {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
    };
    let of_bad =
        ["<b", "<b\u{e4}", "<b\u{e4}d", "b\u{e4}", "b\u{e4}d", "b\u{e4}d>", "\u{e4}d", "\u{e4}d>", "d>"];
    close(embedding.vector(2), &mean(Some(&characters.own[6..9]), &of_bad));
    close(&embedding.vector_of(b"x").unwrap(), &mean(None, &["<x", "<x>", "x>"]));
    assert_eq!(embedding.vector_of(b""), None);
    assert_eq!(plain().vector_of(b"x"), None);
}

#[test]
fn counts_are_unknown_if_all_are_zero() {
    assert_eq!(plain().counts(), Some(vec![9, 5, 2, 2]));
    assert_eq!(Embedding::new(names(&["a"]), None, 1, vec![0.5]).counts(), None);
}

#[test]
fn a_generator_gives_vectors_to_words_that_never_occurred() {
    let (_folder, path) = written(&generated());
    let read = folder::read(&path).unwrap();
    let generator = read.generator.as_ref().unwrap();
    for word in ["b\u{e4}der", "film", "\u{732b}"] {
        assert_eq!(read.vector_of(word.as_bytes()).unwrap()[..], generator.vector(word.as_bytes()), "{word}");
    }
    assert_eq!(read.vector_of(b""), None);
    // It is kept by a copy of the folder.
    let copy = path.with_file_name("copy");
    folder::write_embedding(&copy, &read, None, Value::Null).unwrap();
    assert_eq!(folder::read(&copy).unwrap(), read);
}

#[test]
fn a_damaged_generator_is_refused() {
    let (_folder, path) = written(&generated());
    let weights = fs::read(path.join("generator.safetensors")).unwrap();
    let n_header = 8 + u64::from_le_bytes(weights[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&weights[8..n_header]).unwrap();
    assert_eq!(header["lstm.weight_hh_l0"]["shape"], json!([64, 16]));
    let last = weights.len() - 4;
    let inf = [&weights[..last], &f32::INFINITY.to_le_bytes()].concat();
    let long = [&u64::MAX.to_le_bytes()[..], &weights[8..]].concat();
    for (bytes, expected) in [
        (inf, "generator.safetensors: value 2 of linear.bias is inf, expected a finite value"),
        (
            long,
            "generator.safetensors: the header is of other weights, expected that of a generator of Sizes",
        ),
        (
            weights[..last].to_vec(),
            "generator.safetensors: linear.bias is cut off after 8 bytes, expected 12 bytes",
        ),
        ([&weights[..], b"x"].concat(), "the number of bytes after the weights is 1, expected 0"),
        (b"x".to_vec(), "the header is cut off after 1 bytes"),
    ] {
        replace(&path, "generator.safetensors", &bytes);
        let told = refused(&path);
        assert!(told.contains(expected), "{told}");
    }
    let (_folder, path) = written(&generated());
    let characters = fs::read(path.join("characters.txt")).unwrap();
    for (bytes, expected) in [
        ([&characters[..], b"ab\n"].concat(), "characters.txt: a line is \"ab\\n\", expected one character"),
        ([&characters[..], b"\n"].concat(), "characters.txt: a line is \"\\n\", expected one character"),
        (
            [&characters[..], b"f\n"].concat(),
            "characters.txt: a line is 'f' again, expected each character once",
        ),
        ([&characters[..], b"q\n"].concat(), "generator.safetensors: the header is"),
    ] {
        replace(&path, "characters.txt", &bytes);
        let told = refused(&path);
        assert!(told.contains(expected), "{told}");
    }
    for (sizes, expected) in [
        (json!({"char_dim": 4, "hidden": 24}), "generator.hidden is 24, expected a multiple of 16"),
        (json!({"char_dim": 0, "hidden": 16}), "generator.char_dim is 0, expected 1 to 65536"),
        (json!({"char_dim": 4, "hidden": 32}), "generator.safetensors: the header is of other weights"),
    ] {
        let (_folder, path) = written(&generated());
        let config = path.join("config.json");
        let mut document: Value = serde_json::from_slice(&fs::read(&config).unwrap()).unwrap();
        document["generator"] = sizes;
        replace(&path, "config.json", &serde_json::to_vec(&document).unwrap());
        let told = refused(&path);
        assert!(told.contains(expected), "{told}");
    }
}

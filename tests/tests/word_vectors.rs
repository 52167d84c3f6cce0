//! Word vectors in files of other programs: fastText's program, gensim and NumPy read what this project writes, and it
//! reads what they write.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use embeddings::Embedding;
use embeddings::files::{Format, read_with_outputs, write};
use tempfile::TempDir;
use tests::oracle::word_vectors;

/// Words of the corpus; the last one is not in the vocabulary.
const WORDS: [&str; 4] = ["w1", "w17", "gr\u{fc}n", "w1gr\u{fc}"];
/// Readers of a file with the same vectors, and whether the format has five digits only.
const READERS: [(&str, &str, bool); 6] = [
    ("x.bin", "fasttext", false),
    ("x.bin", "gensim-bin", false),
    ("x.vec", "gensim-text", true),
    ("x.txt", "gensim-text", false),
    ("x.w2v", "gensim-w2v", false),
    ("x.npy", "numpy", false),
];

/// Vectors that other programs trained; `None` if they are not installed.
fn trained() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let corpus = folder.path().join("corpus.txt");
    fs::write(&corpus, lines()).unwrap();
    word_vectors(&[OsStr::new("train"), corpus.as_ref(), folder.path().as_ref()])?;
    Some(folder)
}

fn lines() -> String {
    let mut lines = String::new();
    let mut state = 1u64;
    for _ in 0..400 {
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let word = (state >> 40) % 30;
            let _ = write!(lines, "w{word} ");
        }
        lines.push_str("gr\u{fc}n\n");
    }
    lines
}

/// The vectors of words as another program reads them.
fn theirs(reader: &str, path: &Path, words: &[&str]) -> Vec<Vec<f32>> {
    let mut arguments = vec![OsStr::new("vectors"), OsStr::new(reader), path.as_os_str()];
    arguments.extend(words.iter().map(OsStr::new));
    serde_json::from_str(&word_vectors(&arguments).unwrap()).unwrap()
}

#[track_caller]
fn are_close(name: &str, embedding: &Embedding, words: &[&str], theirs: &[Vec<f32>], tolerance: f32) {
    assert_eq!(words.len(), theirs.len());
    for (word, theirs) in words.iter().zip(theirs) {
        let ours = embedding.vector_of(word.as_bytes()).unwrap();
        let is_close = ours.iter().zip(theirs).all(|(ours, theirs)| (ours - theirs).abs() <= tolerance);
        assert!(is_close && ours.len() == theirs.len(), "{name}, {word}: {ours:?}, {theirs:?}");
    }
}

fn converted(embedding: &Embedding, outputs: Option<&[f32]>, path: PathBuf) -> PathBuf {
    write(&path, Format::of_name(&path).unwrap(), embedding, outputs).unwrap();
    path
}

#[test]
fn files_of_other_programs_have_the_same_vectors() {
    let Some(folder) = trained() else { return };
    for (name, reader, words) in [
        ("skipgram.bin", "fasttext", &WORDS[..]),
        ("cbow.bin", "fasttext", &WORDS[..3]),
        ("gensim.bin", "gensim-bin", &WORDS[..]),
        ("gensim.bin", "fasttext", &WORDS[..]),
        ("gensim.txt", "gensim-text", &WORDS[..3]),
        ("gensim.w2v", "gensim-w2v", &WORDS[..3]),
    ] {
        let path = folder.path().join(name);
        let (embedding, _) = read_with_outputs(&path).unwrap();
        are_close(name, &embedding, words, &theirs(reader, &path, words), 1e-7);
    }
}

#[test]
fn other_programs_read_the_same_vectors() {
    let Some(folder) = trained() else { return };
    let (embedding, outputs) = read_with_outputs(&folder.path().join("skipgram.bin")).unwrap();
    for name in ["x.bin", "x.vec", "x.w2v", "x.npy"] {
        converted(&embedding, outputs.as_deref(), folder.path().join(name));
    }
    // x.npy has written x.txt, the list of its words.
    fs::create_dir(folder.path().join("text")).unwrap();
    let text = converted(&embedding, None, folder.path().join("text/x.txt"));
    for (name, reader, is_short) in READERS {
        let path = if name == "x.txt" { text.clone() } else { folder.path().join(name) };
        let words = if name == "x.bin" { &WORDS[..] } else { &WORDS[..3] };
        let tolerance = if is_short { 1e-5 } else { 1e-7 };
        are_close(
            &format!("{name} by {reader}"),
            &embedding,
            words,
            &theirs(reader, &path, words),
            tolerance,
        );
    }
    // What is written once more is the same file.
    let again = converted(&embedding, outputs.as_deref(), folder.path().join("again.bin"));
    assert!(fs::read(again).unwrap() == fs::read(folder.path().join("x.bin")).unwrap());
    assert_eq!(read_with_outputs(&folder.path().join("x.bin")).unwrap(), (embedding, outputs));
}

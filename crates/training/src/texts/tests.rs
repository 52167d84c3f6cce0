mod formats;
mod lines;
mod splits;

use std::num::NonZeroUsize;
use std::path::Path;

use classifiers::{Block, Words};
use corpus::encoding::UTF_8;
use corpus::format::FormatOptions;
use corpus::ledger::Limits;
use tempfile::TempDir;

use super::*;

/// The words and the labels of a text.
type Text = (Vec<String>, Vec<String>);

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// Lines of these inputs in a format that is asked for as by the flags.
fn lines(inputs: &[&Path], asked: FormatOptions, threads: usize) -> Lines {
    Lines {
        inputs: inputs.iter().map(|input| input.to_str().unwrap().to_owned()).collect(),
        s3: S3Options::default(),
        format: asked.format().unwrap(),
        labels: Labels::PositiveFrom(4),
        fasttext: FastTextLine::Words,
        encoding: UTF_8,
        limits: Limits::default(),
        threads: NonZeroUsize::new(threads).unwrap(),
        rows: None,
    }
}

fn how(words: Words) -> Reading {
    Reading { words, ..Reading::default() }
}

/// Reads texts, and the messages that are printed.
fn read_told(lines: &Lines, words: Words) -> (Result<ReadTexts>, Vec<String>) {
    let mut told = Vec::new();
    let read = read(lines, how(words), |message| told.push(message.to_owned()));
    (read, told)
}

/// All texts in order. A word that is not in the dictionary is its hash.
fn seen(texts: &Texts) -> Vec<Text> {
    let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let (mut all, mut scratch) = (Vec::new(), Block::default());
    for block in 0..texts.n_blocks() {
        for text in texts.block(block, &mut scratch).unwrap().texts() {
            let words = text.words().map(|word| match word {
                Ok(word) => string(texts.dictionary.name(word)),
                Err(hash) => hash.to_string(),
            });
            let labels = text.labels.iter().map(|&label| string(texts.dictionary.labels().get(label)));
            all.push((words.collect(), labels.collect()));
        }
    }
    all
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

//! `vectors neighbours`, `analogy` and `similarity`.

use std::fmt::Write as _;
use std::path::Path;

use embeddings::analogies::{Accuracy, Analogies};
use embeddings::neighbours::{Method, Neighbour, Neighbours as Search};
use embeddings::{Embedding, files};
use program::exit::printable;
use serde::Serialize;
use training::Result;
use training::arguments::threads;
use training::print::{print_json, print_line};

use crate::arguments::{Analogy, Neighbours, Similarity};

/// The neighbours of a word.
#[derive(Serialize)]
struct Found<'a> {
    word: &'a str,
    neighbours: Vec<Near>,
}

#[derive(Serialize)]
struct Near {
    word: String,
    /// The cosine.
    similarity: f32,
}

/// The answers to an analogy.
#[derive(Serialize)]
struct Answered<'a> {
    words: &'a [String],
    method: Method,
    answers: Vec<Answer>,
}

#[derive(Serialize)]
struct Answer {
    word: String,
    score: f32,
}

/// The accuracy of a file of analogies.
#[derive(Serialize)]
struct Accuracies<'a> {
    file: &'a Path,
    method: Method,
    sections: &'a [Accuracy],
    total: &'a Accuracy,
}

/// Prints the nearest words of each word.
pub(super) fn neighbours(arguments: &Neighbours) -> Result<()> {
    let embedding = files::read(&arguments.vectors.model)?;
    let search = Search::new(&embedding);
    for word in &arguments.words {
        let found = search.of_word(word, arguments.top)?;
        if arguments.json {
            let near =
                |found: &Neighbour| Near { word: name(&embedding, found.word), similarity: found.score };
            print_json(&Found { word, neighbours: found.iter().map(near).collect() })?;
        } else {
            print_line(&format!("{word}\n{}", table(&embedding, &found)))?;
        }
    }
    Ok(())
}

/// Prints the answers to an analogy, or the accuracy of a file of analogies.
pub(super) fn analogy(arguments: &Analogy) -> Result<()> {
    let embedding = files::read(&arguments.vectors.model)?;
    let method = arguments.method;
    match (&arguments.questions, &arguments.words[..]) {
        (Some(file), _) => questions(&embedding, file, method, arguments.json),
        (None, words) => {
            let [a, b, c] = [0, 1, 2].map(|at| words.get(at).map_or("", String::as_str));
            let found = Search::new(&embedding).analogy([a, b, c], method, arguments.top)?;
            if arguments.json {
                let answer =
                    |found: &Neighbour| Answer { word: name(&embedding, found.word), score: found.score };
                let answers = found.iter().map(answer).collect();
                return print_json(&Answered { words, method, answers });
            }
            print_line(&format!("{a} is to {b} as {c} is to\n{}", table(&embedding, &found)))
        }
    }
}

fn questions(embedding: &Embedding, file: &Path, method: Method, is_json: bool) -> Result<()> {
    let analogies = Analogies::read(file, embedding)?;
    let all = analogies.answer(embedding, method, threads());
    let Some((total, sections)) = all.split_last() else { return Ok(()) };
    if is_json {
        return print_json(&Accuracies { file, method, sections, total });
    }
    let mut lines =
        format!("{:<30}  {:>8}  {:>7}  {:>7}  {:>9}", "section", "accuracy", "correct", "found", "questions");
    for Accuracy { section, questions, found, correct, accuracy } in &all {
        let accuracy = accuracy.map_or_else(|| "none".to_owned(), |accuracy| format!("{accuracy:.4}"));
        let _ = write!(lines, "\n{section:<30}  {accuracy:>8}  {correct:>7}  {found:>7}  {questions:>9}");
    }
    print_line(&lines)
}

/// Prints Spearman's rank correlation for each file.
pub(super) fn similarity(arguments: &Similarity) -> Result<()> {
    let embedding = files::read(&arguments.vectors.model)?;
    for file in &arguments.files {
        print_json(&embeddings::similarity::similarity(&embedding, file)?)?;
    }
    Ok(())
}

/// One line per word, with its score.
fn table(embedding: &Embedding, found: &[Neighbour]) -> String {
    let names = found.iter().map(|found| printable(&name(embedding, found.word)).into_owned());
    let names: Vec<String> = names.collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = names
        .iter()
        .zip(found)
        .map(|(name, found)| format!("  {name:<width$}  {:.4}", found.score))
        .collect();
    lines.join("\n")
}

fn name(embedding: &Embedding, word: u32) -> String {
    String::from_utf8_lossy(embedding.words.name(word)).into_owned()
}

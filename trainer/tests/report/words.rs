//! Reports of trainings of word vectors.

use std::fs;
use std::path::Path;

use super::{done, report};
use crate::command::{ended, program, trainer};

/// Sentences of two topics: words of one topic are neighbours.
fn text() -> String {
    let topics = [["kettle", "boiling", "steam", "water"], ["novel", "chapter", "author", "reader"]];
    let sentence = |at: usize| {
        let topic = topics[at % 2];
        let words: Vec<&str> = (0..8).map(|word| topic[(at / 2 + word * (1 + at % 3)) % 4]).collect();
        words.join(" ") + "\n"
    };
    (0..3000).map(sentence).collect()
}

fn embed(folder: &Path, name: &str, more: &[&str]) {
    let mut command = program("vectors");
    command.current_dir(folder).args([
        "train",
        "--input",
        "text",
        "--dim",
        "12",
        "--threads",
        "1",
        "--out",
        name,
    ]);
    done(command.args(more));
}

#[test]
fn a_training_of_word_vectors_has_curves_neighbours_and_a_map() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), text()).unwrap();
    fs::write(at("my<pairs>.txt"), "kettle steam 9\nkettle novel 1\nauthor chapter 8\n").unwrap();
    embed(folder.path(), "one", &["--similarity", "my<pairs>.txt"]);
    embed(folder.path(), "two", &["--char-ngrams", "3-4", "--buckets", "1000", "--seed", "2"]);
    let page = report(&[&at("one")]);
    for expected in [
        "Vectors of 8 words with 12 dimensions, from 120,000 tokens.",
        "<strong>Loss</strong>",
        "<strong>Tokens per second</strong>",
        "<strong>Similarity</strong>",
        "my&lt;pairs&gt;.txt",
        "3 of 3",
        "Neighbours of kettle",
        "The two principal components of 8 words.",
        "<title>novel</title>",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}");
    }
    // It has no classes, rows and epochs of rows.
    for other in ["Most wrong", "Held-out rows", "accuracy", "There is no test split", "my<pairs>"] {
        assert!(!page.contains(other), "{other}");
    }
    let both = report(&[&at("one"), &at("two")]);
    assert!(both.contains("2 trainings of word vectors.") && both.contains("--char-ngrams"), "{both}");
}

#[test]
fn chosen_words_have_neighbours_and_unknown_words_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), text()).unwrap();
    embed(folder.path(), "one", &[]);
    let of = |words: &[&str]| {
        let mut command = trainer();
        command.current_dir(folder.path()).args(["report", "one", "--words"]).args(words);
        command
    };
    done(&mut of(&["steam"]));
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    let table = page.split("Neighbours of steam").nth(1).unwrap().split("</table>").next().unwrap();
    // The other words of the topic come first.
    let order: Vec<usize> =
        ["kettle", "boiling", "water", "novel"].map(|word| table.find(word).unwrap()).into();
    assert!(order[..3].iter().all(|at| *at < order[3]), "{table}");
    assert!(!page.contains("Neighbours of kettle"));
    let (code, told) = ended(of(&["xyz"]));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("the word \"xyz\" is not in the vocabulary"), "{told}");
}

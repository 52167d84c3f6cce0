//! Word vectors, as a user evaluates, compares and converts them.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::command::{program, run};

const ROYAL: &str = "5 2\nman 1 0.1\nwoman 0.4 1\nking 3 0.2\nqueen 2.4 1.4\ntree -1 -1\n";

/// A folder with the file `royal.vec`.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("royal.vec"), ROYAL).unwrap();
    folder
}

/// Runs `vectors` in the folder: the exit code, standard output and standard error.
fn vectors(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = program("vectors");
    command.current_dir(folder).args(arguments);
    run(command)
}

#[track_caller]
fn said(folder: &Path, arguments: &[&str]) -> String {
    let (code, said, told) = vectors(folder, arguments);
    assert_eq!(code, Some(0), "{told}");
    said
}

#[track_caller]
fn object(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&said(folder, arguments)).unwrap()
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let (code, said, told) = vectors(folder, arguments);
    assert_eq!(said, "");
    (code, told)
}

#[test]
fn neighbours_are_printed_as_text_and_as_json() {
    let folder = folder();
    let expected = "king\n  man    0.9995\n  queen  0.8954\nTree\n  king  -0.7526\n";
    let first = said(folder.path(), &["neighbours", "royal.vec", "king", "--top", "2"]);
    let second = said(folder.path(), &["neighbours", "royal.vec", "Tree", "--top", "1"]);
    assert_eq!(first + &second, expected);
    let json = object(folder.path(), &["neighbours", "royal.vec", "king", "--top", "1", "--json"]);
    assert_eq!((&json["word"], &json["neighbours"][0]["word"]), (&json!("king"), &json!("man")));
}

#[test]
fn words_and_sections_cannot_control_a_terminal() {
    let folder = folder();
    let hostile = "\u{1b}[31mred\u{202e}\u{9b}2J";
    let file = format!("3 2\nking 1 0\n{hostile} 1 0.1\nqueen 0 1\n");
    fs::write(folder.path().join("hostile.vec"), file).unwrap();
    let shown = r"\u001b[31mred\u202e\u009b2J";
    let near = said(folder.path(), &["neighbours", "hostile.vec", "king", "--top", "2"]);
    assert_eq!(near, format!("king\n  {shown}  0.9950\n  queen                        0.0000\n"));
    let near = said(folder.path(), &["neighbours", "hostile.vec", hostile, "--top", "1"]);
    assert_eq!(near, format!("{shown}\n  king  0.9950\n"));
    let json = said(folder.path(), &["neighbours", "hostile.vec", "king", "--top", "1", "--json"]);
    assert!(json.contains(shown) && !json.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{json}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["neighbours"][0]["word"], hostile);
    let answer = said(folder.path(), &["analogy", "hostile.vec", "king", "queen", hostile, "--top", "1"]);
    assert!(answer.starts_with(&format!("king is to queen as {shown} is to\n")), "{answer}");
    fs::write(folder.path().join("questions"), format!(": {hostile}\nking queen king queen\n")).unwrap();
    let table = said(folder.path(), &["analogy", "hostile.vec", "--questions", "questions"]);
    assert!(table.contains(shown) && !table.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{table}");
}

#[test]
fn an_analogy_is_answered_with_both_methods() {
    let folder = folder();
    for method in ["add", "mul"] {
        let arguments =
            ["analogy", "royal.vec", "man", "king", "woman", "--method", method, "--top", "1", "--json"];
        let json = object(folder.path(), &arguments);
        assert_eq!(json["method"], method);
        assert_eq!(json["answers"][0]["word"], "queen", "{json}");
    }
    let text = said(folder.path(), &["analogy", "royal.vec", "man", "king", "woman"]);
    assert!(text.starts_with("man is to king as woman is to\n  queen  "), "{text}");
}

#[test]
fn a_file_of_analogies_has_an_accuracy_per_section() {
    let folder = folder();
    fs::write(
        folder.path().join("q.txt"),
        ": royal\nMan King Woman Queen\na b c d\n: b\nman king woman tree\n",
    )
    .unwrap();
    let json = object(folder.path(), &["analogy", "royal.vec", "--questions", "q.txt", "--json"]);
    let royal = json!({"section": "royal", "questions": 2, "found": 1, "correct": 1, "accuracy": 1.0});
    let total = json!({"section": "total", "questions": 3, "found": 2, "correct": 1, "accuracy": 0.5});
    assert_eq!((&json["sections"][0], &json["total"]), (&royal, &total));
    let text = said(folder.path(), &["analogy", "royal.vec", "--questions", "q.txt"]);
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words[1], ["royal", "1.0000", "1", "1", "2"]);
    assert_eq!(words[3], ["total", "0.5000", "1", "2", "3"]);
}

#[test]
fn a_file_without_a_question_whose_words_are_known_has_no_accuracy() {
    let folder = folder();
    for questions in ["", ": empty\n", ": unknown\na b c d\n"] {
        fs::write(folder.path().join("none.txt"), questions).unwrap();
        let json = object(folder.path(), &["analogy", "royal.vec", "--questions", "none.txt", "--json"]);
        assert_eq!(json["total"]["found"], json!(0), "{json}");
    }
}

#[test]
fn similarity_prints_one_object_per_file() {
    let folder = folder();
    fs::write(folder.path().join("a.txt"), "man king 9\nwoman queen 8\nman tree 1\nking boat 2\n").unwrap();
    fs::write(folder.path().join("b.txt"), "man\ttree\t9\r\nman\tking\t8\r\n").unwrap();
    let printed = said(folder.path(), &["similarity", "royal.vec", "a.txt", "b.txt"]);
    let expected = "{\"file\":\"a.txt\",\"spearman\":1.0,\"pairs\":4,\"found\":3}\n\
                    {\"file\":\"b.txt\",\"spearman\":-1.0,\"pairs\":2,\"found\":2}\n";
    assert_eq!(printed, expected);
}

#[test]
fn layouts_of_wordsim_and_simlex_have_three_pairs() {
    let folder = folder();
    for (name, text) in [
        ("ws.csv", "Word 1,Word 2,Human (mean)\nman,king,9\nwoman,queen,8\nman,tree,1\n"),
        (
            "simlex.txt",
            "word1\tword2\tPOS\tSimLex999\tconc(w1)\nman\tking\tN\t9\t3.1\nwoman\tqueen\tN\t8\t2.1\n\
             man\ttree\tN\t1\t1.0\n",
        ),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
        let json = object(folder.path(), &["similarity", "royal.vec", name]);
        assert_eq!((&json["pairs"], &json["found"], &json["spearman"]), (&json!(3), &json!(3), &json!(1.0)));
    }
}

#[test]
fn words_with_spaces_have_neighbours() {
    let folder = folder();
    let text =
        "\u{feff}at name@domain.com 0.1 0.2 0.3\n. . . 0.4 0.5 0.6\nplain 0.7 0.8 0.9\ntree 0.7 0.8 0.95\n";
    fs::write(folder.path().join("glove.txt"), text).unwrap();
    let printed = said(folder.path(), &["neighbours", "glove.txt", "tree", ". . .", "--top", "1"]);
    assert_eq!(printed, "tree\n  plain  0.9996\n. . .\n  tree  0.9992\n");
    let at = said(folder.path(), &["neighbours", "glove.txt", "at name@domain.com", "--top", "1"]);
    assert!(at.starts_with("at name@domain.com\n  "), "{at}");
}

#[test]
fn every_format_is_written_and_read() {
    let folder = folder();
    let neighbours = |model: &str| said(folder.path(), &["neighbours", model, "queen"]);
    let expected = neighbours("royal.vec");
    for out in ["a.vec", "b.txt", "c.w2v", "d.bin", "e.npy", "f"] {
        let (code, said, told) = vectors(folder.path(), &["convert", "royal.vec", "--out", out]);
        assert_eq!((code, said.as_str(), told), (Some(0), "", format!("vectors: wrote {out}")));
        assert_eq!(neighbours(out), expected, "{out}");
    }
    fs::create_dir(folder.path().join("training")).unwrap();
    fs::rename(folder.path().join("f"), folder.path().join("training/model")).unwrap();
    assert_eq!(neighbours("training"), expected);
    let (code, told) = refused(folder.path(), &["convert", "royal.vec", "--quiet", "--out", "a.vec"]);
    assert_eq!(code, Some(64));
    assert!(told.contains("a.vec: already exists: found a file, expected a new name"), "{told}");
}

#[test]
fn the_pip_loss_is_compared_with_zeros_and_random_vectors() {
    let folder = folder();
    let rotated = "4 2\nwoman -1 0.4\nman -0.1 1\nking -0.2 3\nqueen -1.4 2.4\n";
    fs::write(folder.path().join("rotated.vec"), rotated).unwrap();
    let json = object(folder.path(), &["pip", "royal.vec", "rotated.vec"]);
    assert_eq!((&json["words"], &json["ppmi"]), (&json!(4), &Value::Null));
    for kind in ["raw", "unit"] {
        let loss = |name: &str| json[kind][name].as_f64().unwrap();
        assert!(loss("loss") < 1e-6 && loss("zero") > 1.0 && loss("random") > 1.0, "{json}");
    }
}

#[test]
fn a_text_is_a_reference() {
    let folder = folder();
    let text = "The man, the king.\nA woman; a queen!\nking man\nunknown words\n".repeat(20);
    fs::write(folder.path().join("text.txt"), text).unwrap();
    let arguments = ["pip", "royal.vec", "--corpus", "text.txt", "--window", "2", "--shift", "1"];
    let json = object(folder.path(), &arguments);
    assert_eq!(
        (&json["words"], &json["ppmi"]["tokens"], &json["ppmi"]["dim"]),
        (&json!(4), &json!(120), &json!(2))
    );
    assert!(json["raw"]["loss"].as_f64().unwrap() > 0.0, "{json}");
    assert_eq!(json, object(folder.path(), &arguments));
}

#[test]
fn invalid_commands_are_refused() {
    let folder = folder();
    fs::write(folder.path().join("bad.vec"), "2 2\na 1 2\nb 1\n").unwrap();
    fs::write(folder.path().join("other.vec"), "1 1\nboat 1\n").unwrap();
    let cases: [(&[&str], i32, &str); 10] = [
        (&["neighbours", "missing.vec", "king"], 66, "missing.vec: not found, expected a file of a model"),
        (
            &["neighbours", "bad.vec", "a"],
            65,
            "bad.vec: line 3 is \"b 1\", expected a word and 2 finite values",
        ),
        (&["neighbours", "royal.vec", "boat"], 64, "the word \"boat\" is not in the vocabulary"),
        (&["analogy", "royal.vec", "man", "king"], 64, "see --help"),
        (
            &["similarity", "royal.vec", "royal.vec"],
            65,
            "royal.vec: line 1 is \"5 2\", expected two words and a score",
        ),
        (&["pip", "royal.vec", "other.vec"], 65, "the vocabularies have no word in common"),
        (&["pip", "royal.vec", "other.vec", "--window", "3"], 64, "--window has no effect without --corpus"),
        (&["pip", "royal.vec"], 64, "see --help"),
        (
            &["convert", "royal.vec", "--out", "x.gz"],
            78,
            "--out is x.gz, expected a file with the extension .vec, .txt",
        ),
        (&["convert", "royal.vec", "--out", "no/folder/x.vec"], 64, "no/folder"),
    ];
    for (arguments, expected, message) in cases {
        let (code, told) = refused(folder.path(), arguments);
        assert_eq!(code, Some(expected), "{told}");
        assert!(told.contains(message), "{told}");
    }
}

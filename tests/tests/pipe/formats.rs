//! The same reviews in any format give the same dataset, and the oracle parses each format as the mapper
//! does.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use tests::demo::{json_line, quoted, reviews};
use tests::files::assert_same_bytes;
use tests::oracle;
use tests::pipe::Pipe;

const ALL_STARS: [&str; 2] = ["--class-ratings", "1=1,2=2,3=3,4=4,5=5"];

#[test]
fn polarity_files_give_the_dataset_of_the_same_json() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &["--format", "polarity-csv"], |number, text, stars| {
        let unread = ["", "\"in, between\",", "plain,", ","][number % 4];
        let class = [format!("{stars}"), format!("\"{stars}\"")];
        format!("{},{unread}{}", class[number % 2], quoted(number, text))
    });
    assert_same_bytes(&dataset, &dataset_of_json(folder.path()), "polarity-csv");
}

#[test]
fn a_title_is_prepended_to_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["--format", "polarity-csv", "--with-title"];
    let dataset = agreed(folder.path(), &arguments, |number, text, stars| {
        // A text split at a space is restored when the title is prepended with a space.
        let (title, rest) = text.split_once(' ').unwrap_or((text, ""));
        format!("\"{stars}\",{},{}", quoted(number / 2, title), quoted(number, rest))
    });
    assert_same_bytes(&dataset, &dataset_of_json(folder.path()), "polarity-csv with titles");
}

#[test]
fn fasttext_files_give_the_dataset_of_the_same_json() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = agreed(folder.path(), &["--format", "fasttext"], |number, text, stars| {
        let more = ["", "__label__electronics ", "__label__1 __label__2 "][number % 3];
        format!("__label__{stars} {more}{}", text.replace('\n', " "))
    });
    assert_same_bytes(&dataset, &dataset_of_json(folder.path()), "fasttext");
}

fn dataset_of_json(folder: &Path) -> Vec<u8> {
    let raw: String = reviews().iter().map(|(text, stars)| json_line(text, *stars)).collect();
    fs::read(Pipe::default().dataset(raw.as_bytes(), &folder.join("json"))).unwrap()
}

/// The dataset of the reviews as written by `line`, after comparison with the oracle.
fn agreed(folder: &Path, format: &[&str], line: impl Fn(usize, &str, u64) -> String) -> PathBuf {
    let raw: String = reviews()
        .iter()
        .enumerate()
        .map(|(number, (text, stars))| line(number, text, *stars) + "\n")
        .collect();
    let file = folder.join("raw");
    fs::write(&file, &raw).unwrap();
    let arguments = [format, &ALL_STARS].concat();
    let mapper = arguments.iter().map(|&argument| argument.to_owned()).collect();

    let dataset = Pipe { mapper, ..Pipe::default() }.dataset(raw.as_bytes(), folder);

    oracle::agrees(&dataset, &[&file], &arguments.iter().map(OsStr::new).collect::<Vec<_>>());
    dataset
}

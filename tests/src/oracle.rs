//! Runs the oracle: a slow Python implementation of the contract, which shares no code with the programs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::programs::{Finished, run, without_hadoop};
use crate::skipped;

/// Checks that a dataset follows from these raw files, with the settings in its own attributes.
#[track_caller]
pub fn agrees(dataset: &Path, raw: &[&Path], arguments: &[&OsStr]) {
    let raw = raw.iter().map(|path| path.as_os_str());
    let all = [dataset.as_os_str()].into_iter().chain(raw).chain(arguments.iter().copied());
    let Some(verdict) = python("compare.py", all, b"") else { return };
    let agreement = verdict.succeeded().said();
    assert!(agreement.ends_with("agree; 0 reviews undecided\n"), "{agreement}");
}

/// Checks that a padded file has the rows of its dataset.
#[track_caller]
pub fn padded_agrees(padded: &Path, dataset: &Path) {
    let Some(verdict) = python("padded.py", [padded.as_os_str(), dataset.as_os_str()], b"") else { return };
    let agreement = verdict.succeeded().said();
    assert!(agreement.contains("agree, by h5py"), "{agreement}");
}

/// Checks that Parquet files beside a dataset have its rows, and the texts of these raw files, by every reader that
/// users have, and that their description is valid. `tables` are paths with the flags `--ids`, `--texts` and
/// `--croissant`.
#[track_caller]
pub fn tables_agree(dataset: &Path, tables: &[(&str, &Path)], raw: &[&Path]) {
    let tables = tables.iter().flat_map(|(flag, path)| [OsStr::new(*flag), path.as_os_str()]);
    let raw = raw.iter().map(|path| path.as_os_str());
    let arguments = [dataset.as_os_str()].into_iter().chain(raw).chain(tables);
    let Some(verdict) = python_of("tables", "tables.py", arguments, b"") else { return };
    let agreement = verdict.succeeded().said();
    let expected = "rows agree, by pandas, Polars, DuckDB, datasets; valid for mlcroissant\n";
    assert!(agreement.ends_with(expected), "{agreement}");
}

/// Checks that the texts of all partitions of a run are together the rows of the file `whole`, of this number.
#[track_caller]
pub fn texts_agree(whole: &Path, parts: &[PathBuf], rows: u64) {
    let arguments = [whole.as_os_str()].into_iter().chain(parts.iter().map(|path| path.as_os_str()));
    let Some(verdict) = python("texts.py", arguments, b"") else { return };
    assert_eq!(verdict.succeeded().said(), format!("{rows}\n"));
}

/// What fastText's program prints with these arguments of `program.py`; `None` if it is not installed.
#[track_caller]
pub fn fasttext(arguments: &[&OsStr]) -> Option<String> {
    let printed = python_of("ngrams", "program.py", arguments.iter().copied(), b"")?.succeeded();
    Some(String::from_utf8(printed.stdout).expect("the program prints UTF-8"))
}

/// What fastText's program, gensim and NumPy print of word vectors, with these arguments of `word_vectors.py`; `None` if
/// they are not installed.
#[track_caller]
pub fn word_vectors(arguments: &[&OsStr]) -> Option<String> {
    let printed = python_of("ngrams", "word_vectors.py", arguments.iter().copied(), b"")?.succeeded();
    Some(String::from_utf8(printed.stdout).expect("the programs print UTF-8"))
}

/// What `predict.py` of an exported folder prints for these texts; `None` if its Python packages are not installed.
#[track_caller]
pub fn predicted(folder: &Path, texts: &[u8]) -> Option<String> {
    let script = folder.join("predict.py");
    Some(python(script.to_str().expect("a test's path is UTF-8"), [], texts)?.succeeded().said())
}

/// The outputs of a file of ONNX for these texts, one object of JSON per line, if onnx finds it valid. `folder` is the export
/// with `predict.py`. `None` if onnx and onnxruntime are not installed.
#[track_caller]
pub fn onnx(model: &Path, folder: &Path, texts: &[u8]) -> Option<String> {
    Some(python("onnx_model.py", [model, folder].map(Path::as_os_str), texts)?.succeeded().said())
}

/// A line's entry in the ledger, and its record if it is a review; `None` if a character is too new for the
/// oracle.
pub type Judgement = Option<(String, Option<String>)>;

/// The judgement of each of these lines; `None` if the oracle is not installed.
#[track_caller]
pub fn judged(lines: &[u8], arguments: &[&str]) -> Option<Vec<Judgement>> {
    let judged = python("judge.py", arguments.iter().map(OsStr::new), lines)?.succeeded();
    let parsed = judged.stdout.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(|line| {
        let judged: Option<(String, Option<String>, Option<u8>)> =
            serde_json::from_slice(line).expect("the oracle prints a list of three for each line");
        judged.map(|(entry, text, rating)| {
            let review = text.zip(rating).filter(|(text, _)| !text.is_empty());
            (entry, review.map(|(text, rating)| record(&text, rating)))
        })
    });
    Some(parsed.collect())
}

fn record(text: &str, rating: u8) -> String {
    let votes = [1, 2, 3, 4, 5].map(|stars| if stars == rating { "1" } else { "0" });
    format!("{text}\t{}", votes.join(","))
}

/// The command that runs a script of the oracle; `None` if its Python packages are not installed, which is
/// allowed only on a developer's machine.
#[track_caller]
fn python<'a>(
    script: &str,
    arguments: impl IntoIterator<Item = &'a OsStr>,
    input: &[u8],
) -> Option<Finished> {
    python_of("test", script, arguments, input)
}

/// As [`python`], with the packages of `.deps/SET`.
#[track_caller]
fn python_of<'a>(
    set: &str,
    script: &str,
    arguments: impl IntoIterator<Item = &'a OsStr>,
    input: &[u8],
) -> Option<Finished> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = tests.with_file_name(".deps").join(set).join("bin/python");
    if !python.is_file() {
        skipped(&format!("oracle: {} is missing; bootstrap/laptop.sh test installs it", python.display()));
        return None;
    }
    // -B: no compiled files in the source folder.
    let mut command = without_hadoop(&python);
    Some(run(command.arg("-B").arg(tests.join("oracle").join(script)).args(arguments), input))
}

//! Compares the worked example of crates/dataset/FORMAT.md with the programs and the files they write.
//!
//! The blocks of the document marked `example-NAME` are either given (reviews, commands) or generated here:
//! the commands run on the reviews, and each block is generated from the files they write. The HDF5 library
//! reads the elements. Hashes, digests, checksums and splits are computed here as the document defines them,
//! without the project's code. UPDATE_GOLDEN=1 rewrites the generated blocks.
#![allow(clippy::unwrap_used)]

mod document;
mod file;
mod json;
mod texts;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use document::Document;
use file::File;
use tests::programs::folder_of_programs;
use texts::Text;

/// Values that differ per machine, as they appear in the document.
const RUN: &str = "file:///data/run";
const HOST: &str = "ip-10-0-3-9";
const COMMITTED_UNIX_S: &str = "1767225600";

#[test]
fn every_block_of_the_format_matches_the_programs() {
    let mut document = Document::open(&root().join("crates/dataset/FORMAT.md"));
    let folder = tempfile::tempdir().unwrap();
    run_example(&document, folder.path());
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let commit = read("run/commit/part-00000.json");
    let host = json::text(&commit, "host");
    let shards =
        [0, 1].map(|partition| folder.path().join(format!("run/data/part-0000{partition}.{host}.1.h5")));
    let shards = shards.map(|path| File::open(&path));
    let dataset = File::open(&folder.path().join("reviews.h5"));
    let padded = File::open_column(&folder.path().join("reviews.padded.h5"), "rows");
    let texts = texts::texts(&read("records"), &read("stop.txt"), &shards);

    let described: String = texts.iter().map(Text::description).collect();
    document.set("texts", &(read("records") + "\n" + &described));
    document.set("files", &[shards[0].listing(), padded.listing(), dataset.table().to_owned()].join("\n"));
    document.set("digests", &[dataset.chunk("tokens"), texts::digests(&texts, &shards, &dataset)].join("\n"));
    document.set("commit", &json::folded(&placed(&commit)));
    document.set("manifest", &json::folded(&placed(&read("reviews.manifest.json"))));
    let shown = python(document.get("reader"), folder.path());
    let shown = shown.unwrap_or_else(|| document.get("rows-by-h5py").to_owned());
    document.set("rows-by-h5py", &shown);
    document.finish();
}

#[test]
fn the_table_of_columns_has_the_chunk_sizes_of_the_code() {
    let document = fs::read_to_string(root().join("crates/dataset/FORMAT.md")).unwrap();
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let last_cell = |row: &str| row.trim_end_matches(" |").rsplit("| ").next().unwrap().to_owned();
    let said: Vec<(String, String)> = rows.map(|(name, row)| (name.to_owned(), last_cell(row))).collect();
    let says = |name: &str, rows: &str| said.iter().any(|(n, cell)| n == name && cell == rows);
    for (name, rows) in dataset::CHUNK_ROWS {
        let names = [name.to_owned(), format!("*/{name}")];
        assert!(names.iter().any(|name| says(name, &rows.to_string())), "{name}: {rows} rows");
        assert!(
            said.iter().filter(|(said, _)| names.contains(said)).all(|(_, cell)| *cell == rows.to_string()),
            "{name}: {rows} rows everywhere"
        );
    }
    assert!(says("rows", &format!("{} / (L+1), at least 1", dataset::PADDED_CHUNK_IDS)));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs the document's commands on its reviews in an empty folder.
fn run_example(document: &Document, folder: &Path) {
    fs::write(folder.join("reviews.json"), document.get("reviews")).unwrap();
    let mut path = folder_of_programs().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    bash.args(["-e", "-o", "pipefail", "-c", document.get("commands")]).env("PATH", path);
    output(bash.current_dir(folder));
}

/// The output of a script of the document in the example's folder; `None` without h5py.
fn python(script: &str, folder: &Path) -> Option<String> {
    let python = root().join(".deps/test/bin/python");
    if python.exists() {
        return Some(output(Command::new(python).args(["-c", script]).current_dir(folder)));
    }
    tests::skipped(&format!("the document's Python: no {}; run `make setup`", python.display()));
    None
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The record with the document's run, host and time in place of this machine's.
fn placed(record: &str) -> String {
    let (run, host) = (json::text(record, "run"), json::text(record, "host"));
    let placed = record
        .replace(&format!("\"{run}\""), &format!("\"{RUN}\""))
        .replace(&format!("\"{host}\""), &format!("\"{HOST}\""))
        .replace(&format!(".{host}."), &format!(".{HOST}."));
    json::with_numbers(&placed, "committed_unix_s", COMMITTED_UNIX_S)
}

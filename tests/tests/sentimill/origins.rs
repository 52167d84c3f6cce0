//! `--origins` names the file and the line of each review, by hash and then in the order of the input, whatever the
//! threads and the memory.

use std::fs;
use std::path::Path;

use corpus::digest::text_hash;
use serde_json::Value;
use tests::compressed::{bgzf, gzip, in_members};
use tests::demo::json_line;
use tests::programs::{Finished, run, without_hadoop};
use tests::skipped;

use crate::made::{Flags, Manner, Room};

const MANNERS: [Manner; 4] = [
    Manner::ALONE,
    Manner::SPARING,
    Manner { threads: 4, memory: "64MiB" },
    // Origins of one partition are sorted in several runs.
    Manner { threads: 2, memory: "1MiB" },
];
const WITH_ORIGINS: Flags<'_> =
    Flags { lines: &[], rows: &[], dataset: &["--origins", "out/origins.parquet"] };

/// A review, or a line that is none. Most reviews have the same text, so that their partition exceeds the memory.
fn line(number: usize) -> (Option<String>, String) {
    let end = ["\n", "\r\n", "\r"][number % 3];
    if number % 17 == 3 {
        return (None, [" ", "not json", "{\"overall\": 5}"][number / 17 % 3].to_owned() + end);
    }
    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
    let text = match number % 4 {
        0 => format!("fits {}{}{}", letter(number), letter(number / 26), letter(number / 676)),
        _ => "works well".to_owned(),
    };
    let written = json_line(&text, 1 + (number % 5) as u64).trim_end().to_owned() + end;
    (Some(text), written)
}

fn lines(n_lines: usize) -> Vec<u8> {
    (0..n_lines).flat_map(|number| line(number).1.into_bytes()).collect()
}

/// Files in the order of the input: plain and of several ranges, BGZF of several groups, gzip.
const FILES: [(&str, usize); 4] =
    [("plain.json", 30_000), ("data/members.json.gz", 20_000), ("data/one.json.gz", 3_000), ("last.json", 7)];

fn room() -> Room {
    let room = Room::new();
    for (name, n_lines) in FILES {
        let lines = lines(n_lines);
        let content = match name {
            "data/members.json.gz" => in_members(&lines, 40_000, bgzf),
            "data/one.json.gz" => gzip(&lines),
            _ => lines,
        };
        room.write(name, content);
    }
    room
}

/// Hash, file and line of all reviews, in order.
fn expected() -> Vec<(u64, String, u64)> {
    let mut origins = Vec::new();
    for (file, (name, n_lines)) in FILES.iter().enumerate() {
        for number in 0..*n_lines {
            if let Some(text) = line(number).0 {
                origins.push((text_hash(text.as_bytes()), file, number, (*name).to_owned()));
            }
        }
    }
    origins.sort();
    origins.into_iter().map(|(hash, _, number, name)| (hash, name, number as u64 + 1)).collect()
}

/// Prints a table as JSON lines.
const SHOW: &str = r#"
import json, sys, pyarrow.parquet as pq
table = pq.read_table(sys.argv[1])
assert [str(field.type) for field in table.schema] == ["uint64", "string", "uint64"], table.schema
for row in zip(*(column.to_pylist() for column in table.columns)):
    print(json.dumps(row))
"#;

fn by_python(script: &str, arguments: &[&Path], input: &[u8]) -> Option<Finished> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".deps").join("test/bin/python");
    if !python.is_file() {
        skipped(&format!("origins: {} is missing; bootstrap/laptop.sh test installs it", python.display()));
        return None;
    }
    Some(run(without_hadoop(&python).args(["-c", script]).args(arguments), input).succeeded())
}

fn read(path: &Path) -> Option<Vec<(u64, String, u64)>> {
    let shown = by_python(SHOW, &[path], b"")?.said();
    let row = |line: &str| -> (u64, String, u64) { serde_json::from_str(line).unwrap() };
    Some(shown.lines().map(row).collect())
}

#[test]
fn each_review_has_its_file_and_line_whatever_the_threads_and_the_memory() {
    let room = room();
    let mut written = Vec::new();
    for manner in MANNERS {
        let inputs = ["plain.json", "data", "last.json"];
        run(&mut room.sentimill(manner, &WITH_ORIGINS, &inputs), b"").succeeded();
        written.push((fs::read(room.path("out/origins.parquet")).unwrap(), manner));
        if written.len() == 1 {
            let Some(origins) = read(&room.path("out/origins.parquet")) else { return };
            assert!(origins == expected(), "{:?}", &origins[..3]);
        }
        fs::remove_dir_all(room.path("out")).unwrap();
    }
    for (bytes, manner) in &written {
        assert!(*bytes == written[0].0, "{manner:?}");
    }
}

#[test]
fn lines_of_standard_input_are_numbered_over_all_batches() {
    let room = Room::new();
    run(&mut room.sentimill(MANNERS[2], &WITH_ORIGINS, &["-"]), &lines(30_000)).succeeded();
    let Some(origins) = read(&room.path("out/origins.parquet")) else { return };
    let expected: Vec<_> = expected()
        .into_iter()
        .filter(|(_, name, _)| name == "plain.json")
        .map(|(hash, _, line)| (hash, "-".to_owned(), line))
        .collect();
    assert!(origins == expected);
}

#[test]
fn rows_of_a_table_are_numbered_from_one() {
    let room = Room::new();
    let to_parquet = r#"
import sys, pyarrow as pa, pyarrow.parquet as pq
rows = [{"reviewText": "same" if n % 3 else None, "overall": n % 7} for n in range(5000)]
pq.write_table(pa.Table.from_pylist(rows), sys.argv[1], row_group_size=700)
"#;
    let Some(_) = by_python(to_parquet, &[&room.path("a.parquet")], b"") else { return };
    let flags = Flags { lines: &["--bad-lines-max", "1"], ..WITH_ORIGINS };
    run(&mut room.sentimill(MANNERS[2], &flags, &["a.parquet"]), b"").succeeded();
    let origins = read(&room.path("out/origins.parquet")).unwrap();
    let is_review = |n: &u64| !n.is_multiple_of(3) && (1..=5).contains(&(n % 7));
    let expected = (0..5000).filter(is_review).map(|n| (text_hash(b"same"), "a.parquet".to_owned(), n + 1));
    assert!(origins == expected.collect::<Vec<_>>());
}

#[test]
fn the_table_names_the_files_whose_numbers_are_not_those_of_lines() {
    let room = Room::new();
    let to_parquet = r#"
import sys, pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"reviewText": ["row"], "overall": [5]}), sys.argv[1])
"#;
    let Some(_) = by_python(to_parquet, &[&room.path("a.parquet")], b"") else { return };
    room.write("b\\.json", format!("[{},{}]", json_line("one", 5), json_line("two", 5)));
    room.write("c.json.gz", gzip(format!("[{}]", json_line("three", 5)).as_bytes()));
    room.write("d.json", "\n".to_owned() + &json_line("four", 5));
    let inputs = ["a.parquet", "b\\.json", "c.json.gz", "d.json"];
    run(&mut room.sentimill(MANNERS[0], &WITH_ORIGINS, &inputs), b"").succeeded();
    let origins = read(&room.path("out/origins.parquet")).unwrap();
    let mut numbers: Vec<_> = origins.into_iter().map(|(_, file, number)| (file, number)).collect();
    numbers.sort();
    let expected = [("a.parquet", 1), ("b\\.json", 1), ("b\\.json", 2), ("c.json.gz", 1), ("d.json", 2)];
    assert_eq!(numbers, expected.map(|(file, number)| (file.to_owned(), number)));
    let show = r#"
import sys, pyarrow.parquet as pq
metadata = pq.read_metadata(sys.argv[1]).metadata
assert metadata[b"elements"].decode().split("\n") == ["b\\\\.json", "c.json.gz"], metadata
assert metadata[b"rows"] == b"a.parquet", metadata
"#;
    by_python(show, &[&room.path("out/origins.parquet")], b"");

    room.write("e.csv", "reviewText,overall\nfive,5\n");
    fs::remove_dir_all(room.path("out")).unwrap();
    let flags = Flags { lines: &["--format", "csv"], ..WITH_ORIGINS };
    run(&mut room.sentimill(MANNERS[0], &flags, &["e.csv"]), b"").succeeded();
    let origins = read(&room.path("out/origins.parquet")).unwrap();
    assert_eq!(origins[0].2, 1, "the header is not counted");
}

#[test]
fn no_table_is_left_if_no_dataset_is_made() {
    let room = Room::new();
    room.write("bad.json", "x\n".repeat(30) + &json_line("ok", 5));
    let flags = Flags { dataset: &["--origins", "origins.parquet"], ..Flags::default() };
    run(&mut room.sentimill(MANNERS[0], &flags, &["bad.json"]), b"").with_code(65);
    assert_eq!(room.files(), ["bad.json"]);
    room.write("good.json", json_line("ok", 5));
    room.write("origins.parquet", "my notes");
    let refused = run(&mut room.sentimill(MANNERS[0], &flags, &["good.json"]), b"").with_code(64);
    assert_eq!(
        refused.stderr,
        "sentimill: --origins origins.parquet: already exists; nothing was changed: move it away or choose another --origins\n"
    );
    assert_eq!(room.files(), ["bad.json", "good.json", "origins.parquet"]);
}

#[test]
fn the_table_states_the_fields_of_the_text() {
    let room = Room::new();
    room.write("reviews.json", "{\"a\": {\"b.c\": \"ok\"}, \"d\": 5}");
    let lines = ["--text-field", r"a.b\.c,e", "--rating-field", "d"];
    let flags = Flags { lines: &lines, ..WITH_ORIGINS };
    run(&mut room.sentimill(MANNERS[0], &flags, &["reviews.json"]), b"").succeeded();
    let show = r#"
import json, sys, pyarrow.parquet as pq
metadata = pq.read_metadata(sys.argv[1])
print(json.dumps({k.decode(): v.decode() for k, v in metadata.metadata.items() if k != b"ARROW:schema"}))
"#;
    let Some(shown) = by_python(show, &[&room.path("out/origins.parquet")], b"") else { return };
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown, serde_json::json!({ "format": "json", "text-field": r"a.b\.c,e" }));
}

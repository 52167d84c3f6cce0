//! Line ends, byte-order marks, tabs and damage in the input of the programs.

use std::iter;

use corpus::ledger::MapperCounts;
use serde_json::{Value, json};
use tests::compressed::{bzip2, gzip, zstd};
use tests::demo::DEMO;
use tests::files::assert_same_bytes;
use tests::hadoop::as_task;
use tests::lines::{ended_by, in_parts, sorted_as_c};
use tests::pipe::{Pipe, combined, mapped, reducer};
use tests::programs::{program, run};

use crate::made::{manifest, objects};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[test]
fn the_mapper_counts_match_the_corpus() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("mapper.json");
    mapped(&DEMO.raw, &counts);
    let counts: Value = serde_json::from_slice(&std::fs::read(counts).unwrap()).unwrap();
    assert_eq!(counts, serde_json::to_value(&DEMO.facts).unwrap());
}

#[test]
fn a_line_ends_at_lf_cr_or_crlf() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("mapper.json");
    let lines = DEMO.raw.iter().copied().filter(|&byte| byte != b'\r').collect::<Vec<u8>>();
    let ledger_of = |raw: &[u8]| -> (Vec<u8>, MapperCounts) {
        let records = mapped(raw, &counts);
        (records, serde_json::from_slice(&std::fs::read(&counts).unwrap()).unwrap())
    };
    let (records, ledger) = ledger_of(&lines);
    assert!(records == DEMO.records, "a CR before an LF changes no record");

    for end in [&b"\r"[..], b"\r\n"] {
        let found = ledger_of(&ended_by(&lines, end));
        assert!(found == (records.clone(), ledger), "lines that end in {:?}", end.escape_ascii().to_string());
    }
    let mixed: Vec<u8> = in_parts(&lines, 7)
        .iter()
        .zip([&b"\n"[..], b"\r\n", b"\r"].into_iter().cycle())
        .flat_map(|(part, end)| ended_by(part, end))
        .collect();
    assert!(ledger_of(&mixed) == (records.clone(), ledger), "all three mixed");
    let unended = lines.strip_suffix(b"\n").unwrap();
    assert!(ledger_of(unended) == (records, ledger), "a last line without an end");
}

#[test]
fn a_byte_order_mark_before_any_line_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("mapper.json");
    let marked: Vec<u8> =
        in_parts(&DEMO.raw, 50).iter().flat_map(|part| [BYTE_ORDER_MARK, part].concat()).collect();

    let records = mapped(&marked, &counts);

    assert!(records == DEMO.records);
    let counts: Value = serde_json::from_slice(&std::fs::read(counts).unwrap()).unwrap();
    assert_eq!(counts, serde_json::to_value(&DEMO.facts).unwrap());
}

#[test]
fn compressed_and_utf16_standard_input_is_decoded_as_a_file() {
    let utf8 = String::from_utf8_lossy(&DEMO.raw);
    let utf16: Vec<u8> = iter::once(0xfeff).chain(utf8.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for compress in [gzip, bzip2, zstd] {
        let mapped = run(&mut program("mapper"), &compress(&DEMO.raw)).succeeded();
        assert!(mapped.stdout == DEMO.records);
        let mapped = run(&mut program("mapper"), &compress(&utf16)).succeeded();
        assert!(mapped.stdout == DEMO.records);
    }
    assert!(run(&mut program("mapper"), &utf16).succeeded().stdout == DEMO.records);
    let whole = gzip(&DEMO.raw);
    let cut = run(&mut program("mapper"), &whole[..whole.len() - 1]).with_code(65);
    assert!(cut.stderr.ends_with("the end of the file; fetch the file again\n"), "{}", cut.stderr);
    // A Hadoop task gets inflated lines, so input that looks compressed is read as lines.
    let mapped = run(as_task(&mut program("mapper")), &gzip(b"{}")).succeeded();
    assert!(
        mapped.stderr.contains("mapper: no line is a review; the input is compressed"),
        "{}",
        mapped.stderr
    );
}

#[test]
fn lines_that_are_not_utf8_are_counted_in_counts_and_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let raw = b"{\"reviewText\": \"good\xff\", \"overall\": 5}\n{\"reviewText\": \"bad\", \"overall\": 1}\n";
    let dataset = Pipe::default().dataset(raw, folder.path());
    let mapper = manifest(&dataset).seal.ledger.mapper.unwrap();
    assert_eq!((mapper.lines, mapper.reviews, mapper.invalid_utf8), (2, 2, 1));
    let mut merge = tests::pipe::merge(&folder.path().join("run"), &dataset);
    let card = run(&mut merge, b"").succeeded().said();
    assert!(card.contains(" 1 lines with bytes that are not UTF-8 (invalid_utf8)\n"), "{card}");
    let mut milled = program("sentimill");
    milled.args(["--input", "-", "--out"]).arg(folder.path().join("milled.h5"));
    let milled = run(&mut milled, raw).succeeded();
    assert!(milled.stderr.contains("sentimill: invalid_utf8 in 1 of 2 lines"), "{}", milled.stderr);
}

#[test]
fn a_tab_after_every_record_changes_no_byte() {
    // Hadoop writes a tab after a key that has no value.
    let tabbed = |records: &[u8]| ended_by(records, b"\t\n");
    let folder = tempfile::tempdir().unwrap();
    let pipe = Pipe { partitions: 2, passes_before_sort: vec![1, 0], ..Pipe::default() };
    let combined = combined(&sorted_as_c(&tabbed(&DEMO.records)));

    let dataset = pipe.dataset_of_records(&tabbed(&combined), folder.path());

    assert_same_bytes(&dataset, &DEMO.dataset, "a tab behind every record");
}

#[test]
fn invalid_records_are_refused_by_the_reducer() {
    let unsorted = b"b\t0,0,0,0,1\na\t0,0,0,0,1\n";
    let refused: [(&[u8], &str); 7] = [
        (unsorted, "sort the records with `LC_ALL=C sort`"),
        (b"a\t0,0,0,0,1\nnonsense\n", "line 2 is not a record"),
        (b"a\t0,0,0,0\n", "line 1 is not a record"),
        (b"a\t0,0,0,0,0\n", "line 1 is not a record"),
        (b"a\t0,0,0,0,1\nb\t0,0,0,0,1", "line 2 is not a record: the input is cut off before the line end"),
        (b"\t0,0,0,0,1\n", "line 1 is not a record"),
        (b"\xff\t0,0,0,0,1\n", "line 1: the text is not UTF-8"),
    ];
    for (records, expected) in refused {
        let folder = tempfile::tempdir().unwrap();
        let finished = run(&mut reducer(folder.path(), 0, 1), records).with_code(65);
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().filter(|line| line.starts_with("reducer: ")).count(), 1);
        assert!(objects(folder.path()).is_empty());
    }
}

#[test]
fn an_input_of_bad_lines_fails_and_still_balances_its_counters() {
    let finished = run(&mut program("mapper"), &b"nonsense\n".repeat(1_000)).with_code(65);
    assert!(finished.stdout.is_empty());
    assert!(
        finished.stderr.contains("mapper: 1000 lines = 1000 bad_line + 0 reviews\n"),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.ends_with("or --format csv to sentimill for a table with a header\n"),
        "{}",
        finished.stderr
    );
}

#[test]
fn counts_of_another_run_do_not_balance() {
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("mapper.json");
    let one_more = json!({
        "lines": DEMO.facts.reviews + 1, "blank": 0, "line_too_long": 0, "bad_line": 0, "no_text": 0,
        "bad_rating": 0, "empty_text": 0, "reviews": DEMO.facts.reviews + 1,
    });
    std::fs::write(&counts, one_more.to_string()).unwrap();
    let run_folder = folder.path().join("run");
    Pipe::default().reduce(&sorted_as_c(&DEMO.records), &run_folder);
    let dataset = folder.path().join("reviews.h5");

    let mut merge = tests::pipe::merge(&run_folder, &dataset);
    let refused = run(merge.arg("--counts").arg(&counts), b"").with_code(65);

    assert!(refused.stderr.contains("the ledger does not balance"), "{}", refused.stderr);
    assert!(!dataset.exists() && !run_folder.join("manifest.json").exists());
}

//! Line ends, marks, tabs and damage in what the programs read.

use corpus::ledger::MapperCounts;
use serde_json::{Value, json};
use tests::demo::DEMO;
use tests::files::assert_same_bytes;
use tests::lines::{ended_by, in_parts, sorted_as_c};
use tests::pipe::{Pipe, combined, mapped, reducer};
use tests::programs::{program, run};

use crate::made::objects;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[test]
fn the_mapper_counts_what_the_corpus_has() {
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
fn a_tab_behind_every_record_changes_no_byte() {
    // Hadoop writes one behind a key that has no value.
    let tabbed = |records: &[u8]| ended_by(records, b"\t\n");
    let folder = tempfile::tempdir().unwrap();
    let pipe = Pipe { partitions: 2, passes_before_sort: vec![1, 0], ..Pipe::default() };
    let combined = combined(&sorted_as_c(&tabbed(&DEMO.records)));

    let dataset = pipe.dataset_of_records(&tabbed(&combined), folder.path());

    assert_same_bytes(&dataset, &DEMO.dataset, "a tab behind every record");
}

#[test]
fn records_that_the_reducer_cannot_trust_are_refused() {
    let unsorted = b"b\t0,0,0,0,1\na\t0,0,0,0,1\n";
    let refused: [(&[u8], &str); 7] = [
        (unsorted, "sort with LC_ALL=C"),
        (b"a\t0,0,0,0,1\nnonsense\n", "line 2 is no record"),
        (b"a\t0,0,0,0\n", "line 1 is no record"),
        (b"a\t0,0,0,0,0\n", "line 1 is no record"),
        (b"a\t0,0,0,0,1\nb\t0,0,0,0,1", "line 2 is no record: the input was cut off in it"),
        (b"\t0,0,0,0,1\n", "line 1 is no record"),
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
    assert!(finished.stderr.contains("reporter:counter:mapper,bad_line,1000\n"), "{}", finished.stderr);
    assert!(finished.stderr.ends_with("or raise --bad-lines-max\n"), "{}", finished.stderr);
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

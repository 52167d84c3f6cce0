//! `--rejects` lists the bad lines of all inputs, as `mapper --rejects` does, whatever the threads and the memory.

use std::fs;
use std::path::Path;

use tests::compressed::{bgzf, gzip, in_members};
use tests::demo::json_line;
use tests::programs::{program, run, without_hadoop};
use tests::skipped;

use crate::made::{Flags, Manner, Room};

const MANNERS: [Manner; 3] = [Manner::ALONE, Manner::SPARING, Manner { threads: 4, memory: "64MiB" }];

/// Files with bad lines of each kind: plain and of several ranges, gzip, and BGZF of several groups.
fn room() -> Room {
    let room = Room::new();
    room.write("plain.json", lines(20_000));
    room.write("data/one.json.gz", gzip(&lines(3_000)));
    room.write("data/members.json.gz", in_members(&lines(30_001), 40_000, bgzf));
    room.write("last.json", [&lines(10)[..], b"open \xFF end"].concat());
    room
}

/// Lines of which one in fifty is bad, with all line ends.
fn lines(n_lines: usize) -> Vec<u8> {
    let mut lines = Vec::new();
    for number in 0..n_lines {
        let bad: [&[u8]; 5] =
            [b"not json", b"{\"overall\": 5}", b"{\"reviewText\": \"x\"}", b"a\xFFb", b"\xEF\xBB\xBF[]"];
        match number % 50 {
            7 => lines.extend_from_slice(bad[number / 50 % bad.len()]),
            9 => {}
            _ => lines.extend(json_line(&format!("fits well number {}", number % 91), 4).trim_end().bytes()),
        }
        lines.extend_from_slice([&b"\n"[..], b"\r\n", b"\r"][number % 3]);
    }
    lines
}

const INPUTS: [&str; 3] = ["plain.json", "data", "last.json"];
const FILES: [&str; 4] = ["plain.json", "data/members.json.gz", "data/one.json.gz", "last.json"];

/// The bad lines according to the mapper.
fn of_mapper(room: &Room, files: &[&str]) -> Vec<u8> {
    let mut mapper = program("mapper");
    run(mapper.current_dir(room.path("")).arg("--rejects").args(files), b"").succeeded().stdout
}

#[test]
fn rejects_are_those_of_the_mapper_whatever_the_threads_and_the_memory() {
    let room = room();
    let expected = of_mapper(&room, &FILES);
    assert!(expected.iter().filter(|&&byte| byte == b'\n').count() > 1_000);
    for manner in MANNERS {
        let flags = Flags { dataset: &["--rejects", "out/bad.jsonl"], ..Flags::default() };
        let made = run(&mut room.sentimill(manner, &flags, &INPUTS), b"").succeeded();
        assert!(fs::read(room.path("out/bad.jsonl")).unwrap() == expected, "{manner:?}");
        let n_lines = expected.iter().filter(|&&byte| byte == b'\n').count();
        let notice = format!("sentimill: {n_lines} bad lines are in out/bad.jsonl\n");
        assert!(made.stderr.ends_with(&notice), "{}", made.stderr);
        fs::remove_dir_all(room.path("out")).unwrap();
    }
}

#[test]
fn lines_of_standard_input_are_rejected_in_order() {
    let room = Room::new();
    let input = lines(5_000);
    let flags = Flags { dataset: &["--rejects", "bad.jsonl"], ..Flags::default() };
    run(&mut room.sentimill(MANNERS[2], &flags, &["-"]), &input).succeeded();
    let expected = run(program("mapper").arg("--rejects"), &input).succeeded().stdout;
    assert!(fs::read(room.path("bad.jsonl")).unwrap() == expected);
}

#[test]
fn rows_of_a_table_are_rejected_with_their_values() {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".deps").join("test/bin/python");
    if !python.is_file() {
        return skipped(&format!(
            "rejects: {} is missing; bootstrap/laptop.sh test installs it",
            python.display()
        ));
    }
    let room = Room::new();
    let to_parquet = r#"
import sys, pyarrow as pa, pyarrow.parquet as pq
texts, stars = ["ok", None, "fine", "x", "y"], [5.0, 5.0, 7.0, None, 4.5]
pq.write_table(pa.table({"reviewText": texts, "overall": stars}), sys.argv[1], row_group_size=2)
pq.write_table(pa.table({"reviewText": texts, "overall": [str(star) for star in stars]}), sys.argv[2])
"#;
    let files = [room.path("a.parquet"), room.path("b.parquet")];
    run(without_hadoop(&python).args(["-c", to_parquet]).args(files), b"").succeeded();
    let flags =
        Flags { lines: &["--bad-lines-max", "1"], dataset: &["--rejects", "bad.jsonl"], ..Flags::default() };
    run(&mut room.sentimill(MANNERS[2], &flags, &["a.parquet", "b.parquet"]), b"").succeeded();
    let expected = r#"
{"reason":"no_text","file":"a.parquet","row":1,"text":null,"rating":5}
{"reason":"bad_rating","file":"a.parquet","row":2,"text":"fine","rating":7}
{"reason":"bad_rating","file":"a.parquet","row":3,"text":"x","rating":null}
{"reason":"bad_rating","file":"a.parquet","row":4,"text":"y","rating":4.5}
{"reason":"no_text","file":"b.parquet","row":1,"text":null,"rating":"5.0"}
{"reason":"bad_rating","file":"b.parquet","row":2,"text":"fine","rating":"7.0"}
{"reason":"bad_rating","file":"b.parquet","row":3,"text":"x","rating":"None"}
{"reason":"bad_rating","file":"b.parquet","row":4,"text":"y","rating":"4.5"}
"#;
    assert_eq!(fs::read_to_string(room.path("bad.jsonl")).unwrap(), expected.trim_start());
}

#[test]
fn rejects_are_written_although_too_many_lines_are_bad() {
    let room = Room::new();
    room.write("bad.json", "x\n".repeat(30) + &json_line("ok", 5));
    let flags = Flags { dataset: &["--rejects", "bad.jsonl"], ..Flags::default() };
    let refused = run(&mut room.sentimill(MANNERS[1], &flags, &["bad.json"]), b"").with_code(65);
    assert!(refused.stderr.contains("sentimill: 30 bad lines are in bad.jsonl\n"), "{}", refused.stderr);
    assert!(fs::read(room.path("bad.jsonl")).unwrap() == of_mapper(&room, &["bad.json"]));
    assert_eq!(room.files(), ["bad.json", "bad.jsonl"]);
}

#[test]
fn an_existing_file_is_kept_and_no_dataset_is_made() {
    let room = Room::new();
    room.write("reviews.json", json_line("ok", 5));
    room.write("bad.jsonl", "my notes");
    let flags = Flags { dataset: &["--rejects", "bad.jsonl"], ..Flags::default() };
    let refused = run(&mut room.sentimill(MANNERS[0], &flags, &["reviews.json"]), b"").with_code(64);
    let expected = "sentimill: --rejects bad.jsonl: already exists; nothing was changed: move it away or choose another --rejects\n";
    assert_eq!(refused.stderr, expected);
    assert_eq!(fs::read(room.path("bad.jsonl")).unwrap(), b"my notes");
    assert_eq!(room.files(), ["bad.jsonl", "reviews.json"]);
}

#[test]
fn an_input_without_a_bad_line_has_an_empty_file() {
    let room = Room::new();
    room.write("reviews.json", json_line("ok", 5));
    let flags = Flags { dataset: &["--rejects", "bad.jsonl"], ..Flags::default() };
    run(&mut room.sentimill(MANNERS[0], &flags, &["reviews.json"]), b"").succeeded();
    assert_eq!(fs::read(room.path("bad.jsonl")).unwrap(), b"");
}

#[test]
fn the_message_about_bad_lines_names_the_flag() {
    let room = Room::new();
    let lines = "x\n".repeat(10) + &"{\"overall\": 5}\n".repeat(11) + &json_line("ok", 5).repeat(10);
    room.write("bad.json", lines);
    let refused = run(&mut room.sentimill(MANNERS[0], &Flags::default(), &["bad.json"]), b"").with_code(65);
    assert!(refused.stderr.ends_with("; write them to a file with --rejects\n"), "{}", refused.stderr);
}

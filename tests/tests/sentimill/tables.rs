//! CSV, TSV, JSON arrays, Arrow and Parquet give the dataset of the JSON lines into which Python converts them.

use std::path::{Path, PathBuf};

use tests::compressed::{bgzf, gzip, in_members};
use tests::demo::{json_line, reviews};
use tests::programs::{Finished, program, run, without_hadoop};
use tests::skipped;

use crate::made::{Flags, Made, Manner, Room, told_by};

const MANNERS: [Manner; 2] =
    [Manner { threads: 3, memory: "512MiB" }, Manner { threads: 1, memory: "64MiB" }];

/// Writes the reviews of standard input in all forms, with awkward texts, and reads them back. `lines.jsonl` has the
/// JSON lines of all rows, `classes.jsonl` those of all rows whose ratings are classes.
const WRITE: &str = r#"
import csv, io, json, random, sys
import pyarrow as pa, pyarrow.feather as feather, pyarrow.parquet as parquet

random.seed(7)
rows = [(r["reviewText"], str(r["overall"])) for r in map(json.loads, sys.stdin.buffer)]
odd = ['say "hello", twice', '"', '""', 'a\r\nb\nc\rd', '\ttabs\tin\ttext', ',', "it's, well; fine", '"quoted"', 'x"y"z', '', ' ',
       'nul \0 byte', 'é\u2028ü \U0001f600 fine', '[{"a": 1}]', "\\", "\\n", '&amp;quot; <br> good', "'", '\ufeffmark']
rows += [(text + " " + random.choice(rows)[0], random.choice(["1", "2.0", " 3 ", "5", "six", "", "good"])) for text in odd * 20]
rows += [(text, "4") for text in odd]
titles = [random.choice(["fine", "", "so, so", 'my "title"']) for _ in rows]
header = ["id", "title", "text", "stars"]
table = [[str(n), titles[n], text, rating] for n, (text, rating) in enumerate(rows)]

for name, dialect in (("csv", dict()), ("tsv", dict(delimiter="\t")), ("quoted.csv", dict(quoting=csv.QUOTE_ALL, lineterminator="\n")),
                      ("semicolons.csv", dict(delimiter=";")), ("escaped.csv", dict(doublequote=False, escapechar="\\"))):
    with open(f"reviews.{name}", "w", newline="", encoding="utf-8") as out:
        csv.writer(out, **dialect).writerows([header] + table)
    with open(f"reviews.{name}", newline="", encoding="utf-8") as content:
        assert list(csv.reader(content, **dialect)) == [header] + table
objects = [dict(zip(header, row)) for row in table]
for name, form in ("json", dict()), ("pretty.json", dict(indent=1)), ("ascii.json", dict(ensure_ascii=False, indent=4)):
    with open(f"reviews.{name}", "w") as out:
        json.dump(objects, out, **form)
    assert json.load(open(f"reviews.{name}")) == objects
columns = {name: [o[name] for o in objects] for name in header}
arrow = pa.table(columns).cast(pa.schema({"id": pa.string(), "title": pa.dictionary(pa.int32(), pa.string()), "text": pa.large_string(), "stars": pa.string()}))
feather.write_feather(arrow, "reviews.feather", compression="lz4", chunksize=500)
with pa.ipc.new_stream("reviews.arrow", arrow.schema) as out:
    out.write_table(arrow, max_chunksize=300)
parquet.write_table(arrow, "reviews.parquet", row_group_size=700)
assert feather.read_table("reviews.feather").to_pylist() == objects == parquet.read_table("reviews.parquet").to_pylist()

def lines(name, classes):
    with open(name, "w") as out:
        for n, (text, rating) in enumerate(rows):
            out.write(json.dumps({"reviewText": titles[n] + " " + text, "overall": classes.get(rating, rating)}) + "\n")
lines("lines.jsonl", {})
lines("classes.jsonl", {"good": 5, "six": 1, "": 2})
"#;

/// The files, in the folder of the program, and the results for their JSON lines.
fn written(script: &str) -> Option<Room> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".deps").join("test/bin/python");
    if !python.is_file() {
        skipped(&format!("tables: {} is missing; bootstrap/laptop.sh test installs it", python.display()));
        return None;
    }
    let room = Room::new();
    let lines: String = reviews().iter().take(2000).map(|(text, stars)| json_line(text, *stars)).collect();
    let mut python = without_hadoop(&python);
    run(python.args(["-c", script]).current_dir(room.path("")), lines.as_bytes()).succeeded();
    Some(room)
}

#[track_caller]
fn check(room: &Room, arguments: &[&str], input: &str, stdin: &[u8], expected: &Made) {
    let flags = Flags { lines: arguments, ..Flags::default() };
    for manner in MANNERS {
        let made = run(&mut room.sentimill(manner, &flags, &[input]), stdin).succeeded();
        room.made(&made).assert_same(expected, &format!("{input} {arguments:?} {manner:?}"));
        std::fs::remove_dir_all(room.path("out")).unwrap();
    }
}

#[test]
fn tables_give_the_dataset_of_their_json_lines() {
    let Some(room) = written(WRITE) else { return };
    let content = |name: &str| std::fs::read(room.path(name)).unwrap();
    let accepted = ["--bad-lines-max", "0.5"];
    let named = ["--text-field", "title,text", "--rating-field", "stars"];
    let classes = ["--class-ratings", "good=5,six=1,=2"];
    let of_lines = |arguments: &[&str], name: &str| {
        let arguments = [arguments, &accepted[..]].concat();
        Flags { lines: &arguments, ..Flags::default() }.by_pipe(&content(name))
    };
    let expected = of_lines(&[], "lines.jsonl");
    let expected_of_classes = of_lines(&[], "classes.jsonl");
    expected_of_classes.assert_same(&of_lines(&classes, "lines.jsonl"), "classes of the mapper");
    let csv = ["--format", "csv"];
    for (format, input) in [
        (&csv[..], "reviews.csv"),
        (&csv, "reviews.quoted.csv"),
        (&csv, "reviews.semicolons.csv"),
        (&csv, "reviews.escaped.csv"),
        (&["--format", "tsv"], "reviews.tsv"),
        (&[], "reviews.json"),
        (&[], "reviews.pretty.json"),
        (&[], "reviews.ascii.json"),
        (&[], "reviews.feather"),
        (&[], "reviews.arrow"),
        (&[], "reviews.parquet"),
    ] {
        let arguments = [format, &named, &accepted].concat();
        check(&room, &arguments, input, b"", &expected);
        let arguments = [&arguments[..], &classes].concat();
        check(&room, &arguments, input, b"", &expected_of_classes);
    }
    // By numbers of columns, compressed, in members, and from standard input.
    let numbered = [&csv[..], &["--text-field", "2,text", "--rating-field", "4"], &accepted].concat();
    room.write("reviews.csv.gz", in_members(&content("reviews.csv"), 50_000, gzip));
    check(&room, &numbered, "reviews.csv.gz", b"", &expected);
    check(&room, &numbered, "-", &in_members(&content("reviews.quoted.csv"), 30_000, bgzf), &expected);
    let arguments = [&named[..], &accepted].concat();
    check(&room, &arguments, "-", &gzip(&content("reviews.pretty.json")), &expected);
}

/// Labels as many datasets have them: 0 and 1, false and true.
const LABELS: &str = r#"
import json, sys, pyarrow as pa, pyarrow.feather as feather, pyarrow.parquet as parquet
rows = [json.loads(line) for line in sys.stdin.buffer]
texts, labels = [row["reviewText"] for row in rows], [int(row["overall"] >= 4) for row in rows]
with open("lines.jsonl", "w") as out:
    for text, label in zip(texts, labels):
        out.write(json.dumps({"reviewText": text, "overall": 5 if label else 1}) + "\n")
for name, values in ("numbers", labels), ("floats", [float(label) for label in labels]), ("booleans", [bool(label) for label in labels]):
    table = pa.table({"reviewText": texts, "overall": values})
    feather.write_feather(table, name + ".feather", compression="zstd")
    parquet.write_table(table, name + ".parquet")
    with open(name + ".json", "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
"#;

#[test]
fn numbers_and_booleans_are_classes_if_their_stars_are_listed() {
    let Some(room) = written(LABELS) else { return };
    let expected = Flags::default().by_pipe(&std::fs::read(room.path("lines.jsonl")).unwrap());
    let classes = ["--class-ratings", "0=1,1=5,false=1,true=5"];
    for name in ["numbers", "floats", "booleans"] {
        for ending in ["feather", "parquet", "json"] {
            check(&room, &classes, &format!("{name}.{ending}"), b"", &expected);
        }
        let lines = std::fs::read(room.path(&format!("{name}.json"))).unwrap();
        Flags { lines: &classes, ..Flags::default() }.by_pipe(&lines).assert_same(&expected, name);
    }
}

fn sentimill(folder: PathBuf, arguments: &[&str]) -> Finished {
    run(program("sentimill").current_dir(folder).args(arguments), b"")
}

#[test]
fn bad_records_are_counted_and_reported_by_their_first_line() {
    let room = Room::new();
    let table = "text,stars\n\"good,\nvery\",5\n\ntoo,many,5\nnot \"so\",1\n\"open,3\nfine,4\n,2\ntext,stars\nbad,6\nb\u{0}d,1\nb\u{e9}d,2\n";
    let mut table = table.as_bytes().to_vec();
    let at = table.windows(2).position(|bytes| bytes == b"\xc3\xa9").unwrap();
    table.remove(at);
    room.write("reviews.csv", &table);
    let arguments = ["reviews.csv", "--format", "csv", "--text-field", "text", "--rating-field", "stars"];
    let made = sentimill(room.path(""), &arguments).succeeded();
    let expected = [
        "reviews.csv:5: bad_line (byte 27)",
        "reviews.csv:7: bad_line (byte 49)",
        "reviews.csv:11: bad_rating (byte 78)",
    ];
    assert_eq!(told_by("sentimill", &made.stderr, "reviews.csv"), expected, "{}", made.stderr);
    let manifest = std::fs::read(room.path("reviews.manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let counts = &manifest["seal"]["ledger"]["mapper"];
    let expected = serde_json::json!({
        "lines": 11, "blank": 2, "line_too_long": 0, "bad_line": 2, "no_text": 0, "bad_rating": 1, "empty_text": 1,
        "reviews": 5, "invalid_utf8": 1, "table_lines": 12,
    });
    assert_eq!(*counts, expected);
}

#[test]
fn bad_elements_are_counted_and_reported_by_their_line() {
    let room = Room::new();
    room.write(
        "reviews.json",
        "[{\"reviewText\": \"ok\", \"overall\": 4}, 7,\n {\"overall\": 5},\n  {\"reviewText\": \"no\",\n \"overall\": 1}\n, {\"a\": x}]",
    );
    let made = sentimill(room.path(""), &["reviews.json"]).succeeded();
    let expected = [
        "reviews.json:1: bad_line (byte 37)",
        "reviews.json:2: no_text (byte 41)",
        "reviews.json:5: bad_line (byte 97)",
    ];
    assert_eq!(told_by("sentimill", &made.stderr, "reviews.json"), expected, "{}", made.stderr);
    room.write("cut.json", "[{\"reviewText\": \"ok\", \"overall\": 4},\n{\"reviewText\": \"ok\", ");
    let refused = sentimill(room.path(""), &["cut.json"]).with_code(65);
    let expected = "sentimill: cut.json: the JSON array is cut off: it ends at byte 58, after 1 elements, without a ]; fetch the file again\n";
    assert!(refused.stderr.ends_with(expected), "{}", refused.stderr);
    assert!(!room.path("cut.h5").exists());
}

#[test]
fn a_wrong_column_or_format_is_named_in_the_refusal() {
    let room = Room::new();
    room.write("reviews.csv", "text;stars\n".to_owned() + &"good;5\n".repeat(30));
    let refusal = |arguments: &[&str], code| {
        let refused = sentimill(room.path(""), &[&["reviews.csv"], arguments].concat()).with_code(code);
        refused.stderr.lines().last().unwrap().to_owned()
    };
    assert_eq!(
        refusal(&["--format", "csv", "--text-field", "text"], 65),
        "sentimill: reviews.csv: found no column \"overall\" among text, stars; name the right column with --rating-field"
    );
    assert_eq!(
        refusal(&["--format", "csv", "--text-field", "text", "--delimiter", ","], 65),
        "sentimill: reviews.csv: found a header whose columns are separated by semicolons, expected commas; pass \
         --delimiter ';'"
    );
    assert_eq!(
        refusal(&["--format", "json", "--quote", "none"], 64),
        "sentimill: --quote is not used by the format json, only by csv or tsv; remove it or choose another --format; see \
         --help"
    );
    room.write("reviews.csv", "text,stars\n".to_owned() + &"good,5,1\n".repeat(30));
    assert_eq!(
        refusal(&["--format", "csv", "--text-field", "body"], 65),
        "sentimill: reviews.csv: found no column \"body\" among text, stars; name the right column with --text-field"
    );
    let named = ["--format", "csv", "--text-field", "text", "--rating-field", "stars"];
    assert!(
        refusal(&named, 65)
            .contains("most records do not have the columns of the header; set --delimiter and --quote")
    );
    room.write("reviews.csv", "text,stars\n".to_owned() + &"good,positive\n".repeat(30));
    assert!(refusal(&named, 65).contains(
        "most lines have no rating from 1 to 5 in the field \"stars\": \"positive\" 30; set their stars with \
             --class-ratings=positive=STARS; or name another field with --rating-field"
    ));
    let classes = [&named[..], &["--class-ratings", "good=5"]].concat();
    assert!(
        refusal(&classes, 65).contains(
            "classes without a rating: \"positive\" 30; set their stars with --class-ratings=good=5,positive=STARS"
        )
    );
    assert!(refusal(&["--format", "json"], 65).ends_with("or --format csv for a table with a header"));
    // A polarity file has no header.
    room.write("reviews.csv", "\"2\",\"works well\"\n".repeat(30));
    assert!(refusal(&[], 65).contains("--format polarity-csv"), "{}", refusal(&[], 65));
}

#[test]
fn the_extension_of_all_files_is_their_format_unless_a_flag_names_it() {
    let room = Room::new();
    room.write("more/a.csv", "reviewText,overall\nfine,4\n\"good, but late\",3\n");
    room.write("more/b.csv.gz", gzip(b"reviewText,overall\nbad,1\n"));
    room.write("c.tsv", "overall\treviewText\n5\tvery good\n");
    room.write("d.jsonl", "{\"reviewText\": \"works\", \"overall\": 5}\n");
    room.write("e", "{\"reviewText\": \"broke\", \"overall\": 1}\n");
    let ledger = |inputs: &[&str]| {
        let made = sentimill(room.path(""), &[inputs, &["--force", "--out", "made.h5"]].concat()).succeeded();
        made.said().lines().find(|line| line.starts_with("ledger")).unwrap().to_owned()
    };
    for (inputs, n) in [
        (&["more/a.csv"][..], 2),
        (&["more"], 3),
        (&["more/*.gz"], 1),
        (&["c.tsv"], 1),
        (&["d.jsonl", "e"], 2),
    ] {
        assert!(ledger(inputs).ends_with(&format!("{n} reviews")), "{inputs:?}: {}", ledger(inputs));
    }
    for (inputs, found) in
        [(&["d.jsonl", "c.tsv"][..], "d.jsonl and c.tsv"), (&["more", "e", "c.tsv"], "more/a.csv and c.tsv")]
    {
        let refused = sentimill(room.path(""), inputs).with_code(64);
        let expected = format!(
            "sentimill: {found}: found files whose extensions are of different formats, expected one format; pass --format if \
             both have the same, or pass the files of one format\n"
        );
        assert!(refused.stderr.ends_with(&expected), "{}", refused.stderr);
    }
    room.write("lines.csv", "{\"reviewText\": \"works\", \"overall\": 5}\n");
    assert!(ledger(&["lines.csv", "d.jsonl", "--format", "json"]).ends_with("2 reviews"));
}

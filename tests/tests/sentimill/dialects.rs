//! Tables that other programs write: the dialect is found, and a quote hides no review.

use serde_json::{Value, json};
use tests::programs::{Finished, program, run};

use crate::made::Room;

/// `sentimill` on a table with the columns `text` and `stars`.
fn sentimill(room: &Room, input: &str, arguments: &[&str], stdin: &[u8]) -> Finished {
    let named = ["--text-field", "text", "--rating-field", "stars", "--force", "--out", "made.h5"];
    run(program("sentimill").current_dir(room.path("")).arg(input).args(named).args(arguments), stdin)
}

/// The ratings of all reviews, the ledger of lines and the dialects, with what was told of the input.
#[derive(Debug, PartialEq)]
struct InputLedger {
    ratings: Vec<u64>,
    lines: Value,
    tables: Value,
    told: Vec<String>,
}

fn made(room: &Room, input: &str, arguments: &[&str], stdin: &[u8]) -> InputLedger {
    let finished = sentimill(room, input, &[arguments, &["--json"]].concat(), stdin).succeeded();
    let report: Value = serde_json::from_slice(&finished.stdout).unwrap();
    let ratings = report["card"]["ratings"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    let prefix = format!("sentimill: {input}");
    let told =
        finished.stderr.lines().filter_map(|line| line.strip_prefix(&prefix)).map(str::to_owned).collect();
    let ledger = &report["ledger"];
    InputLedger { ratings, lines: ledger["mapper"].clone(), tables: ledger["tables"].clone(), told }
}

fn words(number: usize) -> String {
    let letter = |digit: u8| char::from(digit - b'0' + b'a');
    number.to_string().bytes().map(letter).collect()
}

#[test]
fn the_dialect_of_a_table_is_found_and_told() {
    let room = Room::new();
    let escaped: String =
        (0..30).map(|n| format!("\"she said \\\"number {}\\\", no\",{}\n", words(n), n % 5 + 1)).collect();
    let escaped = "text,stars\n".to_owned() + &escaped;
    let characters = "text\tstars\n\"great\t5\nfine\t4\nok\t3\nbad lamp\"\t1\nlast\t2\n";
    let doubled =
        "\u{FEFF}\"text\"|\"stars\"\r\n\"one, \"\"two\"\"|three\r\nfour\"|\"5\"\r\n\"six\"|\"1\"\r\n";
    let told = |dialect: &str| vec![format!(": columns separated by {dialect}")];
    for (format, content, ratings, told, (delimiter, quote)) in [
        ("tsv", characters, [1, 1, 1, 1, 1], told("tabs, quotes are characters"), ("tab", "none")),
        ("csv", characters, [1, 1, 1, 1, 1], told("tabs, quotes are characters"), ("tab", "none")),
        (
            "csv",
            "text;stars\n\"one; two\";5\nthree;1\n",
            [1, 0, 0, 0, 1],
            told("semicolons"),
            (";", "double"),
        ),
        ("csv", "sep=,\ntext,stars\none,5\nthree,1\n", [1, 0, 0, 0, 1], vec![], (",", "double")),
        (
            "csv",
            "sep=;\r\ntext;stars\r\none, two;5\r\n",
            [0, 0, 0, 0, 1],
            told("semicolons"),
            (";", "double"),
        ),
        ("csv", &escaped, [6, 6, 6, 6, 6], told("commas, backslashes are escapes"), (",", "backslash")),
        ("tsv", doubled, [1, 0, 0, 0, 1], told("vertical bars"), ("|", "double")),
        (
            "csv",
            "stars,text\n5,\"one\n2,two\n1,three\"\n4,four\n",
            [1, 1, 0, 1, 1],
            told("commas, quotes are characters"),
            (",", "none"),
        ),
        ("csv", "text,stars\n\"one,\ntwo\",5\nthree,1\n", [1, 0, 0, 0, 1], vec![], (",", "double")),
    ] {
        room.write("table.csv", content);
        let dialects = json!([{ "delimiter": delimiter, "quote": quote, "files": 1 }]);
        for (input, stdin) in [("table.csv", &b""[..]), ("-", content.as_bytes())] {
            let found = made(&room, input, &["--format", format], stdin);
            assert_eq!(
                (&found.ratings[..], &found.told, &found.tables),
                (&ratings[..], &told, &dialects),
                "{content}"
            );
            assert_eq!(found.lines["bad_line"], 0);
        }
        // What was found can be set, and is not told then.
        let set = ["--format", format, "--delimiter", delimiter, "--quote", quote];
        let found = made(&room, "table.csv", &set, b"");
        assert_eq!(
            (&found.ratings[..], found.told, found.tables),
            (&ratings[..], vec![], dialects),
            "{content}"
        );
    }
}

#[test]
fn a_text_that_begins_with_a_quote_takes_no_rating_of_others() {
    let room = Room::new();
    let line = |n: usize| match n {
        10 => format!("\"plain lamp {}\t{}\n", words(n), n % 5 + 1),
        1500 => format!("plain lamp {}\"\t{}\n", words(n), n % 5 + 1),
        n => format!("plain lamp {}\t{}\n", words(n), n % 5 + 1),
    };
    let lines: String = (0..2000).map(line).collect();
    room.write("table.tsv", "text\tstars\n".to_owned() + &lines);
    let found = made(&room, "table.tsv", &["--format", "tsv"], b"");
    assert_eq!(found.ratings, [400; 5]);
    assert_eq!((&found.lines["reviews"], &found.lines["table_lines"]), (&json!(2000), &json!(2000)));
    // By RFC 4180, as it was set, one review has the texts of 1,491.
    let found = made(&room, "table.tsv", &["--format", "tsv", "--quote", "double"], b"");
    assert_eq!((&found.lines["reviews"], &found.lines["table_lines"]), (&json!(510), &json!(2000)));
}

#[test]
fn hidden_records_far_behind_the_first_bytes_are_read_and_told() {
    let room = Room::new();
    let plain: String = (0..150_000).map(|n| format!("plain\t{}\n", n % 5 + 1)).collect();
    let hidden = "\"odd\t5\nfine\t4\nbad\"\t1\n";
    let text = "\"one\n\ttwo\"\t5\n";
    room.write("table.tsv", format!("text\tstars\n{plain}{hidden}{plain}{text}"));
    let found = made(&room, "table.tsv", &["--format", "tsv"], b"");
    assert_eq!(
        found.lines,
        json!({
            "lines": 300_004, "blank": 0, "line_too_long": 0, "bad_line": 1, "no_text": 0, "bad_rating": 0,
            "empty_text": 0, "reviews": 300_003, "table_lines": 300_005,
        })
    );
    let expected = [
        ": 1 record contains what looks like further records, which are read in its place; pass --quote none if quotes are \
         characters, or --quote double if not",
        ":150002: bad_line (byte 1200011)",
    ];
    assert_eq!(found.told, expected);
}

#[test]
fn tables_of_different_dialects_are_refused_with_the_remedy() {
    let room = Room::new();
    std::fs::create_dir(room.path("tables")).unwrap();
    room.write("tables/a.csv", "text,stars\n\"one, two\",5\n");
    room.write("tables/b.csv", "text;stars\n\"one; two\";5\n");
    let refused = sentimill(&room, "tables", &["--format", "csv"], b"").with_code(65);
    assert_eq!(
        refused.stderr.lines().last().unwrap(),
        "sentimill: tables/b.csv: found columns separated by semicolons, unlike tables/a.csv (columns separated by \
         commas), expected one dialect; read them by separate commands, or write them with one delimiter"
    );
    assert!(!room.path("made.h5").exists());
}

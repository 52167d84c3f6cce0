//! Shapes of JSON from outside: lists of reviews, scales, unrated reviews, constants of Python. Each is read as the oracle
//! and the pipe read it, or is refused with what was found and the remedy.

use std::ffi::OsStr;
use std::path::PathBuf;

use tests::demo::reviews;
use tests::oracle;
use tests::programs::{Finished, program, run};

use crate::made::{Flags, Manner, Room};

const MANNERS: [Manner; 2] =
    [Manner { threads: 3, memory: "512MiB" }, Manner { threads: 1, memory: "64MiB" }];

fn sentimill(folder: PathBuf, arguments: &[&str]) -> Finished {
    run(program("sentimill").current_dir(folder).args(arguments), b"")
}

/// The number of a review as a word.
fn word(n: usize) -> String {
    format!("{n}").bytes().map(|digit| char::from(b'a' + digit - b'0')).collect()
}

/// Lines of 40 numbered reviews.
fn lines(line: impl Fn(usize, &str) -> String) -> String {
    (0..40).map(|n| line(n, &word(n)) + "\n").collect()
}

#[test]
fn lists_scales_and_unrated_reviews_are_read_as_the_oracle_and_the_pipe_read_them() {
    type Write = fn(usize, &str) -> String;
    let cases: [(&[&str], Write); 6] = [
        (
            &["--text-field", "title,data.reviews[].text", "--rating-field", "data.reviews[].stars"],
            |n, word| match n % 4 {
                0 => format!(r#"{{"data": {{"reviews": []}}, "title": "{word}"}}"#),
                1 => format!(
                    r#"{{"data": {{"reviews": [{{"text": "{word}", "stars": 4}}, {{"stars": 5}}]}}, "title": 7, "x": NaN}}"#
                ),
                2 => format!(
                    "{{'title': u'{word}', 'data': {{'reviews': [{{'text': 'a{word}', 'stars': 2}}, {{'text': 'it\\'s', 'stars': 5L}},]}}}}"
                ),
                _ => format!(
                    r#"{{"title": "t{word}", "data": {{"reviews": [{{"text": "x", "stars": 1}},{{"text": "y\u00e9"}}, null]}}}}"#
                ),
            },
        ),
        (&["--text-field", "comments[]", "--rating-field", "stars"], |n, word| {
            format!(r#"{{"comments": ["{word}", "good {word}", {n}], "stars": {}}}"#, n % 5 + 1)
        }),
        (&["--rating-scale", "1-10", "--unrated", "null,0"], |n, word| {
            let stars =
                [&format!("{}", n % 11)[..], "\"7/10\"", "null", "\"3,5\"", "9.25", "\"\""][n % 6].to_owned();
            format!(r#"{{"reviewText": "{word}", "overall": {stars}}}"#)
        }),
        (&["--rating-scale=0-5", "--unrated=n/a"], |n, word| {
            let stars = ["★★★★☆", "4 stars", "4.0 out of 5 stars", "80 %", "n/a", "2,5", "⭐⭐", "so"][n % 8];
            format!(r#"{{"reviewText": "{word}", "overall": "{stars}"}}"#)
        }),
        (&["--class-ratings", r"true=5,false=1,5\,0=5,so\, so=3"], |n, word| {
            let python = ["True", "False", "None", "'5,0'", "'so, so'", "4"][n % 6];
            match n % 2 {
                0 => format!("{{'reviewText': '{word}', 'overall': {python}}}"),
                _ => format!(
                    r#"{{"reviewText": "{word}", "overall": {}}}"#,
                    ["true", "false", "\"True\"", "3"][n / 2 % 4]
                ),
            }
        }),
        (&["--unrated", "NaN"], |n, word| {
            format!(
                r#"{{"reviewText": "{word}", "overall": {}, "price": -Infinity}}"#,
                ["NaN", "3", "Infinity"][n % 3]
            )
        }),
    ];
    for (arguments, write) in cases {
        let input = lines(write);
        let arguments = [arguments, &["--bad-lines-max", "1"]].concat();
        let flags = Flags { lines: &arguments, ..Flags::default() };
        flags.check(&MANNERS, input.as_bytes(), &format!("{arguments:?}"));
        let room = Room::new();
        room.write("raw.json", &input);
        sentimill(room.path(""), &[&["raw.json", "--out", "made.h5"], &arguments[..]].concat()).succeeded();
        let of_oracle: Vec<_> = arguments[..arguments.len() - 2].iter().map(OsStr::new).collect();
        oracle::agrees(&room.path("made.h5"), &[&room.path("raw.json")], &of_oracle);
    }
}

#[test]
fn what_was_found_is_named_with_the_remedy() {
    let room = Room::new();
    let cases: [(&[&str], String, &[&str]); 12] = [
        (
            &[],
            lines(|n, word| format!(r#"{{"reviewText": ["{word}"], "overall": {}}}"#, n % 5 + 1)),
            &["a list in the field \"reviewText\"", "--text-field 'reviewText[]'"],
        ),
        (
            &[],
            lines(|n, _| format!(r#"{{"reviewText": {n}, "overall": 5}}"#)),
            &["a number in the field \"reviewText\""],
        ),
        (
            &[],
            lines(|_, word| format!(r#"{{"reviewText": {{"en": "{word}"}}, "overall": 5}}"#)),
            &["an object with the fields en", "--text-field reviewText.en"],
        ),
        (
            &[],
            format!("{{\"reviews\": [{}]}}\n", vec![r#"{"reviewText": "a", "overall": 5}"#; 30].join(", ")),
            &[
                "array in field \"reviews\"",
                "--text-field 'reviews[].reviewText' --rating-field 'reviews[].overall'",
            ],
        ),
        (
            &[],
            r#"{"reviewText": {"0": "a", "1": "b"}, "overall": {"0": 5, "1": 1}}"#.to_owned(),
            &["columns of pandas", "orient=\"records\", lines=True"],
        ),
        (
            &[],
            lines(|n, word| format!("{n}\t{{\"reviewText\":\"{word}\",\"overall\":5}}")),
            &["an offset and a tab before the object", "cut -f 2-"],
        ),
        (
            &[],
            lines(|n, word| {
                format!(
                    "{{'reviewText': '{word}', 'overall': {}}}",
                    if n % 2 == 0 { "True" } else { "False" }
                )
            }),
            &["\"false\" 20, \"true\" 20", "--class-ratings=false=1,true=5"],
        ),
        (
            &[],
            lines(|n, word| format!(r#"{{"reviewText": "{word}", "overall": {}}}"#, n % 10 + 1)),
            &["\"6\" 4", "--rating-scale=1-10"],
        ),
        (
            &[],
            lines(|n, word| {
                format!(r#"{{"reviewText": "{word}", "overall": {}}}"#, ["null", "0", "5"][n % 3])
            }),
            &["null 14", "--unrated=null,0"],
        ),
        (
            &[],
            lines(|n, word| format!(r#"{{"reviewText": "{word}", "overall": {}}}"#, n % 2)),
            &["the values 0, 1 are classes and not stars", "--class-ratings=0=1,1=5", "--unrated=0"],
        ),
        (
            &["--format", "csv", "--text-field", "t", "--rating-field", "l"],
            format!(
                "t,l\n{}",
                lines(|n, word| format!(
                    "{word},{}",
                    ["bug", "spam", "praise", "question", "billing", "feature"][n % 6]
                ))
            ),
            &["\"bug\" 7", "--label-field NAME of ngrams train"],
        ),
        (
            &["--text-field", "reviews[].text", "--rating-field", "reviews[].stars"],
            lines(|_, _| r#"{"reviews": []}"#.to_owned()),
            &["an empty list in the field \"reviews\""],
        ),
    ];
    for (arguments, input, expected) in cases {
        room.write("raw.json", &input);
        let refused =
            sentimill(room.path(""), &[&["raw.json", "--out", "made.h5"], arguments].concat()).with_code(65);
        let message = refused.stderr.lines().last().unwrap();
        expected.iter().for_each(|part| assert!(message.contains(part), "{part}: {message}"));
        assert!(!room.path("made.h5").exists());
    }
    let refused = sentimill(room.path(""), &["raw.json", "--text-field", "a[].b", "--rating-field", "c[].d"])
        .with_code(64);
    assert!(
        refused.stderr.contains("the fields lead into two lists, \"a[]\" and \"c[]\""),
        "{}",
        refused.stderr
    );
}

#[test]
fn six_lines_with_a_zero_are_read_if_the_limit_was_raised() {
    let room = Room::new();
    let lines =
        [0, 3, 4, 3, 4, 3].map(|stars| format!("{{\"reviewText\": \"good\", \"overall\": {stars}}}\n"));
    room.write("raw.json", lines.concat());
    sentimill(room.path(""), &["raw.json"]).with_code(65);
    sentimill(room.path(""), &["raw.json", "--bad-lines-max", "1"]).succeeded();
}

#[test]
fn origins_and_rejects_of_elements_name_their_line() {
    let room = Room::new();
    let of_demo = reviews().iter().take(50).map(|(text, _)| text.clone()).collect::<Vec<_>>();
    let line =
        |text: &String| serde_json::json!({"reviews": [{"t": text, "s": 5}, {"t": 7}]}).to_string() + "\n";
    room.write("raw.json", of_demo.iter().map(line).collect::<String>());
    let fields = ["--text-field", "reviews[].t", "--rating-field", "reviews[].s", "--bad-lines-max", "1"];
    let made =
        [&["raw.json", "--rejects", "bad.jsonl", "--origins", "origins.parquet"][..], &fields].concat();
    sentimill(room.path(""), &made).succeeded();
    let rejects = std::fs::read_to_string(room.path("bad.jsonl")).unwrap();
    assert_eq!(rejects.matches(r#""line":"{\"t\":7}""#).count(), 50, "{rejects}");
}

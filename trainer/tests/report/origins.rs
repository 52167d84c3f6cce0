//! `trainer report --origins`: the most wrong rows with the file, the line and the original text of their reviews.

use std::collections::BTreeMap;
use std::fs;

use corpus::clean::Cleaner;
use corpus::digest::text_hash;
use serde_json::Value;
use tests::compressed::gzip;
use tests::programs::{program, run};

use super::{SIZES, done, trainer};
use crate::command::plain;

/// Texts with markup, of which some are equal after cleaning. Their ratings cannot be learned.
fn texts() -> Vec<(String, u8)> {
    let words = ["soap", "battery", "cable", "lamp", "works", "broke", "fine", "never", "again", "cheap"];
    let word = |n: usize| words[n % words.len()];
    let text = |n: usize| {
        let n = if n % 20 == 19 { n - 5 } else { n };
        let words =
            format!("{} {} {} {} {}", word(n), word(n / 10), word(n / 100), word(n * 7 + 1), word(n * 3));
        format!("<script>document.title='owned'</script>{} & \"{words}\"!", ["So", "SO"][n % 2])
    };
    (0..800).map(|n| (text(n), [1, 5][n * n % 7 % 2])).collect()
}

#[test]
fn the_most_wrong_rows_show_file_line_and_original_text() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let texts = texts();
    let line = |(text, stars): &(String, u8)| {
        format!("{}\n", serde_json::json!({ "body": { "text": text }, "stars": stars }))
    };
    let (first, second) = texts.split_at(500);
    fs::write(at("<b>first.json.gz"), gzip(first.iter().map(line).collect::<String>().as_bytes())).unwrap();
    fs::write(at("second.json"), second.iter().map(line).collect::<String>()).unwrap();
    let mut sentimill = program("sentimill");
    sentimill.current_dir(folder.path()).args(["<b>first.json.gz", "second.json", "--out", "reviews.h5"]);
    sentimill.args(["--text-field", "body.text", "--rating-field", "stars", "--origins", "origins.parquet"]);
    run(&mut sentimill, b"").succeeded();
    let mut fit = trainer();
    fit.current_dir(folder.path()).args(["fit", "reviews.h5", "--out", "run"]);
    done(fit.args(plain(&[&SIZES[..], &["--epochs", "1", "--test-fraction", "0.3"]].concat())));
    let report = |more: &[&str]| {
        let mut report = trainer();
        report.current_dir(folder.path()).args(["report", "run"]).args(more);
        let told = String::from_utf8(done(&mut report).stderr).unwrap();
        (fs::read_to_string(at("report.html")).unwrap(), told)
    };

    let mut lines: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (number, (text, _)) in texts.iter().enumerate() {
        let mut cleaned = Vec::new();
        Cleaner::default().clean(text, &mut cleaned);
        let place = match number.checked_sub(500) {
            None => format!("&lt;b&gt;first.json.gz:{}", number + 1),
            Some(number) => format!("second.json:{}", number + 1),
        };
        lines.entry(format!("{:016x}", text_hash(&cleaned))).or_default().push((place, escaped(text)));
    }
    let evaluation: Value = serde_json::from_slice(&fs::read(at("run/evaluation.json")).unwrap()).unwrap();
    let wrong = evaluation["wrong"].as_array().unwrap();
    assert!(wrong.len() > 20, "{} wrong rows", wrong.len());

    assert!(!report(&[]).0.contains("second.json:"));
    let (page, told) = report(&["--origins", "origins.parquet"]);
    let found = format!("the origins of {0} of {0} most wrong rows were found", wrong.len());
    assert!(told.contains(&found), "{told}");
    for row in wrong {
        let of_row = &lines[row["hash"].as_str().unwrap()];
        for (place, text) in &of_row[..of_row.len().min(3)] {
            let expected = format!("<span class=\"place\">{place}</span><q>{text}</q>");
            assert!(page.contains(&expected), "{expected}");
        }
    }
    assert!(!page.contains("<script>"));

    // A file that has changed does not show other texts.
    fs::write(at("second.json"), second.iter().rev().map(line).collect::<String>()).unwrap();
    fs::remove_file(at("<b>first.json.gz")).unwrap();
    let (page, _) = report(&["--origins", "origins.parquet"]);
    assert!(page.contains("not readable there now"));
    assert!(!page.contains("<b>first"));

    fs::write(at("other.parquet"), "no table").unwrap();
    let mut refused = trainer();
    refused.current_dir(folder.path()).args(["report", "run", "--origins", "other.parquet"]);
    let refused = refused.output().unwrap();
    assert_eq!(refused.status.code(), Some(66));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.starts_with("trainer: other.parquet: "), "{message}");
    assert!(message.trim_end().ends_with(", expected a table of `sentimill --origins`"), "{message}");
}

fn escaped(text: &str) -> String {
    let marks = [("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\"", "&quot;"), ("'", "&#39;")];
    marks.iter().fold(text.to_owned(), |text, (mark, escape)| text.replace(mark, escape))
}

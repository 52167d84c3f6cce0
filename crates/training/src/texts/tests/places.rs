//! Standard input, pipes and objects of S3.

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use ::tests::compressed::gzip;
use ::tests::programs::run;
use ::tests::s3_server::{S3Server, with_s3};
use corpus::format::FormatName;
use store::{Key, ObjectContent, Store};

use super::*;

const LINES: &[u8] = b"__label__a Good film\n__label__b Bad\n";

fn expected() -> [Text; 2] {
    [(owned(&["Good", "film", "</s>"]), owned(&["a"])), (owned(&["Bad", "</s>"]), owned(&["b"]))]
}

fn read_lines(place: &str) -> Vec<Text> {
    let asked = FormatOptions { name: FormatName::FastText, ..FormatOptions::default() };
    let (read, _) = read_told(&lines(&[&PathBuf::from(place)], asked, 2), Words::Spaces);
    seen(&read.unwrap().texts)
}

/// Runs an ignored test in a separate process.
fn succeeds_apart(test: &str, mut command: Command, input: &[u8]) {
    command.args(["--exact", &format!("texts::tests::places::{test}"), "--ignored", "--nocapture"]);
    let said = run(command.env("TEXTS_APART", "yes"), input).succeeded().said();
    assert!(said.contains("1 passed"), "{said}");
}

/// Whether [`succeeds_apart`] started this process.
fn is_apart() -> bool {
    std::env::var_os("TEXTS_APART").is_some()
}

#[test]
fn lines_come_from_standard_input() {
    let this = || Command::new(std::env::current_exe().unwrap());
    succeeds_apart("standard_input_is_read", this(), LINES);
    succeeds_apart("standard_input_is_read", this(), &gzip(LINES));
}

#[test]
#[ignore = "the other side of succeeds_apart"]
fn standard_input_is_read() {
    if is_apart() {
        assert_eq!(read_lines("-"), expected());
    }
}

#[test]
fn lines_come_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    thread::scope(|scope| {
        scope.spawn(|| std::fs::write(&pipe, LINES).unwrap());
        assert_eq!(read_lines(pipe.to_str().unwrap()), expected());
    });
}

#[test]
fn lines_and_reviews_come_from_s3() {
    let server = S3Server::start_s3s_fs();
    let this = Command::new(std::env::current_exe().unwrap());
    succeeds_apart("objects_are_read", with_s3(this, &format!("http://{}", server.address())), b"");
}

#[test]
#[ignore = "the other side of succeeds_apart"]
fn objects_are_read() {
    if !is_apart() {
        return;
    }
    let store = Store::open("s3://bucket/texts").unwrap();
    let put = |name: &str, content: &[u8]| {
        store.put_if_absent(&Key::new(name).unwrap(), ObjectContent::Bytes(content)).unwrap();
    };
    put("lines/a.gz", &gzip(&LINES[..21]));
    put("lines/b", &LINES[21..]);
    put("reviews.json", b"{\"reviewText\": \"Good\", \"overall\": 5}");
    assert_eq!(read_lines("s3://bucket/texts/lines/"), expected());
    let reviews = lines(&[&PathBuf::from("s3://bucket/texts/reviews.json")], FormatOptions::default(), 2);
    let (read, _) = read_told(&reviews, Words::Cleaned);
    assert_eq!(seen(&read.unwrap().texts), [(owned(&["good"]), owned(&["positive"]))]);
}

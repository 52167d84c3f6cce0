//! Objects in S3.

use std::process::Command;

use ::tests::compressed::zstd;
use ::tests::fault_proxy::{Fault, FaultProxy, Request};
use ::tests::s3_server::{S3Server, with_s3};
use program::exit::Exit;
use store::{Key, PART_BYTES_MIN, S3Options, Store};

use super::*;

/// Runs an ignored test in a separate process, because its environment variables define where S3 is.
fn succeeds_in_s3(test: &str, proxy: &FaultProxy) {
    let ended = with_s3(Command::new(std::env::current_exe().unwrap()), &proxy.url())
        .args(["--exact", &format!("tests::objects::{test}"), "--ignored", "--nocapture"])
        .env("READING_IN_S3", "yes")
        .output()
        .unwrap();
    let said = [ended.stdout, ended.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}

/// Whether [`succeeds_in_s3`] started this process.
fn is_in_s3() -> bool {
    std::env::var_os("READING_IN_S3").is_some()
}

#[test]
fn objects_are_complete_if_every_answer_is_cut_once() {
    for server in S3Server::each() {
        let cut = |request: &Request| {
            let is_read = request.method == "GET" && !request.target.contains("list-type=");
            if is_read && request.earlier == 0 { Fault::CutAnswer(100) } else { Fault::None }
        };
        let proxy = FaultProxy::start(server.address(), cut).unwrap();
        succeeds_in_s3("objects_are_read", &proxy);
        assert!(proxy.seen().iter().any(|(_, met)| *met == Fault::CutAnswer(100)));
    }
}

#[test]
#[ignore = "the other side of succeeds_in_s3"]
fn objects_are_read() {
    if !is_in_s3() {
        return;
    }
    let put = |run: &str, name: &str, content: &[u8]| {
        let store = Store::open(&format!("s3://bucket/{run}")).unwrap();
        store.put_if_absent(&Key::new(name).unwrap(), store::ObjectContent::Bytes(content)).unwrap();
    };
    let line = [b"x".repeat(999), b"\n".to_vec()].concat();
    let large = line.repeat(2 * PART_BYTES_MIN as usize / 1000 + 7);
    put("reviews", "year_2017/a", &large);
    put("reviews", "year_2017/b.zst", &zstd(b"one\rtwo"));
    put("reviews", "_SUCCESS", b"no review");
    put("reviews-of-others", "a", b"no review");
    put("marks", "_SUCCESS", b"no review");
    let small_parts = S3Options { part_bytes: PART_BYTES_MIN, ..S3Options::default() };
    let find = |inputs: &[&str]| {
        find(&inputs.iter().map(|input| (*input).to_owned()).collect::<Vec<_>>(), &small_parts)
    };

    let sources = find(&["s3://bucket/reviews"]).unwrap();
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["s3://bucket/reviews/year_2017/a", "s3://bucket/reviews/year_2017/b.zst"]);
    let reading = Reading::start(sources, &options(2)).unwrap();
    assert!(read(&reading, 2).unwrap() == naive(&[&large, b"one\rtwo"], 1000));
    assert_eq!(Some(reading.bytes_read()), reading.bytes());

    let one = find(&["s3a://bucket/reviews/year_2017/b.zst"]).unwrap();
    assert_eq!(read(&Reading::start(one, &options(2)).unwrap(), 2).unwrap(), naive(&[b"one\rtwo"], 9));

    for (inputs, exit) in [
        (&["s3://bucket/review"][..], Exit::MissingInput),
        (&["s3://bucket/marks/"], Exit::MissingInput),
        (&["s3://bucket/reviews/year_2017/a", "s3://bucket/reviews"], Exit::Usage),
        (&["s3://b"], Exit::Usage),
    ] {
        let error = find(inputs).unwrap_err();
        assert_eq!(error.exit(), exit, "{error}");
    }
    let sources = find(&["s3://bucket/reviews/year_2017/b.zst"]).unwrap();
    let store = Store::open("s3://bucket/reviews").unwrap();
    let key = Key::new("year_2017/b.zst").unwrap();
    store.delete(&key).unwrap();
    store.put_if_absent(&key, store::ObjectContent::Bytes(&zstd(b"other"))).unwrap();
    let error = refused(sources, &options(3));
    assert!(error.to_string().contains("b.zst: was replaced while it was read"), "{error}");
    assert_eq!(error.exit(), Exit::TryAgain);
}

//! Objects in S3.

use ::tests::compressed::zstd;
use ::tests::fault_proxy::{Fault, FaultProxy, Request};
use ::tests::s3_server::{ACCESS_KEY, S3Server, SECRET_KEY};
use program::exit::Exit;
use store::{Credentials, Key, ObjectContent, PART_BYTES_MIN, S3Options, Store};

use super::*;

#[test]
fn objects_are_complete_if_every_answer_is_cut_once() {
    for server in S3Server::each() {
        let cut = |request: &Request| {
            let is_read = request.method == "GET" && !request.target.contains("list-type=");
            if is_read && request.earlier == 0 { Fault::CutAnswer(100) } else { Fault::None }
        };
        let proxy = FaultProxy::start(server.address(), cut).unwrap();
        objects_are_read(&proxy);
        assert!(proxy.seen().iter().any(|(_, met)| *met == Fault::CutAnswer(100)));
    }
}

fn objects_are_read(proxy: &FaultProxy) {
    let small_parts = S3Options {
        region: Some("eu-central-1".to_owned()),
        endpoint: Some(proxy.url()),
        credentials: Some(Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test").into()),
        part_bytes: PART_BYTES_MIN,
        ..S3Options::default()
    };
    let open = |run: &str| Store::open_with(&format!("s3://bucket/{run}"), &small_parts).unwrap();
    let put = |run: &str, name: &str, content: &[u8]| {
        open(run).put_if_absent(&Key::new(name).unwrap(), ObjectContent::Bytes(content)).unwrap();
    };
    let line = [b"x".repeat(999), b"\n".to_vec()].concat();
    let large = line.repeat(2 * PART_BYTES_MIN as usize / 1000 + 7);
    put("reviews", "year_2017/a", &large);
    put("reviews", "year_2017/b.zst", &zstd(b"one\rtwo"));
    put("reviews", "_SUCCESS", b"no review");
    put("reviews-of-others", "a", b"no review");
    put("marks", "_SUCCESS", b"no review");
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
    open("reviews").delete(&Key::new("year_2017/b.zst").unwrap()).unwrap();
    put("reviews", "year_2017/b.zst", &zstd(b"other"));
    let error = refused(sources, &options(3));
    assert!(error.to_string().contains("b.zst: was replaced while it was read"), "{error}");
    assert_eq!(error.exit(), Exit::TryAgain);
}

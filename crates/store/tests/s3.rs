//! Guarantees of every store, tested in S3: with servers that the test starts, behind a proxy. The proxy
//! passes one conditional put of a name at a time, and injects faults of networks and services into the
//! others. Where the proxy gives the answer that is tested, one server is enough.
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test's helpers may panic and print as the tests do"
)]

mod bucket;
mod cache;
mod claims;
mod s3_options;

use std::time::{Duration, Instant};

use program::exit::{Exit, Fails};
use store::{Error, ObjectContent, PART_BYTES_MIN, Put, Store};
use tests::fault_proxy::{Fault, Request};
use tests::s3_server::S3Server;

use crate::bucket::{large, open, operation, proxy_with, put_large, servers};
use crate::claims::{key, meets_the_contract, one_line, put};

#[test]
fn a_bucket_meets_the_contract() {
    for server in servers() {
        let proxy = proxy_with(&server, |_| Fault::None);
        meets_the_contract(|run| open(&format!("s3://bucket/plain/{run}"), &proxy));
    }
}

#[test]
fn a_bucket_meets_the_contract_with_network_faults() {
    for server in servers() {
        let proxy = proxy_with(&server, |request| {
            // The first try of each request meets one of these faults, or none.
            let kinds = [
                Fault::LoseAnswer,
                Fault::None,
                Fault::Reset,
                Fault::Status(500),
                Fault::None,
                Fault::Status(503),
                Fault::Delay(Duration::from_millis(20)),
                Fault::CutAnswer(1),
                Fault::Drip(100_000, Duration::from_millis(1)),
            ];
            let sum =
                request.target.bytes().fold(0, |sum: usize, byte| sum.wrapping_mul(31) + usize::from(byte));
            if request.earlier % 2 == 0 {
                kinds[(sum + request.earlier / 2) % kinds.len()]
            } else {
                Fault::None
            }
        });
        meets_the_contract(|run| open(&format!("s3://bucket/faulty/{run}"), &proxy));
        let met = |fault| proxy.seen().iter().filter(|(_, met)| *met == fault).count();
        for fault in
            [Fault::LoseAnswer, Fault::Reset, Fault::Status(500), Fault::Status(503), Fault::CutAnswer(1)]
        {
            assert!(met(fault) >= 5, "{fault:?} {} times", met(fault));
        }
    }
}

fn is_commit(request: &Request) -> bool {
    operation(request) == "PutObject" && request.target.contains("commit")
}

#[test]
fn a_put_whose_answer_was_lost_is_recognized_by_its_mark() {
    for server in servers() {
        let proxy = proxy_with(&server, |request| {
            let is_last = is_commit(request) || operation(request) == "CompleteMultipartUpload";
            if is_last && request.earlier == 0 { Fault::LoseAnswer } else { Fault::None }
        });
        let store = open("s3://bucket/lost-answers", &proxy);
        assert!(matches!(put(&store, &key("commit/part-00000.json"), b"{}"), Put::Stored(_)));
        assert!(matches!(put_large(&store), Put::Stored(_)));
        assert_eq!(put_large(&store), Put::AlreadyThere);
        // Three answers are lost: those of the small put, of the large put, and of a second large put, which
        // finds the object of the first.
        let lost = proxy.seen().into_iter().filter(|(_, fault)| *fault == Fault::LoseAnswer).count();
        assert_eq!(lost, 3);
    }
}

#[test]
fn a_conflicting_put_is_retried_a_limited_number_of_times() {
    let server = S3Server::start_s3s_fs();
    let proxy = proxy_with(&server, |request| {
        let conflicts =
            is_commit(request) && request.earlier < 3 || operation(request) == "CompleteMultipartUpload";
        if conflicts { Fault::Status(409) } else { Fault::None }
    });
    let store = open("s3://bucket/conflicts", &proxy);
    assert!(matches!(put(&store, &key("commit/part-00000.json"), b"{}"), Put::Stored(_)));
    assert_eq!(proxy.seen().iter().filter(|(_, fault)| *fault == Fault::Status(409)).count(), 3);
    let folder = tempfile::tempdir().unwrap();
    let file = large(folder.path());
    let error = store.put_if_absent(&key("data/large.h5"), ObjectContent::File(&file)).unwrap_err();
    assert!(matches!(error, Error::Conflicts { .. }), "{error}");
    assert_eq!(error.exit(), Exit::TryAgain);
    let aborted =
        proxy.seen().iter().filter(|(request, _)| operation(request) == "AbortMultipartUpload").count();
    assert_eq!(aborted, 8, "each upload that conflicted is aborted");
}

#[test]
fn a_large_object_is_complete_if_every_answer_is_cut_once() {
    for server in servers() {
        let proxy = proxy_with(&server, |request| {
            let cut =
                operation(request) == "GetObject" && request.target.contains("large") && request.earlier < 3;
            if cut { Fault::CutAnswer(1_000_000) } else { Fault::None }
        });
        a_large_object_is_fetched(&open("s3://bucket/cut", &proxy));
    }
}

fn a_large_object_is_fetched(store: &Store) {
    put_large(store);
    let folder = tempfile::tempdir().unwrap();
    let path = {
        let copy = store.local_copy(&key("data/large.h5"), folder.path()).unwrap();
        assert!(std::fs::read(copy.path()).unwrap() == std::fs::read(large(folder.path())).unwrap());
        copy.path().to_owned()
    };
    assert!(!path.exists(), "a copy goes with its value");
}

#[test]
fn ranges_of_an_object_are_requested_with_one_etag() {
    for server in servers() {
        let proxy = proxy_with(&server, |_| Fault::None);
        a_large_object_is_fetched(&open("s3://bucket/marked", &proxy));
        let seen = proxy.seen();
        let is_range =
            |request: &&Request| operation(request) == "GetObject" && request.target.contains("large");
        let ranges: Vec<_> = seen.iter().map(|(request, _)| request).filter(is_range).collect();
        assert_eq!(ranges.len(), 3, "two whole parts and a piece");
        let marks: Vec<_> = ranges.iter().map(|request| request.header("if-match")).collect();
        assert!(marks[0].is_some_and(|mark| !mark.is_empty()), "{marks:?}");
        assert!(marks.iter().all(|mark| *mark == marks[0]), "{marks:?}");
    }
}

#[test]
fn an_object_that_changes_during_the_download_is_refused() {
    let server = S3Server::start_s3s_fs();
    // The answer of a service whose object has a new ETag.
    let proxy = proxy_with(&server, |request| {
        let is_changed = request.header("if-match").is_some() && request.target.contains("large");
        if is_changed { Fault::Status(412) } else { Fault::None }
    });
    let store = open("s3://bucket/changed", &proxy);
    put_large(&store);
    let folder = tempfile::tempdir().unwrap();
    let error = store.local_copy(&key("data/large.h5"), folder.path()).unwrap_err();
    assert!(one_line(&error).contains("cannot copy it to this machine"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a part of it stays");
}

#[test]
fn a_damaged_answer_is_detected_by_the_checksum_of_the_object() {
    // moto does not keep a CRC-64 sent by a client.
    let server = S3Server::start_s3s_fs();
    let proxy = proxy_with(&server, |request| {
        let is_fetched = operation(request) == "GetObject" && request.target.contains("small");
        if is_fetched { Fault::DamagedAnswer } else { Fault::None }
    });
    let store = open("s3://bucket/damaged", &proxy);
    // A single put, because the server keeps no checksum for uploads in parts.
    assert!(matches!(put(&store, &key("data/small.h5"), &[7; 100_000]), Put::Stored(_)));
    let folder = tempfile::tempdir().unwrap();
    let error = store.local_copy(&key("data/small.h5"), folder.path()).unwrap_err();
    assert!(one_line(&error).contains("bytes that do not match its CRC-64"), "{error}");
    assert_eq!(error.exit(), Exit::Unavailable);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "a part of it stays");
}

#[test]
fn a_store_that_ignores_if_none_match_is_refused() {
    // s3s-fs verifies signatures, which cover the condition, so behind this proxy it would refuse the put.
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |_| Fault::DropCondition);
    let error = open("s3://bucket/ignorant", &proxy).probe().unwrap_err();
    assert!(matches!(error, Error::IgnoresCondition { .. }), "{error}");
    assert_eq!(error.exit(), Exit::Settings);

    let honest = proxy_with(&server, |_| Fault::None);
    let store = open("s3://bucket/honest", &honest);
    // The object of the first probe exists at the second one.
    for _ in 0..2 {
        store.probe().unwrap();
        assert!(store.list("").unwrap().is_empty(), "what the probe put is not listed");
    }
}

#[test]
fn refused_and_unavailable_services_are_distinguished() {
    let server = S3Server::start_s3s_fs();
    let proxy = proxy_with(&server, |request| {
        if request.target.contains("/refused/") {
            Fault::Status(403)
        } else if request.target.contains("/away/") {
            Fault::Status(503)
        } else {
            Fault::None
        }
    });
    let refused = ": AccessDenied (status 403): said the proxy; check the credentials";
    a_put_fails(&open("s3://bucket/refused/run", &proxy), Exit::Settings, refused);
    let away = "SlowDown (status 503): said the proxy; check endpoint= and the network";
    let begin = Instant::now();
    a_put_fails(&open("s3://bucket/away/run", &proxy), Exit::Unavailable, away);
    assert!(begin.elapsed() < Duration::from_secs(60));
}

fn a_put_fails(store: &Store, exit: Exit, expected: &str) {
    let error = store.put_if_absent(&key("a"), ObjectContent::Bytes(b"x")).unwrap_err();
    assert_eq!(error.exit(), exit, "{error}");
    assert!(one_line(&error).contains(expected), "{error}");
}

#[test]
fn a_missing_bucket_is_reported() {
    // s3s-fs creates a missing bucket.
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |_| Fault::None);
    a_put_fails(&open("s3://no-such-bucket/run", &proxy), Exit::MissingInput, "NoSuchBucket");
}

#[test]
fn a_put_of_a_file_reports_progress() {
    let server = S3Server::start_s3s_fs();
    let proxy = proxy_with(&server, |_| Fault::None);
    let store = open("s3://bucket/progress", &proxy);
    put_large(&store);
    let steps = store.progress().steps();
    assert!(steps > 2 * PART_BYTES_MIN, "{steps} steps");
}

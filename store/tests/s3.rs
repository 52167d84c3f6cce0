//! What every store promises, in S3: against a server that the test starts, behind a proxy that lets one conditional put
//! of a name through at a time and does to the others what networks and services do.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test's helpers may panic and print as the tests do"
)]

mod claims;

use std::env;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use corpus::exit::Exit;
use store::{Content, Error, PART_BYTES_MIN, Put, S3Options, Store};
use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::s3_server::S3Server;

use crate::claims::{CLAIMS, key, put};

/// Runs one of the ignored tests below in a process of its own, whose environment says where S3 is: a process has one.
fn in_s3(test: &str, endpoint: &str, run: &str) -> Output {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("AWS_ENDPOINT_URL_S3", endpoint)
        .env("AWS_ACCESS_KEY_ID", "canary-key")
        .env("AWS_SECRET_ACCESS_KEY", "canary-secret")
        .env("AWS_REGION", "eu-central-1")
        .env("STORE_RUN", run)
        .output()
        .unwrap()
}

#[track_caller]
fn succeeds_in_s3(test: &str, endpoint: &str, run: &str) {
    let ended = in_s3(test, endpoint, run);
    let said =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
    assert!(!said.contains("canary-secret"));
}

/// The store of the process that [`in_s3`] started; small parts, so that small files have several.
fn store() -> Option<Store> {
    let run = env::var("STORE_RUN").ok()?;
    Some(Store::open_with(&run, &S3Options { part_bytes: PART_BYTES_MIN, ..S3Options::default() }).unwrap())
}

#[test]
fn a_bucket_keeps_the_contract() {
    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(server.address(), |_| Fault::None).unwrap();
    succeeds_in_s3("all_claims", &proxy.url(), "s3://bucket/plain");
}

#[test]
fn a_bucket_keeps_the_contract_behind_a_bad_network() {
    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(server.address(), |request| {
        // Each request's first try meets one of them, or none.
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
        let sum = request.target.bytes().fold(0, |sum: usize, byte| sum.wrapping_mul(31) + usize::from(byte));
        if request.earlier % 2 == 0 { kinds[(sum + request.earlier / 2) % kinds.len()] } else { Fault::None }
    })
    .unwrap();
    succeeds_in_s3("all_claims", &proxy.url(), "s3://bucket/faulty");
    let met = |fault| proxy.seen().iter().filter(|(_, met)| *met == fault).count();
    for fault in
        [Fault::LoseAnswer, Fault::Reset, Fault::Status(500), Fault::Status(503), Fault::CutAnswer(1)]
    {
        assert!(met(fault) >= 5, "{fault:?} {} times", met(fault));
    }
}

#[test]
#[ignore = "the other side of in_s3"]
fn all_claims() {
    let Some(base) = store() else { return };
    for (number, (claim, check)) in CLAIMS.iter().enumerate() {
        println!("{claim}");
        check(&Store::open(&format!("{}/{number}", base.url())).unwrap());
    }
}

/// A proxy whose faults depend on method and target.
fn proxy_with(server: &S3Server, plan: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> FaultProxy {
    FaultProxy::start(server.address(), plan).unwrap()
}

fn is_put_of(request: &Request, name: &str) -> bool {
    request.method == "PUT" && request.target.contains(name) && !request.target.contains("uploadId")
}

fn is_completion(request: &Request) -> bool {
    request.method == "POST" && request.target.contains("uploadId=")
}

#[test]
fn a_put_whose_answer_was_lost_is_known_as_ones_own() {
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |request| {
        let is_last = is_put_of(request, "commit") || is_completion(request);
        if is_last && request.earlier == 0 { Fault::LoseAnswer } else { Fault::None }
    });
    succeeds_in_s3("puts_are_stored", &proxy.url(), "s3://bucket/lost-answers");
    // The small put, the large one, and the second large one, which finds that the object is not its own.
    let lost = proxy.seen().into_iter().filter(|(_, fault)| *fault == Fault::LoseAnswer).count();
    assert_eq!(lost, 3);
}

#[test]
fn a_put_that_met_another_is_tried_again_but_not_for_ever() {
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |request| {
        let conflicts = is_put_of(request, "commit") && request.earlier < 3 || is_completion(request);
        if conflicts { Fault::Status(409) } else { Fault::None }
    });
    succeeds_in_s3("a_small_put_is_stored", &proxy.url(), "s3://bucket/conflicts");
    assert_eq!(proxy.seen().iter().filter(|(_, fault)| *fault == Fault::Status(409)).count(), 3);
    succeeds_in_s3("a_large_put_conflicts_for_ever", &proxy.url(), "s3://bucket/conflicts");
    let aborted = proxy.seen().iter().filter(|(request, _)| is_abort(request)).count();
    assert_eq!(aborted, 8, "each upload that conflicted is aborted");
}

fn is_abort(request: &Request) -> bool {
    request.method == "DELETE" && request.target.contains("uploadId=")
}

#[test]
#[ignore = "the other side of in_s3"]
fn puts_are_stored() {
    let Some(store) = store() else { return };
    assert!(matches!(put(&store, &key("commit/part-00000.json"), b"{}"), Put::Stored(_)));
    assert!(matches!(put_large(&store), Put::Stored(_)));
    assert_eq!(put_large(&store), Put::AlreadyThere);
}

#[test]
#[ignore = "the other side of in_s3"]
fn a_small_put_is_stored() {
    let Some(store) = store() else { return };
    assert!(matches!(put(&store, &key("commit/part-00000.json"), b"{}"), Put::Stored(_)));
}

#[test]
#[ignore = "the other side of in_s3"]
fn a_large_put_conflicts_for_ever() {
    let Some(store) = store() else { return };
    let folder = tempfile::tempdir().unwrap();
    let error = store.put_if_absent(&key("data/large.h5"), Content::File(&large(folder.path()))).unwrap_err();
    assert!(matches!(error, Error::Conflicts { .. }), "{error}");
    assert_eq!(error.exit(), Exit::TryAgain);
}

fn put_large(store: &Store) -> Put {
    let folder = tempfile::tempdir().unwrap();
    store.put_if_absent(&key("data/large.h5"), Content::File(&large(folder.path()))).unwrap()
}

/// A file of two whole parts and a piece.
fn large(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("large");
    let content: Vec<u8> = (0..2 * PART_BYTES_MIN + 12_345).map(|at| (at % 251) as u8).collect();
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn a_multipart_upload_that_lost_is_aborted() {
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |_| Fault::None);
    succeeds_in_s3("puts_are_stored", &proxy.url(), "s3://bucket/lost");
    assert_eq!(proxy.seen().iter().filter(|(request, _)| is_abort(request)).count(), 1);
}

#[test]
fn a_large_object_comes_whole_through_a_network_that_cuts_every_answer_once() {
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |request| {
        let cut = request.method == "GET" && request.target.contains("large") && request.earlier < 3;
        if cut { Fault::CutAnswer(1_000_000) } else { Fault::None }
    });
    succeeds_in_s3("a_large_object_is_fetched", &proxy.url(), "s3://bucket/cut");
}

#[test]
#[ignore = "the other side of in_s3"]
fn a_large_object_is_fetched() {
    let Some(store) = store() else { return };
    put_large(&store);
    let folder = tempfile::tempdir().unwrap();
    let path = {
        let copy = store.local_copy(&key("data/large.h5"), folder.path()).unwrap();
        assert!(std::fs::read(copy.path()).unwrap() == std::fs::read(large(folder.path())).unwrap());
        copy.path().to_owned()
    };
    assert!(!path.exists(), "a copy goes with its value");
}

#[test]
fn a_store_that_ignores_the_condition_is_refused() {
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |_| Fault::DropCondition);
    succeeds_in_s3("the_probe_refuses", &proxy.url(), "s3://bucket/ignorant");
    let honest = proxy_with(&server, |_| Fault::None);
    succeeds_in_s3("the_probe_is_content", &honest.url(), "s3://bucket/honest");
    // And a second time, when what the probe put is there.
    succeeds_in_s3("the_probe_is_content", &honest.url(), "s3://bucket/honest");
}

#[test]
#[ignore = "the other side of in_s3"]
fn the_probe_refuses() {
    let Some(store) = store() else { return };
    let error = store.probe().unwrap_err();
    assert!(matches!(error, Error::IgnoresCondition { .. }), "{error}");
    assert_eq!(error.exit(), Exit::Settings);
}

#[test]
#[ignore = "the other side of in_s3"]
fn the_probe_is_content() {
    let Some(store) = store() else { return };
    store.probe().unwrap();
    assert!(store.list("").unwrap().is_empty(), "what the probe put is not listed");
}

#[test]
fn a_service_that_refuses_lacks_the_bucket_or_stays_away_is_named() {
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |request| {
        if request.target.contains("/refused/") {
            Fault::Status(403)
        } else if request.target.contains("/away/") {
            Fault::Status(503)
        } else {
            Fault::None
        }
    });
    succeeds_in_s3("failures_are_named", &proxy.url(), "s3://bucket/failures");
}

#[test]
#[ignore = "the other side of in_s3"]
fn failures_are_named() {
    let Some(base) = store() else { return };
    let cases = [
        (
            "s3://bucket/refused/run",
            Exit::Settings,
            "cannot put it: AccessDenied: said the proxy; check the credentials",
        ),
        ("s3://no-such-bucket/run", Exit::MissingInput, "NoSuchBucket"),
        ("s3://bucket/away/run", Exit::Unavailable, "SlowDown: said the proxy; check the network"),
    ];
    for (run, exit, expected) in cases {
        let begin = Instant::now();
        let error = Store::open(run).unwrap().put_if_absent(&key("a"), Content::Bytes(b"x")).unwrap_err();
        assert_eq!(error.exit(), exit, "{error}");
        assert!(claims::one_line(&error).contains(expected), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(60), "{run}");
    }
    assert!(!base.url().contains("canary"));
}

#[test]
fn progress_is_seen_while_a_file_is_put() {
    let Some(server) = S3Server::start() else { return };
    let proxy = proxy_with(&server, |_| Fault::None);
    succeeds_in_s3("progress_is_seen", &proxy.url(), "s3://bucket/progress");
}

#[test]
#[ignore = "the other side of in_s3"]
fn progress_is_seen() {
    let Some(store) = store() else { return };
    put_large(&store);
    let steps = store.progress().steps();
    assert!(steps > 2 * PART_BYTES_MIN, "{steps} steps");
}

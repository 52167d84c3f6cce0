//! The job with its run in S3: the same dataset as in a folder, and no secret in any output.

use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use tests::demo::DEMO;
use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::files::assert_same_bytes;
use tests::hadoop::as_task;
use tests::lines::sorted_as_c;
use tests::programs::{Finished, finish, program, run, start};
use tests::s3_server::{S3Server, SECRET_KEY, with_s3};

fn reducer(endpoint: &str, partition: u32, attempt: &str) -> Command {
    let mut reducer = with_s3(program("reducer"), endpoint);
    reducer.args(["--run", "s3://bucket/runs/one", "--select", "--partitions", "2", "--attempt", attempt]);
    reducer.args(["--partition", &partition.to_string()]);
    reducer
}

fn silent_about_secrets(finished: &Finished) {
    assert!(!finished.stderr.contains(SECRET_KEY) && !finished.said().contains(SECRET_KEY));
}

#[test]
fn a_run_in_s3_gives_the_same_dataset() {
    let Some(server) = S3Server::start() else { return };
    // The first answer to each request is lost.
    let proxy = FaultProxy::start(server.address(), |request| {
        if request.earlier == 0 { Fault::LoseAnswer } else { Fault::None }
    })
    .unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    for (partition, attempt) in [(0, "first"), (1, "first"), (1, "second")] {
        let reduced = run(reducer(&proxy.url(), partition, attempt).arg("--texts"), &sorted).succeeded();
        assert!(reduced.said().contains(" committed by attempt first: "), "{}", reduced.said());
        silent_about_secrets(&reduced);
    }

    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("reviews.h5");
    let mut merge = with_s3(program("merge"), &proxy.url());
    merge.args(["--threads", "3"]);
    let merged = run(merge.args(["--run", "s3a://bucket/runs/one/", "--out"]).arg(&dataset), b"").succeeded();

    silent_about_secrets(&merged);
    assert_same_bytes(&dataset, &DEMO.dataset, "a run in S3");
}

#[test]
fn a_slow_upload_keeps_reporting_progress() {
    let Some(server) = S3Server::start() else { return };
    let (reports, reported) = channel();
    let reported = Mutex::new(reported);
    // The store takes a part of the shard when the reducer has reported progress once more, however long that takes.
    let proxy = FaultProxy::start(server.address(), move |request| {
        let is_reported = || reported.lock().unwrap().recv_timeout(REPORT_LIMIT).is_ok();
        if is_part(request) && !is_reported() { Fault::Status(403) } else { Fault::None }
    })
    .unwrap();
    let texts = (0..1_000_000_u32).map(|n| format!("{}\t0,0,0,0,1\n", word_of(n)));
    let sorted = sorted_as_c(texts.collect::<String>().as_bytes());
    let mut reducer = reducer(&proxy.url(), 0, "first");
    reducer.args(["--s3", "part-mib=5,parts=1"]);
    // A report within 100 ms, if there is progress.
    let mut child = start(as_task(&mut reducer).env("mapreduce_task_timeout", "600"));

    let (mut input, stderr) = (child.stdin.take().unwrap(), BufReader::new(child.stderr.take().unwrap()));
    let lines = thread::spawn(move || {
        let mut lines: Vec<String> = Vec::new();
        for line in stderr.lines().map(Result::unwrap) {
            let is_storing = lines.iter().any(|line| line.starts_with("reporter:status:storing "));
            if is_storing && line.starts_with("reporter:status:running: ") {
                let _ = reports.send(());
            }
            lines.push(line);
        }
        lines
    });
    input.write_all(&sorted).unwrap();
    drop(input);

    let code = finish(child, "reducer").code;
    assert_eq!(code, 0, "{:?}", lines.join().unwrap());
    assert!(proxy.seen().iter().filter(|(request, _)| is_part(request)).count() >= 3, "{:?}", proxy.seen());
}

/// Limit for a report of progress.
const REPORT_LIMIT: Duration = Duration::from_secs(100);

/// Whether it is the first try to put a part of a shard.
fn is_part(request: &Request) -> bool {
    request.method == "PUT" && request.target.contains("partNumber=") && request.earlier == 0
}

/// A distinct word for each number: its digits as letters, in an incompressible order.
fn word_of(number: u32) -> String {
    let mixed = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

#[test]
fn a_store_without_conditional_puts_is_refused_before_any_record_is_read() {
    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(server.address(), |_| Fault::DropCondition).unwrap();
    let refused = run(&mut reducer(&proxy.url(), 0, "first"), b"not sorted, not even records").with_code(78);
    assert_eq!(
        refused.stderr,
        "reducer: s3://bucket/runs/one: the store ignores If-None-Match, so that attempts could overwrite each other; use a store with conditional PUT requests\n"
    );
}

#[test]
fn a_damaged_commit_record_in_s3_is_reported_as_a_failure() {
    let Some(server) = S3Server::start() else { return };
    let proxy = FaultProxy::start(server.address(), |request| {
        let is_record = request.method == "PUT" && request.target.contains("/commit/");
        if is_record { Fault::DamagedBehind("\"sha256\": \"") } else { Fault::None }
    })
    .unwrap();
    let sorted = sorted_as_c(&DEMO.records);
    let refused = run(&mut reducer(&proxy.url(), 0, "first"), &sorted).with_code(70);
    let record = "reducer: s3://bucket/runs/one/commit/part-00000.json";
    assert_eq!(
        refused.stderr.lines().last().unwrap(),
        format!(
            "{record}: found other bytes on reading it back, expected the record that was written; the store damaged it, and an object is never overwritten: run again with a new --run in another store"
        )
    );
    // The damaged record of the first attempt does not count as success either.
    let refused = run(&mut reducer(&proxy.url(), 0, "second"), &sorted).with_code(70);
    let last = refused.stderr.lines().last().unwrap();
    assert!(last.starts_with(&format!("{record} records ")), "{last}");
    assert!(last.contains(" for data/part-00000."), "{last}");
    assert!(last.ends_with("was damaged: start again with a new --run"), "{last}");
}

#[test]
fn a_bucket_of_another_owner_is_refused_before_any_record_is_read() {
    let server = S3Server::start_s3s_fs();
    let proxy = FaultProxy::start(server.address(), |request| {
        let is_owner = request.header("x-amz-expected-bucket-owner") == Some("123456789012");
        if is_owner { Fault::None } else { Fault::Status(403) }
    })
    .unwrap();
    let mut reducer = reducer(&proxy.url(), 0, "first");
    reducer.args(["--s3", "bucket-owner=999999999999"]);
    let refused = run(&mut reducer, b"not sorted, not even records").with_code(78);
    let endpoint = proxy.url().replace("http://", "");
    assert_eq!(
        refused.stderr,
        format!(
            "reducer: s3://bucket/runs/one/.conditional-put: cannot put it at {endpoint}: AccessDenied (status 403): said \
             the proxy; check the credentials, the policies of user and bucket, the account of bucket-owner= if it is set, \
             the region and the clock of this machine\n"
        )
    );
}

#[test]
fn an_endpoint_that_cannot_be_reached_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut sentimill = program("sentimill");
    sentimill.env("AWS_ACCESS_KEY_ID", "id").env("AWS_SECRET_ACCESS_KEY", "secret-of-the-test");
    sentimill.args(["--input", "s3://bucket/reviews", "--s3", "endpoint=http://127.0.0.1:9"]);
    sentimill.arg("--out").arg(folder.path().join("reviews.h5"));
    let refused = run(&mut sentimill, b"").with_code(69);
    let last = refused.stderr.lines().last().unwrap();
    assert_eq!(
        last,
        "sentimill: s3://bucket/reviews: cannot list at 127.0.0.1:9: the endpoint is unreachable (connection refused); \
         check endpoint= and the network, or try again later"
    );
}

#[test]
fn a_reducer_without_credentials_fails_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut reducer = reducer("http://127.0.0.1:9", 0, "first");
    reducer.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
    reducer.env("HOME", folder.path()).env("AWS_EC2_METADATA_DISABLED", "true");
    let refused = run(&mut reducer, b"").with_code(78);
    let begins = "reducer: s3://bucket/runs/one: no credentials (";
    let ends =
        "); set AWS_PROFILE or AWS_ACCESS_KEY_ID, or run on a machine with a role that may use the bucket\n";
    let said = &refused.stderr;
    assert!(said.starts_with(begins) && said.ends_with(ends), "{said}");
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
}

//! The job with its run in S3: the same dataset as in a folder, and no secret in any output.

use std::process::Command;
use std::time::Duration;

use tests::demo::DEMO;
use tests::fault_proxy::{Fault, FaultProxy};
use tests::files::assert_same_bytes;
use tests::hadoop::{Heard, as_task};
use tests::lines::sorted_as_c;
use tests::programs::{Finished, program, run};
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
        let reduced = run(&mut reducer(&proxy.url(), partition, attempt), &sorted).succeeded();
        assert!(reduced.said().contains(" committed by attempt first: "), "{}", reduced.said());
        silent_about_secrets(&reduced);
    }

    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("reviews.h5");
    let mut merge = with_s3(program("merge"), &proxy.url());
    let merged = run(merge.args(["--run", "s3a://bucket/runs/one/", "--out"]).arg(&dataset), b"").succeeded();

    silent_about_secrets(&merged);
    assert_same_bytes(&dataset, &DEMO.dataset, "a run in S3");
}

#[test]
fn a_slow_upload_keeps_reporting_progress() {
    let Some(server) = S3Server::start() else { return };
    // Larger than the buffers for what the reducer has sent, 4 MiB, and what the proxy has not read.
    let proxy = FaultProxy::start(server.address(), |request| {
        let is_shard = request.method == "PUT" && request.target.contains("/data/");
        if is_shard { Fault::SlowRead(1_000_000, Duration::from_millis(600)) } else { Fault::None }
    })
    .unwrap();
    let texts = (0..1_000_000_u32).map(|n| format!("{}\t0,0,0,0,1\n", word_of(n)));
    let sorted = sorted_as_c(texts.collect::<String>().as_bytes());
    let mut reducer = reducer(&proxy.url(), 0, "first");
    // Slightly less than a sixth of it is 450 ms.
    as_task(&mut reducer).env("mapreduce_task_timeout", "3000");

    let reduced = run(&mut reducer, &sorted).succeeded();

    let heard = Heard::of(&reduced.stderr);
    let put = heard.statuses.iter().position(|status| status.starts_with("storing ")).unwrap();
    let signs = heard.statuses[put..].iter().filter(|status| status.starts_with("running: ")).count();
    assert!(signs >= 3, "{:?}", heard.statuses);
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

//! Requests that fail: each ends with one line and the exit code of its remedy.

use std::process::Command;

use tests::programs::{Finished, run};

use crate::world::{World, world};

fn status(world: &World, change: impl FnOnce(&mut Command)) -> Finished {
    let mut command = world.command("status");
    command.args(["--cluster", "j-0123456789ABC"]);
    change(&mut command);
    run(&mut command, b"")
}

#[test]
fn a_request_that_fails_ends_with_one_line_and_the_exit_code_of_its_remedy() {
    let Some(world) = world() else { return };
    let begins = "emr: j-0123456789ABC: DescribeCluster: ";
    let refused = status(&world, |_| ()).with_code(66);
    assert!(refused.stderr.starts_with(begins), "{}", refused.stderr);
    assert!(refused.stderr.trim_end().ends_with("; check the id and the region"), "{}", refused.stderr);
    for (answer, code, remedy) in [
        ("throttled", 75, "; EMR limits the rate of requests per account and region; try again in a minute"),
        ("expired", 78, "repeat the command; clusters and steps continue without them"),
        ("internal", 69, "check the network, the region and AWS_ENDPOINT_URL_EMR, or try again later"),
    ] {
        // The client tries seven times.
        world.emr.answer("DescribeCluster", answer, if answer == "expired" { 1 } else { 7 });
        let failed = status(&world, |_| ()).with_code(code);
        assert!(
            failed.stderr.starts_with(begins) && failed.stderr.trim_end().ends_with(remedy),
            "{}",
            failed.stderr
        );
        assert_eq!(failed.stderr.lines().count(), 1, "{}", failed.stderr);
    }
    // Fewer answers of this kind are not noticed.
    world.emr.answer("DescribeCluster", "throttled", 2);
    assert!(status(&world, |_| ()).with_code(66).stderr.starts_with(begins));
}

#[test]
fn a_client_that_cannot_be_made_names_what_is_missing() {
    let Some(world) = world() else { return };
    let none = status(&world, |command| {
        command
            .env_remove("AWS_ACCESS_KEY_ID")
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("HOME", "/nonexistent");
    });
    let none = none.with_code(78);
    assert!(none.stderr.contains("set AWS_PROFILE or AWS_ACCESS_KEY_ID"), "{}", none.stderr);
    let lost = status(&world, |command| {
        command.env_remove("AWS_REGION").env("AWS_EC2_METADATA_DISABLED", "true").env("HOME", "/nonexistent");
    });
    let expected =
        "emr: connect to EMR: no region is set; set cluster.region in the job file, --region or AWS_REGION\n";
    assert_eq!(lost.with_code(78).stderr, expected);
    let unreachable = status(&world, |command| {
        command.env("AWS_ENDPOINT_URL_EMR", "http://127.0.0.1:9");
    });
    let unreachable = unreachable.with_code(69);
    assert!(
        unreachable.stderr.contains("the endpoint is unreachable (connection refused)"),
        "{}",
        unreachable.stderr
    );
}

#[test]
fn a_job_that_cannot_run_is_refused_before_any_request() {
    let Some(world) = world() else { return };
    world.emr.take_requests();
    let local = world.job("refused", &[("s3://bucket/in/", "/data/reviews.json")]);
    let refused = world.emr("run", &local, &[]).with_code(78);
    assert!(refused.stderr.contains("refused.toml:6: input.places"), "{}", refused.stderr);
    let unknown = world.job("unknown", &[("keep = false", "keeps = false")]);
    let refused = world.emr("run", &unknown, &[]).with_code(78);
    assert!(refused.stderr.contains("keep"), "{}", refused.stderr);
    let limited = world.job("limited", &[("[input]", "[input]\nline-bytes-max = 100000")]);
    let refused = world.emr("run", &limited, &["--runner", "local"]).with_code(78);
    let expected = format!(
        "emr: {}:6: input.line-bytes-max: 100000 is not possible with --runner local; \
         sentimill has a fixed limit; remove the key, or use another runner\n",
        limited.display()
    );
    assert_eq!(refused.stderr, expected);
    let table = world.job("table", &[("[input]", "[input]\nformat = \"tsv\"")]);
    let refused = world.emr("run", &table, &["--runner", "hadoop"]).with_code(78);
    let expected = format!(
        "emr: {}:6: input.format: \"tsv\" is not possible with --runner hadoop; use --runner local, or \
         write one JSON object per line\n",
        table.display()
    );
    assert_eq!(refused.stderr, expected);
    let never = world.job("never", &[]);
    let of_emr = ["RunJobFlow", "AddJobFlowSteps", "ListClusters", "DescribeCluster"];
    let requests = world.emr.take_requests();
    assert!(!of_emr.iter().any(|operation| requests.contains_key(*operation)), "{requests:?}");
    let missing = world.emr("status", &never, &[]).with_code(66);
    let expected = format!(
        "emr: s3://bucket/runs/never: found no record of a run of this job; start it with emr run {}\n",
        never.display()
    );
    assert_eq!(missing.stderr, expected);
}

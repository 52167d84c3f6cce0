//! `emr diagnose` and `emr logs` on clusters of the tests' EMR, whose steps run on a Hadoop: state reasons, logs that are
//! uploaded later, bootstrap actions, S3A.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::emr::Emr;
use tests::programs::{Finished, run, without_hadoop};

const LIMIT: Duration = Duration::from_secs(300);

/// Runs a command of `emr` as a user of this EMR.
fn of_user(emr: &Emr, arguments: &[&str]) -> Finished {
    let mut command = without_hadoop(Path::new(env!("CARGO_BIN_EXE_emr")));
    run(emr.of_user(command.args(arguments)), b"")
}

/// Creates a cluster with this bootstrap action, and returns its id.
fn cluster(emr: &Emr, bootstrap: &[&str]) -> String {
    let actions: Vec<Value> = bootstrap
        .iter()
        .map(|path| json!({"Name": "check", "ScriptBootstrapAction": {"Path": path, "Args": []}}))
        .collect();
    let created = emr.call(
        "RunJobFlow",
        &json!({
            "Name": "diagnosed", "ReleaseLabel": "emr-7.10.0", "LogUri": "s3://bucket/logs/",
            "ServiceRole": "EMR_DefaultRole", "JobFlowRole": "EMR_EC2_DefaultRole", "BootstrapActions": actions,
            "Instances": {"KeepJobFlowAliveWhenNoSteps": true, "InstanceGroups": [
                {"InstanceRole": "MASTER", "InstanceType": "m5.xlarge", "InstanceCount": 1},
                {"InstanceRole": "CORE", "InstanceType": "m5.xlarge", "InstanceCount": 1},
            ]},
        }),
    );
    created["JobFlowId"].as_str().unwrap().to_owned()
}

/// Adds a step, and returns its id when it has failed.
fn failed_step(emr: &Emr, cluster: &str, arguments: &[&str]) -> String {
    let step = json!({"Name": "fails", "ActionOnFailure": "CONTINUE",
        "HadoopJarStep": {"Jar": "command-runner.jar", "Args": arguments}});
    let added = emr.call("AddJobFlowSteps", &json!({"JobFlowId": cluster, "Steps": [step]}));
    let id = added["StepIds"][0].as_str().unwrap().to_owned();
    until("the step to fail", || {
        let step = emr.call("DescribeStep", &json!({"ClusterId": cluster, "StepId": id}));
        step["Step"]["Status"]["State"] == "FAILED"
    });
    id
}

fn until_cluster_is(emr: &Emr, cluster: &str, state: &str) {
    until(&format!("the cluster to be {state}"), || {
        emr.call("DescribeCluster", &json!({"ClusterId": cluster}))["Cluster"]["Status"]["State"] == state
    });
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LIMIT, "waited {} s for {what}", LIMIT.as_secs());
        thread::sleep(Duration::from_millis(200));
    }
}

/// The first cause, once the logs are uploaded.
fn cause(emr: &Emr, arguments: &[&str]) -> Value {
    let mut report = Value::Null;
    until("the cause", || {
        let finished = of_user(emr, &[&["diagnose", "--json"], arguments].concat());
        report = serde_json::from_slice(&finished.stdout).unwrap_or_else(|_| panic!("{}", finished.stderr));
        assert!([0, 65, 75].contains(&finished.code), "{}", finished.stderr);
        report["outcome"] == "cause"
    });
    report["causes"][0].clone()
}

#[test]
fn failures_of_clusters_and_steps_are_explained() {
    let Some(emr) = Emr::start() else { return };
    emr.put("check.sh", b"#!/bin/bash\necho 'node-check: glibc 2.26, expected 2.34 or newer: choose EMR release 7.0 or newer' >&2\nexit 78\n");

    // A bootstrap action fails: its own message is more specific than the reason of the cluster's state.
    let id = cluster(&emr, &["s3://bucket/check.sh"]);
    until_cluster_is(&emr, &id, "TERMINATED_WITH_ERRORS");
    let found = cause(&emr, &["--cluster", &id]);
    assert!(["node-check", "bootstrap-code"].contains(&found["rule"].as_str().unwrap()), "{found}");
    until("the log of the action", || cause(&emr, &["--cluster", &id])["rule"] == "node-check");

    // A step reads a bucket that does not exist. Its logs are not uploaded at first.
    let id = cluster(&emr, &[]);
    until_cluster_is(&emr, &id, "WAITING");
    emr.order("POST", "logs", &json!({"held": true}));
    let streaming = ["hadoop-streaming", "-mapper", "cat", "-output", "s3://bucket/out"];
    let step = failed_step(&emr, &id, &[&streaming[..], &["-input", "s3://no-such-bucket/reviews"]].concat());
    let early = of_user(&emr, &["logs", "--cluster", &id, "--step", &step]).with_code(75);
    assert!(
        early
            .stderr
            .contains(&format!("found no log of step {step}; EMR uploads logs about every five minutes")),
        "{}",
        early.stderr
    );
    emr.order("POST", "logs", &json!({"held": false}));
    let found = cause(&emr, &["--cluster", &id, "--step", &step]);
    assert_eq!(found["rule"], "s3-no-bucket", "{found}");
    let listed = of_user(&emr, &["logs", "--cluster", &id, "--step", &step]).succeeded().said();
    assert!(listed.contains(&format!("/steps/{step}/stderr")), "{listed}");

    let step = failed_step(&emr, &id, &[&streaming[..], &["-input", "s3://bucket/no-such-folder"]].concat());
    assert_eq!(cause(&emr, &["--cluster", &id, "--step", &step])["rule"], "input-missing");

    // Spot instances are lost: only the reason of the cluster's state shows it.
    let reason = "Server.SpotInstanceTermination: Spot instance termination";
    emr.order("POST", &format!("clusters/{id}"), &json!({"dies": "INSTANCE_FAILURE", "message": reason}));
    until_cluster_is(&emr, &id, "TERMINATED_WITH_ERRORS");
    let all = of_user(&emr, &["diagnose", "--json", "--cluster", &id]).succeeded();
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let rules: Vec<_> =
        all["causes"].as_array().unwrap().iter().map(|cause| cause["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["s3-no-bucket", "spot-loss", "input-missing"], "{all}");
    assert!(!all.to_string().contains(tests::emr::SECRET_KEY));
}

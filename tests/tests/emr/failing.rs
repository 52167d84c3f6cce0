//! Bootstrap actions, reducers and merge that fail: one line with the exit code of the stage, the states of EMR, and the
//! cause that `emr diagnose` finds in the logs. emr/tests/jobs has a mapper that fails.

use serde_json::json;
use tests::programs::run;

use crate::job_file::{JobFile, reviews};
use crate::served::{Turn, emr, message};

/// Runs a job that fails. Returns its message, the states of its steps, and the causes.
fn failed(turn: &Turn, job: &JobFile, code: i32) -> (String, Vec<String>, String) {
    let finished = turn.run("run", job, &[]).with_code(code);
    let cluster = turn.clusters_of(job).remove(0);
    let id = cluster["Id"].as_str().unwrap();
    let ended = turn.until("the end of the cluster", || {
        let state =
            turn.call("DescribeCluster", &json!({"ClusterId": id}))["Cluster"]["Status"]["State"].clone();
        state.as_str().unwrap().starts_with("TERMINATED").then(|| state.as_str().unwrap().to_owned())
    });
    assert_eq!(ended, "TERMINATED_WITH_ERRORS");
    let mut diagnose = turn.command("diagnose");
    let causes = run(diagnose.args(["--cluster", id, "--log", "s3://bucket/logs/"]), b"").succeeded().said();
    (message(&finished), turn.step_states(&cluster), causes)
}

#[test]
fn a_failed_bootstrap_action_is_named() {
    let Some(turn) = emr() else { return };
    turn.put(
        "bootstrap/full.sh",
        b"#!/bin/sh\necho 'cp: error writing: No space left on device' >&2\nexit 3\n",
    );
    let action = "[[cluster.bootstrap]]\nname = \"full\"\nscript = \"s3://bucket/bootstrap/full.sh\"";
    let job = JobFile::with(&turn, "bootstrap-fails", "s3://bucket/in/none/", "", action);
    let (message, steps, causes) = failed(&turn, &job, 70);
    assert!(message.contains("bootstrap action 1"), "{message}");
    assert_eq!(steps, ["CANCELLED", "CANCELLED"]);
    assert!(causes.contains("bootstrap"), "{causes}");
}

#[test]
fn a_failed_reducer_is_named() {
    let Some(turn) = emr() else { return };
    turn.put("in/few/few.json", &reviews(200, 6));
    // A commit record that no reducer wrote.
    turn.put("runs/reducer-fails/commit/part-00000.json", b"{\"damaged\": true}\n");
    let job = JobFile::new(&turn, "reducer-fails", "s3://bucket/in/few/");
    let (message, steps, causes) = failed(&turn, &job, 70);
    assert!(message.contains("Hadoop job of reducer-fails"), "{message}");
    assert_eq!(steps, ["FAILED", "CANCELLED"]);
    assert!(causes.contains("[damaged-run]"), "{causes}");
}

#[test]
fn a_failed_merge_is_named() {
    let Some(turn) = emr() else { return };
    // Few enough lines for the mapper, which refuses only after 1,000 lines.
    let bad = "no review\n".repeat(400);
    turn.put("in/half/half.json", &[&reviews(300, 7)[..], bad.as_bytes()].concat());
    let job = JobFile::new(&turn, "merge-fails", "s3://bucket/in/half/");
    let (message, steps, causes) = failed(&turn, &job, 65);
    assert!(message.contains("merge of merge-fails"), "{message}");
    assert_eq!(steps, ["COMPLETED", "FAILED"]);
    assert!(causes.contains("[bad-lines]"), "{causes}");
    assert!(turn.get(&job.dataset()).is_none());
}

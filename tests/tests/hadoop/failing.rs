//! A failing task reports its reason everywhere an operator looks.

use std::fs;
use std::thread;

use tests::{prove, say};

use crate::cluster::{Cluster, cluster, until};
use crate::job::{Job, json};

/// Enough lines for a mapper to judge, all of them bad.
pub fn garbage() -> String {
    (0..1200).map(|n| format!("not a review, number {n}\n")).collect()
}

#[test]
fn a_failing_reducer_reports_its_reason_in_status_log_and_exit_code() {
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    // It fails at one of its first texts, while Hadoop has much more input for it.
    let job = Job::new(cluster, "failing-reducer", "many", 1).reducer("--partition 0 --partitions 2");
    let job = job.with("mapreduce.input.fileinputformat.split.minsize=100000000");
    let message = "reducer: line ";
    says_why(
        cluster,
        job.with("mapreduce.reduce.maxattempts=2"),
        "r",
        message,
        "the text belongs to partition 1 of 2",
    );
}

#[test]
fn a_failing_mapper_reports_its_reason_in_status_log_and_exit_code() {
    if !prove() {
        say("SKIPPED a failing mapper: PROVE=1 has the time, and a failing reducer is tested");
        return;
    }
    let Some(cluster) = cluster() else { return };
    let _nodes = cluster.nodes.read();
    let job = Job::of_maps(cluster, "failing-mapper", "garbage", "mapper").with("mapreduce.job.maps=1");
    let message = "mapper: 1200 of 1200 lines are bad";
    says_why(cluster, job.with("mapreduce.map.maxattempts=2"), "m", message, "bad_line 1200");
}

/// The second attempt waits until the status of the first has been read, and then fails like it.
fn says_why(cluster: &Cluster, job: Job<'_>, kind: &str, message: &str, found: &str) {
    let job = job.with_luck(&[("0.1", "waits")]);
    let folder = job.folder();
    let (ran, page) = thread::scope(|scope| {
        let ran = scope.spawn(|| job.run());
        until("the second attempt", || folder.join("0.1.node").exists().then_some(()));
        let environment = fs::read_to_string(folder.join("0.1.environment")).unwrap();
        let job = environment.lines().find_map(|line| line.strip_prefix("mapreduce_job_id=")).unwrap();
        let (application, task) = (job.replace("job_", "application_"), job.replace("job_", "task_"));
        let attempts =
            format!("/proxy/{application}/ws/v1/mapreduce/jobs/{job}/tasks/{task}_{kind}_000000/attempts");
        let page = until("the attempts", || json(&cluster.page(&attempts)));
        fs::write(folder.join("go"), "").unwrap();
        (ran.join().unwrap(), page)
    });

    assert!(!ran.said.contains("completed successfully"), "{}", ran.said);
    assert!(ran.said.contains("subprocess failed with code 65"), "{}", ran.said);
    let attempts = page["taskAttempts"]["taskAttempt"].as_array().unwrap();
    let first = attempts.iter().find(|attempt| attempt["id"].as_str().unwrap().ends_with("_0")).unwrap();
    assert_eq!(first["state"], "FAILED");
    let status = first["status"].as_str().unwrap();
    let says = |status: &str| status.starts_with(&format!("FATAL {message}")) && status.contains(found);
    assert!(says(status), "{first}");

    let logs = ran.logs();
    let errors = logs.split("LogType:stderr\n").filter(|rest| rest.contains(message));
    let errors: Vec<_> = errors.map(|rest| rest.split("\nEnd of ").next().unwrap()).collect();
    assert_eq!(errors.len(), 2, "{logs}");
    for log in errors {
        // Hadoop appends the phase.
        let last = log.trim_end().lines().last().unwrap();
        assert_eq!(status.rsplit_once(" > ").unwrap().0, format!("FATAL {last}"), "{log}");
    }
}

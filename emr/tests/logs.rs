//! `emr logs` and `emr diagnose` on log folders as EMR and Hadoop write them, local and in S3.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tests::compressed::gzip;
use tests::programs::{Finished, run, without_hadoop};
use tests::s3_server::{S3Server, with_s3};

const STEP: &str = "s-2ABCDEFGHIJKL";
const OTHER_STEP: &str = "s-1ABCDEFGHIJKL";
const APPLICATION: &str = "application_1795409013091_0002";
const OTHER_APPLICATION: &str = "application_1795409013091_0001";
const BAD_LINES: &str = "mapper: 1200 of 1200 lines are bad (bad_line 1200), expected at most 0.05 of them; most lines are not JSON objects";

fn emr(arguments: &[&str]) -> Command {
    let mut command = without_hadoop(Path::new(env!("CARGO_BIN_EXE_emr")));
    command.args(arguments);
    command
}

/// The logs of a cluster with two steps. The first one failed for lack of memory, the second because of its input.
fn cluster_logs() -> Vec<(String, Vec<u8>)> {
    let step =
        |id: &str, name: &str, text: String| (format!("j-1/steps/{id}/{name}.gz"), gzip(text.as_bytes()));
    let container = |application: &str, number: u32, name: &str, text: String| {
        let id = application.replace("application", "container");
        (format!("j-1/containers/{application}/{id}_01_{number:06}/{name}.gz"), gzip(text.as_bytes()))
    };
    let client = |application: &str, what: &str| {
        format!(
            "2026-11-23 04:32:43,277 INFO impl.YarnClientImpl: Submitted application {application}\n{what}\nStreaming Command Failed!\n"
        )
    };
    let memory = "Container [pid=7,containerID=container_1_01_000002] is running 359149568B beyond the 'PHYSICAL' memory limit. \
                  Current usage: 726.5 MB of 384 MB physical memory used; 3.0 GB of 806.4 MB virtual memory used. Killing container.";
    let failed =
        "Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code 65";
    vec![
        step(OTHER_STEP, "stderr", client(OTHER_APPLICATION, memory)),
        step(OTHER_STEP, "controller", "2026-11-23T04:33:10.000Z WARN Step failed with exitCode 1\n".to_owned()),
        container(OTHER_APPLICATION, 2, "stderr", "reducer: line 2: the text is less than the previous text, expected texts in bytewise ascending order\n".to_owned()),
        step(STEP, "stderr", client(APPLICATION, failed)),
        step(STEP, "controller", "2026-11-23T04:35:10.000Z WARN Step failed with exitCode 1\n".to_owned()),
        container(APPLICATION, 2, "stderr", format!("mapper: -: bad_line (byte 0)\n{BAD_LINES}\n")),
        container(APPLICATION, 2, "syslog", format!("{failed}\n")),
        (format!("j-1/containers/{APPLICATION}/container_x/launch_container.sh"), b"export SECRET=canary\n".to_vec()),
    ]
}

fn write(folder: &Path, logs: &[(String, Vec<u8>)]) {
    for (name, content) in logs {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

fn json(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.stdout).unwrap()
}

fn rules(report: &Value) -> Vec<&str> {
    report["causes"].as_array().unwrap().iter().map(|cause| cause["rule"].as_str().unwrap()).collect()
}

#[test]
fn the_cause_of_a_step_is_found_in_its_own_containers() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &cluster_logs());
    let path = folder.path().to_str().unwrap();

    let found = run(&mut emr(&["diagnose", path, "--step", STEP]), b"").succeeded();
    let expected = format!(
        "cause      the input has too many bad lines: 1200 of 1200 (bad_line 1200), more than --bad-lines-max 0.05 [bad-lines]\n\
                            evidence   {path}/j-1/containers/{APPLICATION}/container_1795409013091_0002_01_000002/stderr.gz:2\n           {BAD_LINES}\n"
    );
    assert!(found.said().starts_with(&expected), "{}", found.said());

    let report = json(&run(&mut emr(&["diagnose", path, "--step", OTHER_STEP, "--json"]), b"").succeeded());
    assert_eq!(rules(&report), ["keys-out-of-order", "memory-physical"]);
    assert_eq!(report["n_read"], 3, "{report}");
    let report = json(&run(&mut emr(&["diagnose", path, "--json"]), b"").succeeded());
    assert_eq!(rules(&report), ["bad-lines", "keys-out-of-order", "memory-physical"]);
    assert!(!report.to_string().contains("canary"), "{report}");
}

#[test]
fn logs_in_s3_give_the_same_causes_as_local_ones() {
    for server in S3Server::each().filter(|server| server.name() == "s3s-fs") {
        cluster_logs().iter().for_each(|(name, content)| server.put(&format!("logs/{name}"), content));
        let url = format!("http://{}", server.address());
        let in_s3 = |arguments: &[&str]| {
            let place = ["--cluster", "j-1", "--log", "s3://bucket/logs/"];
            with_s3(emr(&[arguments, &place[..]].concat()), &url)
        };

        let report = json(&run(&mut in_s3(&["diagnose", "--json", "--step", STEP]), b"").succeeded());
        assert_eq!(rules(&report), ["bad-lines"]);
        let file = report["causes"][0]["evidence"][0]["file"].as_str().unwrap();
        assert!(file.starts_with("s3://bucket/logs/j-1/containers/"), "{file}");

        let listed = run(&mut in_s3(&["logs", "--step", STEP]), b"").succeeded().said();
        assert!(listed.contains(&format!("s3://bucket/logs/j-1/steps/{STEP}/controller.gz\n")), "{listed}");
        assert!(!listed.contains(OTHER_STEP) && !listed.contains("launch_container.sh"), "{listed}");
        let printed =
            run(&mut in_s3(&["logs", "--step", STEP, "--kind", "controller"]), b"").succeeded().said();
        assert!(
            printed.starts_with(&format!("==> s3://bucket/logs/j-1/steps/{STEP}/controller.gz (")),
            "{printed}"
        );
        assert!(
            printed.contains(" <==\n2026-11-23T04:35:10.000Z WARN Step failed with exitCode 1\n"),
            "{printed}"
        );
    }
}

#[test]
fn a_log_that_is_not_uploaded_yet_is_an_answer_with_a_time() {
    let server = S3Server::start_s3s_fs();
    server.put("logs/j-1/steps/s-1ABCDEFGHIJKL/controller", b"INFO startExec\n");
    let url = format!("http://{}", server.address());
    for arguments in [
        ["diagnose", "--cluster", "j-2", "--log", "s3://bucket/logs"].to_vec(),
        ["logs", "--cluster", "j-2", "--log", "s3://bucket/logs"].to_vec(),
        ["diagnose", "--cluster", "j-1", "--log", "s3://bucket/logs", "--step", STEP].to_vec(),
    ] {
        let finished = run(&mut with_s3(emr(&arguments), &url), b"").with_code(75);
        assert!(finished.stderr.contains(": found no log"), "{}", finished.stderr);
        let (_, time) = finished.stderr.split_once("run this command again after ").unwrap();
        assert!(time.as_bytes()[2] == b':' && time[5..].starts_with(" UTC"), "{time}");
    }
    let mut json_of =
        with_s3(emr(&["diagnose", "--cluster", "j-2", "--log", "s3://bucket/logs", "--json"]), &url);
    let report = json(&run(&mut json_of, b"").with_code(75));
    assert_eq!((&report["outcome"], report["again_at"].as_str().unwrap().len()), (&"no_log".into(), 5));
}

#[test]
fn a_folder_without_logs_and_a_missing_one_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let none = run(&mut emr(&["diagnose", path]), b"").with_code(66);
    assert!(
        none.stderr.contains("found no log, expected stderr, syslog, controller or *.log; check the path"),
        "{}",
        none.stderr
    );
    let missing = run(&mut emr(&["diagnose", &format!("{path}/no")]), b"").with_code(66);
    assert!(
        missing.stderr.contains("/no: no such file or folder, expected logs; check the path"),
        "{}",
        missing.stderr
    );
}

#[test]
fn the_last_telling_lines_are_shown_if_no_rule_knows_the_cause() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("job.log");
    let noise = "2026-11-23 04:32:41 INFO mapreduce.Job:  map 0% reduce 0%\n".repeat(1000);
    fs::write(&log, format!("{noise}com.example.OddException: the moon is full, aws_secret_access_key=canary\nStreaming Command Failed!\n")).unwrap();
    let finished = run(&mut emr(&["diagnose", log.to_str().unwrap()]), b"").with_code(65);
    let expected = format!(
        "evidence   {}:1001\n           com.example.OddException: the moon is full, aws_secret_access_key=***\n",
        log.display()
    );
    assert!(finished.said().contains(&expected), "{}", finished.said());
    assert!(finished.stderr.contains("no rule names the cause"), "{}", finished.stderr);
}

#[test]
fn a_job_that_completed_has_no_failure_but_its_repeated_attempts_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("job.log");
    let completed = "2026-11-23 04:32:41 INFO mapreduce.Job: Job job_1_0001 completed successfully\n";
    fs::write(&log, completed).unwrap();
    let finished = run(&mut emr(&["diagnose", log.to_str().unwrap()]), b"").succeeded();
    assert_eq!(finished.said(), "result     no log reports a failure\nlogs       1 read\n");
    // YARN also ends containers of jobs that complete.
    let ended = "[2026-11-23 04:32:40.730]Container exited with a non-zero exit code 143.";
    for (text, expected) in [
        (format!("{ended}\n{completed}"), "no log reports a failure"),
        (ended.to_owned(), "[container-failed]"),
    ] {
        fs::write(&log, text).unwrap();
        let finished = run(&mut emr(&["diagnose", log.to_str().unwrap()]), b"").succeeded().said();
        assert!(finished.contains(expected), "{finished}");
    }
    fs::write(&log, format!("{BAD_LINES}\n{completed}")).unwrap();
    let finished = run(&mut emr(&["diagnose", log.to_str().unwrap()]), b"").succeeded().said();
    assert!(
        finished.contains("[bad-lines]") && finished.contains("result     the job completed; "),
        "{finished}"
    );
}

#[test]
fn the_number_of_logs_that_are_read_is_bounded_and_the_newest_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    for number in 0..500_u64 {
        let container = folder.path().join(format!("application_1_0001/container_1_0001_01_{number:06}"));
        fs::create_dir_all(&container).unwrap();
        let log = container.join("stderr");
        fs::write(&log, if number == 499 { format!("{BAD_LINES}\n") } else { "fine\n".to_owned() }).unwrap();
        let file = fs::File::options().write(true).open(log).unwrap();
        file.set_modified(now - Duration::from_secs(10_000 - number)).unwrap();
    }
    let report =
        json(&run(&mut emr(&["diagnose", folder.path().to_str().unwrap(), "--json"]), b"").succeeded());
    assert_eq!(rules(&report), ["bad-lines"]);
    assert_eq!(
        (&report["n_logs"], &report["n_read"], &report["n_omitted"]),
        (&500.into(), &300.into(), &200.into())
    );
}

#[test]
fn the_containers_of_failed_attempts_are_read_first() {
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let handler =
        "INFO [AsyncDispatcher event handler] org.apache.hadoop.mapreduce.v2.app.job.impl.TaskAttemptImpl:";
    let master = format!(
        "{handler} TaskAttempt: [attempt_1_0001_m_000000_0] using containerId: [container_1_0001_01_000002 on NM: [host:8041]\n\
         {handler} attempt_1_0001_m_000000_0 TaskAttempt Transitioned from RUNNING to FAIL_FINISHING_CONTAINER\n"
    );
    // The failed attempt is the oldest of more logs than are read.
    for number in 1..=500_u64 {
        let container = folder.path().join(format!("application_1_0001/container_1_0001_01_{number:06}"));
        fs::create_dir_all(&container).unwrap();
        let (name, text) = match number {
            1 => ("syslog", master.clone()),
            2 => ("stderr", format!("{BAD_LINES}\n")),
            _ => ("stderr", "fine\n".to_owned()),
        };
        fs::write(container.join(name), text).unwrap();
        let file = fs::File::options().write(true).open(container.join(name)).unwrap();
        file.set_modified(now - Duration::from_secs(10_000 - number)).unwrap();
    }
    let report =
        json(&run(&mut emr(&["diagnose", folder.path().to_str().unwrap(), "--json"]), b"").succeeded());
    assert_eq!(rules(&report), ["bad-lines"]);
    assert_eq!(report["n_read"], 300);
}

#[test]
fn containers_are_read_even_if_a_cluster_has_hundreds_of_steps() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..400 {
        let step = folder.path().join(format!("steps/s-{number:013}"));
        fs::create_dir_all(&step).unwrap();
        fs::write(step.join("controller"), "INFO startExec\n").unwrap();
    }
    let container = format!("containers/{APPLICATION}/container_1795409013091_0002_01_000002/stderr");
    write(folder.path(), &[(container, format!("{BAD_LINES}\n").into_bytes())]);
    let report =
        json(&run(&mut emr(&["diagnose", folder.path().to_str().unwrap(), "--json"]), b"").succeeded());
    assert_eq!(rules(&report), ["bad-lines"]);
}

#[test]
fn the_end_of_a_long_log_is_printed_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("stderr");
    let lines: String = (1..=999).map(|n| format!("line {n}\n")).collect();
    let lines = lines + "fs.s3a.secret.key=canary\n";
    fs::write(&log, lines).unwrap();
    let printed = run(&mut emr(&["logs", log.to_str().unwrap(), "--kind", "stderr", "--lines", "2"]), b"")
        .succeeded()
        .said();
    assert!(printed.ends_with(" <==\n... 998 lines\nline 999\nfs.s3a.secret.key=***\n\n"), "{printed}");
}

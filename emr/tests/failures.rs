//! Runs that fail on Hadoop or on this machine: the last line, `emr status`, `emr logs` and `emr diagnose` name the cause.
//! The job client, `yarn` and `sentimill` are scripts with the output of the real ones.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use tests::programs::{Finished, run, without_hadoop};
use tests::s3_server::{S3Server, with_s3};

const JOB: &str = "name = \"x\"\nrun = \"run\"\ndataset = \"x.h5\"\nprograms = \"bin\"\n\
                   [input]\nplaces = [\"hdfs:///reviews/\"]\npreset = \"yelp\"\n";

/// The output of Hadoop's job client for a gzip file that is cut off.
const CLIENT: &str = "\
2026-11-28 15:01:20,917 INFO impl.YarnClientImpl: Submitted application application_17_0001
2026-11-28 15:01:20,959 INFO mapreduce.Job: Running job: job_17_0001
2026-11-28 15:01:30,933 INFO mapreduce.Job: Task Id : attempt_17_0001_m_000000_0, Status : FAILED
Error: java.io.EOFException: Unexpected end of input stream
\tat org.apache.hadoop.io.compress.DecompressorStream.decompress(DecompressorStream.java:165)

2026-11-28 15:01:35,005 INFO mapreduce.Job: Job job_17_0001 failed with state FAILED due to: Task failed task_17_0001_m_000000
2026-11-28 15:01:35,075 ERROR streaming.StreamJob: Job not successful!
Streaming Command Failed!
";

/// The output of `yarn logs`.
const TASKS: &str = "\
Container: container_17_0001_01_000002 on h_1
LogType:launch_container.sh
export AWS_SECRET_ACCESS_KEY=\"canary\"
End of LogType:launch_container.sh
Container: container_17_0001_01_000002 on h_1
LogType:syslog
2026-11-28 15:01:30,082 INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: hdfs://h/reviews/cut.json.gz:0+133220
2026-11-28 15:01:30,300 WARN [main] org.apache.hadoop.mapred.YarnChild: Exception running child : java.io.EOFException: Unexpected end of input stream
Container: container_17_0001_01_000003 on h_2
LogType:syslog
2026-11-28 15:01:30,082 INFO [main] org.apache.hadoop.mapred.MapTask: Processing split: hdfs://h/reviews/good.json.gz:0+38119
";

const CAUSE: &str = "hdfs://h/reviews/cut.json.gz is cut off, damaged, or not compressed as its name says";
const REMEDY: &str = "test the file: hadoop fs -cat FILE | gzip -t (or bzip2 -t, zstd -t); copy a damaged file again, and rename a plain file that ends in .gz";

/// A folder with JOB.toml and scripts in place of programs.
struct World(TempDir);

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("JOB.toml"), JOB).unwrap();
        for name in ["mapper", "combiner", "reducer", "merge"] {
            fs::copy(env!("CARGO_BIN_EXE_emr"), folder.path().join("bin").join(name)).unwrap();
        }
        Self(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    /// A program that prints this text to a stream and exits.
    fn program(&self, name: &str, stream: u8, text: &str, code: u8) {
        self.script(name, &format!("cat <<'END' >&{stream}\n{text}END\nexit {code}\n"));
    }

    fn script(&self, name: &str, content: &str) {
        let path = self.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{content}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = without_hadoop(Path::new(env!("CARGO_BIN_EXE_emr")));
        let path = format!("{}:/usr/bin:/bin", self.path().join("bin").display());
        command.args(arguments).current_dir(self.path()).env("PATH", path).env("HOME", self.path());
        for name in ["HADOOP_STREAMING_JAR", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"] {
            command.env_remove(name);
        }
        command
    }

    fn emr(&self, arguments: &[&str]) -> Finished {
        run(&mut self.command(arguments), b"")
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }
}

fn last_line(finished: &Finished) -> &str {
    finished.stderr.trim_end().lines().last().unwrap()
}

/// `at 2026-11-28 15:01:35 UTC` to `at TIME`, and the name of this machine to HOST.
fn without_time(text: &str) -> String {
    let host = hostname();
    let text = text.replace(&format!(" on {host} "), " on HOST ");
    let (before, rest) = text.split_once(" at 20").unwrap();
    let (_, after) = rest.split_once(" UTC").unwrap();
    format!("{before} at TIME{after}")
}

fn hostname() -> String {
    run(&mut Command::new("hostname"), b"").said().trim().to_owned()
}

#[test]
fn a_damaged_file_of_a_hadoop_job_is_named_by_every_command() {
    let world = World::new();
    world.program("mapred", 2, CLIENT, 1);
    world.program("yarn", 1, TASKS, 0);
    let failed = world.emr(&["run", "JOB.toml", "--runner", "hadoop", "--quiet"]).with_code(65);
    let expected =
        format!("emr: the Hadoop job failed: {CAUSE}; {REMEDY}; emr diagnose JOB.toml shows the evidence\n");
    assert_eq!(failed.stderr, expected);
    // Scripts of containers contain environments, and other tasks have not failed.
    let kept = world.file("run/job/failed-1.tasks.log");
    assert!(
        kept.contains("cut.json.gz") && !kept.contains("canary") && !kept.contains("good.json.gz"),
        "{kept}"
    );

    let run = world.path().join("run");
    let diagnosed = world.emr(&["diagnose", "JOB.toml"]).succeeded().said();
    let expected = format!(
        "run        --runner hadoop failed on HOST at TIME with exit code 65\n\
         cause      {CAUSE} [input-damaged]\n\
         evidence   {run}/job/failed-1.log:4\n           Error: java.io.EOFException: Unexpected end of input stream\n\
         evidence   {run}/job/failed-1.tasks.log:6\n           2026-11-28 15:01:30,300 WARN [main] \
         org.apache.hadoop.mapred.YarnChild: Exception running child : java.io.EOFException: Unexpected end of input stream\n           \
         the task read hdfs://h/reviews/cut.json.gz, bytes 0 to 133220\n\
         remedy     {REMEDY}\n\nlogs       2 read\n",
        run = run.display()
    );
    assert_eq!(without_time(&diagnosed), expected);
    let json: Value =
        serde_json::from_slice(&world.emr(&["diagnose", "JOB.toml", "--json"]).succeeded().stdout).unwrap();
    assert_eq!((&json["run"]["runner"], &json["run"]["exit_code"]), (&"hadoop".into(), &65.into()));
    let input = &json["causes"][0]["evidence"][1]["input"];
    assert_eq!(input, "hdfs://h/reviews/cut.json.gz, bytes 0 to 133220");

    let status = world.emr(&["status", "JOB.toml"]).succeeded().said();
    let expected = format!(
        "run               file://{run}\n\
         state             --runner hadoop failed on HOST at TIME with exit code 65\n\
         message           the Hadoop job failed: {CAUSE}; {REMEDY}; emr diagnose JOB.toml shows the evidence\n\
         application       application_17_0001\n\
         log               file://{run}/job/failed-1.log\n\
         log               file://{run}/job/failed-1.tasks.log\n\
         shards            0 of 16 committed\n\
         next              emr diagnose JOB.toml shows the cause; emr run JOB.toml --runner hadoop starts it again\n",
        run = run.display()
    );
    assert_eq!(without_time(&status), expected);
    let listed = world.emr(&["logs", "JOB.toml"]).succeeded().said();
    assert_eq!(listed.lines().count(), 2, "{listed}");
}

#[test]
fn the_message_of_a_task_is_the_cause_if_no_rule_knows_it() {
    let world = World::new();
    let code =
        "Error: java.lang.RuntimeException: PipeMapRed.waitOutputThreads(): subprocess failed with code 65\n";
    world.program("mapred", 2, &format!("INFO mapreduce.Job: Running job: job_17_0001\n{code}"), 1);
    let tasks = format!(
        "Container: container_17_0001_01_000002 on h_1\nLogType:stderr\nmapper: field stars: found 7 of 10, expected 1 to 5; map them\n\
         Container: container_17_0001_01_000002 on h_1\nLogType:syslog\n{code}"
    );
    world.program("yarn", 1, &tasks, 0);
    let failed = world.emr(&["run", "JOB.toml", "--runner", "hadoop"]).with_code(65);
    let expected = "emr: the Hadoop job failed: mapper: field stars: found 7 of 10, expected 1 to 5; map them; \
                    emr diagnose JOB.toml shows the evidence";
    assert_eq!(last_line(&failed), expected);
    let diagnosed = world.emr(&["diagnose", "JOB.toml"]).succeeded().said();
    assert!(
        diagnosed.contains("\ncause      mapper: field stars: found 7 of 10, expected 1 to 5 [exit-65]\n"),
        "{diagnosed}"
    );
    assert!(diagnosed.contains("\nremedy     map them\n"), "{diagnosed}");
}

#[test]
fn a_job_whose_task_logs_cannot_be_fetched_names_the_command_for_them() {
    let world = World::new();
    // There is no command yarn.
    world.program("mapred", 2, CLIENT, 1);
    let failed = world.emr(&["run", "JOB.toml", "--runner", "hadoop"]).with_code(65);
    let expected = format!(
        "emr: the Hadoop job failed: an input file is cut off, damaged, or not compressed as its name says; {REMEDY}; \
         emr diagnose JOB.toml shows the evidence, yarn logs -applicationId application_17_0001 shows the logs of its tasks"
    );
    assert_eq!(last_line(&failed), expected);
    // Neither rules nor programs know the cause.
    world.program(
        "mapred",
        2,
        "INFO mapreduce.Job: Running job: job_local17_0001\nError: java.lang.Odd: AWS_SESSION_TOKEN=canary\n",
        1,
    );
    let failed = world.emr(&["run", "JOB.toml", "--runner", "hadoop", "--quiet"]).with_code(70);
    let expected = "emr: the Hadoop job failed: Error: java.lang.Odd: AWS_SESSION_TOKEN=***; \
                    emr diagnose JOB.toml shows the last lines that report a failure\n";
    assert_eq!(failed.stderr, expected);
    world.emr(&["diagnose", "JOB.toml"]).with_code(65);
    assert!(!world.file("run/job/failed-2.json").contains("canary"));
}

#[test]
fn a_run_that_failed_on_this_machine_is_known_with_its_message() {
    let world = World::new();
    let message = "sentimill: cut.gz: cannot read it: the gzip member at byte 0 is cut off at byte 7; fetch the file again";
    world.script(
        "sentimill",
        &format!("echo '{message}' >&2\necho '{message}' >\"$SENTIMILL_ERROR_FILE\"\nexit 65\n"),
    );
    let failed = world.emr(&["run", "JOB.toml", "--runner", "local"]).with_code(65);
    assert_eq!(
        failed.stderr,
        format!("{message}\nemr: sentimill: exited with code 65; its message is above\n")
    );
    let diagnosed = world.emr(&["diagnose", "JOB.toml"]).succeeded().said();
    let expected = format!(
        "run        --runner local failed on HOST at TIME with exit code 65\n\
         cause      cut.gz is cut off or damaged [input-cut-off]\n\
         evidence   {}/job/failed-1.log:1\n           {message}\n\
         remedy     copy the file again, and compare its size with the original\n\nlogs       1 read\n",
        world.path().join("run").display()
    );
    assert_eq!(without_time(&diagnosed), expected);
    let status = without_time(&world.emr(&["status", "JOB.toml"]).succeeded().said());
    assert!(
        status.contains("\nstate             --runner local failed on HOST at TIME with exit code 65\n"),
        "{status}"
    );
    assert!(
        status.contains(&format!("\nmessage           {message}\n")) && !status.contains("shards"),
        "{status}"
    );

    // A program that was killed leaves no message.
    world.script("sentimill", "kill -9 $$\n");
    let killed = world.emr(&["run", "JOB.toml", "--runner", "local"]).with_code(75);
    let expected = "sentimill: was killed by signal 9; check the memory of this machine with dmesg, then run the command again";
    assert_eq!(killed.stderr, format!("emr: {expected}\n"));
    let diagnosed = world.emr(&["diagnose", "JOB.toml"]).succeeded().said();
    assert!(diagnosed.contains("\ncause      sentimill: was killed by signal 9 [message]\n"), "{diagnosed}");
}

#[test]
fn a_run_without_a_record_and_a_job_in_progress_are_distinguished() {
    let world = World::new();
    for command in ["status", "diagnose", "logs"] {
        let expected = format!(
            "emr: file://{}/run: found no record of a run of this job; start it with emr run JOB.toml\n",
            world.path().display()
        );
        assert_eq!(world.emr(&[command, "JOB.toml"]).with_code(66).stderr, expected);
    }
    fs::create_dir(world.path().join("run")).unwrap();
    fs::write(world.path().join("run/job.json"), "{}").unwrap();
    let status = world.emr(&["status", "JOB.toml"]).succeeded().said();
    assert!(
        status.contains(
            "\nstate             started, and no end is recorded: it runs, or its command was killed\n"
        ),
        "{status}"
    );
    fs::create_dir(world.path().join("run/job")).unwrap();
    fs::write(
        world.path().join("run/job/hadoop.log"),
        "INFO mapreduce.Job: Job job_17_0001 completed successfully\n",
    )
    .unwrap();
    let status = world.emr(&["status", "JOB.toml", "--json"]).succeeded();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["state"], "not_merged");
    let diagnosed = world.emr(&["diagnose", "JOB.toml"]).succeeded().said();
    assert_eq!(diagnosed, "result     no log reports a failure\nlogs       1 read\n");
}

#[test]
fn tasks_without_credentials_are_refused_before_the_job_is_submitted() {
    let server = S3Server::start_s3s_fs();
    let world = World::new();
    world.program("mapred", 2, "ran\n", 1);
    let job = |more: &str| {
        let text = format!("{}[hadoop]\n{more}\n", JOB.replace("run = \"run\"", "run = \"s3://bucket/run\""));
        fs::write(world.path().join("JOB.toml"), text).unwrap();
        let command = world.command(&["run", "JOB.toml", "--runner", "hadoop"]);
        run(&mut with_s3(command, &format!("http://{}", server.address())), b"")
    };
    let refused = job("").with_code(78);
    let expected = "emr: JOB.toml:8: hadoop.credentials: not set, and tasks of Hadoop do not get the credentials of this machine, which \
                    are from the environment (AWS_ACCESS_KEY_ID); expected a file on each node with the credentials for \
                    s3://bucket/run, in the format of ~/.aws/credentials and with mode 600, or \"role\" if the role of the nodes may \
                    use the bucket; set it in the job file\n";
    assert_eq!(refused.stderr, expected);
    let refused = job("credentials = \"AKIA:canary\"").with_code(78);
    assert_eq!(
        refused.stderr,
        "emr: JOB.toml:9: hadoop.credentials: another text, expected role, or the absolute path of a file on each node\n"
    );
    // The tasks get the path, the region and the endpoint, and no key.
    world.script("mapred", "echo \"ARGUMENTS $*\" >&2\nexit 1\n");
    let with_file = job("credentials = \"/etc/sentimill/credentials\"").with_code(70).stderr;
    for variable in [
        "AWS_SHARED_CREDENTIALS_FILE=/etc/sentimill/credentials".to_owned(),
        "AWS_REGION=eu-central-1".to_owned(),
        format!("AWS_ENDPOINT_URL_S3=http://{}", server.address()),
    ] {
        assert!(with_file.contains(&format!(" -cmdenv {variable} ")), "{variable}: {with_file}");
    }
    assert!(!with_file.contains("canary"), "{with_file}");
    let with_role = job("credentials = \"role\"").with_code(70).stderr;
    assert!(
        with_role.contains(" -cmdenv AWS_REGION=eu-central-1 ") && !with_role.contains("CREDENTIALS"),
        "{with_role}"
    );
}

#[test]
fn a_job_client_that_cannot_be_started_is_recorded_too() {
    let world = World::new();
    let failed = world.emr(&["run", "JOB.toml", "--runner", "hadoop"]).with_code(78);
    let expected = "mapred: cannot start the program; put the commands of a Hadoop installation on the PATH, or use another runner: \
                    no such file or folder";
    assert_eq!(failed.stderr, format!("emr: {expected}\n"));
    let status = world.emr(&["status", "JOB.toml"]).succeeded().said();
    assert!(status.contains(&format!("\nmessage           {expected}\n")), "{status}");
    let diagnosed = world.emr(&["diagnose", "JOB.toml"]).succeeded().said();
    assert!(diagnosed.contains("\ncause      mapred: cannot start the program [message]\n"), "{diagnosed}");
}

//! The command line of `emr` without a service: help, refused arguments, and `--runner hadoop` with a job client that
//! fails.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

/// A job client that prints its arguments and then `$LINES` to standard error.
const CLIENT: &str = "#!/bin/sh\necho \"ARGUMENTS $*\" >&2\nprintf '%b' \"$LINES\" >&2\nexit 1\n";
const JOB: &str = "name = \"x\"\nrun = \"runs/x\"\ndataset = \"x.h5\"\nprograms = \"bin\"\n\
                   [input]\nplaces = [\"hdfs:///reviews/\"]\npreset = \"yelp\"\n";
const MISSING: &str = "ERROR streaming.StreamJob: Error Launching job : Input path does not exist: hdfs://h/reviews\\n\
                       Streaming Command Failed!\\n";

/// A job file in the folder `jobs`, with programs and a job client.
fn world() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("jobs/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(folder.path().join("jobs/JOB.toml"), JOB).unwrap();
    for name in ["mapper", "combiner", "reducer", "merge"] {
        fs::copy(env!("CARGO_BIN_EXE_emr"), bin.join(name)).unwrap();
    }
    let client = bin.join("mapred");
    fs::write(&client, CLIENT).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn run(folder: &Path, job: &str, arguments: &[&str], lines: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", folder.join("jobs/bin").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_emr"));
    command.args(["run", job, "--runner", "hadoop"]).args(arguments).current_dir(folder);
    command.env("PATH", path).env("LINES", lines).env_remove("HADOOP_STREAMING_JAR").output().unwrap()
}

#[test]
fn a_job_that_fails_keeps_the_output_of_its_client_also_when_it_is_quiet() {
    let world = world();
    let run_folder = world.path().canonicalize().unwrap().join("jobs/runs/x");
    let done = run(world.path(), "jobs/JOB.toml", &["--quiet"], MISSING);
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(66), "{said}");
    let kept = run_folder.join("job/failed-1.log");
    let expected = String::from(
        "emr: the Hadoop job failed: the input hdfs://h/reviews does not exist; check input.places in the job file, or -input; copy a local file to HDFS with hdfs dfs -put; \
         S3 names are case-sensitive; emr diagnose jobs/JOB.toml shows the evidence\n",
    );
    assert_eq!(said, expected);
    let log = fs::read_to_string(&kept).unwrap();
    assert!(log.contains("Input path does not exist: hdfs://h/reviews"), "{log}");
    // The tasks run in folders of their own.
    assert!(log.contains(&format!("--run {}", run_folder.display())), "{log}");

    let mut diagnose = Command::new(env!("CARGO_BIN_EXE_emr"));
    let found = diagnose.arg("diagnose").arg(&kept).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert!(found.contains("the input hdfs://h/reviews does not exist"), "{found}");

    // From another folder it is the same job, and it is started again.
    let jobs = world.path().join("jobs");
    fs::create_dir_all(jobs.join("jobs/bin")).unwrap();
    fs::copy(jobs.join("bin/mapred"), jobs.join("jobs/bin/mapred")).unwrap();
    let again = run(&jobs, "JOB.toml", &[], "subprocess failed with code 65\\n");
    let said = String::from_utf8(again.stderr).unwrap();
    assert_eq!(again.status.code(), Some(65), "{said}");
    assert!(run_folder.join("job/failed-2.log").exists(), "{said}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), log);
    assert!(!run_folder.join("job/hadoop.log").exists());
}

fn emr(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_emr")).args(arguments).current_dir(folder).output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn without_a_command_the_help_is_printed_as_it_is() {
    let (code, said) = emr(Path::new("."), &[]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("\nCommands:\n") && said.contains("\n  plan "), "{said}");
}

#[test]
fn a_flag_without_an_effect_is_refused() {
    let world = world();
    for runner in ["local", "hadoop"] {
        let refused = emr(world.path(), &["run", "jobs/JOB.toml", "--detach", "--runner", runner]);
        let expected = format!(
            "emr: --detach: a job with --runner {runner} ends with its command, expected --runner emr; remove --detach\n"
        );
        assert_eq!(refused, (Some(64), expected));
    }
    let (code, said) = emr(world.path(), &["diagnose", "jobs/JOB.toml", "--log", "logs"]);
    assert_eq!(code, Some(64), "{said}");
    assert!(said.contains("'[PLACE]...' cannot be used with '--log <URL>'"), "{said}");
}

#[test]
fn a_dataset_is_not_a_log() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("yelp.h5"), b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0").unwrap();
    let refused = emr(folder.path(), &["diagnose", "yelp.h5"]);
    assert_eq!(
        refused,
        (Some(65), "emr: yelp.h5: found binary data, expected a log; check the path\n".to_owned())
    );
}

#[test]
fn messages_about_a_job_file_name_it_as_the_command_does() {
    let world = world();
    let text = JOB.replace("preset", "presset");
    fs::write(world.path().join("jobs/JOB.toml"), text).unwrap();
    let (code, said) = emr(world.path(), &["run", "jobs/JOB.toml", "--runner", "local"]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.starts_with("emr: jobs/JOB.toml:7: input.presset: unknown key, "), "{said}");
}

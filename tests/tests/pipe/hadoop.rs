//! Under Hadoop, partition, attempt and job come from the environment.

use std::time::{Duration, Instant};

use corpus::digest::Digest;
use tests::demo::DEMO;
use tests::files::assert_same_bytes;
use tests::hadoop::as_task;
use tests::lines::sorted_as_c;
use tests::pipe::{merge, reducer, split_by_hadoop};
use tests::programs::{program, run};

use crate::made::{commits, objects};

const NEWER: [&str; 4] =
    ["mapreduce_task_partition", "mapreduce_job_reduces", "mapreduce_task_attempt_id", "mapreduce_job_id"];
const OLDER: [&str; 4] = ["mapred_task_partition", "mapred_reduce_tasks", "mapred_task_id", "mapred_job_id"];

#[test]
fn hadoop_variables_replace_flags_under_newer_and_older_names() {
    let split = split_by_hadoop(&sorted_as_c(&DEMO.records), 3);
    for names in [NEWER, OLDER] {
        let folder = tempfile::tempdir().unwrap();
        let run_folder = folder.path().join("run");
        for (number, part) in split.iter().enumerate() {
            let attempt = format!("attempt_1700000000000_0007_r_{number:06}_1");
            let values = [&number.to_string(), "3", &attempt, "job_1700000000000_0007"];
            let mut reducer = program("reducer");
            reducer.arg("--run").arg(&run_folder).envs(names.into_iter().zip(values));
            run(&mut reducer, part).succeeded();
        }

        let dataset = folder.path().join("reviews.h5");
        run(&mut merge(&run_folder, &dataset), b"").succeeded();

        assert_same_bytes(&dataset, &DEMO.dataset, &format!("{names:?}"));
        for (number, commit) in commits(&run_folder).iter().enumerate() {
            assert_eq!(commit.attempt, format!("attempt_1700000000000_0007_r_{number:06}_1"));
            assert_eq!(commit.job.as_deref(), Some("job_1700000000000_0007"));
            assert_eq!(commit.object, format!("data/part-{number:05}.{}.{}.h5", commit.host, commit.attempt));
        }
    }
}

#[test]
fn a_flag_overrides_the_newer_name_which_overrides_the_older() {
    let folder = tempfile::tempdir().unwrap();
    let mut by_newer = program("reducer");
    by_newer.arg("--run").arg(folder.path());
    by_newer.envs(NEWER.into_iter().zip(["2", "4", "newer", "job_1"]));
    by_newer.envs(OLDER.into_iter().zip(["1", "9", "older", "job_0"]));
    run(&mut by_newer, b"").succeeded();
    let mut by_flag = reducer(folder.path(), 0, 4);
    by_flag.args(["--attempt", "flag"]).envs(NEWER.into_iter().zip(["3", "9", "newer", "job_1"]));
    run(&mut by_flag, b"").succeeded();

    let commits = commits(folder.path());

    let found: Vec<_> = commits
        .iter()
        .map(|commit| (commit.partition, commit.partitions, &commit.attempt[..], commit.job.as_deref()))
        .collect();
    assert_eq!(found, [(0, 4, "flag", Some("job_1")), (2, 4, "newer", Some("job_1"))]);
}

#[test]
fn a_reducer_without_a_partition_reports_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let bare = || {
        let mut reducer = program("reducer");
        reducer.arg("--run").arg(folder.path());
        reducer
    };
    type Environment = &'static [(&'static str, &'static str)];
    let cases: [(Environment, i32, &str); 4] = [
        (&[("mapreduce_job_reduces", "1")], 64, "--partition is missing"),
        (&[("mapreduce_task_partition", "0")], 64, "--partitions is missing"),
        (&[("mapreduce_task_partition", "x"), ("mapreduce_job_reduces", "1")], 78, "expected a whole number"),
        (
            &[("mapreduce_task_partition", "1"), ("mapreduce_job_reduces", "1")],
            64,
            "expected --partition to be at least 0 and less than --partitions",
        ),
    ];
    for (environment, code, expected) in cases {
        let refused = run(bare().envs(environment.iter().copied()), b"").with_code(code);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    assert!(objects(folder.path()).is_empty());
}

#[test]
fn outside_hadoop_every_attempt_has_a_unique_name() {
    let folder = tempfile::tempdir().unwrap();
    for number in [0, 1] {
        run(&mut reducer(folder.path(), number, 2), b"").succeeded();
    }
    let attempts: Vec<_> = commits(folder.path()).into_iter().map(|commit| commit.attempt).collect();
    assert!(
        attempts.iter().all(|name| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()))
    );
    assert_ne!(attempts[0], attempts[1]);
}

#[test]
fn a_bad_line_is_reported_with_the_input_file_of_the_task() {
    for name in ["mapreduce_map_input_file", "map_input_file"] {
        let mut mapper = program("mapper");
        let finished =
            run(as_task(&mut mapper).env(name, "hdfs://reviews/part-1"), b"nonsense\n").succeeded();
        assert!(
            finished.stderr.contains("mapper: hdfs://reviews/part-1: bad_line (byte 0)\n"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn a_failing_task_reports_its_reason_in_status_and_last_line() {
    let folder = tempfile::tempdir().unwrap();
    let (nonsense, lines) = (&b"nonsense\n"[..], b"x\n".repeat(1000));
    let tasks = [
        (program("mapper"), &lines[..]),
        (program("combiner"), nonsense),
        (tests::pipe::reducer(folder.path(), 0, 1), nonsense),
    ];
    for (mut task, input) in tasks {
        for name in ["mapreduce_task_attempt_id", "mapred_task_id"] {
            task.env_clear().env(name, "attempt_1_0001_r_000000_0");
            // A failing task waits until Hadoop has reported its status.
            task.env("mapreduce_task_progress_report_interval", "200");
            let begin = Instant::now();
            let failed = run(&mut task, input).with_code(65);
            assert!(begin.elapsed() > Duration::from_millis(400));
            let heard = tests::hadoop::Heard::of(&failed.stderr);
            let (status, last) = (heard.statuses.last().unwrap(), heard.log.last().unwrap());
            assert_eq!(status, &format!("FATAL {last}"));
            assert!(failed.stderr.ends_with(&format!("{last}\n")));
        }
        let failed = run(task.env_clear(), input).with_code(65);
        assert!(!failed.stderr.contains("FATAL"), "outside of Hadoop a message is said once");
    }
}

#[test]
fn a_task_whose_input_starts_with_a_utf16_mark_fails() {
    let utf16 = [b"\xff\xfe", &b"{\0}\0\n\0"[..]].concat();
    let task = |split: &[(&str, &str)]| {
        let mut mapper = program("mapper");
        run(as_task(&mut mapper).envs(split.iter().copied()), &utf16)
    };
    for split in [&[][..], &[("mapreduce_map_input_start", "0")], &[("map_input_start", "0")]] {
        let refused = task(split).with_code(65);
        let expected = "found UTF-16, expected UTF-8; convert the file with iconv -f UTF-16 -t UTF-8\n";
        assert!(refused.stderr.ends_with(expected), "{}", refused.stderr);
    }
    // At other positions in a file these bytes are not a mark.
    let mapped = task(&[("mapreduce_map_input_start", "134217728")]).succeeded();
    assert!(mapped.stderr.contains("reporter:counter:mapper,invalid_utf8,1\n"), "{}", mapped.stderr);
}

#[test]
fn a_task_without_a_record_succeeds() {
    run(as_task(&mut program("mapper")), b"").succeeded();
    let folder = tempfile::tempdir().unwrap();
    run(as_task(&mut reducer(folder.path(), 0, 1)), b"").succeeded();
    assert_eq!(commits(folder.path()).len(), 1);
}

#[test]
fn a_task_prints_its_commit_record() {
    let folder = tempfile::tempdir().unwrap();
    let mut reducer = reducer(folder.path(), 0, 1);
    let told = run(as_task(reducer.args(["--stopwords", "nltk"])), b"ok\t0,0,0,1,0\n").succeeded().said();
    let (name, record) = told.split_once('\t').unwrap();
    let mut record: serde_json::Value = serde_json::from_str(record).unwrap();
    assert_eq!((name, told.lines().count()), ("part-00000", 1));
    let commit = commits(folder.path()).remove(0);
    let words = commit.settings.stop_words.join("\n");
    assert_eq!(commit.settings.stop_words.len(), 201);
    assert_eq!(record["settings"]["stop_words"], Digest::of(words.as_bytes()).to_string());
    record["settings"]["stop_words"] = commit.settings.stop_words.clone().into();
    assert_eq!(record, serde_json::to_value(commit).unwrap());
}

#[test]
fn a_task_reports_texts_without_a_class_or_outside_a_sample_only_with_the_setting() {
    let records = b"good fit\t0,0,0,0,2\nso so\t0,0,1,0,0\n";
    let counted = |flags: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let told = run(as_task(reducer(folder.path(), 0, 1).args(flags)), records).succeeded().stderr;
        let counters = told.lines().filter_map(|line| line.strip_prefix("reporter:counter:reducer,"));
        counters.map(str::to_owned).collect::<Vec<_>>()
    };
    let without = ["reviews,3", "distinct,2", "only_stopwords,0", "rows,2"];
    assert_eq!(counted(&[]), without);
    let with = ["reviews,3", "distinct,2", "not_labelled,1", "only_stopwords,0", "rows,1"];
    assert_eq!(counted(&["--labels", "1-2=bad,4-5=good"]), with);
    let all = ["reviews,3", "distinct,2", "not_labelled,0", "only_stopwords,0", "rows,2"];
    assert_eq!(counted(&["--labels", "1-2=bad,3-5=good"]), all);
    // No text has the least hash.
    let least = ["reviews,3", "distinct,2", "not_sampled,2", "not_labelled,0", "only_stopwords,0", "rows,0"];
    assert_eq!(counted(&["--labels", "1-2=bad,3-5=good", "--sample", "1e-9"]), least);
    assert_eq!(counted(&["--sample", "1"]), without);
}

//! The programs without flags: the shortest pipe, the default paths, and refused runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use tests::demo::{DEMO, json_line};
use tests::files::{assert_same_bytes, files};
use tests::lines::sorted_as_c;
use tests::programs::{Finished, folder_of_programs, program, run, without_hadoop};

/// Runs a shell pipe in a folder, with the programs in PATH.
fn shell(folder: &Path, command: &str, environment: &[(&str, &str)]) -> Finished {
    let path = format!("{}:{}", folder_of_programs().display(), std::env::var("PATH").unwrap());
    let mut shell = without_hadoop(Path::new("bash"));
    shell.args(["-o", "pipefail", "-c", command]).current_dir(folder).env("PATH", path);
    run(shell.envs(environment.iter().copied()), b"")
}

fn reducer(folder: &Path) -> Command {
    let mut reducer = program("reducer");
    reducer.current_dir(folder);
    reducer
}

#[test]
fn the_pipe_without_flags_makes_the_dataset_and_names_its_defaults() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("reviews.json"), &DEMO.raw).unwrap();

    let piped = shell(folder.path(), "cat reviews.json | mapper | LC_ALL=C sort | reducer", &[]).succeeded();

    let notice = "reducer: using the defaults --run run --partition 0 --partitions 1\n";
    assert!(piped.stderr.contains(notice), "{}", piped.stderr);
    assert!(piped.said().starts_with("part-00000 committed"), "{}", piped.said());

    let merged = run(program("merge").current_dir(folder.path()), b"").succeeded();

    let notice = "merge: using the defaults --run run --out reviews.h5\n";
    assert!(merged.stderr.contains(notice), "{}", merged.stderr);
    assert_same_bytes(&folder.path().join("reviews.h5"), &DEMO.dataset, "without flags");
}

#[test]
fn quiet_programs_print_no_notice_and_no_progress() {
    let folder = tempfile::tempdir().unwrap();
    let records = sorted_as_c(&DEMO.records);
    let reduced = run(reducer(folder.path()).arg("--quiet"), &records).succeeded();
    assert_eq!(reduced.stderr, "");
    let again = run(reducer(folder.path()).arg("-q"), &records).succeeded();
    assert_eq!((again.stderr.as_str(), again.said()), ("", reduced.said()));
    let merged = run(program("merge").current_dir(folder.path()).arg("-q"), b"").succeeded();
    // -q does not suppress warnings.
    assert!(merged.stderr.lines().all(|line| line.starts_with("merge: warning: ")), "{}", merged.stderr);
    assert_eq!(merged.stderr.lines().count(), 1, "{}", merged.stderr);
}

#[test]
fn other_rows_in_the_default_run_are_refused_with_a_new_run_as_remedy() {
    let folder = tempfile::tempdir().unwrap();
    run(&mut reducer(folder.path()), b"a\t1,0,0,0,0\n").succeeded();
    let run_folder = folder.path().join("run");
    let commits = files(&run_folder.join("commit"));
    assert_eq!(commits.len(), 1);

    let refused = run(&mut reducer(folder.path()), b"b\t1,0,0,0,0\n").with_code(70);

    assert!(refused.stderr.trim_end().ends_with("pass a new run: --run NEW"), "{}", refused.stderr);
    assert_eq!(files(&run_folder.join("commit")), commits);
}

#[test]
fn under_hadoop_the_run_is_required() {
    let folder = tempfile::tempdir().unwrap();
    for variables in [
        &[("mapreduce_task_partition", "0"), ("mapreduce_job_reduces", "1")][..],
        &[
            ("mapreduce_task_attempt_id", "attempt_1"),
            ("mapreduce_task_partition", "0"),
            ("mapreduce_job_reduces", "1"),
            ("mapreduce_task_progress_report_interval", "1"),
        ],
    ] {
        let refused =
            run(reducer(folder.path()).envs(variables.iter().copied()), b"a\t1,0,0,0,0\n").with_code(64);
        assert!(
            refused.stderr.contains("reducer: --run is missing; under Hadoop, pass"),
            "{}",
            refused.stderr
        );
        assert!(files(folder.path()).is_empty(), "{:?}", files(folder.path()));
    }
}

#[test]
fn merge_without_a_run_says_how_to_write_one() {
    let folder = tempfile::tempdir().unwrap();
    let refused = run(program("merge").current_dir(folder.path()), b"").with_code(66);
    assert_eq!(
        refused.stderr,
        "merge: run: no such folder, expected the run to merge; write one by `mapper | LC_ALL=C sort | reducer`, or pass \
         --run\n"
    );
    assert!(files(folder.path()).is_empty());
}

#[test]
fn records_sorted_by_the_rules_of_a_language_are_refused_with_the_command_to_use() {
    let folder = tempfile::tempdir().unwrap();
    let locales = folder.path().join("locales");
    fs::create_dir(&locales).unwrap();
    let made = Command::new("localedef")
        .args(["-i", "en_US", "-f", "UTF-8"])
        .arg(locales.join("en_US.UTF-8"))
        .output();
    match made {
        // localedef also fails with only a warning, so the locale itself is checked.
        Ok(_) if locales.join("en_US.UTF-8/LC_COLLATE").is_file() => {}
        Ok(output) => {
            tests::skipped(&format!(
                "sort in en_US.UTF-8: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            ));
            return;
        }
        Err(error) => return tests::skipped(&format!("sort in en_US.UTF-8: localedef: {error}")),
    }
    let raw = [json_line("a c", 5), json_line("ab", 5)].concat();
    fs::write(folder.path().join("reviews.json"), raw).unwrap();
    let environment = [("LOCPATH", locales.to_str().unwrap()), ("LC_ALL", "en_US.UTF-8")];

    let refused = shell(folder.path(), "mapper <reviews.json | sort | reducer", &environment).with_code(65);

    let expected = "the text is less than the previous text, expected texts in bytewise ascending order; sort the records with `LC_ALL=C sort`";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(files(&folder.path().join("run/commit")).is_empty());
    assert!(files(&folder.path().join("run/data")).is_empty());

    shell(folder.path(), "mapper <reviews.json | LC_ALL=C sort | reducer", &environment).succeeded();
    assert_eq!(files(&folder.path().join("run/commit")).len(), 1);
}

#[test]
fn a_mapper_reads_files_by_position_as_by_input() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = DEMO.raw.split_at(DEMO.raw.iter().position(|&byte| byte == b'\n').unwrap() + 1);
    fs::write(folder.path().join("one.json"), one).unwrap();
    fs::write(folder.path().join("two.json"), two).unwrap();
    let mapper = |arguments: &[&str], input: &[u8]| {
        run(program("mapper").current_dir(folder.path()).args(arguments), input).succeeded().stdout
    };
    assert!(mapper(&["one.json", "two.json"], b"") == DEMO.records);
    assert!(mapper(&["--input", "one.json", "two.json"], b"") == DEMO.records);
    assert!(mapper(&["-"], &DEMO.raw) == DEMO.records);
    let both = ["one.json", "--input", "two.json"];
    let refused = run(program("mapper").current_dir(folder.path()).args(both), b"").with_code(64);
    assert!(refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
}

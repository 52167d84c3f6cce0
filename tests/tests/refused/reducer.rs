//! Input and options that the reducer refuses, without putting anything into the store.

use std::fs;

use crate::job::{Job, commit};

/// Reduces the only partition of a run from this input.
fn refused(input: impl AsRef<[u8]>, code: i32, message: &str) {
    let job = Job::mapped(1);
    job.refuses(|| job.reducer("run", 0, &[], input), code, message);
    job.reduce("run", 0, &[]);
    job.merges();
}

#[test]
fn texts_out_of_order_are_refused_with_the_line() {
    // In the order of an English locale, in which sort ignores apostrophes.
    let sorted_for_people = "its\t1,0,0,0,0\nit's\t1,0,0,0,0\nits\t1,0,0,0,0\n";
    refused(
        sorted_for_people,
        65,
        "reducer: line 2: the text is less than the previous text, expected texts in bytewise ascending order; sort the records with `LC_ALL=C sort`",
    );
}

#[test]
fn an_invalid_record_is_refused_with_the_line() {
    let good = "a\t1,0,0,0,0\n";
    for (line, reason) in [
        ("no record at all", "no tab between text and votes"),
        ("b\t1,0,0,0", "the votes are not five numbers from 0 to 4294967295 separated by commas"),
        ("b\t4294967296,0,0,0,0", "the votes are not five numbers from 0 to 4294967295 separated by commas"),
        ("b\t0,0,0,0,0", "all five votes are zero"),
        ("\t1,0,0,0,0", "no text before the tab"),
        ("", "no tab between text and votes"),
    ] {
        let message = format!(
            "reducer: line 2 is not a record: {reason}; feed this program the output of mapper or combiner"
        );
        refused(format!("{good}{line}\n"), 65, &message);
    }
}

#[test]
fn a_word_that_is_not_cleaned_is_refused() {
    for word in ["Good", "a1", "it's'", "\u{1b}[31m"] {
        refused(
            format!("{word} fit\t1,0,0,0,0\n").as_bytes(),
            65,
            "reducer: the records have a word that is not cleaned, for example one with a capital letter or a digit; feed this program \
             the output of mapper or combiner, and pass --punctuation if mapper had it",
        );
    }
}

#[test]
fn a_text_that_is_not_utf_8_is_refused_with_the_line() {
    let message = "not UTF-8; feed this program the output of mapper or combiner";
    refused(b"\xff\t1,0,0,0,0\n", 65, &format!("reducer: line 1: the text is {message}"));
    refused(
        b"a\t1,0,0,0,0\na\t1,0,0,0,0\n\xff\t1,0,0,0,0\n",
        65,
        &format!("reducer: line 3: the text is {message}"),
    );
}

#[test]
fn too_many_votes_are_refused_with_the_line() {
    refused(
        "a\t4294967295,0,0,0,0\na\t1,0,0,0,0\n",
        65,
        "reducer: line 2: the votes of one text exceed 4294967295 for one rating; check that no input is read twice",
    );
}

#[test]
fn a_text_of_another_partition_is_refused_without_the_flag() {
    let job = Job::mapped(3);
    let arguments = ["--run", "run", "--partition", "0", "--partitions", "3"];
    job.refuses(
        || job.program("reducer", &arguments, job.read("sorted")),
        65,
        "reducer: line 1: the text belongs to partition 1 of 3, expected 0; use --select to read one partition from all records, or --any-partitioner if another partitioner split them",
    );
    (0..3).for_each(|partition| job.reduce("run", partition, &[]));
    job.merges();
}

#[test]
fn a_reducer_without_a_valid_partition_is_refused() {
    let job = Job::mapped(1);
    let missing = "missing; pass it, or run under Hadoop, which sets";
    for (arguments, message) in [
        (
            &["--run", "run", "--partitions", "1"][..],
            format!("--partition is {missing} mapreduce_task_partition"),
        ),
        (&["--run", "run", "--partition", "0"], format!("--partitions is {missing} mapreduce_job_reduces")),
        (
            &["--run", "run", "--partition", "3", "--partitions", "3"],
            "partition 3 of 3: expected --partition to be at least 0 and less than --partitions".to_owned(),
        ),
        (
            &["--run", "run", "--partition", "0", "--partitions", "0"],
            "partition 0 of 0: expected --partition to be at least 0 and less than --partitions".to_owned(),
        ),
    ] {
        job.refuses(|| job.program("reducer", arguments, ""), 64, &format!("reducer: {message}"));
    }
    let hadoop = [("mapreduce_task_partition", "r_7"), ("mapreduce_job_reduces", "1")];
    job.refuses(
        || job.program_with("reducer", &["--run", "run"], "", &hadoop),
        78,
        "reducer: mapreduce_task_partition is \"r_7\", expected a whole number",
    );
}

#[test]
fn invalid_settings_are_refused() {
    let job = Job::mapped(1);
    job.write("two.txt", "the\n\nof course\n");
    job.write("latin1.txt", b"caf\xe9\n");
    let lists = "expected nltk, nltk-negations, none, or a file of one word per line";
    for (options, code, message) in [
        (
            ["--keep", "middle"],
            64,
            "--keep middle: keep is \"middle\", expected first, last or ends; see --help".to_owned(),
        ),
        (
            ["--positive-from", "9"],
            64,
            "--positive-from 9: expected a number from 1 to 5; see --help".to_owned(),
        ),
        (
            ["--labels", "1-3=bad,3-5=good"],
            64,
            "--labels 1-3=bad,3-5=good: the rating 3 is in two classes, expected at most one; see --help".to_owned(),
        ),
        (
            ["--labels", "1-3=bad,6=good"],
            64,
            "--labels 1-3=bad,6=good: \"6=good\" is not RATINGS=NAME, expected ratings from 1 to 5 and names of 1 to \
             64 bytes without commas, `=` and control characters, as in 1-2=negative,3=neutral,4-5=positive; see --help"
                .to_owned(),
        ),
        (
            ["--sample", "0"],
            64,
            "--sample 0: expected a number above 0 and up to 1; see --help".to_owned(),
        ),
        (
            ["--sample", "-0.5"],
            64,
            "--sample -0.5: expected a number above 0 and up to 1; see --help".to_owned(),
        ),
        (
            ["--sample", "1.01"],
            64,
            "--sample 1.01: expected a number above 0 and up to 1; see --help".to_owned(),
        ),
        (
            ["--sample", "NaN"],
            64,
            "--sample NaN: expected a number above 0 and up to 1; see --help".to_owned(),
        ),
        (
            ["--max-tokens", "ten"],
            64,
            "--max-tokens ten: expected a whole number of 0 or more, such as 100; see --help".to_owned(),
        ),
        (
            ["--max-tokens", "-5"],
            64,
            "--max-tokens -5: expected a number from 0 to 4294967295; see --help".to_owned(),
        ),
        (
            ["--memory", "5XB"],
            64,
            "--memory 5XB: expected a size such as 512MiB or 10MB; see --help".to_owned(),
        ),
        (
            ["--memory", "10kB"],
            64,
            "--memory 10kB: expected at least 1MiB; see --help".to_owned(),
        ),
        (
            ["--profile", "new"],
            64,
            "--profile new: expected one of modern, original; see --help".to_owned(),
        ),
        (
            ["--stopwords", "absent.txt"],
            66,
            format!("--stopwords absent.txt: cannot read the file: no such file or folder; check the path; {lists}"),
        ),
        (
            ["--stopwords", "latin1.txt"],
            66,
            "--stopwords latin1.txt: is not UTF-8; convert it with iconv -t UTF-8".to_owned(),
        ),
        (
            ["--stopwords", "two.txt"],
            78,
            "--stopwords two.txt: line 3: 2 words are left after cleaning, expected one; write one stop word per line"
                .to_owned(),
        ),
        (
            ["--stopwords", "reviews.json"],
            78,
            "--stopwords reviews.json: line 1: 6 words are left after cleaning, expected one; write one stop word per line"
                .to_owned(),
        ),
    ] {
        job.refuses(|| job.reducer("run", 0, &options, job.read("sorted")), code, &format!("reducer: {message}"));
    }
    job.reduce("run", 0, &[]);
    job.merges();
}

#[test]
fn a_run_that_cannot_be_written_is_refused() {
    let job = Job::mapped(1);
    job.refuses(
        || job.reducer("gs://bucket/run", 0, &[], job.read("sorted")),
        64,
        "reducer: \"gs://bucket/run\": gs:// is not supported, expected a path, file:// or s3://; choose another --run",
    );
    job.refuses(
        || job.reducer("a/../run", 0, &[], job.read("sorted")),
        64,
        "reducer: \"a/../run\": a segment is .., expected the folder's own name; name a run as file:///folder, s3://bucket/prefix, or by a path",
    );
    job.refuses(
        || job.reducer("reviews.json/run", 0, &[], job.read("sorted")),
        74,
        "reducer: file://JOB/reviews.json/run/data/part-00000.HOST.attempt0.h5: cannot make its folder: a part of the path is a file, expected a folder; check the path or choose another --run",
    );
    job.reduce("run", 0, &[]);
    job.merges();
}

#[test]
fn a_missing_temporary_folder_is_refused_by_name() {
    let job = Job::mapped(1);
    let nowhere = [("TMPDIR", "/nowhere")];
    let arguments = ["--run", "run", "--partition", "0", "--partitions", "1"];
    job.refuses(
        || job.program_with("reducer", &arguments, job.read("sorted"), &nowhere),
        74,
        "reducer: /nowhere: cannot write a temporary file: no such file or folder; check the path or set TMPDIR to a \
         folder on another disk",
    );
    // More rows than the minimum memory holds.
    let many: String = (0..60_000).map(|n| format!("word{n:05} good\t1,0,0,0,0\n")).collect();
    job.refuses(
        || job.program_with("reducer", &[&arguments[..], &["--memory", "1MiB"]].concat(), many, &nowhere),
        74,
        "reducer: /nowhere: cannot create a temporary file: no such file or folder; check the path or set TMPDIR to a \
         folder on another disk",
    );
    job.reduce("run", 0, &[]);
    job.merges();
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let job = Job::mapped(1);
    let many: String = (0..60_000).map(|n| format!("word{n:05} good\t1,0,0,0,0\n")).collect();
    let arguments = ["--run", "run", "--partition", "0", "--partitions", "1", "--memory", "1MiB"];
    job.refuses(
        || job.program_on_a_full_disk("reducer", &arguments, &many),
        74,
        "reducer: JOB/tmp: file size limit exceeded while writing; raise the limit with ulimit -f or set TMPDIR to a folder \
         on another disk",
    );
    job.reduce("run", 0, &[]);
    job.merges();
}

#[test]
fn another_shard_with_the_name_of_an_attempt_is_never_overwritten() {
    let job = Job::done(1);
    // The result of a lost race: an object without a commit.
    job.without(&commit(0), || {
        job.refuses(
            || job.reducer("run", 0, &[], "other words\t0,0,0,0,1\n"),
            70,
            "reducer: file://JOB/run/data/part-00000.HOST.attempt0.h5: exists with other content, expected the object of this attempt; pass another --attempt",
        );
    });
    job.merges();
}

#[test]
fn a_later_attempt_with_other_rows_or_settings_fails() {
    let job = Job::done(1);
    let refused = |input: &[u8], options: &[&str], difference: &str| {
        job.refuses(
            || job.reducer("run", 0, &[options, &["--attempt", "later"]].concat(), input),
            70,
            &format!(
                "reducer: partition 0 was committed by attempt attempt0 with {difference}; nothing was changed; for other data or settings, \
                 pass a new run: --run NEW"
            ),
        );
    };
    let sorted = job.read("sorted");
    refused(b"other words\t0,0,0,0,1\n", &[], "the row digest DIGEST, this attempt has DIGEST");
    refused(&sorted, &["--max-tokens", "2"], "max-tokens 100, this attempt has 2");
    refused(
        &sorted,
        &["--stopwords", "none"],
        "stop words 201 words (DIGEST), this attempt has 0 words (DIGEST)",
    );
    let dropped = [b"a\t0,0,1,0,0\n", &sorted[..]].concat();
    refused(
        &dropped,
        &[],
        "the counts 9 reviews, 8 distinct, 1 only_stopwords, 7 rows, this attempt has 10 reviews, 9 distinct, \
         2 only_stopwords, 7 rows",
    );
    job.merges();
}

#[test]
fn an_invalid_commit_record_stops_the_reducer() {
    let job = Job::done(1);
    job.with_content(&commit(0), b"{}", || {
        job.refuses(
            || job.reducer("run", 0, &[], job.read("sorted")),
            70,
            "reducer: file://JOB/run/commit/part-00000.json is not a commit record (missing field `schema_version` at line \
             1 column 2), expected one of schema version 1; it was damaged or written by another version of the programs: start again with \
             a new --run",
        );
    });
    job.merges();
}

#[test]
fn a_damaged_commit_record_stops_the_next_attempt() {
    let job = Job::done(1);
    let record: serde_json::Value = serde_json::from_slice(&job.read(&commit(0))).unwrap();
    let damaged = |field: &str, value: serde_json::Value, refusal: &str| {
        let mut record = record.clone();
        record[field] = value;
        job.with_content(&commit(0), record.to_string().as_bytes(), || {
            job.refuses(|| job.reducer("run", 0, &["--attempt", "later"], job.read("sorted")), 70, refusal);
        });
    };
    let names = "reducer: file://JOB/run/commit/part-00000.json names";
    let says = "reducer: file://JOB/run/commit/part-00000.json records";
    let remedy = "the record or the object that it names was damaged: start again with a new --run";
    let (bytes, sha256) = (record["bytes"].as_u64().unwrap(), record["sha256"].as_str().unwrap());
    let claimed = bytes + 1;
    damaged(
        "bytes",
        claimed.into(),
        &format!("{says} {claimed} bytes for data/part-00000.HOST.attempt0.h5, found {bytes}; {remedy}"),
    );
    let flipped = if sha256.starts_with('0') { '1' } else { '0' };
    let other = format!("{flipped}{}", &sha256[1..]);
    damaged(
        "sha256",
        other.into(),
        &format!(
            "{says} another SHA-256 for data/part-00000.HOST.attempt0.h5 than the one found, DIGEST; {remedy}"
        ),
    );
    let nameless = format!("{names} no object of its host and attempt; {remedy}");
    damaged("attempt", "attempt1".into(), &nameless);
    damaged("object", "data/part-00000.elsewhere.attempt0.h5".into(), &nameless);
    damaged("object", "../../etc/passwd".into(), &nameless);
    let disagrees = |field: &str, value: serde_json::Value, what: &str| {
        let what = format!(
            "reducer: partition 0 was committed by attempt attempt0 with {what}; nothing was changed; for other data or settings, \
                 pass a new run: --run NEW"
        );
        damaged(field, value, &what);
    };
    let (kept, distinct) =
        (record["kept_words"].as_u64().unwrap(), record["distinct_words"].as_u64().unwrap());
    disagrees("kept_words", 1.into(), &format!("kept words 1, this attempt has {kept}"));
    disagrees("distinct_words", 1.into(), &format!("distinct words 1, this attempt has {distinct}"));
    disagrees(
        "run",
        "file:///elsewhere".into(),
        "the run file:///elsewhere, this attempt has file://JOB/run",
    );
    job.merges();
}

#[test]
fn a_folder_with_the_name_of_a_commit_is_refused() {
    let job = Job::mapped(1);
    fs::create_dir_all(job.path(&commit(0))).unwrap();
    job.refuses(
        || job.reducer("run", 0, &[], job.read("sorted")),
        66,
        "reducer: file://JOB/run/commit/part-00000.json: found a folder or a special file, expected an object; move it \
         out of the run",
    );
    fs::remove_dir(job.path(&commit(0))).unwrap();
    job.reduce("run", 0, &[]);
    job.merges();
}

#[test]
fn a_run_of_one_empty_partition_is_refused() {
    let job = Job::mapped(1);
    job.refuses(
        || job.reducer("new", 0, &[], ""),
        65,
        "reducer: found no record, expected at least one; check that the program that writes them succeeded",
    );
    job.reduce("run", 0, &[]);
    job.refuses(
        || job.reducer("run", 0, &[], ""),
        65,
        "reducer: found no record, expected at least one; check that the program that writes them succeeded",
    );
    job.merges();
    let job = Job::mapped(2);
    let empty = job.reducer("new", 0, &[], "");
    assert_eq!(empty.code, 0, "one of several partitions may be empty: {}", empty.stderr);
}

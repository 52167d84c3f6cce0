//! Output paths that are refused.

use std::fs;

use crate::job::Job;

fn refused(job: &Job, arguments: &[&str], code: i32, message: &str) {
    job.refuses(|| job.program("merge", arguments, ""), code, &format!("merge: {message}"));
}

#[test]
fn an_output_that_cannot_be_written_is_refused() {
    let job = Job::done(2);
    refused(
        &job,
        &["--run", "run", "--out", "reviews.json/out.h5"],
        74,
        "reviews.json/out.manifest.json: cannot read the manifest: a part of the path is a file, expected a folder; check the path \
         or choose another --out",
    );
    fs::create_dir(job.path("folder.h5")).unwrap();
    refused(
        &job,
        &["--run", "run", "--out", "folder.h5"],
        64,
        "folder.h5: already exists and is a folder or a special file, expected a dataset or no file; nothing was \
         changed: move it away, choose another --out, or replace a dataset by --force",
    );
    job.merges();
}

#[test]
fn a_folder_in_a_missing_parent_is_not_created() {
    let job = Job::done(2);
    // If the shard were read, the error would be another one.
    job.with_content(&job.object(0), b"damaged", || {
        refused(
            &job,
            &["--run", "run", "--out", "a/b/out.h5"],
            64,
            "a: no such folder, expected one to write into; create it with mkdir -p, or check --out",
        );
        job.refuses(
            || job.program_with_room(1, "merge", &["--run", "run", "--out", "out.h5"], ""),
            74,
            "merge: out.h5: file size limit exceeded while writing; raise the limit with ulimit -f or choose another --out",
        );
    });
    let made = job.program("merge", &["--run", "run", "--out", "a/out.h5"], "");
    assert_eq!(made.code, 0, "{}", made.stderr);
    job.merges();
}

#[test]
fn threads_that_merge_cannot_have_are_refused() {
    let job = Job::done(1);
    for threads in ["0", "1025"] {
        let message = format!("merge: --threads {threads}: expected a number from 1 to 1024; see --help");
        let flags = ["--run", "run", "--out", "out.h5", "--threads", threads];
        job.refuses(|| job.program("merge", &flags, ""), 64, &message);
    }
    // These two read with one thread per core.
    for existing in ["--check", "--describe"] {
        let refused = job.program("merge", &[existing, "reviews.h5", "--threads", "2"], "");
        assert!(refused.code == 64 && refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
    }
    job.merges();
}

#[test]
fn too_many_open_files_are_not_blamed_on_the_disk() {
    let job = Job::done(2);
    let script = "ulimit -n 4; exec \"$0\" \"$@\"";
    for (program, arguments) in [
        ("sentimill", &["--input", "reviews.json", "--out", "out.h5"][..]),
        ("merge", &["--run", "run", "--out", "out.h5"]),
    ] {
        let program = crate::job::built(program);
        let command = [&["-c", script, program.to_str().unwrap()], arguments].concat();
        let ended = job.program("/bin/sh", &command, "");
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(
            last.ends_with("too many open files (limit 4); raise the limit with ulimit -n"),
            "{}",
            ended.stderr
        );
        assert!(!last.contains("space"), "{last}");
        assert_eq!(ended.code, 74, "{last}");
    }
}

#[test]
fn an_identical_dataset_of_the_other_program_is_accepted() {
    let job = Job::done(2);
    let sentimill = |out: &str| {
        job.program("sentimill", &["--input", "reviews.json", "--out", out, "--profile", "original"], "")
    };
    let merge =
        |out: &str| job.program("merge", &["--run", "run", "--out", out, "--counts", "counts.json"], "");
    for (out, first, second) in [
        (
            "a.h5",
            &sentimill as &dyn Fn(&str) -> crate::job::Ended,
            &merge as &dyn Fn(&str) -> crate::job::Ended,
        ),
        ("b.h5", &merge, &sentimill),
    ] {
        assert_eq!(first(out).code, 0);
        let before = job.read(out);
        let again = second(out);
        assert_eq!(again.code, 0, "{}", again.stderr);
        let notice = format!("{out}: already exists with the same content; nothing to write\n");
        assert!(again.stderr.contains(&notice), "{}", again.stderr);
        assert!(job.read(out) == before);
    }
    assert!(job.read("a.manifest.json") == job.read("b.manifest.json"), "both know the shards");
}

#[test]
fn merge_without_counts_keeps_those_of_sentimill_and_its_padded_copy() {
    let job = Job::done(2);
    let input = ["--input", "reviews.json", "--out", "a.h5", "--profile", "original", "--padded", "5"];
    assert_eq!(job.program("sentimill", &input, "").code, 0);
    let manifest = || serde_json::from_slice::<serde_json::Value>(&job.read("a.manifest.json")).unwrap();
    let before = manifest();
    assert!(before["seal"]["ledger"]["mapper"].is_object() && before["padded"] == 5, "{before}");
    let merged = job.program("merge", &["--run", "run", "--out", "a.h5"], "");
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    let after = manifest();
    assert_eq!(after["seal"]["shards"].as_array().unwrap().len(), 2);
    assert_eq!(after["seal"]["ledger"], before["seal"]["ledger"]);
    assert_eq!((&after["padded"], &after["padded_sha256"]), (&before["padded"], &before["padded_sha256"]));
}

#[test]
fn without_counts_merge_warns_that_it_cannot_detect_a_failed_mapper() {
    let job = Job::done(1);
    let warnings = |merged: crate::job::Ended| {
        assert_eq!(merged.code, 0, "{}", merged.stderr);
        merged.stderr.lines().filter(|line| line.starts_with("merge: warning: ")).map(str::to_owned).collect()
    };
    let warning = "merge: warning: a mapper that failed would go unnoticed; pass --counts with the files written by mapper --counts, or with the saved output of Hadoop's job client";
    let said: Vec<String> = warnings(job.merge(&[]));
    assert_eq!(said, [warning]);
    let said: Vec<String> = warnings(job.merge(&[]));
    assert_eq!(said, [warning]);
    let counted: Vec<String> = warnings(job.merge(&["--counts", "counts.json"]));
    assert!(counted.is_empty(), "{counted:?}");
}

#[test]
fn a_url_is_refused_as_output() {
    let job = Job::done(1);
    let remedy = "expected the path of a local file or folder; write it locally, then copy it; see --help";
    for (url, shown, scheme) in [
        ("s3://bucket/out.h5", "s3://bucket/out.h5", "s3"),
        ("https://KEY:SECRET@host/out.h5", "https://***@host/out.h5", "https"),
    ] {
        let refusal = format!("mapper: --counts {shown}: {scheme}:// is not supported here, {remedy}");
        job.refuses(|| job.program("mapper", &["--counts", url], "\n"), 64, &refusal);
    }
    job.merges();
}

#[test]
fn each_flag_refuses_a_url_that_its_program_cannot_use_before_any_work() {
    /// Flags that accept a path or a URL of S3.
    const PATHS_AND_S3: [(&str, &[&str], &str); 10] = [
        ("merge", &["--run", "run"], "--out"),
        ("merge", &["--run", "run", "--out", "new.h5"], "--counts"),
        ("merge", &["--run", "run", "--out", "new.h5"], "--vocabulary"),
        ("merge", &["--run", "run", "--out", "new.h5"], "--without"),
        ("merge", &[], "--check"),
        ("merge", &[], "--describe"),
        ("sentimill", &["reviews.json"], "--out"),
        ("sentimill", &["reviews.json", "--out", "new.h5"], "--vocabulary"),
        ("sentimill", &["reviews.json", "--out", "new.h5"], "--without"),
        ("reducer", &["--run", "new"], "--stopwords"),
    ];
    const SECRETS: &str = "found a user name or key before the bucket, expected none; keys come from AWS_PROFILE, ~/.aws \
                           or the machine's role; remove it from the URL, and replace the key, since shells and logs keep it";
    let job = Job::done(1);
    for (program, arguments, flag) in PATHS_AND_S3 {
        for (url, shown, found) in [
            (
                "https://KEY:SECRET@host/x.h5",
                "https://***@host/x.h5",
                "https:// is not supported here, expected a local path or s3://bucket/name; copy it to this machine or to S3",
            ),
            (
                "gs://bucket/x.h5",
                "gs://bucket/x.h5",
                "gs:// is not supported here, expected a local path or s3://bucket/name; copy it to this machine or to S3",
            ),
            (
                "file:///x.h5",
                "file:///x.h5",
                "file:// is not supported here, expected a local path or s3://bucket/name; pass the path after file://",
            ),
            ("s3://bucket", "s3://bucket", "it is a whole bucket; expected s3://bucket/name"),
            (
                "s3://bucket/folder/",
                "s3://bucket/folder/",
                "the name ends in a slash; expected s3://bucket/name",
            ),
            ("s3://KEY:SE/CRET@bucket/x.h5", "s3://***@bucket/x.h5", SECRETS),
        ] {
            job.refuses(
                || job.program(program, &[arguments, &[flag, url]].concat(), ""),
                64,
                &format!("{program}: {flag} {shown}: {found}; see --help"),
            );
        }
    }
    for (program, arguments) in [
        ("reducer", &["--partition", "0", "--partitions", "1"][..]),
        ("merge", &["--out", "new.h5"]),
        ("merge", &["gc"]),
    ] {
        for scheme in ["https", "gs", "hdfs"] {
            let url = format!("{scheme}://name/run");
            job.refuses(
                || job.program(program, &[arguments, &["--run", &url]].concat(), ""),
                64,
                &format!(
                    "{program}: \"{url}\": {scheme}:// is not supported, expected a path, file:// or s3://; choose another \
                     --run"
                ),
            );
        }
    }
    for (url, shown, remedy) in [
        ("gs://bucket/x.json", "gs://bucket/x.json: found the scheme gs", "copy the data to this machine"),
        ("file:///x.json", "file:///x.json: found the scheme file", "pass the path after file://"),
    ] {
        job.refuses(
            || job.program("sentimill", &["--out", "new.h5", url], ""),
            64,
            &format!(
                "sentimill: {shown}, expected a file, a folder, a pattern, -, s3:// or https://; {remedy}"
            ),
        );
    }
    for name in ["a b.h5", ".h5"] {
        let url = format!("s3://bucket/{name}");
        let refused = job.program("merge", &["--run", "run", "--out", &url], "");
        let last = refused.stderr.lines().last().unwrap();
        assert!(last.starts_with(&format!("merge: {url}: ")) && refused.code == 64, "{last}");
        assert!(
            last.ends_with("; expected s3://bucket/folder/name, with a name of A-Z a-z 0-9 . _ - only"),
            "{last}"
        );
    }
    job.merges();
}

#[test]
fn credentials_in_a_url_are_refused_and_not_shown() {
    let job = Job::done(1);
    let remedy = "found a user name or key before the bucket, expected none; keys come from AWS_PROFILE, ~/.aws or the \
                  machine's role; remove it from the URL, and replace the key, since shells and logs keep it";
    for (place, shown) in [
        ("s3://AKIA:c2V/jcm+V0@bucket/x", "\"s3://***@bucket/x\""),
        ("s3a://c2VjcmV0@bucket/x", "\"s3a://***@bucket/x\""),
        ("s3://AKIA:c2VjcmV0/x", "\"s3://***\""),
    ] {
        for (program, arguments) in [
            ("reducer", &["--partition", "0", "--partitions", "1", "--run", place][..]),
            ("merge", &["--out", "out.h5", "--run", place]),
            ("merge", &["gc", "--run", place]),
            ("sentimill", &["--out", "out.h5", "--input", place]),
        ] {
            job.refuses(|| job.program(program, arguments, ""), 64, &format!("{program}: {shown}: {remedy}"));
        }
    }
    for (program, arguments) in [
        ("reducer", &["--partition", "0", "--partitions", "1", "--run", "https://AKIA:c2VjcmV0@host/x"][..]),
        ("sentimill", &["--out", "out.h5", "--input", "https://AKIA:c2VjcmV0@host/x"]),
        ("mapper", &["--input", "s3://AKIA:c2VjcmV0@bucket/x"]),
    ] {
        let ended = job.program(program, arguments, "");
        assert!(ended.code != 0 && ended.stderr.contains("://***@"), "{program}: {}", ended.stderr);
        assert!(!ended.stderr.contains("c2V"), "{program} shows a key");
    }
    job.merges();
}

#[test]
fn another_file_is_never_overwritten() {
    let job = Job::done(2);
    refused(
        &job,
        &["--run", "run", "--out", "reviews.json"],
        64,
        "reviews.json: already exists and is an incomplete dataset, expected this dataset or no file; nothing was changed: move \
         it away, choose another --out, or replace a dataset by --force",
    );
    job.write("out.manifest.json", "{\"main\": \"index.js\"}\n");
    refused(
        &job,
        &["--run", "run", "--out", "out.h5"],
        66,
        "out.manifest.json is not a manifest of a dataset (unknown field `main`), expected one of schema version 1; restore it, or use the version of the programs that wrote it",
    );
    fs::remove_file(job.path("out.manifest.json")).unwrap();
    job.write("out.padded.h5", "notes");
    refused(
        &job,
        &["--run", "run", "--out", "out.h5", "--padded", "8"],
        64,
        "out.padded.h5: already exists and is a file that is not HDF5, expected a copy of this dataset or no file; nothing was \
         changed: move it away, choose another --out, or replace a dataset by --force",
    );
    job.merges();
}

#[test]
fn a_dataset_of_other_shards_or_settings_is_never_overwritten() {
    let job = Job::done(2);
    (0..2).for_each(|partition| job.reduce("other", partition, &["--max-tokens", "3"]));
    assert_eq!(job.merge(&[]).code, 0);
    let changed = "nothing was changed: move it away, choose another --out, or replace a dataset by --force";
    let shards = format!(
        "out.h5: already exists and is a dataset of other shards, expected one of this run; {changed}"
    );
    let settings = format!(
        "out.h5: already exists and is a dataset with other settings, expected one with these settings; {changed}"
    );
    refused(&job, &["--run", "other", "--out", "out.h5"], 64, &shards);
    refused(&job, &["--run", "run", "--out", "out.h5", "--vocabulary-size", "5"], 64, &settings);
    // The same without its manifest, as left by a merge that is killed between the two files.
    job.without("out.manifest.json", || {
        refused(&job, &["--run", "other", "--out", "out.h5"], 64, &settings);
    });
    job.merges();
}

#[test]
fn a_dataset_altered_on_disk_is_refused() {
    let job = Job::done(2);
    let padded = ["--padded", "8"];
    assert_eq!(job.merge(&padded).code, 0);
    for file in ["out.h5", "out.padded.h5"] {
        let mut altered = job.read(file);
        *altered.last_mut().unwrap() ^= 1;
        job.with_content(file, &altered, || {
            job.refuses(
                || job.merge(&padded),
                64,
                &format!(
                    "merge: {file}: already exists and is another file (sha256 DIGEST), expected this dataset (sha256 \
                     DIGEST); nothing was changed: move it away, choose another --out, or replace a dataset by --force"
                ),
            );
        });
    }
    job.refuses(
        || job.merge(&["--padded", "9"]),
        64,
        "merge: out.padded.h5: already exists and is another file, expected a copy with this number of ids per row, or no file; \
         nothing was changed: move it away, choose another --out, or replace a dataset by --force",
    );
    // The remedies work: missing files are written again with the same bytes.
    let whole = job.read("out.h5");
    fs::remove_file(job.path("out.h5")).unwrap();
    assert_eq!(job.merge(&padded).code, 0);
    assert!(job.read("out.h5") == whole);
    fs::remove_file(job.path("out.manifest.json")).unwrap();
    assert_eq!(job.merge(&padded).code, 0);
    job.merges();
}

#[test]
fn a_missing_temporary_folder_is_refused_by_name() {
    let job = Job::done(2);
    let merge = ["--run", "run", "--out", "out.h5"];
    job.refuses(
        || job.program_with("merge", &merge, "", &[("TMPDIR", "/nowhere")]),
        74,
        "merge: /nowhere: cannot create a temporary file: no such file or folder; check the path or set TMPDIR to a folder \
         on another disk",
    );
    job.merges();
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let job = Job::mapped(1);
    let letters =
        |n: u32| format!("{n:05}").bytes().map(|digit| char::from(digit - b'0' + b'a')).collect::<String>();
    let many: String = (0..9_000).map(|n| format!("word{} good\t1,0,0,0,0\n", letters(n))).collect();
    job.write("sorted", many);
    job.reduce("run", 0, &[]);
    let before = job.files();
    let ended = job.program_on_a_full_disk("merge", &["--run", "run", "--out", "out.h5"], "");
    let last = ended.stderr.lines().last().unwrap();
    assert_eq!(
        last,
        "merge: out.h5: file size limit exceeded while writing; raise the limit with ulimit -f or choose another --out"
    );
    assert_eq!(ended.code, 74, "{last}");
    assert_eq!(job.files(), before);
}

#[test]
fn invalid_arguments_are_refused() {
    let job = Job::done(2);
    for (arguments, message) in [
        (
            &["--check", "out.h5", "--out", "out.h5"][..],
            "the argument '--check <FILE>' cannot be used with '--out <FILE>'; see --help",
        ),
        (
            &["--run", "run", "--out", "out.h5", "--vocabulary-size", "5", "--vocabulary", "other.h5"],
            "the argument '--vocabulary-size <N>' cannot be used with '--vocabulary <FILE>'; see --help",
        ),
        (
            &["--run", "run", "--out", "out.h5", "--vocabulary-size", "0"],
            "--vocabulary-size 0: expected a number from 1 to 4000000000; see --help",
        ),
        (
            &["--run", "hdfs://name/run", "--out", "out.h5"],
            "\"hdfs://name/run\": hdfs:// is not supported, expected a path, file:// or s3://; choose another --run",
        ),
    ] {
        refused(&job, arguments, 64, message);
    }
    job.merges();
}

#[test]
fn a_missing_or_invalid_other_dataset_is_refused() {
    let job = Job::done(2);
    for option in ["--vocabulary", "--without"] {
        let merge = |file| ["--run", "run", "--out", "out.h5", option, file];
        refused(
            &job,
            &merge("absent.h5"),
            66,
            "absent.h5: no such file, expected a shard or a dataset; check the path",
        );
        refused(
            &job,
            &merge("reviews.json"),
            66,
            "reviews.json: the file is not readable as HDF5, expected a complete HDF5 file of this project; it is another \
             file, or was cut or damaged; fetch or make it again",
        );
    }
    job.merges();
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let job = Job::done(1);
    assert_eq!(job.merge(&[]).code, 0);
    let ended =
        job.program("/bin/sh", &["-c", "exec \"$0\" --describe out.h5 >/dev/full", &built_merge()], "");
    assert_eq!(
        ended.stderr,
        "merge: standard output: disk full while writing; free space there or redirect it to another disk\n"
    );
    assert_eq!(ended.code, 74);
}

fn built_merge() -> String {
    crate::job::built("merge").to_str().unwrap().to_owned()
}

//! Standard streams that are closed, or open in the wrong direction.

use crate::job::{Job, REVIEWS, built};

/// Runs a program with a shell redirection such as `<&-`.
fn redirected(job: &Job, redirection: &str, name: &str, arguments: &[&str]) -> crate::job::Ended {
    let script = format!("exec \"$0\" \"$@\" {redirection}");
    let program = built(name);
    job.program("/bin/sh", &[&["-c", &script, program.to_str().unwrap()], arguments].concat(), REVIEWS)
}

const PROGRAMS: [(&str, &[&str]); 6] = [
    ("mapper", &["--input", "reviews.json", "--counts", "new.json"]),
    ("combiner", &[]),
    ("reducer", &["--run", "new", "--partition", "0", "--partitions", "1"]),
    ("merge", &["--run", "run", "--out", "out.h5"]),
    ("sentimill", &["--input", "reviews.json", "--out", "out.h5"]),
    ("demo-corpus", &["--facts", "facts.json"]),
];

#[test]
fn a_closed_standard_stream_is_refused_before_any_work() {
    let job = Job::done(1);
    for (program, arguments) in PROGRAMS {
        for (redirection, stream) in [("<&-", "standard input"), (">&-", "standard output")] {
            let message = format!(
                "{program}: {stream} is closed, expected an open stream; redirect it to a file or to /dev/null"
            );
            job.refuses(|| redirected(&job, redirection, program, arguments), 74, &message);
        }
        let before = job.files();
        let ended = redirected(&job, "2>&-", program, arguments);
        assert_eq!((ended.code, ended.stdout), (74, String::new()), "{program} without standard error");
        assert_eq!(job.files(), before, "{program} without standard error");
    }
    job.merges();
}

#[test]
fn a_program_that_fails_leaves_its_message_for_the_one_that_started_it() {
    let job = Job::done(1);
    for (name, arguments) in [
        ("mapper", &["--input", "missing.json"][..]),
        ("merge", &["--nosuch"]),
        ("sentimill", &["--formt", "json"]),
    ] {
        let program = built(name);
        let script = "SENTIMILL_ERROR_FILE=said exec \"$0\" \"$@\"";
        let command = [&["-c", script, program.to_str().unwrap()], arguments].concat();
        let ended = job.program("/bin/sh", &command, REVIEWS);
        let last = ended.stderr.lines().last().unwrap_or_default();
        assert!(ended.code > 0 && last.starts_with(&format!("{name}: ")), "{}", ended.stderr);
        assert_eq!(String::from_utf8(job.read("said")).unwrap(), format!("{last}\n"));
    }
}

#[test]
fn output_open_for_reading_only_is_refused_before_any_work() {
    let job = Job::done(1);
    for (program, arguments) in PROGRAMS {
        let message = format!(
            "{program}: standard output is open for reading only, expected for writing; redirect it to a file or to \
             /dev/null"
        );
        job.refuses(|| redirected(&job, "1</dev/null", program, arguments), 74, &message);
    }
}

#[test]
fn input_open_for_writing_only_is_refused_when_it_is_read() {
    let job = Job::mapped(1);
    let refusal = "standard input is open for writing only, expected for reading; redirect it to a file or to /dev/null";
    for (program, arguments, before) in [
        ("mapper", &["--counts", "new.json"][..], "-: cannot read lines: "),
        ("combiner", &[], ""),
        ("reducer", &["--run", "new", "--partition", "0", "--partitions", "1"], ""),
        ("sentimill", &["--input", "-", "--out", "out.h5"], "-: cannot read it: "),
    ] {
        let message = format!("{program}: {before}{refusal}");
        job.refuses(|| redirected(&job, "0>/dev/null", program, arguments), 74, &message);
    }
    // nohup passes such a standard input to programs that do not read it.
    let ended = redirected(&job, "0>/dev/null", "mapper", &["--input", "reviews.json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn dev_null_in_both_directions_is_an_open_stream() {
    let job = Job::mapped(1);
    let streams = "0<>/dev/null 1<>/dev/null 2<>/dev/null";
    let arguments = ["--run", "run", "--partition", "0", "--partitions", "2"];
    assert_eq!(redirected(&job, streams, "reducer", &arguments).code, 0);
    assert_eq!(redirected(&job, streams, "mapper", &["--input", "reviews.json"]).code, 0);
}

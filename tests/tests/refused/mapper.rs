//! Input and options that the mapper refuses.

use tests::bad_lines::too_many;
use tests::compressed::gzip;
use tests::hadoop::as_task;
use tests::programs::{program, run};

use crate::job::{Job, REVIEWS, built};

#[test]
fn too_many_bad_lines_fail_with_the_likely_cause() {
    let job = Job::mapped(1);
    for (input, refusal) in too_many(" to sentimill") {
        job.refuses(
            || job.program("mapper", &["--counts", "new.json"], &input),
            65,
            &format!("mapper: {refusal}"),
        );
    }
    job.refuses(
        || job.program("mapper", &["--format", "polarity-csv"], "\"3\",\"ok\"\n".repeat(1000)),
        65,
        "mapper: 1000 of 1000 lines are bad (bad_rating 1000), expected at most 0.05 of them; classes without a \
         rating: \"3\" 1000; set their stars with --class-ratings=1=1,2=2,3=3,4=4,5=5",
    );
}

#[test]
fn compressed_bytes_that_hadoop_did_not_inflate_are_refused() {
    let compressed = [&b"\x1f\x8b\x08"[..], &b"\n\x01".repeat(1000)].concat();
    let refused = run(as_task(&mut program("mapper")), &compressed).with_code(65);
    let expected = "mapper: 1001 of 1001 lines are bad (bad_line 1001), expected at most 0.05 of them; the input is \
                    compressed; pass it as a file by --input, or decompress it before the mapper\n";
    assert!(refused.stderr.ends_with(expected), "{}", refused.stderr);
}

#[test]
fn tables_are_refused_with_the_program_that_reads_them() {
    let array = "[\n{\"reviewText\": \"ok\", \"overall\": 5}\n]\n";
    // A line that is a whole array is a bad line, until the end shows that no other lines follow.
    let inputs: [(&[u8], &str, &str); 5] = [
        (array.as_bytes(), "", "a JSON array"),
        (b"\n\xEF\xBB\xBF [ {}, {} ]", "mapper: -:2: bad_line (byte 1)\n", "a JSON array"),
        (b"PAR1\x15\x04\n\x00", "", "a Parquet file"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "", "an Arrow file"),
        (b"\xff\xff\xff\xff\x70\0\0\0", "", "an Arrow file"),
    ];
    for (input, line, found) in inputs {
        let expected = format!(
            "mapper: -: found {found}, expected lines; pass the whole file to sentimill, which reads it\n"
        );
        let refused = run(&mut program("mapper"), input).with_code(65);
        assert_eq!(refused.stderr, format!("{line}{expected}"));
        let task = run(as_task(&mut program("mapper")), input).with_code(78);
        assert!(task.stdout.is_empty() && task.stderr.ends_with(&expected), "{}", task.stderr);
    }
    for format in ["csv", "tsv"] {
        let expected = format!(
            "mapper: --format {format}: the mapper reads lines, not tables with a header; pass the files to sentimill \
             --format {format}\n"
        );
        let arguments = ["--format", format, "--text-field", "text"];
        assert_eq!(run(program("mapper").args(arguments), b"").with_code(64).stderr, expected);
        let task = run(as_task(program("mapper").args(arguments)), b"").with_code(78);
        assert!(task.stderr.ends_with(&expected), "{}", task.stderr);
    }
    // A later part of an array has lines of elements, which are bad lines.
    let mut later = program("mapper");
    later.env("mapreduce_map_input_start", "100");
    run(as_task(&mut later), array.as_bytes()).succeeded();
}

#[test]
fn input_without_a_review_is_refused() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("mapper", &["--counts", "new.json"], ""),
        65,
        "mapper: found no review and no line, expected at least one; check that the program that writes it succeeded",
    );
    job.refuses(
        || job.program("mapper", &["--counts", "new.json"], "{\"overall\": 5}\n\n"),
        65,
        "mapper: found no review (2 lines = 1 blank + 1 no_text + 0 reviews), expected at least one; most lines have \
         no text in the field \"reviewText\": found the fields overall; name the field with --text-field",
    );
    job.refuses(
        || job.program("sentimill", &["--input", "-", "--out", "out.h5"], "nonsense\n"),
        65,
        "sentimill: found no review (1 lines = 1 bad_line + 0 reviews), expected at least one; most lines are not \
         JSON objects; write one object per line, or pass --format polarity-csv for lines of class,text, \
         or --format csv for a table with a header",
    );
}

#[test]
fn the_share_of_bad_lines_is_checked_from_20_bad_lines() {
    let job = Job::mapped(1);
    let lines = |bad: usize| format!("{}{}", "x\n".repeat(bad), REVIEWS);
    let refusal = |of_tables: &str| {
        format!(
            "20 of 29 lines are bad (bad_line 20), expected at most 0.05 of them; most lines are not JSON \
             objects; write one object per line, or pass --format polarity-csv for lines of class,text, \
             or --format csv{of_tables} for a table with a header"
        )
    };
    job.refuses(
        || job.program("mapper", &["--counts", "new.json"], lines(20)),
        65,
        &format!("mapper: {}", refusal(" to sentimill")),
    );
    let sentimill = ["--input", "-", "--out", "out.h5"];
    job.refuses(
        || job.program("sentimill", &sentimill, lines(20)),
        65,
        &format!("sentimill: {}", refusal("")),
    );
    let mapped = job.program("mapper", &[], lines(19));
    assert_eq!(mapped.code, 0, "{}", mapped.stderr);
}

#[test]
fn a_file_without_a_review_is_reported() {
    let job = Job::mapped(1);
    job.write("other.txt", "1,great\n");
    job.write("blank.json", "\n\n");
    let input = ["--input", "reviews.json", "other.txt", "blank.json"];
    let warning = "warning: other.txt: no line is a review; check its format\n";
    let mapped = job.program("mapper", &input, "");
    assert!(mapped.code == 0 && mapped.stderr.contains(&format!("mapper: {warning}")), "{}", mapped.stderr);
    let milled = job.program("sentimill", &[&input[..], &["--out", "out.h5"]].concat(), "");
    assert!(
        milled.code == 0 && milled.stderr.contains(&format!("sentimill: {warning}")),
        "{}",
        milled.stderr
    );
    assert_eq!((mapped.stderr + &milled.stderr).matches("warning").count(), 2);
}

#[test]
fn a_tar_archive_is_refused_with_a_remedy() {
    let job = Job::mapped(1);
    let mut archive = vec![0; 1024];
    archive[..12].copy_from_slice(b"reviews.json");
    archive[257..263].copy_from_slice(b"ustar\0");
    archive.extend_from_slice(REVIEWS.as_bytes());
    job.write("reviews.tar", &archive);
    job.write("reviews.tar.gz", gzip(&archive));
    let refusal = "found a tar archive, expected lines; unpack it with tar -x and pass its files, or pipe them with tar -xO";
    for file in ["reviews.tar", "reviews.tar.gz"] {
        let message = format!("mapper: {file}: cannot read lines: {refusal}");
        job.refuses(|| job.program("mapper", &["--input", file], ""), 65, &message);
        let milled = job.program("sentimill", &["--input", file, "--out", "out.h5"], "");
        assert!(milled.code == 65 && milled.stderr.ends_with(&format!("{refusal}\n")), "{}", milled.stderr);
    }
    job.refuses(
        || job.program("mapper", &[], gzip(&archive)),
        65,
        &format!("mapper: -: cannot read lines: {refusal}"),
    );
}

#[test]
fn a_file_without_lines_is_refused_with_what_unpacks_it() {
    let job = Job::mapped(1);
    for (file, magic, found, command) in [
        ("reviews.zip", &b"PK\x03\x04\x14\0\0\0"[..], "a zip archive", "unzip -p"),
        ("reviews.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive", "7z x -so"),
        ("reviews.xz", b"\xfd7zXZ\0\0\x04", "an xz-compressed file", "xz -dc"),
        ("reviews.lz4", b"\x04\x22\x4d\x18\x64\x40", "an lz4-compressed file", "lz4 -dc"),
    ] {
        job.write(file, magic);
        let refusal =
            format!("found {found}, expected lines; decompress it first: {command} {file} > reviews.json");
        let message = format!("mapper: {file}: cannot read lines: {refusal}");
        job.refuses(|| job.program("mapper", &["--input", file], ""), 65, &message);
        job.refuses(
            || job.program("mapper", &[], magic),
            65,
            &message.replace(&format!("{file}:"), "-:").replace(file, "FILE"),
        );
        let milled = job.program("sentimill", &["--input", file, "--out", "out.h5"], "");
        assert!(milled.code == 65 && milled.stderr.ends_with(&format!("{refusal}\n")), "{}", milled.stderr);
    }
    assert_eq!(job.program("sentimill", &["--input", "reviews.json", "--out", "own.h5"], "").code, 0);
    job.refuses(
        || job.program("mapper", &["--input", "own.h5"], ""),
        65,
        "mapper: own.h5: cannot read lines: found an HDF5 file, expected lines; pass reviews; merge --describe own.h5 \
         prints the data card of a dataset",
    );
}

#[test]
fn a_url_is_refused_by_the_mapper_with_the_programs_that_read_it() {
    let job = Job::mapped(1);
    let sentimill = "pass the URL to sentimill --input, which reads S3 and https, or to Hadoop as -input, which feeds the mapper";
    for (url, remedy) in [
        ("s3://bucket/reviews/", sentimill),
        ("https://host/reviews.json", sentimill),
        ("file:///reviews.json", "pass the path after file://"),
    ] {
        for arguments in [&["--input", url][..], &[url], &["reviews.json", url]] {
            job.refuses(
                || job.program("mapper", arguments, ""),
                64,
                &format!("mapper: {url}: the mapper reads local files and standard input; {remedy}"),
            );
        }
    }
}

#[test]
fn a_limit_of_zero_accepts_no_bad_line() {
    let job = Job::mapped(1);
    let refusal = |listing: &str| {
        let found = "1 of 10 lines are bad (bad_line 1), expected at most 0 of them";
        format!("{found}; {listing}, or raise --bad-lines-max")
    };
    let input = format!("{REVIEWS}x\n");
    job.refuses(
        || job.program("mapper", &["--bad-lines-max", "0"], &input),
        65,
        &format!("mapper: {}", refusal("print them with mapper --rejects")),
    );
    let sentimill = ["--input", "-", "--out", "out.h5", "--bad-lines-max", "0"];
    job.refuses(
        || job.program("sentimill", &sentimill, &input),
        65,
        &format!("sentimill: {}", refusal("write them to a file with --rejects")),
    );
}

#[test]
fn an_empty_file_among_others_is_named() {
    let job = Job::mapped(1);
    job.write("empty.json", "");
    let input = ["--input", "reviews.json", "empty.json"];
    let warning = "warning: empty.json: the file is empty; check that it was written completely\n";
    let mapped = job.program("mapper", &input, "");
    assert!(mapped.code == 0 && mapped.stderr.contains(&format!("mapper: {warning}")), "{}", mapped.stderr);
    let milled = job.program("sentimill", &[&input[..], &["--out", "out.h5"]].concat(), "");
    assert!(
        milled.code == 0 && milled.stderr.contains(&format!("sentimill: {warning}")),
        "{}",
        milled.stderr
    );
}

#[test]
fn bad_lines_are_named_by_file_and_line_number() {
    let job = Job::mapped(1);
    job.write("bad.json", format!("{REVIEWS}\nx\n"));
    let expected = format!("bad.json:11: bad_line (byte {})\n", REVIEWS.len() + 1);
    let mapped = job.program("mapper", &["--input", "bad.json"], "");
    assert!(mapped.stderr.contains(&format!("mapper: {expected}")), "{}", mapped.stderr);
    let milled = job.program("sentimill", &["--input", "bad.json", "--out", "out.h5"], "");
    assert!(milled.stderr.contains(&format!("sentimill: {expected}")), "{}", milled.stderr);
    job.write("bad.json.gz", gzip(&job.read("bad.json")));
    let milled = job.program("sentimill", &["--input", "bad.json.gz", "--out", "other.h5"], "");
    assert!(milled.stderr.contains("sentimill: bad.json.gz:11: bad_line (byte "), "{}", milled.stderr);
}

#[test]
fn counts_overwrite_only_counts() {
    let job = Job::mapped(1);
    let occupied = |file: &str, found: &str| {
        format!(
            "mapper: --counts {file}: {found}, expected no file or one written by --counts; nothing was changed: choose \
             another --counts"
        )
    };
    let in_use = |file: &str, used: &str| {
        format!(
            "mapper: --counts {file}: is {used} of this run, expected another file; choose another --counts"
        )
    };
    job.write("other.json", "{\"lines\": 1}");
    for (file, found) in [
        ("other.json", "exists and is not a file of counts"),
        ("sorted", "exists and is not a file of counts"),
        ("tmp", "is a folder"),
        ("/dev/full", "is a device or a pipe"),
    ] {
        job.refuses(|| job.program("mapper", &["--counts", file], REVIEWS), 64, &occupied(file, found));
    }
    let link = job.path("link.json");
    std::os::unix::fs::symlink("reviews.json", &link).unwrap();
    std::fs::hard_link(job.path("reviews.json"), job.path("hard.json")).unwrap();
    for file in ["reviews.json", "./reviews.json", "link.json", "hard.json"] {
        job.refuses(
            || job.program("mapper", &["--input", "reviews.json", "--counts", file], ""),
            64,
            &in_use(file, "the input"),
        );
    }
    let script = |redirection: &str| format!("exec \"$0\" --counts counts.json {redirection}");
    let mapper = built("mapper");
    for (redirection, used) in [("<counts.json", "the input"), (">>counts.json", "the output")] {
        job.refuses(
            || job.program("/bin/sh", &["-c", &script(redirection), mapper.to_str().unwrap()], REVIEWS),
            64,
            &in_use("counts.json", used),
        );
    }
}

#[test]
fn a_failing_mapper_keeps_the_counts_of_an_earlier_run() {
    let job = Job::mapped(1);
    let failed = "mapper: none.json: cannot read lines: no such file or folder; check the path";
    job.refuses(
        || job.program("mapper", &["--input", "none.json", "--counts", "counts.json"], ""),
        66,
        failed,
    );
    job.map("counts.json", "{\"reviewText\": \"ok\", \"overall\": 4}\n", "sorted");
    let counts: serde_json::Value = serde_json::from_slice(&job.read("counts.json")).unwrap();
    assert_eq!(counts["lines"], 1);
    assert!(job.files().keys().all(|path| !path.to_str().unwrap().contains(".mapper-")));
}

#[test]
fn a_missing_or_truncated_file_is_refused_by_name() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("mapper", &["--input", "none.json"], ""),
        66,
        "mapper: none.json: cannot read lines: no such file or folder; check the path",
    );
    job.refuses(
        || job.program("mapper", &["--input", "reviews.json", "tmp"], ""),
        74,
        "mapper: tmp: cannot read lines: it is a folder, expected a file; check the path",
    );
    let gzip = gzip(REVIEWS.as_bytes());
    job.write("cut.json.gz", &gzip[..gzip.len() - 1]);
    job.refuses(
        || job.program("mapper", &["--input", "cut.json.gz"], ""),
        65,
        &format!(
            "mapper: cut.json.gz: cannot read lines: the gzip member at byte 0 is cut off at byte {}, the end of the \
             file; fetch the file again",
            gzip.len() - 1
        ),
    );
    job.write("more.json.gz", [&gzip[..], b"more"].concat());
    job.refuses(
        || job.program("mapper", &["--input", "more.json.gz"], ""),
        65,
        &format!(
            "mapper: more.json.gz: cannot read lines: bytes that are not gzip follow its members from byte {} on; remove them",
            gzip.len()
        ),
    );
}

#[test]
fn a_path_for_counts_that_cannot_be_written_is_refused_by_name() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("mapper", &["--counts", "reviews.json/counts.json"], REVIEWS),
        74,
        "mapper: --counts reviews.json/counts.json: cannot write the counts: a part of the path is a file, expected a \
         folder; check the path or choose another --counts",
    );
    job.refuses(
        || job.program("mapper", &["--counts", "/proc/counts.json"], REVIEWS),
        74,
        "mapper: --counts /proc/counts.json: cannot write the counts: no such file or folder; check the path or choose \
         another --counts",
    );
    job.refuses(
        || job.program("mapper", &["--counts", "none/counts.json"], REVIEWS),
        64,
        "mapper: none: no such folder, expected one to write into; create it with mkdir -p, or check --counts",
    );
}

#[test]
fn invalid_options_are_refused() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("mapper", &["--bad-lines-max", "5 %"], ""),
        64,
        "mapper: --bad-lines-max 5 %: expected a number from 0 to 1; see --help",
    );
    job.refuses(
        || job.program("mapper", &["--format", "xml"], ""),
        64,
        "mapper: --format xml: expected json, polarity-csv or fasttext; see --help",
    );
    job.refuses(
        || job.program("mapper", &["--format", "polarity-csv", "--class-ratings", "1=1,2=6"], ""),
        64,
        "mapper: --class-ratings 1=1,2=6: \"2=6\" has more than 5 stars, expected classes with 1 to 5 stars, as in 1=1,2=5; to learn more than five labels, pass --label-field NAME to ngrams train; see --help",
    );
    job.refuses(
        || job.program("mapper", &["--format", "fasttext", "--preset", "yelp"], ""),
        64,
        "mapper: --preset is not used by the format fasttext, only by json, csv or tsv; remove it or choose another --format; \
         see --help",
    );
    job.refuses(
        || job.program("mapper", &["reviews.json", "--input", "reviews.json"], ""),
        64,
        "mapper: the argument '[FILE]...' cannot be used with '--input <FILE>...'; see --help",
    );
    job.refuses(
        || job.program("combiner", &["--fast"], ""),
        64,
        "combiner: unexpected argument '--fast' found; see --help",
    );
}

#[test]
fn an_invalid_record_is_refused_by_the_combiner() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("combiner", &[], REVIEWS),
        65,
        "combiner: line 1 is not a record: no tab between text and votes; feed this program the output of mapper or combiner",
    );
}

//! What the mapper refuses.

use crate::job::{Job, REVIEWS};

#[test]
fn too_many_bad_lines_fail_with_the_likely_cause() {
    let job = Job::mapped(1);
    let many = |line: &str| line.repeat(1000);
    let cases = [
        (
            many("{\"text\": \"ok\", \"overall\": 5}\n"),
            "no_text 1000",
            "most lines have no text in the field \"reviewText\": name it by --text-field",
        ),
        (
            many("{\"reviewText\": \"ok\", \"rating\": 5}\n"),
            "bad_rating 1000",
            "most lines have no rating from 1 to 5 in the field \"overall\": name it by --rating-field",
        ),
        (
            many("great,5\n"),
            "bad_line 1000",
            "most lines are not in the format json: does each line hold one JSON object?",
        ),
        (
            format!("[\n{}", many("{\"reviewText\": \"ok\", \"overall\": 5},\n")),
            "bad_line 1001",
            "the input looks like one JSON array: write one object a line",
        ),
    ];
    for (input, reasons, cause) in cases {
        let bad = reasons.rsplit(' ').next().unwrap();
        job.refuses(
            || job.program("mapper", &["--counts", "new.json"], &input),
            65,
            &format!(
                "mapper: {bad} of {bad} lines are bad ({reasons}), expected at most 0.05 of them; {cause}, or raise \
                 --bad-lines-max"
            ),
        );
    }
    let gzip = [&b"\x1f\x8b\x08"[..], &b"\n\x01".repeat(1000)].concat();
    job.refuses(
        || job.program("mapper", &["--counts", "new.json"], &gzip),
        65,
        "mapper: 1001 of 1001 lines are bad (bad_line 1001), expected at most 0.05 of them; the input is compressed by \
         gzip: unpack it before the mapper, or raise --bad-lines-max",
    );
}

#[test]
fn a_place_for_counts_that_cannot_be_written_is_named() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("mapper", &["--counts", "reviews.json/counts.json"], REVIEWS),
        74,
        "mapper: reviews.json/counts.json: cannot write the counts; check the path, its permissions and the free space: \
         Not a directory (os error 20)",
    );
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("mapper", &["--bad-lines-max", "5 %"], ""),
        64,
        "mapper: invalid value '5 %' for '--bad-lines-max <SHARE>': expected a number from 0 to 1; --help tells more",
    );
    job.refuses(
        || job.program("mapper", &["reviews.json"], ""),
        64,
        "mapper: unexpected argument 'reviews.json' found; --help tells more",
    );
    job.refuses(
        || job.program("combiner", &["--fast"], ""),
        64,
        "combiner: unexpected argument '--fast' found; --help tells more",
    );
}

#[test]
fn what_is_no_record_is_refused_by_the_combiner() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("combiner", &[], REVIEWS),
        65,
        "combiner: line 1 is no record: no tab between text and votes; feed this program the output of mapper or combiner",
    );
}

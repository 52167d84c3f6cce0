//! What the mapper refuses.

use tests::bad_lines::too_many;
use tests::compressed::gzip;

use crate::job::{Job, REVIEWS};

#[test]
fn too_many_bad_lines_fail_with_the_likely_cause() {
    let job = Job::mapped(1);
    for (input, refusal) in too_many() {
        job.refuses(
            || job.program("mapper", &["--counts", "new.json"], &input),
            65,
            &format!("mapper: {refusal}"),
        );
    }
    let gzip = [&b"\x1f\x8b\x08"[..], &b"\n\x01".repeat(1000)].concat();
    job.refuses(
        || job.program("mapper", &["--counts", "new.json"], &gzip),
        65,
        "mapper: 1001 of 1001 lines are bad (bad_line 1001), expected at most 0.05 of them; the input is compressed: \
         give it as a file, by --input, or unpack it before the mapper, or raise --bad-lines-max",
    );
    job.refuses(
        || job.program("mapper", &["--format", "polarity-csv"], "\"3\",\"ok\"\n".repeat(1000)),
        65,
        "mapper: 1000 of 1000 lines are bad (bad_rating 1000), expected at most 0.05 of them; most lines are of classes \
         without a rating (those of 1=1,2=5 have one): name them by --class-ratings, or raise --bad-lines-max",
    );
}

#[test]
fn a_file_that_is_missing_or_not_whole_is_named() {
    let job = Job::mapped(1);
    job.refuses(
        || job.program("mapper", &["--input", "none.json"], ""),
        66,
        "mapper: none.json: cannot read lines: No such file or directory (os error 2)",
    );
    job.refuses(
        || job.program("mapper", &["--input", "reviews.json", "tmp"], ""),
        74,
        "mapper: tmp: cannot read lines: Is a directory (os error 21)",
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
            "mapper: more.json.gz: cannot read lines: bytes that are no gzip stand behind its members, from byte {} on; \
             take them off",
            gzip.len()
        ),
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
        || job.program("mapper", &["--format", "csv"], ""),
        64,
        "mapper: invalid value 'csv' for '--format <NAME>': expected json, polarity-csv or fasttext; --help tells more",
    );
    job.refuses(
        || job.program("mapper", &["--format", "polarity-csv", "--class-ratings", "1=1,2=6"], ""),
        64,
        "mapper: invalid value '1=1,2=6' for '--class-ratings <CLASS=STARS>': \"2=6\" is no class and its stars, 1 \
         to 5, expected as in 1=1,2=5; --help tells more",
    );
    job.refuses(
        || job.program("mapper", &["--format", "fasttext", "--preset", "yelp"], ""),
        64,
        "mapper: --preset is of no use for the format fasttext, expected json; leave it out or give another --format; \
         --help tells more",
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

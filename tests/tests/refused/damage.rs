//! Incomplete and damaged datasets, checked with `--check` and `--describe`.

use crate::job::{Job, flipped, place_of};
use crate::run::chunk;

fn merged() -> Job {
    let job = Job::done(2);
    assert_eq!(job.merge(&["--padded", "8"]).code, 0);
    job
}

fn refused(job: &Job, file: &str, message: &str) {
    for option in ["--check", "--describe"] {
        job.refuses(|| job.program("merge", &[option, file], ""), 66, &format!("merge: {file}: {message}"));
    }
}

const NO_HDF5: &str = "the file is not readable as HDF5, expected a complete HDF5 file of this project; it is another file, \
                       or was cut or damaged; fetch or make it again";

#[test]
fn a_file_that_is_not_a_dataset_is_refused() {
    let job = merged();
    refused(&job, "absent.h5", "no such file, expected a shard or a dataset; check the path");
    refused(&job, "reviews.json", NO_HDF5);
    job.write("empty.h5", "");
    refused(&job, "empty.h5", NO_HDF5);
    job.write("shard.h5", job.read(&job.object(0)));
    refused(
        &job,
        "shard.h5",
        "attribute format is \"sentimill shard\", expected \"sentimill dataset\"; make the file again with this version of the programs",
    );
    refused(
        &job,
        "out.padded.h5",
        "the dataset `digests` is absent, expected a table of digests; only files written by reducer and \
         merge are read; for a padded copy, pass the dataset in the same folder",
    );
    job.merges();
}

#[test]
fn a_cut_dataset_is_refused() {
    let job = merged();
    let whole = job.read("out.h5");
    for length in [1, 7, 48, 100, whole.len() / 2, whole.len() - 1] {
        job.with_content("out.h5", &whole[..length], || refused(&job, "out.h5", NO_HDF5));
    }
    job.merges();
}

#[test]
fn a_flipped_byte_in_a_column_is_refused_with_its_name() {
    let job = merged();
    let whole = job.read("out.h5");
    for column in
        ["tokens", "offsets", "label", "votes", "hash", "split", "vocabulary/bytes", "vocabulary/count"]
    {
        let damaged = flipped(&whole, chunk(&job, "out.h5", column));
        job.with_content("out.h5", &damaged, || {
            refused(
                &job,
                "out.h5",
                &format!(
                    "chunk 0 of {column} does not match its digest: the file was damaged or altered; fetch or make it \
                     again"
                ),
            );
        });
    }
    job.merges();
}

#[test]
fn a_flipped_byte_in_an_attribute_or_the_table_is_refused() {
    let job = merged();
    let whole = job.read("out.h5");
    for (at, part) in [
        (place_of(&whole, b"yourself"), "the list of attributes"),
        (place_of(&whole, b"sentimill digests 1"), "digests"),
    ] {
        job.with_content("out.h5", &flipped(&whole, at), || {
            refused(
                &job,
                "out.h5",
                &format!("{part} does not match its digest: the file was damaged or altered; fetch or make it again"),
            );
        });
    }
    job.merges();
}

/// Changes bytes at all positions of a small file, some of them unused. No flip changes the content
/// undetected, makes a program panic, or makes the library write to standard error.
#[test]
fn no_flipped_byte_changes_the_dataset_undetected() {
    let job = merged();
    let whole = job.read("out.h5");
    let describe = || job.program("merge", &["--describe", "out.h5"], "");
    let card = describe().stdout;
    // A prime, so that all parts of a structure are covered.
    for at in (0..whole.len()).step_by(97) {
        job.with_content("out.h5", &flipped(&whole, at), || {
            let ended = describe();
            match ended.code {
                0 => assert_eq!(ended.stdout, card, "byte {at}"),
                66 => assert_eq!(ended.stderr.lines().count(), 1, "byte {at}: {}", ended.stderr),
                code => panic!("byte {at}: {code} {}", ended.stderr),
            }
        });
    }
}

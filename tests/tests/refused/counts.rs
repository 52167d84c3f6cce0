//! Counts of the mappers that do not match the shards.

use crate::job::{Job, REVIEWS};

/// A job with two mappers, and their files of counts.
fn of_two_mappers() -> Job {
    let job = Job::done(2);
    let (first, second) = REVIEWS.split_at(REVIEWS.find("{\"reviewText\": \"Soft").unwrap());
    job.map("first.json", first, "first");
    job.map("second.json", second, "second");
    job
}

const REVIEWS_DIFFER: &str = "; pass --counts of this run, with the file of each mapper once";

#[test]
fn counts_of_a_mapper_missing_or_passed_twice_do_not_balance() {
    let job = of_two_mappers();
    for (counts, mapped) in [
        (&["first.json"][..], 4),
        (&["first.json", "second.json", "second.json"], 14),
        (&["counts.json", "first.json"], 13),
    ] {
        job.refuses(
            || job.merge(&[&["--counts"], counts].concat()),
            65,
            &format!(
                "merge: the ledger does not balance: the mappers wrote {mapped} reviews and the shards contain \
                 9{REVIEWS_DIFFER}"
            ),
        );
    }
    let merged = job.merge(&["--counts", "first.json", "second.json"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    job.merges();
}

#[test]
fn a_line_without_a_counter_does_not_balance() {
    let job = Job::done(2);
    job.with_json("counts.json", |counts| counts["lines"] = 10.into(), || {
        job.refuses(
            || job.merge(&["--counts", "counts.json"]),
            65,
            "merge: the ledger does not balance: the mappers read 10 lines and account for 9; a file of --counts was cut \
             or altered, restore it",
        );
    });
    job.merges();
}

#[test]
fn counts_near_the_largest_number_do_not_wrap_into_balance() {
    let job = Job::done(2);
    job.write("hostile.json", job.read("counts.json"));
    let edit = |counts: &mut serde_json::Value| {
        counts["reviews"] = u64::MAX.into();
        counts["lines"] = u64::MAX.into();
    };
    job.with_json("hostile.json", edit, || {
        let message = format!(
            "merge: the ledger does not balance: the mappers wrote {} reviews and the shards contain 9{REVIEWS_DIFFER}",
            u64::MAX
        );
        job.refuses(|| job.merge(&["--counts", "hostile.json", "counts.json", "counts.json"]), 65, &message);
    });
    job.merges();
}

#[test]
fn a_file_without_counts_is_refused() {
    let job = Job::done(2);
    job.write("empty", "");
    job.write("garbage", b"\xff\x00\x1b[2J mapper\nmapper\nx=1\n");
    job.write("cut.json", "{\"lines\": 9, ");
    job.write("future.json", "{\"lines\": 9, \"seconds\": 1}");
    for file in ["empty", "garbage", "cut.json", "future.json", "reviews.json"] {
        job.refuses(
            || job.merge(&["--counts", file]),
            66,
            &format!(
                "merge: --counts {file}: found no counts, expected a mapper's --counts file or the saved output of the Hadoop \
                 job client"
            ),
        );
    }
    job.refuses(
        || job.merge(&["--counts", "absent.json"]),
        66,
        "merge: --counts absent.json: cannot read the counts: no such file or folder; check the path",
    );
    job.merges();
}

fn job_output(lines: u64, reviews: u64) -> String {
    format!(
        "INFO mapreduce.Job: Job job_1_0001 completed successfully\nINFO mapreduce.Job: Counters: 55\n\
         \tFile System Counters\n\t\tFILE: Number of bytes read=700\n\tMap-Reduce Framework\n\t\tMap input records=9\n\
         \tmapper\n\t\tbad_line=0\n\t\tlines={lines}\n\t\treviews={reviews}\n\treducer\n\t\treviews=9\n\t\trows=7\n\
         \tFile Input Format Counters \n\t\tBytes Read=100\n"
    )
}

#[test]
fn the_output_of_the_job_client_is_accepted_if_it_balances() {
    let job = Job::done(2);
    job.write("client.log", job_output(8, 8));
    job.refuses(
        || job.merge(&["--counts", "client.log"]),
        65,
        &format!(
            "merge: the ledger does not balance: the mappers wrote 8 reviews and the shards contain 9{REVIEWS_DIFFER}"
        ),
    );
    job.write("client.log", job_output(9, 9));
    let merged = job.merge(&["--counts", "client.log"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
    assert!(merged.stdout.contains("9 lines = 0 blank + 0 line_too_long + 0 bad_line"), "{}", merged.stdout);
    job.merges();
}

/// Fewer than 20 bad lines are accepted, in one mapper or in all.
#[test]
fn too_many_bad_lines_in_the_sum_of_counts_are_refused() {
    let job = Job::done(2);
    let (first, second) = REVIEWS.split_at(REVIEWS.find("{\"reviewText\": \"Soft").unwrap());
    let with_bad = |reviews: &str, n_bad: usize| format!("{reviews}{}", "{\"overall\": 5}\n".repeat(n_bad));
    job.map("first.json", &with_bad(first, 11), "first");
    job.map("second.json", &with_bad(second, 9), "second");
    let merge = ["--counts", "first.json", "second.json"];
    job.refuses(
        || job.merge(&merge),
        65,
        "merge: 20 of 29 lines are bad (no_text 20), expected at most 0.05 of them; the logs of the mappers list \
         the first ones",
    );
    let merged = job.merge(&[&merge[..], &["--bad-lines-max", "1"]].concat());
    assert_eq!(merged.code, 0, "{}", merged.stderr);
}

//! Refused runs: one message states the fault and the remedy, and nothing changes.

use std::fs;
use std::path::Path;

use tests::bad_lines::too_many;
use tests::demo::{DEMO, json_line};
use tests::files::snapshot;
use tests::programs::{program, run, without_hadoop};

use crate::made::{BY_PIPE, Flags, Manner, Room, told_by, told_by_mapper};

const MANNER: Manner = Manner { threads: 2, memory: "64MiB" };

/// Checks that the program refuses with this message in its last line, and that it changes no file.
#[track_caller]
fn refuses(room: &Room, (arguments, inputs): (&[&str], &[&str]), code: i32, message: &str) {
    let before = snapshot(&room.path(""));
    let flags = Flags { dataset: arguments, ..Flags::default() };
    let refused = run(&mut room.sentimill(MANNER, &flags, inputs), b"").with_code(code);
    assert_eq!(refused.stderr.lines().last(), Some(&*format!("sentimill: {message}")));
    assert!(snapshot(&room.path("")) == before, "something was touched: {:?}", room.files());
}

fn room() -> Room {
    let room = Room::new();
    room.write("reviews.json", &DEMO.raw);
    room
}

const NOT_CHANGED: &str =
    "nothing was changed: move it away, choose another --out, or replace a dataset by --force";

#[test]
fn another_file_is_refused_before_any_work_and_kept() {
    let room = Room::new();
    room.write("out/reviews.h5", "my notes");
    // If these were read, the error would be another one.
    room.write("reviews.json", "nonsense\n".repeat(2_000));
    let there =
        "out/reviews.h5: already exists and is an incomplete dataset, expected this dataset or no file";
    refuses(&room, (&[], &["reviews.json"]), 64, &format!("{there}; {NOT_CHANGED}"));
}

#[test]
fn folders_with_one_text_per_file_are_refused_with_the_command_that_makes_lines() {
    let room = Room::new();
    let text = |folder: &str, at: usize, text: &str| {
        room.write(&format!("{folder}/{at}_7.txt"), format!("{text} number {}", "i".repeat(at + 1)));
    };
    for at in 0..12 {
        text("my data/train/neg", at, "broke\nat once");
        text("my data/train/pos", at, "works");
        // IMDB's archive has texts without a label.
        text("my data/train/unsup", at, "arrived");
        text("by stars/bad", at, "broke");
        text("by stars/good", at, "works");
        text("by mood/it's bad", at, "broke");
        text("by mood/very good", at, "works");
    }
    let of_imdb = "__label__neg broke at once number i";
    for (input, names, rated, of_first) in [
        ("my data", "neg, pos of my data/train", "neg=1,pos=5", of_imdb),
        ("my data/train", "neg, pos of my data/train", "neg=1,pos=5", of_imdb),
        ("by stars", "bad, good of by stars", "bad=STARS,good=STARS", "__label__bad broke number i"),
        (
            "by mood",
            "it's bad, very good of by mood",
            "it_s_bad=STARS,very_good=STARS",
            "__label__it_s_bad broke number i",
        ),
    ] {
        let flags = Flags::default();
        let told = run(&mut room.sentimill(MANNER, &flags, &[input]), b"").with_code(65).stderr;
        let last = told.lines().last().unwrap();
        let found = format!(
            "; the folders {names} have one text per file, expected one per line; write lines, and pass "
        );
        let (_, recipe) = last.split_once(&found).unwrap_or_else(|| panic!("{told}"));
        let flags = format!("them with --format fasttext, to sentimill also with --class-ratings {rated}: ");
        let command = recipe.strip_prefix(&flags).unwrap_or_else(|| panic!("{told}"));
        let mut shell = std::process::Command::new("sh");
        run(shell.current_dir(room.path("")).args(["-c", command]), b"").with_code(0);
        let lines = fs::read_to_string(room.path("reviews.txt")).unwrap();
        let mut lines: Vec<&str> = lines.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 24, "{command}");
        assert_eq!(lines[0], of_first, "{command}");
    }
    let ratings = ["--format", "fasttext", "--class-ratings", "it_s_bad=1,very_good=5"];
    let flags = Flags { lines: &ratings, ..Flags::default() };
    run(&mut room.sentimill(MANNER, &flags, &["reviews.txt"]), b"").with_code(0);
}

#[test]
fn two_outputs_with_one_path_are_refused_before_any_work() {
    let room = Room::new();
    room.write("reviews.json", "nonsense\n".repeat(2_000));
    for (arguments, refused) in [
        (&["--rejects", "x", "--origins", "./x"][..], "--origins ./x: found the path of --rejects"),
        (
            &["--origins", "out/reviews.h5"],
            "--origins out/reviews.h5: found the path of the dataset of --out",
        ),
        (
            &["--texts", "t.parquet", "--origins", "out/t.parquet"],
            "--origins out/t.parquet: found the path of the table of --texts",
        ),
        (
            &["--parquet", "--rejects", "out/reviews.croissant.json"],
            "--rejects out/reviews.croissant.json: found the path of the description of the tables",
        ),
        (
            &["--rejects", "out/reviews.manifest.json"],
            "--rejects out/reviews.manifest.json: found the path of the manifest of the dataset",
        ),
    ] {
        let flag = refused.split(' ').next().unwrap();
        let message = format!("{refused}, expected a path of its own; choose another {flag}");
        refuses(&room, (arguments, &["reviews.json"]), 64, &message);
    }
}

#[test]
fn a_url_is_refused_as_output() {
    let room = room();
    let before = snapshot(&room.path(""));
    let mut sentimill = program("sentimill");
    sentimill.current_dir(room.path("")).args(["--input", "reviews.json", "--out", "https://host/out.h5"]);
    let refused = run(&mut sentimill, b"").with_code(64);
    assert_eq!(
        refused.stderr,
        "sentimill: --out https://host/out.h5: https:// is not supported here, expected a local path or s3://bucket/name; copy it to this machine or to S3; see --help\n"
    );
    assert!(snapshot(&room.path("")) == before, "something was touched: {:?}", room.files());
}

#[test]
fn a_dataset_of_other_settings_or_reviews_is_kept() {
    let room = room();
    run(&mut room.sentimill(MANNER, &Flags::default(), &["reviews.json"]), b"").succeeded();
    let other = format!(
        "out/reviews.h5: already exists and is a dataset with other settings, expected one with these settings; {NOT_CHANGED}"
    );
    refuses(&room, (&["--vocabulary-size", "50"], &["reviews.json"]), 64, &other);
    room.write("other.json", json_line("Lovely soap", 5));
    let flags = Flags::default();
    let before = snapshot(&room.path(""));
    for with_manifest in [true, false] {
        let refused = run(&mut room.sentimill(MANNER, &flags, &["other.json"]), b"").with_code(64);
        let last = refused.stderr.lines().last().unwrap();
        assert!(
            last.starts_with("sentimill: out/reviews.h5: already exists and is another file (sha256 "),
            "{last}"
        );
        assert!(last.ends_with(NOT_CHANGED), "{last}");
        if with_manifest {
            assert!(snapshot(&room.path("")) == before, "something was touched");
            fs::remove_file(room.path("out/reviews.manifest.json")).unwrap();
        }
    }
    assert_eq!(room.files(), ["other.json", "out/reviews.h5", "reviews.json"]);
    assert!(fs::read(room.path("out/reviews.h5")).unwrap() == BY_PIPE.dataset);
}

#[test]
fn a_repeated_run_modifies_nothing() {
    let room = room();
    let padded = Flags { dataset: &["--padded", "20"], ..Flags::default() };
    let first = run(&mut room.sentimill(MANNER, &padded, &["reviews.json"]), b"").succeeded();
    let before = snapshot(&room.path(""));
    let again = run(&mut room.sentimill(Manner::SPARING, &padded, &["reviews.json"]), b"").succeeded();
    assert_eq!(again.said(), first.said());
    assert!(snapshot(&room.path("")) == before, "no inode, no time and no byte changed");
}

#[test]
fn a_dataset_made_by_the_pipe_is_accepted() {
    let room = room();
    room.write("out/reviews.h5", &DEMO.dataset);
    let made = run(&mut room.sentimill(MANNER, &Flags::default(), &["reviews.json"]), b"").succeeded();
    room.made(&made).assert_same(&BY_PIPE, "beside a dataset of the pipe");
}

#[test]
fn too_many_bad_lines_fail_with_the_likely_cause() {
    for (lines, refusal) in too_many("") {
        let room = Room::new();
        room.write("reviews.json", lines);
        refuses(&room, (&[], &["reviews.json"]), 65, &refusal);
    }
}

#[test]
fn every_thread_reports_bad_lines_as_the_mapper_does() {
    let room = room();
    let expected = told_by_mapper(&room, "reviews.json");
    assert!(expected.len() >= 9, "{expected:?}");
    for threads in [1, 2, 3, 5] {
        let manner = Manner { threads, memory: "1MiB" };
        let made = run(&mut room.sentimill(manner, &Flags::default(), &["reviews.json"]), b"").succeeded();
        assert_eq!(told_by("sentimill", &made.stderr, "reviews.json"), expected, "{manner:?}");
        fs::remove_dir_all(room.path("out")).unwrap();
    }
}

#[test]
fn missing_and_duplicate_inputs_are_refused_by_name() {
    let room = room();
    let missing = "none.json: no such file or folder; check the path";
    refuses(&room, (&[], &["reviews.json", "none.json"]), 66, missing);
    let twice = "./reviews.json: found the same file or folder as reviews.json, and its reviews would count twice; name \
                 it once";
    refuses(&room, (&[], &["reviews.json", "./reviews.json"]), 64, twice);
    refuses(
        &room,
        (&["--vocabulary", "none.h5"], &["reviews.json"]),
        66,
        "none.h5: no such file, expected a shard or a dataset; check the path",
    );
}

#[test]
fn input_without_a_review_makes_no_dataset() {
    let lines = ["", "\n\n", "{\"reviewText\": \"5/5 :)\", \"overall\": 5}\n"];
    for line in lines {
        let room = Room::new();
        room.write("reviews.json", line);
        let flags = Flags::default();
        let refused = run(&mut room.sentimill(MANNER, &flags, &["reviews.json"]), b"").with_code(65);
        let last = refused.stderr.lines().last().unwrap();
        assert!(last.starts_with("sentimill: found no review"), "{line:?}: {last}");
        assert_eq!(room.files(), ["reviews.json"]);
        assert!(!room.path("out").exists(), "a folder was made");
    }
}

#[test]
fn reviews_of_stop_words_only_make_no_dataset() {
    let room = Room::new();
    room.write("reviews.json", json_line("Would get the product", 5));
    let rows = ["--profile", "original"];
    let flags = Flags { rows: &rows, ..Flags::default() };
    let refused = run(&mut room.sentimill(MANNER, &flags, &["reviews.json"]), b"").with_code(65);
    assert_eq!(
        refused.stderr.lines().last().unwrap(),
        "sentimill: out/reviews.h5: not written, because no row remains: 1 reviews, 1 distinct, 1 only_stopwords, 0 rows, 0 omitted; check the input, its format, --stopwords, --sample and --without"
    );
    assert_eq!(room.files(), ["reviews.json"]);
    assert!(!room.path("out").exists(), "a folder was made");
}

#[test]
fn excluding_all_texts_makes_no_dataset() {
    let room = room();
    room.write("train.h5", &DEMO.dataset);
    let flags = Flags { dataset: &["--without", "train.h5"], ..Flags::default() };
    let refused = run(&mut room.sentimill(MANNER, &flags, &["reviews.json"]), b"").with_code(65);
    assert!(refused.stderr.contains("not written, because no row remains: "), "{}", refused.stderr);
    assert!(!room.path("out").exists(), "a folder was made");
}

#[test]
fn a_folder_in_a_missing_parent_is_not_created() {
    let room = Room::new();
    // If these were read, the error would be another one.
    room.write("reviews.json", "nonsense\n".repeat(2_000));
    let mut sentimill = program("sentimill");
    sentimill.current_dir(room.path("")).args(["--input", "reviews.json", "--out", "a/b/reviews.h5"]);
    let refused = run(&mut sentimill, b"").with_code(64);
    assert_eq!(
        refused.stderr,
        "sentimill: a: no such folder, expected one to write into; create it with mkdir -p, or check --out\n"
    );
    assert_eq!(room.files(), ["reviews.json"]);
    assert!(!room.path("a").exists());
}

#[test]
fn a_full_disk_is_reported_before_the_input_is_read() {
    let room = Room::new();
    room.write("reviews.json", "nonsense\n".repeat(2_000));
    let sentimill = program("sentimill").get_program().to_owned();
    let mut limited = without_hadoop(Path::new("sh"));
    // Simulates a full disk: no file may exceed 512 bytes (1 KiB if sh is bash).
    limited.args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"]).arg(sentimill);
    limited.current_dir(room.path("")).args(["--input", "reviews.json", "--out", "reviews.h5"]);
    let refused = run(&mut limited, b"").with_code(74);
    assert_eq!(
        refused.stderr,
        "sentimill: reviews.h5: file size limit exceeded while writing; raise the limit with ulimit -f or choose another \
         --out\n"
    );
    assert_eq!(room.files(), ["reviews.json"]);
}

#[test]
fn paths_that_cannot_be_written_are_refused_by_name() {
    let room = room();
    room.write("out", "a file");
    refuses(
        &room,
        (&[], &["reviews.json"]),
        74,
        "out/reviews.manifest.json: cannot read the manifest: a part of the path is a file, expected a folder; check the path or \
         choose another --out",
    );
    fs::remove_file(room.path("out")).unwrap();
    fs::remove_dir(room.path("tmp")).unwrap();
    let flags = Flags::default();
    let refused = run(&mut room.sentimill(Manner::SPARING, &flags, &["reviews.json"]), b"").with_code(74);
    let last = refused.stderr.lines().last().unwrap();
    assert!(last.contains("tmp: cannot ") && last.contains("no such file or folder"), "{last}");
    assert_eq!(room.files(), ["reviews.json"]);
}

//! `sentimill` without flags: the default path of the dataset, and the output.

use std::process::Command;

use tests::compressed::gzip;
use tests::demo::DEMO;
use tests::files::assert_same_bytes;
use tests::programs::{program, run};

use crate::made::Room;

fn sentimill(room: &Room, arguments: &[&str]) -> Command {
    let mut sentimill = program("sentimill");
    sentimill.current_dir(room.path("")).env("TMPDIR", room.path("tmp")).args(arguments);
    sentimill
}

#[test]
fn the_dataset_of_one_file_has_its_name_and_that_of_several_is_reviews() {
    for (arguments, out) in [
        (&["in/books.2024.json"][..], "books.h5"),
        (&["--input", "in/books.2024.json"], "books.h5"),
        (&["in"], "reviews.h5"),
        (&["in/*.json"], "reviews.h5"),
        (&["-"], "reviews.h5"),
        (&["in/books.2024.json", "--out", "other.h5"], "other.h5"),
        (&["in/books.2024.json", "-o", "other.h5"], "other.h5"),
    ] {
        let room = Room::new();
        room.write("in/books.2024.json", &DEMO.raw);
        let input: &[u8] = if arguments == ["-"] { &DEMO.raw } else { b"" };

        let made = run(&mut sentimill(&room, arguments), input).succeeded();

        assert_same_bytes(&room.path(out), &DEMO.dataset, &format!("{arguments:?}"));
        let notice = format!("sentimill: using the default --out {out}\n");
        assert_eq!(made.stderr.contains(&notice), out != "other.h5", "{}", made.stderr);
    }
}

#[test]
fn a_compressed_file_without_flags_makes_reviews_h5() {
    let room = Room::new();
    room.write("reviews.json.gz", gzip(&DEMO.raw));
    run(&mut sentimill(&room, &["reviews.json.gz"]), b"").succeeded();
    assert_same_bytes(&room.path("reviews.h5"), &DEMO.dataset, "reviews.json.gz");
}

#[test]
fn inputs_by_position_and_by_flag_exclude_each_other() {
    let room = Room::new();
    room.write("a.json", &DEMO.raw);
    let refused = run(&mut sentimill(&room, &["a.json", "--input", "a.json"]), b"").with_code(64);
    assert!(refused.stderr.contains("cannot be used with"), "{}", refused.stderr);
    let refused = run(&mut sentimill(&room, &[]), b"").with_code(64);
    assert!(refused.stderr.contains("required arguments were not provided"), "{}", refused.stderr);
}

#[test]
fn a_quiet_program_prints_warnings_alone() {
    let room = Room::new();
    room.write("a.json", &DEMO.raw);
    let loud = run(&mut sentimill(&room, &["a.json"]), b"").succeeded();
    let quiet = run(&mut sentimill(&room, &["a.json", "--quiet"]), b"").succeeded();
    assert_eq!(quiet.said(), loud.said());
    let warnings: Vec<_> = quiet.stderr.lines().collect();
    assert!(loud.stderr.lines().count() > warnings.len(), "{}", loud.stderr);
    let is_progress = |line: &&str| {
        ["reading", "folding", "writing", "using"]
            .iter()
            .any(|word| line.starts_with(&format!("sentimill: {word}")))
    };
    assert!(!warnings.iter().any(is_progress), "{}", quiet.stderr);
    assert!(warnings.iter().all(|line| loud.stderr.contains(line)), "{}", quiet.stderr);
}

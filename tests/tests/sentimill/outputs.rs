//! The Parquet files beside a dataset: the same bytes from every program, and the right values in every reader.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tests::demo::{DEMO, json_line};
use tests::files::snapshot;
use tests::oracle::tables_agree;
use tests::programs::{program, run};

use crate::made::{BY_PIPE, Flags, Made, Manner, Room};

/// All files, with the texts under the name of the dataset.
const ALL: &[&str] = &["--parquet", "--texts", "reviews.texts.parquet"];

/// Texts that codes, stop words and limits of tokens treat differently.
fn unusual() -> String {
    let long = "supercalifragilistic".repeat(4_000);
    let many = "the soap was fine and cheap ".repeat(40_000);
    let texts = [
        "fifteen letters: uncopyrightable, sixteen: uncopyrightables",
        &long,
        &many,
        &format!("{many}\u{e9}t\u{e9} the end"),
        "the and of",
        "The soap of the year, and not of the day",
        "x",
        "\u{3b1}\u{3b2}\u{3b3} \u{6700}\u{9ad8}",
    ];
    let review = |number: usize| {
        json_line(texts[number % texts.len()], 1 + (number as u64 * 7 + number as u64 / 5) % 5)
    };
    (0..5 * texts.len()).map(review).collect()
}

fn milled(manner: Manner, rows: &[&str], raw: &[u8]) -> Made {
    Flags { rows, dataset: ALL, ..Flags::default() }.by_mill(manner, raw)
}

#[test]
fn merge_and_sentimill_write_the_same_ids() {
    for dataset in [&["--parquet"][..], &["--parquet", "--padded", "9", "--vocabulary-size", "70000"]] {
        let flags = Flags { dataset, ..Flags::default() };
        let manners = [Manner::ALONE, Manner::SPARING];
        flags.check(&manners, &[&DEMO.raw[..], unusual().as_bytes()].concat(), &format!("{dataset:?}"));
    }
    let made = Flags { dataset: &["--parquet"], ..Flags::default() }.by_mill(Manner::ALONE, &DEMO.raw);
    let names: Vec<_> = made.tables.iter().map(|(extension, _)| *extension).collect();
    assert_eq!(names, ["ids.parquet", "croissant.json"]);
}

#[test]
fn neither_threads_nor_memory_change_a_byte_of_the_texts() {
    let raw = [&DEMO.raw[..], unusual().as_bytes()].concat();
    for rows in [&[][..], &["--profile", "original"], &["--max-tokens", "3", "--stopwords", "nltk-negations"]]
    {
        let expected = milled(Manner::ALONE, rows, &raw);
        let without = Flags { rows, ..Flags::default() }.by_mill(Manner::ALONE, &raw);
        assert!(expected.dataset == without.dataset, "{rows:?}: --texts changes the dataset");
        for manner in
            [Manner::SPARING, Manner { threads: 5, memory: "3MiB" }, Manner { threads: 2, memory: "512MiB" }]
        {
            milled(manner, rows, &raw).assert_same(&expected, &format!("{rows:?}, {manner:?}"));
        }
    }
    assert!(milled(Manner::ALONE, &[], &DEMO.raw).dataset == BY_PIPE.dataset);
}

#[test]
fn every_reader_finds_the_rows_of_the_dataset_and_the_whole_texts() {
    for (number, rows) in
        [&[][..], &["--profile", "original", "--positive-from", "3"]].into_iter().enumerate()
    {
        let room = Room::new();
        room.write("reviews.json", [&DEMO.raw[..], unusual().as_bytes()].concat());
        let flags = Flags { rows, dataset: ALL, ..Flags::default() };
        run(&mut room.sentimill(Manner::SPARING, &flags, &["reviews.json"]), b"").succeeded();
        let [dataset, ids, texts, croissant] = ["h5", "ids.parquet", "texts.parquet", "croissant.json"]
            .map(|extension| room.path(&format!("out/reviews.{extension}")));
        let tables = [("--ids", &*ids), ("--texts", &*texts), ("--croissant", &*croissant)];
        tables_agree(&dataset, &tables, &[&room.path("reviews.json")]);
        if number == 0 {
            fs::write(&texts, fs::read(&ids).unwrap()).unwrap();
            let refused = run(program("merge").arg("--check").arg(&dataset), b"").with_code(66);
            let expected = format!("merge: {}: the SHA-256 is ", texts.display());
            assert!(refused.stderr.starts_with(&expected), "{}", refused.stderr);
        }
    }
}

/// A folder with the lines of the demo.
fn room() -> Room {
    let room = Room::new();
    room.write("reviews.json", &DEMO.raw);
    room
}

fn mill(room: &Room, dataset: &[&str]) -> tests::programs::Finished {
    let flags = Flags { dataset, ..Flags::default() };
    run(&mut room.sentimill(Manner { threads: 2, memory: "64MiB" }, &flags, &["reviews.json"]), b"")
}

fn manifest(room: &Room) -> Value {
    serde_json::from_slice(&fs::read(room.path("out/reviews.manifest.json")).unwrap()).unwrap()
}

#[test]
fn the_manifest_lists_the_files_and_check_covers_them() {
    let room = room();
    let report = mill(&room, &["--parquet", "--texts", "corpus.parquet", "--json"]).succeeded();
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let (manifest, dataset) = (manifest(&room), room.path("out/reviews.h5"));
    for (member, name) in
        [("ids", "reviews.ids.parquet"), ("texts", "corpus.parquet"), ("croissant", "reviews.croissant.json")]
    {
        let path = room.path(&format!("out/{name}"));
        assert_eq!(manifest[member]["name"], name);
        assert_eq!(manifest[member]["bytes"], fs::metadata(&path).unwrap().len());
        assert_eq!(manifest[member]["sha256"], durable::sha256::of_file(&path).unwrap());
        assert_eq!(report[member], manifest[member]);
    }
    let check = || run(program("merge").arg("--check").arg(&dataset), b"");
    let matches = "its SHA-256 matches the manifest\n";
    let expected =
        format!("reviews.ids.parquet: {matches}corpus.parquet: {matches}reviews.croissant.json: {matches}");
    assert!(check().succeeded().said().contains(&expected), "{}", check().said());

    fs::remove_file(room.path("out/reviews.ids.parquet")).unwrap();
    let said = check().succeeded().said();
    assert!(said.contains("reviews.ids.parquet: listed in the manifest, does not exist\ncorpus"), "{said}");
    let json = run(program("merge").arg("--check").arg(&dataset).arg("--json"), b"").succeeded();
    let files = &serde_json::from_slice::<Value>(&json.stdout).unwrap()["files"];
    assert_eq!(files[0], serde_json::json!({ "name": "reviews.ids.parquet", "exists": false }));

    let mut damaged = fs::read(room.path("out/corpus.parquet")).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(room.path("out/corpus.parquet"), damaged).unwrap();
    let refused = check().with_code(66);
    assert!(refused.stderr.contains("out/corpus.parquet: the SHA-256 is "), "{}", refused.stderr);
}

#[test]
fn a_repeated_run_adds_files_and_describes_all_of_them() {
    let room = room();
    mill(&room, &["--texts", "reviews.parquet"]).succeeded();
    let texts = manifest(&room)["texts"].clone();

    mill(&room, &["--parquet"]).succeeded();

    let manifest = manifest(&room);
    assert_eq!(manifest["texts"], texts);
    let described: Value =
        serde_json::from_slice(&fs::read(room.path("out/reviews.croissant.json")).unwrap()).unwrap();
    let names: Vec<_> =
        described["distribution"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
    assert_eq!(names, ["reviews.ids.parquet", "reviews.parquet"]);
    let before = snapshot(&room.path("out"));
    mill(&room, &["--parquet"]).succeeded();
    assert!(snapshot(&room.path("out")) == before, "a third run changes something");

    // Another dataset has none of these files.
    mill(&room, &["--force", "--vocabulary-size", "5", "--texts", "other.parquet"]).succeeded();
    let mut names = room.files();
    names.retain(|name| name.starts_with("out/"));
    assert_eq!(
        names,
        ["out/other.parquet", "out/reviews.croissant.json", "out/reviews.h5", "out/reviews.manifest.json"]
    );
    run(program("merge").arg("--check").arg(room.path("out/reviews.h5")), b"").succeeded();
}

#[test]
fn other_files_under_these_names_are_refused_before_any_work_and_kept() {
    let kept = "nothing was changed: move it away, choose another --out, or replace a dataset by --force";
    let notes = [
        ("reviews.ids.parquet", "a file that is not Parquet, expected the rows of this dataset or no file"),
        ("corpus.parquet", "a file that is not Parquet, expected the rows of this dataset or no file"),
        (
            "reviews.croissant.json",
            "a file that is not JSON, expected the description of this dataset or no file",
        ),
    ];
    for (name, found) in notes {
        let room = Room::new();
        // If these were read, the error would be another one.
        room.write("reviews.json", "nonsense\n".repeat(2_000));
        room.write(&format!("out/{name}"), "my notes");
        let before = snapshot(&room.path(""));
        let refused = mill(&room, &["--parquet", "--texts", "corpus.parquet"]).with_code(64);
        assert_eq!(refused.stderr, format!("sentimill: out/{name}: already exists and is {found}; {kept}\n"));
        assert!(snapshot(&room.path("")) == before, "something was touched");
    }
    // The rows of another dataset.
    let room = room();
    room.write("out/reviews.ids.parquet", "PAR1 but not of this dataset");
    let refused = mill(&room, &["--parquet"]).with_code(64);
    assert!(
        refused.stderr.contains("out/reviews.ids.parquet: already exists and is another file (sha256"),
        "{}",
        refused.stderr
    );
    assert_eq!(room.files(), ["out/reviews.ids.parquet", "reviews.json"]);
}

#[test]
fn names_of_texts_are_checked() {
    for (name, message) in [
        (
            "out/reviews.parquet",
            "found a folder, expected the name of a file, which is written into the folder of --out",
        ),
        ("reviews.csv", "expected a name that ends in .parquet, such as reviews.parquet"),
    ] {
        let refused = mill(&room(), &["--texts", name]).with_code(64);
        assert_eq!(refused.stderr, format!("sentimill: --texts {name}: {message}; see --help\n"));
    }
    let refused = mill(&room(), &["--texts", "reviews.ids.parquet"]).with_code(64);
    assert_eq!(
        refused.stderr,
        "sentimill: --texts reviews.ids.parquet: found the name of another file of this dataset, expected a name of its own\n"
    );
    assert!(!Path::new("out").exists());
}

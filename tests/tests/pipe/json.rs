//! The output of `--json` has the same facts as the text output.

use std::fs;

use serde_json::Value;
use tests::demo::DEMO;
use tests::pipe::{Pipe, mapped, merge};
use tests::programs::{Finished, program, run};

fn document(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.stdout).unwrap()
}

/// The value of a line of a card.
fn value<'a>(card: &'a str, name: &str) -> &'a str {
    let line = card.lines().find_map(|line| line.strip_prefix(&format!("{name:<17} ")));
    line.unwrap_or_else(|| panic!("no {name} in\n{card}"))
}

/// The first number of a text.
fn number(text: &str) -> u64 {
    text.split(|c: char| !c.is_ascii_digit()).find(|digits| !digits.is_empty()).unwrap().parse().unwrap()
}

/// Checks that a card in JSON has the facts of the card in text.
fn assert_same_card(json: &Value, text: &str) {
    let (rows, reviews) = value(text, "rows").split_once(" distinct texts of ").unwrap();
    assert_eq!(json["rows"], number(rows));
    assert_eq!(json["reviews"], number(reviews));
    assert_eq!(json["label_1"], number(value(text, "label 1")));
    assert_eq!(json["label_0"], number(value(text, "label 0")));
    assert!(value(text, "label 1").ends_with(&format!("(rating {} and more)", json["positive_from"])));
    for (rating, part) in (1..).zip(value(text, "ratings").split("  ")) {
        let n = part.strip_prefix(&format!("{rating}: ")).unwrap();
        assert_eq!(json["ratings"][rating - 1], number(n));
    }
    let (tokens, unknown) = value(text, "tokens").split_once(", of which ").unwrap();
    assert_eq!(json["tokens"], number(tokens));
    assert_eq!(json["unknown_tokens"], number(unknown));
    let length = &json["row_length"];
    let shown = format!(
        "mean {:.1}, median {}, 90 % up to {}, 99 % up to {}, longest {}",
        length["mean"].as_f64().unwrap(),
        length["median"],
        length["percentile_90"],
        length["percentile_99"],
        length["longest"]
    );
    assert_eq!(shown, value(text, "row length"));
    let settings = value(text, "settings");
    assert!(
        settings.starts_with(&format!(
            "{} stop words, {} words from both",
            json["stop_words"], json["max_tokens"]
        ))
    );
    assert_eq!(json["keep"], "ends");
    assert_eq!(json["vocabulary"], number(value(text, "vocabulary")));
    let words = json["most_often"].as_array().unwrap().iter();
    let words: Vec<_> =
        words.map(|word| format!("{} {}", word["word"].as_str().unwrap(), word["count"])).collect();
    assert_eq!(words.join(", "), value(text, "most often"));
    for (field, name) in
        [("row_digest", "row digest"), ("id_digest", "id digest"), ("vocabulary_digest", "vocabulary digest")]
    {
        assert_eq!(json["digests"][field].as_str().unwrap(), value(text, name));
    }
}

#[test]
fn merge_and_sentimill_print_their_result_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, out) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    let counts = folder.path().join("mapper.json");
    let pipe = Pipe::default();
    pipe.reduce(&pipe.sorted(&mapped(&DEMO.raw, &counts)), &run_folder);
    let merge = || {
        let mut merge = merge(&run_folder, &out);
        merge.arg("--counts").arg(&counts);
        merge
    };

    let written = document(&run(merge().arg("--json"), b"").succeeded());

    let text = run(program("merge").arg("--describe").arg(&out), b"").succeeded().said();
    assert_same_card(&written["card"], &text);
    assert_eq!((&written["written"], &written["left_out"]), (&Value::Bool(true), &Value::from(0)));
    assert_eq!(written["dataset"], out.to_str().unwrap());
    assert_eq!(written["bytes"], fs::metadata(&out).unwrap().len());
    let manifest: Value =
        serde_json::from_slice(&fs::read(folder.path().join("reviews.manifest.json")).unwrap()).unwrap();
    assert_eq!(written["sha256"], manifest["sha256"]);
    assert_eq!(written["ledger"], manifest["seal"]["ledger"]);
    assert!(written["ledger"]["mapper"].is_object(), "{written}");

    let described =
        document(&run(program("merge").arg("--json").arg("--describe").arg(&out), b"").succeeded());
    assert_eq!(described, written["card"]);

    let mut unchanged = written.clone();
    unchanged["written"] = Value::Bool(false);
    assert_eq!(document(&run(merge().arg("--json"), b"").succeeded()), unchanged);

    fs::write(folder.path().join("raw.json"), &DEMO.raw).unwrap();
    let mut sentimill = program("sentimill");
    sentimill.current_dir(folder.path()).args(["raw.json", "--json"]);
    let mut milled = document(&run(&mut sentimill, b"").succeeded());
    assert_eq!(milled["dataset"], "raw.h5");
    milled["dataset"] = written["dataset"].clone();
    // A reducer does not know how the input was read.
    let input = milled["ledger"].as_object_mut().unwrap().remove("input").unwrap();
    assert_eq!((&input["format"], &input["text-field"]), (&"json".into(), &"reviewText".into()));
    assert_eq!(milled, written);
}

#[test]
fn the_card_lists_named_classes_in_place_of_the_two_labels() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("reviews.h5");
    let labels = ["--labels", "1-2=negative,3=so so,5=positive"].map(str::to_owned).to_vec();
    let pipe = Pipe { reducer: labels, ..Pipe::default() };
    pipe.reduce(&pipe.sorted(&DEMO.records), &folder.path().join("run"));
    let merged = run(merge(&folder.path().join("run"), &out).arg("--json"), b"").succeeded();
    let document = document(&merged);
    let card = &document["card"];
    for name in ["label_1", "label_0", "positive_from"] {
        assert_eq!(card.get(name), None);
    }
    let text = run(program("merge").arg("--describe").arg(&out), b"").succeeded().said();
    let classes = card["classes"].as_array().unwrap();
    let expected = [("negative", "1-2", "ratings"), ("so so", "3", "rating"), ("positive", "5", "rating")];
    assert_eq!(classes.len(), expected.len());
    for (at, (class, (name, ratings, noun))) in classes.iter().zip(expected).enumerate() {
        let shown = value(&text, &format!("label {at}"));
        assert_eq!((&class["name"], &class["ratings"]), (&Value::from(name), &Value::from(ratings)));
        assert_eq!(class["rows"], number(shown));
        assert!(shown.ends_with(&format!("({name}, {noun} {ratings})")), "{shown}");
    }
    let rows: u64 = classes.iter().map(|class| class["rows"].as_u64().unwrap()).sum();
    let ledger = &document["ledger"]["reducer"];
    assert_eq!((&card["rows"], &ledger["rows"]), (&Value::from(rows), &Value::from(rows)));
    let not_labelled = ledger["not_labelled"].as_u64().unwrap();
    assert!(not_labelled > 0 && ledger["distinct"] == rows + not_labelled, "{ledger}");
}

#[test]
fn a_check_and_a_list_of_objects_are_printed_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let (run_folder, out) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    let pipe = Pipe::default();
    pipe.reduce(&pipe.sorted(&DEMO.records), &run_folder);
    run(&mut merge(&run_folder, &out), b"").succeeded();

    let checked = document(&run(program("merge").arg("--json").arg("--check").arg(&out), b"").succeeded());

    let text = run(program("merge").arg("--check").arg(&out), b"").succeeded().said();
    assert!(text.contains(&format!("{} rows", checked["rows"])), "{text}");
    assert!(text.contains(checked["digests"]["id_digest"].as_str().unwrap()), "{text}");
    assert_eq!(checked["manifest"], true);
    assert_eq!(checked["dataset"], out.to_str().unwrap());

    let orphan = "part-00000.host.attempt.h5";
    fs::write(run_folder.join("data").join(orphan), "left").unwrap();
    fs::write(run_folder.join("data/notes.txt"), "mine").unwrap();
    let gc = |more: &[&str]| {
        let mut gc = program("merge");
        gc.args(["gc", "--json", "--run"]).arg(&run_folder).args(more);
        document(&run(&mut gc, b"").succeeded())
    };
    let listed = gc(&[]);
    assert_eq!(listed["orphans"], serde_json::json!([{"object": format!("data/{orphan}"), "bytes": 4}]));
    assert_eq!(listed["strangers"], serde_json::json!([{"object": "data/notes.txt", "bytes": 4}]));
    assert_eq!((&listed["deleted"], &listed["refused"]), (&Value::Bool(false), &Value::Null));
    assert_eq!(gc(&["--delete"])["deleted"], true);
    assert!(!run_folder.join("data").join(orphan).exists());
    assert_eq!(gc(&[])["orphans"], serde_json::json!([]));
}

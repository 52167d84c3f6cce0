//! Predictions and explanations of every kind of file that `sentimill` reads.

use super::*;

/// Reviews as CSV, with quotes and line ends in texts.
fn table(n: usize, seed: u64) -> String {
    let mut table = "id,review,kind\n".to_owned();
    for (id, line) in lines(n, seed).lines().enumerate() {
        let (label, text) = line.split_once(' ').unwrap();
        let kind = if label == "__label__2" { "good" } else { "bad" };
        let _ = writeln!(table, "{id},\"{text},\n\"\"so\"\"\",{kind}");
    }
    table
}

/// A model of CSV.
fn model(folder: &Path) -> PathBuf {
    let [input, out] = ["reviews.csv", "reviews.ngrams"].map(|name| folder.join(name));
    fs::write(&input, table(1000, 1)).unwrap();
    let mut train = program("ngrams");
    train.arg("train").arg("--input").arg(&input).arg("--out").arg(&out);
    train.args(["--format", "csv", "--text-field", "review", "--label-field", "kind"]);
    let (code, told) = ended(train);
    assert_eq!(code, Some(0), "{told}");
    out
}

/// The classes of the answers, or their errors.
fn classes(answers: &str) -> Vec<String> {
    let class = |answer: &Value| {
        let said = answer["class"].as_str().or(answer["error"].as_str());
        said.unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    objects(answers).iter().map(class).collect()
}

#[test]
fn files_are_read_by_their_extension_and_by_the_fields_of_the_training() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let records =
        "id,review\n1,\"great, lovely \"\"kettle\"\"\nbright\"\n2,awful,broken\n\n3,awful broken lid\n";
    let expected = ["good", "bad_line", "blank", "bad"];
    let tabs = "review\tid\ngreat lovely kettle\t1\ntoo\tmany\tcolumns\n\nawful broken\t2\n";
    let array = r#"[{"review": "great lovely"}, 7, {}, {"review": "awful\nbroken"}]"#;
    let json = "{\"review\": \"great lovely\"}\nbad\n\n{\"review\": \"awful broken\"}\n";
    for (name, content, expected) in [
        ("new.csv", records, expected),
        (
            "semicolons.CSV",
            &records
                .replace("1,\"", "1;\"")
                .replace("2,", "2;")
                .replace("3,", "3;")
                .replace("id,", "id;")
                .replace("awful,", "awful;"),
            expected,
        ),
        ("new.tsv", tabs, expected),
        ("array.json", array, ["good", "bad_line", "no_text", "bad"]),
        ("new.jsonl", json, expected),
        // The format of the training.
        ("new", records, expected),
    ] {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        let answers = said(command_of("predict", &model, &[file.to_str().unwrap()]), "");
        assert_eq!(classes(&answers), expected, "{name}: {answers}");
        let lines: Vec<u64> =
            objects(&answers).iter().map(|answer| answer["line"].as_u64().unwrap()).collect();
        assert_eq!(lines, [1, 2, 3, 4], "{name}: {answers}");
        if name == "new" {
            assert_eq!(
                classes(&said(command_of("predict", &model, &[]), content)),
                expected,
                "standard input"
            );
        }
    }
    let packed = folder.path().join("packed.csv.gz");
    fs::write(&packed, tests::compressed::gzip(records.as_bytes())).unwrap();
    let packed = packed.to_str().unwrap();
    assert_eq!(classes(&said(command_of("predict", &model, &[packed]), "")), expected);
    // Flags are stronger than a name.
    let flags = [packed, "--format", "text"];
    assert_eq!(said(command_of("predict", &model, &flags), "").lines().count(), 6);
    let pattern = folder.path().join("*.[tj]s*");
    let answers = said(command_of("predict", &model, &[pattern.to_str().unwrap()]), "");
    assert_eq!(objects(&answers).len(), 12, "{answers}");

    let explained = said(command_of("explain", &model, &["--json", "--input", packed]), "");
    let explained = objects(&explained);
    let names: Vec<&str> = explained.iter().filter_map(|of| of["name"].as_str()).collect();
    assert_eq!((explained.len(), names), (4, vec!["good", "bad"]), "{explained:?}");
}

#[test]
fn columns_of_parquet_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let [input, dataset] = ["a.json", "a.h5"].map(|name| folder.path().join(name));
    let review = |text: &str| format!("{{\"reviewText\": \"{text}\", \"overall\": 5}}\n");
    fs::write(&input, review("great lovely kettle") + &review("awful broken lid")).unwrap();
    let mut sentimill = program("sentimill");
    sentimill.arg(&input).arg("--out").arg(&dataset).args(["--texts", "corpus.parquet"]);
    let (code, told) = ended(sentimill);
    assert_eq!(code, Some(0), "{told}");
    let file = folder.path().join("corpus.parquet");
    let file = file.to_str().unwrap();
    let mut found = classes(&said(command_of("predict", &model, &[file, "--text-field", "text"]), ""));
    found.sort();
    assert_eq!(found, ["bad", "good"]);
    let (code, told) = ended(command_of("predict", &model, &[file]));
    assert!(code == Some(65) && told.contains("found no column \"review\" among "), "{told}");
    let (code, told) = ended(command_of("predict", &model, &[file, "--format", "csv"]));
    assert!(code == Some(64) && told.contains("found a Parquet or Arrow file"), "{told}");
}

#[test]
fn another_format_is_one_error_and_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let file = folder.path().join("new.csv");
    let records = |n: usize| "one\ntwo words\n".repeat(n);
    for (content, flags, expected) in [
        (
            records(1),
            &["--format", "json"][..],
            "no line could be read (bad_line 2, no_text 0); check --format",
        ),
        (
            records(5000),
            &["--format", "json"],
            "no line could be read (bad_line 10000, no_text 0); check --format",
        ),
        (records(1), &[], "found no column \"review\" among one; name the right column with --text-field"),
        ("{\"text\": \"a\"}\n".repeat(3), &["--format", "json"], "found the fields text"),
    ] {
        fs::write(&file, &content).unwrap();
        let mut predict = command_of("predict", &model, flags);
        predict.arg(&file);
        let (code, said, told) = run(predict);
        assert_eq!((code, said.as_str(), told.lines().count()), (Some(65), "", 1), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

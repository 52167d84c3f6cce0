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
    // The extension tells the format.
    train.args(["--text-field", "review", "--label-field", "kind"]);
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
    }
    let by_flag = command_of("predict", &model, &["--format", "csv"]);
    assert_eq!(classes(&said(by_flag, records)), expected, "standard input");
    // Each line of standard input has an answer at once, so a table is no default.
    assert_eq!(classes(&said(command_of("predict", &model, &[]), json)), expected);
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

    // Columns of numbers stay numbers, in a file that can be read again.
    let [again, csv] = ["again.parquet", "again.csv"].map(|name| folder.path().join(name));
    for (input, out) in [(file, &again), (again.to_str().unwrap(), &csv)] {
        let mut predict = command_of("predict", &model, &[input, "--text-field", "text"]);
        predict.arg("--out").arg(out);
        let (code, told) = ended(predict);
        assert_eq!(code, Some(0), "{told}");
    }
    let csv = fs::read_to_string(csv).unwrap();
    let (head, rest) = csv.split_once('\n').unwrap();
    let expected = "text,label,rating,hash,split,predicted_label,class,probability,error,\
                    predicted_predicted_label,predicted_class,predicted_probability,predicted_error";
    assert_eq!(head, expected);
    assert!(rest.contains("great lovely kettle") && rest.lines().count() == 2, "{rest}");
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

#[test]
fn a_file_of_answers_has_the_columns_of_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let [input, json] = ["new.csv", "new.jsonl"].map(|name| folder.path().join(name));
    fs::write(
        &input,
        "label,review\n7,\"great, \"\"lovely\"\"\nkettle\"\n8,too,many\n\n9,awful broken lid\n",
    )
    .unwrap();
    let predicted = |input: &Path, out: &str, more: &[&str]| {
        let out = folder.path().join(out);
        let mut predict = command_of("predict", &model, more);
        predict.arg(input).arg("--out").arg(&out);
        let (code, said, told) = run(predict);
        assert_eq!((code, said.as_str()), (Some(0), ""), "{told}");
        assert!(
            told.ends_with("2 of 4 lines: an error in place of a result (bad_line 1, blank 1)"),
            "{told}"
        );
        out
    };
    let csv = fs::read_to_string(predicted(&input, "a.csv", &[])).unwrap();
    let (head, rest) = csv.split_once('\n').unwrap();
    assert_eq!(head, "label,review,predicted_label,class,probability,error");
    let (first, rest) = rest.split_once(",good,0.").unwrap();
    assert_eq!(first, "7,\"great, \"\"lovely\"\"\nkettle\",1");
    let (_, rest) = rest.split_once('\n').unwrap();
    assert!(rest.starts_with(",,,,,bad_line\n,,,,,blank\n9,awful broken lid,0,bad,0."), "{rest}");
    assert!(rest.ends_with(",\n"), "{rest}");

    let twice = folder.path().join("twice.csv");
    fs::write(&twice, "a,review,a,error\n1,great,2,e\ntoo,many,c,o,l\n\n3,awful,4,e\n").unwrap();
    let csv = fs::read_to_string(predicted(&twice, "t.csv", &[])).unwrap();
    assert!(
        csv.starts_with("a,review,a.2,error,label,class,probability,predicted_error\n1,great,2,e,1,good,0."),
        "{csv}"
    );

    let tsv = fs::read_to_string(predicted(&input, "a.tsv", &["--probabilities"])).unwrap();
    let (head, rest) = tsv.split_once('\n').unwrap();
    assert_eq!(
        head,
        "label\treview\tpredicted_label\tclass\tprobability\tprobability_bad\tprobability_good\terror"
    );
    let last: Vec<f64> =
        rest.lines().last().unwrap().split('\t').filter_map(|cell| cell.parse().ok()).collect();
    let [id, label, probability, bad, good] = last[..] else { panic!("{last:?}") };
    assert_eq!((id, label, probability), (9.0, 0.0, good));
    assert!((bad + good - 1.0).abs() < 1e-6 && bad > 0.5, "{last:?}");

    // A Parquet file has the texts, and is an input itself.
    let parquet = predicted(&input, "a.parquet", &[]);
    let answers = said(command_of("predict", &model, &[parquet.to_str().unwrap()]), "");
    assert_eq!(classes(&answers), ["good", "no_text", "no_text", "bad"]);

    fs::write(
        &json,
        "{\"review\": \"great\", \"id\": 1.50, \"of\": [1, {\"a\": null}], \"no\": null}\nbad\n\n{\"review\": \"awful\", \"new\": true}\n",
    )
    .unwrap();
    let lines = fs::read_to_string(predicted(&json, "b.jsonl", &[])).unwrap();
    let first = "{\"review\":\"great\",\"id\":1.50,\"of\":[1, {\"a\": null}],\"no\":null,\"label\":1,\"class\":\"good\",\"probability\":0.";
    assert!(lines.starts_with(first), "{lines}");
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[1], "{\"label\":null,\"class\":null,\"probability\":null,\"error\":\"bad_line\"}");
    assert!(
        lines[3].starts_with("{\"review\":\"awful\",\"new\":true,\"label\":0,\"class\":\"bad\""),
        "{lines:?}"
    );
    let csv = fs::read_to_string(predicted(&json, "b.csv", &[])).unwrap();
    let expected = "review,id,of,no,new,label,class,probability,error\ngreat,1.50,\"[1, {\"\"a\"\": null}]\",,,1,good,0.";
    assert!(csv.starts_with(expected), "{csv}");

    let none = folder.path().join("none.csv");
    fs::write(&none, "id,review\n").unwrap();
    for out in ["none.out.csv", "none.parquet"] {
        let mut predict = command_of("predict", &model, &[]);
        predict.arg(&none).arg("--out").arg(folder.path().join(out));
        let (code, told) = ended(predict);
        assert_eq!(code, Some(0), "{told}");
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("none.out.csv")).unwrap(),
        "id,review,label,class,probability,error\n"
    );
    assert!(fs::read(folder.path().join("none.parquet")).unwrap().starts_with(b"PAR1"));

    // Nothing is replaced, and an error leaves no file.
    let refused = |input: &Path, out: &str, expected: (i32, &str)| {
        let mut predict = command_of("predict", &model, &["--format", "json"]);
        predict.arg(input).arg("--out").arg(folder.path().join(out));
        let (code, told) = ended(predict);
        assert!(code == Some(expected.0) && told.contains(expected.1), "{code:?} {told}");
    };
    refused(&json, "a.csv", (64, "a.csv: already exists"));
    refused(&json, "a.xlsx", (64, "expected a file with the extension .jsonl, .csv, .tsv or .parquet"));
    refused(&input, "c.csv", (65, "no line could be read"));
    assert!(!folder.path().join("c.csv").exists());
    refused(&json, "none/c.csv", (64, "none"));
}

#[test]
fn a_field_that_the_first_rows_do_not_have_is_left_out_of_a_table_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let [input, out] = ["new.jsonl", "out.csv"].map(|name| folder.path().join(name));
    let lines = "{\"review\": \"great\"}\n".repeat(40_000) + "{\"review\": \"great\", \"late\": 1}\n";
    fs::write(&input, lines).unwrap();
    let mut predict = command_of("predict", &model, &[]);
    predict.arg(&input).arg("--out").arg(&out);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        told.contains("out.csv: values are left out (late 1), because the first rows do not have them"),
        "{told}"
    );
    let written = fs::read_to_string(&out).unwrap();
    assert!(
        written.starts_with("review,label,class,probability,error\n") && written.lines().count() == 40_002
    );
}

#[test]
fn files_are_evaluated_by_their_extension_and_as_the_training_read_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let rows = |name: &str, content: &str, flags: &[&str]| {
        let file = folder.path().join(name);
        fs::write(&file, content).unwrap();
        let mut evaluate = command_of("evaluate", &model, flags);
        evaluate.arg(&file);
        let (code, said, told) = run(evaluate);
        assert_eq!(code, Some(0), "{told}");
        let found: Value = serde_json::from_str(&said).unwrap();
        assert!(found["accuracy"].as_f64().unwrap() > 0.9, "{found}");
        found["rows"].as_u64().unwrap()
    };
    let records = table(100, 2);
    let tabs =
        records.replace(",\"", "\t\"").replace("\",", "\"\t").replace("id,review,kind", "id\treview\tkind");
    let json =
        "{\"review\": \"great lovely\", \"kind\": \"good\"}\n{\"review\": \"awful\", \"kind\": \"bad\"}\n";
    assert_eq!(rows("other", &records, &[]), 100);
    assert_eq!(rows("test.csv", &records, &[]), 100);
    assert_eq!(rows("test.tsv", &tabs, &[]), 100);
    assert_eq!(rows("test.jsonl", json, &[]), 2);
    assert_eq!(rows("json.csv", json, &["--format", "json"]), 2);
    let stars = "text,stars\ngreat lovely,5\nawful,1\n";
    let file = folder.path().join("stars.csv");
    fs::write(&file, stars).unwrap();
    let mut evaluate = command_of("evaluate", &model, &["--text-field", "text", "--rating-field", "stars"]);
    evaluate.args(["--labels", "1=bad,5=good"]).arg(&file);
    let (code, told) = ended(evaluate);
    assert_eq!(code, Some(0), "{told}");
}

/// Reviews with the class in the first column and the text in the last.
fn polarity(n: usize, seed: u64) -> String {
    let class = |line: &str| {
        let (label, text) = line.split_once(' ').unwrap();
        format!("\"{}\",\"{text}\"\n", &label[label.len() - 1..])
    };
    lines(n, seed).lines().map(class).collect()
}

#[test]
fn classes_of_a_training_are_not_those_of_another_format() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out, json] = ["polarity", "out", "new.jsonl"].map(|name| folder.path().join(name));
    fs::write(&input, polarity(1000, 1)).unwrap();
    let mut train = program("ngrams");
    train.arg("train").arg("--input").arg(&input).arg("--out").arg(&out).args(["--format", "polarity-csv"]);
    let (code, told) = ended(train);
    assert_eq!(code, Some(0), "{told}");
    let stars = "{\"text\": \"great lovely\", \"stars\": 5}\n{\"text\": \"awful\", \"stars\": 2}\n";
    fs::write(&json, stars).unwrap();
    // Fields are none of the format of the training.
    let other = folder.path().join("other");
    fs::copy(&json, &other).unwrap();
    let fields = ["--text-field", "text", "--rating-field", "stars"];
    for (flags, file) in [(&fields[..], &json), (&["--preset", "yelp"], &json), (&fields, &other)] {
        let mut evaluate = command_of("evaluate", &out, flags);
        evaluate.arg(file);
        let (code, said, told) = run(evaluate);
        assert_eq!(code, Some(0), "{told}");
        let found: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&found["rows"], &found["accuracy"]), (&2.into(), &1.0.into()), "{found}");
    }
    // The classes of the same format are.
    let mut evaluate = command_of("evaluate", &out, &[]);
    evaluate.arg(&input);
    let (code, said, told) = run(evaluate);
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap()["rows"], 1000);

    // The column is the text, and not the line.
    let answers = folder.path().join("answers.csv");
    let mut predict = command_of("predict", &out, &[]);
    predict.arg(&input).arg("--out").arg(&answers);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(0), "{told}");
    let answers = fs::read_to_string(&answers).unwrap();
    let first = lines(1000, 1).lines().next().unwrap().split_once(' ').unwrap().1.to_owned();
    assert!(answers.starts_with(&format!("text,label,class,probability,error\n{first},")), "{answers:.200}");
}

#[test]
fn labels_of_a_training_with_unrated_values_are_evaluated() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out, test] = ["reviews.csv", "out", "test.csv"].map(|name| folder.path().join(name));
    fs::write(&input, table(1000, 1)).unwrap();
    let mut train = program("ngrams");
    train.arg("train").arg("--input").arg(&input).arg("--out").arg(&out);
    train.args(["--format", "csv", "--text-field", "review", "--label-field", "kind", "--unrated", "none"]);
    let (code, told) = ended(train);
    assert_eq!(code, Some(0), "{told}");
    fs::write(&test, table(100, 2) + "100,a kettle,none\n").unwrap();
    for flags in [&[][..], &["--unrated", "none"], &["--label-field", "kind"]] {
        let mut evaluate = command_of("evaluate", &out, flags);
        evaluate.arg(&test);
        let (code, said, told) = run(evaluate);
        assert_eq!(code, Some(0), "{told}");
        let found: Value = serde_json::from_str(&said).unwrap();
        assert!(found["rows"] == 100 && found["accuracy"].as_f64().unwrap() > 0.9, "{found}");
    }
}

#[test]
fn a_hadoop_task_of_a_model_of_a_table_reads_lines() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let task = |flags: &[&str]| {
        let mut predict = command_of("predict", &model, flags);
        tests::hadoop::as_task(&mut predict);
        tests::programs::run(&mut predict, b"{\"review\": \"great lovely\"}\n")
    };
    let answers = task(&[]).succeeded().said();
    assert_eq!(classes(&answers), ["good"]);
    let out = folder.path().join("out.csv");
    for (flags, expected) in [
        (&["--format", "csv"][..], "--format csv: found a Hadoop task"),
        (&["--out", out.to_str().unwrap()], "--out: found a Hadoop task"),
    ] {
        let refused = task(flags).with_code(64);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    assert!(!out.exists());
}

#[test]
fn rows_of_a_file_of_answers_have_an_answer_or_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let [input, other, out] = ["a.csv", "b.csv", "out.csv"].map(|name| folder.path().join(name));
    fs::write(&input, "review\ngreat lovely\n").unwrap();
    fs::write(&other, "review\nawful\n").unwrap();
    for flags in [["--top", "1"], ["--threshold", "0.9"]] {
        let mut predict = command_of("predict", &model, &flags);
        predict.arg(&input).arg("--out").arg(&out);
        let (code, told) = ended(predict);
        assert!(code == Some(64) && told.contains("cannot be used with"), "{code:?} {told}");
    }
    // Rows of several files have their names.
    let mut predict = command_of("predict", &model, &[]);
    predict.arg(&input).arg(&other).arg("--out").arg(&out);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(0), "{told}");
    let rows = fs::read_to_string(&out).unwrap();
    let [head, first, second] = rows.lines().collect::<Vec<_>>()[..] else { panic!("{rows}") };
    assert_eq!(head, "review,file,label,class,probability,error");
    assert!(first.starts_with(&format!("great lovely,{},1,good,0.", input.display())), "{rows}");
    assert!(second.starts_with(&format!("awful,{},0,bad,0.", other.display())), "{rows}");
}

#[test]
fn columns_of_a_file_of_answers_are_few_and_losses_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let predicted = |name: &str, content: &str, out: &str| {
        let [input, out] = [name, out].map(|name| folder.path().join(name));
        fs::write(&input, content).unwrap();
        let mut predict = command_of("predict", &model, &[]);
        predict.arg(&input).arg("--out").arg(&out);
        ended(predict)
    };
    let wide = format!("review{}\n", ",a".repeat(5000));
    let (code, told) = predicted("wide.csv", &wide, "wide.out.jsonl");
    assert!(
        code == Some(65) && told.contains("found 5001 columns, expected at most 4096"),
        "{code:?} {told}"
    );
    let members: String = (0..5000).map(|number| format!(", \"{number}\": 1")).collect();
    let wide = format!("{{\"review\": \"great\"{members}}}\n");
    let (code, told) = predicted("wide.jsonl", &wide, "wide.out.csv");
    assert!(
        code == Some(65) && told.contains("found 5001 columns, expected at most 4096"),
        "{code:?} {told}"
    );
    let lines = "{\"review\": \"great\"}\n".repeat(40_000) + "{\"review\": \"great\", \"label\": 1}\n";
    let (code, told) = predicted("late.jsonl", &lines, "late.out.jsonl");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("(label 1), because added columns have their names"), "{told}");
    let (code, told) = predicted("python.json", "{'review': 'great lovely', 'id': 1}\n", "python.csv");
    assert!(code == Some(0) && told.contains("of 1 rows, only the text is kept"), "{told}");
}

#[test]
fn the_encoding_of_a_training_is_not_that_of_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let model_of_table = model(folder.path());
    let [input, parquet, json, out] =
        ["new.csv", "new.parquet", "new.json", "out"].map(|name| folder.path().join(name));
    fs::write(&input, table(100, 2)).unwrap();
    let mut predict = command_of("predict", &model_of_table, &[]);
    predict.arg(&input).arg("--out").arg(&parquet);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(0), "{told}");
    let object = |line: &str| {
        let (label, text) = line.split_once(' ').unwrap();
        format!(
            "{{\"review\": \"{text}\", \"kind\": \"{}\"}}\n",
            if label.ends_with('2') { "good" } else { "bad" }
        )
    };
    fs::write(&json, lines(1000, 1).lines().map(object).collect::<String>()).unwrap();
    let mut train = program("ngrams");
    train.arg("train").arg("--input").arg(&json).arg("--out").arg(&out);
    train.args(["--text-field", "review", "--label-field", "kind", "--encoding", "windows-1252"]);
    let (code, told) = ended(train);
    assert_eq!(code, Some(0), "{told}");
    for command in ["predict", "evaluate"] {
        let mut command = command_of(command, &out, &[]);
        command.arg(&parquet);
        let (code, told) = ended(command);
        assert_eq!(code, Some(0), "{told}");
    }
}

#[test]
fn wrong_predictions_have_the_columns_of_the_input_and_the_most_confident_are_first() {
    let folder = tempfile::tempdir().unwrap();
    let model = model(folder.path());
    let [input, plain] = ["test.csv", "lines.txt"].map(|name| folder.path().join(name));
    // Some labels are wrong, one is unknown; a blank and a bad record have no label.
    let records = table(300, 2).replacen(",good\n", ",bad\n", 9).replacen(",bad\n", ",other\n", 1);
    fs::write(&input, records + "\ntoo,many,columns,here\n").unwrap();
    fs::write(&plain, lines(300, 2).replacen("__label__1", "__label__2", 5)).unwrap();
    let wrong_of = |files: &[&Path], out: &str, flags: &[&str]| {
        let out = folder.path().join(out);
        let mut evaluate = command_of("evaluate", &model, flags);
        evaluate.args(files).arg("--wrong").arg(&out);
        let (code, said, told) = run(evaluate);
        assert_eq!(code, Some(0), "{told}");
        let n_wrong = |found: &Value| {
            let rows = found["rows"].as_f64().unwrap();
            (rows - rows * found["accuracy"].as_f64().unwrap()).round() as usize
        };
        (objects(&said).iter().map(n_wrong).sum::<usize>(), out)
    };
    let (n_wrong, jsonl) = wrong_of(&[&input], "wrong.jsonl", &[]);
    let rows = objects(&fs::read_to_string(jsonl).unwrap());
    assert!(n_wrong >= 9 && rows.len() == n_wrong, "{n_wrong} {}", rows.len());
    let confidences: Vec<f64> = rows.iter().map(|row| row["probability"].as_f64().unwrap()).collect();
    assert!(confidences.is_sorted_by(|one, other| one >= other) && confidences[n_wrong - 1] >= 0.5);
    for row in &rows {
        assert!(row["true_label"] == row["kind"] && row["true_label"] != row["predicted_label"], "{row}");
        assert!(row["review"].as_str().unwrap().ends_with(",\n\"so\""), "{row}");
    }
    assert_eq!(rows.iter().filter(|row| row["kind"] == "other").count(), 1);

    let (n_wrong, csv) = wrong_of(&[&input, &input.with_file_name("reviews.csv")], "wrong.csv", &[]);
    let csv = fs::read_to_string(csv).unwrap();
    assert!(csv.starts_with("id,review,kind,file,true_label,predicted_label,probability\n"), "{csv}");
    assert_eq!(csv.matches("\"\"so\"\"").count(), n_wrong);
    let (n_split, tsv) = wrong_of(&[&input], "wrong.tsv", &["--test-fraction", "0.3"]);
    assert_eq!(fs::read_to_string(tsv).unwrap().matches("\"\"so\"\"").count(), n_split);
    assert!(0 < n_split && n_split < rows.len());
    let of_lines = folder.path().join("lines.ngrams");
    trained(&plain, &of_lines, &[]);
    let mut evaluate = command_of("evaluate", &of_lines, &[]);
    let wrong = folder.path().join("of-lines.parquet");
    evaluate.arg(&plain).arg("--wrong").arg(&wrong);
    let (code, told) = ended(evaluate);
    assert_eq!(code, Some(0), "{told}");
    assert!(fs::read(wrong).unwrap().starts_with(b"PAR1"));

    for (file, out, expected) in [
        ("test.csv", "wrong.csv", "wrong.csv: already exists"),
        ("test.csv", "wrong.xls", "--wrong "),
        ("-", "other.csv", "--wrong: found -, which can be read once only; write the texts to a file"),
        ("a.h5", "other.csv", "a.h5, which does not have the texts as they are written; evaluate the files"),
    ] {
        let file = if file == "-" { PathBuf::from(file) } else { folder.path().join(file) };
        let mut evaluate = command_of("evaluate", &model, &[]);
        evaluate.arg(file).arg("--wrong").arg(folder.path().join(out));
        let (code, told) = ended(evaluate);
        assert!(code == Some(64) && told.contains(expected), "{code:?} {told}");
    }
}

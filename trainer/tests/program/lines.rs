//! Predictions of lines, from files, pipes and standard input.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fixtures::word;
use serde_json::Value;

use super::Job;
use crate::command::{ended, run, trainer};

#[test]
fn a_model_predicts_line_by_line_and_is_exported_whole() {
    let job = Job::new();
    job.train("out", 1, &[]);
    let model = job.out("out").join("model");
    let copy = job.out("copy");
    let mut export = trainer();
    export.arg("export").arg(&model).arg("--out").arg(&copy);
    assert_eq!(ended(export).0, Some(0));

    let predicted = |model: &Path| {
        let lines = job.out("lines");
        fs::write(&lines, format!("{} {}\n\nnobody knows\n", word(1), word(2))).unwrap();
        let mut predict = trainer();
        predict.arg("predict").arg(model).args(["--format", "text", "--device", "cpu"]);
        predict.stdin(fs::File::open(&lines).unwrap());
        let output = predict.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let lines = predicted(&model);
    assert_eq!(lines.lines().count(), 3);
    assert!(lines.starts_with("{\"line\":1,") && !lines.starts_with("{\"line\":1,\"error\""), "{lines}");
    assert_eq!(lines.lines().nth(1), Some("{\"line\":2,\"error\":\"blank\"}"));
    assert_eq!(lines.lines().nth(2), Some("{\"line\":3,\"error\":\"only_unknown\"}"));
    assert_eq!(predicted(&copy), lines);

    let mut bytes = fs::read(copy.join("vocabulary.txt")).unwrap();
    bytes[0] ^= 1;
    fs::write(copy.join("vocabulary.txt"), bytes).unwrap();
    let mut predict = trainer();
    predict.arg("predict").arg(&copy);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(66), "{told}");
}

#[test]
fn lines_of_another_format_are_bad_input_and_reported_once() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    fs::write(job.out("plain"), "one\ntwo\n").unwrap();
    let mut predict = trainer();
    predict.arg("predict").arg(job.out("out")).arg(job.out("plain")).args(["--device", "cpu"]);
    let Output { status, stdout, stderr } = predict.output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(65), "{told}");
    assert!(
        told.ends_with(
            ": no line could be read (bad_line 2, no_text 0); check --format (csv, tsv, json, or text: one text per line), \
             --preset and --text-field\n"
        ),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(String::from_utf8(stdout).unwrap(), "");
}

#[test]
fn a_named_pipe_is_predicted() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let pipe = job.out("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // A program that opened the pipe twice would stop its writer, and would wait for another writer.
    let mut writer = Command::new("sh");
    writer.args(["-c", "exec >\"$0\"; echo one; echo two"]).arg(&pipe);
    let mut writer = writer.spawn().unwrap();
    let mut predict = Command::new("timeout");
    predict.args(["60", env!("CARGO_BIN_EXE_trainer"), "predict"]).arg(job.out("out")).arg(&pipe);
    predict.args(["--format", "text", "--device", "cpu"]);
    let Output { status, stdout, stderr } = predict.output().unwrap();
    // The writer must not wait for a reader that has exited.
    let _ = writer.kill();
    writer.wait().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    assert_eq!(stdout.iter().filter(|&&byte| byte == b'\n').count(), 2);
}

#[test]
fn files_are_predicted_inflated_each_line_with_its_file() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let [plain, packed] = ["plain", "packed"].map(|name| job.out(name));
    fs::write(&plain, "w1 w2 w3\n\n").unwrap();
    fs::write(&packed, "nobody knows\nw1 \u{e9}\n").unwrap();
    assert!(Command::new("gzip").arg(&packed).status().unwrap().success());
    let packed = job.out("packed.gz");
    let predict = |files: &[&Path]| {
        let mut predict = trainer();
        // The training folder is passed instead of its model folder.
        predict.arg("predict").arg(job.out("out")).args(files).args(["--format", "text", "--device", "cpu"]);
        predict.stdin(fs::File::open(&packed).unwrap());
        let Output { status, stdout, stderr } = predict.output().unwrap();
        let lines = String::from_utf8(stdout).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
        (status.code(), lines, String::from_utf8(stderr).unwrap())
    };
    let errors = |lines: &[Value]| {
        let told =
            lines.iter().map(|line| (line["file"].clone(), line["line"].clone(), line["error"].clone()));
        told.map(|(file, line, error)| format!("{file} {line} {error}")).collect::<Vec<_>>()
    };
    let shown = |path: &Path| format!("\"{}\"", path.display());

    let (code, lines, told) = predict(&[&plain, &packed, Path::new("-")]);
    let (plain_name, packed_name) = (shown(&plain), shown(&packed));
    let expected = "trainer: 6 of 6 lines: an error in place of a result (blank 1, only_unknown 5)\n";
    assert_eq!((code, told.as_str()), (Some(0), expected));
    // The words of the fixture's vocabulary contain digits, which a cleaned text cannot contain.
    let expected = [
        format!("{plain_name} 1 \"only_unknown\""),
        format!("{plain_name} 2 \"blank\""),
        format!("{packed_name} 1 \"only_unknown\""),
        format!("{packed_name} 2 \"only_unknown\""),
        "null 1 \"only_unknown\"".to_owned(),
        "null 2 \"only_unknown\"".to_owned(),
    ];
    assert_eq!(errors(&lines), expected);

    let missing = job.out("missing");
    let (code, lines, told) = predict(&[&plain, &missing]);
    assert_eq!((code, lines.len()), (Some(66), 0), "nothing is answered before all files are there: {told}");
    assert!(told.contains("missing: no such file or folder; check the path"), "{told}");

    fs::write(&plain, b"w1\nw\xff\xfe2\n").unwrap();
    let (code, _, told) = predict(&[&plain]);
    assert_eq!(code, Some(0));
    assert!(told.contains("plain: invalid UTF-8 in 1 of 2 lines (read as spaces)"), "{told}");
}

/// A program writes one short line at a time. The first line is too short for the detection of compression.
#[test]
fn a_line_on_standard_input_is_answered_before_the_next_is_there() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let mut predict = trainer();
    predict.arg("predict").arg(job.out("out")).args(["--format", "text", "--device", "cpu"]);
    let mut predict = predict.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut asks, answers) = (predict.stdin.take().unwrap(), predict.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines();

    for line in 1..=3 {
        asks.write_all(b"w\n").unwrap();
        let expected = format!("{{\"line\":{line},\"error\":\"only_unknown\"}}");
        assert_eq!(answers.next().unwrap().unwrap(), expected);
    }

    drop(asks);
    assert!(predict.wait().unwrap().success());
}

/// A window of a batch of one text has 16 lines. The answers of a window of bad lines are held, as the input may be in another
/// format, until its program waits.
#[test]
fn a_window_of_bad_lines_is_answered_before_the_next_is_there() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let mut predict = Command::new("timeout");
    predict.args(["60", env!("CARGO_BIN_EXE_trainer"), "predict"]).arg(job.out("out"));
    predict.args(["--batch", "1", "--format", "json", "--device", "cpu"]);
    let mut predict = predict.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut asks, answers) = (predict.stdin.take().unwrap(), predict.stdout.take().unwrap());
    let mut answers = BufReader::new(answers).lines();
    for window in 0..3 {
        asks.write_all("bad\n".repeat(16).as_bytes()).unwrap();
        for line in 1..=16 {
            let expected = format!("{{\"line\":{},\"error\":\"bad_line\"}}", 16 * window + line);
            assert_eq!(answers.next().unwrap().unwrap(), expected);
        }
    }
    drop(asks);
    predict.wait().unwrap();
}

#[test]
fn an_archive_is_refused_and_utf_16_is_read() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let predict = |file: &Path| {
        let mut predict = trainer();
        predict.arg("predict").arg(job.out("out")).arg(file).args(["--format", "text", "--device", "cpu"]);
        let Output { status, stdout, stderr } = predict.output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    };
    let [text, archive] = ["text", "archive"].map(|name| job.out(name));
    fs::write(&text, "one\n\nthree\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
        .unwrap();
    let tar =
        Command::new("tar").arg("-cf").arg(&archive).arg("-C").arg(job.folder.path()).arg("text").status();
    assert!(tar.unwrap().success());
    fs::write(&text, [&[0xff, 0xfe][..], &fs::read(&text).unwrap()].concat()).unwrap();

    let (code, answers, told) = predict(&text);
    let errors: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["error"].clone()).collect();
    let expected = "trainer: 3 of 3 lines: an error in place of a result (blank 1, only_unknown 2)\n";
    assert_eq!((code, told.as_str()), (Some(0), expected));
    assert_eq!(errors, ["only_unknown", "blank", "only_unknown"]);

    let (code, answers, told) = predict(&archive);
    assert_eq!((code, answers.as_str()), (Some(65), ""), "{told}");
    assert!(told.contains("archive: cannot read it: found a tar archive, expected lines"), "{told}");
}

#[test]
fn the_elements_of_an_array_are_answered_as_lines() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let predict = |content: &[u8]| {
        let file = job.out("reviews");
        fs::write(&file, content).unwrap();
        let mut predict = trainer();
        predict.arg("predict").arg(job.out("out")).arg(&file).args([
            "--device",
            "cpu",
            "--text-field",
            "text",
        ]);
        let Output { status, stdout, stderr } = predict.output().unwrap();
        let answers = String::from_utf8(stdout).unwrap();
        let errors = answers.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            format!("{} {}", line["line"], line["error"].as_str().unwrap())
        });
        (status.code(), errors.collect::<Vec<_>>(), String::from_utf8(stderr).unwrap())
    };
    let (_, errors, told) = predict(b"[{\"text\": \"one\"},\n 7, {\"text\":\n \"two\"}, {\"stars\": 1}]\n");
    assert_eq!(errors, ["1 only_unknown", "2 bad_line", "3 only_unknown", "4 no_text"], "{told}");

    let (code, _, told) = predict(b"[{\"text\": \"one\"}, {");
    assert!(code == Some(65) && told.contains("the JSON array is cut off: it ends at byte 19"), "{told}");

    let (code, errors, told) = predict(b"PAR1\x15\x04\x15");
    assert_eq!((code, errors.len()), (Some(65), 0));
    assert!(told.contains("reviews: the Parquet file is damaged"), "{told}");
}

#[test]
fn the_records_of_a_table_are_answered_in_their_order() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let file = job.out("new.csv");
    fs::write(&file, "id,text\n1,\"one, \"\"two\"\"\nthree\"\n2,too,many\n\n3,\n4,four\n").unwrap();
    let mut predict = trainer();
    predict.arg("predict").arg(job.out("out")).arg(&file).args(["--text-field", "text", "--device", "cpu"]);
    let (code, said, told) = run(predict);
    assert_eq!(code, Some(0), "{told}");
    let errors = said.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        format!("{} {}", line["line"], line["error"].as_str().unwrap())
    });
    let expected = ["1 only_unknown", "2 bad_line", "3 blank", "4 empty_text", "5 only_unknown"];
    assert_eq!(errors.collect::<Vec<_>>(), expected, "{told}");
    let out = job.out("answers.csv");
    let mut predict = trainer();
    predict.arg("predict").arg(job.out("out")).arg(&file).args(["--text-field", "text", "--device", "cpu"]);
    predict.arg("--out").arg(&out);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(0), "{told}");
    let answers = fs::read_to_string(&out).unwrap();
    let first = "id,text,label,class,probability,error\n1,\"one, \"\"two\"\"\nthree\",,,,only_unknown\n,,,,,bad_line\n";
    assert!(answers.starts_with(first) && answers.ends_with("4,four,,,,only_unknown\n"), "{answers}");
    let mut predict = trainer();
    predict.arg("predict").arg(job.out("out")).arg(&file).args(["--device", "cpu"]);
    let (code, said, told) = run(predict);
    assert_eq!((code, said.as_str()), (Some(65), ""), "{told}");
    assert!(told.contains("found no column \"reviewText\" among id, text"), "{told}");
}

#[test]
fn the_fields_of_a_dataset_are_those_of_its_model_unless_flags_say_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Numbers are no words.
    let letter = |at: usize| char::from(b'a' + (at % 26) as u8);
    let record = |at: usize| {
        let (own, stars) = if at.is_multiple_of(2) { ("great", 5) } else { ("awful", 1) };
        (format!("\"{own} kettle, {} {}\"", letter(at), letter(at / 26)), stars)
    };
    let table = |from: usize| -> String {
        let lines = (from..from + 60).map(record).map(|(text, stars)| format!("{stars},{text}\n"));
        "grade,body\n".to_owned() + &lines.collect::<String>()
    };
    fs::write(path("made.csv"), table(0)).unwrap();
    fs::write(path("later.csv"), table(60)).unwrap();
    let done = |program: &str, words: &[&str]| {
        let mut command = tests::command::program(program);
        command.current_dir(folder.path()).args(words);
        let (code, said, told) = run(command);
        assert_eq!(code, Some(0), "{words:?}: {told}");
        said
    };
    done("sentimill", &["made.csv", "--text-field", "body", "--rating-field", "grade", "--out", "made.h5"]);
    let fit = ["--epochs", "1", "--embedding", "8", "--hidden", "8", "--linear", "4", "--device", "cpu"];
    done("trainer", &[&["fit", "made.h5", "--out", "out"], &fit[..]].concat());
    let on_cpu = |words: &[&str]| done("trainer", &[words, &["--device", "cpu"]].concat());
    let evaluated: Value = serde_json::from_str(&on_cpu(&["evaluate", "out", "later.csv"])).unwrap();
    assert_eq!(evaluated["rows"], 60, "{evaluated}");
    let n_answers = |said: String| said.lines().filter(|line| !line.contains("\"error\"")).count();
    assert_eq!(n_answers(on_cpu(&["predict", "out", "later.csv"])), 60);
    assert_eq!(n_answers(on_cpu(&["explain", "out", "--input", "later.csv", "--json"])), 60);
    fs::write(path("later.json"), "{\"body\": \"great kettle\"}\n").unwrap();
    assert_eq!(n_answers(on_cpu(&["predict", "out", "later.json"])), 1);
    fs::write(path("other.csv"), "body,text\n,great kettle\n").unwrap();
    assert_eq!(n_answers(on_cpu(&["predict", "out", "other.csv", "--text-field", "text"])), 1);

    // Without a manifest, they are not known.
    fs::remove_file(path("made.manifest.json")).unwrap();
    done("trainer", &[&["fit", "made.h5", "--out", "unknown"], &fit[..]].concat());
    let mut predict = trainer();
    predict.current_dir(folder.path()).args(["predict", "unknown", "later.csv", "--device", "cpu"]);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("found no column \"reviewText\"") && told.contains("--text-field"), "{told}");
}

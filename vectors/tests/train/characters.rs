//! Trainings with character n-grams, on files and streams.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tests::command::{ended, program, run};
use tests::oracle::word_vectors;

use super::{embed, model, sentences, separation, trained};

const FLAGS: [&str; 5] = ["--char-ngrams", "3-5", "--buckets", "5000", "--threads=1"];

#[test]
fn words_and_unknown_words_have_the_vectors_of_fasttext() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out, file) =
        (folder.path().join("text"), folder.path().join("out"), folder.path().join("model.bin"));
    fs::write(&input, sentences(3000, 11)).unwrap();
    trained(embed(&input, &out, &FLAGS));
    assert!(separation(&out) > 0.5, "{}", separation(&out));
    let mut convert = program("vectors");
    convert.args(["convert"]).arg(&out).arg("--out").arg(&file);
    assert_eq!(ended(convert).0, Some(0));
    let words = ["kettle", "the", "a", "kettles", "chapterly", "unseen"];
    let model = model(&out);
    let ours: Vec<Vec<f32>> =
        words.iter().map(|word| model.vector_of(word.as_bytes()).unwrap().into_owned()).collect();
    assert!(ours.iter().all(|vector| vector.iter().any(|value| *value != 0.0)));
    let arguments = [&["vectors", "fasttext", file.to_str().unwrap()], &words[..]].concat();
    let arguments: Vec<&OsStr> = arguments.iter().map(|argument| argument.as_ref()).collect();
    let Some(theirs) = word_vectors(&arguments) else {
        return;
    };
    let theirs: Vec<Vec<f32>> = serde_json::from_str(&theirs).unwrap();
    for (word, (ours, theirs)) in words.iter().zip(ours.iter().zip(&theirs)) {
        let difference = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(difference < 1e-6, "{word}: {difference}");
    }
}

#[test]
fn a_killed_training_with_character_ngrams_continues_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(20_000, 12)).unwrap();
    let flags = [&FLAGS[..], &["--epochs", "8", "--checkpoint-every", "0.02"]].concat();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    trained(embed(&input, &whole, &flags));
    let mut process =
        embed(&input, &killed, &flags).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !killed.join("checkpoints/latest").exists() && process.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    process.kill().unwrap();
    process.wait().unwrap();
    trained(embed(&input, &killed, &[&flags[..], &["--resume"]].concat()));
    for name in ["vectors.npy", "ngrams.npy", "outputs.npy"] {
        let read = |out: &Path| fs::read(out.join("model").join(name)).unwrap();
        assert!(read(&whole) == read(&killed), "{name}");
    }
}

#[test]
fn a_stream_learns_the_ngrams_of_new_words() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(12_000, 13)).unwrap();
    let mut command = embed(Path::new("-"), &out, &FLAGS);
    command.stdin(fs::File::open(&input).unwrap());
    let summary = trained(command);
    assert_eq!(summary["words"], Value::from(22));
    assert!(separation(&out) > 0.5, "{}", separation(&out));
    // A word of the topic in another form.
    let model = model(&out);
    let cosine = |a: &str, b: &str| {
        let [a, b] = [a, b].map(|word| model.vector_of(word.as_bytes()).unwrap());
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
    };
    assert!(cosine("kettles", "steam") > cosine("kettles", "novel") + 0.2);
}

#[test]
fn similarity_is_logged_and_is_that_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(4000, 14)).unwrap();
    let pairs = "kettle steam 9\nnovel plot 8\nKettle novel 2\nkettles kettle 9\nsteam author 1\nxyz the 3\n";
    fs::write(at("pairs.txt"), pairs).unwrap();
    let pairs = at("pairs.txt");
    let similarity = ["--similarity", pairs.to_str().unwrap()];
    for (name, more) in [("plain", &[][..]), ("characters", &FLAGS[..])] {
        let out = at(name);
        let summary = trained(embed(&at("text"), &out, &[&similarity[..], more].concat()));
        let mut evaluate = program("vectors");
        evaluate.args(["similarity"]).arg(&out).arg(&pairs);
        let (code, said, told) = run(evaluate);
        assert_eq!(code, Some(0), "{told}");
        let expected: Value = serde_json::from_str(&said).unwrap();
        let found = &summary["similarity"][0];
        assert_eq!((&found["pairs"], &found["found"]), (&expected["pairs"], &expected["found"]));
        assert_eq!(found["found"], if name == "plain" { 4 } else { 6 });
        let [found, expected] = [found, &expected].map(|of| of["spearman"].as_f64().unwrap());
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        let metrics = fs::read_to_string(out.join("metrics.jsonl")).unwrap();
        let n_logged = metrics.lines().filter(|line| line.contains("\"event\":\"similarity\"")).count();
        assert_eq!(n_logged, 5, "one per epoch");
    }
    fs::write(&pairs, "one two\n").unwrap();
    let (code, told) = ended(embed(&at("text"), &at("bad"), &similarity));
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("expected two words and a score") && !at("bad").exists(), "{told}");
}

#[test]
fn the_loss_of_held_out_sentences_decreases() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(4000, 14)).unwrap();
    fs::write(at("held"), sentences(400, 15)).unwrap();
    let held_out = at("held");
    let flags = ["--held-out", held_out.to_str().unwrap(), "--checkpoint-every", "0"];
    for (name, more) in [("plain", &[][..]), ("characters", &FLAGS[..])] {
        let out = at(name);
        let summary = trained(embed(&at("text"), &out, &[&flags[..], more].concat()));
        let losses = losses(&out);
        assert_eq!(losses.len(), 5, "{losses:?}");
        assert!(losses[4] < losses[0], "{losses:?}");
        assert_eq!(summary["held_out_loss"].as_f64(), losses.last().copied());
    }
    let refused = |more: &[&str], code: i32, expected: &str| {
        let (found, told) = ended(embed(&at("text"), &at("out"), more));
        assert!(found == Some(code) && told.contains(expected), "{found:?} {told}");
    };
    refused(&[&flags[..], &["--model", "char-lstm"]].concat(), 78, "--held-out is set for char-lstm");
    refused(&[&flags[..], &["--follow"]].concat(), 78, "--held-out is set for a stream");
    fs::write(&held_out, "nowhere\n").unwrap();
    refused(&flags, 65, "no word is in the vocabulary");
}

#[test]
fn the_distance_to_other_vectors_is_logged_and_is_that_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("text"), sentences(4000, 14)).unwrap();
    trained(embed(&at("text"), &at("other"), &["--seed", "2", "--min-count", "50"]));
    let other = at("other");
    let reference = ["--reference", other.to_str().unwrap()];
    for (name, more) in [("plain", &[][..]), ("characters", &FLAGS[..])] {
        let out = at(name);
        let summary = trained(embed(&at("text"), &out, &[&reference[..], more].concat()));
        let mut compare = program("vectors");
        compare.args(["pip"]).args([&out, &other]);
        let (code, said, told) = run(compare);
        assert_eq!(code, Some(0), "{told}");
        let expected: Value = serde_json::from_str(&said).unwrap();
        let found = &summary["pip"];
        assert_eq!(found["words"], expected["words"]);
        let [found, expected] = [found, &expected].map(|of| of["unit"]["loss"].as_f64().unwrap());
        assert!(found > 0.0 && (found - expected).abs() < 1e-6 * expected, "{found} {expected}");
        let metrics = fs::read_to_string(out.join("metrics.jsonl")).unwrap();
        assert_eq!(metrics.matches("\"event\":\"pip\"").count(), 5, "one per epoch");
    }
    fs::write(at("no.vec"), "1 2\nnowhere 1 2\n").unwrap();
    let none = at("no.vec");
    let (code, told) = ended(embed(&at("text"), &at("none"), &["--reference", none.to_str().unwrap()]));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("no PIP loss: no word of"), "{told}");
}

#[test]
fn invalid_character_ngrams_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(100, 15)).unwrap();
    for (flags, expected) in [
        (&["--char-ngrams", "6-3"][..], "expected two lengths from 1 to 32, as in 3-6"),
        (&["--buckets", "100"], "--char-ngrams"),
    ] {
        let (code, told) = ended(embed(&input, &out, flags));
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

/// The losses of the held-out lines, by epoch.
fn losses(out: &Path) -> Vec<f64> {
    let lines = fs::read_to_string(out.join("metrics.jsonl")).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "held_out").map(|line| line["loss"].as_f64().unwrap()).collect()
}

//! Vectors of words by their characters.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tests::command::{ended, program, run};
use tests::seeds::{each_seed, seeds};

use super::resuming::stopped;
use super::{TOPICS, embed, sentences, separation, trained};

const FLAGS: [&str; 12] = [
    "--model",
    "char-lstm",
    "--hidden",
    "32",
    "--char-dim",
    "16",
    "--batch",
    "256",
    "--rate",
    "0.01",
    "--threads",
    "2",
];

pub(crate) fn spelled(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = program("vectors");
    command.arg("train").arg("--input").arg(input).arg("--out").arg(out);
    command.args(["--dim", "16", "--json"]).args(FLAGS).args(more);
    command
}

/// The nearest words of each word.
pub(crate) fn neighbours(model: &Path, words: &[&str], top: usize) -> Vec<Vec<String>> {
    let mut command = program("vectors");
    command.args(["neighbours"]).arg(model).args(words);
    command.args(["--json", "--top", &top.to_string()]);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    let near = |line: &str| {
        let found: Value = serde_json::from_str(line).unwrap();
        let near = found["neighbours"].as_array().unwrap().iter();
        near.map(|near| near["word"].as_str().unwrap().to_owned()).collect()
    };
    said.lines().map(near).collect()
}

#[test]
fn words_that_never_occurred_have_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(4000, 11)).unwrap();
    let summary = trained(spelled(&input, &out, &["--subsample", "0"]));
    assert_eq!((&summary["words"], &summary["tokens"]), (&Value::from(22), &Value::from(40_000)));
    assert_eq!((&summary["trained_tokens"], &summary["lines"]), (&Value::from(200_000), &Value::from(4000)));
    assert!(separation(&out) > 0.5, "{}", separation(&out));
    let found = neighbours(&out, &["kettel", "chaptr", "authour"], 3);
    // The sentences of a topic have its words in random order, so only the topic of a word can be learned.
    for (near, topic) in found.iter().zip([0, 1, 1]) {
        assert!(near.iter().all(|near| TOPICS[topic].contains(&near.as_str())), "{found:?}");
    }
    // A copy of the folder has the generator too; other formats have the words of the vocabulary.
    let convert = |from: &Path, to: &str| {
        let to = folder.path().join(to);
        let mut command = program("vectors");
        command.args(["convert"]).arg(from).arg("--out").arg(&to);
        let (code, told) = ended(command);
        assert_eq!(code, Some(0), "{told}");
        to
    };
    assert_eq!(neighbours(&convert(&out, "copy"), &["kettel", "chaptr", "authour"], 3), found);
    let text = convert(&out, "text.vec");
    assert_eq!(neighbours(&text, &["kettle"], 1).len(), 1);
    let mut unknown = program("vectors");
    unknown.args(["neighbours"]).arg(&text).arg("kettel");
    let (code, told) = ended(unknown);
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("the word \"kettel\" is not in the vocabulary"), "{told}");
}

#[test]
fn letters_of_any_script_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    let text = "Дом дома МОДА\nété thé été\n猫猫 猫犬 हिन्दी हिन्द\n".repeat(30);
    fs::write(&input, text).unwrap();
    trained(spelled(&input, &out, &["--epochs", "1"]));
    let characters = fs::read_to_string(out.join("model/characters.txt")).unwrap();
    let mut all: Vec<char> = characters.chars().filter(|&character| character != '\n').collect();
    all.sort_unstable();
    // The others are in one word only.
    let mut expected = ['t', 'é', 'а', 'д', 'м', 'о', 'न', 'द', 'ह', 'ि', '्', '猫'];
    expected.sort_unstable();
    assert_eq!(all, expected);
    assert_eq!(neighbours(&out, &["ДОМУ", "猫", "x"], 2).len(), 3);
}

#[test]
fn a_training_that_is_killed_or_stopped_continues_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(10_000, 13)).unwrap();
    let flags = ["--epochs", "4", "--checkpoint-every", "0.02"];
    let whole = folder.path().join("whole");
    trained(spelled(&input, &whole, &flags));
    let files = |out: &Path| {
        ["vectors.npy", "outputs.npy", "generator.safetensors"]
            .map(|name| fs::read(out.join("model").join(name)).unwrap())
    };
    let expected = files(&whole);
    each_seed(&seeds(4, 20), |seed| {
        let out = folder.path().join(format!("killed-{seed}"));
        let mut n_killed = 0;
        while n_killed < 3 {
            let more = if n_killed == 0 { "--quiet" } else { "--resume" };
            let mut command = spelled(&input, &out, &[&flags[..], &[more]].concat());
            let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            thread::sleep(Duration::from_millis(40 + (seed * 7919 + n_killed * 104_729) % 900));
            if let Some(status) = process.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break;
            }
            let signal = if seed % 2 == 0 { Signal::KILL } else { Signal::TERM };
            kill_process(Pid::from_child(&process), signal).unwrap();
            process.wait().unwrap();
            n_killed += 1;
        }
        trained(spelled(&input, &out, &[&flags[..], &["--resume"]].concat()));
        assert!(files(&out) == expected, "killed {n_killed} times");
    });
}

#[test]
fn a_training_is_not_resumed_with_other_words() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    let lines = sentences(4000, 13);
    fs::write(&input, &lines).unwrap();
    let flags = ["--epochs", "100000"];
    stopped(spelled(&input, &out, &flags), &out);
    // The same characters, as often and at the same places.
    fs::write(&input, lines.replace("kettle", "kettel")).unwrap();
    let (code, told) = ended(spelled(&input, &out, &[&flags[..], &["--resume"]].concat()));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("a checkpoint of another input or other settings; pass the input"), "{told}");
}

#[test]
fn flags_of_the_other_model_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, "one two one two\n").unwrap();
    for (flag, value) in [("--hidden", "32"), ("--char-dim", "8"), ("--batch", "64"), ("--outputs", "shared")]
    {
        let (code, told) = ended(embed(&input, &out, &[flag, value]));
        assert_eq!(code, Some(64), "{told}");
        let expected =
            format!("{flag} has no effect without --model char-lstm; omit {flag}, or pass --model char-lstm");
        assert!(told.contains(&expected), "{told}");
    }
    let (code, told) = ended({
        let mut command = program("vectors");
        command.args(["train", "--model", "char-lstm", "--hidden", "100"]).arg("--input").arg(&input);
        command
    });
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--hidden is 100, expected a multiple of 16"), "{told}");
    // Another model is another training.
    trained(spelled(&input, &out, &["--min-count", "1", "--epochs", "1"]));
    let (code, told) = ended(embed(&input, &out, &["--min-count", "1", "--epochs", "1", "--resume"]));
    assert_eq!(code, Some(78), "{told}");
    assert_eq!(
        embeddings::folder::settings(&out.join("model")).unwrap()["family"]["char-lstm"]["hidden"],
        json!(32)
    );
}

//! Models and checkpoints with correct digests and invalid content. Each is refused with one line as an invalid
//! input, before any memory of the claimed size is allocated.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fixtures::reviews;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Limit of the address space in KiB, sufficient for PyTorch and a small model.
const ADDRESSES_KIB: u64 = 6 << 20;

/// A dataset, and two training folders: one of a training that was interrupted after a checkpoint, and one of
/// a complete training.
struct Trained {
    data: TempDir,
    dataset: PathBuf,
}

const SETTINGS: [&str; 18] = [
    "--device",
    "cpu",
    "--batch",
    "32",
    "--embedding",
    "8",
    "--hidden",
    "6",
    "--linear",
    "5",
    "--tokens",
    "20",
    "--epochs",
    "2",
    "--checkpoint-steps",
    "10",
    "--validation-fraction",
    "0.1",
];

impl Trained {
    fn new() -> Self {
        let (data, dataset) = reviews(600);
        let trained = Self { data, dataset };
        let (code, told) = trained.run(trained.fit("out"), "");
        assert_eq!(code, Some(0), "{told}");
        trained
    }

    fn path(&self, name: &str) -> PathBuf {
        self.data.path().join(name)
    }

    fn fit(&self, out: &str) -> Vec<String> {
        let out = self.path(out).display().to_string();
        let paths = ["fit", self.dataset.to_str().unwrap(), "--out", &out];
        paths.into_iter().chain(SETTINGS).map(str::to_owned).collect()
    }

    /// Runs the program with little memory. Returns the exit code and the output.
    fn run(&self, arguments: Vec<String>, input: &str) -> (Option<i32>, String) {
        let script = format!("ulimit -v {ADDRESSES_KIB}; printf '%s' \"$INPUT\" | timeout 60 \"$0\" \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_trainer")]).args(arguments);
        command.env("OMP_NUM_THREADS", "1").env("INPUT", input).stdin(Stdio::null());
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap().trim_end().to_owned())
    }

    /// A copy of a folder in the training folder.
    fn copy(&self, of: &str, name: &str) -> PathBuf {
        let copy = self.path(name);
        let copied = Command::new("cp").arg("-r").arg(self.path(of)).arg(&copy).status().unwrap();
        assert!(copied.success());
        copy
    }

    /// Each command that reads a model, with this model.
    fn commands(&self, model: &Path) -> [Vec<String>; 4] {
        let [model, dataset] = [model, &self.dataset].map(|path| path.display().to_string());
        let [exported, fitted] = ["exported", "fitted"].map(|name| self.path(name).display().to_string());
        let predict = ["predict", &model, "--format", "text", "--device", "cpu"];
        let evaluate = ["evaluate", &model, &dataset, "--device", "cpu"];
        let export = ["export", &model, "--out", &exported];
        let fit = ["fit", &dataset, "--out", &fitted, "--init-from", &model];
        let sizes =
            ["--embedding", "8", "--hidden", "6", "--linear", "5", "--epochs", "1", "--device", "cpu"];
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [words(&predict), words(&evaluate), words(&export), words(&[&fit[..], &sizes].concat())]
    }
}

/// Writes the list of a folder's digests again.
fn seal(folder: &Path) {
    let script = "rm SHA256SUMS && sha256sum * > ../sums && mv ../sums SHA256SUMS";
    assert!(Command::new("sh").args(["-c", script]).current_dir(folder).status().unwrap().success());
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Replaces the value at a path of a document, such as `/model/lstm/ids`.
fn with(document: &Value, place: &str, value: Value) -> Value {
    let mut changed = document.clone();
    *changed.pointer_mut(place).unwrap_or_else(|| panic!("{place}: {document}")) = value;
    changed
}

#[test]
fn a_configuration_that_asks_for_what_cannot_be_is_refused_by_every_command() {
    let trained = Trained::new();
    let model = trained.copy("out/model", "hostile");
    let path = model.join("config.json");
    let config = read_json(&path);
    let mut n_values = 0;
    for (place, values) in [
        (
            "/model/lstm/ids",
            vec![
                json!(-1),
                json!(0),
                json!(51),
                json!(53),
                json!(1u64 << 31),
                json!(1u64 << 40),
                json!(i64::MAX),
            ],
        ),
        ("/model/lstm/embedding", vec![json!(0), json!(-8), json!(9), json!(65_537), json!(1u64 << 40)]),
        (
            "/model/lstm/hidden",
            vec![
                json!(0),
                json!(-6),
                json!(7),
                json!(65_536),
                json!(65_537),
                json!(1u64 << 40),
                json!(i64::MAX),
            ],
        ),
        (
            "/model/lstm/layers",
            vec![json!(0), json!(17), json!(1u64 << 31), json!(u64::MAX), json!(-1), json!(2)],
        ),
        ("/model/lstm/bidirectional", vec![json!(true), json!(1)]),
        ("/model/lstm/head/classifier/linear", vec![json!(0), json!(-5), json!(65_537), json!(1u64 << 40)]),
        ("/model/lstm/head/classifier/outputs", vec![json!(0), json!(5), json!(1u64 << 40), json!(-1)]),
        ("/model/lstm/head", vec![json!("next-word"), json!({})]),
        (
            "/model/task",
            vec![
                json!({"sentiment": "five-ratings"}),
                json!({"sentiment": {"label": {"pos_weight": -1.0}}}),
                json!({"next-word": {"candidates": 0}}),
            ],
        ),
        ("/model/precision", vec![json!("f64"), json!("f8")]),
        ("/model/kind", vec![json!("transformer")]),
        ("/scoring", vec![json!({"rating": {"positive_from": 4}}), Value::Null]),
    ] {
        for value in values {
            fs::write(&path, serde_json::to_vec(&with(&config, place, value.clone())).unwrap()).unwrap();
            seal(&model);
            // Each value is tested with one command; the commands alternate.
            let command = &trained.commands(&model)[n_values % 4];
            n_values += 1;
            let (code, told) = trained.run(command.clone(), "w1 w2\n");
            assert_eq!(
                (code, told.lines().count()),
                (Some(66), 1),
                "{place} {value}, {}: {told}",
                command[0]
            );
            assert!(told.contains("/config.json: ") || told.contains("/model.safetensors: "), "{told}");
            assert!(!trained.path("exported").exists() && !trained.path("fitted").exists());
        }
    }
}

#[test]
fn weights_that_are_malformed_are_refused_by_every_command() {
    let trained = Trained::new();
    let model = trained.copy("out/model", "hostile");
    let path = model.join("model.safetensors");
    let written = fs::read(&path).unwrap();
    let n_header = u64::from_le_bytes(written[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(written[8..8 + n_header].to_vec()).unwrap();
    let rebuilt = |header: &str| {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(&written[8 + n_header..]);
        bytes
    };
    let replaced = |from: &str, to: &str| {
        assert!(header.contains(from), "{from}: {header}");
        rebuilt(&header.replacen(from, to, 1))
    };
    let mut not_a_number = written.clone();
    let at = not_a_number.len() - 4;
    not_a_number[at..].copy_from_slice(&f32::NAN.to_le_bytes());
    for (n_files, (what, bytes)) in [
        ("nothing", Vec::new()),
        ("a length alone", written[..8].to_vec()),
        ("a length of 2^64-1", [&u64::MAX.to_le_bytes()[..], &written[8..]].concat()),
        ("no JSON", rebuilt("{")),
        ("an empty header", rebuilt("{}")),
        ("integers", replaced("F32", "I32")),
        ("another type", replaced("F32", "F9")),
        ("another shape", replaced("[52,8]", "[8,52]")),
        ("a shape past 2^64", replaced("[52,8]", "[4294967296,4294967296,52,8]")),
        ("another name", replaced("embedding.weight", "embedding.height")),
        ("a name with an escape", replaced("embedding.weight", "\\u001b[2J")),
        (
            "one more",
            rebuilt(&header.trim_end().replacen(
                '{',
                "{\"x\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},",
                1,
            )),
        ),
        (
            "a name twice",
            rebuilt(&header.trim_end().replacen(
                '{',
                "{\"linear.bias\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]},",
                1,
            )),
        ),
        ("one byte less", written[..written.len() - 1].to_vec()),
        ("one byte more", [&written[..], &[0]].concat()),
        ("no number", not_a_number),
    ]
    .into_iter()
    .enumerate()
    {
        fs::write(&path, bytes).unwrap();
        seal(&model);
        for command in trained.commands(&model).iter().skip(n_files % 2).step_by(2) {
            let (code, told) = trained.run(command.clone(), "w1 w2\n");
            assert_eq!(code, Some(66), "{what}, {}: {told}", command[0]);
            assert_eq!(told.lines().count(), 1, "{what}, {}: {told}", command[0]);
            assert!(told.contains("model.safetensors: ") && !told.contains('\u{1b}'), "{what}: {told}");
        }
    }
}

#[test]
fn a_checkpoint_that_no_training_was_at_is_refused() {
    let trained = Trained::new();
    fs::remove_dir_all(trained.path("out/model")).unwrap();
    let mut resume = trained.fit("out");
    resume.push("--resume".to_owned());
    let checkpoints = trained.path("out/checkpoints");
    let newest = checkpoints.join(fs::read_to_string(checkpoints.join("latest")).unwrap());
    for entry in fs::read_dir(&checkpoints).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() && entry != newest {
            fs::remove_dir_all(entry).unwrap();
        }
    }
    let path = newest.join("training.json");
    let written = fs::read(&path).unwrap();
    let document = read_json(&path);
    for (place, values) in [
        ("/position/epoch", vec![json!(1_000_000), json!(2), json!(0), json!(-1)]),
        ("/position/steps", vec![json!(u64::MAX), json!(0), json!(21)]),
        ("/position/batch", vec![json!(u64::MAX), json!(1u64 << 40), json!(0)]),
        ("/position/has_ended", vec![json!(true)]),
        ("/position/epoch_loss", vec![Value::Null]),
        ("/position/best", vec![Value::Null, json!([0.5, 0]), json!([0.5, 2])]),
        ("/optimizer_steps", vec![json!(u64::MAX), json!(0)]),
        ("/has_best", vec![json!(false)]),
        ("/version", vec![json!(0), json!(9)]),
    ] {
        for value in values {
            fs::write(&path, serde_json::to_vec(&with(&document, place, value.clone())).unwrap()).unwrap();
            seal(&newest);
            let (code, told) = trained.run(resume.clone(), "");
            let last = told.lines().last().unwrap_or_default();
            assert_eq!(code, Some(66), "{place} {value}: {told}");
            assert!(last.contains("training.json: "), "{place} {value}: {told}");
            assert!(!trained.path("out/model").exists());
        }
    }
    fs::write(&path, &written).unwrap();
    for name in ["model", "optimizer", "best"] {
        let path = newest.join(format!("{name}.safetensors"));
        let whole = fs::read(&path).unwrap();
        let text = whole.windows(3).position(|bytes| bytes == b"F32").unwrap();
        let mut integers = whole.clone();
        integers[text] = b'I';
        for bytes in [integers, whole[..whole.len() - 4].to_vec(), Vec::new()] {
            fs::write(&path, bytes).unwrap();
            seal(&newest);
            let (code, told) = trained.run(resume.clone(), "");
            assert_eq!(code, Some(66), "{name}: {told}");
            assert!(told.lines().last().unwrap().contains(".safetensors: "), "{name}: {told}");
        }
        fs::remove_file(&path).unwrap();
        seal(&newest);
        let (code, told) = trained.run(resume.clone(), "");
        assert_eq!(code, Some(66), "{name}: {told}");
        fs::write(&path, whole).unwrap();
    }
    seal(&newest);
    let (code, told) = trained.run(resume, "");
    assert_eq!(code, Some(0), "{told}");
}

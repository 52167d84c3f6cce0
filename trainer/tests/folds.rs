//! Cross-validations: which rows each fold holds back, the metrics of all folds, an interrupted one, ranks, and
//! outputs that are refused.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{ended, plain, run, trainer};
use dataset::Row;
use fixtures::{dataset_of, review, reviews};
use runs::training::read_scores;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tests::ranks::Rank;

const N_ROWS: u32 = 600;

/// A dataset and the folder of its trainings.
struct World {
    folder: TempDir,
    dataset: PathBuf,
}

impl World {
    fn new() -> Self {
        let (folder, dataset) = reviews(N_ROWS);
        Self { folder, dataset }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments<'a>(&'a self, out: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
        let sizes = ["--embedding=8", "--hidden=16", "--linear=5", "--epochs=2", "--batch=32", "--rate=0.01"];
        let option = |setting: &str| setting.split('=').next().unwrap().to_owned();
        let has = |setting: &&str| !more.iter().any(|more| option(more) == option(setting));
        let asked: Vec<&str> =
            more.iter().copied().chain(sizes.into_iter().filter(has)).chain(["--tokens=20"]).collect();
        let paths = [self.dataset.to_str().unwrap(), "--out", out.to_str().unwrap(), "--device=cpu"];
        [&["fit"][..], &paths, &plain(&asked)].concat()
    }

    fn fit(&self, out: &Path, more: &[&str]) -> Command {
        let mut command = trainer();
        command.args(self.arguments(out, more)).current_dir(self.folder.path());
        command
    }

    /// Runs a cross-validation to the end. Returns its standard output and standard error.
    fn train(&self, out: &Path, more: &[&str]) -> (String, String) {
        let (code, said, told) = run(self.fit(out, more));
        assert_eq!(code, Some(0), "{told}");
        (said, told)
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn evaluation(out: &Path, fold: usize) -> Value {
    json(&out.join(format!("fold-{fold}/evaluation.json")))
}

/// The rows that a fold holds back.
fn held_out(out: &Path, fold: usize) -> Vec<u32> {
    let n_rows = evaluation(out, fold)["metrics"]["rows"].as_u64().unwrap();
    let scores = read_scores(&out.join(format!("fold-{fold}/scores.npy")), n_rows).unwrap();
    scores.iter().map(|score| score.row).collect()
}

#[test]
fn each_row_is_held_out_by_one_fold_and_a_row_of_the_test_split_by_none() {
    let world = World::new();
    for (test_fraction, first) in [("0.1", 100), ("0", 0)] {
        let out = world.out(test_fraction);
        let fraction = format!("--test-fraction={test_fraction}");
        world.train(&out, &["--folds=4", &fraction, "--validation-fraction=0.05", "--epochs=1"]);
        let mut rows: Vec<u32> = (1..=4).flat_map(|fold| held_out(&out, fold)).collect();
        rows.sort_unstable();
        let expected: Vec<u32> = (0..N_ROWS).filter(|&at| review(at).split >= first).collect();
        assert_eq!(rows, expected);
        for fold in 1..=4 {
            // Rows with equal kept words have equal split numbers.
            let splits: Vec<u16> = held_out(&out, fold).iter().map(|&at| review(at).split).collect();
            let length = (1000 - u32::from(first)) / 4;
            let range = |fold: usize| u32::from(first) + length * fold as u32;
            assert!(splits.iter().all(|&split| (range(fold - 1)..range(fold)).contains(&u32::from(split))));
            let rows = &json(&out.join(format!("fold-{fold}/settings.json")))["dataset"]["rows"];
            let [trained, validated, tested] = [0, 1, 2].map(|part| rows[part].as_u64().unwrap() as usize);
            assert_eq!(tested, splits.len());
            assert!(validated > 0);
            assert_eq!(trained + validated + tested, expected.len());
        }
    }
}

#[test]
fn the_result_has_the_metrics_of_all_folds_their_mean_and_deviation() {
    let world = World::new();
    let out = world.out("out");
    let (said, told) = world.train(&out, &["--folds=3", "--json"]);
    let result = json(&out.join("folds.json"));
    let printed: Value = serde_json::from_str(&said).unwrap();
    for field in ["metrics", "folds"] {
        assert_eq!(printed[field], result[field]);
    }
    assert_eq!(printed["training"], out.to_str().unwrap());
    let mut names = 0;
    for name in ["loss", "accuracy", "f1", "precision", "recall", "auc"] {
        let values: Vec<f64> =
            (1..=3).map(|fold| evaluation(&out, fold)["metrics"][name].as_f64().unwrap()).collect();
        let found: Vec<f64> =
            (0..3).map(|at| result["folds"][at]["metrics"][name].as_f64().unwrap()).collect();
        let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(values.iter().zip(&found).all(|(&one, &other)| near(one, other)), "{name}");
        let [a, b, c] = values[..] else { panic!("{values:?}") };
        let mean = (a + b + c) / 3.0;
        let deviation = (((a - mean).powi(2) + (b - mean).powi(2) + (c - mean).powi(2)) / 2.0).sqrt();
        let estimate = &result["metrics"][name];
        assert!(near(estimate["mean"].as_f64().unwrap(), mean), "{name}: {estimate}");
        assert!(near(estimate["deviation"].as_f64().unwrap(), deviation), "{name}: {estimate}");
        names += 1;
    }
    assert_eq!(result["metrics"].as_object().unwrap().len(), names);
    let accuracy = &result["metrics"]["accuracy"];
    let line = format!(
        "trainer: accuracy {:.4} ± {:.4} (mean and standard deviation of 3 folds)",
        accuracy["mean"].as_f64().unwrap(),
        accuracy["deviation"].as_f64().unwrap()
    );
    assert!(told.contains(&line), "{told}");
    assert!(out.join("fold-3/model/model.safetensors").exists());
    assert!(!out.join("model").exists());

    // The report has the same values.
    let page = world.out("report.html");
    let mut report = trainer();
    report.arg("report").arg(&out).arg("--out").arg(&page);
    assert_eq!(ended(report).0, Some(0));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<h2 id=\"folds-name\">Folds</h2>"), "no section of folds");
    for fold in 0..3 {
        let accuracy = result["folds"][fold]["metrics"]["accuracy"].as_f64().unwrap();
        assert!(page.contains(&format!("<th scope=\"row\">{}</th>", fold + 1)));
        assert!(page.contains(&format!("<td>{accuracy:.4}</td>")), "{accuracy}");
    }
    for estimate in ["mean", "deviation"] {
        let value = accuracy[estimate].as_f64().unwrap();
        assert!(page.contains(&format!("<td>{value:.4}</td>")), "{estimate} {value}");
    }
    assert!(page.contains("3 folds: "), "no sentence about the folds");
}

#[test]
fn a_killed_cross_validation_that_is_resumed_ends_with_the_same_bytes() {
    let world = World::new();
    let flags = ["--folds=3", "--epochs=20", "--checkpoint-steps=15", "--log-steps=1"];
    let whole = world.out("whole");
    world.train(&whole, &flags);
    let out = world.out("killed");
    // Within the second fold, after its first checkpoint.
    let mut rank = Rank::start(0, world.fit(&out, &flags));
    assert!(rank.wait_for_lines(" step 20: ", 2));
    rank.signal(Signal::KILL);
    rank.end();
    assert!(out.join("fold-1/model").exists() && !out.join("folds.json").exists());
    assert!(!out.join("fold-2/model").exists() && !out.join("fold-3").exists());
    let first = fs::metadata(out.join("fold-1/model/model.safetensors")).unwrap().modified().unwrap();
    // The remedy for an unfinished fold is the command that finishes it.
    let mut predict = trainer();
    predict.arg("predict").arg(out.join("fold-2"));
    let (code, told) = ended(predict);
    let remedy = format!("--folds 3 --out {} --resume`", out.display());
    assert!(code == Some(66) && told.contains(&remedy), "{told}");

    let (_, told) = world.train(&out, &[&flags[..], &["--resume"]].concat());
    assert!(told.contains("resuming after step "), "{told}");
    let again = fs::metadata(out.join("fold-1/model/model.safetensors")).unwrap().modified().unwrap();
    assert_eq!(first, again);
    let file = |out: &Path, name: &str| fs::read(out.join(name)).unwrap();
    assert_eq!(file(&out, "folds.json"), file(&whole, "folds.json"));
    for fold in 1..=3 {
        let weights = format!("fold-{fold}/model/model.safetensors");
        assert!(file(&out, &weights) == file(&whole, &weights), "{weights}");
    }
    // A complete cross-validation is not trained again.
    let (_, told) = world.train(&out, &[&flags[..], &["--resume"]].concat());
    assert_eq!(told.matches("already complete: ").count(), 3, "{told}");
    assert_eq!(file(&out, "folds.json"), file(&whole, "folds.json"));
}

#[test]
fn two_ranks_have_the_metrics_of_one() {
    let world = World::new();
    let flags = ["--folds=2", "--precision=f64", "--validation-fraction=0.1"];
    let one = world.out("one");
    world.train(&one, &flags);
    let two = world.out("two");
    let mut launched = trainer();
    launched.args(["launch", "--nproc", "2", "--"]).args(world.arguments(&two, &flags));
    let (code, told) = ended(launched);
    assert_eq!(code, Some(0), "{told}");
    let [one, two] = [one, two].map(|out| json(&out.join("folds.json")));
    for fold in 0..2 {
        let metrics = |of: &Value| of["folds"][fold]["metrics"].clone();
        assert_eq!(metrics(&one)["confusion"], metrics(&two)["confusion"]);
        let [loss, other] = [&one, &two].map(|of| metrics(of)["loss"].as_f64().unwrap());
        assert!((loss - other).abs() <= 1e-9 * loss, "{loss} {other}");
    }
    assert_eq!(one["metrics"]["accuracy"], two["metrics"]["accuracy"]);
}

#[test]
fn an_occupied_output_is_refused_unless_it_is_resumed_or_replaced() {
    let world = World::new();
    let out = world.out("out");
    let refused = |out: &Path, more: &[&str], code: i32, expected: &str| {
        let (found, told) = ended(world.fit(out, more));
        assert_eq!(found, Some(code), "{told}");
        assert!(told.lines().last().unwrap().contains(expected), "{told}");
    };
    world.train(&out, &["--folds=4", "--epochs=1"]);
    refused(
        &out,
        &["--folds=4", "--epochs=1"],
        64,
        "found a cross-validation, expected a new name or an empty folder; resume",
    );
    refused(&out, &["--epochs=1"], 64, "choose another --out");
    refused(
        &out,
        &["--folds=2", "--epochs=1", "--resume"],
        78,
        "found a complete training with --folds 4, expected 2",
    );
    let mut predict = trainer();
    predict.args(["predict"]).arg(&out);
    let (code, told) = ended(predict);
    assert_eq!(code, Some(66), "{told}");
    assert!(told.contains("MODEL is a cross-validation, expected the model of one training"), "{told}");
    // Nothing is deleted before the inputs are checked.
    refused(
        &out,
        &["--folds=100", "--test-fraction=0.95", "--force"],
        78,
        "--folds is 100, expected at most 50",
    );
    assert!(out.join("fold-4/model").exists());
    world.train(&out, &["--folds=2", "--epochs=1", "--force"]);
    assert!(out.join("fold-2").exists() && !out.join("fold-3").exists());
    assert_eq!(json(&out.join("folds.json"))["folds"].as_array().unwrap().len(), 2);

    fs::write(out.join("notes.txt"), "mine").unwrap();
    refused(
        &out,
        &["--folds=2", "--epochs=1", "--force"],
        64,
        "found notes.txt, expected a cross-validation",
    );
    let training = world.out("training");
    world.train(&training, &["--epochs=1"]);
    for more in [&["--folds=2"][..], &["--folds=2", "--resume"], &["--folds=2", "--force"]] {
        refused(&training, more, 64, "already exists: found ");
    }
    assert!(training.join("model").exists());
}

#[test]
fn folds_without_rows_and_flags_that_contradict_folds_are_refused() {
    let world = World::new();
    let out = world.out("out");
    for (flags, code, expected) in [
        (&["--folds=1"][..], 64, "expected a whole number from 2 to 100"),
        (&["--folds=2", "--test=other.h5"], 64, "cannot be used with"),
        (
            &["--folds=2", "--resume=out/fold-1/checkpoints/step-000000003"],
            64,
            "--resume takes no folder with --folds",
        ),
    ] {
        let (found, told) = ended(world.fit(&out, flags));
        assert_eq!(found, Some(code), "{told}");
        assert!(told.contains(expected), "{told}");
    }
    // All rows have one of two split numbers.
    let (folder, dataset) = dataset_of(60, 50, |at| Row { split: 100 + 800 * (at % 2) as u16, ..review(at) });
    let few = World { folder, dataset };
    let (code, told) = ended(few.fit(&out, &["--folds=3"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("--folds is 3, expected fewer folds, because fold 2 has no rows"), "{told}");
    assert!(!out.exists());
    // All rows of label 1 are in the last fold, so its training split has only label 0.
    let (folder, dataset) = dataset_of(300, 50, |at| {
        let row = review(at);
        let split = if row.label == 1 { 900 } else { 100 + (at % 90) as u16 * 10 };
        Row { split, ..row }
    });
    let apart = World { folder, dataset };
    let (code, told) = ended(apart.fit(&out, &["--folds=3"]));
    assert_eq!(code, Some(65), "{told}");
    assert!(told.contains("training") && !told.contains("fold 1 of 3"), "{told}");
    assert!(!out.exists());
}

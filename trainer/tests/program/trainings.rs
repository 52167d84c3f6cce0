//! The beginning and the end of a training, and its evaluation.

use std::fs;
use std::path::Path;

use fixtures::{reviews, word};
use serde_json::Value;

use super::Job;
use crate::command::{ended, trainer};

#[test]
fn a_training_begins_with_a_saved_model_or_with_word_vectors() {
    let job = Job::new();
    job.train("first", 1, &[]);
    let loss = |name: &str| job.losses(name)[0];

    let model = job.out("first").join("model");
    // The learning rate is so small that no weight changes.
    job.train("second", 1, &["--init-from", model.to_str().unwrap(), "--epochs", "1", "--rate", "1e-30"]);
    assert!(job.weights("second") == job.weights("first"));

    let (code, told) = ended(job.fit("more", &["--init-from", model.to_str().unwrap(), "--layers", "3"]));
    assert_eq!(code, Some(78), "{told}");
    let expected = format!("--layers is 3, expected 2 as in {} (--init-from)", model.display());
    assert!(told.contains(&expected), "{told}");

    let vectors = job.out("words.vec");
    fs::write(&vectors, format!("2 8\n{} 1 2 3 4 5 6 7 8\nelsewhere 0 0 0 0 0 0 0 0\n", word(3))).unwrap();
    job.train("third", 1, &["--init-from", vectors.to_str().unwrap(), "--epochs", "1"]);
    assert!(loss("third") != loss("first"));

    fs::write(&vectors, format!("{} 1 2 3\n", word(3))).unwrap();
    let (code, told) = ended(job.fit("fourth", &["--init-from", "nowhere"]));
    assert_eq!(code, Some(66), "{told}");
    assert!(
        told.contains("nowhere: --init-from is missing: no such file or folder, expected a model folder"),
        "{told}"
    );
    let (code, told) = ended(job.fit("fourth", &["--init-from", vectors.to_str().unwrap()]));
    assert_eq!(code, Some(78), "{told}");
    let expected = "words.vec, vectors of 3 dimensions, expected vectors of 8 dimensions, or --embedding 3";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn it_ends_early_at_a_loss_or_without_progress_and_keeps_the_best_weights() {
    let job = Job::new();
    job.train("stopped", 1, &["--stop-loss", "100", "--epochs", "50"]);
    assert_eq!(job.metrics("stopped", "epoch").len(), 1);

    // The rate is so high that the model gets worse.
    let settings = ["--validation-fraction", "0.2", "--patience", "2", "--epochs", "50", "--rate", "0.3"];
    job.train("patient", 1, &settings);
    let losses: Vec<f64> = job
        .metrics("patient", "epoch")
        .iter()
        .map(|line| line["validation"]["loss"].as_f64().unwrap())
        .collect();
    assert!(losses.len() < 50);
    let best = losses.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!(losses.iter().rposition(|&loss| loss == best), Some(losses.len() - 3));
}

#[test]
fn several_datasets_are_evaluated_by_a_trainings_folder_a_line_each() {
    let job = Job::new();
    job.train("out", 1, &["--epochs", "1"]);
    let (_data, other) = reviews(301);
    let evaluate = |model: &Path, datasets: &[&Path]| {
        let mut command = trainer();
        command.arg("evaluate").arg(model).args(datasets).args(["--device", "cpu"]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };

    let both = evaluate(&job.out("out"), &[&job.dataset, &other]);

    assert_eq!(both.iter().map(|line| &line["rows"]).collect::<Vec<_>>(), [600, 301]);
    assert_eq!(both[1]["dataset"], other.to_str().unwrap());
    assert_eq!(evaluate(&job.out("out/model"), &[&other]), both[1..]);
}

#[test]
fn the_end_of_a_training_tells_three_figures_beside_the_larger_class() {
    let job = Job::new();
    let outcome = |name: &str, more: &[&str]| {
        let (code, told) = ended(job.fit(name, more));
        assert_eq!(code, Some(0), "{told}");
        let from = told.find("trainer: accuracy ").unwrap_or_else(|| panic!("{told}"));
        told[from..].lines().map(str::to_owned).collect::<Vec<_>>()
    };

    // The model learns nothing, so it predicts the same label for all rows.
    let nothing = outcome("nothing", &["--rate", "1e-30", "--epochs", "1"]);

    let test = job.metrics("nothing", "test").remove(0)["metrics"].clone();
    let number = |name: &str| test[name].as_f64().unwrap();
    let accuracy = format!("trainer: accuracy {:.4} [95 %: ", number("accuracy"));
    let rows = format!("] on {} test rows (", test["rows"]);
    assert!(nothing[0].starts_with(&accuracy) && nothing[0].contains(&rows), "{nothing:?}");
    let f1 = format!("trainer: F1       {:.4} [95 %: ", number("f1"));
    assert!(nothing[1].starts_with(&f1) && nothing[1].contains("] ("), "{nothing:?}");
    let auc = format!("trainer: AUC      {:.4} [95 %: ", number("auc"));
    assert!(nothing[2].starts_with(&auc) && nothing[2].contains("] ("), "{nothing:?}");
    assert!(
        nothing[3]
            .starts_with("trainer: the accuracy is not above that of the majority-class baseline (label "),
        "{nothing:?}"
    );

    let learned = outcome("learned", &["--rate", "0.05", "--epochs", "6"]);
    assert!(learned[3].starts_with("trainer: the model is in "), "{learned:?}");
}

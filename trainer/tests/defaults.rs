//! Defaults of `fit`: the recipe, the settings that depend on the number of rows, and the epoch whose weights are
//! saved.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::Path;

use fixtures::{dataset_of, review, reviews};
use serde_json::{Value, json};

/// Trains to the end. Returns the output.
fn fit(dataset: &Path, out: &Path, more: &[&str]) -> String {
    let mut command = command::trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out);
    let output = command.args(["--device", "cpu"]).args(more).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    said
}

fn settings(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("settings.json")).unwrap()).unwrap()
}

fn weights(out: &Path) -> Vec<u8> {
    fs::read(out.join("model/model.safetensors")).unwrap()
}

/// The recipe without the fields that depend on the dataset.
fn recipe(out: &Path) -> Value {
    let mut recipe = settings(out)["recipe"].clone();
    recipe.as_object_mut().unwrap().remove("dataset");
    recipe
}

#[test]
fn the_original_recipe_is_the_earlier_systems_as_a_whole() {
    let (folder, dataset) = reviews(600);
    let out = folder.path().join("original");
    let said = fit(&dataset, &out, &["--recipe", "original"]);
    let expected = json!({
        "plan": null,
        "test_fraction": 0.1,
        "validation_fraction": 0.0,
        "tokens_max": 0,
        "model": {
            "ids": 52,
            "embedding": 100,
            "hidden": 32,
            "layers": 2,
            "bidirectional": false,
        },
        "embedding_std": 1.0,
        "family": {
            "classifier": { "objective": { "label": { "pos_weight": 0.2 } }, "pool": "last", "linear": 32 },
        },
        "row_weight": "one",
        "batch_rows": 128,
        "accumulate": 1,
        "epochs": 10,
        "rule": { "sgd": { "momentum": 0.9 } },
        "weight_decay": 0.0,
        "schedule": {
            "base_rate": 0.1,
            "base_batch_rows": 128,
            "batch_rows": 128,
            "warm_up_steps": 0,
            "decay": "constant",
        },
        "clip": null,
        "dropout": { "words": 0.0, "embedding": 0.0, "layers": 0.5, "head": 0.0 },
        "precision": "f32",
        "seed": 1,
        "patience": null,
        "stop_loss": null,
    });
    assert_eq!(recipe(&out), expected);
    assert!(!said.contains("chosen for") && !said.contains("kept epoch"), "{said}");
}

#[test]
fn an_option_that_is_given_overrides_its_recipe() {
    let (folder, dataset) = reviews(600);
    let out = folder.path().join("out");
    let more = ["--recipe", "original", "--epochs", "1", "--optimizer", "adam", "--pool", "mean-max"];
    fit(&dataset, &out, &[&more[..], &["--loss", "rating"]].concat());
    let found = recipe(&out);
    assert_eq!((&found["epochs"], &found["rule"]), (&json!(1), &json!("adam")));
    // The rate depends on the optimizer: Adam diverges with the rate of SGD.
    assert_eq!(found["schedule"]["base_rate"], json!(0.002));
    assert_eq!(found["family"]["classifier"]["pool"], json!("mean-max"));
    assert_eq!((&found["batch_rows"], &found["model"]["layers"]), (&json!(128), &json!(2)));
    // The objective `rating` has no weight of positive rows.
    assert_eq!(found["family"]["classifier"]["objective"], json!("rating"));
}

#[test]
fn what_follows_from_the_number_of_rows_is_told_and_kept_in_settings_json() {
    let (folder, dataset) = reviews(600);
    let [plain, given] = ["plain", "given"].map(|name| folder.path().join(name));
    let said = fit(&dataset, &plain, &[]);
    let rows = settings(&plain)["dataset"]["rows"][0].as_u64().unwrap();
    assert!(
        said.contains(&format!(
            "trainer: batch 16, epochs 10, dropout-words 0.3: chosen for {rows} training rows\n"
        )),
        "{said}"
    );
    let found = recipe(&plain);
    assert_eq!((&found["batch_rows"], &found["epochs"]), (&json!(16), &json!(10)));
    assert_eq!(found["embedding_std"], json!(0.1));
    assert_eq!(found["schedule"]["decay"]["linear"]["end_step"], json!(10 * rows.div_ceil(16)));

    let said = fit(&dataset, &given, &["--batch", "64"]);
    assert!(
        said.contains(&format!("trainer: epochs 10, dropout-words 0.3: chosen for {rows} training rows\n")),
        "{said}"
    );
    assert_eq!(recipe(&given)["batch_rows"], json!(64));
    fs::remove_dir_all(&given).unwrap();
    let said = fit(&dataset, &given, &["--batch", "64", "--epochs", "1", "--dropout-words", "0"]);
    assert!(!said.contains("chosen for"), "{said}");
    assert!(said.contains("kept epoch 1 of 1: validation loss "), "{said}");
}

#[test]
fn the_epoch_with_the_least_validation_loss_is_kept_and_named() {
    let (folder, dataset) = reviews(600);
    let [out, best] = ["out", "best"].map(|name| folder.path().join(name));
    // The rate is so high that the model gets worse.
    let more = ["--rate", "0.3", "--decay", "constant", "--batch", "32"];
    let said = fit(&dataset, &out, &[&more[..], &["--epochs", "8"]].concat());

    let epochs = command::events(&out, "epoch");
    let losses: Vec<f64> = epochs.iter().map(|epoch| epoch["validation"]["loss"].as_f64().unwrap()).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let epoch = 1 + losses.iter().position(|&loss| loss == least).unwrap();
    assert!(epoch < 8, "{losses:?}");
    assert!(said.contains(&format!("kept epoch {epoch} of 8: validation loss {least:.4}\n")), "{said}");

    // The rate does not depend on the number of epochs here, so a training that ends after this epoch has the
    // same weights.
    fit(&dataset, &best, &[&more[..], &["--epochs", &epoch.to_string()]].concat());
    assert!(weights(&out) == weights(&best));
}

#[test]
fn a_plain_training_is_resumed_with_the_same_defaults() {
    let (folder, dataset) = reviews(600);
    let [whole, resumed] = ["whole", "resumed"].map(|name| folder.path().join(name));
    fit(&dataset, &whole, &[]);
    fit(&dataset, &resumed, &["--checkpoint-steps", "70"]);
    fs::remove_dir_all(resumed.join("model")).unwrap();
    let said = fit(&dataset, &resumed, &["--resume"]);
    assert!(said.contains("resuming after step 280, in epoch "), "{said}");
    assert!(weights(&resumed) == weights(&whole));
}

#[test]
fn so_few_rows_that_none_is_for_validation_train_without() {
    // All split numbers of these rows are 50 or more.
    let (folder, dataset) = dataset_of(8, 50, |at| review(at + 2));
    let out = folder.path().join("out");
    let said = fit(&dataset, &out, &["--test-fraction", "0"]);
    assert_eq!(recipe(&out)["validation_fraction"], json!(0.0));
    assert!(!said.contains("kept epoch"), "{said}");
}

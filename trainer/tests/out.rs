//! Output folders of commands. They are checked before any input is read, locked by one process at a time, and
//! never mixed with existing files.
#![allow(clippy::unwrap_used)]

mod command;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use command::{ended, run, trainer};
use fixtures::free_port;
use fixtures::reviews;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;
use tests::ranks::{Rank, placed};

const MISSING: &str = "no-such-dataset.h5";

fn fit(dataset: &Path, out: &Path, more: &[&str]) -> Command {
    command::fit(dataset, out, &[&["--tokens", "20", "--log-steps", "1"], more].concat())
}

fn trained(dataset: &Path, out: &Path, more: &[&str]) {
    let (code, told) = ended(fit(dataset, out, more));
    assert_eq!(code, Some(0), "{told}");
}

/// All files below a folder, with their content.
fn content(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(content(&path)),
            false => found.push((path.clone(), fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A dataset, and an unused path beside it.
fn data_and_out() -> (TempDir, PathBuf, PathBuf) {
    let (data, dataset) = reviews(600);
    let out = data.path().join("out");
    (data, dataset, out)
}

#[test]
fn a_second_training_in_a_folder_that_is_held_is_refused_and_the_first_goes_on() {
    let (_data, dataset, out) = data_and_out();
    let mut first = Rank::start(0, fit(&dataset, &out, &["--epochs", "100000"]));
    first.wait_for(" step 5: ");

    for more in [&[][..], &["--resume"], &["--epochs", "100000", "--resume"]] {
        let (code, told) = ended(fit(&dataset, &out, more));
        assert_eq!(code, Some(75), "{told}");
        assert!(told.contains("out: process ") && told.contains(" is training in this folder"), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }

    // The lock is released when its process exits.
    first.signal(Signal::KILL);
    first.end();
    assert!(out.join("lock").exists());
    trained(&dataset, &out.with_file_name("other"), &[]);
    let mut second = Rank::start(0, fit(&dataset, &out, &["--epochs", "100000", "--resume"]));
    second.wait_for("no checkpoint to resume from: starting from the first step");
    second.wait_for(" step 5: ");
    second.signal(Signal::TERM);
    assert_eq!(second.end().0, Some(75));
    assert!(!out.join("lock").exists());
}

#[test]
fn all_ranks_end_where_another_job_holds_the_folder() {
    let (_data, dataset, out) = data_and_out();
    let mut first = Rank::start(0, fit(&dataset, &out, &["--epochs", "100000"]));
    first.wait_for(" step 5: ");
    let port = free_port();
    let mut ranks: Vec<Rank> =
        (0..2).map(|rank| Rank::start(rank, placed(fit(&dataset, &out, &[]), rank, 2, port))).collect();
    for rank in &mut ranks {
        let (code, output) = rank.end();
        assert_eq!(code, Some(75), "{output:?}");
        assert!(output.last().unwrap().contains(" is training in this folder"), "{output:?}");
    }
}

#[test]
fn an_occupied_folder_is_refused_and_left_as_it_is() {
    let (data, dataset, out) = data_and_out();
    trained(&dataset, &out, &[]);
    let stopped = data.path().join("stopped");
    let mut interrupted = Rank::start(0, fit(&dataset, &stopped, &["--epochs", "100000"]));
    interrupted.wait_for(" step 5: ");
    interrupted.signal(Signal::TERM);
    assert_eq!(interrupted.end().0, Some(75));
    let killed = data.path().join("killed");
    let mut rank = Rank::start(0, fit(&dataset, &killed, &["--epochs", "100000"]));
    rank.wait_for(" step 5: ");
    rank.signal(Signal::KILL);
    rank.end();
    let other = data.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("notes.txt"), "mine").unwrap();

    let training = "already exists: found a training, expected a new name or an empty folder; resume it with --resume, \
                    replace it with --force, or choose another --out";
    let model =
        "already exists: found a model folder, expected a new name or an empty folder; choose another --out";
    for (folder, more, expected) in [
        (out.clone(), &[][..], training),
        (stopped, &[], training),
        (killed, &["--epochs", "100000"], training),
        (out.join("model"), &[], model),
        (out.join("model"), &["--resume"], model),
        (
            other.clone(),
            &[],
            "already exists: found notes.txt, expected a new name or an empty folder; choose another",
        ),
        (other, &["--resume"], "already exists: found notes.txt"),
    ] {
        let before = content(&folder);
        let (code, told) = ended(fit(&dataset, &folder, more));
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains(expected) && told.lines().count() == 1, "{told}");
        let after = content(&folder);
        assert!(before.iter().filter(|(path, _)| !path.ends_with("lock")).all(|file| after.contains(file)));
    }
    let before = content(&out);
    for command in ["export", "report"] {
        let mut trainer = trainer();
        trainer.arg(command).arg(if command == "export" { out.join("model") } else { out.clone() });
        trainer.arg("--out").arg(out.join(if command == "export" { "model" } else { "settings.json" }));
        let (code, told) = ended(trainer);
        assert_eq!((code, told.lines().count()), (Some(64), 1), "{told}");
        assert!(told.contains("already exists"), "{told}");
    }
    assert!(content(&out) == before);
}

#[test]
fn a_training_that_has_only_settings_is_replaced() {
    let (data, dataset, out) = data_and_out();
    trained(&dataset, &out, &["--seed", "1"]);
    let begun = data.path().join("begun");
    fs::create_dir(&begun).unwrap();
    fs::copy(out.join("settings.json"), begun.join("settings.json")).unwrap();
    trained(&dataset, &begun, &["--seed", "2"]);
    assert!(begun.join("model").is_dir());
}

#[test]
fn a_folder_that_is_empty_is_used() {
    let (_data, dataset, out) = data_and_out();
    fs::create_dir(&out).unwrap();
    trained(&dataset, &out, &[]);
    assert!(out.join("model").is_dir());
    assert!(!names(&out).contains(&"lock".to_owned()));
}

#[test]
fn a_complete_training_is_said_to_be_complete_by_one_rank_and_by_two() {
    let (_data, dataset, out) = data_and_out();
    trained(&dataset, &out, &["--checkpoint-steps", "10"]);
    let before = content(&out);
    let resumed = || fit(&dataset, &out, &["--checkpoint-steps", "10", "--resume"]);
    let mut launched = trainer();
    launched.args(["launch", "--nproc", "2", "--"]).args(resumed().get_args());
    for command in [resumed(), launched] {
        let (code, told) = ended(command);
        assert_eq!(code, Some(0), "{told}");
        assert!(told.contains("already complete: the model is in "), "{told}");
        assert!(content(&out) == before);
    }
}

#[test]
fn a_complete_training_is_not_said_to_have_had_other_settings() {
    let (_data, dataset, out) = data_and_out();
    trained(&dataset, &out, &[]);
    let (code, told) = ended(fit(&dataset, &out, &["--epochs", "2", "--resume"]));
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("found a complete training with --epochs 1, expected 2; "), "{told}");
    assert!(told.contains("--init-from "), "{told}");
}

#[test]
fn a_complete_training_of_an_older_version_is_complete() {
    let (_data, dataset, out) = data_and_out();
    trained(&dataset, &out, &[]);
    let path = out.join("settings.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    settings["version"] = 1.into();
    let recipe = settings["recipe"].as_object_mut().unwrap();
    recipe.remove("family").unwrap();
    recipe.insert("task".to_owned(), serde_json::json!({"sentiment": {"label": {"pos_weight": 1.0}}}));
    fs::write(&path, settings.to_string()).unwrap();
    let (code, told) = ended(fit(&dataset, &out, &["--resume"]));
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("already complete: the model is in "), "{told}");
}

#[test]
fn a_place_that_takes_no_result_is_refused_before_the_input_is_read() {
    let within = tempfile::tempdir().unwrap();
    for [command, input] in [["fit", MISSING], ["export", "no-such-model"], ["report", "no-such-run"]] {
        for (out, code, expected) in [
            ("gs://bucket/x", 64, "gs:// is not supported here, expected a local path or s3://bucket/name"),
            ("https://KEY:SECRET@example.com/x", 64, "https:// is not supported here, expected a local path"),
            ("a/b/c", 64, "a/b: no such folder, expected one to write into; create it with mkdir -p"),
            // Even the superuser cannot create files in this folder.
            ("/sys/x", 74, "/sys"),
        ] {
            let mut trainer = trainer();
            trainer.args([command, input, "--out", out]).current_dir(within.path());
            let (found, told) = ended(trainer);
            assert_eq!(found, Some(code), "{command} --out {out}: {told}");
            assert!(told.contains(expected) && !told.contains("SECRET"), "{command} --out {out}: {told}");
            assert_eq!(names(within.path()), [""; 0], "{command} --out {out}");
        }
    }
}

#[test]
fn a_file_is_no_folder_for_a_training() {
    let within = tempfile::tempdir().unwrap();
    fs::write(within.path().join("file"), "kept").unwrap();
    let mut trainer = trainer();
    trainer.args(["fit", MISSING, "--out", "file"]).current_dir(within.path());
    let (code, told) = ended(trainer);
    assert_eq!(code, Some(64), "{told}");
    assert!(
        told.contains("file: already exists: found a file, expected a new name or an empty folder; "),
        "{told}"
    );
    assert_eq!(fs::read_to_string(within.path().join("file")).unwrap(), "kept");
}

#[test]
fn without_out_a_training_has_the_name_of_its_dataset_and_quiet_prints_only_the_summary() {
    let (data, dataset) = reviews(300);
    let within = data.path().join("within");
    fs::create_dir(&within).unwrap();
    let mut fit = trainer();
    fit.arg("fit").arg(&dataset).args(["--device", "cpu", "--epochs", "1", "--quiet", "--json"]);
    fit.args(["--embedding", "8", "--hidden", "16", "--linear", "5"]).current_dir(&within);
    let (code, said, told) = run(fit);
    assert_eq!((code, told.as_str()), (Some(0), ""));
    let stem = dataset.file_stem().unwrap().to_string_lossy().into_owned();
    let name = format!("{stem}.model");
    assert_eq!(names(&within), std::slice::from_ref(&name));
    let summary: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(summary["training"], name.as_str());
    assert_eq!(summary["epochs"], 1);
    assert!(summary["evaluation"]["accuracy"].is_number(), "{summary}");

    let mut export = trainer();
    export.args(["export", &name]).current_dir(&within);
    let (code, told) = ended(export);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains(&format!("wrote {stem}.export: ")), "{told}");
    assert!(within.join(format!("{stem}.export/predict.py")).exists());
}

#[test]
fn force_replaces_a_training_and_an_export_of_ours_and_nothing_else() {
    let (data, dataset, out) = data_and_out();
    trained(&dataset, &out, &["--checkpoint-steps", "10"]);
    let weights = || fs::read(out.join("model/model.safetensors")).unwrap();
    let first = weights();

    trained(&dataset, &out, &["--seed", "2", "--force"]);
    assert!(weights() != first);
    assert!(!names(&out).iter().any(|name| name == "checkpoints"), "{:?}", names(&out));

    let exported = data.path().join("exported");
    let export = |more: &[&str]| {
        let mut export = trainer();
        export.arg("export").arg(&out).arg("--out").arg(&exported).args(more);
        ended(export)
    };
    assert_eq!(export(&[]).0, Some(0));
    let (code, told) = export(&[]);
    assert_eq!(code, Some(64), "{told}");
    assert!(
        told.contains("already exists: found a model folder, expected a new name; replace it with --force"),
        "{told}"
    );
    assert_eq!(export(&["--force"]).0, Some(0));

    // A file of the user, or a changed one, is never deleted.
    for (folder, name) in [(&out, "notes.txt"), (&out, "model/notes.txt"), (&exported, "notes.txt")] {
        fs::write(folder.join(name), "mine").unwrap();
        let before = content(folder);
        let (code, told) = match folder == &out {
            true => ended(fit(&dataset, &out, &["--force"])),
            false => export(&["--force"]),
        };
        assert_eq!(code, Some(64), "{told}");
        assert!(told.contains("notes.txt") && told.contains("nothing was changed"), "{told}");
        assert!(content(folder) == before);
        fs::remove_file(folder.join(name)).unwrap();
    }
    fs::write(out.join("model/vocabulary.txt"), "changed").unwrap();
    let (code, told) = ended(fit(&dataset, &out, &["--force"]));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("vocabulary.txt"), "{told}");
    assert!(names(data.path()).iter().all(|name| !name.starts_with('.')), "{:?}", names(data.path()));
}

#[test]
fn force_never_deletes_the_initial_weights_or_the_checkpoints_of_a_restarted_training() {
    let (_data, dataset, out) = data_and_out();
    trained(&dataset, &out, &[]);
    let before = content(&out);
    let (code, told) = ended(fit(&dataset, &out, &["--force", "--init-from", out.to_str().unwrap()]));
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("found the weights of --init-from, which --force would delete"), "{told}");

    let mut restarted = fit(&dataset, &out, &["--force"]);
    restarted.envs([
        ("RANK", "0"),
        ("WORLD_SIZE", "1"),
        ("LOCAL_RANK", "0"),
        ("MASTER_ADDR", "127.0.0.1"),
        ("MASTER_PORT", "0"),
        ("TORCHELASTIC_RESTART_COUNT", "1"),
    ]);
    let (code, told) = ended(restarted);
    assert_eq!(code, Some(64), "{told}");
    assert!(told.contains("pass --resume in place of --force"), "{told}");
    assert!(content(&out) == before);
}

#[test]
fn an_unfinished_training_is_no_model_and_a_training_folder_no_checkpoint() {
    let (_data, dataset, out) = data_and_out();
    trained(&dataset, &out, &["--checkpoint-steps", "10"]);
    fs::remove_dir_all(out.join("model")).unwrap();
    let (code, told) = ended(fit(&dataset, &out, &["--resume", out.to_str().unwrap()]));
    assert_eq!(code, Some(66), "{told}");
    assert!(told.contains("--resume is a training folder, expected a checkpoint; pass --out"), "{told}");

    let mut evaluate = trainer();
    evaluate.arg("evaluate").arg(&out).arg(&dataset);
    let (code, told) = ended(evaluate);
    assert_eq!(code, Some(66), "{told}");
    assert!(told.contains("without a model") && told.contains("--resume`"), "{told}");
    let mut report = trainer();
    report.arg("report").arg(&dataset).arg("--out").arg(out.with_file_name("page.html"));
    let (code, told) = ended(report);
    assert_eq!(code, Some(66), "{told}");
    assert!(told.contains("a file, expected a training folder"), "{told}");
}

#[test]
fn raw_lines_are_refused_with_the_program_that_reads_them() {
    let within = tempfile::tempdir().unwrap();
    // The default output is refused, too, but the user named only the input.
    fs::create_dir(within.path().join("reviews.model")).unwrap();
    fs::write(within.path().join("reviews.model/notes"), "").unwrap();
    for (name, bytes, kind) in [
        ("reviews.json", &b"{\"reviewText\": \"good\"}\n"[..], "a JSON file"),
        ("reviews.json.gz", b"\x1f\x8b\x08\0", "a gzip-compressed file"),
        ("reviews.csv", b"\"1\",\"good\"\n", "a text file"),
    ] {
        let fields = if name == "reviews.csv" { "--text-field COLUMN --rating-field COLUMN " } else { "" };
        fs::write(within.path().join(name), bytes).unwrap();
        let mut fit = trainer();
        fit.args(["fit", name]).current_dir(within.path());
        let (code, told) = ended(fit);
        assert_eq!(code, Some(66), "{told}");
        let expected = format!(
            "{name}: {kind}, expected a dataset written by sentimill or merge; make one with \
             `sentimill {name} {fields}--out reviews.h5`"
        );
        assert!(told.contains(&expected), "{told}");
    }
}

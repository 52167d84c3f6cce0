//! Searches for settings: their time, their trials, the printed command, an interrupted search, and inputs that are refused.
#![allow(clippy::unwrap_used)]

mod command;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use command::{program, run, trainer};
use fixtures::reviews;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Lines of fastText's format. Words for the label are in both orders, so that pairs of words help.
fn lines(n: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut lines = String::new();
    for _ in 0..n {
        let label = draw(2);
        let _ = write!(lines, "__label__{}", ["bad", "good"][label]);
        for _ in 0..6 {
            let _ = write!(lines, " w{}", draw(60));
        }
        let said = if draw(8) == 0 { 1 - label } else { label };
        let _ = write!(lines, " {}", ["not fine", "fine not"][said]);
        for _ in 0..6 {
            let _ = write!(lines, " w{}", draw(60));
        }
        lines.push('\n');
    }
    lines
}

/// A folder with `train.txt` and `dev.txt`.
fn corpus() -> (TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (train, dev) = (folder.path().join("train.txt"), folder.path().join("dev.txt"));
    fs::write(&train, lines(1500, 1)).unwrap();
    fs::write(&dev, lines(500, 2)).unwrap();
    (folder, train, dev)
}

/// A search on one thread, which is repeatable.
fn ngrams(train: &Path, dev: &Path, more: &[&str]) -> Command {
    let mut command = program("ngrams");
    command.args(["autotune", "--format", "fasttext", "--threads", "1", "--input"]).arg(train);
    command.arg("--validation").arg(dev).args(more);
    command
}

/// The object that a search with `--json` prints, and its messages.
#[track_caller]
fn found(mut command: Command) -> (Value, String) {
    command.arg("--json");
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    (serde_json::from_str(&said).unwrap(), told)
}

fn settings(trial: &Value) -> Vec<&str> {
    trial["settings"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

fn all_settings(found: &Value) -> Vec<Vec<&str>> {
    found["trials"].as_array().unwrap().iter().map(settings).collect()
}

#[test]
fn the_printed_command_trains_a_model_with_the_printed_accuracy() {
    let (folder, train, dev) = corpus();
    let log = folder.path().join("trials.jsonl");
    let out = folder.path().join("it's best");
    let flags = ["--minutes", "5", "--trials", "12", "--log", log.to_str().unwrap(), "--out"];
    let mut command = ngrams(&train, &dev, &flags);
    command.arg(&out);
    let (code, said, told) = run(command);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("ngrams: best of 12 trials"), "{told}");

    // Word by word as a shell reads it.
    assert_eq!(said.lines().count(), 1, "{said}");
    let shell = said.replacen("ngrams", program("ngrams").get_program().to_str().unwrap(), 1);
    let mut command = Command::new("sh");
    command.args(["-c", &shell]);
    let (code, _, told) = run(command);
    assert_eq!(code, Some(0), "{said}{told}");
    let mut evaluate = program("ngrams");
    evaluate.arg("evaluate").arg(&out).arg(&dev).args(["--format", "fasttext"]);
    let (_, evaluated, _) = run(evaluate);
    let evaluated: Value = serde_json::from_str(&evaluated).unwrap();

    let trials: Vec<Value> =
        fs::read_to_string(&log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(trials.len(), 12);
    let best = trials.iter().filter_map(|trial| trial["accuracy"].as_f64()).fold(0.0, f64::max);
    assert_eq!(evaluated["accuracy"].as_f64().unwrap(), best, "{said}");
    // The label is in the order of two words, which a single word does not show.
    assert!(best > 0.8, "{best}");
}

#[test]
fn a_seed_gives_the_same_trials_and_the_metric_chooses_the_best() {
    let (_folder, train, dev) = corpus();
    let search = |more: &[&str]| {
        let flags = ["--minutes", "5", "--trials", "10", "--model", "fasttext"];
        found(ngrams(&train, &dev, &[&flags[..], more].concat())).0
    };
    let first = search(&["--seed", "3"]);
    let second = search(&["--seed", "3", "--metric", "loss"]);
    assert_eq!(all_settings(&first)[0], Vec::<&str>::new());
    assert_eq!(settings(&first["default"]), Vec::<&str>::new());
    assert_eq!(all_settings(&first), all_settings(&search(&["--seed", "3"])));
    assert_ne!(all_settings(&first), all_settings(&search(&["--seed", "4"])));
    assert_eq!((&first["metric"], &second["metric"]), (&"accuracy".into(), &"loss".into()));
    let of = |found: &Value, name: &str| -> Vec<f64> {
        found["trials"].as_array().unwrap().iter().map(|trial| trial[name].as_f64().unwrap()).collect()
    };
    let most = of(&first, "accuracy").into_iter().fold(f64::MIN, f64::max);
    let least = of(&second, "loss").into_iter().fold(f64::MAX, f64::min);
    assert_eq!(first["best"]["accuracy"], most);
    assert_eq!(second["best"]["loss"], least);
}

#[test]
fn flags_that_were_passed_are_those_of_all_trials() {
    let (_folder, train, dev) = corpus();
    let flags = ["--minutes", "5", "--trials", "25", "--ngrams", "2", "--words", "spaces", "--quiet"];
    let (both, told) = found(ngrams(&train, &dev, &flags));
    assert_eq!(told, "");
    let trials = all_settings(&both);
    assert_eq!(trials.len(), 25);
    let has = |flag: &str| trials.iter().any(|settings| settings.contains(&flag));
    assert!(has("fasttext") && has("--epochs") && !has("--ngrams") && !has("--words"), "{trials:?}");
    let command = both["command"].as_str().unwrap();
    assert!(
        command.contains(" --ngrams 2 --words spaces ") && command.contains(" --threads 1 "),
        "{command}"
    );
    for flag in ["--minutes", "--validation", "--trials", "--json", "--quiet"] {
        assert!(!command.contains(flag), "{command}");
    }
    // A flag of one model selects it. If all flags are passed, there is one trial.
    let flags = ["--minutes", "5", "--trials", "10", "--dim", "5"];
    let (one, _) = found(ngrams(&train, &dev, &flags));
    assert!(all_settings(&one).iter().all(|settings| !settings.contains(&"--model")), "{one}");
    let all = "--minutes 5 --model linear --ngrams 1 --min-count 1 --buckets 1024 --weights nb --loss logistic --c 1 \
               --epochs 1 --words spaces";
    let (one, told) = found(ngrams(&train, &dev, &all.split(' ').collect::<Vec<_>>()));
    assert_eq!((all_settings(&one), &one["end"]), (vec![vec![]], &"exhausted".into()));
    assert!(told.contains("all settings were tried"), "{told}");
}

#[test]
fn a_search_ends_within_its_time_also_if_a_trial_takes_longer() {
    let (_folder, train, dev) = corpus();
    for model in ["linear", "fasttext"] {
        let began = Instant::now();
        // The first trial would take hours.
        let flags = ["--minutes", "0.05", "--model", model, "--epochs", "100000"];
        let (code, said, told) = run(ngrams(&train, &dev, &flags));
        let seconds = began.elapsed().as_secs_f64();
        assert_eq!((code, said.as_str()), (Some(78), ""), "{told}");
        assert!(
            told.ends_with(
                "ngrams: --minutes is 0.05, expected a longer time, because no trial ended within it"
            ),
            "{told}"
        );
        assert!(seconds < 3.0 + MARGIN_S, "{model}: {seconds}");
    }
    // On a busy machine, few trials or none end within a short time.
    let has_trials = |minutes: f64| {
        let began = Instant::now();
        let (code, said, told) = run(ngrams(&train, &dev, &["--minutes", &minutes.to_string(), "--json"]));
        let seconds = began.elapsed().as_secs_f64();
        assert!((40.0 * minutes..60.0 * minutes + MARGIN_S).contains(&seconds), "{seconds}: {told}");
        if code == Some(78) {
            return false;
        }
        let found: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((code, &found["end"]), (Some(0), &"time".into()), "{told}");
        found["trials"].as_array().unwrap().len() > 2
    };
    assert!([0.1, 0.5, 2.5].into_iter().any(has_trials), "no three trials in 2.5 minutes");
}

/// Time to start and to end a process on a busy machine. A trial that is not stopped takes hours.
const MARGIN_S: f64 = 100.0;

#[test]
fn an_interrupted_search_prints_the_best_settings() {
    let (folder, train, dev) = corpus();
    let log = folder.path().join("trials.jsonl");
    for signal in [Signal::INT, Signal::TERM] {
        let _ = fs::remove_file(&log);
        let mut command = ngrams(&train, &dev, &["--minutes", "60", "--log", log.to_str().unwrap()]);
        let process = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        await_lines(&log, 4);
        kill_process(Pid::from_child(&process), signal).unwrap();
        let output = process.wait_with_output().unwrap();
        let [said, told] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert_eq!(output.status.code(), Some(75), "{told}");
        assert!(said.starts_with("ngrams train --input "), "{said}");
        let last = told.trim_end().lines().last().unwrap();
        assert!(last.starts_with("ngrams: interrupted after "), "{told}");
        assert!(last.ends_with("; the printed settings are the best of them"), "{told}");
    }
}

/// Waits until a log has some lines.
fn await_lines(log: &Path, n: usize) {
    let began = Instant::now();
    while fs::read_to_string(log).unwrap_or_default().lines().count() < n {
        assert!(began.elapsed() < Duration::from_secs(300), "no {n} trials");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn inputs_that_cannot_be_searched_are_refused() {
    let (folder, train, dev) = corpus();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("one.txt"), "__label__good fine\n__label__good not fine\n").unwrap();
    fs::write(path("other.txt"), "__label__a fine\n__label__b not fine\n").unwrap();
    std::os::unix::fs::symlink(&train, path("linked.txt")).unwrap();
    let refused = |input: &Path, validation: &Path, minutes: &str| {
        let (code, said, told) = run(ngrams(input, validation, &["--minutes", minutes]));
        assert_eq!(said, "", "{told}");
        (code.unwrap(), told.lines().last().unwrap().to_owned())
    };
    let name = |name: &str| path(name).display().to_string();
    let same = "is also trained on, expected other texts; split the file into two";
    assert_eq!(
        refused(&train, &train, "1"),
        (64, format!("ngrams: --validation {}: {same}", train.display()))
    );
    let linked = refused(&train, &path("linked.txt"), "1");
    assert_eq!(linked, (64, format!("ngrams: --validation {}: {same}", name("linked.txt"))));
    let (code, told) = refused(&train, &path("missing.txt"), "1");
    assert!(code == 66 && told.contains(&name("missing.txt")), "{code} {told}");
    assert_eq!(
        refused(&train, &path("other.txt"), "1"),
        (
            65,
            format!(
                "ngrams: --validation {}: no text has a label of --input; validation texts need the labels and the \
                 --format of --input",
                name("other.txt")
            )
        )
    );
    assert_eq!(
        refused(&train, &path("one.txt"), "1"),
        (
            65,
            format!(
                "ngrams: --validation {}: every text has the label good; a comparison needs validation texts of at \
                 least two labels",
                name("one.txt")
            )
        )
    );
    let (code, told) = refused(&path("one.txt"), &dev, "1");
    assert!(code == 65 && told.contains("every text has the label good"), "{told}");
    let (code, told) = refused(Path::new("-"), &dev, "1");
    assert_eq!(
        (code, told.as_str()),
        (
            78,
            "ngrams: --input is -, expected files, because a search reads its texts several times; save the lines to a file"
        )
    );
    for minutes in ["0", "-1", "NaN"] {
        let (code, told) = refused(&train, &dev, minutes);
        let expected = format!(
            "ngrams: --minutes {minutes}: expected a number above 0 and at most 525600, such as 5; see --help"
        );
        assert_eq!((code, told), (64, expected));
    }
    let (code, _, told) = run(ngrams(&train, &dev, &["--minutes", "1", "--resume"]));
    assert_eq!(
        (code, told.as_str()),
        (Some(64), "ngrams: --resume has no effect in a search; omit --resume; see --help")
    );
    // The error of a training with the settings that were passed is that of the search.
    let (code, _, told) = run(ngrams(&train, &dev, &["--minutes", "1", "--rate", "1e30"]));
    assert!(code == Some(78) && told.contains("set a lower --rate than"), "{code:?} {told}");
}

/// A search on a dataset.
fn fit(dataset: &Path, more: &[&str]) -> Command {
    let mut command = trainer();
    command.args(["autotune"]).arg(dataset).args(["--device", "cpu"]).args(more);
    command
}

#[test]
fn settings_of_fit_are_searched_and_leave_no_files() {
    let (folder, dataset) = reviews(600);
    let temporary = tempfile::tempdir().unwrap();
    let small = ["--embedding", "8", "--hidden", "16", "--linear", "5", "--epochs", "1", "--batch", "32"];
    let mut command = fit(&dataset, &[&small[..], &["--minutes", "10", "--trials", "4"]].concat());
    command.env("TMPDIR", temporary.path()).current_dir(folder.path());
    let (found, told) = found(command);
    let trials = all_settings(&found);
    assert_eq!((trials.len(), trials[0].len()), (4, 0), "{told}");
    assert!(trials.iter().all(|settings| !settings.contains(&"--hidden")), "{trials:?}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert!(!folder.path().join("reviews.model").exists());

    let words: Vec<&str> =
        found["words"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert_eq!(words[..3], ["trainer", "fit", dataset.to_str().unwrap()]);
    let mut best = trainer();
    best.args(&words[1..]).arg("--json").arg("--out").arg(folder.path().join("best"));
    let (code, said, told) = run(best);
    assert_eq!(code, Some(0), "{told}");
    let summary: Value = serde_json::from_str(&said).unwrap();
    for metric in ["accuracy", "f1", "loss"] {
        assert_eq!(summary["validation"][metric], found["best"][metric], "{words:?}");
    }
}

#[test]
fn a_training_of_fit_that_is_worse_than_others_is_stopped() {
    let (_folder, dataset) = reviews(600);
    let small = ["--embedding", "8", "--hidden", "16", "--linear", "5", "--batch", "32", "--epochs", "4"];
    let search = || found(fit(&dataset, &[&small[..], &["--minutes", "10", "--trials", "8"]].concat())).0;
    let (once, again) = (search(), search());
    let stopped = |found: &Value| -> Vec<bool> {
        found["trials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|trial| trial["is_stopped"].as_bool().unwrap())
            .collect()
    };
    let of_once = stopped(&once);
    assert!(!of_once[0] && of_once.contains(&true) && of_once.len() == 8, "{once}");
    assert_eq!(once["best"]["is_stopped"], false);
    assert_eq!((all_settings(&once), of_once), (all_settings(&again), stopped(&again)));
}

#[test]
fn a_training_of_fit_is_killed_at_the_end_of_the_time_and_by_a_signal() {
    let (_folder, dataset) = reviews(600);
    let temporary = tempfile::tempdir().unwrap();
    let began = Instant::now();
    // Hours of training.
    let long = ["--epochs", "100000", "--hidden", "64", "--batch", "8"];
    let mut command = fit(&dataset, &[&long[..], &["--minutes", "0.1"]].concat());
    let (code, said, told) = run({
        command.env("TMPDIR", temporary.path());
        command
    });
    assert_eq!((code, said.as_str()), (Some(78), ""), "{told}");
    assert!(began.elapsed().as_secs_f64() < 6.0 + MARGIN_S, "{:?}", began.elapsed());
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);

    let mut command = fit(&dataset, &[&long[..], &["--minutes", "60"]].concat());
    command.env("TMPDIR", temporary.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let process = command.spawn().unwrap();
    let training = await_training(temporary.path());
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    let output = process.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(75), "{told}");
    assert!(told.ends_with("trainer: interrupted before a trial ended; run the command again\n"), "{told}");
    assert_eq!(fs::read_dir(temporary.path()).unwrap().count(), 0);
    assert!(!training.exists());
}

/// Waits until a trial has written the settings of its training. Returns its folder.
fn await_training(temporary: &Path) -> PathBuf {
    let began = Instant::now();
    loop {
        let folders = fs::read_dir(temporary).unwrap().map(|entry| entry.unwrap().path());
        let training = folders.map(|folder| folder.join("1/training")).next();
        if let Some(training) = training.filter(|training| training.join("settings.json").exists()) {
            return training;
        }
        assert!(began.elapsed() < Duration::from_secs(300), "no training");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_search_of_fit_needs_a_validation_split_and_a_training_that_succeeds() {
    let (_folder, dataset) = reviews(60);
    let refused = |more: &[&str]| {
        let (code, said, told) = run(fit(&dataset, &[&["--minutes", "1"], more].concat()));
        assert_eq!(said, "", "{told}");
        (code.unwrap(), told.lines().last().unwrap().to_owned())
    };
    let expected = "trainer: --validation-fraction is 0, expected above 0, or another dataset as --validation, because \
                    trials are compared on it";
    assert_eq!(refused(&["--validation-fraction", "0"]), (78, expected.to_owned()));
    assert_eq!(refused(&["--recipe", "original"]), (78, expected.to_owned()));
    let same = refused(&["--validation", dataset.to_str().unwrap()]);
    assert!(same.0 == 64 && same.1.contains("is also trained on"), "{same:?}");
    let folds = refused(&["--folds", "3"]);
    assert!(folds.0 == 64 && folds.1.contains("--folds cannot be searched; omit --folds"), "{folds:?}");
    // The message of the training.
    let missing = refused(&["--init-from", "missing.vec"]);
    assert!(missing.0 == 66 && missing.1.starts_with("trainer: missing.vec"), "{missing:?}");
}

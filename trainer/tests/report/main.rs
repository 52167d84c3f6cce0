//! The output of a training for people: its report, which is also tested in a real browser, and the files for
//! TensorBoard and NumPy.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod browser;
#[path = "../command/mod.rs"]
mod command;
mod origins;
mod python;
mod words;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::{Browser, chromium};
use command::{events, plain, plain_of_words, trainer};
use fixtures::{dataset_with, review, reviews};
use python::{READ_EVENTS, python, script};
use serde_json::Value;
use tempfile::TempDir;

const SIZES: [&str; 10] =
    ["--embedding", "8", "--hidden", "6", "--linear", "5", "--batch", "32", "--device", "cpu"];
/// The phases of a step.
const PHASES: [&str; 6] = ["loading", "forward", "backward", "waiting", "reduction", "optimizer"];
/// A word that would change the page's title if it were anything but text.
const HOSTILE_WORD: &str =
    "</p><script>document.title='owned'</script><img src='https://example.com/x' onerror=alert(1)>";

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

fn fit(dataset: &Path, out: &Path, more: &str) {
    let mut command = trainer();
    command.arg("fit").arg(dataset).arg("--out").arg(out).args(["--log-steps", "1", "--tokens", "20"]);
    let more: Vec<&str> = more.split_whitespace().collect();
    done(command.args(plain(&[&SIZES[..], &more].concat())));
}

fn report(runs: &[&Path]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report.html");
    done(trainer().arg("report").args(runs).arg("--out").arg(&out));
    fs::read_to_string(out).unwrap()
}

/// The part of a page after one text and before another.
fn between<'p>(page: &'p str, before: &str, after: &str) -> &'p str {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("{before} is not in {page}"));
    rest.split_once(after).unwrap().0
}

fn lines(run: &Path) -> Vec<Value> {
    let lines = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Two trainings in folders with hostile names. Their files contain a hostile word. A dataset cannot contain such a
/// word, but the files of a training may come from an untrusted source.
fn hostile_runs() -> (TempDir, Vec<PathBuf>) {
    let words: Vec<String> = (0..50).map(word).collect();
    let row = |at: u32| {
        let mut row = review(at);
        row.tokens[0] = 2;
        row
    };
    let (folder, dataset) = dataset_with(600, &words, row);
    let runs = vec![folder.path().join("<b onclick=alert(1)>first"), folder.path().join("second & \"last\"")];
    fit(&dataset, &runs[0], "--epochs 3 --rate 0.01 --validation-fraction 0.2");
    fit(&dataset, &runs[1], "--epochs 2 --rate 0.001 --decay cosine --pool mean-max");
    runs.iter().for_each(|run| make_hostile(run, &words[0]));
    (folder, runs)
}

/// Replaces a word with the hostile word in all files of a training.
fn make_hostile(run: &Path, word: &str) {
    for entry in fs::read_dir(run).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace(word, HOSTILE_WORD)).unwrap();
        }
    }
}

/// A word that consists of letters.
fn word(at: u32) -> String {
    let letter = |n: u32| char::from(b'a' + (n % 26) as u8);
    format!("wo{}{}", letter(at / 26), letter(at))
}

#[test]
fn a_hostile_review_and_a_hostile_path_come_out_as_text() {
    let (_folder, runs) = hostile_runs();
    let page = report(&[&runs[0], &runs[1]]);
    assert!(page.starts_with("<!doctype html>\n<!-- sentimill report -->\n<html lang=\"en\">"));
    assert!(
        page.contains("&lt;/p&gt;&lt;script&gt;document.title=&#39;owned&#39;&lt;/script&gt;&lt;img src=")
    );
    assert!(page.contains("&lt;b onclick=alert(1)&gt;first"));
    for tag in ["<script", "<img", "<b onclick", "<link", "<iframe", "<object", " src=", "@import", "url("] {
        let markup = page.replace("&lt;", "").replace("img src=", "");
        assert!(!markup.contains(tag), "{tag}");
    }
}

#[test]
fn the_page_says_what_a_training_was_and_how_it_went() {
    let (data, dataset) = reviews(600);
    let run = data.path().join("careful");
    fit(&dataset, &run, "--epochs 3 --rate 0.01 --validation-fraction 0.2");
    let page = report(&[&run]);
    let test = events(&run, "test").remove(0);
    let accuracy = test["metrics"]["accuracy"].as_f64().unwrap();
    assert!(page.contains(&format!("{:.1} %", 100.0 * accuracy)), "accuracy {accuracy}");
    for text in [
        "<title>careful · sentimill</title>",
        "<h2 id=\"epochs-name\">Epochs</h2>",
        "Loss over epoch. training, by step: from ",
        "predicted negative",
        "AUC ",
        "Calibration",
        "waits for batches",
        "<th scope=\"row\">--hidden</th>",
        "<th scope=\"row\">--pos-weight</th>",
        "600 distinct texts of 1500 reviews",
        "Wrong predictions with the highest confidence",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let epochs = events(&run, "epoch");
    for epoch in &epochs {
        for number in ["accuracy", "f1"] {
            let cell = format!("<td>{:.4}</td>", epoch["validation"][number].as_f64().unwrap());
            assert!(page.contains(&cell), "{cell}");
        }
        assert!(epoch["seconds"].as_f64().unwrap() > 0.0);
        assert_eq!(epoch["ranks"].as_array().unwrap().len(), 1);
        let rows: u64 = epoch["ranks"][0]["rows"].as_u64().unwrap();
        let settings: Value = serde_json::from_slice(&fs::read(run.join("settings.json")).unwrap()).unwrap();
        assert_eq!(rows, settings["dataset"]["rows"][0].as_u64().unwrap());
    }
}

#[test]
fn a_pretraining_lies_beside_the_training_that_begins_with_it() {
    let (data, dataset) = reviews(600);
    let [words, begun] = ["words", "begun"].map(|name| data.path().join(name));
    let mut pretrain = trainer();
    pretrain.arg("pretrain").arg(&dataset).arg("--out").arg(&words).args([
        "--device",
        "cpu",
        "--log-steps",
        "1",
    ]);
    let asked = ["--embedding", "8", "--hidden", "6", "--candidates", "20", "--epochs", "2"];
    done(pretrain.args(plain_of_words(&asked)));
    fit(&dataset, &begun, &format!("--epochs 2 --init-from {}", words.join("model").display()));
    let page = report(&[&words, &begun]);
    let is_epoch = |line: &Value| line["event"] == "epoch";
    let loss = lines(&words).into_iter().rfind(is_epoch).unwrap()["loss"].as_f64().unwrap();
    for text in [
        &format!("<dt>loss of a next word</dt><dd>{loss:.4}</dd>"),
        "Loss of a next word over epoch. words, training, by step: from ",
        "Loss over epoch. begun, training, by step: from ",
        " accuracy; no other training has metrics of held-out rows.",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let page = report(&[&words]);
    assert!(page.contains("it has no accuracy"));
    for flag in ["--test-fraction", "--validation-fraction 0.1"] {
        assert!(!page.contains(&format!("({flag}")) && !page.contains(&format!("{flag} computes")), "{flag}");
    }
    // The path of the initial weights is a setting of the training.
    let page = report(&[&begun]);
    assert!(page.contains("--init-from") && page.contains(&*words.join("model").to_string_lossy()));
}

#[test]
fn each_rank_tells_its_rows_and_what_it_waited_for() {
    let (data, dataset) = reviews(600);
    let run = data.path().join("two");
    let mut launch = trainer();
    launch.args(["launch", "--nproc", "2", "--", "fit"]).arg(&dataset).arg("--out").arg(&run);
    done(launch.args(plain(&[&SIZES[..], &["--epochs", "2"]].concat())));
    let epochs = events(&run, "epoch");
    assert_eq!(epochs.len(), 2);
    for epoch in epochs {
        let ranks = epoch["ranks"].as_array().unwrap();
        let of = |rank: usize, name: &str| ranks[rank][name].as_f64().unwrap();
        assert_eq!(ranks.len(), 2);
        for rank in 0..2 {
            assert_eq!(of(rank, "rank"), rank as f64);
            let waited = of(rank, "waited_for_batches_s") + of(rank, "waited_for_ranks_s");
            assert!(waited > 0.0 && waited < of(rank, "seconds"), "{epoch}");
        }
        assert!(of(0, "rows") > 0.0 && of(1, "rows") > 0.0, "{epoch}");
    }
    // The tokens of a batch are halved to within the longest review, which has 30.
    let steps = events(&run, "steps");
    assert!(steps.len() >= 2, "a line at the end of each epoch");
    for line in &steps {
        let [one, other] = [0, 1].map(|rank| line["shares"][rank]["work"].as_f64().unwrap());
        assert!(one + other > 200.0 && (one - other).abs() <= 30.0, "{line}");
    }
    let page = report(&[&run]);
    assert!(page.contains("2 ranks on cpu"));
    for chart in ["Shares", "Computing", "Waiting and reduction"] {
        let lines = between(&page, &format!("aria-label=\"{chart} over epoch. "), "\"");
        assert!(lines.starts_with("rank 0: from ") && lines.contains(" rank 1: from "), "{chart}: {lines}");
    }
    for table in ["Ranks of two", "Phases of two"] {
        let rows = between(&page, &format!("aria-label=\"{table}\""), "</table>");
        for rank in 0..2 {
            assert!(rows.contains(&format!("<th scope=\"row\">{rank}</th>")), "{table}: {rows}");
        }
    }
    let phases = between(&page, "aria-label=\"Phases of two\"", "</thead>");
    for phase in PHASES {
        assert!(phases.contains(&format!("<th scope=\"col\">{phase}</th>")), "{phase}: {phases}");
    }

    let Some(python) = python() else { return };
    let found = script(&python, READ_EVENTS, &[&run.join("tensorboard")]);
    let of_steps = ["share_rows", "share_work", "share_computed_s", "share_rest_s"].map(str::to_owned);
    let of_epochs = PHASES.map(|phase| format!("{phase}_share"));
    let tags = of_steps.iter().map(|tag| (tag, steps.len())).chain(of_epochs.iter().map(|tag| (tag, 2)));
    for (tag, n_values) in tags {
        for rank in 0..2 {
            let values = found[format!("rank_{rank}/{tag}")].as_array();
            assert_eq!(values.map(Vec::len), Some(n_values), "{tag} of rank {rank}: {found}");
        }
    }
    for (value, line) in found["rank_1/share_work"].as_array().unwrap().iter().zip(&steps) {
        assert_eq!(value[0], line["step"]);
        let [shown, written] = [&value[1], &line["shares"][1]["work"]].map(|work| work.as_f64().unwrap());
        assert!((shown - written).abs() <= 1e-6 * written, "{value}: {line}");
    }
}

#[test]
fn only_trainings_that_were_tested_on_the_same_rows_are_ranked() {
    let ((data, dataset), (_others, other)) = (reviews(300), reviews(400));
    let [one, two, third] = ["one", "two", "third"].map(|name| data.path().join(name));
    fit(&dataset, &one, "--epochs 1");
    fit(&dataset, &two, "--epochs 2");
    fit(&other, &third, "--epochs 1");
    assert!(report(&[&one, &two]).contains(" is ahead, with "));
    let page = report(&[&one, &third]);
    let told = "They were tested on different rows or classes, so these numbers cannot be compared.";
    assert!(page.contains(told) && !page.contains("is ahead"));
    let losses = |page: &str| between(page, "<th scope=\"row\">loss</th>", "</tr>").to_owned();
    let (of_same, of_other) = (losses(&report(&[&one, &two])), losses(&page));
    assert!(of_same.contains("(best)") && !of_other.contains("(best)"), "{of_same} {of_other}");
}

#[test]
fn what_a_folder_lacks_is_said_and_nothing_fails() {
    let (data, dataset) = reviews(300);
    let whole = data.path().join("whole");
    fit(&dataset, &whole, "--epochs 2 --checkpoint-steps 3");
    let untested = data.path().join("untested");
    fit(&dataset, &untested, "--epochs 1 --test-fraction 0");
    let validated = data.path().join("validated");
    fit(&dataset, &validated, "--epochs 1 --test-fraction 0 --validation-fraction 0.2 --loss rating");
    let older = data.path().join("older");
    fs::create_dir_all(older.join("model")).unwrap();
    let steps = r#"{"event":"steps","epoch":1,"step":2,"loss":0.5,"rate":0.1,"reviews_per_s":9.0,"waited_share":0.0}"#;
    let epoch = r#"{"event":"epoch","epoch":1,"step":2,"loss":0.5}"#;
    fs::write(older.join("metrics.jsonl"), format!("{steps}\n{epoch}\n{steps}\n{epoch}\n{{\"event\":\"st\n"))
        .unwrap();
    let begun = data.path().join("begun");
    fs::create_dir(&begun).unwrap();
    fs::copy(whole.join("settings.json"), begun.join("settings.json")).unwrap();

    let without = |name: &str| {
        let folder = data.path().join(format!("without-{name}"));
        assert!(Command::new("cp").arg("-r").args([&whole, &folder]).status().unwrap().success());
        let path = folder.join(name);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        folder
    };
    for (folder, told) in [
        (untested.clone(), "<p class=\"facts\">1 epoch, "),
        (untested.clone(), "so the quality of the model is unknown"),
        (validated, "There is no test split: the metrics are those of the validation split."),
        (older.clone(), "There is no settings.json"),
        (older, "1 line of metrics.jsonl cannot be read"),
        (begun, "No epoch is finished."),
        (without("settings.json"), "none of these folders has settings.json"),
        (without("evaluation.json"), "There is no evaluation.json"),
        (without("scores.npy"), "scores.npy is missing"),
        (without("model"), "its newest checkpoint is step-0000"),
        (without("metrics.jsonl"), "No step has been logged yet."),
    ] {
        let page = report(&[&folder]);
        assert!(page.contains(told), "{}: {told}", folder.display());
        assert!(!page.contains("NaN") && !page.contains("inf "), "{}", folder.display());
        report(&[&whole, &folder]);
    }
}

#[test]
fn accuracy_ends_at_the_top_of_its_chart_when_it_is_100_percent() {
    let folder = tempfile::tempdir().unwrap();
    let steps = r#"{"event":"steps","epoch":1,"step":2,"loss":0.5,"rate":0.1,"reviews_per_s":9.0,"waited_share":0.0}"#;
    let epoch = |number: u64, accuracy: f64| {
        let confusion = serde_json::json!({"true_negative": 1, "false_positive": 0, "false_negative": 0, "true_positive": 1});
        let validation = serde_json::json!({
            "loss": 0.5, "accuracy": accuracy, "f1": 0.7, "precision": 1.0, "recall": 1.0, "auc": 1.0,
            "confusion": confusion, "rows": 2,
        });
        serde_json::json!({"event": "epoch", "epoch": number, "step": 2 * number, "loss": 0.5, "validation": validation})
    };
    fs::write(
        folder.path().join("metrics.jsonl"),
        format!("{steps}\n{}\n{}\n", epoch(1, 0.5), epoch(2, 1.0)),
    )
    .unwrap();

    let page = report(&[folder.path()]);

    // The line goes from slightly above the bottom to the top, which is 100 %.
    assert!(page.contains("d=\"M0.0 943.4L1000.0 0.0\""), "{page}");
}

#[test]
fn what_a_resumed_training_did_twice_counts_once() {
    let (data, dataset) = reviews(600);
    let [whole, resumed] = ["whole", "resumed"].map(|name| data.path().join(name));
    fit(&dataset, &whole, "--epochs 2 --checkpoint-steps 7");
    fit(&dataset, &resumed, "--epochs 2 --checkpoint-steps 7");
    fs::remove_dir_all(resumed.join("model")).unwrap();
    let newest =
        resumed.join("checkpoints").join(fs::read_to_string(resumed.join("checkpoints/latest")).unwrap());
    let step: u64 = newest.file_name().unwrap().to_string_lossy()["step-".len()..].parse().unwrap();
    // The process was killed while it wrote a line.
    let metrics = resumed.join("metrics.jsonl");
    let mut half = fs::read(&metrics).unwrap();
    half.truncate(half.len() - 30);
    fs::write(&metrics, half).unwrap();

    fit(&dataset, &resumed, "--epochs 2 --checkpoint-steps 7 --resume");

    let read = [&whole, &resumed].map(|run| report::Run::read(run).unwrap());
    let losses = read.each_ref().map(|run| run.epochs.iter().map(|epoch| epoch.loss).collect::<Vec<_>>());
    assert_eq!(losses[0], losses[1]);
    assert_eq!(read[0].steps.len(), read[1].steps.len());
    assert_eq!(read[1].starts, 2);
    assert_eq!(read[1].epochs[1].from_step, Some(step));
    let page = report(&[&resumed]);
    assert!(page.contains(" (partial)</td>"), "the time of the second epoch is that of its rest");
    assert!(page.contains("started or resumed 2 times") && page.contains("1 line of metrics.jsonl"));
}

#[test]
fn a_folder_of_no_training_and_a_file_of_no_report_are_refused() {
    let (data, dataset) = reviews(300);
    let run = data.path().join("run");
    fit(&dataset, &run, "--epochs 1");
    let refused = |runs: &[&Path], out: &Path| {
        let output = trainer().arg("report").args(runs).arg("--out").arg(out).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let page = data.path().join("page.html");
    let (code, told) = refused(&[data.path()], &page);
    assert_eq!(code, Some(66), "{told}");
    assert!(
        told.ends_with("no metrics.jsonl, expected a training folder of trainer, ngrams or vectors\n"),
        "{told}"
    );
    assert!(!page.exists());

    fs::write(&page, "<!doctype html>\nmy own page, which is longer than what reports begin with").unwrap();
    let (code, told) = refused(&[&run], &page);
    assert_eq!(code, Some(64), "{told}");
    assert!(fs::read_to_string(&page).unwrap().contains("my own"));

    fs::remove_file(&page).unwrap();
    assert_eq!(refused(&[&run], &page).0, Some(0));
    assert_eq!(refused(&[&run], &page).0, Some(0), "a report is made anew");

    let settings = run.join("settings.json");
    let newer = fs::read_to_string(&settings).unwrap().replace("\"version\": 2", "\"version\": 9");
    fs::write(&settings, newer).unwrap();
    let (code, told) = refused(&[&run], &page);
    assert_eq!(code, Some(66), "{told}");
    assert!(told.contains("settings.json: format version 9, expected 2 or less"), "{told}");
}

#[test]
fn a_browser_shows_the_page_on_a_phone_and_on_a_desk_and_asks_for_nothing_else() {
    let Some(chromium) = chromium() else {
        tests::skipped(
            "the report in a browser: .deps/browser/chromium is missing; bootstrap/laptop.sh browser installs it",
        );
        return;
    };
    let (folder, runs) = hostile_runs();
    let page = folder.path().join("report.html");
    done(trainer().arg("report").args(&runs).arg("--out").arg(&page));
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut browser = Browser::start(&chromium);
    for (name, size, scheme) in
        [("desk", (1280, 900), "light"), ("phone", (390, 844), "light"), ("desk-dark", (1280, 900), "dark")]
    {
        browser.open(&page, size, scheme);
        assert_eq!(browser.requests(), [format!("file://{}", page.display())], "{name}");
        assert!(browser.complaints().is_empty(), "{name}: {:?}", browser.complaints());
        assert_eq!(browser.value("document.title"), "2 trainings side by side · sentimill", "{name}");
        assert_eq!(browser.value("document.scripts.length + document.images.length"), 0, "{name}");
        assert_eq!(
            browser.value("document.documentElement.scrollWidth"),
            size.0,
            "{name}: wider than its window"
        );
        // Content that is wider than its column has its own scroll bar.
        let wide = "[...document.querySelectorAll('main *')].filter(e => e.getBoundingClientRect().right > innerWidth \
                    + 1 && !e.closest('.scroll, .tip')).map(e => e.tagName + '.' + e.className)";
        assert_eq!(browser.value(wide), Value::Array(Vec::new()), "{name}");
        let empty =
            "[...document.querySelectorAll('section')].filter(e => e.offsetHeight < 60).map(e => e.id)";
        assert_eq!(browser.value(empty), Value::Array(Vec::new()), "{name}");
        let broken = "
            [...document.querySelectorAll('#glance td:not(.best), #epochs td, #speed td')].filter(cell => {
                const text = document.createRange();
                text.selectNodeContents(cell);
                return new Set([...text.getClientRects()].map(line => Math.round(line.top))).size > 1;
            }).length";
        assert_eq!(browser.value(broken), 0, "{name}: a number in several lines");
        let unnamed = "[...document.querySelectorAll('[role=img], [role=region], nav')].filter(e => \
                       !e.getAttribute('aria-label')).length + document.querySelectorAll('th:not([scope])').length";
        assert_eq!(browser.value(unnamed), 0, "{name}: something without a name");
        let twice =
            "(ids => ids.length - new Set(ids).size)([...document.querySelectorAll('[id]')].map(e => e.id))";
        assert_eq!(browser.value(twice), 0, "{name}: an id twice");
        assert!(browser.value("document.querySelectorAll('path.line').length").as_u64() > Some(8), "{name}");
        assert!(contrast(&mut browser) >= 4.5, "{name}: a text that is hard to read");
        let picture = browser.picture(u64::MAX);
        assert!(picture.len() > 50_000, "{name}: {} bytes", picture.len());
        fs::write(pictures.join(format!("report-{name}.png")), picture).unwrap();
    }
}

/// The minimum contrast between text and its background, as defined by the accessibility guidelines (WCAG).
/// Backgrounds that are mixed from several colours are excluded.
fn contrast(browser: &mut Browser) -> f64 {
    let least = "
        (() => {
            const linear = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
            const numbers = color => color.match(/[\\d.]+/g).map(Number);
            const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
            const ground = e => {
                for (; e; e = e.parentElement) {
                    const color = getComputedStyle(e).backgroundColor;
                    if (!color.startsWith('rgb')) return null;
                    if (numbers(color).length < 4) return numbers(color);
                }
                return [255, 255, 255];
            };
            const of = e => {
                const [a, b] = [light(numbers(getComputedStyle(e).color)), light(ground(e))];
                return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            };
            return Math.min(...[...document.querySelectorAll('p, td, th, dt, dd, h1, h2, h3, li, nav a, .pill')]
                .filter(e => e.offsetWidth > 0 && ground(e)).map(of));
        })()";
    browser.value(least).as_f64().unwrap()
}

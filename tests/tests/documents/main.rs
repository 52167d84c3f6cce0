//! Tests README.md and the pages of docs/. Their commands must print the output that the pages show, their links
//! must have targets, and their pictures and lists must match the project. [`tests::pages`] states how a page is run.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

mod links;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::{fs, thread};

use tests::pages::blocks::blocks;
use tests::pages::following::follow;
use tests::pages::{project, relative, renews};

/// Number of pages that are run in parallel.
const THREADS: usize = 2;
/// A page that tests/tests/emr follows, because it needs a cluster.
const ON_EMR: &str = "docs/emr.md";
const README_LINES_MAX: usize = 130;
/// Maximum number of blocks that are not run, because they require a cluster, several machines, a GPU or an
/// account.
const NOT_RUN_MAX: usize = 8;
/// Colours of the drawings, light and dark.
const DARK: [(&str, &str); 6] = [
    ("#1f2328", "#f0f6fc"),
    ("#59636e", "#9198a1"),
    ("#f6f8fa", "#151b23"),
    ("#d1d9e0", "#3d444d"),
    ("#e6f4ee", "#12352a"),
    ("#1a7f5a", "#3fb68b"),
];
/// Languages of blocks that show a file or a message, and are not run.
const SHOWN: [&str; 4] = ["text", "json", "jsonl", "toml"];

#[test]
fn each_page_can_be_followed_from_top_to_bottom() {
    let here: Vec<PathBuf> = pages().into_iter().filter(|page| relative(page) != ON_EMR).collect();
    let pages = Mutex::new(here);
    let followed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(page) = { pages.lock().unwrap().pop() } {
                    let result = follow(&page);
                    followed.lock().unwrap().push((page, result));
                }
            });
        }
    });
    let followed = followed.into_inner().unwrap();
    let wrong: Vec<_> = followed.iter().flat_map(|(_, followed)| followed.wrong.clone()).collect();
    assert!(wrong.is_empty(), "UPDATE_GOLDEN=1 renews the pages\n\n{}", wrong.join("\n\n"));
    // No two pages create the same file, so that a reader can follow all pages in one folder.
    let mut makers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (page, followed) in &followed {
        for name in &followed.names {
            makers.entry(name.clone()).or_default().push(relative(page));
        }
    }
    makers.retain(|_, pages| pages.len() > 1);
    assert!(makers.is_empty(), "several pages make the same file: {makers:#?}");
}

#[test]
fn few_blocks_are_not_run() {
    let mut reasons = Vec::new();
    for page in pages() {
        for block in blocks(&fs::read_to_string(&page).unwrap()) {
            let at = format!("{}:{}", relative(&page), block.line);
            let is_run = ["console", "sh"].contains(&block.language)
                || block.language == "python" && block.file.is_some();
            assert!(is_run || SHOWN.contains(&block.language), "{at}: a block of {:?}", block.language);
            if let Some(reason) = block.not_run {
                assert!(is_run && reason.len() > 10, "{at}: {reason:?}");
                reasons.push(format!("{at}: {reason}"));
            }
        }
    }
    assert!(reasons.len() <= NOT_RUN_MAX, "{} blocks:\n{}", reasons.len(), reasons.join("\n"));
}

#[test]
fn the_front_page_is_short() {
    let lines = fs::read_to_string(project().join("README.md")).unwrap().lines().count();
    assert!(lines < README_LINES_MAX, "README.md has {lines} lines");
}

#[test]
fn the_front_page_describes_its_chart_by_the_measured_figures() {
    let page = fs::read_to_string(project().join("README.md")).unwrap();
    let engines = fs::read_to_string(project().join("docs/experiments/engines.csv")).unwrap();
    let of_json = |line: &&str| line.starts_with("JSON lines,");
    let engines: Vec<&str> = engines.lines().filter(of_json).collect();
    assert_eq!(engines.len(), 5, "{engines:?}");
    for engine in engines {
        let [_, _, name, seconds, ..] = engine.split(',').collect::<Vec<_>>()[..] else { panic!("{engine}") };
        let median = seconds.split(' ').next().unwrap();
        assert!(page.contains(&format!("{name} {median}")), "README.md: found no {name} {median}");
    }
}

/// Figures of README.md: the text around `{}`; the table, the start of the row and the column of the figure; and its
/// decimals.
const FIGURES: [(&str, &str, &str, usize, usize); 7] = [
    ("converts 1 GB of reviews in {} s", "engines.csv", "JSON lines,989,sentimill", 3, 1),
    ("has an accuracy of {}", "which.csv", "IMDB,\"25,000\",ngrams train", 4, 3),
    ("`trainer fit` of {}", "which.csv", "IMDB,\"25,000\",trainer fit", 4, 3),
    ("after {} s ([measured]", "which.csv", "IMDB,\"25,000\",trainer fit", 5, 0),
    ("two LSTM layers of 32 is {} to", "speed.csv", "1 thread,PyTorch tuned", 3, 1),
    ("to {} times as fast as with tuned PyTorch", "speed.csv", "2 threads,PyTorch tuned", 3, 1),
    ("it uses {} MiB", "growth.csv", "3983,2", 4, 0),
];

#[test]
fn the_front_page_has_the_measured_figures() {
    let page = fs::read_to_string(project().join("README.md")).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for (text, table, row, column, digits) in FIGURES {
        let rows = fs::read_to_string(project().join("docs/experiments").join(table)).unwrap();
        let found = rows.lines().find(|line| line.starts_with(&format!("{row},"))).unwrap();
        let median = found.split(',').nth(column).unwrap().split(' ').next().unwrap();
        let figure = format!("{:.digits$}", median.parse::<f64>().unwrap());
        let expected = text.replace("{}", &figure);
        assert!(page.contains(&expected), "README.md: found no {expected:?}, the figure of {table}");
    }
}

#[test]
fn the_dark_drawing_is_the_light_one_in_other_colours() {
    let [light, dark] = ["light", "dark"].map(|scheme| project().join(format!("docs/path-{scheme}.svg")));
    let mut expected = fs::read_to_string(light).unwrap();
    for (light, dark) in DARK {
        assert!(expected.contains(light), "{light}");
        expected = expected.replace(light, dark);
    }
    if renews() {
        fs::write(&dark, &expected).unwrap();
    }
    assert!(fs::read_to_string(dark).unwrap() == expected, "UPDATE_GOLDEN=1 renews docs/path-dark.svg");
}

#[test]
fn the_errors_page_has_every_exit_code() {
    let codes = fs::read_to_string(project().join("crates/program/src/exit.rs")).unwrap();
    let variants = codes.split_once("pub enum Exit {").unwrap().1.split_once("\n}").unwrap().0;
    let codes = variants.lines().filter_map(|line| line.trim().trim_end_matches(',').split_once(" = "));
    let codes: Vec<&str> = codes.map(|(_, code)| code).collect();
    assert!(codes.len() > 5, "{codes:?}");
    let page = fs::read_to_string(project().join("docs/errors.md")).unwrap();
    for code in ["0"].iter().chain(&codes) {
        assert!(page.contains(&format!("\n| {code} |")), "exit code {code}");
    }
}

#[test]
fn the_messages_of_the_catalogue_are_those_of_the_programs() {
    let page = fs::read_to_string(project().join("docs/errors.md")).unwrap();
    let catalogue = page.split_once("\n## Messages").unwrap().1.split("\n## ").next().unwrap();
    let sources = sources();
    let messages: Vec<&str> = catalogue
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|line| line.split_once("` |").expect("a message, then its cause").0)
        .collect();
    assert!(messages.len() > 20, "{}", messages.len());
    for message in messages {
        let pieces: Vec<&str> = message.split('…').map(str::trim).filter(|piece| piece.len() > 3).collect();
        assert!(pieces.iter().any(|piece| piece.len() > 10), "{message}: nothing to look for");
        for piece in pieces {
            assert!(sources.contains(piece), "{message}: no program's source has {piece:?}");
        }
    }
}

/// Returns the sources of programs and libraries. String literals of several lines are joined as by the compiler.
fn sources() -> String {
    let files =
        listed("*.rs").into_iter().filter(|file| file.contains("/src/") && !file.starts_with("tests/"));
    let mut sources = String::new();
    for file in files {
        let text = fs::read_to_string(project().join(&file)).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let mut line = line.to_owned();
            while line.ends_with('\\') {
                line.pop();
                line += lines.next().unwrap_or_default().trim_start();
            }
            sources += &line.replace("\\\"", "\"");
            sources.push('\n');
        }
    }
    sources
}

/// Returns README.md and the pages of docs/.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(project().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        docs.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.push(project().join("README.md"));
    pages.sort();
    pages
}

/// Returns the files of the project that match a pattern, by their paths in the project.
fn listed(pattern: &str) -> Vec<String> {
    let git = ["ls-files", "--cached", "--others", "--exclude-standard", "--", pattern];
    let output = Command::new("git").args(git).current_dir(project()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let files = String::from_utf8(output.stdout).unwrap();
    files.lines().filter(|file| project().join(file).exists()).map(str::to_owned).collect()
}

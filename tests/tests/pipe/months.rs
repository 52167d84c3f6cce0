//! Runs of several months, merged in any grouping, are the dataset of one job over all their reviews.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use tests::demo::DEMO;
use tests::lines::{sorted_as_c, split};
use tests::pipe::split_by_hadoop;
use tests::programs::{Finished, program, run};
use tests::s3_server::{S3Server, with_s3};

/// Number of months.
const MONTHS: usize = 12;

/// Settings with which rows lack nothing, and with which they lack words, texts without a class, and texts of stop words.
const SETTINGS: [&[&str]; 2] =
    [&[], &["--stopwords", "nltk", "--max-tokens", "12", "--labels", "1-2=bad,4-5=good"]];

/// Votes whose sum has another class than each of them, a text of stop words, and a long text, each in several months.
const AWKWARD: &str = "\
    turned down\t0,0,2,0,1\nturned down\t0,0,0,2,1\nturned down\t0,0,0,0,1\n\
    turned off\t0,0,2,2,0\nturned off\t0,0,2,0,0\nturned off\t0,0,0,3,2\n\
    the the\t0,0,1,0,0\nthe the\t0,1,0,0,0\nthe\t0,1,0,0,0\n\
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen\t1,0,0,0,0\n\
    one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen\t0,0,0,0,1\n\
    one two three four five six seven other nine ten eleven twelve thirteen fourteen fifteen\t0,0,0,0,1\n";

/// A folder with runs of reviews.
struct Months {
    folder: TempDir,
    settings: &'static [&'static str],
    server: Option<S3Server>,
}

impl Months {
    fn new(settings: &'static [&'static str], server: Option<S3Server>) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), settings, server }
    }

    fn command(&self, name: &str) -> Command {
        let mut command = program(name);
        if let Some(server) = &self.server {
            command = with_s3(command, &format!("http://{}", server.address()));
        }
        command.current_dir(self.folder.path());
        command
    }

    fn place(&self, name: &str) -> String {
        if self.server.is_some() { format!("s3://bucket/{name}") } else { name.to_owned() }
    }

    /// Reduces the records of these months to a run.
    fn reduce(&self, name: &str, months: &[usize], partitions: u32, more: &[&str]) {
        let sorted = sorted_as_c(&months.iter().map(|&month| records_of(month)).collect::<Vec<_>>().concat());
        for (number, records) in split_by_hadoop(&sorted, partitions).iter().enumerate() {
            let mut reducer = self.command("reducer");
            reducer.args(["--run", &self.place(name), "--partition", &number.to_string()]);
            reducer.args(["--partitions", &partitions.to_string()]).args(self.settings).args(more);
            run(&mut reducer, records).succeeded();
        }
    }

    /// Merges what these arguments name into a dataset.
    fn merge(&self, out: &str, arguments: &[&str]) -> Finished {
        run(self.command("merge").args(["--out", &self.place(out)]).args(arguments), b"")
    }

    /// Merges runs of these names.
    fn merge_runs(&self, out: &str, runs: &[String], more: &[&str]) -> Finished {
        let runs = runs.iter().flat_map(|name| ["--run".to_owned(), self.place(name)]);
        let runs: Vec<String> = runs.collect();
        self.merge(out, &[&runs.iter().map(String::as_str).collect::<Vec<_>>()[..], more].concat())
    }

    fn read(&self, name: &str) -> Vec<u8> {
        match &self.server {
            None => fs::read(self.folder.path().join(name)).unwrap(),
            Some(server) => server.get(name).unwrap(),
        }
    }

    /// What merge prints of a dataset, without the line about what it found.
    fn has(&self, out: &str, expected: &(Vec<u8>, String), merged: Finished) {
        assert_eq!(merged.succeeded().said(), expected.1, "{out}");
        assert!(self.read(out) == expected.0, "{out}");
    }
}

/// Every twelfth record is of a month. Every fifth record is of another month, too.
fn records_of(month: usize) -> Vec<u8> {
    let records = [split(&DEMO.records), split(AWKWARD.as_bytes())].concat().into_iter().enumerate();
    let is_of_month = |at: usize| at % MONTHS == month || (at.is_multiple_of(5) && at / 5 % MONTHS == month);
    records.filter(|(at, _)| is_of_month(*at)).flat_map(|(_, record)| record).copied().collect()
}

fn all() -> Vec<usize> {
    (0..MONTHS).collect()
}

#[test]
fn months_in_any_grouping_make_the_dataset_of_one_job() {
    for settings in SETTINGS {
        let months = Months::new(settings, None);
        months.reduce("one", &all(), 3, &[]);
        months.reduce("other", &[3, 7], 1, &[]);
        months.merge("other.h5", &["--run", "other"]).succeeded();
        for month in 0..MONTHS {
            months.reduce(&format!("month-{month}"), &[month], 1 + month as u32 % 3, &["--keep-words"]);
        }
        months.reduce("spring", &[0, 1, 2, 3], 2, &["--keep-words"]);
        // More shards than are read at once.
        months.reduce("rest", &[4, 5, 6, 7, 8, 9, 10, 11], 67, &["--keep-words"]);
        let single: Vec<String> = (0..MONTHS).rev().map(|month| format!("month-{month}")).collect();
        let spring = [&["spring".to_owned()], &single[..8]].concat();
        let two = ["rest".to_owned(), "spring".to_owned()];
        let manners: [&[&str]; 4] = [
            &[],
            &["--vocabulary-size", "40", "--threads", "1"],
            &["--without", "other.h5"],
            &["--vocabulary", "other.h5"],
        ];
        for (number, manner) in manners.iter().enumerate() {
            let merged =
                months.merge("one.h5", &[&["--run", "one", "--force"], *manner].concat()).succeeded();
            let expected = (months.read("one.h5"), merged.said());
            for (grouping, runs) in [&single[..], &spring, &two].iter().enumerate() {
                let out = format!("months-{number}-{grouping}.h5");
                months.has(&out, &expected, months.merge_runs(&out, runs, manner));
                let again = months.merge_runs(&out, runs, manner).succeeded().said();
                assert!(
                    again.contains("already exists, complete and with these settings; nothing to do"),
                    "{again}"
                );
            }
        }
    }
}

#[test]
fn a_month_is_added_to_a_dataset_whose_runs_are_gone() {
    for (number, server) in S3Server::each().map(Some).chain([None]).enumerate() {
        let months = Months::new(SETTINGS[1 - number % 2], server);
        months.reduce("one", &all(), 2, &[]);
        let merged = months.merge("one.h5", &["--run", &months.place("one")]).succeeded();
        let expected = (months.read("one.h5"), merged.said());
        let quarters = [&[0, 1, 2][..], &[3, 4, 5], &[6, 7, 8], &[9, 10, 11]];
        for (at, quarter) in quarters.iter().enumerate() {
            let name = format!("quarter-{at}");
            months.reduce(&name, quarter, 2, &["--keep-words"]);
            let before = months.place(&format!("until-{}.h5", at.wrapping_sub(1)));
            let run = months.place(&name);
            let add: &[&str] = if at > 0 { &["--add", &before] } else { &[] };
            let arguments = [&["--keep-words", "--run", &run], add].concat();
            let out = format!("until-{at}.h5");
            let merged = months.merge(&out, &arguments).succeeded();
            if at + 1 == quarters.len() {
                months.has(&out, &expected, merged);
            }
            let again = months.merge(&out, &arguments).succeeded().said();
            assert!(again.contains("nothing to do"), "{again}");
        }
        let last = months.place("until-3.h5");
        months.has("copy.h5", &expected, months.merge("copy.h5", &["--add", &last]));
    }
}

#[test]
fn what_cannot_be_joined_is_refused() {
    let months = Months::new(&[], None);
    months.reduce("may", &[4], 2, &["--keep-words"]);
    months.reduce("june", &[5], 1, &["--keep-words"]);
    months.reduce("again", &[5], 1, &["--keep-words", "--attempt", "second"]);
    months.reduce("bare", &[6], 1, &[]);
    let counts = r#"{"lines":1,"blank":0,"line_too_long":0,"bad_line":0,"no_text":0,"bad_rating":0,"empty_text":0,"reviews":1}"#;
    fs::write(months.folder.path().join("may.counts"), counts).unwrap();
    months.reduce("short", &[6], 1, &["--keep-words", "--max-tokens", "3"]);
    months.merge("may.h5", &["--run", "may", "--keep-words"]).succeeded();
    months.merge("bare.h5", &["--run", "bare"]).succeeded();
    let listed = |arguments: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let before = names(months.folder.path());
        let refused = months.merge("both.h5", &arguments);
        assert_eq!(names(months.folder.path()), before, "nothing is written");
        (refused.code, refused.stderr)
    };
    for (arguments, code, said) in [
        ("--run may --run bare", 66, "bare: partition 0 has no words that rows lack, "),
        ("--run bare --keep-words", 66, "; run its reducers with --keep-words, into a new --run"),
        ("--run may --run short", 78, " differ in max-tokens: 400 and 3; "),
        ("--run may --run may", 78, " is named twice, "),
        (
            "--run may --add may.h5",
            78,
            "may and may.h5 have the same shards, so their reviews would count twice; ",
        ),
        ("--run june --run again", 78, " have the same shards, so their reviews would count twice; "),
        ("--add may.h5 --counts may.counts", 64, "--counts: found no --run, "),
        ("--run june --add may.h5 --counts may.counts", 65, "the ledger does not balance: "),
        ("--run june --add bare.h5", 66, "bare.h5: its words were not kept in "),
        ("--run june --add none.h5", 66, "none.h5: it has no manifest, expected a dataset and its words, "),
    ] {
        let (found, stderr) = listed(arguments);
        assert_eq!(found, code, "{arguments}: {stderr}");
        assert!(stderr.contains(said), "{arguments}: {stderr}");
    }
    // The words of a dataset that was replaced.
    months.merge("may.h5", &["--run", "june", "--force"]).succeeded();
    let (code, stderr) = listed("--run june --add may.h5");
    assert!(code == 66 && stderr.contains("may.words has the words of another dataset"), "{stderr}");
    let kept = months.merge("may.h5", &["--run", "june", "--keep-words"]).with_code(64).stderr;
    assert!(kept.contains("may.words: has the words of another dataset, "), "{kept}");
}

#[test]
fn a_text_in_two_partitions_of_a_run_is_refused_with_other_runs_too() {
    let months = Months::new(&[], None);
    months.reduce("june", &[5], 1, &["--keep-words"]);
    // Each partition has all texts.
    for partition in ["0", "1"] {
        let mut reducer = months.command("reducer");
        reducer.args([
            "--run",
            "twice",
            "--any-partitioner",
            "--keep-words",
            "--partition",
            partition,
            "--partitions",
            "2",
        ]);
        run(&mut reducer, &sorted_as_c(&[records_of(5), records_of(6)].concat())).succeeded();
    }
    let refused = months.merge("both.h5", &["--run", "june", "--run", "twice"]).with_code(65).stderr;
    assert!(
        refused.contains("/twice/data/part-00000.") && refused.contains("/twice/data/part-00001."),
        "{refused}"
    );
}

#[test]
fn attempts_agree_about_kept_words() {
    let months = Months::new(SETTINGS[1], None);
    months.reduce("run", &[1], 1, &["--keep-words"]);
    months.reduce("run", &[1], 1, &["--keep-words"]);
    let data = names(&months.folder.path().join("run/data"));
    assert!(data.len() == 2 && data[1] == data[0].replace(".h5", ".rest.h5"), "{data:?}");
    let mut without = months.command("reducer");
    let refused = run(without.args(["--run", "run"]).args(months.settings), &sorted_as_c(&records_of(1)));
    let stderr = refused.with_code(78).stderr;
    assert!(stderr.contains(" with the objects shard + kept words, this attempt has shard; "), "{stderr}");
    // The rest of an attempt that was not elected.
    let rest = data[1].replacen('.', ".other-", 1);
    fs::write(months.folder.path().join("run/data").join(&rest), b"").unwrap();
    let gc = run(months.command("merge").args(["gc", "--run", "run"]), b"").succeeded().said();
    assert_eq!(
        gc,
        format!("data/{rest} 0 bytes\n1 objects that no commit record names; --delete removes them\n")
    );
    // An altered rest is refused, where it is needed.
    months.reduce("june", &[5], 1, &["--keep-words"]);
    fs::write(months.folder.path().join("run/data").join(&data[1]), b"other").unwrap();
    let altered = months.merge("both.h5", &["--run", "run", "--run", "june"]).with_code(66).stderr;
    assert!(altered.contains(&data[1]) && altered.contains("the object was altered"), "{altered}");
    months.merge("alone.h5", &["--run", "run"]).succeeded();
}

/// The names of files and folders in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

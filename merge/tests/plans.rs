//! The tasks of a plan, run by any programs in any order, make the file that `merge` makes.
#![allow(clippy::unwrap_used)]

mod run;

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use corpus::ledger::{Limits, Share};
use making::{DatasetFile, DatasetOptions, Existing, Output, ProgressBars, VocabularyFrom};
use merge::plan::{PlanOptions, Planned};
use merge::tasks::{WorkOptions, work};
use merge::{AssembleOptions, Counted, Options, Outcome, Sources, assemble};
use program::location::Location;
use program::threads::spawn;
use store::{S3Options, Store};

use crate::run::{text, texts, write_run};

const COUNTED: Counted = Counted {
    mapper: None,
    limits: Limits { bad_lines_max: Share::OF_BAD_LINES, invalid_utf8_max: Share::OF_INVALID_UTF8 },
};

/// What a dataset depends on, except its run.
#[derive(Clone, Debug, Default)]
struct Inputs {
    size: Option<u64>,
    vocabulary: Option<PathBuf>,
    without: Option<PathBuf>,
}

impl Inputs {
    fn from(&self) -> VocabularyFrom {
        match &self.vocabulary {
            Some(path) => VocabularyFrom::Dataset(path.as_path().into()),
            None => VocabularyFrom::Frequency(self.size.unwrap_or(10_000)),
        }
    }
}

fn store_of(run: &Path) -> Store {
    Store::open_with(run.to_str().unwrap(), &S3Options::default()).unwrap()
}

/// The bytes of the dataset that one program makes.
fn merged(run: &Path, out: &Path, inputs: &Inputs) -> Vec<u8> {
    let dataset = DatasetOptions {
        out: Output::Folder(out.to_owned()),
        vocabulary: inputs.from(),
        without: inputs.without.clone().map(DatasetFile::from),
        padded: None,
        ids: false,
        texts: None,
        existing: Existing::Keep,
    };
    let (threads, scratch) = (NonZeroUsize::MIN, std::env::temp_dir());
    let options = Options { dataset, counted: COUNTED, threads, ranges: None, keep: None, scratch };
    let sources = Sources { runs: vec![store_of(run)], datasets: Vec::new() };
    merge::run(&sources, &options, &ProgressBars::to_nobody()).unwrap();
    fs::read(out).unwrap()
}

fn plan(run: &Path, name: &str, tasks: u32, inputs: &Inputs) -> merge::Result<Planned> {
    let located = |path: &PathBuf| Location::from(path.clone());
    let options = PlanOptions {
        name: name.to_owned(),
        counted: COUNTED,
        vocabulary: inputs.vocabulary.as_ref().map(located),
        from: inputs.from(),
        without: inputs.without.as_ref().map(|path| (located(path), path.clone().into())),
        tasks,
    };
    merge::plan::plan(&store_of(run), &options, &std::env::temp_dir())
}

fn work_options(threads: usize) -> WorkOptions {
    let threads = NonZeroUsize::new(threads).unwrap();
    WorkOptions { s3: S3Options::default(), threads, scratch: std::env::temp_dir(), patience: Duration::ZERO }
}

/// Tasks that need no result.
const FIRST: [&str; 2] = ["shards", "words"];
/// All tasks.
const ALL: [&str; 3] = ["shards", "words", "rows"];

/// Runs the tasks of these kinds, the last one of a kind first, each by its own program. Returns what they print.
fn run_tasks(planned: &Planned, kinds: &[&str]) -> merge::Result<String> {
    let list = planned.list().unwrap();
    let lines = fs::read_to_string(list.strip_prefix("file://").unwrap_or(&list)).unwrap();
    let mut printed = Vec::new();
    for kind in kinds {
        for (at, line) in lines.lines().rev().filter(|line| line.starts_with(kind)).enumerate() {
            work(planned, line.as_bytes(), &mut printed, &work_options(1 + at % 3))?;
        }
    }
    Ok(String::from_utf8(printed).unwrap())
}

fn assembled(planned: &Planned, out: &Path) -> merge::Result<Vec<u8>> {
    let options = AssembleOptions {
        out: Output::Folder(out.to_owned()),
        padded: None,
        ids: false,
        existing: Existing::Keep,
        work: work_options(2),
    };
    let outcome = assemble(planned, &options, &ProgressBars::to_nobody())?;
    assert!(matches!(outcome, Outcome::Made(..)));
    Ok(fs::read(out).unwrap())
}

#[test]
fn a_plan_makes_the_file_of_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let out = |name: &str| folder.path().join(name);
    let other_run = out("other-run");
    write_run(&other_run, &(200..300).map(text).chain((2000..2100).map(text)).collect::<Vec<_>>(), 1);
    let other = out("other.h5");
    merged(&other_run, &other, &Inputs::default());
    let without = Some(other.clone());
    let inputs = [
        Inputs::default(),
        Inputs { size: Some(60), ..Inputs::default() },
        Inputs { without: without.clone(), ..Inputs::default() },
        Inputs { vocabulary: Some(other), without, size: None },
    ];
    for (n_shards, numbers) in [(1, &[3][..]), (3, &[1, 2, 7]), (130, &[3])] {
        let run = out(&format!("run-{n_shards}"));
        write_run(&run, &texts(400), n_shards);
        for (at, inputs) in inputs.iter().enumerate() {
            let expected = merged(&run, &out(&format!("one-{n_shards}-{at}.h5")), inputs);
            for &tasks in numbers {
                let name = format!("plan-{at}-{tasks}");
                let planned = plan(&run, &name, tasks, inputs).unwrap();
                assert!(!run_tasks(&planned, &ALL).unwrap().contains("already"));
                let found = assembled(&planned, &out(&format!("{n_shards}-{name}.h5"))).unwrap();
                assert!(found == expected, "{n_shards} shards, {tasks} tasks, {inputs:?}");
            }
        }
    }
}

#[test]
fn a_repeated_task_has_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    let (run, out) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    write_run(&run, &texts(400), 5);
    let planned = plan(&run, "merge", 3, &Inputs::default()).unwrap();
    let results = run.join("merge/merge");
    run_tasks(&planned, &ALL).unwrap();
    let again = run_tasks(&planned, &ALL).unwrap();
    assert_eq!((again.lines().count(), again.matches("\talready stored").count()), (9, 9));
    // As if the other attempt had been the first one to put its result.
    for task in planned.tasks() {
        let (kind, number) =
            task.to_string().split_once(' ').map(|(kind, n)| (kind.to_owned(), n.to_owned())).unwrap();
        let path = results.join(format!("{kind}-{number}"));
        let before = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        work(&planned, format!("{task}\n").as_bytes(), Vec::new(), &work_options(2)).unwrap();
        assert!(fs::read(&path).unwrap() == before, "{task}");
    }
    assert_eq!(
        assembled(&planned, &out).unwrap(),
        merged(&run, &folder.path().join("one.h5"), &Inputs::default())
    );
    // The same plan is found again, another one is refused.
    plan(&run, "merge", 3, &Inputs::default()).unwrap();
    let refused = plan(&run, "merge", 4, &Inputs::default()).err().unwrap();
    assert!(refused.message.contains("choose another --plan"), "{}", refused.message);
}

#[test]
fn a_task_of_rows_runs_the_tasks_that_nobody_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (run, out) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    write_run(&run, &texts(200), 3);
    let planned = plan(&run, "merge", 4, &Inputs::default()).unwrap();
    assert_eq!(run_tasks(&planned, &["rows"]).unwrap().matches("\tstored").count(), 4);
    assert!(!run_tasks(&planned, &FIRST).unwrap().contains("\tstored"));
    assert_eq!(
        assembled(&planned, &out).unwrap(),
        merged(&run, &folder.path().join("one.h5"), &Inputs::default())
    );
}

#[test]
fn a_task_of_rows_waits_for_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    write_run(&run, &texts(200), 3);
    let planned = plan(&run, "merge", 2, &Inputs::default()).unwrap();
    let patient = WorkOptions { patience: Duration::from_secs(3600), ..work_options(1) };
    let rows = thread::scope(|scope| {
        let rows = spawn(scope, || work(&planned, "rows 00001".as_bytes(), Vec::new(), &patient));
        let printed = run_tasks(&planned, &FIRST).unwrap();
        assert!(!printed.contains("already"), "{printed}");
        rows.join().unwrap()
    });
    rows.unwrap();
    assert!(run_tasks(&planned, &["rows"]).unwrap().contains("rows 00001\talready stored"));
}

#[test]
fn a_missing_or_damaged_result_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (run, out) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    write_run(&run, &texts(60), 2);
    let planned = plan(&run, "merge", 2, &Inputs::default()).unwrap();
    run_tasks(&planned, &FIRST).unwrap();
    let refused = assembled(&planned, &out).unwrap_err();
    assert!(refused.message.contains("task rows 00000 has no result"), "{}", refused.message);
    run_tasks(&planned, &ALL).unwrap();
    let results = run.join("merge/merge");
    let rows = fs::read(results.join("rows-00001")).unwrap();
    for name in ["shards-00001", "words-00001", "rows-00000"] {
        let path = results.join(name);
        let intact = fs::read(&path).unwrap();
        let refused = || {
            // The places of words are read by the tasks that encode rows.
            fs::remove_file(results.join("rows-00001")).unwrap();
            let refused = run_tasks(&planned, &["rows"]).and_then(|_| assembled(&planned, &out));
            fs::write(results.join("rows-00001"), &rows).unwrap();
            refused.err().map(|error| error.message)
        };
        for at in (0..intact.len()).step_by(intact.len() / 40 + 1) {
            let mut flipped = intact.clone();
            flipped[at] ^= 1;
            for altered in [&flipped[..], &intact[..at]] {
                fs::write(&path, altered).unwrap();
                assert!(refused().is_some() && !out.exists(), "{name}, byte {at}");
            }
        }
        fs::remove_file(&path).unwrap();
        let refused = assembled(&planned, &out).unwrap_err();
        assert!(refused.message.contains("has no result"), "{}", refused.message);
        fs::write(&path, intact).unwrap();
    }
    assembled(&planned, &out).unwrap();
}

#[test]
fn a_result_of_another_plan_or_task_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (run, out) = (folder.path().join("run"), folder.path().join("reviews.h5"));
    write_run(&run, &texts(200), 3);
    let results = run.join("merge/merge");
    let small = Inputs { size: Some(30), ..Inputs::default() };
    let planned = plan(&run, "merge", 2, &small).unwrap();
    run_tasks(&planned, &ALL).unwrap();
    // The plan is gone, its results are not.
    fs::remove_file(results.join("plan.json")).unwrap();
    let planned = plan(&run, "merge", 2, &Inputs::default()).unwrap();
    for kind in ["shards", "words", "rows"] {
        let refused = run_tasks(&planned, &ALL).and_then(|_| assembled(&planned, &out));
        let refused = refused.unwrap_err().message;
        assert!(refused.contains("another") && refused.contains(kind) && !out.exists(), "{kind}: {refused}");
        (0..2).for_each(|number| fs::remove_file(results.join(format!("{kind}-0000{number}"))).unwrap());
    }
    run_tasks(&planned, &ALL).unwrap();
    let rows = ["rows-00000", "rows-00001"].map(|name| fs::read(results.join(name)).unwrap());
    fs::write(results.join("rows-00000"), &rows[1]).unwrap();
    let refused = assembled(&planned, &out).unwrap_err().message;
    assert!(refused.contains("of another task or plan"), "{refused}");
    fs::write(results.join("rows-00000"), &rows[0]).unwrap();
    assert_eq!(
        assembled(&planned, &out).unwrap(),
        merged(&run, &folder.path().join("one.h5"), &Inputs::default())
    );
}

#[test]
fn a_text_in_two_shards_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    write_run(&run, &(0..100).map(text).chain([text(30)]).collect::<Vec<_>>(), 3);
    let planned = plan(&run, "merge", 2, &Inputs::default()).unwrap();
    let refused = run_tasks(&planned, &ALL).unwrap_err();
    assert!(refused.message.contains("expected in one shard only"), "{}", refused.message);
}

#[test]
fn a_line_that_is_no_task_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    write_run(&run, &texts(20), 1);
    let planned = plan(&run, "merge", 2, &Inputs::default()).unwrap();
    for line in ["rows 2", "rows", "17\trows 0", "columns 0", "shards -1"] {
        let refused = work(&planned, line.as_bytes(), Vec::new(), &work_options(1)).unwrap_err();
        assert!(refused.message.contains("expected shards, words or rows"), "{line}: {}", refused.message);
    }
    work(&planned, "\n  \n".as_bytes(), Vec::new(), &work_options(1)).unwrap();
}

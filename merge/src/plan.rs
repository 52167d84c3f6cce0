//! A plan divides a merge into tasks, which any number of programs run, on any number of machines.
//!
//! The plan, and the results of its tasks, are objects of the run. Each is put if absent, and its bytes depend only on the
//! run and the plan. So a task may be repeated, or run twice at the same time.

use std::collections::HashSet;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::Path;

use corpus::digest::Digest;
use dataset::commit::{RECORD_BYTES_MAX, commit_key};
use dataset::manifest::Seal;
use dataset::{DatasetSettings, SCHEMA_VERSION};
use making::{DatasetFile, Inputs, VocabularyFrom, parsed_record};
use program::exit::{Exit, Failed};
use program::location::Location;
use serde::{Deserialize, Serialize};
use store::{Key, Put, Recorded, S3Options, Store};

use crate::commits::read_commit;
use crate::ranges::Ranges;
use crate::verify::ShardFile;
use crate::vocabulary::{RANGES_MAX, WordRanges};
use crate::{Counted, Result, checked_run};

/// Maximum number of tasks of each kind.
const TASKS_MAX: u32 = 10_000;
/// Maximum number of ranges of hashes.
const RANGES_OF_HASHES_MAX: u32 = 1 << 20;
/// The folder of plans.
pub const PLANS_PREFIX: &str = "merge/";

/// A merge divided into tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Plan {
    /// Version of this record.
    pub schema_version: u32,
    /// The run.
    pub seal: Seal,
    /// Settings of the dataset.
    pub settings: DatasetSettings,
    /// The path or URL of the dataset whose vocabulary is reused.
    pub vocabulary: Option<String>,
    /// The path or URL of the dataset whose texts are excluded.
    pub without: Option<String>,
    /// Number of tasks of each kind.
    pub tasks: u32,
    /// Number of ranges of hashes, at least one per task.
    pub ranges: u32,
    /// The first word of each range of words but the first; up to `RANGES_MAX` ranges per task.
    pub words: Vec<String>,
}

corpus::read_from_objects!(Plan);

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// Name of the plan in the run.
    pub name: String,
    /// The mappers' ledger and the limits of its counts.
    pub counted: Counted,
    /// The dataset whose vocabulary is reused.
    pub vocabulary: Option<Location>,
    /// Maximum number of words, if no vocabulary is reused.
    pub from: VocabularyFrom,
    /// The dataset whose texts are excluded, and where it is.
    pub without: Option<(Location, DatasetFile)>,
    /// Number of tasks of each kind.
    pub tasks: u32,
}

/// A task of a plan, and the name of its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Verifies a group of shards.
    Shards(u32),
    /// Sums the dictionaries over ranges of words.
    Words(u32),
    /// Encodes ranges of rows. Needs the results of all tasks of the other kinds.
    Rows(u32),
}

/// In the order of the list. Hadoop starts maps with longer lines first.
const KINDS: [fn(u32) -> Task; 3] = [Task::Shards, Task::Words, Task::Rows];

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shards(number) => write!(f, "shards {number:05}"),
            Self::Words(number) => write!(f, "words {number:05}"),
            Self::Rows(number) => write!(f, "rows {number:05}"),
        }
    }
}

/// A plan in its run.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Its name.
    name: String,
    /// Digest of its record.
    digest: Digest,
    store: Store,
}

/// Checks a run and puts a plan for its merge, or finds the same plan.
pub fn plan(store: &Store, options: &PlanOptions, scratch: &Path) -> Result<Planned> {
    check_name(&options.name)?;
    let (commits, seal) = checked_run(store, &options.counted)?;
    let without = options.without.as_ref();
    let inputs = Inputs::open(&options.from, without.map(|(_, file)| file), &seal.settings)?;
    let n_ranges = Ranges::suiting(seal.ledger.reducer.rows, commits.len()).n().max(options.tasks as usize);
    let largest = commits.iter().max_by_key(|commit| commit.distinct_words);
    let words = match largest {
        None => Vec::new(),
        Some(commit) => {
            let file = ShardFile::partial(store, &Key::new(&commit.object)?, scratch)?;
            let n = RANGES_MAX * options.tasks as usize;
            let ranges = WordRanges::of_dictionary(file.open()?.dictionary(), n)?;
            ranges.starts().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect()
        }
    };
    let plan = Plan {
        schema_version: SCHEMA_VERSION,
        seal,
        settings: inputs.settings().clone(),
        vocabulary: options.vocabulary.as_ref().map(ToString::to_string),
        without: without.map(|(location, _)| location.to_string()),
        tasks: options.tasks,
        ranges: n_ranges as u32,
        words,
    };
    let record = serde_json::to_vec_pretty(&plan).expect("a plan of plain values is JSON");
    let (name, digest) = (options.name.clone(), Digest::of(&record));
    let planned = Planned { plan, name, digest, store: store.clone() };
    planned.put_same(PLAN, &record, |there| {
        format!(
            "{there}: another plan of this name, for other settings, counts or numbers of tasks; choose another --plan"
        )
    })?;
    let lines: String = planned.tasks().map(|task| format!("{task}\n")).collect();
    planned.put_same(TASKS, lines.as_bytes(), |there| {
        format!("{there}: not the list of this plan; delete it, and plan again")
    })?;
    Ok(planned)
}

/// The record of the plan.
pub(crate) const PLAN: &str = "plan.json";
/// The list of the tasks.
const TASKS: &str = "tasks.txt";

impl Planned {
    /// Reads a plan of a run.
    pub fn read(store: &Store, name: &str) -> Result<Self> {
        check_name(name)?;
        let key = Key::new(&format!("{PLANS_PREFIX}{name}/{PLAN}"))?;
        let object = format!("{}/{key}", store.url());
        let bytes = store.get_small(&key, RECORD_BYTES_MAX)?.ok_or_else(|| {
            let why = format!("{object}: no such plan, expected one by merge plan; check --run and --plan");
            Failed::new(Exit::MissingInput, why)
        })?;
        let plan = parsed_record(&object, "plan of a merge", &bytes, |plan: &Plan| plan.schema_version)?;
        let is_divided = (1..=TASKS_MAX).contains(&plan.tasks)
            && (plan.tasks..=RANGES_OF_HASHES_MAX).contains(&plan.ranges)
            && plan.words.len() < RANGES_MAX * plan.tasks as usize
            && plan.words.is_sorted();
        if !is_divided || plan.seal.shards.is_empty() {
            let why = format!(
                "{object} has {} tasks for {} ranges of {} shards, expected 1 to {TASKS_MAX} tasks, a range and a shard \
                 or more, and words in byte order; the record was altered: restore it",
                plan.tasks,
                plan.ranges,
                plan.seal.shards.len()
            );
            return Err(Failed::new(Exit::MissingInput, why));
        }
        Ok(Self { plan, name: name.to_owned(), digest: Digest::of(&bytes), store: store.clone() })
    }

    /// The tasks in the order of the list.
    pub fn tasks(&self) -> impl Iterator<Item = Task> {
        let n = self.plan.tasks;
        KINDS.into_iter().flat_map(move |kind| (0..n).map(kind))
    }

    /// The tasks without a result.
    pub(crate) fn unfinished(&self) -> Result<Vec<Task>> {
        let there = self.store.list(&format!("{PLANS_PREFIX}{}/", self.name))?;
        let there: HashSet<Key> = there.into_iter().map(|object| object.key).collect();
        let mut unfinished = Vec::new();
        for task in self.tasks() {
            if !there.contains(&self.result_key(task)?) {
                unfinished.push(task);
            }
        }
        Ok(unfinished)
    }

    /// The URL of the list of the tasks.
    pub fn list(&self) -> Result<String> {
        Ok(self.url(&self.key(TASKS)?))
    }

    /// The task of a line of the list.
    pub fn task(&self, line: &str) -> Result<Task> {
        let task = line.split_once(' ').and_then(|(kind, number)| {
            let number = number.parse().ok().filter(|&number| number < self.plan.tasks)?;
            match kind {
                "shards" => Some(Task::Shards(number)),
                "words" => Some(Task::Words(number)),
                "rows" => Some(Task::Rows(number)),
                _ => None,
            }
        });
        task.ok_or_else(|| {
            let shown: String = line.chars().take(80).collect();
            let why = format!(
                "task {shown:?}: expected shards, words or rows and a number below {}, a line of {TASKS} of plan {}; under \
                 Hadoop, pass -D stream.map.input.ignoreKey=true",
                self.plan.tasks, self.name
            );
            Failed::new(Exit::BadInput, why)
        })
    }

    /// Identifies the result of a task of this plan.
    pub(crate) fn identity(&self, task: Task) -> Digest {
        Digest::of(format!("{} {task}", self.digest).as_bytes())
    }

    /// The URL of the plan's folder.
    pub(crate) fn folder(&self) -> String {
        format!("{}/{PLANS_PREFIX}{}", self.store.url(), self.name)
    }

    /// The run.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The shards of a task.
    pub(crate) fn shards(&self, number: u32) -> Range<usize> {
        self.share(self.plan.seal.shards.len(), number)
    }

    /// The ranges of hashes of a task.
    pub(crate) fn ranges(&self, number: u32) -> Range<usize> {
        self.share(self.plan.ranges as usize, number)
    }

    /// The ranges of words of a task.
    pub(crate) fn word_ranges(&self, number: u32) -> Range<usize> {
        self.share(self.plan.words.len() + 1, number)
    }

    /// The share of a task in `n` things.
    fn share(&self, n: usize, number: u32) -> Range<usize> {
        let tasks = self.plan.tasks as usize;
        let start = |number: usize| n * number / tasks;
        start(number as usize)..start(number as usize + 1)
    }

    /// All ranges of hashes.
    pub(crate) fn all_ranges(&self) -> Ranges {
        Ranges::equal(NonZeroUsize::new(self.plan.ranges as usize).unwrap_or(NonZeroUsize::MIN))
    }

    /// The datasets on which the new one depends. They must be those of the plan.
    pub(crate) fn inputs(&self, s3: &S3Options) -> Result<(VocabularyFrom, Option<DatasetFile>, Inputs)> {
        let file = |location: &String| -> Result<DatasetFile> {
            let location = Location::of_file(location.into())
                .map_err(|error| Failed::new(Exit::MissingInput, format!("plan {}: {error}", self.name)))?;
            Ok(DatasetFile::of(&location, s3)?)
        };
        let from = match &self.plan.vocabulary {
            None => VocabularyFrom::Frequency(self.plan.settings.vocabulary_size),
            Some(location) => VocabularyFrom::Dataset(file(location)?),
        };
        let without = self.plan.without.as_ref().map(file).transpose()?;
        let inputs = Inputs::open(&from, without.as_ref(), &self.plan.seal.settings)?;
        if inputs.settings() == &self.plan.settings {
            return Ok((from, without, inputs));
        }
        let names = [&self.plan.vocabulary, &self.plan.without].into_iter().flatten().cloned();
        let why = format!(
            "{}: the digest of ids is not that of plan {}, expected the same dataset; restore it, or make another plan",
            names.collect::<Vec<_>>().join(" or "),
            self.name
        );
        Err(Failed::new(Exit::Settings, why))
    }

    /// The name of the result of a task.
    pub(crate) fn result_key(&self, task: Task) -> Result<Key> {
        self.key(&task.to_string().replace(' ', "-"))
    }

    /// The URL of an object of the run.
    pub(crate) fn url(&self, key: &Key) -> String {
        format!("{}/{key}", self.store.url())
    }

    /// The error for a result that is not there.
    pub(crate) fn missing(&self, task: Task) -> Failed {
        let why = format!(
            "{}: task {task} has no result, expected all of {TASKS}; run merge work with its lines first",
            self.folder()
        );
        Failed::new(Exit::MissingInput, why)
    }

    /// The commit record of a partition, which must be the one that the plan lists.
    pub(crate) fn commit(&self, partition: usize) -> Result<dataset::commit::Commit> {
        let key = Key::new(&commit_key(partition as u32))?;
        let commit = read_commit(&self.store, &key, partition as u32)?;
        let sealed = &self.plan.seal.shards[partition];
        if dataset::manifest::SealedShard::from(&commit) == *sealed {
            return Ok(commit);
        }
        let why = format!(
            "{} names {}, the plan {}; the record was altered: restore it",
            self.url(&key),
            commit.object,
            sealed.object
        );
        Err(Failed::new(Exit::MissingInput, why))
    }

    fn key(&self, name: &str) -> Result<Key> {
        Ok(Key::new(&format!("{PLANS_PREFIX}{}/{name}", self.name))?)
    }

    fn put_same(&self, name: &str, record: &[u8], other: impl FnOnce(&str) -> String) -> Result<()> {
        let key = self.key(name)?;
        match self.store.put_record(&key, record, RECORD_BYTES_MAX)? {
            Recorded::AsGiven => Ok(()),
            Recorded::Other(_) => Err(Failed::new(Exit::Settings, other(&self.url(&key)))),
        }
    }
}

/// Refuses a name with a folder.
fn check_name(name: &str) -> Result<()> {
    if !name.contains('/') {
        return Ok(());
    }
    let why =
        format!("--plan {name:?}: found a /, expected a name of A-Z a-z 0-9 . _ - only; choose another name");
    Err(Failed::new(Exit::Usage, why))
}

/// Whether an object of a run is a plan, its list, or the result of a task.
pub(crate) fn is_plan_key(key: &str) -> bool {
    let Some((_, name)) = key.strip_prefix(PLANS_PREFIX).and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let is_result = name.split_once('-').is_some_and(|(kind, number)| {
        matches!(kind, "shards" | "words" | "rows")
            && number.len() == 5
            && number.bytes().all(|digit| digit.is_ascii_digit())
    });
    is_result || [PLAN, TASKS].contains(&name)
}

/// Whether a put stored the object, for what is printed.
pub(crate) fn told(put: &Put) -> &'static str {
    match put {
        Put::Stored(_) => "stored",
        Put::AlreadyThere => "already stored",
    }
}

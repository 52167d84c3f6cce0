//! The runs of a merge: their commit records and manifests, and the manifest of all of them.

use std::collections::HashSet;

use corpus::ledger::{MapperCounts, ReducerCounts, check_run};
use corpus::settings::Difference;
use dataset::commit::Commit;
use dataset::manifest::Seal;
use program::exit::{Exit, Failed};
use store::Store;

use crate::keep::DatasetWords;
use crate::{Counted, Result, Sources, check_ledger, checked_run, put_seal};

/// Complete runs of equal settings.
pub(crate) struct Runs<'a> {
    runs: Vec<(&'a Store, Vec<Commit>, Seal)>,
    /// The manifest of all runs. That of several has no name of a run, the URLs of shards, and the sums of their counts and
    /// digests, as if no text were in two of them.
    pub(crate) seal: Seal,
}

impl<'a> Runs<'a> {
    /// Reads the records of all runs and checks the ledger.
    pub(crate) fn read(sources: &'a Sources, counted: &Counted) -> Result<Self> {
        if let ([store], []) = (&sources.runs[..], &sources.datasets[..]) {
            let (commits, seal) = checked_run(store, counted)?;
            return Ok(Self { runs: vec![(store, commits, seal.clone())], seal });
        }
        let uncounted = Counted { mapper: None, ..*counted };
        let mut runs: Vec<(&Store, Vec<Commit>, Seal)> = Vec::new();
        let of_datasets = sources.datasets.iter().map(|dataset| &dataset.store);
        for store in sources.runs.iter().chain(of_datasets) {
            if runs.iter().any(|(other, ..)| other.url() == store.url()) {
                let why = format!("{} is named twice, expected different runs; name it once", store.url());
                return Err(Failed::new(Exit::Settings, why));
            }
            let (commits, seal) = checked_run(store, &uncounted)?;
            runs.push((store, commits, seal));
        }
        // The order of runs changes nothing.
        runs.sort_by_key(|(store, ..)| store.url());
        check_alike(&runs)?;
        check_once(&runs, &sources.datasets)?;
        let mapper = mapper_of(&runs, sources, counted)?;
        let seal = all(&runs, mapper);
        check_ledger(&seal.ledger, counted)?;
        Ok(Self { runs, seal })
    }

    /// Number of shards.
    pub(crate) fn n_shards(&self) -> usize {
        self.runs.iter().map(|(_, commits, _)| commits.len()).sum()
    }

    /// The number of the run of each shard.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.runs.iter().enumerate().flat_map(|(run, (_, commits, _))| commits.iter().map(move |_| run))
    }

    /// The commit records of all shards and, with several runs or if their words are kept, of the rests of all shards after
    /// them.
    pub(crate) fn commits(&self, keeps_words: bool) -> Result<Vec<(&'a Store, Commit)>> {
        let shards =
            || self.runs.iter().flat_map(|(store, commits, _)| commits.iter().map(|commit| (*store, commit)));
        let mut commits: Vec<_> = shards().map(|(store, commit)| (store, commit.clone())).collect();
        if self.runs.len() > 1 || keeps_words {
            for (store, commit) in shards() {
                let rest = commit.of_rest().ok_or_else(|| {
                    let why = format!(
                        "{}: partition {} has no words that rows lack, which merging with other runs needs, because a text \
                         may be in several; run its reducers with --keep-words, into a new --run",
                        store.url(),
                        commit.partition
                    );
                    Failed::new(Exit::MissingInput, why)
                })?;
                commits.push((store, rest));
            }
        }
        Ok(commits)
    }

    /// Puts the manifest of each run.
    pub(crate) fn put_seals(&self) -> Result<()> {
        self.runs.iter().try_for_each(|(store, _, seal)| put_seal(store, seal))
    }
}

/// Checks that all runs have equal settings.
fn check_alike(runs: &[(&Store, Vec<Commit>, Seal)]) -> Result<()> {
    runs.windows(2).try_for_each(|pair| {
        let [(one, _, ours), (other, _, theirs)] = pair else { return Ok(()) };
        ours.settings.difference(&theirs.settings).map_or(Ok(()), |difference| {
            let Difference { setting, ours, theirs } = difference;
            let why = format!(
                "{} and {} differ in {setting}: {ours} and {theirs}; merge runs whose reducers had the same settings",
                one.url(),
                other.url()
            );
            Err(Failed::new(Exit::Settings, why))
        })
    })
}

/// The mappers' counts of all runs, if they are known. Counts that were passed are those of the runs of reducers.
fn mapper_of(
    runs: &[(&Store, Vec<Commit>, Seal)],
    sources: &Sources,
    counted: &Counted,
) -> Result<Option<MapperCounts>> {
    let is_dataset = |store: &Store| sources.datasets.iter().any(|other| other.store.url() == store.url());
    let (mut sum, mut of_runs) = (counted.mapper.unwrap_or_default(), ReducerCounts::default());
    let mut is_known = true;
    for (store, _, seal) in runs {
        if counted.mapper.is_some() && !is_dataset(store) {
            of_runs += seal.ledger.reducer;
            continue;
        }
        match seal.ledger.mapper {
            Some(mapper) => sum += mapper,
            None => is_known = false,
        }
    }
    if let Some(mapper) = &counted.mapper {
        check_run(mapper, &of_runs)?;
    }
    Ok(is_known.then_some(sum))
}

/// Refuses two runs, or a run and a dataset that was made of it, if all shards of one are in the other: their votes would
/// count twice. Shards without rows are equal in any run.
fn check_once(runs: &[(&Store, Vec<Commit>, Seal)], datasets: &[DatasetWords]) -> Result<()> {
    let of_runs = runs.iter().map(|(store, commits, _)| {
        let commits = commits.iter().filter(|commit| commit.counts.rows > 0);
        (store.url(), commits.map(|commit| &*commit.sha256).collect::<HashSet<_>>())
    });
    let of_datasets = datasets.iter().map(|DatasetWords { name, shards, .. }| {
        let shards = shards.iter().filter(|shard| shard.rows > 0);
        (name.clone(), shards.map(|shard| &*shard.sha256).collect())
    });
    let all: Vec<_> = of_runs.chain(of_datasets).collect();
    for (at, (one, shards)) in all.iter().enumerate() {
        for (other, others) in &all[..at] {
            let (few, many) = if shards.len() < others.len() { (shards, others) } else { (others, shards) };
            if !few.is_empty() && few.is_subset(many) {
                let why = format!(
                    "{other} and {one} have the same shards, so their reviews would count twice; name one of both"
                );
                return Err(Failed::new(Exit::Settings, why));
            }
        }
    }
    Ok(())
}

/// The manifest of all runs.
fn all(runs: &[(&Store, Vec<Commit>, Seal)], mapper: Option<MapperCounts>) -> Seal {
    let mut all = runs[0].2.clone();
    (all.run, all.shards) = (String::new(), Vec::new());
    all.ledger.mapper = mapper;
    for (number, (store, _, seal)) in runs.iter().enumerate() {
        let url = |name: &str| format!("{}/{name}", store.url());
        all.shards.extend(seal.shards.iter().cloned().map(|mut shard| {
            shard.object = url(&shard.object);
            for file in [&mut shard.texts, &mut shard.rest].into_iter().flatten() {
                file.name = url(&file.name);
            }
            shard
        }));
        if number > 0 {
            all.ledger.reducer += seal.ledger.reducer;
            all.row_digest += seal.row_digest;
        }
    }
    all
}

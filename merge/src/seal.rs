//! The manifest of a run: its shards, digest, counts and settings.

use std::collections::BTreeMap;

use corpus::digest::Digest;
use corpus::ledger::{MapperCounts, ReducerCounts};
use dataset::commit::{Commit, ListedFile, RECORD_BYTES_MAX, SEAL_KEY};
use dataset::manifest::{Ledger, Seal, SealedShard};
use making::parsed_record;
use program::exit::{Exit, Failed};
use store::{Key, Store};

use crate::Result;

/// The manifest of a run, if it has one.
pub(crate) fn read_seal(store: &Store) -> Result<Option<Seal>> {
    let key = Key::new(SEAL_KEY)?;
    let Some(bytes) = store.get_small(&key, RECORD_BYTES_MAX)? else { return Ok(None) };
    parsed_seal(store, &bytes).map(Some)
}

/// Parses the manifest of a run.
pub(crate) fn parsed_seal(store: &Store, bytes: &[u8]) -> Result<Seal> {
    let object = format!("{}/{SEAL_KEY}", store.url());
    Ok(parsed_record(&object, "manifest of a run", bytes, |seal: &Seal| seal.schema_version)?)
}

/// The run's manifest for these commit records.
pub(crate) fn seal_of(commits: &[Commit], mapper: Option<MapperCounts>) -> Seal {
    let (mut row_digest, mut reducer) = (Digest::default(), ReducerCounts::default());
    for commit in commits {
        row_digest += commit.row_digest;
        reducer += commit.counts;
    }
    Seal {
        schema_version: dataset::SCHEMA_VERSION,
        run: commits[0].run.clone(),
        shards: commits.iter().map(SealedShard::from).collect(),
        row_digest,
        ledger: Ledger { mapper, reducer, tables: Vec::new(), input: BTreeMap::new() },
        settings: commits[0].settings.clone(),
    }
}

/// Compares the manifest of these commit records with the stored manifest. The mappers' ledger may be missing
/// in one of the two.
pub(crate) fn check_sealed(store: &Store, sealed: &Seal, now: &Seal) -> Result<()> {
    let unsealed = |what: String, found: String, expected: String| {
        Err(Failed::new(
            Exit::MissingInput,
            format!(
                "{} was merged before: {what} is {found}, the run's manifest has {expected}; restore the commit records \
                 and the manifest of the run",
                store.url()
            ),
        ))
    };
    let (found, expected) = (now.shards.len(), sealed.shards.len());
    if found != expected {
        return unsealed("the number of shards".to_owned(), found.to_string(), expected.to_string());
    }
    for (partition, (now, sealed)) in now.shards.iter().zip(&sealed.shards).enumerate() {
        if let Some((what, found, expected)) = difference(now, sealed) {
            return unsealed(format!("the {what} of partition {partition}"), found, expected);
        }
    }
    if let Some(difference) = now.settings.difference(&sealed.settings) {
        return unsealed(difference.setting.to_owned(), difference.ours, difference.theirs);
    }
    let pairs = [
        ("the run's name", now.run.clone(), sealed.run.clone()),
        ("the ledger", now.ledger.reducer.to_string(), sealed.ledger.reducer.to_string()),
        ("the row digest", now.row_digest.to_string(), sealed.row_digest.to_string()),
    ];
    match pairs.into_iter().find(|(_, found, expected)| found != expected) {
        None => Ok(()),
        Some((what, found, expected)) => unsealed(what.to_owned(), found, expected),
    }
}

/// The first field in which two shards in a manifest differ, with both values.
fn difference(one: &SealedShard, other: &SealedShard) -> Option<(&'static str, String, String)> {
    let shown = |file: &Option<ListedFile>| match file {
        Some(file) => format!("{} of SHA-256 {}", file.name, file.sha256),
        None => "none".to_owned(),
    };
    let pairs = [
        ("object", one.object.clone(), other.object.clone()),
        ("size", one.bytes.to_string(), other.bytes.to_string()),
        ("SHA-256", one.sha256.clone(), other.sha256.clone()),
        ("host", one.host.clone(), other.host.clone()),
        ("attempt", one.attempt.clone(), other.attempt.clone()),
        ("time", one.committed_unix_s.to_string(), other.committed_unix_s.to_string()),
        ("number of rows", one.rows.to_string(), other.rows.to_string()),
        ("row digest", one.row_digest.to_string(), other.row_digest.to_string()),
        ("object of texts", shown(&one.texts), shown(&other.texts)),
        ("object of kept words", shown(&one.rest), shown(&other.rest)),
    ];
    pairs.into_iter().find(|(_, one, other)| one != other)
}

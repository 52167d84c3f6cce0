//! Snapshots: the state and the tables at the beginning of a file of the log, in a folder that appears whole.
//!
//! Tables are copied block by block while they are updated. So a snapshot also contains some updates of the log after it;
//! recovery leaves these out, by the versions of the blocks.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use durable::sums::{Sums, verified};
use durable::{NewFolder, REMEDY, Summary};
use program::exit::Failed;
use program::temporary;
use serde::{Deserialize, Serialize};

use crate::error::{At, Error, Result};
use crate::keys::Keys;
use crate::log::{ServerSettings, check_settings};
use crate::spec::Spec;
use crate::state::State;
use crate::table::Table;

pub(crate) const PREFIX: &str = "snapshot-";
const STATE: &str = "state.json";
const HELD: &str = "held.bin";
const KEYS: &str = "keys.bin";
const PLACES: &str = "places.bin";
const STATE_BYTES_MAX: u64 = 1 << 28;
const HELD_BYTES_MAX: u64 = 1 << 40;
const KEYS_BYTES_MAX: u64 = 1 << 40;

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    settings: ServerSettings,
    state: State,
    /// Sizes and digests of the tables.
    files: BTreeMap<String, Summary>,
}

/// What a snapshot is made of.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) settings: ServerSettings,
    pub(crate) state: State,
    pub(crate) tables: Vec<Arc<Table>>,
    /// The keys, as [`Keys::to_bytes`].
    pub(crate) keys: Vec<u8>,
    /// The number of the first file of the log that it does not contain.
    pub(crate) number: u64,
    /// That file. It is made durable before the snapshot, which can contain updates of it.
    pub(crate) log: File,
}

impl Snapshot {
    /// Writes the snapshot, and deletes older ones.
    pub(crate) fn write(self, folder: &Path) -> Result<()> {
        let path = folder_path(folder, self.number);
        let mut out = NewFolder::begin(&path)?;
        for (at, table) in self.tables.iter().enumerate() {
            out.put(&file_name(at), |output| table.write(output))?;
        }
        out.put(HELD, |output| output.write_all(&self.state.held_bytes()))?;
        if has_keys(&self.state.specs) {
            out.put(KEYS, |output| output.write_all(&self.keys))?;
            out.put(PLACES, |output| output.write_all(&self.state.place_bytes()))?;
        }
        let content = Content { settings: self.settings, state: self.state, files: out.files().clone() };
        let json = serde_json::to_vec(&content).map_err(Failed::defect)?;
        out.put(STATE, |output| output.write_all(&json))?;
        self.log.sync_data().at(&path, "write the log after it")?;
        out.finish()?;
        for old in numbers(folder)?.into_iter().filter(|&old| old < self.number) {
            let path = folder_path(folder, old);
            fs::remove_dir_all(&path).at(&path, "delete it")?;
        }
        Ok(())
    }
}

/// A snapshot that was read.
#[derive(Debug)]
pub(crate) struct LoadedSnapshot {
    pub(crate) state: State,
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) keys: Keys,
    /// The number of the first file of the log after it.
    pub(crate) number: u64,
}

/// Reads the newest snapshot of a folder. Deletes those of killed servers.
pub(crate) fn recover(
    folder: &Path,
    settings: &ServerSettings,
    check_memory: impl Fn(&[Spec]) -> Result<()>,
) -> Result<Option<LoadedSnapshot>> {
    temporary::clear(folder);
    let Some(number) = numbers(folder)?.pop() else { return Ok(None) };
    let path = folder_path(folder, number);
    let sums = Sums::read(&path)?;
    let json = sums.content(STATE, STATE_BYTES_MAX)?;
    let Content { settings: found, mut state, files } =
        serde_json::from_slice(&json).map_err(|error| damaged(&path.join(STATE), error.to_string()))?;
    check_settings(&path.join(STATE), &found, settings)?;
    check_memory(&state.specs)?;
    let mut tables = Vec::new();
    for (at, spec) in state.specs.iter().enumerate() {
        let path = path.join(file_name(at));
        let summary = files.get(&file_name(at)).ok_or_else(|| damaged(&path, "no digest".to_owned()))?;
        let mut table = Table::new(spec.clone(), settings.shard, settings.servers);
        verified(&path, summary, || {
            let read = File::open(&path)
                .and_then(|file| table.restore(&mut BufReader::with_capacity(1 << 20, file)));
            read.map_err(|source| durable::Error::Io { path: path.clone(), action: "read it", source })
        })?;
        tables.push(Arc::new(table));
    }
    let held = sums.content(HELD, HELD_BYTES_MAX)?;
    state.restore_held(held).ok_or_else(|| damaged(&path.join(HELD), "another content".to_owned()))?;
    let mut keys = Keys::of(&state.specs);
    if has_keys(&state.specs) {
        let bytes = sums.content(KEYS, KEYS_BYTES_MAX)?;
        keys.restore(&bytes).ok_or_else(|| damaged(&path.join(KEYS), "another content".to_owned()))?;
        let places = sums.content(PLACES, KEYS_BYTES_MAX)?;
        let restored = state.restore_places(places);
        restored.ok_or_else(|| damaged(&path.join(PLACES), "another content".to_owned()))?;
    }
    Ok(Some(LoadedSnapshot { state, tables, keys, number }))
}

fn has_keys(specs: &[Spec]) -> bool {
    specs.iter().any(|spec| spec.min_count > 0)
}

fn damaged(path: &Path, found: String) -> Error {
    durable::Error::unexpected(path, "it", found, "a snapshot of this release", REMEDY).into()
}

fn file_name(table: usize) -> String {
    format!("table-{table}.bin")
}

fn folder_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{number:012}"))
}

/// The numbers of the snapshots in a folder, ascending.
fn numbers(folder: &Path) -> Result<Vec<u64>> {
    let list = || -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in fs::read_dir(folder)? {
            let name = entry?.file_name();
            let text = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
            numbers.extend(text.and_then(|text| text.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        Ok(numbers)
    };
    list().at(folder, "list it")
}

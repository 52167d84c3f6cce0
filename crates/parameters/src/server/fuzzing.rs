//! What fuzz targets call: the requests of clients without a connection, and the log of a folder.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use program::exit::Exit;
use prost::Message;

use super::calls::check_lengths;
use super::writer::{apply, repeat};
use crate::error::{Error, Result};
use crate::keys::{self, Keys};
use crate::log::{Log, ServerSettings};
use crate::messages::{CreateRequest, PullRequest, PushRequest};
use crate::refusal::Refusal;
use crate::spec::{Initial, Optimizer, Spec};
use crate::state::{State, Verdict};
use crate::table::{Table, tables_bytes};

const SETTINGS: ServerSettings = ServerSettings { shard: 0, servers: 1, workers: 2, staleness: Some(1) };
/// Larger tables of a log are refused.
const TABLES_BYTES_MAX: usize = 1 << 20;

/// The state and the only table of a server with two workers.
#[derive(Debug)]
pub struct Served {
    state: State,
    table: Arc<Table>,
    keys: Keys,
}

impl Default for Served {
    fn default() -> Self {
        let spec = Spec {
            name: "rows".to_owned(),
            n_rows: 9,
            dim: 3,
            initial: Initial::Zero,
            optimizer: Optimizer::Adagrad { rate: 0.1 },
            content: String::new(),
            min_count: 0,
        };
        let mut state = State::new(SETTINGS.workers, SETTINGS.staleness);
        state.specs.push(spec.clone());
        let table = Arc::new(Table::new(spec, SETTINGS.shard, SETTINGS.servers));
        Self { state, table, keys: Keys::default() }
    }
}

impl Served {
    /// Reads the description of a table. Returns whether it was accepted.
    pub fn create(&self, bytes: Bytes) -> bool {
        let Ok(request) = CreateRequest::decode(bytes) else { return false };
        Spec::of_request(request).is_ok_and(|spec| self.state.table(&spec).is_ok())
    }

    /// Accepts and applies an update, or refuses it. Returns whether it was accepted.
    pub fn push(&mut self, bytes: Bytes) -> bool {
        let Ok(push) = PushRequest::decode(bytes) else { return false };
        let checked = check_lengths("updates", push.updates.iter().map(|update| &update.rows))
            .and_then(|()| keys::check(&push.counts))
            .and_then(|()| push.updates.iter().try_for_each(|update| self.of(update.table)?.check(update)));
        let Ok(Verdict::New(staleness)) = checked.and_then(|()| self.state.judge(&push)) else {
            return false;
        };
        for push in self.state.accept(push, staleness) {
            let table = Arc::clone(&self.table);
            apply(&mut self.state, &push, |_| Ok(Arc::clone(&table)))
                .expect("a checked update can be applied");
            self.keys.count(&push.counts);
        }
        true
    }

    /// Reads rows. Returns their number of bytes.
    pub fn pull(&self, bytes: Bytes) -> Option<usize> {
        let request = PullRequest::decode(bytes).ok()?;
        check_lengths("reads", request.reads.iter().map(|read| &read.rows)).ok()?;
        let read =
            |read: &crate::messages::RowNumbers| Some(self.of(read.table).ok()?.read(&read.rows).ok()?.len());
        request.reads.iter().map(read).sum()
    }

    /// Whether the ledger balances.
    pub fn is_balanced(&self) -> bool {
        self.state.ledger.balances()
    }

    fn of(&self, table: u32) -> std::result::Result<&Table, Refusal> {
        if table == 0 { Ok(&self.table) } else { Err(Refusal::invalid("no table")) }
    }
}

/// Creates the first file of a log in an empty folder, and returns its path. Groups are appended to it.
///
/// # Errors
/// If it cannot be written.
pub fn create_log(folder: &Path) -> Result<std::path::PathBuf> {
    Log::create(folder, &SETTINGS, 0).map(|log| log.path().to_owned())
}

/// Recovers the state of a folder. Returns the number of entries and of removed bytes.
///
/// # Errors
/// If the log is damaged.
pub fn recover_log(folder: &Path) -> Result<(u64, u64)> {
    let (mut state, mut tables) = (State::new(SETTINGS.workers, SETTINGS.staleness), Vec::new());
    let mut keys = Keys::default();
    let check_memory = |specs: &[Spec]| match tables_bytes(specs, SETTINGS.shard, SETTINGS.servers) {
        0..=TABLES_BYTES_MAX => Ok(()),
        needs => Err(Error::failed(Exit::Settings, format!("its tables need {needs} bytes"))),
    };
    let mut n_entries = 0;
    let (_, torn) = Log::recover(folder, &SETTINGS, 0, |entry| {
        n_entries += 1;
        repeat(&mut state, (&mut tables, &mut keys), entry, &SETTINGS, &check_memory)
    })?;
    Ok((n_entries, torn))
}

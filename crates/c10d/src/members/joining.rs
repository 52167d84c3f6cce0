//! The steps of a rank into a generation: the leader waits for the others and lists them, and all confirm the list.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::Instant;

use super::{LOOK, LOST, Members, NEWEST, beat_key, leader_key, list_key, lost_ranks, newest, text_of};
use crate::error::Result;

/// A rank on its way into a generation.
pub(super) struct Joining<'a> {
    pub(super) members: &'a Members,
    pub(super) generation: u64,
}

impl Joining<'_> {
    pub(super) fn key(&self, name: &str, rank: usize) -> String {
        format!("c10d/regroup/{}/{name}/{rank}", self.generation)
    }

    /// Lists the members of the generation, as its leader.
    pub(super) fn list(&self, lost: &[usize]) -> Result<()> {
        let Members { store, own, ranks, .. } = self.members;
        let arrivals = self.members.arrivals()?;
        for &rank in &arrivals {
            store.set(&self.key("here", rank), b"")?;
        }
        let all: Vec<usize> = ranks.iter().chain(&arrivals).copied().collect();
        let left: Vec<usize> = all.iter().filter(|rank| !lost.contains(rank)).copied().collect();
        let here = self.wait_for("here", &left)?;
        if self.is_past()? {
            // The others took this rank for lost.
            return Ok(());
        }
        let gone = all.into_iter().filter(|rank| !here.contains(rank));
        let before = lost_ranks(store)?.unwrap_or_default();
        let gone: BTreeSet<usize> = before.into_iter().chain(gone).collect();
        store.set(&list_key(self.generation, *own), text_of(&here).as_bytes())?;
        store.set(LOST, text_of(&gone).as_bytes())
    }

    /// Confirms that this rank has read the leader's list. Returns None if all members have, or else those that have not. If a
    /// later generation has begun, nobody is waited for.
    pub(super) fn missing(&self, leader: usize, ranks: &[usize]) -> Result<Option<Vec<usize>>> {
        let Members { store, own, .. } = self.members;
        // Each member tells those that wait to join, because the leader may have died.
        if newest(store)?.is_none_or(|newest| newest.generation < self.generation) {
            store.set(NEWEST, format!("{} {leader}", self.generation).as_bytes())?;
        }
        store.set(&self.key("ready", *own), b"")?;
        let ready = self.wait_for("ready", ranks)?;
        if self.is_past()? {
            return Ok(Some(Vec::new()));
        }
        let missing: Vec<usize> = ranks.iter().filter(|rank| !ready.contains(rank)).copied().collect();
        Ok(if missing.is_empty() { None } else { Some(missing) })
    }

    /// Whether a later generation has begun.
    fn is_past(&self) -> Result<bool> {
        self.members.store.is_set(&leader_key(self.generation + 1))
    }

    /// Waits until each rank has set this key or has been silent for the limit, or a later generation has begun. Returns those
    /// that have set it and beat.
    pub(super) fn wait_for(&self, name: &str, ranks: &[usize]) -> Result<Vec<usize>> {
        let Members { store, own, options, .. } = self.members;
        let mut beats: BTreeMap<usize, (i64, Instant)> = BTreeMap::new();
        loop {
            let (mut here, mut is_one_awaited) = (Vec::new(), false);
            for &rank in ranks {
                let beat = store.add(&beat_key(rank), 0)?;
                let (last, since) = beats.entry(rank).or_insert((beat, Instant::now()));
                if *last != beat {
                    (*last, *since) = (beat, Instant::now());
                }
                if rank != *own && since.elapsed() > options.silence {
                    continue;
                }
                match store.is_set(&self.key(name, rank))? {
                    true => here.push(rank),
                    false => is_one_awaited = true,
                }
            }
            if !is_one_awaited || self.is_past()? {
                return Ok(here);
            }
            // Not by a call that waits: at its limit, PyTorch prints a warning.
            sleep(LOOK);
        }
    }
}

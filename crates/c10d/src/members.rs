//! The ranks of a launch that are still in its group. After a loss, the others agree on who is left, and form a smaller group
//! without ending their processes.
//!
//! This needs a store that outlives any rank. Each group is a generation, numbered from 0. Ranks keep the numbers of the launch
//! in the store, and get new ones in a group, in the same order:
//!
//! | Key of the store | Value |
//! |---|---|
//! | `c10d/beat/RANK` | a number that the rank increases as long as its process runs |
//! | `c10d/regroup/GENERATION/here/RANK` | set by a rank that joins the generation |
//! | `c10d/regroup/GENERATION/leader` | the rank that lists the members: the first to set it |
//! | `c10d/regroup/GENERATION/list/LEADER` | the members, as text |
//! | `c10d/regroup/GENERATION/ready/RANK` | set by a member that has read the list |
//! | `c10d/regroup/lost` | all ranks that are in no group any more, for the launcher; not set before [`Members::begin`] |
//!
//! A rank whose number stays the same for the limit of silence is not waited for. If it was only stopped, it later finds a list
//! without it, and gets an error.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use launch::Launch;
use program::threads::detach;

use crate::error::{Error, Result};
use crate::group::ProcessGroup;
use crate::options::{Backend, Options};
use crate::store::TcpStore;

/// Beats per limit of silence.
const BEATS_PER_LIMIT: u32 = 10;
/// Time between two looks at the keys and beats of ranks.
const LOOK: Duration = Duration::from_millis(20);
/// The ranks that are in no group any more.
const LOST: &str = "c10d/regroup/lost";

/// The members of a generation.
pub struct Members {
    store: TcpStore,
    /// This process's rank in the launch.
    own: usize,
    world_size: usize,
    ranks: Vec<usize>,
    generation: u64,
    options: Options,
    /// The thread that beats ends when the last member of this process is dropped.
    beats: Sender<()>,
}

impl std::fmt::Debug for Members {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Members(generation {}, ranks {:?})", self.generation, self.ranks)
    }
}

impl Members {
    /// All ranks of a launch whose store outlives any rank.
    pub fn of_launch(launch: &Launch, options: &Options) -> Result<Self> {
        let store = TcpStore::from_launch(launch, options.timeout)?;
        let beats = start_beats(&store, launch.rank, options)?;
        let ranks = (0..launch.world_size).collect();
        let (own, world_size, options) = (launch.rank, launch.world_size, options.clone());
        Ok(Self { store, own, world_size, ranks, generation: 0, options, beats })
    }

    /// The members by their rank in the group. Values are ranks of the launch.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// The number of losses so far after which ranks agreed on a new group.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Tells the launcher that from now on the members go on without a lost one.
    pub fn begin(&self) -> Result<()> {
        self.store.set(LOST, b"")
    }

    /// Joins the group of the members over Gloo.
    pub fn group(&self) -> Result<ProcessGroup> {
        let rank = self.ranks.iter().position(|&rank| rank == self.own).unwrap_or_default();
        let options = Options { name: self.generation.to_string(), ..self.options.clone() };
        ProcessGroup::new(&self.store, rank, self.ranks.len(), Backend::Gloo, &options)
    }

    /// The members of a later generation, after `lost` was lost, a rank of this group. Waits for each other rank whose process
    /// runs, so that one which computes without its group is not lost. Errors: the others went on without this rank.
    pub fn without(&self, lost: Option<usize>) -> Result<Self> {
        let mut lost: Vec<usize> = lost.and_then(|lost| self.ranks.get(lost)).copied().into_iter().collect();
        for generation in self.generation + 1.. {
            let joining = Joining { members: self, generation };
            let own = self.own.to_string();
            self.store.set(&joining.key("here", self.own), b"")?;
            let leader =
                self.store.compare_set(&format!("c10d/regroup/{generation}/leader"), b"", own.as_bytes())?;
            let leader = ranks_of(&leader)?.first().copied().unwrap_or(self.own);
            let list = joining.key("list", leader);
            if leader == self.own {
                let left: Vec<usize> =
                    self.ranks.iter().filter(|rank| !lost.contains(rank)).copied().collect();
                let here = joining.wait_for("here", &left)?;
                let gone: Vec<usize> = (0..self.world_size).filter(|rank| !here.contains(rank)).collect();
                self.store.set(&list, text_of(&here).as_bytes())?;
                self.store.set(LOST, text_of(&gone).as_bytes())?;
            }
            if joining.wait_for("list", &[leader])?.is_empty() {
                lost.push(leader);
                continue;
            }
            let ranks = ranks_of(&self.store.get(&list)?)?;
            if !ranks.contains(&self.own) {
                return Err(fenced(&ranks));
            }
            self.store.set(&joining.key("ready", self.own), b"")?;
            let ready = joining.wait_for("ready", &ranks)?;
            if ready == ranks {
                let (store, options, beats) = (self.store.clone(), self.options.clone(), self.beats.clone());
                let (own, world_size) = (self.own, self.world_size);
                return Ok(Self { store, own, world_size, ranks, generation, options, beats });
            }
            lost.extend(ranks.iter().filter(|rank| !ready.contains(rank)));
        }
        Err(Error::Rendezvous { detail: "no generation is left".to_owned() })
    }
}

/// The ranks of a launch that are in no group any more. None before [`Members::begin`].
pub fn lost_ranks(store: &TcpStore) -> Result<Option<Vec<usize>>> {
    if store.is_set(LOST)? { ranks_of(&store.get(LOST)?).map(Some) } else { Ok(None) }
}

/// A rank on its way into a generation.
struct Joining<'a> {
    members: &'a Members,
    generation: u64,
}

impl Joining<'_> {
    fn key(&self, name: &str, rank: usize) -> String {
        format!("c10d/regroup/{}/{name}/{rank}", self.generation)
    }

    /// Waits until each rank has set this key or has been silent for the limit. Returns those that have set it and beat.
    fn wait_for(&self, name: &str, ranks: &[usize]) -> Result<Vec<usize>> {
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
            if !is_one_awaited {
                return Ok(here);
            }
            // Not by a call that waits: at its limit, PyTorch prints a warning.
            sleep(LOOK);
        }
    }
}

fn beat_key(rank: usize) -> String {
    format!("c10d/beat/{rank}")
}

/// Starts a thread that shows that this process runs. It has its own connection, because calls of one wait for each other.
fn start_beats(store: &TcpStore, rank: usize, options: &Options) -> Result<Sender<()>> {
    let (sender, ended) = channel();
    let own = TcpStore::connect(store.host(), store.port(), options.timeout)?;
    let pause = options.silence / BEATS_PER_LIMIT;
    detach(move || {
        while own.add(&beat_key(rank), 1).is_ok()
            && ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout)
        {}
    });
    Ok(sender)
}

fn text_of(ranks: &[usize]) -> String {
    ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

fn ranks_of(text: &[u8]) -> Result<Vec<usize>> {
    let text = String::from_utf8_lossy(text);
    let ranks = text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>();
    ranks.map_err(|_| Error::Rendezvous { detail: format!("the store has {text:?}, expected ranks") })
}

fn fenced(ranks: &[usize]) -> Error {
    let detail = format!(
        "this rank was silent for too long, and the others (ranks {}) went on without it",
        text_of(ranks).replace(' ', ", ")
    );
    Error::Rendezvous { detail }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::thread;

    use program::threads::spawn;

    use super::*;

    fn members(store: &TcpStore, rank: usize, silence: Duration) -> Members {
        let launch = Launch {
            rank,
            world_size: 3,
            local_world_size: Some(3),
            master_port: store.port(),
            agent_store: true,
            survives: true,
            ..Launch::alone()
        };
        let options = Options { silence, timeout: Duration::from_secs(60), ..Options::default() };
        Members::of_launch(&launch, &options).unwrap()
    }

    #[test]
    fn those_who_are_left_get_ranks_in_the_same_order_and_a_late_one_is_fenced() {
        let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
        let all: Vec<Members> = (0..3).map(|rank| members(&store, rank, Duration::from_secs(60))).collect();
        assert_eq!(lost_ranks(&store).unwrap(), None);
        all[1].begin().unwrap();
        assert_eq!(lost_ranks(&store).unwrap(), Some(Vec::new()));
        thread::scope(|scope| {
            for of_rank in &all[1..] {
                let regroup = || {
                    let next = of_rank.without(Some(0)).unwrap();
                    assert_eq!((next.ranks(), next.generation()), (&[1, 2][..], 1));
                    assert_eq!(next.group().unwrap().rank(), next.own - 1);
                };
                drop(spawn(scope, regroup));
            }
        });
        assert_eq!(lost_ranks(&store).unwrap(), Some(vec![0]));
        let fenced = all[0].without(Some(2)).unwrap_err();
        assert!(
            fenced.is_worth_retrying() && fenced.to_string().contains("(ranks 1, 2) went on"),
            "{fenced}"
        );
    }

    #[test]
    fn a_rank_that_does_not_beat_is_not_waited_for() {
        let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
        let silence = Duration::from_secs(2);
        let first = members(&store, 0, silence);
        // It ends before the others know.
        drop(members(&store, 1, silence));
        let third = members(&store, 2, silence);
        let next = first.without(Some(2)).unwrap();
        assert_eq!((next.ranks(), next.generation()), (&[0][..], 1));
        assert_eq!(next.group().unwrap().world_size(), 1);
        assert_eq!(lost_ranks(&store).unwrap(), Some(vec![1, 2]));
        drop(third);
    }
}

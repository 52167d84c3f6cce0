//! The ranks of a training whose group changes. After a loss, the others agree on who is left, and form a smaller group without
//! ending their processes. Ranks that arrive later join the next group.
//!
//! This needs a store that outlives any rank. Each group is a generation, numbered from 0. Ranks have numbers by which they were
//! started, and get new ones in a group: those of the group before in the same order, then those that join.
//!
//! | Key of the store | Value |
//! |---|---|
//! | `c10d/beat/RANK` | a number that the rank increases as long as its process runs |
//! | `c10d/regroup/started` | number of ranks that were started; a launcher that starts one more gets its number here |
//! | `c10d/regroup/training` | a code with the ranks' key, and what the group trains; not set before [`Members::begin`] |
//! | `c10d/regroup/arrival/RANK` | a code with the ranks' key, of a rank that waits to join |
//! | `c10d/regroup/over` | set when nobody can join any more |
//! | `c10d/regroup/GENERATION/here/RANK` | set by a rank that joins the generation, or for one that waits to join |
//! | `c10d/regroup/GENERATION/leader` | the rank that lists the members: the first to set it |
//! | `c10d/regroup/GENERATION/list/LEADER` | the members, as text |
//! | `c10d/regroup/GENERATION/ready/RANK` | set by a member that has read the list |
//! | `c10d/regroup/newest` | the last generation with a list, and its leader |
//! | `c10d/regroup/lost` | all ranks that are in no group any more, for launchers; not set before [`Members::begin`] |
//!
//! A rank whose number stays the same for the limit of silence is not waited for. If it was only stopped, it later finds a list
//! without it, and gets an error. Nobody waits in a generation if a later one has begun.

mod joining;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use launch::{Known, Launch};
use program::threads::detach;

use crate::error::{Error, Result};
use crate::group::{ProcessGroup, invalid_joining};
use crate::key::{Code, Key};
use crate::options::{Backend, Options};
use crate::store::TcpStore;
use joining::Joining;

/// Beats per limit of silence.
const BEATS_PER_LIMIT: u32 = 10;
/// Time between two looks at the keys and beats of ranks.
const LOOK: Duration = Duration::from_millis(20);
const STARTED: &str = "c10d/regroup/started";
const TRAINING: &str = "c10d/regroup/training";
const OVER: &str = "c10d/regroup/over";
const NEWEST: &str = "c10d/regroup/newest";
const LOST: &str = "c10d/regroup/lost";
/// Maximum time in which the members of a later generation connect: all of them have just answered.
const JOINING: Duration = Duration::from_secs(30);
/// Ranks with a higher number are not let in: each look at who waits to join would take too long.
const STARTED_MAX: i64 = 4096;

/// The members of a generation.
pub struct Members {
    store: TcpStore,
    /// The number by which this process was started.
    own: usize,
    /// Without its own number if this process has not joined yet.
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
    /// All ranks of a launch whose store outlives any rank. A rank that joins a training has no group before
    /// [`Members::arrive`].
    pub fn of_launch(launch: &Launch, options: &Options) -> Result<Self> {
        let (store, n_ranks) = match launch.joins {
            // Its launch has just connected.
            true => (TcpStore::connect(&launch.master_addr, launch.master_port, JOINING)?, 0),
            false => (TcpStore::from_launch(launch, options.timeout)?, launch.world_size),
        };
        let beats = start_beats(&store, launch.rank, options)?;
        let (own, ranks, options) = (launch.rank, (0..n_ranks).collect(), options.clone());
        Ok(Self { store, own, ranks, generation: 0, options, beats })
    }

    /// The members by their rank in the group. Values are numbers by which ranks were started.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }

    /// The number of groups before this one.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether this process has not joined yet.
    pub fn is_arrival(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Tells launchers that from now on the members go on without a lost one, and those who want to join what is trained.
    pub fn begin(&self, training: &str) -> Result<()> {
        self.store.set(LOST, b"")?;
        let code = self.code(|key| key.training(training));
        self.store.set(TRAINING, format!("{code}\n{training}").as_bytes())
    }

    /// Tells those who wait that nobody can join any more.
    pub fn end(&self) -> Result<()> {
        self.store.set(OVER, b"")
    }

    /// What the others train, once they do. Errors: they have another key, or nobody can join any more.
    pub fn training(&self, is_stopped: &dyn Fn() -> bool) -> Result<String> {
        let found = self.wait_to_join(is_stopped, || match self.store.is_set(TRAINING)? {
            true => self.store.get(TRAINING).map(Some),
            false => Ok(None),
        })?;
        let found = String::from_utf8_lossy(&found);
        match found.split_once('\n') {
            Some((code, training)) if self.is_code(code, |key| key.training(training)) => {
                Ok(training.to_owned())
            }
            _ => Err(invalid_joining(
                "the training to join has another key; set the same key on all ranks".to_owned(),
            )),
        }
    }

    /// The ranks that wait to join, and have the key.
    pub fn arrivals(&self) -> Result<Vec<usize>> {
        let n_started = self.store.add(STARTED, 0)?.clamp(0, STARTED_MAX) as usize;
        let mut arrivals = Vec::new();
        if n_started > self.ranks.len() {
            let lost = lost_ranks(&self.store)?.unwrap_or_default();
            for rank in (0..n_started).filter(|rank| !self.ranks.contains(rank) && !lost.contains(rank)) {
                let key = arrival_key(rank);
                if self.store.is_set(&key)? {
                    let code = self.store.get(&key)?;
                    if self.is_code(&String::from_utf8_lossy(&code), |key| key.arrival(rank)) {
                        arrivals.push(rank);
                    }
                }
            }
        }
        Ok(arrivals)
    }

    /// Waits until the members have formed a group with this rank. Errors: nobody can join any more.
    pub fn arrive(&self, is_stopped: &dyn Fn() -> bool) -> Result<Self> {
        let code = self.code(|key| key.arrival(self.own));
        self.store.set(&arrival_key(self.own), code.as_bytes())?;
        let newest = self.wait_to_join(is_stopped, || {
            Ok(newest(&self.store)?.filter(|newest| newest.ranks.contains(&self.own)))
        })?;
        let joining = Joining { members: self, generation: newest.generation };
        let missing = joining.missing(newest.leader, &newest.ranks)?;
        let members = self.next(newest.generation, newest.ranks);
        match missing {
            None => Ok(members),
            Some(missing) => members.regroup(&missing),
        }
    }

    /// Looks until there is something. Errors: nobody can join any more.
    fn wait_to_join<T>(
        &self,
        is_stopped: &dyn Fn() -> bool,
        look: impl Fn() -> Result<Option<T>>,
    ) -> Result<T> {
        loop {
            let detail = match look().and_then(|found| Ok((found, self.store.is_set(OVER)?))) {
                Ok((Some(found), _)) => return Ok(found),
                Ok((None, false)) if is_stopped() => "a stop was requested before this rank joined",
                Ok((None, false)) => {
                    sleep(LOOK);
                    continue;
                }
                // Its launch serves the store.
                Ok((None, true)) | Err(Error::Store { .. }) => {
                    "the training ended before this rank could join it"
                }
                Err(error) => return Err(error),
            };
            return Err(Error::Rendezvous { detail: detail.to_owned() });
        }
    }

    /// A code with the ranks' key; empty without a key.
    fn code(&self, of: impl Fn(&Key) -> Code) -> String {
        self.options.key.as_ref().map(|key| of(key).to_text()).unwrap_or_default()
    }

    fn is_code(&self, found: &str, of: impl Fn(&Key) -> Code) -> bool {
        self.options.key.as_ref().map_or(found.is_empty(), |key| of(key).is(found))
    }

    /// Joins the group of the members over Gloo.
    pub fn group(&self) -> Result<ProcessGroup> {
        let rank = self.ranks.iter().position(|&rank| rank == self.own).unwrap_or_default();
        let joining = if self.generation > 0 { JOINING } else { self.options.joining };
        let options = Options { name: self.generation.to_string(), joining, ..self.options.clone() };
        ProcessGroup::new(&self.store, rank, self.ranks.len(), Backend::Gloo, &options)
    }

    /// The members of a later generation, with the ranks that wait to join, and without `lost`, by the numbers with which they
    /// were started. Waits for each other rank whose process runs, so that one which computes without its group is not lost.
    /// Errors: the others went on without this rank.
    pub fn regroup(&self, lost: &[usize]) -> Result<Self> {
        let mut lost = lost.to_vec();
        for generation in self.generation + 1.. {
            let joining = Joining { members: self, generation };
            let own = self.own.to_string();
            self.store.set(&joining.key("here", self.own), b"")?;
            let leader = self.store.compare_set(&leader_key(generation), b"", own.as_bytes())?;
            let leader = ranks_of(&leader)?.first().copied().unwrap_or(self.own);
            let list = list_key(generation, leader);
            if leader == self.own {
                joining.list(&lost)?;
            }
            if joining.wait_for("list", &[leader])?.is_empty() {
                lost.push(leader);
                continue;
            }
            let ranks = ranks_of(&self.store.get(&list)?)?;
            if !ranks.contains(&self.own) {
                return Err(fenced(&ranks));
            }
            match joining.missing(leader, &ranks)? {
                None => return Ok(self.next(generation, ranks)),
                Some(missing) => lost.extend(missing),
            }
        }
        Err(Error::Rendezvous { detail: "no generation is left".to_owned() })
    }

    fn next(&self, generation: u64, ranks: Vec<usize>) -> Self {
        let (store, options, beats) = (self.store.clone(), self.options.clone(), self.beats.clone());
        Self { store, own: self.own, ranks, generation, options, beats }
    }
}

/// What is known of the ranks. None before [`Members::begin`].
pub fn known_ranks(store: &TcpStore) -> Result<Option<Known>> {
    let Some(lost) = lost_ranks(store)? else { return Ok(None) };
    let members = newest(store)?.map(|newest| newest.ranks).unwrap_or_default();
    Ok(Some(Known { lost, members, is_over: store.is_set(OVER)? }))
}

fn lost_ranks(store: &TcpStore) -> Result<Option<Vec<usize>>> {
    if store.is_set(LOST)? { ranks_of(&store.get(LOST)?).map(Some) } else { Ok(None) }
}

/// Whether a launcher has counted ranks in this store.
pub fn has_started_ranks(store: &TcpStore) -> Result<bool> {
    Ok(store.add(STARTED, 0)? > 0)
}

/// Counts further ranks that a launcher starts. Returns the number of the first one.
pub fn start_ranks(store: &TcpStore, n: usize) -> Result<usize> {
    let n_started = store.add(STARTED, i64::try_from(n).unwrap_or(i64::MAX))?;
    Ok(usize::try_from(n_started).unwrap_or_default().saturating_sub(n))
}

/// The newest generation that has a list.
struct Newest {
    generation: u64,
    leader: usize,
    ranks: Vec<usize>,
}

/// The newest generation, if the group has changed.
fn newest(store: &TcpStore) -> Result<Option<Newest>> {
    if !store.is_set(NEWEST)? {
        return Ok(None);
    }
    let found = ranks_of(&store.get(NEWEST)?)?;
    let &[generation, leader] = &found[..] else {
        return Err(Error::Rendezvous {
            detail: format!("the store has {found:?}, expected a generation and a rank"),
        });
    };
    let generation = generation as u64;
    let ranks = ranks_of(&store.get(&list_key(generation, leader))?)?;
    Ok(Some(Newest { generation, leader, ranks }))
}

fn leader_key(generation: u64) -> String {
    format!("c10d/regroup/{generation}/leader")
}

fn list_key(generation: u64, leader: usize) -> String {
    format!("c10d/regroup/{generation}/list/{leader}")
}

fn arrival_key(rank: usize) -> String {
    format!("c10d/regroup/arrival/{rank}")
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

fn text_of<'a>(ranks: impl IntoIterator<Item = &'a usize>) -> String {
    ranks.into_iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
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
        assert_eq!(known_ranks(&store).unwrap(), None);
        all[1].begin("").unwrap();
        assert_eq!(known_ranks(&store).unwrap(), Some(Known::default()));
        thread::scope(|scope| {
            for of_rank in &all[1..] {
                let regroup = || {
                    let next = of_rank.regroup(&[0]).unwrap();
                    assert_eq!((next.ranks(), next.generation()), (&[1, 2][..], 1));
                    assert_eq!(next.group().unwrap().rank(), next.own - 1);
                };
                drop(spawn(scope, regroup));
            }
        });
        assert_eq!(
            known_ranks(&store).unwrap(),
            Some(Known { lost: vec![0], members: vec![1, 2], is_over: false })
        );
        let fenced = all[0].regroup(&[2]).unwrap_err();
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
        let next = first.regroup(&[2]).unwrap();
        assert_eq!((next.ranks(), next.generation()), (&[0][..], 1));
        assert_eq!(next.group().unwrap().world_size(), 1);
        assert_eq!(lost_ranks(&store).unwrap(), Some(vec![1, 2]));
        drop(third);
    }

    #[test]
    fn ranks_that_wait_join_the_next_group() {
        let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
        assert_eq!(start_ranks(&store, 3).unwrap(), 0);
        let all: Vec<Members> = (0..3).map(|rank| members(&store, rank, Duration::from_secs(60))).collect();
        all[0].begin("reviews").unwrap();
        assert_eq!(start_ranks(&store, 1).unwrap(), 3);
        thread::scope(|scope| {
            let arrive = || {
                let fourth = arrival(&store, 3);
                assert_eq!(fourth.training(&|| false).unwrap(), "reviews");
                let next = fourth.arrive(&|| false).unwrap();
                assert_eq!((next.ranks(), next.generation()), (&[0, 2, 3][..], 1));
                assert_eq!(next.group().unwrap().rank(), 2);
            };
            drop(spawn(scope, arrive));
            while all[0].arrivals().unwrap().is_empty() {
                sleep(LOOK);
            }
            for of_rank in [&all[0], &all[2]] {
                let regroup = || {
                    let next = of_rank.regroup(&[1]).unwrap();
                    assert_eq!(next.ranks(), [0, 2, 3]);
                    assert_eq!(next.group().unwrap().world_size(), 3);
                    assert!(next.arrivals().unwrap().is_empty());
                };
                drop(spawn(scope, regroup));
            }
        });
        assert_eq!(
            known_ranks(&store).unwrap(),
            Some(Known { lost: vec![1], members: vec![0, 2, 3], is_over: false })
        );
    }

    #[test]
    fn a_rank_that_died_while_it_waited_is_not_listed_again() {
        let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
        assert_eq!(start_ranks(&store, 4).unwrap(), 0);
        let alone = Members { ranks: vec![0], ..members(&store, 0, Duration::from_millis(500)) };
        alone.begin("").unwrap();
        let dead = arrival(&store, 3);
        store.set(&arrival_key(3), b"").unwrap();
        drop(dead);
        let next = alone.regroup(&[]).unwrap();
        assert_eq!((next.ranks(), next.arrivals().unwrap().len()), (&[0][..], 0));
        next.end().unwrap();
        let late = arrival(&store, 3).arrive(&|| false).unwrap_err();
        assert!(late.to_string().contains("ended before this rank could join"), "{late}");
    }

    #[test]
    fn a_rank_joins_although_the_leader_dies_after_its_list() {
        let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
        assert_eq!(start_ranks(&store, 3).unwrap(), 0);
        let one = Members { ranks: vec![0, 1], ..members(&store, 1, Duration::from_millis(500)) };
        one.begin("").unwrap();
        let two = arrival(&store, 2);
        // What rank 0 had written when it died.
        store.set(&leader_key(1), b"0").unwrap();
        store.set(&list_key(1, 0), b"0 1 2").unwrap();
        thread::scope(|scope| {
            drop(spawn(scope, || assert_eq!(two.arrive(&|| false).unwrap().ranks(), [1, 2])));
            assert_eq!(one.regroup(&[]).unwrap().ranks(), [1, 2]);
        });
    }

    #[test]
    fn a_rank_without_the_key_does_not_join() {
        let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
        assert_eq!(start_ranks(&store, 2).unwrap(), 0);
        let with = |key: Option<&[u8]>, rank: usize| {
            let of =
                if rank == 0 { members(&store, 0, Duration::from_secs(60)) } else { arrival(&store, rank) };
            Members { options: Options { key: key.map(Key::of), ..of.options.clone() }, ..of }
        };
        let alone = Members { ranks: vec![0], ..with(Some(b"a"), 0) };
        alone.begin("reviews").unwrap();
        for key in [None, Some(&b"b"[..])] {
            let other = with(key, 1);
            let refused = other.training(&|| false).unwrap_err();
            assert!(refused.to_string().contains("has another key"), "{refused}");
            let waits = other.arrive(&|| true).unwrap_err();
            assert!(waits.to_string().contains("a stop was requested"), "{waits}");
            assert!(alone.arrivals().unwrap().is_empty());
        }
        let equal = with(Some(b"a"), 1);
        assert_eq!(equal.training(&|| false).unwrap(), "reviews");
        assert!(equal.arrive(&|| true).is_err());
        assert_eq!(alone.arrivals().unwrap(), [1]);
    }

    fn arrival(store: &TcpStore, rank: usize) -> Members {
        let launch =
            Launch { rank, world_size: rank + 1, joins: true, master_port: store.port(), ..Launch::alone() };
        let options = Options { timeout: Duration::from_secs(60), ..Options::default() };
        let arrival = Members::of_launch(&launch, &options).unwrap();
        assert!(arrival.is_arrival());
        arrival
    }
}

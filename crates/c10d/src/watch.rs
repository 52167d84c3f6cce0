//! Notices that another rank has died or stopped, whatever the ranks are doing, and says which.
//!
//! Gloo and NCCL tell at best that some connection broke, and of a stopped process they tell nothing before their
//! time limit, which must be long because a slow rank is no dead one. So each rank keeps one TCP connection to a
//! leader, the first to put its address into the store, and a thread that sends a beat on it. A connection that
//! ends, or is silent for the limit, is a lost rank: the leader tells all, and each fails its own pending calls.
//!
//! Silence is counted in this thread's own ticks, not by the clock: a machine that slept accuses nobody.
//!
//! It knows nothing of tensors or collectives. Python ranks do not take part; that they exist is known from the
//! size of the group.

mod connection;
mod follower;
mod frame;
mod leader;
mod offer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::{IpAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::address::Route;
use crate::error::{Cause, Error, Loss, Result};
use crate::ffi::Guard;
use crate::key::Key;
use crate::options::Options;
use crate::store::TcpStore;
use follower::Follower;
use frame::{Frame, Tag};
use leader::Leader;
use offer::Offer;

/// Beats in one limit of silence: one lost to a busy machine is no lost rank.
const BEATS_PER_LIMIT: u32 = 10;
/// How long a rank that gives up waits until its thread has told the others.
const TELL_LIMIT: Duration = Duration::from_secs(1);

/// This rank's part in the watch.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    wake: UnixStream,
    rank: usize,
    world_size: usize,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    loss: Option<Loss>,
    guards: Vec<Guard>,
    /// The ranks that are watched, this one among them, and how they call themselves.
    names: BTreeMap<usize, String>,
    left: BTreeSet<usize>,
    /// What this rank has to say and its thread has not yet sent.
    to_tell: Vec<Frame>,
    /// Nobody has anything more to do.
    everyone_left: bool,
    /// The thread is to end.
    closed: bool,
    /// The thread is to end when everyone has left: this rank is done, and others are not.
    stays: bool,
}

impl State {
    fn is_over(&self) -> bool {
        self.closed || (self.stays && self.everyone_left)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first loss is what all later errors are put down to.
    fn declare(&self, rank: usize, cause: Cause) -> Loss {
        let mut state = self.state();
        let name = state.names.get(&rank).cloned().unwrap_or_default();
        let loss = state.loss.get_or_insert(Loss { rank, name, cause }).clone();
        let guards = std::mem::take(&mut state.guards);
        self.changed.notify_all();
        drop(state);
        for guard in guards {
            guard.fail(&loss.to_string());
        }
        loss
    }

    fn note_left(&self, rank: usize) {
        self.state().left.insert(rank);
        self.changed.notify_all();
    }

    fn note_joined(&self, rank: usize, name: String) {
        self.state().names.insert(rank, name);
    }

    fn has_left(&self, rank: usize) -> bool {
        self.state().left.contains(&rank)
    }

    /// What is to be told, once it has been, is taken off the list.
    fn note_told(&self, n_frames: usize) {
        self.state().to_tell.drain(..n_frames);
        self.changed.notify_all();
    }
}

impl Watch {
    /// Joins the watch of a group, or leads it.
    pub(crate) fn start(store: &TcpStore, rank: usize, world_size: usize, options: &Options) -> Result<Self> {
        let failed = |error: io::Error| unwatchable(format!("a pair of sockets: {error}"));
        let (wake, woken) = UnixStream::pair().map_err(failed)?;
        woken.set_nonblocking(true).map_err(failed)?;
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        shared.note_joined(rank, own_name());
        let limit = options.silence;
        let place =
            Place { rank, world_size, tick: limit / BEATS_PER_LIMIT, limit, shared: Arc::clone(&shared) };
        if world_size > 1 {
            take_part(place, store, options, woken)?;
        }
        Ok(Self { shared, wake, rank, world_size })
    }

    /// From now on a loss fails this guard's calls.
    pub(crate) fn guard(&self, guard: Guard) {
        let mut state = self.shared.state();
        match &state.loss {
            Some(loss) => guard.fail(&loss.to_string()),
            None => state.guards.push(guard),
        }
    }

    /// The loss, if one is known or becomes known within `limit`; a rank that left counts when time is up.
    pub(crate) fn loss_within(&self, limit: Duration) -> Option<Loss> {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.state();
        while state.loss.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.loss.clone().or_else(|| {
            let rank = state.left.iter().find(|&&rank| rank != self.rank)?;
            let name = state.names.get(rank).cloned().unwrap_or_default();
            Some(Loss { rank: *rank, name, cause: Cause::Left })
        })
    }

    /// The ranks that have not joined: Python's, or not yet there.
    pub(crate) fn unwatched(&self) -> Vec<usize> {
        let state = self.shared.state();
        (0..self.world_size).filter(|rank| !state.names.contains_key(rank)).collect()
    }

    /// Says that this rank is done, and waits for all others to say so. Whether every rank of the group did within
    /// `limit`: where some are not watched nobody knows, and it is false.
    pub(crate) fn leave(&self, limit: Duration) -> bool {
        if self.world_size == 1 {
            return true;
        }
        self.tell(Tag::Left, self.rank);
        let deadline = Instant::now() + limit;
        let mut state = self.shared.state();
        while !state.everyone_left && state.loss.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.everyone_left && state.names.len() == self.world_size
    }

    /// Dropped, it watches on until everyone has left: this rank may lead the others.
    pub(crate) fn stay(&self) {
        self.shared.state().stays = true;
    }

    /// Puts a failed connection down to a rank that is not watched. The others hear it before this process can end,
    /// which they would take for the cause.
    pub(crate) fn accuse(&self, rank: usize) -> Loss {
        let loss = self.shared.declare(rank, Cause::Unwatched);
        if loss.cause == Cause::Unwatched {
            self.tell_in_time(Tag::Unwatched, loss.rank);
        }
        loss
    }

    /// Says that this rank goes on no more, after an error of its own, unless a lost rank explains it.
    pub(crate) fn give_up(&self) {
        let has_loss = self.shared.state().loss.is_some();
        if !has_loss {
            self.tell_in_time(Tag::GaveUp, self.rank);
        }
    }

    fn tell_in_time(&self, tag: Tag, rank: usize) {
        if self.world_size == 1 {
            return;
        }
        self.tell(tag, rank);
        let state = self.shared.state();
        let untold = |state: &mut State| !state.to_tell.is_empty();
        drop(self.shared.changed.wait_timeout_while(state, TELL_LIMIT, untold));
    }

    fn tell(&self, tag: Tag, rank: usize) {
        self.shared.state().to_tell.push(Frame::new(tag, rank, ""));
        self.wake_thread();
    }

    fn wake_thread(&self) {
        // It fails only when the thread has ended, and then there is nobody to wake.
        let _ = (&self.wake).write_all(&[0]);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.closed = !state.stays;
        }
        self.wake_thread();
    }
}

/// Starts the thread of the leader, or of a follower of who is it already.
fn take_part(place: Place, store: &TcpStore, options: &Options, woken: UnixStream) -> Result<()> {
    let own_key = options.key.as_ref();
    let (offer, listener) = offer(place.rank, store, own_key)?;
    let name = format!("c10d/watch/{}", options.name);
    let taken = store.compare_set(&name, b"", offer.to_text().as_bytes())?;
    let taken = Offer::from_text(&String::from_utf8_lossy(&taken))
        .ok_or_else(|| unwatchable(format!("{name} of the store {} holds no offer", store.address())))?;
    let key = taken.key(own_key).ok_or_else(|| {
        let (has, lacks) =
            if own_key.is_some() { (place.rank, taken.rank) } else { (taken.rank, place.rank) };
        let detail =
            format!("rank {has} has a key for the watch and rank {lacks} has none: give all ranks the same");
        Error::Invalid { call: "joining a group".to_owned(), detail }
    })?;
    if taken == offer {
        let leader = Leader::new(place, listener, key);
        spawn(move || leader.run(&woken));
        return Ok(());
    }
    drop(listener);
    let stream = taken.connect(store, place.limit).map_err(|error| {
        unwatchable(format!(
            "rank {} watches the others at {}, and this rank cannot connect to it: {error}",
            taken.rank,
            taken.shown(store)
        ))
    })?;
    let follower = Follower::new(place, taken.rank, stream, key);
    spawn(move || follower.run(&woken));
    Ok(())
}

/// What a rank offers that would lead the others, and where it listens to them.
fn offer(rank: usize, store: &TcpStore, key: Option<&Key>) -> Result<(Offer, TcpListener)> {
    let no_address = |error| unwatchable(format!("no address at which other ranks reach this one: {error}"));
    let route = Route::to(store.host(), store.port()).map_err(no_address)?;
    let listener = listen(route.own)
        .map_err(|error| unwatchable(format!("no port to watch the other ranks on: {error}")))?;
    let offer = Offer::make(rank, route, &listener, key).map_err(no_address)?;
    Ok((offer, listener))
}

/// On this interface alone: whoever cannot reach the store cannot reach the watch.
fn listen(own: IpAddr) -> io::Result<TcpListener> {
    TcpListener::bind((own, 0))
}

fn unwatchable(detail: String) -> Error {
    Error::Rendezvous { detail }
}

fn spawn(run: impl FnOnce() + Send + 'static) {
    // Not joined: it ends by itself when the watch is dropped, and with the process otherwise.
    thread::spawn(run);
}

/// How this process calls itself to the others.
fn own_name() -> String {
    let host = hostname::get()
        .map_or_else(|_| "unknown host".to_owned(), |host| host.to_string_lossy().into_owned());
    // What other ranks print must stay one line.
    let host: String = host.chars().filter(|c| !c.is_control()).take(100).collect();
    format!("{host}, process {}", std::process::id())
}

/// What both kinds of thread know.
struct Place {
    rank: usize,
    world_size: usize,
    tick: Duration,
    limit: Duration,
    shared: Arc<Shared>,
}

//! Detects that another rank has died or stopped, during any call, and names the rank.
//!
//! Gloo and NCCL report at best that a connection broke. They report a stopped process only at their time limit,
//! which must be long because ranks may be slow. Each rank therefore keeps one TCP connection to a leader, and a
//! thread that sends heartbeats on this connection. The leader is the first rank to put its address into the store.
//! If a connection closes, or is silent for the silence limit, its rank counts as lost. The leader then notifies all
//! ranks, and each of them ends its pending calls with an error.
//!
//! Silence is counted in ticks of the local thread, not in clock time. A machine that was suspended therefore reports
//! no rank as lost by mistake.
//!
//! The watch does not depend on tensors or collectives. Python ranks do not take part. They only count towards the
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
use std::time::{Duration, Instant};

use program::threads::{detach, locked};

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

/// Heartbeats per silence limit. A few delayed ones on a busy machine do not make a rank lost.
const BEATS_PER_LIMIT: u32 = 10;
/// Maximum time that a rank which leaves after an error waits until its thread has notified the others.
const TELL_LIMIT: Duration = Duration::from_secs(1);

/// This rank's handle of the watch.
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
    /// Watched ranks, including this one, and their host and process.
    names: BTreeMap<usize, String>,
    left: BTreeSet<usize>,
    /// Messages of this rank that its thread has not sent yet.
    to_tell: Vec<Frame>,
    /// All ranks have left.
    all_left: bool,
    /// The thread must end.
    closed: bool,
    /// This rank has finished, but the thread continues until all ranks have left.
    stays: bool,
}

impl State {
    fn is_over(&self) -> bool {
        self.closed || (self.stays && self.all_left)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Records a loss. All later errors report the first loss.
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

    /// Removes sent messages from the queue.
    fn note_told(&self, n_frames: usize) {
        self.state().to_tell.drain(..n_frames);
        self.changed.notify_all();
    }
}

impl Watch {
    /// Joins or leads the watch of a group.
    pub(crate) fn start(store: &TcpStore, rank: usize, world_size: usize, options: &Options) -> Result<Self> {
        let failed = |error: io::Error| watch_error(format!("cannot create a socket pair: {error}"));
        let (wake, woken) = UnixStream::pair().map_err(failed)?;
        woken.set_nonblocking(true).map_err(failed)?;
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        shared.note_joined(rank, own_name());
        let limit = options.silence;
        let place =
            Place { rank, world_size, tick: limit / BEATS_PER_LIMIT, limit, shared: Arc::clone(&shared) };
        if world_size > 1 {
            start_thread(place, store, options, woken)?;
        }
        Ok(Self { shared, wake, rank, world_size })
    }

    /// Adds a guard. A loss fails its calls.
    pub(crate) fn guard(&self, guard: Guard) {
        let mut state = self.shared.state();
        match &state.loss {
            Some(loss) => guard.fail(&loss.to_string()),
            None => state.guards.push(guard),
        }
    }

    /// Returns the loss, if it is known or becomes known within `limit`. After the limit, a rank that left counts as
    /// lost.
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

    /// The ranks that have not joined the watch: Python ranks, and ranks that have not joined yet.
    pub(crate) fn unwatched(&self) -> Vec<usize> {
        let state = self.shared.state();
        (0..self.world_size).filter(|rank| !state.names.contains_key(rank)).collect()
    }

    /// Announces that this rank has finished, and waits up to `limit` for all others. Returns whether every rank has
    /// finished. If some ranks are not watched, this is unknown and the result is false.
    pub(crate) fn leave(&self, limit: Duration) -> bool {
        if self.world_size == 1 {
            return true;
        }
        self.tell(Tag::Left, self.rank);
        let deadline = Instant::now() + limit;
        let mut state = self.shared.state();
        while !state.all_left && state.loss.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.all_left && state.names.len() == self.world_size
    }

    /// After drop, continues until all ranks have left, because this rank may be the leader.
    pub(crate) fn stay(&self) {
        self.shared.state().stays = true;
    }

    /// Reports an unwatched rank as the cause of a failed connection. Waits until the others are notified: if this
    /// process exited first, they would report this rank instead.
    pub(crate) fn accuse(&self, rank: usize) -> Loss {
        let loss = self.shared.declare(rank, Cause::Unwatched);
        if loss.cause == Cause::Unwatched {
            self.tell_in_time(Tag::Unwatched, loss.rank);
        }
        loss
    }

    /// Announces that this rank leaves after an error, unless a lost rank is the cause.
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
        // The write fails only if the thread has ended.
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

/// Starts the thread of the leader, or that of a follower if a leader exists.
fn start_thread(place: Place, store: &TcpStore, options: &Options, woken: UnixStream) -> Result<()> {
    let own_key = options.key.as_ref();
    let (offer, listener) = offer(place.rank, store, own_key)?;
    let name = format!("c10d/watch/{}", options.name);
    let taken = store.compare_set(&name, b"", offer.to_text().as_bytes())?;
    let taken = Offer::from_text(&String::from_utf8_lossy(&taken)).ok_or_else(|| {
        watch_error(format!("key {name} of the store {} has no valid offer", store.address()))
    })?;
    let key = taken.key(own_key).ok_or_else(|| {
        let (has, lacks) =
            if own_key.is_some() { (place.rank, taken.rank) } else { (taken.rank, place.rank) };
        let detail =
            format!("rank {has} has a watch key, but rank {lacks} has none; set the same key on all ranks");
        Error::Invalid { call: "joining a group".to_owned(), detail }
    })?;
    if taken == offer {
        let leader = Leader::new(place, listener, key);
        detach(move || leader.run(&woken));
        return Ok(());
    }
    drop(listener);
    let stream = taken.connect(store, place.limit).map_err(|error| {
        watch_error(format!(
            "rank {} leads the watch at {}, but this rank cannot connect to it: {error}",
            taken.rank,
            taken.shown(store)
        ))
    })?;
    let follower = Follower::new(place, taken.rank, stream, key);
    detach(move || follower.run(&woken));
    Ok(())
}

/// Creates this rank's offer to lead the watch, and a socket to listen on.
fn offer(rank: usize, store: &TcpStore, key: Option<&Key>) -> Result<(Offer, TcpListener)> {
    let no_address =
        |error| watch_error(format!("this rank has no address that other ranks can reach: {error}"));
    let route = Route::to(store.host(), store.port()).map_err(no_address)?;
    let listener =
        listen(route.own).map_err(|error| watch_error(format!("cannot listen for the watch: {error}")))?;
    let offer = Offer::make(rank, route, &listener, key).map_err(no_address)?;
    Ok((offer, listener))
}

/// Listens on this interface only. A host that cannot reach the store cannot reach the watch.
fn listen(own: IpAddr) -> io::Result<TcpListener> {
    TcpListener::bind((own, 0))
}

fn watch_error(detail: String) -> Error {
    Error::Rendezvous { detail }
}

/// Host and process of this rank, for messages of other ranks.
fn own_name() -> String {
    let host = hostname::get()
        .map_or_else(|_| "unknown host".to_owned(), |host| host.to_string_lossy().into_owned());
    // Messages must stay on one line.
    let host: String = host.chars().filter(|c| !c.is_control()).take(100).collect();
    format!("{host}, process {}", std::process::id())
}

/// The tag that reports a loss.
fn tag_of(cause: Cause) -> Tag {
    match cause {
        // Only the leader reports losses, and it is never unauthenticated to itself.
        Cause::Ended | Cause::Unwelcome => Tag::Ended,
        Cause::Silent(_) => Tag::Silent,
        Cause::Left => Tag::Left,
        Cause::Unwatched => Tag::Unwatched,
        Cause::GaveUp => Tag::GaveUp,
    }
}

/// The loss that a tag reports, if any. `limit` is the silence limit.
fn loss_of(tag: Tag, limit: Duration) -> Option<Cause> {
    match tag {
        Tag::Ended => Some(Cause::Ended),
        Tag::Silent => Some(Cause::Silent(limit)),
        Tag::Unwatched => Some(Cause::Unwatched),
        Tag::GaveUp => Some(Cause::GaveUp),
        Tag::Challenge | Tag::Hello | Tag::Welcome | Tag::Beat | Tag::Left | Tag::Joined | Tag::AllLeft => {
            None
        }
    }
}

/// State shared by leader and follower threads.
struct Place {
    rank: usize,
    world_size: usize,
    tick: Duration,
    limit: Duration,
    shared: Arc<Shared>,
}

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

mod frame;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::error::{Cause, Error, Loss, Result};
use crate::ffi::Guard;
use crate::store::TcpStore;
use frame::{Frame, Tag, Token};

/// Beats in one limit of silence: one lost to a busy machine is no lost rank.
const BEATS_PER_LIMIT: u32 = 10;
/// Beats within which a connection shows the token. Half of the limit: a rank that has to wait until strangers have
/// gone hears from the leader in time.
const STRANGER_BEATS: u32 = BEATS_PER_LIMIT / 2;
/// Connections that have not yet shown the token, beside one for each rank; more wait to be taken.
const STRANGERS_MAX: usize = 64;
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
    /// Joins the watch of the group `name`, or leads it. `limit`: of silence.
    pub(crate) fn start(
        store: &TcpStore,
        name: &str,
        rank: usize,
        world_size: usize,
        limit: Duration,
    ) -> Result<Self> {
        let failed = |detail: String| Error::Rendezvous { detail };
        let (wake, woken) =
            UnixStream::pair().map_err(|error| failed(format!("a pair of sockets: {error}")))?;
        woken.set_nonblocking(true).map_err(|error| failed(format!("a pair of sockets: {error}")))?;
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        shared.note_joined(rank, own_name());
        let place =
            Place { rank, world_size, tick: limit / BEATS_PER_LIMIT, limit, shared: Arc::clone(&shared) };

        if world_size > 1 {
            let listener =
                listen().map_err(|error| failed(format!("no port to watch the other ranks on: {error}")))?;
            let offer = Offer::make(store, &listener, rank).map_err(|error| {
                failed(format!("no address at which other ranks reach this one: {error}"))
            })?;
            let key = format!("c10d/watch/{name}");
            let taken = store.compare_set(&key, b"", offer.to_text().as_bytes())?;
            let taken = Offer::from_text(&String::from_utf8_lossy(&taken))
                .ok_or_else(|| failed(format!("{key} of the store {} holds no offer", store.address())))?;
            if taken == offer {
                let leader =
                    Leader { place, listener, accepts: true, token: offer.token, members: Vec::new() };
                spawn(move || leader.run(&woken));
            } else {
                drop(listener);
                let stream = taken.connect(store, limit).map_err(|error| {
                    failed(format!(
                        "rank {} watches the others at {}, and this rank cannot connect to it: {error}",
                        taken.rank,
                        taken.shown(store)
                    ))
                })?;
                let follower =
                    Follower { place, leader: taken.rank, stream, received: Vec::new(), token: taken.token };
                spawn(move || follower.run(&woken));
            }
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

/// All addresses of this machine, of both families where it has both.
fn listen() -> io::Result<TcpListener> {
    TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"))
}

/// Where the leader can be reached, and the token that shows a connection to come from a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Offer {
    rank: usize,
    /// None: on the store's host, whatever name each rank has for it.
    address: Option<IpAddr>,
    port: u16,
    token: Token,
}

impl Offer {
    fn make(store: &TcpStore, listener: &TcpListener, rank: usize) -> io::Result<Self> {
        let (own, of_store) = own_address_towards(store)?;
        // By loopback only this machine is reached, so the store is on it. A host whose name stands for 127.0.1.1
        // talks to that from 127.0.0.1.
        let address = (own != of_store && !own.is_loopback()).then_some(own);
        Ok(Self { rank, address, port: listener.local_addr()?.port(), token: Token::random()? })
    }

    fn to_text(&self) -> String {
        let address = self.address.map_or_else(|| "store".to_owned(), |address| address.to_string());
        format!("{} {address} {} {}", self.rank, self.port, self.token.to_text())
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let rank = words.next()?.parse().ok()?;
        let address = match words.next()? {
            "store" => None,
            address => Some(address.parse().ok()?),
        };
        let port = words.next()?.parse().ok()?;
        let token = Token::from_text(words.next()?)?;
        words.next().is_none().then_some(Self { rank, address, port, token })
    }

    fn shown(&self, store: &TcpStore) -> String {
        match self.address {
            Some(address) => SocketAddr::new(address, self.port).to_string(),
            None => format!("{}:{}", store.host(), self.port),
        }
    }

    fn connect(&self, store: &TcpStore, limit: Duration) -> io::Result<TcpStream> {
        let addresses: Vec<SocketAddr> = match self.address {
            Some(address) => vec![SocketAddr::new(address, self.port)],
            None => (store.host(), self.port).to_socket_addrs()?.collect(),
        };
        let mut last = io::Error::other("its name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, limit) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// This machine's address on the way to the store, and the store's. Nothing is sent.
fn own_address_towards(store: &TcpStore) -> io::Result<(IpAddr, IpAddr)> {
    let mut last = io::Error::other("the store's name has no address");
    for address in (store.host(), store.port()).to_socket_addrs()? {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        match UdpSocket::bind(any).and_then(|socket| {
            socket.connect(address)?;
            socket.local_addr()
        }) {
            Ok(own) => return Ok((own.ip(), address.ip())),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// What both kinds of thread know.
struct Place {
    rank: usize,
    world_size: usize,
    tick: Duration,
    limit: Duration,
    shared: Arc<Shared>,
}

/// Waits until one of the descriptors can be read, or until `deadline`; which can.
fn readable(descriptors: &[&dyn AsFd], deadline: Instant) -> Vec<bool> {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN))
        .collect();
    let left = deadline.saturating_duration_since(Instant::now());
    let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    // An interruption by a signal is a wait that was short.
    let _ = poll(&mut polled, Some(&limit));
    polled.iter().map(|fd| !fd.revents().is_empty()).collect()
}

/// What a connection brought.
enum Arrival {
    Frames(Vec<Frame>),
    Ended,
}

/// Reads what has arrived on a connection that does not block.
fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> Arrival {
    let mut block = [0; 4096];
    loop {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(n) => {
                received.extend_from_slice(&block[..n]);
                if n < block.len() {
                    return frame::take_all(received).map_or(Arrival::Ended, Arrival::Frames);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return frame::take_all(received).map_or(Arrival::Ended, Arrival::Frames);
            }
            Err(_) => break,
        }
    }
    // What came before the end counts: a leader that knows who died tells it and may then die itself.
    match frame::take_all(received) {
        Some(frames) if !frames.is_empty() => Arrival::Frames(frames),
        _ => Arrival::Ended,
    }
}

/// Sends a frame on a connection that does not block. A peer that does not read has been silent long before its
/// buffer is full, so a frame that does not fit is left out.
fn send(stream: &mut TcpStream, frame: &Frame) {
    let _ = stream.write_all(&frame.to_bytes());
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)
}

fn drain(woken: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!((&*woken).read(&mut bytes), Ok(n) if n > 0) {}
}

/// The thread of the rank that the others connect to.
struct Leader {
    place: Place,
    listener: TcpListener,
    /// Off for a beat when a connection could not be taken, as for want of descriptors: it would be tried without end.
    accepts: bool,
    token: Token,
    members: Vec<Member>,
}

struct Member {
    stream: TcpStream,
    received: Vec<u8>,
    /// None until it has shown the token.
    rank: Option<usize>,
    quiet_ticks: u32,
}

impl Leader {
    fn run(mut self, woken: &UnixStream) {
        if self.listener.set_nonblocking(true).is_err() {
            return;
        }
        let mut next_tick = Instant::now() + self.place.tick;
        loop {
            let n_members = self.members.len();
            let ready = {
                let mut descriptors: Vec<&dyn AsFd> = vec![woken];
                descriptors.extend(self.members.iter().map(|member| &member.stream as &dyn AsFd));
                if self.has_room() {
                    descriptors.push(&self.listener);
                }
                readable(&descriptors, next_tick)
            };
            if ready[0] {
                drain(woken);
            }
            self.tell_own();
            if self.place.shared.state().is_over() {
                return;
            }
            self.hear(&ready[1..=n_members]);
            if ready.get(n_members + 1) == Some(&true) {
                self.accept();
            }
            if Instant::now() >= next_tick {
                // From now, not from when it was due: a pause of this process is one tick.
                next_tick = Instant::now() + self.place.tick;
                self.tick();
            }
        }
    }

    /// Says to the others what this rank has to say.
    fn tell_own(&mut self) {
        let frames = self.place.shared.state().to_tell.clone();
        for frame in &frames {
            self.obey(self.place.rank, frame);
        }
        if !frames.is_empty() {
            self.place.shared.note_told(frames.len());
        }
    }

    fn has_room(&self) -> bool {
        let strangers = self.members.iter().filter(|member| member.rank.is_none()).count();
        self.accepts && strangers < STRANGERS_MAX + self.place.world_size
    }

    fn accept(&mut self) {
        while self.has_room() {
            match self.listener.accept() {
                Ok((stream, _)) if prepare(&stream).is_ok() => {
                    self.members.push(Member { stream, received: Vec::new(), rank: None, quiet_ticks: 0 });
                }
                Ok(_) => {}
                Err(error) => {
                    self.accepts = error.kind() == io::ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }

    fn hear(&mut self, ready: &[bool]) {
        let mut gone = Vec::new();
        for (index, _) in ready.iter().enumerate().filter(|&(_, &ready)| ready) {
            let member = &mut self.members[index];
            if member.rank.is_some() {
                member.quiet_ticks = 0;
            }
            match receive(&mut member.stream, &mut member.received) {
                Arrival::Ended => gone.push(index),
                Arrival::Frames(frames) => {
                    for frame in frames {
                        if !self.take(index, &frame) {
                            gone.push(index);
                            break;
                        }
                    }
                }
            }
        }
        for index in gone.into_iter().rev() {
            if let Some(rank) = self.members.remove(index).rank
                && !self.place.shared.has_left(rank)
            {
                self.declare(rank, Cause::Ended);
            }
        }
    }

    /// Whether the connection may go on.
    fn take(&mut self, index: usize, frame: &Frame) -> bool {
        match (self.members[index].rank, frame.tag) {
            (None, Tag::Hello) => self.welcome(index, frame),
            (Some(rank), _) => self.obey(rank, frame),
            (None, _) => false,
        }
    }

    /// Does as a rank says, this one or another. Whether it may say so.
    fn obey(&mut self, rank: usize, frame: &Frame) -> bool {
        match frame.tag {
            Tag::Beat => {}
            Tag::Left => self.note_left(rank),
            Tag::GaveUp => self.declare(rank, Cause::GaveUp),
            Tag::Unwatched => {
                let is_watched = self.place.shared.state().names.contains_key(&frame.rank);
                if !is_watched && frame.rank < self.place.world_size {
                    self.declare(frame.rank, Cause::Unwatched);
                }
            }
            _ => return false,
        }
        true
    }

    fn welcome(&mut self, index: usize, hello: &Frame) -> bool {
        let Some(name) = self.token.of_hello(&hello.text) else { return false };
        let rank = hello.rank;
        let known = self.place.shared.state().names.contains_key(&rank);
        if known || rank >= self.place.world_size {
            return false;
        }
        self.members[index].rank = Some(rank);
        self.members[index].quiet_ticks = 0;
        self.place.shared.note_joined(rank, name.to_owned());
        // The newcomer hears of all, the others of it.
        let names = self.place.shared.state().names.clone();
        for (rank, name) in names {
            send(&mut self.members[index].stream, &Frame::new(Tag::Joined, rank, &name));
        }
        self.tell_all(&Frame::new(Tag::Joined, rank, name));
        true
    }

    fn note_left(&mut self, rank: usize) {
        self.place.shared.note_left(rank);
        self.tell_all(&Frame::new(Tag::Left, rank, ""));
        self.close_after(self.place.world_size);
    }

    /// Sends everyone home where so many ranks have left.
    fn close_after(&mut self, n_ranks: usize) {
        {
            let mut state = self.place.shared.state();
            if state.everyone_left || state.left.len() < n_ranks {
                return;
            }
            state.everyone_left = true;
        }
        self.tell_all(&Frame::new(Tag::EveryoneLeft, self.place.rank, ""));
        self.place.shared.changed.notify_all();
    }

    fn tick(&mut self) {
        self.tell_all(&Frame::new(Tag::Beat, self.place.rank, ""));
        self.accepts = true;
        let mut silent = None;
        self.members.retain_mut(|member| {
            member.quiet_ticks += 1;
            match member.rank {
                Some(rank) if member.quiet_ticks > BEATS_PER_LIMIT => {
                    silent = silent.or(Some(rank));
                    // It stays, so that what it does next is not news.
                    true
                }
                Some(_) => true,
                None => member.quiet_ticks <= STRANGER_BEATS,
            }
        });
        if let Some(rank) = silent.filter(|&rank| !self.place.shared.has_left(rank)) {
            self.declare(rank, Cause::Silent(self.place.limit));
        }
        // Beside ranks that are not watched. By now the hello of each that is has been read.
        let n_watched = self.place.shared.state().names.len();
        self.close_after(n_watched);
    }

    fn declare(&mut self, rank: usize, cause: Cause) {
        let loss = self.place.shared.declare(rank, cause);
        self.tell_all(&Frame::new(Tag::of_loss(loss.cause), loss.rank, ""));
    }

    fn tell_all(&mut self, frame: &Frame) {
        for member in self.members.iter_mut().filter(|member| member.rank.is_some()) {
            send(&mut member.stream, frame);
        }
    }
}

/// The thread of every other rank.
struct Follower {
    place: Place,
    leader: usize,
    stream: TcpStream,
    received: Vec<u8>,
    token: Token,
}

impl Follower {
    fn run(mut self, woken: &UnixStream) {
        let own_name = self.place.shared.state().names.get(&self.place.rank).cloned().unwrap_or_default();
        if prepare(&self.stream).is_err() {
            return;
        }
        send(&mut self.stream, &Frame::new(Tag::Hello, self.place.rank, &self.token.hello(&own_name)));
        let mut quiet_ticks = 0;
        let mut next_tick = Instant::now() + self.place.tick;
        loop {
            let ready = readable(&[woken, &self.stream], next_tick);
            if ready[0] {
                drain(woken);
            }
            self.tell_own();
            if self.place.shared.state().is_over() {
                return;
            }
            if ready[1] {
                quiet_ticks = 0;
                match receive(&mut self.stream, &mut self.received) {
                    Arrival::Frames(frames) => frames.into_iter().for_each(|frame| self.take(frame)),
                    Arrival::Ended => {
                        if !self.place.shared.has_left(self.leader) {
                            self.place.shared.declare(self.leader, Cause::Ended);
                        }
                        // Nobody is left to hear from.
                        return;
                    }
                }
            }
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + self.place.tick;
                send(&mut self.stream, &Frame::new(Tag::Beat, self.place.rank, ""));
                quiet_ticks += 1;
                if quiet_ticks > BEATS_PER_LIMIT && !self.place.shared.has_left(self.leader) {
                    self.place.shared.declare(self.leader, Cause::Silent(self.place.limit));
                }
            }
        }
    }

    fn tell_own(&mut self) {
        let frames = self.place.shared.state().to_tell.clone();
        for frame in &frames {
            send(&mut self.stream, frame);
        }
        if !frames.is_empty() {
            self.place.shared.note_told(frames.len());
        }
    }

    fn take(&self, frame: Frame) {
        let shared = &self.place.shared;
        if let Some(cause) = frame.tag.loss(self.place.limit) {
            shared.declare(frame.rank, cause);
            return;
        }
        match frame.tag {
            Tag::Joined => shared.note_joined(frame.rank, frame.text),
            Tag::Left => shared.note_left(frame.rank),
            Tag::EveryoneLeft => {
                shared.state().everyone_left = true;
                shared.changed.notify_all();
            }
            _ => {}
        }
    }
}

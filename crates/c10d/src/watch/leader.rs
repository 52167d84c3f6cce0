//! The thread of the leader: receives heartbeats of all other ranks and reports lost ranks to all.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::connection::{Arrival, drain, is_signed, prepare, readable, receive, send, send_signed};
use super::frame::{Frame, Received, Tag};
use super::{BEATS_PER_LIMIT, Place, tag_of};
use crate::error::Cause;
use crate::key::{Key, Numbers, Session, Side, random_text};

/// Number of heartbeats within which a connection must authenticate. It is half of the silence limit. A rank may
/// have to wait until unauthenticated connections are closed, and then still receives the leader's first message
/// within the limit.
const AUTHENTICATION_BEATS: u32 = BEATS_PER_LIMIT / 2;
/// Maximum unauthenticated connections, in addition to one per rank. Further connections wait in the queue.
const UNAUTHENTICATED_MAX: usize = 64;

pub(super) struct Leader {
    place: Place,
    listener: TcpListener,
    /// False for one heartbeat after accepting failed, for example for lack of descriptors. Prevents a busy loop.
    accepts: bool,
    key: Key,
    members: Vec<Member>,
}

struct Member {
    stream: TcpStream,
    received: Vec<u8>,
    /// The leader's random number for this connection.
    number: String,
    /// None until authenticated.
    rank: Option<usize>,
    /// None until authenticated.
    session: Option<Session>,
    quiet_ticks: u32,
}

impl Member {
    /// None if a system call failed; the connection is closed.
    fn challenged(mut stream: TcpStream) -> Option<Self> {
        prepare(&stream).ok()?;
        let number = random_text().ok()?;
        send(&mut stream, &Frame::new(Tag::Challenge, 0, &number));
        Some(Self { stream, received: Vec::new(), number, rank: None, session: None, quiet_ticks: 0 })
    }

    /// Sends a frame, if the rank is authenticated.
    fn say(&mut self, frame: &Frame) {
        if let Some(session) = &mut self.session {
            send_signed(&mut self.stream, frame, session);
        }
    }
}

impl Leader {
    pub(super) fn new(place: Place, listener: TcpListener, key: Key) -> Self {
        Self { place, listener, accepts: true, key, members: Vec::new() }
    }

    pub(super) fn run(mut self, woken: &UnixStream) {
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
            self.send_own();
            if self.place.shared.state().is_over() {
                return;
            }
            self.hear(&ready[1..=n_members]);
            if ready.get(n_members + 1) == Some(&true) {
                self.accept();
            }
            if Instant::now() >= next_tick {
                // Counted from now, not from the due time, so that a pause of this process counts as one
                // tick.
                next_tick = Instant::now() + self.place.tick;
                self.tick();
            }
        }
    }

    /// Sends this rank's messages to the others.
    fn send_own(&mut self) {
        let frames = self.place.shared.state().to_tell.clone();
        for frame in &frames {
            self.apply(self.place.rank, frame);
        }
        if !frames.is_empty() {
            self.place.shared.note_told(frames.len());
        }
    }

    fn has_room(&self) -> bool {
        let unauthenticated = self.members.iter().filter(|member| member.rank.is_none()).count();
        self.accepts && unauthenticated < UNAUTHENTICATED_MAX + self.place.world_size
    }

    fn accept(&mut self) {
        while self.has_room() {
            match self.listener.accept() {
                Ok((stream, _)) => self.members.extend(Member::challenged(stream)),
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
                    for received in frames {
                        if !self.take(index, &received) {
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

    /// Handles a frame. Returns whether to keep the connection.
    fn take(&mut self, index: usize, received: &Received) -> bool {
        let member = &mut self.members[index];
        match (member.rank, &mut member.session) {
            (Some(rank), Some(session)) => is_signed(received, session) && self.apply(rank, &received.0),
            _ => received.0.tag == Tag::Hello && self.welcome(index, &received.0),
        }
    }

    /// Applies a message of a rank. Returns whether the rank may send it.
    fn apply(&mut self, rank: usize, frame: &Frame) -> bool {
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
        let mut words = hello.text.splitn(3, ' ');
        let (Some(number), Some(code), Some(name)) = (words.next(), words.next(), words.next()) else {
            return false;
        };
        let rank = hello.rank;
        let numbers = Numbers { leader: self.members[index].number.clone(), follower: number.to_owned() };
        if !self.key.hello(&numbers, rank, name).is(code) {
            return false;
        }
        let known = self.place.shared.state().names.contains_key(&rank);
        if known || rank >= self.place.world_size {
            return false;
        }
        let member = &mut self.members[index];
        (member.rank, member.quiet_ticks) = (Some(rank), 0);
        member.session = Some(self.key.session(&numbers, Side::Leader));
        let welcome = self.key.welcome(&numbers, self.place.rank).to_text();
        send(&mut member.stream, &Frame::new(Tag::Welcome, self.place.rank, &welcome));
        self.place.shared.note_joined(rank, name.to_owned());
        // The new rank receives all names, and the others receive its name.
        let names = self.place.shared.state().names.clone();
        for (rank, name) in names {
            self.members[index].say(&Frame::new(Tag::Joined, rank, &name));
        }
        self.send_all(&Frame::new(Tag::Joined, rank, name));
        true
    }

    fn note_left(&mut self, rank: usize) {
        self.place.shared.note_left(rank);
        self.send_all(&Frame::new(Tag::Left, rank, ""));
        self.close_after(self.place.world_size);
    }

    /// Announces the end if at least `n_ranks` ranks have left.
    fn close_after(&mut self, n_ranks: usize) {
        {
            let mut state = self.place.shared.state();
            if state.all_left || state.left.len() < n_ranks {
                return;
            }
            state.all_left = true;
        }
        self.send_all(&Frame::new(Tag::AllLeft, self.place.rank, ""));
        self.place.shared.changed.notify_all();
    }

    fn tick(&mut self) {
        self.send_all(&Frame::new(Tag::Beat, self.place.rank, ""));
        self.accepts = true;
        let mut silent = None;
        self.members.retain_mut(|member| {
            member.quiet_ticks += 1;
            match member.rank {
                Some(rank) if member.quiet_ticks > BEATS_PER_LIMIT => {
                    silent = silent.or(Some(rank));
                    // The member stays in the list, so that its later end is not reported again.
                    true
                }
                Some(_) => true,
                None => member.quiet_ticks <= AUTHENTICATION_BEATS,
            }
        });
        if let Some(rank) = silent.filter(|&rank| !self.place.shared.has_left(rank)) {
            self.declare(rank, Cause::Silent(self.place.limit));
        }
        // Ranks that are not watched cannot leave. At this point, the hello of every watched rank has been
        // read.
        let n_watched = self.place.shared.state().names.len();
        self.close_after(n_watched);
    }

    fn declare(&mut self, rank: usize, cause: Cause) {
        let loss = self.place.shared.declare(rank, cause);
        self.send_all(&Frame::new(tag_of(loss.cause), loss.rank, ""));
    }

    fn send_all(&mut self, frame: &Frame) {
        self.members.iter_mut().for_each(|member| member.say(frame));
    }
}

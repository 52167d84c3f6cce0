//! The thread of a rank that does not lead: sends heartbeats to the leader and applies its messages.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::connection::{Arrival, drain, is_signed, prepare, readable, receive, send, send_signed};
use super::frame::{Frame, Received, Tag};
use super::{BEATS_PER_LIMIT, Place, loss_of};
use crate::error::Cause;
use crate::key::{Key, Numbers, Session, Side, random_text};

pub(super) struct Follower {
    place: Place,
    leader: usize,
    stream: TcpStream,
    received: Vec<u8>,
    key: Key,
    stage: Stage,
}

/// State of the mutual authentication.
enum Stage {
    /// Waiting for the leader's random number.
    Connected,
    /// The hello was sent.
    Greeted(Numbers, Session),
    /// The leader has proved that it has the key. Its signed messages are accepted.
    Welcome(Session),
}

impl Follower {
    pub(super) fn new(place: Place, leader: usize, stream: TcpStream, key: Key) -> Self {
        Self { place, leader, stream, received: Vec::new(), key, stage: Stage::Connected }
    }

    pub(super) fn run(mut self, woken: &UnixStream) {
        if prepare(&self.stream).is_err() {
            return;
        }
        let mut quiet_ticks = 0;
        let mut next_tick = Instant::now() + self.place.tick;
        loop {
            let ready = readable(&[woken, &self.stream], next_tick);
            if ready[0] {
                drain(woken);
            }
            self.send_own();
            if self.place.shared.state().is_over() {
                return;
            }
            if ready[1] {
                quiet_ticks = 0;
                if !self.hear() {
                    // All ranks have left.
                    return;
                }
            }
            if Instant::now() >= next_tick {
                next_tick = Instant::now() + self.place.tick;
                self.say(&Frame::new(Tag::Beat, self.place.rank, ""));
                quiet_ticks += 1;
                if quiet_ticks > BEATS_PER_LIMIT && !self.place.shared.has_left(self.leader) {
                    self.place.shared.declare(self.leader, Cause::Silent(self.place.limit));
                }
            }
        }
    }

    /// Handles received frames. Returns whether to keep the connection.
    fn hear(&mut self) -> bool {
        let arrived = match receive(&mut self.stream, &mut self.received) {
            Arrival::Frames(frames) => frames.into_iter().all(|received| self.take(received)),
            Arrival::Ended => false,
        };
        if !arrived && !self.place.shared.has_left(self.leader) {
            let is_known = matches!(self.stage, Stage::Welcome(_));
            self.place.shared.declare(self.leader, if is_known { Cause::Ended } else { Cause::Unwelcome });
        }
        arrived
    }

    /// Sends a frame, unless the hello was not sent yet.
    fn say(&mut self, frame: &Frame) {
        if let Stage::Greeted(_, session) | Stage::Welcome(session) = &mut self.stage {
            send_signed(&mut self.stream, frame, session);
        }
    }

    fn send_own(&mut self) {
        if matches!(self.stage, Stage::Connected) {
            return;
        }
        let frames = self.place.shared.state().to_tell.clone();
        for frame in &frames {
            self.say(frame);
        }
        if !frames.is_empty() {
            self.place.shared.note_told(frames.len());
        }
    }

    /// Handles a frame. Returns whether the leader may send it in this state.
    fn take(&mut self, received: Received) -> bool {
        match (std::mem::replace(&mut self.stage, Stage::Connected), received.0.tag) {
            (Stage::Connected, Tag::Challenge) => self.send_hello(received.0.text),
            (Stage::Greeted(numbers, session), Tag::Welcome) => {
                let is_leader = self.key.welcome(&numbers, self.leader).is(&received.0.text);
                if is_leader {
                    self.stage = Stage::Welcome(session);
                }
                is_leader
            }
            (Stage::Welcome(mut session), _) => {
                let is_leader = is_signed(&received, &mut session);
                self.stage = Stage::Welcome(session);
                if is_leader {
                    self.apply(received.0);
                }
                is_leader
            }
            _ => false,
        }
    }

    /// Responds to the leader's random number. Returns false if the system has no random numbers.
    fn send_hello(&mut self, leaders: String) -> bool {
        let Ok(own) = random_text() else { return false };
        let numbers = Numbers { leader: leaders, follower: own };
        let name = self.place.shared.state().names.get(&self.place.rank).cloned().unwrap_or_default();
        let code = self.key.hello(&numbers, self.place.rank, &name).to_text();
        let text = format!("{} {code} {name}", numbers.follower);
        send(&mut self.stream, &Frame::new(Tag::Hello, self.place.rank, &text));
        let session = self.key.session(&numbers, Side::Follower);
        self.stage = Stage::Greeted(numbers, session);
        // Messages that had to wait for the hello.
        self.send_own();
        true
    }

    fn apply(&self, frame: Frame) {
        let shared = &self.place.shared;
        if let Some(cause) = loss_of(frame.tag, self.place.limit) {
            shared.declare(frame.rank, cause);
            return;
        }
        match frame.tag {
            Tag::Joined => shared.note_joined(frame.rank, frame.text),
            Tag::Left => shared.note_left(frame.rank),
            Tag::AllLeft => {
                shared.state().all_left = true;
                shared.changed.notify_all();
            }
            _ => {}
        }
    }
}

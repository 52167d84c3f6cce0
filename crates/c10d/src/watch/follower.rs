//! The thread of every other rank: it keeps its connection to the leader alive, and believes what it hears on it.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::connection::{Arrival, drain, prepare, readable, receive, send};
use super::frame::{Frame, Tag};
use super::{BEATS_PER_LIMIT, Place};
use crate::error::Cause;
use crate::key::{Key, Numbers, random_text};

pub(super) struct Follower {
    place: Place,
    leader: usize,
    stream: TcpStream,
    received: Vec<u8>,
    key: Key,
    stage: Stage,
}

/// How far both sides know each other.
enum Stage {
    /// The leader is to send its number.
    Connected,
    /// It has this rank's hello.
    Greeted(Numbers),
    /// It has shown the key, so it is believed.
    Welcome,
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
            self.tell_own();
            if self.place.shared.state().is_over() {
                return;
            }
            if ready[1] {
                quiet_ticks = 0;
                if !self.hear() {
                    // Nobody is left to hear from.
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

    /// Whether the connection may go on.
    fn hear(&mut self) -> bool {
        let arrived = match receive(&mut self.stream, &mut self.received) {
            Arrival::Frames(frames) => frames.into_iter().all(|frame| self.take(frame)),
            Arrival::Ended => false,
        };
        if !arrived && !self.place.shared.has_left(self.leader) {
            let is_known = matches!(self.stage, Stage::Welcome);
            self.place.shared.declare(self.leader, if is_known { Cause::Ended } else { Cause::Unwelcome });
        }
        arrived
    }

    /// Sends a frame, but not before the hello.
    fn say(&mut self, frame: &Frame) {
        if !matches!(self.stage, Stage::Connected) {
            send(&mut self.stream, frame);
        }
    }

    fn tell_own(&mut self) {
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

    /// Whether the leader may say so.
    fn take(&mut self, frame: Frame) -> bool {
        match (&self.stage, frame.tag) {
            (Stage::Connected, Tag::Challenge) => self.greet(frame.text),
            (Stage::Greeted(numbers), Tag::Welcome) => {
                let is_leader = self.key.welcome(numbers, self.leader).is(&frame.text);
                if is_leader {
                    self.stage = Stage::Welcome;
                }
                is_leader
            }
            (Stage::Welcome, _) => {
                self.believe(frame);
                true
            }
            _ => false,
        }
    }

    /// Answers the leader's number. Whether there was a number of its own to answer by.
    fn greet(&mut self, leaders: String) -> bool {
        let Ok(own) = random_text() else { return false };
        let numbers = Numbers { leader: leaders, follower: own };
        let name = self.place.shared.state().names.get(&self.place.rank).cloned().unwrap_or_default();
        let code = self.key.hello(&numbers, self.place.rank, &name).to_text();
        let text = format!("{} {code} {name}", numbers.follower);
        self.stage = Stage::Greeted(numbers);
        self.say(&Frame::new(Tag::Hello, self.place.rank, &text));
        // What had to wait for the hello.
        self.tell_own();
        true
    }

    fn believe(&self, frame: Frame) {
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

//! The thread of every other rank: it keeps its connection to the leader alive, and believes what it hears on it.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::connection::{Arrival, drain, prepare, readable, receive, send};
use super::frame::{Frame, Tag, Token};
use super::{BEATS_PER_LIMIT, Place};
use crate::error::Cause;

pub(super) struct Follower {
    place: Place,
    leader: usize,
    stream: TcpStream,
    received: Vec<u8>,
    token: Token,
}

impl Follower {
    pub(super) fn new(place: Place, leader: usize, stream: TcpStream, token: Token) -> Self {
        Self { place, leader, stream, received: Vec::new(), token }
    }

    pub(super) fn run(mut self, woken: &UnixStream) {
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

//! Frames on connections that do not block.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frame::{self, Frame};

/// Waits until one of the descriptors can be read, or until `deadline`; which can.
pub(super) fn readable(descriptors: &[&dyn AsFd], deadline: Instant) -> Vec<bool> {
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
pub(super) enum Arrival {
    Frames(Vec<Frame>),
    Ended,
}

/// Reads what has arrived on a connection that does not block.
pub(super) fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> Arrival {
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
pub(super) fn send(stream: &mut TcpStream, frame: &Frame) {
    let _ = stream.write_all(&frame.to_bytes());
}

pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)
}

pub(super) fn drain(woken: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!((&*woken).read(&mut bytes), Ok(n) if n > 0) {}
}

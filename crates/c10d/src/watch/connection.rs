//! Sends and receives frames on non-blocking connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::frame::{self, Frame, Received};
use crate::key::Session;

/// Waits until a descriptor is readable, or until `deadline`. Returns for each whether it is readable.
pub(super) fn readable(descriptors: &[&dyn AsFd], deadline: Instant) -> Vec<bool> {
    let mut polled: Vec<PollFd<'_>> = descriptors
        .iter()
        .map(|descriptor| PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN))
        .collect();
    let left = deadline.saturating_duration_since(Instant::now());
    let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
    // An interruption by a signal only shortens the wait.
    let _ = poll(&mut polled, Some(&limit));
    polled.iter().map(|fd| !fd.revents().is_empty()).collect()
}

/// Data received on a connection.
pub(super) enum Arrival {
    Frames(Vec<Received>),
    Ended,
}

/// Reads the available data of a non-blocking connection.
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
    // Frames before the end of the connection count: a leader may report a loss and then die.
    match frame::take_all(received) {
        Some(frames) if !frames.is_empty() => Arrival::Frames(frames),
        _ => Arrival::Ended,
    }
}

/// Sends a frame of the handshake on a non-blocking connection. If the buffer is full, the frame is dropped: a peer that
/// does not read is silent and will be reported as lost.
pub(super) fn send(stream: &mut TcpStream, frame: &Frame) {
    let _ = stream.write_all(&frame.to_bytes());
}

/// Sends a frame with its signature. If the buffer is full, the connection ends: a part of the frame may be sent, and later
/// frames would be taken for forged ones.
pub(super) fn send_signed(stream: &mut TcpStream, frame: &Frame, session: &mut Session) {
    let bytes = frame.to_bytes();
    let signature = session.sign(&bytes);
    if stream.write_all(&[&bytes[..], &signature].concat()).is_err() {
        // Frames that were received before are still read.
        let _ = stream.shutdown(Shutdown::Write);
    }
}

/// Whether a frame has the signature that is next on its connection.
pub(super) fn is_signed((frame, signature): &Received, session: &mut Session) -> bool {
    signature.is_some_and(|signature| session.is_next(&frame.to_bytes(), &signature))
}

pub(super) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)
}

pub(super) fn drain(woken: &UnixStream) {
    let mut bytes = [0; 64];
    while matches!((&*woken).read(&mut bytes), Ok(n) if n > 0) {}
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::TcpListener;

    use super::super::frame::Tag;
    use super::*;
    use crate::key::{Key, Numbers, Side};

    #[test]
    fn a_connection_ends_with_the_first_frame_that_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        prepare(&own).unwrap();
        let numbers = Numbers { leader: "1".to_owned(), follower: "2".to_owned() };
        let mut session = Key::of(b"secret").session(&numbers, Side::Leader);
        let beat = Frame::new(Tag::Beat, 0, "");
        // Fills the buffers.
        while own.write(&[0; 1 << 16]).is_ok_and(|n| n > 0) {}
        assert_eq!(own.write(&[0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        send_signed(&mut own, &beat, &mut session);
        let mut received = Vec::new();
        other.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        // Frees the buffers.
        other.read_to_end(&mut received).unwrap();
        send_signed(&mut own, &beat, &mut session);
        assert_eq!(other.read(&mut [0]).unwrap(), 0);
    }
}

//! Refuses to run with a standard stream that is closed or open in the wrong direction.
//!
//! Without this check such a stream loses data silently. Rust's runtime opens `/dev/null` in place of each
//! closed descriptor. Its standard streams also treat a descriptor of the wrong direction as an empty input
//! or a successful write.

use std::fmt;
use std::io::{self, Stdin};

use thiserror::Error;

use crate::descriptors::{self, State};

/// The standard streams, by descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Descriptor 0.
    Input,
    /// Descriptor 1.
    Output,
    /// Descriptor 2.
    Error,
}

impl Stream {
    const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Error];
}

impl fmt::Display for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Input => "standard input",
            Self::Output => "standard output",
            Self::Error => "standard error",
        })
    }
}

/// A standard stream cannot be used.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum UnusableStream {
    /// Its descriptor was closed when the program started.
    #[error("{0} is closed, expected an open stream; redirect it to a file or to /dev/null")]
    Closed(Stream),
    /// Its descriptor is open in the other direction only.
    #[error(
        "{stream} is open for {found} only, expected for {expected}; redirect it to a file or to /dev/null"
    )]
    Direction {
        /// The stream.
        stream: Stream,
        /// The direction of its descriptor.
        found: &'static str,
        /// The direction that the program needs.
        expected: &'static str,
    },
}

/// Checks that all three standard streams were open when the program started, and that output and error can
/// be written.
///
/// Standard input may be unreadable, as under `nohup`. [`stdin`] refuses it in programs that read it.
pub(crate) fn check() -> Result<(), UnusableStream> {
    for stream in Stream::ALL {
        match (stream, descriptors::at_start(stream as usize)) {
            (_, State::Closed) => return Err(UnusableStream::Closed(stream)),
            (Stream::Output | Stream::Error, State::ReadOnly) => {
                return Err(UnusableStream::Direction { stream, found: "reading", expected: "writing" });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Standard input, for a program that reads it.
pub fn stdin() -> io::Result<Stdin> {
    match descriptors::at_start(Stream::Input as usize) {
        State::Closed => Err(io::Error::other(UnusableStream::Closed(Stream::Input))),
        State::WriteOnly => {
            let (stream, found, expected) = (Stream::Input, "writing", "reading");
            Err(io::Error::other(UnusableStream::Direction { stream, found, expected }))
        }
        State::ReadOnly | State::ReadWrite => Ok(io::stdin()),
    }
}

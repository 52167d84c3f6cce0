//! Reads sources one after the other in chunks of whole lines, from a place that an earlier process reached.
//!
//! A place is the number of bytes and lines that were passed on of each source. Bytes are those of the decoded content. A
//! source that grew is read from its place on. Lines that are not complete are passed on when they are, or at the end of the
//! input. A line that is too long is skipped and counted.
//!
//! [`SequenceOptions::follows`] reads folders again and again: files that appear and lines that are appended are passed on
//! as they come. A file that vanishes before it is opened, such as one that its writer renames, is skipped. A file that
//! cannot be read to its end, such as a compressed one that is not complete, is reported, and read on when it changes.
//! `followed` recognises files that were renamed or compressed, and those whose content was replaced.
//!
//! Standard input and named pipes are read as lines arrive. If the writer pauses, the lines so far are passed on. A process
//! that is told to stop passes on all complete lines that it has read and keeps the rest of the last one in the place, so
//! that the next process continues with the next byte. `taken` keeps what a process has read of a stream and has in no
//! checkpoint.

mod followed;
mod options;
mod place;
mod reader;
mod taken;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use self::followed::recognise;
pub use self::options::SequenceOptions;
pub use self::place::{Chunk, Passed, Place, Position, Resumed};
use self::reader::SourceReader;
pub use self::taken::Keep;
use crate::error::Error;
use crate::source::{Kind, Listing, find, find_followed};

/// Interval at which folders are read again.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// Passes all chunks of the inputs behind a place to `pass`, in their order, until the end of the inputs, until `pass`
/// returns false, or until `stop` is true.
///
/// # Errors
/// If a source cannot be read or is shorter than its place. The lines before are passed on. Files that are followed are
/// no error: they are skipped.
pub fn read_sequence(
    options: &SequenceOptions,
    place: &Place,
    stop: &AtomicBool,
    mut pass: impl FnMut(Passed) -> bool,
) -> Result<(), Error> {
    let mut place = place.clone();
    let mut listing = Listing::First;
    loop {
        let sources = match options.follows {
            true => find_followed(&options.inputs, &options.s3, listing),
            false => find(&options.inputs, &options.s3),
        };
        let sources = match sources {
            Err(Error::NoFiles(_)) if options.follows => Vec::new(),
            found => found?,
        };
        if options.follows && !recognise(&sources, &mut place, &mut pass) {
            return Ok(());
        }
        for source in &sources {
            let is_followed = options.follows && !source.is_stream();
            let position = place.sources.get(&source.name).copied().unwrap_or_default();
            if is_followed && position.mark.is_some_and(|mark| mark.is_read(source)) {
                continue;
            }
            let rest = if place.rest_of == source.name { place.rest.clone() } else { Vec::new() };
            let read = SourceReader::open(source, options, stop, position, rest);
            let mut note = |passed: Passed| {
                match &passed {
                    Passed::Lines(chunk) => place.pass(chunk),
                    Passed::Resumed(resumed) => place.lose(resumed),
                    Passed::Skipped(_) => {}
                }
                pass(passed)
            };
            match read.and_then(|mut reader| reader.each(&mut note)) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) if is_followed && has_vanished(&error) => {}
                Err(error) if is_followed && matches!(source.kind, Kind::File(_)) => {
                    // It is read on when it changes.
                    let mut position = place.sources.get(&source.name).copied().unwrap_or_default();
                    position.mark = Some(position.mark.unwrap_or_default().read_of(source));
                    let end = Chunk::empty(source.name.as_str().into(), position);
                    place.pass(&end);
                    if !pass(Passed::Skipped(error)) || !pass(Passed::Lines(end)) {
                        return Ok(());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if !options.follows || stop.load(Relaxed) {
            return Ok(());
        }
        listing = Listing::Later;
        thread::sleep(FOLLOW_EVERY);
    }
}

/// Whether a source vanished after it was found.
fn has_vanished(error: &Error) -> bool {
    matches!(error, Error::Read { source, .. } if source.kind() == io::ErrorKind::NotFound)
}

#[cfg(test)]
mod tests;

//! Reads objects of a bucket with any name. (The objects of a run have only names that this project defines.)
//!
//! An object is read in ranges, all from the listed version. An object that was replaced in the meantime is
//! an error.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::SystemTime;

use crate::run_url::objects_of;
use crate::s3::S3Store;
use crate::{Error, S3Options};

/// An object of a bucket.
#[derive(Debug, Clone)]
pub struct Object {
    pub(crate) store: S3Store,
    /// Its full name.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
    /// The ETag of the listed version.
    pub(crate) etag: Option<String>,
}

/// The objects of `s3://bucket/name`, ordered by the bytes of the name: the object with this name, or all
/// objects below it as in a folder. Empty objects whose names end in a slash are excluded; some programs
/// create them as folders.
pub fn objects(url: &str, options: &S3Options) -> Result<Vec<Object>, Error> {
    let place = objects_of(url)?;
    let name = place.prefix.clone();
    S3Store::open(place, options)?.objects(&name)
}

impl Object {
    /// `s3://bucket/name`.
    pub fn url(&self) -> String {
        self.store.url_of(&self.name)
    }

    /// Its full name in the bucket.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the object was written, by the clock of the storage.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    /// Reads this number of bytes from an offset; the range is within the object. If a response is cut off,
    /// the range is requested again, a limited number of times.
    pub fn read_range(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        self.store.read_range(self, offset, bytes)
    }

    /// Returns a reader of the whole object. While one part is read, a thread fetches the next two, so three
    /// parts (see [`S3Options::part_bytes`]) are in memory.
    pub fn reader(&self) -> io::Result<ObjectReader> {
        let object = self.clone();
        // One part waits in the channel, one is being fetched, and one is being read.
        let (sender, parts) = sync_channel(1);
        let fetch = move || {
            let part_bytes = object.store.part_bytes();
            for offset in (0..object.bytes).step_by(usize::try_from(part_bytes).unwrap_or(usize::MAX)) {
                let part = object.read_range(offset, part_bytes.min(object.bytes - offset));
                let is_last = part.is_err();
                // The reader was dropped.
                if sender.send(part).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("object".to_owned()).spawn(fetch)?;
        Ok(ObjectReader { parts, part: Vec::new(), at: 0, rest: self.bytes })
    }
}

/// Reads the bytes of an object from the start. Errors are an [`Error`] inside an [`io::Error`].
#[derive(Debug)]
pub struct ObjectReader {
    parts: Receiver<Result<Vec<u8>, Error>>,
    part: Vec<u8>,
    /// Number of bytes of the part that were read.
    at: usize,
    /// Number of bytes of the object that were not read.
    rest: u64,
}

impl Read for ObjectReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.part.len() && self.rest > 0 {
            let part = self.parts.recv().map_err(|_| io::Error::other("a read after a failed one"))?;
            (self.part, self.at) = (part.map_err(io::Error::other)?, 0);
        }
        let bytes = (&self.part[self.at..]).read(buffer)?;
        self.at += bytes;
        self.rest -= bytes as u64;
        Ok(bytes)
    }
}

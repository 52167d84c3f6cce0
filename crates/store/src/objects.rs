//! What lies in a bucket, to be read: objects of any name, where a run's objects have names of this project's own.
//!
//! An object is read in ranges, all of them of the version that was listed: one that was replaced meanwhile is an error.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::run_url::objects_of;
use crate::s3::S3Store;
use crate::{Error, S3Options};

/// An object of a bucket.
#[derive(Debug, Clone)]
pub struct Object {
    pub(crate) store: S3Store,
    /// Its whole name.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    /// The mark of the version that was listed.
    pub(crate) etag: Option<String>,
}

/// The objects that `s3://bucket/name` stands for, by bytewise name: the one of this name, or all below it as below a
/// folder. Left out are those without bytes whose names end in a slash, by which some programs make folders.
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

    /// Its whole name in the bucket.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads so many bytes from a place on, which lie within the object. An answer that breaks off is asked for again, a
    /// bounded number of times.
    pub fn read_range(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        self.store.read_range(self, offset, bytes)
    }

    /// Reads from the beginning to the end. While a part is read, a thread fetches the next two; that makes three parts
    /// (see [`S3Options::part_bytes`]) in memory.
    pub fn reader(&self) -> io::Result<ObjectReader> {
        let object = self.clone();
        // One waits here, one is on its way, one is read.
        let (sender, parts) = sync_channel(1);
        let fetch = move || {
            let part_bytes = object.store.part_bytes();
            for offset in (0..object.bytes).step_by(usize::try_from(part_bytes).unwrap_or(usize::MAX)) {
                let part = object.read_range(offset, part_bytes.min(object.bytes - offset));
                let is_last = part.is_err();
                // Nobody reads on.
                if sender.send(part).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("object".to_owned()).spawn(fetch)?;
        Ok(ObjectReader { parts, part: Vec::new(), at: 0, rest: self.bytes })
    }
}

/// The bytes of an object, from its beginning on. What goes wrong is an [`Error`] inside of an [`io::Error`].
#[derive(Debug)]
pub struct ObjectReader {
    parts: Receiver<Result<Vec<u8>, Error>>,
    part: Vec<u8>,
    /// How much of the part was read.
    at: usize,
    /// How much of the object was not.
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

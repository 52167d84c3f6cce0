//! Recognises files that are followed: a log file is renamed, cut or replaced while it is read.
//!
//! A mark has the file's inode, and a digest of its first bytes and of the last ones that were read. Both are a few
//! kilobytes, so a check costs the same for a file of any size. A file that grows keeps them. Another file has other first
//! bytes, or other bytes at the place that was reached. The inode only finds a file under a new name: a copy of a file, such
//! as `rsync` makes of one that grew, has a new inode and the old content.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::{Chunk, Passed, Place, Position};
use crate::source::{Kind, Stamp};
use crate::{Error, Source};

/// Bytes at either end of the digested part of a file.
const DIGESTED_BYTES: u64 = 4 << 10;

/// What identifies a source that is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The inode of a file.
    inode: u64,
    /// The digest is of the ends of these first bytes of a file, as they are stored.
    bytes: u64,
    digest: u64,
    /// The source when it was read to its end.
    read: Option<Stamp>,
}

impl Mark {
    /// The mark of the first bytes of a file.
    pub(super) fn of(file: &File, bytes: u64) -> io::Result<Self> {
        let digest = digest(file, bytes)?.unwrap_or_default();
        Ok(Self { inode: file.metadata()?.ino(), bytes, digest, read: None })
    }

    /// The mark of a source that was read to its end, as it was before.
    pub(super) fn read_of(self, source: &Source) -> Self {
        Self { inode: source.stamp.inode, read: Some(source.stamp), ..self }
    }

    /// Whether a source has not changed since it was read to its end.
    pub(super) fn is_read(&self, source: &Source) -> bool {
        self.read == Some(source.stamp)
    }

    /// Whether a file begins with the bytes that were read.
    pub(super) fn is_of(&self, file: &File) -> bool {
        digest(file, self.bytes).is_ok_and(|digest| digest == Some(self.digest) || self.bytes == 0)
    }
}

/// A digest of both ends of the first bytes of a file. `None` if it is shorter.
fn digest(file: &File, bytes: u64) -> io::Result<Option<u64>> {
    let n = bytes.min(DIGESTED_BYTES);
    let mut digest = Xxh3Default::new();
    let mut part = vec![0; n as usize];
    for at in [0, bytes - n] {
        match file.read_exact_at(&mut part, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        digest.update(&part);
    }
    Ok(Some(digest.digest()))
}

/// Finds the positions of files that were renamed, and takes those of files whose content was replaced. Returns whether
/// `pass` takes more.
pub(super) fn recognise(
    sources: &[Source],
    place: &mut Place,
    pass: &mut impl FnMut(Passed) -> bool,
) -> bool {
    let mut by_inode: Option<HashMap<u64, (String, Position)>> = None;
    let mut found = Vec::new();
    for source in sources {
        let Kind::File(path) = &source.kind else { continue };
        let own = place.sources.get(&source.name);
        if own.is_some_and(|own| own.mark.is_none_or(|mark| mark.is_read(source))) {
            continue;
        }
        // The reader reports a file that cannot be opened.
        let Ok(file) = File::open(path) else { continue };
        let is_of = |position: &Position| position.mark.is_some_and(|mark| mark.is_of(&file));
        let has_inode = |position: &Position| {
            position.mark.is_some_and(|mark| mark.inode == source.stamp.inode && mark.bytes > 0)
        };
        if own.is_some_and(|own| has_inode(own) && is_of(own)) {
            continue;
        }
        let former = by_inode.get_or_insert_with(|| {
            let marked = place.sources.iter();
            marked.filter_map(|(name, of)| Some((of.mark?.inode, (name.clone(), *of)))).collect()
        });
        match former.get(&source.stamp.inode) {
            Some((name, position)) if *name != source.name && has_inode(position) && is_of(position) => {
                found.push((source, Some(name.clone()), *position));
            }
            _ => match own {
                Some(own) if !is_of(own) => found.push((source, None, *own)),
                _ => {}
            },
        }
    }
    // A name whose file was renamed is that of another file, or of none.
    for (_, former, _) in &found {
        former.as_ref().map(|name| place.sources.remove(name));
    }
    for (source, former, position) in found {
        let passed = match former {
            Some(_) => {
                place.sources.insert(source.name.clone(), position);
                Passed::Lines(Chunk::empty(source.name.as_str().into(), position))
            }
            None => match place.sources.remove(&source.name) {
                Some(_) => {
                    Passed::Skipped(Error::Replaced { input: source.name.clone(), lines: position.lines })
                }
                None => continue,
            },
        };
        if !pass(passed) {
            return false;
        }
    }
    true
}

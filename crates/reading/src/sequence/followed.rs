//! Recognises files that are followed: a log file is renamed, cut, compressed or replaced while it is read.
//!
//! A mark has the file's inode, and a digest of its first bytes and of the last ones that were read. Both are a few
//! kilobytes, so a check costs the same for a file of any size. A file that grows keeps them. Another file has other first
//! bytes, or other bytes at the place that was reached. The inode only finds a file under a new name: a copy of a file, such
//! as `rsync` makes of one that grew, has a new inode and the old content. A copy under a new name, also a compressed one,
//! continues a file whose name has vanished or is that of another file.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use input::{Compression, MAGIC_BYTES, Members, WholeFile};
use program::exit::Exit;

use super::place::{Chunk, DIGESTED_BYTES, Mark, Passed, Place, Position, READ_BYTES, digest_of};
use crate::source::{Kind, Source};

/// A source, and the name and position under which its content was read.
type Moved<'a> = (&'a Source, String, Position);

/// Finds the positions of files that were renamed or copied, and takes those of files whose content was replaced. Returns
/// whether `pass` takes more.
pub(super) fn recognise(
    sources: &[Source],
    place: &mut Place,
    pass: &mut impl FnMut(Passed) -> bool,
) -> bool {
    let (mut moved, mut unknown) = renamed(sources, place);
    if !unknown.is_empty() && !place.sources.is_empty() {
        let mut lost = lost(sources, place, &moved, &unknown);
        unknown.retain(|source| match copied(source, &mut lost) {
            None => true,
            Some((former, position)) => {
                moved.push((source, former, position));
                false
            }
        });
    }
    // A name whose file has another name now is that of another file, or of none.
    for (_, former, _) in &moved {
        place.sources.remove(former);
    }
    let replaced = unknown.into_iter().filter_map(|source| {
        let Position { lines, .. } = place.sources.remove(&source.name)?;
        let found = format!("found other content than the {lines} lines that were read of it");
        let why = format!("{found}; reading it from its start");
        Some(Passed::Skipped(source.refused(Exit::BadInput, why)))
    });
    let replaced: Vec<Passed> = replaced.collect();
    let moved = moved.into_iter().map(|(source, _, position)| {
        place.sources.insert(source.name.clone(), position);
        Passed::Lines(Chunk::empty(source.name.as_str().into(), position))
    });
    replaced.into_iter().chain(moved).all(pass)
}

/// The files that were renamed, and those whose content is not what was read under their names.
fn renamed<'a>(sources: &'a [Source], place: &Place) -> (Vec<Moved<'a>>, Vec<&'a Source>) {
    let by_inode = LazyCell::new(|| {
        let marked = place.sources.iter();
        marked.filter_map(|named| Some((named.1.mark?.inode, named))).collect::<HashMap<_, _>>()
    });
    let (mut moved, mut unknown) = (Vec::new(), Vec::new());
    for source in sources {
        let Kind::File(path) = &source.kind else { continue };
        let own = place.sources.get(&source.name);
        if own.is_some_and(|own| own.mark.is_none_or(|mark| mark.is_read(source))) {
            continue;
        }
        // The reader reports a file that cannot be opened.
        let Ok(file) = File::open(path) else { continue };
        let is_of = |of: &Position| of.mark.is_some_and(|mark| mark.is_of(&file));
        let has_inode = |of: &Position| {
            of.mark.is_some_and(|mark| mark.inode == source.stamp.inode && mark.bytes > 0) && is_of(of)
        };
        if own.is_some_and(has_inode) {
            continue;
        }
        match by_inode.get(&source.stamp.inode).filter(|(name, of)| **name != source.name && has_inode(of)) {
            Some((name, of)) => moved.push((source, (*name).clone(), **of)),
            None if own.is_some_and(is_of) => {}
            None => unknown.push(source),
        }
    }
    (moved, unknown)
}

/// What was read under names that have vanished, or that are now those of other files.
fn lost(
    sources: &[Source],
    place: &Place,
    moved: &[Moved<'_>],
    unknown: &[&Source],
) -> Vec<(String, Position)> {
    let mut known: HashSet<&str> = sources.iter().map(|source| &*source.name).collect();
    for source in unknown.iter().copied().chain(moved.iter().map(|(source, ..)| *source)) {
        known.remove(&*source.name);
    }
    known.extend(moved.iter().map(|(_, former, _)| &**former));
    let is_lost =
        |name: &str, of: &Position| !known.contains(name) && of.mark.is_some_and(|mark| mark.bytes > 0);
    let lost = place.sources.iter().filter(|(name, of)| is_lost(name, of));
    lost.map(|(name, of)| (name.clone(), *of)).collect()
}

/// Takes the position of the file of which a source is a copy, compressed or not.
fn copied(source: &Source, lost: &mut Vec<(String, Position)>) -> Option<(String, Position)> {
    let Kind::File(path) = &source.kind else { return None };
    let is_named = |at: &usize| is_name_of_copy(path, Path::new(&lost[*at].0));
    let mut formers: Vec<usize> = (0..lost.len()).filter(is_named).collect();
    if formers.is_empty() {
        return None;
    }
    let mark_of = |at: usize| lost[at].1.mark.unwrap_or_default();
    formers.sort_by_key(|&at| mark_of(at).bytes);
    let file = File::open(path).ok()?;
    let mut beginning = [0; MAGIC_BYTES];
    let n = file.read_at(&mut beginning, 0).ok()?;
    let (at, mark) = match Compression::of(&beginning[..n]) {
        None => {
            let at = formers.into_iter().rfind(|&at| mark_of(at).is_of(&file))?;
            (at, Mark { inode: source.stamp.inode, ..mark_of(at) })
        }
        Some(by) => {
            let content = WholeFile::of(file.try_clone().ok()?).ok()?;
            let marks: Vec<Mark> = formers.iter().map(|&at| mark_of(at)).collect();
            let at = last_of(&mut Members::from(content, by, 0), &marks)?;
            (formers[at], Mark::of(&file, source.bytes?).ok()?)
        }
    };
    let (name, position) = lost.swap_remove(at);
    Some((name, Position { mark: Some(mark), ..position }))
}

/// Whether a path may be that of a copy: `a.log.1.gz` and `a-20270131.log` of `a.log`.
fn is_name_of_copy(path: &Path, former: &Path) -> bool {
    let names = path.file_name().zip(former.file_name());
    path.parent() == former.parent()
        && names.is_some_and(|(name, former)| {
            let former = former.to_string_lossy();
            let until = former.char_indices().skip(1).find(|(_, letter)| *letter == '.');
            name.to_string_lossy().starts_with(&former[..until.map_or(former.len(), |(at, _)| at)])
        })
}

/// The number of the last of these marks that is of a content. They are in the order of their bytes.
fn last_of(content: &mut impl Read, marks: &[Mark]) -> Option<usize> {
    let digested = DIGESTED_BYTES as usize;
    let (mut n_read, mut ends, mut found) = (0, [Vec::new(), Vec::new()], None);
    let mut part = Vec::new();
    for (number, mark) in marks.iter().enumerate() {
        while n_read < mark.bytes {
            part.resize((mark.bytes - n_read).min(READ_BYTES as u64) as usize, 0);
            if content.read_exact(&mut part).is_err() {
                return found;
            }
            n_read += part.len() as u64;
            let [first, last] = &mut ends;
            first.extend(part.iter().take(digested - first.len()));
            last.extend_from_slice(&part);
            last.drain(..last.len().saturating_sub(digested));
        }
        let n = mark.bytes.min(DIGESTED_BYTES) as usize;
        let [first, last] = &ends;
        if digest_of(&[first[..n].to_vec(), last[last.len() - n..].to_vec()]) == mark.digest {
            found = Some(number);
        }
    }
    found
}

/// A file that is followed, and that is the one at its position.
pub(super) struct Followed {
    file: File,
    /// The mark of a file whose bytes are decoded. Its positions are not those of the file.
    decoded: Option<Mark>,
}

impl Followed {
    /// A file of this many bytes, whose bytes are its content or not.
    pub(super) fn of(file: File, bytes: u64, is_plain: bool) -> io::Result<Self> {
        let decoded = if is_plain { None } else { Some(Mark::of(&file, bytes)?) };
        Ok(Self { file, decoded })
    }

    /// Whether the last line may still grow.
    pub(super) fn may_grow(&self) -> bool {
        self.decoded.is_none()
    }

    /// What identifies the file, as far as it was read.
    pub(super) fn mark(&self, bytes: u64) -> io::Result<Mark> {
        self.decoded.map_or_else(|| Mark::of(&self.file, bytes), Ok)
    }
}

//! A compressed file of several members, cut into groups of them that are inflated independently of each other.
//!
//! That takes members whose ends can be told without inflating them: BGZF, frames of zstd, and streams of bzip2 as
//! `pbzip2` makes them ([`input::end_of_member`]). The file is cut while it is read, so that it is not read twice. From
//! the first member on whose end is not told, or is not there, the rest of the file is one group: if it is damaged, or no
//! member, who inflates it says so, as of any other file.
//!
//! How many bytes the groups before a line have is known when these have been read, and not before.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use corpus::lines::Line;
use input::{Compression, Members, end_of_member};

use super::source::Kind;
use super::stretch::{End, each_line};
use super::{Error, Part, Source};
use crate::locked;

/// A file, being cut.
#[derive(Debug)]
pub(super) struct MemberFile {
    /// The number of its source.
    pub source: usize,
    by: Compression,
    file_bytes: u64,
    group_bytes: u64,
    cutting: Mutex<Cutting>,
}

#[derive(Debug, Default)]
struct Cutting {
    /// While there is more to be cut.
    file: Option<Arc<File>>,
    /// Where the next group begins.
    at: u64,
    is_over: bool,
    /// The inflated bytes of the groups that were read, by their numbers.
    inflated: Vec<u64>,
}

/// Members that stand one behind the other.
#[derive(Debug)]
pub(super) struct MemberGroup {
    /// How many groups stand before it.
    pub number: usize,
    file: Arc<File>,
    start: u64,
    /// Where its last member ends; `None` where that is the end of the file, if it is whole.
    end: Option<u64>,
}

impl MemberFile {
    /// Looks whether there is more than one group of so many bytes in a file.
    pub(super) fn of(
        source: usize,
        file: &File,
        by: Compression,
        group_bytes: u64,
    ) -> io::Result<Option<Self>> {
        let file_bytes = file.metadata()?.len();
        let this = Self { source, by, file_bytes, group_bytes, cutting: Mutex::default() };
        Ok(this.end_of_group(file, 0)?.map(|_| this))
    }

    /// The next group; `None` where all are taken.
    pub(super) fn next_group(&self, source: &Source) -> Result<Option<MemberGroup>, Error> {
        let mut cutting = locked(&self.cutting);
        if cutting.is_over {
            return Ok(None);
        }
        let opened = cutting.file.take().map_or_else(
            || {
                let Kind::File(path) = &source.kind else { unreachable!("members of files are cut") };
                File::open(path).map(Arc::new)
            },
            Ok,
        );
        let file = opened.map_err(|error| source.unreadable("open it", error))?;
        let (number, start) = (cutting.inflated.len(), cutting.at);
        let end = self.end_of_group(&file, start);
        let end = end.map_err(|error| source.unreadable("look where its members end", error))?;
        cutting.inflated.push(0);
        match end {
            Some(end) => (cutting.at, cutting.file) = (end, Some(Arc::clone(&file))),
            None => cutting.is_over = true,
        }
        Ok(Some(MemberGroup { number, file, start, end }))
    }

    /// Where the group ends that begins here, if another one follows.
    fn end_of_group(&self, file: &File, start: u64) -> io::Result<Option<u64>> {
        let mut at = start;
        while at - start < self.group_bytes {
            match end_of_member(file, self.by, at)? {
                Some(end) if end < self.file_bytes => at = end,
                _ => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// The inflated bytes before a group, once the groups before it have been read.
    pub(super) fn bytes_before(&self, group: usize) -> u64 {
        locked(&self.cutting).inflated[..group].iter().sum()
    }

    /// Reads the lines of a group of this file, with their offsets in the group's bytes.
    pub(super) fn each_line<E: From<Error>>(
        &self,
        group: &MemberGroup,
        part: &Part<'_>,
        visit: &mut impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = End::default();
        let mut members =
            Members::from(FileFrom { file: &group.file, at: group.start }, self.by, group.start);
        members.pause_at(group.end);
        let window = Window { members, inflated: 0, end: &end };
        each_line(window, (&end, group.number == 0), part, visit)?;
        // Unless the reading was stopped.
        if let Some(inflated) = end.at() {
            locked(&self.cutting).inflated[group.number] = inflated;
        }
        part.state.advance(group.end.unwrap_or(self.file_bytes) - group.start);
        Ok(())
    }
}

/// The inflated bytes of a file from a group's beginning on.
struct Window<'a> {
    members: Members<FileFrom<'a>>,
    inflated: u64,
    end: &'a End,
}

impl Read for Window<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.end.at().is_none() {
            let bytes = self.members.read(buffer)?;
            self.inflated += bytes as u64;
            if bytes > 0 {
                return Ok(bytes);
            }
            self.members.pause_at(None);
        }
        let end = self.end.at().unwrap_or(self.inflated);
        if !self.end.meet(end) {
            return Ok(0);
        }
        let most = End::bytes_beyond(self.inflated - end) as usize;
        let most = most.min(buffer.len());
        let bytes = self.members.read(&mut buffer[..most])?;
        self.inflated += bytes as u64;
        Ok(bytes)
    }
}

/// The bytes of a file from one place on.
struct FileFrom<'a> {
    file: &'a File,
    at: u64,
}

impl Read for FileFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

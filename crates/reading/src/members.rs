//! A compressed file of several members, split into groups that are decompressed independently.
//!
//! This requires members whose ends can be found without decompressing them: BGZF, zstd frames, and bzip2
//! streams as written by `pbzip2` ([`input::end_of_member`]). The file is split while it is read, so that it
//! is not read twice. From the first member whose end cannot be found, the rest of the file is one group. If
//! the rest is damaged or not a member, decompressing it reports the error, as for any other file.
//!
//! The number of bytes in the groups before a line is known only after these groups have been read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use corpus::lines::Line;
use input::{Compression, Members, end_of_member};
use program::threads::locked;

use crate::error::Error;
use crate::source::{Kind, Source};
use crate::state::Part;
use crate::stretch::{End, each_line};

/// A file while it is split.
#[derive(Debug)]
pub(crate) struct MemberFile {
    /// Index of its source.
    pub source: usize,
    by: Compression,
    file_bytes: u64,
    group_bytes: u64,
    cutting: Mutex<Cutting>,
}

#[derive(Debug, Default)]
struct Cutting {
    /// Open while there are more groups.
    file: Option<Arc<File>>,
    /// Offset of the next group.
    at: u64,
    is_over: bool,
    /// Decompressed size of the groups that were read, by number.
    inflated: Vec<u64>,
}

/// Consecutive members.
#[derive(Debug)]
pub(crate) struct MemberGroup {
    /// Number of groups before it.
    pub number: usize,
    file: Arc<File>,
    start: u64,
    /// End of its last member; `None` if that is the end of the file.
    end: Option<u64>,
}

impl MemberFile {
    /// Returns a file if it has more than one group of this size.
    pub(crate) fn of(
        source: usize,
        file: &File,
        by: Compression,
        group_bytes: u64,
    ) -> io::Result<Option<Self>> {
        let file_bytes = file.metadata()?.len();
        let this = Self { source, by, file_bytes, group_bytes, cutting: Mutex::default() };
        Ok(this.end_of_group(file, 0)?.map(|_| this))
    }

    /// The next group; `None` after the last.
    pub(crate) fn next_group(&self, source: &Source) -> Result<Option<MemberGroup>, Error> {
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
        let end = end.map_err(|error| source.unreadable("find the ends of its members", error))?;
        cutting.inflated.push(0);
        match end {
            Some(end) => (cutting.at, cutting.file) = (end, Some(Arc::clone(&file))),
            None => cutting.is_over = true,
        }
        Ok(Some(MemberGroup { number, file, start, end }))
    }

    /// The end of the group that starts here, if another one follows.
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

    /// Decompressed size of all groups before this one, after they have been read.
    pub(crate) fn bytes_before(&self, group: usize) -> u64 {
        locked(&self.cutting).inflated[..group].iter().sum()
    }

    /// Reads the lines of a group, with their offsets in the group.
    pub(crate) fn each_line<E: From<Error>>(
        &self,
        group: &MemberGroup,
        part: &Part<'_>,
        visit: &mut impl FnMut(Line<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = End::default();
        let from = FileFrom { file: Arc::clone(&group.file), at: group.start };
        let mut members = Members::from(from, self.by, group.start);
        members.pause_at(group.end);
        let window = GroupBytes { members, inflated: 0, end: &end };
        each_line(window, (&end, group.number == 0), part, visit)?;
        // The end is not set if reading was stopped.
        if let Some(inflated) = end.at() {
            locked(&self.cutting).inflated[group.number] = inflated;
        }
        part.state.advance(group.end.unwrap_or(self.file_bytes) - group.start);
        Ok(())
    }
}

/// The decompressed bytes of a file from the start of a group.
struct GroupBytes<'a> {
    members: Members<FileFrom>,
    inflated: u64,
    end: &'a End,
}

impl Read for GroupBytes<'_> {
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

/// The bytes of a file, starting at an offset.
pub(crate) struct FileFrom {
    pub file: Arc<File>,
    pub at: u64,
}

impl Read for FileFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.at)?;
        self.at += bytes as u64;
        Ok(bytes)
    }
}

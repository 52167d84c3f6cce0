//! A file, or another stream of bytes → its bytes, inflated where its first bytes are those of gzip, bzip2 or zstd.
//!
//! Compressed files may have several members (gzip, zstd: frames; bzip2: streams), one behind the other, as `cat a.gz
//! b.gz` makes them. What is not whole is an error that names the member: an end that is cut off, damage, and bytes
//! behind the last member that begin no other. Nothing is known of what the bytes mean.
//!
//! Where members end can be told of some files without inflating them ([`end_of_member`]), so that several threads can
//! each inflate some of the members ([`Members::from`]).

mod ends;
mod members;
mod source;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use source::Source;
use thiserror::Error;

pub use ends::end_of_member;
pub use members::Members;

/// A way to compress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// The format of bzip2.
    Bzip2,
    /// RFC 8878.
    Zstd,
}

/// So many bytes tell how a file is compressed.
pub const MAGIC_BYTES: usize = 10;

/// How a block of bzip2 begins, and what stands behind the last one of a stream.
const BZIP2_BLOCK: &[u8] = b"\x31\x41\x59\x26\x53\x59";
const BZIP2_END: &[u8] = b"\x17\x72\x45\x38\x50\x90";

impl Compression {
    /// How what begins like this is compressed; `None` if it is not, or in no way that is read here.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', after @ ..]
                if after.starts_with(BZIP2_BLOCK) || after.starts_with(BZIP2_END) =>
            {
                Some(Self::Bzip2)
            }
            // A frame, or one that decoders skip.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Zstd => "zstd",
        }
    }
}

/// What is wrong with a compressed file. Reading gives it inside of an [`io::Error`].
#[derive(Debug, Error)]
pub enum Damage {
    /// The file ends within a member.
    #[error("the {} member at byte {member} is cut off at byte {end}, the end of the file; fetch the file again", .by.name())]
    Cut {
        /// How the file is compressed.
        by: Compression,
        /// Where the member begins.
        member: u64,
        /// Where the file ends.
        end: u64,
    },
    /// A member is not what its format says.
    #[error("the {} member at byte {member} is damaged ({found}); fetch the file again", .by.name())]
    Broken {
        /// How the file is compressed.
        by: Compression,
        /// Where the member begins.
        member: u64,
        /// What its decoder says.
        found: io::Error,
    },
    /// Something that is no member stands behind the last one.
    #[error("bytes that are no {} stand behind its members, from byte {at} on; take them off", .by.name())]
    TrailingGarbage {
        /// How the file is compressed.
        by: Compression,
        /// Where they begin.
        at: u64,
    },
}

/// The damage that an error of reading is about.
pub fn damage(error: &io::Error) -> Option<&Damage> {
    error.get_ref()?.downcast_ref()
}

/// The bytes of a file, or of what else is read from its beginning to its end.
#[derive(Debug)]
pub enum Input<R: Read = File> {
    /// As they are.
    Plain(Source<R>),
    /// Inflated.
    Compressed(Members<R>),
}

/// Opens a file and looks how it begins.
pub fn open(path: &Path) -> io::Result<Input> {
    of(File::open(path)?)
}

/// Looks how a stream of bytes begins.
pub fn of<R: Read>(bytes: R) -> io::Result<Input<R>> {
    let mut source = Source::of(bytes);
    Ok(match Compression::of(source.peek(MAGIC_BYTES)?) {
        None => Input::Plain(source),
        Some(compression) => Input::Compressed(Members::of(source, compression)),
    })
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Compressed(members) => members.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests;

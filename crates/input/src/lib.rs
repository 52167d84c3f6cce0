//! Opens a file or another stream of bytes and returns the bytes of its lines. Input that starts with the
//! magic bytes of gzip, bzip2 or zstd is decompressed. UTF-16 is decoded, if its byte-order mark or a flag shows it.
//! Content in other encodings is returned as it is, because its lines end at the same bytes; [`Transcoded`] decodes it.
//! Archives and other files without lines are refused.
//!
//! A compressed file may consist of several members (gzip members, zstd frames, bzip2 streams), as in `cat
//! a.gz b.gz`. Damaged input is an error that names the member: a truncated end, corruption, or bytes after
//! the last member that are not a member. The content of lines is not interpreted.
//!
//! Detection reads at most the first line, so a process that writes one line and waits for the response
//! receives one.
//!
//! In some files the ends of members can be found without decompressing them ([`end_of_member`]). Several
//! threads can then each decompress some of the members ([`Members::from`]).

mod ends;
mod form;
mod members;
mod packed;
mod source;
mod transcoded;
mod whole;
mod zip;

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::Path;

use corpus::shell::word;
use encoding_rs::{Encoding, UTF_8};
use form::beginning;
use source::Source;
use thiserror::Error;

pub use ends::end_of_member;
pub use form::{FORM_BYTES, Form, beginning_while, is_utf16};
pub use members::Members;
pub use packed::{Packed, remedy};
pub use transcoded::Transcoded;
pub use whole::{WholeFile, shorter};

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// bzip2.
    Bzip2,
    /// RFC 8878.
    Zstd,
}

/// Number of first bytes that determine the compression.
pub const MAGIC_BYTES: usize = 10;

/// The first bytes of a bzip2 block, and the bytes after the last block of a stream.
const BZIP2_BLOCK: &[u8] = b"\x31\x41\x59\x26\x53\x59";
const BZIP2_END: &[u8] = b"\x17\x72\x45\x38\x50\x90";

impl Compression {
    /// The compression of a file with this beginning; `None` if it is not compressed, or in an unsupported
    /// format.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        match beginning {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [b'B', b'Z', b'h', b'1'..=b'9', after @ ..]
                if after.starts_with(BZIP2_BLOCK) || after.starts_with(BZIP2_END) =>
            {
                Some(Self::Bzip2)
            }
            // A frame or a skippable frame.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Whether more bytes are needed to determine the compression.
    fn is_open(beginning: &[u8]) -> bool {
        let is_within = |magic: &[u8]| magic.starts_with(beginning) && beginning.len() < magic.len();
        match beginning {
            [b'B', b'Z', b'h', b'1'..=b'9', after @ ..] => {
                after.len() < BZIP2_BLOCK.len()
                    && [BZIP2_BLOCK, BZIP2_END].iter().any(|magic| magic.starts_with(after))
            }
            [0x50..=0x5f, after @ ..] => after.len() < 3 && b"\x2a\x4d\x18".starts_with(after),
            _ => is_within(b"\x1f\x8b") || is_within(b"BZh1") || is_within(b"\x28\xb5\x2f\xfd"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Zstd => "zstd",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Gzip => "gz",
            Self::Bzip2 => "bz2",
            Self::Zstd => "zst",
        }
    }

    /// The command that decompresses to standard output.
    fn command(self) -> &'static str {
        match self {
            Self::Gzip => "gzip -dc",
            Self::Bzip2 => "bzip2 -dc",
            Self::Zstd => "zstd -dc",
        }
    }
}

/// An error in the content of an input. Readers return it inside an [`io::Error`].
#[derive(Debug, Error)]
pub enum ContentError {
    /// The content is a tar archive.
    #[error(
        "found a tar archive, expected lines; unpack it with tar -x and pass its files, or pipe them with tar -xO"
    )]
    Tar,
    /// The content has another file format, which does not consist of lines.
    #[error("found {packed}, expected lines; {}", .packed.remedy(file))]
    Packed {
        /// The kind.
        packed: &'static Packed,
        /// The name of the file.
        file: String,
    },
    /// A zip archive of several files.
    #[error(
        "found a zip archive of {} files ({}), expected lines; pass one of them: unzip -p {} {} > {}",
        .names.len(), shown(names), word(file), word(&.names[0]), word(.names[0].rsplit('/').next().unwrap_or_default())
    )]
    Zip {
        /// The names of its files.
        names: Vec<String>,
        /// The name of the archive.
        file: String,
    },
    /// The content is still compressed when it has been decompressed.
    #[error(
        "found {} within {}, expected lines; decompress it once, and pass the result: {} {} > once.{}",
        .within.name(), .by.name(), .by.command(), word(file), .within.extension()
    )]
    Twice {
        /// The outer compression.
        by: Compression,
        /// The inner compression.
        within: Compression,
        /// The name of the file.
        file: String,
    },
    /// The content is UTF-16 without a byte-order mark.
    #[error(
        "found UTF-16 without a mark, expected UTF-8; pass --encoding {encoding} to sentimill, ngrams or vectors, or convert the file with iconv -f {encoding} -t UTF-8"
    )]
    Unmarked {
        /// The encoding.
        encoding: &'static str,
    },
    /// Another error, with its remedy.
    #[error("{0}")]
    Other(String),
}

impl From<ContentError> for io::Error {
    fn from(error: ContentError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// The error in the content of an input that caused a read error, if it was one.
pub fn content_error(error: &io::Error) -> Option<&ContentError> {
    error.get_ref()?.downcast_ref()
}

/// The decoded content of a file or of another stream.
#[derive(Debug)]
pub struct Input<R: Read = WholeFile>(Content<R>);

#[derive(Debug)]
enum Content<R: Read> {
    Lines(Begun<Inflated<R>>),
    Utf16(Transcoded<Begun<Inflated<R>>>),
}

/// A reader whose first bytes have been read for detection.
type Begun<R> = Chain<Cursor<Vec<u8>>, R>;

#[derive(Debug)]
enum Inflated<R: Read> {
    Plain(Source<R>),
    Compressed(Members<R>),
}

/// Opens a file and detects its compression and form.
pub fn open(path: &Path) -> io::Result<Input> {
    open_as(path, UTF_8)
}

/// Whether content with this beginning is lines as it comes, neither compressed nor UTF-16. `None` if more bytes are needed.
pub fn is_plain(beginning: &[u8], encoding: &'static Encoding) -> Result<Option<bool>, ContentError> {
    if Compression::of(beginning).is_some() {
        return Ok(Some(false));
    }
    let is_open = beginning.len() < MAGIC_BYTES && Compression::is_open(beginning);
    let is_utf16 = beginning.len() >= 2 && is_utf16(encoding);
    if is_open || (Form::is_open(beginning) && !is_utf16) {
        return Ok(None);
    }
    is_plain_whole(beginning, encoding).map(Some)
}

/// Whether content with this beginning is lines as it comes. There are no more bytes, or enough of them.
pub fn is_plain_whole(beginning: &[u8], encoding: &'static Encoding) -> Result<bool, ContentError> {
    Ok(Compression::of(beginning).is_none() && Form::of(beginning, encoding)? == Form::Lines)
}

/// Opens a file in this encoding, and detects its compression.
pub fn open_as(path: &Path, encoding: &'static Encoding) -> io::Result<Input> {
    open_file(File::open(path)?, path, encoding)
}

/// Detects the compression of a file in this encoding, which was opened at this path, from its position on.
pub fn open_file(file: File, path: &Path, encoding: &'static Encoding) -> io::Result<Input> {
    let input = of_encoding(WholeFile::of(file)?, encoding).map_err(|error| named(error, path))?;
    if let Content::Lines(content) = &input.0 {
        check_name(path, content.get_ref().0.get_ref())?;
    }
    Ok(input)
}

/// Detects the compression and form of a stream, decompresses and decodes it. An archive is refused.
pub fn of<R: Read>(bytes: R) -> io::Result<Input<R>> {
    of_encoding(bytes, UTF_8)
}

/// Detects the compression of a stream in this encoding, decompresses it, and decodes UTF-16.
pub fn of_encoding<R: Read>(bytes: R, encoding: &'static Encoding) -> io::Result<Input<R>> {
    let mut source = Source::of(bytes);
    let compression = Compression::of(source.peek_while(MAGIC_BYTES, Compression::is_open)?);
    let mut content = match compression {
        None => Inflated::Plain(source),
        Some(compression) => Inflated::Compressed(Members::of(source, compression)),
    };
    let mut begun = beginning(&mut content)?;
    if let Some(by) = compression
        && let Some(within) = Compression::of(&begun)
    {
        return Err(ContentError::Twice { by, within, file: "FILE".to_owned() }.into());
    }
    Ok(Input(match Form::of(&begun, encoding)? {
        Form::Lines => Content::Lines(Cursor::new(begun).chain(content)),
        Form::Utf16(order) => {
            let mark_bytes = Encoding::for_bom(&begun).map_or(0, |(_, bytes)| bytes);
            begun.drain(..mark_bytes);
            Content::Utf16(Transcoded::behind(mark_bytes, Cursor::new(begun).chain(content), order))
        }
    }))
}

/// Returns a stream without decompressing or decoding it. For example, the stream is a part of a file. UTF-16 and
/// files without lines, such as a tar archive, are refused.
pub fn as_it_comes<R: Read>(mut bytes: R, encoding: &'static Encoding) -> io::Result<impl Read> {
    let begun = beginning(&mut bytes)?;
    match Form::of(&begun, encoding)? {
        Form::Lines => Ok(Cursor::new(begun).chain(bytes)),
        Form::Utf16(_) => {
            let remedy = "convert the file with iconv -f UTF-16 -t UTF-8";
            Err(ContentError::Other(format!("found UTF-16, expected UTF-8; {remedy}")).into())
        }
    }
}

/// The error of a file that was refused by its content, with its name and with what only the file shows: the list of an
/// archive, and the extension of the name.
pub fn named(error: io::Error, path: &Path) -> io::Error {
    // Standard input has no name for a command.
    let file = if path == Path::new("-") { "FILE".to_owned() } else { path.display().to_string() };
    match content_error(&error) {
        Some(ContentError::Packed { packed, .. }) if packed.name == packed::ZIP => match names_in(path) {
            names if names.iter().any(|name| name.starts_with("xl/")) => {
                let packed = Packed::of(b"PK\x03\x04xl/", UTF_8).unwrap_or(packed);
                ContentError::Packed { packed, file }.into()
            }
            names if names.len() > 1 => ContentError::Zip { names, file }.into(),
            _ => ContentError::Packed { packed, file }.into(),
        },
        Some(&ContentError::Packed { packed, .. }) => ContentError::Packed { packed, file }.into(),
        Some(&ContentError::Twice { by, within, .. }) => ContentError::Twice { by, within, file }.into(),
        _ => error,
    }
}

/// Refuses a file by the extension of its name, if its beginning is binary.
pub fn check_name(path: &Path, beginning: &[u8]) -> io::Result<()> {
    let file = path.display().to_string();
    match Packed::named(&file) {
        Some(packed) if packed::is_binary(beginning) => Err(ContentError::Packed { packed, file }.into()),
        _ => Ok(()),
    }
}

fn names_in(archive: &Path) -> Vec<String> {
    File::open(archive).and_then(|archive| zip::names(&archive)).unwrap_or_default()
}

fn shown(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names[..names.len().min(SHOWN)].join(", ") + more
}

impl<R: Read> Input<R> {
    /// Whether the content is decoded from UTF-16.
    pub fn is_utf16(&self) -> bool {
        matches!(self.0, Content::Utf16(_))
    }

    /// The encoding of the content as it is returned: the named one, or UTF-8 if it is decoded from UTF-16.
    pub fn still_in(&self, named: &'static Encoding) -> &'static Encoding {
        if self.is_utf16() { UTF_8 } else { named }
    }

    /// Decodes the content, which is in this encoding unless it is decoded from UTF-16.
    pub fn in_utf8(self, encoding: &'static Encoding) -> Transcoded<Self> {
        let encoding = self.still_in(encoding);
        Transcoded::of(self, encoding)
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Content::Lines(content) => content.read(buffer),
            Content::Utf16(content) => content.read(buffer),
        }
    }
}

impl<R: Read> Read for Inflated<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(source) => source.read(buffer),
            Self::Compressed(members) => members.read(buffer),
        }
    }
}

#[cfg(test)]
mod tests;

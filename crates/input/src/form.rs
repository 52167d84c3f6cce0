//! Detects the form of content from its first bytes: UTF-16, or lines that end at the bytes LF and CR. Other content is
//! refused.

use std::io::{self, Read};

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use crate::{ContentError, Packed};

/// Number of first bytes that determine the form.
pub const FORM_BYTES: usize = TAR_MAGIC_AT + TAR_MAGIC.len();

/// POSIX.1, ustar interchange format: the magic of a header block, after names and numbers that end in NUL.
const TAR_MAGIC: &[u8] = b"ustar";
const TAR_MAGIC_AT: usize = 257;

/// The form of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text in UTF-8, or in another encoding in which lines end at the same bytes.
    Lines,
    /// UTF-16 text, with or without its byte-order mark.
    Utf16(&'static Encoding),
}

impl Form {
    /// The form of decompressed content with this beginning, whose encoding a user has named. A byte-order mark of
    /// UTF-16 suffices for the default, UTF-8.
    ///
    /// # Errors
    /// If the content is of a kind without lines, or if its beginning contradicts the encoding.
    pub fn of(beginning: &[u8], encoding: &'static Encoding) -> Result<Self, ContentError> {
        if let Some(packed) = Packed::of(beginning, encoding) {
            return Err(ContentError::Packed { packed, file: "FILE".to_owned() });
        }
        if is_tar(beginning) {
            return Err(ContentError::Tar);
        }
        match marked(beginning) {
            Some(mark) if encoding != UTF_8 && !(is_utf16(encoding) && is_utf16(mark)) => {
                let (mark, encoding) = (mark.name(), encoding.name());
                let found = format!("found the byte-order mark of {mark}, expected {encoding}");
                let remedy = "omit --encoding, and pass files of other encodings to a command of their own";
                Err(ContentError::Other(format!("{found}; {remedy}")))
            }
            Some(mark) => Ok(if is_utf16(mark) { Self::Utf16(mark) } else { Self::Lines }),
            None if is_utf16(encoding) => Ok(Self::Utf16(encoding)),
            None => match beginning {
                [1..=0x7f, 0, 1..=0x7f, 0, ..] => Err(ContentError::Unmarked { encoding: UTF_16LE.name() }),
                [0, 1..=0x7f, 0, 1..=0x7f, ..] => Err(ContentError::Unmarked { encoding: UTF_16BE.name() }),
                _ => Ok(Self::Lines),
            },
        }
    }

    /// Whether more bytes are needed. A complete line rules out a tar header, which has a NUL before any line
    /// end.
    pub(crate) fn is_open(beginning: &[u8]) -> bool {
        let ends_line =
            beginning.iter().find(|&&byte| matches!(byte, 0 | b'\n' | b'\r')).is_some_and(|&byte| byte != 0);
        beginning.len() < FORM_BYTES && !ends_line && !is_marked_utf16(beginning)
    }
}

/// Whether an encoding has units of two bytes.
pub fn is_utf16(encoding: &'static Encoding) -> bool {
    encoding == UTF_16LE || encoding == UTF_16BE
}

/// The encoding whose byte-order mark is at the beginning.
fn marked(beginning: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_bom(beginning).map(|(encoding, _)| encoding)
}

/// Whether content begins with a mark of UTF-16, and not of UTF-32.
fn is_marked_utf16(beginning: &[u8]) -> bool {
    match beginning {
        [0xff, 0xfe, rest @ ..] => rest.len() >= 2 && rest[..2] != [0, 0],
        _ => marked(beginning) == Some(UTF_16BE),
    }
}

fn is_tar(beginning: &[u8]) -> bool {
    beginning
        .split_at_checked(TAR_MAGIC_AT)
        .is_some_and(|(names, magic)| magic.starts_with(TAR_MAGIC) && names.contains(&0))
}

/// Reads just enough first bytes to determine the form.
pub(crate) fn beginning(content: &mut impl Read) -> io::Result<Vec<u8>> {
    beginning_while(content, FORM_BYTES, Form::is_open)
}

/// Reads first bytes, as they come, as long as `is_open` of those so far: at most `bytes_max`.
pub fn beginning_while(
    content: &mut impl Read,
    bytes_max: usize,
    is_open: impl Fn(&[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; bytes_max];
    let mut n = 0;
    while n < bytes_max && is_open(&bytes[..n]) {
        match content.read(&mut bytes[n..]) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(n);
    Ok(bytes)
}

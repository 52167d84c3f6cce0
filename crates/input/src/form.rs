//! Detects the form of content from its first bytes: UTF-16, a tar archive, or else UTF-8.

use std::io::{self, Read};

use crate::utf16::ByteOrder;

/// Number of first bytes that determine the form.
pub const FORM_BYTES: usize = TAR_MAGIC_AT + TAR_MAGIC.len();

/// POSIX.1, ustar interchange format: the magic of a header block, after names and numbers that end in NUL.
const TAR_MAGIC: &[u8] = b"ustar";
const TAR_MAGIC_AT: usize = 257;

/// The form of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// UTF-8 text, or any other content without a mark.
    Utf8,
    /// UTF-16 text with its byte-order mark.
    Utf16(ByteOrder),
    /// A tar archive.
    Tar,
}

impl Form {
    /// The form of decompressed content with this beginning.
    pub fn of(beginning: &[u8]) -> Self {
        match beginning {
            [0xff, 0xfe, ..] => Self::Utf16(ByteOrder::LittleEndian),
            [0xfe, 0xff, ..] => Self::Utf16(ByteOrder::BigEndian),
            _ if is_tar(beginning) => Self::Tar,
            _ => Self::Utf8,
        }
    }

    /// Whether more bytes are needed. A complete line rules out a tar header, which has a NUL before any line
    /// end.
    fn is_open(beginning: &[u8]) -> bool {
        let ends_line =
            beginning.iter().find(|&&byte| matches!(byte, 0 | b'\n' | b'\r')).is_some_and(|&byte| byte != 0);
        beginning.len() < FORM_BYTES && !ends_line && !matches!(Self::of(beginning), Self::Utf16(_))
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

//! The first bytes of content → its form: UTF-8, as all that has no mark of its own, UTF-16 or a tar archive.

use std::io::{self, Read};

use crate::utf16::ByteOrder;

/// So many bytes tell the form of content.
pub const FORM_BYTES: usize = TAR_MAGIC_AT + TAR_MAGIC.len();

/// POSIX.1, ustar interchange format: a header block's magic, behind names and numbers that end in NUL.
const TAR_MAGIC: &[u8] = b"ustar";
const TAR_MAGIC_AT: usize = 257;

/// How content is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text in UTF-8, or whatever else has no mark.
    Utf8,
    /// Text in UTF-16, with its byte-order mark.
    Utf16(ByteOrder),
    /// An archive of files.
    Tar,
}

impl Form {
    /// The form of inflated content that begins like this.
    pub fn of(beginning: &[u8]) -> Self {
        match beginning {
            [0xff, 0xfe, ..] => Self::Utf16(ByteOrder::LittleEndian),
            [0xfe, 0xff, ..] => Self::Utf16(ByteOrder::BigEndian),
            _ if is_tar(beginning) => Self::Tar,
            _ => Self::Utf8,
        }
    }

    /// Whether more bytes are needed. A line that ends is no header of a tar archive: that has NUL before any line end.
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

/// As many of the first bytes as it takes to tell the form of content.
pub(crate) fn beginning(content: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; FORM_BYTES];
    let mut n = 0;
    while Form::is_open(&bytes[..n]) {
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

//! The content of a file: decompressed, decoded to UTF-8 and without a byte-order mark.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read, Seek};
use std::path::Path;

use classifiers::files::bin;
use corpus::encoding::UTF_8;
use corpus::lines::without_mark;
use durable::{At, Error, check_regular, npy};
use input::{Compression, ContentError, MAGIC_BYTES, beginning_while};

use super::REMEDY;
use crate::error::Result;

/// Bytes that determine the format: the first line and a part of the first vector.
const BEGINNING_BYTES: usize = 64 << 10;
const BUFFER_BYTES: usize = 1 << 20;

/// A file that was opened.
pub(crate) struct Content<'a> {
    pub path: &'a Path,
    /// The first bytes.
    pub beginning: Vec<u8>,
    rest: Box<dyn Read>,
    /// The file, at the position of `rest`.
    file: File,
    /// Bytes of a file that is not compressed.
    pub n_bytes: Option<u64>,
}

/// Reads a content once.
pub(super) type Reader = BufReader<Chain<Cursor<Vec<u8>>, Box<dyn Read>>>;

impl<'a> Content<'a> {
    pub(crate) fn open(path: &'a Path) -> Result<Self> {
        check_regular(path)?;
        let mut file = File::open(path).at(path, "open it")?;
        let magic = beginning_while(&mut file, MAGIC_BYTES, |_| true).at(path, "read it")?;
        let n_bytes = match Compression::of(&magic) {
            None => Some(file.metadata().at(path, "read its metadata")?.len()),
            Some(_) => None,
        };
        // `input` refuses files that are not text, among them arrays of NumPy.
        let is_binary =
            [npy::MAGIC, &bin::MAGIC.to_le_bytes()[..]].iter().any(|kind| magic.starts_with(kind));
        file.rewind().at(path, "read it")?;
        let content = file.try_clone().at(path, "open it")?;
        let mut rest: Box<dyn Read> = match is_binary {
            true => Box::new(content),
            false => Box::new(input::open_file(content, path, UTF_8).map_err(|error| unread(path, error))?),
        };
        let mut beginning =
            beginning_while(&mut rest, BEGINNING_BYTES, |_| true).map_err(|error| unread(path, error))?;
        let mark_bytes = beginning.len() - without_mark(&beginning).len();
        beginning.drain(..mark_bytes);
        Ok(Self { path, beginning, rest, file, n_bytes })
    }

    /// Reads the content from its first byte on.
    pub(super) fn into_reader(self) -> Reader {
        BufReader::with_capacity(BUFFER_BYTES, Cursor::new(self.beginning).chain(self.rest))
    }

    /// The file and its number of bytes, which bounds the fields of a binary format. The content of a compressed one is
    /// written to an unnamed temporary file.
    pub(super) fn into_file(self) -> Result<(BufReader<File>, u64)> {
        let path = self.path;
        let (file, n_bytes) = match self.n_bytes {
            Some(n_bytes) => {
                let mut file = self.file;
                file.rewind().at(path, "read it")?;
                (file, n_bytes)
            }
            None => {
                let temporary = Path::new("a temporary file in TMPDIR");
                let mut file = tempfile::tempfile().at(temporary, "create it")?;
                let n_bytes = io::copy(&mut self.into_reader(), &mut file).map_err(|error| {
                    if input::content_error(&error).is_some() {
                        unread(path, error)
                    } else {
                        unwritten(temporary, error)
                    }
                })?;
                file.rewind().at(temporary, "read it")?;
                (file, n_bytes)
            }
        };
        Ok((BufReader::with_capacity(BUFFER_BYTES, file), n_bytes))
    }

    /// All bytes, if they are at most `bytes_max`.
    pub(crate) fn into_bytes(self, bytes_max: u64) -> Result<Vec<u8>> {
        let path = self.path;
        let mut bytes = Vec::new();
        let read = self.into_reader().take(bytes_max.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| unread(path, error))?;
        if bytes.len() as u64 > bytes_max {
            let expected = format!("at most {bytes_max}");
            return Err(Error::unexpected(path, "the number of bytes", "greater", expected, REMEDY).into());
        }
        Ok(bytes)
    }
}

/// The error of a read. Content that is refused is named, with a remedy for word vectors.
pub(super) fn unread(path: &Path, error: io::Error) -> crate::Error {
    let found = match input::content_error(&error) {
        None => return Error::Io { path: path.to_owned(), action: "read it", source: error }.into(),
        Some(ContentError::Packed { packed, .. }) => of_packed(packed),
        Some(ContentError::Tar) => of_packed("a tar archive"),
        Some(ContentError::Zip { names, .. }) => {
            of_packed(format_args!("a zip archive of {} files", names.len()))
        }
        Some(ContentError::Twice { .. }) => of_packed("a file that is compressed twice"),
        Some(ContentError::Unmarked { encoding }) => {
            format!(
                "found UTF-16 without a mark, expected UTF-8; convert the file with iconv -f {encoding} -t UTF-8"
            )
        }
        Some(error) => error.to_string(),
    };
    crate::Error::Content { path: path.to_owned(), found }
}

fn of_packed(kind: impl Display) -> String {
    format!("the file is {kind}, expected text or word vectors; unpack it, and pass the file that was packed")
}

fn unwritten(path: &Path, source: io::Error) -> crate::Error {
    Error::Io { path: path.to_owned(), action: "write it", source }.into()
}

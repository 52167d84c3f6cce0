//! Rows that one program encodes for the file of another one: a file of frames, each with its digest.
//!
//! | frame | bytes |
//! |---|---|
//! | a whole chunk | `0`, column (u8), length (u32), digest (u128), the chunk as stored |
//! | elements of a chunk that is divided between parts | `1`, column, length, digest, the elements |
//! | end of a part | `2`, `0`, length 8, sum of the id digests of its rows (u128), number of its rows (u64) |
//!
//! Numbers are little-endian. Columns are numbered in the order of FORMAT.md, from 0 for `offsets`. The frames follow the
//! line `sentimill rows 1` and an identity (u128), by which a reader knows what the rows are of.

use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::Digest;

use crate::chunk_writer::{Content, Piece};
use crate::error::{At, Error, Result};
use crate::parts::{Before, OfPart, encode_parts};
use crate::row_columns::{Row, RowsSize, TokenType};
use crate::rows_writer::{Numbered, RowsWriter};

const HEAD: &[u8; 17] = b"sentimill rows 1\n";
const CHUNK: u8 = 0;
const REST: u8 = 1;
const END: u8 = 2;
/// Number of columns of rows.
const N_COLUMNS: u8 = 6;
/// Maximum length of a frame. No chunk of this project has more than 512 KiB.
const FRAME_BYTES_MAX: u32 = 4 << 20;

/// Encodes parts of the rows of a dataset of `size` rows and tokens, and writes them to `out`. The parts of `sizes`
/// come after `before`. Several threads call `each_row`, which visits the rows of a part in order; their tokens are ids of
/// a vocabulary of `token_type`. The file has this identity. Errors name `path`.
pub fn encode_rows<E: From<Error> + Send>(
    (size, token_type): (RowsSize, TokenType),
    (before, sizes): (Before, &[RowsSize]),
    threads: NonZeroUsize,
    each_row: impl Fn(usize, &mut dyn FnMut(&Row) -> Result<()>) -> Result<(), E> + Sync,
    (path, mut out, identity): (&Path, impl Write, Digest),
) -> Result<(), E> {
    let rows = RowsWriter::create(&mut Numbered::default(), size, token_type)?;
    let write = "write encoded rows";
    out.write_all(HEAD).and_then(|()| out.write_all(&identity.0.to_le_bytes())).at(path, write)?;
    let mut frame = |kind: u8, column: usize, digest: Digest, bytes: &[u8]| {
        let length = (bytes.len() as u32).to_le_bytes();
        let head = [&[kind, column as u8][..], &length, &digest.0.to_le_bytes()].concat();
        out.write_all(&head).and_then(|()| out.write_all(bytes)).at(path, write)
    };
    encode_parts(&rows, path, before, sizes, threads, each_row, |of_part| {
        match of_part {
            OfPart::Piece(Piece { column, content: Content::Chunk { stored, digest } }) => {
                frame(CHUNK, column, digest, &stored)?;
            }
            OfPart::Piece(Piece { column, content: Content::Rest(bytes) }) => {
                frame(REST, column, Digest::of(&bytes), &bytes)?;
            }
            OfPart::End { part, digest } => frame(END, 0, digest, &sizes[part].rows.to_le_bytes())?,
        }
        Ok(())
    })?;
    Ok(out.flush().at(path, write)?)
}

/// Reads encoded rows frame by frame.
pub struct EncodedRows<R> {
    from: R,
    path: PathBuf,
    identity: Digest,
    /// Number of rows in all frames.
    n_rows: u64,
    is_begun: bool,
}

/// A frame.
pub(crate) enum Encoded {
    Piece(Piece),
    End { rows: u64, digest: Digest },
}

impl<R: Read> EncodedRows<R> {
    /// Reads this number of rows from a file of this identity. Errors name `path`.
    pub fn new(from: R, path: &Path, identity: Digest, n_rows: u64) -> Self {
        Self { from, path: path.to_owned(), identity, n_rows, is_begun: false }
    }

    /// Compares the number of rows that were read. A file that was cut between two frames has fewer.
    pub(crate) fn check_end(&self, found: u64) -> Result<()> {
        if found == self.n_rows { Ok(()) } else { Err(self.damaged("the number of rows")) }
    }

    /// The next frame; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Encoded>> {
        if !self.is_begun {
            let head: [u8; HEAD.len()] = self.array("the first line")?;
            if head != *HEAD {
                return Err(self.damaged("the first line"));
            }
            let identity = Digest(u128::from_le_bytes(self.array("the identity")?));
            if identity != self.identity {
                return Err(Error::Unexpected {
                    path: self.path.clone(),
                    thing: "the identity of the encoded rows".to_owned(),
                    found: identity.to_string(),
                    expected: self.identity.to_string(),
                    remedy: "they are of another task or plan; delete the object, and run the task again",
                });
            }
            self.is_begun = true;
        }
        let mut kind = [0];
        if self.from.read(&mut kind).at(&self.path, READ)? == 0 {
            return Ok(None);
        }
        let [column] = self.array("a column")?;
        let length = u32::from_le_bytes(self.array("a length")?);
        let digest = Digest(u128::from_le_bytes(self.array("a digest")?));
        if column >= N_COLUMNS || length > FRAME_BYTES_MAX {
            return Err(self.damaged("a frame"));
        }
        let mut bytes = vec![0; length as usize];
        self.fill(&mut bytes, "a frame")?;
        let column = usize::from(column);
        let content = match (kind[0], <[u8; 8]>::try_from(&bytes[..])) {
            (END, Ok(rows)) if column == 0 => {
                return Ok(Some(Encoded::End { rows: u64::from_le_bytes(rows), digest }));
            }
            (CHUNK | REST, _) if Digest::of(&bytes) != digest => return Err(self.damaged("a chunk")),
            (CHUNK, _) => Content::Chunk { stored: bytes, digest },
            (REST, _) => Content::Rest(bytes),
            _ => return Err(self.damaged("a frame")),
        };
        Ok(Some(Encoded::Piece(Piece { column, content })))
    }

    fn array<const N: usize>(&mut self, part: &str) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, part)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8], part: &str) -> Result<()> {
        match self.from.read_exact(bytes) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(self.damaged(part)),
            read => read.at(&self.path, READ),
        }
    }

    fn damaged(&self, part: &str) -> Error {
        Error::Damaged { path: self.path.clone(), part: format!("{part} of the encoded rows") }
    }
}

const READ: &str = "read encoded rows";

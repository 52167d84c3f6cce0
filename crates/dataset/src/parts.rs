//! Encodes rows in consecutive parts on several threads. The chunks do not depend on the parts.

use std::num::NonZeroUsize;
use std::path::Path;

use corpus::digest::{Digest, RowDigester};

use crate::chunk_writer::{Piece, Pieces};
use crate::error::{Error, Result};
use crate::in_order::in_order;
use crate::row_columns::{Row, RowsSize};
use crate::rows_writer::RowsWriter;

/// The rows before the first part.
#[derive(Clone, Copy, Debug)]
pub enum Before {
    /// None: the first part begins the file.
    Nothing,
    /// This number of rows and tokens.
    Rows(RowsSize),
}

/// Encodes parts of these sizes for the columns of `rows`. Several threads call `each_row`, which visits the rows of a
/// part in order. Calls `take` on the calling thread, in the order of the parts. Errors name `path`.
pub(crate) fn encode_parts<E: From<Error> + Send>(
    rows: &RowsWriter,
    path: &Path,
    before: Before,
    sizes: &[RowsSize],
    threads: NonZeroUsize,
    each_row: impl Fn(usize, &mut dyn FnMut(&Row) -> Result<()>) -> Result<(), E> + Sync,
    take: impl FnMut(OfPart) -> Result<(), E>,
) -> Result<(), E> {
    let first = match before {
        Before::Nothing => RowsSize::default(),
        Before::Rows(size) => size,
    };
    let starts: Vec<RowsSize> = sizes
        .iter()
        .scan(first, |end, size| {
            let start = *end;
            *end += *size;
            Some(start)
        })
        .collect();
    let encode = |part: usize, put: &mut dyn FnMut(OfPart)| {
        let mut encoder = PartEncoder::new(rows.starting_at(starts[part]), |piece| put(OfPart::Piece(piece)));
        if part == 0 && matches!(before, Before::Nothing) {
            encoder.begin()?;
        }
        each_row(part, &mut |row| encoder.row(row))?;
        let (found, digest) = encoder.finish()?;
        if found != sizes[part] {
            let promise = format!(
                "part {part} of the rows has {found:?}, as many as counted before: {:?}",
                sizes[part]
            );
            return Err(Error::Internal { path: path.to_owned(), promise }.into());
        }
        put(OfPart::End { part, digest });
        Ok(())
    };
    let queued = (QUEUED_PIECES / threads).max(1);
    in_order(sizes.len(), threads, queued, encode, take)
}

/// Maximum number of encoded pieces that wait to be written, of all threads. Most are chunks of 64 Ki tokens, which
/// take 40 to 100 KiB.
const QUEUED_PIECES: usize = 256;

/// What the encoder of a part passes on.
pub(crate) enum OfPart {
    Piece(Piece),
    End { part: usize, digest: Digest },
}

/// Encodes consecutive rows, one part of several.
struct PartEncoder<P> {
    rows: RowsWriter,
    pieces: Pieces<P>,
    size: RowsSize,
    id_digester: RowDigester,
    id_digest: Digest,
}

impl<P: FnMut(Piece)> PartEncoder<P> {
    fn new(rows: RowsWriter, put: P) -> Self {
        let (id_digester, id_digest) = (RowDigester::default(), Digest::default());
        Self { rows, pieces: Pieces::new(put), size: RowsSize::default(), id_digester, id_digest }
    }

    /// Writes what comes before the first row of a file.
    fn begin(&mut self) -> Result<()> {
        self.rows.begin(&mut self.pieces)
    }

    fn row(&mut self, row: &Row) -> Result<()> {
        self.size.add_row(row.tokens.len());
        self.id_digest += self.id_digester.of_ids(row.hash, row.label, row.votes, row.tokens.iter().copied());
        self.rows.push(&mut self.pieces, row)
    }

    /// Returns the size of the part and the digest of its ids.
    fn finish(mut self) -> Result<(RowsSize, Digest)> {
        self.rows.finish_part(&mut self.pieces)?;
        Ok((self.size, self.id_digest))
    }
}

//! Product quantizers: a row is cut into parts, and each part is stored as the number of the nearest of 256 centroids.

use std::io::{self, BufRead, Write};

use durable::{Result, Source};

/// Centroids per part.
pub(super) const N_CENTROIDS: usize = 256;
/// Floats that are converted to bytes at a time.
pub(super) const PIECE: usize = 16 << 10;

/// Codes of rows, and the quantizer that they refer to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Codes {
    /// One code per row and part.
    pub(super) codes: Vec<u8>,
    pub(super) quantizer: Quantizer,
}

/// The centroids of all parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantizer {
    pub(super) columns: usize,
    pub(super) parts: usize,
    /// Columns per part. The last part can be shorter.
    pub(super) part_columns: usize,
    /// By part, centroid and column.
    pub(super) centroids: Vec<f32>,
}

impl Codes {
    /// The values of a row.
    pub(super) fn values(&self, row: usize) -> impl Iterator<Item = f32> {
        let quantizer = &self.quantizer;
        let codes = &self.codes[row * quantizer.parts..][..quantizer.parts];
        codes.iter().enumerate().flat_map(|(part, &code)| quantizer.centroid(part, code)).copied()
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&self.codes)?;
        self.quantizer.write(out)
    }
}

impl Quantizer {
    pub(super) fn parse(
        source: &mut Source<'_, impl BufRead>,
        name: &'static str,
        columns: usize,
        limit: f32,
    ) -> Result<Self> {
        let mut field = |what: &str, expected: Option<usize>| {
            let field = format!("the {what} of the quantizer of {name}");
            let found = source.size_i32(format_args!("{field}"), i32::MAX as u32)?;
            match expected.filter(|&expected| expected != found) {
                Some(expected) => Err(source.unexpected(field, found, expected)),
                None => Ok(found),
            }
        };
        field("number of columns", Some(columns))?;
        let parts = field("number of parts", None)?;
        let part_columns = field("number of columns per part", None)?;
        let last = field("number of columns of the last part", None)?;
        let is_split = part_columns > 0
            && parts == columns.div_ceil(part_columns)
            && parts.checked_sub(1).map(|before| columns - before * part_columns) == Some(last);
        if !is_split {
            let found = format!("{parts} parts of {part_columns} columns, the last of {last}");
            let expected = format!("parts that make up {columns} columns");
            return Err(source.unexpected(format_args!("the quantizer of {name}"), found, expected));
        }
        let centroids = format!("the centroids of {name}");
        let n = (columns * N_CENTROIDS) as u64;
        let centroids = source.floats(format_args!("{centroids}"), n, limit)?;
        Ok(Self { columns, parts, part_columns, centroids })
    }

    /// Number and range of the columns of a part.
    pub(super) fn part(&self, part: usize) -> std::ops::Range<usize> {
        let start = part * self.part_columns;
        start..(start + self.part_columns).min(self.columns)
    }

    /// All centroids of a part.
    pub(super) fn centroids_of(&self, part: usize) -> &[f32] {
        let columns = self.part(part);
        &self.centroids[columns.start * N_CENTROIDS..columns.end * N_CENTROIDS]
    }

    fn centroid(&self, part: usize, code: u8) -> &[f32] {
        let n = self.part(part).len();
        &self.centroids_of(part)[usize::from(code) * n..][..n]
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let last = self.part(self.parts - 1).len();
        for size in [self.columns, self.parts, self.part_columns, last] {
            let size = i32::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            out.write_all(&size.to_le_bytes())?;
        }
        write_floats(out, &self.centroids)
    }
}

pub(super) fn write_floats(out: &mut impl Write, floats: &[f32]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 * PIECE.min(floats.len()));
    for piece in floats.chunks(PIECE) {
        bytes.clear();
        bytes.extend(piece.iter().flat_map(|value| value.to_le_bytes()));
        out.write_all(&bytes)?;
    }
    Ok(())
}

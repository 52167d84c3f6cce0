//! Named arrays in one file of the format safetensors, which Python's `safetensors` reads.
//!
//! ```text
//! u64   length of the header
//! JSON  {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, padded with spaces to 8 bytes
//! data  little-endian elements, row by row; offsets count from the end of the header
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use durable::{At, Error, Output, REMEDY, Result};

/// A header has some hundred bytes.
const HEADER_BYTES_MAX: u64 = 1 << 20;
/// Elements that are read at a time.
const PIECE_BYTES: usize = 256 << 10;

/// The type of the elements of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ElementType {
    /// Only of `.npz`.
    #[serde(skip)]
    U8,
    F32,
    U64,
}

impl ElementType {
    fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::F32 => 4,
            Self::U64 => 8,
        }
    }

    /// The description in NumPy.
    pub(super) fn in_numpy(self) -> &'static str {
        match self {
            Self::U8 => "|u1",
            Self::F32 => "<f4",
            Self::U64 => "<u8",
        }
    }
}

/// An array to be written.
pub(super) struct Tensor<'a> {
    pub(super) name: &'static str,
    pub(super) kind: ElementType,
    pub(super) shape: Vec<u64>,
    pub(super) write: Write<'a>,
}

/// Writes the elements of an array.
pub(super) type Write<'a> = Box<dyn FnOnce(&mut dyn io::Write) -> io::Result<()> + 'a>;

impl Tensor<'_> {
    pub(super) fn n_bytes(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.kind.bytes()
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    dtype: ElementType,
    shape: Vec<u64>,
    data_offsets: [u64; 2],
}

/// Writes arrays.
pub(super) fn write(tensors: Vec<Tensor<'_>>, out: &mut Output<'_>) -> io::Result<()> {
    let mut header = BTreeMap::new();
    let mut end = 0;
    for tensor in &tensors {
        let start = end;
        end += tensor.n_bytes();
        let entry = Entry { dtype: tensor.kind, shape: tensor.shape.clone(), data_offsets: [start, end] };
        header.insert(tensor.name, entry);
    }
    let mut json = serde_json::to_vec(&header)?;
    json.resize(json.len().next_multiple_of(8), b' ');
    out.write_all(&(json.len() as u64).to_le_bytes())?;
    out.write_all(&json)?;
    tensors.into_iter().try_for_each(|tensor| (tensor.write)(out))
}

/// The arrays of a file.
#[derive(Debug)]
pub struct Tensors {
    path: PathBuf,
    entries: BTreeMap<String, Entry>,
    data: u64,
}

impl Tensors {
    /// Reads the header. The arrays fill the rest of the file without gaps.
    ///
    /// # Errors
    /// If the file cannot be read, or its header is invalid.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).at(path, "open it")?;
        let n_bytes = file.metadata().at(path, "read its metadata")?.len();
        let unexpected = |field: &str, found: String, expected: String| {
            Err(Error::unexpected(path, field, found, expected, REMEDY))
        };
        let mut length = [0; 8];
        if n_bytes < 8 {
            return unexpected("the number of bytes", n_bytes.to_string(), "8 or more".to_owned());
        }
        file.read_exact(&mut length).at(path, "read it")?;
        let length = u64::from_le_bytes(length);
        let largest = HEADER_BYTES_MAX.min(n_bytes - 8);
        if length > largest {
            return unexpected("the length of the header", length.to_string(), format!("0 to {largest}"));
        }
        let mut json = vec![0; length as usize];
        file.read_exact(&mut json).at(path, "read it")?;
        let entries: BTreeMap<String, Entry> = match serde_json::from_slice(&json) {
            // The format allows no space before the object.
            Ok(_) if !json.starts_with(b"{") => {
                let found = format!("{:?}", char::from(json[0]));
                return unexpected("the first byte of the header", found, "'{'".to_owned());
            }
            Ok(entries) => entries,
            Err(error) => {
                return unexpected(
                    "the header",
                    error.to_string(),
                    "names, types, shapes and offsets".to_owned(),
                );
            }
        };
        let data = 8 + length;
        let mut ranges: Vec<[u64; 2]> = entries.values().map(|entry| entry.data_offsets).collect();
        ranges.sort_unstable();
        let mut end = 0;
        for range in ranges {
            if range[0] != end || range[1] < range[0] {
                return unexpected(
                    "an offset",
                    format!("{} to {}", range[0], range[1]),
                    format!("from {end}"),
                );
            }
            end = range[1];
        }
        if end != n_bytes - data {
            return unexpected(
                "the number of bytes of the arrays",
                (n_bytes - data).to_string(),
                end.to_string(),
            );
        }
        for (name, Entry { dtype, shape, data_offsets: [start, end] }) in &entries {
            let n = shape.iter().try_fold(dtype.bytes(), |n, &size| n.checked_mul(size));
            if n != Some(end - start) {
                let found = format!("{shape:?} in {} bytes", end - start);
                return unexpected(
                    &format!("the shape of {name}"),
                    found,
                    "the elements of these bytes".to_owned(),
                );
            }
        }
        Ok(Self { path: path.to_owned(), entries, data })
    }

    /// The names of the arrays, ascending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The number of bytes of the file.
    pub fn n_bytes(&self) -> u64 {
        self.data + self.entries.values().map(|entry| entry.data_offsets[1]).max().unwrap_or(0)
    }

    /// Reads an array of this type and shape, and calls `each` with pieces of its elements. An element of 4 bytes is
    /// not divided among pieces; a row can be.
    fn read(&self, name: &str, kind: ElementType, shape: &[u64], mut each: impl FnMut(&[u8])) -> Result<()> {
        let entry = match self.entries.get(name) {
            Some(entry) if entry.dtype == kind && entry.shape == shape => entry,
            found => {
                let found = found.map(|entry| entry.shape.as_slice());
                return Err(self.unexpected(name, found, &format!("{shape:?} of {kind:?}")));
            }
        };
        let mut file = File::open(&self.path).at(&self.path, "open it")?;
        let [start, end] = entry.data_offsets;
        file.seek(SeekFrom::Start(self.data + start)).at(&self.path, "read it")?;
        let mut file = BufReader::with_capacity(0, file);
        let mut left = end - start;
        let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(left).unwrap_or(PIECE_BYTES))];
        while left > 0 {
            let n = left.min(PIECE_BYTES as u64) as usize;
            file.read_exact(&mut piece[..n]).at(&self.path, "read it")?;
            each(&piece[..n]);
            left -= n as u64;
        }
        Ok(())
    }

    /// Calls `each` with the number and the values of each row of an array of floats, which are finite.
    pub(super) fn rows(
        &self,
        name: &str,
        shape: [u64; 2],
        mut each: impl FnMut(usize, &[f32]),
    ) -> Result<()> {
        let columns = shape[1] as usize;
        let mut row = Vec::with_capacity(columns);
        let (mut at, mut bad) = (0, None);
        self.read(name, ElementType::F32, &shape, |piece| {
            for &bytes in piece.as_chunks().0 {
                let value = f32::from_le_bytes(bytes);
                if !value.is_finite() {
                    bad = bad.or(Some((at * columns + row.len(), value)));
                }
                row.push(value);
                if row.len() == columns {
                    each(at, &row);
                    row.clear();
                    at += 1;
                }
            }
        })?;
        bad.map_or(Ok(()), |(at, value)| Err(self.not_finite(name, at, value)))
    }

    /// An array of 64-bit integers.
    pub(super) fn u64s(&self, name: &str, shape: &[u64]) -> Result<Vec<u64>> {
        let mut integers = Vec::new();
        self.read(name, ElementType::U64, shape, |piece| {
            integers.extend(piece.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)));
        })?;
        Ok(integers)
    }

    /// An error of a value of an array.
    pub(super) fn refused(
        &self,
        field: &str,
        found: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) -> Error {
        Error::unexpected(&self.path, field, found, expected, REMEDY)
    }

    fn unexpected(&self, name: &str, found: Option<&[u64]>, expected: &str) -> Error {
        let found = found.map_or("missing".to_owned(), |shape| format!("{shape:?}"));
        self.refused(&format!("the array {name}"), found, expected)
    }

    fn not_finite(&self, name: &str, at: usize, value: f32) -> Error {
        self.refused(&format!("value {at} of {name}"), value, "a finite value")
    }
}

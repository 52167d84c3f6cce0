//! The positions of a column's chunks. The HDF5 library reports them once, when a file is opened, and each is
//! checked.
//!
//! Even in a file from an untrusted source, a chunk is read only if its bytes are inside the file, no other
//! chunk uses them, and it has all filters. It is decoded into no more memory than its elements require.

use std::ops::Range;

use corpus::digest::Digest;

use crate::chunk::Scalar;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::stored_file::StoredFile;

/// Position of a chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredChunk {
    pub(crate) address: u64,
    pub(crate) bytes: usize,
    pub(crate) digest: Digest,
}

/// Description of a chunk from the library.
#[derive(Clone, Debug)]
struct Listed {
    offset: Vec<u64>,
    filter_mask: u32,
    address: u64,
    bytes: u64,
}

/// The chunks of a column in order, one per digest.
pub(crate) fn stored_chunks<T: Scalar>(
    file: &StoredFile,
    dataset: &hdf5::Dataset,
    layout: &Layout,
    digests: Vec<Digest>,
) -> Result<Vec<StoredChunk>> {
    let n_chunks = layout.n_chunks();
    let refused = |mismatch: Mismatch| mismatch.of(file, &layout.name);
    if digests.len() != n_chunks {
        let found = format!("listed with {} chunks in the table of digests", digests.len());
        return Err(refused(Mismatch { chunk: None, found, expected: n_chunks.to_string() }));
    }
    let mut listed = Vec::new();
    let visited = dataset.chunks_visit(|chunk| {
        let (offset, filter_mask) = (chunk.offset.to_vec(), chunk.filter_mask);
        listed.push(Listed { offset, filter_mask, address: chunk.addr, bytes: chunk.size });
        // One excess chunk is enough to refuse the index.
        i32::from(listed.len() > n_chunks)
    });
    // The library has no index for a column that never had a chunk.
    if n_chunks > 0 && visited.is_err() {
        return Err(file.damaged(&format!("the chunk index of {}", layout.name)));
    }
    checked::<T>(listed, layout, digests, file.bytes()).map_err(refused)
}

/// An error in an index.
#[derive(Debug, PartialEq, Eq)]
struct Mismatch {
    /// The wrong chunk; `None` for the index as a whole.
    chunk: Option<usize>,
    found: String,
    expected: String,
}

impl Mismatch {
    fn of(self, file: &StoredFile, column: &str) -> Error {
        let thing = match self.chunk {
            Some(chunk) => format!("chunk {chunk} of {column}"),
            None => column.to_owned(),
        };
        misplaced(file, thing, self.found, self.expected)
    }
}

fn misplaced(file: &StoredFile, thing: String, found: String, expected: String) -> Error {
    let path = file.path().to_owned();
    let remedy = "the file was damaged or altered; fetch or make it again";
    Error::Unexpected { path, thing, found, expected, remedy }
}

fn checked<T: Scalar>(
    listed: Vec<Listed>,
    layout: &Layout,
    digests: Vec<Digest>,
    file_bytes: u64,
) -> std::result::Result<Vec<StoredChunk>, Mismatch> {
    let mut places: Vec<Option<Listed>> = vec![None; layout.n_chunks()];
    for chunk in listed {
        let elsewhere = || Mismatch {
            chunk: None,
            found: format!("listed with a chunk of the elements from {:?}", chunk.offset),
            expected: format!("one chunk from each multiple of {} below {}", layout.chunk_rows, layout.rows),
        };
        let (&first, others) = chunk.offset.split_first().ok_or_else(elsewhere)?;
        let at = usize::try_from(first).map_err(|_| elsewhere())? / layout.chunk_rows;
        let is_place = first == (at * layout.chunk_rows) as u64 && others.iter().all(|&other| other == 0);
        let place = places.get_mut(at).filter(|place| is_place && place.is_none()).ok_or_else(elsewhere)?;
        *place = Some(chunk);
    }
    // Deflate grows a chunk by at most a few bytes in a thousand.
    let bytes_max = 2 * (layout.chunk_elements() * T::BYTES) as u64 + 1024;
    let chunks = places.into_iter().zip(digests).enumerate().map(|(at, (place, digest))| {
        let mismatch = |found: String, expected: String| Mismatch { chunk: Some(at), found, expected };
        let Some(Listed { filter_mask, address, bytes, .. }) = place else {
            return Err(mismatch("absent".to_owned(), "a stored chunk".to_owned()));
        };
        if filter_mask != 0 {
            let found = format!("stored with filter mask {filter_mask}");
            return Err(mismatch(found, "0, which skips no filter".to_owned()));
        }
        if bytes > bytes_max {
            return Err(mismatch(format!("stored in {bytes} bytes"), format!("at most {bytes_max}")));
        }
        match address.checked_add(bytes) {
            Some(end) if end <= file_bytes => Ok(StoredChunk { address, bytes: bytes as usize, digest }),
            _ => {
                let found = format!("stored in {bytes} bytes from byte {address} on");
                Err(mismatch(found, format!("a range within a file of {file_bytes} bytes")))
            }
        }
    });
    chunks.collect()
}

/// The byte ranges of all chunks so far. Chunks that share bytes would be read and verified separately, so a
/// small file could claim to hold a large one.
#[derive(Default)]
pub(crate) struct Places {
    columns: Vec<String>,
    taken: Vec<(Range<u64>, u32, u32)>,
}

impl Places {
    pub(crate) fn take(&mut self, column: &str, chunks: &[StoredChunk]) {
        let number = self.columns.len() as u32;
        self.columns.push(column.to_owned());
        self.taken.extend(
            chunks
                .iter()
                .zip(0..)
                .map(|(chunk, at)| (chunk.address..chunk.address + chunk.bytes as u64, number, at)),
        );
    }

    /// Refuses two chunks that share a byte.
    pub(crate) fn check(mut self, file: &StoredFile) -> Result<()> {
        self.taken.sort_unstable_by_key(|(place, column, chunk)| (place.start, *column, *chunk));
        let shared = self.taken.windows(2).find(|pair| pair[0].0.end > pair[1].0.start);
        shared.map_or(Ok(()), |pair| {
            let name = |at: usize| {
                let (_, column, chunk) = &pair[at];
                format!("chunk {chunk} of {}", self.columns[*column as usize])
            };
            let (before, place) = (&pair[0].0, &pair[1].0);
            let found = format!("stored from byte {} on", place.start);
            let expected = format!("a position after {}, which ends at byte {}", name(0), before.end);
            Err(misplaced(file, name(1), found, expected))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_BYTES: u64 = 1 << 20;

    /// 40,000 rows of offsets: one chunk of 32,768 and one with the rest.
    fn layout() -> Layout {
        Layout::of("offsets", 40_000, None)
    }

    fn listed() -> Vec<Listed> {
        let chunk = |first, address| Listed { offset: vec![first], filter_mask: 0, address, bytes: 500 };
        vec![chunk(0, 2000), chunk(32_768, 2500)]
    }

    fn digests() -> Vec<Digest> {
        vec![Digest(1), Digest(2)]
    }

    /// The error for a changed index.
    fn refused(change: impl FnOnce(&mut Vec<Listed>)) -> String {
        let mut listed = listed();
        change(&mut listed);
        let Mismatch { chunk, found, expected } =
            checked::<u64>(listed, &layout(), digests(), FILE_BYTES).unwrap_err();
        format!("{chunk:?} {found}, {expected}")
    }

    #[test]
    fn a_valid_index_is_accepted_in_any_order() {
        let mut backwards = listed();
        backwards.reverse();
        for listed in [listed(), backwards] {
            let chunks = checked::<u64>(listed, &layout(), digests(), 3000).unwrap();
            let expected = [(2000, 1), (2500, 2)];
            assert_eq!(
                chunks,
                expected.map(|(address, digest)| StoredChunk { address, bytes: 500, digest: Digest(digest) })
            );
        }
    }

    #[test]
    fn a_hostile_index_is_refused_with_its_error() {
        assert_eq!(refused(|listed| drop(listed.pop())), "Some(1) absent, a stored chunk");
        assert_eq!(
            refused(|listed| listed[0].filter_mask = 2),
            "Some(0) stored with filter mask 2, 0, which skips no filter"
        );
        assert_eq!(
            refused(|listed| listed[0].bytes = u64::MAX),
            "Some(0) stored in 18446744073709551615 bytes, at most 525312"
        );
        for (address, bytes) in [(FILE_BYTES - 499, 500), (u64::MAX, 500), (u64::MAX, 1)] {
            let said = refused(|listed| (listed[1].address, listed[1].bytes) = (address, bytes));
            let expected = format!(
                "Some(1) stored in {bytes} bytes from byte {address} on, a range within a file of 1048576 bytes"
            );
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn a_chunk_beyond_the_last_row_is_refused() {
        for offset in [vec![], vec![1], vec![0], vec![65_536], vec![u64::MAX], vec![32_768, 1]] {
            let said = refused(|listed| listed[1].offset = offset.clone());
            let expected = format!(
                "None listed with a chunk of the elements from {offset:?}, one chunk from each multiple of 32768 \
                 below 40000"
            );
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn chunks_that_share_a_byte_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.h5");
        hdf5::File::create(&path).unwrap().close().unwrap();
        let (_, file) = StoredFile::open(&path).unwrap();
        let check = |label_at: u64| {
            let mut places = Places::default();
            let chunk = |address| StoredChunk { address, bytes: 100, digest: Digest(0) };
            places.take("hash", &[chunk(1000), chunk(2000)]);
            places.take("label", &[chunk(label_at)]);
            places.check(&file)
        };
        check(1100).unwrap();
        check(1900).unwrap();
        for (label_at, second, first, end) in [
            (1099, "chunk 0 of label is stored from byte 1099", "chunk 0 of hash", 1100),
            (1000, "chunk 0 of label is stored from byte 1000", "chunk 0 of hash", 1100),
            (1901, "chunk 1 of hash is stored from byte 2000", "chunk 0 of label", 2001),
        ] {
            let said = check(label_at).unwrap_err().to_string();
            let expected =
                format!("{second} on, expected a position after {first}, which ends at byte {end}; ");
            assert!(said.contains(&expected), "{said}");
        }
    }
}

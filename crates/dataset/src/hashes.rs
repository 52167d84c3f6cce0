//! Lists of ascending hashes of texts, in an unnamed file.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::merge_sorted::merge_sorted;
use crate::spool::temporary;

/// Number of hashes that are read or written at once.
const TOGETHER: u64 = 512;
const HASH_BYTES: u64 = size_of::<u64>() as u64;

/// A file of lists of hashes.
pub struct HashFile {
    folder: PathBuf,
    file: File,
}

/// The place of a list in its file.
pub type Place = Range<u64>;

impl HashFile {
    /// Creates the file in this folder.
    pub fn create(folder: &Path) -> Result<Self> {
        let file = temporary(folder, "create a temporary file", tempfile::tempfile_in(folder))?;
        Ok(Self { folder: folder.to_owned(), file })
    }

    /// Writes hashes from this place on. Threads may write to different places at the same time.
    pub fn write(&self, from: u64, hashes: &[u64]) -> Result<()> {
        let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        temporary(&self.folder, "write a temporary file", self.file.write_all_at(&bytes, from * HASH_BYTES))
    }

    /// A list, from its first hash on.
    pub fn list(&self, place: &Place) -> HashList<'_> {
        HashList { file: self, next: place.start, end: place.end, read: Vec::new(), at: 0 }
    }

    /// A list, from the first hash on that is not less than `hash`.
    pub fn list_from(&self, place: &Place, hash: u64) -> Result<HashList<'_>> {
        let Place { mut start, mut end } = *place;
        while start < end {
            let middle = start + (end - start) / 2;
            if self.read(middle, 1)?[0] < hash { start = middle + 1 } else { end = middle }
        }
        Ok(self.list(&(start..place.end)))
    }

    /// Writes the hashes that are in lists of several groups to the start of `out`, and returns their place. Each list has
    /// the number of its group.
    pub fn write_shared(&self, lists: &[(usize, Place)], out: &Self) -> Result<Place> {
        let (mut found, mut n) = (Vec::new(), 0);
        let mut last: Option<(u64, usize)> = None;
        for next in merge_sorted(lists.iter().map(|(_, place)| self.list(place)))? {
            let (hash, list) = next?;
            let group = lists[list].0;
            match last {
                Some((same, first)) if same == hash => {
                    if first != group && found.last() != Some(&hash) {
                        found.push(hash);
                    }
                }
                _ => {
                    last = Some((hash, group));
                    if found.len() as u64 >= TOGETHER {
                        out.write(n, &found)?;
                        n += found.len() as u64;
                        found.clear();
                    }
                }
            }
        }
        out.write(n, &found)?;
        Ok(0..n + found.len() as u64)
    }

    fn read(&self, from: u64, n: u64) -> Result<Vec<u64>> {
        let mut bytes = vec![0; (n * HASH_BYTES) as usize];
        let read = self.file.read_exact_at(&mut bytes, from * HASH_BYTES);
        temporary(&self.folder, "read a temporary file", read)?;
        let (hashes, _) = bytes.as_chunks::<{ HASH_BYTES as usize }>();
        Ok(hashes.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
    }
}

/// A list that is being read.
pub struct HashList<'a> {
    file: &'a HashFile,
    /// Place of the next hash that was not read.
    next: u64,
    end: u64,
    read: Vec<u64>,
    at: usize,
}

impl HashList<'_> {
    /// The next hash.
    pub fn peek(&mut self) -> Result<Option<u64>> {
        if self.at == self.read.len() {
            let n = (self.end - self.next).min(TOGETHER);
            self.read = self.file.read(self.next, n)?;
            self.next += n;
            self.at = 0;
        }
        Ok(self.read.get(self.at).copied())
    }

    /// Whether the list has this hash, which must not be less than the one of the previous call.
    pub fn contains(&mut self, hash: u64) -> Result<bool> {
        if self.read.last().is_some_and(|&last| last < hash) {
            *self = self.file.list_from(&(self.next..self.end), hash)?;
        }
        while let Some(there) = self.peek()? {
            if there >= hash {
                return Ok(there == hash);
            }
            self.at += 1;
        }
        Ok(false)
    }

    /// Skips all hashes that equal this one, which is the next hash or less than it, and returns their number.
    pub fn skip_equal(&mut self, hash: u64) -> Result<u64> {
        let mut n = 0;
        while self.peek()? == Some(hash) {
            self.at += 1;
            n += 1;
        }
        Ok(n)
    }
}

impl Iterator for HashList<'_> {
    type Item = Result<u64>;

    fn next(&mut self) -> Option<Result<u64>> {
        let next = self.peek().transpose();
        self.at += 1;
        next
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Writes these lists one after the other.
    fn written(lists: &[Vec<u64>]) -> (HashFile, Vec<Place>) {
        let file = HashFile::create(&std::env::temp_dir()).unwrap();
        let mut end = 0;
        let places = lists.iter().map(|list| {
            file.write(end, list).unwrap();
            let start = end;
            end += list.len() as u64;
            start..end
        });
        let places = places.collect();
        (file, places)
    }

    fn lists() -> impl Strategy<Value = Vec<(usize, Vec<u64>)>> {
        let list = prop::collection::vec(0u64..3000, 0..1500).prop_map(|mut list| {
            list.sort_unstable();
            list
        });
        prop::collection::vec((0usize..3, list), 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn shared_hashes_are_those_of_two_groups_or_more(lists in lists(), from in 0u64..3001) {
            let (file, places) = written(&lists.iter().map(|(_, list)| list.clone()).collect::<Vec<_>>());
            let places: Vec<_> = lists.iter().map(|(group, _)| *group).zip(places).collect();
            let out = HashFile::create(&std::env::temp_dir()).unwrap();

            let place = file.write_shared(&places, &out).unwrap();

            let has = |group: usize, hash: u64| lists.iter().any(|(of, list)| *of == group && list.contains(&hash));
            let is_shared = |hash: &u64| (0..3).filter(|&group| has(group, *hash)).count() > 1;
            let expected: Vec<u64> = (0..3000).filter(is_shared).collect();
            let found: Vec<u64> = out.list(&place).map(Result::unwrap).collect();
            prop_assert_eq!(&found, &expected);
            let rest: Vec<u64> = out.list_from(&place, from).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(rest, expected.iter().copied().filter(|&hash| hash >= from).collect::<Vec<_>>());
            let mut list = out.list(&place);
            for hash in 0..3000 {
                prop_assert_eq!(list.contains(hash).unwrap(), expected.binary_search(&hash).is_ok());
            }
        }
    }

    #[test]
    fn equal_hashes_are_counted() {
        let (file, places) = written(&[vec![], vec![1, 1, 5]]);
        let mut list = file.list(&places[1]);
        assert_eq!([0, 1, 1, 5, 6].map(|hash| list.skip_equal(hash).unwrap()), [0, 2, 0, 1, 0]);
        assert_eq!(file.list(&places[0]).peek().unwrap(), None);
    }
}

//! Collects the texts of rows, and writes them to a Parquet file in the order of the shard, with bounded memory.
//!
//! Texts are collected in memory. When the memory is full, they are sorted and written to disk as one run.

use std::mem;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use corpus::digest::Digest;
use corpus::record::Votes;
use corpus::settings::Settings;
use dataset::merge_sorted::merge_sorted;
use dataset::spool::{Run, Spool};
use dataset::{Result, Row};
use making::{GroupSize, TextRow, TextsWriter};
use program::progress::Progress;

/// Number of threads that encode rows. The thread that merges runs feeds it.
const THREADS: NonZeroUsize = NonZeroUsize::MIN;

/// The texts of rows.
pub struct Texts {
    settings: Settings,
    memory_bytes: usize,
    scratch: PathBuf,
    buffer: Vec<u8>,
    entries: Vec<Entry>,
    /// The sorted runs on disk.
    runs: Option<(Spool, Vec<Run>)>,
    n_rows: u64,
}

/// A row in the buffer.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    from: usize,
    to: usize,
}

impl Texts {
    /// Collects texts in about this much memory, and beyond that in an unnamed file in the folder `scratch`.
    pub fn new(settings: Settings, memory_bytes: usize, scratch: &Path) -> Self {
        Self {
            settings,
            memory_bytes,
            scratch: scratch.to_owned(),
            buffer: Vec::new(),
            entries: Vec::new(),
            runs: None,
            n_rows: 0,
        }
    }

    /// Adds the text of a row. The tokens of the row are ignored.
    pub fn add(&mut self, row: &Row, text: &[u8]) -> Result<()> {
        let from = self.buffer.len();
        append(row, text, &mut self.buffer);
        self.entries.push(Entry { hash: row.hash, from, to: self.buffer.len() });
        self.n_rows += 1;
        let is_full = self.buffer.len() + self.entries.len() * size_of::<Entry>() > self.memory_bytes;
        if is_full { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        self.sort();
        let (spool, runs) = match &mut self.runs {
            Some(runs) => runs,
            None => self.runs.insert((Spool::create(&self.scratch)?, Vec::new())),
        };
        let mut run = spool.append();
        for entry in &self.entries {
            run.word(&self.buffer[entry.from..entry.to], entry.hash)?;
        }
        runs.push(run.finish()?);
        self.buffer.clear();
        self.entries.clear();
        Ok(())
    }

    fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| (entry.hash, &self.buffer[entry.from..entry.to]));
    }

    /// Writes all texts to a new file in the folder for temporary files, and reads it back. Each row that is written or
    /// read is a step.
    pub fn write(mut self, path: &Path, row_digest: Digest, progress: &Progress) -> making::Result<()> {
        let mut writer = TextsWriter::temporary(path, &self.settings, row_digest, THREADS)?;
        let mut group = Group::default();
        let mut put = |hash, row: &[u8]| {
            progress.advance(1);
            group.push(hash, row);
            if group.size.is_full() { mem::take(&mut group).write(&mut writer) } else { Ok(()) }
        };
        if self.runs.is_some() && !self.entries.is_empty() {
            self.spill()?;
        }
        match self.runs {
            None => {
                self.sort();
                let row = |entry: &Entry| Ok((entry.hash, &self.buffer[entry.from..entry.to]));
                in_row_order(self.entries.iter().map(row), &self.settings, &mut put)?;
            }
            Some((spool, runs)) => {
                (self.buffer, self.entries) = (Vec::new(), Vec::new());
                let buffer_bytes = (self.memory_bytes / runs.len()).clamp(4 << 10, 256 << 10);
                let rows = |run| spool.words(run, buffer_bytes).map(|row| row.map(|(row, hash)| (hash, row)));
                let merged = merge_sorted(runs.into_iter().map(rows))?;
                in_row_order(merged.map(|row| row.map(|(row, _)| row)), &self.settings, &mut put)?;
            }
        }
        if !group.size.is_empty() {
            group.write(&mut writer)?;
        }
        let mut n_before = 0;
        writer.finish(self.n_rows, |n_read| {
            progress.advance(n_read - mem::replace(&mut n_before, n_read));
            Ok(())
        })
    }
}

/// Passes rows that are sorted by hash in the order of a shard, in which rows of one hash are ordered by their kept
/// words, then by votes; and rows that are equal in these by text.
fn in_row_order<R: AsRef<[u8]>>(
    rows: impl Iterator<Item = Result<(u64, R)>>,
    settings: &Settings,
    mut put: impl FnMut(u64, &[u8]) -> making::Result<()>,
) -> making::Result<()> {
    let mut rows = rows.peekable();
    while let Some(first) = rows.next() {
        let (hash, first) = first?;
        let mut alike = vec![first];
        while let Some(next) = rows.next_if(|next| matches!(next, Ok((other, _)) if *other == hash)) {
            alike.push(next?.1);
        }
        if alike.len() > 1 {
            alike.sort_by_cached_key(|row| {
                let TextRow { text, votes, .. } = text_row(hash, row.as_ref());
                (kept_words(text, settings), votes, text.to_vec())
            });
        }
        alike.iter().try_for_each(|row| put(hash, row.as_ref()))?;
    }
    Ok(())
}

/// The words of a text that its row keeps. Needed only for different texts of one hash.
#[cold]
fn kept_words(text: &[u8], settings: &Settings) -> Vec<Vec<u8>> {
    let is_stop_word = |word: &[u8]| settings.stop_words.iter().any(|stop| stop.as_bytes() == word);
    let words: Vec<_> = text.split(|&byte| byte == b' ').filter(|word| !is_stop_word(word)).collect();
    let (front, back) = settings.kept(&words);
    front.iter().chain(back).map(|word| word.to_vec()).collect()
}

/// Length of a stored row before its text: five votes of 4 bytes, the label, the split in 2 bytes.
const HEAD_BYTES: usize = 23;

/// Appends a row in the form in which it is stored, without its hash.
fn append(row: &Row, text: &[u8], out: &mut Vec<u8>) {
    out.extend(row.votes.0.iter().flat_map(|n| n.to_le_bytes()));
    out.push(row.label);
    out.extend_from_slice(&row.split.to_le_bytes());
    out.extend_from_slice(text);
}

/// Reads a stored row.
fn text_row(hash: u64, row: &[u8]) -> TextRow<'_> {
    let (head, text) = row.split_first_chunk::<HEAD_BYTES>().expect("a stored row has a head");
    let mut votes = Votes::default();
    votes.0.iter_mut().zip(head.as_chunks().0).for_each(|(n, bytes)| *n = u32::from_le_bytes(*bytes));
    let [.., label, low, high] = *head;
    TextRow { text, label, votes, hash, split: u16::from_le_bytes([low, high]) }
}

/// The rows of a row group.
#[derive(Default)]
struct Group {
    rows: Vec<u8>,
    /// The hash and the end of each row.
    ends: Vec<(u64, usize)>,
    size: GroupSize,
}

impl Group {
    fn push(&mut self, hash: u64, row: &[u8]) {
        self.rows.extend_from_slice(row);
        self.ends.push((hash, self.rows.len()));
        self.size.add(row.len() - HEAD_BYTES);
    }

    fn write(self, writer: &mut TextsWriter) -> making::Result<()> {
        writer.row_group(move |push| {
            let mut from = 0;
            for (hash, to) in self.ends {
                push(text_row(hash, &self.rows[mem::replace(&mut from, to)..to]));
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use corpus::digest::text_hash;
    use corpus::settings::Keep;
    use proptest::prelude::*;

    use super::*;

    /// The file of these texts, from a memory of this size.
    fn file(texts: &BTreeSet<String>, memory_bytes: usize) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let progress = Progress::default();
        let mut collected = Texts::new(Settings::default(), memory_bytes, folder.path());
        for (text, n) in texts.iter().zip(1..) {
            let row =
                Row { hash: text_hash(text.as_bytes()), votes: Votes([0, n, 0, 7, 0]), ..Row::default() };
            collected.add(&row, text.as_bytes()).unwrap();
        }
        let path = folder.path().join("texts.parquet");
        collected.write(&path, Digest::default(), &progress).unwrap();
        assert_eq!(progress.steps(), 2 * texts.len() as u64, "each row is written and read");
        std::fs::read(path).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_file_of_texts_does_not_depend_on_memory(
            texts in prop::collection::btree_set("[a-cé]{1,3}( [a-c]{1,9}){0,4}", 0..20),
            memory_bytes in 0usize..1_000,
        ) {
            let in_memory = file(&texts, usize::MAX);
            // Without memory each row is a run.
            prop_assert!(file(&texts, 0) == in_memory);
            prop_assert!(file(&texts, memory_bytes) == in_memory);
        }
    }

    #[test]
    fn a_row_survives_its_stored_form() {
        let row = Row { votes: Votes([1, 0, u32::MAX, 4, 5]), label: 254, split: 999, ..Row::default() };
        let mut stored = Vec::new();
        append(&row, b"nice fit", &mut stored);
        let TextRow { text, label, votes, hash, split } = text_row(7, &stored);
        assert_eq!((text, label, votes, hash, split), (&b"nice fit"[..], row.label, row.votes, 7, row.split));
    }

    #[test]
    fn texts_of_one_hash_are_ordered_by_kept_words_then_votes_then_text() {
        let settings = Settings {
            stop_words: vec!["the".to_owned()],
            max_tokens: 2,
            keep: Keep::First,
            ..Settings::default()
        };
        let ordered = [
            (1, "z", 1),
            (2, "a b d", 1),
            (2, "a b c", 2),
            (2, "the a b", 2),
            (2, "a c", 1),
            (2, "ab", 1),
            (3, "a", 1),
        ];
        let mut rows = ordered.map(|(hash, text, n)| {
            let mut stored = Vec::new();
            append(&Row { votes: Votes([0, 0, 0, 0, n]), ..Row::default() }, text.as_bytes(), &mut stored);
            (hash, stored)
        });
        rows[1..6].reverse();
        let mut found = Vec::new();
        let put = |hash, row: &[u8]| {
            found.push((hash, String::from_utf8(text_row(hash, row).text.to_vec()).unwrap()));
            Ok(())
        };
        in_row_order(rows.into_iter().map(Ok), &settings, put).unwrap();
        assert_eq!(found, ordered.map(|(hash, text, _)| (hash, text.to_owned())));
    }
}

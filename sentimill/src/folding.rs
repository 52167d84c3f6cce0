//! Folds the reviews of a partition into rows, one per distinct text, sorted by hash. Also counts all words.

use std::ops::Range;
use std::sync::Mutex;

use corpus::digest::{Digest, RowDigester, split};
use corpus::ledger::ReducerCounts;
use corpus::record::Votes;
use corpus::settings::Settings;
use corpus::words::{CountedWord, Dictionary, Span};
use dataset::dataset_file::DatasetReader;
use dataset::spool::{Run, Spool};
use dataset::{KeptWords, RowsSize};
use hashbrown::HashMap;
use making::Hashes;
use program::exit::{Exit, Failed};

use crate::Result;
use crate::codebook::{Codebook, StoredWords};
use crate::encoded::{EncodedReview, Word, each_word, read_review, short_codes, write_row};
use crate::partitions::{PARTITIONS, Partition, partition_start};
use crate::scratch::{Scratch, Stored};
use program::threads::locked;

/// Shared by all threads that fold.
pub struct Folding<'a> {
    /// The codes of words.
    pub codebook: &'a Codebook,
    /// Settings of rows.
    pub settings: &'a Settings,
    /// A dataset whose texts are excluded.
    pub without: Option<&'a DatasetReader>,
    /// Storage of the rows.
    pub scratch: &'a Scratch,
    /// Storage of the counts of words without a code.
    pub spool: &'a Mutex<Spool>,
    /// The words of their texts with which rows are stored.
    pub stored: StoredWords,
    /// Memory of one thread for reviews, and the same amount for words without a code.
    pub memory_bytes: usize,
}

/// The folding of one thread.
pub struct Folder<'a> {
    folding: &'a Folding<'a>,
    without: Option<Hashes>,
    /// The words by code, temporarily followed by the words without a code of one text.
    words: KeptWords,
    folded: Folded,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    rows: Vec<u8>,
    row: RowWords,
    digester: RowDigester,
}

/// Rows of one partition, in order.
pub struct StoredRows {
    /// The encoded rows.
    pub stored: Stored,
    /// Their size.
    pub size: RowsSize,
}

/// Totals of a thread's rows.
pub struct Folded {
    /// The counts of texts.
    pub counts: ReducerCounts,
    /// Number of excluded rows, whose texts are in another dataset.
    pub left_out: u64,
    /// Number of kept tokens of the remaining rows.
    pub kept_words: u64,
    /// Digest of all rows, including excluded ones.
    pub row_digest: Digest,
    /// Digest of the excluded rows.
    pub left_out_digest: Digest,
    /// Count of each word with a code.
    pub coded: Vec<u64>,
    /// Words without a code, with counts.
    pub spelt: Dictionary,
    /// Spilled words without a code, in byte order.
    pub spelt_runs: Vec<Run>,
}

impl Folded {
    /// The size of the remaining rows.
    pub fn size(&self) -> RowsSize {
        RowsSize { rows: self.counts.rows - self.left_out, tokens: self.kept_words }
    }

    /// Writes the words without a code to disk, in byte order.
    pub fn spill(&mut self, spool: &Mutex<Spool>) -> Result<()> {
        let counts = self.spelt.counts();
        let mut spool = locked(spool);
        let mut run = spool.append();
        for number in self.spelt.in_byte_order() {
            run.word(self.spelt.get(number), counts[number as usize])?;
        }
        self.spelt_runs.push(run.finish()?);
        self.spelt.clear();
        Ok(())
    }
}

/// One or several reviews of one text, in memory.
#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    check: u64,
    votes: Votes,
    words_from: u32,
    words_to: u32,
}

/// The words of one text.
#[derive(Default)]
struct RowWords {
    /// Their indexes among all words.
    places: Vec<u32>,
    /// The start of each word in the bytes of the text.
    starts: Vec<u32>,
    /// The words without a code.
    spelt: Vec<Span>,
    counted: Vec<CountedWord>,
    joined: Vec<u8>,
}

impl<'a> Folder<'a> {
    /// Creates an empty folder.
    pub fn new(folding: &'a Folding<'a>) -> Self {
        Self {
            folding,
            without: None,
            words: folding.codebook.to_words(),
            folded: Folded {
                counts: ReducerCounts::none(folding.settings),
                left_out: 0,
                kept_words: 0,
                row_digest: Digest::default(),
                left_out_digest: Digest::default(),
                coded: vec![0; folding.codebook.n_words()],
                spelt: Dictionary::new(&[]),
                spelt_runs: Vec::new(),
            },
            bytes: Vec::new(),
            entries: Vec::new(),
            rows: Vec::new(),
            row: RowWords::default(),
            digester: RowDigester::default(),
        }
    }

    /// Totals of all partitions that this thread folded.
    pub fn finish(self) -> Folded {
        self.folded
    }

    /// Folds the reviews of this partition from all threads. Returns its rows, in order.
    pub fn fold(&mut self, partition: usize, parts: Vec<Partition>) -> Result<Vec<StoredRows>> {
        let scratch = self.folding.scratch;
        let bytes: usize = parts.iter().map(Partition::bytes).sum();
        let passes = bytes.div_ceil(self.folding.memory_bytes.max(1)) as u64;
        // Partitions are not folded in order.
        let from = |dataset| Hashes::from(dataset, partition_start(partition));
        self.without = self.folding.without.map(from).transpose()?;
        self.bytes.clear();
        self.entries.clear();
        if passes <= 1 {
            for part in parts {
                part.take(scratch, &mut self.bytes)?;
            }
            self.list();
            return Ok(vec![self.rows()?]);
        }
        let mut stored = Vec::new();
        for pass in 0..passes {
            self.load(&parts, pass, passes)?;
            stored.push(self.rows()?);
        }
        parts.into_iter().for_each(|part| part.forget(scratch));
        Ok(stored)
    }

    /// Lists the reviews in memory.
    fn list(&mut self) {
        let mut rest = &self.bytes[..];
        while !rest.is_empty() {
            let EncodedReview { hash, check, rating, words } = read_review(&mut rest);
            let words_to = (self.bytes.len() - rest.len()) as u32;
            let words_from = words_to - words.len() as u32;
            self.entries.push(Entry { hash, check, votes: Votes::one(rating), words_from, words_to });
        }
    }

    /// Loads and lists the reviews whose hashes are in one of `passes` parts of the partition, each text
    /// once.
    fn load(&mut self, parts: &[Partition], pass: u64, passes: u64) -> Result<()> {
        self.bytes.clear();
        self.entries.clear();
        let (bytes, entries) = (&mut self.bytes, &mut self.entries);
        let mut places: HashMap<(u64, u64), usize> = HashMap::new();
        for part in parts {
            part.each(self.folding.scratch, |review| {
                let EncodedReview { hash, check, rating, words } = review;
                let within = hash.wrapping_mul(PARTITIONS as u64);
                if ((u128::from(within) * u128::from(passes)) >> u64::BITS) as u64 != pass {
                    return Ok(());
                }
                let place = *places.entry((hash, check)).or_insert(entries.len());
                if let Some(entry) = entries.get_mut(place) {
                    entry.votes = sum(hash, entry.votes, Votes::one(rating))?;
                    return Ok(());
                }
                let words_from = bytes.len() as u32;
                bytes.extend_from_slice(words);
                let words_to = bytes.len() as u32;
                entries.push(Entry { hash, check, votes: Votes::one(rating), words_from, words_to });
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Converts the listed reviews into rows.
    fn rows(&mut self) -> Result<StoredRows> {
        let before = self.folded.size();
        let mut entries = std::mem::take(&mut self.entries);
        self.folded.counts.reviews += entries.iter().map(|entry| entry.votes.total()).sum::<u64>();
        entries.sort_unstable_by_key(|entry| (entry.hash, entry.check));
        let mut too_many = None;
        entries.dedup_by(|entry, kept| {
            let is_same = (entry.hash, entry.check) == (kept.hash, kept.check);
            if is_same {
                match sum(kept.hash, kept.votes, entry.votes) {
                    Ok(votes) => kept.votes = votes,
                    Err(error) => too_many = Some(error),
                }
            }
            is_same
        });
        too_many.map_or(Ok(()), Err)?;
        self.rows.clear();
        for alike in entries.chunk_by_mut(|one, next| one.hash == next.hash) {
            if alike.len() > 1 {
                self.put_in_order(alike);
            }
            alike.iter().try_for_each(|entry| self.row(entry))?;
        }
        self.entries = entries;
        let mut size = self.folded.size();
        size -= before;
        Ok(StoredRows { stored: self.folding.scratch.keep(&self.rows)?, size })
    }

    /// Sorts different texts of one hash by their kept tokens, then by votes; if texts are written, then by text.
    #[cold]
    fn put_in_order(&mut self, entries: &mut [Entry]) {
        entries.sort_by_cached_key(|entry| {
            self.join(entry);
            let mut text = Vec::new();
            if self.folding.stored == StoredWords::All {
                let words = &self.bytes[entry.words_from as usize..entry.words_to as usize];
                self.folding.codebook.decode(words, &mut Vec::new(), &mut text);
            }
            (self.row.joined.clone(), entry.votes, text)
        });
    }

    /// Reads the words of a text and joins the kept ones. Returns their number and their positions.
    fn join(&mut self, entry: &Entry) -> (usize, [Range<usize>; 2]) {
        let Self { folding, words, bytes, row, .. } = self;
        let (from, to) = (entry.words_from as usize, entry.words_to as usize);
        row.read(&bytes[from..to], folding.codebook, words);
        let (front, back) = folding.settings.kept(&row.places);
        match (front, back) {
            (kept, []) | ([], kept) => words.join(kept, &mut row.joined),
            (front, back) => words.join(&[front, back].concat(), &mut row.joined),
        }
        words.truncate(folding.codebook.n_words());
        let start = |word: usize| from + row.start(word, to - from);
        let kept = [from..start(front.len()), start(row.places.len() - back.len())..to];
        (front.len() + back.len(), kept)
    }

    /// Converts a text into a row.
    fn row(&mut self, entry: &Entry) -> Result<()> {
        let Entry { hash, votes, .. } = *entry;
        self.folded.counts.distinct += 1;
        // The words of a dropped text are not counted.
        if !self.folding.settings.sample.keeps(hash) {
            self.folded.counts.not_sampled = self.folded.counts.not_sampled.map(|n| n + 1);
            return Ok(());
        }
        let Some(label) = self.folding.settings.label(votes) else {
            self.folded.counts.not_labelled = self.folded.counts.not_labelled.map(|n| n + 1);
            return Ok(());
        };
        if entry.words_from == entry.words_to {
            self.folded.counts.only_stopwords += 1;
            return Ok(());
        }
        let (n_kept, kept) = self.join(entry);
        if self.row.places.is_empty() {
            self.folded.counts.only_stopwords += 1;
            return Ok(());
        }
        self.folded.counts.rows += 1;
        self.count(entry)?;
        let joined = &self.row.joined;
        let digest = self.digester.of_words(hash, label, votes, n_kept, joined);
        self.folded.row_digest += digest;
        let split = split(joined);
        if self.is_left_out(hash)? {
            self.folded.left_out += 1;
            self.folded.left_out_digest += digest;
        } else {
            self.folded.kept_words += n_kept as u64;
            let (text_bytes, words) = match self.folding.stored {
                StoredWords::Kept => (0, kept),
                StoredWords::All => {
                    let [from, to] = [entry.words_from, entry.words_to].map(|place| place as usize);
                    (self.text_bytes(entry, n_kept), [from..to, to..to])
                }
            };
            let words = words.map(|words| &self.bytes[words]);
            write_row(&mut self.rows, (hash, votes, split), text_bytes, words);
        }
        Ok(())
    }

    /// The size of the last text read, of whose tokens `n_kept` are kept.
    fn text_bytes(&self, entry: &Entry, n_kept: usize) -> u32 {
        let codebook = self.folding.codebook;
        if n_kept == self.row.places.len() && !codebook.omits_words() {
            return self.row.joined.len() as u32;
        }
        let mut bytes = 0;
        each_word(&self.bytes[entry.words_from as usize..entry.words_to as usize], |word| {
            bytes += 1 + match word {
                Word::Coded(code) => codebook.word(code).len(),
                Word::Spelt(word) => word.len(),
            };
        });
        (bytes - 1) as u32
    }

    /// Counts all words of the last text read.
    fn count(&mut self, entry: &Entry) -> Result<()> {
        for &place in &self.row.places {
            if let Some(count) = self.folded.coded.get_mut(place as usize) {
                *count += 1;
            }
        }
        if !self.row.spelt.is_empty() {
            let bytes = &self.bytes[entry.words_from as usize..entry.words_to as usize];
            self.folded.spelt.count(bytes, &self.row.spelt, &mut self.row.counted);
            if self.folded.spelt.is_full() || self.folded.spelt.memory_bytes() > self.folding.memory_bytes {
                self.folded.spill(self.folding.spool)?;
            }
        }
        Ok(())
    }

    fn is_left_out(&mut self, hash: u64) -> Result<bool> {
        Ok(self.without.as_mut().map_or(Ok(false), |hashes| hashes.contains(hash))?)
    }
}

fn sum(hash: u64, one: Votes, other: Votes) -> Result<Votes> {
    one.checked_add(other).ok_or_else(|| {
        let found = format!("the votes of the text with hash {hash:016x} exceed 4294967295 for one rating");
        Failed::new(Exit::BadInput, format!("{found}; check that no input is read twice"))
    })
}

impl RowWords {
    /// Reads the words that rows do not omit. Those without a code get indexes after all others.
    fn read(&mut self, bytes: &[u8], codebook: &Codebook, words: &mut KeptWords) {
        self.places.clear();
        self.starts.clear();
        self.spelt.clear();
        if let Some(codes) = short_codes(bytes) {
            if codebook.omits_words() {
                self.places.extend(codes.filter(|&code| !codebook.omits_code(code)));
            } else {
                self.places.extend(codes);
            }
            return;
        }
        let (mut at, places, starts, spelt) = (0, &mut self.places, &mut self.starts, &mut self.spelt);
        each_word(bytes, |word| {
            let start = at as u32;
            at += word.bytes();
            let is_omitted = match word {
                Word::Coded(code) => codebook.omits_code(code),
                Word::Spelt(word) => codebook.omits_word(word),
            };
            if is_omitted {
                return;
            }
            starts.push(start);
            places.push(match word {
                Word::Coded(code) => code,
                Word::Spelt(word) => {
                    spelt.push(Span { from: (at - word.len()) as u32, length: word.len() as u32 });
                    words.push(word);
                    words.len() as u32 - 1
                }
            });
        });
    }

    /// The start of a word among `bytes` bytes; after the last word, `bytes`.
    fn start(&self, word: usize, bytes: usize) -> usize {
        if self.starts.is_empty() {
            return 2 * word;
        }
        self.starts.get(word).map_or(bytes, |&start| start as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use corpus::words::{find_words, room};

    use super::*;
    use crate::codebook::Agreement;
    use crate::encoded::{REVIEW_BYTES, read_row, words_bytes, write_review};
    use crate::partitions::{Partitions, partition_of};

    const STOP_WORD: &str = "the";

    /// A hash, a check, a rating and a text.
    type Given<'a> = (u64, u64, u8, &'a str);

    /// The rows made from reviews of one partition.
    struct Made {
        /// Hash, votes and words.
        rows: Vec<(u64, Votes, String)>,
        /// The sizes of the texts, if rows contain all words.
        text_bytes: Vec<u32>,
        /// Number of rows by pass.
        passes: Vec<usize>,
        folded: Folded,
    }

    fn rows(given: &[Given<'_>], coded: &str, memory_bytes: usize) -> Result<Vec<(u64, Votes, String)>> {
        made(given, coded, memory_bytes, StoredWords::Kept).map(|made| made.rows)
    }

    /// Folds reviews, which belong to one partition. Only the words in `coded` have codes, and the memory is
    /// `memory_bytes`. `the` is a stop word.
    fn made(given: &[Given<'_>], coded: &str, memory_bytes: usize, stored: StoredWords) -> Result<Made> {
        let spans = |text: &str| {
            let mut words = vec![Span::default(); room(text.len())];
            let n_words = find_words(text.as_bytes(), &mut words);
            words.truncate(n_words);
            words
        };
        let stopped = AtomicBool::new(false);
        let mut counted = Dictionary::new(&[]);
        counted.count(coded.as_bytes(), &spans(coded), &mut Vec::new());
        let stop_words = [STOP_WORD.to_owned()];
        let codebook = Agreement::among(1, &stop_words, stored, &stopped).join(&counted);
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(folder.path(), memory_bytes);
        let mut partitions = Partitions::holding(&scratch, memory_bytes);
        for &(hash, check, stars, text) in given {
            let mut found = Vec::new();
            let n_found = codebook.look_up(text.as_bytes(), &spans(text), &mut found);
            let bytes = words_bytes(&found[..n_found]);
            let out = partitions.room(hash, REVIEW_BYTES + bytes)?;
            write_review(out, (hash, check, stars), text.as_bytes(), &found[..n_found], bytes);
        }
        let partition = partition_of(given[0].0);
        let part = partitions.finish().swap_remove(partition);
        let spool = Mutex::new(Spool::create(folder.path())?);
        let settings = Settings { stop_words: stop_words.to_vec(), max_tokens: 3, ..Settings::default() };
        let folding = Folding {
            codebook: &codebook,
            settings: &settings,
            without: None,
            scratch: &scratch,
            spool: &spool,
            stored,
            memory_bytes,
        };
        let mut folder = Folder::new(&folding);
        let (mut rows, mut text_bytes, mut passes) = (Vec::new(), Vec::new(), Vec::new());
        for one in folder.fold(partition, vec![part])? {
            let mut bytes = Vec::new();
            scratch.take(one.stored, &mut bytes)?;
            let mut rest = &bytes[..];
            let n_before = rows.len();
            while !rest.is_empty() {
                let row = read_row(&mut rest);
                if stored == StoredWords::All {
                    text_bytes.push(row.text_bytes);
                }
                let mut words = Vec::new();
                each_word(row.words, |word| {
                    words.push(match word {
                        Word::Coded(code) => String::from_utf8_lossy(codebook.word(code)).into_owned(),
                        Word::Spelt(word) => String::from_utf8_lossy(word).into_owned(),
                    });
                });
                rows.push((row.hash, row.votes, words.join(" ")));
            }
            passes.push(rows.len() - n_before);
            assert_eq!(one.size.rows as usize, rows.len() - n_before);
        }
        Ok(Made { rows, text_bytes, passes, folded: folder.finish() })
    }

    /// Reviews of 300 texts with two reviews each, whose hashes are distributed over the first partition.
    fn spread(texts: &[String]) -> Vec<Given<'_>> {
        let given = |n: u64| {
            (
                n % 300 * (u64::MAX / PARTITIONS as u64 / 300),
                1,
                (n % 5) as u8 + 1,
                &texts[n as usize % 300][..],
            )
        };
        (0..600).map(given).collect()
    }

    #[test]
    fn rows_of_one_hash_are_sorted_by_words_then_votes() {
        let given = [
            (7, 1, 5, "fit b"),
            (7, 2, 1, "fit a"),
            (7, 3, 2, "fit"),
            (7, 1, 4, "fit b"),
            (7, 4, 1, "fit b"),
        ];
        let expected = [
            (7, Votes([0, 1, 0, 0, 0]), "fit".to_owned()),
            (7, Votes([1, 0, 0, 0, 0]), "fit a".to_owned()),
            (7, Votes([0, 0, 0, 1, 1]), "fit b".to_owned()),
            (7, Votes([1, 0, 0, 0, 0]), "fit b".to_owned()),
        ];
        assert_eq!(rows(&given, "fit a", 1 << 20).unwrap(), expected);
    }

    #[test]
    fn rows_do_not_depend_on_memory_or_codes() {
        let texts: Vec<String> =
            (0..300).map(|n| format!("notwithstandingness number{n} of {}", n % 7)).collect();
        let given = spread(&texts);
        let expected = rows(&given, "", 1 << 20).unwrap();
        assert_eq!(expected.len(), 300);
        assert!(expected.is_sorted_by_key(|row| row.0));
        for memory_bytes in [1 << 20, 20_000, 1000] {
            assert_eq!(rows(&given, "number7 of notwithstandingness", memory_bytes).unwrap(), expected);
        }
    }

    #[test]
    fn a_pass_has_its_share_of_the_rows_and_words_beyond_the_memory_are_written_to_disk() {
        let letter = |n: usize| char::from(b'a' + n as u8);
        let texts: Vec<String> = (0..300)
            .map(|n| format!("{}{}{}", letter(n / 100), letter(n / 10 % 10), letter(n % 10)))
            .collect();
        let made = |memory_bytes| made(&spread(&texts), "", memory_bytes, StoredWords::Kept).unwrap();
        let ample = made(1 << 20);
        assert_eq!(
            (&ample.passes[..], ample.folded.spelt_runs.len(), ample.folded.spelt.counts().len()),
            (&[300][..], 0, 300)
        );
        let scarce = made(1000);
        assert!(scarce.passes.len() > 10, "{:?}", scarce.passes);
        let share = 300 / scarce.passes.len();
        assert!(scarce.passes.iter().all(|rows| rows.abs_diff(share) <= 2), "{:?}", scarce.passes);
        assert!(scarce.folded.spelt_runs.len() > 1);
    }

    #[test]
    fn rows_with_all_words_have_the_size_of_their_text() {
        for coded in ["", "the a b", "the a b c d notwithstanding"] {
            let texts = ["a", "a the b", "a b c", "a b notwithstanding c d", "the the a b c d"];
            let given: Vec<Given<'_>> = (0..).zip(texts).map(|(hash, text)| (hash, 1, 5, text)).collect();
            let made = made(&given, coded, 1 << 20, StoredWords::All).unwrap();
            assert_eq!(made.rows.iter().map(|row| &row.2[..]).collect::<Vec<_>>(), texts);
            assert_eq!(made.text_bytes, texts.map(|text| text.len() as u32), "{coded}");
        }
    }

    #[test]
    fn texts_of_stop_words_alone_are_counted_whether_or_not_texts_are_written() {
        for stored in [StoredWords::Kept, StoredWords::All] {
            let made =
                made(&[(1, 1, 5, "the"), (2, 1, 5, "the the"), (3, 1, 5, "the a")], "the", 1 << 20, stored);
            let counts = made.unwrap().folded.counts;
            assert_eq!((counts.distinct, counts.only_stopwords, counts.rows), (3, 2, 1));
        }
    }
}

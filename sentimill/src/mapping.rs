//! Converts lines into encoded reviews in partitions, on several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use corpus::cause;
use corpus::classes::UnratedClasses;
use corpus::cleaned::CleanedReviews;
use corpus::digest::text_hash;
use corpus::format::Format;
use corpus::judgement::TOLD;
use corpus::ledger::{Fate, MapperCounts};
use reading::{Content, InputEntry, InputPlace, Reading};
use words::{Counted, Dictionary, Span, find_words, room};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::codebook::{Agreement, Codebook, Coded};
use crate::encoded::{REVIEW_BYTES, words_bytes, write_review};
use crate::error::Result;
use crate::origins::{Origins, StoredOrigins};
use crate::partitions::{Partition, Partitions};
use crate::rejects::{Rejects, StoredRejects};
use crate::scratch::Scratch;

/// Shared by all threads that map.
pub struct Mapping<'a> {
    /// The input.
    pub reading: &'a Reading,
    /// The format of its lines.
    pub format: &'a Format,
    /// How the threads agree on a codebook.
    pub agreement: &'a Agreement<'a>,
    /// Maximum size in bytes of a thread's sample of texts, and separately of the dictionary that counts its words.
    pub sample_bytes: usize,
    /// Storage of reviews.
    pub scratch: &'a Scratch,
    /// Number of threads.
    pub threads: usize,
    /// Number of reviews read so far, for a progress bar.
    pub reviews: AtomicU64,
    /// The seed of the check.
    pub seed: u64,
    /// Whether bad lines are collected.
    pub collects_rejects: bool,
    /// The memory of a thread for the origins of reviews, if they are collected.
    pub origins_bytes: Option<usize>,
}

/// Number of reviews between two updates of the progress by a thread.
const REVIEWS_SHOWN: u64 = 1 << 12;

/// The result of one thread.
pub struct Mapped {
    /// Its reviews.
    pub partitions: Vec<Partition>,
    /// The counts of its lines.
    pub counts: MapperCounts,
    /// The first bad lines of each reason.
    pub told: Told,
    /// The classes without a rating.
    pub unrated: UnratedClasses,
    /// What the thread found in each source, by index of the source.
    pub held: Vec<Held>,
    /// The beginning of the thread's first line, and the position of this line.
    pub beginning: Option<(InputPlace, Vec<u8>)>,
    /// The codebook of all threads.
    pub codebook: Arc<Codebook>,
    /// The bad lines, if they are collected.
    pub rejects: Option<StoredRejects>,
    /// The origins of reviews, if they are collected.
    pub origins: Option<StoredOrigins>,
}

/// What was found in a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Whether there is a line or row.
    pub any: bool,
    /// Whether there is a line that is not blank.
    pub lines: bool,
    /// Whether there is a review.
    pub reviews: bool,
}

/// The first few bad lines of each reason.
#[derive(Clone, Debug, Default)]
pub struct Told(Vec<(&'static str, BadLine)>);

/// The position of a bad line or row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadLine {
    /// The position.
    pub place: InputPlace,
    /// The unit of the position: bytes or rows.
    pub counted: &'static str,
}

impl Told {
    /// Adds a line, and drops the lines that are no longer among the first ones of their reason.
    fn add(&mut self, reason: &'static str, line: BadLine) {
        self.0.push((reason, line));
        self.0.sort_unstable();
        let mut so_far = ("", 0);
        self.0.retain(|&(reason, _)| {
            so_far = if so_far.0 == reason { (reason, so_far.1 + 1) } else { (reason, 1) };
            so_far.1 <= TOLD
        });
    }

    /// Adds the lines of another thread.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|&(reason, line)| self.add(reason, line));
    }

    /// The lines in order, with their reasons.
    pub fn in_order(mut self) -> Vec<(BadLine, &'static str)> {
        self.0.sort_unstable_by_key(|&(reason, line)| (line, reason));
        self.0.into_iter().map(|(reason, line)| (line, reason)).collect()
    }
}

impl Mapping<'_> {
    /// Runs the work of one thread.
    pub fn run(&self) -> Result<Mapped> {
        let mut mapper = Mapper {
            reviews: CleanedReviews::of(self.format.clone()),
            counts: MapperCounts::default(),
            told: Told::default(),
            held: vec![Held::default(); self.reading.sources().len()],
            beginning: None,
        };
        let mut rejects = self.collects_rejects.then(|| Rejects::new(self.scratch));
        let partitions = self.origins_bytes.map(|bytes| Partitions::holding(self.scratch, bytes));
        let mut origins = partitions.map(Origins::new);
        let mut state = State::Sampling(Sample::new(self.agreement.dropped()));
        let read: Result<()> = self.reading.each(|entry| {
            if let Some(origins) = &mut origins {
                origins.count(&entry);
            }
            match mapper.read(&entry) {
                Ok((text, stars)) => {
                    state.add(self, text, stars)?;
                    if let Some(origins) = &mut origins {
                        origins.add(text_hash(text), entry.place, entry.number)?;
                    }
                    if mapper.counts.reviews.is_multiple_of(REVIEWS_SHOWN) {
                        self.reviews.fetch_add(REVIEWS_SHOWN, Ordering::Relaxed);
                    }
                }
                Err(fate) => {
                    if let Some(rejects) = rejects.as_mut().filter(|_| fate.is_bad()) {
                        rejects.add(&entry, fate)?;
                    }
                }
            }
            Ok(())
        });
        // The others wait for this thread, even if it fails.
        let encoder = state.encoding(self);
        read?;
        let encoder = encoder?;
        let Mapper { reviews, mut counts, told, held, beginning } = mapper;
        let unrated = reviews.unrated_classes();
        counts.invalid_utf8 = reviews.invalid_utf8();
        let Encoder { partitions, codebook, .. } = encoder;
        let rejects = rejects.map(Rejects::finish).transpose()?;
        let origins = origins.map(Origins::finish);
        let partitions = partitions.finish();
        Ok(Mapped { partitions, counts, told, unrated, held, beginning, codebook, rejects, origins })
    }
}

/// Converts lines to texts, and counts each line once.
struct Mapper {
    reviews: CleanedReviews,
    counts: MapperCounts,
    told: Told,
    held: Vec<Held>,
    beginning: Option<(InputPlace, Vec<u8>)>,
}

impl Mapper {
    #[inline]
    fn read(&mut self, entry: &InputEntry<'_>) -> std::result::Result<(&[u8], u8), Fate> {
        if self.counts.lines == 0 {
            let beginning = match entry.what {
                Content::Line(line) => cause::beginning(line),
                Content::Row { .. } => &[],
            };
            self.beginning = Some((entry.place, beginning.to_vec()));
        }
        self.counts.lines += 1;
        let read = match entry.what {
            Content::Line(line) => match entry.columns {
                None => self.reviews.read(line),
                Some(columns) => self.reviews.read_record(line, columns),
            },
            Content::Row { text, rating } => self.reviews.read_row(text, rating),
        };
        match read {
            Ok((text, rating)) => {
                self.counts.reviews += 1;
                self.held[entry.place.source] = Held { any: true, lines: true, reviews: true };
                Ok((text, rating.stars()))
            }
            Err(fate) => {
                let held = &mut self.held[entry.place.source];
                held.any = true;
                held.lines |= fate != Fate::Blank;
                refuse(&mut self.counts, &mut self.told, fate, entry);
                Err(fate)
            }
        }
    }
}

#[cold]
fn refuse(counts: &mut MapperCounts, told: &mut Told, fate: Fate, entry: &InputEntry<'_>) {
    counts.count(fate);
    if fate.is_bad() {
        let counted = match entry.what {
            Content::Line(_) => "byte",
            Content::Row { .. } => "row",
        };
        told.add(fate.counter(), BadLine { place: entry.place, counted });
    }
}

/// State of a thread: the first texts wait for the codebook.
enum State<'a> {
    Sampling(Sample),
    Encoding(Encoder<'a>),
}

impl<'a> State<'a> {
    #[inline]
    fn add(&mut self, mapping: &Mapping<'a>, text: &[u8], stars: u8) -> Result<()> {
        match self {
            Self::Encoding(encoder) => encoder.add(text, stars),
            Self::Sampling(sample) => {
                sample.add(text, stars);
                if sample.texts.len().max(sample.dictionary.memory_bytes()) >= mapping.sample_bytes {
                    let sample = std::mem::replace(sample, Sample::new(&[]));
                    *self = Self::Encoding(sample.encoded(mapping)?);
                }
                Ok(())
            }
        }
    }

    fn encoding(self, mapping: &Mapping<'a>) -> Result<Encoder<'a>> {
        match self {
            Self::Encoding(encoder) => Ok(encoder),
            Self::Sampling(sample) => sample.encoded(mapping),
        }
    }
}

/// The first texts of a thread, and the counts of their words.
struct Sample {
    texts: Vec<u8>,
    /// The end and the rating of each text.
    entries: Vec<(usize, u8)>,
    dictionary: Dictionary,
    words: Vec<Span>,
    counted: Vec<Counted>,
}

impl Sample {
    fn new(stop_words: &[String]) -> Self {
        let (texts, entries) = (Vec::new(), Vec::new());
        let (dictionary, words, counted) = (Dictionary::new(stop_words), Vec::new(), Vec::new());
        Self { texts, entries, dictionary, words, counted }
    }

    fn add(&mut self, text: &[u8], stars: u8) {
        let n_words = words_of(text, &mut self.words);
        self.dictionary.count(text, &self.words[..n_words], &mut self.counted);
        self.texts.extend_from_slice(text);
        self.entries.push((self.texts.len(), stars));
    }

    fn encoded<'a>(self, mapping: &Mapping<'a>) -> Result<Encoder<'a>> {
        let codebook = mapping.agreement.join(&self.dictionary);
        drop(self.dictionary);
        let mut encoder = Encoder {
            codebook,
            partitions: Partitions::holding(
                mapping.scratch,
                mapping.scratch.held_max() / mapping.threads - mapping.origins_bytes.unwrap_or_default(),
            ),
            seed: mapping.seed,
            words: self.words,
            found: Vec::new(),
        };
        let mut from = 0;
        for (to, stars) in self.entries {
            encoder.add(&self.texts[from..to], stars)?;
            from = to;
        }
        Ok(encoder)
    }
}

/// Encodes texts as reviews.
struct Encoder<'a> {
    codebook: Arc<Codebook>,
    partitions: Partitions<'a>,
    seed: u64,
    words: Vec<Span>,
    found: Vec<Coded>,
}

impl Encoder<'_> {
    #[inline]
    fn add(&mut self, text: &[u8], stars: u8) -> Result<()> {
        let n_words = words_of(text, &mut self.words);
        let n_found = self.codebook.look_up(text, &self.words[..n_words], &mut self.found);
        let found = &self.found[..n_found];
        let (hash, check) = (text_hash(text), xxh3_64_with_seed(text, self.seed));
        let words_bytes = words_bytes(found);
        let room = self.partitions.room(hash, REVIEW_BYTES + words_bytes)?;
        write_review(room, (hash, check, stars), text, found, words_bytes);
        Ok(())
    }
}

/// Tokenizes a text. Returns the number of its words.
#[inline]
fn words_of(text: &[u8], words: &mut Vec<Span>) -> usize {
    if words.len() < room(text.len()) {
        words.resize(room(text.len()), Span::default());
    }
    find_words(text, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bad_lines_of_each_reason_are_reported_in_order() {
        let line = |offset| BadLine { place: InputPlace::at(0, offset), counted: "byte" };
        let (mut told, mut other) = (Told::default(), Told::default());
        [9, 3, 7, 5].into_iter().for_each(|at| told.add("bad_line", line(at)));
        other.add("no_text", line(4));
        other.add("bad_line", line(1));
        told.merge(&other);
        let expected =
            [(line(1), "bad_line"), (line(3), "bad_line"), (line(4), "no_text"), (line(5), "bad_line")];
        assert_eq!(told.in_order(), expected);
    }
}

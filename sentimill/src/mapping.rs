//! Converts lines into encoded reviews in partitions, on several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use corpus::cleaned::{CleanedReviews, ReadReview};
use corpus::digest::text_hash;
use corpus::format::Format;
use corpus::sample;
use corpus::words::{Counted, Dictionary, Span, find_words, room};
use reading::{Found, Reading, Reviews};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Result;
use crate::codebook::{Agreement, Codebook, Coded};
use crate::encoded::{REVIEW_BYTES, words_bytes, write_review};
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
    /// The texts that become rows.
    pub sample: sample::Sample,
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
    /// What it has found in its lines.
    pub found: Found,
    /// The codebook of all threads.
    pub codebook: Arc<Codebook>,
    /// The bad lines, if they are collected.
    pub rejects: Option<StoredRejects>,
    /// The origins of reviews, if they are collected.
    pub origins: Option<StoredOrigins>,
}

impl Mapping<'_> {
    /// Runs the work of one thread.
    pub fn run(&self) -> Result<Mapped> {
        let mut reviews = Reviews::of(self.reading, CleanedReviews::of(self.format.clone()));
        let mut rejects = self.collects_rejects.then(|| Rejects::new(self.scratch));
        let partitions = self.origins_bytes.map(|bytes| Partitions::holding(self.scratch, bytes));
        let mut origins = partitions.map(Origins::new);
        let mut state = State::Sampling(Sample::new(self.agreement.dropped()));
        let mut n_reviews = 0_u64;
        let read: Result<()> = self.reading.each(|entry| {
            if let Some(origins) = &mut origins {
                origins.count(&entry);
            }
            reviews.read(&entry, |entry, read| {
                match read {
                    Ok(ReadReview { text, rating, .. }) => {
                        state.add(self, text, rating.stars())?;
                        if let Some(origins) = &mut origins {
                            origins.add(text_hash(text), entry.place, entry.number)?;
                        }
                        n_reviews += 1;
                        if n_reviews.is_multiple_of(REVIEWS_SHOWN) {
                            self.reviews.fetch_add(REVIEWS_SHOWN, Ordering::Relaxed);
                        }
                    }
                    Err(reason) => {
                        if let Some(rejects) = rejects.as_mut().filter(|_| reason.is_bad()) {
                            rejects.add(entry, reason)?;
                        }
                    }
                }
                Ok(())
            })
        });
        // The others wait for this thread, even if it fails.
        let encoder = state.encoding(self);
        read?;
        let encoder = encoder?;
        let Encoder { partitions, codebook, .. } = encoder;
        let rejects = rejects.map(Rejects::finish).transpose()?;
        let origins = origins.map(Origins::finish);
        let partitions = partitions.finish();
        Ok(Mapped { partitions, found: reviews.finish(), codebook, rejects, origins })
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
            sample: mapping.sample,
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
    sample: sample::Sample,
    seed: u64,
    words: Vec<Span>,
    found: Vec<Coded>,
}

impl Encoder<'_> {
    #[inline]
    fn add(&mut self, text: &[u8], stars: u8) -> Result<()> {
        let (hash, check) = (text_hash(text), xxh3_64_with_seed(text, self.seed));
        // A text outside the sample is only counted, which needs none of its words.
        let mut n_found = 0;
        if self.sample.keeps(hash) {
            let n_words = words_of(text, &mut self.words);
            n_found = self.codebook.look_up(text, &self.words[..n_words], &mut self.found);
        }
        let found = &self.found[..n_found];
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

//! Converts lines into encoded reviews in partitions, on several threads.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use corpus::cleaned::{CleanedReviews, Review};
use corpus::digest::text_hash;
use corpus::sample;
use corpus::words::{CountedWord, Dictionary, Span, find_words, room};
use making::ProgressBars;
use reading::{InputFindings, Reviews};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Result;
use crate::codebook::{Agreement, Codebook};
use crate::encoded::{Coded, REVIEW_BYTES, words_bytes, write_review};
use crate::job::Job;
use crate::origins::{Origins, StoredOrigins};
use crate::partitions::{Partition, Partitions};
use crate::rejects::{Rejects, StoredRejects};

/// The sample of texts for the codebook takes 1/`SAMPLE_PART` of the memory, for all threads together.
const SAMPLE_PART: usize = 16;
/// A larger sample does not improve the codebook.
const SAMPLE_BYTES_MAX: usize = 48 << 20;
/// The origins of reviews take 1/`ORIGINS_PART` of the memory for stored reviews and rows.
const ORIGINS_PART: usize = 4;
/// Number of reviews between two updates of the progress by a thread.
const REVIEWS_SHOWN: u64 = 1 << 12;

/// Shared by all threads that map.
struct Mapping<'a> {
    job: &'a Job<'a>,
    agreement: Agreement<'a>,
    /// Number of reviews read so far, for a progress bar.
    reviews: AtomicU64,
    /// The seed of the check.
    seed: u64,
}

/// The result of one thread.
pub struct Mapped {
    /// Its reviews.
    pub partitions: Vec<Partition>,
    /// What it has found in its lines.
    pub found: InputFindings,
    /// The codebook of all threads.
    pub codebook: Arc<Codebook>,
    /// The bad lines, if they are collected.
    pub rejects: Option<StoredRejects>,
    /// The origins of reviews, if they are collected.
    pub origins: Option<StoredOrigins>,
}

/// Reads all lines on all threads.
pub fn map(job: &Job<'_>, progress: &ProgressBars) -> Result<Vec<Mapped>> {
    let stop_words = &job.options.settings.stop_words;
    let mapping = Mapping {
        job,
        agreement: Agreement::among(job.threads(), stop_words, job.options.stored_words(), &job.stopped),
        reviews: AtomicU64::new(0),
        seed: RandomState::new().hash_one(0),
    };
    let (bar, begin) = (progress.reading(job.reading.bytes()), Instant::now());
    let mapped = job.in_threads(
        || mapping.run(),
        || {
            let reviews_per_s =
                mapping.reviews.load(Ordering::Relaxed) as f64 / begin.elapsed().as_secs_f64();
            bar.set_message(format!("reading, {reviews_per_s:.0} reviews/s"));
            bar.set_position(job.reading.bytes_read());
        },
    );
    bar.finish_and_clear();
    mapped
}

impl Mapping<'_> {
    /// Maximum size in bytes of a thread's sample of texts, and separately of the dictionary that counts its words.
    fn sample_bytes(&self) -> usize {
        (self.job.options.memory_bytes / SAMPLE_PART).min(SAMPLE_BYTES_MAX) / self.job.threads()
    }

    /// The memory of a thread for the origins of reviews, if they are collected.
    fn origins_bytes(&self) -> Option<usize> {
        let Job { options, scratch, .. } = self.job;
        options.origins.as_ref().map(|_| scratch.held_max() / ORIGINS_PART / self.job.threads())
    }

    /// Runs the work of one thread.
    fn run(&self) -> Result<Mapped> {
        let Job { reading, options, scratch, .. } = self.job;
        let rules = options.settings.rules().expect("the flags set rules of this program");
        let mut reviews = Reviews::of(reading, CleanedReviews::of(options.format.clone(), rules));
        let mut rejects = options.rejects.as_ref().map(|_| Rejects::new(scratch));
        let partitions = self.origins_bytes().map(|bytes| Partitions::holding(scratch, bytes));
        let mut origins = partitions.map(Origins::new);
        let mut state = ThreadState::Sampling(SampledTexts::new(self.agreement.dropped()));
        let mut n_reviews = 0_u64;
        let read: Result<()> = reading.each(|entry| {
            if let Some(origins) = &mut origins {
                origins.count(&entry);
            }
            reviews.read(&entry, |entry, read| {
                match read {
                    Ok(Review { text, rating, .. }) => {
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
enum ThreadState<'a> {
    Sampling(SampledTexts),
    Encoding(Encoder<'a>),
}

impl<'a> ThreadState<'a> {
    #[inline]
    fn add(&mut self, mapping: &Mapping<'a>, text: &[u8], stars: u8) -> Result<()> {
        match self {
            Self::Encoding(encoder) => encoder.add(text, stars),
            Self::Sampling(sample) => {
                sample.add(text, stars);
                if sample.texts.len().max(sample.dictionary.memory_bytes()) >= mapping.sample_bytes() {
                    let sample = std::mem::replace(sample, SampledTexts::new(&[]));
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
struct SampledTexts {
    texts: Vec<u8>,
    /// The end and the rating of each text.
    entries: Vec<(usize, u8)>,
    dictionary: Dictionary,
    words: Vec<Span>,
    counted: Vec<CountedWord>,
}

impl SampledTexts {
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
        let Job { options, scratch, .. } = mapping.job;
        let held_max =
            scratch.held_max() / mapping.job.threads() - mapping.origins_bytes().unwrap_or_default();
        let mut encoder = Encoder {
            codebook,
            partitions: Partitions::holding(scratch, held_max),
            sample: options.settings.sample,
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

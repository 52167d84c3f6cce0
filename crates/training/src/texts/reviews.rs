//! Reads entries with a text and a rating, in every format of reviews. The label of a text is the class of its rating, or
//! the value of a field.

use std::num::NonZeroUsize;
use std::thread;

use classifiers::Texts;
use corpus::cleaned::{CleanedReviews, Review};
use corpus::lines::LINE_BYTES_MAX;
use reading::{InputEntry, InputFindings, Judgement, Reading, ReadingOptions, Reviews, Source};

use crate::texts::chunks::{STREAMS_MAX, check_sources, chunk_number};
use crate::texts::division::{BuiltByThread, SplitBuilders, ThreadSplits};
use crate::texts::error::{Result, TextsError};
use crate::texts::labels::in_order_of;
use crate::texts::{Ledger, Lines};

/// The advice for lines that are bad for no common reason.
const LISTING: &str = "write them to a file with --rejects of sentimill";

/// Memory for record batches of Arrow files.
pub(crate) const BATCHES_BYTES: usize = 128 << 20;

pub(crate) fn read(
    sources: Vec<Source>,
    lines: &Lines,
    builders: &SplitBuilders,
    tell: &mut impl FnMut(&str),
) -> Result<(Vec<Texts>, Ledger)> {
    check_sources(sources.len())?;
    let options = ReadingOptions {
        format: lines.format.clone(),
        encoding: lines.encoding,
        line_bytes_max: LINE_BYTES_MAX,
        threads: lines.threads,
        streams_max: NonZeroUsize::new(STREAMS_MAX).unwrap_or(NonZeroUsize::MIN),
        batches_bytes: BATCHES_BYTES,
        columns: reading::KeptColumns::OfFields,
    };
    let input = Reading::start(sources, &options)?;
    let mut found = InputFindings::default();
    let (mut not_labelled, mut built) = (0, Vec::new());
    for thread in in_threads(&input, lines, builders)? {
        found.add(&thread.found);
        not_labelled += thread.not_labelled;
        built.push(thread.built);
    }
    let Judgement { notices, counts } = found.judged(&input, lines.limits, LISTING);
    notices.iter().for_each(|notice| tell(notice));
    let counts = counts?;
    if not_labelled == counts.reviews {
        return Err(TextsError::NoClass { n_reviews: counts.reviews });
    }
    let (texts, _) = builders.merge(built)?;
    let names = if lines.format.has_labels() { Vec::new() } else { lines.labels.names() };
    let texts = texts.into_iter().map(|texts| in_order_of(names.clone(), texts)).collect();
    Ok((texts, Ledger::Reviews { lines: counts, not_labelled }))
}

/// What one thread has read.
struct ReadByThread {
    built: BuiltByThread,
    found: InputFindings,
    not_labelled: u64,
}

/// Reads the whole input. Returns the results of all threads, or the first error.
fn in_threads(input: &Reading, lines: &Lines, builders: &SplitBuilders) -> Result<Vec<ReadByThread>> {
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..lines.threads.get() {
            let work = || Thread::new(input, lines, builders).run();
            match thread::Builder::new().spawn_scoped(scope, work) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    input.stop();
                    return Err(TextsError::Thread(error));
                }
            }
        }
        // A panic continues here: the other threads were stopped.
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().expect("a thread does not panic");
        threads.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    })
}

struct Thread<'a> {
    input: &'a Reading,
    lines: &'a Lines,
    reviews: Reviews,
    builders: ThreadSplits<'a>,
    /// Source, group and number of the entry that would continue the current chunk.
    next: Option<(usize, usize, u64)>,
    names: Vec<&'a [u8]>,
    not_labelled: u64,
}

impl<'a> Thread<'a> {
    fn new(input: &'a Reading, lines: &'a Lines, builders: &'a SplitBuilders) -> Self {
        let format = lines.format.clone();
        let reviews = match builders.reading().words.rules() {
            Some(rules) => CleanedReviews::of(format, rules),
            None => CleanedReviews::as_written(format),
        };
        Self {
            input,
            lines,
            reviews: Reviews::of(input, reviews),
            builders: builders.of_thread(),
            next: None,
            names: lines.labels.names().into_iter().map(str::as_bytes).collect(),
            not_labelled: 0,
        }
    }

    fn run(mut self) -> Result<ReadByThread> {
        let input = self.input;
        input.each(|entry| self.add(&entry))?;
        Ok(ReadByThread {
            built: self.builders.finish(),
            found: self.reviews.finish(),
            not_labelled: self.not_labelled,
        })
    }

    fn add(&mut self, entry: &InputEntry<'_>) -> Result<()> {
        let (source, (group, offset)) = (entry.place.source, entry.place.within());
        if self.next != Some((source, group, entry.number)) {
            // A source has groups, or positions that are counted in the whole source.
            let position = if group > 0 { group as u64 } else { offset };
            self.builders.begin(chunk_number(source, position))?;
        }
        self.next = Some((source, group, entry.number + 1));
        let Self { lines, reviews, builders, names, not_labelled, .. } = self;
        reviews.read(entry, |_, read| {
            let Ok(Review { text, rating, label }) = read else { return Ok(()) };
            let of_rating = || lines.labels.label(rating.stars()).map(|label| names[usize::from(label)]);
            match label.or_else(of_rating) {
                Some(label) => {
                    if let Some(split) = builders.index(text) {
                        builders.builder(split).add_line(text, &[label])?;
                    }
                }
                None => *not_labelled += 1,
            }
            Ok(())
        })
    }
}

//! Converts entries into reviews and counts each entry once. The counts of all threads decide whether the input is
//! accepted.

use corpus::cause;
use corpus::classes::FoundValues;
use corpus::cleaned::{CleanedReviews, Review};
use corpus::encoding::Invalid;
use corpus::judgement::{Refusal, Seen, TOLD, WithoutReview, invalid_utf8, judge, other_labels};
use corpus::ledger::{Limits, MapperCounts, NoReview};
use corpus::lines::Line;
use corpus::rejects::Content;
use program::threads::locked;

use crate::class_folders::class_folders;
use crate::dialects::FoundTables;
use crate::entry::{InputEntry, InputPlace};
use crate::options::ReadingOptions;
use crate::reading::Reading;

/// Converts the entries that one thread visits.
#[derive(Debug)]
pub struct Reviews {
    reviews: CleanedReviews,
    found: InputFindings,
    /// Whether a line has a list of reviews.
    has_list: bool,
}

/// What threads have found in the input.
#[derive(Clone, Debug, Default)]
pub struct InputFindings {
    /// Each entry is counted once.
    pub counts: MapperCounts,
    /// The first bad lines of each reason.
    told: Told,
    /// The classes without a rating.
    unrated: FoundValues,
    /// Lines of fastText's format with other labels for `ngrams train`.
    other_labels: u64,
    /// The lines that are not UTF-8.
    invalid: Invalid,
    /// What each source contains, by index of the source.
    held: Vec<SourceFindings>,
    /// The beginning of the first line, and the position of this line.
    beginning: Option<(InputPlace, Vec<u8>)>,
}

/// What was found in a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SourceFindings {
    /// Whether there is a line or row.
    any: bool,
    /// Whether there is a line that is not blank.
    lines: bool,
    /// Whether there is a review.
    reviews: bool,
}

/// The first few bad lines of each reason.
#[derive(Clone, Debug, Default)]
struct Told(Vec<(&'static str, InputPlace)>);

/// The decision about an input.
#[derive(Debug)]
pub struct Judgement {
    /// Messages to print in any case: the first bad lines, and warnings.
    pub notices: Vec<String>,
    /// The counts, if the input is accepted.
    pub counts: Result<MapperCounts, Refusal>,
}

impl Reviews {
    /// Starts without any entry of these sources.
    pub fn of(reading: &Reading, reviews: CleanedReviews) -> Self {
        let held = vec![SourceFindings::default(); reading.sources().len()];
        let has_list = reading.options.format.has_list();
        Self { reviews, found: InputFindings { held, ..InputFindings::default() }, has_list }
    }

    /// Passes on the text and the rating of an entry, or the reason why it has none. Of a line with a list of reviews, each
    /// element is passed on, with the entry that it is: its number is that of the line.
    #[inline]
    pub fn read<E>(
        &mut self,
        entry: &InputEntry<'_>,
        mut visit: impl FnMut(&InputEntry<'_>, Result<Review<'_>, NoReview>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { reviews, found, has_list } = self;
        if found.counts.lines == 0 {
            let beginning = match entry.what {
                Content::Line(line) => cause::beginning(line),
                Content::Row { .. } => &[],
            };
            found.beginning = Some((entry.place, beginning.to_vec()));
        }
        let mut count_and_visit = |entry: &InputEntry<'_>, read: Result<Review<'_>, NoReview>| {
            found.count(entry, read.as_ref().err().copied());
            visit(entry, read)
        };
        let read = match entry.what {
            Content::Line(content) if *has_list => {
                let (group, offset) = entry.place.within();
                return reviews.each(Line { offset, content }, |element, read| {
                    let place = InputPlace::in_group(entry.place.source, group, element.offset);
                    let what = Content::Line(element.content);
                    count_and_visit(&InputEntry { place, what, ..*entry }, read)
                });
            }
            Content::Line(line) => match entry.columns {
                None => reviews.read(line),
                Some(columns) => reviews.read_record(line, columns),
            },
            Content::Row { text, rating } => reviews.read_row(text, rating),
        };
        count_and_visit(entry, read)
    }

    /// Returns what this thread has found.
    pub fn finish(self) -> InputFindings {
        let mut found = self.found;
        let parser = self.reviews.parser();
        found.unrated = parser.found_values();
        found.other_labels = parser.other_labels();
        found.invalid = parser.invalid().clone();
        found
    }
}

impl InputFindings {
    #[inline]
    fn count(&mut self, entry: &InputEntry<'_>, refused: Option<NoReview>) {
        self.counts.lines += 1;
        match refused {
            None => {
                self.counts.reviews += 1;
                self.held[entry.place.source] = SourceFindings { any: true, lines: true, reviews: true };
            }
            Some(reason) => self.refuse(reason, entry),
        }
    }

    #[cold]
    fn refuse(&mut self, reason: NoReview, entry: &InputEntry<'_>) {
        let held = &mut self.held[entry.place.source];
        held.any = true;
        held.lines |= reason != NoReview::Blank;
        self.counts.count(reason);
        if reason.is_bad() {
            self.told.add(reason.counter(), entry.place);
        }
    }

    /// Adds what another thread has found in the same sources.
    pub fn add(&mut self, other: &Self) {
        self.counts += other.counts;
        self.told.merge(&other.told);
        self.unrated.merge(&other.unrated);
        self.other_labels += other.other_labels;
        self.invalid.merge(&other.invalid);
        self.held.resize(self.held.len().max(other.held.len()), SourceFindings::default());
        for (held, other) in self.held.iter_mut().zip(&other.held) {
            held.any |= other.any;
            held.lines |= other.lines;
            held.reviews |= other.reviews;
        }
        let first = self.beginning.iter().chain(&other.beginning).min();
        self.beginning = first.cloned();
    }

    /// Accepts or refuses the input, after all of it was read. `listing` is the advice for lines that are bad for no
    /// common reason: how the program lists them.
    pub fn judged(mut self, reading: &Reading, limits: Limits, listing: &str) -> Judgement {
        let &ReadingOptions { ref format, encoding, .. } = &reading.options;
        let FoundTables { n_lines, mut notices, .. } = reading.tables();
        self.counts.table_lines = n_lines;
        self.invalid.merge(&locked(&reading.state.invalid));
        self.counts.invalid_utf8 = self.invalid.lines;
        notices.extend(self.bad_lines(reading));
        let beginning = self.beginning.as_ref().map_or(&[][..], |(_, beginning)| beginning);
        let program = cause::Program { listing, of_tables: "" };
        let of_lines = || cause::likely(&self.counts, beginning, format, &self.unrated, program);
        let of_folders = || class_folders(reading.sources()).filter(|_| self.counts.reviews == 0);
        let packed = input::remedy(beginning).or_else(of_folders);
        let seen =
            Seen { values: &self.unrated, invalid: &self.invalid, encoding, packed: packed.as_deref() };
        let judged = judge(&self.counts, &seen, limits, of_lines);
        notices.extend(self.without_review(reading).notices(&self.counts));
        if judged.is_ok() {
            let dropped = self.unrated.described(format);
            notices.extend(invalid_utf8(&self.counts, encoding).into_iter().chain(dropped));
        }
        notices.extend(other_labels(self.other_labels, &self.counts));
        Judgement { notices, counts: judged.map(|()| self.counts) }
    }

    /// The first bad lines of each reason: `reviews.json:12: no_text (byte 381)`, without a line number where the source
    /// cannot be read again.
    fn bad_lines(&self, reading: &Reading) -> Vec<String> {
        let mut messages = Vec::new();
        let lines = self.told.in_order();
        for of_source in lines.chunk_by(|(one, _), (other, _)| one.source == other.source) {
            let source = of_source[0].0.source;
            let name = &reading.sources()[source].name;
            let offsets: Vec<u64> = of_source.iter().map(|(place, _)| reading.offset(*place)).collect();
            let (counted, numbers) = match reading.has_rows(source) {
                true => ("row", None),
                false => ("byte", reading.line_numbers(source, &offsets)),
            };
            for (at, (_, reason)) in of_source.iter().enumerate() {
                let line = numbers.as_ref().map_or(String::new(), |numbers| format!(":{}", numbers[at]));
                messages.push(format!("{name}{line}: {reason} ({counted} {})", offsets[at]));
            }
        }
        messages
    }

    /// The sources that have lines but no review.
    fn without_review(&self, reading: &Reading) -> WithoutReview {
        let mut without = WithoutReview::default();
        for (source, held) in reading.sources().iter().zip(&self.held) {
            match held {
                SourceFindings { any: false, .. } => without.add_empty(&source.name),
                SourceFindings { lines: true, reviews: false, .. } => without.add(&source.name),
                _ => {}
            }
        }
        without
    }
}

impl Told {
    /// Adds a line, and drops the lines that are no longer among the first ones of their reason.
    fn add(&mut self, reason: &'static str, place: InputPlace) {
        self.0.push((reason, place));
        self.0.sort_unstable();
        let mut so_far = ("", 0);
        self.0.retain(|&(reason, _)| {
            so_far = if so_far.0 == reason { (reason, so_far.1 + 1) } else { (reason, 1) };
            so_far.1 <= TOLD
        });
    }

    /// Adds the lines of another thread.
    fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|&(reason, place)| self.add(reason, place));
    }

    /// The lines in order, with their reasons.
    fn in_order(&self) -> Vec<(InputPlace, &'static str)> {
        let mut lines: Vec<_> = self.0.iter().map(|&(reason, place)| (place, reason)).collect();
        lines.sort_unstable();
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::Arc;

    use arrow_array::{Float64Array, RecordBatch, StringArray};
    use arrow_ipc::writer::FileWriter;
    use corpus::clean::Rules;
    use corpus::encoding::UTF_8;
    use corpus::format::Format;
    use store::S3Options;

    use super::*;
    use crate::{Error, find};

    #[test]
    fn a_row_that_is_too_long_is_reported_as_a_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        let rows = RecordBatch::try_from_iter([
            ("reviewText", Arc::new(StringArray::from(vec!["short", "longer"])) as _),
            ("overall", Arc::new(Float64Array::from(vec![5.0, 5.0])) as _),
        ]);
        let rows = rows.unwrap();
        let mut writer = FileWriter::try_new(Vec::new(), &rows.schema()).unwrap();
        writer.write(&rows).unwrap();
        std::fs::write(&path, writer.into_inner().unwrap()).unwrap();
        let name = path.to_str().unwrap().to_owned();
        let sources = find(std::slice::from_ref(&name), &S3Options::default()).unwrap();
        let options = ReadingOptions {
            format: Format::default(),
            encoding: UTF_8,
            line_bytes_max: 5,
            threads: NonZeroUsize::MIN,
            streams_max: NonZeroUsize::MIN,
            batches_bytes: 1 << 20,
            columns: crate::KeptColumns::OfFields,
        };
        let reading = Reading::start(sources, &options).unwrap();
        let mut reviews = Reviews::of(&reading, CleanedReviews::of(Format::default(), Rules::Letters));
        let visit = |entry: InputEntry<'_>| reviews.read(&entry, |_, _| Ok::<_, Error>(()));
        reading.each(visit).unwrap();
        let messages = reviews.finish().bad_lines(&reading);
        assert_eq!(messages, [format!("{name}: line_too_long (row 1)")]);
    }

    #[test]
    fn the_first_bad_lines_of_each_reason_are_reported_in_order() {
        let line = |offset| InputPlace::at(0, offset);
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

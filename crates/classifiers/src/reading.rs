//! Reads a file of fastText's format in several threads.
//!
//! The file is divided into chunks. A line belongs to the chunk in which it starts. Each thread takes the next chunk
//! and numbers its words, so the texts do not depend on the number of threads.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use corpus::lines::without_mark;
use corpus::words::Span;
use program::threads::spawn;

use crate::builder::{Builders, Reading, TextsBuilder};
use crate::error::{Error, Result};
use crate::texts::Texts;
use crate::words::{END, Words};

/// Size of a chunk in bytes.
const CHUNK_BYTES: u64 = 1 << 20;
/// Maximum length of a line in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 24;

/// Reads a regular file of fastText's format: a line is a text, and its words with the label prefix are its labels.
///
/// # Errors
/// If the file cannot be read, a line is too long, there are too many labels, or the temporary file fails.
pub fn read_fasttext_file(path: &Path, threads: usize, reading: Reading) -> Result<Texts> {
    read_chunks(path, threads, reading, CHUNK_BYTES)
}

/// As [`read_fasttext_file`], with chunks of another size.
pub(crate) fn read_chunks(path: &Path, threads: usize, reading: Reading, chunk_bytes: u64) -> Result<Texts> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let n_bytes = file.metadata().map_err(failed)?.len();
    let n_chunks = n_bytes.div_ceil(chunk_bytes);
    let builders = Builders::new(reading);
    let next = AtomicU64::new(0);
    let read = || {
        let mut chunks = Chunks { path, file: &file, n_bytes, chunk_bytes, buffer: Vec::new() };
        let mut builder = builders.builder();
        loop {
            let chunk = next.fetch_add(1, Relaxed);
            if chunk >= n_chunks {
                return Ok(builder);
            }
            builder.begin(chunk)?;
            add_lines(&mut builder, chunks.lines(chunk)?)?;
        }
    };
    let built: Result<Vec<_>> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads.max(1)).map(|_| spawn(scope, read)).collect();
        let first = std::iter::once(read());
        first.chain(others.into_iter().map(|thread| thread.join().expect("no panic"))).collect()
    });
    builders.merge(built?)
}

struct Chunks<'a> {
    path: &'a Path,
    file: &'a File,
    n_bytes: u64,
    chunk_bytes: u64,
    buffer: Vec<u8>,
}

impl Chunks<'_> {
    /// The lines that start in a chunk.
    fn lines(&mut self, chunk: u64) -> Result<&[u8]> {
        let failed = |source| Error::Read { path: self.path.to_owned(), source };
        // The byte before the chunk decides whether a line starts at its first byte.
        let from = (chunk * self.chunk_bytes).saturating_sub(1);
        let chunk_end = ((chunk + 1) * self.chunk_bytes).min(self.n_bytes);
        self.buffer.clear();
        read_more(self.file, &mut self.buffer, from, (chunk_end - from) as usize).map_err(failed)?;
        let skipped = match chunk {
            0 => 0,
            _ => match position(&self.buffer, b'\n') {
                Some(at) => at + 1,
                None => return Ok(&[]),
            },
        };
        if skipped as u64 + from >= chunk_end {
            return Ok(&[]);
        }
        // The last line ends in a later chunk, unless the chunk ends with it.
        let line = self.buffer.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        while self.buffer.last() != Some(&b'\n') && from + (self.buffer.len() as u64) < self.n_bytes {
            let n_read = self.buffer.len();
            let more = (self.n_bytes - from - n_read as u64).min(1 << 16) as usize;
            read_more(self.file, &mut self.buffer, from + n_read as u64, more).map_err(failed)?;
            if let Some(at) = position(&self.buffer[n_read..], b'\n') {
                self.buffer.truncate(n_read + at + 1);
            }
            if self.buffer.len() - line > LINE_BYTES_MAX {
                let (path, from) = (self.path.to_owned(), from + line as u64);
                return Err(Error::LongLine { path, from, max: LINE_BYTES_MAX });
            }
        }
        Ok(&self.buffer[skipped..])
    }
}

fn read_more(file: &File, buffer: &mut Vec<u8>, from: u64, n_bytes: usize) -> io::Result<()> {
    let n_read = buffer.len();
    buffer.resize(n_read + n_bytes, 0);
    file.read_exact_at(&mut buffer[n_read..], from)
}

fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|&other| other == byte)
}

/// Adds lines of fastText's format to a builder. Each line ends with a line feed, except the last one. A byte-order mark
/// at the start of a line is skipped.
///
/// # Errors
/// If the temporary file cannot be written.
pub fn add_lines(builder: &mut TextsBuilder, lines: &[u8]) -> Result<()> {
    let prefix = builder.reading.label_prefix.clone();
    let is_fasttext = builder.reading.words == Words::Spaces;
    let mut found = LineSpans::default();
    let start = |at: usize| lines.len() - without_mark(&lines[at..]).len();
    let mut line_from = start(0);
    let mut from = line_from;
    for (begin, block) in (0..).step_by(64).zip(lines.chunks(64)) {
        let mut spaces = spaces(block);
        while spaces != 0 {
            let to = begin + spaces.trailing_zeros() as usize;
            spaces &= spaces - 1;
            found.add(lines, from, to, &prefix, is_fasttext);
            from = to + 1;
            if lines[to] == b'\n' {
                found.end_line(builder, lines, line_from..to, is_fasttext)?;
                from = start(from);
                line_from = from;
            }
        }
    }
    if line_from < lines.len() {
        found.add(lines, from, lines.len(), &prefix, is_fasttext);
        found.end_line(builder, lines, line_from..lines.len(), is_fasttext)?;
    }
    Ok(())
}

/// Words and labels of a line.
#[derive(Default)]
struct LineSpans {
    words: Vec<Span>,
    labels: Vec<Span>,
    /// Whether the text ended before the line.
    is_ended: bool,
    /// Whether a label follows a word.
    has_label_inside: bool,
    /// The text of such a line.
    text: Vec<u8>,
}

impl LineSpans {
    #[inline(always)]
    fn add(&mut self, lines: &[u8], from: usize, to: usize, prefix: &[u8], is_fasttext: bool) {
        if from == to || self.is_ended {
            return;
        }
        let word = &lines[from..to];
        let may_be_label = prefix.first().is_none_or(|first| word[0] == *first);
        if may_be_label && let Some(label) = word.strip_prefix(prefix).filter(|label| !label.is_empty()) {
            let length = label.len() as u32;
            self.has_label_inside |= !self.words.is_empty();
            return self.labels.push(Span { from: to as u32 - length, length });
        }
        if is_fasttext && word == END {
            self.is_ended = true;
            return;
        }
        self.words.push(Span { from: from as u32, length: (to - from) as u32 });
    }

    /// The words of a line, separated by spaces.
    fn join_words(&mut self, lines: &[u8]) -> &[u8] {
        self.text.clear();
        for word in &self.words {
            self.text.extend_from_slice(word.of(lines));
            self.text.push(b' ');
        }
        &self.text
    }

    fn end_line(
        &mut self,
        builder: &mut TextsBuilder,
        lines: &[u8],
        line: Range<usize>,
        is_fasttext: bool,
    ) -> Result<()> {
        // A label at the head begins behind its prefix.
        let head = line.start + builder.reading.label_prefix.len();
        builder.counts.n_other_labels += u64::from(match self.labels[..] {
            [] => false,
            [Span { from, .. }] => from as usize != head,
            _ => true,
        });
        if is_fasttext {
            builder.add_spans(lines, &self.words, Some(END), &self.labels)?;
        } else {
            let from = self.words.first().map_or(line.end, |word| word.from as usize);
            let labels: Vec<_> = self.labels.iter().map(|label| label.of(lines)).collect();
            let text = match self.has_label_inside {
                true => self.join_words(lines),
                false => &lines[from..line.end],
            };
            builder.add_line(text, &labels)?;
        }
        self.has_label_inside = false;
        self.words.clear();
        self.labels.clear();
        self.is_ended = false;
        Ok(())
    }
}

/// The white space of at most 64 bytes, as a mask: bit i describes byte i. Processes eight bytes at a time.
#[inline]
fn spaces(block: &[u8]) -> u64 {
    let mut padded = [b'a'; 64];
    let block = match block.first_chunk::<64>() {
        Some(block) => block,
        None => {
            padded[..block.len()].copy_from_slice(block);
            &padded
        }
    };
    const ONES: u64 = u64::MAX / 255;
    const LOW: u64 = ONES * 0x7f;
    // The product moves the lowest bit of byte i to bit 56 + i, and no two bits collide.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    block.as_chunks::<8>().0.iter().rev().fold(0, |mask, &bytes| {
        let bytes = u64::from_le_bytes(bytes);
        // The highest bit of each byte states a comparison of the byte.
        let low = bytes & LOW;
        let is_control = (low + ONES * (0x80 - 9)) & !(low + ONES * (0x80 - 14)) & !bytes;
        let is_not_zero = (low + LOW) | bytes;
        let other = bytes ^ (ONES * b' ' as u64);
        let is_not_space = ((other & LOW) + LOW) | other;
        let is_space = is_control | !(is_not_zero & is_not_space);
        mask << 8 | (is_space >> 7 & ONES).wrapping_mul(GATHER) >> 56
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;
    use crate::texts::{Block, Counts};
    use crate::words::is_space;

    /// Texts of a file as words and labels, with the counts.
    type Seen = (Vec<(Vec<String>, Vec<String>)>, Counts);

    fn seen(texts: &Texts) -> Seen {
        let mut all = Vec::new();
        let mut scratch = Block::default();
        let dictionary = &texts.dictionary;
        let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for index in 0..texts.n_blocks() {
            for text in texts.block(index, &mut scratch).unwrap().texts() {
                let words = text.words().map(|word| match word {
                    Ok(word) => string(dictionary.name(word)),
                    Err(hash) => hash.to_string(),
                });
                let labels = text.labels.iter().map(|&label| string(dictionary.labels().get(label)));
                all.push((words.collect(), labels.collect()));
            }
        }
        (all, texts.counts())
    }

    fn read(lines: &[u8], threads: usize, reading: Reading, chunk_bytes: u64) -> Texts {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(lines).unwrap();
        read_chunks(file.path(), threads, reading, chunk_bytes).unwrap()
    }

    fn naive(lines: &[u8]) -> Vec<(Vec<String>, Vec<String>)> {
        let text = String::from_utf8(lines.to_vec()).unwrap();
        let mut lines: Vec<&str> = text.split('\n').collect();
        if lines.last() == Some(&"") {
            lines.pop();
        }
        let split = lines.into_iter().map(|line| {
            let words: Vec<_> = line.split(|c: char| c.is_ascii() && is_space(c as u8)).collect();
            let words = words.into_iter().filter(|word| !word.is_empty()).take_while(|&word| word != "</s>");
            let (labels, mut words): (Vec<_>, Vec<_>) =
                words.map(str::to_owned).partition(|word| word.starts_with("__label__") && word.len() > 9);
            words.push("</s>".to_owned());
            (words, labels.iter().map(|label| label[9..].to_owned()).collect::<Vec<_>>())
        });
        split.filter(|(_, labels)| !labels.is_empty()).collect()
    }

    proptest! {
        #[test]
        fn any_split_between_threads_gives_the_same_texts(
            lines in "((__label__(a|b|cc)|a|b|notwithstandingness|notwithstandingnesses|é|</s>|__label__)( |\t|\r| \n|\n)){0,60}",
            words_max in 1usize..8, words_bytes_max in 0usize..40, count_min in 1u64..3,
        ) {
            let lines = lines.as_bytes();
            for (words_max, words_bytes_max) in [(words_max, 1000), (8, words_bytes_max), (1000, 1000)] {
                for memory_bytes in [0, 1 << 30] {
                    let limits = Reading { words_max, words_bytes_max, ..Reading::default() };
                    let reading = Reading { count_min, memory_bytes, ..limits };
                    let alone = read(lines, 1, reading.clone(), 1 << 20);
                    for (threads, chunk_bytes) in [(1, 7), (2, 1), (3, 16), (4, 33)] {
                        let texts = read(lines, threads, reading.clone(), chunk_bytes);
                        prop_assert_eq!(&alone.dictionary, &texts.dictionary);
                        prop_assert_eq!(seen(&alone), seen(&texts));
                    }
                    prop_assert!(alone.dictionary.n_words() <= words_max);
                    prop_assert!(alone.dictionary.words().n_bytes() <= words_bytes_max);
                    if words_max > 8 && count_min == 1 {
                        prop_assert_eq!(seen(&alone).0, naive(lines));
                    }
                    prop_assert_eq!(alone.is_in_memory(), memory_bytes > 0 || alone.n_texts() == 0);
                }
            }
        }

        #[test]
        fn white_space_is_distinguished_from_all_other_bytes(block in prop::collection::vec(any::<u8>(), 0..65)) {
            let expected = block.iter().enumerate().map(|(i, &byte)| u64::from(is_space(byte)) << i);
            prop_assert_eq!(spaces(&block), expected.sum::<u64>());
        }
    }

    #[test]
    fn words_of_a_full_dictionary_and_rare_words_are_stored_by_their_hash() {
        let lines = b"__label__x one two three one\n__label__y four one two\n";
        let reading = Reading { words_max: 2, ..Reading::default() };
        let texts = read(lines, 1, reading, 1 << 20);
        let hash = |word: &str| crate::hash(word.as_bytes()).to_string();
        let (all, counts) = seen(&texts);
        assert_eq!(
            all[0].0,
            ["one".to_owned(), "two".to_owned(), hash("three"), "one".to_owned(), hash("</s>")]
        );
        assert_eq!(all[1].0, [hash("four"), "one".to_owned(), "two".to_owned(), hash("</s>")]);
        assert_eq!((counts.n_tokens, counts.n_unknown), (9, 4));
        assert_eq!((texts.dictionary.count(0), texts.dictionary.count(1)), (3, 2));

        let texts = read(lines, 1, Reading { count_min: 2, ..Reading::default() }, 1 << 20);
        assert_eq!(texts.dictionary.words().iter().collect::<Vec<_>>(), [&b"one"[..], b"</s>", b"two"]);
        assert_eq!(seen(&texts).0[1].0[0], hash("four"));
    }

    #[test]
    fn lines_without_a_label_are_counted_and_skipped() {
        let lines = b"__label__a __label__b\n\nno label\n__label__a x y __label__c";
        let texts = read(lines, 2, Reading::default(), 1 << 20);
        let (all, counts) = seen(&texts);
        let text = |words: &[&str], labels: &[&str]| {
            (
                words.iter().map(|&word| word.to_owned()).collect(),
                labels.iter().map(|&word| word.to_owned()).collect(),
            )
        };
        assert_eq!(all, [text(&["</s>"], &["a", "b"]), text(&["x", "y", "</s>"], &["a", "c"])]);
        assert_eq!(
            counts,
            Counts { n_texts: 2, n_empty: 0, n_unlabelled: 2, n_tokens: 4, n_unknown: 0, n_other_labels: 2 }
        );
        assert_eq!((texts.dictionary.label(b"a"), texts.dictionary.label_count(0)), (Some(0), 2));
    }

    #[test]
    fn a_byte_order_mark_at_the_start_of_a_line_is_skipped() {
        let lines =
            "\u{feff}__label__a x\n__label__b y\n\u{feff}__label__a x\n__label__b \u{feff}y\n\u{feff}";
        let plain = lines.replace("\n\u{feff}", "\n").replacen('\u{feff}', "", 1);
        for words in [Words::Spaces, Words::Punctuation, Words::Cleaned] {
            for chunk_bytes in [7, 1 << 20] {
                let of = |lines: &str| {
                    let reading = Reading { words, ..Reading::default() };
                    seen(&read(lines.as_bytes(), 2, reading, chunk_bytes))
                };
                assert_eq!(of(lines), of(&plain), "{words:?}");
                assert_eq!((of(lines).1.n_texts, of(lines).1.n_unlabelled), (4, 0));
            }
        }
    }

    #[test]
    fn lines_whose_label_is_not_one_at_their_head_are_counted() {
        let lines = "__label__a x\n__label__a __label__b x\nx __label__a\n __label__a x\n\u{feff}__label__a x\nx\n__label__a\n";
        for words in [Words::Spaces, Words::Punctuation] {
            let counts = read(lines.as_bytes(), 1, Reading { words, ..Reading::default() }, 1 << 20).counts();
            assert_eq!((counts.n_texts, counts.n_unlabelled, counts.n_other_labels), (6, 1, 3));
        }
    }

    #[test]
    fn texts_keep_their_keys_in_memory_and_in_a_file() {
        for memory_bytes in [0, 1 << 20] {
            let reading = Reading { has_keys: true, memory_bytes, ..Reading::default() };
            let builders = Builders::new(reading);
            let mut builder = builders.builder();
            for (key, lines) in
                [(u64::MAX - 1, "__label__a x\n"), (7, "no label\n"), (1 << 40, "__label__b y\n")]
            {
                builder.set_key(key);
                add_lines(&mut builder, lines.as_bytes()).unwrap();
            }
            let texts = builders.merge(vec![builder]).unwrap();
            let mut scratch = Block::default();
            let keys: Vec<_> = texts.block(0, &mut scratch).unwrap().texts().map(|text| text.key).collect();
            assert_eq!(keys, [Some(u64::MAX - 1), Some(1 << 40)]);
        }
    }

    #[test]
    fn a_file_can_be_split_as_punctuation_and_have_empty_texts() {
        let reading = Reading { words: Words::Punctuation, ..Reading::default() };
        let texts = read(b"__label__a Great, <br />Film!\n__label__b  \n", 1, reading, 1 << 20);
        let (all, counts) = seen(&texts);
        assert_eq!(all[0].0, ["great", ",", "film", "!"]);
        assert!(all[1].0.is_empty());
        assert_eq!((counts.n_texts, counts.n_empty), (2, 1));
    }

    #[test]
    fn a_line_that_does_not_fit_into_memory_is_an_error_with_its_position() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"__label__a x\n").unwrap();
        file.write_all(&vec![b'y'; LINE_BYTES_MAX + (1 << 18)]).unwrap();
        let error = read_fasttext_file(file.path(), 2, Reading::default()).unwrap_err().to_string();
        let expected = "the line at byte 13 is longer than 16777216 bytes; split it";
        assert_eq!(error, format!("{}: {expected}", file.path().display()));
    }

    #[test]
    fn a_missing_file_is_an_error_with_its_path() {
        let error = read_fasttext_file(Path::new("/no/such"), 2, Reading::default()).unwrap_err();
        assert_eq!(error.to_string(), "/no/such: cannot read lines: no such file or folder; check the path");
    }
}

//! Reads an input that ends: counts its words, and numbers those of its sentences.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::thread;

use corpus::encoding::UTF_8;
use embeddings::skipgram::{Sentences, Vocabulary, count, number};
use program::hexadecimal::encode;
use program::threads::spawn;
use reading::{Passed, Place, SequenceOptions, read_sequence};
use report::whole;
use sha2::{Digest, Sha256};
use training::places::is_dataset;
use training::tell::tell;
use training::{Error, Result};

use super::kept::Kept;
use super::lines::{Lines, each_row};
use super::out::CHUNK_BYTES;
use crate::arguments::Train;

/// A part of the sentences has at least this number of words. Threads take parts, and the order of their random numbers depends
/// on it.
const WORDS_PER_PART: usize = 1 << 15;
/// Chunks that wait between the thread that reads and the one that counts.
const CHUNKS_WAITING: usize = 4;

/// An input that was read.
pub(super) struct Input {
    pub vocabulary: Vocabulary,
    pub sentences: Kept,
    pub n_lines: u64,
}

impl Input {
    /// Reports its size. `more` follows the number of words.
    pub fn tell(&self, more: &str) {
        let Self { vocabulary, n_lines, .. } = self;
        let (n_tokens, n_words) = (vocabulary.n_tokens(), vocabulary.n_words() as u64);
        let (n_lines, n_tokens, n_words) = (whole(*n_lines), whole(n_tokens), whole(n_words));
        tell(&format!("{n_lines} lines with {n_tokens} tokens; {n_words} words{more}"));
    }
}

/// Reads the input, and refuses one without words.
pub(super) fn read(arguments: &Train) -> Result<Input> {
    let input = numbered(arguments)?;
    if input.vocabulary.n_words() == 0 {
        return Err(no_words(arguments));
    }
    Ok(input)
}

/// The error of an input without words.
pub(super) fn no_words(arguments: &Train) -> Error {
    let found = format!("no word occurs {} times", arguments.min_count);
    let remedy = "lower --min-count, or check --format";
    Error::useless_texts(arguments.input.join(" "), found, remedy)
}

/// The sentences of `--held-out` by the words of a vocabulary.
pub(super) fn held_out(arguments: &Train, vocabulary: &Vocabulary) -> Result<Sentences> {
    let of = Train { input: arguments.held_out.clone(), ..arguments.clone() };
    let mut sentences = Sentences::default();
    each_text(&of, |lines| {
        number(vocabulary, lines, &mut sentences);
        Ok(())
    })?;
    if sentences.n_words() == 0 {
        let (input, found) = (of.input.join(" "), "no word is in the vocabulary".to_owned());
        return Err(Error::useless_texts(input, found, "pass sentences of the same language and --format"));
    }
    Ok(sentences)
}

/// A digest of the words and their counts, in their order.
pub(super) fn digest_of(vocabulary: &Vocabulary) -> String {
    let mut digest = Sha256::new();
    for (word, count) in vocabulary.iter() {
        digest.update((word.len() as u64).to_le_bytes());
        digest.update(word);
        digest.update(count.to_le_bytes());
    }
    encode(&digest.finalize()[..8])
}

/// Counts and numbers the words of the input. If the vocabulary was full, the input is read again: numbers have changed.
fn numbered(arguments: &Train) -> Result<Input> {
    let mut vocabulary = Vocabulary::new(arguments.words_max);
    let mut parts = Parts::new(arguments.memory);
    let n_lines =
        each_text(arguments, |lines| parts.add(lines, |lines, to| count(&mut vocabulary, lines, to)))?;
    let (ranked, numbers) = vocabulary.ranked(arguments.min_count);
    if vocabulary.is_exact() {
        let sentences = parts.finish()?.renumber(|word| numbers[word as usize])?;
        return Ok(Input { vocabulary: ranked, sentences, n_lines });
    }
    drop((vocabulary, parts));
    let mut parts = Parts::new(arguments.memory);
    let (n_again, _) =
        each_line(arguments, |lines| parts.add(lines, |lines, to| number(&ranked, lines, to)))?;
    if n_again != n_lines {
        let found = format!("found {n_again} lines when it was read again, expected {n_lines}");
        let remedy = "do not change it while it is read";
        return Err(Error::useless_texts(arguments.input.join(" "), found, remedy));
    }
    Ok(Input { vocabulary: ranked, sentences: parts.finish()?, n_lines })
}

/// Sentences in parts of about equal numbers of words.
struct Parts {
    kept: Kept,
    last: Sentences,
}

impl Parts {
    fn new(memory: usize) -> Self {
        Self { kept: Kept::new(memory), last: Sentences::default() }
    }

    fn add(&mut self, lines: &[u8], add: impl FnOnce(&[u8], &mut Sentences)) -> Result<()> {
        add(lines, &mut self.last);
        if self.last.n_words() >= WORDS_PER_PART {
            self.kept.push(std::mem::take(&mut self.last))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Kept> {
        self.kept.push(self.last)?;
        Ok(self.kept)
    }
}

/// Passes the cleaned lines of the input to `add`, some at a time, and reports lines without a text. Returns the number of
/// lines.
fn each_text(arguments: &Train, add: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
    let (n_lines, lines) = each_line(arguments, add)?;
    lines.map_or(Ok(()), |mut lines| lines.check(arguments))?;
    Ok(n_lines)
}

/// As [`each_text`], without a report. Returns the counts of lines, too, if the input is not a dataset.
fn each_line(arguments: &Train, mut add: impl FnMut(&[u8]) -> Result<()>) -> Result<(u64, Option<Lines>)> {
    if let [place] = &arguments.input[..]
        && is_dataset(place)
    {
        return Ok((each_row(place, &arguments.storage.options(), add)?, None));
    }
    let options = SequenceOptions {
        inputs: arguments.input.clone(),
        s3: arguments.storage.options(),
        encoding: arguments.encoding.unwrap_or(UTF_8),
        follows: false,
        chunk_bytes: CHUNK_BYTES,
        keep: None,
    };
    let mut lines = Lines::of(arguments)?;
    let (sender, receiver) = sync_channel(CHUNKS_WAITING);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let read = spawn(scope, || {
            let pass = |passed| sender.send(passed).is_ok();
            let read = read_sequence(&options, &Place::default(), &stop, pass);
            drop(sender);
            read
        });
        let mut cleaned = Vec::new();
        let mut added = Ok(());
        for passed in receiver {
            match passed {
                Passed::Lines(chunk) => {
                    added = lines.clean(&chunk.lines, &mut cleaned).and_then(|()| add(&cleaned));
                }
                Passed::Skipped(skipped) => lines.skip(&skipped),
                Passed::Resumed(_) => {}
            }
            if added.is_err() {
                stop.store(true, Relaxed);
                break;
            }
        }
        read.join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            .map_err(training::texts::TextsError::from)?;
        added
    })?;
    Ok((lines.n_lines, Some(lines)))
}

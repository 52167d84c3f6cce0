//! Writes a training with its vocabulary and reads them back.
//!
//! Numbers are little-endian:
//!
//! ```text
//! "skipgrm2"                                    8 bytes
//! tokens trained, tokens counted, evicted words u64 each
//! dimension, words                              u32 each
//! per word: length u32, bytes, count u64
//! whether there is a sketch                     u8, then its counters, u32 each
//! per word: input vector, then output vector    dim × f32 each
//! buckets of character n-grams and rows of them u32 each, 0 without them
//! per row: bucket u32, then the row             dim × f32
//! length of the caller's bytes                  u32, then the bytes
//! digest of all bytes above                     u64, XXH3
//! ```

use std::io::{self, Read, Write};

use kernels::simd::Digested;

use crate::error::{Error, Result};
use crate::skipgram::training::{Buckets, SkipGramTraining};
use crate::skipgram::vocabulary::Vocabulary;

const MARK: &[u8; 8] = b"skipgrm2";
/// Longer words or places are damage.
const BYTES_MAX: usize = 1 << 28;
const DAMAGED: &str = "the file is damaged; use an older checkpoint or start again";

impl SkipGramTraining {
    /// Writes the training with its vocabulary, and with bytes of the caller: the place in the input. Buffer the output.
    ///
    /// # Errors
    /// If the output fails.
    pub fn save(&self, vocabulary: &Vocabulary, place: &[u8], output: &mut impl Write) -> Result<()> {
        self.write(vocabulary, place, output).map_err(|source| Error::WriteState { source })
    }

    fn write(&self, vocabulary: &Vocabulary, place: &[u8], output: &mut impl Write) -> io::Result<()> {
        let mut output = Digested::new(output);
        output.write_all(MARK)?;
        for n in [self.n_tokens(), vocabulary.n_tokens(), vocabulary.n_evicted()] {
            output.write_all(&n.to_le_bytes())?;
        }
        for n in [self.settings().dim, vocabulary.n_words()] {
            output.write_all(&(n as u32).to_le_bytes())?;
        }
        write_words(vocabulary, &mut output)?;
        for word in 0..vocabulary.n_words() as u32 {
            output.write_row(self.input(), word)?;
            output.write_row(self.output(), word)?;
        }
        let used = self.buckets().map(Buckets::used).unwrap_or_default();
        let n_buckets = self.settings().characters.map_or(0, |characters| characters.buckets);
        for n in [n_buckets, used.len() as u32] {
            output.write_all(&n.to_le_bytes())?;
        }
        if let Some(buckets) = self.buckets() {
            for (row, bucket) in (0..).zip(used) {
                output.write_all(&bucket.to_le_bytes())?;
                output.write_row(&buckets.rows, row)?;
            }
        }
        output.write_all(&(place.len() as u32).to_le_bytes())?;
        output.write_all(place)?;
        output.finish()
    }

    /// Reads a state into a new training of the same settings, whose rows were not trained. Returns the vocabulary, for at most `words_max` words, and
    /// the bytes of the caller.
    ///
    /// # Errors
    /// If the state is damaged or of other settings.
    pub fn restore(&mut self, words_max: usize, input: &mut impl Read) -> Result<(Vocabulary, Vec<u8>)> {
        self.read(words_max, input).map_err(|source| Error::ReadState { source })
    }

    fn read(&mut self, words_max: usize, input: &mut impl Read) -> io::Result<(Vocabulary, Vec<u8>)> {
        let mut input = Digested::new(input);
        if &input.bytes()? != MARK {
            return Err(io::Error::other("it is not a state of word vectors; pass the path of one"));
        }
        let [n_tokens, n_counted, n_evicted] = [input.u64()?, input.u64()?, input.u64()?];
        let [dim, n_words] = [input.u32()? as usize, input.u32()? as usize];
        if dim != self.settings().dim || n_words > words_max || n_words > self.input().n_rows() {
            return Err(io::Error::other(
                "it has another dimension or more words; pass the flags of its training",
            ));
        }
        let vocabulary = read_words(words_max, n_words, [n_counted, n_evicted], &mut input)?;
        for word in 0..n_words as u32 {
            input.read_row(self.input(), word)?;
            input.read_row(self.output(), word)?;
        }
        let [n_buckets, n_used] = [input.u32()?, input.u32()?];
        if n_buckets != self.settings().characters.map_or(0, |characters| characters.buckets) {
            return Err(io::Error::other("it has other character n-grams; pass the flags of its training"));
        }
        if let Some(buckets) = self.buckets() {
            for expected in 0..n_used {
                let bucket = input.u32()?;
                if bucket >= n_buckets {
                    return Err(io::Error::other(DAMAGED));
                }
                // The words of a vocabulary that is known before the state have drawn their rows, in the same order.
                let row = buckets.row(bucket).unwrap_or_else(|| buckets.begin(bucket));
                if row != expected {
                    return Err(io::Error::other(DAMAGED));
                }
                input.read_row(&buckets.rows, row)?;
            }
        }
        let place = input.sized()?;
        if !input.is_whole()? {
            return Err(io::Error::other(DAMAGED));
        }
        self.set_n_tokens(n_tokens);
        Ok((vocabulary, place))
    }
}

/// Writes the words of a vocabulary with their counts, and its sketch.
pub(crate) fn write_words(vocabulary: &Vocabulary, output: &mut Digested<impl Write>) -> io::Result<()> {
    for (word, count) in vocabulary.iter() {
        output.write_all(&(word.len() as u32).to_le_bytes())?;
        output.write_all(word)?;
        output.write_all(&count.to_le_bytes())?;
    }
    output.write_all(&[u8::from(vocabulary.sketch().is_some())])?;
    for counters in vocabulary.sketch().unwrap_or_default().chunks(1 << 14) {
        let bytes: Vec<u8> = counters.iter().flat_map(|counter| counter.to_le_bytes()).collect();
        output.write_all(&bytes)?;
    }
    Ok(())
}

/// Reads what [`write_words`] wrote, of a vocabulary with these numbers of tokens and of evicted words.
pub(crate) fn read_words(
    words_max: usize,
    n_words: usize,
    [n_tokens, n_evicted]: [u64; 2],
    input: &mut Digested<impl Read>,
) -> io::Result<Vocabulary> {
    let mut words = Vec::new();
    for _ in 0..n_words {
        let word = input.sized()?;
        words.push((word, input.u64()?));
    }
    let words = words.iter().map(|(word, count)| (&word[..], *count));
    let mut vocabulary = Vocabulary::of(words_max, words, n_tokens, n_evicted);
    if input.bytes()? == [1] {
        let counters: io::Result<Vec<u32>> = (0..Vocabulary::SKETCH_LENGTH).map(|_| input.u32()).collect();
        vocabulary.set_sketch(counters?);
    }
    Ok(vocabulary)
}

/// Numbers of a state.
pub(crate) trait Numbers {
    fn u32(&mut self) -> io::Result<u32>;
    fn u64(&mut self) -> io::Result<u64>;
    /// Bytes that follow their length.
    fn sized(&mut self) -> io::Result<Vec<u8>>;
}

impl<S: Read> Numbers for Digested<S> {
    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn sized(&mut self) -> io::Result<Vec<u8>> {
        let n = self.u32()? as usize;
        if n > BYTES_MAX {
            return Err(io::Error::other(DAMAGED));
        }
        let mut bytes = vec![0; n];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

//! Writes a training and reads it back.
//!
//! Numbers are little-endian:
//!
//! ```text
//! "spelled1"                     8 bytes
//! tokens trained, steps, values  u64 each
//! weights and moments            f32 each
//! length of the caller's bytes   u32, then the bytes
//! digest of all bytes above      u64, XXH3
//! ```
//!
//! That of a stream begins with "spelled2" and its vocabulary:
//!
//! ```text
//! tokens counted, evicted words  u64 each
//! words                          u32
//! words, counts and sketch       as of skip-gram
//! numbered, unknown characters   UTF-8, each after its length, u32
//! words of unknown characters    u32 each
//! ```

use std::io::{self, Read, Write};

use kernels::simd::Digested;

use crate::error::{Error, Result};
use crate::skipgram::Vocabulary;
use crate::skipgram::state::{Numbers, read_words, write_words};
use crate::spelling::characters::{Characters, GrowingCharacters};
use crate::spelling::training::SpellingTraining;

const MARK: &[u8; 8] = b"spelled1";
const MARK_OF_STREAM: &[u8; 8] = b"spelled2";
/// A longer place is damage.
const PLACE_BYTES_MAX: usize = 1 << 20;
/// Values that are converted at a time.
const PIECE: usize = 1 << 14;
const DAMAGED: &str = "the file is damaged; use an older checkpoint or start again";

impl SpellingTraining {
    /// Writes the training, and bytes of the caller: the place in the input. Buffer the output.
    ///
    /// # Errors
    /// If the output fails.
    pub fn save(&mut self, place: &[u8], output: &mut impl Write) -> Result<()> {
        self.write(place, output).map_err(|source| Error::WriteState { source })
    }

    /// Writes a training on a stream with its vocabulary, and bytes of the caller. Buffer the output.
    ///
    /// # Errors
    /// If the output fails.
    pub fn save_stream(
        &mut self,
        vocabulary: &Vocabulary,
        place: &[u8],
        output: &mut impl Write,
    ) -> Result<()> {
        let mut output = Digested::new(output);
        let written = self.write_vocabulary(vocabulary, &mut output);
        written.and_then(|()| self.write_values(place, output)).map_err(|source| Error::WriteState { source })
    }

    fn write_vocabulary(&self, vocabulary: &Vocabulary, output: &mut Digested<impl Write>) -> io::Result<()> {
        output.write_all(MARK_OF_STREAM)?;
        for n in [vocabulary.n_tokens(), vocabulary.n_evicted()] {
            output.write_all(&n.to_le_bytes())?;
        }
        output.write_all(&(vocabulary.n_words() as u32).to_le_bytes())?;
        write_words(vocabulary, output)?;
        let GrowingCharacters { numbered, unknown } = &self.characters;
        let mut unknown: Vec<(char, u32)> = unknown.iter().map(|(at, number)| (*at, *number)).collect();
        unknown.sort_unstable();
        let texts = [numbered.all().iter().collect(), unknown.iter().map(|(at, _)| at).collect()];
        for text in texts.iter().map(String::as_bytes) {
            output.write_all(&(text.len() as u32).to_le_bytes())?;
            output.write_all(text)?;
        }
        unknown.iter().try_for_each(|(_, number)| output.write_all(&number.to_le_bytes()))
    }

    fn write(&mut self, place: &[u8], output: &mut impl Write) -> io::Result<()> {
        let mut output = Digested::new(output);
        output.write_all(MARK)?;
        self.write_values(place, output)
    }

    fn write_values(&mut self, place: &[u8], mut output: Digested<impl Write>) -> io::Result<()> {
        let counts = [self.n_tokens, self.n_steps];
        let all = self.state();
        let n_values = all.iter().map(|values| values.len() as u64).sum();
        for n in counts.into_iter().chain([n_values]) {
            output.write_all(&n.to_le_bytes())?;
        }
        for values in all.iter().flat_map(|values| values.chunks(PIECE)) {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            output.write_all(&bytes)?;
        }
        output.write_all(&(place.len() as u32).to_le_bytes())?;
        output.write_all(place)?;
        output.finish()
    }

    /// Reads a state into a new training of the same settings and vocabulary. Returns the bytes of the caller.
    ///
    /// # Errors
    /// If the state is damaged, or of other settings or another vocabulary.
    pub fn restore(&mut self, input: &mut impl Read) -> Result<Vec<u8>> {
        self.read(input).map_err(|source| Error::ReadState { source })
    }

    /// Reads a state of a stream into a new training of the same settings. Returns the vocabulary, for at most `words_max`
    /// words, and the bytes of the caller.
    ///
    /// # Errors
    /// If the state is damaged or of other settings.
    pub fn restore_stream(
        &mut self,
        words_max: usize,
        input: &mut impl Read,
    ) -> Result<(Vocabulary, Vec<u8>)> {
        let mut input = Digested::new(input);
        let mut read = || {
            let vocabulary = self.read_vocabulary(words_max, &mut input)?;
            self.begin_all(&vocabulary);
            Ok(vocabulary)
        };
        let read = read().and_then(|vocabulary| Ok((vocabulary, self.read_values(input)?)));
        read.map_err(|source| Error::ReadState { source })
    }

    fn read_vocabulary(
        &mut self,
        words_max: usize,
        input: &mut Digested<impl Read>,
    ) -> io::Result<Vocabulary> {
        if &input.bytes()? != MARK_OF_STREAM {
            return Err(io::Error::other("it is not a state of char-lstm on a stream; pass the path of one"));
        }
        let counts = [input.u64()?, input.u64()?];
        let n_words = input.u32()? as usize;
        if n_words > words_max {
            return Err(io::Error::other("it has more words; pass the flags of its training"));
        }
        let vocabulary = read_words(words_max, n_words, counts, input)?;
        let damaged = || io::Error::other(DAMAGED);
        let mut text = || String::from_utf8(input.sized()?).map_err(|_| damaged());
        let (numbered, unknown) = (text()?, text()?);
        let numbered = Characters::of(numbered.chars().collect()).map_err(|_| damaged())?;
        let mut with_word = |character| {
            let number = input.u32()?;
            if number as usize >= n_words { Err(damaged()) } else { Ok((character, number)) }
        };
        let unknown = unknown.chars().map(&mut with_word).collect::<io::Result<_>>()?;
        if numbered.n_ids() > GrowingCharacters::N_IDS {
            return Err(damaged());
        }
        self.characters = GrowingCharacters { numbered, unknown };
        Ok(vocabulary)
    }

    fn read(&mut self, input: &mut impl Read) -> io::Result<Vec<u8>> {
        let mut input = Digested::new(input);
        if &input.bytes()? != MARK {
            return Err(io::Error::other("it is not a state of char-lstm; pass the path of one"));
        }
        self.read_values(input)
    }

    fn read_values(&mut self, mut input: Digested<impl Read>) -> io::Result<Vec<u8>> {
        let mut counts = [0; 3];
        for count in &mut counts {
            *count = u64::from_le_bytes(input.bytes()?);
        }
        let [n_tokens, n_steps, n_values] = counts;
        let mut all = self.state();
        if n_values != all.iter().map(|values| values.len() as u64).sum::<u64>() {
            return Err(io::Error::other(
                "it has other sizes or words; pass the flags and the input of its training",
            ));
        }
        let mut bytes = vec![0; 4 * PIECE];
        for values in all.iter_mut().flat_map(|values| values.chunks_mut(PIECE)) {
            let bytes = &mut bytes[..4 * values.len()];
            input.read_exact(bytes)?;
            let read = bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
            values.iter_mut().zip(read).for_each(|(value, read)| *value = read);
        }
        let n = u32::from_le_bytes(input.bytes()?) as usize;
        if n > PLACE_BYTES_MAX {
            return Err(io::Error::other(DAMAGED));
        }
        let mut place = vec![0; n];
        input.read_exact(&mut place)?;
        if !input.is_whole()? {
            return Err(io::Error::other(DAMAGED));
        }
        (self.n_tokens, self.n_steps) = (n_tokens, n_steps);
        Ok(place)
    }
}

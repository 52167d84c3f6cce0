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

use std::io::{self, Read, Write};

use kernels::simd::Digested;

use crate::error::{Error, Result};
use crate::spelling::training::SpellingTraining;

const MARK: &[u8; 8] = b"spelled1";
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

    fn write(&mut self, place: &[u8], output: &mut impl Write) -> io::Result<()> {
        let mut output = Digested::new(output);
        output.write_all(MARK)?;
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

    fn read(&mut self, input: &mut impl Read) -> io::Result<Vec<u8>> {
        let mut input = Digested::new(input);
        if &input.bytes()? != MARK {
            return Err(io::Error::other("it is not a state of char-lstm; pass the path of one"));
        }
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

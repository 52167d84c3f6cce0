//! Writes the state of a training and reads it back.
//!
//! Numbers are little-endian:
//!
//! ```text
//! "ngrams 1"                       8 bytes
//! digest of texts and settings     u64
//! epoch, window                    u32, u32
//! done texts of window and of epoch   u64, u64
//! rows that the texts have         parts × dim × f32 per row, in increasing order
//! rows of labels                   as above
//! digest of all bytes above        u64, XXH3
//! ```

use std::io::{self, Read, Write};

use kernels::simd::Digested;
use xxhash_rust::xxh3::xxh3_64;

use super::model::FastTextModel;
use super::settings::FastTextSettings;
use super::training::{Position, Training};
use crate::error::{Error, Result};
use crate::texts::Texts;

const MARK: &[u8; 8] = b"ngrams 1";

impl<'a> Training<'a> {
    /// Writes the state between two segments. Buffer the output.
    ///
    /// # Errors
    /// If the output or the temporary file of the texts fails.
    pub fn save(&self, output: &mut impl Write) -> Result<()> {
        let digest = self.digest()?;
        self.write(output, digest).map_err(|source| Error::WriteState { source })
    }

    /// A training that continues from a state of the same texts and settings, which started from `model`. With equal
    /// bits if it is deterministic.
    ///
    /// # Errors
    /// If the state is damaged or of other texts or settings, or as [`Training::new`].
    pub fn resume(
        texts: &'a Texts,
        settings: FastTextSettings,
        model: Option<&FastTextModel>,
        input: &mut impl Read,
    ) -> Result<Self> {
        let mut training = Self::empty(texts, settings, model)?;
        let expected = training.digest()?;
        let read = training.read(input, expected);
        read.map_err(|source| Error::ReadState { source }).and_then(|is_equal| match is_equal {
            true => Ok(training),
            false => Err(Error::OtherState),
        })
    }

    /// A digest of everything that decides the result, except limits.
    fn digest(&self) -> Result<u64> {
        let described = described(self.texts.digest()?, &self.settings);
        Ok(xxh3_64(described.as_bytes()))
    }

    fn write(&self, output: &mut impl Write, digest: u64) -> io::Result<()> {
        let mut output = Digested::new(output);
        output.write_all(MARK)?;
        output.write_all(&digest.to_le_bytes())?;
        let Position { epoch, window, text, epoch_texts } = self.at;
        output.write_all(&epoch.to_le_bytes())?;
        output.write_all(&window.to_le_bytes())?;
        output.write_all(&text.to_le_bytes())?;
        output.write_all(&epoch_texts.to_le_bytes())?;
        for table in [&self.input, &self.output] {
            (0..table.n_rows() as u32).try_for_each(|row| output.write_row(table, row))?;
        }
        output.finish()
    }

    /// Returns whether the state is of the same texts and settings.
    fn read(&mut self, input: &mut impl Read, expected: u64) -> io::Result<bool> {
        let mut input = Digested::new(input);
        if &input.bytes()? != MARK {
            return Err(io::Error::other("it is not a checkpoint; pass the path of one"));
        }
        if u64::from_le_bytes(input.bytes()?) != expected {
            return Ok(false);
        }
        self.at = Position {
            epoch: u32::from_le_bytes(input.bytes()?),
            window: u32::from_le_bytes(input.bytes()?),
            text: u64::from_le_bytes(input.bytes()?),
            epoch_texts: u64::from_le_bytes(input.bytes()?),
        };
        for table in [&self.input, &self.output] {
            (0..table.n_rows() as u32).try_for_each(|row| input.read_row(table, row))?;
        }
        if !input.is_whole()? {
            return Err(io::Error::other("the file is damaged; use an older checkpoint or start again"));
        }
        Ok(true)
    }
}

/// The texts and settings of a checkpoint, by the names of types and fields, as they were in the first version. Earlier
/// versions trained on several ranks too; with their two settings of ranks, checkpoints of one process are resumed.
pub(super) fn described(texts: u64, settings: &FastTextSettings) -> String {
    let settings = FastTextSettings { memory_bytes: 0, lists_bytes: 0, ..settings.clone() };
    let settings = format!("{settings:?}").replacen(", seed: ", ", round_texts: 2500, seed: ", 1);
    // Earlier versions had no weights of labels.
    let settings = settings.replacen(", label_weights: []", "", 1);
    format!("{texts:016x} {} 1", settings.replacen("FastTextSettings", "Settings", 1))
}

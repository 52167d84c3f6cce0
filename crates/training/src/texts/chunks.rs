//! The chunks of an input, in its order, and the builders of one thread.

use classifiers::{Builders, TextsBuilder};

use crate::texts::error::{Result, TextsError};

/// Bits of the number of a chunk for its position in its source: 16 TiB.
const POSITION_BITS: u32 = 44;
/// Maximum number of sources.
const SOURCES_MAX: usize = 1 << (u64::BITS - POSITION_BITS);

/// Maximum number of streams that are read at once. A thread may need one builder more than that.
pub(crate) const STREAMS_MAX: usize = 2;

/// Refuses more sources than chunks can be numbered for.
pub(crate) fn check_sources(found: usize) -> Result<()> {
    if found <= SOURCES_MAX { Ok(()) } else { Err(TextsError::TooManyInputs { found, most: SOURCES_MAX }) }
}

/// The number of a chunk. Numbers have the order of the input.
pub(crate) fn chunk_number(source: usize, position: u64) -> u64 {
    (source as u64) << POSITION_BITS | position.min((1 << POSITION_BITS) - 1)
}

/// The builders of one thread. A builder takes chunks in increasing order only, and a thread may get chunks of several
/// streams alternately. There is one builder unless it does.
pub(crate) struct ThreadBuilders<'a> {
    builders: &'a Builders,
    /// Each with the number of its last chunk.
    all: Vec<(u64, TextsBuilder)>,
    current: usize,
}

impl<'a> ThreadBuilders<'a> {
    pub fn new(builders: &'a Builders) -> Self {
        Self { builders, all: vec![(0, builders.builder())], current: 0 }
    }

    /// Begins a chunk. No other thread begins it.
    pub fn begin(&mut self, chunk: u64) -> Result<()> {
        let earlier = self.all.iter().enumerate().filter(|(_, (last, _))| *last < chunk);
        let nearest = earlier.max_by_key(|(_, (last, _))| *last).map(|(at, _)| at);
        self.current = match nearest {
            Some(at) => at,
            // Chunk 0, whose builder has no earlier one.
            None if self.all.len() == 1 && self.all[0].0 == chunk => 0,
            None => {
                self.all.push((0, self.builders.builder()));
                self.all.len() - 1
            }
        };
        let (last, builder) = &mut self.all[self.current];
        *last = chunk;
        Ok(builder.begin(chunk)?)
    }

    /// Whether texts have keys.
    pub fn has_keys(&self) -> bool {
        self.builders.reading().has_keys
    }

    /// The builder of the current chunk.
    pub fn builder(&mut self) -> &mut TextsBuilder {
        &mut self.all[self.current].1
    }

    pub fn finish(self) -> Vec<TextsBuilder> {
        self.all.into_iter().map(|(_, builder)| builder).collect()
    }
}

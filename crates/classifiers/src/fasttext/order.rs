//! The order of texts in an epoch.
//!
//! An epoch consists of windows of blocks in random order. The texts of a window are shuffled. All blocks in memory form
//! one window. Blocks in a file are read when their window starts, so memory limits the size of a window.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use program::random::Random;
use program::threads::spawn;

use crate::error::Result;
use crate::texts::{Block, TextRef, Texts};

/// Purposes of random numbers: the first element of each key.
const BLOCKS: u64 = 1;
const TEXTS: u64 = 2;

/// Number of tokens of a window whose blocks are in a file: 256 MiB. Tests have several windows per epoch.
const WINDOW_TOKENS: usize = if cfg!(test) { 1 << 9 } else { 1 << 26 };

/// Shuffled texts.
pub(crate) struct Window<'a> {
    texts: &'a Texts,
    /// Indices of blocks.
    blocks: Vec<u32>,
    /// The blocks that are not in memory, by position in `blocks`.
    read: Vec<Option<Block>>,
    /// Position in `blocks` and index of the text, of texts with at least one word.
    order: Vec<(u32, u32)>,
}

/// The windows of an epoch, as lists of blocks.
pub(crate) fn windows(texts: &Texts, seed: u64, epoch: u32) -> Vec<Vec<u32>> {
    let mut blocks: Vec<u32> = (0..texts.n_blocks() as u32).collect();
    if texts.is_in_memory() {
        return vec![blocks];
    }
    Random::of(&[BLOCKS, seed, u64::from(epoch)]).shuffle(&mut blocks);
    let mut windows: Vec<Vec<u32>> = vec![Vec::new()];
    let mut n_tokens = 0;
    for block in blocks {
        n_tokens += texts.block_tokens(block as usize);
        if n_tokens > WINDOW_TOKENS {
            n_tokens = texts.block_tokens(block as usize);
            windows.push(Vec::new());
        }
        windows.last_mut().expect("one window").push(block);
    }
    windows
}

impl<'a> Window<'a> {
    /// Reads the blocks of a window and shuffles their texts.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn open(texts: &'a Texts, blocks: &[u32], key: [u64; 3], threads: usize) -> Result<Self> {
        let read: Vec<Mutex<Option<Block>>> = blocks.iter().map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        let load = || -> Result<()> {
            loop {
                let at = next.fetch_add(1, Relaxed);
                let Some(&block) = blocks.get(at) else { return Ok(()) };
                if texts.in_memory(block as usize).is_none() {
                    let mut scratch = Block::default();
                    texts.block(block as usize, &mut scratch)?;
                    *read[at].lock().expect("no panic") = Some(scratch);
                }
            }
        };
        if !texts.is_in_memory() {
            thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|_| spawn(scope, load)).collect();
                load().and(others.into_iter().try_for_each(|thread| thread.join().expect("no panic")))
            })?;
        }
        let read = read.into_iter().map(|block| block.into_inner().expect("no panic")).collect();
        let mut window = Self { texts, blocks: blocks.to_vec(), read, order: Vec::new() };
        let order = (0..blocks.len()).flat_map(|at| {
            let block = window.block(at);
            let texts = (0..block.n_texts()).filter(|&text| !block.text(text).tokens.is_empty());
            texts.map(move |text| (at as u32, text as u32))
        });
        let mut order: Vec<_> = order.collect();
        Random::of(&[&[TEXTS][..], &key].concat()).shuffle(&mut order);
        window.order = order;
        Ok(window)
    }

    /// Number of texts.
    pub fn n_texts(&self) -> usize {
        self.order.len()
    }

    /// The block and the index of a text within it, by its position in the shuffled order.
    #[inline]
    pub fn place(&self, position: usize) -> (usize, usize) {
        let (block, text) = self.order[position];
        (self.blocks[block as usize] as usize, text as usize)
    }

    /// A text by its position in the shuffled order.
    #[inline]
    pub fn text(&self, position: usize) -> TextRef<'_> {
        let (block, text) = self.order[position];
        self.block(block as usize).text(text as usize)
    }

    #[inline]
    fn block(&self, at: usize) -> &Block {
        match &self.read[at] {
            Some(block) => block,
            None => self.texts.in_memory(self.blocks[at] as usize).expect("blocks of a file are read"),
        }
    }
}

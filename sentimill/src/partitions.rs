//! Reviews partitioned by the first bits of their hashes, so that all reviews of one text are in one
//! partition.
//!
//! Each thread has its own partitions in blocks of memory. When they exceed its share of memory, all of them
//! are written to disk.

use crate::Result;
use crate::encoded::{EncodedReview, read_review};
use crate::scratch::{Extent, Scratch};

/// Number of hash bits that determine the partition.
const PARTITION_BITS: u32 = 9;
/// Number of partitions.
pub const PARTITIONS: usize = 1 << PARTITION_BITS;

/// Maximum size of a block. On average half of the last block of each partition is unused.
const BLOCK_BYTES_MAX: usize = 16 << 10;
const BLOCK_BYTES_MIN: usize = 512;
/// Size of one write of blocks to disk.
const WRITE_BYTES: usize = 1 << 20;

/// The partition of a hash.
pub fn partition_of(hash: u64) -> usize {
    (hash >> (u64::BITS - PARTITION_BITS)) as usize
}

/// The smallest hash of a partition.
pub fn partition_start(partition: usize) -> u64 {
    (partition as u64) << (u64::BITS - PARTITION_BITS)
}

/// The reviews of one thread.
pub struct Partitions<'a> {
    scratch: &'a Scratch,
    partitions: Vec<Partition>,
    block_bytes: usize,
    held: usize,
    held_max: usize,
}

/// The reviews of a partition that one thread has read.
#[derive(Default)]
pub struct Partition {
    blocks: Vec<Vec<u8>>,
    extents: Vec<Extent>,
}

impl<'a> Partitions<'a> {
    /// Empty partitions of a thread, with this maximum size in memory.
    pub fn holding(scratch: &'a Scratch, held_max: usize) -> Self {
        let block_bytes = (held_max / PARTITIONS / 4).clamp(BLOCK_BYTES_MIN, BLOCK_BYTES_MAX);
        let partitions = (0..PARTITIONS).map(|_| Partition::default()).collect();
        Self { scratch, partitions, block_bytes, held: 0, held_max }
    }

    /// Returns a block with capacity for `bytes` bytes, to which a review with this hash is appended.
    #[inline]
    pub fn room(&mut self, hash: u64, bytes: usize) -> Result<&mut Vec<u8>> {
        let blocks = &self.partitions[partition_of(hash)].blocks;
        let has_room = blocks.last().is_some_and(|block| block.capacity() - block.len() >= bytes);
        if !has_room {
            self.add_block(hash, bytes)?;
        }
        let block = self.partitions[partition_of(hash)].blocks.last_mut();
        Ok(block.expect("there was a block with room, or one was added"))
    }

    #[cold]
    fn add_block(&mut self, hash: u64, bytes: usize) -> Result<()> {
        let block = Vec::with_capacity(bytes.max(self.block_bytes));
        if self.held + block.capacity() > self.held_max && self.held > 0 {
            self.spill()?;
        }
        self.held += block.capacity();
        self.scratch.hold(block.capacity());
        self.partitions[partition_of(hash)].blocks.push(block);
        Ok(())
    }

    /// Writes all blocks to the file.
    fn spill(&mut self) -> Result<()> {
        let length = |partition: &Partition| partition.blocks.iter().map(Vec::len).sum::<usize>();
        let bytes = self.partitions.iter().map(length).sum();
        let (mut at, mut buffer) = (self.scratch.reserve(bytes).from, Vec::with_capacity(2 * WRITE_BYTES));
        let mut written = at;
        for partition in &mut self.partitions {
            let bytes = length(partition);
            if bytes > 0 {
                partition.extents.push(Extent { from: at, bytes });
                at += bytes as u64;
            }
            for block in partition.blocks.drain(..) {
                buffer.extend_from_slice(&block);
                if buffer.len() >= WRITE_BYTES {
                    self.scratch.write_at(&buffer, written)?;
                    written += buffer.len() as u64;
                    buffer.clear();
                }
            }
        }
        self.scratch.write_at(&buffer, written)?;
        self.scratch.release(self.held);
        self.held = 0;
        Ok(())
    }

    /// All partitions, in order.
    pub fn finish(self) -> Vec<Partition> {
        self.partitions
    }
}

impl Partition {
    /// Size of its reviews in bytes.
    pub fn bytes(&self) -> usize {
        let blocks = self.blocks.iter().map(Vec::len).sum::<usize>();
        blocks + self.extents.iter().map(|extent| extent.bytes).sum::<usize>()
    }

    /// Appends all its reviews to `bytes` and releases their memory.
    pub fn take(self, scratch: &Scratch, bytes: &mut Vec<u8>) -> Result<()> {
        for extent in self.extents {
            let from = bytes.len();
            bytes.resize(from + extent.bytes, 0);
            scratch.read_at(&mut bytes[from..], extent.from)?;
        }
        for block in self.blocks {
            bytes.extend_from_slice(&block);
            scratch.release(block.capacity());
        }
        Ok(())
    }

    /// Visits all its reviews without removing them, with only a part of them in memory at a time.
    pub fn each(
        &self,
        scratch: &Scratch,
        mut visit: impl FnMut(EncodedReview<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        for extent in &self.extents {
            let (mut at, end) = (extent.from, extent.from + extent.bytes as u64);
            let mut wanted = WRITE_BYTES;
            while at < end {
                bytes.resize(wanted.min((end - at) as usize), 0);
                scratch.read_at(&mut bytes, at)?;
                let whole = each_whole(&bytes, &mut visit)?;
                at += whole as u64;
                // The review is longer than the bytes that were read.
                wanted = if whole == 0 { 2 * wanted } else { WRITE_BYTES };
            }
        }
        for block in &self.blocks {
            each_whole(block, &mut visit)?;
        }
        Ok(())
    }

    /// Visits all its bytes in chunks of this size or of the rest of a block, without removing them.
    pub fn each_chunk(
        &self,
        scratch: &Scratch,
        chunk_bytes: usize,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        for extent in &self.extents {
            let (mut at, end) = (extent.from, extent.from + extent.bytes as u64);
            while at < end {
                bytes.resize(chunk_bytes.min((end - at) as usize), 0);
                scratch.read_at(&mut bytes, at)?;
                visit(&bytes)?;
                at += bytes.len() as u64;
            }
        }
        self.blocks.iter().try_for_each(|block| visit(block))
    }

    /// Releases its memory.
    pub fn forget(self, scratch: &Scratch) {
        self.blocks.iter().for_each(|block| scratch.release(block.capacity()));
    }
}

/// Visits the complete reviews. Returns their size in bytes.
fn each_whole(bytes: &[u8], visit: &mut impl FnMut(EncodedReview<'_>) -> Result<()>) -> Result<usize> {
    let mut rest = bytes;
    while EncodedReview::is_whole(rest) {
        visit(read_review(&mut rest))?;
    }
    Ok(bytes.len() - rest.len())
}

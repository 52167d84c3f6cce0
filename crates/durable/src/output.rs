//! A file whose SHA-256 is computed by another thread while it is written.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use program::hexadecimal;
use program::progress::Progress;
use sha2::{Digest, Sha256};

use crate::sha256::{self, Summary};

/// Bytes that are written and hashed at a time.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that wait for the hash.
const PIECES_MAX: usize = 8;

/// A file that is being written.
#[derive(Debug)]
pub struct Output<'a> {
    file: &'a File,
    piece: Vec<u8>,
    hasher: SyncSender<Vec<u8>>,
}

/// Writes a new file with `write`, makes it durable and returns its summary.
pub fn create(path: &Path, write: impl FnOnce(&mut Output<'_>) -> io::Result<()>) -> io::Result<Summary> {
    let file = File::create_new(path)?;
    thread::scope(|scope| {
        let (hasher, pieces) = sync_channel::<Vec<u8>>(PIECES_MAX);
        let hash = thread::Builder::new().spawn_scoped(scope, move || {
            let mut hash = Sha256::new();
            let mut bytes = 0;
            for piece in pieces {
                hash.update(&piece);
                bytes += piece.len() as u64;
            }
            Summary { bytes, sha256: hexadecimal::encode(&hash.finalize()) }
        })?;
        let mut out = Output { file: &file, piece: Vec::with_capacity(PIECE_BYTES), hasher };
        write(&mut out)?;
        out.flush()?;
        drop(out);
        file.sync_all()?;
        hash.join().map_err(|_| io::ErrorKind::Other.into())
    })
}

/// The summary of an existing file.
pub fn summary(path: &Path) -> io::Result<Summary> {
    sha256::summary(path, &Progress::default())
}

/// The summary of these bytes.
pub fn summary_of(bytes: &[u8]) -> Summary {
    Summary { bytes: bytes.len() as u64, sha256: sha256::of_bytes(bytes) }
}

/// Writes numbers in little-endian order.
pub trait WriteNumbers: Write {
    /// Writes floats.
    fn floats(&mut self, floats: &[f32]) -> io::Result<()> {
        let mut bytes = [0; 1 << 10];
        floats.chunks(bytes.len() / 4).try_for_each(|floats| {
            bytes.as_chunks_mut().0.iter_mut().zip(floats).for_each(|(to, float)| *to = float.to_le_bytes());
            self.write_all(&bytes[..4 * floats.len()])
        })
    }

    /// Writes integers.
    fn u64s(&mut self, integers: &[u64]) -> io::Result<()> {
        integers.iter().try_for_each(|integer| self.write_all(&integer.to_le_bytes()))
    }
}

impl<W: Write + ?Sized> WriteNumbers for W {}

impl Output<'_> {
    fn reserve(&mut self, n: usize) -> io::Result<()> {
        if self.piece.len() + n > PIECE_BYTES { self.flush() } else { Ok(()) }
    }
}

impl Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = bytes.len().min(PIECE_BYTES);
        self.reserve(n)?;
        self.piece.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        self.file.write_all(&self.piece)?;
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        self.hasher.send(piece).map_err(|_| io::ErrorKind::Other.into())
    }
}

//! Lists the files in a zip archive, from its central directory (APPNOTE.TXT, 4.3.12 and 4.3.16).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem;

/// The end of the central directory: 22 bytes and a comment of at most 64 KiB.
const END_BYTES: usize = 22;
const END_BYTES_MAX: u64 = (END_BYTES + (64 << 10)) as u64;
/// A longer directory is read up to this size.
const DIRECTORY_BYTES_MAX: u64 = 1 << 20;
/// Size of an entry without its name.
const ENTRY_BYTES: usize = 46;

/// The names of the files in an archive, without folders; empty if it has no directory.
pub(crate) fn names(archive: &File) -> io::Result<Vec<String>> {
    let bytes = archive.metadata()?.len();
    let from = bytes.saturating_sub(END_BYTES_MAX);
    let end = read(archive, from, bytes - from)?;
    let directory = memmem::rfind(&end, b"PK\x05\x06").and_then(|at| end.get(at..at + END_BYTES));
    let Some(directory) = directory else { return Ok(Vec::new()) };
    let number = |at: usize| u64::from(u32_of(directory, at).unwrap_or_default());
    let entries = read(archive, number(16), number(12).min(DIRECTORY_BYTES_MAX))?;
    let (mut names, mut rest) = (Vec::new(), &entries[..]);
    while rest.starts_with(b"PK\x01\x02") && rest.len() >= ENTRY_BYTES {
        let length = |at: usize| usize::from(u16::from_le_bytes([rest[at], rest[at + 1]]));
        let Some(name) = rest.get(ENTRY_BYTES..ENTRY_BYTES + length(28)) else { break };
        let name = String::from_utf8_lossy(name);
        // macOS adds a folder of its own.
        if !name.ends_with('/') && !name.starts_with("__MACOSX/") {
            names.push(name.into_owned());
        }
        rest = rest.get(ENTRY_BYTES + length(28) + length(30) + length(32)..).unwrap_or_default();
    }
    Ok(names)
}

fn u32_of(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn read(file: &File, at: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = vec![0; bytes as usize];
    file.read_exact_at(&mut read, at).map(|()| read)
}

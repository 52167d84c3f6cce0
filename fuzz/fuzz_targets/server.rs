//! A parameter server: requests are refused, or applied so that the ledger balances. A log is recovered or refused, and
//! a log that was recovered is recovered again, with the same entries.
//!
//! The input is a list of messages, each with a kind and a length. The same bytes are the log: groups with valid digests,
//! and bytes without them.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use parameters::fuzzing::{Served, create_log, recover_log};
use xxhash_rust::xxh3::xxh3_64;

fuzz_target!(|data: &[u8]| {
    let mut served = Served::default();
    let mut log = Vec::new();
    let mut rest = data;
    while let Some((&[kind, low, high], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high])).min(after.len());
        let (message, after) = after.split_at(length);
        rest = after;
        let bytes = Bytes::copy_from_slice(message);
        match kind % 4 {
            0 => drop(served.create(bytes)),
            1 => drop(served.push(bytes)),
            2 => drop(served.pull(bytes)),
            _ => {}
        }
        assert!(served.is_balanced());
        match kind / 4 % 4 {
            // As the entry of a push, a table, or the end of a worker.
            entry @ 0..=2 => log.extend(group(1, &entry_of(entry, message))),
            _ if kind >= 128 => log.extend(group(u32::from(low), message)),
            _ => log.extend_from_slice(message),
        }
    }
    check_log(&log);
});

fn entry_of(kind: u8, content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32 + 1).to_le_bytes()[..], &[kind], content].concat()
}

/// A group of the log.
fn group(n: u32, entries: &[u8]) -> Vec<u8> {
    let head = [(entries.len() as u32).to_le_bytes(), n.to_le_bytes()].concat();
    let (check, digest) = (xxh3_64(&head).to_le_bytes(), xxh3_64(entries).to_le_bytes());
    [&head[..], &check, &digest, entries].concat()
}

fn check_log(content: &[u8]) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("a temporary folder can be made");
    let path = create_log(folder.path()).expect("a log can be created");
    let mut whole = std::fs::read(&path).expect("the log can be read");
    whole.extend_from_slice(content);
    std::fs::write(&path, &whole).expect("the log can be written");
    let Ok((n_entries, torn)) = recover_log(folder.path()) else { return };
    let length = std::fs::metadata(&path).expect("the log exists").len();
    assert_eq!(length + torn, whole.len() as u64);
    assert_eq!(recover_log(folder.path()).expect("a recovered log"), (n_entries, 0));
}

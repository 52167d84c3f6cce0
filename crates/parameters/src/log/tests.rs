//! Torn and changed files of the log.
#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in test functions, not in what they share")]

use super::*;
use crate::messages::PushRequest;

const SETTINGS: ServerSettings = ServerSettings { shard: 0, servers: 1, workers: 2, staleness: Some(3) };

/// Writes groups. A crash comes before the last one is synced.
fn written(folder: &Path, entries: &[&[Entry]]) -> PathBuf {
    let mut log = Log::create(folder, &SETTINGS, 0).unwrap();
    for entries in entries {
        log.sync().unwrap();
        let mut group = Group::default();
        entries.iter().for_each(|entry| group.push(entry));
        log.append(&mut group).unwrap();
    }
    log.path
}

fn recovered(folder: &Path) -> Result<(Vec<Entry>, u64)> {
    let mut entries = Vec::new();
    let add = |entry| {
        entries.push(entry);
        Ok(())
    };
    let (_, torn) = Log::recover(folder, &SETTINGS, 0, add)?;
    Ok((entries, torn))
}

fn push(step: u64) -> Entry {
    Entry::Push(PushRequest { worker: 1, step, ..PushRequest::default() })
}

/// A log of two groups of equal lengths, its bytes, and the place of the second group.
fn two_groups(folder: &Path) -> (PathBuf, Vec<u8>, usize) {
    let path = written(folder, &[&[push(2)], &[push(1)]]);
    let whole = fs::read(&path).unwrap();
    let header = header(&SETTINGS).unwrap().len();
    let second = header + (whole.len() - header) / 2;
    (path, whole, second)
}

#[test]
fn entries_come_back_and_a_torn_group_is_removed_at_each_length() {
    let folder = tempfile::tempdir().unwrap();
    let groups: [&[Entry]; 2] = [&[push(0), Entry::Leave(1)], &[push(1), Entry::Remove(0)]];
    let path = written(folder.path(), &groups);
    let whole = fs::read(&path).unwrap();
    let mark = fs::read(folder.path().join(SYNCED)).unwrap();
    assert_eq!(recovered(folder.path()).unwrap(), (groups.concat(), 0));
    // The crash came before the last group was synced.
    fs::write(folder.path().join(SYNCED), mark).unwrap();
    let other = tempfile::tempdir().unwrap();
    let first = fs::read(written(other.path(), &groups[..1])).unwrap().len();
    for length in first..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let torn = (length - first) as u64;
        assert_eq!(recovered(folder.path()).unwrap(), (groups[0].to_vec(), torn));
        assert_eq!(recovered(folder.path()).unwrap(), (groups[0].to_vec(), 0));
    }
}

#[test]
fn a_changed_byte_before_a_whole_group_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole, end_of_first) = two_groups(folder.path());
    // Of the last group its header, which a crash leaves out, cuts or leaves as zeros.
    for at in 0..end_of_first + 16 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        let error = recovered(folder.path()).unwrap_err().to_string();
        assert!(error.contains("restore the folder from a copy"), "{at}: {error}");
    }
}

#[test]
fn a_changed_byte_and_a_missing_one_of_a_synced_group_are_damage() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole, end_of_first) = two_groups(folder.path());
    // Recovery makes the last group durable.
    recovered(folder.path()).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        for bytes in [&flipped, &whole[..at]] {
            fs::write(&path, bytes).unwrap();
            let error = recovered(folder.path()).unwrap_err().to_string();
            assert!(error.contains("restore the folder from a copy"), "{at}: {error}");
        }
    }
    fs::write(&path, [&whole, &whole[end_of_first..end_of_first + 30]].concat()).unwrap();
    assert_eq!(recovered(folder.path()).unwrap(), (vec![push(2), push(1)], 30), "not synced");
    fs::remove_file(&path).unwrap();
    let error = recovered(folder.path()).unwrap_err().to_string();
    assert!(error.contains("no file at byte 0, expected the log, which was synced"), "{error}");
}

#[test]
fn a_damaged_mark_of_the_synced_part_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole, _) = two_groups(folder.path());
    recovered(folder.path()).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let mark = fs::read(folder.path().join(SYNCED)).unwrap();
    for at in 0..mark.len() {
        let mut flipped = mark.clone();
        flipped[at] ^= 1;
        fs::write(folder.path().join(SYNCED), flipped).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(recovered(folder.path()).unwrap().0, [push(2)]);
    }
}

#[test]
fn zeros_after_a_part_of_a_group_are_what_a_crash_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let (path, whole, second) = two_groups(folder.path());
    for n in 0..whole.len() - second {
        fs::write(&path, [&whole[..second + n], &[0; 3000]].concat()).unwrap();
        assert_eq!(recovered(folder.path()).unwrap(), (vec![push(2)], 3000 + n as u64), "{n}");
    }
}

#[test]
fn a_folder_of_another_server_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &[]);
    let other = ServerSettings { workers: 3, ..SETTINGS };
    let error = Log::recover(folder.path(), &other, 0, |_| Ok(())).unwrap_err().to_string();
    assert!(error.contains("its server has --workers 2, expected 3"), "{error}");
}

//! Durability: bytes are synced before their file is renamed, and each name before the next one that depends
//! on it. Everything is synced before the program exits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use tests::tracer::{Call, Kind, STDOUT, Then, permitted, trace};

use crate::job::{JOB, Room};

/// Runs a program and tracks the data that a power failure would lose. Returns the files that it renamed.
fn named(command: &Command, input: &[u8], room: &Room) -> Vec<PathBuf> {
    let (mut unsynced, mut folders) = (BTreeSet::new(), BTreeSet::new());
    let mut named = Vec::new();
    let mut each = |Call { kind, path }: &Call| {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let is_scratch = path.starts_with(room.scratch());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_temporary = name.starts_with(".sentimill-unfinished-");
        match kind {
            Kind::Write if path == Path::new(STDOUT) => {
                assert!(folders.is_empty(), "something is told before names in {folders:?} are synced");
            }
            Kind::Create | Kind::Write | Kind::Resize => {
                unsynced.insert(path.clone());
            }
            Kind::MakeFolder if !is_scratch && !is_temporary => {
                folders.insert(folder);
            }
            Kind::Sync => {
                unsynced.remove(path);
                folders.remove(path);
            }
            Kind::Name { from } => {
                assert!(!unsynced.contains(from), "{} is named before its bytes are synced", path.display());
                let others = || folders.iter().filter(|other| **other != folder);
                assert!(
                    others().count() == 0,
                    "{} is named before names in {folders:?} are synced",
                    path.display()
                );
                named.push(path.strip_prefix(room.path()).unwrap().to_owned());
                folders.insert(folder);
            }
            Kind::End => assert!(folders.is_empty(), "names in {folders:?} are not synced at the end"),
            _ => {}
        }
        Then::GoOn
    };
    let ended = trace(command, input, &mut each);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    named
}

#[test]
fn bytes_are_synced_before_the_rename_and_names_before_the_exit() {
    if !permitted() {
        return;
    }
    let room = Room::new();
    for partition in 0..2 {
        let reduced = named(&room.reducer(partition, "only"), &JOB.records[partition as usize], &room);
        let folders: Vec<_> = reduced.iter().map(|name| name.parent().unwrap()).collect();
        assert_eq!(folders, ["run/data", "run/data", "run/commit"].map(Path::new), "the record is last");
    }
    let merged = named(&room.merge(&JOB), b"", &room);
    let made = ["out/reviews.h5", "out/reviews.padded.h5", "out/reviews.manifest.json"].map(PathBuf::from);
    assert_eq!(merged[0], Path::new("run/manifest.json"));
    assert_eq!(merged[1..], made);
    room.unmerge();
    assert_eq!(named(&room.sentimill(&JOB), b"", &room), made);
}

//! A shard is damaged, truncated, removed or replaced while merge reads it. Merge refuses it, unless it has
//! already read it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use tests::programs::run;
use tests::steps::{Ways, described, each_step, error_line, trace_steps};
use tests::tracer::{Call, Ended, Kind, Then, permitted, trace};

use crate::job::{JOB, PARTITIONS, Room};

/// The change to a shard.
#[derive(Clone, Copy, Debug)]
enum Harm {
    /// One byte is changed, at a position that depends on the step.
    Damaged,
    /// The second half is removed.
    Cut,
    /// The name is removed.
    Removed,
    /// The name refers to another valid shard with the same sizes.
    Replaced,
    /// The file contains the bytes of that other shard.
    Overwritten,
}

impl Harm {
    const ALL: [Self; 5] = [Self::Damaged, Self::Cut, Self::Removed, Self::Replaced, Self::Overwritten];

    fn do_to(self, shard: &Path, other: &Path, at: usize) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(shard)?;
        let bytes = file.metadata()?.len();
        match self {
            Self::Damaged => {
                let place = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) % bytes;
                let mut byte = [0];
                file.read_exact_at(&mut byte, place)?;
                file.write_all_at(&[byte[0] ^ 1], place)
            }
            Self::Cut => file.set_len(bytes / 2),
            Self::Removed => fs::remove_file(shard),
            Self::Replaced => {
                let copy = shard.with_extension("copy");
                fs::copy(other, &copy)?;
                fs::rename(copy, shard)
            }
            Self::Overwritten => fs::write(shard, fs::read(other)?),
        }
    }
}

/// A shard with the same texts and other ratings.
fn other_shard(room: &Room) -> PathBuf {
    let text = String::from_utf8(JOB.records[0].clone()).unwrap();
    let turned = text.lines().map(|record| {
        let (text, votes) = record.split_once('\t').unwrap();
        let votes: Vec<&str> = votes.split(',').rev().collect();
        format!("{text}\t{}\n", votes.join(","))
    });
    run(&mut room.reducer(0, "only"), turned.collect::<String>().as_bytes()).succeeded();
    let name = room.objects().into_keys().next().unwrap();
    room.run().join("data").join(name)
}

/// Runs a reducer whose shard is changed in the temporary folder, after it is written and before it is read
/// back.
fn reduced_with(room: &Room, harm: Harm, other: &Path, at: usize) -> Ended {
    let mut is_harmed = false;
    // The library first checks whether the file exists.
    let is_opened =
        |call: &Call| call.kind == Kind::Open && call.path.ends_with("shard.h5") && call.path.exists();
    let ended = trace(&room.reducer(0, "only"), &JOB.records[0], &mut |call| {
        if is_opened(call) && !is_harmed {
            harm.do_to(&call.path, other, at).unwrap();
            is_harmed = true;
        }
        Then::GoOn
    });
    assert!(is_harmed, "the shard is not read back");
    ended
}

#[test]
fn a_shard_that_reads_back_differently_is_not_committed() {
    if !permitted() {
        return;
    }
    let elsewhere = Room::new();
    let other = other_shard(&elsewhere);
    let mut noticed = 0;
    let places = 1..=24;
    let harms = places.clone().map(|at| (Harm::Damaged, at)).chain([(Harm::Cut, 0), (Harm::Replaced, 0)]);
    for (harm, at) in harms {
        let room = Room::new();
        let ended = reduced_with(&room, harm, &other, at);
        if ended.code == Some(0) && matches!(harm, Harm::Damaged) {
            // The byte does not affect content, as in unused space.
            continue;
        }
        noticed += 1;
        assert_eq!(ended.code, Some(74), "{harm:?} {at}: {}", ended.stderr);
        let line = error_line("reducer", &ended, "harmed");
        assert!(line.contains("the shard read back differs from the shard written"), "{harm:?} {at}: {line}");
        assert_eq!((room.objects().len(), room.commits().len()), (0, 0), "{harm:?} {at}");
    }
    assert!(noticed >= 18, "{noticed} of {} were noticed", places.count() + 2);
}

#[test]
fn a_shard_changed_during_merge_is_refused_or_has_no_effect() {
    if !permitted() {
        return;
    }
    let elsewhere = Room::new();
    let other = other_shard(&elsewhere);
    let room = Room::new();
    room.reduce_all(&JOB);
    let name = room.objects().into_keys().next().unwrap();
    assert_eq!(room.objects().len(), 2 * PARTITIONS as usize);
    let shard = room.run().join("data").join(&name);
    let is_step = |call: &Call| matches!(call.kind, Kind::Open | Kind::Read) && call.path == shard;

    each_step("shard altered", 9, Ways::Each(&Harm::ALL), |at, harm| {
        room.unmerge();
        let _ = fs::remove_file(&shard);
        fs::write(&shard, &JOB.objects[0]).unwrap();
        let mut call_then = None;

        let ended = trace_steps(&room.merge(&JOB), b"", is_step, |step, call| {
            if step == at {
                harm.do_to(&shard, &other, at).unwrap();
                call_then = Some(call.clone());
            }
            Then::GoOn
        });

        let how = described("merge", at, call_then.as_ref(), &format!("{harm:?}: {}", ended.stderr));
        match ended.code {
            Some(0) => room.assert_dataset(&JOB, &how),
            code => {
                assert_eq!(code, Some(66), "{how}");
                assert!(error_line("merge", &ended, &how).contains(&name), "{how}");
                let out = fs::read_dir(room.path().join("out")).map_or(0, Iterator::count);
                assert_eq!((out, room.run().join("manifest.json").exists()), (0, false), "{how}");
            }
        }
        call_then
    });
}

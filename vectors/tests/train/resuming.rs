//! Trainings that are killed or stopped, and resumed.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tests::command::ended;
use tests::seeds::{each_seed, seeds};

use super::{embed, sentences, trained};

#[test]
fn a_training_on_files_that_is_killed_continues_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("text");
    fs::write(&input, sentences(40_000, 5)).unwrap();
    let flags = ["--threads", "1", "--epochs", "6", "--checkpoint-every", "0.02"];
    let whole = folder.path().join("whole");
    trained(embed(&input, &whole, &flags));
    let expected = fs::read(whole.join("model/vectors.npy")).unwrap();
    each_seed(&seeds(4, 20), |seed| {
        let out = folder.path().join(format!("killed-{seed}"));
        let mut n_killed = 0;
        loop {
            let more = if n_killed == 0 { "--quiet" } else { "--resume" };
            let mut command = embed(&input, &out, &[&flags[..], &[more]].concat());
            let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            // Up to the time of a whole training.
            thread::sleep(Duration::from_millis(40 + (seed * 7919 + n_killed * 104_729) % 700));
            if let Some(status) = process.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                break;
            }
            kill_process(Pid::from_child(&process), Signal::KILL).unwrap();
            process.wait().unwrap();
            n_killed += 1;
            if n_killed == 3 {
                trained(embed(&input, &out, &[&flags[..], &["--resume"]].concat()));
                break;
            }
        }
        assert_eq!(fs::read(out.join("model/vectors.npy")).unwrap(), expected, "killed {n_killed} times");
        let names = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
        assert!(left.is_empty(), "killed {n_killed} times, which left {left:?}");
    });
}

/// Starts a training that would take hours, and stops it.
#[track_caller]
pub(crate) fn stopped(mut command: Command, out: &Path) {
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !out.join("metrics.jsonl").exists() {
        thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&process), Signal::TERM).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(75));
}

#[test]
fn a_training_is_not_resumed_with_another_input() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("text"), folder.path().join("out"));
    fs::write(&input, sentences(40_000, 6)).unwrap();
    let flags = ["--threads", "1", "--epochs", "100000"];
    stopped(embed(&input, &out, &flags), &out);
    let resumed = || ended(embed(&input, &out, &[&flags[..], &["--resume"]].concat()));
    fs::write(&input, sentences(39_000, 6)).unwrap();
    let (code, told) = resumed();
    assert_eq!(code, Some(78), "{told}");
    assert!(
        told.contains("a checkpoint of another input, of 400000 tokens; found one of 390000 tokens"),
        "{told}"
    );
    // Another word, as often and at the same places.
    fs::write(&input, sentences(40_000, 6).replace("kettle", "kettles")).unwrap();
    let (code, told) = resumed();
    assert_eq!(code, Some(78), "{told}");
    assert!(told.contains("a checkpoint of another input or other settings; pass the input"), "{told}");
}

//! The error file, as PyTorch's code reads it.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use launch::failure;
use program::exit::Exit;
use tests::ranks::python;

/// The report of torchrun about ranks that exited with these exit codes (a signal is a negative number) and wrote
/// these files, if torchrun notices the exits at this time.
fn torchrun_says(python: &Path, folder: &Path, seen: SystemTime, exit_codes: [i32; 3]) -> String {
    let script = "
import sys, time
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
folder, seen, codes = sys.argv[1], float(sys.argv[2]), map(int, sys.argv[3:])
time.time = lambda: seen
failures = {rank: ProcessFailure(rank, 100 + rank, code, f'{folder}/{rank}.json') for rank, code in enumerate(codes)}
error = ChildFailedError('trainer', failures)
rank, first = error.get_first_failure()
print(f'root cause: rank {rank}')
print(error)
";
    let codes = exit_codes.map(|code| code.to_string());
    let seen_s = seen.duration_since(UNIX_EPOCH).unwrap().as_secs().to_string();
    let python =
        Command::new(python).args(["-c", script]).arg(folder).arg(seen_s).args(codes).output().unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    String::from_utf8(python.stdout).unwrap()
}

#[test]
fn torchrun_shows_a_ranks_own_message_as_the_root_cause() {
    let Some(python) = python("PyTorch's reading of an error file") else { return };
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let write = |rank: usize, exit, message| {
        failure::write(&folder.path().join(format!("{rank}.json")), exit, message, now).unwrap();
    };
    write(0, Exit::TryAgain, "all_reduce: rank 1 has died: its connection ended");
    write(1, Exit::Io, "checkpoint: disk \"é\" is full");
    write(2, Exit::TryAgain, "all_reduce: rank 1 has died: its connection ended");

    let said = torchrun_says(&python, folder.path(), now, [75, 74, 75]);

    assert!(said.starts_with("root cause: rank 1\n"), "{said}");
    assert!(said.contains("traceback : checkpoint: disk \"é\" is full\n"), "{said}");
    assert!(said.contains("traceback : all_reduce: rank 1 has died: its connection ended\n"), "{said}");
}

/// The killed rank could not write a file, so torchrun sets the time of its exit. This time can be as late as the
/// SIGKILL that ends a stopped rank.
#[test]
fn torchrun_calls_a_killed_rank_the_root_cause() {
    let Some(python) = python("PyTorch's reading of an error file") else { return };
    let folder = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    for rank in [0, 1] {
        let file = folder.path().join(format!("{rank}.json"));
        failure::write(&file, Exit::TryAgain, "rank 2 has died", now).unwrap();
    }

    let said = torchrun_says(&python, folder.path(), now + Duration::from_secs(30), [75, 75, -9]);

    assert!(said.starts_with("root cause: rank 2\n"), "{said}");
    assert!(said.contains("traceback : Signal 9 (SIGKILL) received by PID 102\n"), "{said}");
}

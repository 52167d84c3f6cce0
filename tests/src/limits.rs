//! Runs programs under limits of the system, and checks how they end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use rustix::process::geteuid;

use crate::programs::{Finished, run, without_hadoop};

/// A limit of the system, by its option of `ulimit`.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    /// `-v`, in MiB.
    Memory(u64),
    /// `-f`, in KiB.
    FileSize(u64),
    /// `-u`, of processes and threads.
    Threads(u64),
}

/// The capability to read the files of the tests, which a user without files may need.
const READS_FILES: &str = "-all,+dac_override";

/// A command under a limit. The number of threads does not limit root, so the command gets a user of its own.
pub fn limited(command: &Command, limit: Limit) -> Command {
    let (option, value) = match limit {
        Limit::Memory(mib) => ("-v", mib << 10),
        Limit::FileSize(kib) => ("-f", kib),
        Limit::Threads(n) => ("-u", n),
    };
    let mut bash = Command::new("bash");
    if matches!(limit, Limit::Threads(_)) && geteuid().is_root() {
        let user = (1 << 20) + std::process::id();
        bash = Command::new("setpriv");
        bash.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
        bash.args(
            ["--inh-caps", "--ambient-caps", "--bounding-set"].map(|set| format!("{set}={READS_FILES}")),
        );
        bash.arg("bash");
    }
    let mut all = without_hadoop(Path::new(bash.get_program()));
    all.args(bash.get_args());
    all.args(["-c", "ulimit \"$1\" \"$2\" && shift 2 && exec \"$@\"", "bash", option, &value.to_string()]);
    all.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => all.env(name, value),
            None => all.env_remove(name),
        };
    }
    all
}

/// Runs a command under a limit. Returns whether it succeeded.
///
/// # Panics
/// If it failed in another way than by one line with the remedy, and exit code 74.
#[track_caller]
pub fn succeeds(command: &Command, input: &[u8], limit: Limit) -> bool {
    let Finished { code, stderr, .. } = run(&mut limited(command, limit), input);
    let name = Path::new(command.get_program()).file_name().and_then(OsStr::to_str).expect("a name");
    let how =
        format!("{name} {:?} under {limit:?}: {code}: {stderr}", command.get_args().collect::<Vec<_>>());
    if code == 0 {
        return true;
    }
    assert_eq!(code, 74, "{how}");
    let causes = ["file size limit exceeded", "not enough memory, or too many threads", "found a limit of"];
    let prefix = format!("{name}: ");
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.is_empty()).collect();
    let n_errors = lines.iter().filter(|line| causes.iter().any(|cause| line.contains(cause))).count();
    assert!(n_errors == 1 && lines.last().is_some_and(|line| line.contains("; ")), "{how}");
    assert!(lines.iter().all(|line| line.starts_with(&prefix)), "{how}");
    let foreign = ["panicked", "terminate", "frame #", "os error", "libgomp", "Aborted", "Thread creation"];
    assert!(!foreign.iter().any(|word| stderr.contains(word)), "{how}");
    false
}

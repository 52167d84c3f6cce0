//! Runs a test's body in the ranks of a process group. The test starts its own program once per rank.
#![allow(clippy::unwrap_used, reason = "only tests use this crate, and a panic is a test failure")]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

use std::env;
use std::process::Command;
use std::thread;
use std::time::Duration;

use c10d::{Backend, Launch, Options, ProcessGroup, TcpStore};
pub use fixtures::free_port;
pub use tests::ranks::{LIMIT, Rank, placed, python, skipped};

/// Environment variable with the test's name; set only in a rank's process.
const TEST: &str = "C10D_TEST";
/// Runs `body` in each of `world_size` ranks. All of them must succeed.
pub fn on_ranks(test: &str, world_size: usize, body: impl FnOnce(&ProcessGroup)) {
    on_ranks_with(test, world_size, &options(), body);
}

/// Runs `body` as [`on_ranks`] does, with these options of the group.
pub fn on_ranks_with(test: &str, world_size: usize, options: &Options, body: impl FnOnce(&ProcessGroup)) {
    if is_rank_of(test) {
        body(&ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, options).unwrap());
        return;
    }
    let mut failed = false;
    let mut report = String::new();
    for mut rank in start(test, world_size) {
        let (code, output) = rank.end();
        failed |= code != Some(0);
        report += &format!(
            "rank {} of {world_size} exited with code {code:?}:\n{}\n",
            rank.rank,
            output.join("\n")
        );
    }
    // The report has the output of all ranks, because the rank that failed first is seldom the first in rank
    // order.
    assert!(!failed, "{report}");
}

/// Whether this process is a rank of `test`.
pub fn is_rank_of(test: &str) -> bool {
    env::var(TEST).is_ok_and(|name| name == test)
}

/// Returns the Gloo group of this process.
pub fn group() -> ProcessGroup {
    ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, &options()).unwrap()
}

/// Options of a group, with limits long enough for a slow machine, on which a process may be stopped for seconds.
pub fn options() -> Options {
    Options { timeout: Duration::from_secs(300), silence: Duration::from_secs(60), ..Options::default() }
}

/// Runs `body` once per rank, each in a thread with its own connection to the store.
pub fn as_threads(
    store: &TcpStore,
    world_size: usize,
    options: impl Fn(usize) -> Options + Sync,
    body: impl Fn(ProcessGroup) + Sync,
) {
    thread::scope(|scope| {
        for rank in 0..world_size {
            let (options, body) = (&options, &body);
            scope.spawn(move || {
                let store = TcpStore::connect("127.0.0.1", store.port(), LIMIT).unwrap();
                body(ProcessGroup::new(&store, rank, world_size, Backend::Gloo, &options(rank)).unwrap());
            });
        }
    });
}

/// Starts the ranks of a test.
pub fn start(test: &str, world_size: usize) -> Vec<Rank> {
    let port = free_port();
    (0..world_size).map(|rank| Rank::start(rank, placed(program_of(test), rank, world_size, port))).collect()
}

/// Returns the command that runs this program's test as a rank.
pub fn program_of(test: &str) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    // The ranks share the machine's cores, and libtorch would start a thread per core in each rank.
    command.env(TEST, test).env("OMP_NUM_THREADS", "1");
    // Backtraces of three ranks would hide their messages.
    command.env("RUST_BACKTRACE", "0");
    command
}

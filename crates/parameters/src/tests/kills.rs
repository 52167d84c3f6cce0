//! A server process that is killed, or suspended for a while, and workers that are replaced: nothing acknowledged is lost,
//! and nothing is applied twice.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;

use program::random::Random;
use rustix::process::{Pid, Signal, kill_process};
use tests::programs::program;

use super::workers::Work;
use super::{all_rows, client, spec};

/// A server process. It is killed at the end of the test, also of one that fails.
pub(super) struct Killed(pub(super) Child, PathBuf);

impl Killed {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// What it has printed on standard error.
    pub(super) fn errors(&self) -> String {
        fs::read_to_string(&self.1).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = fs::remove_file(&self.1);
    }
}

/// An address for one server, which may be started again.
pub(super) fn free_address() -> String {
    format!("127.0.0.1:{}", fixtures::free_port())
}

pub(super) fn start(folder: &Path, address: &str) -> Killed {
    let errors = folder.with_extension("errors");
    let process = program("parameter-server")
        .arg(address)
        .arg(folder)
        .args(["always", "2", "2", "16777216", "0.03"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(File::options().create(true).append(true).open(&errors).unwrap())
        .spawn();
    Killed(process.unwrap(), errors)
}

/// Number of faults: a third are kills, a third are kills of a suspended server, and a third are suspensions.
fn n_faults() -> u64 {
    if env::var_os("PROVE").is_some() { 60 } else { 6 }
}

fn spin(random: &mut Random) {
    for _ in 0..random.below(1 << 16) {
        std::hint::spin_loop();
    }
}

#[test]
fn a_killed_server_has_each_acknowledged_push_once() {
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let seed = env::var("SEED").map_or(11, |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut random = Random::of(&[seed]);
    let n_steps = 25 * n_faults();
    let work = Work { servers: vec![address.clone()], n_workers: 2, n_steps, seed, dies_in: 10 };
    let mut server = start(folder.path(), &address);
    let (done, steps) = channel();
    let sent = std::thread::scope(|scope| {
        let work = &work;
        let workers = scope.spawn(move || work.run(&done));
        for fault in 0..n_faults() {
            // After a random number of steps, at any point of the next one.
            for _ in 0..random.below(40) {
                let _ = steps.recv();
            }
            spin(&mut random);
            let (suspends, kills) = (fault % 3 != 0, fault % 3 != 2);
            if suspends {
                server.signal(Signal::STOP);
                // Requests arrive meanwhile.
                spin(&mut random);
            }
            if kills {
                server.kill();
                server = start(folder.path(), &address);
            } else {
                server.signal(Signal::CONT);
            }
        }
        while steps.recv().is_ok() {}
        workers.join().unwrap()
    });
    let mut reader = client(&work.servers);
    reader.create(&spec()).unwrap();
    assert_eq!(all_rows(&reader), work.sums());
    let statistics = &reader.statistics().unwrap()[0];
    assert_eq!((statistics.ledger.pushes, statistics.balanced), (work.n_pushes(), true));
    assert!(sent.pushes <= work.n_pushes(), "{sent:?}");
    assert!(statistics.ledger.staleness.keys().all(|&staleness| staleness <= 2), "{statistics:?}");
}

//! Workers that are silent, and workers that wait.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::{address, client, client_options, ones, options, spec, start_again};
use crate::{Client, LEFT, Moment, Read, Server, ServerOptions};

fn worker(servers: &[String], number: u32) -> Client {
    let mut worker = client(servers);
    worker.create(&spec()).unwrap();
    worker.join(number, 2).unwrap();
    worker
}

fn step(worker: &Client, step: u64) -> crate::Result<()> {
    let pulled = worker.pulled(worker.pull(Moment::Step(step), Vec::new())?)?;
    worker.pushed(worker.push(step, &pulled.read_at, &mut [ones(vec![1])])?).map(drop)
}

/// Runs a test with longer and longer limits of silence, until the worker that is not silent stays: a machine may stop its
/// thread for seconds.
fn until_the_other_stays(stays: impl Fn(Duration) -> bool) {
    assert!(
        [1, 5, 25].into_iter().any(|s| stays(Duration::from_secs(s))),
        "the other worker was removed too"
    );
}

/// Whether a worker is still there.
fn stays(stepped: crate::Result<()>) -> bool {
    let is_removed = |error: &crate::Error| error.to_string().contains("worker 0 was removed");
    match stepped {
        Err(error) if is_removed(&error) => false,
        stepped => {
            stepped.unwrap();
            true
        }
    }
}

/// Worker 0 asks every few milliseconds until worker 1 is removed. Returns whether worker 0 is still there.
fn asks_until_the_silent_one_is_removed(other: &mut Client) -> bool {
    while !other.statistics().unwrap()[0].workers[1].removed {
        other.join(0, 2).unwrap();
    }
    !other.join(0, 2).unwrap().is_removed
}

#[test]
fn a_silent_worker_is_removed_and_can_only_read() {
    until_the_other_stays(is_removed_and_can_only_read);
}

fn is_removed_and_can_only_read(remove_after: Duration) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let removing = ServerOptions { remove_after, ..options(folder.path(), 2, Some(0)) };
    let server = Server::start(&removing).unwrap();
    let servers = [address(&server)];
    let (silent, mut other) = (worker(&servers, 1), worker(&servers, 0));
    // The second step begins when the silent worker was removed.
    let is_there =
        stays(step(&other, 0)) && asks_until_the_silent_one_is_removed(&mut other) && stays(step(&other, 1));
    if !is_there {
        return false;
    }
    let error = step(&silent, 0).unwrap_err().to_string();
    assert!(error.contains("worker 1 was removed because it was silent for too long"), "{error}");
    other.leave().unwrap();
    drop(server.stop().unwrap());

    let server = start_again(&options(folder.path(), 2, Some(0))).unwrap();
    let mut silent = client(&[address(&server)]);
    silent.create(&spec()).unwrap();
    let joined = silent.join(1, 2).unwrap();
    assert_eq!((joined.step, joined.is_removed), (LEFT, true));
    let rows = vec![Read { table: 0, rows: vec![1] }];
    assert_eq!(silent.pulled(silent.pull(Moment::End, rows).unwrap()).unwrap().values[0], [2.0; 5]);
    silent.leave().unwrap();
    true
}

#[test]
fn a_worker_that_one_server_removed_keeps_no_other_server_waiting() {
    until_the_other_stays(keeps_no_other_server_waiting);
}

fn keeps_no_other_server_waiting(remove_after: Duration) -> bool {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = |shard: u32, remove_after| {
        let options = options(folders[shard as usize].path(), 2, Some(0));
        Server::start(&ServerOptions { shard, n_shards: 2, remove_after, ..options }).unwrap()
    };
    let (removes, waits) = (start(0, remove_after), start(1, Duration::from_secs(1000)));
    let servers = [address(&removes), address(&waits)];
    drop(worker(&servers, 1));
    let mut other = worker(&servers, 0);
    if !asks_until_the_silent_one_is_removed(&mut other) {
        return false;
    }
    let mut again = client(&servers);
    again.create(&spec()).unwrap();
    let joined = again.join(1, 2).unwrap();
    assert_eq!((joined.step, joined.is_removed), (LEFT, true));
    let is_there = (0..3).all(|number| stays(step(&other, number)));
    if is_there {
        other.leave().unwrap();
    }
    is_there
}

/// The number of requests of worker 0 that a server hears, until there are 3 or 100 s are over, less than the patience of a client.
fn n_heard(reader: &Client) -> u32 {
    let (began, mut n_heard, mut before) = (Instant::now(), 0, 0.0);
    while n_heard < 3 && began.elapsed() < Duration::from_secs(100) {
        let silent_s = reader.statistics().unwrap()[0].workers[0].silent_s.unwrap();
        n_heard += u32::from(silent_s < before);
        before = silent_s;
    }
    n_heard
}

#[test]
fn a_worker_that_waits_for_a_server_shows_the_others_that_it_is_alive() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = |shard: u32| {
        let options =
            ServerOptions { shard, n_shards: 2, ..options(folders[shard as usize].path(), 2, Some(0)) };
        Server::start(&options).unwrap()
    };
    let (ends, stays) = (start(0), start(1));
    let options = client_options(&[address(&ends), address(&stays)]);
    let mut waiting = Client::new(&options).unwrap();
    waiting.create(&spec()).unwrap();
    waiting.join(0, 2).unwrap();
    ends.stop().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(move || step(&waiting, 0).unwrap_err());
        // The first one is the pull.
        assert_eq!(n_heard(&client(&[address(&stays)])), 3);
        options.stop.store(true, Relaxed);
        let error = waits.join().unwrap();
        assert!(error.to_string().starts_with("interrupted while it waited"), "{error}");
    });
}

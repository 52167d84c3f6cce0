//! Keys and places that workers push with their updates.

use std::thread;
use std::time::Duration;

use super::{DIM, address, all_rows, client, ones, options, spec, start_again};
use crate::{Client, Commit, Joined, LineCounts, Server, ServerOptions, Spec};

fn joined(servers: &[String], worker: u32, n_workers: u32) -> (Client, Joined) {
    let mut client = client(servers);
    client.create(&Spec { min_count: 2, ..spec() }).unwrap();
    let joined = client.join(worker, n_workers).unwrap();
    (client, joined)
}

fn commit(counts: &[(&str, u64)], place: &str) -> Commit {
    let of = |&(key, n): &(&str, u64)| (key.as_bytes().to_vec(), n);
    let lines = LineCounts { trained: place.len() as u64, ..LineCounts::default() };
    Commit { counts: counts.iter().map(of).collect(), place: place.into(), lines }
}

/// Adds 1 to row 7.
fn push(client: &Client, step: u64, commit: Commit) -> u64 {
    let read_at = vec![step; client.statistics().unwrap().len()];
    let pushing = client.push_and_commit(step, &read_at, &mut [ones(vec![7])], commit).unwrap();
    client.pushed(pushing).unwrap().repeated
}

#[test]
fn counts_and_the_place_of_a_push_are_applied_once_and_survive_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(folder.path(), 1, Some(1));
    let mut server = Server::start(&options).unwrap();
    let (worker, first) = joined(&[address(&server)], 0, 1);
    assert_eq!((first.step, first.place), (0, Vec::new()));
    for repeated in [0, 1] {
        assert_eq!(push(&worker, 0, commit(&[("b", 2), ("a", 1)], "first")), repeated);
    }
    // From the log, then from a snapshot and the log behind it.
    let expected = [(1, "first", 1), (2, "second", 2), (3, "third", 2)];
    let counts = [[("a", 1), ("b", 1)], [("c", 1), ("a", 1)]];
    for (at, (step, place, n_keys)) in expected.into_iter().enumerate() {
        if at == 1 {
            drop(server);
        } else {
            assert!(server.stop().unwrap().balanced);
        }
        server = start_again(&options).unwrap();
        let (worker, found) = joined(&[address(&server)], 0, 1);
        assert_eq!((found.step, &found.place[..]), (step, place.as_bytes()));
        let lines = worker.statistics().unwrap()[0].workers[0].lines.unwrap();
        assert_eq!(lines, LineCounts { trained: place.len() as u64, skipped: 0, lost: 0 });
        assert_eq!(worker.keys(0, None).unwrap().n_keys, n_keys);
        if let Some(counts) = counts.get(at) {
            let place = expected[at + 1].1;
            assert_eq!(push(&worker, step, commit(counts, place)), 0);
        }
    }
    let (worker, _) = joined(&[address(&server)], 0, 1);
    let range = worker.keys(0, None).unwrap();
    let keys: Vec<(&[u8], u64)> = range.keys.iter().map(|(key, n)| (&key[..], *n)).collect();
    assert_eq!((keys, range.n_counted), (vec![(&b"b"[..], 3), (&b"a"[..], 3)], 7));
    assert_eq!(all_rows(&worker)[7 * DIM..8 * DIM], [3.0; DIM]);
}

#[test]
fn the_first_server_gets_the_place_when_the_others_have_their_part() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let options = [0, 1].map(|shard| {
        let folder = folders[shard as usize].path();
        ServerOptions { shard, n_shards: 2, ..options(folder, 1, Some(1)) }
    });
    let [first, second] = options.each_ref().map(|options| Server::start(options).unwrap());
    let second_address = address(&second);
    let servers = [address(&first), second_address.clone()];
    let (worker, _) = joined(&servers, 0, 1);
    drop(second);
    let pushing = worker.push_and_commit(0, &[0, 0], &mut [ones(vec![6, 7])], commit(&[("a", 2)], "behind"));
    thread::sleep(Duration::from_millis(300));
    let reader = client(&servers[..1]);
    assert_eq!((reader.statistics().unwrap()[0].ledger.pushes, reader.keys(0, None).unwrap().n_keys), (0, 0));
    let listen = second_address.parse().unwrap();
    let _second = start_again(&ServerOptions { listen, ..options[1].clone() }).unwrap();
    worker.pushed(pushing.unwrap()).unwrap();
    let (worker, found) = joined(&servers, 0, 1);
    assert_eq!((found.step, &found.place[..], worker.keys(0, None).unwrap().n_keys), (1, &b"behind"[..], 1));
}

#[test]
fn a_worker_waits_for_a_step_of_another_one_but_not_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 2, Some(1))).unwrap();
    let [(idle, _), (busy, _)] = [0, 1].map(|worker| joined(&[address(&server)], worker, 2));
    let range = idle.keys(0, Some(0)).unwrap();
    assert_eq!((range.most_steps, range.n_workers, range.n_keys), (0, 2, 0));
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut found = std::iter::repeat_with(|| idle.keys(0, Some(0)).unwrap());
            found.find(|range| range.most_steps > 0).unwrap()
        });
        push(&busy, 0, commit(&[("a", 2)], ""));
        assert_eq!(waiting.join().unwrap().n_keys, 1);
    });
    busy.leave().unwrap();
    let range = idle.keys(0, Some(0)).unwrap();
    assert_eq!((range.most_steps, range.n_workers), (0, 1));
}

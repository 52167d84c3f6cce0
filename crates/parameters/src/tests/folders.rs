//! The folder of a server: who writes into it, and what happens if that fails.

use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::workers::Work;
use super::{DIM, address, all_rows, client, ones, options, spec, start_again};
use crate::{LogSync, Server, ServerOptions};

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn add_one(server: &Server, step: u64) {
    let mut worker = client(&[address(server)]);
    worker.create(&spec()).unwrap();
    worker.join(0, 1).unwrap();
    worker.pushed(worker.push(step, &[step], &mut [ones(vec![7])]).unwrap()).unwrap();
}

fn row_7(server: &Server) -> Vec<f32> {
    let mut reader = client(&[address(server)]);
    reader.create(&spec()).unwrap();
    all_rows(&reader)[7 * DIM..8 * DIM].to_vec()
}

#[test]
fn a_dropped_server_leaves_the_folder_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let often = ServerOptions { snapshot_every: Duration::from_millis(1), ..options(folder.path(), 1, None) };
    let server = Server::start(&options(folder.path(), 1, None)).unwrap();
    add_one(&server, 0);
    let error = Server::start(&often).unwrap_err().to_string();
    assert!(error.contains("another server uses the folder"), "{error}");
    drop(server);
    assert_eq!(names(folder.path()), ["lock", "log-000000000000", "synced"]);
    let server = start_again(&often).unwrap();
    add_one(&server, 1);
    assert_eq!(row_7(&server), [2.0; DIM]);
}

#[test]
fn without_a_sync_before_each_answer_nothing_is_lost_by_a_kill() {
    for log_sync in [LogSync::Interval, LogSync::Off] {
        let folder = tempfile::tempdir().unwrap();
        let lazy = ServerOptions { log_sync, ..options(folder.path(), 2, Some(1)) };
        let server = Server::start(&lazy).unwrap();
        let work = Work { servers: vec![address(&server)], n_workers: 2, n_steps: 50, seed: 9, dies_in: 0 };
        work.run(&channel().0);
        drop(server);
        let server = start_again(&lazy).unwrap();
        let mut reader = client(&[address(&server)]);
        reader.create(&spec()).unwrap();
        assert_eq!(all_rows(&reader), work.sums());
        assert_eq!(server.stop().unwrap().ledger.pushes, work.n_pushes());
    }
}

#[test]
fn a_snapshot_that_fails_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let often = ServerOptions { snapshot_every: Duration::ZERO, ..options(folder.path(), 1, None) };
    let server = Server::start(&often).unwrap();
    // A folder with a file cannot be replaced.
    fs::create_dir(folder.path().join("snapshot-000000000001")).unwrap();
    fs::write(folder.path().join("snapshot-000000000001/file"), "").unwrap();
    add_one(&server, 0);
    let reader = client(&[address(&server)]);
    let began = Instant::now();
    let since_start = loop {
        let found = reader.statistics().unwrap()[0].since_start;
        if found.snapshots > 0 || began.elapsed() > Duration::from_secs(300) {
            break found;
        }
        // Without entries there is no snapshot to write.
        let step = reader.statistics().unwrap()[0].workers[0].steps.unwrap();
        add_one(&server, step);
    };
    assert!(since_start.failed_snapshots > 0 && since_start.snapshots > 0, "{since_start:?}");
    let error = server.failed_snapshot().unwrap().to_string();
    assert!(error.contains("snapshot-000000000001"), "{error}");
    let pushes = server.stop().unwrap().ledger.pushes;
    let server = start_again(&often).unwrap();
    assert_eq!(row_7(&server), [pushes as f32; DIM]);
}

#[test]
fn tables_of_a_folder_need_memory_too() {
    let folder = tempfile::tempdir().unwrap();
    let small = ServerOptions { memory_max: 5999, ..options(folder.path(), 1, None) };
    let message = "its tables need 6000 bytes, but --memory is 5999; raise it, or choose another --folder";
    let server = Server::start(&options(folder.path(), 1, None)).unwrap();
    add_one(&server, 0);
    drop(server);
    let of_log = start_again(&small).unwrap_err().to_string();
    assert!(of_log.contains(message), "{of_log}");
    start_again(&options(folder.path(), 1, None)).unwrap().stop().unwrap();
    let of_snapshot = start_again(&small).unwrap_err().to_string();
    assert!(of_snapshot.contains(message), "{of_snapshot}");
}

#[test]
fn a_folder_of_something_else_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("settings.json"), "{}").unwrap();
    let error = Server::start(&options(folder.path(), 1, None)).unwrap_err().to_string();
    assert!(error.contains("found settings.json, expected the files of a parameter server"), "{error}");
    assert_eq!(names(folder.path()), ["settings.json"]);
}

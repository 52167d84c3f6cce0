//! Round trips, the bound of staleness, and equality with a sequential training.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::workers::Work;
use super::{DIM, N_ROWS, address, all_rows, client, client_options, ones, options, spec, start_again};
use crate::{Client, LEFT, Moment, Read, Server, ServerOptions, Spec, Update, Wire};

#[test]
fn rows_come_back_from_their_servers_and_survive_a_restart() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let start = || {
        let of_shard = |(shard, folder): (u32, &tempfile::TempDir)| {
            let options = ServerOptions { shard, n_shards: 2, ..options(folder.path(), 1, Some(1)) };
            Server::start(&options).unwrap()
        };
        (0..).zip(&folders).map(of_shard).collect::<Vec<_>>()
    };
    let servers = start();
    let mut worker = client(&servers.iter().map(address).collect::<Vec<_>>());
    worker.create(&spec()).unwrap();
    assert_eq!(worker.join(0, 1).unwrap().step, 0);
    let values: Vec<f32> = (0..4 * DIM).map(|value| value as f32).collect();
    let mut updates = [Update { table: 0, rows: vec![2, 3, 5, 298], values: values.clone() }];
    let sent = worker.pushed(worker.push(0, &[0, 0], &mut updates).unwrap()).unwrap();
    assert_eq!((sent.pushes, sent.repeated, sent.rows), (2, 0, 4));
    let read = |worker: &Client| {
        let reads = vec![Read { table: 0, rows: vec![298, 0, 5, 3, 2] }];
        worker.pulled(worker.pull(Moment::Now, reads).unwrap()).unwrap().values.remove(0)
    };
    let zeros = [0.0; DIM];
    let expected =
        [&values[3 * DIM..], &zeros, &values[2 * DIM..3 * DIM], &values[DIM..2 * DIM], &values[..DIM]]
            .concat();
    assert_eq!(read(&worker), expected);
    for server in servers {
        assert!(server.stop().unwrap().balanced);
    }
    let servers = start();
    let mut worker = client(&servers.iter().map(address).collect::<Vec<_>>());
    worker.create(&spec()).unwrap();
    assert_eq!((worker.join(0, 1).unwrap().step, read(&worker)), (1, expected));
}

#[test]
fn a_repeated_push_is_applied_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 1, None)).unwrap();
    let mut worker = client(&[address(&server)]);
    worker.create(&spec()).unwrap();
    worker.join(0, 1).unwrap();
    for repeated in [0, 1, 1] {
        let sent = worker.pushed(worker.push(0, &[0], &mut [ones(vec![7])]).unwrap()).unwrap();
        assert_eq!((sent.pushes, sent.repeated), (1, repeated));
    }
    assert_eq!(all_rows(&worker)[7 * DIM..8 * DIM], [1.0; DIM]);
    let statistics = server.stop().unwrap();
    assert_eq!((statistics.ledger.pushes, statistics.since_start.repeated), (1, 2));
}

#[test]
fn a_worker_that_was_replaced_and_continues_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 1, Some(1))).unwrap();
    let join = || {
        let mut client = client(&[address(&server)]);
        client.create(&spec()).unwrap();
        client.join(0, 1).unwrap();
        client
    };
    let push = |client: &Client, step, value| {
        let mut updates = [Update { table: 0, rows: vec![7], values: vec![value; DIM] }];
        client.pushed(client.push(step, &[step], &mut updates).unwrap())
    };
    let (forgotten, replacement) = (join(), join());
    assert_eq!(push(&replacement, 0, 1.0).unwrap().repeated, 0);
    assert_eq!(push(&forgotten, 0, 1000.0).unwrap().repeated, 1);
    assert_eq!(push(&replacement, 1, 1.0).unwrap().repeated, 0);
    replacement.leave().unwrap();
    assert_eq!(push(&forgotten, 1, 1000.0).unwrap().repeated, 1);
    let error = push(&forgotten, 2, 1000.0).unwrap_err().to_string();
    assert!(error.contains("a push of worker 0, which has left"), "{error}");
    assert_eq!(all_rows(&forgotten)[7 * DIM..8 * DIM], [2.0; DIM]);
    assert_eq!(server.stop().unwrap().ledger.pushes, 2);
}

#[test]
fn a_worker_that_is_too_far_ahead_waits_for_the_slowest() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 2, Some(2))).unwrap();
    let join = |worker| {
        let mut client = client(&[address(&server)]);
        client.create(&spec()).unwrap();
        client.join(worker, 2).unwrap();
        client
    };
    let (fast, slow) = (join(0), join(1));
    let pull = |client: &Client, step| client.pull(Moment::Step(step), Vec::new()).unwrap();
    let step = |client: &Client, step| {
        let read_at = client.pulled(pull(client, step)).unwrap().read_at;
        client.pushed(client.push(step, &read_at, &mut [ones(vec![1])]).unwrap()).unwrap();
    };
    (0..3).for_each(|number| step(&fast, number));
    let waiting = pull(&fast, 3);
    step(&slow, 0);
    // It was read after the step of the slow worker.
    let read_at = fast.pulled(waiting).unwrap().read_at;
    assert_eq!(read_at, [1]);
    let too_old = fast.pushed(fast.push(3, &[0], &mut [ones(vec![1])]).unwrap()).unwrap_err().to_string();
    assert!(too_old.contains("rows that are 3 steps old, expected at most --staleness 2"), "{too_old}");
    fast.pushed(fast.push(3, &read_at, &mut [ones(vec![1])]).unwrap()).unwrap();
    let statistics = server.stop().unwrap();
    assert_eq!(statistics.ledger.staleness, [(0, 2), (1, 1), (2, 2)].into());
    assert_eq!(statistics.since_start.too_old, 1);
}

#[test]
fn no_push_is_older_than_the_bound() {
    for staleness in [0, 1, 4] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&options(folder.path(), 3, Some(staleness))).unwrap();
        let servers = vec![address(&server)];
        let work = Work { servers, n_workers: 3, n_steps: 40, seed: staleness, dies_in: 0 };
        work.run(&channel().0);
        assert_eq!(all_rows_of(&work), work.sums());
        assert!(server.is_done());
        let statistics = server.stop().unwrap();
        assert!(statistics.ledger.staleness.keys().all(|&found| found <= staleness), "{statistics:?}");
        assert_eq!((statistics.ledger.pushes, statistics.since_start.too_old), (work.n_pushes(), 0));
    }
}

fn all_rows_of(work: &Work) -> Vec<f32> {
    let mut reader = client(&work.servers);
    reader.create(&spec()).unwrap();
    all_rows(&reader)
}

/// An update that depends on the rows, so that the order of updates changes the bits of the result.
fn training(worker: u32, step: u64, rows: &[f32]) -> Vec<f32> {
    let scale = 0.1 + worker as f32 / 7.0 + step as f32 / 50.0;
    rows.iter().enumerate().map(|(at, value)| (value * scale + at as f32 + 0.3).sin() / 3.0).collect()
}

#[test]
fn with_bound_0_the_result_equals_a_sequential_training_bit_for_bit() {
    const WORKERS: u32 = 3;
    const STEPS: u64 = 30;
    let folders: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let of_shard = |(shard, folder): (u32, &tempfile::TempDir)| {
        let options = ServerOptions { shard, n_shards: 2, ..options(folder.path(), WORKERS, Some(0)) };
        Server::start(&options).unwrap()
    };
    let servers: Vec<Server> = (0..).zip(&folders).map(of_shard).collect();
    let addresses: Vec<String> = servers.iter().map(address).collect();
    let reads = || vec![Read { table: 0, rows: (0..N_ROWS).collect() }];
    std::thread::scope(|scope| {
        for number in 0..WORKERS {
            let addresses = &addresses;
            scope.spawn(move || {
                let mut worker = client(addresses);
                worker.create(&spec()).unwrap();
                worker.join(number, WORKERS).unwrap();
                for step in 0..STEPS {
                    let pulled = worker.pulled(worker.pull(Moment::Step(step), reads()).unwrap()).unwrap();
                    let values = training(number, step, &pulled.values[0]);
                    let mut updates = [Update { table: 0, rows: (0..N_ROWS).collect(), values }];
                    worker.pushed(worker.push(step, &pulled.read_at, &mut updates).unwrap()).unwrap();
                }
                worker.leave().unwrap();
            });
        }
    });
    let mut expected = vec![0f32; N_ROWS as usize * DIM];
    for step in 0..STEPS {
        let updates: Vec<_> = (0..WORKERS).map(|worker| training(worker, step, &expected)).collect();
        for update in updates {
            expected.iter_mut().zip(update).for_each(|(value, update)| *value += update);
        }
    }
    let mut reader = client(&addresses);
    reader.create(&spec()).unwrap();
    let pulled = reader.pulled(reader.pull(Moment::End, reads()).unwrap()).unwrap();
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&pulled.values[0]), bits(&expected));
    assert_eq!(pulled.read_at, [LEFT; 2]);
}

#[test]
fn snapshots_are_taken_while_rows_change_and_shorten_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let often = || ServerOptions { snapshot_every: Duration::ZERO, ..options(folder.path(), 2, Some(8)) };
    let server = Server::start(&often()).unwrap();
    let work = Work { servers: vec![address(&server)], n_workers: 2, n_steps: 400, seed: 5, dies_in: 0 };
    work.run(&channel().0);
    let statistics = server.stop().unwrap();
    assert!(statistics.since_start.snapshots > 1, "{statistics:?}");
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    let last = &names[2]["snapshot-".len()..];
    assert_eq!(names, ["lock", &format!("log-{last}"), &format!("snapshot-{last}"), "synced"]);
    let server = start_again(&often()).unwrap();
    let work = Work { servers: vec![address(&server)], ..work };
    assert_eq!(all_rows_of(&work), work.sums());
    assert_eq!(server.stop().unwrap().ledger, statistics.ledger);
}

#[test]
fn what_an_encoding_does_not_send_is_left_for_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 1, Some(0))).unwrap();
    let mut worker =
        Client::new(&crate::ClientOptions { wire: Wire::TopK(2), ..client_options(&[address(&server)]) })
            .unwrap();
    worker.create(&spec()).unwrap();
    worker.join(0, 1).unwrap();
    let mut updates = [Update { table: 0, rows: vec![9], values: vec![1.0, -4.0, 0.5, 3.0, 2.0] }];
    for step in 0..3 {
        worker.pushed(worker.push(step, &[step], &mut updates).unwrap()).unwrap();
    }
    assert_eq!(all_rows(&worker)[9 * DIM..10 * DIM], [1.0, -4.0, 0.5, 3.0, 2.0]);
    assert_eq!(updates[0].values, [0.0; DIM]);
}

#[test]
fn a_worker_whose_pushes_were_lost_does_not_wait_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 1, Some(1))).unwrap();
    let mut worker = client(&[address(&server)]);
    worker.create(&spec()).unwrap();
    worker.join(0, 1).unwrap();
    let pull = |step| worker.pulled(worker.pull(Moment::Step(step), Vec::new()).unwrap());
    pull(1).unwrap();
    let error = pull(3).unwrap_err().to_string();
    assert!(error.contains("worker 0 is at step 3, but this server has its pushes of 0 steps"), "{error}");
}

#[test]
fn another_description_of_a_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 2, Some(0))).unwrap();
    let mut worker = client(&[address(&server)]);
    assert_eq!(worker.create(&spec()).unwrap(), worker.create(&spec()).unwrap());
    let refused = |spec: Spec| client(&[address(&server)]).create(&spec).unwrap_err().to_string();
    let error = refused(Spec { content: "of another".to_owned(), ..spec() });
    assert!(
        error.contains("table \"rows\": the content is \"of another\", expected \"of a test\""),
        "{error}"
    );
    let error = refused(Spec { dim: 6, ..spec() });
    assert!(error.contains("the size is (300, 6), expected (300, 5)"), "{error}");
    let error = refused(Spec { name: "large".to_owned(), n_rows: 1 << 31, ..spec() });
    assert!(error.contains("but --memory is 16777216; raise it, or use more servers"), "{error}");
    let error = worker.join(0, 3).unwrap_err().to_string();
    assert!(error.contains("3 workers, expected 2"), "{error}");
    let error = worker.join(2, 2).unwrap_err().to_string();
    assert!(error.contains("worker 2, expected one of the 2 workers"), "{error}");
    let error = client(&[address(&server), address(&server)]).create(&spec()).unwrap_err().to_string();
    assert!(error.contains("it has the rows 0/1, expected 0/2"), "{error}");
}

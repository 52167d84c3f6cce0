//! Ranks, whose server is in the process of rank 0.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{address, all_rows, client, ones, spec};
use crate::{Client, Ending, Error, Moment, Server, ServerOptions, Stage, Tables};

fn server(n_ranks: u32) -> Server {
    Server::start(&ServerOptions::of_ranks("127.0.0.1:0".parse().unwrap(), n_ranks, None)).unwrap()
}

/// A rank that was asked for this number.
fn rank(server: &Server, rank: u32, asked: u32) -> Client {
    let client = client(&[address(server)]);
    let asked = Arc::new(AtomicU32::new(asked));
    client.begin(rank, move || asked.swap(0, Relaxed)).unwrap();
    client
}

fn step(rank: &Client, step: u64) -> crate::Result<()> {
    let pulled = rank.pulled(rank.pull(Moment::Step(step), Vec::new())?)?;
    rank.pushed(rank.push(step, &pulled.read_at, &mut [ones(vec![1])])?).map(drop)
}

#[test]
fn ranks_continue_with_the_saved_tables_and_step() {
    let first = server(2);
    assert_eq!(first.first_before(Stage::Started), Some(0));
    let mut ranks = [0, 1].map(|number| rank(&first, number, 2 * number));
    assert_eq!((first.first_before(Stage::Started), first.first_before(Stage::Joined)), (None, Some(0)));
    first.open(Tables::new(vec![spec()]), 0).unwrap();
    for (number, rank) in (0..).zip(&mut ranks) {
        rank.create(&spec()).unwrap();
        assert_eq!(rank.join(number, 2).unwrap().step, 0);
    }
    assert_eq!(first.first_before(Stage::Joined), None);
    std::thread::scope(|scope| {
        ranks
            .iter()
            .for_each(|rank| drop(scope.spawn(|| (0..3).for_each(|number| step(rank, number).unwrap()))));
    });
    drop(ranks[0].pulled(ranks[0].pull(Moment::Step(3), Vec::new()).unwrap()).unwrap());
    let saved = first.save(b"place").unwrap();
    assert_eq!(all_rows(&ranks[0])[5..10], [6.0; 5]);
    for (number, rank) in (10..).zip(&mut ranks) {
        rank.leave_with(number).unwrap();
    }
    assert_eq!((first.sum(), first.is_done()), (21, true));
    // That of rank 1 comes with a request of its own.
    let began = Instant::now();
    while first.requested() != 2 {
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    let second = server(1);
    let mut tables = Tables::new(vec![spec()]);
    tables.restore(&saved).unwrap();
    tables.set(0, 2, &[7.0; 5]).unwrap();
    let mut again = rank(&second, 0, 0);
    second.open(tables, 3).unwrap();
    again.create(&spec()).unwrap();
    assert_eq!(again.join(0, 1).unwrap().step, 3);
    step(&again, 3).unwrap();
    assert_eq!(all_rows(&again)[5..15], [[7.0; 5]; 2].concat());
}

#[test]
fn all_ranks_hear_why_they_end() {
    let server = server(3);
    let mut ranks = [0, 1, 2].map(|number| rank(&server, number, 0));
    server.open(Tables::new(vec![spec()]), 0).unwrap();
    for (number, rank) in (0..).zip(&mut ranks) {
        rank.create(&spec()).unwrap();
        rank.join(number, 3).unwrap();
    }
    step(&ranks[0], 0).unwrap();
    let first = Ending { code: 78, message: "é".repeat(3000) };
    ranks[1].end_all(1, &first);
    ranks[2].end_all(2, &Ending { code: 75, message: "later".to_owned() });
    for rank in [&ranks[0], &ranks[2]] {
        let Err(Error::Ended(ending)) = step(rank, 1) else { panic!("a rank continues") };
        assert_eq!((ending.code, ending.message), (78, "é".repeat(1000)));
    }
    assert_eq!(
        (server.ending().map(|ending| ending.code), server.first_before(Stage::Told)),
        (Some(78), None)
    );
}

#[test]
fn a_silent_rank_ends_all() {
    let server = server(2);
    let ranks = [0, 1].map(|number| rank(&server, number, 0));
    let [mut stays, dies] = ranks;
    server.open(Tables::new(vec![spec()]), 0).unwrap();
    drop(dies);
    stays.create(&spec()).unwrap();
    stays.join(0, 2).unwrap();
    step(&stays, 0).unwrap();
    let error = step(&stays, 1).unwrap_err();
    let expected =
        "rank 1 has been silent for 10 s: it has died or stopped; start all ranks again, with --resume";
    assert_eq!((error.to_string(), error.exit()), (expected.to_owned(), program::exit::Exit::TryAgain));
}

#[test]
fn a_rank_hears_that_rank_0_is_gone() {
    let server = server(2);
    let mut rank = rank(&server, 1, 0);
    server.open(Tables::new(vec![spec()]), 0).unwrap();
    rank.create(&spec()).unwrap();
    rank.join(1, 2).unwrap();
    step(&rank, 0).unwrap();
    drop(server);
    let error = step(&rank, 1).unwrap_err().to_string();
    assert!(error.contains("rank 0 has been silent for 10 s"), "{error}");
}

#[test]
fn a_durable_server_has_no_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&super::options(folder.path(), 1, Some(0))).unwrap();
    let mut worker = client(&[address(&server)]);
    worker.create(&spec()).unwrap();
    worker.join(0, 1).unwrap();
    worker.end_all(0, &Ending { code: 78, message: String::new() });
    step(&worker, 0).unwrap();
    assert_eq!(server.ending(), None);
}

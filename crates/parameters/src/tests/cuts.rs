//! A proxy that cuts connections after some bytes: clients connect again and repeat what was not acknowledged.

use std::env;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::thread;

use program::random::Random;

use super::workers::Work;
use super::{address, all_rows, client, options, spec};
use crate::Server;

/// Passes bytes on until the limit is reached, then closes both connections.
fn pass(mut from: TcpStream, mut to: TcpStream, mut left: usize, n_cuts: &AtomicU64) {
    let mut bytes = [0; 1 << 12];
    while left > 0 {
        let n = match from.read(&mut bytes) {
            Ok(0) | Err(_) => break,
            Ok(n) => n.min(left),
        };
        if to.write_all(&bytes[..n]).is_err() {
            break;
        }
        left -= n;
        if left == 0 {
            n_cuts.fetch_add(1, Relaxed);
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// Starts the proxy, whose threads end with the process. Returns its address, and the number of cuts.
fn proxy(server: String, seed: u64) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let n_cuts = Arc::<AtomicU64>::default();
    let of_threads = Arc::clone(&n_cuts);
    thread::spawn(move || {
        let mut random = Random::of(&[seed]);
        for here in listener.incoming() {
            let here = here.unwrap();
            let there = TcpStream::connect(&server).unwrap();
            let mut limit = || 400 + random.below(20_000) as usize;
            let (up, down) = (limit(), limit());
            let (from, to) = (here.try_clone().unwrap(), there.try_clone().unwrap());
            let (of_up, of_down) = (Arc::clone(&of_threads), Arc::clone(&of_threads));
            thread::spawn(move || pass(from, to, up, &of_up));
            thread::spawn(move || pass(there, here, down, &of_down));
        }
    });
    (address, n_cuts)
}

#[test]
fn cut_connections_lose_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 2, Some(1))).unwrap();
    let (proxy, n_cuts) = proxy(address(&server), 3);
    let n_steps = if env::var_os("PROVE").is_some() { 1000 } else { 100 };
    let work = Work { servers: vec![proxy], n_workers: 2, n_steps, seed: 3, dies_in: 0 };
    let sent = work.run(&channel().0);
    let mut reader = client(&[address(&server)]);
    reader.create(&spec()).unwrap();
    assert_eq!(all_rows(&reader), work.sums());
    let statistics = server.stop().unwrap();
    assert_eq!((sent.pushes, statistics.ledger.pushes), (work.n_pushes(), work.n_pushes()));
    assert!(statistics.balanced);
    let n_cuts = n_cuts.load(Relaxed);
    println!("{n_cuts} cuts");
    assert!(n_cuts > n_steps / 10, "{n_cuts} cuts");
}

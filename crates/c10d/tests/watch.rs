//! Tests the watch between ranks that are threads of this process: unauthenticated connections, ranks that join
//! twice, and freed threads and descriptors.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use c10d::{Backend, Error, Key, Options, ProcessGroup, ReduceOp, TcpStore};
use ranks::as_threads;
use tch::{Device, Kind, Tensor};

const LIMIT: Duration = Duration::from_secs(60);
const F32: (Kind, Device) = (Kind::Float, Device::Cpu);

fn serve() -> TcpStore {
    TcpStore::serve("127.0.0.1", 0, LIMIT).unwrap()
}

fn named(name: &str) -> Options {
    Options { name: name.to_owned(), timeout: LIMIT, ..Options::default() }
}

fn sum(group: &ProcessGroup) -> f64 {
    let mut numbers = Tensor::ones([5], F32);
    group.all_reduce(&mut numbers, ReduceOp::Sum).unwrap();
    numbers.double_value(&[4])
}

/// PyTorch records each group's first call in a global map. Without the shim's lock, this crashed.
#[test]
fn groups_in_several_threads_are_independent() {
    let store = serve();
    let turns: Vec<String> = (0..4).map(|turn| format!("turn {turn}")).collect();
    thread::scope(|scope| {
        for turn in &turns {
            let store = &store;
            scope.spawn(move || {
                for round in 0..8 {
                    as_threads(
                        store,
                        2,
                        |_| named(&format!("{turn}, round {round}")),
                        |group| {
                            assert_eq!(sum(&group), 2.0);
                        },
                    );
                }
            });
        }
    });
}

#[test]
fn one_process_can_be_in_several_groups() {
    let store = serve();
    as_threads(
        &store,
        2,
        |_| named("outer"),
        |outer| {
            let store = TcpStore::connect("127.0.0.1", store.port(), LIMIT).unwrap();
            let inner =
                ProcessGroup::new(&store, 1 - outer.rank(), 2, Backend::Gloo, &named("inner")).unwrap();
            for _ in 0..10 {
                assert_eq!(sum(&outer) + sum(&inner), 4.0);
            }
            drop(outer);
            assert_eq!(sum(&inner), 2.0);
        },
    );
}

#[test]
fn dropped_groups_free_their_threads_and_descriptors() {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).unwrap().count();
    let store = serve();
    let mut most = (0, 0);
    // Other tests of this program have groups too, so small differences are ignored.
    for round in 0..60 {
        as_threads(&store, 2, |_| named(&format!("given back {round}")), |group| group.barrier().unwrap());
        if round == 9 {
            most = (count("task"), count("fd"));
        }
    }
    // A leak would leave 400 threads and more descriptors from 50 groups of two ranks.
    let deadline = Instant::now() + LIMIT;
    while count("task") > most.0 + 100 || count("fd") > most.1 + 100 {
        assert!(Instant::now() < deadline, "{} threads, {} descriptors", count("task"), count("fd"));
        thread::yield_now();
    }
}

#[test]
fn a_rank_that_joins_twice_is_refused() {
    let store = serve();
    let alone = ProcessGroup::new(&store, 0, 1, Backend::Gloo, &named("mine")).unwrap();

    let refused = ProcessGroup::new(&store, 0, 1, Backend::Gloo, &named("mine")).unwrap_err();

    assert_eq!(
        refused.to_string(),
        "joining a group: rank 0 of group \"mine\" has already joined at this store: two processes have the same rank, \
         or two groups the same name"
    );
    alone.barrier().unwrap();
}

/// More silent connections than the leader accepts at a time. Ranks that connect later join once these are closed.
#[test]
fn many_silent_connections_do_not_block_a_rank() {
    let store = serve();
    let crowd = || {
        let offer = String::from_utf8(store.get("c10d/watch/crowded").unwrap()).unwrap();
        let port: u16 = offer.split(' ').nth(2).unwrap().parse().unwrap();
        (0..90).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect::<Vec<_>>()
    };
    thread::scope(|scope| {
        let ranks: Vec<_> = (0..2)
            .map(|rank| {
                let (store, crowd) = (&store, &crowd);
                scope.spawn(move || {
                    let mut silent = if rank == 1 { crowd() } else { Vec::new() };
                    // The start of a hello, without the rest.
                    silent.iter_mut().for_each(|connection| connection.write_all(&[1, 1, 0]).unwrap());
                    let store = TcpStore::connect("127.0.0.1", store.port(), LIMIT).unwrap();
                    let group = ProcessGroup::new(&store, rank, 2, Backend::Gloo, &named("crowded")).unwrap();
                    // Continue until well after the last silent connection is closed.
                    let begin = Instant::now();
                    while sum(&group) == 2.0 {
                        let mut over =
                            Tensor::from(begin.elapsed() > Duration::from_secs(8)).to_kind(Kind::Int);
                        group.broadcast(&mut over, 0).unwrap();
                        if over.int64_value(&[]) == 1 {
                            break;
                        }
                    }
                    group.check().unwrap();
                })
            })
            .collect();
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
    });
}

/// One rank waits for its time limit and leaves the group, while the other still waits. The watching thread once
/// deadlocked here.
#[test]
fn a_rank_that_leaves_after_an_error_is_named() {
    let store = serve();
    let options = |rank: usize| match rank {
        // The time limit also applies to joining.
        0 => Options { timeout: Duration::from_secs(8), ..named("given up") },
        _ => named("given up"),
    };
    as_threads(&store, 2, options, |group| {
        let mut never_sent = Tensor::zeros([1], F32);
        if group.rank() == 0 {
            let error = group.receive(&mut never_sent, 1, 7).unwrap_err();
            assert!(matches!(error, Error::TimedOut { limit_s: 8, .. }), "{error}");
        } else {
            let error = group.receive(&mut never_sent, 0, 8).unwrap_err().to_string();
            let process = std::process::id();
            assert!(error.starts_with("receive: rank 0 ("), "{error}");
            let cause = format!(", process {process}) has left the group after an error");
            assert!(error.ends_with(&cause), "{error}");
        }
    });
}

#[test]
fn a_silence_limit_below_the_minimum_is_refused() {
    let options = Options { silence: Duration::ZERO, ..named("silent") };

    let refused = ProcessGroup::new(&serve(), 0, 1, Backend::Gloo, &options).unwrap_err();

    assert_eq!(refused.to_string(), "joining a group: silence limit 0ns, expected at least 100ms");
}

/// PyTorch treats a limit of 0 as infinite, and adds limits to the current time.
#[test]
fn zero_and_huge_time_limits_are_accepted() {
    let store = serve();
    assert!(store.wait(&["never set"], Duration::ZERO).is_err());

    let patient = Options { timeout: Duration::MAX, ..named("patient") };
    let group = ProcessGroup::new(&store, 0, 1, Backend::Gloo, &patient).unwrap();
    group.barrier().unwrap();
}

fn keyed(name: &str, secret: Option<&str>) -> Options {
    Options { key: secret.map(|secret| Key::of(secret.as_bytes())), ..named(name) }
}

/// The offer of a group's watch leader in the store.
fn offer_of(store: &TcpStore, name: &str) -> String {
    String::from_utf8(store.get(&format!("c10d/watch/{name}")).unwrap()).unwrap()
}

#[test]
fn a_shared_key_is_not_in_the_store() {
    let store = serve();
    as_threads(
        &store,
        3,
        |_| keyed("keyed", Some("secret")),
        |group| {
            assert_eq!(sum(&group), 3.0);
            group.barrier().unwrap();
        },
    );
    assert!(offer_of(&store, "keyed").ends_with(" keyed"), "{}", offer_of(&store, "keyed"));
}

#[test]
fn a_different_key_is_reported() {
    let store = serve();
    let options = |rank: usize| Options {
        timeout: Duration::from_secs(20),
        ..keyed("two keys", Some(if rank == 0 { "one" } else { "another" }))
    };
    let told = std::sync::Mutex::new(Vec::new());
    thread::scope(|scope| {
        for rank in 0..2 {
            let (store, told, options) = (&store, &told, &options);
            scope.spawn(move || {
                let store = TcpStore::connect("127.0.0.1", store.port(), LIMIT).unwrap();
                let error = ProcessGroup::new(&store, rank, 2, Backend::Gloo, &options(rank))
                    .and_then(|group| {
                        let mut never_sent = Tensor::zeros([1], F32);
                        group.receive(&mut never_sent, 1 - rank, 7)
                    })
                    .unwrap_err();
                told.lock().unwrap().push(error.to_string());
            });
        }
    });
    let told = told.into_inner().unwrap();
    let expected = "before the key was verified; set the same key on all ranks, unless this rank has died";
    assert!(told.iter().any(|error| error.ends_with(expected)), "{told:?}");
}

#[test]
fn a_missing_key_is_refused() {
    for secrets in [[Some("secret"), None], [None, Some("secret")]] {
        let store = serve();
        // The leader's offer is in the store before the other rank joins.
        let (host, port) = ("127.0.0.1", store.port());
        let leads = thread::spawn(move || {
            let store = TcpStore::connect(host, port, LIMIT).unwrap();
            let options = Options { timeout: Duration::from_secs(5), ..keyed("one key", secrets[0]) };
            ProcessGroup::new(&store, 0, 2, Backend::Gloo, &options).unwrap_err();
        });
        store.wait(&["c10d/watch/one key"], LIMIT).unwrap();

        let refused =
            ProcessGroup::new(&store, 1, 2, Backend::Gloo, &keyed("one key", secrets[1])).unwrap_err();

        let (has, lacks) = if secrets[0].is_some() { (0, 1) } else { (1, 0) };
        let expected = format!(
            "joining a group: rank {has} has a watch key, but rank {lacks} has none; set the same key on all ranks"
        );
        assert_eq!(refused.to_string(), expected);
        assert!(!refused.is_worth_retrying());
        leads.join().unwrap();
    }
}

/// A process that can write to the store pretends to be the leader.
#[test]
fn a_false_leader_is_rejected_and_learns_no_key() {
    const SECRET: &str = "a secret of the test";
    let store = serve();
    let false_leader = TcpListener::bind("127.0.0.1:0").unwrap();
    let offer = format!("0 store {} keyed", false_leader.local_addr().unwrap().port());
    store.set("c10d/watch/tricked", offer.as_bytes()).unwrap();
    let heard = thread::spawn(move || {
        let (mut stream, _) = false_leader.accept().unwrap();
        // A challenge with a random number, followed by a false loss.
        let challenge = [&[0, 0, 0, 0, 0, 4, 0][..], b"1234"].concat();
        let mut heard = Vec::new();
        stream.write_all(&challenge).unwrap();
        let mut head = [0; 64];
        let n = stream.read(&mut head).unwrap();
        heard.extend_from_slice(&head[..n]);
        // The claim that rank 1 has died, and a welcome without the code.
        let claim = [&[6, 1, 0, 0, 0, 0, 0][..], &[0; 32]].concat();
        stream.write_all(&[&claim[..], &[2, 0, 0, 0, 0, 0, 0]].concat()).unwrap();
        stream.read_to_end(&mut heard).unwrap();
        heard
    });

    let options = Options { timeout: Duration::from_secs(15), ..keyed("tricked", Some(SECRET)) };
    let error = ProcessGroup::new(&store, 1, 2, Backend::Gloo, &options).unwrap_err().to_string();

    assert!(error.contains("rank 0 leads the watch, and the connection closed"), "{error}");
    let heard = String::from_utf8_lossy(&heard.join().unwrap()).into_owned();
    assert!(heard.contains(", process ") && !heard.contains(SECRET), "{heard}");
}

/// Passes bytes on in both directions, and adds `added` to those of the leader after the handshake.
fn between(follower: TcpStream, leader: TcpStream, added: fn(&[u8]) -> Vec<u8>) {
    let (mut from, mut to) = (leader.try_clone().unwrap(), follower.try_clone().unwrap());
    thread::spawn(move || {
        // A challenge and a welcome, with texts of 32 and 64 characters.
        let mut handshake = [0; 7 + 32 + 7 + 64];
        let mut first = [0; 7 + 32];
        from.read_exact(&mut handshake[..39]).unwrap();
        to.write_all(&handshake[..39]).unwrap();
        from.read_exact(&mut handshake[39..]).unwrap();
        to.write_all(&handshake[39..]).unwrap();
        let mut head = [0; 7];
        // The name of the leader.
        from.read_exact(&mut head).unwrap();
        let mut rest = vec![0; usize::from(head[5]) + 32];
        from.read_exact(&mut rest).unwrap();
        to.write_all(&[&head[..], &rest].concat()).unwrap();
        to.write_all(&added(&[&head[..], &rest].concat())).unwrap();
        while from.read_exact(&mut first).is_ok() && to.write_all(&first).is_ok() {}
    });
    let (mut from, mut to) = (follower, leader);
    thread::spawn(move || std::io::copy(&mut from, &mut to));
}

#[test]
fn a_frame_that_was_added_or_repeated_on_the_network_ends_the_connection() {
    // The claim that rank 0 has left, and a message of the leader again.
    let claim: fn(&[u8]) -> Vec<u8> = |_| [&[4, 0, 0, 0, 0, 0, 0][..], &[0; 32]].concat();
    let again: fn(&[u8]) -> Vec<u8> = |message| message.to_vec();
    for (name, added) in [("claim", claim), ("again", again)] {
        let store = serve();
        let port = store.port();
        thread::scope(|scope| {
            let rank = |rank| {
                let store = TcpStore::connect("127.0.0.1", port, LIMIT).unwrap();
                ProcessGroup::new(&store, rank, 2, Backend::Gloo, &keyed(name, Some("secret"))).unwrap()
            };
            let leader = scope.spawn(move || rank(0));
            let offer = offer_of(&store, name);
            let words: Vec<&str> = offer.split(' ').collect();
            let real: u16 = words[2].parse().unwrap();
            let relay = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = relay.local_addr().unwrap().port();
            let false_offer = [words[0], words[1], &port.to_string(), words[3]].join(" ");
            store.set(&format!("c10d/watch/{name}"), false_offer.as_bytes()).unwrap();
            scope.spawn(move || {
                let (follower, _) = relay.accept().unwrap();
                between(follower, TcpStream::connect(("127.0.0.1", real)).unwrap(), added);
            });
            let follower = rank(1);
            let begin = Instant::now();
            let error = loop {
                if let Err(error) = follower.check() {
                    break error.to_string();
                }
                assert!(begin.elapsed() < LIMIT, "{name}: the frame was accepted");
                thread::yield_now();
            };
            assert!(error.contains("rank 0") && error.contains("connection closed"), "{name}: {error}");
            drop((leader.join().unwrap(), follower));
        });
    }
}

#[test]
fn store_and_watch_listen_on_one_address_only() {
    let other = "127.0.0.2";
    let store = serve();
    assert!(TcpStream::connect((other, store.port())).is_err(), "the store is reached at {other}");
    as_threads(
        &store,
        2,
        |_| named("local"),
        |group| {
            let port: u16 = offer_of(&store, "local").split(' ').nth(2).unwrap().parse().unwrap();
            assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
            assert!(TcpStream::connect((other, port)).is_err(), "the watch is reached at {other}");
            group.barrier().unwrap();
        },
    );
}

#[test]
fn a_store_address_of_another_machine_is_refused() {
    // An address reserved for documentation, which no machine has.
    let error = TcpStore::serve("192.0.2.1", 0, LIMIT).unwrap_err().to_string();

    assert_eq!(
        error,
        "store 192.0.2.1:0: serve: not an address of this machine, which must serve the store; start rank 0 on \
         MASTER_ADDR"
    );
}

#[test]
fn a_second_group_of_a_process_uses_the_store_of_the_first() {
    let first = serve();
    first.set("key", b"value").unwrap();

    let second = TcpStore::serve("127.0.0.1", first.port(), LIMIT).unwrap();
    drop(first);

    assert_eq!(second.get("key").unwrap(), b"value");
    let port = second.port();
    drop(second);
    // The store ends with its last user.
    let third = TcpStore::serve("127.0.0.1", port, LIMIT).unwrap();
    assert!(!third.is_set("key").unwrap());
}

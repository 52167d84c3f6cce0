//! Clients that violate HTTP/2, or use it against the server: each sort holds a bounded memory, others are served meanwhile,
//! and no thread panics.
//!
//! The bytes are written by hand, because a library refuses to send most of them.

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::kills::{free_address, start};
use super::memory::resident;
use super::{N_ROWS, all_rows, client, ones, spec};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const END_STREAM: u8 = 1;

/// Memory that a sort of clients may take.
const MEMORY_MAX: u64 = 16 << 20;
/// Bytes that a client sends at most, unless its connection is closed before.
const SENT_MAX: usize = 64 << 20;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = payload.len() as u32;
    [&length.to_be_bytes()[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Headers of a call, each as a literal that no table keeps.
fn headers(method: &str) -> Vec<u8> {
    let path = format!("/sentimill.parameters.v1.Parameters/{method}");
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "server"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    fields.iter().flat_map(|(name, value)| field(name, value.as_bytes())).collect()
}

fn field(name: &str, value: &[u8]) -> Vec<u8> {
    [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value].concat()
}

/// The streams of a client.
fn streams() -> impl Iterator<Item = u32> {
    (1..1 << 31).step_by(2)
}

/// The bytes that a client of a sort sends behind the preface, in parts, again and again.
fn parts(sort: &str) -> Box<dyn Iterator<Item = Vec<u8>>> {
    let again = |frame: Vec<u8>| Box::new(std::iter::repeat(frame.repeat(100)));
    let settings = frame(SETTINGS, 0, 0, &[]);
    let call = |stream, method: &str| frame(HEADERS, END_HEADERS | END_STREAM, stream, &headers(method));
    match sort {
        "settings" => again(settings),
        "tables of headers of any size" => {
            again(frame(SETTINGS, 0, 0, &[0, 1, 0xff, 0xff, 0xff, 0xff, 0, 6, 0xff, 0xff, 0xff, 0xff]))
        }
        "pings" => again(frame(PING, 0, 0, &[7; 8])),
        "priorities" => Box::new(streams().map(|stream| frame(PRIORITY, 0, stream, &[0, 0, 0, 0, 1]))),
        "larger windows" => again(frame(WINDOW_UPDATE, 0, 0, &1_u32.to_be_bytes())),
        "unknown frames" => again(frame(0xbb, 0xff, 0, &[1; 1 << 14])),
        "calls that are reset" => Box::new(streams().map(move |stream| {
            [call(stream, "Statistics"), frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
        })),
        "pulls that are reset" => Box::new(streams().map(move |stream| {
            let begun = frame(HEADERS, END_HEADERS, stream, &headers("Pull"));
            [begun, frame(RESET, 0, stream, &8_u32.to_be_bytes())].concat()
        })),
        "headers without end" => {
            let begun = frame(HEADERS, 0, 1, &headers("Pull"));
            let more = frame(CONTINUATION, 0, 1, &field("x-more", &[b'a'; 100]).repeat(100));
            Box::new(std::iter::once(begun).chain(std::iter::repeat(more)))
        }
        "headers of no bytes" => {
            let begun = frame(HEADERS, 0, 1, &headers("Pull"));
            Box::new(std::iter::once(begun).chain(again(frame(CONTINUATION, 0, 1, &[]))))
        }
        "large headers" => {
            let large = [headers("Pull"), field("x-large", &[b'a'; 120]).repeat(120)].concat();
            Box::new(streams().map(move |stream| frame(HEADERS, END_HEADERS, stream, &large)))
        }
        "a window of 0" => {
            let none = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
            Box::new(std::iter::once(none).chain(streams().map(move |stream| {
                let asked = frame(HEADERS, END_HEADERS, stream, &headers("Statistics"));
                [asked, frame(DATA, END_STREAM, stream, &[0; 5])].concat()
            })))
        }
        "data of no bytes" => {
            let begun = frame(HEADERS, END_HEADERS, 1, &headers("Push"));
            Box::new(std::iter::once(begun).chain(again(frame(DATA, 0, 1, &[]))))
        }
        "padding" => {
            let begun = frame(HEADERS, END_HEADERS, 1, &headers("Push"));
            let padded = frame(DATA, 8, 1, &[&[255][..], &[0; 255]].concat());
            Box::new(std::iter::once(begun).chain(again(padded)))
        }
        "an enormous frame" => {
            let head = [&[0xff, 0xff, 0xff, DATA, 0][..], &1_u32.to_be_bytes()].concat();
            let begun = frame(HEADERS, END_HEADERS, 1, &headers("Push"));
            Box::new([begun, head].into_iter().chain(std::iter::repeat(vec![0; 1 << 16])))
        }
        "another protocol" => again(b"GET / HTTP/1.1\r\nx: y\r\n".to_vec()),
        other => panic!("{other}"),
    }
}

const SORTS: [&str; 16] = [
    "settings",
    "tables of headers of any size",
    "pings",
    "priorities",
    "larger windows",
    "unknown frames",
    "calls that are reset",
    "pulls that are reset",
    "headers without end",
    "headers of no bytes",
    "large headers",
    "a window of 0",
    "data of no bytes",
    "padding",
    "an enormous frame",
    "another protocol",
];

/// Sends until the end of the test, the limit, or the end of the connection. What the server sends is read or not.
fn flood(address: &str, sort: &str, reads: bool, is_over: &AtomicBool) {
    let Ok(mut stream) = TcpStream::connect(address) else { return };
    let limit = Some(Duration::from_millis(100));
    stream.set_write_timeout(limit).unwrap();
    let _ = stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
    if reads {
        let mut replies = stream.try_clone().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while matches!(replies.read(&mut bytes), Ok(1..)) {}
        });
    }
    let mut n_sent = 0;
    'parts: for part in parts(sort) {
        let mut rest = &part[..];
        while !rest.is_empty() {
            if is_over.load(Relaxed) || n_sent > SENT_MAX {
                break 'parts;
            }
            match stream.write(rest) {
                Ok(n) => (rest, n_sent) = (&rest[n..], n_sent + n),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break 'parts,
            }
        }
    }
    while !is_over.load(Relaxed) {
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn hostile_frames_hold_a_bounded_memory_and_others_are_served() {
    let (n_clients, least) = if env::var_os("PROVE").is_some() { (20, 15) } else { (4, 1) };
    let folder = tempfile::tempdir().unwrap();
    let address = free_address();
    let mut server = start(folder.path(), &address);
    let mut own = client(std::slice::from_ref(&address));
    own.create(&spec()).unwrap();
    let mut step = own.join(0, 2).unwrap().step;
    let mut other = client(std::slice::from_ref(&address));
    other.join(1, 2).unwrap();
    other.leave().unwrap();
    let mut sum = 0.0;
    for (sort, reads) in SORTS.iter().flat_map(|sort| [(sort, true), (sort, false)]) {
        let before = resident(&server);
        let is_over = Arc::new(AtomicBool::new(false));
        let clients: Vec<_> = (0..n_clients)
            .map(|_| {
                let (address, is_over) = (address.clone(), Arc::clone(&is_over));
                thread::spawn(move || flood(&address, sort, reads, &is_over))
            })
            .collect();
        let began = Instant::now();
        let (mut largest, mut slowest) = (0, Duration::ZERO);
        while began.elapsed() < Duration::from_secs(least) || largest == 0 {
            let asked = Instant::now();
            own.pushed(own.push(step, &[step], &mut [ones((0..N_ROWS).collect())]).unwrap()).unwrap();
            (step, sum) = (step + 1, sum + 1.0);
            assert_eq!(all_rows(&own)[0], sum, "{sort}");
            slowest = slowest.max(asked.elapsed());
            largest = largest.max(resident(&server));
        }
        is_over.store(true, Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        println!(
            "{n_clients} clients with {sort}, replies read: {reads}: at most {} MiB, before {}; a push and a pull in at most \
             {slowest:?}",
            largest >> 20,
            before >> 20
        );
        assert!(largest < before + MEMORY_MAX, "{sort}: {largest} bytes, before {before}");
        assert!(slowest < Duration::from_secs(100), "{sort}: {slowest:?}");
    }
    assert_eq!(server.0.try_wait().unwrap(), None);
    assert!(!server.errors().contains("panicked"), "{}", server.errors());
}

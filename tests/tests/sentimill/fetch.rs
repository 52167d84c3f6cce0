//! `sentimill fetch`, with a web server in this process that has ranges and versions.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use durable::sha256;
use tests::compressed::gzip;
use tests::programs::{Finished, program, run, start};

use crate::made::Room;

const NAME: &str = "amazon2023/Gift_Cards";
const FILE: &str = "Gift_Cards.jsonl.gz";

/// What a server has.
#[derive(Default)]
struct Served {
    content: Vec<u8>,
    etag: String,
    /// A response stops after this number of bytes, until the client is gone.
    stops_after: Option<usize>,
    /// The requests: path, and the range if there is one.
    requests: Vec<String>,
}

/// A server of one file. A range of another version than the current one is answered with the whole file.
struct Server {
    url: String,
    served: Arc<Mutex<Served>>,
}

impl Server {
    fn start(content: &[u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/corpora", listener.local_addr().unwrap());
        let served = Served { content: content.to_vec(), etag: "\"1\"".to_owned(), ..Served::default() };
        let served = Arc::new(Mutex::new(served));
        let server = Self { url, served: Arc::clone(&served) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                // The client may close the connection.
                thread::spawn(move || respond(&client, &served));
            }
        });
        server
    }

    fn change(&self, change: impl FnOnce(&mut Served)) {
        change(&mut self.served.lock().unwrap());
    }

    /// The requests since the last call.
    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.served.lock().unwrap().requests)
    }
}

fn respond(mut client: &TcpStream, served: &Mutex<Served>) -> std::io::Result<()> {
    let head: Vec<_> =
        BufReader::new(client).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let prefix = format!("{name}: ");
        head.iter()
            .find(|line| line.to_ascii_lowercase().starts_with(&prefix))
            .map(|line| &line[prefix.len()..])
    };
    let (response, body, stops) = {
        let mut served = served.lock().unwrap();
        let path = head[0].split(' ').nth(1).unwrap_or_default().to_owned();
        let range = header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
        served.requests.push(range.map_or(path.clone(), |from| format!("{path} from {from}")));
        if !path.ends_with(FILE) {
            return client
                .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
        let from =
            range.filter(|_| header("if-range") == Some(&served.etag[..])).and_then(|from| from.parse().ok());
        let (from, size) = (from.unwrap_or(0_usize), served.content.len());
        let status = match from {
            0 => "200 OK".to_owned(),
            _ => format!("206 Partial Content\r\nContent-Range: bytes {from}-{}/{size}", size - 1),
        };
        let head = format!("HTTP/1.1 {status}\r\nETag: {}\r\nConnection: close", served.etag);
        let head = format!("{head}\r\nContent-Length: {}\r\n\r\n", size - from);
        let to = served.stops_after.map_or(size, |bytes| size.min(from + bytes));
        (head, served.content[from..to].to_vec(), to < size)
    };
    client.write_all(response.as_bytes())?;
    client.write_all(&body)?;
    if stops {
        return client.read_to_end(&mut Vec::new()).map(|_| ());
    }
    client.shutdown(Shutdown::Write)
}

fn content() -> Vec<u8> {
    let line = |n: usize| {
        let (text, rating) = if n % 2 == 0 { ("a lovely gift", 5.0) } else { ("it never came", 1.0) };
        format!("{{\"rating\": {rating:.1}, \"text\": \"{text} {}\"}}\n", "x".repeat(n % 97 + 1))
    };
    gzip((0..5000).map(line).collect::<String>().as_bytes())
}

fn fetch(room: &Room, server: &Server, arguments: &[&str]) -> Command {
    let mut fetch = program("sentimill");
    fetch.current_dir(room.path("")).arg("fetch").args(arguments).args(["--from", &server.url]);
    fetch
}

fn fetched(room: &Room, server: &Server) -> Finished {
    run(&mut fetch(room, server, &[NAME]), b"")
}

fn files(room: &Room) -> Vec<String> {
    room.files().into_iter().filter(|name| !name.starts_with("tmp")).collect()
}

#[test]
fn a_corpus_is_downloaded_once_and_read_by_the_printed_command() {
    let (room, content) = (Room::new(), content());
    let server = Server::start(&content);
    let finished = fetched(&room, &server).succeeded();
    let said = finished.said();
    let command = said.lines().next().unwrap();
    assert_eq!(command, format!("sentimill {FILE} --preset amazon2023"));
    assert_eq!(files(&room), [FILE.to_owned(), format!("{FILE}.sha256")]);
    assert!(fs::read(room.path(FILE)).unwrap() == content);
    let record = format!("{}  {FILE}\n", sha256::of_bytes(&content));
    assert_eq!(fs::read_to_string(room.path(&format!("{FILE}.sha256"))).unwrap(), record);
    assert_eq!(server.requests(), [format!("/corpora/{FILE}")]);

    let mut read = program("sentimill");
    read.current_dir(room.path("")).args(command.split(' ').skip(1));
    assert!(run(&mut read, b"").succeeded().said().contains("of 5000 reviews"));

    assert_eq!(fetched(&room, &server).succeeded().said(), said);
    assert_eq!(server.requests(), [""; 0], "the file is there");
    fs::write(room.path(FILE), b"another file").unwrap();
    let refused = fetched(&room, &server).with_code(66);
    assert!(refused.stderr.contains(&format!("{FILE}: its SHA-256 is ")), "{}", refused.stderr);
}

#[test]
fn a_killed_download_is_resumed_from_its_last_byte() {
    let (room, content) = (Room::new(), content());
    let half = content.len() / 2;
    let server = Server::start(&content);
    server.change(|served| served.stops_after = Some(half));
    let part = room.path(&format!("{FILE}.part"));
    kill_at(&mut fetch(&room, &server, &[NAME]), &part, half);
    server.change(|served| served.stops_after = None);
    server.requests();

    let finished = fetched(&room, &server).succeeded();
    assert!(finished.stderr.contains(&format!("from byte {half} on")), "{}", finished.stderr);
    assert_eq!(server.requests(), [format!("/corpora/{FILE} from {half}")]);
    assert!(fs::read(room.path(FILE)).unwrap() == content);
    assert_eq!(files(&room), [FILE.to_owned(), format!("{FILE}.sha256")]);
}

#[test]
fn bytes_of_another_version_are_not_continued() {
    let (room, content) = (Room::new(), content());
    let server = Server::start(&content);
    let half = content.len() / 2;
    server.change(|served| served.stops_after = Some(half));
    kill_at(&mut fetch(&room, &server, &[NAME]), &room.path(&format!("{FILE}.part")), half);
    let other = [&content[..half / 2], &content].concat();
    server.change(|served| {
        (served.stops_after, served.etag, served.content) = (None, "\"2\"".to_owned(), other.clone());
    });
    server.requests();

    let finished = fetched(&room, &server).succeeded();
    assert!(finished.stderr.contains("another version than that of "), "{}", finished.stderr);
    assert_eq!(server.requests(), [format!("/corpora/{FILE} from {half}"), format!("/corpora/{FILE}")]);
    assert!(fs::read(room.path(FILE)).unwrap() == other);
}

#[test]
fn a_later_download_has_the_digest_of_the_first_one() {
    let (room, content) = (Room::new(), content());
    let server = Server::start(&content);
    fetched(&room, &server).succeeded();
    fs::remove_file(room.path(FILE)).unwrap();
    server.change(|served| served.content[40] ^= 1);

    let refused = fetched(&room, &server).with_code(66);
    let last = refused.stderr.lines().last().unwrap();
    let expected = format!("expected {}, as in ", sha256::of_bytes(&content));
    assert!(
        last.contains(&expected) && last.contains("remove the record if the corpus has a new version"),
        "{last}"
    );
    let part = format!("{FILE}.part");
    assert_eq!(files(&room), [part, format!("{FILE}.sha256")], "the file is kept under another name");

    server.change(|served| served.content[40] ^= 1);
    fetched(&room, &server).succeeded();
    assert!(fs::read(room.path(FILE)).unwrap() == content);
}

#[test]
fn what_cannot_be_fetched_is_refused_with_the_remedy() {
    let (room, server) = (Room::new(), Server::start(b"another archive"));
    let refused = |arguments: &[&str], code| {
        run(&mut fetch(&room, &server, arguments), b"")
            .with_code(code)
            .stderr
            .lines()
            .last()
            .unwrap()
            .to_owned()
    };
    assert!(
        refused(&["amazon2023/Books"], 66).contains("or put the file from elsewhere at ./Books.jsonl.gz")
    );
    assert!(refused(&["amazon2023"], 64).contains("expected amazon2023/CATEGORY"));
    assert!(refused(&["yelp"], 64).contains("is not offered"));
    assert!(refused(&[NAME, "--out", "missing"], 64).contains("missing: no such folder"));
    assert!(refused(&[NAME, "--from", "http://example.com"], 64).contains("cannot be used multiple times"));

    fs::write(room.path("aclImdb_v1.tar.gz"), b"another archive").unwrap();
    let told = refused(&["imdb"], 66);
    assert!(
        told.contains(
            "expected c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe, as published"
        )
    );
    let mut plain = program("sentimill");
    plain.current_dir(room.path("")).args(["fetch", NAME, "--from", "http://example.com"]);
    assert!(run(&mut plain, b"").with_code(64).stderr.contains("http:// is not encrypted"));
}

#[test]
fn the_list_needs_no_network_and_a_file_of_that_name_is_still_read() {
    let room = Room::new();
    let mut list = program("sentimill");
    let listed = run(list.current_dir(room.path("")).arg("fetch"), b"").succeeded();
    for name in ["imdb: ", "yelp-polarity: ", "sentiment140: ", "amazon2014/CATEGORY: ", "Not offered:"] {
        assert!(listed.said().contains(name), "{name}");
    }
    room.write("fetch", "{\"reviewText\": \"good\", \"overall\": 5}\n");
    let mut read = program("sentimill");
    run(read.current_dir(room.path("")).args(["./fetch", "--out", "a.h5"]), b"").succeeded();
    let mut read = program("sentimill");
    run(read.current_dir(room.path("")).args(["--out", "b.h5", "fetch"]), b"").succeeded();
}

/// Runs a program until a file has this size, and kills it.
fn kill_at(command: &mut Command, file: &Path, bytes: usize) {
    let mut child = start(command);
    let began = Instant::now();
    while fs::metadata(file).map_or(0, |file| file.len()) < bytes as u64 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} has no {bytes} bytes", file.display());
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

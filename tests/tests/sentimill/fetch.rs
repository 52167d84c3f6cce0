//! `sentimill fetch`, with a web server in this process that has ranges and versions.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use durable::sha256;
use tests::compressed::gzip;
use tests::programs::{Finished, program, run, start};
use tests::web_server::WebServer;

use crate::made::Room;

const NAME: &str = "amazon2023/Gift_Cards";
const FILE: &str = "Gift_Cards.jsonl.gz";

const PART: &str = ".Gift_Cards.jsonl.gz.part";
const RECORD: &str = ".Gift_Cards.jsonl.gz.json";

fn content() -> Vec<u8> {
    let line = |n: usize| {
        let (text, rating) =
            if n.is_multiple_of(2) { ("a lovely gift", 5.0) } else { ("it never came", 1.0) };
        format!("{{\"rating\": {rating:.1}, \"text\": \"{text} {}\"}}\n", "x".repeat(n % 97 + 1))
    };
    gzip((0..5000).map(line).collect::<String>().as_bytes())
}

fn serve(content: &[u8]) -> WebServer {
    WebServer::start(FILE, content)
}

fn fetch(room: &Room, server: &WebServer, arguments: &[&str]) -> Command {
    let mut fetch = program("sentimill");
    let mirror = format!("{}/corpora", server.url);
    fetch.current_dir(room.path("")).arg("fetch").args(arguments).args(["--from", &mirror]);
    fetch
}

fn fetched(room: &Room, server: &WebServer) -> Finished {
    run(&mut fetch(room, server, &[NAME]), b"")
}

/// The last line of a refusal.
fn refused(room: &Room, server: &WebServer, code: i32) -> String {
    fetched(room, server).with_code(code).stderr.lines().last().unwrap().to_owned()
}

/// A room with the first bytes of an interrupted download.
fn interrupted(server: &WebServer, bytes: usize) -> Room {
    let room = Room::new();
    server.change(|served| (served.stops_after, served.is_held) = (Some(bytes), true));
    kill_at(&mut fetch(&room, server, &[NAME]), &room.path(PART), bytes);
    server.change(|served| served.stops_after = None);
    server.requests();
    room
}

fn files(room: &Room) -> Vec<String> {
    room.files().into_iter().filter(|name| !name.starts_with("tmp")).collect()
}

#[test]
fn a_corpus_is_downloaded_once_and_read_by_the_printed_command() {
    let (room, content) = (Room::new(), content());
    let server = serve(&content);
    let finished = fetched(&room, &server).succeeded();
    let said = finished.said();
    let command = said.lines().next().unwrap();
    assert_eq!(command, format!("sentimill {FILE} --preset amazon2023"));
    assert_eq!(files(&room), [RECORD, FILE]);
    assert!(fs::read(room.path(FILE)).unwrap() == content);
    let record = format!("{{\"sha256\":\"{}\",\"part\":null}}\n", sha256::of_bytes(&content));
    assert_eq!(fs::read_to_string(room.path(RECORD)).unwrap(), record);
    assert_eq!(server.requests(), [format!("/corpora/{FILE}")]);

    let mut read = program("sentimill");
    read.current_dir(room.path("")).args(command.split(' ').skip(1));
    assert!(run(&mut read, b"").succeeded().said().contains("of 5000 reviews"));

    let again = fetched(&room, &server).succeeded();
    assert_eq!(again.said(), said);
    assert!(again.stderr.contains("exists and is kept; it is verified"), "{}", again.stderr);
    assert_eq!(server.requests(), [""; 0], "the file is there");
    fs::write(room.path(FILE), b"another file").unwrap();
    let told = refused(&room, &server, 66);
    assert!(told.contains(&format!("{FILE}: its SHA-256 is ")), "{told}");
}

#[test]
fn a_folder_with_corpora_is_an_input() {
    let content = content();
    let server = serve(&content);
    let room = interrupted(&server, content.len() / 2);
    fs::create_dir(room.path("corpora")).unwrap();
    run(&mut fetch(&room, &server, &[NAME, "--out", "corpora"]), b"").succeeded();
    fs::rename(room.path(PART), room.path("corpora/.Books.jsonl.gz.part")).unwrap();
    let mut read = program("sentimill");
    read.current_dir(room.path("")).args(["corpora", "--preset", "amazon2023"]);
    let read = run(&mut read, b"").succeeded();
    assert!(read.said().contains("of 5000 reviews") && !read.stderr.contains("bad_line"), "{}", read.stderr);
}

#[test]
fn a_killed_download_is_resumed_from_its_last_byte() {
    let content = content();
    let half = content.len() / 2;
    for version in ["ETag: \"1\"", "Last-Modified: Mon, 23 Nov 2026 04:00:00 GMT"] {
        let server = serve(&content);
        server.change(|served| served.headers = version.to_owned());
        let room = interrupted(&server, half);
        let finished = fetched(&room, &server).succeeded();
        assert!(finished.stderr.contains(&format!("from byte {half} on")), "{}", finished.stderr);
        assert_eq!(server.requests(), [format!("/corpora/{FILE} from {half}")]);
        assert!(fs::read(room.path(FILE)).unwrap() == content);
        assert_eq!(files(&room), [RECORD, FILE]);
    }
    // Without a version, the bytes may be of any.
    let server = serve(&content);
    server.change(|served| served.headers.clear());
    let room = interrupted(&server, half);
    fetched(&room, &server).succeeded();
    assert_eq!(server.requests(), [format!("/corpora/{FILE}")]);
    assert!(fs::read(room.path(FILE)).unwrap() == content);
}

#[test]
fn a_complete_download_is_not_repeated() {
    let content = content();
    let server = serve(&content);
    let room = interrupted(&server, content.len() / 2);
    fs::write(room.path(PART), &content).unwrap();
    fetched(&room, &server).succeeded();
    assert_eq!(server.requests(), [""; 0]);
    assert_eq!(files(&room), [RECORD, FILE]);
}

#[test]
fn bytes_of_another_version_are_not_continued() {
    let content = content();
    let half = content.len() / 2;
    let short = gzip(b"{\"rating\": 5, \"text\": \"short\"}\n");
    let long = [&gzip(b"{}\n")[..], &content].concat();
    // The short one has no such range (416), whatever its version is.
    for (version, other) in [("ETag: \"2\"", long), ("ETag: \"1\"", short)] {
        let server = serve(&content);
        let room = interrupted(&server, half);
        server.change(|served| {
            (served.headers, served.content) = (version.to_owned(), other.clone());
        });
        let finished = fetched(&room, &server).succeeded();
        assert!(finished.stderr.contains("another version than that of "), "{}", finished.stderr);
        assert_eq!(server.requests(), [format!("/corpora/{FILE} from {half}"), format!("/corpora/{FILE}")]);
        assert!(fs::read(room.path(FILE)).unwrap() == other);
    }
}

#[test]
fn a_later_download_has_the_digest_of_the_first_one() {
    let (room, content) = (Room::new(), content());
    let server = serve(&content);
    fetched(&room, &server).succeeded();
    fs::remove_file(room.path(FILE)).unwrap();
    server.change(|served| served.content[40] ^= 1);

    let told = refused(&room, &server, 66);
    let expected = format!("expected {}, as in ./{RECORD}; ", sha256::of_bytes(&content));
    assert!(
        told.contains(&expected) && told.contains("remove the record if the corpus has a new version"),
        "{told}"
    );
    assert_eq!(files(&room), [RECORD], "a file of another content is not continued");

    server.change(|served| served.content[40] ^= 1);
    fetched(&room, &server).succeeded();
    assert!(fs::read(room.path(FILE)).unwrap() == content);

    fs::write(room.path(RECORD), b"").unwrap();
    let told = refused(&room, &server, 66);
    assert!(told.contains(&format!("{RECORD}: found ")), "{told}");
    assert_eq!(fs::read(room.path(RECORD)).unwrap(), b"");
}

#[test]
fn the_first_digest_is_that_of_a_whole_file() {
    let content = content();
    for other in [&b"<html>maintenance</html>"[..], &content[..content.len() / 2]] {
        let (room, server) = (Room::new(), serve(other));
        let told = refused(&room, &server, 66);
        assert!(told.contains("found no whole gzip file ("), "{told}");
        assert_eq!(files(&room), [""; 0]);

        room.write(FILE, other);
        let told = refused(&room, &server, 66);
        assert!(told.contains("remove it and run again"), "{told}");

        fs::write(room.path(FILE), &content).unwrap();
        let kept = fetched(&room, &server).succeeded();
        assert!(kept.stderr.contains("its SHA-256 was recorded as the first one"), "{}", kept.stderr);
    }
    // A resumed download is compared with the digest that its server states.
    let server = serve(&content);
    let digest = format!("ETag: \"1\"\r\nRepr-Digest: sha-256=:{}=:", "A".repeat(43));
    server.change(|served| served.headers = digest);
    let room = interrupted(&server, content.len() / 2);
    let told = refused(&room, &server, 66);
    assert!(told.contains(&format!("expected {}, as its server states", "0".repeat(64))), "{told}");
    assert_eq!(files(&room), [""; 0]);
}

#[test]
fn a_part_of_somebody_else_is_not_written_to() {
    let server = serve(&content());
    let room = Room::new();
    room.write(PART, "precious");
    let told = refused(&room, &server, 64);
    assert!(told.contains(&format!("{PART}: found bytes whose version is not in ")), "{told}");
    assert_eq!(fs::read_to_string(room.path(PART)).unwrap(), "precious");

    let room = Room::new();
    room.write("mine", "precious");
    symlink("mine", room.path(PART)).unwrap();
    refused(&room, &server, 74);
    assert_eq!(fs::read_to_string(room.path("mine")).unwrap(), "precious");

    // A link to nothing is a file that exists.
    let room = Room::new();
    symlink("nothing", room.path(FILE)).unwrap();
    refused(&room, &server, 74);
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn one_process_downloads_a_file() {
    let content = content();
    let (room, server) = (Room::new(), serve(&content));
    server.change(|served| (served.stops_after, served.is_held) = (Some(1000), true));
    let mut first = start(&mut fetch(&room, &server, &[NAME]));
    wait_for(&room.path(PART), 1000);
    let told = refused(&room, &server, 75);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(told.contains(&format!("{FILE}: another process downloads it; wait for its end")), "{told}");
}

#[test]
fn what_cannot_be_fetched_is_refused_with_the_remedy() {
    let (room, server) = (Room::new(), WebServer::start("z", b"another archive"));
    let refused = |arguments: &[&str], code| {
        let mut fetch = program("sentimill");
        fetch.current_dir(room.path("")).arg("fetch").args(arguments);
        run(&mut fetch, b"").with_code(code).stderr.lines().last().unwrap().to_owned()
    };
    let mirror = format!("{}/corpora", server.url);
    server.change(|served| served.name = "none".to_owned());
    let by_hand = "pass a mirror with --from URL, or put the file at ./Books.jsonl.gz and run again";
    assert_eq!(
        refused(&["amazon2023/Books", "--from", &mirror], 66),
        format!("sentimill: {mirror}/Books.jsonl.gz: found status 404, expected the file; {by_hand}")
    );
    server.change(|served| served.name = "z".to_owned());
    let told = refused(&["imdb", "--from", &mirror], 66);
    assert!(told.contains("found a file of 15 bytes, expected 84125825; pass another mirror"), "{told}");
    assert!(refused(&["amazon2023"], 64).contains("expected amazon2023/CATEGORY"));
    assert!(refused(&["yelp"], 64).contains("is not offered"));
    assert!(refused(&[NAME, "--out", "missing"], 64).contains("missing: no such folder"));
    assert!(refused(&[NAME, "--from", "http://example.com"], 64).contains("http:// is not encrypted"));
    let told = refused(&[NAME, "--from", &format!("{mirror}?X-Amz-Signature=5ec7e7")], 64);
    assert!(told.contains("omit what follows ? or #") && !told.contains("5ec7e7"), "{told}");
    assert_eq!(files(&room), [""; 0], "a refusal leaves no file");

    room.write("aclImdb_v1.tar.gz", "another archive");
    let told = refused(&["imdb"], 66);
    assert!(
        told.contains(
            "expected c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe, as published"
        ),
        "{told}"
    );
}

#[test]
fn the_programs_have_the_flags_of_the_listed_commands() {
    let room = Room::new();
    let listed = run(program("sentimill").current_dir(room.path("")).arg("fetch"), b"").succeeded().said();
    let commands = listed.lines().filter_map(|line| line.trim().strip_prefix("read with")).map(str::trim);
    let commands: Vec<_> = commands.filter(|command| !command.starts_with('(')).collect();
    assert!(commands.len() > 10, "{listed}");
    for command in commands {
        let mut words = command.split(' ');
        let mut read = program(words.next().unwrap());
        let refused = run(read.current_dir(room.path("")).args(words), b"").with_code(66);
        assert!(refused.stderr.contains("no such file"), "{command}: {}", refused.stderr);
    }
}

#[test]
fn tweets_are_read_with_their_backslashes() {
    let room = Room::new();
    let lines = "1,2,3,4,5,6\n\"0\",\"1\",\"Mon\",\"NO_QUERY\",\"u\",\"sad day :\\\"\n\
                 \"4\",\"2\",\"Mon\",\"NO_QUERY\",\"u\",\"in C:\\new, he said \"\"yes\"\"\"\n";
    room.write("sentiment140.csv", lines);
    let listed = run(program("sentimill").current_dir(room.path("")).arg("fetch"), b"").succeeded().said();
    let command = listed.lines().find_map(|line| line.split_once("sentimill sentiment140.csv ")).unwrap().1;
    let mut read = program("sentimill");
    read.current_dir(room.path("")).arg("sentiment140.csv").args(command.split(' '));
    let read = run(&mut read, b"").succeeded();
    assert!(read.said().contains("2 distinct texts of 2 reviews"), "{}", read.said());
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
    wait_for(file, bytes);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits until a file has this size.
fn wait_for(file: &Path, bytes: usize) {
    let began = Instant::now();
    while fs::metadata(file).map_or(0, |file| file.len()) < bytes as u64 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} has no {bytes} bytes", file.display());
        thread::sleep(Duration::from_millis(5));
    }
}

//! Files on web servers that cut responses, lie about lengths, ignore ranges, change files or redirect.
#![allow(clippy::disallowed_methods, reason = "a panic of a test is its failure")]
#![allow(clippy::unwrap_used, reason = "a test's helpers may panic as the tests do")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use program::exit::{Exit, Fails};
use store::{Error, WebFile};

/// SHA-256 of [`content`].
const SHA256: &str = "fa7deae4b0504401a056ca3b1e6007902a7e681efda07fd7ca8819760caeff95";
const SHA256_BASE64: &str = "+n3q5LBQRAGgVso7HmAHkCp+aB79oH/XyogZdgyu/5U=";
const BYTES: usize = 300_000;

fn content() -> Vec<u8> {
    (0..BYTES).map(|at| (at * at % 251) as u8).collect()
}

/// A request: its path, and the values of `Range` and `If-Range`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Request {
    path: String,
    range: Option<String>,
    if_range: Option<String>,
    /// Number of earlier requests.
    earlier: usize,
}

impl Request {
    /// The first byte of the requested range.
    fn from(&self) -> Option<usize> {
        self.range.as_ref()?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

/// A response: the head without the empty line, and the bytes that are sent before the connection is closed.
struct Response(String, Vec<u8>);

/// A server whose connections have one request each.
struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn start(answer: impl Fn(&Request) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/file", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (answer, kept) = (Arc::new(answer), Arc::clone(&seen));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (answer, kept) = (Arc::clone(&answer), Arc::clone(&kept));
                thread::spawn(move || serve(&client, &kept, &*answer));
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    fn read(&self) -> Result<Vec<u8>, Error> {
        read(&self.url)
    }
}

fn serve(mut client: &TcpStream, seen: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request) -> Response) {
    let mut lines = BufReader::new(client).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut request = Request { path, ..Request::default() };
    for line in lines.take_while(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        match name.to_ascii_lowercase().as_str() {
            "range" => request.range = Some(value.to_owned()),
            "if-range" => request.if_range = Some(value.to_owned()),
            _ => {}
        }
    }
    {
        let mut seen = seen.lock().unwrap();
        request.earlier = seen.len();
        seen.push(request.clone());
    }
    let Response(head, body) = answer(&request);
    // The client may have closed the connection.
    let _ = client.write_all(format!("{head}\r\nConnection: close\r\n\r\n").as_bytes());
    let _ = client.write_all(&body);
    let _ = client.shutdown(Shutdown::Write);
}

fn read(url: &str) -> Result<Vec<u8>, Error> {
    let mut read = Vec::new();
    match WebFile::at(url)?.reader().unwrap().read_to_end(&mut read) {
        Ok(_) => Ok(read),
        Err(error) => Err(error.downcast::<Error>().unwrap()),
    }
}

#[track_caller]
fn refuses(server: &Server, exit: Exit, message: &str) {
    let error = server.read().unwrap_err();
    assert_eq!(error.to_string(), format!("{}: {message}", server.url));
    assert_eq!(error.exit(), exit);
}

/// The whole file with these headers.
fn whole(headers: &str) -> Response {
    Response(format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}{headers}"), content())
}

/// The rest of the file with these headers.
fn rest(from: usize, headers: &str) -> Response {
    let range = format!("Content-Range: bytes {from}-{}/{BYTES}", BYTES - 1);
    let head =
        format!("HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\n{range}{headers}", BYTES - from);
    Response(head, content()[from..].to_vec())
}

/// The response as far as its first bytes.
fn cut(Response(head, mut body): Response, bytes: usize) -> Response {
    body.truncate(bytes);
    Response(head, body)
}

const ETAG: &str = "\r\nETag: \"v1\"";

#[test]
fn a_response_that_is_cut_is_resumed_where_it_ended() {
    for (headers, validator) in [
        (ETAG, "\"v1\""),
        ("\r\nLast-Modified: Mon, 23 Nov 2026 04:00:00 GMT", "Mon, 23 Nov 2026 04:00:00 GMT"),
        (
            "\r\nETag: W/\"v1\"\r\nLast-Modified: Mon, 23 Nov 2026 04:00:00 GMT",
            "Mon, 23 Nov 2026 04:00:00 GMT",
        ),
    ] {
        let server = Server::start(move |request| match request.from() {
            None => cut(whole(headers), 100_000),
            Some(from) if request.earlier < 3 => cut(rest(from, headers), 50_000),
            Some(from) => rest(from, headers),
        });
        assert!(server.read().unwrap() == content());
        let seen = server.seen();
        let ranges: Vec<_> = seen.iter().map(|request| request.from().unwrap_or(0)).collect();
        assert_eq!(ranges, [0, 100_000, 150_000, 200_000]);
        assert!(seen[1..].iter().all(|request| request.if_range.as_deref() == Some(validator)), "{seen:?}");
    }
}

#[test]
fn a_server_that_ignores_ranges_is_read_again_from_the_start() {
    let server =
        Server::start(|request| if request.earlier == 0 { cut(whole(ETAG), 100_000) } else { whole(ETAG) });
    assert!(server.read().unwrap() == content());
    assert_eq!(server.seen()[1].from(), Some(100_000));
}

#[test]
fn a_file_that_changes_while_it_is_read_is_an_error() {
    let changed = "was replaced while it was read; run again when no program writes to it";
    let other = "\r\nETag: \"v2\"";
    let answers: [fn(usize) -> Response; 5] = [
        |_| whole("\r\nETag: \"v2\""),
        |from| rest(from, "\r\nETag: \"v2\""),
        |_| {
            Response(
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}{ETAG}", BYTES - 1),
                content()[1..].to_vec(),
            )
        },
        |_| Response("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0".to_owned(), Vec::new()),
        |_| whole(""),
    ];
    for answer in answers {
        let server = Server::start(move |request| match request.from() {
            None => cut(whole(ETAG), 100_000),
            Some(from) => answer(from),
        });
        refuses(&server, Exit::TryAgain, changed);
    }
    // A first response without any byte is not a version that was read.
    let server =
        Server::start(move |request| if request.earlier == 0 { cut(whole(other), 0) } else { whole(other) });
    assert!(server.read().unwrap() == content());
}

#[test]
fn a_cut_without_a_validator_is_not_resumed() {
    let server =
        Server::start(|request| if request.earlier == 0 { cut(whole(""), 100_000) } else { whole("") });
    refuses(
        &server,
        Exit::Io,
        "was cut off at byte 100000, and the server states neither ETag nor Last-Modified; download the file first",
    );
    // Nothing was read yet, so that the second response may be of any version.
    let server = Server::start(|request| if request.earlier == 0 { cut(whole(""), 0) } else { whole("") });
    assert!(server.read().unwrap() == content());
}

#[test]
fn a_server_that_answers_with_another_range_is_refused() {
    let server = Server::start(|request| match request.from() {
        None => cut(whole(ETAG), 100_000),
        Some(_) => rest(50_000, ETAG),
    });
    refuses(
        &server,
        Exit::Io,
        "found another range than the one from byte 100000; check the URL, or download the file first",
    );
}

#[test]
fn the_number_of_tries_is_limited() {
    let server = Server::start(|_| {
        Response(
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0".to_owned(),
            Vec::new(),
        )
    });
    refuses(
        &server,
        Exit::Unavailable,
        "status 503, 7 times; check the URL, the network and HTTPS_PROXY, or try again later",
    );
    assert_eq!(server.seen().len(), 7);
}

#[test]
fn a_status_is_an_error_with_its_remedy() {
    for (status, exit, remedy) in [
        (404, Exit::MissingInput, "check the URL"),
        (403, Exit::Settings, "check the URL, whose signature may have expired, or download the file first"),
        (400, Exit::Io, "check the URL, or download the file first"),
    ] {
        let server = Server::start(move |_| {
            Response(format!("HTTP/1.1 {status} No\r\nContent-Length: 0"), Vec::new())
        });
        refuses(&server, exit, &format!("found status {status}, expected the file; {remedy}"));
        assert_eq!(server.seen().len(), 1);
    }
}

#[test]
fn a_file_without_a_length_is_read_only_if_its_end_is_marked_or_its_digest_known() {
    let endless = |_: &Request| Response("HTTP/1.1 200 OK".to_owned(), content());
    let server = Server::start(endless);
    refuses(
        &server,
        Exit::Io,
        "the server states no length, so that a cut could not be detected; download the file first",
    );
    assert!(read(&format!("{}#sha256={SHA256}", server.url)).unwrap() == content());
    let server = Server::start(|_| {
        let chunks = content()
            .chunks(1000)
            .map(|chunk| [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat())
            .collect::<Vec<_>>();
        Response(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked".to_owned(),
            [chunks.concat(), b"0\r\n\r\n".to_vec()].concat(),
        )
    });
    assert!(server.read().unwrap() == content());
}

#[test]
fn the_whole_file_is_compared_with_each_digest() {
    let other = "0".repeat(64);
    for (headers, is_same) in [
        (format!("\r\nRepr-Digest: sha-512=:AAAA:, sha-256=:{SHA256_BASE64}:"), true),
        (format!("\r\nContent-Digest: sha-256=:{SHA256_BASE64}:"), true),
        (format!("\r\nRepr-Digest: sha-256=:{}:", "A".repeat(43) + "="), false),
    ] {
        let server = Server::start(move |_| whole(&headers));
        let read_back = server.read();
        if is_same {
            assert!(read_back.unwrap() == content());
            continue;
        }
        refuses(
            &server,
            Exit::MissingInput,
            &format!(
                "its SHA-256 is {SHA256}, expected {other}; it was damaged, altered or replaced: make it again"
            ),
        );
    }
    let server = Server::start(|request| match request.from() {
        None => cut(whole(ETAG), 100_000),
        Some(from) => rest(from, ETAG),
    });
    assert!(read(&format!("{}#sha256={}", server.url, SHA256.to_uppercase())).unwrap() == content());
    let refused = read(&format!("{}#sha256={other}", server.url)).unwrap_err();
    assert!(matches!(refused, Error::OtherSha256 { .. }), "{refused}");
}

#[test]
fn redirects_are_followed_a_limited_number_of_times() {
    let redirect =
        |to: &str| Response(format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0"), Vec::new());
    let server = Server::start(move |request| match request.path.as_str() {
        "/file" => redirect("other?x=1"),
        "/other?x=1" => redirect("/third"),
        _ if request.earlier < 3 => cut(whole(ETAG), 100_000),
        _ => rest(request.from().unwrap(), ETAG),
    });
    assert!(server.read().unwrap() == content());
    let paths: Vec<_> = server.seen().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/file", "/other?x=1", "/third", "/file", "/other?x=1", "/third"]);

    let server = Server::start(move |_| redirect("/file"));
    refuses(&server, Exit::Io, "found more than 5 redirects; pass the URL of the file itself");
    let server = Server::start(move |_| redirect("http://example.com/file"));
    refuses(&server, Exit::Io, "it redirects to http on another machine; pass the URL of the file itself");
}

#[test]
fn a_query_is_not_shown() {
    let server =
        Server::start(|_| Response("HTTP/1.1 404 Not Found\r\nContent-Length: 0".to_owned(), Vec::new()));
    let error = read(&format!("{}?X-Amz-Signature=5ec7e7", server.url)).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}?***: found status 404", server.url)), "{error}");
    assert_eq!(server.seen()[0].path, "/file?X-Amz-Signature=5ec7e7");
}

#[test]
fn a_reader_that_is_dropped_ends_the_transfer() {
    let server = Server::start(|_| whole(ETAG));
    let mut reader = WebFile::at(&server.url).unwrap().reader().unwrap();
    let mut first = [0; 10];
    reader.read_exact(&mut first).unwrap();
    assert_eq!(first, content()[..10]);
    drop(reader);
}

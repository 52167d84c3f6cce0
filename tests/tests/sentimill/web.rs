//! Reviews on web servers, over TLS and on this machine.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;
use tests::compressed::gzip;
use tests::demo::DEMO;
use tests::programs::{run, start};
use tests::skipped;
use tests::web_server::WebServer;

use crate::made::{BY_PIPE, Flags, Manner, Room};

const MANNER: Manner = Manner { threads: 2, memory: "512MiB" };

/// Serves a file at any path. Each response ends after this number of bytes. Returns the URL without a path.
fn serve(content: &[u8], bytes_per_response: usize) -> String {
    let server = WebServer::start("", content);
    server.change(|served| served.stops_after = Some(bytes_per_response));
    server.url
}

/// A server with TLS, whose files are complete responses.
struct TlsServer {
    folder: TempDir,
    process: Child,
    url: String,
}

impl TlsServer {
    /// `None` if OpenSSL is not installed.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let openssl = |arguments: &[&str]| {
            let mut command = Command::new("openssl");
            command.args(arguments).current_dir(folder.path()).stdin(Stdio::null()).stderr(Stdio::null());
            command
        };
        let key = ["-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"];
        let names =
            ["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"];
        let made =
            openssl(&[&["req", "-x509", "-subj", "/CN=localhost"], &key[..], &names].concat()).output();
        if !made.is_ok_and(|made| made.status.success()) {
            skipped("TLS: openssl is missing; install it with the package manager");
            return None;
        }
        let mut server =
            openssl(&["s_server", "-accept", "127.0.0.1:0", "-key", "key.pem", "-cert", "cert.pem", "-HTTP"]);
        let mut process = server.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut addresses = lines.filter_map(|line| line.strip_prefix("ACCEPT ").map(str::to_owned));
        let address = addresses.next().expect("the server states its address");
        let url = format!("https://localhost:{}", address.rsplit(':').next().unwrap());
        // Reads what the server logs, which would wait otherwise.
        thread::spawn(move || addresses.for_each(drop));
        Some(Self { folder, process, url })
    }

    fn put(&self, name: &str, head: &str, body: &[u8]) {
        let response = [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), body].concat();
        std::fs::write(self.folder.path().join(name), response).unwrap();
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_file_on_a_web_server_is_read_even_if_each_response_is_cut() {
    let packed = gzip(&DEMO.raw);
    for (content, bytes) in [(packed.clone(), packed.len() / 3), (DEMO.raw.clone(), DEMO.raw.len() / 4)] {
        let room = Room::new();
        let url = serve(&content, bytes) + "/reviews.json";
        let made = run(&mut room.sentimill(MANNER, &Flags::default(), &[&url]), b"").succeeded();
        room.made(&made).assert_same(&BY_PIPE, "a web server");
    }
}

#[test]
fn a_file_that_cannot_be_read_from_a_web_server_is_refused_by_name() {
    let url = serve(b"PAR1 and more", usize::MAX);
    let other = "0".repeat(64);
    let sha256 = "2d9b5a5e2f1b1c3e";
    for (input, code, message) in [
        (
            format!("{url}/reviews.parquet?key=secret"),
            64,
            format!("{url}/reviews.parquet?***: found Parquet, which can only be read from a file that is not compressed; write it to a file on this machine"),
        ),
        (
            "http://example.com/reviews.json".to_owned(),
            64,
            "http://example.com/reviews.json: http:// is not encrypted, so that a network could alter the file; expected \
             https://host/path, or http:// to a server on this machine"
                .to_owned(),
        ),
        (
            "https://KEY:SECRET@example.com/reviews.json".to_owned(),
            64,
            "https://***@example.com/reviews.json: it contains a user name or key; remove it, and replace the key, since \
             shells and logs keep it; expected https://host/path, or http:// to a server on this machine"
                .to_owned(),
        ),
        (
            format!("https://example.com/reviews.json#sha256={sha256}"),
            64,
            "https://example.com/reviews.json: what follows # is not sha256= and 64 hexadecimal digits; expected \
             https://host/path, or http:// to a server on this machine"
                .to_owned(),
        ),
    ] {
        let room = Room::new();
        let refused = run(&mut room.sentimill(MANNER, &Flags::default(), &[&input]), b"").with_code(code);
        assert_eq!(refused.stderr.lines().last().unwrap(), format!("sentimill: {message}"));
        assert_eq!(room.files(), Vec::<String>::new());
    }
    let room = Room::new();
    let url = serve(&DEMO.raw, usize::MAX) + "/reviews.json";
    let refused = run(&mut room.sentimill(MANNER, &Flags::default(), &[&url, &url]), b"").with_code(64);
    let twice = "found the same file or folder as";
    assert!(refused.stderr.contains(&format!("sentimill: {url}: {twice} {url}")), "{}", refused.stderr);
    let input = format!("{url}#sha256={other}");
    let refused = run(&mut room.sentimill(MANNER, &Flags::default(), &[&input]), b"").with_code(66);
    let last = refused.stderr.lines().last().unwrap();
    assert!(
        last.starts_with(&format!("sentimill: {url}: its SHA-256 is "))
            && last.contains(&format!(", expected {other}; ")),
        "{last}"
    );
    assert_eq!(room.files(), Vec::<String>::new(), "the whole file was read, and no dataset was written");
}

#[test]
fn a_server_is_authenticated_by_its_certificate() {
    let Some(server) = TlsServer::start() else { return };
    server.put("reviews.json", &format!("200 OK\r\nContent-Length: {}", DEMO.raw.len()), &DEMO.raw);
    let url = format!("{}/reviews.json", server.url);
    let room = Room::new();
    let mut sentimill = room.sentimill(MANNER, &Flags::default(), &[&url]);
    let made = run(sentimill.env("SSL_CERT_FILE", server.folder.path().join("cert.pem")), b"").succeeded();
    room.made(&made).assert_same(&BY_PIPE, "a server with TLS");

    let room = Room::new();
    let refused = run(&mut room.sentimill(MANNER, &Flags::default(), &[&url]), b"").with_code(78);
    let last = refused.stderr.lines().last().unwrap();
    assert!(last.starts_with(&format!("sentimill: {url}: cannot authenticate the server (")), "{last}");
    assert!(last.contains("certificate") && last.contains("SSL_CERT_FILE"), "{last}");
}

#[test]
fn a_redirect_from_https_to_http_is_not_followed() {
    let Some(server) = TlsServer::start() else { return };
    let plain = serve(&DEMO.raw, usize::MAX);
    server.put(
        "reviews.json",
        &format!("302 Found\r\nContent-Length: 0\r\nLocation: {plain}/reviews.json"),
        b"",
    );
    let (room, url) = (Room::new(), format!("{}/reviews.json", server.url));
    let mut sentimill = room.sentimill(MANNER, &Flags::default(), &[&url]);
    sentimill.env("SSL_CERT_FILE", server.folder.path().join("cert.pem"));
    let refused = run(&mut sentimill, b"").with_code(74);
    assert_eq!(
        refused.stderr.lines().last().unwrap(),
        format!("sentimill: {url}: it redirects from https to http; pass the URL of the file itself")
    );
}

#[test]
fn the_proxy_of_the_environment_is_used() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let (room, url) = (Room::new(), "https://reviews.invalid/reviews.json");
    let mut sentimill = room.sentimill(MANNER, &Flags::default(), &[url]);
    sentimill.env("HTTPS_PROXY", format!("http://{}", proxy.local_addr().unwrap()));
    let mut child = start(&mut sentimill);
    let (client, _) = proxy.accept().unwrap();
    let first = BufReader::new(&client).lines().next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(first, "CONNECT reviews.invalid:443 HTTP/1.1");
}

//! A web server in this process with one file, whose responses stop early or whose file changes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a server has.
#[derive(Debug, Default)]
pub struct Served {
    /// The file.
    pub content: Vec<u8>,
    /// The end of the paths at which the file is.
    pub name: String,
    /// Headers of each response, of which the first one states the version.
    pub headers: String,
    /// A response stops after this number of bytes.
    pub stops_after: Option<usize>,
    /// Whether a connection stays open after a response that stopped.
    pub is_held: bool,
    /// The requests: path, and the first byte of the range if there is one.
    pub requests: Vec<String>,
}

/// A server of one file. A range of another version than the current one is answered with the whole file.
#[derive(Debug)]
pub struct WebServer {
    /// Its URL, without a path.
    pub url: String,
    served: Arc<Mutex<Served>>,
}

impl WebServer {
    /// Serves a file at all paths that end with this name.
    pub fn start(name: &str, content: &[u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("this machine has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        let (content, name, headers) = (content.to_vec(), name.to_owned(), "ETag: \"1\"".to_owned());
        let served = Arc::new(Mutex::new(Served { content, name, headers, ..Served::default() }));
        let server = Self { url: format!("http://{address}"), served: Arc::clone(&served) };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                // The client may close the connection.
                thread::spawn(move || respond(&client, &served));
            }
        });
        server
    }

    /// Changes what the server has.
    pub fn change(&self, change: impl FnOnce(&mut Served)) {
        change(&mut self.served.lock().expect("no thread has panicked"));
    }

    /// The requests since the last call.
    pub fn requests(&self) -> Vec<String> {
        let mut requests = Vec::new();
        self.change(|served| requests = std::mem::take(&mut served.requests));
        requests
    }
}

fn respond(mut client: &TcpStream, served: &Mutex<Served>) -> std::io::Result<()> {
    let head: Vec<_> =
        BufReader::new(client).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let header = |name: &str| {
        let is_named = |line: &&String| line.to_ascii_lowercase().starts_with(&format!("{name}: "));
        head.iter().find(is_named).map(|line| &line[name.len() + 2..])
    };
    let (head, body, is_held) = {
        let mut served = served.lock().expect("no thread has panicked");
        let path = head[0].split(' ').nth(1).unwrap_or_default().to_owned();
        let range = header("range").and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-'));
        served.requests.push(range.map_or(path.clone(), |from| format!("{path} from {from}")));
        let version = served.headers.lines().next().and_then(|header| Some(header.split_once(": ")?.1));
        let is_same = version.is_some() && version == header("if-range");
        let from = range.filter(|_| is_same).and_then(|from| from.parse().ok()).unwrap_or(0_usize);
        let size = served.content.len();
        let (status, rest) = match from {
            _ if !path.ends_with(&served.name) => ("404 Not Found".to_owned(), &[][..]),
            0 => ("200 OK".to_owned(), &served.content[..]),
            from if from >= size => {
                (format!("416 Range Not Satisfiable\r\nContent-Range: bytes */{size}"), &[][..])
            }
            from => (
                format!("206 Partial Content\r\nContent-Range: bytes {from}-{}/{size}", size - 1),
                &served.content[from..],
            ),
        };
        let length = rest.len();
        let headers = format!("Content-Length: {length}\r\nConnection: close\r\n{}", served.headers);
        let sent = served.stops_after.map_or(length, |bytes| length.min(bytes));
        let head = format!("HTTP/1.1 {status}\r\n{}\r\n\r\n", headers.trim_end());
        (head, rest[..sent].to_vec(), served.is_held && sent < length)
    };
    client.write_all(head.as_bytes())?;
    client.write_all(&body)?;
    if is_held {
        return client.read_to_end(&mut Vec::new()).map(|_| ());
    }
    client.shutdown(Shutdown::Write)
}

//! An HTTP proxy that injects faults of networks and services into requests and responses: lost responses
//! after completed work, resets, retry-later statuses, truncated or slow bodies.
//!
//! It also serializes conditional puts of one name, which some S3 servers do not. A connection has one
//! request, and bodies are held in memory.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The fault of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// The connection is closed before the service gets the request.
    Reset,
    /// The proxy responds with this status, and the service gets nothing.
    Status(u16),
    /// The service completes the request, and its response is lost.
    LoseAnswer,
    /// The body of the response ends after this number of bytes.
    CutAnswer(usize),
    /// The response is sent in pieces of this number of bytes, with a pause after each.
    Drip(usize, Duration),
    /// The body of the request is read in pieces of this number of bytes, with a pause before each.
    SlowRead(usize, Duration),
    /// The service gets the request after a delay.
    Delay(Duration),
    /// The condition is removed from the request.
    DropCondition,
    /// The last byte of the response's body is changed, and its headers have no checksum, as in a response
    /// with part of an object.
    DamagedAnswer,
    /// The byte after the first occurrence of these words in the request's body is changed.
    DamagedBehind(&'static str),
}

/// A request, as passed to a plan of faults.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method, such as `PUT`.
    pub method: String,
    /// Target, such as `/bucket/name?query`.
    pub target: String,
    /// Header lines, `name: value`.
    pub headers: Vec<String>,
    /// Number of earlier requests with this method and target.
    pub earlier: usize,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let line = self.headers.iter().find(|line| is_header(line, name))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    /// Whether the request has `If-None-Match: *`.
    pub fn is_conditional(&self) -> bool {
        self.header("if-none-match").is_some()
    }
}

/// The buffer of each connection for bytes that the proxy has not read.
const RECEIVED_BYTES: usize = 64 << 10;

/// Chooses the fault of each request.
pub type Plan = dyn Fn(&Request) -> Fault + Send + Sync;

/// A proxy, which stops when this value is dropped.
pub struct FaultProxy {
    address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<(Request, Fault)>>>,
}

struct Shared {
    service: SocketAddr,
    plan: Box<Plan>,
    seen: Arc<Mutex<Vec<(Request, Fault)>>>,
    /// One lock per name of a conditional put.
    names: Mutex<HashMap<String, Arc<Mutex<()>>>>,
}

impl FaultProxy {
    /// Starts a proxy for the service at this address.
    pub fn start(
        service: SocketAddr,
        plan: impl Fn(&Request) -> Fault + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        // Connections inherit it. A buffer that grows, up to 32 MiB on some machines, would take a body that is read slowly.
        rustix::net::sockopt::set_socket_recv_buffer_size(&listener, RECEIVED_BYTES)?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (plan, names) = (Box::new(plan), Mutex::new(HashMap::new()));
        let shared = Arc::new(Shared { service, plan, seen: Arc::clone(&seen), names });
        let has_ended = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&has_ended);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), shared) = (client, Arc::clone(&shared)) else { return };
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                // The client detects a broken connection.
                thread::spawn(move || serve(&shared, &client));
            }
        });
        Ok(Self { address, has_ended, seen })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, with their faults.
    pub fn seen(&self) -> Vec<(Request, Fault)> {
        locked(&self.seen).clone()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        // Connects once, so that the thread that accepts connections wakes up and ends.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(shared: &Shared, client: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let Some(head) = read_head(&mut reader)? else { return Ok(()) };
    let (request, fault) = shared.decide(&head);
    if head.iter().any(|line| is_header(line, "expect")) {
        write(client, b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = read_body(&mut reader, &head, fault)?;
    if let Fault::DamagedBehind(words) = fault {
        damage_behind(&mut body, words);
    }
    let lock = request.is_conditional().then(|| shared.lock_of(&request));
    let _one_at_a_time = lock.as_ref().map(|lock| locked(lock));
    match fault {
        Fault::Reset => return client.shutdown(Shutdown::Both),
        Fault::Status(status) => return refuse(client, status),
        Fault::Delay(pause) => thread::sleep(pause),
        _ => {}
    }
    let mut answer = shared.ask(&head, &body, fault)?;
    let head_bytes = head_bytes(&answer);
    match fault {
        Fault::LoseAnswer => client.shutdown(Shutdown::Both),
        Fault::CutAnswer(bytes) => write(client, &answer[..(head_bytes + bytes).min(answer.len())]),
        Fault::DamagedAnswer => {
            answer[head_bytes..].iter_mut().last().into_iter().for_each(|byte| *byte ^= 1);
            let head = String::from_utf8_lossy(&answer[..head_bytes]).into_owned();
            let passed = head.split_inclusive("\r\n").filter(|line| !line.starts_with("x-amz-checksum-"));
            write(client, passed.collect::<String>().as_bytes())?;
            write(client, &answer[head_bytes..])
        }
        Fault::Drip(bytes, pause) => answer.chunks(bytes).try_for_each(|piece| {
            thread::sleep(pause);
            write(client, piece)
        }),
        _ => write(client, &answer),
    }
}

impl Shared {
    fn decide(&self, head: &[String]) -> (Request, Fault) {
        let mut words = head[0].split(' ').map(str::to_owned);
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let headers = head[1..].to_vec();
        let mut seen = locked(&self.seen);
        let alike = |(other, _): &&(Request, Fault)| other.method == method && other.target == target;
        let earlier = seen.iter().filter(alike).count();
        let request = Request { method, target, headers, earlier };
        let fault = (self.plan)(&request);
        seen.push((request.clone(), fault));
        (request, fault)
    }

    fn lock_of(&self, request: &Request) -> Arc<Mutex<()>> {
        let name = request.target.split('?').next().unwrap_or_default();
        Arc::clone(locked(&self.names).entry(name.to_owned()).or_default())
    }

    /// The complete response of the service.
    fn ask(&self, head: &[String], body: &[u8], fault: Fault) -> io::Result<Vec<u8>> {
        let own = ["connection", "expect", "content-length", "transfer-encoding"];
        let passed = head.iter().filter(|line| !own.iter().any(|name| is_header(line, name)));
        let passed = passed.filter(|line| fault != Fault::DropCondition || !is_header(line, "if-none-match"));
        let mut asked: Vec<u8> = passed.flat_map(|line| format!("{line}\r\n").into_bytes()).collect();
        asked.extend_from_slice(
            format!("Connection: close\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(),
        );
        asked.extend_from_slice(body);
        let mut service = TcpStream::connect(self.service)?;
        let sent = service.write_all(&asked);
        let mut answer = Vec::new();
        let ended = service.read_to_end(&mut answer).and(sent);
        // A service that refuses a request by its headers responds and closes the connection before it has
        // read the body.
        if answer.is_empty() {
            ended?;
        }
        Ok(answer)
    }
}

/// The lines of a request's head.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Vec<String>>> {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => return Ok(Some(head)),
            line => head.push(line.to_owned()),
        }
    }
}

fn read_body(reader: &mut impl BufRead, head: &[String], fault: Fault) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if head.iter().any(|line| is_header(line, "transfer-encoding")) {
        read_chunked(reader, &mut body)?;
        return Ok(body);
    }
    let length = head.iter().find(|line| is_header(line, "content-length"));
    let length: u64 = length.and_then(|line| line.split(':').nth(1)?.trim().parse().ok()).unwrap_or(0);
    let (piece_bytes, pause) = match fault {
        Fault::SlowRead(bytes, pause) => (bytes as u64, pause),
        _ => (length, Duration::ZERO),
    };
    while (body.len() as u64) < length {
        thread::sleep(pause);
        let piece = piece_bytes.min(length - body.len() as u64);
        if reader.take(piece).read_to_end(&mut body)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(body)
}

fn read_chunked(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = u64::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        reader.take(size).read_to_end(body)?;
        let mut end = String::new();
        reader.read_line(&mut end)?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Flips a bit of the byte after the first occurrence of these words.
pub fn damage_behind(body: &mut [u8], words: &str) {
    let at = body.windows(words.len()).position(|window| window == words.as_bytes());
    let byte = at.and_then(|at| body.get_mut(at + words.len()));
    *byte.expect("a body with these words and more") ^= 1;
}

/// An error response in the format of S3.
fn refuse(client: &TcpStream, status: u16) -> io::Result<()> {
    let code = match status {
        403 => "AccessDenied",
        409 => "ConditionalRequestConflict",
        503 => "SlowDown",
        _ => "InternalError",
    };
    let body = format!("<Error><Code>{code}</Code><Message>said the proxy</Message></Error>");
    let length = body.len();
    let head = format!("HTTP/1.1 {status} {code}\r\nConnection: close\r\nContent-Type: application/xml\r\n");
    write(client, format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes())
}

fn is_header(line: &str, name: &str) -> bool {
    line.split_once(':').is_some_and(|(named, _)| named.eq_ignore_ascii_case(name))
}

fn head_bytes(answer: &[u8]) -> usize {
    const END: &[u8] = b"\r\n\r\n";
    answer.windows(END.len()).position(|window| window == END).map_or(answer.len(), |at| at + END.len())
}

fn write(mut client: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    client.write_all(bytes)
}

/// A thread that panicked while it held the lock left no inconsistent state.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

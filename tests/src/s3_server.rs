//! An S3 server of its own for a test.
//!
//! It looks whether an object is there and stores it in two steps, without a lock: behind a [`crate::fault_proxy`] it
//! keeps the promise of conditional puts, alone it does not.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::say;

const START_LIMIT: Duration = Duration::from_secs(120);

/// A server with a bucket `bucket`, which ends with this value.
#[derive(Debug)]
pub struct S3Server {
    process: Child,
    address: SocketAddr,
}

impl S3Server {
    /// `None` where it is not installed, which only a developer's machine may do.
    pub fn start() -> Option<Self> {
        let deps = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".deps");
        let program = deps.join("s3/bin/moto_server");
        if !program.is_file() {
            let skipped =
                format!("SKIPPED S3: {} is missing; bootstrap/laptop.sh test installs it", program.display());
            assert!(env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{skipped}");
            say(&skipped);
            return None;
        }
        // Free now, and soon its own.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = address.expect("this machine has a free port");
        // However this process ends, standard input is closed then, and the server ends.
        let mut process = Command::new("bash")
            .args(["-c", "\"$@\" & trap 'kill -9 $!' EXIT; cat", "bash"])
            .arg(program)
            .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server's program can be started");
        // It writes a line for each request, which somebody has to read.
        let log = process.stderr.take().expect("standard error is piped");
        thread::spawn(move || BufReader::new(log).lines().for_each(drop));
        let server = Self { process, address };
        let begin = Instant::now();
        while !server.makes_bucket() {
            assert!(begin.elapsed() < START_LIMIT, "the S3 server does not start");
            thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    fn makes_bucket(&self) -> bool {
        let request =
            "PUT /bucket HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        let asked = TcpStream::connect(self.address).and_then(|mut stream| {
            stream.write_all(request.as_bytes())?;
            stream.read_to_string(&mut answer)
        });
        asked.is_ok() && answer.starts_with("HTTP/1.1 200")
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

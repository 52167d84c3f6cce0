//! S3 servers for tests. moto is a Python program. s3s-fs runs in this process and stores objects in a
//! folder.
//!
//! Both servers check whether an object exists and store it in two steps, without a lock. Conditional put
//! requests are therefore correct only through a [`crate::fault_proxy`].

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

use crate::skipped;

/// The access key that s3s-fs accepts. moto accepts any.
pub const ACCESS_KEY: &str = "canary-key";
/// The secret with which s3s-fs verifies signatures.
pub const SECRET_KEY: &str = "canary-secret-0123456789";

const START_LIMIT: Duration = Duration::from_secs(120);
const THREADS: usize = 2;

/// A server with a bucket `bucket`, which stops when this value is dropped.
#[derive(Debug)]
pub struct S3Server {
    address: SocketAddr,
    running: Running,
}

#[derive(Debug)]
enum Running {
    Moto(Child),
    /// Dropped after the tasks that write into the folder.
    S3sFs {
        _runtime: Runtime,
        folder: TempDir,
    },
}

impl S3Server {
    /// Starts moto. `None` if it is not installed, which is allowed only on a developer's machine.
    pub fn start() -> Option<Self> {
        let deps = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".deps");
        let program = deps.join("s3/bin/moto_server");
        if !program.is_file() {
            skipped(&format!("S3: {} is missing; bootstrap/laptop.sh test installs it", program.display()));
            return None;
        }
        // When this process exits for any reason, standard input is closed, and the server exits.
        let mut process = Command::new("bash")
            .args(["-c", "\"$@\" & trap 'kill -9 $!' EXIT; cat", "bash"])
            .arg(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server's program can be started");
        // The port is read from the server's output, because a port reserved in advance may be taken by then.
        // The server logs a line per request, and a thread has to read them.
        let log = BufReader::new(process.stderr.take().expect("standard error is piped"));
        let (said, address) = channel();
        thread::spawn(move || {
            for line in log.lines() {
                if let Some(address) = line.ok().as_deref().and_then(address_in) {
                    let _ = said.send(address);
                }
            }
        });
        let address = address.recv_timeout(START_LIMIT).expect("the S3 server does not start");
        let server = Self { address, running: Running::Moto(process) };
        let begin = Instant::now();
        while !server.makes_bucket() {
            assert!(begin.elapsed() < START_LIMIT, "the S3 server does not start");
            thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    /// Starts s3s-fs over a temporary folder.
    pub fn start_s3s_fs() -> Self {
        let folder = tempfile::tempdir().expect("the folder for temporary files takes another");
        fs::create_dir(folder.path().join("bucket")).expect("a new folder takes a bucket");
        let files = FileSystem::new(folder.path()).expect("the server finds the folder");
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let runtime = runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let runtime = runtime.expect("this machine has threads");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("this machine has a free port");
        let address = listener.local_addr().expect("a listener has an address");
        runtime.spawn(serve(listener, service.build()));
        Self { address, running: Running::S3sFs { _runtime: runtime, folder } }
    }

    /// Starts the servers, one after the other.
    pub fn each() -> impl Iterator<Item = Self> {
        [|| Some(Self::start_s3s_fs()), Self::start].into_iter().filter_map(|start| start())
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self.running {
            Running::Moto(_) => "moto",
            Running::S3sFs { .. } => "s3s-fs",
        }
    }

    /// Puts an object into the bucket, without the programs under test.
    pub fn put(&self, name: &str, content: &[u8]) {
        let Running::S3sFs { folder, .. } = &self.running else {
            let answer = self.moto("PUT", &format!("/bucket/{name}"), content).expect("moto answers");
            assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
            return;
        };
        let path = folder.path().join("bucket").join(name);
        let below = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(below).expect("a bucket takes folders");
        fs::write(path, content).expect("a bucket takes files");
        // The checksum of a replaced object.
        let [bucket, name] = ["bucket", name].map(|text| URL_SAFE_NO_PAD.encode(text));
        let _ = fs::remove_file(folder.path().join(format!(".bucket-{bucket}.object-{name}.internal.json")));
    }

    /// The file of an object, if the bucket is a folder.
    pub fn path(&self, name: &str) -> PathBuf {
        let Running::S3sFs { folder, .. } = &self.running else { panic!("{} has no folder", self.name()) };
        folder.path().join("bucket").join(name)
    }

    /// The content of an object of the bucket, read without the programs under test.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let Running::S3sFs { folder, .. } = &self.running else {
            let answer = self.moto("GET", &format!("/bucket/{name}"), b"").expect("moto answers");
            let body =
                answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a response has a head") + 4;
            return answer.starts_with(b"HTTP/1.1 200").then(|| answer[body..].to_vec());
        };
        fs::read(folder.path().join("bucket").join(name)).ok()
    }

    fn makes_bucket(&self) -> bool {
        self.moto("PUT", "/bucket", b"").is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200"))
    }

    /// The response of moto, which does not verify signatures.
    fn moto(&self, method: &str, target: &str, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(self.address)?;
        let signed = "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: {signed}\r\n"
        );
        stream.write_all(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes())?;
        stream.write_all(body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }
}

/// moto's address in the line of its log that reports it: ` * Running on http://127.0.0.1:41127`.
fn address_in(line: &str) -> Option<SocketAddr> {
    line.split_once("Running on http://")?.1.trim().parse().ok()
}

/// Sets the endpoint and the credentials of S3 in a program's environment.
pub fn with_s3(mut program: Command, endpoint: &str) -> Command {
    program.env("AWS_ENDPOINT_URL_S3", endpoint).env("AWS_REGION", "eu-central-1");
    program.env("AWS_ACCESS_KEY_ID", ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    program
}

async fn serve(listener: tokio::net::TcpListener, service: S3Service) {
    loop {
        // Accepting can fail because there are too many open files. Other connections of the process will
        // close their files.
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let service = service.clone();
        tokio::spawn(async move {
            let connections = auto::Builder::new(TokioExecutor::new());
            // The client detects a broken connection.
            let _ = connections.serve_connection(TokioIo::new(client), service).await;
        });
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        if let Running::Moto(process) = &mut self.running {
            drop(process.stdin.take());
            let _ = process.wait();
        }
    }
}

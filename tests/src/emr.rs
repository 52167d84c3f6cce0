//! An Amazon EMR on this machine: the server of `tests/emr/`, which answers EMR's requests and runs bootstrap
//! actions and steps, the latter on a Hadoop of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::{say, skipped};

/// The secret key of a user of this EMR, which must not appear in any output.
pub const SECRET_KEY: &str = "canary-secret-of-emr-0123456789";
/// Regions of requests; the bucket is in this one.
const REGION: &str = "us-east-1";

/// The server, with a bucket `bucket` and the default roles. It stops, with its Hadoop, when this value is dropped or
/// this process ends. If a test has failed, the server's folder is kept.
#[derive(Debug)]
pub struct Emr {
    address: SocketAddr,
    serving: Child,
    folder: PathBuf,
}

impl Emr {
    /// Starts the server; Hadoop starts with the first cluster. `None`, with a notice, if something is not installed,
    /// which is allowed only on a developer's machine.
    pub fn start() -> Option<Self> {
        if let Some(missing) = missing() {
            skipped(&format!("EMR: {missing}"));
            return None;
        }
        let folder = tempfile::Builder::new().prefix("emr-").tempdir().expect("a new folder").keep();
        let shown = folder.clone();
        let panicked = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            panicked(panic);
            let _ = fs::write(shown.join("keep"), "");
            say(&format!("the logs of the EMR server are in {}", shown.display()));
        }));
        let mut serve = Command::new("bash");
        serve.args(["-c", "\"$@\" \"$0\"; [ -e \"$0/keep\" ] || rm -rf \"$0\""]).arg(&folder);
        serve.arg(project().join(".deps/s3/bin/python")).arg("-B").arg(project().join("tests/emr/server.py"));
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("AWS_")) {
            serve.env_remove(name);
        }
        // Ctrl-C goes only to the tests; the server stops after them.
        let log = fs::File::create(folder.join("server.log")).expect("a new folder takes a file");
        serve.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut serving = serve.spawn().expect("Python can be started");
        let mut line = String::new();
        let output = serving.stdout.take().expect("standard output is piped");
        BufReader::new(output).read_line(&mut line).expect("the server prints its address");
        let address = line.trim().rsplit("//").next().and_then(|address| address.parse().ok());
        Some(Self { address: address.expect("the EMR server does not start"), serving, folder })
    }

    /// The endpoint of all services.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The folder with Hadoop and the clusters, for searches.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets endpoint, region and keys in the environment of a user's program.
    pub fn of_user<'a>(&self, program: &'a mut Command) -> &'a mut Command {
        program.env("AWS_ENDPOINT_URL", self.url()).env("AWS_REGION", REGION);
        program.env("AWS_ACCESS_KEY_ID", "canary-key-of-emr").env("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    }

    /// Sends an order to the server, such as a fault; `tests/emr/server.py` lists them.
    #[track_caller]
    pub fn order(&self, method: &str, what: &str, order: &Value) -> Value {
        let (status, body) =
            self.request(method, &format!("/sentimill-test/{what}"), &[], order.to_string().as_bytes());
        assert_eq!(status, 200, "{what}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("the server answers in JSON")
    }

    /// Orders a fault of the next answers to an operation.
    pub fn answer(&self, operation: &str, answer: &str, times: u32) {
        self.order("POST", "faults", &json!({"operation": operation, "answer": answer, "times": times}));
    }

    /// The numbers of requests by operation since the last call.
    pub fn take_requests(&self) -> BTreeMap<String, u64> {
        let counts = self.order("GET", "requests", &Value::Null);
        self.order("DELETE", "requests", &Value::Null);
        serde_json::from_value(counts).expect("numbers by operation")
    }

    /// Executes an operation of EMR's API.
    #[track_caller]
    pub fn call(&self, operation: &str, input: &Value) -> Value {
        let target = format!("X-Amz-Target: ElasticMapReduce.{operation}");
        let headers =
            ["Content-Type: application/x-amz-json-1.1", &target, &authorization("elasticmapreduce")];
        let (status, body) = self.request("POST", "/", &headers, input.to_string().as_bytes());
        assert_eq!(status, 200, "{operation}: {}", String::from_utf8_lossy(&body));
        if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).expect("EMR answers in JSON")
        }
    }

    /// Puts an object into the bucket.
    #[track_caller]
    pub fn put(&self, key: &str, content: &[u8]) {
        let (status, body) = self.request("PUT", &format!("/bucket/{key}"), &[&authorization("s3")], content);
        assert_eq!(status, 200, "{key}: {}", String::from_utf8_lossy(&body));
    }

    /// An object of the bucket, if it exists.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let (status, body) = self.request("GET", &format!("/bucket/{key}"), &[&authorization("s3")], b"");
        (status == 200).then_some(body)
    }

    /// Deletes an object of the bucket.
    #[track_caller]
    pub fn delete(&self, key: &str) {
        let (status, body) = self.request("DELETE", &format!("/bucket/{key}"), &[&authorization("s3")], b"");
        assert_eq!(status, 204, "{key}: {}", String::from_utf8_lossy(&body));
    }

    /// The names of the bucket's objects below a prefix.
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        let path = format!("/bucket?list-type=2&prefix={prefix}");
        let (_, body) = self.request("GET", &path, &[&authorization("s3")], b"");
        let page = String::from_utf8_lossy(&body).into_owned();
        assert!(page.contains("<IsTruncated>false"), "{page}");
        let names = page.split("<Key>").skip(1).filter_map(|rest| rest.split('<').next());
        names.map(str::to_owned).collect()
    }

    fn request(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> (u16, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address).expect("the server listens");
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).expect("the server reads a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server answers");
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an answer has a head");
        let body = answer.split_off(end + 4);
        let head = String::from_utf8_lossy(&answer);
        assert!(!head.to_lowercase().contains("transfer-encoding"), "{head}");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("an answer has a status"), body)
    }
}

impl Drop for Emr {
    fn drop(&mut self) {
        drop(self.serving.stdin.take());
        let _ = self.serving.wait();
    }
}

/// A header from which the server reads the service; it does not verify signatures.
fn authorization(service: &str) -> String {
    format!("Authorization: AWS4-HMAC-SHA256 Credential=any/20300101/{REGION}/{service}/aws4_request")
}

/// What is not installed.
fn missing() -> Option<String> {
    let java = Command::new("java").arg("-version").stderr(Stdio::null()).status();
    if java.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Some("there is no java: apt-get install openjdk-17-jre-headless".to_owned());
    }
    for (stamp, set) in [("s3/bin/aws", "test"), ("hadoop/stamp", "hadoop"), ("emr/stamp", "emr")] {
        let path = project().join(".deps").join(stamp);
        if fs::metadata(&path).is_err() {
            return Some(format!("{} is missing; bootstrap/laptop.sh {set} installs it", path.display()));
        }
    }
    None
}

fn project() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project")
}

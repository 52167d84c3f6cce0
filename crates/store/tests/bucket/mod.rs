//! S3 stores for tests, each in a separate process, and the requests that their proxies see.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use store::{ObjectContent, PART_BYTES_MIN, Put, S3Options, Store};
use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::s3_server::{S3Server, SECRET_KEY, with_s3};

use crate::claims::key;

/// Small parts, so that small files have several.
pub const OPTIONS: &str = "part-mib=5";

/// Runs an ignored test in a separate process, because its environment variables define where S3 is.
#[track_caller]
pub fn succeeds_in_s3(test: &str, proxy: &FaultProxy, run: &str) {
    succeeds_with(OPTIONS, test, proxy, run);
}

#[track_caller]
pub fn succeeds_with(options: &str, test: &str, proxy: &FaultProxy, run: &str) {
    let ended = with_s3(Command::new(env::current_exe().unwrap()), &proxy.url())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .env("STORE_RUN", run)
        .env("STORE_OPTIONS", options)
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
    assert!(!said.contains(SECRET_KEY));
}

/// The store of the process started by [`succeeds_with`].
pub fn store() -> Option<Store> {
    let run = env::var("STORE_RUN").ok()?;
    let options: S3Options = env::var("STORE_OPTIONS").unwrap().parse().unwrap();
    Some(Store::open_with(&run, &options).unwrap())
}

/// Every server in turn. Prints the server's name, which precedes the output of a failing test.
pub fn servers() -> impl Iterator<Item = S3Server> {
    S3Server::each().inspect(|server| println!("{}", server.name()))
}

/// A proxy whose faults depend on the request.
pub fn proxy_with(server: &S3Server, plan: impl Fn(&Request) -> Fault + Send + Sync + 'static) -> FaultProxy {
    FaultProxy::start(server.address(), plan).unwrap()
}

/// The S3 operation of the request.
pub fn operation(request: &Request) -> &'static str {
    let is_about = |parameter| request.target.contains(parameter);
    match request.method.as_str() {
        "PUT" if is_about("uploadId=") => "UploadPart",
        "PUT" => "PutObject",
        "POST" if is_about("uploadId=") => "CompleteMultipartUpload",
        "POST" => "CreateMultipartUpload",
        "DELETE" if is_about("uploadId=") => "AbortMultipartUpload",
        "DELETE" => "DeleteObject",
        "HEAD" => "HeadObject",
        "GET" if is_about("list-type=") => "ListObjectsV2",
        _ => "GetObject",
    }
}

pub fn put_large(store: &Store) -> Put {
    let folder = tempfile::tempdir().unwrap();
    store.put_if_absent(&key("data/large.h5"), ObjectContent::File(&large(folder.path()))).unwrap()
}

/// A file of two full parts and a shorter one.
pub fn large(folder: &Path) -> PathBuf {
    let path = folder.join("large");
    let content: Vec<u8> = (0..2 * PART_BYTES_MIN + 12_345).map(|at| (at % 251) as u8).collect();
    std::fs::write(&path, content).unwrap();
    path
}

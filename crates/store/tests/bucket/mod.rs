//! S3 stores for tests, and the requests that their proxies see.

use std::path::{Path, PathBuf};

use store::{Credentials, ObjectContent, PART_BYTES_MIN, Put, S3Options, Store};
use tests::fault_proxy::{Fault, FaultProxy, Request};
use tests::s3_server::{ACCESS_KEY, S3Server, SECRET_KEY};

use crate::claims::key;

/// Options for the server behind a proxy. Parts are small, so that small files have several.
pub fn options(proxy: &FaultProxy) -> S3Options {
    S3Options {
        region: Some("eu-central-1".to_owned()),
        endpoint: Some(proxy.url()),
        credentials: Some(Credentials::new(ACCESS_KEY, SECRET_KEY, None, None, "test").into()),
        part_bytes: PART_BYTES_MIN,
        ..S3Options::default()
    }
}

/// A store in the server behind a proxy.
pub fn open(run: &str, proxy: &FaultProxy) -> Store {
    Store::open_with(run, &options(proxy)).unwrap()
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

//! Effects of `kms-key=` and `bucket-owner=` on each request, observed by a proxy, and the error for a wrong
//! owner.

use std::collections::BTreeSet;

use program::exit::{Exit, Fails};
use store::{ObjectContent, Put, S3Options, Store};
use tempfile::TempDir;
use tests::fault_proxy::{Fault, FaultProxy};
use tests::s3_server::S3Server;

use crate::bucket::{large, open, operation, options, proxy_with, put_large, servers};
use crate::claims::{key, one_line, put};

/// The account of moto's buckets. s3s-fs has no accounts.
const OWNER: &str = "123456789012";
const KMS_KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/0b7e3c1a";
const ALL: [&str; 9] = [
    "AbortMultipartUpload",
    "CompleteMultipartUpload",
    "CreateMultipartUpload",
    "DeleteObject",
    "GetObject",
    "HeadObject",
    "ListObjectsV2",
    "PutObject",
    "UploadPart",
];

#[test]
fn each_request_has_the_owner_and_each_new_object_its_key() {
    for server in servers() {
        let proxy = proxy_with(&server, |_| Fault::None);
        let owned = S3Options { kms_key: Some(KMS_KEY.to_owned()), ..of_owner(OWNER, &proxy) };
        use_every_operation(&Store::open_with("s3://bucket/owned", &owned).unwrap());

        let seen = proxy.seen();
        let asked: BTreeSet<_> = seen.iter().map(|(request, _)| operation(request)).collect();
        assert_eq!(asked.into_iter().collect::<Vec<_>>(), ALL);
        for (request, _) in &seen {
            let operation = operation(request);
            assert_eq!(request.header("x-amz-expected-bucket-owner"), Some(OWNER), "{operation}");
            let is_new = matches!(operation, "PutObject" | "CreateMultipartUpload");
            let encryption = ["", "-aws-kms-key-id"]
                .map(|rest| request.header(&format!("x-amz-server-side-encryption{rest}")));
            let expected = if is_new { [Some("aws:kms"), Some(KMS_KEY)] } else { [None, None] };
            assert_eq!(encryption, expected, "{operation}");
        }
    }
}

#[test]
fn without_options_no_request_has_an_owner_or_a_key() {
    for server in servers() {
        let proxy = proxy_with(&server, |_| Fault::None);
        use_every_operation(&open("s3://bucket/plain", &proxy));
        for (request, _) in proxy.seen() {
            for name in ["x-amz-expected-bucket-owner", "x-amz-server-side-encryption"] {
                assert_eq!(request.header(name), None, "{}", operation(&request));
            }
        }
    }
}

fn of_owner(account: &str, proxy: &FaultProxy) -> S3Options {
    S3Options { bucket_owner: Some(account.to_owned()), ..options(proxy) }
}

fn use_every_operation(store: &Store) {
    let small = key("commit/part-00000.json");
    assert!(matches!(put(store, &small, b"{}"), Put::Stored(_)));
    assert_eq!(put(store, &small, b"[]"), Put::AlreadyThere);
    assert!(matches!(put_large(store), Put::Stored(_)));
    // The losing upload is aborted.
    assert_eq!(put_large(store), Put::AlreadyThere);
    assert_eq!(store.list("").unwrap().len(), 2);
    assert_eq!(store.get_small(&small, 10).unwrap().unwrap(), b"{}");
    let folder = TempDir::new().unwrap();
    store.local_copy(&key("data/large.h5"), folder.path()).unwrap();
    store.delete(&small).unwrap();
}

#[test]
fn a_bucket_of_another_owner_is_refused() {
    let server = S3Server::start_s3s_fs();
    // The answer that S3 gives.
    let proxy = proxy_with(&server, |request| {
        let is_owner = request.header("x-amz-expected-bucket-owner") == Some(OWNER);
        if is_owner { Fault::None } else { Fault::Status(403) }
    });
    let options = of_owner("999999999999", &proxy);
    let store = Store::open_with("s3://bucket/of-another", &options).unwrap();
    let (object, folder) = (key("data/large.h5"), TempDir::new().unwrap());
    let large = large(folder.path());
    for error in [
        store.probe().unwrap_err(),
        store.put_if_absent(&object, ObjectContent::Bytes(b"{}")).unwrap_err(),
        store.put_if_absent(&object, ObjectContent::File(&large)).unwrap_err(),
        store.get_small(&object, 10).unwrap_err(),
        store.local_copy(&object, folder.path()).unwrap_err(),
        store.head(&object).unwrap_err(),
        store.list("").unwrap_err(),
        store.delete(&object).unwrap_err(),
    ] {
        assert_eq!(error.exit(), Exit::Settings, "{error}");
        assert!(one_line(&error).contains("the account of bucket-owner= if it is set"), "{error}");
    }
    assert!(proxy.seen().iter().all(|(_, fault)| *fault == Fault::Status(403)));
}

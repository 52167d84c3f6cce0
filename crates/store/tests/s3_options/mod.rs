//! Effects of `kms-key=` and `bucket-owner=` on each request, observed by a proxy, and the error for a wrong
//! owner.

use std::collections::BTreeSet;

use program::exit::{Exit, Fails};
use store::{ObjectContent, Put};
use tempfile::TempDir;
use tests::fault_proxy::Fault;

use crate::bucket::{OPTIONS, large, operation, proxy_with, put_large, servers, store, succeeds_with};
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
        let options = format!("{OPTIONS},bucket-owner={OWNER},kms-key={KMS_KEY}");
        succeeds_with(&options, "s3_options::every_operation_is_used", &proxy, "s3://bucket/owned");

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
        succeeds_with(OPTIONS, "s3_options::every_operation_is_used", &proxy, "s3://bucket/plain");
        for (request, _) in proxy.seen() {
            for name in ["x-amz-expected-bucket-owner", "x-amz-server-side-encryption"] {
                assert_eq!(request.header(name), None, "{}", operation(&request));
            }
        }
    }
}

#[test]
#[ignore = "the other side of the tests above, which start it"]
fn every_operation_is_used() {
    let Some(store) = store() else { return };
    let small = key("commit/part-00000.json");
    assert!(matches!(put(&store, &small, b"{}"), Put::Stored(_)));
    assert_eq!(put(&store, &small, b"[]"), Put::AlreadyThere);
    assert!(matches!(put_large(&store), Put::Stored(_)));
    // The losing upload is aborted.
    assert_eq!(put_large(&store), Put::AlreadyThere);
    assert_eq!(store.list("").unwrap().len(), 2);
    assert_eq!(store.get_small(&small, 10).unwrap().unwrap(), b"{}");
    let folder = TempDir::new().unwrap();
    store.local_copy(&key("data/large.h5"), folder.path()).unwrap();
    store.delete(&small).unwrap();
}

#[test]
fn a_bucket_of_another_owner_is_refused() {
    for server in servers() {
        // The answer that S3 gives.
        let proxy = proxy_with(&server, |request| {
            let is_owner = request.header("x-amz-expected-bucket-owner") == Some(OWNER);
            if is_owner { Fault::None } else { Fault::Status(403) }
        });
        let options = format!("{OPTIONS},bucket-owner=999999999999");
        succeeds_with(&options, "s3_options::every_operation_is_refused", &proxy, "s3://bucket/of-another");
        assert!(proxy.seen().iter().all(|(_, fault)| *fault == Fault::Status(403)));
    }
}

#[test]
#[ignore = "the other side of a_bucket_of_another_owner_is_refused, which starts it"]
fn every_operation_is_refused() {
    let Some(store) = store() else { return };
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
}

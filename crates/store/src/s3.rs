//! A run below a prefix of a bucket, in S3 or a compatible store.
//!
//! A put request has the header `If-None-Match: *`, so that the service decides which request is first. It
//! also has a random mark in its metadata. If a response is lost, the client retries and gets status 412. The
//! client then compares the mark: if the object has the mark of this request, the first try succeeded.
//!
//! A large file is uploaded in parts. The last request, `CompleteMultipartUpload`, has the condition too. The
//! probe tests the condition only on `PutObject`. A store that ignores it on the other request would let a
//! second upload replace an object of several parts. This cannot affect the election of an attempt: commit
//! records and the run's manifest are single small puts, and the names of data objects contain the attempt.
//!
//! All calls are retried a limited number of times, if a retry can succeed. The final error states whether
//! the service was unavailable, refused, or lacks a feature.

mod at_once;
mod body;
mod bucket;
mod clock;
mod connect;
mod download;
mod failure;
mod objects;
mod upload;

use std::path::Path;
use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::error::SdkError;
use bytes::Bytes;
use program::location::S3Url;
use program::progress::Progress;
use tokio::runtime::Runtime;

pub use clock::ServiceClock;
pub(crate) use connect::runtime;

use crate::key::folder_of_prefix;
use crate::{Backend, Error, Key, Listed, LocalObject, Object, ObjectContent, ObjectInfo, Put, S3Options};

/// The name of the probe's object. It is not a valid key, so no listing shows it.
const PROBE: &str = ".conditional-put";

/// A run in a bucket.
#[derive(Debug, Clone)]
pub(crate) struct S3Store {
    client: Client,
    /// Host and port, for messages.
    endpoint: String,
    /// Driven only by the calling thread.
    runtime: Arc<Runtime>,
    place: BucketPlace,
    options: S3Options,
    progress: Progress,
}

/// `s3://bucket/prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketPlace {
    pub bucket: String,
    /// Without a slash at either end; empty for objects that are in no folder.
    pub prefix: String,
}

impl Backend for S3Store {
    fn progress(&self) -> &Progress {
        &self.progress
    }

    fn url(&self) -> String {
        self.place.url()
    }

    /// Puts one name twice with the condition. A service that accepts the second request ignores the
    /// condition.
    fn probe(&self) -> Result<(), Error> {
        let (object, name) = (format!("{}/{PROBE}", self.url()), self.name_of(PROBE));
        let content = b"A put with If-None-Match: * made this object, and a second one was refused.\n";
        let content = Bytes::from_static(content);
        for _ in 0..2 {
            let put = self.put_bytes(&object, &name, content.clone());
            if self.wait(put)? == Put::AlreadyThere {
                return Ok(());
            }
        }
        Err(Error::IgnoresCondition { run: self.url() })
    }

    fn put_if_absent(&self, key: &Key, content: ObjectContent<'_>) -> Result<Put, Error> {
        let (object, name) = (self.object(key), self.name(key));
        self.wait(async {
            match content {
                ObjectContent::Bytes(bytes) => {
                    self.put_bytes(&object, &name, Bytes::copy_from_slice(bytes)).await
                }
                ObjectContent::File(file) => self.put_file(&object, &name, file).await,
            }
        })
    }

    fn get_small(&self, key: &Key, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        self.wait(self.read_small(&self.object(key), &self.name(key), limit_bytes))
    }

    fn local_copy(&self, key: &Key, folder: &Path) -> Result<LocalObject, Error> {
        self.wait(self.download(&self.object(key), &self.name(key), folder))
    }

    fn remote(&self, key: &Key) -> Result<Option<Object>, Error> {
        let name = self.name(key);
        let found = self.objects(&name)?.into_iter().find(|object| object.name == name);
        found.map(Some).ok_or_else(|| Error::Missing { object: self.object(key) })
    }

    fn head(&self, key: &Key) -> Result<Option<ObjectInfo>, Error> {
        let found = self.wait(self.look_up(&self.object(key), &self.name(key)))?;
        Ok(found.map(|found| found.info))
    }

    fn list(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        folder_of_prefix(prefix)?;
        self.wait(self.list_all(prefix))
    }

    fn delete(&self, key: &Key) -> Result<(), Error> {
        let object = self.object(key);
        let request = self.client.delete_object().bucket(&self.place.bucket).key(self.name(key));
        let owned = request.set_expected_bucket_owner(self.options.bucket_owner.clone());
        match self.runtime.block_on(owned.send()) {
            Ok(_) => Ok(()),
            Err(error) if failure::is_absence(&error) => Ok(()),
            Err(error) => Err(failure::explain(object, "delete it", &error).at(&self.endpoint)),
        }
    }
}

impl S3Store {
    pub(crate) fn open(place: BucketPlace, options: &S3Options) -> Result<S3Store, Error> {
        let runtime = connect::runtime()?;
        let (client, endpoint) = runtime.block_on(connect::client(&place, options))?;
        let (runtime, options) = (Arc::new(runtime), options.clone());
        Ok(S3Store { client, endpoint, runtime, place, options, progress: Progress::default() })
    }

    /// Opens the folder of an object.
    pub(crate) fn of_object(url: &S3Url, options: &S3Options, progress: &Progress) -> Result<S3Store, Error> {
        let place = BucketPlace { bucket: url.bucket().to_owned(), prefix: url.folder().to_owned() };
        Ok(S3Store { progress: progress.clone(), ..S3Store::open(place, options)? })
    }

    /// The current version of the object with this full name; `None` if it does not exist.
    pub(crate) fn version(&self, name: &str) -> Result<Option<Found>, Error> {
        self.wait(self.look_up(&self.url_of(name), name))
    }

    /// Copies a version of the object with this full name into a folder.
    pub(crate) fn fetch_version(
        &self,
        name: &str,
        version: &Found,
        folder: &Path,
    ) -> Result<LocalObject, Error> {
        self.wait(self.download_version(&self.url_of(name), name, version, folder))
    }

    /// Reads the object with this full name; `None` if it does not exist.
    pub(crate) fn read_named(&self, name: &str, limit_bytes: u64) -> Result<Option<Vec<u8>>, Error> {
        self.wait(self.read_small(&self.url_of(name), name, limit_bytes))
    }

    /// Runs requests to their end. An error names the endpoint.
    fn wait<T>(&self, requests: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        self.runtime.block_on(requests).map_err(|error| error.at(&self.endpoint))
    }

    /// The full name of an object in its bucket.
    fn name(&self, key: &Key) -> String {
        self.name_of(key.as_str())
    }

    fn name_of(&self, name: &str) -> String {
        format!("{}{name}", self.place.root())
    }

    fn object(&self, key: &Key) -> String {
        format!("{}/{key}", self.url())
    }

    async fn look_up(&self, object: &str, name: &str) -> Result<Option<Found>, Error> {
        let request = self.client.head_object().bucket(&self.place.bucket).key(name);
        let request = request.set_expected_bucket_owner(self.options.bucket_owner.clone());
        let head = match request.checksum_mode(aws_sdk_s3::types::ChecksumMode::Enabled).send().await {
            Ok(head) => head,
            Err(error) if failure::is_absence(&error) => return Ok(None),
            Err(error) => return Err(failure::explain(object.to_owned(), "read its metadata", &error)),
        };
        let bytes = head.content_length().and_then(|bytes| u64::try_from(bytes).ok());
        let bytes =
            bytes.ok_or_else(|| failure::nonsense(object, "read its metadata", "no Content-Length"))?;
        Ok(Some(Found {
            info: ObjectInfo { bytes, etag: head.e_tag().map(str::to_owned) },
            mark: head.metadata().and_then(|metadata| metadata.get(upload::MARK)).cloned(),
            // Some compatible stores return another checksum in this field.
            crc64: head
                .checksum_crc64_nvme()
                .filter(|crc64| crc64.len() == upload::ENCODED_BYTES)
                .map(str::to_owned),
        }))
    }

    async fn list_all(&self, prefix: &str) -> Result<Vec<Listed>, Error> {
        let root = self.place.root();
        let request =
            self.client.list_objects_v2().bucket(&self.place.bucket).prefix(format!("{root}{prefix}"));
        let request = request.set_expected_bucket_owner(self.options.bucket_owner.clone());
        let mut pages = request.into_paginator().send();
        let mut listed = Vec::new();
        while let Some(page) = pages.next().await {
            let page =
                page.map_err(|error| failure::explain(format!("{}/{prefix}", self.url()), "list", &error))?;
            for object in page.contents() {
                let name = object.key().and_then(|name| name.strip_prefix(&root));
                let Some(Ok(key)) = name.map(Key::new) else { continue };
                let bytes = object.size().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default();
                listed.push(Listed { key, bytes, modified: objects::modified(object) });
            }
        }
        listed.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        Ok(listed)
    }
}

/// Result of a HEAD request.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) info: ObjectInfo,
    /// The mark of the put request that created the object.
    mark: Option<String>,
    /// CRC-64/NVME of the whole object, in base64.
    crc64: Option<String>,
}

impl BucketPlace {
    pub(crate) fn url(&self) -> String {
        match &self.prefix[..] {
            "" => format!("s3://{}", self.bucket),
            prefix => format!("s3://{}/{prefix}", self.bucket),
        }
    }

    /// The prefix of the full names of all objects.
    fn root(&self) -> String {
        if self.prefix.is_empty() { String::new() } else { format!("{}/", self.prefix) }
    }
}

/// A response, or the error of the client.
type Answer<T, E> = Result<T, SdkError<E>>;

//! Uploads bytes or a file as a new object, in one request or in parts.
//!
//! Every request has the CRC-64/NVME of its body, computed here. The completion of a multipart upload has the
//! CRC of the whole object. The service therefore refuses data that was altered in transit.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use aws_sdk_s3::operation::complete_multipart_upload::CompleteMultipartUploadError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{
    ChecksumAlgorithm, ChecksumType, CompletedMultipartUpload, CompletedPart, ServerSideEncryption,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, checksum, checksum_combine};

use super::at_once::several_at_once;
use super::connect::with_time_for;
use super::{Answer, S3Store, body, failure};
use crate::naming::random;
use crate::{Error, ObjectInfo, Put};

pub(super) const CRC64: CrcAlgorithm = CrcAlgorithm::Crc64Nvme;
/// Length of a CRC-64 in headers, in base64.
pub(super) const ENCODED_BYTES: usize = 12;
/// Name of the put's mark in the metadata of its object.
pub(super) const MARK: &str = "put";
/// A file of at least this number of parts is sent as a multipart upload.
const PARTS_MIN: u64 = 2;
/// Limit of S3.
const PARTS_MAX: u64 = 10_000;
/// Maximum number of tries of a put request that conflicts with another request for the same name.
const CONFLICTS_MAX: u32 = 8;
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);

/// Result of one try of a put.
enum Tried {
    Decided(Put),
    /// Another put request for the name is in progress.
    Conflict,
}

impl S3Store {
    pub(super) async fn put_bytes(&self, object: &str, name: &str, bytes: Bytes) -> Result<Put, Error> {
        let mark = new_mark(object)?;
        let put = async || self.try_put(object, name, &mark, bytes.clone()).await;
        until_decided(object, put).await
    }

    pub(super) async fn put_file(&self, object: &str, name: &str, path: &Path) -> Result<Put, Error> {
        let unreadable = |source| Error::Source { file: path.to_owned(), object: object.to_owned(), source };
        let file = File::open(path).map_err(unreadable)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        if bytes < PARTS_MIN * self.options.part_bytes {
            let content = read_range(&file, 0, bytes).map_err(unreadable)?;
            return self.put_bytes(object, name, content).await;
        }
        let mark = new_mark(object)?;
        let local = Local { path, file, bytes };
        let put = async || self.try_put_in_parts(object, name, &mark, &local).await;
        until_decided(object, put).await
    }

    async fn try_put(&self, object: &str, name: &str, mark: &str, bytes: Bytes) -> Result<Tried, Error> {
        let size = bytes.len() as u64;
        let request = self.client.put_object().bucket(&self.place.bucket).key(name).if_none_match("*");
        let request = request
            .metadata(MARK, mark)
            .content_length(size as i64)
            .checksum_crc64_nvme(encoded(checksum(CRC64, &bytes)))
            .set_server_side_encryption(self.encryption())
            .set_ssekms_key_id(self.options.kms_key.clone())
            .set_expected_bucket_owner(self.options.bucket_owner.clone())
            .body(self.body(bytes));
        match request.customize().config_override(with_time_for(size)).send().await {
            Ok(put) => Ok(stored(size, put.e_tag())),
            Err(error) if failure::is_taken(&error) => {
                // The object was deleted in the meantime. It existed, so another put request was first.
                let put = self.whose(object, name, mark).await?.unwrap_or(Put::AlreadyThere);
                Ok(Tried::Decided(put))
            }
            Err(error) if failure::is_conflict(&error) => Ok(Tried::Conflict),
            Err(error) => Err(failure::explain(object.to_owned(), "put it", &error)),
        }
    }

    /// Whether the existing object was written by this put, that is, the first request succeeded and its response was
    /// lost. `None` if the object does not exist.
    async fn whose(&self, object: &str, name: &str, mark: &str) -> Result<Option<Put>, Error> {
        let found = self.look_up(object, name).await?;
        Ok(found.map(|found| {
            if found.mark.as_deref() == Some(mark) { Put::Stored(found.info) } else { Put::AlreadyThere }
        }))
    }

    async fn try_put_in_parts(
        &self,
        object: &str,
        name: &str,
        mark: &str,
        local: &Local<'_>,
    ) -> Result<Tried, Error> {
        let upload = self.begin(object, name, mark).await?;
        let completed = async {
            let parts = self.send_parts(object, name, &upload, local).await?;
            let crc64 = combined(parts.iter().map(|part| (part.crc64, part.bytes)));
            let answer = self.complete(name, &upload, &parts, crc64, local.bytes).await;
            self.judge(object, name, mark, local.bytes, answer).await
        };
        let tried = completed.await;
        if !matches!(tried, Ok(Tried::Decided(Put::Stored(_)))) {
            // Parts that are not removed are billed. If this fails, the lifecycle rule of the bucket has to
            // remove them.
            let request = self.client.abort_multipart_upload().bucket(&self.place.bucket).key(name);
            let owner = self.options.bucket_owner.clone();
            let _ = request.upload_id(&upload).set_expected_bucket_owner(owner).send().await;
        }
        tried
    }

    async fn begin(&self, object: &str, name: &str, mark: &str) -> Result<String, Error> {
        let request = self.client.create_multipart_upload().bucket(&self.place.bucket).key(name);
        let begun = request
            .metadata(MARK, mark)
            .checksum_algorithm(ChecksumAlgorithm::Crc64Nvme)
            .checksum_type(ChecksumType::FullObject)
            .set_server_side_encryption(self.encryption())
            .set_ssekms_key_id(self.options.kms_key.clone())
            .set_expected_bucket_owner(self.options.bucket_owner.clone())
            .send()
            .await
            .map_err(|error| failure::explain(object.to_owned(), "start its upload", &error))?;
        let upload = begun.upload_id().map(str::to_owned);
        upload.ok_or_else(|| failure::nonsense(object, "start its upload", "a response without an upload id"))
    }

    /// Sends all parts, several concurrently.
    async fn send_parts(
        &self,
        object: &str,
        name: &str,
        upload: &str,
        local: &Local<'_>,
    ) -> Result<Vec<Part>, Error> {
        let part_bytes = self.options.part_bytes.max(local.bytes.div_ceil(PARTS_MAX));
        let parts = (0..local.bytes.div_ceil(part_bytes)).map(|part| {
            let offset = part * part_bytes;
            let content = read_range(&local.file, offset, part_bytes.min(local.bytes - offset));
            let content = content.map_err(|source| Error::Source {
                file: local.path.to_owned(),
                object: object.to_owned(),
                source,
            })?;
            let (object, name, upload) = (object.to_owned(), name.to_owned(), upload.to_owned());
            Ok(self.clone().send_part(object, name, upload, part as i32 + 1, content))
        });
        several_at_once(self.options.parts_at_once, parts).await
    }

    async fn send_part(
        self,
        object: String,
        name: String,
        upload: String,
        number: i32,
        content: Bytes,
    ) -> Result<Part, Error> {
        let (bytes, crc64) = (content.len() as u64, checksum(CRC64, &content));
        let request = self.client.upload_part().bucket(&self.place.bucket).key(name).upload_id(upload);
        let sent = request
            .part_number(number)
            .content_length(bytes as i64)
            .checksum_crc64_nvme(encoded(crc64))
            .set_expected_bucket_owner(self.options.bucket_owner.clone())
            .body(self.body(content))
            .customize()
            .config_override(with_time_for(bytes))
            .send()
            .await
            .map_err(|error| failure::explain(object, "upload a part of it", &error))?;
        Ok(Part { number, bytes, crc64, etag: sent.e_tag().map(str::to_owned) })
    }

    async fn complete(
        &self,
        name: &str,
        upload: &str,
        parts: &[Part],
        crc64: u64,
        bytes: u64,
    ) -> Answer<Option<String>, CompleteMultipartUploadError> {
        let listed = parts.iter().map(|part| {
            CompletedPart::builder()
                .part_number(part.number)
                .set_e_tag(part.etag.clone())
                .checksum_crc64_nvme(encoded(part.crc64))
                .build()
        });
        let parts = CompletedMultipartUpload::builder().set_parts(Some(listed.collect())).build();
        let request = self.client.complete_multipart_upload().bucket(&self.place.bucket).key(name);
        let completed = request
            .upload_id(upload)
            .multipart_upload(parts)
            .checksum_crc64_nvme(encoded(crc64))
            .checksum_type(ChecksumType::FullObject)
            .mpu_object_size(bytes as i64)
            .if_none_match("*")
            .set_expected_bucket_owner(self.options.bucket_owner.clone())
            .send()
            .await?;
        Ok(completed.e_tag().map(str::to_owned))
    }

    /// Interprets the response to the last request of a multipart upload.
    async fn judge(
        &self,
        object: &str,
        name: &str,
        mark: &str,
        bytes: u64,
        answer: Answer<Option<String>, CompleteMultipartUploadError>,
    ) -> Result<Tried, Error> {
        match answer {
            Ok(etag) => Ok(stored(bytes, etag.as_deref())),
            Err(error) if failure::is_taken(&error) || failure::is_gone(&error) => {
                let put = self.whose(object, name, mark).await?;
                let lost = || failure::explain(object.to_owned(), "complete its upload", &error);
                Ok(Tried::Decided(put.ok_or_else(lost)?))
            }
            Err(error) if failure::is_conflict(&error) => Ok(Tried::Conflict),
            // s3s-fs returns this status if the upload no longer exists.
            Err(error) if failure::is_refused(&error) => match self.whose(object, name, mark).await {
                Ok(Some(put @ Put::Stored(_))) => Ok(Tried::Decided(put)),
                _ => Err(failure::explain(object.to_owned(), "complete its upload", &error)),
            },
            Err(error) => Err(failure::explain(object.to_owned(), "complete its upload", &error)),
        }
    }

    fn encryption(&self) -> Option<ServerSideEncryption> {
        self.options.kms_key.as_ref().map(|_| ServerSideEncryption::AwsKms)
    }

    fn body(&self, bytes: Bytes) -> ByteStream {
        body::counted(bytes, &self.progress)
    }
}

/// A file to send.
struct Local<'a> {
    path: &'a Path,
    file: File,
    bytes: u64,
}

/// A part that was sent.
struct Part {
    number: i32,
    bytes: u64,
    crc64: u64,
    etag: Option<String>,
}

/// Retries a put request until the service has decided which request created the object.
async fn until_decided(object: &str, put: impl AsyncFn() -> Result<Tried, Error>) -> Result<Put, Error> {
    let mut pause = CONFLICT_PAUSE;
    for tries_left in (0..CONFLICTS_MAX).rev() {
        match put().await? {
            Tried::Decided(put) => return Ok(put),
            Tried::Conflict if tries_left == 0 => break,
            Tried::Conflict => {
                tokio::time::sleep(pause.mul_f64(0.5 + random_share(object)?)).await;
                pause *= 2;
            }
        }
    }
    Err(Error::Conflicts { object: object.to_owned(), tries: CONFLICTS_MAX })
}

fn stored(bytes: u64, etag: Option<&str>) -> Tried {
    Tried::Decided(Put::Stored(ObjectInfo { bytes, etag: etag.map(str::to_owned) }))
}

fn read_range(file: &File, offset: u64, bytes: u64) -> io::Result<Bytes> {
    let mut content = vec![0; bytes as usize];
    file.read_exact_at(&mut content, offset)?;
    Ok(content.into())
}

/// A CRC-64 in the format of headers.
pub(super) fn encoded(crc64: u64) -> String {
    STANDARD.encode(crc64.to_be_bytes())
}

/// The CRC-64 of the whole from the CRCs and lengths of its parts, in order.
pub(super) fn combined(parts: impl Iterator<Item = (u64, u64)>) -> u64 {
    parts.fold(0, |whole, (crc64, bytes)| checksum_combine(CRC64, whole, crc64, bytes))
}

fn new_mark(object: &str) -> Result<String, Error> {
    Ok(format!("{:016x}{:016x}", random_for(object)?, random_for(object)?))
}

fn random_share(object: &str) -> Result<f64, Error> {
    Ok((random_for(object)? >> 11) as f64 / (1u64 << 53) as f64)
}

fn random_for(object: &str) -> Result<u64, Error> {
    let doing = "draw a random mark for it";
    random().map_err(|source| Error::Io { object: object.to_owned(), doing, source })
}

//! Downloads an object into memory or into a local file, in concurrent ranges.
//!
//! All ranges are requested with the ETag of one version. The whole object is verified against the service's
//! CRC-64/NVME, if there is one. The result is therefore one complete version of the object.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_s3::primitives::ByteStream;
use crc_fast::Digest;
use program::temporary;

use super::at_once::several_at_once;
use super::upload::{CRC64, combined, encoded};
use super::{Found, S3Store, failure};
use crate::amazon::Kind;
use crate::{Error, LocalObject};

/// Maximum number of tries of a range whose response is cut off.
pub(super) const TRIES: u32 = 5;
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// A range that was fetched.
struct Range {
    offset: u64,
    bytes: u64,
    crc64: u64,
}

impl S3Store {
    pub(super) async fn read_small(
        &self,
        object: &str,
        name: &str,
        limit_bytes: u64,
    ) -> Result<Option<Vec<u8>>, Error> {
        let doing = "read it";
        let mut broken = String::new();
        for _ in 0..TRIES {
            let request = self.client.get_object().bucket(&self.place.bucket).key(name);
            let answer =
                match request.set_expected_bucket_owner(self.options.bucket_owner.clone()).send().await {
                    Ok(answer) => answer,
                    Err(error) if failure::is_absence(&error) => return Ok(None),
                    Err(error) => return Err(failure::explain(object.to_owned(), doing, &error)),
                };
            let expected = answer.content_length().and_then(|bytes| u64::try_from(bytes).ok());
            let too_large = || Error::TooLarge { object: object.to_owned(), limit_bytes };
            if expected.is_some_and(|bytes| bytes > limit_bytes) {
                return Err(too_large());
            }
            let mut content = Vec::new();
            let mut body = answer.body;
            loop {
                match body.next().await {
                    Some(Ok(bytes)) => content.extend_from_slice(&bytes),
                    Some(Err(error)) => {
                        broken = error.to_string();
                        break;
                    }
                    None if expected.is_none_or(|bytes| bytes == content.len() as u64) => {
                        return Ok(Some(content));
                    }
                    None => {
                        broken =
                            format!("{} bytes, expected {}", content.len(), expected.unwrap_or_default());
                        break;
                    }
                }
                if content.len() as u64 > limit_bytes {
                    return Err(too_large());
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(unavailable(object, doing, broken))
    }

    pub(super) async fn download(
        &self,
        object: &str,
        name: &str,
        folder: &Path,
    ) -> Result<LocalObject, Error> {
        let found = self.look_up(object, name).await?;
        let found = found.ok_or_else(|| Error::Missing { object: object.to_owned() })?;
        self.download_version(object, name, &found, folder).await
    }

    /// Copies the version of an object that was found.
    pub(super) async fn download_version(
        &self,
        object: &str,
        name: &str,
        found: &Found,
        folder: &Path,
    ) -> Result<LocalObject, Error> {
        let failed =
            |source| Error::Io { object: object.to_owned(), doing: "copy it to this machine", source };
        let hidden = temporary::file_in(folder).map_err(failed)?;
        let file = Arc::new(hidden.as_file().try_clone().map_err(failed)?);
        let ranges =
            self.fetch_ranges(object, name, found.info.bytes, found.info.etag.clone(), &file).await?;
        let crc64 = combined(ranges.iter().map(|range| (range.crc64, range.bytes)));
        match &found.crc64 {
            Some(expected) if *expected != encoded(crc64) => Err(unavailable(
                object,
                "copy it to this machine",
                "bytes that do not match its CRC-64".to_owned(),
            )),
            _ => Ok(LocalObject::temporary(hidden, found.info.bytes)),
        }
    }

    async fn fetch_ranges(
        &self,
        object: &str,
        name: &str,
        bytes: u64,
        etag: Option<String>,
        file: &Arc<File>,
    ) -> Result<Vec<Range>, Error> {
        let part_bytes = self.options.part_bytes;
        let ranges = (0..bytes.div_ceil(part_bytes)).map(|part| {
            let offset = part * part_bytes;
            let range = Range { offset, bytes: part_bytes.min(bytes - offset), crc64: 0 };
            let (store, object, name) = (self.clone(), object.to_owned(), name.to_owned());
            Ok(store.fetch_range(object, name, range, etag.clone(), Arc::clone(file)))
        });
        several_at_once(self.options.parts_at_once, ranges).await
    }

    async fn fetch_range(
        self,
        object: String,
        name: String,
        range: Range,
        etag: Option<String>,
        file: Arc<File>,
    ) -> Result<Range, Error> {
        let doing = "copy it to this machine";
        let mut broken = String::new();
        for _ in 0..TRIES {
            let (first, last) = (range.offset, range.offset + range.bytes - 1);
            let request = self.client.get_object().bucket(&self.place.bucket).key(&name);
            let answer = request
                .range(format!("bytes={first}-{last}"))
                .set_if_match(etag.clone())
                .set_expected_bucket_owner(self.options.bucket_owner.clone())
                .send()
                .await
                .map_err(|error| failure::explain(object.clone(), doing, &error))?;
            let io_error = |source| Error::Io { object: object.clone(), doing, source };
            match self.take_range(&range, answer.body, &file).await.map_err(io_error)? {
                Ok(crc64) => return Ok(Range { crc64, ..range }),
                Err(why) => broken = why,
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(unavailable(&object, doing, broken))
    }

    /// Writes a range as it arrives. Returns its CRC-64, or how it was cut off.
    async fn take_range(
        &self,
        range: &Range,
        mut body: ByteStream,
        file: &File,
    ) -> std::io::Result<Result<u64, String>> {
        let mut crc64 = Digest::new(CRC64);
        let mut taken = 0;
        while let Some(piece) = body.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => return Ok(Err(error.to_string())),
            };
            if taken + piece.len() as u64 > range.bytes {
                return Ok(Err(format!("more than the {} bytes that were requested", range.bytes)));
            }
            file.write_all_at(&piece, range.offset + taken)?;
            crc64.update(&piece);
            taken += piece.len() as u64;
            self.progress.advance(piece.len() as u64);
        }
        let is_whole = taken == range.bytes;
        Ok(if is_whole {
            Ok(crc64.finalize())
        } else {
            Err(format!("{taken} bytes, expected {}", range.bytes))
        })
    }
}

/// The error for responses that were damaged in all tries.
pub(super) fn unavailable(object: &str, doing: &'static str, found: String) -> Error {
    Error::S3 { object: object.to_owned(), doing, endpoint: String::new(), found, why: Kind::Unavailable }
}

//! Lists objects of any name below a prefix, and reads ranges of them into memory.

use std::time::{Duration, SystemTime};

use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types;

use super::download::{PAUSE, TRIES, unavailable};
use super::{S3Store, failure};
use crate::{Error, Object};

const DOING: &str = "read it";

impl S3Store {
    /// The object with this name, or those below it; all objects if the name is empty.
    pub(crate) fn objects(&self, name: &str) -> Result<Vec<Object>, Error> {
        let folder =
            if name.is_empty() || name.ends_with('/') { name.to_owned() } else { format!("{name}/") };
        let found = self.wait(self.listed_as(name, |listed| listed == name))?;
        let mut found = if found.is_empty() {
            let is_marker = |listed: &str| listed.ends_with('/');
            self.wait(self.listed_as(&folder, |listed| !is_marker(listed)))?
        } else {
            found
        };
        if found.is_empty() {
            return Err(Error::NoObjects { url: self.url_of(name) });
        }
        found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    pub(crate) fn url_of(&self, name: &str) -> String {
        format!("s3://{}/{name}", self.place.bucket)
    }

    pub(crate) fn part_bytes(&self) -> u64 {
        self.options.part_bytes
    }

    pub(crate) fn read_range(&self, object: &Object, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        self.wait(self.fetch(object, offset, bytes))
    }

    async fn listed_as(&self, prefix: &str, is_one: impl Fn(&str) -> bool) -> Result<Vec<Object>, Error> {
        let request = self.client.list_objects_v2().bucket(&self.place.bucket).prefix(prefix);
        let request = request.set_expected_bucket_owner(self.options.bucket_owner.clone());
        let mut pages = request.into_paginator().send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| failure::explain(self.url_of(prefix), "list", &error))?;
            let contents = page.contents().iter();
            found
                .extend(contents.filter_map(|listed| self.object_of(listed)).filter(|one| is_one(&one.name)));
        }
        Ok(found)
    }

    fn object_of(&self, listed: &types::Object) -> Option<Object> {
        Some(Object {
            store: self.clone(),
            name: listed.key()?.to_owned(),
            bytes: listed.size().and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or_default(),
            modified: modified(listed),
            etag: listed.e_tag().map(str::to_owned),
        })
    }

    async fn fetch(&self, object: &Object, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        let mut broken = String::new();
        for _ in 0..TRIES {
            let request = self.client.get_object().bucket(&self.place.bucket).key(&object.name);
            let answer = request
                .range(format!("bytes={offset}-{}", offset + bytes - 1))
                .set_if_match(object.etag.clone())
                .set_expected_bucket_owner(self.options.bucket_owner.clone())
                .send()
                .await;
            let answer = match answer {
                // Some compatible stores ignore the condition, or return no ETag in listings.
                Ok(answer) if is_other(object, &answer) => {
                    return Err(Error::Changed { object: object.url() });
                }
                Ok(answer) => answer,
                Err(error) if failure::is_taken(&error) => {
                    return Err(Error::Changed { object: object.url() });
                }
                Err(error) if failure::is_absence(&error) => {
                    return Err(Error::Missing { object: object.url() });
                }
                Err(error) => return Err(failure::explain(object.url(), DOING, &error)),
            };
            match taken(answer.body, bytes).await {
                Ok(range) => return Ok(range),
                Err(why) => broken = why,
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(unavailable(&object.url(), DOING, broken))
    }
}

/// When a listed object was written, by the clock of the service.
pub(super) fn modified(listed: &types::Object) -> SystemTime {
    let seconds = listed.last_modified().map_or(0, |time| time.secs().max(0));
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs())
}

/// Whether a response is from another version than the listed one, judging by ETag and total size.
fn is_other(object: &Object, answer: &GetObjectOutput) -> bool {
    // Not every store quotes ETags consistently.
    let bare = |etag: &str| etag.trim_matches('"').to_owned();
    let marks = object.etag.as_deref().zip(answer.e_tag());
    let bytes = answer.content_range().and_then(|range| range.rsplit_once('/')?.1.parse().ok());
    marks.is_some_and(|(listed, answered)| bare(listed) != bare(answered))
        || bytes.is_some_and(|bytes: u64| bytes != object.bytes)
}

/// Exactly this number of bytes, or how the response was cut off.
async fn taken(mut body: ByteStream, bytes: u64) -> Result<Vec<u8>, String> {
    let mut taken = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
    while let Some(piece) = body.next().await {
        taken.extend_from_slice(&piece.map_err(|error| error.to_string())?);
        if taken.len() as u64 > bytes {
            return Err(format!("more than the {bytes} bytes that were requested"));
        }
    }
    let is_whole = taken.len() as u64 == bytes;
    if is_whole { Ok(taken) } else { Err(format!("{} bytes, expected {bytes}", taken.len())) }
}

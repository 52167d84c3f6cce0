//! The facts in the head of a response: which version of a file it has, and which bytes of it.

use aws_sdk_s3::config::http::HttpResponse;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use program::hexadecimal;

/// The version of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// Size in bytes.
    pub(super) bytes: Option<u64>,
    /// A strong ETag, which changes with every byte.
    etag: Option<String>,
    last_modified: Option<String>,
    /// SHA-256 of the whole file (RFC 9530), in hexadecimal digits.
    pub(super) sha256: Option<String>,
}

/// What the body of a response contains.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyRange {
    /// The whole file.
    Whole,
    /// The file from an offset to its end.
    From(u64),
    /// Another range than the requested one.
    Other,
}

impl Version {
    /// The version that a response with status 200 or 206 is from.
    pub(super) fn of(response: &HttpResponse) -> Self {
        let header = |name: &str| response.headers().get(name);
        let is_whole = response.status().as_u16() == 200;
        let range = header("content-range").and_then(|range| range.rsplit_once('/')?.1.parse().ok());
        let length = || header("content-length")?.trim().parse().ok();
        let content_digest = || header("content-digest").filter(|_| is_whole);
        Self {
            bytes: if is_whole { length() } else { range },
            etag: header("etag").filter(|etag| etag.starts_with('"')).map(str::to_owned),
            last_modified: header("last-modified").map(str::to_owned),
            sha256: header("repr-digest").or_else(content_digest).and_then(sha256_in),
        }
    }

    /// The version with this `ETag` or `Last-Modified`.
    pub(super) fn of_validator(validator: &str) -> Self {
        let validator = Some(validator.to_owned());
        match validator.as_deref().is_some_and(|validator| validator.starts_with('"')) {
            true => Self { etag: validator, ..Self::default() },
            false => Self { last_modified: validator, ..Self::default() },
        }
    }

    /// The value of `If-Range`, if a range of this version can be requested.
    pub(super) fn validator(&self) -> Option<&str> {
        self.etag.as_deref().or(self.last_modified.as_deref())
    }

    /// Whether a later response is from another version, by what both state.
    pub(super) fn differs(&self, later: &Self) -> bool {
        fn differ<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            matches!((one, other), (Some(one), Some(other)) if one != other)
        }
        differ(&self.etag, &later.etag)
            || (self.etag.is_none() && differ(&self.last_modified, &later.last_modified))
            || differ(&self.bytes, &later.bytes)
            || differ(&self.sha256, &later.sha256)
    }

    /// Whether a later response is certainly from this version.
    pub(super) fn is_surely(&self, later: &Self) -> bool {
        !self.differs(later) && self.validator().is_some() && self.validator() == later.validator()
    }
}

impl BodyRange {
    /// The part in the body of a response with status 200 or 206.
    pub(super) fn of(response: &HttpResponse) -> Self {
        if response.status().as_u16() == 200 {
            return Self::Whole;
        }
        let range = response.headers().get("content-range").and_then(|range| {
            let (range, size) = range.trim().strip_prefix("bytes ")?.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            let size: u64 = size.parse().ok()?;
            (last.checked_add(1) == Some(size)).then_some(first)
        });
        range.map_or(Self::Other, Self::From)
    }
}

/// Whether the end of the body can be distinguished from a cut.
pub(super) fn has_end(response: &HttpResponse) -> bool {
    let headers = response.headers();
    headers.contains_key("content-length") || headers.contains_key("transfer-encoding")
}

/// The SHA-256 in a list of digests: `sha-256=:BASE64:, sha-512=:…:`.
fn sha256_in(list: &str) -> Option<String> {
    let digest = list.split(',').find_map(|one| one.trim().strip_prefix("sha-256=:"))?;
    let bytes = STANDARD.decode(digest.split(':').next()?).ok().filter(|bytes| bytes.len() == 32)?;
    Some(hexadecimal::encode(&bytes))
}

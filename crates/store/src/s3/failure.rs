//! Converts a failed request into an error with its meaning and a remedy.

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::RequestId;

use crate::Error;
use crate::amazon::{self, Kind, status};

const PRECONDITION_FAILED: u16 = 412;
const CONFLICT: u16 = 409;
const NOT_FOUND: u16 = 404;

/// The object already exists.
pub(super) fn is_taken<E>(error: &SdkError<E>) -> bool {
    status(error) == Some(PRECONDITION_FAILED)
}

/// Another conditional put request for this name is in progress.
pub(super) fn is_conflict<E>(error: &SdkError<E>) -> bool {
    status(error) == Some(CONFLICT)
}

/// The service refuses access.
pub(super) fn is_refused<E>(error: &SdkError<E>) -> bool {
    matches!(status(error), Some(401 | 403))
}

/// The multipart upload no longer exists: it was completed or aborted.
pub(super) fn is_gone<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    error.code() == Some("NoSuchUpload")
}

/// The object does not exist; its bucket does.
pub(super) fn is_absence<E: ProvideErrorMetadata>(error: &SdkError<E>) -> bool {
    status(error) == Some(NOT_FOUND) && !matches!(error.code(), Some("NoSuchBucket" | "NoSuchUpload"))
}

pub(super) fn explain<E>(object: String, doing: &'static str, error: &SdkError<E>) -> Error
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    SdkError<E>: RequestId,
{
    let found = amazon::found(error);
    let why = match amazon::kind_of(error, &found) {
        // The endpoint of the role's credentials may be away for a moment, so the request can be repeated.
        Kind::Credentials if status(error).is_none() => Kind::Unavailable,
        why => why,
    };
    Error::S3 { object, doing, endpoint: String::new(), found, why }
}

/// A response that violates the protocol.
pub(super) fn nonsense(object: &str, doing: &'static str, found: &str) -> Error {
    Error::S3 {
        object: object.to_owned(),
        doing,
        endpoint: String::new(),
        found: found.to_owned(),
        why: Kind::Other,
    }
}

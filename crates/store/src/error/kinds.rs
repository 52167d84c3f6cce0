//! Kinds of failed requests, and the remedy of each.

use crate::amazon::{EXPIRED, Kind};

/// The remedy of a failed request to S3.
pub(super) fn remedy_of_s3(kind: Kind) -> &'static str {
    match kind {
        Kind::Expired => EXPIRED,
        Kind::Credentials | Kind::NotAuthorised => {
            "check the credentials, the policies of user and bucket, the account of bucket-owner= if it is set, the \
             region and the clock of this machine"
        }
        Kind::Unavailable | Kind::Throttled => "check endpoint= and the network, or try again later",
        Kind::Absent | Kind::Other => "check the bucket, region= and endpoint=",
    }
}

/// Kinds of failures of a web server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebFailure {
    /// The server refused access.
    Refused,
    /// The certificate of the server is not trusted.
    Unauthenticated,
    /// The file does not exist.
    Missing,
    /// No response after all tries.
    Unavailable,
    /// A redirect that is not followed.
    Redirect,
    /// The server does not state what is needed to verify or to resume the transfer.
    Unverifiable,
    /// Anything else.
    Other,
}

impl WebFailure {
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Refused => "check the URL, whose signature may have expired, or download the file first",
            Self::Unauthenticated => {
                "check the URL and the clock of this machine, or set SSL_CERT_FILE to the certificates of your network"
            }
            Self::Missing => "check the URL",
            Self::Unavailable => "check the URL, the network and HTTPS_PROXY, or try again later",
            Self::Redirect => "pass the URL of the file itself",
            Self::Unverifiable => "download the file first",
            Self::Other => "check the URL, or download the file first",
        }
    }
}

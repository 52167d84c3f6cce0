//! The configuration that clients of Amazon's services share, and the description of a failed request.
//!
//! Region, profile, endpoint and credentials come from the sources that all AWS tools use: the environment,
//! `~/.aws`, the role of the instance or container. Credentials are never flags.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{Credentials, ProvideCredentials, StalledStreamProtectionConfig};
use aws_sdk_s3::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_s3::operation::RequestId;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use program::system::without_number;

use crate::S3Options;

/// Maximum number of tries per call. The pauses between them double, to over half a minute in total.
const ATTEMPTS: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Timeout for the first byte of a response, and for a body that makes no progress. The operating system
/// accepts megabytes at once, and on a slow line accepts more only after a while.
pub(crate) const READ_LIMIT: Duration = Duration::from_secs(60);

/// The configuration of a client: limits of time and of retries, region, profile, endpoint and the source of
/// credentials. Of the options, only region, profile, endpoint and credentials apply.
pub async fn config(options: &S3Options) -> SdkConfig {
    let retries = RetryConfig::standard()
        .with_max_attempts(ATTEMPTS)
        .with_initial_backoff(FIRST_PAUSE)
        .with_max_backoff(LONGEST_PAUSE);
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https())
        .timeout_config(timeouts(READ_LIMIT))
        .stalled_stream_protection(StalledStreamProtectionConfig::enabled().grace_period(READ_LIMIT).build())
        .retry_config(retries);
    if let Some(region) = &options.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(profile) = &options.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(endpoint) = &options.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    if let Some(credentials) = &options.credentials {
        loader = loader.credentials_provider(Credentials::clone(credentials));
    }
    loader.load().await
}

/// Limits of time of a request whose response begins within `read`.
pub(crate) fn timeouts(read: Duration) -> TimeoutConfig {
    TimeoutConfig::builder().connect_timeout(CONNECT_LIMIT).read_timeout(read).build()
}

/// Fetches the credentials once, so that their absence is an error of its own. The error states where they
/// were searched.
pub async fn check_credentials(config: &SdkConfig) -> Result<(), String> {
    let Some(provider) = config.credentials_provider() else {
        return Err("no source of credentials is set".to_owned());
    };
    provider.provide_credentials().await.map(drop).map_err(|error| chain_of(&error))
}

/// The HTTP status of a failed request, if there was a response.
pub fn status<E>(error: &SdkError<E>) -> Option<u16> {
    error.raw_response().map(|response| response.status().as_u16())
}

/// Kinds of failed requests, each with a remedy of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Refused because of the rate of requests, in all tries.
    Throttled,
    /// The credentials have expired.
    Expired,
    /// There are no credentials, or AWS does not know them.
    Credentials,
    /// The user or role may not perform the action.
    NotAuthorised,
    /// There was no usable response.
    Unavailable,
    /// What the request names does not exist.
    Absent,
    /// Anything else, such as content that the service refuses.
    Other,
}

/// The remedy of expired credentials, for all services.
pub const EXPIRED: &str =
    "the credentials have expired; renew them (aws sso login, or new temporary keys) and repeat the command";

/// The kind of a failed request. `found` are its words, as by [`found`].
pub fn kind_of<E: ProvideErrorMetadata>(error: &SdkError<E>, found: &str) -> Kind {
    kind(status(error), error.code(), error.message().unwrap_or_default(), found)
}

/// The kind of a failure by the status, the code and the message of the response. Without a response, `found` decides.
pub fn kind(status: Option<u16>, code: Option<&str>, message: &str, found: &str) -> Kind {
    match (status, code.unwrap_or_default()) {
        // The client found no credentials for the request, or could not refresh them.
        (None, _) if is_about_expiry(found) => Kind::Expired,
        (None, _) if found.contains("credentials") => Kind::Credentials,
        (None, _) => Kind::Unavailable,
        (_, "ThrottlingException" | "Throttling" | "TooManyRequestsException" | "RequestLimitExceeded")
        | (Some(429), _) => Kind::Throttled,
        (_, "ExpiredToken" | "ExpiredTokenException" | "RequestExpired") => Kind::Expired,
        #[rustfmt::skip]
        (_, "UnrecognizedClientException" | "InvalidClientTokenId" | "InvalidAccessKeyId" | "SignatureDoesNotMatch"
            | "InvalidSignatureException" | "IncompleteSignature" | "IncompleteSignatureException"
            | "MissingAuthenticationToken" | "MissingAuthenticationTokenException") => {
            if is_about_expiry(message) { Kind::Expired } else { Kind::Credentials }
        },
        (
            _,
            "AccessDenied" | "AccessDeniedException" | "UnauthorizedOperation" | "NotAuthorizedException",
        ) => Kind::NotAuthorised,
        (Some(500..), _) => Kind::Unavailable,
        (Some(404), _) => Kind::Absent,
        _ if message.contains("Rate exceeded") => Kind::Throttled,
        _ if message.contains("is not authorized to perform") => Kind::NotAuthorised,
        _ if message.starts_with("Cluster id") && message.contains("is not valid") => Kind::Absent,
        (Some(401 | 403), _) => Kind::NotAuthorised,
        _ => Kind::Other,
    }
}

/// Whether a text says that something has expired.
pub fn is_about_expiry(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["expired", "is no longer valid"].iter().any(|sign| text.contains(sign))
}

/// A failed request in words: `SlowDown (status 503): Please reduce your request rate, request 4442587FB7D0A2F9`.
pub fn found<E>(error: &SdkError<E>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    SdkError<E>: RequestId,
{
    let found = match (status(error), error.code(), error.message()) {
        (Some(status), Some(code), Some(message)) => format!("{code} (status {status}): {message}"),
        (Some(status), Some(code), None) => format!("{code} (status {status})"),
        (Some(status), ..) => format!("status {status}"),
        (None, ..) => match error {
            SdkError::DispatchFailure(_) => format!("the endpoint is unreachable ({})", innermost(error)),
            SdkError::TimeoutError(_) => "no response in time".to_owned(),
            _ => chain_of(error),
        },
    };
    let request = error.request_id().map(|id| format!(", request {id}")).unwrap_or_default();
    format!("{found}{request}")
}

/// The last cause in the chain, without the number of the operating system.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    without_number(&last.to_string())
}

/// The chain of causes, without the debug output of the error.
pub(crate) fn chain_of(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = DisplayErrorContext(error).to_string();
    chain.split(" (").next().unwrap_or(&chain).to_owned()
}

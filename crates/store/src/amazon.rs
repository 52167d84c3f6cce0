//! The configuration that clients of Amazon's services share, and the description of a failed request.
//!
//! Region, profile, endpoint and credentials come from the sources that all AWS tools use: the environment,
//! `~/.aws`, the role of the instance or container. Credentials are never arguments.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{ProvideCredentials, StalledStreamProtectionConfig};
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
/// credentials. Of the options, only region, profile and endpoint apply.
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

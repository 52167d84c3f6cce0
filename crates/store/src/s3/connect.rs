//! Creates a client from options and the environment.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{ProvideCredentials, RequestChecksumCalculation, StalledStreamProtectionConfig};
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use program::place::user_info;
use tokio::runtime::{self, Runtime};

use super::{BucketPlace, failure};
use crate::{Error, S3Options};

/// Maximum number of tries per call. The pauses between them double, to over half a minute in total.
const ATTEMPTS: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Timeout for the first byte of a response, and for a body that makes no progress. The operating system
/// accepts megabytes at once, and on a slow line accepts more only after a while.
const READ_LIMIT: Duration = Duration::from_secs(60);
/// The service responds only after it has received the whole request. The timeout therefore grows by
/// [`READ_LIMIT`] per this number of bytes sent.
const BYTES_IN_READ_LIMIT: u64 = 4 << 20;
/// Default region of AWS. Compatible stores mostly ignore it.
const REGION: &str = "us-east-1";
/// Variables of AWS tools that name an endpoint.
const ENDPOINT_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

pub(super) fn runtime() -> Result<Runtime, Error> {
    runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)
}

/// Creates the client for a bucket. Region, profile, endpoint and credentials come from the sources that all
/// AWS tools use: the environment, `~/.aws`, the role of the instance or container.
pub(super) async fn client(place: &BucketPlace, options: &S3Options) -> Result<(Client, String), Error> {
    let retries = RetryConfig::standard()
        .with_max_attempts(ATTEMPTS)
        .with_initial_backoff(FIRST_PAUSE)
        .with_max_backoff(LONGEST_PAUSE);
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https())
        .timeout_config(timeouts(0))
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
    let shared = loader.load().await;
    let credentials = shared.credentials_provider();
    let none = |source: String| Error::NoCredentials { run: place.url(), source: source.into() };
    match credentials {
        None => return Err(none("no source of credentials is set".to_owned())),
        Some(provider) => {
            let found = provider.provide_credentials().await;
            found.map_err(|error| none(failure::chain_of(&error)))?
        }
    };
    let config = aws_sdk_s3::config::Builder::from(&shared)
        // Compatible stores expect the bucket in the path. AWS supports both and prefers the host name.
        .force_path_style(options.path_style || is_elsewhere(&shared))
        // Requests that need a checksum get CRC-64/NVME from this crate.
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .region(shared.region().cloned().or_else(|| Some(Region::from_static(REGION))));
    Ok((Client::from_conf(config.build()), endpoint(&shared)))
}

/// The host and port of the service, without user information that a URL may hold.
fn endpoint(shared: &aws_config::SdkConfig) -> String {
    let named = shared.endpoint_url().map(str::to_owned);
    let named = named.or_else(|| ENDPOINT_VARIABLES.iter().find_map(|name| std::env::var(name).ok()));
    let region = || shared.region().map_or(REGION, |region| region.as_ref());
    host(&named.unwrap_or_else(|| format!("s3.{}.amazonaws.com", region())))
}

fn host(url: &str) -> String {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    // A secret in the user information may contain a slash.
    let host = host[user_info(host)..].trim_start_matches('@');
    host.split('/').next().unwrap_or_default().to_owned()
}

/// Configuration of a request with a body of this number of bytes.
pub(super) fn with_time_for(bytes: u64) -> aws_sdk_s3::config::Builder {
    aws_sdk_s3::Config::builder().timeout_config(timeouts(bytes))
}

fn timeouts(bytes: u64) -> TimeoutConfig {
    let limits = u32::try_from(1 + bytes / BYTES_IN_READ_LIMIT).unwrap_or(u32::MAX);
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT.saturating_mul(limits))
        .build()
}

/// Whether an endpoint is set, by an option or in the environment of AWS tools.
fn is_elsewhere(shared: &aws_config::SdkConfig) -> bool {
    shared.endpoint_url().is_some() || ENDPOINT_VARIABLES.iter().any(|name| std::env::var_os(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_without_any_part_of_a_secret() {
        for (url, expected) in [
            ("http://127.0.0.1:9000/x", "127.0.0.1:9000"),
            ("s3.eu-central-1.amazonaws.com", "s3.eu-central-1.amazonaws.com"),
            ("https://KEY:SECRET@store:9000", "store:9000"),
            ("https://KEY:SE/CRET@store/x", "store"),
            ("https://KEY:SE/CRET", ""),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}

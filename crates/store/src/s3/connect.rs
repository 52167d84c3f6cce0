//! Creates a client from options and the environment.

use aws_config::{Region, SdkConfig};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::RequestChecksumCalculation;
use program::url::user_info;
use tokio::runtime::{self, Runtime};

use super::BucketPlace;
use crate::amazon::{self, READ_LIMIT};
use crate::{Error, S3Options};

/// The service responds only after it has received the whole request. The timeout therefore grows by
/// [`READ_LIMIT`] per this number of bytes sent.
const BYTES_IN_READ_LIMIT: u64 = 4 << 20;
/// Default region of AWS. Compatible stores mostly ignore it.
const REGION: &str = "us-east-1";
/// Variables of AWS tools that name an endpoint.
const ENDPOINT_VARIABLES: [&str; 2] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"];

pub(crate) fn runtime() -> Result<Runtime, Error> {
    runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)
}

/// Creates the client for a bucket.
pub(super) async fn client(place: &BucketPlace, options: &S3Options) -> Result<(Client, String), Error> {
    let shared = amazon::config(options).await;
    let none = |found: String| Error::NoCredentials { run: place.url(), found };
    amazon::check_credentials(&shared).await.map_err(none)?;
    let config = aws_sdk_s3::config::Builder::from(&shared)
        // Compatible stores expect the bucket in the path. AWS supports both and prefers the host name.
        .force_path_style(options.path_style || is_elsewhere(&shared))
        // Requests that need a checksum get CRC-64/NVME from this crate.
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .region(shared.region().cloned().or_else(|| Some(Region::from_static(REGION))));
    Ok((Client::from_conf(config.build()), endpoint(&shared)))
}

/// The host and port of the service, without user information that a URL may hold.
fn endpoint(shared: &SdkConfig) -> String {
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
    let limits = u32::try_from(1 + bytes / BYTES_IN_READ_LIMIT).unwrap_or(u32::MAX);
    aws_sdk_s3::Config::builder().timeout_config(amazon::timeouts(READ_LIMIT.saturating_mul(limits)))
}

/// Whether an endpoint is set, by an option or in the environment of AWS tools.
fn is_elsewhere(shared: &SdkConfig) -> bool {
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

//! Read-only requests to IAM: GET requests of its query API, signed with the credentials of the client for EMR.
//!
//! The answers are XML. Only an error's code and message, and the presence of a role, are read from them.

use std::time::{Duration, SystemTime};

use aws_config::SdkConfig;
use aws_sdk_emr::config::ProvideCredentials;
use aws_sdk_emr::config::http::HttpRequest;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_types::byte_stream::ByteStream;
use store::amazon::{self, Kind};
use tokio::time::timeout;

use super::Emr;
use super::failure::RequestFailure;

const LIMIT: Duration = Duration::from_secs(30);

impl Emr {
    /// Checks that a role exists.
    pub fn check_role(&self, role: &str) -> Result<(), RequestFailure> {
        self.runtime.block_on(get(&self.config, "GetRole", "RoleName", role)).map(drop)
    }

    /// Whether an instance profile, which must exist, has a role.
    pub fn has_role(&self, instance_profile: &str) -> Result<bool, RequestFailure> {
        let sent = get(&self.config, "GetInstanceProfile", "InstanceProfileName", instance_profile);
        Ok(self.runtime.block_on(sent)?.contains("<RoleName>"))
    }
}

/// Sends a request about one thing, which is named by its name or its ARN. Returns the answer.
async fn get(
    config: &SdkConfig,
    action: &'static str,
    parameter: &str,
    thing: &str,
) -> Result<String, RequestFailure> {
    let name = thing.rsplit('/').next().unwrap_or(thing);
    let failed = |kind, found: String| RequestFailure::new(action, Some(thing), found, kind);
    let unavailable = |found: String| failed(Kind::Unavailable, found);
    let (endpoint, region) = endpoint(config);
    let url = format!(
        "{}/?Action={action}&{parameter}={}&Version=2010-05-08",
        endpoint.trim_end_matches('/'),
        encoded(name)
    );
    let mut request = HttpRequest::get(&url).map_err(|error| unavailable(error.to_string()))?;
    for (name, value) in signature(config, &url, region).await.map_err(unavailable)? {
        request.headers_mut().insert(name, value);
    }
    let tls = Provider::Rustls(CryptoMode::Ring);
    let connector = Connector::builder().tls_provider(tls).proxy_config(ProxyConfig::from_env()).build();
    let answer = async {
        let response = connector.call(request).await.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        let body =
            ByteStream::new(response.into_body()).collect().await.map_err(|error| error.to_string())?;
        Ok((status, String::from_utf8_lossy(&body.into_bytes()).into_owned()))
    };
    let answer = timeout(LIMIT, answer).await.unwrap_or_else(|_| Err("no response in time".to_owned()));
    let (status, body) = answer.map_err(unavailable)?;
    if status == 200 {
        return Ok(body);
    }
    let (code, message) = (element(&body, "Code"), element(&body, "Message").unwrap_or_default());
    let found = format!("{} (status {status}): {message}", code.unwrap_or("no code"));
    Err(failed(amazon::kind(Some(status), code, message, &found), found))
}

/// The headers that sign a GET request without a body.
async fn signature(
    config: &SdkConfig,
    url: &str,
    region: &str,
) -> Result<Vec<(&'static str, String)>, String> {
    let provider = config.credentials_provider().ok_or("no source of credentials is set")?;
    let identity: Identity = provider.provide_credentials().await.map_err(|error| error.to_string())?.into();
    let parameters = SigningParams::builder().identity(&identity).region(region).name("iam");
    let parameters = parameters.time(SystemTime::now()).settings(SigningSettings::default()).build();
    let parameters = parameters.map_err(|error| error.to_string())?.into();
    let request = SignableRequest::new("GET", url, std::iter::empty(), SignableBody::empty());
    let signed = request.and_then(|request| sign(request, &parameters)).map_err(|error| error.to_string())?;
    let (headers, _) = signed.into_parts().0.into_parts();
    Ok(headers.into_iter().map(|header| (header.name(), header.value().to_owned())).collect())
}

/// The endpoint of IAM and the region of its signatures. There is one per partition of AWS.
fn endpoint(config: &SdkConfig) -> (String, &'static str) {
    let region = config.region().map_or("", |region| region.as_ref());
    let (url, region) = match region {
        _ if region.starts_with("cn-") => ("https://iam.cn-north-1.amazonaws.com.cn", "cn-north-1"),
        _ if region.starts_with("us-gov-") => ("https://iam.us-gov.amazonaws.com", "us-gov-west-1"),
        _ => ("https://iam.amazonaws.com", "us-east-1"),
    };
    let of_iam = std::env::var("AWS_ENDPOINT_URL_IAM").ok();
    let set = of_iam.or_else(|| config.endpoint_url().map(str::to_owned));
    (set.unwrap_or_else(|| url.to_owned()), region)
}

/// A value in a query.
fn encoded(value: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    value
        .bytes()
        .map(|byte| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The text of the first element with this name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_and_elements_are_found() {
        assert_eq!(encoded("EMR_DefaultRole"), "EMR_DefaultRole");
        assert_eq!(encoded("a+b=c,d@e f"), "a%2Bb%3Dc%2Cd%40e%20f");
        let xml = "<ErrorResponse><Error><Code>NoSuchEntity</Code><Message> Role x not found\n</Message></Error></ErrorResponse>";
        assert_eq!(element(xml, "Code"), Some("NoSuchEntity"));
        assert_eq!(element(xml, "Message"), Some("Role x not found"));
        assert_eq!(element("<html>", "Code"), None);
    }

    #[test]
    fn each_partition_has_its_endpoint() {
        let of = |region| endpoint(&SdkConfig::builder().region(aws_config::Region::new(region)).build());
        assert_eq!(of("eu-central-1"), ("https://iam.amazonaws.com".to_owned(), "us-east-1"));
        assert_eq!(of("us-gov-east-1"), ("https://iam.us-gov.amazonaws.com".to_owned(), "us-gov-west-1"));
        assert_eq!(of("cn-northwest-1").1, "cn-north-1");
    }
}

//! Compares the clock of this machine with the clock of the service.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};

use super::S3Store;
use crate::Error;

/// The name of an object that never exists: it is not a valid key.
const NO_OBJECT: &str = ".clock";

/// How a service is reached, and its clock.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceClock {
    /// Host and port of the service.
    pub endpoint: String,
    /// The region in requests.
    pub region: Option<String>,
    /// Seconds by which this machine's clock is ahead, to the second; `None` if responses have no date.
    pub offset_s: Option<f64>,
}

impl S3Store {
    /// The service adds its time to each response, also if it refuses the request.
    pub(crate) fn clock(&self) -> Result<ServiceClock, Error> {
        let request = self.client.head_object().bucket(&self.place.bucket).key(self.name_of(NO_OBJECT));
        let before = SystemTime::now();
        let answer = self.runtime.block_on(request.send());
        let half = before.elapsed().unwrap_or_default() / 2;
        let date = answer.as_ref().err().and_then(|error| error.raw_response()?.headers().get("date"));
        let date = date.and_then(|date| DateTime::from_str(date, DateTimeFormat::HttpDate).ok());
        let here = (before + half).duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let offset = date.map(|date| here as f64 - date.secs() as f64);
        match answer {
            Err(error) if error.raw_response().is_none() => {
                Err(super::failure::explain(self.place.url(), "reach it", &error).at(&self.endpoint))
            }
            _ => Ok(ServiceClock {
                endpoint: self.endpoint.clone(),
                region: self.client.config().region().map(|region| region.as_ref().to_owned()),
                offset_s: offset,
            }),
        }
    }
}

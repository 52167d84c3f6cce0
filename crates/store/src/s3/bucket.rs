//! Checks that a bucket exists, belongs to the expected account and may be read, and finds its region.

use super::{S3Store, failure};
use crate::Error;
use crate::amazon::status;

/// The header with the region of a bucket. S3 adds it to refusals too.
const REGION_HEADER: &str = "x-amz-bucket-region";
/// The bucket is in another region than the endpoint.
const MOVED: u16 = 301;

impl S3Store {
    /// The region of the bucket; `None` if the service does not report it.
    pub(crate) fn bucket_region(&self) -> Result<Option<String>, Error> {
        let request = self.client.head_bucket().bucket(&self.place.bucket);
        let request = request.set_expected_bucket_owner(self.options.bucket_owner.clone());
        match self.runtime.block_on(request.send()) {
            Ok(answer) => Ok(answer.bucket_region().map(str::to_owned)),
            Err(error) if status(&error) == Some(MOVED) => {
                let region = error.raw_response().and_then(|response| response.headers().get(REGION_HEADER));
                Ok(region.map(str::to_owned))
            }
            Err(error) => {
                let bucket = format!("s3://{}", self.place.bucket);
                Err(failure::explain(bucket, "read its properties", &error).at(&self.endpoint))
            }
        }
    }
}

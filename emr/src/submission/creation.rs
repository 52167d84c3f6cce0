//! Requests that create something, whose responses may be lost.

use std::time::Duration;

use program::exit::{Exit, Fails};

use super::Submission;
use super::election::Mandate;
use crate::Error;
use crate::client::{Created, RequestFailure};

/// Maximum number of tries to create a cluster or to add steps, if the responses are lost.
const TRIES: u32 = 3;

/// Sends a request, and repeats it while the given function is true.
type Sender<'a, T> = dyn Fn(&dyn Fn() -> bool) -> Result<Created<T>, RequestFailure> + 'a;

impl Submission<'_> {
    /// Sends a request that creates something. If its response is lost, the request is sent again only if `find` does not
    /// find the result in time. `None` if the mandate has expired. After a lost response no error proves that nothing
    /// was created.
    pub(super) fn request<T>(
        &self,
        mandate: &Mandate,
        what: &'static str,
        send: impl Fn(&dyn Fn() -> bool) -> Result<Created<T>, RequestFailure>,
        find: impl Fn() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut lost = None;
        let created = self.try_request(mandate, what, &send, &find, &mut lost);
        created.map_err(|error| if lost.is_some() { unknown(&error, what) } else { error })
    }

    fn try_request<T>(
        &self,
        mandate: &Mandate,
        what: &'static str,
        send: &Sender<'_, T>,
        find: &dyn Fn() -> Result<Option<T>, Error>,
        lost: &mut Option<RequestFailure>,
    ) -> Result<Option<T>, Error> {
        let may_send = || mandate.is_valid(self.store).unwrap_or_default();
        for _ in 0..TRIES {
            if !mandate.is_valid(self.store)? {
                return Ok(None);
            }
            match send(&may_send)? {
                Created::Confirmed(created) => return Ok(Some(created)),
                Created::Unknown(failure) => {
                    self.progress.notice(&format!("{failure}; checking whether {what}"));
                    *lost = Some(failure);
                    if let Some(found) = self.find_within(self.pace.listing, find)? {
                        return Ok(Some(found));
                    }
                }
            }
        }
        let none = || Error::new(Exit::TryAgain, "the requests to EMR led to nothing; run the command again");
        Err(lost.clone().map_or_else(none, Error::Emr))
    }

    fn find_within<T>(
        &self,
        limit: Duration,
        find: &dyn Fn() -> Result<Option<T>, Error>,
    ) -> Result<Option<T>, Error> {
        let mut waited = Duration::ZERO;
        loop {
            let found = find()?;
            if found.is_some() || waited >= limit {
                return Ok(found);
            }
            self.pause(self.pace.interval)?;
            waited += self.pace.interval;
        }
    }
}

/// The error of a search for what a request has created.
fn unknown(error: &Error, what: &'static str) -> Error {
    let found = match error {
        Error::NotSubmitted => "interrupted".to_owned(),
        other => other.to_string(),
    };
    Error::Unknown { found, what, exit: error.exit() }
}

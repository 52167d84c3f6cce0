//! Converts a failed request into an error with the exit code and the remedy of its kind.

use std::io;

use aws_sdk_emr::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_emr::operation::RequestId;
use program::exit::Exit;
use program::system;
use store::amazon::{self, EXPIRED, Kind};

/// The action of a client that is not connected.
const CONNECT: &str = "connect to EMR";

/// A request to EMR that failed. The message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{action}: {found}; {remedy}", about.as_ref().map(|about| format!("{about}: ")).unwrap_or_default())]
pub struct RequestFailure {
    /// The action: `RunJobFlow`.
    pub action: &'static str,
    /// The cluster, if there is one.
    pub about: Option<String>,
    /// What the service or the client reported.
    pub found: String,
    /// The kind of failure.
    pub kind: Kind,
    exit: Exit,
    remedy: String,
}

impl RequestFailure {
    pub(super) fn new(action: &'static str, about: Option<&str>, found: String, kind: Kind) -> Self {
        let (exit, remedy) = match kind {
            Kind::Throttled => (
                Exit::TryAgain,
                "EMR limits the rate of requests per account and region; try again in a minute",
            ),
            Kind::Expired => (Exit::Settings, EXPIRED),
            Kind::Credentials => (
                Exit::Settings,
                "set AWS_PROFILE or AWS_ACCESS_KEY_ID, or use a machine with a role that may use EMR; check the clock of \
                 this machine",
            ),
            Kind::NotAuthorised => (Exit::Settings, "allow it in the policy of this user or role"),
            Kind::Unavailable => (
                Exit::Unavailable,
                "check the network, the region and AWS_ENDPOINT_URL_EMR, or try again later",
            ),
            Kind::Absent => (Exit::MissingInput, "check the id and the region"),
            Kind::Other => (Exit::Settings, "correct the job file; emr plan --online checks it"),
        };
        let remedy = match kind {
            Kind::NotAuthorised => remedy.replacen("it", &needed(action, &found), 1),
            Kind::Expired => format!("{remedy}; clusters and steps continue without them"),
            _ => remedy.to_owned(),
        };
        Self { action, about: about.map(str::to_owned), found, kind, exit, remedy }
    }

    pub(super) fn no_region() -> Self {
        let remedy = "set cluster.region in the job file, --region or AWS_REGION".to_owned();
        Self { remedy, ..Self::new(CONNECT, None, "no region is set".to_owned(), Kind::Other) }
    }

    pub(super) fn no_credentials(found: String) -> Self {
        let kind = if amazon::is_about_expiry(&found) { Kind::Expired } else { Kind::Credentials };
        Self::new(CONNECT, None, found, kind)
    }

    pub(super) fn no_client(error: &io::Error) -> Self {
        let remedy = "free memory, or raise the limits of open files and threads (ulimit -a)".to_owned();
        Self { exit: Exit::Io, remedy, ..Self::new(CONNECT, None, system::cause(error), Kind::Other) }
    }

    /// Whether EMR has no such cluster, or has forgotten it.
    pub fn is_absence(&self) -> bool {
        self.kind == Kind::Absent
    }

    /// Whether the same request may succeed later without a change.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Kind::Throttled | Kind::Unavailable)
    }

    /// The exit code of this failure.
    pub fn exit(&self) -> Exit {
        self.exit
    }
}

/// The permission that a refusal names, else the one of the action.
fn needed(action: &str, found: &str) -> String {
    let named = found.split_once("perform: ").and_then(|(_, rest)| rest.split_whitespace().next());
    let named =
        named.map(|named| named.trim_end_matches(['.', ',', ';'])).filter(|named| named.contains(':'));
    named.map_or_else(|| format!("elasticmapreduce:{action}"), str::to_owned)
}

pub(super) fn explain<E>(action: &'static str, about: Option<&str>, error: &SdkError<E>) -> RequestFailure
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    SdkError<E>: RequestId,
{
    let found = amazon::found(error);
    let kind = amazon::kind_of(error, &found);
    RequestFailure::new(action, about, found, kind)
}

/// A response that lacks a required field.
pub(super) fn incomplete(action: &'static str, field: &str) -> RequestFailure {
    RequestFailure::new(action, None, format!("the response has no {field}"), Kind::Unavailable)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, code: &str, message: &str) -> RequestFailure {
        let kind = amazon::kind(Some(status), Some(code), message, message);
        RequestFailure::new("RunJobFlow", Some("j-1"), format!("{code} (status {status}): {message}"), kind)
    }

    #[test]
    fn answers_of_emr_have_the_kind_and_the_exit_code_of_their_remedy() {
        #[rustfmt::skip]
        let cases = [
            (400, "ThrottlingException", "Rate exceeded", Kind::Throttled, Exit::TryAgain),
            (400, "ExpiredTokenException", "The security token included in the request is expired", Kind::Expired, Exit::Settings),
            (403, "InvalidSignatureException", "Signature expired: 20260101T000000Z is now earlier than", Kind::Expired, Exit::Settings),
            (400, "UnrecognizedClientException", "The security token included in the request is invalid.", Kind::Credentials, Exit::Settings),
            (400, "AccessDeniedException", "User: x is not authorized to perform: elasticmapreduce:RunJobFlow", Kind::NotAuthorised, Exit::Settings),
            (400, "ValidationException", "User: x is not authorized to perform: iam:PassRole on resource: y", Kind::NotAuthorised, Exit::Settings),
            (400, "ValidationException", "The supplied release label is invalid: emr-9.9.9.", Kind::Other, Exit::Settings),
            (400, "InvalidRequestException", "Cluster id 'j-1' is not valid.", Kind::Absent, Exit::MissingInput),
            (500, "InternalServerException", "", Kind::Unavailable, Exit::Unavailable),
            (503, "", "", Kind::Unavailable, Exit::Unavailable),
        ];
        for (status, code, message, kind, exit) in cases {
            let failure = of(status, code, message);
            assert_eq!((failure.kind, failure.exit()), (kind, exit), "{failure}");
            assert_eq!(failure.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn a_refused_action_is_named_with_the_permission_that_it_needs() {
        for (message, permission) in [
            ("User: x is not authorized to perform: iam:PassRole on resource: y", "iam:PassRole"),
            ("Access denied", "elasticmapreduce:RunJobFlow"),
        ] {
            let failure = of(400, "AccessDeniedException", message);
            let expected = format!("; allow {permission} in the policy of this user or role");
            assert!(failure.to_string().ends_with(&expected), "{failure}");
        }
    }
}

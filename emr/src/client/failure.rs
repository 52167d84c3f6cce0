//! Converts a failed request into an error with its kind and a remedy.

use std::io;

use aws_sdk_emr::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_emr::operation::RequestId;
use program::exit::Exit;
use program::system;
use store::amazon;

/// A request to EMR that failed. The message is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{action}: {found}; {}", about.as_ref().map(|about| format!("{about}: ")).unwrap_or_default(), self.remedy())]
pub struct Failure {
    /// The action: `RunJobFlow`.
    pub action: &'static str,
    /// The cluster, if there is one.
    pub about: Option<String>,
    /// What the service or the client reported.
    pub found: String,
    /// The kind of failure.
    pub kind: Kind,
}

/// Kinds of failures, each with its remedy and its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// EMR refused the request because of its rate, in all tries.
    Throttled,
    /// The credentials have expired.
    Expired,
    /// There are no credentials, or AWS does not know them.
    Credentials,
    /// The user or role may not perform the action.
    NotAuthorised,
    /// There was no usable response.
    Unavailable,
    /// EMR refused the content of the request.
    Invalid,
    /// There is no such cluster in this region.
    NotFound,
    /// No region is set.
    NoRegion,
    /// The client could not be started.
    Client,
}

impl Failure {
    pub(super) fn no_region() -> Self {
        let found = "no region is set".to_owned();
        Self { action: "connect to EMR", about: None, found, kind: Kind::NoRegion }
    }

    pub(super) fn no_credentials(found: String) -> Self {
        let kind = if is_about_expiry(&found) { Kind::Expired } else { Kind::Credentials };
        Self { action: "connect to EMR", about: None, found, kind }
    }

    pub(super) fn no_client(error: &io::Error) -> Self {
        let found = system::cause(error);
        Self { action: "connect to EMR", about: None, found, kind: Kind::Client }
    }

    /// Whether EMR has no such cluster, or has forgotten it.
    pub fn is_absence(&self) -> bool {
        self.kind == Kind::NotFound
    }

    /// Whether the same request may succeed later without a change.
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, Kind::Throttled | Kind::Unavailable)
    }

    /// The exit code of this failure.
    pub fn exit(&self) -> Exit {
        match self.kind {
            Kind::Throttled => Exit::TryAgain,
            Kind::Expired | Kind::Credentials | Kind::NotAuthorised | Kind::Invalid | Kind::NoRegion => {
                Exit::Settings
            }
            Kind::Unavailable => Exit::Unavailable,
            Kind::NotFound => Exit::MissingInput,
            Kind::Client => Exit::Io,
        }
    }

    fn remedy(&self) -> String {
        match self.kind {
            Kind::Throttled => {
                "EMR limits the rate of requests per account and region; try again in a minute".to_owned()
            }
            Kind::Expired => {
                "the credentials have expired; renew them (aws sso login, or new temporary keys) and \
                              repeat the command; clusters and steps continue without them"
                    .to_owned()
            }
            Kind::Credentials => {
                "set AWS_PROFILE or AWS_ACCESS_KEY_ID, or use a machine with a role that may use EMR; \
                                  check the clock of this machine"
                    .to_owned()
            }
            Kind::NotAuthorised => {
                format!("allow {} in the policy of this user or role", needed(self.action, &self.found))
            }
            Kind::Unavailable => {
                "check the network, the region and AWS_ENDPOINT_URL_EMR, or try again later".to_owned()
            }
            Kind::Invalid => "correct the job file; emr plan --online checks it".to_owned(),
            Kind::NotFound => "check the id and the region".to_owned(),
            Kind::NoRegion => "set cluster.region in the job file, --region or AWS_REGION".to_owned(),
            Kind::Client => {
                "free memory, or raise the limits of open files and threads (ulimit -a)".to_owned()
            }
        }
    }
}

/// The permission that a refusal names, else the one of the action.
fn needed(action: &str, found: &str) -> String {
    let named = found.split_once("perform: ").and_then(|(_, rest)| rest.split_whitespace().next());
    let named =
        named.map(|named| named.trim_end_matches(['.', ',', ';'])).filter(|named| named.contains(':'));
    named.map_or_else(|| format!("elasticmapreduce:{action}"), str::to_owned)
}

pub(super) fn explain<E>(action: &'static str, about: Option<&str>, error: &SdkError<E>) -> Failure
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    SdkError<E>: RequestId,
{
    let found = amazon::found(error);
    let kind = kind(amazon::status(error), error.code(), error.message().unwrap_or_default(), &found);
    Failure { action, about: about.map(str::to_owned), found, kind }
}

/// A response that lacks a required field.
pub(super) fn incomplete(action: &'static str, field: &str) -> Failure {
    let found = format!("the response has no {field}");
    Failure { action, about: None, found, kind: Kind::Unavailable }
}

pub(super) fn kind(status: Option<u16>, code: Option<&str>, message: &str, found: &str) -> Kind {
    match (status, code.unwrap_or_default()) {
        // The client found no credentials for the request, or could not refresh them.
        (None, _) if found.contains("credentials") || is_about_expiry(found) => {
            if is_about_expiry(found) {
                Kind::Expired
            } else {
                Kind::Credentials
            }
        }
        (None, _) => Kind::Unavailable,
        (_, "ThrottlingException" | "Throttling" | "TooManyRequestsException" | "RequestLimitExceeded")
        | (Some(429), _) => Kind::Throttled,
        (_, "ExpiredToken" | "ExpiredTokenException" | "RequestExpired") => Kind::Expired,
        #[rustfmt::skip]
        (_, "UnrecognizedClientException" | "InvalidClientTokenId" | "SignatureDoesNotMatch"
            | "InvalidSignatureException" | "IncompleteSignature" | "IncompleteSignatureException"
            | "MissingAuthenticationToken" | "MissingAuthenticationTokenException") => {
            if is_about_expiry(message) { Kind::Expired } else { Kind::Credentials }
        },
        (
            _,
            "AccessDenied" | "AccessDeniedException" | "UnauthorizedOperation" | "NotAuthorizedException",
        ) => Kind::NotAuthorised,
        (Some(500..), _) => Kind::Unavailable,
        _ if message.contains("Rate exceeded") => Kind::Throttled,
        _ if message.contains("is not authorized to perform") => Kind::NotAuthorised,
        _ if message.starts_with("Cluster id") && message.contains("is not valid") => Kind::NotFound,
        (Some(401 | 403), _) => Kind::NotAuthorised,
        _ => Kind::Invalid,
    }
}

fn is_about_expiry(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["expired", "is no longer valid"].iter().any(|sign| text.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, code: &str, message: &str) -> Failure {
        let kind = kind(Some(status), Some(code), message, message);
        let found = format!("{code} (status {status}): {message}");
        Failure { action: "RunJobFlow", about: Some("j-1".to_owned()), found, kind }
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
            (400, "ValidationException", "The supplied release label is invalid: emr-9.9.9.", Kind::Invalid, Exit::Settings),
            (400, "InvalidRequestException", "Cluster id 'j-1' is not valid.", Kind::NotFound, Exit::MissingInput),
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

//! Why a server refuses a request. The client prints the message.

use tonic::{Code, Status};

use crate::error::Error;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: Code,
    message: String,
}

impl Refusal {
    /// The request is malformed, whatever the state of the server.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self { code: Code::InvalidArgument, message: message.into() }
    }

    /// The request contradicts the state of the server.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self { code: Code::FailedPrecondition, message: message.into() }
    }

    /// The server has too much work; the request can be repeated.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self { code: Code::ResourceExhausted, message: message.into() }
    }

    /// The server ends; the request can be repeated after it has been started again.
    pub(crate) fn ending() -> Self {
        Self { code: Code::Unavailable, message: "the server is ending".to_owned() }
    }
}

impl From<Refusal> for Error {
    /// The error of a process that has the tables itself.
    fn from(refusal: Refusal) -> Self {
        Self::Rank { message: refusal.message }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.message)
    }
}

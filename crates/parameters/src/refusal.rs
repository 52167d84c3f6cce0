//! Why a server refuses a request. The client prints the message.

use tonic::{Code, Status};

use crate::error::Error;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: Code,
    message: String,
    is_not_finite: bool,
}

impl Refusal {
    /// The request is malformed, whatever the state of the server.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// A value of the request is not finite.
    pub(crate) fn not_finite() -> Self {
        Self { is_not_finite: true, ..Self::invalid("a value is not a finite number") }
    }

    /// The request contradicts the state of the server.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, message)
    }

    /// The server has too much work; the request can be repeated.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(Code::ResourceExhausted, message)
    }

    /// The server ends; the request can be repeated after it has been started again.
    pub(crate) fn ending() -> Self {
        Self::new(Code::Unavailable, "the server is ending")
    }

    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), is_not_finite: false }
    }
}

impl From<Refusal> for Error {
    /// The error of a process that has the tables itself.
    fn from(refusal: Refusal) -> Self {
        match refusal.is_not_finite {
            true => Self::NotFinite,
            false => Self::of_rank(&refusal.message),
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.code, refusal.message)
    }
}

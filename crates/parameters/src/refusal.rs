//! Why a server refuses a request. The client prints the message.

use tonic::{Code, Status};

use crate::messages::Ending;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    code: Code,
    message: String,
    /// The exit code, if all ranks end.
    ends: Option<u8>,
}

impl Refusal {
    /// The request is malformed, whatever the state of the server.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// A value of the request is not finite.
    pub(crate) fn not_finite() -> Self {
        Self::invalid("a value is not a finite number")
    }

    /// All ranks end.
    pub(crate) fn ended(ending: &Ending) -> Self {
        Self { ends: Some(ending.code as u8), ..Self::new(Code::Aborted, &ending.message) }
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
        Self { code, message: message.into(), ends: None }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message, ends } = refusal;
        Self::with_details(code, message, ends.map(|code| vec![code].into()).unwrap_or_default())
    }
}

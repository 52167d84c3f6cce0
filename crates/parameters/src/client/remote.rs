//! A server, and requests that are repeated until it answers: it may be starting, full or unreachable for a while. Requests
//! may be repeated, because pushes are applied once.

use std::time::Duration;

use program::exit::Exit;
use tokio::time::{Instant, sleep, timeout};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::REQUEST_LIMIT;
use crate::error::{Error, Result};
use crate::messages::Ending;
use crate::security::Pass;
use crate::service::parameters_client::ParametersClient;

/// Time between the first two attempts; it doubles with each further one, up to the maximum.
const DELAY: Duration = Duration::from_millis(10);
const DELAY_MAX: Duration = Duration::from_secs(1);

pub(super) type RpcClient = ParametersClient<InterceptedService<Channel, Pass>>;

/// A server.
#[derive(Debug)]
pub(super) struct Remote {
    pub name: String,
    pub calls: RpcClient,
    pub shard: u32,
    pub n_shards: u32,
    pub patience: Duration,
}

impl Remote {
    pub fn unexpected(&self, found: &str, expected: &str) -> Error {
        let server = &self.name;
        Error::failed(
            Exit::Internal,
            format!(
                "{server}: replied with {found}, expected {expected}; use one release of sentimill everywhere"
            ),
        )
    }
}

/// Repeats a request until there is an answer or a refusal.
pub(super) async fn repeat<T, F>(server: &Remote, mut attempt: impl FnMut(RpcClient) -> F) -> Result<T>
where
    F: Future<Output = std::result::Result<Response<T>, Status>>,
{
    let began = Instant::now();
    let mut delay = DELAY;
    loop {
        let status = match timeout(REQUEST_LIMIT, attempt(server.calls.clone())).await {
            Ok(Ok(response)) => return Ok(response.into_inner()),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded("no reply"),
        };
        if let Some(ending) = ending_of(&status) {
            return Err(Error::Ended(ending));
        }
        if is_final(&status) {
            let message = format!("{}: the parameter server refused: {}", server.name, status.message());
            return Err(Error::failed(Exit::Settings, message));
        }
        if began.elapsed() + delay > server.patience {
            let (server, waited_s, cause) = (&server.name, began.elapsed().as_secs(), cause(&status));
            return Err(Error::failed(
                Exit::Unavailable,
                format!(
                    "{server}: the parameter server has not answered for {waited_s} s: {cause}; start it or check the \
                     address, and repeat the command"
                ),
            ));
        }
        sleep(delay).await;
        delay = (2 * delay).min(DELAY_MAX);
    }
}

/// Why all ranks end, if they do.
pub(super) fn ending_of(status: &Status) -> Option<Ending> {
    let code = status.details().first().filter(|_| status.code() == Code::Aborted)?;
    Some(Ending { code: u32::from(*code), message: status.message().to_owned() })
}

/// Whether the server understood the request and refused it.
fn is_final(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::Unauthenticated
            | Code::PermissionDenied
            | Code::Unimplemented
            | Code::OutOfRange
            | Code::NotFound
    )
}

pub(super) fn cause(status: &Status) -> String {
    let mut message = status.message().to_owned();
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        let said = error.to_string();
        if !message.contains(&said) {
            message = format!("{message}: {said}");
        }
        source = error.source();
    }
    message
}

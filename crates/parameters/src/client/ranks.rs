//! What a rank does besides its steps: it shows the server of rank 0 that it is alive, and hears why all ranks end.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status};

use super::Client;
use super::remote::{Remote, RpcClient, cause, ending_of, repeat};
use crate::SILENCE;
use crate::error::Result;
use crate::messages::{Ending, LeaveRequest, PullRequest};

/// Time between two requests of a rank. A few delayed ones on a busy machine do not make it lost.
const BEAT_EVERY: Duration = Duration::from_millis(500);
/// Time limit of one of them.
const BEAT_LIMIT: Duration = Duration::from_secs(2);
/// Time in which a rank tells the others why it ends.
const TELL_LIMIT: Duration = Duration::from_secs(1);

impl Ending {
    /// A rank that is silent.
    pub(crate) fn lost(rank: u32, silence: Duration) -> Self {
        let silent_s = silence.as_secs();
        let found = format!("rank {rank} has been silent for {silent_s} s: it has died or stopped");
        let remedy = "start all ranks again, with --resume";
        Self { code: program::exit::Exit::TryAgain as u32, message: format!("{found}; {remedy}") }
    }
}

impl Client {
    /// Begins as a rank: waits until rank 0 serves, and shows it from now on that this process is alive. `asked` returns what
    /// this process was asked for since the last call, for [`Server::requested`](crate::Server::requested).
    ///
    /// # Errors
    /// If the server does not answer, or all ranks end.
    pub fn begin(&self, rank: u32, asked: impl Fn() -> u32 + Send + Clone + 'static) -> Result<()> {
        for server in &self.servers {
            self.wait(repeat(server, |mut calls| async move {
                calls.pull(PullRequest { worker: Some(rank), ..PullRequest::default() }).await
            }))?;
            let (server, ended) = (Arc::clone(server), Arc::clone(&self.ended));
            self.runtime.spawn(beat(server, rank, asked.clone(), ended));
        }
        Ok(())
    }

    /// Tells all ranks why they end. If the server does not answer, they notice that this rank is silent.
    pub fn end_all(&self, rank: u32, ending: &Ending) {
        for server in &self.servers {
            let request = LeaveRequest { worker: rank, number: 0, ending: Some(ending.clone()) };
            let told = |mut calls: RpcClient| {
                let request = request.clone();
                async move { calls.leave(request).await }
            };
            let _ = self.runtime.block_on(async { timeout(TELL_LIMIT, repeat(server, told)).await });
        }
    }
}

/// Shows a server that the rank is alive, until all ranks end.
async fn beat(server: Arc<Remote>, rank: u32, asked: impl Fn() -> u32, ended: Arc<OnceLock<Ending>>) {
    let mut unanswered: Option<Instant> = None;
    let mut pending = 0;
    loop {
        pending = asked().max(pending);
        let request = PullRequest { worker: Some(rank), asked: pending, ..PullRequest::default() };
        let mut calls = server.calls.clone();
        let status = match timeout(BEAT_LIMIT, calls.pull(request)).await {
            Ok(Ok(_)) => None,
            Ok(Err(status)) => Some(status),
            Err(_) => Some(Status::deadline_exceeded("no reply")),
        };
        match status {
            None => (unanswered, pending) = (None, 0),
            // A server that is too busy is alive.
            Some(status) if status.code() == Code::ResourceExhausted => unanswered = None,
            Some(status) => {
                let since = *unanswered.get_or_insert_with(Instant::now);
                let lost = || {
                    let Ending { code, message } = Ending::lost(0, SILENCE);
                    Ending { code, message: format!("{}: {message} ({})", server.name, cause(&status)) }
                };
                if let Some(ending) = ending_of(&status).or_else(|| (since.elapsed() > SILENCE).then(lost)) {
                    let _ = ended.set(ending);
                    return;
                }
            }
        }
        sleep(BEAT_EVERY).await;
    }
}

//! Waits for replies, and shows the servers meanwhile that the worker is alive.

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use program::exit::{Exit, Failed};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::Client;
use crate::REQUEST_LIMIT;
use crate::error::{Error, Result};
use crate::messages::PullRequest;

/// Time between two looks at the request to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time between two heartbeats.
const SIGN_EVERY: Duration = Duration::from_secs(1);

impl Client {
    /// Waits for a part of a pull or push.
    pub(super) fn wait_for<T>(&self, part: JoinHandle<Result<T>>) -> Result<T> {
        self.wait(async { part.await.map_err(Failed::defect)? })
    }

    /// Waits for replies. One server may not answer for longer than others keep a silent worker.
    pub(super) fn wait<T>(&self, replies: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(async {
            let mut replies = pin!(replies);
            let mut shown = Instant::now();
            loop {
                if let Ok(reply) = timeout(LOOK_EVERY, replies.as_mut()).await {
                    return reply;
                }
                if let Some(ending) = self.ended.get() {
                    return Err(Error::Ended(ending.clone()));
                }
                if self.stop.load(Relaxed) {
                    let message = "interrupted while it waited for a parameter server or another worker; repeat the command, \
                                   with --resume for worker 0 and for a stream";
                    return Err(Error::failed(Exit::TryAgain, message));
                }
                if shown.elapsed() >= SIGN_EVERY {
                    self.show_life();
                    shown = Instant::now();
                }
            }
        })
    }

    /// Shows each server that the worker is alive, which is otherwise done by its steps and its waits: pulls no rows, for a step
    /// that needs no wait.
    pub fn show_life(&self) {
        let Some(joined) = &self.joined else { return };
        let request = PullRequest { worker: Some(joined.worker), ..PullRequest::default() };
        for server in &self.servers {
            let (mut calls, request) = (server.calls.clone(), request.clone());
            // A server that does not answer is the matter of the request that waits for it.
            self.runtime.spawn(async move { drop(timeout(REQUEST_LIMIT, calls.pull(request)).await) });
        }
    }
}

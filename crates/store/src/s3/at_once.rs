//! Runs many requests, several of them concurrently.

use tokio::task::JoinSet;

use crate::Error;

/// Runs all work items, `at_once` of them concurrently, and returns the results in order. An item is created
/// only when it starts, so that its memory is not held before.
pub(super) async fn several_at_once<T, W>(
    at_once: usize,
    work: impl IntoIterator<Item = Result<W, Error>>,
) -> Result<Vec<T>, Error>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Error>> + Send + 'static,
{
    let mut waiting = work.into_iter().enumerate();
    let mut underway = JoinSet::new();
    let mut done = Vec::new();
    loop {
        while underway.len() < at_once {
            let Some((number, piece)) = waiting.next() else { break };
            let piece = piece?;
            underway.spawn(async move { piece.await.map(|result| (number, result)) });
        }
        match underway.join_next().await {
            None => break,
            Some(ended) => done.push(ended.map_err(|error| Error::Runtime(error.into()))??),
        }
    }
    done.sort_unstable_by_key(|&(number, _)| number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

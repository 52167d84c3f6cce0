//! Pushes updates, to all servers at the same time and in messages of bounded size.

use std::sync::Arc;

use bytes::Bytes;
use program::exit::Failed;
use tokio::task::JoinHandle;

use super::Client;
use super::remote::{Remote, RpcClient, repeat};
use crate::PART_BYTES;
use crate::error::Result;
use crate::keys;
use crate::messages::{self, LineCounts, PushRequest};
use crate::state::bytes_of;
use crate::values::{Wire, to_bytes};

/// Updates of rows of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The table.
    pub table: u32,
    /// Ascending row numbers.
    pub rows: Vec<u32>,
    /// Their values, row by row.
    pub values: Vec<f32>,
}

/// What is durable together with the updates of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// Counts of keys of 1 to [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX) bytes.
    pub counts: Vec<(Vec<u8>, u64)>,
    /// The place of the worker in its input after the step, which [`Client::join`] returns; empty: as before.
    pub place: Vec<u8>,
    /// The lines before this place.
    pub lines: LineCounts,
}

/// Updates that are being sent.
#[derive(Debug)]
pub struct Pushing(Vec<JoinHandle<Result<Sent>>>);

/// What was sent and acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Number of messages.
    pub pushes: u64,
    /// Messages that had been accepted before.
    pub repeated: u64,
    /// Number of rows.
    pub rows: u64,
    /// Bytes of row numbers and values.
    pub bytes: u64,
}

impl Sent {
    /// Adds other messages.
    pub fn add(&mut self, other: &Self) {
        self.pushes += other.pushes;
        self.repeated += other.repeated;
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

impl Client {
    /// Starts to send the updates of a step, which ends with them. `read_at` is that of the rows on which they are based.
    /// What the encoding does not send is left in `updates`. The client continues meanwhile; [`Client::pushed`] waits for
    /// the acknowledgements. Wait before the next push.
    ///
    /// # Errors
    /// If a table was not created, or the client has not joined.
    pub fn push(&self, step: u64, read_at: &[u64], updates: &mut [Update]) -> Result<Pushing> {
        self.push_and_commit(step, read_at, updates, Commit::default())
    }

    /// As [`Client::push`], with counts and a place. The first server gets them when the others have acknowledged their part of
    /// the step, so that a worker that is killed repeats the step unless all servers have it.
    ///
    /// # Errors
    /// As [`Client::push`].
    pub fn push_and_commit(
        &self,
        step: u64,
        read_at: &[u64],
        updates: &mut [Update],
        commit: Commit,
    ) -> Result<Pushing> {
        let worker = self.worker()?;
        let is_commit = commit != Commit::default();
        let Commit { counts, place, lines } = commit;
        let (mut counts, mut place) = (Bytes::from(keys::to_bytes(&counts)), place);
        let mut pushing = Vec::new();
        let mut first = None;
        for (server, &read_at) in self.servers.iter().zip(read_at) {
            let mut parts = vec![Vec::new()];
            let mut left = PART_BYTES;
            for update in &mut *updates {
                server.encode(update, self.dim(update.table)?, self.wire, &mut parts, &mut left);
            }
            let is_first = is_commit && server.shard == 0;
            if is_first && left < PART_BYTES && left < counts.len() + place.len() {
                parts.push(Vec::new());
            }
            let n_parts = parts.len();
            let to_push = |(part, updates)| PushRequest {
                worker,
                step,
                part: part as u32,
                is_last: part + 1 == n_parts,
                read_at,
                updates,
                ..PushRequest::default()
            };
            let mut requests: Vec<_> = parts.into_iter().enumerate().map(to_push).collect();
            let server = Arc::clone(server);
            if let (true, Some(last)) = (is_first, requests.last_mut()) {
                (last.counts, last.place) = (std::mem::take(&mut counts), std::mem::take(&mut place));
                (last.lines, last.process) = (Some(lines), self.process);
                first = Some((server, requests));
            } else {
                pushing.push(self.runtime.spawn(async move { server.push(requests).await }));
            }
        }
        if let Some((server, requests)) = first {
            let others = pushing;
            pushing = vec![self.runtime.spawn(async move {
                let mut sum = Sent::default();
                for other in others {
                    sum.add(&other.await.map_err(Failed::defect)??);
                }
                sum.add(&server.push(requests).await?);
                Ok(sum)
            })];
        }
        Ok(Pushing(pushing))
    }

    /// Waits until the updates are acknowledged.
    ///
    /// # Errors
    /// If a server refuses them or does not answer.
    pub fn pushed(&self, pushing: Pushing) -> Result<Sent> {
        let mut sum = Sent::default();
        for part in pushing.0 {
            sum.add(&self.wait_for(part)?);
        }
        Ok(sum)
    }
}

impl Remote {
    /// Encodes the rows of an update that are on this server.
    fn encode(
        &self,
        update: &mut Update,
        dim: usize,
        wire: Wire,
        parts: &mut Vec<Vec<messages::RowUpdates>>,
        left: &mut usize,
    ) {
        let (encoding, k) = wire.to_fields(dim);
        let row_bytes = 4 + wire.row_bytes(dim);
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        let end = |rows: &mut Vec<u32>, values: &mut Vec<u8>, parts: &mut Vec<Vec<messages::RowUpdates>>| {
            let (rows, values) = (std::mem::take(rows), std::mem::take(values));
            if let (Some(part), false) = (parts.last_mut(), rows.is_empty()) {
                let rows = to_bytes(&rows).into();
                part.push(messages::RowUpdates {
                    table: update.table,
                    rows,
                    values: values.into(),
                    encoding,
                    k,
                });
            }
        };
        let own = update.rows.iter().zip(update.values.chunks_exact_mut(dim));
        for (&row, of_row) in own.filter(|(row, _)| *row % self.n_shards == self.shard) {
            if *left < row_bytes {
                end(&mut rows, &mut values, parts);
                parts.push(Vec::new());
                *left = PART_BYTES;
            }
            *left -= row_bytes;
            rows.push(row);
            wire.encode(of_row, dim, &mut values);
        }
        end(&mut rows, &mut values, parts);
    }

    async fn push(&self, requests: Vec<PushRequest>) -> Result<Sent> {
        let mut sent = Sent::default();
        for request in requests {
            let attempt = |mut calls: RpcClient| {
                let request = request.clone();
                async move { calls.push(request).await }
            };
            let reply = repeat(self, attempt).await?;
            let rows = request.updates.iter().map(|update| update.rows.len() as u64 / 4).sum();
            sent.add(&Sent {
                pushes: 1,
                repeated: u64::from(reply.is_repeated),
                rows,
                bytes: bytes_of(&request),
            });
        }
        Ok(sent)
    }
}

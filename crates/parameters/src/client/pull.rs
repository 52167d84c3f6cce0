//! Pulls rows, from all servers at the same time and in messages of bounded size.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use program::exit::Exit;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::Client;
use super::remote::{Remote, RpcClient, repeat};
use crate::PART_BYTES;
use crate::error::{Error, Result};
use crate::messages::{PullReply, PullRequest, RowNumbers};
use crate::state::LEFT;
use crate::values::{floats, to_bytes};

/// Rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The table.
    pub table: u32,
    /// Row numbers. Ascending ones are read faster.
    pub rows: Vec<u32>,
}

/// When rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// At once, whatever the workers have done.
    Now,
    /// For a step of this worker, when the others are near enough.
    Step(u64),
    /// When all other workers have left.
    End,
}

/// Rows that were read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pulled {
    /// Values of each read, row by row.
    pub values: Vec<Vec<f32>>,
    /// Completed steps of the slowest worker before the rows were read, of each server.
    pub read_at: Vec<u64>,
    /// Bytes of row numbers and values.
    pub bytes: u64,
}

/// Rows that are being read.
#[derive(Debug)]
pub struct Pulling {
    dims: Vec<usize>,
    reads: Vec<Read>,
    parts: Vec<JoinHandle<Result<OfServer>>>,
}

/// What a server replied: values per read, of its rows in order.
#[derive(Debug, Default)]
struct OfServer {
    values: Vec<Vec<f32>>,
    read_at: u64,
    bytes: u64,
}

impl Client {
    /// Starts to read rows. The client continues meanwhile; [`Client::pulled`] waits for them.
    ///
    /// # Errors
    /// If a table was not created, or for a step if the client has not joined.
    pub fn pull(&self, moment: Moment, reads: Vec<Read>) -> Result<Pulling> {
        let (worker, step) = match moment {
            Moment::Now => (None, 0),
            Moment::Step(step) => (Some(self.worker()?), step),
            Moment::End => (self.joined.as_ref().map(|joined| joined.worker), LEFT),
        };
        let dims = reads.iter().map(|read| self.dim(read.table)).collect::<Result<Vec<_>>>()?;
        let begin = |server: &Arc<Remote>| {
            let of_server: Vec<Read> = reads.iter().map(|read| server.own(read)).collect();
            let (server, dims) = (Arc::clone(server), dims.clone());
            self.runtime.spawn(async move { server.pull(worker, step, &of_server, &dims).await })
        };
        let parts = self.servers.iter().map(begin).collect();
        Ok(Pulling { dims, reads, parts })
    }

    /// Waits for the rows.
    ///
    /// # Errors
    /// If a server does not answer, or other workers are too far behind for too long.
    pub fn pulled(&self, pulling: Pulling) -> Result<Pulled> {
        let Pulling { dims, reads, parts } = pulling;
        let lengths = reads.iter().zip(&dims).map(|(read, dim)| read.rows.len() * dim);
        let mut pulled = Pulled { values: lengths.map(|n| vec![0.0; n]).collect(), ..Pulled::default() };
        let n_shards = self.servers.len() as u32;
        for (shard, part) in (0..).zip(parts) {
            let part = self.wait_for(part)?;
            for (((read, dim), from), to) in reads.iter().zip(&dims).zip(&part.values).zip(&mut pulled.values)
            {
                let own = read.rows.iter().zip(to.chunks_exact_mut(*dim));
                let own = own.filter(|(row, _)| *row % n_shards == shard);
                own.zip(from.chunks_exact(*dim)).for_each(|((_, to), from)| to.copy_from_slice(from));
            }
            pulled.read_at.push(part.read_at);
            pulled.bytes += part.bytes;
        }
        Ok(pulled)
    }
}

impl Remote {
    /// The rows of a read that are on this server.
    fn own(&self, read: &Read) -> Read {
        let rows = read.rows.iter().copied().filter(|row| row % self.n_shards == self.shard).collect();
        Read { table: read.table, rows }
    }

    async fn pull(&self, worker: Option<u32>, step: u64, reads: &[Read], dims: &[usize]) -> Result<OfServer> {
        let mut read = OfServer { values: vec![Vec::new(); reads.len()], read_at: u64::MAX, bytes: 0 };
        for part in parts(reads, dims) {
            let of_part = |(at, range): &(usize, Range<usize>)| RowNumbers {
                table: reads[*at].table,
                rows: to_bytes(&reads[*at].rows[range.clone()]).into(),
            };
            let reads = part.iter().map(of_part).collect();
            let request = PullRequest { worker, step, reads, asked: 0 };
            let reply = self.ask(&request).await?;
            read.read_at = read.read_at.min(reply.read_at);
            let lengths = part.iter().map(|(at, range)| 4 * range.len() * dims[*at]);
            if !reply.values.iter().map(|values| values.len()).eq(lengths) {
                return Err(self.unexpected("other rows", "those of the request"));
            }
            for ((at, range), values) in part.iter().zip(&reply.values) {
                read.values[*at].extend(floats(values));
                read.bytes += (4 * range.len() + values.len()) as u64;
            }
        }
        Ok(read)
    }

    /// Asks until the other workers are near enough. The time limit begins again with each step of the slowest one.
    async fn ask(&self, request: &PullRequest) -> Result<PullReply> {
        let mut wait = Wait { began: Instant::now(), slowest: None };
        loop {
            let attempt = |mut calls: RpcClient| {
                let request = request.clone();
                async move { calls.pull(request).await }
            };
            let reply = repeat(self, attempt).await?;
            if !reply.must_wait {
                return Ok(reply);
            }
            let waited = wait.so_far(Instant::now(), &reply);
            if waited > self.patience {
                let (server, waited_s, slowest) = (&self.name, waited.as_secs(), reply.slowest);
                return Err(Error::failed(
                    Exit::TryAgain,
                    format!(
                        "{server}: waited {waited_s} s for a step of worker {slowest}; start it, and repeat the command, that \
                         of worker 0 with --resume"
                    ),
                ));
            }
        }
    }
}

/// A wait for the slowest worker.
struct Wait {
    began: Instant,
    /// The worker, and its completed steps.
    slowest: Option<(u32, u64)>,
}

impl Wait {
    /// How long the slowest worker has completed no step, during this wait.
    fn so_far(&mut self, now: Instant, reply: &PullReply) -> Duration {
        let found = Some((reply.slowest, reply.read_at));
        if self.slowest.is_some() && self.slowest != found {
            self.began = now;
        }
        self.slowest = found;
        now.saturating_duration_since(self.began)
    }
}

/// Divides reads into messages. There is at least one, because a worker has a clock on each server.
fn parts(reads: &[Read], dims: &[usize]) -> Vec<Vec<(usize, Range<usize>)>> {
    let mut parts = vec![Vec::new()];
    let mut left = PART_BYTES;
    for (at, (read, dim)) in reads.iter().zip(dims).enumerate() {
        let mut from = 0;
        while from < read.rows.len() {
            let n = (left / (4 * dim + 4)).min(read.rows.len() - from);
            if n == 0 {
                parts.push(Vec::new());
                left = PART_BYTES;
                continue;
            }
            if let Some(part) = parts.last_mut() {
                part.push((at, from..from + n));
            }
            left -= n * (4 * dim + 4);
            from += n;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_wait_begins_again_with_each_step_of_the_slowest_worker() {
        let began = Instant::now();
        let mut wait = Wait { began, slowest: None };
        let mut so_far = |s, slowest, read_at| {
            let reply = PullReply { slowest, read_at, must_wait: true, ..PullReply::default() };
            wait.so_far(began + Duration::from_secs(s), &reply).as_secs()
        };
        assert_eq!((so_far(5, 1, 0), so_far(500, 1, 0), so_far(590, 1, 1)), (5, 500, 0));
        assert_eq!((so_far(1000, 1, 1), so_far(1010, 2, 1), so_far(1020, 2, 1)), (410, 0, 10));
    }

    #[test]
    fn messages_are_bounded_and_have_each_row_once() {
        let read = |table, n| Read { table, rows: (0..n).collect() };
        let dims = [1000, 65_536, 1];
        let reads = [read(0, 3000), read(1, 40), read(2, 10)];
        let parts = parts(&reads, &dims);
        let mut n_rows = [0; 3];
        for part in &parts {
            let bytes: usize = part.iter().map(|(at, range)| range.len() * (4 * dims[*at] + 4)).sum();
            assert!(bytes <= PART_BYTES && bytes > 0);
            for (at, range) in part {
                assert_eq!(range.start, n_rows[*at]);
                n_rows[*at] = range.end;
            }
        }
        assert_eq!((n_rows, parts.len()), ([3000, 40, 10], 6));
        assert_eq!(super::parts(&[], &[]), [vec![]]);
    }
}

//! The calls of the service. Reads are served here, and changes are passed to the thread that writes.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::time::timeout;
use tonic::{Request as Call, Response, Status};

use super::budget::Account;
use super::shared::{Request, Shared, Stage};
use crate::keys;
use crate::messages::{
    CreateReply, CreateRequest, JoinReply, JoinRequest, KeysReply, KeysRequest, LeaveReply, LeaveRequest,
    PullReply, PullRequest, PushReply, PushRequest, StatisticsReply, StatisticsRequest,
};
use crate::refusal::Refusal;
use crate::service::parameters_server::Parameters;
use crate::spec::Spec;
use crate::state::{LEFT, Slowest, TABLES_MAX, Worker};
use crate::{MESSAGE_BYTES_MAX, PLACE_BYTES_MAX, WAIT};

/// Steps by which a worker reads ahead of its own pushes: the next step, while the last two are sent.
const AHEAD_MAX: u64 = 2;
/// Time in which a worker without lines waits for a step of the others, before it looks at its source again. Less than the time
/// between two looks of a client at the request to stop.
const IDLE_WAIT: Duration = Duration::from_millis(30);

type Answered<T> = Result<Response<T>, Status>;

/// The calls.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    pub(crate) shared: Arc<Shared>,
    pub(crate) staleness: Option<u64>,
}

impl Calls {
    /// Waits until the slowest worker is near enough, but not for long: the question is repeated, which shows that the
    /// worker is alive.
    async fn near(&self, worker: Option<u32>, step: u64) -> Result<(bool, Slowest), Refusal> {
        let mut slowest = self.shared.slowest.clone();
        let (staleness, is_end) = (self.staleness, step == LEFT);
        let is_near = |slowest: &Slowest| match (is_end, staleness) {
            (true, _) => slowest.n_here == 0 || (slowest.n_here == 1 && worker == Some(slowest.worker)),
            (false, None) => true,
            (false, Some(bound)) => slowest.clock >= step.saturating_sub(bound),
        };
        let is_near = |slowest: &Slowest| is_near(slowest) || self.shared.ending.get().is_some();
        if worker.is_none() && !is_end {
            return Ok((true, *slowest.borrow()));
        }
        let found = match timeout(WAIT, slowest.wait_for(is_near)).await {
            Ok(Ok(slowest)) => Some(*slowest),
            Ok(Err(_)) => return Err(Refusal::ending()),
            Err(_) => None,
        };
        let now = found.unwrap_or_else(|| *slowest.borrow());
        if found.is_none() && !is_end && worker == Some(now.worker) && step > now.clock + AHEAD_MAX {
            let (worker, clock) = (now.worker, now.clock);
            return Err(Refusal::conflict(format!(
                "worker {worker} is at step {step}, but this server has its pushes of {clock} steps: it has lost \
                 acknowledged ones (--log-sync); start the worker again"
            )));
        }
        Ok((found.is_some(), now))
    }

    fn read(&self, request: &PullRequest, account: &Account) -> Result<Vec<Bytes>, Refusal> {
        check_lengths("reads", request.reads.iter().map(|read| &read.rows))?;
        let mut sum = 0;
        let mut tables = Vec::new();
        for read in &request.reads {
            let table = self.shared.table(read.table)?;
            sum += read.rows.len() as u64 * u64::from(table.spec.dim);
            tables.push(table);
        }
        if sum > MESSAGE_BYTES_MAX as u64 {
            return Err(Refusal::invalid(format!(
                "{sum} bytes of rows, expected at most {MESSAGE_BYTES_MAX}"
            )));
        }
        account.add(sum as usize)?;
        request.reads.iter().zip(tables).map(|(read, table)| Ok(table.read(&read.rows)?.into())).collect()
    }

    fn check(&self, push: &PushRequest) -> Result<(), Refusal> {
        check_lengths("updates", push.updates.iter().map(|update| &update.rows))?;
        keys::check(&push.counts)?;
        if push.place.len() > PLACE_BYTES_MAX {
            return Err(Refusal::invalid(format!(
                "a place of {} bytes, expected at most {PLACE_BYTES_MAX}; follow fewer files",
                push.place.len()
            )));
        }
        push.updates.iter().try_for_each(|update| self.shared.table(update.table)?.check(update))
    }
}

/// Refuses parts that need more memory than the rows in them.
pub(super) fn check_lengths<'a>(
    what: &str,
    rows: impl ExactSizeIterator<Item = &'a Bytes>,
) -> Result<(), Refusal> {
    if rows.len() > TABLES_MAX {
        let found = rows.len();
        return Err(Refusal::invalid(format!("{found} {what} in a message, expected at most {TABLES_MAX}")));
    }
    for rows in rows {
        if rows.is_empty() {
            return Err(Refusal::invalid(format!("{what} without rows, expected at least one row")));
        }
    }
    Ok(())
}

/// The memory of a call.
fn account_of<T>(call: &mut Call<T>) -> Result<Account, Status> {
    call.extensions_mut().remove().ok_or_else(|| Status::internal("a call has no account"))
}

#[tonic::async_trait]
impl Parameters for Calls {
    async fn create(&self, call: Call<CreateRequest>) -> Answered<CreateReply> {
        let request = call.into_inner();
        let found = (request.shard, request.n_shards);
        let expected = self.shared.place;
        if found != expected {
            let message = format!(
                "it has the rows {}/{}, expected {}/{}; pass the servers in the order of their --shard",
                expected.0, expected.1, found.0, found.1
            );
            return Err(Refusal::conflict(message).into());
        }
        self.shared.check_ended(None)?;
        let spec = Spec::of_request(request)?;
        let table = self.shared.ask(|answer| Request::Create(spec, answer)).await?;
        Ok(Response::new(CreateReply { table }))
    }

    async fn join(&self, call: Call<JoinRequest>) -> Answered<JoinReply> {
        let JoinRequest { worker, n_workers } = call.into_inner();
        let joined = self.shared.ask(|answer| Request::Join(worker, n_workers, answer)).await?;
        self.shared.hear(worker);
        self.shared.reached(worker, Stage::Joined);
        let Worker { clock: step, is_removed, committed, .. } = joined;
        let place = committed.place;
        Ok(Response::new(JoinReply { step, staleness: self.staleness, is_removed, place }))
    }

    async fn pull(&self, mut call: Call<PullRequest>) -> Answered<PullReply> {
        let account = account_of(&mut call)?;
        let request = call.into_inner();
        request.worker.into_iter().for_each(|worker| self.shared.hear(worker));
        self.shared.asked.fetch_max(request.asked, Relaxed);
        let (is_near, slowest) = self.near(request.worker, request.step).await?;
        self.shared.check_ended(request.worker)?;
        let Slowest { worker, clock, .. } = slowest;
        if !is_near {
            let reply =
                PullReply { must_wait: true, slowest: worker, read_at: clock, ..PullReply::default() };
            return Ok(Response::new(reply));
        }
        let values = self.read(&request, &account)?;
        Ok(Response::new(PullReply { values, read_at: clock, must_wait: false, slowest: worker }))
    }

    async fn push(&self, mut call: Call<PushRequest>) -> Answered<PushReply> {
        let account = account_of(&mut call)?;
        let request = call.into_inner();
        self.shared.hear(request.worker);
        self.shared.check_ended(Some(request.worker))?;
        self.check(&request).inspect_err(|_| {
            self.shared.refused.fetch_add(1, Relaxed);
        })?;
        let is_repeated = self.shared.ask(|answer| Request::Push(request, account, answer)).await?;
        Ok(Response::new(PushReply { is_repeated }))
    }

    async fn keys(&self, mut call: Call<KeysRequest>) -> Answered<KeysReply> {
        let account = account_of(&mut call)?;
        let KeysRequest { from, steps } = call.into_inner();
        if let Some(steps) = steps {
            let mut slowest = self.shared.slowest.clone();
            // The worker looks at its source after it, whether another one has completed more steps or not.
            let _ = timeout(IDLE_WAIT, slowest.wait_for(|slowest| slowest.most > steps)).await;
        }
        let Slowest { n_here, most, .. } = *self.shared.slowest.borrow();
        let keys = self.shared.keys.read().unwrap_or_else(PoisonError::into_inner);
        let reply = KeysReply {
            keys: keys.from(from),
            n_keys: keys.n_keys(),
            n_counted: keys.n_counted,
            n_left_out: keys.n_left_out,
            n_workers: n_here,
            most_steps: most,
        };
        account.add(reply.encoded_len())?;
        Ok(Response::new(reply))
    }

    async fn leave(&self, call: Call<LeaveRequest>) -> Answered<LeaveReply> {
        let LeaveRequest { worker, number, ending } = call.into_inner();
        match ending {
            Some(ending) => {
                self.shared.ask(|answer| Request::End(ending, answer)).await?;
                self.shared.reached(worker, Stage::Told);
            }
            None => self.shared.ask(|answer| Request::Leave(worker, number, answer)).await?,
        }
        Ok(Response::new(LeaveReply {}))
    }

    async fn statistics(&self, _: Call<StatisticsRequest>) -> Answered<StatisticsReply> {
        let statistics = self.shared.ask(Request::Statistics).await?;
        let json = serde_json::to_string(&statistics).map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::new(StatisticsReply { json }))
    }
}

//! Memory of messages: of requests that are received or served, and of replies that clients have not read. It is what the
//! tables leave of `--memory`, within limits.
//!
//! An [`Account`] has the bytes of one call, from the first byte of its request until its reply is sent. A request that does
//! not fit is refused, and the client repeats it. A connection gets only a share. One that has a call for too long is closed,
//! earlier if others need the memory: it sends its request or reads its reply too slowly.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use program::threads::locked;
use tokio::sync::Notify;
use tokio::time::interval;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;
use tonic::transport::server::TlsConnectInfo;

use crate::refusal::Refusal;
use crate::{MESSAGE_BYTES_MAX, REQUEST_LIMIT};

/// Limits of the memory of all messages.
const BYTES_MIN: usize = 64 << 20;
const BYTES_MAX: usize = 512 << 20;
/// Share of a connection.
const SHARE: usize = 8;
/// A connection always gets as much as a step that is pushed while the next one is pulled.
const SHARE_MIN: usize = 3 * MESSAGE_BYTES_MAX;
/// Time of a call after which its connection may be closed if others need the memory,
const CALL_MIN: Duration = Duration::from_secs(2);
/// and after which it is closed.
const CALL_LIMIT: Duration = REQUEST_LIMIT;
/// Time between two looks at the calls.
const TICK: Duration = Duration::from_secs(1);
/// Freed memory is returned to the system after more than this was used.
const TRIM_BYTES: usize = 16 << 20;

/// A connection, as its calls see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer(Arc<PeerState>);

#[derive(Debug, Default)]
struct PeerState {
    /// Whether a request was served.
    is_known: AtomicBool,
    bytes: AtomicUsize,
    closed: Arc<Notify>,
}

impl Peer {
    /// The connection of a request.
    pub(crate) fn of(extensions: &http::Extensions) -> Option<&Self> {
        let over_tls = || extensions.get::<TlsConnectInfo<Self>>().map(TlsConnectInfo::get_ref);
        extensions.get().or_else(over_tls)
    }

    pub(crate) fn set_known(&self) {
        self.0.is_known.store(true, Relaxed);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.0.is_known.load(Relaxed)
    }

    /// Signals that the connection must be closed.
    pub(crate) fn closed(&self) -> Arc<Notify> {
        Arc::clone(&self.0.closed)
    }
}

/// Memory of messages.
#[derive(Debug)]
pub(crate) struct Budget {
    memory_max: usize,
    /// The maximum of all messages, which depends on the tables.
    bytes_max: AtomicUsize,
    bytes: AtomicUsize,
    /// The maximum since memory was returned to the system.
    peak: AtomicUsize,
    number: AtomicU64,
    /// Start and connection of each call, in order.
    calls: Mutex<BTreeMap<u64, (Instant, Peer)>>,
}

impl Budget {
    /// What tables of this size leave of the memory.
    pub(crate) fn new(memory_max: usize, tables_bytes: usize) -> Self {
        let budget = Self {
            memory_max,
            bytes_max: AtomicUsize::default(),
            bytes: AtomicUsize::default(),
            peak: AtomicUsize::default(),
            number: AtomicU64::default(),
            calls: Mutex::default(),
        };
        budget.leave(tables_bytes);
        budget
    }

    /// Changes the size of the tables.
    pub(crate) fn leave(&self, tables_bytes: usize) {
        let bytes = self.memory_max.saturating_sub(tables_bytes).clamp(BYTES_MIN, BYTES_MAX);
        self.bytes_max.store(bytes, Relaxed);
    }

    fn open(self: &Arc<Self>, peer: &Peer) -> Account {
        let number = self.number.fetch_add(1, Relaxed);
        self.calls().insert(number, (Instant::now(), peer.clone()));
        let call =
            Call { budget: Arc::clone(self), peer: peer.clone(), number, bytes: AtomicUsize::default() };
        Account(Arc::new(call))
    }

    fn calls(&self) -> MutexGuard<'_, BTreeMap<u64, (Instant, Peer)>> {
        locked(&self.calls)
    }

    /// Closes the connection that holds most, if it has an old call and holds more than this one.
    fn make_room(&self, than: &Peer) {
        let calls = self.calls();
        let old = calls.values().take_while(|(since, _)| since.elapsed() > CALL_MIN);
        let largest = old.map(|(_, peer)| peer).max_by_key(|peer| peer.0.bytes.load(Relaxed));
        let is_larger = |peer: &&Peer| peer.0.bytes.load(Relaxed) > than.0.bytes.load(Relaxed);
        if let Some(peer) = largest.filter(is_larger) {
            peer.0.closed.notify_one();
        }
    }

    /// Closes connections with a call that takes too long, and returns freed memory to the system, until the runtime ends.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut ticks = interval(TICK);
        loop {
            ticks.tick().await;
            for (since, peer) in self.calls().values() {
                if since.elapsed() <= CALL_LIMIT {
                    break;
                }
                peer.0.closed.notify_one();
            }
            if self.bytes.load(Relaxed) < TRIM_BYTES && self.peak.swap(0, Relaxed) >= TRIM_BYTES {
                program::limits::trim();
            }
        }
    }
}

/// The memory of a call, until the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Account(Arc<Call>);

#[derive(Debug)]
struct Call {
    budget: Arc<Budget>,
    peer: Peer,
    number: u64,
    bytes: AtomicUsize,
}

impl Account {
    /// Adds bytes, if the connection and the server have as many.
    pub(crate) fn add(&self, bytes: usize) -> Result<(), Refusal> {
        let Call { budget, peer, bytes: own, .. } = &*self.0;
        let bytes_max = budget.bytes_max.load(Relaxed);
        let share = (bytes_max / SHARE).max(SHARE_MIN);
        let refused = |what: &str, most| {
            budget.make_room(peer);
            Err(Refusal::busy(format!("{what} need more than {most} bytes of the server's memory")))
        };
        if add_within(&peer.0.bytes, bytes, share).is_none() {
            return refused("messages of a connection", share);
        }
        let Some(of_all) = add_within(&budget.bytes, bytes, bytes_max) else {
            peer.0.bytes.fetch_sub(bytes, Relaxed);
            return refused("messages", bytes_max);
        };
        own.fetch_add(bytes, Relaxed);
        budget.peak.fetch_max(of_all, Relaxed);
        Ok(())
    }
}

/// Adds bytes and returns the sum, unless it exceeds the maximum. Bytes that do not fit are not seen by other calls.
fn add_within(sum: &AtomicUsize, bytes: usize, most: usize) -> Option<usize> {
    let added = |sum: usize| sum.checked_add(bytes).filter(|&sum| sum <= most);
    sum.fetch_update(Relaxed, Relaxed, added).ok().map(|before| before + bytes)
}

impl Call {
    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Relaxed);
        self.peer.0.bytes.fetch_sub(bytes, Relaxed);
        self.budget.bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.give_back(self.bytes.load(Relaxed));
        self.budget.calls().remove(&self.number);
    }
}

/// A service whose messages are accounted for.
#[derive(Clone, Debug)]
pub(super) struct Accounted<S> {
    pub(super) service: S,
    pub(super) budget: Arc<Budget>,
}

impl<S: NamedService> NamedService for Accounted<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Accounted<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = S::Error;
    type Future = BoxFuture<Self::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let account = self.budget.open(&Peer::of(request.extensions()).cloned().unwrap_or_default());
        let of_request = account.clone();
        let mut request = request.map(|body| Body::new(Received { body, account: of_request }));
        request.extensions_mut().insert(account.clone());
        let response = self.service.call(request);
        Box::pin(
            async move { Ok(response.await?.map(|body| Body::new(Reply { body, account: Some(account) }))) },
        )
    }
}

/// The body of a request.
struct Received {
    body: Body,
    account: Account,
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
        Poll::Ready(match self.account.add(bytes) {
            Ok(()) => frame,
            Err(refusal) => Some(Err(refusal.into())),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of a response. Its message has the account, because the connection keeps it until the client reads it.
struct Reply {
    body: Body,
    account: Option<Account>,
}

struct Message {
    bytes: Bytes,
    _account: Option<Account>,
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let with_account = |bytes| Bytes::from_owner(Message { bytes, _account: self.account.take() });
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(with_account))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn requests_that_do_not_fit_take_no_memory_of_those_that_fit() {
        let budget = Arc::new(Budget::new(0, 0));
        let opened = |bytes: usize| {
            let account = budget.open(&Peer::default());
            account.add(bytes).unwrap();
            account
        };
        // All but 2 MiB.
        let mut left = BYTES_MIN - (2 << 20);
        let mut others = Vec::new();
        while left > 0 {
            let bytes = left.min(SHARE_MIN);
            others.push(opened(bytes));
            left -= bytes;
        }
        let small = opened(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let large = opened(0);
                (0..20_000).for_each(|_| assert!(large.add(3 << 20).is_err()));
            });
            for _ in 0..20_000 {
                small.add(1 << 20).unwrap();
                small.0.give_back(1 << 20);
            }
        });
        drop((others, small));
        assert_eq!(budget.bytes.load(Relaxed), 0);
    }
}

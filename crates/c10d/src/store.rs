//! A client of PyTorch's TCPStore, and its server: the key-value store through which ranks find each other.

use std::io;
use std::net::TcpListener;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use launch::Launch;
use program::threads::{detach, locked};

use crate::error::{Error, Result};
use crate::ffi;

// Additional time for a call after its limit; a running server responds much faster.
const GRACE: Duration = Duration::from_secs(5);

/// A key-value store that every rank can reach.
///
/// Clones share one connection, and calls wait for earlier calls. If ranks are threads of one process, each must open
/// its own connection; otherwise a waiting rank blocks the others.
///
/// The protocol is PyTorch's, so Python ranks can use the same store. It has no encryption and no authentication: use
/// it only in a network that untrusted hosts cannot reach.
///
/// ```
/// use std::time::Duration;
/// let server = c10d::TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
/// let client = c10d::TcpStore::connect("127.0.0.1", server.port(), Duration::from_secs(10))?;
/// server.set("epoch", b"3")?;
/// assert_eq!(client.get("epoch")?, b"3");
/// assert_eq!(client.add("ranks", 2)?, 2);
/// # Ok::<(), c10d::Error>(())
/// ```
#[derive(Clone)]
pub struct TcpStore {
    inner: Arc<ffi::Store>,
    host: String,
    limit: Duration,
    /// Prefix of every key, which separates torchrun's rounds.
    prefix: String,
}

impl std::fmt::Debug for TcpStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TcpStore({})", self.address())
    }
}

impl TcpStore {
    /// Serves a store and connects to it. The server listens only on `host`, an address or the name of this
    /// machine. Port 0 selects a free port.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// assert!(store.port() > 0);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn serve(host: &str, port: u16, limit: Duration) -> Result<Self> {
        Self::open(host, port, true, None, limit)
    }

    /// Connects to a store. Waits up to `limit` for its server.
    ///
    /// ```
    /// use std::time::Duration;
    /// let nobody = c10d::TcpStore::connect("127.0.0.1", 1, Duration::from_secs(1)).unwrap_err();
    /// assert!(nobody.is_worth_retrying());
    /// ```
    pub fn connect(host: &str, port: u16, limit: Duration) -> Result<Self> {
        Self::open(host, port, false, None, limit)
    }

    /// The store of a launch, served by rank 0 or by torchrun's agent. Returns when every rank has connected, as
    /// `init_process_group` does. An agent's store survives a round in which a rank died; after a restart, a prefix
    /// hides the keys of earlier rounds.
    ///
    /// ```
    /// let store = c10d::TcpStore::from_launch(&c10d::Launch::alone(), std::time::Duration::from_secs(10))?;
    /// assert_eq!(store.host(), "127.0.0.1");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn from_launch(launch: &Launch, limit: Duration) -> Result<Self> {
        launch.check_reach()?;
        let store = Self::open(
            &launch.master_addr,
            launch.master_port,
            !launch.agent_store && launch.rank == 0,
            Some(launch.world_size),
            limit,
        )?;
        Ok(Self { prefix: prefix(launch), ..store })
    }

    fn open(host: &str, port: u16, serve: bool, n_workers: Option<usize>, limit: Duration) -> Result<Self> {
        check_version()?;
        let failed = |call: &str, detail| Error::Store {
            store: format!("{host}:{port}"),
            call: call.to_owned(),
            detail,
        };
        // Keeps an existing server alive during this call.
        let (server, port, _served) = if serve {
            serve_on(host, port).map_err(|error| failed("serve", describe_bind_error(&error)))?
        } else {
            (ffi::Server::None, port, None)
        };
        let host_of_thread = host.to_owned();
        let opened = in_time(limit.saturating_add(GRACE), move || {
            ffi::Store::open(&host_of_thread, port, server, n_workers, millis(limit))
        });
        let call = if serve { "serve" } else { "connect" };
        let inner = Arc::new(opened.map_err(|failure| failed(call, failure.text))?);
        if serve {
            note_served(port, &inner);
        }
        Ok(Self { inner, host: host.to_owned(), limit, prefix: String::new() })
    }

    /// The port of the store.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// assert_ne!(store.port(), 0);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn port(&self) -> u16 {
        self.inner.port()
    }

    /// The host used to connect.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// assert_eq!(store.host(), "127.0.0.1");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Sets a key.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// store.set("vocabulary", b"50000 words")?;
    /// assert_eq!(store.get("vocabulary")?, b"50000 words");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn set(&self, key: &str, value: &[u8]) -> Result<()> {
        let (key, value) = (self.full(key), value.to_owned());
        self.call("set", self.limit, move |store| store.set(&key, &value))
    }

    /// Returns a key's value, once it is set. Errors: the key was not set within the store's time limit.
    ///
    /// ```
    /// use std::time::Duration;
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, Duration::from_secs(1))?;
    /// assert!(store.get("never set").is_err());
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn get(&self, key: &str) -> Result<Vec<u8>> {
        let key = self.full(key);
        self.call("get", self.limit, move |store| store.get(&key))
    }

    /// Adds to a key's integer value, initially 0, and returns the sum.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// assert_eq!(store.add("ready ranks", 1)?, 1);
    /// assert_eq!(store.add("ready ranks", 1)?, 2);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn add(&self, key: &str, amount: i64) -> Result<i64> {
        let key = self.full(key);
        self.call("add", self.limit, move |store| store.add(&key, amount))
    }

    /// Sets `desired` if the value is `expected`; an empty `expected` means that the key is not set. Returns the
    /// resulting value.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// assert_eq!(store.compare_set("leader", b"", b"rank 2")?, b"rank 2");
    /// assert_eq!(store.compare_set("leader", b"", b"rank 0")?, b"rank 2");
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn compare_set(&self, key: &str, expected: &[u8], desired: &[u8]) -> Result<Vec<u8>> {
        let (key, expected, desired) = (self.full(key), expected.to_owned(), desired.to_owned());
        self.call("compare_set", self.limit, move |store| store.compare_set(&key, &expected, &desired))
    }

    /// Waits until all keys are set. Errors: at least one key was not set within `limit`.
    ///
    /// ```
    /// use std::time::Duration;
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10))?;
    /// store.set("a", b"")?;
    /// store.wait(&["a"], Duration::from_secs(10))?;
    /// assert!(store.wait(&["a", "b"], Duration::from_millis(100)).is_err());
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn wait(&self, keys: &[&str], limit: Duration) -> Result<()> {
        let keys: Vec<String> = keys.iter().map(|key| self.full(key)).collect();
        self.call("wait", limit, move |store| store.wait(&keys, millis(limit)))
    }

    /// Whether a key is set.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// store.set("a", b"1")?;
    /// assert!(store.is_set("a")?);
    /// assert!(store.delete("a")?);
    /// assert!(!store.is_set("a")?);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn is_set(&self, key: &str) -> Result<bool> {
        let key = self.full(key);
        self.call("check", self.limit, move |store| store.check(&key))
    }

    /// Deletes a key. Returns whether it was set.
    ///
    /// ```
    /// let store = c10d::TcpStore::serve("127.0.0.1", 0, std::time::Duration::from_secs(10))?;
    /// store.set("lock", b"rank 1")?;
    /// assert!(store.delete("lock")?);
    /// assert!(!store.delete("lock")?);
    /// # Ok::<(), c10d::Error>(())
    /// ```
    pub fn delete(&self, key: &str) -> Result<bool> {
        let key = self.full(key);
        self.call("delete", self.limit, move |store| store.delete(&key))
    }

    pub(crate) fn raw(&self) -> &Arc<ffi::Store> {
        &self.inner
    }

    /// A key with its prefix, as stored on the server.
    pub(crate) fn full(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port())
    }

    fn call<T: Send + 'static>(
        &self,
        name: &str,
        limit: Duration,
        function: impl FnOnce(&ffi::Store) -> ffi::Result<T> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(&self.inner);
        in_time(limit.saturating_add(GRACE), move || function(&store)).map_err(|failure| Error::Store {
            store: self.address(),
            call: name.to_owned(),
            detail: failure.text,
        })
    }
}

/// The stores served by this process, by port.
static SERVED: Mutex<Vec<(u16, Weak<ffi::Store>)>> = Mutex::new(Vec::new());

fn note_served(port: u16, store: &Arc<ffi::Store>) {
    let mut served = locked(&SERVED);
    served.retain(|(_, store)| store.strong_count() > 0);
    served.push((port, Arc::downgrade(store)));
}

/// Listens on this address only; PyTorch's own socket would listen on every interface. If this process already serves
/// the port, for example for an earlier group, returns that store.
fn serve_on(host: &str, port: u16) -> io::Result<(ffi::Server, u16, Option<Arc<ffi::Store>>)> {
    match TcpListener::bind((host, port)) {
        Ok(listener) => {
            let port = listener.local_addr()?.port();
            Ok((ffi::Server::On(listener), port, None))
        }
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let served = locked(&SERVED);
            let store = served.iter().filter(|(at, _)| *at == port).find_map(|(_, store)| store.upgrade());
            store.map(|store| (ffi::Server::OfThisProcess, port, Some(store))).ok_or(error)
        }
        Err(error) => Err(error),
    }
}

fn describe_bind_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            "not an address of this machine, which must serve the store; start rank 0 on MASTER_ADDR"
                .to_owned()
        }
        io::ErrorKind::AddrInUse => {
            format!("{error}; choose another port by MASTER_PORT, or by --master-port of launch")
        }
        _ => error.to_string(),
    }
}

/// Runs a function without a time limit of its own on a separate thread. At the limit, the thread is abandoned.
pub(crate) fn in_time<T: Send + 'static>(
    limit: Duration,
    function: impl FnOnce() -> ffi::Result<T> + Send + 'static,
) -> ffi::Result<T> {
    in_time_unless(|| false, limit, function)
}

/// Runs a function as [`in_time`] does. Abandons it also if it `is_futile`.
pub(crate) fn in_time_unless<T: Send + 'static>(
    is_futile: impl Fn() -> bool,
    limit: Duration,
    function: impl FnOnce() -> ffi::Result<T> + Send + 'static,
) -> ffi::Result<T> {
    /// How often it is asked.
    const EVERY: Duration = Duration::from_millis(100);
    let (sender, receiver) = channel();
    detach(move || {
        // The send fails only after the time limit, when nobody waits for the result.
        let _ = sender.send(function());
    });
    let begin = Instant::now();
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        let (status, text) = match receiver.recv_timeout(left.min(EVERY)) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => (ffi::Status::Failed, "the call panicked".to_owned()),
            Err(RecvTimeoutError::Timeout) if is_futile() => {
                (ffi::Status::Failed, "the call cannot succeed".to_owned())
            }
            Err(RecvTimeoutError::Timeout) if left > EVERY => continue,
            Err(RecvTimeoutError::Timeout) => (
                ffi::Status::TimedOut,
                format!("no response within {} s; its server may be stopped", limit.as_secs_f64()),
            ),
        };
        return Err(ffi::Failure { status, text });
    }
}

/// Prefix of the keys. Empty in the first round, so that Python ranks find them. After a restart, rank 0 serves a new store.
fn prefix(launch: &Launch) -> String {
    match (launch.agent_store, launch.restarts) {
        (true, 1..) => format!("c10d/round/{}/", launch.restarts),
        _ => String::new(),
    }
}

/// Converts a time limit for PyTorch, which treats 0 as infinite; poll accepts at most 24 days.
pub(crate) fn millis(limit: Duration) -> i64 {
    i64::from(i32::try_from(limit.as_millis()).unwrap_or(i32::MAX).max(1))
}

/// Refuses a libtorch of another version than the headers, because its class layouts may differ.
fn check_version() -> Result<()> {
    static CHECKED: OnceLock<Result<()>> = OnceLock::new();
    CHECKED
        .get_or_init(|| {
            let compiled = ffi::compiled_version();
            let loaded = ffi::loaded_version().unwrap_or_else(|| "of unknown version".to_owned());
            if loaded == compiled {
                return Ok(());
            }
            Err(Error::Version { compiled: compiled.to_owned(), loaded })
        })
        .clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_futile_call_ends_before_its_limit() {
        let (_keep, never) = channel::<()>();
        let waits = move || {
            let _ = never.recv();
            Ok(())
        };
        let failure = in_time_unless(|| true, Duration::MAX, waits).unwrap_err();
        assert_eq!(failure.status, ffi::Status::Failed);
        assert_eq!(in_time_unless(|| true, Duration::MAX, || Ok(3)).unwrap(), 3);
    }

    #[test]
    fn only_a_store_that_survives_restarts_has_a_prefix() {
        let of = |agent_store, restarts| prefix(&Launch { agent_store, restarts, ..Launch::alone() });
        assert_eq!([of(true, 2), of(true, 0), of(false, 2)], ["c10d/round/2/", "", ""]);
    }
}

//! Reads a file from a web server, as a stream.
//!
//! A response that is cut off is resumed by a request for the rest (RFC 9110: `Range` with `If-Range`), a limited number
//! of times. All bytes come from one version of the file: ETag or Last-Modified and the size must not change. The size
//! is compared with `Content-Length`, and the whole file with its SHA-256 if one is known: from the URL
//! (`#sha256=DIGEST`) or from `Repr-Digest` or `Content-Digest` (RFC 9530). A mismatch is an error at the end of the
//! file, after its bytes were returned.
//!
//! The server is authenticated by TLS. Proxies of the environment (`HTTPS_PROXY`, `NO_PROXY`) are used, except for
//! servers on this machine. Redirects never lead from https to http.

mod response;
mod url;

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use aws_sdk_s3::config::http::{HttpRequest, HttpResponse};
use aws_sdk_s3::primitives::ByteStream;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::proxy::ProxyConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::HttpConnector;
use bytes::Bytes;
use program::hexadecimal;
use sha2::{Digest, Sha256};
use tokio::time::{sleep, timeout};

use crate::amazon::{READ_LIMIT, chain_of, innermost};
use crate::s3::runtime;
use crate::{Error, WebFailure};
use response::{BodyRange, Version, has_end};
use url::WebUrl;

/// Maximum number of tries without progress. The pauses between them double, to over 20 seconds in total.
const TRIES: u32 = 7;
const FIRST_PAUSE: Duration = Duration::from_millis(300);
/// Longest pause that a server may request by `Retry-After`.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const REDIRECTS_MAX: u32 = 5;
/// Number of pieces of a body, of at most some hundred KiB, between network and reader.
const PIECES: usize = 8;

/// A file on a web server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebFile {
    url: WebUrl,
    sha256: Option<String>,
}

impl WebFile {
    /// The file at `https://host/path`, or at `http://` on this machine. No request is sent.
    pub fn at(url: &str) -> Result<WebFile, Error> {
        let (url, sha256) = WebUrl::parse(url)?;
        Ok(WebFile { url, sha256 })
    }

    /// The URL for messages, without its query, which may contain a signature.
    pub fn name(&self) -> String {
        self.url.shown()
    }

    /// Identifies the file: its URL with the query.
    pub fn id(&self) -> String {
        self.url.request()
    }

    /// Returns a reader of the whole file. A thread fetches it.
    pub fn reader(&self) -> io::Result<WebReader> {
        self.reader_from(0, None)
    }

    /// Returns a reader of the file from a byte on, if the server still has this version of it ([`Stated::version`]); otherwise
    /// the error is [`Error::Changed`]. The caller compares the whole file with [`Stated::sha256`].
    pub fn rest(&self, at: u64, version: &str) -> io::Result<WebReader> {
        self.reader_from(at, Some(Version::of_validator(version)))
    }

    fn reader_from(&self, at: u64, version: Option<Version>) -> io::Result<WebReader> {
        let (sender, pieces) = sync_channel(PIECES);
        let (file, stated) = (self.clone(), Arc::new(OnceLock::new()));
        let heard = Arc::clone(&stated);
        let fetch = move || {
            let fetch = Fetch { at, version, ..Fetch::of(&file, &sender, &heard) };
            let ended = runtime().and_then(|runtime| runtime.block_on(fetch.run(at)));
            if let Err(error) = ended {
                // The reader may have been dropped.
                let _ = sender.send(Err(error));
            }
        };
        thread::Builder::new().name("web".to_owned()).spawn(fetch)?;
        Ok(WebReader { pieces, piece: Bytes::new(), is_failed: false, stated })
    }
}

/// Reads the bytes of a file. Errors are an [`Error`] inside an [`io::Error`].
#[derive(Debug)]
pub struct WebReader {
    pieces: Receiver<Result<Bytes, Error>>,
    piece: Bytes,
    is_failed: bool,
    stated: Arc<OnceLock<Stated>>,
}

/// What a server states about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// Size in bytes.
    pub bytes: Option<u64>,
    /// ETag or Last-Modified, with which the rest of the file can be requested.
    pub version: Option<String>,
    /// SHA-256 of the whole file, in hexadecimal digits.
    pub sha256: Option<String>,
}

impl WebReader {
    /// What the server states about the file, after the first read.
    pub fn stated(&self) -> Option<&Stated> {
        self.stated.get()
    }
}

impl Read for WebReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            if self.is_failed {
                return Err(io::Error::other("a read after a failed one"));
            }
            match self.pieces.recv() {
                Ok(Ok(piece)) => self.piece = piece,
                Ok(Err(error)) => {
                    self.is_failed = true;
                    return Err(io::Error::other(error));
                }
                // The thread has sent everything and ended.
                Err(_) => return Ok(0),
            }
        }
        let bytes = buffer.len().min(self.piece.len());
        buffer[..bytes].copy_from_slice(&self.piece.split_to(bytes));
        Ok(bytes)
    }
}

/// A file while it is fetched.
struct Fetch<'a> {
    file: &'a WebFile,
    pieces: &'a SyncSender<Result<Bytes, Error>>,
    stated: &'a OnceLock<Stated>,
    connector: Connector,
    /// Position of the next byte for the reader.
    at: u64,
    version: Option<Version>,
    hasher: Sha256,
}

/// Why a try failed.
enum Failed {
    /// A later try may succeed. The server may have requested a pause.
    Retry(String, Option<Duration>),
    Final(Error),
    /// The reader was dropped.
    Unread,
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

impl<'a> Fetch<'a> {
    fn of(
        file: &'a WebFile,
        pieces: &'a SyncSender<Result<Bytes, Error>>,
        stated: &'a OnceLock<Stated>,
    ) -> Self {
        let proxy = if file.url.is_loopback() { ProxyConfig::disabled() } else { ProxyConfig::from_env() };
        let connector =
            Connector::builder().tls_provider(Provider::Rustls(CryptoMode::Ring)).proxy_config(proxy).build();
        Self { file, pieces, stated, connector, at: 0, version: None, hasher: Sha256::new() }
    }

    async fn run(mut self, start: u64) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let before = self.at;
            match self.rest().await {
                Ok(()) if start > 0 => return Ok(()),
                Ok(()) => return self.check(),
                Err(Failed::Unread) => return Ok(()),
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Retry(found, pause)) => {
                    tries = if self.at > before { 1 } else { tries + 1 };
                    if tries >= TRIES {
                        return Err(self.error(format!("{found}, {TRIES} times"), WebFailure::Unavailable));
                    }
                    sleep(pause.unwrap_or(FIRST_PAUSE * (1 << (tries - 1))).min(LONGEST_PAUSE)).await;
                }
            }
        }
    }

    /// Requests the file from the current position and passes it on.
    async fn rest(&mut self) -> Result<(), Failed> {
        let response = self.response().await?;
        let later = Version::of(&response);
        let mut skipped = 0;
        match (&self.version, BodyRange::of(&response)) {
            (Some(version), _) if version.differs(&later) => return Err(self.changed().into()),
            (_, BodyRange::Whole) if self.at == 0 => {}
            // The server ignores ranges, or the version has changed.
            (Some(version), BodyRange::Whole) if version.is_surely(&later) => skipped = self.at,
            (_, BodyRange::Whole) => return Err(self.changed().into()),
            (_, BodyRange::From(first)) if first == self.at => {}
            _ => {
                let found = format!("found another range than the one from byte {}", self.at);
                return Err(self.error(found, WebFailure::Other).into());
            }
        }
        if self.stated.get().is_none() {
            let has_digest = self.file.sha256.is_some() || later.sha256.is_some();
            if !has_end(&response) && !has_digest {
                return Err(self
                    .error(
                        "the server states no length, so that a cut could not be detected".to_owned(),
                        WebFailure::Unverifiable,
                    )
                    .into());
            }
            // Only this thread sets it.
            let _ = self.stated.set(Stated {
                bytes: later.bytes,
                version: later.validator().map(str::to_owned),
                sha256: later.sha256.clone(),
            });
            self.version = Some(later);
        }
        self.pass_on(ByteStream::new(response.into_body()), skipped).await
    }

    async fn pass_on(&mut self, mut body: ByteStream, mut skipped: u64) -> Result<(), Failed> {
        let bytes = self.version.as_ref().and_then(|version| version.bytes);
        loop {
            let cut = |why: &str| {
                Failed::Retry(format!("the response was cut off at byte {} ({why})", self.at), None)
            };
            let Ok(piece) = timeout(READ_LIMIT, body.next()).await else {
                return Err(cut("no data in time"));
            };
            let mut piece = match piece {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Err(cut(&innermost(&error))),
                None if bytes.is_some_and(|bytes| self.at < bytes) || skipped > 0 => {
                    return Err(cut("its end came early"));
                }
                None => return Ok(()),
            };
            let n_skipped = skipped.min(piece.len() as u64);
            skipped -= n_skipped;
            drop(piece.split_to(n_skipped as usize));
            if piece.is_empty() {
                continue;
            }
            self.at += piece.len() as u64;
            if bytes.is_some_and(|bytes| self.at > bytes) {
                let found = format!("found more than the {} bytes of the file", bytes.unwrap_or_default());
                return Err(self.error(found, WebFailure::Other).into());
            }
            self.hasher.update(&piece);
            if self.pieces.send(Ok(piece)).is_err() {
                return Err(Failed::Unread);
            }
        }
    }

    /// The response with the file or the rest of it, after redirects.
    async fn response(&self) -> Result<HttpResponse, Failed> {
        let mut url = self.file.url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let response = self.request(&url).await?;
            let status = response.status().as_u16();
            let header = |name: &str| response.headers().get(name);
            match status {
                200 | 206 => return Ok(response),
                301 | 302 | 303 | 307 | 308 => {
                    let location = header("location").ok_or("it redirects to nowhere");
                    let next = location.and_then(|location| url.redirected(location));
                    url = next.map_err(|found| self.error(found.to_owned(), WebFailure::Redirect))?;
                }
                408 | 425 | 429 | 500.. => {
                    let pause = header("retry-after").and_then(|seconds| seconds.trim().parse().ok());
                    return Err(Failed::Retry(format!("status {status}"), pause.map(Duration::from_secs)));
                }
                412 | 416 => return Err(self.changed().into()),
                _ => {
                    let why = match status {
                        404 | 410 => WebFailure::Missing,
                        401 | 403 | 407 => WebFailure::Refused,
                        _ => WebFailure::Other,
                    };
                    return Err(self.error(format!("found status {status}, expected the file"), why).into());
                }
            }
        }
        Err(self.error(format!("found more than {REDIRECTS_MAX} redirects"), WebFailure::Redirect).into())
    }

    async fn request(&self, url: &WebUrl) -> Result<HttpResponse, Failed> {
        let invalid = |_| self.error("it is not a valid URL".to_owned(), WebFailure::Other);
        let mut request = HttpRequest::get(url.request()).map_err(invalid)?;
        let headers = request.headers_mut();
        headers.insert("user-agent", concat!("sentimill/", env!("CARGO_PKG_VERSION")));
        headers.insert("accept-encoding", "identity");
        headers.insert("want-repr-digest", "sha-256=1");
        if self.at > 0 {
            let validator = self.version.as_ref().and_then(Version::validator);
            let Some(validator) = validator else {
                let found = format!(
                    "was cut off at byte {}, and the server states neither ETag nor Last-Modified",
                    self.at
                );
                return Err(self.error(found, WebFailure::Unverifiable).into());
            };
            headers.insert("range", format!("bytes={}-", self.at));
            headers.insert("if-range", validator.to_owned());
        }
        match timeout(READ_LIMIT, self.connector.call(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_user() => Err(self.error(chain_of(&error), WebFailure::Other).into()),
            Ok(Err(error)) => match innermost(&error) {
                // A later try would get the same certificate.
                found if found.contains("certificate") => {
                    let found = format!("cannot authenticate the server ({found})");
                    Err(self.error(found, WebFailure::Unauthenticated).into())
                }
                found => Err(Failed::Retry(format!("the server is unreachable ({found})"), None)),
            },
            Err(_) => Err(Failed::Retry("no response in time".to_owned(), None)),
        }
    }

    /// Compares the whole file with its digests.
    fn check(self) -> Result<(), Error> {
        let stated = self.version.as_ref().and_then(|version| version.sha256.as_ref());
        let found = hexadecimal::encode(&self.hasher.clone().finalize());
        match self.file.sha256.iter().chain(stated).find(|expected| **expected != found) {
            None => Ok(()),
            Some(expected) => {
                Err(Error::OtherSha256 { object: self.file.name(), found, expected: expected.clone() })
            }
        }
    }

    fn changed(&self) -> Error {
        Error::Changed { object: self.file.name() }
    }

    fn error(&self, found: String, why: WebFailure) -> Error {
        Error::Web { url: self.file.name(), found, why }
    }
}

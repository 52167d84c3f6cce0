//! Connections to a server. Their number is bounded, and one that sends no request that is served is closed after a while,
//! so that unauthenticated clients take neither all file descriptors nor all places. One whose calls hold memory for too
//! long is closed, too ([`super::budget`]).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::futures::OwnedNotified;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use super::budget::Peer;

/// Time from the connection to its first request that is served.
pub(crate) const FIRST_REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// Time to the next attempt after one that failed, such as by too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    peer: Peer,
    /// Ends when the connection must be closed.
    closed: Pin<Box<OwnedNotified>>,
    /// Ends with the limit of time; `None` after it.
    limit: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

/// Accepts connections, at most `n_max` at the same time; others wait until one is closed.
pub(super) fn accept(
    listener: TcpListener,
    n_max: usize,
) -> (ReceiverStream<io::Result<Connection>>, impl Future<Output = ()>) {
    let (accepted, connections) = channel(1);
    (ReceiverStream::new(connections), pass(listener, n_max, accepted))
}

async fn pass(listener: TcpListener, n_max: usize, accepted: Sender<io::Result<Connection>>) {
    let places = Arc::new(Semaphore::new(n_max));
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_AGAIN).await;
            continue;
        };
        // Without it, small messages wait for the acknowledgement of earlier ones; they arrive nonetheless.
        let _ = stream.set_nodelay(true);
        let limit = Some(Box::pin(sleep(FIRST_REQUEST_LIMIT)));
        let peer = Peer::default();
        let closed = Box::pin(peer.closed().notified_owned());
        let connection = Connection { stream, peer, closed, limit, _place: place };
        if accepted.send(Ok(connection)).await.is_err() {
            return;
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl Connection {
    /// The error of a connection that must be closed. Reads and writes check it: while a client reads nothing, its requests
    /// are not read.
    fn poll_closed(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.closed.as_mut().poll(cx).is_ready() {
            // The next call must not poll it again, and must find the connection closed, too.
            self.closed = Box::pin(self.peer.closed().notified_owned());
            self.peer.closed().notify_one();
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(limit) = &mut self.limit
            && limit.as_mut().poll(cx).is_ready()
        {
            self.limit = None;
            if !self.peer.is_known() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
        }
        self.poll_closed(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_closed(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_closed(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_closed(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::runtime::Builder;
    use tokio::time::timeout;
    use tokio_stream::StreamExt;

    use super::*;

    async fn closed_while_it_writes(is_vectored: bool) -> io::ErrorKind {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut connections, accepting) = accept(listener, 1);
        let accepting = tokio::spawn(accepting);
        let mut connection = connections.next().await.unwrap().unwrap();
        let closed = connection.peer.closed();
        let block = [0; 1 << 16];
        // The client reads nothing. When the buffers are full, only the signal wakes the task.
        let mut write = move |cx: &mut Context<'_>| {
            let connection = Pin::new(&mut connection);
            match is_vectored {
                true => connection.poll_write_vectored(cx, &[io::IoSlice::new(&block)]),
                false => connection.poll_write(cx, &block),
            }
        };
        let mut write_all = move |cx: &mut Context<'_>| loop {
            match write(cx) {
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(error.kind()),
                Poll::Pending => return Poll::Pending,
            }
        };
        let is_pending = poll_fn(|cx| Poll::Ready(write_all(cx).is_pending())).await;
        assert!(is_pending);
        let writing = tokio::spawn(poll_fn(write_all));
        tokio::task::yield_now().await;
        closed.notify_one();
        let found = timeout(Duration::from_secs(60), writing).await.unwrap().unwrap();
        accepting.abort();
        found
    }

    #[test]
    fn a_connection_whose_client_reads_nothing_is_closed_while_it_writes() {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        for is_vectored in [false, true] {
            let found = runtime.block_on(closed_while_it_writes(is_vectored));
            assert_eq!(found, io::ErrorKind::ConnectionAborted);
        }
    }
}

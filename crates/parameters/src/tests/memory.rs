//! Clients that leave requests unfinished, and clients that do not read replies: together they hold a bounded memory of the
//! server, others are served, and the memory is returned when they are gone.
//!
//! With PROVE=1, there are 20 clients of each sort, and they stay until the server closes their connections.

use std::env;
use std::fs;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame};
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codegen::{Service, http};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Streaming};
use tonic_prost::ProstCodec;

use super::kills::{Killed, free_address, start};
use super::{N_ROWS, all_rows, client, ones, spec};
use crate::messages::{PullReply, PullRequest, RowNumbers};
use crate::values::to_bytes;
use crate::{MESSAGE_BYTES_MAX, Spec};

/// Requests of a client, at the same time.
const N_CALLS: usize = 60;

/// Memory of messages, of bytes of each connection that no request has taken, and of everything else in the server: on a
/// busy machine up to 120 MiB were seen, because a message is copied while it is decoded.
fn memory_max() -> u64 {
    (64 + 4 * n_clients() as u64 + 160) << 20
}

fn n_clients() -> usize {
    if env::var_os("PROVE").is_some() { 20 } else { 5 }
}

/// The resident memory of a process in bytes. `status` has a sum of counters per core, which may lack much on many cores.
pub(super) fn resident(process: &Killed) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/smaps_rollup", process.0.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

/// The body of a request that begins and does not end.
struct Unfinished(Option<Bytes>);

impl HttpBody for Unfinished {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        self.0.take().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
    }
}

fn connected(runtime: &Runtime, address: &str) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let endpoint = endpoint.initial_stream_window_size(1 << 16).initial_connection_window_size(1 << 16);
    runtime.block_on(endpoint.connect()).unwrap()
}

/// Sends the beginnings of pushes of the maximum size.
fn leave_unfinished(runtime: &Runtime, address: &str) {
    let mut beginning = BytesMut::new();
    beginning.put_u8(0);
    beginning.put_u32(MESSAGE_BYTES_MAX as u32);
    beginning.put_bytes(0, MESSAGE_BYTES_MAX - 1);
    let beginning = beginning.freeze();
    let channel = connected(runtime, address);
    for _ in 0..N_CALLS {
        let (mut channel, beginning) = (channel.clone(), beginning.clone());
        runtime.spawn(async move {
            let request = http::Request::post(format!("http://server{PATH}Push"))
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(Body::new(Unfinished(Some(beginning))))
                .unwrap();
            std::future::poll_fn(|cx| channel.poll_ready(cx)).await.ok();
            drop(channel.call(request).await);
        });
    }
}

const PATH: &str = "/sentimill.parameters.v1.Parameters/";

/// Pulls replies of the maximum size and does not read them.
fn read_nothing(runtime: &Runtime, address: &str, table: &Spec) {
    let rows = vec![0_u32; MESSAGE_BYTES_MAX / 4 / table.dim as usize];
    let pull = PullRequest {
        reads: vec![RowNumbers { table: 1, rows: to_bytes(&rows).into() }],
        ..PullRequest::default()
    };
    let channel = connected(runtime, address);
    for _ in 0..N_CALLS {
        let (channel, pull) = (channel.clone(), pull.clone());
        runtime.spawn(async move {
            let mut calls = Grpc::new(channel).max_encoding_message_size(usize::MAX);
            let ready = calls.ready().await;
            if ready.is_err() {
                return;
            }
            let codec: ProstCodec<PullRequest, PullReply> = ProstCodec::default();
            let path = http::uri::PathAndQuery::from_static("/sentimill.parameters.v1.Parameters/Pull");
            let reply: Result<tonic::Response<Streaming<PullReply>>, _> =
                calls.server_streaming(Request::new(pull), path, codec).await;
            // Kept, and never polled.
            std::future::pending::<()>().await;
            drop(reply);
        });
    }
}

/// The largest memory of the server until a condition is met, which must be soon.
#[track_caller]
fn largest_until(server: &Killed, what: &str, mut is_met: impl FnMut(u64) -> bool) -> u64 {
    let began = Instant::now();
    let mut largest = 0;
    loop {
        let now = resident(server);
        largest = largest.max(now);
        if is_met(now) {
            return largest;
        }
        assert!(began.elapsed() < Duration::from_secs(120), "{what}: {now} bytes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn hostile_clients_hold_a_bounded_memory_that_is_returned() {
    for (sort, is_unfinished) in [("unfinished requests", true), ("unread replies", false)] {
        let folder = tempfile::tempdir().unwrap();
        let address = free_address();
        let server = start(folder.path(), &address);
        let mut own = client(std::slice::from_ref(&address));
        own.create(&spec()).unwrap();
        let wide = Spec { name: "wide".to_owned(), n_rows: 1, dim: 1 << 13, ..spec() };
        own.create(&wide).unwrap();
        let before = resident(&server);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        for _ in 0..n_clients() {
            match is_unfinished {
                true => leave_unfinished(&runtime, &address),
                false => read_nothing(&runtime, &address, &wide),
            }
        }
        largest_until(&server, sort, |now| now > before + (16 << 20));
        let began = Instant::now();
        let reached = largest_until(&server, sort, |_| began.elapsed() > Duration::from_secs(2));

        let first = own.join(0, 2).unwrap().step;
        for step in first..first + 3 {
            own.pushed(own.push(step, &[0], &mut [ones((0..N_ROWS).collect())]).unwrap()).unwrap();
        }
        assert_eq!(all_rows(&own)[0], 3.0, "{sort}");

        let largest = reached.max(resident(&server));
        assert!(largest < before + memory_max(), "{sort}: {largest} bytes, before {before}");
        if env::var_os("PROVE").is_none() {
            runtime.shutdown_background();
        }
        let largest = largest_until(&server, sort, |now| now < before + (24 << 20)).max(largest);
        println!(
            "{} clients with {N_CALLS} {sort} each: at most {} MiB, before {}, after {}",
            n_clients(),
            largest >> 20,
            before >> 20,
            resident(&server) >> 20
        );
    }
}

//! Malformed requests: each is refused with a message, and the server continues.

use tonic::{Code, Status};

use super::{DIM, N_ROWS, address, client, options, spec};
use crate::messages::{CreateRequest, PullRequest, PushRequest, RowNumbers, RowUpdates};
use crate::service::parameters_client::ParametersClient;
use crate::values::to_bytes;
use crate::{MESSAGE_BYTES_MAX, Server};

fn update(rows: &[u32], n_values: usize) -> RowUpdates {
    let values = vec![0; 4 * n_values];
    RowUpdates { table: 0, rows: to_bytes(rows).into(), values: values.into(), encoding: 0, k: 0 }
}

fn push(update: RowUpdates) -> PushRequest {
    PushRequest { is_last: true, updates: vec![update], ..PushRequest::default() }
}

#[test]
fn malformed_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&options(folder.path(), 1, Some(0))).unwrap();
    client(&[address(&server)]).create(&spec()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{}", address(&server))).unwrap();
    let channel = runtime.block_on(endpoint.connect()).unwrap();
    let mut calls = ParametersClient::new(channel).max_encoding_message_size(usize::MAX);
    let mut other = calls.clone();
    let mut pushed = |request: PushRequest| -> Status { runtime.block_on(other.push(request)).unwrap_err() };
    let nan = RowUpdates { values: f32::NAN.to_le_bytes().repeat(DIM).into(), ..update(&[0], DIM) };
    let cases = [
        (push(update(&[0, 1], DIM)), "20 bytes of values for 2 rows, expected 20 per row"),
        (push(RowUpdates { rows: vec![0; 5].into(), ..update(&[0], DIM) }), "5 bytes of row numbers"),
        (push(update(&[N_ROWS], DIM)), "row 300 of table \"rows\""),
        (push(update(&[1, 1], 2 * DIM)), "expected ascending ones"),
        (push(nan), "a value is not a finite number"),
        (push(RowUpdates { encoding: 9, ..update(&[0], DIM) }), "encoding 9 with k 0"),
        (push(RowUpdates { encoding: 2, k: u32::MAX, ..update(&[0], DIM) }), "encoding 2 with k 4294967295"),
        (push(update(&[], 0)), "updates without rows"),
        (
            PushRequest { updates: vec![update(&[0], DIM); 65], ..PushRequest::default() },
            "65 updates in a message, expected at most 64",
        ),
        (push(RowUpdates { table: 7, ..update(&[0], DIM) }), "table 7 does not exist"),
        (PushRequest { worker: u32::MAX, ..push(update(&[0], DIM)) }, "worker 4294967295"),
        (PushRequest { step: u64::MAX, ..push(update(&[0], DIM)) }, "of step 18446744073709551615"),
        (PushRequest { part: u32::MAX, ..push(update(&[0], DIM)) }, "part 4294967295 of step 0"),
        (PushRequest { read_at: u64::MAX, ..push(update(&[0], DIM)) }, "rows read at step"),
    ];
    for (request, expected) in cases {
        let refused = pushed(request);
        assert!(refused.message().contains(expected), "{refused:?}: expected {expected:?}");
        assert!(matches!(refused.code(), Code::InvalidArgument | Code::FailedPrecondition), "{refused:?}");
    }
    let large = RowUpdates { values: vec![0; MESSAGE_BYTES_MAX].into(), ..update(&[0], 0) };
    assert_eq!(pushed(push(large)).code(), Code::OutOfRange);

    // A small request must not make a large reply.
    let read = |n: usize| RowNumbers { table: 0, rows: to_bytes(&vec![0; n]).into() };
    for (reads, expected) in [
        (vec![read(MESSAGE_BYTES_MAX / 4 / DIM + 1)], "bytes of rows, expected at most 8388608"),
        (vec![read(0)], "reads without rows"),
        (vec![read(1); 65], "65 reads in a message, expected at most 64"),
    ] {
        let pull = PullRequest { reads, ..PullRequest::default() };
        let refused = runtime.block_on(calls.pull(pull)).unwrap_err();
        assert!(refused.message().contains(expected), "{refused:?}: expected {expected:?}");
    }

    let valid = spec().to_request(0, 1);
    for (request, expected) in [
        (CreateRequest { name: String::new(), ..valid.clone() }, "a name of 0 bytes"),
        (CreateRequest { n_rows: u64::MAX, ..valid.clone() }, "of 18446744073709551615 rows"),
        (CreateRequest { dim: u32::MAX, ..valid.clone() }, "of 4294967295 floats"),
        (CreateRequest { divisor: f32::NAN, ..valid.clone() }, "with divisor NaN"),
        (CreateRequest { rate: -1.0, ..valid.clone() }, "rate -1"),
        (CreateRequest { key: vec![0; 1000], ..valid.clone() }, "a key of 1000 numbers"),
        (CreateRequest { n_shards: 0, ..valid.clone() }, "it has the rows 0/1"),
    ] {
        let refused = runtime.block_on(calls.create(request)).unwrap_err();
        assert!(refused.message().contains(expected), "{refused:?}: expected {expected:?}");
    }
    let statistics = server.stop().unwrap();
    assert_eq!((statistics.ledger.pushes, statistics.tables.len()), (0, 1));
    // All but the one that was too large to be read.
    assert_eq!(statistics.since_start.refused, 14);
}

//! Ranks that make different calls: in a checked group, each gets an error and the group remains usable.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use c10d::{Error, Options, ProcessGroup, ReduceOp, Reducer, ReducerOptions, TcpStore};
use ranks::as_threads;
use tch::{Device, Kind, Tensor};

fn floats(n: i64) -> Tensor {
    Tensor::ones([n], (Kind::Float, Device::Cpu))
}

/// Makes `call` on two checked ranks. Returns the error of each rank.
fn told(call: impl Fn(&ProcessGroup) -> Result<(), Error> + Sync) -> [String; 2] {
    let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
    let told = [const { std::sync::Mutex::new(String::new()) }; 2];
    let options = |_| Options { checked: true, timeout: Duration::from_secs(60), ..Options::default() };
    as_threads(&store, 2, options, |group| {
        *told[group.rank()].lock().unwrap() =
            call(&group).map_or_else(|error| error.to_string(), |()| String::new());
        let mut sum = floats(3);
        group.all_reduce(&mut sum, ReduceOp::Sum).unwrap();
        assert!(sum.equal(&(floats(3) * 2.0)));
    });
    told.map(|told| told.into_inner().unwrap())
}

#[test]
fn different_shapes_are_reported_on_both_ranks() {
    let told = told(|group| group.all_reduce(&mut floats(4 + 996 * group.rank() as i64), ReduceOp::Sum));

    let calls =
        ["all_reduce by Sum, shape [4] and kind Float", "all_reduce by Sum, shape [1000] and kind Float"];
    for (rank, other) in [(0, 1), (1, 0)] {
        assert_eq!(
            told[rank],
            format!(
                "all_reduce: rank {rank} calls {:?}, but rank {other} calls {:?}",
                calls[rank], calls[other]
            )
        );
    }
}

#[test]
fn kinds_reductions_and_roots_are_compared() {
    let kinds = told(|group| {
        let kind = [Kind::Float, Kind::Double][group.rank()];
        group.all_gather(&floats(2).to_kind(kind)).map(drop)
    });
    assert!(kinds[0].ends_with("but rank 1 calls \"all_gather, shape [2] and kind Double\""), "{}", kinds[0]);

    let reductions = told(|group| {
        group.reduce_scatter(&floats(2), [ReduceOp::Max, ReduceOp::Min][group.rank()]).map(drop)
    });
    assert!(reductions[1].contains("by Min") && reductions[1].contains("by Max"), "{}", reductions[1]);

    let roots = told(|group| group.broadcast(&mut floats(2), group.rank()));
    assert!(roots[0].contains("from rank 0") && roots[0].contains("from rank 1"), "{}", roots[0]);
}

#[test]
fn different_calls_are_reported() {
    let told = told(|group| match group.rank() {
        0 => group.barrier(),
        _ => group.all_gather_unequal(&floats(2)).map(drop),
    });
    assert_eq!(told[0], "barrier: rank 0 calls \"barrier\", but rank 1 calls \"all_gather_unequal\"");

    let rows = |group: &ProcessGroup| {
        let weight = floats(2).set_requires_grad(true);
        let reducer = Reducer::new(group, &[weight.shallow_clone()], ReducerOptions::default())?;
        match group.rank() {
            0 => group.barrier(),
            _ => reducer.backward(&weight.sum(Kind::Float)),
        }
    };
    let told = self::told(rows);
    assert_eq!(told[1], "backward: rank 1 calls \"backward\", but rank 0 calls \"barrier\"");
}

/// Without checks, a message that is too long aborts the receiver, and one that is too short fills only a part of the
/// tensor.
#[test]
fn a_message_with_another_shape_is_refused_by_the_receiver() {
    for (sent, expected) in [(1000, 4), (4, 1000), (0, 4), (4, 0)] {
        let told = told(|group| {
            if group.rank() == 0 {
                group.send(&floats(sent), 1, 3)?;
                return group.send(&(floats(5) * 7.0), 1, 3);
            }
            let refused = group.receive(&mut floats(expected), 0, 3);
            // The refused message does not block the next one.
            let mut next = floats(5);
            group.receive(&mut next, 0, 3)?;
            assert!(next.equal(&(floats(5) * 7.0)));
            refused
        });
        assert_eq!(
            told,
            [
                String::new(),
                format!(
                    "receive: rank 0 sent shape [{sent}] and kind Float, \
                     and rank 1 expected shape [{expected}] and kind Float"
                )
            ]
        );
    }
}

/// The same as with a Python rank, which cannot compare calls.
#[test]
fn calls_are_unchecked_unless_every_rank_enables_it() {
    let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(60)).unwrap();
    let options =
        |rank| Options { checked: rank == 0, timeout: Duration::from_secs(60), ..Options::default() };
    as_threads(&store, 2, options, |group| {
        let mut sum = floats(3);
        group.all_reduce(&mut sum, ReduceOp::Sum).unwrap();
        assert!(sum.equal(&(floats(3) * 2.0)));
    });
}

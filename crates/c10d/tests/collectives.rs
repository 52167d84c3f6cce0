//! Tests every collective on one to four Gloo ranks, with every supported kind, against values computed by hand.
#![allow(clippy::unwrap_used)]

use c10d::{Launch, Options, ProcessGroup, ReduceOp, TcpStore};
use ranks::{on_ranks, on_ranks_with, options};
use tch::{Device, Kind, Tensor};

const KINDS: [Kind; 12] = [
    Kind::Uint8,
    Kind::Int8,
    Kind::Int16,
    Kind::Int,
    Kind::Int64,
    Kind::Half,
    Kind::BFloat16,
    Kind::Float,
    Kind::Double,
    Kind::ComplexFloat,
    Kind::ComplexDouble,
    Kind::Bool,
];
const OPS: [ReduceOp; 8] = [
    ReduceOp::Sum,
    ReduceOp::Mean,
    ReduceOp::Product,
    ReduceOp::Min,
    ReduceOp::Max,
    ReduceOp::BitAnd,
    ReduceOp::BitOr,
    ReduceOp::BitXor,
];

#[test]
fn every_collective_works_on_one_rank() {
    on_ranks("every_collective_works_on_one_rank", 1, every_collective);
}

#[test]
fn every_collective_works_on_two_ranks() {
    on_ranks("every_collective_works_on_two_ranks", 2, every_collective);
}

#[test]
fn every_collective_works_on_three_ranks() {
    on_ranks("every_collective_works_on_three_ranks", 3, every_collective);
}

#[test]
fn every_collective_works_on_four_ranks() {
    on_ranks("every_collective_works_on_four_ranks", 4, every_collective);
}

#[test]
fn every_collective_works_on_three_checked_ranks() {
    let checked = Options { checked: true, ..options() };
    on_ranks_with("every_collective_works_on_three_checked_ranks", 3, &checked, every_collective);
}

fn every_collective(group: &ProcessGroup) {
    all_reduce(group);
    broadcast(group);
    all_gather(group);
    all_gather_unequal(group);
    all_gather_bytes(group);
    all_to_all(group);
    reduce_scatter(group);
    send_and_receive(group);
    barrier(group);
    refusals(group);
}

/// Rank r has the values r + 1, 2 and 5 + r: small enough for every kind and every number of ranks here.
fn numbers_of(rank: usize) -> [i64; 3] {
    [rank as i64 + 1, 2, 5 + rank as i64]
}

/// The reduction of these values, computed without tensors.
fn reduced(op: ReduceOp, world_size: usize) -> Vec<f64> {
    let column = |at: usize| (0..world_size).map(move |rank| numbers_of(rank)[at]);
    (0..3)
        .map(|at| match op {
            ReduceOp::Sum => column(at).sum::<i64>() as f64,
            ReduceOp::Mean => column(at).sum::<i64>() as f64 / world_size as f64,
            ReduceOp::Product => (column(at).product::<i64>()) as f64,
            ReduceOp::Min => column(at).min().unwrap() as f64,
            ReduceOp::Max => column(at).max().unwrap() as f64,
            ReduceOp::BitAnd => column(at).fold(-1, |a, b| a & b) as f64,
            ReduceOp::BitOr => column(at).fold(0, |a, b| a | b) as f64,
            ReduceOp::BitXor => column(at).fold(0, |a, b| a ^ b) as f64,
        })
        .collect()
}

fn tensor(numbers: &[f64], kind: Kind) -> Tensor {
    Tensor::from_slice(numbers).to_kind(kind)
}

fn own(rank: usize, kind: Kind) -> Tensor {
    Tensor::from_slice(&numbers_of(rank)).to_kind(kind)
}

fn assert_same(found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!(found.size(), expected.size(), "{what}");
    assert_eq!(found.kind(), expected.kind(), "{what}");
    assert!(
        found.equal(expected),
        "{what}: found {found:?} {}, expected {expected}",
        found.to_string(80).unwrap()
    );
}

fn all_reduce(group: &ProcessGroup) {
    let (rank, n) = (group.rank(), group.world_size());
    for kind in KINDS {
        for op in OPS.into_iter().filter(|op| op.takes(kind)) {
            let what = format!("all_reduce {op:?} of {kind:?} on {n}");
            // The product of 5, 6, 7 and 8 does not fit in 8 bits. It wraps, as in PyTorch.
            let expected = match kind {
                Kind::Uint8 | Kind::Int8 => {
                    let wide: Vec<i64> = reduced(op, n).iter().map(|&number| number as i64).collect();
                    Tensor::from_slice(&wide).to_kind(kind)
                }
                _ => tensor(&reduced(op, n), kind),
            };

            let mut found = own(rank, kind);
            group.all_reduce(&mut found, op).unwrap();
            assert_same(&found, &expected, &what);

            // A column of a table is not contiguous. The other column must not change.
            let table = Tensor::stack(&[own(rank, kind), own(rank, kind)], 1);
            let mut column = table.select(1, 0);
            assert!(!column.is_contiguous());
            group.all_reduce(&mut column, op).unwrap();
            assert_same(&table.select(1, 0), &expected, &what);
            assert_same(&table.select(1, 1), &own(rank, kind), &what);

            let mut empty = Tensor::zeros([0, 3], (kind, Device::Cpu));
            group.all_reduce(&mut empty, op).unwrap();
            assert_eq!(empty.size(), [0, 3], "{what}");
        }
    }
    // Two at the same time, waited for in reverse order.
    let (mut first, mut second) = (own(rank, Kind::Float), own(rank, Kind::Double));
    let works = [
        group.start_all_reduce(&mut first, ReduceOp::Sum).unwrap(),
        group.start_all_reduce(&mut second, ReduceOp::Max).unwrap(),
    ];
    works.into_iter().rev().for_each(|work| work.wait().unwrap());
    assert_same(&first, &tensor(&reduced(ReduceOp::Sum, n), Kind::Float), "the first of two");
    assert_same(&second, &tensor(&reduced(ReduceOp::Max, n), Kind::Double), "the second of two");
}

fn broadcast(group: &ProcessGroup) {
    for kind in KINDS {
        for root in 0..group.world_size() {
            let what = format!("broadcast of {kind:?} from {root}");
            let mut found = own(group.rank(), kind);
            group.broadcast(&mut found, root).unwrap();
            assert_same(&found, &own(root, kind), &what);

            let table = Tensor::stack(&[own(group.rank(), kind), own(group.rank(), kind)], 1);
            group.broadcast(&mut table.select(1, 1), root).unwrap();
            assert_same(&table.select(1, 1), &own(root, kind), &what);
            assert_same(&table.select(1, 0), &own(group.rank(), kind), &what);

            let mut number = Tensor::from(group.rank() as i64).to_kind(kind);
            group.broadcast(&mut number, root).unwrap();
            assert_same(&number, &Tensor::from(root as i64).to_kind(kind), &what);

            group.broadcast(&mut Tensor::zeros([2, 0], (kind, Device::Cpu)), root).unwrap();
        }
    }
}

fn all_gather(group: &ProcessGroup) {
    for kind in KINDS {
        let what = format!("all_gather of {kind:?}");
        let expected: Vec<Tensor> = (0..group.world_size()).map(|rank| own(rank, kind)).collect();

        let table = Tensor::stack(&[own(group.rank(), kind), own(group.rank(), kind)], 1);
        for mine in [own(group.rank(), kind), table.select(1, 0)] {
            let found = group.all_gather(&mine).unwrap();
            assert_eq!(found.len(), expected.len(), "{what}");
            found.iter().zip(&expected).for_each(|(found, expected)| assert_same(found, expected, &what));
        }

        let none = group.all_gather(&Tensor::zeros([0, 2], (kind, Device::Cpu))).unwrap();
        assert!(none.iter().all(|rows| rows.size() == [0, 2]), "{what}");
    }
}

/// Rank r has r rows.
fn all_gather_unequal(group: &ProcessGroup) {
    let rows_of = |rank: usize, kind: Kind| {
        Tensor::full([rank as i64, 2], rank as i64, (Kind::Int64, Device::Cpu)).to_kind(kind)
    };
    for kind in KINDS {
        let found = group.all_gather_unequal(&rows_of(group.rank(), kind)).unwrap();
        for (rank, rows) in found.iter().enumerate() {
            assert_same(rows, &rows_of(rank, kind), &format!("all_gather_unequal of {kind:?}"));
        }
        // Every second row of a larger tensor is not contiguous.
        let strided =
            Tensor::stack(&[rows_of(group.rank(), kind), rows_of(group.rank(), kind)], 1).select(1, 0);
        let found = group.all_gather_unequal(&strided).unwrap();
        for (rank, rows) in found.iter().enumerate() {
            assert_same(rows, &rows_of(rank, kind), &format!("all_gather_unequal of strided {kind:?}"));
        }
        // Over 4 KiB, which are sent in another way.
        let many = |rank: usize| rows_of(rank, kind).repeat([3000, 1]);
        let found = group.all_gather_unequal(&many(group.rank())).unwrap();
        for (rank, rows) in found.iter().enumerate() {
            assert_same(rows, &many(rank), &format!("all_gather_unequal of many rows of {kind:?}"));
        }
        let none = group.all_gather_unequal(&Tensor::zeros([0, 4], (kind, Device::Cpu))).unwrap();
        assert!(none.iter().all(|rows| rows.size() == [0, 4] && rows.kind() == kind));
    }
}

/// Messages that grow and shrink: within the frame of the last call, beyond it, and beyond its maximum. After 3634 and 3635
/// bytes a frame has 4096 and 4097, which are sent in different ways.
fn all_gather_bytes(group: &ProcessGroup) {
    let lengths = [0, 1, 100, 200, 3634, 4088, 3635, 4089, 5000, 5100, 5000, 0, 800_000, 1_200_000, 10, 300];
    let last = (group.world_size() - 1).max(1);
    for (call, n) in lengths.into_iter().enumerate() {
        let of_rank =
            |rank: usize| -> Vec<u8> { (0..n * rank / last).map(|at| (at + call + rank) as u8).collect() };
        let expected: Vec<_> = (0..group.world_size()).map(of_rank).collect();
        let found = group.all_gather_bytes(&of_rank(group.rank())).unwrap();
        assert!(found == expected, "all_gather_bytes of {n} bytes, call {call}");
    }
}

/// Rank r sends r + 3·s rows to rank s, with 3 bytes each; no rank sends any to rank 0 if it is rank 0.
fn all_to_all(group: &ProcessGroup) {
    let (rank, n) = (group.rank(), group.world_size());
    let n_rows = |from: usize, to: usize| from + 3 * to;
    let bytes = |from: usize, to: usize| (0..3 * n_rows(from, to)).map(move |at| (at + 10 * from + to) as u8);
    let [sent, received] = [|rank, other| (rank, other), |rank, other| (other, rank)].map(
        |pair: fn(usize, usize) -> (usize, usize)| {
            (0..n).map(|other| pair(rank, other)).map(|(from, to)| n_rows(from, to)).collect::<Vec<_>>()
        },
    );
    let of = |bytes: Vec<u8>| Tensor::from_slice(&bytes).view([-1, 3]);
    let rows = of((0..n).flat_map(|to| bytes(rank, to)).collect());
    let found = group.all_to_all(&rows, &sent, &received).unwrap();
    assert_same(&found, &of((0..n).flat_map(|from| bytes(from, rank)).collect()), "all_to_all");
    // No rank has a row.
    let none = Tensor::zeros([0, 3], (Kind::Uint8, Device::Cpu));
    assert_eq!(group.all_to_all(&none, &vec![0; n], &vec![0; n]).unwrap().size(), [0, 3]);
}

/// Every rank has n rows; each receives one row of their reduction.
fn reduce_scatter(group: &ProcessGroup) {
    let (rank, n) = (group.rank(), group.world_size());
    for kind in KINDS {
        for op in OPS.into_iter().filter(|op| op.takes(kind)) {
            let what = format!("reduce_scatter {op:?} of {kind:?} on {n}");
            let wide: Vec<f64> = reduced(op, n);
            let expected = match kind {
                Kind::Uint8 | Kind::Int8 => {
                    Tensor::from_slice(&wide.iter().map(|&x| x as i64).collect::<Vec<_>>()).to_kind(kind)
                }
                _ => tensor(&wide, kind),
            };
            let rows = own(rank, kind).unsqueeze(0).repeat([n as i64, 1]);
            let found = group.reduce_scatter(&rows, op).unwrap();
            assert_same(&found, &expected.unsqueeze(0), &what);
            // A transposed tensor is not contiguous. The input must not change.
            let transposed = rows.transpose(0, 1).contiguous().transpose(0, 1);
            let found = group.reduce_scatter(&transposed, op).unwrap();
            assert_same(&found, &expected.unsqueeze(0), &what);
            assert!(n == 1 || !transposed.is_contiguous());
            assert_same(&transposed, &rows, &what);

            let none = group.reduce_scatter(&Tensor::zeros([0, 2], (kind, Device::Cpu)), op).unwrap();
            assert_eq!((none.size(), none.kind()), (vec![0, 2], kind), "{what}");
        }
    }
}

/// In a ring, with every kind: each rank sends to the next and receives from the previous one.
fn send_and_receive(group: &ProcessGroup) {
    let (rank, n) = (group.rank(), group.world_size());
    if n == 1 {
        return;
    }
    let (next, before) = ((rank + 1) % n, (rank + n - 1) % n);
    for (tag, kind) in (0u16..).zip(KINDS) {
        let table = Tensor::stack(&[own(rank, kind), own(rank, kind)], 1);
        let mut arrived = Tensor::stack(&[own(rank, kind), own(rank, kind)], 1).select(1, 0);
        let sent = group.start_send(&table.select(1, 1), next, tag).unwrap();
        group.receive(&mut arrived, before, tag).unwrap();
        sent.wait().unwrap();
        assert_same(&arrived, &own(before, kind), &format!("received {kind:?}"));

        let sent = group.start_send(&Tensor::zeros([0], (kind, Device::Cpu)), next, tag).unwrap();
        group.receive(&mut Tensor::zeros([0], (kind, Device::Cpu)), before, tag).unwrap();
        sent.wait().unwrap();
    }
}

/// Each rank increments a counter before the barrier and must see the total after it.
fn barrier(group: &ProcessGroup) {
    let launch = Launch::from_env().unwrap();
    let store = TcpStore::connect(&launch.master_addr, launch.master_port, options().timeout).unwrap();
    for round in 0..10 {
        let key = format!("barrier {round}");
        store.add(&key, 1).unwrap();
        group.barrier().unwrap();
        assert_eq!(store.add(&key, 0).unwrap(), group.world_size() as i64);
    }
    // The store must stay until all ranks have read it.
    group.barrier().unwrap();
}

/// Invalid arguments are refused before anything is sent, and the group remains usable.
fn refusals(group: &ProcessGroup) {
    let (rank, n) = (group.rank(), group.world_size());
    let told = |result: c10d::Result<()>| result.unwrap_err().to_string();

    assert_eq!(
        told(group.all_reduce(&mut own(rank, Kind::Int16), ReduceOp::Sum)),
        "all_reduce: Sum does not take elements of kind Int16"
    );
    assert_eq!(
        told(group.all_reduce(&mut own(rank, Kind::Int64), ReduceOp::Mean)),
        "all_reduce: Mean does not take elements of kind Int64"
    );
    assert_eq!(
        told(group.broadcast(&mut own(rank, Kind::Float), n)),
        format!("broadcast: rank {n} is out of range; the world size is {n}")
    );
    assert_eq!(
        told(group.send(&own(rank, Kind::Float), rank, 0)),
        format!("send: rank {rank} is this process")
    );
    let rows = Tensor::zeros([n as i64 + 1, 2], (Kind::Float, Device::Cpu));
    if n > 1 {
        assert_eq!(
            told(group.reduce_scatter(&rows, ReduceOp::Sum).map(drop)),
            format!("reduce_scatter: shape [{}, 2], expected a first dimension that {n} ranks divide", n + 1)
        );
        // Every rank receives the same shapes, so every rank refuses.
        let mine = Tensor::zeros([2, 3 + rank as i64], (Kind::Float, Device::Cpu));
        let refused = told(group.all_gather_unequal(&mine).map(drop));
        assert!(refused.ends_with("only the first dimension may differ"), "{refused}");
    }
    let unequal = told(group.all_to_all(&rows.to_kind(Kind::Uint8), &vec![0; n], &vec![0; n]).map(drop));
    assert!(unequal.contains("rows to send as the first dimension"), "{unequal}");
    assert_eq!(
        told(group.all_gather_unequal(&Tensor::from(1.0)).map(drop)),
        "all_gather_unequal: shape [] of kind Double, expected 1 to 8 dimensions and a supported kind"
    );
    group.barrier().unwrap();
}

//! Measures all-reduces of increasing size in one rank of a group. Start it with torchrun, or set torchrun's
//! variables. Rank 0 prints one JSON line per size: bytes, median and fastest seconds of one call.
//! bench/all_reduce.py is the same program in Python.
//!
//! usage: torchrun --no-python --nproc-per-node 2 target/release/examples/all_reduce
#![allow(clippy::print_stdout, reason = "its result")]

use std::time::Instant;

use c10d::{Backend, Launch, Options, ProcessGroup, ReduceOp};
use tch::{Device, Kind, Tensor};

/// 4 bytes to 64 MiB.
const ELEMENTS: [i64; 7] = [1, 1 << 8, 1 << 12, 1 << 16, 1 << 18, 1 << 21, 1 << 24];

fn main() -> Result<(), c10d::Error> {
    let launch = Launch::from_env()?;
    let group = ProcessGroup::from_launch(&launch, Backend::Gloo, &Options::default())?;
    for elements in ELEMENTS {
        let mut tensor = Tensor::ones([elements], (Kind::Float, Device::Cpu));
        let n_calls = calls_of(elements);
        for _ in 0..n_calls / 10 + 1 {
            group.all_reduce(&mut tensor, ReduceOp::Max)?;
        }
        let mut times = Vec::with_capacity(n_calls);
        for _ in 0..n_calls {
            let begin = Instant::now();
            group.all_reduce(&mut tensor, ReduceOp::Max)?;
            times.push(begin.elapsed().as_secs_f64());
        }
        if group.rank() == 0 {
            times.sort_by(f64::total_cmp);
            let (median, fastest) = (times[n_calls / 2], times[0]);
            println!("{{\"bytes\": {}, \"median_s\": {median:e}, \"fastest_s\": {fastest:e}}}", 4 * elements);
        }
    }
    group.barrier()
}

/// Number of calls that take about a quarter of a second.
fn calls_of(elements: i64) -> usize {
    match elements {
        ..=0xfff => 3000,
        0x1000..=0x4_0000 => 300,
        _ => 15,
    }
}

//! Rust ranks and a Python rank in one group. Store, rendezvous and wire protocol are PyTorch's.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::env;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use c10d::{Launch, ProcessGroup, ReduceOp};
use ranks::{Rank, free_port, group, is_rank_of, placed, program_of, python};
use rustix::process::{Signal, getpid, kill_process};
use tch::{Device, Kind, Tensor};

const F32: (Kind, Device) = (Kind::Float, Device::Cpu);

fn peer(python: PathBuf) -> Command {
    let mut command = Command::new(python);
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peer.py"));
    command
}

/// The Rust counterpart of peer.py.
fn collectives(group: &ProcessGroup, python_rank: usize) {
    let (rank, n) = (group.rank(), group.world_size());

    let mut numbers = Tensor::from_slice(&[rank as f64 + 1.0, 10.0]);
    group.all_reduce(&mut numbers, ReduceOp::Sum).unwrap();
    assert_eq!(numbers, Tensor::from_slice(&[(n * (n + 1)) as f64 / 2.0, 10.0 * n as f64]));

    let mut words = Tensor::full([3], rank as i64, (Kind::Int64, Device::Cpu));
    group.broadcast(&mut words, 1).unwrap();
    assert_eq!(words, Tensor::from_slice(&[1i64, 1, 1]));

    let rows = group.all_gather(&Tensor::full([2], rank as f64, F32)).unwrap();
    let firsts: Vec<f64> = rows.iter().map(|row| row.double_value(&[0])).collect();
    assert_eq!(firsts, (0..n).map(|rank| rank as f64).collect::<Vec<_>>());

    if rank == 0 {
        group.send(&Tensor::arange(4, F32), python_rank, 5).unwrap();
        let mut doubled = Tensor::zeros([4], F32);
        group.receive(&mut doubled, python_rank, 6).unwrap();
        assert_eq!(doubled, Tensor::arange(4, F32) * 2.0);
    }
}

fn large_all_reduces(group: &ProcessGroup) {
    for exponent in (14..21).step_by(3) {
        let mut large = Tensor::full([1 << exponent], group.rank() as f64, F32);
        group.all_reduce(&mut large, ReduceOp::Max).unwrap();
        assert_eq!(large, Tensor::full([1 << exponent], group.world_size() as f64 - 1.0, F32));
    }
    group.barrier().unwrap();
}

/// A Python rank closes its connections when it exits, which discards data that others have not read. It therefore
/// exits last: it waits for a message from each of the others.
fn say_farewell(group: &ProcessGroup, python_rank: usize) {
    group.send(&Tensor::ones([1], F32), python_rank, 9).unwrap();
}

/// Under torchrun, which serves the store. It starts this program three times, and rank 2 replaces itself with
/// Python.
fn under_torchrun(test: &str, arguments: &[&str]) {
    let Some(python) = python("ranks in Python") else { return };
    if is_rank_of(test) {
        if env::var("RANK").unwrap() == "2" {
            panic!("the Python rank did not start: {}", peer(python).exec());
        }
        let group = group();
        collectives(&group, 2);
        large_all_reduces(&group);
        say_farewell(&group, 2);
        println!("rust rank {}: done", group.rank());
        return;
    }
    let (code, output) = torchrun(test, python, arguments);

    assert_eq!(code, Some(0), "{output}");
    for line in ["rust rank 0: done", "rust rank 1: done", "peer: done"] {
        assert!(output.contains(line), "no {line:?} in:\n{output}");
    }
}

#[test]
fn two_rust_ranks_and_a_python_rank_reduce_together_under_torchrun() {
    under_torchrun("two_rust_ranks_and_a_python_rank_reduce_together_under_torchrun", &["--standalone"]);
}

#[test]
fn rust_and_python_ranks_reduce_together_at_a_given_port() {
    let port = free_port().to_string();
    under_torchrun(
        "rust_and_python_ranks_reduce_together_at_a_given_port",
        &["--master-addr", "127.0.0.1", "--master-port", &port],
    );
}

/// Runs this program's test as three ranks under torchrun. Returns the exit code and the output.
fn torchrun(test: &str, python: PathBuf, arguments: &[&str]) -> (Option<i32>, String) {
    let of_ranks = program_of(test);
    let mut torchrun = Command::new(python);
    torchrun.args(["-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "3"]).args(arguments);
    // When a rank dies, torchrun ends the others with SIGTERM, and 30 s later with SIGKILL. Ignoring SIGTERM gives
    // them time to report the error.
    torchrun.args(["sh", "-c", "trap '' TERM; exec \"$0\" \"$@\""]);
    torchrun.arg(of_ranks.get_program()).args(of_ranks.get_args());
    torchrun.envs(of_ranks.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let (code, output) = Rank::start(0, torchrun).end();
    (code, output.join("\n"))
}

/// Rank 1 kills itself during a call in torchrun's first round. The others report this and fail.
fn die_once_under_torchrun(test: &str, arguments: &[&str]) {
    let Some(python) = python("ranks in Python") else { return };
    if is_rank_of(test) {
        let launch = Launch::from_env().unwrap();
        let group = group();
        let mut rows = Tensor::ones([1 << 10], F32);
        for step in 0..100 {
            if (launch.restarts, launch.rank, step) == (0, 1, 50) {
                kill_process(getpid(), Signal::KILL).unwrap();
            }
            if let Err(error) = group.all_reduce(&mut rows, ReduceOp::Max) {
                println!("rank {} of round {}: {error}", launch.rank, launch.restarts);
                panic!("this rank fails too");
            }
        }
        println!("rank {} of round {}: done", launch.rank, launch.restarts);
        return;
    }

    let (code, output) = torchrun(test, python, &[&["--max-restarts", "1"], arguments].concat());

    assert_eq!(code, Some(0), "{output}");
    for rank in [0, 2] {
        assert!(output.contains(&format!("rank {rank} of round 0: all_reduce: rank 1 (")), "{output}");
    }
    for rank in 0..3 {
        assert!(output.contains(&format!("rank {rank} of round 1: done")), "{output}");
    }
}

#[test]
fn a_killed_rank_under_torchrun_is_named_and_all_ranks_restart() {
    die_once_under_torchrun("a_killed_rank_under_torchrun_is_named_and_all_ranks_restart", &["--standalone"]);
}

#[test]
fn ranks_restart_at_the_same_port() {
    let port = free_port().to_string();
    die_once_under_torchrun(
        "ranks_restart_at_the_same_port",
        &["--master-addr", "127.0.0.1", "--master-port", &port],
    );
}

/// Without torchrun, rank 0 serves the store. Here rank 0 is Python, and a Rust rank leads the watch.
#[test]
fn rust_ranks_join_a_store_served_by_python() {
    const TEST: &str = "rust_ranks_join_a_store_served_by_python";
    if is_rank_of(TEST) {
        let group = group();
        let mut numbers = Tensor::from_slice(&[group.rank() as f64 + 1.0, 10.0]);
        group.all_reduce(&mut numbers, ReduceOp::Sum).unwrap();
        assert_eq!(numbers, Tensor::from_slice(&[6.0, 30.0]));
        say_farewell(&group, 0);
        return;
    }
    let Some(python) = python("ranks in Python") else { return };
    let port = free_port();
    let mut server = Command::new(python);
    server.arg("-c").arg(
        "import torch, torch.distributed as dist\n\
         dist.init_process_group('gloo')\n\
         t = torch.tensor([1.0, 10.0], dtype=torch.float64)\n\
         dist.all_reduce(t)\n\
         assert t.tolist() == [6.0, 30.0], t\n\
         [dist.recv(torch.zeros(1), src=rank, tag=9) for rank in (1, 2)]\n",
    );
    let mut ranks = vec![Rank::start(0, placed(server, 0, 3, port))];
    ranks.extend([1, 2].map(|rank| Rank::start(rank, placed(program_of(TEST), rank, 3, port))));

    for rank in &mut ranks {
        let (code, output) = rank.end();
        assert_eq!(code, Some(0), "rank {}: {}", rank.rank, output.join("\n"));
    }
}

/// A Python rank runs no watch. If every other rank is alive, the Python rank is reported as the lost one.
#[test]
fn a_killed_python_rank_is_named() {
    const TEST: &str = "a_killed_python_rank_is_named";
    if is_rank_of(TEST) {
        let group = group();
        collectives(&group, 2);
        let error = group.all_reduce(&mut Tensor::ones([1 << 16], F32), ReduceOp::Sum).unwrap_err();
        println!("error: {error}");
        return;
    }
    let Some(python) = python("ranks in Python") else { return };
    let port = free_port();
    let mut dying = peer(python);
    dying.arg("die");
    let mut ranks: Vec<Rank> =
        [0, 1].map(|rank| Rank::start(rank, placed(program_of(TEST), rank, 3, port))).into_iter().collect();
    ranks.push(Rank::start(2, placed(dying, 2, 3, port)));

    for rank in &mut ranks[..2] {
        let (code, output) = rank.end();
        let output = output.join("\n");
        assert_eq!(code, Some(0), "{output}");
        assert!(
            output.contains(
                "error: all_reduce: rank 2 has died: a connection failed, and it is the only unwatched rank"
            ),
            "{output}"
        );
    }
}

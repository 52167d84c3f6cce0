//! Kills or stops a rank during a call. Every other rank must return an error that names it: on a machine with time for
//! it, within ten seconds.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use c10d::{Backend, Error, Launch, Options, ProcessGroup, ReduceOp, Reducer, ReducerOptions, TcpStore};
use ranks::{Rank, group, is_rank_of, on_ranks, options, start};
use rustix::process::Signal;
use tch::{Device, Kind, Tensor};

const F32: (Kind, Device) = (Kind::Float, Device::Cpu);
/// Time limit for the errors of the other ranks. Beside other tests, a rank may have to wait for a core, so it is only
/// checked with PROVE=1. Without the watch, a call would take the limit of the group, 300 s.
fn limit() -> Duration {
    Duration::from_secs(if std::env::var_os("PROVE").is_some() { 10 } else { 100 })
}

#[test]
fn a_rank_killed_in_an_all_reduce_is_named() {
    lose("a_rank_killed_in_an_all_reduce_is_named", Signal::KILL, all_reduce);
}

#[test]
fn a_rank_stopped_in_an_all_reduce_is_named() {
    lose("a_rank_stopped_in_an_all_reduce_is_named", Signal::STOP, all_reduce);
}

#[test]
fn a_rank_killed_in_backward_is_named() {
    lose("a_rank_killed_in_backward_is_named", Signal::KILL, backward);
}

#[test]
fn a_rank_stopped_in_backward_is_named() {
    lose("a_rank_stopped_in_backward_is_named", Signal::STOP, backward);
}

#[test]
fn a_rank_killed_in_a_receive_is_named() {
    lose("a_rank_killed_in_a_receive_is_named", Signal::KILL, ring);
}

#[test]
fn a_rank_stopped_in_a_receive_is_named() {
    lose("a_rank_stopped_in_a_receive_is_named", Signal::STOP, ring);
}

#[test]
fn a_rank_killed_in_a_gather_is_named() {
    lose("a_rank_killed_in_a_gather_is_named", Signal::KILL, gather);
}

#[test]
fn a_rank_stopped_at_a_barrier_is_named() {
    lose("a_rank_stopped_at_a_barrier_is_named", Signal::STOP, barrier);
}

fn all_reduce(group: &ProcessGroup) -> Result<(), Error> {
    let mut rows = Tensor::ones([1 << 18], F32);
    steps(|| group.all_reduce(&mut rows, ReduceOp::Max))
}

fn backward(group: &ProcessGroup) -> Result<(), Error> {
    let weights: Vec<Tensor> =
        (0..4).map(|_| Tensor::ones([256, 256], F32).set_requires_grad(true)).collect();
    let parameters: Vec<Tensor> = weights.iter().map(Tensor::shallow_clone).collect();
    let options =
        ReducerOptions { first_bucket_bytes: 1, bucket_bytes: 1, find_unused: true, ..Default::default() };
    let reducer = Reducer::new(group, &parameters, options)?;
    let rows = Tensor::ones([64, 256], F32);
    steps(|| {
        let loss =
            weights.iter().fold(rows.shallow_clone(), |x, weight| x.matmul(weight).tanh()).sum(Kind::Float);
        reducer.backward(&loss)
    })
}

fn ring(group: &ProcessGroup) -> Result<(), Error> {
    let (rank, n) = (group.rank(), group.world_size());
    let rows = Tensor::ones([1 << 16], F32);
    let mut arrived = Tensor::zeros([1 << 16], F32);
    steps(|| {
        let sent = group.start_send(&rows, (rank + 1) % n, 3)?;
        group.receive(&mut arrived, (rank + n - 1) % n, 3)?;
        sent.wait()
    })
}

fn gather(group: &ProcessGroup) -> Result<(), Error> {
    let rows = Tensor::ones([1 << 10, 1 + group.rank() as i64], F32).view([-1, 1]);
    steps(|| group.all_gather_unequal(&rows).map(drop))
}

fn barrier(group: &ProcessGroup) -> Result<(), Error> {
    steps(|| group.barrier())
}

/// Repeats a step until it fails. Prints a line after some steps.
fn steps(mut step: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    for number in 0.. {
        if number == 20 {
            println!("under way");
        }
        step()?;
    }
    Ok(())
}

/// The group of this process, with the default limit of silence.
fn impatient_group() -> ProcessGroup {
    let options = Options { silence: Options::default().silence, ..options() };
    ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, &options).unwrap()
}

/// Starts three ranks in an endless loop of `body`, stops or kills one of them, and checks the others. Runs once with
/// rank 0, which serves the store and may lead the watch, and once with another rank.
fn lose(test: &str, signal: Signal, body: fn(&ProcessGroup) -> Result<(), Error>) {
    if is_rank_of(test) {
        let group = impatient_group();
        let error = body(&group).unwrap_err();
        println!("error: {error}");
        assert!(error.is_worth_retrying());
        // A second call fails immediately with the same error.
        let begin = Instant::now();
        let again = group.all_reduce(&mut Tensor::ones([1], F32), ReduceOp::Sum).unwrap_err();
        println!("again: {again} after {} s", begin.elapsed().as_secs());
        assert_eq!(again.lost_rank(), error.lost_rank());
        assert_eq!(group.check().unwrap_err().lost_rank(), error.lost_rank());
        return;
    }
    for lost in [0, 2] {
        lose_one_of(&mut start(test, 3), lost, signal);
    }
}

/// Kills or stops a rank while all are in the loop. Each of the others must print an error that names it, and exit
/// with code 0.
fn lose_one_of(ranks: &mut [Rank], lost: usize, signal: Signal) {
    for rank in &mut *ranks {
        rank.wait_for("under way");
    }
    let begin = Instant::now();
    ranks[lost].signal(signal);

    for rank in ranks.iter_mut().filter(|rank| rank.rank != lost) {
        rank.wait_for("error: ");
    }
    let took = begin.elapsed();

    let how = if signal == Signal::KILL { "has died" } else { "has been silent for 5 s" };
    let named = format!(": rank {lost} (");
    for rank in ranks.iter_mut().filter(|rank| rank.rank != lost) {
        let (code, output) = rank.end();
        let mut errors = output.iter().filter(|line| line.starts_with("error: "));
        assert!(
            errors.any(|line| line.contains(&named) && line.contains(how)),
            "rank {} did not name rank {lost}:\n{}",
            rank.rank,
            output.join("\n")
        );
        assert_eq!(code, Some(0), "{}", output.join("\n"));
    }
    assert!(took < limit(), "it took {took:?}");
}

/// Rank 1 joins first and leads the watch. Rank 0 serves the store.
#[test]
fn a_killed_rank_is_named_whichever_rank_leads_the_watch() {
    const TEST: &str = "a_killed_rank_is_named_whichever_rank_leads_the_watch";
    if is_rank_of(TEST) {
        let launch = Launch::from_env().unwrap();
        let store = TcpStore::from_launch(&launch, options().timeout).unwrap();
        if launch.rank != 1 {
            store.wait(&["c10d/watch/0"], options().timeout).unwrap();
        }
        let options = Options { silence: Options::default().silence, ..options() };
        let group =
            ProcessGroup::new(&store, launch.rank, launch.world_size, Backend::Gloo, &options).unwrap();
        println!("error: {}", all_reduce(&group).unwrap_err());
        return;
    }
    for (lost, signal) in [(1, Signal::KILL), (1, Signal::STOP), (0, Signal::KILL), (2, Signal::STOP)] {
        lose_one_of(&mut start(TEST, 3), lost, signal);
    }
}

/// A child process inherits Gloo's connections and keeps them open after the rank's death.
#[test]
fn a_killed_rank_with_a_live_child_is_named() {
    const TEST: &str = "a_killed_rank_with_a_live_child_is_named";
    if is_rank_of(TEST) {
        let group = group();
        if group.rank() == 0 {
            #[expect(clippy::zombie_processes, reason = "this process dies first")]
            let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
            println!("child {}", child.id());
        }
        println!("error: {}", all_reduce(&group).unwrap_err());
        return;
    }
    let mut ranks = start(TEST, 2);
    let child: i32 = ranks[0].wait_for("child ").rsplit(' ').next().unwrap().parse().unwrap();
    lose_one_of(&mut ranks, 0, Signal::KILL);
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, Signal::KILL).unwrap();
}

#[test]
fn a_rank_that_left_is_named_in_later_calls() {
    const TEST: &str = "a_rank_that_left_is_named_in_later_calls";
    if is_rank_of(TEST) {
        let group = group();
        group.barrier().unwrap();
        if group.rank() == 1 {
            drop(group);
            println!("left");
        } else {
            let error = group.all_reduce(&mut Tensor::ones([1], F32), ReduceOp::Sum).unwrap_err();
            println!("error: {error}");
        }
        return;
    }
    let mut ranks: Vec<Rank> = start(TEST, 2);
    let (code, output) = ranks[0].end();
    let output = output.join("\n");
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains("error: all_reduce: rank 1 (") && output.contains("has left the group"),
        "{output}"
    );
}

#[test]
fn mismatched_calls_end_at_the_time_limit() {
    const TEST: &str = "mismatched_calls_end_at_the_time_limit";
    if is_rank_of(TEST) {
        let launch = Launch::from_env().unwrap();
        // Returns when both ranks are connected. The time limit of the group also applies to joining.
        let store = TcpStore::from_launch(&launch, options().timeout).unwrap();
        let hasty = Options { timeout: Duration::from_secs(8), ..options() };
        let group = ProcessGroup::new(&store, launch.rank, 2, Backend::Gloo, &hasty).unwrap();
        if group.rank() == 0 {
            let error = group.all_reduce(&mut Tensor::ones([1], F32), ReduceOp::Sum).unwrap_err();
            println!("error: {error}");
            assert!(matches!(error, Error::TimedOut { limit_s: 8, .. }));
            // NCCL's calls fail after they have returned, so a later check reports what failed.
            let error = group.check().unwrap_err();
            assert!(matches!(error, Error::Communication { .. }), "{error}");
            store.set("timed out", b"").unwrap();
            // The store ends with this rank, so the other must finish first.
            store.wait(&["heard"], options().timeout).unwrap();
        } else {
            // The other rank never makes this call, but it is alive.
            store.wait(&["timed out"], options().timeout).unwrap();
            store.set("heard", b"").unwrap();
        }
        return;
    }
    let mut ranks = start(TEST, 2);
    for rank in &mut ranks {
        let (code, output) = rank.end();
        assert_eq!(code, Some(0), "{}", output.join("\n"));
    }
}

#[test]
fn ranks_that_did_not_join_are_named() {
    let store = TcpStore::serve("127.0.0.1", 0, Duration::from_secs(10)).unwrap();
    let options = Options { timeout: Duration::from_secs(2), ..Options::default() };

    let error = ProcessGroup::new(&store, 1, 3, Backend::Gloo, &options).unwrap_err();

    assert_eq!(
        error.to_string(),
        "ranks 0, 2 of 3 did not join the group within 2 s; check that they are running and can reach this machine"
    );
}

/// The scheduler, a debugger or a closed laptop may pause a process for less than the silence limit.
#[test]
fn a_short_pause_is_not_reported_as_a_loss() {
    const TEST: &str = "a_short_pause_is_not_reported_as_a_loss";
    if is_rank_of(TEST) {
        let options = Options { silence: Duration::from_secs(10), ..options() };
        let group = ProcessGroup::from_launch(&Launch::from_env().unwrap(), Backend::Gloo, &options).unwrap();
        let mut rows = Tensor::ones([1 << 10], F32);
        for step in 0..4000 {
            if step == 20 {
                println!("under way");
            }
            group.all_reduce(&mut rows, ReduceOp::Max).unwrap();
        }
        return;
    }
    let mut ranks = start(TEST, 2);
    ranks[1].wait_for("under way");
    ranks[1].signal(Signal::STOP);
    // Longer than two heartbeats, and a quarter of the silence limit, because the machine may pause the rank in addition.
    // Only time can show the result.
    std::thread::sleep(Duration::from_millis(2500));
    ranks[1].signal(Signal::CONT);
    for rank in &mut ranks {
        let (code, output) = rank.end();
        assert_eq!(code, Some(0), "{}", output.join("\n"));
    }
}

/// Connections of other programs to the leader's port do not join and have no effect.
#[test]
fn unauthenticated_connections_do_not_disturb_the_watch() {
    use std::io::Write;
    use std::net::TcpStream;
    on_ranks("unauthenticated_connections_do_not_disturb_the_watch", 2, |group| {
        let launch = Launch::from_env().unwrap();
        let store =
            TcpStore::connect(&launch.master_addr, launch.master_port, Duration::from_secs(60)).unwrap();
        let offer = String::from_utf8(store.get("c10d/watch/0").unwrap()).unwrap();
        let port: u16 = offer.split(' ').nth(2).unwrap().parse().unwrap();
        if group.rank() == 0 {
            for said in [
                &b"GET / HTTP/1.1\r\n\r\n"[..],
                &[0; 4000],
                &[255; 64],
                &[0, 1, 0, 0, 0, 2, 0, b'x', b'y'],
                b"",
            ] {
                let mut connection = TcpStream::connect(("127.0.0.1", port)).unwrap();
                connection.write_all(said).unwrap();
            }
        }
        for _ in 0..200 {
            group.all_reduce(&mut Tensor::ones([1 << 10], F32), ReduceOp::Sum).unwrap();
        }
        group.check().unwrap();
    });
}

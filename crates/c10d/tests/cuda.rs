//! NCCL in a group of one rank and in a group of one rank per GPU. On a machine without a GPU, only the error message
//! is tested.
#![allow(clippy::unwrap_used)]

use std::env;
use std::process::Command;

use c10d::{Backend, Error, Launch, Options, ProcessGroup, ReduceOp, Reducer, ReducerOptions, TcpStore};
use ranks::{free_port, is_rank_of, options, skipped, start};
use tch::{Device, Kind, Tensor};

/// Loads CUDA before any use of a GPU, as a program must.
fn has_gpu() -> bool {
    c10d::load_cuda().is_ok() && tch::Cuda::device_count() > 0
}

#[test]
fn a_missing_gpu_is_reported() {
    let backend = Backend::Nccl { device: 99 };
    let error = ProcessGroup::from_launch(&Launch::alone(), backend, &options()).unwrap_err().to_string();

    let known = [
        // PyTorch with CUDA is installed.
        format!("CUDA: GPU 99 not found; this machine has {}", tch::Cuda::device_count()),
        // The CPU build of PyTorch is installed, and the program was built with CUDA's headers.
        "CUDA: libtorch_cuda.so was not found next to libtorch_cpu.so; \
         install it with bootstrap/laptop.sh --cuda, or set C10D_LIBTORCH_CUDA"
            .to_owned(),
        // The program was built without CUDA's headers.
        "CUDA: this program was built without its NCCL part, because CUDA's headers were not found; \
         install them with bootstrap/laptop.sh --cuda and build again"
            .to_owned(),
    ];
    assert!(known.contains(&error), "{error}");
}

/// PyTorch remembers that there is no CUDA as soon as the store asks for its version.
#[test]
fn cuda_is_loaded_before_the_store_is_opened() {
    const NAME: &str = "cuda_is_loaded_before_the_store_is_opened";
    const LIBRARY: &str = "C10D_LIBTORCH_CUDA";
    if env::var_os(LIBRARY).is_none_or(|path| path != "/missing") {
        let mut child = Command::new(env::current_exe().unwrap());
        let ended = child.args(["--exact", NAME]).env(LIBRARY, "/missing").output().unwrap();
        assert!(ended.status.success(), "{ended:?}");
        return;
    }
    // Nobody listens there.
    let launch = Launch { rank: 1, world_size: 2, master_port: free_port(), ..Launch::alone() };
    let error = ProcessGroup::from_launch(&launch, Backend::Nccl { device: 0 }, &options()).unwrap_err();
    assert!(matches!(error, Error::Cuda { .. }), "{error}");
}

/// On each machine: without CUDA, PyTorch cannot wait for any GPU.
#[test]
fn a_gpu_that_fails_is_an_error_of_pytorch() {
    let error = c10d::wait_for(Device::Cuda(99)).unwrap_err();

    assert!(matches!(error, Error::Torch { .. }) && !error.is_worth_retrying(), "{error}");
    assert!(error.to_string().starts_with("waiting for the GPU: "), "{error}");
}

#[test]
fn every_nccl_call_works_in_a_group_of_one() {
    if !has_gpu() {
        skipped("NCCL: this machine has no GPU");
        return;
    }
    let device = Device::Cuda(0);
    let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Nccl { device: 0 }, &options()).unwrap();
    let rows = || Tensor::arange(6, (Kind::Float, device)).view([2, 3]);

    for op in [ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Product, ReduceOp::Min, ReduceOp::Max] {
        let mut reduced = rows();
        group.all_reduce(&mut reduced, op).unwrap();
        assert!(reduced.equal(&rows()), "{op:?}");
        assert!(group.reduce_scatter(&rows(), op).unwrap().equal(&rows()), "{op:?}");
    }
    let mut column = rows().transpose(0, 1);
    group.all_reduce(&mut column, ReduceOp::Sum).unwrap();
    assert!(column.equal(&rows().transpose(0, 1)));
    let mut copied = rows();
    group.broadcast(&mut copied, 0).unwrap();
    assert!(copied.equal(&rows()));
    assert!(group.all_gather(&rows()).unwrap()[0].equal(&rows()));
    assert!(group.all_gather_unequal(&rows()).unwrap()[0].equal(&rows()));
    assert_eq!(group.all_gather_unequal(&rows().narrow(0, 0, 0)).unwrap()[0].size(), [0, 3]);
    group.barrier().unwrap();

    let weight = Tensor::ones([1000, 10], (Kind::Float, device)).set_requires_grad(true);
    let reducer = Reducer::new(&group, &[weight.shallow_clone()], ReducerOptions::default()).unwrap();
    reducer.backward(&(&weight * 3.0).sum(Kind::Float)).unwrap();
    assert!(weight.grad().equal(&Tensor::full([1000, 10], 3.0, (Kind::Float, device))));
    let [bucket] = reducer.timeline().unwrap()[..] else { panic!("one bucket") };
    assert!(!bucket.ready.is_zero());
    group.check().unwrap();
}

#[test]
fn nccl_refuses_invalid_arguments() {
    if !has_gpu() {
        skipped("NCCL: this machine has no GPU");
        return;
    }
    let group = ProcessGroup::from_launch(&Launch::alone(), Backend::Nccl { device: 0 }, &options()).unwrap();

    let on_cpu =
        group.all_reduce(&mut Tensor::ones([2], (Kind::Float, Device::Cpu)), ReduceOp::Sum).unwrap_err();
    assert_eq!(on_cpu.to_string(), "all_reduce: the tensor is on Cpu, expected Cuda(0)");
    let nobody = group.broadcast(&mut Tensor::ones([2], (Kind::Float, Device::Cuda(0))), 1).unwrap_err();
    assert_eq!(nobody.to_string(), "broadcast: rank 1 is out of range; the world size is 1");
    let sent = group.send(&Tensor::ones([2], (Kind::Float, Device::Cuda(0))), 0, 0).unwrap_err().to_string();
    assert!(sent.starts_with("send: NCCL ignores tags, "), "{sent}");
}

/// One rank per GPU: each call returns the values of all ranks.
#[test]
fn nccl_reduces_over_all_gpus() {
    const NAME: &str = "nccl_reduces_over_all_gpus";
    if !is_rank_of(NAME) {
        let n_gpus = if has_gpu() { usize::try_from(tch::Cuda::device_count()).unwrap() } else { 0 };
        if n_gpus < 2 {
            skipped(&format!("NCCL over several GPUs: this machine has {n_gpus}"));
            return;
        }
        let ended: Vec<_> = start(NAME, n_gpus).iter_mut().map(ranks::Rank::end).collect();
        assert!(ended.iter().all(|(code, _)| *code == Some(0)), "{ended:?}");
        return;
    }
    let launch = Launch::from_env().unwrap();
    let (rank, world_size) = (launch.rank, launch.world_size as i64);
    let group = ProcessGroup::from_launch(&launch, Backend::Nccl { device: rank }, &options()).unwrap();
    let place = (Kind::Float, Device::Cuda(rank));
    let own = || Tensor::full([2 * world_size, 3], rank as f64, place);
    let sum = (world_size * (world_size - 1) / 2) as f64;

    let mut reduced = own();
    group.all_reduce(&mut reduced, ReduceOp::Sum).unwrap();
    assert!(reduced.equal(&Tensor::full([2 * world_size, 3], sum, place)));
    assert!(
        group.reduce_scatter(&own(), ReduceOp::Sum).unwrap().equal(&Tensor::full([2, 3], sum, place)),
        "rank {rank}"
    );
    let mut copied = own();
    group.broadcast(&mut copied, 1).unwrap();
    assert!(copied.equal(&own().fill_(1.0)));
    let all = group.all_gather(&own()).unwrap();
    let unequal = group.all_gather_unequal(&own().narrow(0, 0, rank as i64)).unwrap();
    for (at, (gathered, unequal)) in all.iter().zip(&unequal).enumerate() {
        assert!(gathered.equal(&Tensor::full([2 * world_size, 3], at as f64, place)), "rank {at}");
        assert_eq!(unequal.size(), [at as i64, 3]);
    }
    let weight = Tensor::ones([1000, 10], place).set_requires_grad(true);
    let reducer = Reducer::new(&group, &[weight.shallow_clone()], ReducerOptions::default()).unwrap();
    reducer.backward(&(&weight * rank as f64).sum(Kind::Float)).unwrap();
    assert!(weight.grad().equal(&Tensor::full([1000, 10], sum, place)));
    group.barrier().unwrap();
}

/// The second of two ranks never joins: NCCL itself would wait forever.
#[test]
fn nccl_without_its_peers_ends_at_the_time_limit() {
    if !has_gpu() {
        skipped("NCCL: this machine has no GPU");
        return;
    }
    let store = TcpStore::serve("127.0.0.1", free_port(), options().timeout).unwrap();
    let options = Options { timeout: std::time::Duration::from_secs(3), ..options() };

    let error =
        ProcessGroup::new(&store, 0, 2, Backend::Nccl { device: 0 }, &options).unwrap_err().to_string();

    assert!(error.starts_with("rank 1 of 2 did not join the group within 3 s"), "{error}");
}

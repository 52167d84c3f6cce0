//! Ranks that share a batch compute the same gradients as one process with the whole batch.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use c10d::{
    Backend, GradientReduction, Launch, Options, ProcessGroup, ReduceOp, Reducer, ReducerOptions, TcpStore,
};
use ranks::{on_ranks, options};
use tch::{Device, Kind, Tensor};

const ROWS: i64 = 12;
const TOKENS: i64 = 7;
const EMBEDDING: i64 = 10;
const HIDDEN: i64 = 8;
const WORDS: i64 = 50;
const F64: (Kind, Device) = (Kind::Double, Device::Cpu);

/// An embedding, a two-layer LSTM and a linear head, in float64, equal on every rank.
struct Model {
    embedding: Tensor,   // [WORDS, EMBEDDING]
    lstm: Vec<Tensor>,   // per layer: [4H, in], [4H, H], [4H], [4H]
    head: Tensor,        // [1, HIDDEN]
    unused_by_0: Tensor, // [3], added to the outputs of every rank but 0
    never_used: Tensor,  // [2]
}

impl Model {
    fn new() -> Self {
        tch::manual_seed(7);
        let weight = |shape: &[i64]| (Tensor::randn(shape, F64) * 0.3).set_requires_grad(true);
        let layer = |inputs: i64| {
            [
                weight(&[4 * HIDDEN, inputs]),
                weight(&[4 * HIDDEN, HIDDEN]),
                weight(&[4 * HIDDEN]),
                weight(&[4 * HIDDEN]),
            ]
        };
        Self {
            embedding: weight(&[WORDS, EMBEDDING]),
            lstm: [layer(EMBEDDING), layer(HIDDEN)].concat_tensors(),
            head: weight(&[1, HIDDEN]),
            unused_by_0: weight(&[3]),
            never_used: weight(&[2]),
        }
    }

    fn used(&self) -> Vec<Tensor> {
        let mut all = vec![self.embedding.shallow_clone()];
        all.extend(self.lstm.iter().map(Tensor::shallow_clone));
        all.push(self.head.shallow_clone());
        all
    }

    fn all(&self) -> Vec<Tensor> {
        let mut all = self.used();
        all.push(self.unused_by_0.shallow_clone());
        all.push(self.never_used.shallow_clone());
        all
    }

    /// The sum of the rows' losses divided by the size of the whole batch.
    fn loss(&self, tokens: &Tensor, labels: &Tensor) -> Tensor {
        let rows = tokens.size()[0];
        let embedded = Tensor::embedding(&self.embedding, tokens, -1, false, false); // [B, T, E]
        let zeros = Tensor::zeros([2, rows, HIDDEN], F64);
        let (_, last, _) =
            embedded.lstm(&[zeros.shallow_clone(), zeros], &self.lstm, true, 2, 0.0, false, false, true);
        let logits = last.select(0, 1).linear(&self.head, None::<Tensor>).squeeze_dim(1); // [B]
        let losses =
            logits.binary_cross_entropy_with_logits::<Tensor>(labels, None, None, tch::Reduction::Sum);
        losses / ROWS as f64
    }

    fn gradients(&self) -> Vec<Tensor> {
        self.all().iter().map(|parameter| parameter.grad()).collect()
    }
}

trait ConcatTensors {
    fn concat_tensors(self) -> Vec<Tensor>;
}

impl<const N: usize, const M: usize> ConcatTensors for [[Tensor; M]; N] {
    fn concat_tensors(self) -> Vec<Tensor> {
        self.into_iter().flatten().collect()
    }
}

/// The whole batch, equal on every rank.
fn batch() -> (Tensor, Tensor) {
    let tokens = (Tensor::arange(ROWS * TOKENS, (Kind::Int64, Device::Cpu)) * 17)
        .remainder(WORDS)
        .view([ROWS, TOKENS]);
    let labels = Tensor::arange(ROWS, (Kind::Int64, Device::Cpu)).remainder(2).to_kind(Kind::Double);
    (tokens, labels)
}

/// This rank's rows. Ranks have different numbers of rows, and the last of four ranks has none.
fn share(group: &ProcessGroup, rows: &Tensor) -> Tensor {
    let counts: &[i64] = match group.world_size() {
        1 => &[12],
        2 => &[5, 7],
        _ => &[6, 1, 5, 0],
    };
    let begin: i64 = counts[..group.rank()].iter().sum();
    rows.narrow(0, begin, counts[group.rank()])
}

/// Every element must be within 1e-12, relative to the tensor's largest element.
fn assert_close(found: &[Tensor], expected: &[Tensor]) {
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.defined(), expected.defined(), "gradient {at}");
        if !expected.defined() {
            continue;
        }
        let largest = expected.abs().max().double_value(&[]);
        let difference = (found - expected).abs().max().double_value(&[]);
        assert!(difference <= 1e-12 * largest, "gradient {at}: {difference:e} of {largest:e}");
    }
}

fn one_bucket() -> ReducerOptions {
    ReducerOptions::default()
}

/// One parameter per bucket.
fn many_buckets() -> ReducerOptions {
    ReducerOptions { first_bucket_bytes: 1, bucket_bytes: 1, ..ReducerOptions::default() }
}

fn gradients_equal_one_process(group: &ProcessGroup) {
    let (tokens, labels) = batch();
    let whole = Model::new();
    whole.loss(&tokens, &labels).backward();

    for (options, n_buckets) in [(one_bucket(), 1), (many_buckets(), 10)] {
        let model = Model::new();
        let reducer = Reducer::new(group, &model.used(), options).unwrap();
        let own_loss = || model.loss(&share(group, &tokens), &share(group, &labels));

        reducer.backward(&own_loss()).unwrap();
        assert_close(&model.gradients(), &whole.gradients());
        model.used().iter_mut().for_each(Tensor::zero_grad);
        reducer.backward(&own_loss()).unwrap();
        assert_close(&model.gradients(), &whole.gradients());
        assert_eq!(reducer.timeline().unwrap().len(), n_buckets);
    }
}

#[test]
fn one_rank_gives_the_gradients_of_one_process() {
    on_ranks("one_rank_gives_the_gradients_of_one_process", 1, gradients_equal_one_process);
}

#[test]
fn two_ranks_give_the_gradients_of_one_process() {
    on_ranks("two_ranks_give_the_gradients_of_one_process", 2, gradients_equal_one_process);
}

#[test]
fn four_ranks_one_without_rows_give_the_gradients_of_one_process() {
    on_ranks("four_ranks_one_without_rows_give_the_gradients_of_one_process", 4, gradients_equal_one_process);
}

#[test]
fn a_mean_is_the_sum_divided_by_the_ranks() {
    on_ranks("a_mean_is_the_sum_divided_by_the_ranks", 2, |group| {
        let weight = Tensor::from_slice(&[1.0f64, 2.0]).set_requires_grad(true);
        let options = ReducerOptions { reduction: GradientReduction::Mean, ..ReducerOptions::default() };
        let reducer = Reducer::new(group, &[weight.shallow_clone()], options).unwrap();

        reducer.backward(&(&weight * (group.rank() as f64 + 1.0)).sum(Kind::Double)).unwrap();

        assert_eq!(weight.grad(), Tensor::from_slice(&[1.5f64, 1.5]));
    });
}

#[test]
fn a_parameter_unused_on_one_rank_gets_the_other_gradients() {
    on_ranks("a_parameter_unused_on_one_rank_gets_the_other_gradients", 2, |group| {
        let (tokens, labels) = batch();
        let whole = Model::new();
        let extra = |model: &Model| model.unused_by_0.sum(Kind::Double) * 3.0;
        (whole.loss(&tokens, &labels) + extra(&whole)).backward();

        let model = Model::new();
        let options = ReducerOptions { find_unused: true, ..many_buckets() };
        let reducer = Reducer::new(group, &model.all(), options).unwrap();
        for _ in 0..3 {
            model.all().iter_mut().for_each(Tensor::zero_grad);
            let loss = model.loss(&share(group, &tokens), &share(group, &labels));
            let loss = if group.rank() == 0 { loss } else { loss + extra(&model) };
            reducer.backward(&loss).unwrap();

            let (unused, used) = (model.gradients(), whole.gradients());
            assert_close(&unused, &used);
            assert!(!model.never_used.grad().defined());
        }
    });
}

#[test]
fn an_unused_parameter_is_an_immediate_error() {
    on_ranks("an_unused_parameter_is_an_immediate_error", 2, |group| {
        let (used, unused) = (weight_of(1.0), weight_of(2.0));
        let parameters = [used.shallow_clone(), unused.shallow_clone()];
        let reducer = Reducer::new(group, &parameters, many_buckets()).unwrap();

        let refused = reducer.backward(&used.sum(Kind::Double)).unwrap_err();

        assert_eq!(
            refused.to_string(),
            "backward: this rank's loss did not use every parameter, and `find_unused` is not set"
        );
        // The same if all parameters are unused and `find_unused` is set: otherwise the other ranks would wait.
        let options = ReducerOptions { find_unused: true, ..many_buckets() };
        let reducer = Reducer::new(group, &[unused], options).unwrap();
        let refused = reducer.backward(&weight_of(1.0).sum(Kind::Double)).unwrap_err();
        assert_eq!(refused.to_string(), "backward: this rank's loss used no parameter at all");
    });
}

/// Dropping a reducer after the group has failed must not affect the model.
#[test]
fn a_model_works_after_its_reducer_failed() {
    on_ranks("a_model_works_after_its_reducer_failed", 2, |group| {
        let weight = weight_of(1.0);
        // The time limit also applies to joining.
        let options = Options { name: "failing".to_owned(), timeout: Duration::from_secs(8), ..options() };
        let store = store_of_launch();
        let failing = ProcessGroup::new(&store, group.rank(), 2, Backend::Gloo, &options).unwrap();
        let reducer = Reducer::new(&failing, &[weight.shallow_clone()], ReducerOptions::default()).unwrap();
        if group.rank() == 0 {
            // The other rank does not call backward.
            assert!(reducer.backward(&weight.sum(Kind::Double)).is_err());
        }
        drop(reducer);
        drop(failing);
        group.barrier().unwrap();
        let mut weight = weight;
        weight.zero_grad();

        let reducer = Reducer::new(group, &[weight.shallow_clone()], ReducerOptions::default()).unwrap();
        reducer.backward(&weight.sum(Kind::Double)).unwrap();
        assert_eq!(weight.grad(), Tensor::from_slice(&[2.0f64]));
    });
}

#[test]
fn tensors_that_are_not_parameters_are_refused() {
    on_ranks("tensors_that_are_not_parameters_are_refused", 1, |group| {
        let told = |parameters: &[Tensor]| {
            Reducer::new(group, parameters, ReducerOptions::default()).unwrap_err().to_string()
        };
        // PyTorch's engine itself would crash.
        assert_eq!(told(&[]), "making a reducer: no parameters");
        assert_eq!(
            told(&[weight_of(1.0), Tensor::from_slice(&[1.0f64])]),
            "making a reducer: parameter 1 is not a leaf tensor that requires a gradient"
        );
        let weight = weight_of(1.0);
        let reducer = Reducer::new(group, &[weight.shallow_clone()], ReducerOptions::default()).unwrap();
        assert!(reducer.backward(&Tensor::from_slice(&[1.0f64])).is_err());
        reducer.backward(&weight.sum(Kind::Double)).unwrap();
    });
}

fn weight_of(number: f64) -> Tensor {
    Tensor::from_slice(&[number]).set_requires_grad(true)
}

fn store_of_launch() -> TcpStore {
    let launch = Launch::from_env().unwrap();
    TcpStore::connect(&launch.master_addr, launch.master_port, options().timeout).unwrap()
}

#[test]
fn a_plain_backward_only_accumulates() {
    on_ranks("a_plain_backward_only_accumulates", 2, |group| {
        let weight = Tensor::from_slice(&[1.0f64]).set_requires_grad(true);
        let reducer = Reducer::new(group, &[weight.shallow_clone()], ReducerOptions::default()).unwrap();

        (&weight * (group.rank() as f64 + 1.0)).sum(Kind::Double).backward();
        assert_eq!(weight.grad(), Tensor::from_slice(&[group.rank() as f64 + 1.0]));

        reducer.backward(&(&weight * 10.0).sum(Kind::Double)).unwrap();
        assert_eq!(weight.grad(), Tensor::from_slice(&[1.0 + 2.0 + 20.0]));
    });
}

#[test]
fn different_models_are_refused_on_every_rank() {
    on_ranks("different_models_are_refused_on_every_rank", 2, |group| {
        let weight = Tensor::zeros([3 + group.rank() as i64], F64).set_requires_grad(true);

        let refused = Reducer::new(group, &[weight], ReducerOptions::default()).unwrap_err().to_string();

        let (own, other) = (group.rank(), 1 - group.rank());
        assert_eq!(
            refused,
            format!(
                "making a reducer: parameter 0 has shape [{}] and kind Double on rank {own} \
                 and shape [{}] and kind Double on rank {other}",
                3 + own,
                3 + other
            )
        );
    });
}

/// Large layers in a deep stack: the last layer's gradient is ready long before the first layer's.
#[test]
fn communication_overlaps_with_backward() {
    on_ranks("communication_overlaps_with_backward", 2, |group| {
        const LAYERS: usize = 8;
        const WIDTH: i64 = 512;
        tch::manual_seed(1);
        let layers: Vec<Tensor> = (0..LAYERS)
            .map(|_| (Tensor::randn([WIDTH, WIDTH], F64) * 0.01).set_requires_grad(true))
            .collect();
        let parameters: Vec<Tensor> = layers.iter().map(Tensor::shallow_clone).collect();
        let reducer = Reducer::new(group, &parameters, many_buckets()).unwrap();
        let rows = Tensor::randn([1024, WIDTH], F64);

        // On a busy machine, the engine's threads may be late in some steps.
        let mut overlapped = false;
        for _ in 0..300 {
            let loss =
                layers.iter().fold(rows.shallow_clone(), |x, layer| x.matmul(layer).tanh()).sum(Kind::Double);
            reducer.backward(&loss).unwrap();
            let timeline = reducer.timeline().unwrap();

            assert_eq!(timeline.len(), LAYERS);
            assert!(timeline.windows(2).all(|pair| pair[0].ready <= pair[1].ready));
            assert!(timeline.iter().all(|bucket| bucket.reduced.unwrap() >= bucket.ready));
            // The first bucket was reduced on all ranks before this rank computed its last gradient.
            overlapped |= timeline[0].reduced.unwrap() < timeline[LAYERS - 1].ready;
            let mut on_all = Tensor::from_slice(&[i32::from(overlapped)]);
            group.all_reduce(&mut on_all, ReduceOp::Min).unwrap();
            if on_all.int64_value(&[0]) == 1 {
                return;
            }
        }
        panic!("no overlap in 300 steps");
    });
}

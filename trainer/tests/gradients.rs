//! The gradients of a batch do not depend on its division among ranks.
#![allow(clippy::unwrap_used)]

use batches::random::Purpose;
use batches::{
    Arrangement, Batch, Dealing, Division, Loader, Loading, Part, Reading, RowWeight, Rows, ShareSchedule,
    Shares,
};
use c10d::{ProcessGroup, Reducer, ReducerOptions};
use fixtures::reviews;
use ranks::on_ranks;
use runs::recipe::{
    ClassWeights, ClassifierSettings, Decay, Dropout, Family, LstmSettings, NextWordSettings, Objective,
    Pool, Precision, Recipe, Rule, Schedule, Wire,
};
use tch::{Device, Tensor};
use trainer::families::Model;
use trainer::gradients::share_loss;
use trainer::inputs::Inputs;
use trainer::train::step::InStep;

const BATCH: usize = 24;
const SPLITS: u64 = 12;

#[test]
fn shares_of_one_rank_give_the_batchs_gradients() {
    on_ranks("shares_of_one_rank_give_the_batchs_gradients", 1, splits_agree);
}

#[test]
fn shares_of_two_ranks_give_the_batchs_gradients() {
    on_ranks("shares_of_two_ranks_give_the_batchs_gradients", 2, splits_agree);
}

#[test]
fn shares_of_three_ranks_give_the_batchs_gradients() {
    on_ranks("shares_of_three_ranks_give_the_batchs_gradients", 3, splits_agree);
}

#[test]
fn shares_of_four_ranks_give_the_batchs_gradients() {
    on_ranks("shares_of_four_ranks_give_the_batchs_gradients", 4, splits_agree);
}

fn classifier(objective: Objective, pool: Pool) -> Family {
    Family::Classifier(ClassifierSettings { objective, pool, linear: 4 })
}

fn recipe(family: Family, bidirectional: bool) -> Recipe {
    let model = LstmSettings { ids: 52, embedding: 6, hidden: 5, layers: 2, bidirectional };
    Recipe {
        dataset: String::new(),
        plan: None,
        test_fraction: 0.0,
        validation_fraction: 0.0,
        validation: None,
        sample: None,
        fold: None,
        tokens_max: 20,
        model,
        embedding_std: 1.0,
        family,
        row_weight: RowWeight::Log,
        batch_rows: BATCH,
        accumulate: 1,
        sync_every: 1,
        wire: Wire::Full,
        balance: None,
        epochs: 1,
        rule: Rule::Adam,
        weight_decay: 0.0,
        schedule: Schedule {
            base_rate: 0.1,
            base_batch_rows: 1,
            batch_rows: 1,
            warm_up_steps: 0,
            decay: Decay::Constant,
        },
        clip: None,
        dropout: Dropout::default(),
        precision: Precision::F64,
        seed: 5,
        patience: None,
        stop_loss: None,
        soft_labels: None,
        unlabelled: None,
        with_ngrams: false,
        threshold: None,
        calibration: None,
    }
}

fn batches(rows: &Rows, dealing: Dealing) -> Vec<Batch> {
    let loading = Loading {
        part: Part::Training,
        arrangement: Arrangement::Shuffled { seed: 3, epoch: 0 },
        batch_rows: BATCH,
        from_step: 0,
        dealing,
        row_weight: RowWeight::Log,
        loaders: 1,
        ahead: None,
    };
    Loader::start(rows, loading).unwrap().map(Result::unwrap).collect()
}

/// Random shares of BATCH rows. Some shares are often empty.
fn random_shares(world_size: usize, split: u64) -> Shares {
    let mut random = Purpose::Order.stream(&[99, world_size as u64, split]);
    let mut cuts: Vec<usize> = (1..world_size).map(|_| random.below(BATCH as u64 + 1) as usize).collect();
    if split.is_multiple_of(3) {
        cuts.iter_mut().for_each(|cut| *cut = if *cut > BATCH / 2 { BATCH } else { 0 });
    }
    cuts.sort_unstable();
    cuts.insert(0, 0);
    cuts.push(BATCH);
    Shares::of(cuts.windows(2).map(|pair| pair[1] - pair[0]).collect())
}

fn splits_agree(group: &ProcessGroup) {
    let (_folder, path) = reviews(100);
    let reading = Reading {
        division: Division::by_fractions(0.0, 0.0).unwrap(),
        tokens_max: 20,
        memory_bytes: 1 << 20,
    };
    let rows = Rows::open(&path, &reading).unwrap();
    for recipe in [
        recipe(classifier(Objective::Label { pos_weight: 0.2 }, Pool::Last), false),
        recipe(classifier(Objective::FiveRatings, Pool::MeanMax), true),
        recipe(
            classifier(
                Objective::Classes { class_weights: ClassWeights::of(&[1.0, 3.0, 0.5]).unwrap() },
                Pool::MeanMax,
            ),
            false,
        ),
        recipe(Family::NextWord(NextWordSettings { candidates: 30 }), false),
    ] {
        let whole = gradients(&recipe, &batches(&rows, Dealing::alone()), |loss, _| loss.backward());
        for split in 0..SPLITS {
            let shares = random_shares(group.world_size(), split);
            let schedule = ShareSchedule::new(shares.clone());
            let dealing = Dealing::Shares { rank: group.rank(), world_size: group.world_size(), schedule };
            let mut reducer = None;
            // 100 rows are four whole batches and a short one, of which the last ranks may have none.
            let found = gradients(&recipe, &batches(&rows, dealing), |loss, model| {
                reducer
                    .get_or_insert_with(|| {
                        Reducer::new(group, model.parameters().tensors(), ReducerOptions::default()).unwrap()
                    })
                    .backward(loss)
                    .unwrap();
            });
            for (found, expected) in found.iter().zip(&whole) {
                let largest = expected.abs().max().double_value(&[]);
                let difference = (found - expected).abs().max().double_value(&[]);
                assert!(difference <= 1e-12 * largest, "{shares:?}: {difference:e} of {largest:e}");
            }
        }
    }
}

/// A batch that is gathered from tokens on the device equals a batch that is copied to the device. Tested on the
/// CPU, where gathering works in the same way.
#[test]
fn batches_that_are_gathered_on_the_device_are_those_that_are_copied() {
    let (_folder, path) = reviews(100);
    let division = Division::by_fractions(0.3, 0.0).unwrap();
    let rows = Rows::open(&path, &Reading { division, tokens_max: 20, memory_bytes: 1 << 20 }).unwrap();
    let resident = Inputs::resident(Device::Cpu, rows.table(Part::Training).unwrap()).unwrap();
    let copied = Inputs::copied(Device::Cpu);
    let batches = batches(&rows, Dealing::alone());
    assert!(batches.len() > 2);
    for batch in &batches {
        let (found, expected) =
            (resident.tokens_and_lengths(batch).unwrap(), copied.tokens_and_lengths(batch).unwrap());
        assert_eq!(found, expected);
    }
}

/// The gradients of each batch, in order.
fn gradients(recipe: &Recipe, batches: &[Batch], mut backward: impl FnMut(&Tensor, &Model)) -> Vec<Tensor> {
    let model = Model::new(recipe, Device::Cpu).unwrap();
    let inputs = Inputs::copied(Device::Cpu);
    let mut all = Vec::new();
    for batch in batches {
        let rows = batch.n_rows_global as u64;
        let step = InStep {
            rows,
            is_last_batch: true,
            is_exchanged: true,
            masks: 0,
            generator: 0,
            candidates: [0, 0, batch.step],
        };
        let loss = share_loss(recipe, &model, &inputs, batch, step).unwrap();
        backward(&loss.of_step, &model);
        for mut gradient in model.parameters().gradients() {
            all.push(gradient.copy());
            let _ = gradient.zero_();
        }
    }
    all
}

//! The flags that have no effect because of other flags.

use training::arguments::idle::{Idle, idle, of_labelled};
use training::places::is_dataset;

use crate::arguments::{
    BalanceName, Computing, DecayName, DeviceName, Evaluate, Fit, LossName, LstmFlags, Optimisation,
    OptimizerName, TrainingFlags,
};
use crate::defaults::Defaults;

pub(super) fn of_fit(fit: &Fit) -> Vec<Idle> {
    let is_other = !matches!(fit.loss, LossName::Label);
    let is_untested = fit.test.is_none() && fit.folds.is_none() && fit.test_fraction == 0.0;
    let of_fit = vec![
        idle("pos_weight", is_other, "--loss label"),
        idle("class_weight", is_other, "--loss label"),
        idle("soft_labels", is_other, "--loss label"),
        idle("unlabelled", is_other, "--loss label"),
        idle("with_ngrams", is_other, "--loss label"),
        idle("calibrate", matches!(fit.loss, LossName::Rating), "--loss label or five-ratings"),
        idle("test_every", is_untested, "a test split"),
    ];
    [of_fit, of_training(&fit.lstm, &fit.optimisation, &fit.training)].concat()
}

pub(super) fn of_training(
    lstm: &LstmFlags,
    optimisation: &Optimisation,
    training: &TrainingFlags,
) -> Vec<Idle> {
    let Optimisation { batch, accumulate, base_batch, optimizer, decay, balance, .. } = *optimisation;
    // The rows are not counted yet, so the default batch size, which depends on their number, is unknown
    // here.
    let defaults = Defaults::of(optimisation.recipe, 0);
    let rows = batch.map_or(u64::MAX, |batch| u64::from(batch) * u64::from(accumulate));
    // The warm-up starts from the rate of the base batch. There is no warm-up unless the base batch is smaller than
    // the batch.
    let climbs = base_batch.is_some_and(|base| base < rows);
    let steps = decay.unwrap_or(defaults.decay) == DecayName::Step;
    let has_decisions = matches!(balance, BalanceName::Dynamic | BalanceName::PerEpoch);
    let has_momentum =
        matches!(optimizer.unwrap_or(defaults.optimizer), OptimizerName::Sgd | OptimizerName::Lars);
    let computing = &training.running.computing;
    let mut all = vec![
        idle("momentum", !has_momentum, "--optimizer sgd or lars"),
        idle("decay_epochs", !steps, "--decay step"),
        idle("decay_factor", !steps, "--decay step"),
        idle("warm_up", !climbs, "a --base-batch of fewer rows than a step"),
        idle("dropout_layers", lstm.layers.unwrap_or(defaults.layers) == 1, "--layers 2 or more"),
        idle("balance_every", !has_decisions, "--balance dynamic or per-epoch"),
        idle("decisions", balance != BalanceName::Replay, "--balance replay"),
        idle("device_memory", computing.device == DeviceName::Cpu, "a GPU"),
    ];
    all.extend(of_computing(computing));
    all
}

pub(super) fn of_evaluation(evaluate: &Evaluate) -> Vec<Idle> {
    let n_datasets = evaluate.files.iter().filter(|file| is_dataset(&file.to_string())).count();
    let mut all = of_labelled(evaluate.files.len() > n_datasets);
    all.push(idle("loaders", n_datasets == 0, "a dataset"));
    all.extend(of_computing(&evaluate.running.computing));
    all
}

pub(super) fn of_computing(computing: &Computing) -> Vec<Idle> {
    vec![
        idle("compute", computing.device == DeviceName::Cuda, "--device cpu or auto"),
        idle("no_tf32", computing.device == DeviceName::Cpu, "a GPU"),
    ]
}

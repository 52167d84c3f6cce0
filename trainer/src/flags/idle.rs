//! The flags that have no effect because of other flags.

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};

use crate::arguments::{
    Arguments, BalanceName, Computing, DecayName, DeviceName, Embed, EmbedModel, Fit, LossName, LstmFlags,
    Ngrams, Optimisation, OptimizerName, Pip, Serve, TrainingFlags, Vectors, VectorsAction,
};
use crate::defaults::Defaults;

/// A flag, and whether it has no effect because of other flags.
#[derive(Clone, Copy)]
pub(super) struct Idle {
    id: &'static str,
    is_idle: bool,
    /// The flags with which this flag has an effect.
    needs: &'static str,
}

pub(super) fn idle(id: &'static str, is_idle: bool, needs: &'static str) -> Idle {
    Idle { id, is_idle, needs }
}

pub(super) fn of_embed(embed: &Embed) -> Vec<Idle> {
    let is_other = embed.model != EmbedModel::CharLstm;
    let of_lstm =
        ["hidden", "char_dim", "outputs", "batch"].map(|id| idle(id, is_other, "--model char-lstm"));
    let of_skip_gram = ["char_ngrams", "buckets", "step_pairs", "average_every"]
        .map(|id| idle(id, !is_other, "--model skip-gram"));
    let is_alone = embed.served.servers.is_empty();
    let of_servers =
        ["token_file", "tls_ca", "tls_certificate", "tls_key"].map(|id| idle(id, is_alone, "--async"));
    // The training folder is that of worker 0.
    let is_other = embed.served.worker.number > 0;
    let of_folder =
        ["out", "resume", "force", "similarity", "held_out"].map(|id| idle(id, is_other, "--worker 0/N"));
    [&of_lstm[..], &of_skip_gram[..], &of_servers[..], &of_folder[..]].concat()
}

pub(super) fn of_lines(ngrams: &Ngrams) -> Vec<Idle> {
    let is_of_bytes = ngrams.format.is_fasttext();
    vec![idle("invalid_utf8_max", is_of_bytes, "--format json, csv, tsv or polarity-csv")]
}

pub(super) fn of_serve(serve: &Serve) -> Vec<Idle> {
    let ids = [
        "listen",
        "shard",
        "workers",
        "staleness",
        "remove_after",
        "memory",
        "log_sync",
        "snapshot_every",
        "until_done",
        "json",
    ];
    ids.map(|id| idle(id, serve.folder.is_none(), "--folder")).to_vec()
}

pub(super) fn of_vectors(vectors: &Vectors) -> Vec<Idle> {
    match &vectors.action {
        VectorsAction::Pip(Pip { corpus, .. }) => {
            ["window", "shift", "words"].map(|id| idle(id, corpus.is_empty(), "--corpus")).to_vec()
        }
        _ => Vec::new(),
    }
}

pub(super) fn of_fit(fit: &Fit) -> Vec<Idle> {
    let is_other = !matches!(fit.loss, LossName::Label);
    let is_untested = fit.test.is_none() && fit.folds.is_none() && fit.test_fraction == 0.0;
    let of_fit = vec![
        idle("pos_weight", is_other, "--loss label"),
        idle("class_weight", is_other, "--loss label"),
        idle("soft_labels", is_other, "--loss label"),
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

pub(super) fn of_computing(computing: &Computing) -> Vec<Idle> {
    vec![idle("compute", computing.device == DeviceName::Cuda, "--device cpu or auto")]
}

/// Refuses a flag without an effect if it was passed.
pub(super) fn refuse_idle(idle: &[Idle], given: &ArgMatches) -> Result<(), clap::Error> {
    let is_given = |id: &str| {
        given.try_contains_id(id).is_ok() && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    match idle.iter().find(|Idle { id, is_idle, .. }| *is_idle && is_given(id)) {
        None => Ok(()),
        Some(Idle { id, needs, .. }) => {
            let flag = id.replace('_', "-");
            let message = format!("--{flag} has no effect without {needs}; omit --{flag}, or pass {needs}");
            Err(Arguments::command().error(ErrorKind::ArgumentConflict, message))
        }
    }
}

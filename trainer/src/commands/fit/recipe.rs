//! From arguments and the number of rows to a recipe. What no option gives is a default of `--recipe`.

use tch::Device;

use super::steps_of_epoch;
use crate::arguments::{DecayName, Fit, LossName, OptimizerName, PosWeight};
use crate::defaults::{Defaults, rate};
use crate::error::{Error, Result};
use batches::{Division, Part, Rows};
use report::whole;
use runs::recipe::{
    ClassifierSettings, Decay, Dropout, Family, LstmSettings, NextWordSettings, Objective, Precision, Recipe,
    Rule, Schedule,
};

/// How a dataset is divided; a training without labels has no use for held-back rows.
pub(super) fn division(arguments: &Fit) -> Result<Division> {
    Ok(Division::by_fractions(test_fraction(arguments), validation_fraction(arguments))?)
}

fn test_fraction(arguments: &Fit) -> f64 {
    if arguments.test.is_some() || arguments.pretrain { 0.0 } else { arguments.test_fraction }
}

fn validation_fraction(arguments: &Fit) -> f64 {
    let of_recipe = if arguments.pretrain { 0.0 } else { arguments.recipe.validation_fraction() };
    arguments.validation_fraction.unwrap_or(of_recipe)
}

/// The options that decide what comes out, each with its value.
pub(super) fn recipe(arguments: &Fit, rows: &Rows, device: Device) -> Result<Recipe> {
    let census = rows.census(Part::Training);
    let defaults = Defaults::of(arguments.recipe, census.rows);
    let batch = arguments.batch.unwrap_or(defaults.batch);
    let epochs = arguments.epochs.unwrap_or(defaults.epochs);
    let (batch_rows, accumulate) = (batch as usize, arguments.accumulate as usize);
    let steps_of_epoch = steps_of_epoch(census.rows, batch_rows, accumulate);
    let step_rows = u64::from(batch) * u64::from(arguments.accumulate);
    let optimizer = arguments.optimizer.unwrap_or(defaults.optimizer);
    let schedule = Schedule {
        base_rate: arguments.rate.unwrap_or_else(|| rate(optimizer)),
        base_batch_rows: arguments.base_batch.unwrap_or(step_rows),
        batch_rows: step_rows,
        warm_up_steps: arguments.warm_up,
        decay: decay(arguments, &defaults, steps_of_epoch, u64::from(epochs)),
    };
    schedule.check().map_err(|(name, found, expected)| setting(name, &found, &expected))?;
    let precision = Precision::from(arguments.precision);
    if precision == Precision::Bf16 && device == Device::Cpu {
        return Err(setting("--precision", "bf16", "f32 or f64 on a processor; bf16 is for GPUs"));
    }
    let validation_fraction = checked_validation_fraction(arguments, rows)?;
    Ok(Recipe {
        dataset: rows.id_digest().to_string(),
        plan: rows.plan(Part::Training, batch_rows)?,
        test_fraction: test_fraction(arguments),
        validation_fraction,
        tokens_max: arguments.tokens,
        model: model(arguments, &defaults, rows),
        family: family(arguments, &defaults, rows),
        row_weight: arguments.row_weight.into(),
        batch_rows,
        accumulate,
        epochs,
        rule: match optimizer {
            OptimizerName::Sgd => Rule::Sgd { momentum: share("--momentum", arguments.momentum)? },
            OptimizerName::Adam => Rule::Adam,
            OptimizerName::Adamw => Rule::AdamW,
        },
        weight_decay: not_negative("--weight-decay", arguments.weight_decay)?,
        schedule,
        clip: arguments.clip.map(|norm| positive("--clip", norm)).transpose()?,
        dropout: dropout(arguments, &defaults)?,
        precision,
        seed: arguments.seed,
        patience: arguments.patience,
        stop_loss: arguments.stop_loss,
    })
}

/// What was chosen by the number of training rows, if anything was.
pub(super) fn chosen(arguments: &Fit, recipe: &Recipe, rows: &Rows) -> Option<String> {
    let training_rows = rows.census(Part::Training).rows;
    if !Defaults::of(arguments.recipe, training_rows).by_rows {
        return None;
    }
    let batch = arguments.batch.is_none().then(|| format!("batch {}", recipe.batch_rows));
    let epochs = arguments.epochs.is_none().then(|| format!("epochs {}", recipe.epochs));
    let is_dropout_chosen = arguments.dropout_words.is_none() && !arguments.pretrain;
    let words = is_dropout_chosen.then(|| format!("dropout-words {}", recipe.dropout.words));
    let chosen: Vec<String> = [batch, epochs, words].into_iter().flatten().collect();
    let rows = whole(training_rows);
    (!chosen.is_empty()).then(|| format!("{}: chosen for {rows} training rows", chosen.join(", ")))
}

/// 0 where the default leaves no row for validation; a share that was asked for must leave some.
fn checked_validation_fraction(arguments: &Fit, rows: &Rows) -> Result<f64> {
    let fraction = validation_fraction(arguments);
    if fraction == 0.0 && arguments.patience.is_some() {
        return Err(setting("--validation-fraction", "0", "more than 0, for --patience"));
    }
    if arguments.validation_fraction.is_none() && arguments.patience.is_none() {
        return Ok(if rows.census(Part::Validation).rows == 0 { 0.0 } else { fraction });
    }
    if fraction > 0.0 {
        rows.check_rows(Part::Validation)?;
    }
    Ok(fraction)
}

fn decay(arguments: &Fit, defaults: &Defaults, steps_of_epoch: u64, epochs: u64) -> Decay {
    let end_step = steps_of_epoch * epochs;
    match arguments.decay.unwrap_or(defaults.decay) {
        DecayName::Constant => Decay::Constant,
        DecayName::Step => Decay::Step {
            every_steps: arguments.decay_epochs * steps_of_epoch,
            factor: arguments.decay_factor,
        },
        DecayName::Linear => Decay::Linear { end_step },
        DecayName::Cosine => Decay::Cosine { end_step },
    }
}

fn model(arguments: &Fit, defaults: &Defaults, rows: &Rows) -> LstmSettings {
    LstmSettings {
        ids: rows.vocabulary().largest_id() as i64 + 1,
        embedding: arguments.embedding.unwrap_or(defaults.embedding),
        hidden: arguments.hidden.unwrap_or(defaults.hidden),
        layers: usize::from(arguments.layers.unwrap_or(defaults.layers)),
        bidirectional: arguments.bidirectional,
    }
}

/// A pretraining has no head, and learns nothing of a word that it does not see.
fn dropout(arguments: &Fit, defaults: &Defaults) -> Result<Dropout> {
    let of_classifier = |default: f64| if arguments.pretrain { 0.0 } else { default };
    let words = arguments.dropout_words.unwrap_or_else(|| of_classifier(defaults.dropout_words));
    let head = arguments.dropout_head.unwrap_or_else(|| of_classifier(defaults.dropout_head));
    Ok(Dropout {
        words: share("--dropout-words", words)?,
        embedding: share("--dropout-embedding", arguments.dropout_embedding)?,
        layers: share("--dropout-layers", arguments.dropout_layers.unwrap_or(defaults.dropout_layers))?,
        head: share("--dropout-head", head)?,
    })
}

fn family(arguments: &Fit, defaults: &Defaults, rows: &Rows) -> Family {
    if arguments.pretrain {
        return Family::NextWord(NextWordSettings { candidates: arguments.candidates });
    }
    let pos_weight = arguments.pos_weight.unwrap_or(PosWeight::Number(defaults.pos_weight));
    let objective = match arguments.loss {
        LossName::Label => Objective::Label { pos_weight: number(pos_weight, rows) },
        LossName::Rating => Objective::Rating,
        LossName::FiveRatings => Objective::FiveRatings,
    };
    Family::Classifier(ClassifierSettings {
        objective,
        pool: arguments.pool.unwrap_or(defaults.pool).into(),
        linear: arguments.linear.unwrap_or(defaults.linear),
    })
}

fn number(pos_weight: PosWeight, rows: &Rows) -> f64 {
    match pos_weight {
        PosWeight::Number(weight) => weight,
        // There are rows of both labels.
        PosWeight::Balanced => rows.census(Part::Training).balanced_pos_weight().unwrap_or(1.0),
    }
}

fn setting(setting: &'static str, found: &str, expected: &str) -> Error {
    Error::Setting { setting, found: found.to_owned(), expected: expected.to_owned() }
}

fn share(name: &'static str, value: f64) -> Result<f64> {
    if (0.0..1.0).contains(&value) {
        Ok(value)
    } else {
        Err(setting(name, &value.to_string(), "0 or more, and less than 1"))
    }
}

fn positive(name: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() && value > 0.0 {
        Ok(value)
    } else {
        Err(setting(name, &value.to_string(), "more than 0"))
    }
}

fn not_negative(name: &'static str, value: f64) -> Result<f64> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(setting(name, &value.to_string(), "0 or more"))
    }
}

//! Builds the recipe from arguments and the number of rows. Options that are not set have the defaults of `--recipe`.

use std::path::Path;

use batches::{Division, Fold, Part, Rows, balance};
use report::whole;
use runs::recipe::{
    ClassWeights, ClassifierSettings, Decay, Dropout, Family, LstmSettings, NextWordSettings, Objective,
    Precision, Recipe, Rule, Schedule, Unlabelled, Wire, first_difference,
};
use scoring::ThresholdRule;
use serde_json::{Value, json};
use tch::Device;
use training::arguments::ClassWeight;
use training::out::read_settings;

use crate::arguments::{
    BalanceName, DecayName, Fit, LossName, LstmFlags, Optimisation, OptimizerName, PosWeight, Pretrain,
};
use crate::compute::Compute;
use crate::defaults::{Defaults, rate};
use crate::error::{Error, Result};
use crate::families::classifier::unsupported;
use crate::train::splits::Splits;

/// Why no weight is computed from labels.
const WITHOUT_COUNTS: &str = "numbers with --soft-labels, because rows are not learned by their labels";

/// Steps between two decisions of `--balance dynamic`.
const BALANCE_STEPS: u64 = 10;

/// The division of a dataset into splits.
pub(super) fn division(arguments: &Fit) -> Result<Division> {
    let whole = Division::by_fractions(test_fraction(arguments), validation_fraction(arguments))?;
    Ok(whole.sampled(arguments.sample))
}

/// The division of a dataset for one fold.
pub(super) fn division_of(arguments: &Fit, fold: Fold) -> Result<Division> {
    let whole = Division::of_fold(fold, test_fraction(arguments), validation_fraction(arguments))?;
    Ok(whole.sampled(arguments.sample))
}

fn test_fraction(arguments: &Fit) -> f64 {
    if arguments.test.is_some() { 0.0 } else { arguments.test_fraction }
}

fn validation_fraction(arguments: &Fit) -> f64 {
    if arguments.validation.is_some() {
        return 0.0;
    }
    arguments.validation_fraction.unwrap_or_else(|| arguments.optimisation.recipe.validation_fraction())
}

/// The recipe of a classifier.
pub(super) fn of_fit(arguments: &Fit, splits: Splits<'_>, device: Device) -> Result<Recipe> {
    let rows = splits.rows;
    check_choice(arguments, splits)?;
    let Fit { lstm, optimisation, .. } = arguments;
    let defaults = Defaults::of(optimisation.recipe, training_rows(arguments, rows)?);
    let family = Family::Classifier(classifier(arguments, &defaults, rows)?);
    let words = arguments.dropout_words.unwrap_or(defaults.dropout_words);
    let head = arguments.dropout_head.unwrap_or(defaults.dropout_head);
    let recipe = recipe(lstm, optimisation, &defaults, [words, head], family, rows, device)?;
    Ok(Recipe {
        model: LstmSettings { bidirectional: arguments.bidirectional, ..recipe.model },
        test_fraction: test_fraction(arguments),
        validation_fraction: checked_validation_fraction(arguments, rows)?,
        validation: splits.validation.map(|validation| validation.id_digest().to_string()),
        sample: arguments.sample.threshold().map(|_| arguments.sample.to_string()),
        soft_labels: splits.soft.and_then(|soft| Some(soft.of_dataset()?.sha256())),
        unlabelled: splits.unlabelled.zip(splits.soft).and_then(|(rows, soft)| {
            Some(Unlabelled {
                dataset: rows.id_digest().to_string(),
                soft_labels: soft.of_unlabelled()?.sha256(),
            })
        }),
        patience: arguments.patience,
        with_ngrams: checked_ngrams(arguments, splits)?,
        threshold: arguments.choice.rule(),
        calibration: arguments.choice.method(),
        ..recipe
    })
}

/// The recipe of a next-word model. The model cannot learn to predict a dropped token, so token dropout is off
/// by default.
pub(super) fn of_pretrain(arguments: &Pretrain, rows: &Rows, device: Device) -> Result<Recipe> {
    let Pretrain { lstm, optimisation, candidates, dropout_words, dropout_head, .. } = arguments;
    let family = Family::NextWord(NextWordSettings { candidates: *candidates });
    let defaults = Defaults::of(optimisation.recipe, rows.census(Part::Training).rows);
    recipe(lstm, optimisation, &defaults, [*dropout_words, *dropout_head], family, rows, device)
}

/// Number of training rows by which defaults are chosen, with those without labels. In a cross-validation it is that of the
/// model whose quality is estimated, so that all folds have the same settings.
fn training_rows(arguments: &Fit, rows: &Rows) -> Result<u64> {
    Ok(rows.rows_under(division(arguments)?, Part::Training))
}

/// Settings of all families, without held-out rows.
fn recipe(
    lstm: &LstmFlags,
    arguments: &Optimisation,
    defaults: &Defaults,
    [dropout_words, dropout_head]: [f64; 2],
    family: Family,
    rows: &Rows,
    device: Device,
) -> Result<Recipe> {
    let batch = arguments.batch.unwrap_or(defaults.batch);
    let epochs = arguments.epochs.unwrap_or(defaults.epochs);
    let (batch_rows, accumulate) = (batch as usize, arguments.accumulate as usize);
    let steps_of_epoch = steps_of_epoch(rows.n_rows(Part::Training), batch_rows, accumulate);
    let step_rows = u64::from(batch) * u64::from(arguments.accumulate);
    let optimizer = arguments.optimizer.unwrap_or(defaults.optimizer);
    let schedule = Schedule {
        base_rate: arguments.rate.unwrap_or_else(|| rate(optimizer)),
        base_batch_rows: arguments.base_batch.unwrap_or(step_rows),
        batch_rows: step_rows,
        warm_up_steps: arguments.warm_up,
        decay: decay(arguments, defaults, steps_of_epoch, u64::from(epochs)),
    };
    schedule.check().map_err(|(name, found, expected)| setting(name, &found, &expected))?;
    let precision = arguments.precision;
    if precision == Precision::Bf16 && device == Device::Cpu {
        return Err(setting("--precision", "bf16", "f32 or f64 on a CPU; bf16 requires a GPU"));
    }
    let dataset = rows.id_digest().to_string();
    let batches = json!({"dataset": dataset, "batch_rows": batch_rows, "accumulate": accumulate});
    let balance = balance(arguments, &batches)?;
    Ok(Recipe {
        dataset,
        plan: rows.plan(Part::Training, batch_rows)?,
        test_fraction: 0.0,
        validation_fraction: 0.0,
        validation: None,
        sample: None,
        fold: None,
        tokens_max: lstm.tokens,
        model: model(lstm, defaults, rows),
        embedding_std: lstm.embedding_std.unwrap_or(defaults.embedding_std),
        family,
        row_weight: arguments.row_weight,
        batch_rows,
        accumulate,
        sync_every: arguments.sync_every as usize,
        wire: wire(arguments)?,
        balance,
        epochs,
        rule: match optimizer {
            OptimizerName::Sgd => Rule::Sgd { momentum: arguments.momentum },
            OptimizerName::Adam => Rule::Adam,
            OptimizerName::Adamw => Rule::AdamW,
            OptimizerName::Lars => Rule::Lars { momentum: arguments.momentum },
            OptimizerName::Lamb => Rule::Lamb,
        },
        weight_decay: arguments.weight_decay,
        schedule,
        clip: arguments.clip,
        dropout: Dropout {
            words: dropout_words,
            embedding: arguments.dropout_embedding,
            layers: arguments.dropout_layers.unwrap_or(defaults.dropout_layers),
            head: dropout_head,
        },
        precision,
        seed: arguments.seed,
        patience: None,
        stop_loss: arguments.stop_loss,
        soft_labels: None,
        unlabelled: None,
        with_ngrams: false,
        threshold: None,
        calibration: None,
    })
}

/// How changes are sent.
fn wire(arguments: &Optimisation) -> Result<Wire> {
    match (arguments.sync_every, arguments.wire) {
        (1, Some(Wire::Int8 | Wire::Int4)) => Err(setting(
            "--wire",
            "int8 or int4 for the gradients of each step",
            "full or bf16, or rounds: --sync-every with more than 1 step",
        )),
        (1, wire) => Ok(wire.unwrap_or_default()),
        (_, wire) => Ok(wire.unwrap_or(Wire::Int4)),
    }
}

/// How batches are divided. `batches` are the settings of the recipe that determine them.
fn balance(arguments: &Optimisation, batches: &Value) -> Result<Option<balance::BalanceRule>> {
    let Optimisation { balance, balance_every: every, decisions, .. } = arguments;
    Ok(match balance {
        BalanceName::Off => None,
        BalanceName::Dynamic => Some(balance::BalanceRule::Dynamic { every: every.unwrap_or(BALANCE_STEPS) }),
        BalanceName::PerEpoch => Some(balance::BalanceRule::PerEpoch { every: every.unwrap_or(1) }),
        BalanceName::Replay => {
            let folder = decisions.as_deref().unwrap_or(Path::new(""));
            let decisions = runs::training::decisions(folder)?;
            if decisions.is_empty() {
                let expected = "a training folder with decisions of --balance dynamic or per-epoch";
                return Err(setting("--decisions", &folder.display().to_string(), expected));
            }
            check_batches(folder, batches)?;
            Some(balance::BalanceRule::Replay { decisions })
        }
    })
}

/// Refuses decisions about the batches of another training. A folder may have no settings: those of older versions of
/// this program had none.
fn check_batches(folder: &Path, batches: &Value) -> Result<()> {
    let Some(settings) = read_settings(folder, "the settings of a training")? else { return Ok(()) };
    let names = batches.as_object().into_iter().flat_map(|batches| batches.keys());
    let of_folder = names.filter_map(|name| Some((name.clone(), settings.recipe.get(name)?.clone())));
    match first_difference(&Value::Object(of_folder.collect()), batches) {
        Some((name, found, expected)) => {
            let found = format!("{}, a training with {name} {found}", folder.display());
            Err(setting("--decisions", &found, &format!("one with {name} {expected}")))
        }
        None => Ok(()),
    }
}

/// A message about settings chosen by the number of training rows, if any.
pub(super) fn chosen_of_fit(arguments: &Fit, recipe: &Recipe, rows: &Rows) -> Result<Option<String>> {
    let words = arguments.dropout_words.is_none().then(|| format!("dropout-words {}", recipe.dropout.words));
    Ok(chosen(&arguments.optimisation, recipe, training_rows(arguments, rows)?, words))
}

/// A message about settings of all families, and about token dropout, that were chosen by the number of
/// training rows, if any.
pub(super) fn chosen(
    arguments: &Optimisation,
    recipe: &Recipe,
    training_rows: u64,
    words: Option<String>,
) -> Option<String> {
    if !Defaults::of(arguments.recipe, training_rows).by_rows {
        return None;
    }
    let batch = arguments.batch.is_none().then(|| format!("batch {}", recipe.batch_rows));
    let epochs = arguments.epochs.is_none().then(|| format!("epochs {}", recipe.epochs));
    let chosen: Vec<String> = [batch, epochs, words].into_iter().flatten().collect();
    let rows = whole(training_rows);
    (!chosen.is_empty()).then(|| format!("{}: chosen for {rows} training rows", chosen.join(", ")))
}

/// A note if the training is computed by PyTorch because the built-in kernels do not support it.
pub(super) fn without_kernels(recipe: &Recipe, compute: &Compute) -> Option<String> {
    compute.team()?;
    let (found, support) = unsupported(recipe)?;
    Some(format!(
        "computing with PyTorch, which is slower: {found}, and the built-in kernels support {support}"
    ))
}

/// Optimizer steps per epoch.
pub(super) fn steps_of_epoch(rows: u64, batch_rows: usize, accumulate: usize) -> u64 {
    rows.div_ceil(batch_rows as u64).div_ceil(accumulate as u64)
}

/// Returns 0 if the default fraction results in an empty validation split. If a fraction was passed, an empty
/// validation split is an error.
fn checked_validation_fraction(arguments: &Fit, rows: &Rows) -> Result<f64> {
    let fraction = validation_fraction(arguments);
    if arguments.validation.is_some() {
        return Ok(fraction);
    }
    if fraction == 0.0 && arguments.patience.is_some() {
        return Err(setting("--validation-fraction", "0", "more than 0 with --patience"));
    }
    if arguments.validation_fraction.is_none() && arguments.patience.is_none() {
        return Ok(if rows.census(Part::Validation).rows == 0 { 0.0 } else { fraction });
    }
    if fraction > 0.0 {
        rows.check_rows(Part::Validation)?;
    }
    Ok(fraction)
}

/// Refuses a threshold or a calibration that requires what the training does not have.
fn check_choice(arguments: &Fit, splits: Splits<'_>) -> Result<()> {
    let choice = &arguments.choice;
    choice.check_classes(splits.rows.settings().rows.labels.n_classes())?;
    for (flag, found) in choice.fitted() {
        check_validation(flag, &found, splits)?;
    }
    match (choice.threshold, choice.rule()) {
        (Some(text), Some(ThresholdRule::Probability(_))) if matches!(arguments.loss, LossName::Rating) => {
            let expected = "f1 or accuracy with --loss rating, which predicts no probability";
            Err(setting("--threshold", &text.to_string(), expected))
        }
        _ => Ok(()),
    }
}

fn checked_ngrams(arguments: &Fit, splits: Splits<'_>) -> Result<bool> {
    if arguments.with_ngrams {
        check_validation("--with-ngrams", "set", splits)?;
    }
    Ok(arguments.with_ngrams)
}

/// Refuses a choice on a validation split without rows, or with rows of one label only.
fn check_validation(flag: &'static str, found: &str, splits: Splits<'_>) -> Result<()> {
    match splits.rows_of(Part::Validation) {
        Some(rows) => Ok(rows.check_classes(Part::Validation)?),
        None => {
            let expected = "a validation split; pass --validation or a --validation-fraction above 0";
            Err(setting(flag, found, expected))
        }
    }
}

fn decay(arguments: &Optimisation, defaults: &Defaults, steps_of_epoch: u64, epochs: u64) -> Decay {
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

fn model(arguments: &LstmFlags, defaults: &Defaults, rows: &Rows) -> LstmSettings {
    LstmSettings {
        ids: rows.vocabulary().largest_id() as i64 + 1,
        embedding: arguments.embedding.unwrap_or(defaults.embedding),
        hidden: arguments.hidden.unwrap_or(defaults.hidden),
        layers: usize::from(arguments.layers.unwrap_or(defaults.layers)),
        bidirectional: false,
    }
}

fn classifier(arguments: &Fit, defaults: &Defaults, rows: &Rows) -> Result<ClassifierSettings> {
    Ok(ClassifierSettings {
        objective: objective(arguments, defaults, rows)?,
        pool: arguments.pool.unwrap_or(defaults.pool),
        linear: arguments.linear.unwrap_or(defaults.linear),
    })
}

/// The objective for the labels of the dataset. Refuses flags that do not apply to them.
fn objective(arguments: &Fit, defaults: &Defaults, rows: &Rows) -> Result<Objective> {
    let labels = &rows.settings().rows.labels;
    let classes = labels.n_classes();
    let is_soft = !arguments.soft_labels.is_empty();
    if is_soft && matches!(arguments.pos_weight, Some(PosWeight::Balanced)) {
        return Err(setting("--pos-weight", "balanced", WITHOUT_COUNTS));
    }
    if is_soft && matches!(arguments.class_weight, Some(ClassWeight::Balanced)) {
        return Err(setting("--class-weight", "balanced", WITHOUT_COUNTS));
    }
    match arguments.loss {
        LossName::Label if classes > 2 => {
            if arguments.pos_weight.is_some() {
                let expected = "no --pos-weight for three or more classes; pass --class-weight";
                return Err(setting("--pos-weight", "set", expected));
            }
            let class_weights = class_weights(arguments.class_weight.as_ref(), classes, rows)?;
            Ok(Objective::Classes { class_weights })
        }
        LossName::Label => {
            if arguments.class_weight.is_some() {
                let expected = "no --class-weight for two classes; pass --pos-weight";
                return Err(setting("--class-weight", "set", expected));
            }
            let pos_weight = arguments.pos_weight.unwrap_or(PosWeight::Number(defaults.pos_weight));
            Ok(Objective::Label { pos_weight: number(pos_weight, rows) })
        }
        LossName::Rating | LossName::FiveRatings if labels.positive_from().is_none() => {
            let is_rating = matches!(arguments.loss, LossName::Rating);
            let loss = if is_rating { "rating" } else { "five-ratings" };
            let expected = "label for a dataset made with --labels; omit --loss, or make the dataset with \
                            --positive-from";
            Err(setting("--loss", loss, expected))
        }
        LossName::Rating => Ok(Objective::Rating),
        LossName::FiveRatings => Ok(Objective::FiveRatings),
    }
}

fn class_weights(weight: Option<&ClassWeight>, classes: usize, rows: &Rows) -> Result<ClassWeights> {
    let Some(weight) = weight else { return Ok(ClassWeights::equal(classes)) };
    // No class is without rows in the training split.
    let n_rows = &rows.census(Part::Training).labels[..classes];
    let weights = weight.of(&rows.settings().rows.labels.names(), n_rows)?;
    ClassWeights::of(&weights).map_err(|found| setting("--class-weight", &found, "numbers above 0"))
}

fn number(pos_weight: PosWeight, rows: &Rows) -> f64 {
    match pos_weight {
        PosWeight::Number(weight) => weight,
        // The division is defined, because the training split has rows of both labels.
        PosWeight::Balanced => rows.census(Part::Training).balanced_pos_weight().unwrap_or(1.0),
    }
}

fn setting(setting: &'static str, found: &str, expected: &str) -> Error {
    training::Error::setting(setting, found, expected).into()
}

//! Defaults of `fit`, from the recipe and the number of training rows.
//!
//! docs/experiments.md has the accuracy of the modern recipe. The number of rows is that of the whole training split, so
//! it is the same on every rank.

use runs::recipe::Pool;

use crate::arguments::{DecayName, OptimizerName, RecipeName};

/// The default of each option of `fit` whose default depends on `--recipe` or on the number of training rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Defaults {
    /// `--embedding`.
    pub embedding: i64,
    /// `--embedding-std`.
    pub embedding_std: f64,
    /// `--hidden`.
    pub hidden: i64,
    /// `--layers`.
    pub layers: u8,
    /// `--linear`.
    pub linear: i64,
    /// `--pool`.
    pub pool: Pool,
    /// `--pos-weight`, for the loss on the label.
    pub pos_weight: f64,
    /// `--epochs`.
    pub epochs: u32,
    /// `--batch`.
    pub batch: u32,
    /// `--optimizer`.
    pub optimizer: OptimizerName,
    /// `--decay`.
    pub decay: DecayName,
    /// `--dropout-words`.
    pub dropout_words: f64,
    /// `--dropout-layers`.
    pub dropout_layers: f64,
    /// `--dropout-head`.
    pub dropout_head: f64,
    /// Whether `batch`, `epochs` and `dropout_words` depend on the number of training rows.
    pub by_rows: bool,
}

/// `--rate` of Adam and AdamW.
const ADAM_RATE: f64 = 0.002;

/// `--rate` of SGD.
const SGD_RATE: f64 = 0.1;
/// `--rate` of LARS. A matrix changes by a hundredth of its norm.
const LARS_RATE: f64 = 10.0;
/// `--rate` of LAMB. A matrix changes by a hundredth of its norm.
const LAMB_RATE: f64 = 0.01;

/// A row of the modern recipe's table.
struct ByRows {
    /// Maximum number of training rows for these values.
    rows_max: u64,
    batch: u32,
    epochs: u32,
    dropout_words: f64,
}

const BY_ROWS: [ByRows; 5] = [
    ByRows { rows_max: 3_000, batch: 16, epochs: 10, dropout_words: 0.3 },
    ByRows { rows_max: 10_000, batch: 16, epochs: 4, dropout_words: 0.3 },
    ByRows { rows_max: 100_000, batch: 32, epochs: 3, dropout_words: 0.3 },
    ByRows { rows_max: 1_000_000, batch: 128, epochs: 2, dropout_words: 0.1 },
    ByRows { rows_max: u64::MAX, batch: 512, epochs: 2, dropout_words: 0.1 },
];

impl Defaults {
    /// The defaults of a recipe for this number of training rows.
    pub fn of(recipe: RecipeName, training_rows: u64) -> Self {
        match recipe {
            RecipeName::Modern => Self::modern(training_rows),
            RecipeName::Original => Self::original(),
        }
    }

    fn modern(training_rows: u64) -> Self {
        let at = BY_ROWS.partition_point(|line| line.rows_max < training_rows);
        let ByRows { batch, epochs, dropout_words, .. } = BY_ROWS[at];
        Self {
            embedding: 100,
            embedding_std: 0.1,
            hidden: 64,
            layers: 1,
            linear: 32,
            pool: Pool::MeanMax,
            pos_weight: 1.0,
            epochs,
            batch,
            optimizer: OptimizerName::Adam,
            decay: DecayName::Linear,
            dropout_words,
            dropout_layers: 0.0,
            dropout_head: 0.3,
            by_rows: true,
        }
    }

    /// The original system's settings.
    fn original() -> Self {
        Self {
            embedding: 100,
            embedding_std: 1.0,
            hidden: 32,
            layers: 2,
            linear: 32,
            pool: Pool::Last,
            pos_weight: 0.2,
            epochs: 10,
            batch: 128,
            optimizer: OptimizerName::Sgd,
            decay: DecayName::Constant,
            dropout_words: 0.0,
            dropout_layers: 0.5,
            dropout_head: 0.0,
            by_rows: false,
        }
    }
}

/// `--rate`. Depends on the optimizer, not on the recipe, so that `--optimizer` alone gives a suitable rate.
pub fn rate(optimizer: OptimizerName) -> f64 {
    match optimizer {
        OptimizerName::Sgd => SGD_RATE,
        OptimizerName::Adam | OptimizerName::Adamw => ADAM_RATE,
        OptimizerName::Lars => LARS_RATE,
        OptimizerName::Lamb => LAMB_RATE,
    }
}

impl RecipeName {
    /// `--validation-fraction`. It is used before the rows are counted, so it does not depend on their
    /// number.
    pub fn validation_fraction(self) -> f64 {
        match self {
            Self::Modern => 0.05,
            Self::Original => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, ValueEnum};

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn batch_size_grows_with_the_number_of_rows_and_epochs_become_fewer() {
        let of = |rows| {
            let Defaults { batch, epochs, .. } = Defaults::of(RecipeName::Modern, rows);
            (batch, epochs)
        };
        let table: Vec<(u32, u32)> = BY_ROWS.iter().map(|line| (line.batch, line.epochs)).collect();
        let found = [1, 3_000, 3_001, 10_000, 10_001, 20_000_000].map(of);
        assert_eq!(found, [0, 0, 1, 1, 2, BY_ROWS.len() - 1].map(|at| table[at]));
        assert!(table.is_sorted_by(|one, next| one.0 <= next.0 && one.1 >= next.1), "{table:?}");
    }

    /// The default that `fit -h` prints for an option, and the whole text of `fit --help`.
    fn printed(option: &str) -> (String, String) {
        let arguments = Arguments::command();
        let fit = arguments.find_subcommand("fit").unwrap();
        let argument = fit.get_arguments().find(|argument| argument.get_long() == Some(option)).unwrap();
        let help = argument.get_help().unwrap().to_string();
        let default = help.split("[default: ").nth(1).unwrap().trim_end_matches(']').to_owned();
        (default, argument.get_long_help().map(ToString::to_string).unwrap_or_default())
    }

    fn name(value: &impl ValueEnum) -> String {
        value.to_possible_value().unwrap().get_name().to_owned()
    }

    #[test]
    fn help_says_what_the_defaults_are() {
        let by_option = |recipe: RecipeName| {
            let defaults = Defaults::of(recipe, 1);
            [
                ("validation-fraction", recipe.validation_fraction().to_string()),
                ("embedding", defaults.embedding.to_string()),
                ("embedding-std", defaults.embedding_std.to_string()),
                ("hidden", defaults.hidden.to_string()),
                ("layers", defaults.layers.to_string()),
                ("linear", defaults.linear.to_string()),
                ("pool", name(&defaults.pool)),
                ("pos-weight", defaults.pos_weight.to_string()),
                ("optimizer", name(&defaults.optimizer)),
                ("decay", name(&defaults.decay)),
                ("dropout-layers", defaults.dropout_layers.to_string()),
                ("dropout-head", defaults.dropout_head.to_string()),
            ]
        };
        for ((option, modern), (_, original)) in
            by_option(RecipeName::Modern).into_iter().zip(by_option(RecipeName::Original))
        {
            let (default, text) = printed(option);
            assert_eq!(default, modern, "--{option}");
            if modern != original {
                let expected = format!("The default with --recipe original is {original}.");
                assert!(text.contains(&expected), "--{option}: {text}");
            }
        }
        let Defaults { batch, epochs, dropout_words, .. } = Defaults::original();
        for (option, default, original) in [
            ("batch", "by rows", batch.to_string()),
            ("epochs", "by rows, 2 to 10", epochs.to_string()),
            ("dropout-words", "by rows", dropout_words.to_string()),
        ] {
            let (found, text) = printed(option);
            assert_eq!(found, default, "--{option}");
            let expected = format!("With --recipe original it is {original}.");
            assert!(text.contains(&expected), "--{option}: {text}");
        }
        let [_, first, second, third, last] = BY_ROWS.each_ref().map(|line| line.batch);
        let batch = format!(
            "The default is {first} for up to 10,000 training rows, {second} for up to 100,000, {third} for up to \
             1,000,000 and {last} for more."
        );
        let [first, second, third, last, _] = BY_ROWS.each_ref().map(|line| line.epochs);
        let epochs = format!(
            "The default is {first} for up to 3,000 training rows, {second} for up to 10,000, {third} for up to 100,000 and \
             {last} for more."
        );
        for (option, expected) in [("batch", batch), ("epochs", epochs)] {
            let (_, text) = printed(option);
            assert!(text.contains(&expected), "--{option}: {text}");
        }
        assert_eq!(printed("rate").0, format!("{ADAM_RATE}; sgd: {SGD_RATE}"));
    }
}

//! Arguments of `trainer fit`.

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use corpus::sample::Sample;
use program::location::Location;
use runs::recipe::Pool;
use runs::recipe::limits::SIZE;
use training::arguments::numbers::{share, whole};
use training::arguments::{ChoiceFlags, ClassWeight};

use super::groups::{ClassifierCompute, LstmFlags, Optimisation, TrainingFlags};
use super::names::{LossName, PosWeight};

/// Flags of a classifier's training.
#[derive(Debug, Args)]
pub struct Fit {
    /// Dataset written by sentimill or merge
    ///
    /// A file, or s3://bucket/name, which is fetched once into the cache: $SENTIMILL_CACHE, $XDG_CACHE_HOME/sentimill
    /// or ~/.cache/sentimill.
    #[arg(value_parser = PathBufValueParser::new().try_map(Location::of_file))]
    pub dataset: Location,
    /// Training folder [default: DATASET as .model]
    ///
    /// It receives the model, checkpoints and metrics. The default is the file name of DATASET with .model, in the
    /// current folder: reviews.model for data/reviews.h5. With s3://bucket/folder, finished checkpoints and the model are
    /// put there, and nothing is replaced.
    #[arg(long, short, value_name = "FOLDER", value_parser = PathBufValueParser::new().try_map(Location::of_folder))]
    pub out: Option<Location>,
    /// Dataset that is the validation split
    ///
    /// `sentimill --vocabulary DATASET --without DATASET` makes one. It has the vocabulary of DATASET. It is evaluated
    /// after each epoch, and no row of DATASET is held out for validation.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "validation_fraction",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        help_heading = "Data"
    )]
    pub validation: Option<Location>,
    /// Test dataset with the vocabulary of DATASET
    ///
    /// `sentimill --vocabulary DATASET --without DATASET` makes one. No row of DATASET is held out for the test.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "test_fraction",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        help_heading = "Data"
    )]
    pub test: Option<Location>,
    /// Soft labels of DATASET or of --unlabelled, also more than once
    ///
    /// A file of `trainer predict MODEL DATASET --soft FILE`: the probability of each class for each row. The training
    /// rows learn these probabilities in place of their labels. Metrics of the validation and test split are computed
    /// on the labels. Requires --loss label.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1,
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        hide_short_help = true,
        help_heading = "Data"
    )]
    pub soft_labels: Vec<Location>,
    /// Dataset of reviews without ratings, for training only
    ///
    /// Its rows learn their soft labels: those of --soft-labels, or else the probabilities of n-grams that are trained on the
    /// training rows first. Its own labels are not used, and no row of it is in the validation or test split. It has the
    /// vocabulary of DATASET. Requires --loss label.
    #[arg(
        long,
        value_name = "FILE",
        value_parser = PathBufValueParser::new().try_map(Location::of_file),
        hide_short_help = true,
        help_heading = "Data"
    )]
    pub unlabelled: Option<Location>,
    /// Share of the rows of DATASET to use [default: 1]
    ///
    /// A number above 0 and up to 1. The hash of a text decides: every training uses the same rows, and 0.25 uses a part
    /// of those that 0.5 uses. The training, validation and test split of DATASET each have their rows of the sample only.
    /// Other datasets, of --validation, --test and --unlabelled, are used whole. The vocabulary stays that of DATASET.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = Sample::ALL,
        hide_default_value = true,
        hide_short_help = true,
        help_heading = "Data"
    )]
    pub sample: Sample,
    /// Test split [default: 0.1]
    ///
    /// Share of rows that are used for the test only.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.1",
        value_parser = share,
        hide_default_value = true,
        help_heading = "Data"
    )]
    pub test_fraction: f64,
    /// Validation split [default: 0.05]
    ///
    /// Share of rows that are evaluated after each epoch. The weights of the epoch with the lowest validation loss
    /// are saved; with 0, the weights of the last epoch are saved. The default with --recipe original is 0.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Data")]
    pub validation_fraction: Option<f64>,
    /// Test after every epoch [default: at the end only]
    ///
    /// Test metrics are then logged for each epoch. Do not choose epochs or other settings by them: the test metrics
    /// of the chosen model would be too good. Use the validation split for choices.
    #[arg(long, hide_short_help = true, help_heading = "Data")]
    pub test_every: bool,
    /// Cross-validation with K trainings
    ///
    /// Each fold holds out another range of the rows and is tested on it. The result is the mean and the standard
    /// deviation of each metric, to compare settings; there is no model of all rows. The rows of --test-fraction stay
    /// unused, so that they can test the model which `trainer fit` then makes. --out [default: DATASET as .folds]
    /// receives one training folder per fold.
    #[arg(
        long,
        value_name = "K",
        conflicts_with = "test",
        value_parser = whole::<u16>(2..=100),
        help_heading = "Data"
    )]
    pub folds: Option<u16>,
    /// Sizes and inputs of the LSTM.
    #[command(flatten)]
    pub lstm: LstmFlags,
    /// Width of the linear layer before the output [default: 32]
    #[arg(
        long,
        value_name = "N",
        value_parser = whole::<i64>(SIZE),
        hide_short_help = true,
        help_heading = "Model"
    )]
    pub linear: Option<i64>,
    /// Pooling of hidden states [default: mean-max]
    ///
    /// last: the hidden state at the last token. mean-max: the mean and the maximum of all hidden states,
    /// concatenated. The default with --recipe original is last.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_short_help = true,
        hide_possible_values = true,
        help_heading = "Model"
    )]
    pub pool: Option<Pool>,
    /// Bidirectional LSTM layers
    ///
    /// The built-in kernels do not support it; the training is computed by PyTorch, which is slower.
    #[arg(long, hide_short_help = true, help_heading = "Model")]
    pub bidirectional: bool,
    /// N-grams beside the LSTM, in one model
    ///
    /// N-grams of the rows are trained as by `ngrams train`. The model adds their outputs to those of the LSTM, by two factors
    /// that fit the validation split best. Predictions, explanations and exports are of both. Requires --loss label and a
    /// validation split.
    #[arg(long, help_heading = "Model")]
    pub with_ngrams: bool,
    /// Training objective [default: label]
    ///
    /// label: cross-entropy on the label, binary for two classes and softmax for more. rating: squared error on the
    /// rating. five-ratings: cross-entropy on the five ratings. Metrics are computed on the label in all cases. A
    /// dataset made with --labels requires label.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = LossName::Label,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Model"
    )]
    pub loss: LossName,
    /// Loss weight of positive rows [default: 1]
    ///
    /// A number above 0, or `balanced`: the number of negative rows divided by the number of positive rows. The
    /// default with --recipe original is 0.2. Requires --loss label and two classes.
    #[arg(long, value_name = "WEIGHT", help_heading = "Model")]
    pub pos_weight: Option<PosWeight>,
    /// Loss weights of three or more classes [default: 1 each]
    ///
    /// `balanced`, or one number above 0 per class, separated by commas, in the order of --labels. balanced: the
    /// number of rows divided by the number of classes and by the number of rows of the class. It increases the
    /// macro F1 if few rows have a class. The n-grams of --with-ngrams have no weights. Requires --loss label.
    #[arg(long, value_name = "WEIGHTS", hide_short_help = true, help_heading = "Model")]
    pub class_weight: Option<ClassWeight>,
    /// Threshold and calibration.
    #[command(flatten)]
    pub choice: ChoiceFlags,
    /// Optimizer and learning rate.
    #[command(flatten)]
    pub optimisation: Optimisation,
    /// Token dropout [default: by rows]
    ///
    /// Share of tokens that training reads as unknown words. The default is 0.3 for up to 100,000 training rows and
    /// 0.1 for more. With --recipe original it is 0.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Optimisation")]
    pub dropout_words: Option<f64>,
    /// Dropout before the output layer [default: 0.3]
    ///
    /// The default with --recipe original is 0.
    #[arg(long, value_name = "SHARE", value_parser = share, help_heading = "Optimisation")]
    pub dropout_head: Option<f64>,
    /// Early stopping after N epochs without progress
    ///
    /// Progress is a lower loss of the validation split, which must not be empty. The best weights are saved. Also
    /// accepted as --early-stopping.
    #[arg(
        long,
        alias = "early-stopping",
        value_name = "N",
        value_parser = whole::<u32>(1..=u32::MAX as i64),
        help_heading = "Optimisation"
    )]
    pub patience: Option<u32>,
    /// Checkpoints, logs and the training folder.
    #[command(flatten)]
    pub training: TrainingFlags,
    /// Backend.
    #[command(flatten)]
    pub backend: ClassifierCompute,
}

//! Flags that several commands share, in groups.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use batches::RowWeight;
use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use program::location::Location;
use program::place::local_path;
use program::size::{parse_memory, parse_size};
use runs::recipe::limits::{ACCUMULATE, BATCH, LAYERS, SIZE, SYNC_EVERY};
use runs::recipe::{Precision, Wire};
use training::arguments::Storage;
use training::arguments::numbers::{
    at_least, at_least_one, factor, not_negative, positive, positive_f32, share, steps, whole,
};

use super::{BalanceName, ComputeName, DecayName, DeviceName, OptimizerName, RecipeName};

/// Sizes and inputs of the LSTM.
#[derive(Debug, Args)]
pub struct LstmFlags {
    /// Tokens read per row; 0 for all
    #[arg(long, value_name = "N", default_value = "0", value_parser = at_least::<u32>(0), help_heading = "Data")]
    pub tokens: u32,
    /// Embedding dimension [default: 100]
    ///
    /// Also accepted as --embedding-dim.
    #[arg(long, alias = "embedding-dim", value_name = "N", value_parser = whole::<i64>(SIZE), help_heading = "Model")]
    pub embedding: Option<i64>,
    /// Standard deviation of the initial embeddings [default: 0.1]
    ///
    /// They are drawn from a normal distribution with mean 0. With word vectors as --init-from, only words without a vector
    /// have such embeddings. The default with --recipe original is 1.
    #[arg(long, value_name = "STD", value_parser = positive_f32, hide_short_help = true, help_heading = "Model")]
    pub embedding_std: Option<f64>,
    /// Hidden size of each LSTM layer [default: 64]
    ///
    /// The default with --recipe original is 32. The built-in kernels support multiples of 16 only; other sizes are
    /// computed by PyTorch, which is slower. Also accepted as --hidden-size.
    #[arg(long, aliases = ["hidden-size", "hidden-dim"], value_name = "N", value_parser = whole::<i64>(SIZE), help_heading = "Model")]
    pub hidden: Option<i64>,
    /// Number of LSTM layers [default: 1]
    ///
    /// The default with --recipe original is 2. Also accepted as --num-layers.
    #[arg(long, alias = "num-layers", value_name = "N", value_parser = whole::<u8>(LAYERS), help_heading = "Model")]
    pub layers: Option<u8>,
    /// Initial weights: model folder or word vectors
    ///
    /// A model folder must have the vocabulary of DATASET and the sizes that --embedding and --hidden set. From a model of `trainer pretrain`, the
    /// embeddings and LSTM layers are read. Word vectors of `vectors train` or of any format that `vectors` reads
    /// must have the dimension that --embedding sets.
    #[arg(
        long,
        value_name = "PATH",
        value_parser = PathBufValueParser::new().try_map(Location::of_folder),
        help_heading = "Model"
    )]
    pub init_from: Option<Location>,
}

/// Optimizer and learning rate.
#[derive(Debug, Args)]
pub struct Optimisation {
    /// Preset: modern or original [default: modern]
    ///
    /// modern: batch size, epochs and token dropout depend on the number of training rows. original: the settings of
    /// the original system. A flag overrides the default of the recipe.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = RecipeName::Modern,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Optimisation"
    )]
    pub recipe: RecipeName,
    /// Weight of a row in the loss [default: one]
    ///
    /// A row is a distinct text; several reviews can have it. one: each row has weight 1. log: 1 + the logarithm of
    /// its number of reviews. count: its number of reviews.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = RowWeight::One,
        hide_short_help = true,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Model"
    )]
    pub row_weight: RowWeight,
    /// Number of epochs [default: by rows, 2 to 10]
    ///
    /// The default is 10 for up to 3,000 training rows, 4 for up to 10,000, 3 for up to 100,000 and 2 for more. With --recipe
    /// original it is 10.
    #[arg(long, alias = "num-epochs", value_name = "N", value_parser = at_least::<u32>(1), help_heading = "Optimisation")]
    pub epochs: Option<u32>,
    /// Batch size over all ranks [default: by rows]
    ///
    /// The default is 16 for up to 10,000 training rows, 32 for up to 100,000, 128 for up to 1,000,000 and 512 for
    /// more. With --recipe original it is 128. Also accepted as --batch-size.
    #[arg(long, alias = "batch-size", value_name = "N", value_parser = whole::<u32>(BATCH), help_heading = "Optimisation")]
    pub batch: Option<u32>,
    /// Number of batches per optimizer step
    ///
    /// Gradients of this number of batches are summed before each step.
    #[arg(
        long,
        alias = "gradient-accumulation-steps",
        value_name = "N",
        default_value = "1",
        value_parser = whole::<u32>(ACCUMULATE),
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub accumulate: u32,
    /// Steps of a round [default: 1]
    ///
    /// Of several ranks: with 1, the gradients of each step are those of the whole batch. With N, each rank trains its share of
    /// N steps by itself; then all apply the mean of their changes. This sends less, and the model is another one. The first
    /// rounds have 1, 1, 2, 4 steps and so on. Adam's rate is multiplied by the square root of the number of ranks.
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = whole::<u32>(SYNC_EVERY),
        hide_short_help = true,
        hide_default_value = true,
        help_heading = "Optimisation"
    )]
    pub sync_every: u32,
    /// Bits of a number that is sent: full, bf16, int8 or int4 [default: int4 in rounds, else full]
    ///
    /// Of several ranks. full: 32 bits, or 64 with that precision. bf16: 16 bits. int8 and int4: 8 and 4 bits, and a scale for each
    /// embedding; only in rounds. What a number loses in a round is added to the next change of its weight.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        hide_short_help = true,
        hide_possible_values = true,
        help_heading = "Optimisation"
    )]
    pub wire: Option<Wire>,
    /// Shares of unequal ranks: off, dynamic, per-epoch or replay [default: off]
    ///
    /// off: equal shares of each batch. dynamic: shares for which the slowest rank is fastest, from measured compute
    /// times. per-epoch: after an epoch, shares follow its compute times, for comparison. The batch size stays the same.
    /// The last bits of the model depend on the measured times. replay: the shares of the training --decisions, with
    /// which it can be repeated.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = BalanceName::Off,
        hide_short_help = true,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Optimisation"
    )]
    pub balance: BalanceName,
    /// Steps or epochs between two decisions about shares [default: 10; per-epoch: 1]
    ///
    /// With dynamic, the first decision and the one after a change follow after three steps.
    #[arg(long, value_name = "N", value_parser = at_least::<u64>(1), hide_short_help = true, help_heading = "Optimisation")]
    pub balance_every: Option<u64>,
    /// Training folder whose shares --balance replay repeats
    ///
    /// All ranks read it.
    #[arg(
        long,
        value_name = "FOLDER",
        value_parser = PathBufValueParser::new().try_map(local_path),
        required_if_eq("balance", "replay"),
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub decisions: Option<PathBuf>,
    /// Optimizer [default: adam]
    ///
    /// One of sgd, adam, adamw, lars and lamb. sgd has momentum. adam adds weight decay to the gradient; adamw decouples it. lars and lamb are sgd and adamw for
    /// batches of thousands of rows: the change of a matrix is proportional to its norm. The default with --recipe
    /// original is sgd.
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Optimisation")]
    pub optimizer: Option<OptimizerName>,
    /// Learning rate [default: 0.002; sgd: 0.1]
    ///
    /// With lars, the default is 10, with lamb 0.01. With --base-batch, it is the learning rate of that batch size. Also
    /// accepted as --lr and --learning-rate.
    #[arg(long, aliases = ["lr", "learning-rate"], value_name = "RATE", value_parser = positive, help_heading = "Optimisation")]
    pub rate: Option<f64>,
    /// Batch size at which --rate applies [default: the batch size]
    ///
    /// The learning rate grows in proportion to the batch size: with --base-batch 64, a batch of 256 rows has four
    /// times the --rate.
    #[arg(long, value_name = "N", value_parser = at_least::<u64>(1), hide_short_help = true, help_heading = "Optimisation")]
    pub base_batch: Option<u64>,
    /// Number of warm-up steps
    ///
    /// In these steps the learning rate increases from --rate to --rate × batch size / --base-batch. Requires
    /// --base-batch. Also accepted as --warmup and --warmup-steps.
    #[arg(
        long,
        aliases = ["warmup", "warmup-steps"],
        value_name = "STEPS",
        default_value = "0",
        value_parser = at_least::<u64>(0),
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub warm_up: u64,
    /// Learning rate schedule [default: linear]
    ///
    /// After the warm-up: constant: the rate does not change. step: it is multiplied by --decay-factor every
    /// --decay-epochs. linear, cosine: it decreases to 0 at the last step. The default with --recipe original is
    /// constant.
    #[arg(long, value_enum, value_name = "NAME", hide_possible_values = true, help_heading = "Optimisation")]
    pub decay: Option<DecayName>,
    /// Epochs per learning rate, for --decay step
    #[arg(
        long,
        value_name = "EPOCHS",
        default_value = "1",
        value_parser = at_least::<u64>(1),
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub decay_epochs: u64,
    /// Learning rate multiplier, for --decay step
    #[arg(
        long,
        value_name = "FACTOR",
        default_value = "0.1",
        value_parser = factor,
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub decay_factor: f64,
    /// Momentum, with --optimizer sgd or lars
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0.9",
        value_parser = share,
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub momentum: f64,
    /// Weight decay
    #[arg(
        long,
        value_name = "RATE",
        default_value = "0",
        value_parser = not_negative,
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub weight_decay: f64,
    /// Maximum gradient norm [default: no limit]
    ///
    /// The gradients of a step are scaled down to this norm. Also accepted as --grad-clip and --max-grad-norm.
    #[arg(
        long,
        aliases = ["grad-clip", "max-grad-norm", "clip-grad-norm"],
        value_name = "NORM",
        value_parser = positive,
        help_heading = "Optimisation"
    )]
    pub clip: Option<f64>,
    /// Dropout of embeddings
    ///
    /// The built-in kernels do not support it; the training is computed by PyTorch, which is slower.
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0",
        value_parser = share,
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub dropout_embedding: f64,
    /// Dropout between LSTM layers [default: 0]
    ///
    /// The default with --recipe original is 0.5. Requires --layers 2 or more.
    #[arg(long, value_name = "SHARE", value_parser = share, hide_short_help = true, help_heading = "Optimisation")]
    pub dropout_layers: Option<f64>,
    /// Numeric precision: f32, f64 or bf16 [default: f32]
    ///
    /// bf16 is bfloat16 autocast; it requires a GPU. f64 is slow; use it to compare results.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = Precision::F32,
        hide_short_help = true,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Optimisation"
    )]
    pub precision: Precision,
    /// Random seed
    ///
    /// It determines the initial weights, the order of rows and dropout.
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least::<u64>(0), help_heading = "Optimisation")]
    pub seed: u64,
    /// Stop when the training loss of an epoch is at most this value
    #[arg(
        long,
        value_name = "LOSS",
        value_parser = not_negative,
        hide_short_help = true,
        help_heading = "Optimisation"
    )]
    pub stop_loss: Option<f64>,
}

/// Checkpoints, logs and the training folder.
#[derive(Debug, Args)]
pub struct TrainingFlags {
    /// Resume the training in --out
    ///
    /// It continues from its newest checkpoint. Pass the flags of the interrupted training again. With FOLDER, the
    /// training starts from that checkpoint. A training without a checkpoint starts from the first step.
    #[arg(
        long,
        value_name = "FOLDER",
        num_args = 0..=1,
        default_missing_value = "latest",
        value_parser = PathBufValueParser::new().try_map(Location::of_folder)
    )]
    pub resume: Option<Location>,
    /// Replace an existing training in --out
    ///
    /// Only a training folder written by trainer is replaced, and only if its files are unchanged. It is deleted
    /// before the first step, after all inputs and flags are checked. Anything else is refused, and a training in S3 is
    /// never replaced.
    #[arg(long, conflicts_with = "resume")]
    pub force: bool,
    /// Print the final summary as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
    /// Save a checkpoint every N steps
    #[arg(
        long,
        value_name = "N",
        value_parser = at_least::<u64>(1),
        hide_short_help = true,
        help_heading = "Checkpoints and logs"
    )]
    pub checkpoint_steps: Option<u64>,
    /// Save a checkpoint every N minutes
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        value_parser = not_negative,
        hide_short_help = true,
        help_heading = "Checkpoints and logs"
    )]
    pub checkpoint_minutes: f64,
    /// Number of checkpoints to keep
    #[arg(
        long,
        value_name = "N",
        default_value = "3",
        value_parser = at_least::<usize>(1),
        hide_short_help = true,
        help_heading = "Checkpoints and logs"
    )]
    pub keep_checkpoints: usize,
    /// Slow ranks down by these factors, by computing gradients again, to test --balance
    #[arg(long, value_name = "FACTORS", value_delimiter = ',', value_parser = at_least_one, hide = true)]
    pub throttle: Vec<f64>,
    /// Write metrics every N steps [default: every 5 seconds]
    #[arg(
        long,
        value_name = "N",
        value_parser = at_least::<u64>(1),
        hide_short_help = true,
        help_heading = "Checkpoints and logs"
    )]
    pub log_steps: Option<u64>,
    /// Write the phases of some steps to a new file, for Chrome's trace viewer
    ///
    /// One process of the viewer per rank: loading, forward, backward, waiting, reduction and optimizer. Open it with
    /// chrome://tracing or ui.perfetto.dev. Not with one rank on a GPU.
    #[arg(
        long,
        value_name = "FILE",
        value_parser = PathBufValueParser::new().try_map(local_path),
        hide_short_help = true,
        help_heading = "Checkpoints and logs"
    )]
    pub trace: Option<PathBuf>,
    /// The steps of --trace, such as 100-150
    #[arg(
        long,
        value_name = "FIRST-LAST",
        default_value = "1-50",
        value_parser = steps,
        requires = "trace",
        hide_short_help = true,
        help_heading = "Checkpoints and logs"
    )]
    pub trace_steps: RangeInclusive<u64>,
    /// GPU memory for the tokens of all training rows
    ///
    /// If they need more, each batch is copied to the GPU. A size such as 512MiB or 4GiB; 0 copies every batch.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "4GiB",
        value_parser = parse_size,
        hide_short_help = true,
        help_heading = "Running"
    )]
    pub device_memory: u64,
    /// Storage.
    #[command(flatten)]
    pub storage: Storage,
    /// Threads, memory and device.
    #[command(flatten)]
    pub running: Running,
}

/// Device.
#[derive(Clone, Debug, Args)]
pub struct Computing {
    /// Device: auto, cpu or cuda [default: auto]
    ///
    /// auto: a GPU if one is available, otherwise the CPU. On a CPU, OMP_NUM_THREADS sets the number of threads. The
    /// default is one per core, and one for a classifier with a hidden size below 256 that PyTorch computes.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = DeviceName::Auto,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Running"
    )]
    pub device: DeviceName,
    /// Multiply with all bits of f32 on a GPU
    ///
    /// By default, cuDNN rounds the factors to 11 bits (TF32), as in PyTorch, which is faster. bf16 and f64 have no TF32.
    #[arg(long, hide_short_help = true, help_heading = "Running")]
    pub no_tf32: bool,
    /// Set by old versions of torchrun; the environment variable LOCAL_RANK has the same value.
    #[arg(long, alias = "local_rank", hide = true)]
    pub local_rank: Option<u32>,
}

/// `--compute` of a classifier.
#[derive(Clone, Copy, Debug, Args)]
pub struct ClassifierCompute {
    /// CPU backend: auto or pytorch [default: auto]
    ///
    /// auto: the built-in kernels if they support the model, otherwise PyTorch. The kernels support hidden sizes that
    /// are multiples of 16, --precision f32, and neither --bidirectional nor --dropout-embedding. pytorch: PyTorch
    /// only. On a GPU, PyTorch computes everything.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = ComputeName::Auto,
        hide_short_help = true,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Running"
    )]
    pub compute: ComputeName,
}

/// `--compute` of a pretraining.
#[derive(Clone, Copy, Debug, Args)]
pub struct PretrainingCompute {
    /// Backend of optimizer steps on a CPU: auto or pytorch [default: auto]
    ///
    /// auto: the built-in kernels update the weights. pytorch: PyTorch updates them. PyTorch computes the gradients
    /// of a pretraining in both cases.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = ComputeName::Auto,
        hide_short_help = true,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Running"
    )]
    pub compute: ComputeName,
}

/// Threads, memory and device of a command that reads a dataset.
#[derive(Clone, Debug, Args)]
pub struct Running {
    /// Device.
    #[command(flatten)]
    pub computing: Computing,
    /// Number of threads that prepare batches
    ///
    /// Also accepted as --num-workers.
    #[arg(
        long,
        alias = "num-workers",
        value_name = "N",
        default_value = "1",
        value_parser = whole::<u8>(1..=64),
        hide_short_help = true,
        help_heading = "Running"
    )]
    pub loaders: u8,
    /// Memory for rows
    ///
    /// A larger dataset is read in shuffled blocks; larger texts are kept in an unnamed temporary file. A size such as 512MiB
    /// or 4GiB.
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_memory, help_heading = "Running")]
    pub memory: usize,
}

//! Flags that several commands have in common, each with what it is for.

use std::path::PathBuf;

use clap::Args;
use runs::recipe::limits::{ACCUMULATE, BATCH, LAYERS, SIZE};

use super::{ComputeName, DecayName, DeviceName, OptimizerName, PrecisionName, RecipeName, RowWeightName};

/// Sizes of an LSTM, and what it reads.
#[derive(Debug, Args)]
pub struct LstmFlags {
    /// Read the first N words of a row; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Model")]
    pub tokens: u32,
    /// Embedding dimension [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(SIZE), help_heading = "Model")]
    pub embedding: Option<i64>,
    /// Hidden size of an LSTM layer [default: 64; original: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(SIZE), help_heading = "Model")]
    pub hidden: Option<i64>,
    /// Number of LSTM layers [default: 1; original: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(LAYERS), help_heading = "Model")]
    pub layers: Option<u8>,
    /// Begin with the weights of a saved model, of `pretrain` too, or with word vectors in .vec text
    #[arg(long, value_name = "PATH", help_heading = "Model")]
    pub init_from: Option<PathBuf>,
}

/// How gradients change weights.
#[derive(Debug, Args)]
pub struct Optimisation {
    /// Defaults of the options below; an option that is given overrides them
    #[arg(long, value_enum, value_name = "NAME", default_value_t = RecipeName::Modern)]
    pub recipe: RecipeName,
    /// What a text weighs that several reviews have
    #[arg(long, value_enum, default_value_t = RowWeightName::One, help_heading = "Loss")]
    pub row_weight: RowWeightName,
    /// Number of epochs [default: by the number of training rows; original: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Optimisation")]
    pub epochs: Option<u32>,
    /// Batch size in rows, over all ranks [default: by the number of training rows; original: 128]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(BATCH), help_heading = "Optimisation")]
    pub batch: Option<u32>,
    /// Batches whose gradients make one step
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(ACCUMULATE), help_heading = "Optimisation")]
    pub accumulate: u32,
    /// Optimizer [default: adam; original: sgd]
    #[arg(long, value_enum, help_heading = "Optimisation")]
    pub optimizer: Option<OptimizerName>,
    /// Learning rate for a batch of --base-batch rows [default: 0.002, of sgd 0.1]
    #[arg(long, value_name = "RATE", help_heading = "Optimisation")]
    pub rate: Option<f64>,
    /// Rows for which --rate is right: it grows in proportion [default: those of a step]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Optimisation")]
    pub base_batch: Option<u64>,
    /// Steps in which the rate climbs from that of the base batch to its own
    #[arg(long, value_name = "STEPS", default_value_t = 0, help_heading = "Optimisation")]
    pub warm_up: u64,
    /// Learning rate schedule after the warm-up [default: linear; original: constant]
    #[arg(long, value_enum, help_heading = "Optimisation")]
    pub decay: Option<DecayName>,
    /// For --decay step: epochs of one rate
    #[arg(long, value_name = "EPOCHS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Optimisation")]
    pub decay_epochs: u64,
    /// For --decay step: what each rate is of the one before
    #[arg(long, value_name = "FACTOR", default_value_t = 0.1, help_heading = "Optimisation")]
    pub decay_factor: f64,
    /// For sgd
    #[arg(long, value_name = "SHARE", default_value_t = 0.9, help_heading = "Optimisation")]
    pub momentum: f64,
    /// Weight decay
    #[arg(long, value_name = "RATE", default_value_t = 0.0, help_heading = "Optimisation")]
    pub weight_decay: f64,
    /// Maximum norm of a step's gradients
    #[arg(long, value_name = "NORM", help_heading = "Optimisation")]
    pub clip: Option<f64>,
    /// Dropout of embedded words
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, help_heading = "Optimisation")]
    pub dropout_embedding: f64,
    /// Dropout between LSTM layers [default: 0; original: 0.5]
    #[arg(long, value_name = "SHARE", help_heading = "Optimisation")]
    pub dropout_layers: Option<f64>,
    /// Numeric precision
    #[arg(long, value_enum, default_value_t = PrecisionName::F32, help_heading = "Optimisation")]
    pub precision: PrecisionName,
    /// Decides the first weights, the order of rows and what is dropped
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Optimisation")]
    pub seed: u64,
    /// End when an epoch's loss is no more than this
    #[arg(long, value_name = "LOSS", help_heading = "Optimisation")]
    pub stop_loss: Option<f64>,
}

/// How a training runs.
#[derive(Debug, Args)]
pub struct TrainingFlags {
    /// Go on from a checkpoint: its folder, or the newest of --out
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = "latest", help_heading = "Running")]
    pub resume: Option<PathBuf>,
    /// Save a checkpoint every so many steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Running")]
    pub checkpoint_steps: Option<u64>,
    /// Save a checkpoint every so many minutes
    #[arg(long, value_name = "N", default_value_t = 10.0, help_heading = "Running")]
    pub checkpoint_minutes: f64,
    /// Checkpoints that stay
    #[arg(long, value_name = "N", default_value_t = 3, help_heading = "Running")]
    pub keep: usize,
    /// MiB that the tokens of the training rows may take on a GPU; where they take more, batches are copied to it
    #[arg(long, value_name = "MIB", default_value_t = 4096, help_heading = "Running")]
    pub device_memory: u64,
    /// Write a line of metrics every so many steps [default: every 5 seconds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Running")]
    pub log_steps: Option<u64>,
    /// What runs and reads.
    #[command(flatten)]
    pub running: Running,
}

/// How a command computes.
#[derive(Clone, Debug, Args)]
pub struct Computing {
    /// Where to compute: auto takes a GPU where there is one
    #[arg(long, value_enum, default_value_t = DeviceName::Auto, help_heading = "Running")]
    pub device: DeviceName,
    /// On a processor: auto computes by own kernels what there are some for, pytorch everything by PyTorch
    #[arg(long, value_enum, default_value_t = ComputeName::Auto, help_heading = "Running")]
    pub compute: ComputeName,
    /// Of torchrun's older versions; LOCAL_RANK says it
    #[arg(long, alias = "local_rank", hide = true)]
    pub local_rank: Option<u32>,
}

/// How a command reads a dataset and computes.
#[derive(Clone, Debug, Args)]
pub struct Running {
    /// Where, and by what.
    #[command(flatten)]
    pub computing: Computing,
    /// Threads that make batches
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64), help_heading = "Running")]
    pub loaders: u8,
    /// MiB that rows may take in memory; more are read in blocks
    #[arg(long, value_name = "MIB", default_value_t = 4096, help_heading = "Running")]
    pub memory: u64,
}

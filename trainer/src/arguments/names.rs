//! Values of flags that are one of several names.

use clap::ValueEnum;

/// `--recipe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecipeName {
    /// Measured on three review corpora; batch size and epochs depend on the number of rows.
    Modern,
    /// The original system's.
    Original,
}

/// `--loss`.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LossName {
    /// Binary cross-entropy on the label.
    Label,
    /// Squared error on the rating.
    Rating,
    /// Cross-entropy on the five ratings.
    FiveRatings,
}

/// `--pos-weight`.
#[derive(Clone, Copy, Debug)]
pub enum PosWeight {
    /// Negative rows / positive rows of the training split.
    Balanced,
    /// A fixed weight.
    Number(f64),
}

impl std::str::FromStr for PosWeight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            _ if text == "balanced" => Ok(Self::Balanced),
            Ok(number) if number.is_finite() && number > 0.0 => Ok(Self::Number(number)),
            _ => Err("expected a number above 0, or balanced".to_owned()),
        }
    }
}

/// `--optimizer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OptimizerName {
    /// Stochastic gradient descent with momentum.
    Sgd,
    /// Adam; weight decay is part of the gradient.
    Adam,
    /// Adam with decoupled weight decay.
    Adamw,
    /// SGD for large batches.
    Lars,
    /// Adam for large batches.
    Lamb,
}

/// `--balance`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BalanceName {
    /// Equal shares.
    Off,
    /// Shares for which the slowest rank is fastest.
    Dynamic,
    /// Shares that follow the times of an epoch.
    PerEpoch,
    /// The shares of another training.
    Replay,
}

/// `--decay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DecayName {
    /// Constant.
    Constant,
    /// Multiplied by a factor every N epochs.
    Step,
    /// Decreases linearly to 0 at the last step.
    Linear,
    /// Decreases along half a cosine to 0 at the last step.
    Cosine,
}

/// `--device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DeviceName {
    /// A GPU if one is available, otherwise the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU of this rank.
    Cuda,
}

/// `--compute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ComputeName {
    /// The built-in kernels if they support the model, otherwise PyTorch.
    Auto,
    /// PyTorch.
    Pytorch,
}

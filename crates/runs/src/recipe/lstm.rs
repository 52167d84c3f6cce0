//! Settings of models with an LSTM.

use clap::ValueEnum;
use corpus::labels::Labels;
use scoring::Scoring;
use serde::{Deserialize, Serialize};

use super::limits::{self, described};
use super::{ClassWeights, InvalidSetting};

/// Sizes of an embedding and its LSTM layers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LstmSettings {
    /// Number of ids, including padding and the unknown word.
    pub ids: i64,
    /// Embedding dimension.
    pub embedding: i64,
    /// Hidden size.
    pub hidden: i64,
    /// Number of LSTM layers, at least 1.
    pub layers: usize,
    /// Whether each layer also reads rows backward.
    pub bidirectional: bool,
}

impl LstmSettings {
    /// Refuses sizes out of range. `ids`: the number of ids of the vocabulary.
    pub fn check(&self, ids: u64) -> Result<(), InvalidSetting> {
        if u64::try_from(self.ids) != Ok(ids) {
            return Err(("ids", self.ids.to_string(), format!("{ids}, those of its vocabulary")));
        }
        check_size("embedding", self.embedding)?;
        check_size("hidden", self.hidden)?;
        if i64::try_from(self.layers).is_ok_and(|layers| limits::LAYERS.contains(&layers)) {
            Ok(())
        } else {
            Err(("layers", self.layers.to_string(), described(&limits::LAYERS)))
        }
    }
}

fn check_size(name: &'static str, size: i64) -> Result<(), InvalidSetting> {
    if limits::SIZE.contains(&size) {
        Ok(())
    } else {
        Err((name, size.to_string(), described(&limits::SIZE)))
    }
}

/// The task for which the LSTM's states are used, with the settings of that task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Classifies a row.
    Classifier(ClassifierSettings),
    /// Predicts the next word at each position of a row. Other models can start from its weights.
    NextWord(NextWordSettings),
}

impl Family {
    /// Refuses invalid settings. A file may contain some that no flag can set.
    pub fn check(self) -> Result<(), InvalidSetting> {
        match self {
            Self::Classifier(settings) => settings.check(),
            Self::NextWord(settings) => settings.check(),
        }
    }

    /// The meaning of a row's outputs. `labels`: the dataset's. `None` if a row has no outputs, or if the objective
    /// needs other labels.
    pub fn scoring(self, labels: &Labels) -> Option<Scoring> {
        match self {
            Self::Classifier(settings) => settings.objective.scoring(labels),
            Self::NextWord(_) => None,
        }
    }
}

/// Settings of the sentiment classifier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifierSettings {
    /// Training objective.
    pub objective: Objective,
    /// Pooling of hidden states into one vector.
    pub pool: Pool,
    /// Width of the linear layer before the output.
    pub linear: i64,
}

impl ClassifierSettings {
    fn check(self) -> Result<(), InvalidSetting> {
        check_size("linear", self.linear)?;
        match self.objective {
            Objective::Label { pos_weight } if !(pos_weight.is_finite() && pos_weight > 0.0) => {
                Err(("pos_weight", pos_weight.to_string(), "a number above 0".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

/// Settings of next-word pretraining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextWordSettings {
    /// Number of candidate words per step. Each next word is predicted among these words.
    pub candidates: u32,
}

impl NextWordSettings {
    fn check(self) -> Result<(), InvalidSetting> {
        if limits::CANDIDATES.contains(&i64::from(self.candidates)) {
            Ok(())
        } else {
            Err(("candidates", self.candidates.to_string(), described(&limits::CANDIDATES)))
        }
    }
}

/// Training objective: what a row's outputs predict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The label. Binary cross-entropy with logits; the loss of a positive row is multiplied by `pos_weight`.
    Label {
        /// 1 gives both labels the same weight; less than 1 favours negative rows.
        pos_weight: f64,
    },
    /// The rating as a number. Squared error.
    Rating,
    /// The rating as one of five classes. Cross-entropy.
    FiveRatings,
    /// The label as one of three or more classes. Softmax cross-entropy; the loss of a row is multiplied by the weight
    /// of its class.
    Classes {
        /// One weight per class.
        class_weights: ClassWeights,
    },
}

impl Objective {
    /// O, the number of outputs per row.
    pub fn n_outputs(self) -> usize {
        match self {
            Self::Label { .. } | Self::Rating => 1,
            Self::FiveRatings => 5,
            Self::Classes { class_weights } => class_weights.all().len(),
        }
    }

    /// The meaning of a row's outputs. `labels`: the dataset's. `None` if the objective needs other labels: another
    /// number of classes, or for ratings the lowest rating with label 1.
    pub fn scoring(self, labels: &Labels) -> Option<Scoring> {
        match (self, labels.positive_from()) {
            (Self::Label { .. }, _) => (labels.n_classes() == 2).then_some(Scoring::Logit),
            (Self::Rating, positive_from) => Some(Scoring::Rating { positive_from: positive_from? }),
            (Self::FiveRatings, positive_from) => {
                Some(Scoring::FiveRatings { positive_from: positive_from? })
            }
            (Self::Classes { class_weights }, _) => {
                let classes = labels.n_classes();
                let is_fit = classes == class_weights.all().len();
                is_fit.then_some(Scoring::Classes { classes: classes as u8 })
            }
        }
    }
}

/// Pooling of hidden states into one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// The state after the last token.
    #[default]
    Last,
    /// The mean and the maximum of the states over all tokens, concatenated.
    MeanMax,
}

/// Dropout probabilities in training, for tokens and for values at three places. Dropped values are set to 0 and the
/// others are scaled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropout {
    /// Tokens; dropped ones are read as the unknown word.
    pub words: f64,
    /// Embeddings of tokens.
    pub embedding: f64,
    /// States between layers.
    pub layers: f64,
    /// The input of the output layer.
    pub head: f64,
}

impl Dropout {
    /// Whether all probabilities are 0.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

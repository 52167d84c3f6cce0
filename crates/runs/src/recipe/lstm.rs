//! The models over an LSTM, as sizes and choices.

use scoring::Scoring;
use serde::{Deserialize, Serialize};

use super::Fault;
use super::limits::{self, described};

/// Sizes of an embedding and the LSTM layers on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LstmSettings {
    /// Ids, padding and the unknown word among them.
    pub ids: i64,
    /// Embedding dimension.
    pub embedding: i64,
    /// Hidden size.
    pub hidden: i64,
    /// LSTM layers, 1 or more.
    pub layers: usize,
    /// Whether each layer also reads a row from its end.
    pub bidirectional: bool,
}

impl LstmSettings {
    /// Refuses sizes that no model has. `ids`: those of its words.
    pub fn check(&self, ids: u64) -> Result<(), Fault> {
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

fn check_size(name: &'static str, size: i64) -> Result<(), Fault> {
    if limits::SIZE.contains(&size) {
        Ok(())
    } else {
        Err((name, size.to_string(), described(&limits::SIZE)))
    }
}

/// What the LSTM's states are for, with the settings that only this has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// To tell what a row says.
    Classifier(ClassifierSettings),
    /// To tell each next word of a row; other models begin with what is learned by it.
    NextWord(NextWordSettings),
}

impl Family {
    /// Refuses settings that no flags ask for.
    pub fn check(self) -> Result<(), Fault> {
        match self {
            Self::Classifier(settings) => settings.check(),
            Self::NextWord(settings) => settings.check(),
        }
    }

    /// How the outputs for a row are read, where there are some. `positive_from`: the dataset's.
    pub fn scoring(self, positive_from: u8) -> Option<Scoring> {
        match self {
            Self::Classifier(settings) => Some(settings.objective.scoring(positive_from)),
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
    fn check(self) -> Result<(), Fault> {
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
    /// Words drawn in a step, from which the next ones are told.
    pub candidates: u32,
}

impl NextWordSettings {
    fn check(self) -> Result<(), Fault> {
        if limits::CANDIDATES.contains(&i64::from(self.candidates)) {
            Ok(())
        } else {
            Err(("candidates", self.candidates.to_string(), described(&limits::CANDIDATES)))
        }
    }
}

/// Training objective: what the outputs of a row are to be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// The label: binary cross-entropy with logits, a positive row's loss multiplied by `pos_weight`.
    Label {
        /// 1: as they come; less than 1 favours the negative rows.
        pos_weight: f64,
    },
    /// The rating: squared error.
    Rating,
    /// One of the five ratings: cross-entropy.
    FiveRatings,
}

impl Objective {
    /// O, the number of outputs of a row.
    pub fn n_outputs(self) -> usize {
        // Whichever ratings are positive.
        self.scoring(0).n_outputs()
    }

    /// How its outputs are read. `positive_from`: the dataset's.
    pub fn scoring(self, positive_from: u8) -> Scoring {
        match self {
            Self::Label { .. } => Scoring::Logit,
            Self::Rating => Scoring::Rating { positive_from },
            Self::FiveRatings => Scoring::FiveRatings { positive_from },
        }
    }
}

/// Pooling of hidden states into one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pool {
    /// The state at its last token.
    #[default]
    Last,
    /// The mean and the maximum of the states at all its tokens, beside each other.
    MeanMax,
}

/// What is left out at random in training: a share of the words; and of the numbers in three places, which are set to
/// 0, the others scaled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropout {
    /// Of the tokens, which are read as unknown words.
    pub words: f64,
    /// Of embedded tokens.
    pub embedding: f64,
    /// Of the states between layers.
    pub layers: f64,
    /// Of what goes into the output.
    pub head: f64,
}

impl Dropout {
    /// Whether anything is ever dropped.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

//! `--threshold` and `--calibrate`.

use std::fmt;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use scoring::{Method, ThresholdRule};

use crate::error::{Error, Result};

/// What is chosen on the validation split after the training.
#[derive(Clone, Debug, Args)]
pub struct ChoiceFlags {
    /// Threshold of the second label [default: 0.5]
    ///
    /// A probability above 0 and below 1: with a higher one, the second of two labels is predicted, which is label 1.
    /// f1 or accuracy: the threshold with the highest F1 or accuracy on the validation split. It is chosen after the
    /// last epoch and kept in the model.
    #[arg(long, value_name = "VALUE", hide_short_help = true, help_heading = "Model")]
    pub threshold: Option<ThresholdText>,
    /// Calibration of probabilities: none, temperature or platt [default: none]
    ///
    /// temperature: the log-odds are divided by one number, which changes no label. platt, for two labels: the log-odds
    /// are multiplied by one number, and another one is added. The numbers with the highest likelihood on the
    /// validation split are kept in the model. With a small validation split, temperature is safer.
    #[arg(
        long,
        value_enum,
        value_name = "NAME",
        default_value_t = CalibrateName::None,
        hide_short_help = true,
        hide_possible_values = true,
        hide_default_value = true,
        help_heading = "Model"
    )]
    pub calibrate: CalibrateName,
}

impl ChoiceFlags {
    /// How the threshold is chosen, if it is.
    pub fn rule(&self) -> Option<ThresholdRule> {
        self.threshold.map(|text| text.0)
    }

    /// The method of the calibration, if there is one.
    pub fn method(&self) -> Option<Method> {
        self.calibrate.method()
    }

    /// The flags that were passed, with their values.
    pub fn passed(&self) -> Vec<(&'static str, String)> {
        let calibrate = (self.calibrate != CalibrateName::None).then_some(self.calibrate);
        let name = |method: CalibrateName| Some(method.to_possible_value()?.get_name().to_owned());
        let threshold = self.threshold.map(|text| ("--threshold", text.to_string()));
        let calibrate = calibrate.and_then(|method| Some(("--calibrate", name(method)?)));
        threshold.into_iter().chain(calibrate).collect()
    }

    /// Those that require a validation split.
    pub fn fitted(&self) -> Vec<(&'static str, String)> {
        let is_fixed = matches!(self.rule(), Some(ThresholdRule::Probability(_)));
        self.passed().into_iter().filter(|(flag, _)| !(is_fixed && *flag == "--threshold")).collect()
    }

    /// Refuses what three or more classes do not have.
    pub fn check_classes(&self, n_classes: usize) -> Result<()> {
        if n_classes <= 2 {
            return Ok(());
        }
        if let Some(text) = self.threshold {
            return Err(Error::setting("--threshold", text, "no threshold for three or more classes"));
        }
        if self.calibrate == CalibrateName::Platt {
            let expected = "temperature or none for three or more classes";
            return Err(Error::setting("--calibrate", "platt", expected));
        }
        Ok(())
    }
}

/// `--threshold`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThresholdText(pub ThresholdRule);

impl FromStr for ThresholdText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rule = match (text, text.parse::<f64>()) {
            ("f1", _) => ThresholdRule::F1,
            ("accuracy", _) => ThresholdRule::Accuracy,
            (_, Ok(probability)) if probability > 0.0 && probability < 1.0 => {
                ThresholdRule::Probability(probability)
            }
            _ => return Err("expected f1, accuracy, or a probability above 0 and below 1".to_owned()),
        };
        Ok(Self(rule))
    }
}

impl fmt::Display for ThresholdText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ThresholdRule::F1 => f.write_str("f1"),
            ThresholdRule::Accuracy => f.write_str("accuracy"),
            ThresholdRule::Probability(probability) => write!(f, "{probability}"),
        }
    }
}

/// `--calibrate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibrateName {
    /// Probabilities as the model predicts them.
    None,
    /// Log-odds divided by one number.
    Temperature,
    /// Log-odds multiplied by one number, plus another one.
    Platt,
}

impl CalibrateName {
    /// The method, if there is one.
    pub fn method(self) -> Option<Method> {
        match self {
            Self::None => None,
            Self::Temperature => Some(Method::Temperature),
            Self::Platt => Some(Method::Platt),
        }
    }
}

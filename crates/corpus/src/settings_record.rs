//! The JSON form of settings: exactly one of the members `positive_from` and `labels`, `sample` only for a sample, and no
//! null.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::labels::{Classes, Labels, NoClasses};
use crate::objects::present;
use crate::sample::Sample;
use crate::settings::{Keep, Settings};

/// The JSON object of settings.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
struct SettingsRecord {
    cleaning_version: u32,
    unicode_version: String,
    stop_words: Vec<String>,
    max_tokens: u32,
    keep: Keep,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    positive_from: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    labels: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    sample: Option<u64>,
}

crate::read_from_objects!(SettingsRecord);

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let record = SettingsRecord {
            cleaning_version: self.cleaning_version,
            unicode_version: self.unicode_version.clone(),
            stop_words: self.stop_words.clone(),
            max_tokens: self.max_tokens,
            keep: self.keep,
            positive_from: self.labels.positive_from(),
            labels: self.labels.classes().map(Classes::to_string),
            sample: self.sample.threshold(),
        };
        SettingsRecord::serialize(&record, to)
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let record: SettingsRecord = Deserialize::deserialize(from)?;
        record.settings().map_err(D::Error::custom)
    }
}

impl SettingsRecord {
    fn settings(self) -> Result<Settings, NoSettings> {
        let labels = match (self.positive_from, self.labels) {
            (Some(rating), None) => Labels::PositiveFrom(rating),
            (None, Some(classes)) => Labels::Classes(Classes::canonical(&classes)?),
            _ => return Err(NoSettings::Labels),
        };
        let sample = match self.sample {
            None => Sample::ALL,
            Some(threshold) => Sample::with_threshold(threshold).ok_or(NoSettings::Sample(threshold))?,
        };
        Ok(Settings {
            cleaning_version: self.cleaning_version,
            unicode_version: self.unicode_version,
            stop_words: self.stop_words,
            max_tokens: self.max_tokens,
            keep: self.keep,
            labels,
            sample,
        })
    }
}

/// Why a JSON object is not settings.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
enum NoSettings {
    /// There are no labels, or two kinds.
    #[error("expected exactly one of `positive_from` and `labels`")]
    Labels,
    /// The classes are invalid.
    #[error("labels: {0}")]
    Classes(#[from] NoClasses),
    /// No sample has this threshold.
    #[error("sample: {0}, expected 1 to 4294967295")]
    Sample(u64),
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn json_settings_have_positive_from_or_labels() {
        let split = Settings::default();
        let three = Settings {
            labels: Labels::Classes("1-2=negative,3=neutral,4-5=positive".parse().unwrap()),
            ..split.clone()
        };
        for (settings, name, value) in [
            (&split, "positive_from", json!(4)),
            (&three, "labels", json!("1-2=negative,3=neutral,4-5=positive")),
        ] {
            let written = serde_json::to_value(settings).unwrap();
            assert_eq!((&written[name], written.as_object().unwrap().len()), (&value, 6));
            assert_eq!(serde_json::from_value::<Settings>(written).unwrap(), *settings);
        }
    }

    #[test]
    fn json_settings_have_the_threshold_of_a_sample() {
        let written = |share: &str| {
            let settings = Settings { sample: share.parse().unwrap(), ..Settings::default() };
            let written = serde_json::to_value(&settings).unwrap();
            assert_eq!(serde_json::from_value::<Settings>(written.clone()).unwrap(), settings);
            written
        };
        assert_eq!(written("0.25")["sample"], 1_073_741_824_u64);
        assert_eq!(written("1"), serde_json::to_value(Settings::default()).unwrap());
        assert_eq!(written("1").get("sample"), None);
        let refused = |sample: Value| {
            let mut settings = written("1");
            settings["sample"] = sample;
            serde_json::from_value::<Settings>(settings).unwrap_err().to_string()
        };
        assert_eq!(refused(json!(0)), "sample: 0, expected 1 to 4294967295");
        assert_eq!(refused(json!(1_u64 << 32)), "sample: 4294967296, expected 1 to 4294967295");
        assert_eq!(refused(json!(0.25)), "invalid type: floating point `0.25`, expected u64");
        assert_eq!(refused(Value::Null), "invalid type: null, expected u64");
    }

    #[test]
    fn json_labels_that_no_program_writes_are_refused() {
        let written = serde_json::to_value(Settings::default()).unwrap();
        let refused = |labels: &[(&str, Value)]| {
            let mut members = written.as_object().unwrap().clone();
            members.remove("positive_from");
            members.extend(labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
            serde_json::from_value::<Settings>(Value::Object(members)).unwrap_err().to_string()
        };
        let one = "expected exactly one of `positive_from` and `labels`";
        assert_eq!(refused(&[]), one);
        let list = json!("1-3=negative,4-5=positive");
        assert_eq!(refused(&[("positive_from", json!(4)), ("labels", list.clone())]), one);
        assert_eq!(
            refused(&[("positive_from", Value::Null), ("labels", list)]),
            "invalid type: null, expected u8"
        );
        let form = "labels: the classes have another form, expected 1=a,2=b";
        assert_eq!(refused(&[("labels", json!("1-1=a,2=b"))]), form);
        assert!(
            refused(&[("labels", json!("1=a,1=b"))]).starts_with("labels: the rating 1 is in two classes")
        );
    }
}

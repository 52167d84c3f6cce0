//! The JSON form of settings: exactly one of the members `positive_from` and `labels`, and no null.

use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

use crate::labels::{Classes, Labels, NoClasses};
use crate::settings::{Keep, Settings};

/// The JSON object of settings.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub(crate) struct SettingsRecord {
    cleaning_version: u32,
    unicode_version: String,
    stop_words: Vec<String>,
    max_tokens: u32,
    keep: Keep,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    positive_from: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    labels: Option<String>,
}

crate::read_from_objects!(SettingsRecord);

/// Reads an optional member that is omitted if it is absent, and never null.
pub(crate) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

impl From<Settings> for SettingsRecord {
    fn from(settings: Settings) -> Self {
        let Settings { cleaning_version, unicode_version, stop_words, max_tokens, keep, labels } = settings;
        let positive_from = labels.positive_from();
        let labels = labels.classes().map(Classes::to_string);
        Self { cleaning_version, unicode_version, stop_words, max_tokens, keep, positive_from, labels }
    }
}

impl TryFrom<SettingsRecord> for Settings {
    type Error = NoLabels;

    fn try_from(record: SettingsRecord) -> Result<Self, NoLabels> {
        let SettingsRecord {
            cleaning_version,
            unicode_version,
            stop_words,
            max_tokens,
            keep,
            positive_from,
            labels,
        } = record;
        let labels = match (positive_from, labels) {
            (Some(rating), None) => Labels::PositiveFrom(rating),
            (None, Some(classes)) => Labels::Classes(Classes::canonical(&classes)?),
            _ => return Err(NoLabels::Number),
        };
        Ok(Self { cleaning_version, unicode_version, stop_words, max_tokens, keep, labels })
    }
}

/// Why JSON settings have no labels.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum NoLabels {
    /// There are none, or two kinds.
    #[error("expected exactly one of `positive_from` and `labels`")]
    Number,
    /// The classes are invalid.
    #[error("labels: {0}")]
    Classes(#[from] NoClasses),
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

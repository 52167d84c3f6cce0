//! The attributes shared by shards and datasets: the kind of file, its settings, its digests.

use corpus::digest::Digest;
use corpus::labels::{Classes, Labels};
use corpus::sample::Sample;
use corpus::settings::{Settings, Unsound};
use program::exit::quoted;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result, Violation};
use crate::file::{FileReader, FileWriter, Value};
use crate::schema::{
    CLEANING, FORMAT, ID_DIGEST, KEEP, LABELS, MAX_TOKENS, POSITIVE_FROM, ROW_DIGEST, SAMPLE, SCHEMA,
    SCHEMA_VERSION, STOP_WORDS, UNICODE, VOCABULARY_DIGEST,
};

/// The three digests of a shard or a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Digests {
    /// Digest of the rows' words.
    pub row_digest: Digest,
    /// Digest of the rows' ids.
    pub id_digest: Digest,
    /// Digest of words and counts: a dataset's vocabulary or a shard's dictionary.
    pub vocabulary_digest: Digest,
}

corpus::read_from_objects!(Digests);

pub(crate) fn write_digests(file: &mut FileWriter, digests: Digests) -> Result<()> {
    file.attribute(ROW_DIGEST, &Value::Text(digests.row_digest.to_string()))?;
    file.attribute(ID_DIGEST, &Value::Text(digests.id_digest.to_string()))?;
    file.attribute(VOCABULARY_DIGEST, &Value::Text(digests.vocabulary_digest.to_string()))
}

pub(crate) fn read_digests(file: &FileReader) -> Result<Digests> {
    Ok(Digests {
        row_digest: file.digest(ROW_DIGEST)?,
        id_digest: file.digest(ID_DIGEST)?,
        vocabulary_digest: file.digest(VOCABULARY_DIGEST)?,
    })
}

pub(crate) fn write_format(file: &mut FileWriter, format: &str) -> Result<()> {
    file.attribute(FORMAT, &Value::Text(format.to_owned()))?;
    file.attribute(SCHEMA, &Value::Number(u64::from(SCHEMA_VERSION)))
}

/// Checks the kind of file, and that it has no other attributes than these.
pub(crate) fn check_format(file: &FileReader, expected: &str, attributes: &[&str]) -> Result<()> {
    let format = file.text(FORMAT)?;
    if format != expected {
        let found = quoted(format.as_bytes());
        return Err(file.stored.unexpected("attribute format", &found, &format!("{expected:?}")));
    }
    let version = file.number(SCHEMA)?;
    if version != u64::from(SCHEMA_VERSION) {
        return Err(Error::Unexpected {
            path: file.stored.path().to_owned(),
            thing: "schema version".to_owned(),
            found: version.to_string(),
            expected: SCHEMA_VERSION.to_string(),
            remedy: "make the file again with this version of the programs",
        });
    }
    // A file has one of the two attributes of labels. If it has both, the other one is refused.
    let mut names: Vec<&str> = match file.has_attribute(LABELS) {
        true => attributes.iter().map(|&name| if name == POSITIVE_FROM { LABELS } else { name }).collect(),
        false => attributes.to_vec(),
    };
    names.push(SAMPLE);
    file.check_attributes(&names)
}

pub(crate) fn write_settings(file: &mut FileWriter, settings: &Settings) -> Result<()> {
    file.attribute(CLEANING, &Value::Number(u64::from(settings.cleaning_version)))?;
    file.attribute(UNICODE, &Value::Text(settings.unicode_version.clone()))?;
    file.attribute(STOP_WORDS, &Value::Text(settings.stop_words.join("\n")))?;
    file.attribute(MAX_TOKENS, &Value::Number(u64::from(settings.max_tokens)))?;
    file.attribute(KEEP, &Value::Text(settings.keep.name().to_owned()))?;
    match &settings.labels {
        Labels::PositiveFrom(rating) => file.attribute(POSITIVE_FROM, &Value::Number(u64::from(*rating))),
        Labels::Classes(classes) => file.attribute(LABELS, &Value::Text(classes.to_string())),
    }?;
    match settings.sample.threshold() {
        Some(threshold) => file.attribute(SAMPLE, &Value::Number(threshold)),
        None => Ok(()),
    }
}

pub(crate) fn read_settings(file: &FileReader) -> Result<Settings> {
    let number = |name: &str| {
        let number = file.number(name)?;
        u32::try_from(number).map_err(|_| {
            let expected = format!("at most {}", u32::MAX);
            file.stored.broken(Violation::new(
                "F14",
                format!("attribute {name}"),
                number.to_string(),
                expected,
            ))
        })
    };
    let (keep, stop_words) = (file.text(KEEP)?, file.text(STOP_WORDS)?);
    let keep = keep.parse().map_err(|_| {
        let found = quoted(keep.as_bytes());
        file.stored.broken(Violation::new("F14", "attribute keep", found, "first, last or ends"))
    })?;
    // A value beyond every rating is refused by the check below.
    let narrow = |rating| u8::try_from(rating).unwrap_or(u8::MAX);
    let labels = match file.has_attribute(LABELS) {
        true => Labels::Classes(read_classes(file)?),
        false => Labels::PositiveFrom(narrow(number(POSITIVE_FROM)?)),
    };
    let settings = Settings {
        cleaning_version: number(CLEANING)?,
        unicode_version: file.text(UNICODE)?.to_owned(),
        stop_words: match stop_words {
            "" => Vec::new(),
            listed => listed.split('\n').map(str::to_owned).collect(),
        },
        max_tokens: number(MAX_TOKENS)?,
        keep,
        labels,
        sample: read_sample(file)?,
    };
    match settings.check() {
        Ok(()) => Ok(settings),
        Err(Unsound { setting, found, expected }) => {
            let (rule, found) = match setting {
                "cleaning version" | "Unicode version" => ("F12", found),
                "stop words" => ("F13", found),
                _ => ("F14", number(POSITIVE_FROM)?.to_string()),
            };
            Err(file.stored.broken(Violation::new(rule, format!("the setting {setting}"), found, expected)))
        }
    }
}

fn read_sample(file: &FileReader) -> Result<Sample> {
    if !file.has_attribute(SAMPLE) {
        return Ok(Sample::ALL);
    }
    let threshold = file.number(SAMPLE)?;
    Sample::with_threshold(threshold).ok_or_else(|| {
        let (thing, found) = (format!("attribute {SAMPLE}"), threshold.to_string());
        file.stored.broken(Violation::new("F14", thing, found, "1 to 4294967295"))
    })
}

fn read_classes(file: &FileReader) -> Result<Classes> {
    let text = file.text(LABELS)?;
    Classes::canonical(text).map_err(|error| {
        let expected = format!("classes as reducer writes them: {error}");
        file.stored.broken(Violation::new(
            "F14",
            format!("attribute {LABELS}"),
            quoted(text.as_bytes()),
            expected,
        ))
    })
}

//! The attributes that shards and datasets share: what the file is, the settings it was made with, its digests.

use corpus::digest::Digest;
use corpus::settings::Settings;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::file::{FileReader, FileWriter, Value};
use crate::schema::{
    CLEANING, FORMAT, ID_DIGEST, KEEP, MAX_TOKENS, POSITIVE_FROM, ROW_DIGEST, SCHEMA, SCHEMA_VERSION,
    STOP_WORDS, UNICODE, VOCABULARY_DIGEST,
};

/// The three digests of a shard or a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Digests {
    /// Of the rows' words.
    pub row_digest: Digest,
    /// Of the rows' ids.
    pub id_digest: Digest,
    /// Of the words and counts: a dataset's vocabulary, a shard's dictionary.
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

pub(crate) fn check_format(file: &FileReader, expected: &str) -> Result<()> {
    let format = file.text(FORMAT)?;
    if format != expected {
        return Err(file.unexpected("attribute format", &format!("{format:?}"), &format!("{expected:?}")));
    }
    let version = file.number(SCHEMA)?;
    if version == u64::from(SCHEMA_VERSION) {
        return Ok(());
    }
    Err(Error::Unexpected {
        path: file.path().to_owned(),
        thing: "schema version".to_owned(),
        found: version.to_string(),
        expected: SCHEMA_VERSION.to_string(),
        remedy: "make the file again with this version of the programs",
    })
}

pub(crate) fn write_settings(file: &mut FileWriter, settings: &Settings) -> Result<()> {
    file.attribute(CLEANING, &Value::Number(u64::from(settings.cleaning_version)))?;
    file.attribute(UNICODE, &Value::Text(settings.unicode_version.clone()))?;
    file.attribute(STOP_WORDS, &Value::Text(settings.stop_words.join("\n")))?;
    file.attribute(MAX_TOKENS, &Value::Number(u64::from(settings.max_tokens)))?;
    file.attribute(KEEP, &Value::Text(settings.keep.name().to_owned()))?;
    file.attribute(POSITIVE_FROM, &Value::Number(u64::from(settings.positive_from)))
}

pub(crate) fn read_settings(file: &FileReader) -> Result<Settings> {
    let number = |name: &str, most: u64| {
        let number = file.number(name)?;
        let in_range = Some(number).filter(|&number| number <= most);
        in_range.ok_or_else(|| {
            file.unexpected(&format!("attribute {name}"), &number.to_string(), &format!("at most {most}"))
        })
    };
    let keep = file.text(KEEP)?;
    let stop_words = file.text(STOP_WORDS)?;
    Ok(Settings {
        cleaning_version: number(CLEANING, u64::from(u32::MAX))? as u32,
        unicode_version: file.text(UNICODE)?.to_owned(),
        stop_words: stop_words.split('\n').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
        max_tokens: number(MAX_TOKENS, u64::from(u32::MAX))? as u32,
        keep: keep.parse().map_err(|_| file.unexpected("attribute keep", keep, "first, last or ends"))?,
        positive_from: number(POSITIVE_FROM, 5)? as u8,
    })
}

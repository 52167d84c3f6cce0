//! A job file as written: tables of texts and numbers, before their values are checked.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    pub name: Option<String>,
    pub run: Option<String>,
    pub dataset: Option<String>,
    pub programs: Option<String>,
    pub staging: Option<String>,
    pub s3: Option<String>,
    #[serde(default)]
    pub input: BTreeMap<String, Value>,
    #[serde(default)]
    pub rows: BTreeMap<String, Value>,
    #[serde(default)]
    pub output: BTreeMap<String, Value>,
    #[serde(default)]
    pub hadoop: HadoopTable,
    pub cluster: Option<super::ClusterTable>,
    #[serde(default)]
    pub prices: super::Prices,
    pub gpus: Option<GpusTable>,
}

/// The table `hadoop`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct HadoopTable {
    pub reducers: Option<u32>,
    pub combiner: Option<bool>,
    pub keep_words: Option<bool>,
    pub reducer_memory: Option<Value>,
    pub merge_tasks: Option<u32>,
    pub credentials: Option<String>,
    #[serde(default)]
    pub settings: BTreeMap<String, Value>,
}

/// The table `gpus`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct GpusTable {
    #[serde(rename = "type")]
    pub instance_type: Option<String>,
    pub machines: Option<u32>,
    pub image: Option<String>,
    pub subnet: Option<String>,
    pub instance_profile: Option<String>,
    pub region: Option<String>,
    pub shared: Option<String>,
    pub out: Option<String>,
    pub files: Option<String>,
    pub sha256: Option<String>,
    #[serde(default)]
    pub arguments: Vec<String>,
}

/// A value that becomes text: the value of a setting, of a tag or of a flag.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, expecting = "expected a text, a number, true or false")]
pub enum Value {
    Switch(bool),
    Number(i64),
    Amount(f64),
    Text(String),
    Texts(Vec<String>),
}

impl Value {
    /// The value as the text of a flag.
    pub fn text(&self) -> String {
        match self {
            Self::Switch(is_on) => is_on.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Amount(amount) => amount.to_string(),
            Self::Text(text) => text.clone(),
            Self::Texts(texts) => texts.join(" "),
        }
    }
}

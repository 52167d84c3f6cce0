//! Metrics of each named class, for the JSON output of commands.

use scoring::{Confusion, OfClass};
use serde::Serialize;

/// Metrics of a class, with its name.
#[derive(Debug, Serialize)]
pub struct Class {
    name: String,
    #[serde(flatten)]
    metrics: OfClass,
}

impl Class {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The classes of a confusion matrix with these names; none if the classes have no names.
pub fn classes(names: &[String], confusion: &Confusion) -> Vec<Class> {
    let of_classes = names.iter().cloned().zip(confusion.classes());
    of_classes.map(|(name, metrics)| Class { name, metrics }).collect()
}

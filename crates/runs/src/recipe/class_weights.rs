//! Loss weights of three or more classes.

use scoring::CLASSES_MAX;
use serde::{Deserialize, Serialize};

/// The weight of each class in the loss, for 3 to [`CLASSES_MAX`] classes. In JSON, a list of one number per class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct ClassWeights {
    n_classes: usize,
    all: [f64; CLASSES_MAX],
}

impl ClassWeights {
    /// Weight 1 for each of 3 to [`CLASSES_MAX`] classes.
    pub fn equal(n_classes: usize) -> Self {
        Self { n_classes: n_classes.min(CLASSES_MAX), all: [1.0; CLASSES_MAX] }
    }

    /// These weights. Refuses another number of weights than 3 to [`CLASSES_MAX`], and weights that are not above 0.
    pub fn of(weights: &[f64]) -> Result<Self, String> {
        if !(3..=CLASSES_MAX).contains(&weights.len()) {
            return Err(format!("{} class weights, expected 3 to {CLASSES_MAX}", weights.len()));
        }
        if let Some(weight) = weights.iter().find(|weight| !(weight.is_finite() && **weight > 0.0)) {
            return Err(format!("class weight {weight}, expected a number above 0"));
        }
        let mut all = [1.0; CLASSES_MAX];
        all[..weights.len()].copy_from_slice(weights);
        Ok(Self { n_classes: weights.len(), all })
    }

    /// The weight of each class.
    pub fn all(&self) -> &[f64] {
        &self.all[..self.n_classes]
    }
}

impl From<ClassWeights> for Vec<f64> {
    fn from(weights: ClassWeights) -> Self {
        weights.all().to_vec()
    }
}

impl TryFrom<Vec<f64>> for ClassWeights {
    type Error = String;

    fn try_from(weights: Vec<f64>) -> Result<Self, String> {
        Self::of(&weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_from_a_list_of_three_to_five_numbers_above_zero() {
        let found: ClassWeights = serde_json::from_str("[1.0,0.5,2.0]").unwrap();
        assert_eq!(found.all(), [1.0, 0.5, 2.0]);
        assert_eq!(serde_json::to_string(&found).unwrap(), "[1.0,0.5,2.0]");
        for hostile in
            ["[1.0,1.0]", "[1,1,1,1,1,1]", "[1.0,0.0,1.0]", "[1.0,-1.0,1.0]", "[1,1,1e999]", "3", "[]"]
        {
            assert!(serde_json::from_str::<ClassWeights>(hostile).is_err(), "{hostile}");
        }
    }
}

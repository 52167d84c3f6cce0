//! The labels of a model by number and by name.
//!
//! A model numbers its labels by frequency. Users see them in the order of their names, so that the labels 0 and 1, or
//! 1 and 2, are in this order in the confusion matrix.

/// The labels of a model.
#[derive(Clone, Debug)]
pub struct Labels {
    names: Vec<String>,
    /// The labels in the order of their names.
    order: Vec<u32>,
    /// The place of each label in this order.
    places: Vec<u32>,
}

impl Labels {
    /// Labels by number.
    pub fn new(names: Vec<String>) -> Self {
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_by(|&one, &other| names[one as usize].cmp(&names[other as usize]));
        let mut places = vec![0; names.len()];
        (0..).zip(&order).for_each(|(place, &label)| places[label as usize] = place);
        Self { names, order, places }
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.names.len()
    }

    /// The name of a label.
    pub fn name(&self, label: u32) -> &str {
        &self.names[label as usize]
    }

    /// The names in their order.
    pub fn names(&self) -> Vec<String> {
        self.in_order().map(|label| self.name(label).to_owned()).collect()
    }

    /// The labels in the order of their names.
    pub fn in_order(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().copied()
    }

    /// The place of a label in the order of names.
    pub fn place(&self, label: u32) -> u32 {
        self.places[label as usize]
    }

    /// The outputs that `scoring` expects for a text: for two labels the log-odds of the second, otherwise the logarithm
    /// of each probability, both in the order of names.
    pub fn outputs(&self, probabilities: &[f32]) -> Vec<f64> {
        let logarithm = |label: u32| f64::from(probabilities[label as usize].max(f32::MIN_POSITIVE)).ln();
        match self.order[..] {
            [first, second] => vec![logarithm(second) - logarithm(first)],
            ref order => order.iter().map(|&label| logarithm(label)).collect(),
        }
    }
}

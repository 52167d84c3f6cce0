//! The n-grams that speak most for each label, for the report.

use classifiers::{Classifier, Model, Texts};
use runs::training::{FORMAT_VERSION, TopNgrams, TopOfLabel, WeighedNgram};
use training::{Error, Result};

/// N-grams per label.
const N_NGRAMS: usize = 20;
/// Labels with n-grams.
const N_LABELS: usize = 10;
/// Tokens of the texts in which n-grams of embeddings are searched.
const TOKENS_MAX: usize = 1 << 15;

/// The n-grams with the largest weights of each label. A linear model has a list of them. Of embeddings, whose n-grams are
/// hashed, they are searched in the first texts.
pub fn top(classifier: &Classifier, texts: &Texts) -> Result<TopNgrams> {
    let labels = classifier.labels();
    let of_label = |label: u32| -> Result<TopOfLabel> {
        let mut ngrams: Vec<(String, f64)> = match classifier.model() {
            Model::Linear(model) => {
                let named = model.stored().named.iter().filter(|named| named.label == label);
                named.map(|named| (named.ngram.clone(), f64::from(named.weight))).collect()
            }
            Model::FastText(model) => {
                let found = model.top(texts, label, N_NGRAMS, TOKENS_MAX)?;
                found.into_iter().map(|(ngram, weight)| (ngram, f64::from(weight))).collect()
            }
            Model::Program(_) => {
                return Err(Error::internal(&"a model of another program was not trained here"));
            }
        };
        ngrams.retain(|(_, weight)| *weight > 0.0);
        ngrams.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        ngrams.truncate(N_NGRAMS);
        let ngrams = ngrams.into_iter().map(|(ngram, weight)| WeighedNgram { ngram, weight }).collect();
        Ok(TopOfLabel { name: labels.name(label).to_owned(), ngrams })
    };
    let labels = labels.in_order().take(N_LABELS).map(of_label).collect::<Result<Vec<_>>>()?;
    Ok(TopNgrams { version: FORMAT_VERSION, labels, weighted: None, tested: None, evaluation: None })
}

//! The words nearest to a word or a vector, and answers to single analogies.

use std::borrow::Cow;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::embedding::Embedding;
use crate::error::{Error, Result};
use crate::units::{Units, unit};

/// Prevents a division by 0 in 3CosMul (Levy and Goldberg 2014).
pub(crate) const EPSILON: f32 = 0.001;

/// How an analogy "a is to b as c is to d" is answered (Levy and Goldberg 2014, "Linguistic regularities in sparse and
/// explicit word representations").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// 3CosAdd: the word d that maximises cos(d, b) - cos(d, a) + cos(d, c).
    Add,
    /// 3CosMul: the word d that maximises cos(d, b) · cos(d, c) / (cos(d, a) + 0.001), with cosines moved to 0 to 1.
    Mul,
}

/// A word of the vocabulary with its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    /// The number of the word.
    pub word: u32,
    /// The cosine, or the score of an analogy.
    pub score: f32,
}

/// Answers queries for an embedding.
#[derive(Debug)]
pub struct Neighbours<'a> {
    embedding: &'a Embedding,
    units: Units,
}

impl<'a> Neighbours<'a> {
    /// Computes the unit vectors of all words.
    pub fn new(embedding: &'a Embedding) -> Self {
        Self { embedding, units: Units::of(embedding) }
    }

    /// The `top` words nearest to a word by cosine, without the word itself. The word is looked up as it is, then in
    /// lower case.
    ///
    /// # Errors
    /// If the word has no vector.
    pub fn of_word(&self, word: &str, top: usize) -> Result<Vec<Neighbour>> {
        let vector = find(self.embedding, word)?;
        let own = self.embedding.number_of(word.as_bytes());
        Ok(self.of_vector(&vector, top, own.as_slice()))
    }

    /// The `top` words nearest to a vector by cosine, without the words `excluded`.
    ///
    /// # Panics
    /// If the vector has another dimension.
    pub fn of_vector(&self, vector: &[f32], top: usize, excluded: &[u32]) -> Vec<Neighbour> {
        assert_eq!(vector.len(), self.embedding.dim, "the dimension of the words");
        let query: Vec<f32> = unit(vector).collect();
        best(&self.units.cosines(&query), top, excluded)
    }

    /// The `top` words d of "a is to b as c is to d", without a, b and c.
    ///
    /// # Errors
    /// If a word has no vector.
    pub fn analogy(&self, words: [&str; 3], method: Method, top: usize) -> Result<Vec<Neighbour>> {
        let mut cosines = Vec::new();
        for word in words {
            let query: Vec<f32> = unit(&find(self.embedding, word)?).collect();
            cosines.push(self.units.cosines(&query));
        }
        let scores: Vec<f32> = (0..self.embedding.n_words())
            .map(|word| score(method, cosines[0][word], cosines[1][word], cosines[2][word]))
            .collect();
        let excluded: Vec<u32> =
            words.iter().filter_map(|word| self.embedding.number_of(word.as_bytes())).collect();
        Ok(best(&scores, top, &excluded))
    }
}

/// The score of a word whose cosines with a, b and c are these.
pub(crate) fn score(method: Method, a: f32, b: f32, c: f32) -> f32 {
    let moved = |cosine: f32| (cosine + 1.0) / 2.0;
    match method {
        Method::Add => b - a + c,
        Method::Mul => moved(b) * moved(c) / (moved(a) + EPSILON),
    }
}

/// The vector of a word as it is, or in lower case.
fn find<'a>(embedding: &'a Embedding, word: &str) -> Result<Cow<'a, [f32]>> {
    embedding.find(word.as_bytes()).ok_or_else(|| Error::UnknownWord { word: word.to_owned() })
}

/// The `top` highest scores in descending order, equal ones by number.
fn best(scores: &[f32], top: usize, excluded: &[u32]) -> Vec<Neighbour> {
    let words = (0..).zip(scores).filter(|(word, _)| !excluded.contains(word));
    let mut all: Vec<Neighbour> = words.map(|(word, &score)| Neighbour { word, score }).collect();
    let order = |a: &Neighbour, b: &Neighbour| b.score.total_cmp(&a.score).then(a.word.cmp(&b.word));
    if top < all.len() {
        all.select_nth_unstable_by(top, order);
        all.truncate(top);
    }
    all.sort_unstable_by(order);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{names, random};

    fn numbers(found: &[Neighbour]) -> Vec<u32> {
        found.iter().map(|neighbour| neighbour.word).collect()
    }

    /// King and queen differ as man and woman do.
    fn royal() -> Embedding {
        let vectors = vec![1.0, 0.0, 1.0, 1.0, 5.0, 0.2, 5.0, 1.3, -1.0, -1.0];
        Embedding::new(names(&["man", "woman", "king", "queen", "tree"]), None, 2, vectors)
    }

    #[test]
    fn the_nearest_words_have_the_highest_cosines() {
        let embedding = random(50, 8, 3);
        let found = Neighbours::new(&embedding).of_word("w7", 50).unwrap();
        assert_eq!(found.len(), 49);
        let cosine = |word| crate::similarity::cosine(embedding.vector(7), embedding.vector(word));
        let mut expected: Vec<u32> = (0..50).filter(|&word| word != 7).collect();
        expected.sort_by(|&a, &b| cosine(b).total_cmp(&cosine(a)));
        assert_eq!(numbers(&found), expected);
        assert_eq!(Neighbours::new(&embedding).of_word("W7", 3).unwrap()[..], found[..3]);
    }

    #[test]
    fn an_analogy_is_answered_without_its_words() {
        let embedding = royal();
        let neighbours = Neighbours::new(&embedding);
        for method in [Method::Add, Method::Mul] {
            let found = neighbours.analogy(["man", "king", "woman"], method, 5).unwrap();
            assert_eq!(numbers(&found)[0], 3, "{method:?} {found:?}");
            assert_eq!(found.len(), 2);
        }
    }

    #[test]
    fn an_unknown_word_is_refused() {
        let told = Neighbours::new(&royal()).of_word("xyz", 3).unwrap_err().to_string();
        assert_eq!(
            told,
            "the word \"xyz\" is not in the vocabulary, and the model has no character n-grams of it; choose another \
             word"
        );
    }
}

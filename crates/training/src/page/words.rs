//! A model of word vectors to the words that a report shows.

use embeddings::map::{frequent, pca2};
use embeddings::neighbours::Neighbours;
use embeddings::{Embedding, files};
use program::location::Location;
use report::{Run, Words};
use runs::training::MODEL;
use store::S3Options;

use crate::error::Result;
use crate::remote;

/// Neighbours per word.
const TOP: usize = 10;
/// Words whose neighbours are shown by default, and their minimum length: shorter ones are mostly function words.
const DEFAULT_WORDS: usize = 8;
const LETTERS_MIN: usize = 5;
/// Frequent words on the map.
const MAPPED: usize = 150;

/// Adds the words of the model of a training of word vectors. Errors: a word has no vector, or the model is damaged.
pub(super) fn add(run: &mut Run, place: &Location, asked: &[String], s3: &S3Options) -> Result<()> {
    if !run.is_of_vectors() || !run.is_complete {
        return Ok(());
    }
    let model = match place {
        Location::Local(folder) => folder.join(MODEL),
        Location::S3(url) => remote::fetch_model(url, s3, "TRAINING")?,
    };
    let embedding = files::read(&model)?;
    let name = |word: u32| String::from_utf8_lossy(embedding.words.name(word)).into_owned();
    let shown = if asked.is_empty() { usual(&embedding).map(name).collect() } else { asked.to_vec() };
    let search = Neighbours::new(&embedding);
    let mut neighbours = Vec::new();
    for word in &shown {
        let near = search.of_word(word, TOP)?;
        neighbours.push((word.clone(), near.iter().map(|near| (name(near.word), near.score)).collect()));
    }
    // The chosen words first: their labels are never left out for others.
    let mut mapped: Vec<u32> = shown.iter().filter_map(|word| embedding.number_of(word.as_bytes())).collect();
    for word in frequent(&embedding, MAPPED) {
        if !mapped.contains(&word) {
            mapped.push(word);
        }
    }
    let map = mapped.iter().map(|&word| name(word)).zip(pca2(&embedding, &mapped)).collect();
    let (n_words, dim) = (embedding.n_words() as u64, embedding.dim as u64);
    run.words = Some(Words { neighbours, map, n_words, dim });
    Ok(())
}

/// The most frequent words that are long enough.
fn usual(embedding: &Embedding) -> impl Iterator<Item = u32> {
    let is_long =
        |&word: &u32| String::from_utf8_lossy(embedding.words.name(word)).chars().count() >= LETTERS_MIN;
    frequent(embedding, embedding.n_words()).into_iter().filter(is_long).take(DEFAULT_WORDS)
}

//! Trainings with character n-grams, compared with plain ones and with the equations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::skipgram::{
    Decay, Distribution, Growing, NgramBuckets, Sentences, SkipGramSettings, SkipGramTraining, Vocabulary,
    Work,
};

const CHARACTERS: NgramBuckets = NgramBuckets { min: 3, max: 5, buckets: 1000 };

fn settings(characters: Option<NgramBuckets>) -> SkipGramSettings {
    SkipGramSettings {
        dim: 20,
        window: 2,
        min_count: 1,
        sample: 0.0,
        rate: 0.5,
        characters,
        ..SkipGramSettings::default()
    }
}

fn vocabulary(words: &[&str]) -> Vocabulary {
    Vocabulary::of(words.len(), words.iter().map(|word| (word.as_bytes(), 1)), 0, 0)
}

/// A training of these words, with its vectors drawn.
fn begun(settings: SkipGramSettings, vocabulary: &Vocabulary) -> SkipGramTraining {
    let training = SkipGramTraining::new(settings, vocabulary.n_words()).unwrap();
    (0..vocabulary.n_words() as u32).for_each(|word| training.draw(word));
    training
}

/// Trains a sentence some times.
fn train(training: &SkipGramTraining, vocabulary: &Vocabulary, sentence: &[u32], times: u64) {
    let mut sentences = Sentences::default();
    sentences.push(sentence.iter().copied(), sentence.len() as u64);
    let sentences = Arc::new(sentences);
    let distribution = Arc::new(Distribution::new(&vocabulary.counts(), 1, 0.75, 0.0));
    let subwords = training.subwords(vocabulary).map(Arc::new);
    let number = AtomicU64::new(0);
    let next = || {
        let number = number.fetch_add(1, Relaxed);
        let (sentences, distribution) = (Arc::clone(&sentences), Arc::clone(&distribution));
        (number < times).then(|| Work { sentences, distribution, subwords: subwords.clone(), number })
    };
    training.run(1, Decay::Constant, &next).unwrap();
}

fn vector(training: &SkipGramTraining, vocabulary: &Vocabulary, word: u32) -> Vec<f32> {
    let (mut rows, mut vector) = (Vec::new(), vec![0.0; training.settings().dim]);
    training.characters_of(vocabulary.word(word), &mut rows);
    training.read_vector(word, &rows, &mut vector);
    vector
}

fn output(training: &SkipGramTraining, word: u32) -> Vec<f32> {
    let mut vector = vec![0.0; training.settings().dim];
    training.output().read(word, 0, &mut vector);
    vector
}

#[track_caller]
fn close(found: &[f32], expected: &[f32]) {
    let difference = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-5, "{difference}");
}

#[test]
fn words_that_are_too_short_for_ngrams_are_trained_as_without_them() {
    let words = ["a", "b", "c", "d", "e", "f", "g"];
    let vocabulary = vocabulary(&words);
    let long = NgramBuckets { min: 9, max: 9, ..CHARACTERS };
    let (plain, windowed) = (begun(settings(None), &vocabulary), begun(settings(Some(long)), &vocabulary));
    let sentence = [3, 0, 6, 1, 5, 2, 4];
    for training in [&plain, &windowed] {
        train(training, &vocabulary, &sentence, 20);
    }
    for word in 0..words.len() as u32 {
        close(&vector(&windowed, &vocabulary, word), &vector(&plain, &vocabulary, word));
        close(&output(&windowed, word), &output(&plain, word));
    }
    assert_ne!(output(&plain, 0), vec![0.0; 20]);
}

#[test]
fn each_row_of_a_word_receives_the_whole_change_of_its_mean() {
    let vocabulary = vocabulary(&["kettle", "banana"]);
    let training =
        begun(SkipGramSettings { negatives: 0, window: 1, ..settings(Some(CHARACTERS)) }, &vocabulary);
    let rows_of = |word: u32| {
        let mut rows = Vec::new();
        training.draw_characters(vocabulary.word(word), &mut rows);
        rows
    };
    let lists = [rows_of(0), rows_of(1)];
    // `ana` is in `banana` twice.
    assert!(lists[1].iter().any(|row| lists[1].iter().filter(|other| *other == row).count() == 2));
    let before = [0, 1].map(|word| vector(&training, &vocabulary, word));
    let read = |training: &SkipGramTraining, row: u32| {
        let (rows, mut values) = (&training.buckets().unwrap().rows, vec![0.0; 20]);
        rows.read(row, 0, &mut values);
        values
    };
    let once = lists[1].iter().find(|row| lists[1].iter().filter(|other| other == row).count() == 1);
    let twice = lists[1].iter().find(|row| lists[1].iter().filter(|other| other == row).count() == 2);
    let [once, twice] = [once, twice].map(|row| *row.unwrap());
    let rows_before = [once, twice].map(|row| read(&training, row));
    // First sentence: the output vectors are 0, so the means stay, and each output vector becomes rate / 2 of a mean.
    // Second one: the mean m of a word moves by rate · (1 - logistic(m·o)) · o.
    train(&training, &vocabulary, &[0, 1], 2);
    for (word, other) in [(0u32, 1u32), (1, 0)] {
        let mean = &before[word as usize];
        let output_before: Vec<f32> = mean.iter().map(|value| 0.25 * value).collect();
        let dot: f32 = mean.iter().zip(&output_before).map(|(a, b)| a * b).sum();
        let share = 0.5 * (1.0 - 1.0 / (1.0 + (-dot).exp()));
        let change: Vec<f32> = output_before.iter().map(|value| share * value).collect();
        let after: Vec<f32> = output_before.iter().zip(mean).map(|(o, m)| o + share * m).collect();
        close(&output(&training, other), &after);
        if word == 1 {
            let plus = |row: &[f32], times: f32| -> Vec<f32> {
                row.iter().zip(&change).map(|(value, change)| value + times * change).collect()
            };
            close(&read(&training, once), &plus(&rows_before[0], 1.0));
            close(&read(&training, twice), &plus(&rows_before[1], 2.0));
        }
    }
}

#[test]
fn a_state_has_the_rows_of_ngrams() {
    let vocabulary = vocabulary(&["kettle", "banana", "lid"]);
    let training = begun(settings(Some(CHARACTERS)), &vocabulary);
    train(&training, &vocabulary, &[0, 1, 2, 1], 5);
    let mut state = Vec::new();
    training.save(&vocabulary, b"place", &mut state).unwrap();
    let mut restored = SkipGramTraining::new(settings(Some(CHARACTERS)), 3).unwrap();
    let (words, place) = restored.restore(3, &mut &state[..]).unwrap();
    assert_eq!(place, b"place");
    for word in 0..3 {
        assert_eq!(vector(&restored, &words, word), vector(&training, &vocabulary, word));
    }
    for bucket in 0..CHARACTERS.buckets {
        let (mut found, mut expected) = ([0.0; 20], [0.0; 20]);
        restored.read_bucket(bucket, &mut found);
        training.read_bucket(bucket, &mut expected);
        assert_eq!(found, expected);
    }
    let other = NgramBuckets { buckets: 999, ..CHARACTERS };
    let error =
        SkipGramTraining::new(settings(Some(other)), 3).unwrap().restore(3, &mut &state[..]).unwrap_err();
    let told = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(told, "it has other character n-grams; pass the flags of its training");
}

#[test]
fn a_stream_lists_the_ngrams_of_words_from_their_minimum_count_on() {
    let settings = SkipGramSettings { min_count: 2, ..settings(Some(CHARACTERS)) };
    let training = SkipGramTraining::new(settings, 2).unwrap();
    let mut growing = Growing::new(Vocabulary::new(2), &training);
    let first = growing.work(&training, b"kettle banana kettle\n");
    let rows = |work: &Work, word: u32| work.subwords.as_ref().unwrap().rows(word).to_vec();
    let of = |word: &[u8]| {
        let mut rows = Vec::new();
        training.characters_of(word, &mut rows);
        rows
    };
    assert_eq!(rows(&first, 0), of(b"kettle"));
    assert_eq!((rows(&first, 1).len(), of(b"banana").len()), (0, 0));
    // `lid` takes the place of `banana` when it is more frequent.
    let second = growing.work(&training, b"lid lid lid lid\n");
    assert_eq!(growing.vocabulary().word(1), b"lid");
    assert_eq!(rows(&second, 1), of(b"lid"));
    assert_eq!(rows(&second, 1).len(), 6);
    assert_eq!(rows(&first, 1).len(), 0);
}

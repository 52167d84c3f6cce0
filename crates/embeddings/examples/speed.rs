//! Prints the speed of training on a file of cleaned lines, kept in memory.
//!
//! usage: speed FILE [EPOCHS [THREADS [OUT.vec [SEED [BUCKETS]]]]]
//!
//! With BUCKETS, words have character n-grams of 3 to 6 characters.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use embeddings::skipgram::{
    Counted, Decay, Distribution, NgramBuckets, Sentences, SkipGramSettings, SkipGramTraining, Vocabulary,
    Work,
};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, default| arguments.get(at).map_or(default, |n| n.parse().expect("a number"));
    let (epochs, threads): (usize, usize) = (number(2, 5), number(3, 2));
    let began = Instant::now();
    let text = std::fs::read(&arguments[1]).expect("a file");
    let mut vocabulary = Vocabulary::new(1 << 24);
    let (mut all, mut sentences) = (Vec::new(), Sentences::default());
    for line in text.split(|&byte| byte == b'\n') {
        let words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        let mut n = 0;
        let numbers: Vec<u32> = words
            .map(|word| {
                n += 1;
                match vocabulary.count(word) {
                    Counted::Known(number) | Counted::New(number) | Counted::Replaced(number) => number,
                    Counted::Rare => unreachable!(),
                }
            })
            .collect();
        sentences.push(numbers, n);
        if sentences.n_words() > 1 << 15 {
            all.push(std::mem::take(&mut sentences));
        }
    }
    all.push(sentences);
    let seed = number(5, 1) as u64;
    let buckets = number(6, 0) as u32;
    let characters = (buckets > 0).then_some(NgramBuckets { min: 3, max: 6, buckets });
    let settings = SkipGramSettings { seed, characters, ..SkipGramSettings::default() };
    let (vocabulary, numbers) = vocabulary.ranked(settings.min_count);
    all.iter_mut().for_each(|sentences| sentences.renumber(|word| numbers[word as usize]));
    let all: Vec<Arc<Sentences>> = all.into_iter().map(Arc::new).collect();
    let distribution = Arc::new(Distribution::new(&vocabulary.counts(), 1, settings.power, settings.sample));
    let training = SkipGramTraining::new(settings, vocabulary.n_words()).expect("memory");
    (0..vocabulary.n_words() as u32).for_each(|word| training.draw(word));
    let subwords = training.subwords(&vocabulary).map(Arc::new);
    let decay = Decay::Linear { n_tokens: vocabulary.n_tokens() * epochs as u64 };
    let prepared = began.elapsed().as_secs_f64();
    for epoch in 0..epochs {
        let next = AtomicUsize::new(0);
        let take = || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let sentences = all.get(number)?.clone();
            let number = (epoch * all.len() + number) as u64;
            let (distribution, subwords) = (Arc::clone(&distribution), subwords.clone());
            Some(Work { sentences, distribution, subwords, number })
        };
        let done = training.run(threads, decay, &take).expect("memory");
        eprintln!("epoch {epoch}: loss {:?}, {} pairs", done.loss(), done.n_pairs);
    }
    let seconds = began.elapsed().as_secs_f64();
    let words_per_s = vocabulary.n_tokens() as f64 * epochs as f64 / seconds;
    eprintln!(
        "{} words; prepared in {prepared:.2} s; {seconds:.2} s; {words_per_s:.0} words/s",
        vocabulary.n_words()
    );
    if let Some(path) = arguments.get(4) {
        let mut out = std::io::BufWriter::new(std::fs::File::create(path).expect("a new file"));
        writeln!(out, "{} {}", vocabulary.n_words(), training.settings().dim).expect("written");
        let mut values = vec![0.0; training.settings().dim];
        for (number, (word, _)) in (0..).zip(vocabulary.iter()) {
            let rows = subwords.as_ref().map_or(&[][..], |subwords| subwords.rows(number));
            training.read_vector(number, rows, &mut values);
            out.write_all(word).expect("written");
            values.iter().for_each(|value| write!(out, " {value}").expect("written"));
            writeln!(out).expect("written");
        }
    }
}

//! Prints the speed of training on a file of cleaned lines, kept in memory.
//!
//! usage: speed FILE OUT.vec [NAME=VALUE...] [WORD...]
//!   NAME  a setting: epochs, threads, dim, char_dim, hidden, outputs, batch, negatives, rate, seed
//!   WORD  a further word whose vector is written
#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::io::Write;
use std::time::Instant;

use embeddings::skipgram::{Decay, Distribution, Sentences, Vocabulary, count};
use embeddings::spelling::{Outputs, SpellingSettings, SpellingTraining};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let named: HashMap<&str, &str> =
        arguments.iter().filter_map(|argument| argument.split_once('=')).collect();
    let number = |name: &str, default: f64| named.get(name).map_or(default, |n| n.parse().expect("a number"));
    let whole = |name: &str, default: usize| number(name, default as f64) as usize;
    let defaults = SpellingSettings::default();
    let settings = SpellingSettings {
        dim: whole("dim", defaults.dim),
        char_dim: whole("char_dim", defaults.char_dim),
        hidden: whole("hidden", defaults.hidden),
        batch: whole("batch", defaults.batch),
        negatives: whole("negatives", defaults.negatives),
        rate: number("rate", f64::from(defaults.rate)) as f32,
        seed: whole("seed", 1) as u64,
        outputs: match named.get("outputs") {
            Some(&"generator") => Outputs::Generator,
            Some(&"shared") => Outputs::Shared,
            Some(&"table") => Outputs::Table,
            _ => defaults.outputs,
        },
        ..defaults
    };
    let (epochs, threads) = (whole("epochs", 5), whole("threads", 2));
    let text = std::fs::read(&arguments[1]).expect("a file");
    let mut vocabulary = Vocabulary::new(1 << 24);
    let (mut parts, mut lines) = (Vec::new(), &text[..]);
    while !lines.is_empty() {
        let end = lines
            .iter()
            .skip(1 << 20)
            .position(|&byte| byte == b'\n')
            .map_or(lines.len(), |at| at + (1 << 20));
        let mut sentences = Sentences::default();
        count(&mut vocabulary, &lines[..end], &mut sentences);
        parts.push(sentences);
        lines = &lines[end..];
    }
    let (vocabulary, numbers) = vocabulary.ranked(settings.min_count);
    parts.iter_mut().for_each(|sentences| sentences.renumber(|word| numbers[word as usize]));
    let distribution = Distribution::new(&vocabulary.counts(), 1, settings.power, settings.sample);
    let mut training = SpellingTraining::new(settings.clone(), &vocabulary, threads);
    let n_tokens = vocabulary.n_tokens() * epochs as u64;
    let began = Instant::now();
    let mut n_pairs = 0;
    for epoch in 0..epochs {
        let mut of_epoch = embeddings::skipgram::Done::default();
        for (at, sentences) in parts.iter().enumerate() {
            let part = training.part(sentences, &distribution, (epoch * parts.len() + at) as u64);
            for batch in 0..part.n_batches() {
                of_epoch.add(&training.step(&part, batch, &distribution, Decay::Linear { n_tokens }));
            }
        }
        n_pairs += of_epoch.n_pairs;
        eprintln!("epoch {epoch}: loss {:?}, {:.1} s", of_epoch.loss(), began.elapsed().as_secs_f64());
    }
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "{settings:?}: {seconds:.1} s, {:.0} words/s, {:.0} pairs/s",
        n_tokens as f64 / seconds,
        n_pairs as f64 / seconds
    );
    let mut out = std::io::BufWriter::new(std::fs::File::create(&arguments[2]).expect("a new file"));
    let more: Vec<&[u8]> =
        arguments[3..].iter().filter(|word| !word.contains('=')).map(|word| word.as_bytes()).collect();
    let words: Vec<&[u8]> = vocabulary.iter().map(|(word, _)| word).chain(more).collect();
    let vectors = training.generator().vectors(words.iter().copied(), threads);
    writeln!(out, "{} {}", words.len(), settings.dim).expect("written");
    for (word, vector) in words.iter().zip(vectors.chunks_exact(settings.dim)) {
        write!(out, "{}", String::from_utf8_lossy(word)).expect("written");
        vector.iter().for_each(|value| write!(out, " {value}").expect("written"));
        writeln!(out).expect("written");
    }
}

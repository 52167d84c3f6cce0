//! Reads a file of fastText's format and prints the time: `read FILE THREADS`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement")]

use std::path::Path;
use std::time::Instant;

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let threads = arguments[2].parse().unwrap();
    for _ in 0..5 {
        let start = Instant::now();
        let texts =
            classifiers::read_fasttext_file(Path::new(&arguments[1]), threads, Default::default()).unwrap();
        let elapsed = start.elapsed();
        println!("{elapsed:.3?} {:?}, {} words", texts.counts(), texts.dictionary.n_words());
    }
}

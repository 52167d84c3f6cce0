//! The program `ngrams`: trains classifiers of words and n-grams on lines, evaluates them and predicts with them.

use std::process::ExitCode;

fn main() -> ExitCode {
    ngrams::run()
}

//! `vectors pip`.

use std::io::{BufRead, BufReader, Read};

use classifiers::{LINE_BYTES_MAX, Words};
use corpus::encoding::UTF_8;
use embeddings::ppmi::{PairCounts, Ppmi};
use embeddings::{Embedding, files, pip};
use reading::Source;
use serde::Serialize;
use store::S3Options;
use training::Result;
use training::arguments::threads;
use training::print::print_json;
use training::tell::tell;

use crate::arguments::Pip;

/// The output.
#[derive(Serialize)]
struct Printed {
    model: String,
    /// The other vectors, or the files of the text.
    reference: Vec<String>,
    #[serde(flatten)]
    pip: pip::Pip,
    /// The matrix of the text; `null` with other vectors.
    ppmi: Option<Matrix>,
}

/// The PPMI matrix of a text.
#[derive(Serialize)]
struct Matrix {
    window: usize,
    shift: f64,
    /// Number of words of the vocabulary in the text.
    tokens: u64,
    /// Number of values that are not 0.
    values: usize,
    /// Columns of the factor.
    dim: usize,
}

/// Prints the PIP loss against other vectors or a text.
pub(super) fn pip(arguments: &Pip) -> Result<()> {
    let embedding = files::read(&arguments.vectors.model)?;
    let model = arguments.vectors.model.display().to_string();
    let printed = match &arguments.other {
        Some(other) => {
            let pip = pip::between(&embedding, &files::read(other)?, arguments.seed)?;
            Printed { model, reference: vec![other.display().to_string()], pip, ppmi: None }
        }
        None => {
            let (pip, matrix) = of_text(&embedding, arguments)?;
            let reference = arguments.corpus.iter().map(ToString::to_string).collect();
            Printed { model, reference, pip, ppmi: Some(matrix) }
        }
    };
    print_json(&printed)
}

fn of_text(embedding: &Embedding, arguments: &Pip) -> Result<(pip::Pip, Matrix)> {
    let &Pip { window, shift, seed, .. } = arguments;
    let mut pairs = PairCounts::new(embedding.n_words(), window);
    let names: Vec<String> = arguments.corpus.iter().map(ToString::to_string).collect();
    for source in reading::find(&names, &S3Options::default())? {
        add(&mut pairs, embedding, arguments.words, &source)?;
    }
    let tokens = pairs.n_tokens();
    let ppmi: Ppmi = pairs.ppmi(shift);
    let words = ppmi.words();
    tell(&format!(
        "{} pairs of {} words with a positive value",
        report::whole(ppmi.n_values() as u64),
        report::whole(words.len() as u64)
    ));
    let factor = ppmi.factor(embedding.dim, threads(), seed);
    let rows: Vec<usize> = words.iter().map(|&word| word as usize).collect();
    let dim = factor.vectors.ncols();
    let pip = pip::compare(embedding, &words, &factor.vectors.select_rows(&rows), seed)?;
    Ok((pip, Matrix { window, shift, tokens, values: ppmi.n_values(), dim }))
}

/// Counts the pairs of the lines of a source.
fn add(pairs: &mut PairCounts, embedding: &Embedding, words: Words, source: &Source) -> Result<()> {
    let mut reader = BufReader::new(source.content(UTF_8)?);
    let (mut line, mut scratch, mut text) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        line.clear();
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line);
        let n = read.map_err(|error| source.failed(error))?;
        if n == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        text.clear();
        words.each(&line, &mut scratch, |word| text.extend(embedding.words.word(word)));
        pairs.add(&text);
    }
}

//! Word vectors in the files of the fastText program: models of `fasttext skipgram` and `fasttext cbow`.
//!
//! The input matrix has the own rows of words, then the rows of buckets of character n-grams. The output matrix has one
//! row per word, with negative sampling and softmax; with hierarchical softmax these are rows of a tree.

use std::io::BufRead;
use std::path::Path;

use durable::{Error, Result, Source};

use super::args::{Args, Wanted};
use super::entries::Entries;
use super::matrix::{Dense, Matrix};
use super::{parse_args, write_rows};
use crate::Dictionary;

const REMEDY: &str = "check that this is a file of fastText with word vectors, and copy it again";

/// Word vectors of the program.
#[derive(Clone, Debug)]
pub struct WordVectors {
    /// The settings.
    pub args: Args,
    /// Words. Labels of a text are among them, but have no vectors.
    pub entries: Entries,
    /// `[V + B, D]`: the own rows of words, then those of buckets.
    pub input: Dense,
    /// `[V, D]`.
    pub output: Dense,
}

/// Reads word vectors of `n_bytes` from `from`. Errors name `path`.
pub fn parse(from: impl BufRead, n_bytes: u64, path: &Path) -> Result<WordVectors> {
    let mut source = Source::new(from, n_bytes, path, REMEDY);
    let args = parse_args(&mut source, Wanted::WordVectors)?;
    let entries = Entries::parse(&mut source, &args)?;
    let n_words = entries.dictionary().n_words();
    if n_words == 0 {
        return Err(source.unexpected("the number of words", 0, "1 or more"));
    }
    if entries.pruned().is_some() {
        return Err(source.unexpected("the number of pruned buckets", "set", "-1, because words need all"));
    }
    let input = matrix(&mut source, "the input matrix", [n_words + args.n_buckets, args.dim])?;
    let output = matrix(&mut source, "the output matrix", [n_words, args.dim])?;
    source.end("the output matrix")?;
    Ok(WordVectors { args, entries, input, output })
}

fn matrix(
    source: &mut Source<'_, impl BufRead>,
    name: &'static str,
    [rows, columns]: [usize; 2],
) -> Result<Dense> {
    match Matrix::parse(source, name)? {
        Matrix::Dense(dense) if (dense.rows(), dense.columns()) == (rows, columns) => Ok(dense),
        Matrix::Dense(dense) => {
            let found = format!("{} × {}", dense.rows(), dense.columns());
            Err(source.unexpected(format_args!("the shape of {name}"), found, format!("{rows} × {columns}")))
        }
        Matrix::Quantised(_) => Err(source.unexpected(name, "quantised", "dense")),
    }
}

/// Writes the file `path`, which must not exist. `input` writes a row of the input matrix `[V + B, D]` into a slice, and
/// `output` one of the output matrix `[V, D]`. On return, the file is durable.
///
/// # Errors
/// If the settings are those of a classifier.
pub fn write(
    path: &Path,
    args: &Args,
    words: Dictionary,
    input: impl Fn(u32, &mut [f32]),
    output: impl Fn(u32, &mut [f32]),
) -> Result<()> {
    if !args.kind.is_of_words() {
        return Err(Error::Unstorable {
            path: path.to_owned(),
            field: "the kind of model",
            found: "a classifier".to_owned(),
            allowed: "word vectors".to_owned(),
            remedy: "pass word vectors",
        });
    }
    let n_words = words.n_words();
    write_rows(path, args, &Entries::from(words), [n_words + args.n_buckets, n_words], input, output)
}

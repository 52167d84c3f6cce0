//! Models in the files of the fastText program: `.bin`, and `.ftz` with quantised matrices.
//!
//! ```text
//! i32   magic number 793712314
//! i32   version, 12; the program also reads 11, without character n-grams
//! args  12 × i32 and one f64: dimension, window, epochs, minimum count, negatives, word n-grams, loss, kind,
//!       buckets, shortest and longest character n-gram, update rate, sampling threshold
//! i32   entries; i32 words; i32 labels; i64 tokens; i64 pruned buckets, -1 if none are pruned
//!       per entry: the bytes of the word, NUL, i64 count, i8 0 for a word and 1 for a label; words come first
//!       per pruned bucket: i32 bucket, i32 row behind the words
//! u8    whether the input matrix is quantised, then the matrix: words, then buckets
//! u8    whether the output matrix is quantised, then the matrix: one row per label, or one per word for word vectors
//!
//! dense matrix      i64 rows, i64 columns, rows × columns × f32
//! quantised matrix  u8 whether norms are separate, i64 rows, i64 columns, i32 codes, the codes, the quantizer;
//!                   with separate norms also one code per row and their quantizer
//! quantizer         i32 columns, i32 parts, i32 columns per part, i32 columns of the last part,
//!                   columns × 256 × f32 centroids
//! ```
//!
//! All values are little-endian. [`BinModel::read`] and [`BinModel::write`] convert between the file of a supervised
//! model and memory, and [`word_vectors`] those of word vectors; [`answers`] computes the answers of the program.

pub mod answers;
mod args;
mod entries;
mod matrix;
mod quantization;
mod quantizer;
#[cfg(test)]
mod tests;
pub mod word_vectors;

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::Path;

pub use self::args::{Args, BinLoss, Kind};
pub use self::entries::Entries;
pub use self::matrix::{Dense, Matrix, Quantised};
pub use self::quantization::{Quantization, Unquantisable};

use self::args::Wanted;
use super::{N_SUBWORDS_MAX, n_subwords};
use crate::FeatureRows;
use crate::tree::{Paths, Tree};
use durable::{At, Error, Result, Source, new_file};

/// The first four bytes of a file, little-endian.
pub const MAGIC: i32 = 793_712_314;
const VERSION: i32 = 12;
/// The version whose supervised models have no character n-grams.
const VERSION_WITHOUT_SUBWORDS: i32 = 11;
/// Larger magnitudes are damage. Below this limit, no sum or product of an answer overflows.
const VALUE_LIMIT: f32 = 1e12;
/// Place of the kind: behind the magic number, the version and seven other arguments.
const KIND_AT: usize = 9 * 4;
const BUFFER_BYTES: usize = 1 << 20;
pub(super) const REMEDY: &str = "check that this is a supervised model of fastText, and copy it again";

/// A supervised model of the fastText program.
#[derive(Clone, Debug)]
pub struct BinModel {
    args: Args,
    entries: Entries,
    /// Numbers the rows of a line.
    rows: FeatureRows,
    input: Matrix,
    output: Matrix,
    /// The tree of labels of a model with hierarchical softmax.
    tree: Option<Tree>,
}

impl BinModel {
    /// A model with these parts. Returns the name of the part whose size does not match the others, with its size and
    /// the expected one.
    pub fn new(
        args: Args,
        entries: Entries,
        input: Matrix,
        output: Matrix,
    ) -> std::result::Result<Self, Mismatch> {
        let fault = |field, found, expected| Err(Mismatch { field, found, expected });
        let n_rows = entries.dictionary().n_words() + entries.pruned().map_or(args.n_buckets, <[_]>::len);
        if input.rows() != n_rows {
            return fault("the number of rows of the input matrix", input.rows(), n_rows);
        }
        if output.rows() != entries.n_labels() {
            return fault("the number of rows of the output matrix", output.rows(), entries.n_labels());
        }
        if input.columns() != args.dim {
            return fault("the number of columns of the input matrix", input.columns(), args.dim);
        }
        if output.columns() != args.dim {
            return fault("the number of columns of the output matrix", output.columns(), args.dim);
        }
        let n_subwords = n_subwords(args.features(), entries.dictionary());
        if n_subwords > N_SUBWORDS_MAX {
            return fault("the number of character n-grams of all words", n_subwords, N_SUBWORDS_MAX);
        }
        let rows = FeatureRows::new(args.features(), entries.dictionary());
        let tree = (args.loss == BinLoss::HierarchicalSoftmax)
            .then(|| Tree::new(entries.dictionary().label_counts()));
        Ok(Self { args, entries, rows, input, output, tree })
    }

    /// Reads a file, `.bin` or `.ftz`.
    pub fn read(path: &Path) -> Result<Self> {
        let (file, n_bytes) = open(path, REMEDY)?;
        Self::parse(file, n_bytes, path)
    }

    /// Reads a model of `n_bytes` from `from`. Errors name `path`.
    pub fn parse(from: impl BufRead, n_bytes: u64, path: &Path) -> Result<Self> {
        let mut source = Source::new(from, n_bytes, path, REMEDY);
        let args = parse_args(&mut source, Wanted::Supervised)?;
        let entries = Entries::parse(&mut source, &args)?;
        let input = Matrix::parse(&mut source, "the input matrix")?;
        if entries.pruned().is_some() && matches!(input, Matrix::Dense(_)) {
            return Err(source.unexpected("the input matrix", "dense with pruned buckets", "quantised"));
        }
        let output = Matrix::parse(&mut source, "the output matrix")?;
        source.end("the output matrix")?;
        Self::new(args, entries, input, output).map_err(|Mismatch { field, found, expected }| {
            Error::unexpected(path, field, found, expected, REMEDY)
        })
    }

    /// Writes the file `path`, which must not exist. On return, the file is durable.
    pub fn write(&self, path: &Path) -> Result<()> {
        write(path, &self.args, &self.entries, |out| self.input.write(out), |out| self.output.write(out))
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// If the output fails.
    pub fn write_to(&self, out: &mut impl Write) -> std::io::Result<()> {
        write_parts(out, &self.args, &self.entries, |out| self.input.write(out), |out| self.output.write(out))
    }

    /// The paths to labels, of a model with hierarchical softmax.
    pub(crate) fn paths(&self) -> Option<Paths> {
        self.tree.as_ref().map(Tree::paths)
    }

    /// The settings.
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// Words and labels.
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    /// One row per word, then one per bucket.
    pub fn input(&self) -> &Matrix {
        &self.input
    }

    /// The input matrix, or the model if it is quantised.
    ///
    /// # Errors
    /// If the input matrix is quantised.
    pub fn into_dense_input(self) -> std::result::Result<Dense, Box<Self>> {
        match self.input {
            Matrix::Dense(dense) => Ok(dense),
            Matrix::Quantised(_) => Err(Box::new(self)),
        }
    }

    /// One row per label.
    pub fn output(&self) -> &Matrix {
        &self.output
    }
}

/// Whether a file with this beginning is a supervised model, if it is one of fastText.
pub fn is_supervised(beginning: &[u8]) -> bool {
    beginning.get(KIND_AT..).is_some_and(|rest| rest.starts_with(&Kind::Supervised.number().to_le_bytes()))
}

/// Opens a file and returns its number of bytes.
fn open(path: &Path, remedy: &'static str) -> Result<(BufReader<File>, u64)> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(Error::Missing { path: path.to_owned(), expected: "a model of fastText" });
        }
        opened => opened.at(path, "open it")?,
    };
    let metadata = file.metadata().at(path, "read its metadata")?;
    if !metadata.is_file() {
        return Err(Error::unexpected(path, "it", "no regular file", "one", remedy));
    }
    Ok((BufReader::with_capacity(BUFFER_BYTES, file), metadata.len()))
}

/// Reads everything before the dictionary.
fn parse_args(source: &mut Source<'_, impl BufRead>, wanted: Wanted) -> Result<Args> {
    let magic = source.i32("the magic number")?;
    if magic != MAGIC {
        return Err(source.unexpected("the magic number", magic, MAGIC));
    }
    let version = source.i32("the version")?;
    if !(VERSION_WITHOUT_SUBWORDS..=VERSION).contains(&version) {
        let expected = format_args!("{VERSION_WITHOUT_SUBWORDS} or {VERSION}").to_string();
        return Err(source.unexpected("the version", version, expected));
    }
    let mut args = Args::parse(source, wanted)?;
    if version == VERSION_WITHOUT_SUBWORDS && args.kind == Kind::Supervised {
        args.longest = 0;
    }
    Ok(args)
}

/// A part of a model whose size does not match the other parts.
#[derive(Debug)]
pub struct Mismatch {
    /// The part.
    pub field: &'static str,
    /// Its size.
    pub found: usize,
    /// The size that the other parts require.
    pub expected: usize,
}

/// Writes the file `path`, which must not exist, with dense matrices of these numbers of rows. `input` and `output` write
/// a row into a slice. On return, the file is durable.
pub(super) fn write_rows(
    path: &Path,
    args: &Args,
    entries: &Entries,
    [n_input, n_output]: [usize; 2],
    input: impl Fn(u32, &mut [f32]),
    output: impl Fn(u32, &mut [f32]),
) -> Result<()> {
    let matrix = |out: &mut BufWriter<&File>, n_rows: usize, read: &dyn Fn(u32, &mut [f32])| {
        out.write_all(&[0])?;
        matrix::write_shape(out, n_rows, args.dim)?;
        let rows_together = (quantizer::PIECE / args.dim).max(1);
        let mut values = vec![0.0; rows_together * args.dim];
        for first in (0..n_rows).step_by(rows_together) {
            let n = rows_together.min(n_rows - first);
            let values = &mut values[..n * args.dim];
            values.chunks_exact_mut(args.dim).zip(first as u32..).for_each(|(values, row)| read(row, values));
            quantizer::write_floats(out, values)?;
        }
        Ok(())
    };
    write(path, args, entries, |out| matrix(out, n_input, &input), |out| matrix(out, n_output, &output))
}

/// Writes the file `path`, which must not exist, with matrices that `input` and `output` write. On return, the file is
/// durable.
fn write(
    path: &Path,
    args: &Args,
    entries: &Entries,
    input: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
    output: impl FnOnce(&mut BufWriter<&File>) -> std::io::Result<()>,
) -> Result<()> {
    let fields = [
        ("the number of words and labels", entries.dictionary().n_words() + entries.n_labels()),
        ("the number of buckets", args.n_buckets),
    ];
    if let Some((field, found)) = fields.into_iter().find(|&(_, size)| size > i32::MAX as usize) {
        let (found, allowed) = (found.to_string(), format!("at most {}", i32::MAX));
        return Err(Error::Unstorable {
            path: path.to_owned(),
            field,
            found,
            allowed,
            remedy: "train a smaller model",
        });
    }
    new_file(path, |file| {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        write_parts(&mut out, args, entries, input, output)?;
        out.flush()
    })
}

fn write_parts<W: Write>(
    out: &mut W,
    args: &Args,
    entries: &Entries,
    input: impl FnOnce(&mut W) -> std::io::Result<()>,
    output: impl FnOnce(&mut W) -> std::io::Result<()>,
) -> std::io::Result<()> {
    out.write_all(&MAGIC.to_le_bytes())?;
    out.write_all(&VERSION.to_le_bytes())?;
    args.write(out)?;
    entries.write(out)?;
    input(out)?;
    output(out)
}

//! Quantises a model: the rows of the largest norms, or all, become codes of centroids, found by k-means.

use std::thread;

use program::random::Random;
use program::threads::spawn;

use super::matrix::{Dense, Matrix, Quantised};
use super::quantizer::{Codes, N_CENTROIDS, Quantizer};
use super::{BinModel, Entries};
use crate::{END, FeatureRows};

/// Rows from which the centroids of a part are computed, as in the program.
const N_SAMPLED: usize = 256 * N_CENTROIDS;
const N_ITERATIONS: usize = 25;
/// Half of the distance between two centroids that share the rows of one.
const SPLIT: f32 = 1e-7;
/// Columns per part of a quantised output matrix.
const OUTPUT_PART_COLUMNS: usize = 2;

/// How a model is quantised.
#[derive(Clone, Copy, Debug)]
pub struct Quantization {
    /// Columns per code; the program's default is 2.
    pub part_columns: usize,
    /// Whether the norm of a row has a code of its own.
    pub separate_norms: bool,
    /// Whether the output matrix is quantised too.
    pub output: bool,
    /// The number of rows of the input matrix that are kept: those of the largest norms. 0 keeps all.
    pub rows_max: usize,
    /// Number of threads; does not affect the result.
    pub threads: usize,
}

/// Why a model cannot be quantised.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unquantisable {
    /// A matrix is quantised.
    #[error("the model is quantised; quantise the model from which it was made")]
    Quantised,
    /// A matrix has fewer rows than a quantizer has centroids.
    #[error(
        "{matrix} has {rows} rows, but a quantised matrix has {N_CENTROIDS} or more; store the model unquantised"
    )]
    FewRows {
        /// The matrix.
        matrix: &'static str,
        /// Its number of rows.
        rows: usize,
    },
    /// A matrix has more codes than the format can store.
    #[error(
        "{matrix} has {rows} rows, but a quantised matrix has at most {} codes; keep fewer rows",
        i32::MAX
    )]
    ManyRows {
        /// The matrix.
        matrix: &'static str,
        /// Its number of rows.
        rows: usize,
    },
}

impl BinModel {
    /// The quantised model. Equal models and settings give equal results.
    pub fn quantised(&self, how: &Quantization) -> Result<Self, Unquantisable> {
        let (Matrix::Dense(input), Matrix::Dense(output)) = (&self.input, &self.output) else {
            return Err(Unquantisable::Quantised);
        };
        let chosen = (how.rows_max > 0 && how.rows_max < input.rows())
            .then(|| self.entries.prune(&rows_by_norm(input, &self.entries, how.rows_max)));
        let (entries, rows) = match &chosen {
            None => (self.entries.clone(), None),
            Some((entries, rows)) => (entries.clone(), Some(rows.as_slice())),
        };
        let input = quantise("the input matrix", input, rows, how.part_columns, how)?;
        let output = match how.output {
            true => Matrix::Quantised(quantise("the output matrix", output, None, OUTPUT_PART_COLUMNS, how)?),
            false => self.output.clone(),
        };
        let rows = FeatureRows::new(self.args.features(), entries.dictionary());
        let (args, tree) = (self.args.clone(), self.tree.clone());
        Ok(Self { args, entries, rows, input: Matrix::Quantised(input), output, tree })
    }
}

/// The rows of the largest norms, the end of a line before all others.
fn rows_by_norm(input: &Dense, entries: &Entries, n: usize) -> Vec<u32> {
    let end = entries.dictionary().word(END);
    let norm = |row: u32| if Some(row) == end { f32::INFINITY } else { norm(input.row(row as usize)) };
    let mut rows: Vec<(f32, u32)> = (0..input.rows() as u32).map(|row| (norm(row), row)).collect();
    rows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    rows.truncate(n);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn norm(row: &[f32]) -> f32 {
    row.iter().map(|value| value * value).sum::<f32>().sqrt()
}

/// Quantises a matrix, or these rows of it.
fn quantise(
    matrix: &'static str,
    dense: &Dense,
    rows: Option<&[u32]>,
    part_columns: usize,
    how: &Quantization,
) -> Result<Quantised, Unquantisable> {
    let mut values = match rows {
        None => dense.values().to_vec(),
        Some(rows) => rows.iter().flat_map(|&row| dense.row(row as usize)).copied().collect(),
    };
    let columns = dense.columns();
    let part_columns = part_columns.clamp(1, columns);
    let n_rows = values.len() / columns;
    if n_rows < N_CENTROIDS {
        return Err(Unquantisable::FewRows { matrix, rows: n_rows });
    }
    if n_rows.saturating_mul(columns.div_ceil(part_columns)) > i32::MAX as usize {
        return Err(Unquantisable::ManyRows { matrix, rows: n_rows });
    }
    let norms = how.separate_norms.then(|| {
        let norms: Vec<f32> = values.chunks_exact(columns).map(norm).collect();
        for (row, &norm) in values.chunks_exact_mut(columns).zip(&norms) {
            if norm > 0.0 {
                row.iter_mut().for_each(|value| *value /= norm);
            }
        }
        encode(&norms, 1, 1, how.threads)
    });
    Ok(Quantised { rows: n_rows, codes: encode(&values, columns, part_columns, how.threads), norms })
}

/// Computes the centroids of all parts, and the code of each row.
fn encode(values: &[f32], columns: usize, part_columns: usize, threads: usize) -> Codes {
    let parts = columns.div_ceil(part_columns);
    let mut quantizer = Quantizer { columns, parts, part_columns, centroids: Vec::new() };
    let n_rows = values.len() / columns;
    let mut tables = Vec::with_capacity(parts);
    for part in 0..parts {
        let range = quantizer.part(part);
        let sample: Vec<f32> =
            sampled(n_rows, part).flat_map(|row| &values[row * columns..][range.clone()]).copied().collect();
        let table = Centroids::fitted(&sample, range.len(), threads);
        quantizer.centroids.extend(table.rows());
        tables.push(table);
    }
    let mut codes = vec![0; n_rows * parts];
    in_pieces(&mut codes, parts, threads, |first, codes| {
        for (row, codes) in values[first * columns..].chunks_exact(columns).zip(codes.chunks_exact_mut(parts))
        {
            for (part, code) in codes.iter_mut().enumerate() {
                *code = tables[part].nearest(&row[quantizer.part(part)]);
            }
        }
    });
    Codes { codes, quantizer }
}

/// Calls `work` in threads, each with a piece of the codes and the number of its first row.
fn in_pieces(codes: &mut [u8], per_row: usize, threads: usize, work: impl Fn(usize, &mut [u8]) + Sync) {
    let n_rows = codes.len() / per_row;
    let rows = n_rows.div_ceil(threads.max(1)).max(1);
    thread::scope(|scope| {
        for (piece, codes) in codes.chunks_mut(rows * per_row).enumerate() {
            let work = &work;
            spawn(scope, move || work(piece * rows, codes));
        }
    });
}

/// The rows from which the centroids of a part are computed: all, or a different row of each of 65,536 equal ranges.
fn sampled(n_rows: usize, part: usize) -> impl Iterator<Item = usize> {
    let n = n_rows.min(N_SAMPLED);
    let mut random = Random::of(&[part as u64]);
    (0..n).map(move |at| {
        let (start, end) = (at * n_rows / n, (at + 1) * n_rows / n);
        start + random.below((end - start) as u64) as usize
    })
}

/// The centroids of a part, by column, so that the distances to all are computed by vector instructions.
struct Centroids {
    columns: usize,
    values: Vec<f32>,
}

impl Centroids {
    /// Centroids of these rows by k-means. The first centroids are random rows.
    fn fitted(sample: &[f32], columns: usize, threads: usize) -> Self {
        let n = sample.len() / columns;
        let mut table = Self { columns, values: vec![0.0; columns * N_CENTROIDS] };
        let mut random = Random::of(&[n as u64]);
        for centroid in 0..N_CENTROIDS {
            let (start, end) = (centroid * n / N_CENTROIDS, (centroid + 1) * n / N_CENTROIDS);
            let row = start + random.below((end - start) as u64) as usize;
            table.set(centroid, |column| sample[row * columns + column]);
        }
        let mut codes = vec![0; n];
        for _ in 0..N_ITERATIONS {
            in_pieces(&mut codes, 1, threads, |first, codes| {
                for (row, code) in sample[first * columns..].chunks_exact(columns).zip(codes) {
                    *code = table.nearest(row);
                }
            });
            table.move_to_means(sample, &codes);
        }
        table
    }

    fn move_to_means(&mut self, sample: &[f32], codes: &[u8]) {
        let mut counts = [0u32; N_CENTROIDS];
        let mut sums = vec![0.0f64; self.values.len()];
        for (row, &code) in sample.chunks_exact(self.columns).zip(codes) {
            counts[usize::from(code)] += 1;
            for (column, &value) in row.iter().enumerate() {
                sums[column * N_CENTROIDS + usize::from(code)] += f64::from(value);
            }
        }
        for centroid in (0..N_CENTROIDS).filter(|&centroid| counts[centroid] > 0) {
            let n = f64::from(counts[centroid]);
            self.set(centroid, |column| (sums[column * N_CENTROIDS + centroid] / n) as f32);
        }
        // A centroid without rows takes half of the rows of the centroid with the most rows.
        for empty in 0..N_CENTROIDS {
            if counts[empty] == 0 {
                let largest = (0..N_CENTROIDS).max_by_key(|&at| counts[at]).unwrap_or(0);
                for column in 0..self.columns {
                    let at = column * N_CENTROIDS;
                    let value = self.values[at + largest];
                    (self.values[at + empty], self.values[at + largest]) = (value + SPLIT, value - SPLIT);
                }
                counts[empty] = counts[largest] / 2;
                counts[largest] -= counts[empty];
            }
        }
    }

    fn set(&mut self, centroid: usize, value: impl Fn(usize) -> f32) {
        for column in 0..self.columns {
            self.values[column * N_CENTROIDS + centroid] = value(column);
        }
    }

    /// The nearest centroid; of equally near ones the first.
    fn nearest(&self, row: &[f32]) -> u8 {
        const LANES: usize = 16;
        let mut distances = [0.0f32; N_CENTROIDS];
        for (column, &value) in self.values.chunks_exact(N_CENTROIDS).zip(row) {
            for (distance, centroid) in distances.iter_mut().zip(column) {
                let difference = value - centroid;
                *distance += difference * difference;
            }
        }
        let mut least = [f32::INFINITY; LANES];
        for distances in distances.as_chunks::<LANES>().0 {
            for (least, &distance) in least.iter_mut().zip(distances) {
                *least = if distance < *least { distance } else { *least };
            }
        }
        let least = least.into_iter().fold(f32::INFINITY, f32::min);
        distances.iter().position(|&distance| distance == least).unwrap_or(0) as u8
    }

    /// The centroids, one after the other.
    fn rows(&self) -> impl Iterator<Item = f32> {
        let value = |at: usize, column: usize| self.values[column * N_CENTROIDS + at];
        (0..N_CENTROIDS).flat_map(move |at| (0..self.columns).map(move |column| value(at, column)))
    }
}

//! The probabilities of a dataset's rows, which `predict --soft` writes and `trainer fit --soft-labels` learns from.

use std::path::Path;

use batches::{Batch, Division, Loader, Loading, Part, Rows, Smallest};
use program::location::Location;
use program::place::{check_folder, folder_of};
use runs::soft_labels::{Digests, SoftLabels, check_new};

use crate::arguments::Storage;
use crate::datasets::Reader;
use crate::error::{Error, Result};
use crate::tell::tell;

/// Memory for rows. A larger dataset is read in blocks.
const MEMORY_BYTES: u64 = 1 << 30;

/// Checks the place of the result before it is computed.
pub fn check(out: &Path) -> Result<()> {
    check_folder(folder_of(out), "--soft")?;
    Ok(check_new(out)?)
}

/// Writes the probabilities of all rows.
pub fn put(labels: &SoftLabels, rows: &Rows, out: &Path) -> Result<()> {
    labels.write(out, digests(rows))?;
    tell(&format!("the probabilities of {} rows are in {}", labels.n_rows(), out.display()));
    Ok(())
}

/// Collects the probabilities of all rows, which are in this split. `answer` computes them for a batch; `None` is a result
/// that is not finite.
pub fn each_batch<E: From<Error>>(
    rows: &Rows,
    part: Part,
    batch_rows: u32,
    mut answer: impl FnMut(&Batch) -> Result<Vec<Option<Vec<f32>>>, E>,
) -> Result<SoftLabels, E> {
    let loading = Loading::of_evaluation(part, batch_rows as usize);
    let n_rows = rows.n_rows_of_file();
    let mut labels = SoftLabels::zeros(n_rows as usize, rows.settings().rows.labels.n_classes());
    let mut n_not_finite = 0;
    for batch in Loader::start(rows, loading).map_err(Error::from)? {
        let batch = batch.map_err(Error::from)?;
        for (&row, probabilities) in batch.rows.iter().zip(answer(&batch)?) {
            match probabilities {
                Some(probabilities) => labels.put(row as usize, &probabilities),
                None => n_not_finite += 1,
            }
        }
    }
    match n_not_finite {
        0 => Ok(labels),
        found => Err(Error::from(scoring::Error::NotFinite { found, rows: n_rows }).into()),
    }
}

/// Opens a dataset, of whose rows the first `tokens` are read; 0 for all.
pub fn open(dataset: &Location, tokens: u32, known: &Smallest, storage: &Storage) -> Result<Rows> {
    let rows = Reader::new(tokens, MEMORY_BYTES, storage).open(dataset, Division::all_test(), known)?;
    rows.check_rows(Part::Test)?;
    Ok(rows)
}

/// The digests by which soft labels and a dataset are compared.
pub fn digests(rows: &Rows) -> Digests {
    Digests { id: rows.id_digest(), text: rows.text_digest() }
}

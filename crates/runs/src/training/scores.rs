//! `scores.npy`: one score per row for `numpy.load`, as an array of records in dataset order.
//!
//! ```text
//! row    u32   index of the row in the dataset, or of the text among those that a model of n-grams was evaluated on
//! label  u8    label of the row
//! score  f32   score of the model
//! ```
//!
//! With three or more classes, a record has in place of `score`:
//!
//! ```text
//! probabilities  f32 × classes   probability of each class, in the order of the labels
//! ```
//!
//! Little-endian without padding: 9 bytes per row for two classes, after NumPy's header of version 1.0.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use super::put;
use crate::error::{Error, Result};
use scoring::{ClassScore, RowScore, Scores};

const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
const ROW_BYTES: usize = 9;
/// NumPy requires its data at a multiple of 64 bytes.
const HEADER_BYTES: usize = 192;

/// The last field of a record for two classes.
const SCORE: &str = "('score', '<f4')";

/// NumPy's header for `n_rows` rows whose last field is described by `last`, padded with spaces.
fn header(n_rows: usize, last: &str) -> Vec<u8> {
    let description = format!(
        "{{'descr': [('row', '<u4'), ('label', '|u1'), {last}], 'fortran_order': False, 'shape': ({n_rows},), }}"
    );
    let length = HEADER_BYTES - MAGIC.len() - 2;
    let mut header = [MAGIC, &(length as u16).to_le_bytes(), description.as_bytes()].concat();
    header.resize(HEADER_BYTES - 1, b' ');
    header.push(b'\n');
    header
}

/// Writes the results of rows.
pub fn write_scores(path: &Path, scores: &Scores) -> Result<()> {
    match scores {
        Scores::Label(scores) => write_of_label(path, scores),
        Scores::Classes(scores) => write_of_classes(path, scores),
    }
}

fn write_of_classes(path: &Path, scores: &[ClassScore]) -> Result<()> {
    let n_classes = scores.first().map_or(0, |row| row.probabilities.all().len());
    put(path, |file| {
        file.write_all(&header(scores.len(), &format!("('probabilities', '<f4', ({n_classes},))")))?;
        for ClassScore { row, label, probabilities } in scores {
            file.write_all(&row.to_le_bytes())?;
            file.write_all(&[*label])?;
            for probability in probabilities.all() {
                file.write_all(&probability.to_le_bytes())?;
            }
        }
        Ok(())
    })
}

fn write_of_label(path: &Path, scores: &[RowScore]) -> Result<()> {
    put(path, |file| {
        file.write_all(&header(scores.len(), SCORE))?;
        for RowScore { row, label, score } in scores {
            file.write_all(&row.to_le_bytes())?;
            file.write_all(&[*label])?;
            file.write_all(&score.to_le_bytes())?;
        }
        Ok(())
    })
}

/// Reads a file of [`write_scores`] with `n_rows` rows of two classes.
pub fn read_scores(path: &Path, n_rows: u64) -> Result<Vec<RowScore>> {
    let read = || -> io::Result<Option<Vec<RowScore>>> {
        let file = File::open(path)?;
        let expected_bytes = n_rows.checked_mul(ROW_BYTES as u64).map(|bytes| bytes + HEADER_BYTES as u64);
        if expected_bytes != Some(file.metadata()?.len()) {
            return Ok(None);
        }
        let mut file = BufReader::new(file);
        let mut found = vec![0; HEADER_BYTES];
        file.read_exact(&mut found)?;
        if found != header(n_rows as usize, SCORE) {
            return Ok(None);
        }
        let mut scores = Vec::with_capacity(n_rows as usize);
        let mut bytes = [0; ROW_BYTES];
        for _ in 0..n_rows {
            file.read_exact(&mut bytes)?;
            let [row @ .., label, s0, s1, s2, s3] = bytes;
            let score = f32::from_le_bytes([s0, s1, s2, s3]);
            scores.push(RowScore { row: u32::from_le_bytes(row), label, score });
        }
        Ok(Some(scores))
    };
    let found = read().map_err(|source| Error::io(path, source))?;
    found.ok_or_else(|| Error::unusable(path, "something else", &format!("the scores of {n_rows} rows")))
}

#[cfg(test)]
mod tests {
    use scoring::Probabilities;

    use super::*;

    #[test]
    fn scores_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.npy");
        let scores: Vec<RowScore> =
            (0..1000).map(|row| RowScore { row, label: (row % 2) as u8, score: row as f32 / 7.0 }).collect();
        write_scores(&path, &Scores::Label(scores.clone())).unwrap();
        assert_eq!(read_scores(&path, 1000).unwrap(), scores);
        let error = read_scores(&path, 999).unwrap_err().to_string();
        assert!(error.ends_with("scores.npy: something else, expected the scores of 999 rows"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_record_of_three_classes_has_their_probabilities() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.npy");
        let probabilities = Probabilities::of_logits(&[0.0, 1.0, -1.0]);
        let scores: Vec<ClassScore> =
            (0..7).map(|row| ClassScore { row, label: (row % 3) as u8, probabilities }).collect();
        write_scores(&path, &Scores::Classes(scores)).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), HEADER_BYTES + 7 * (4 + 1 + 3 * 4));
        let head = String::from_utf8_lossy(&bytes[..HEADER_BYTES]);
        assert!(head.contains("('probabilities', '<f4', (3,))") && head.contains("'shape': (7,)"), "{head}");
        let last: Vec<u8> = probabilities.all().iter().flat_map(|one| one.to_le_bytes()).collect();
        assert!(bytes.ends_with(&[&6u32.to_le_bytes()[..], &[0], &last].concat()));
        // These are no scores of two classes.
        assert!(read_scores(&path, 7).is_err());
    }

    #[test]
    fn the_header_fits_the_maximum_number_of_rows() {
        for last in [SCORE, "('probabilities', '<f4', (5,))"] {
            let header = header(u32::MAX as usize, last);
            assert_eq!(header.len(), HEADER_BYTES);
            assert!(header.ends_with(b" \n"));
        }
    }
}

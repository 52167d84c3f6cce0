//! Soft labels: the probability of each class for each row of a dataset, as an array for `numpy.load`.
//!
//! ```text
//! header   NumPy's, of '<f4' in C order with shape (N, K): N rows of the dataset, in its order, and K classes
//! array    N × K 32-bit floats, little-endian, at a multiple of 64 bytes
//! line     LF, a JSON object, LF: {"id_digest":"…","text_digest":"…","sha256":"…"}
//! ```
//!
//! `numpy.load` does not read the line. It is in the same file, so that the array and its dataset cannot be confused.
//! `id_digest` is the id digest of the dataset. `text_digest` is the sum mod 2^128 of the XXH3-128 of each row's `hash`:
//! soft labels also belong to a dataset of the same texts with another vocabulary. `sha256` is the SHA-256 of the array's
//! bytes. Other programs may omit the last two. With two classes, the columns are the probabilities of label 0 and of
//! label 1.
//!
//! A file is complete when it gets its name, and no existing file is replaced.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use corpus::digest::Digest;
use durable::npy::{self, Header};
use durable::sha256;
use program::exit::{Exit, Failed};
use program::place::folder_of;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::training::temporary_beside;

/// Limit of the last line, which other programs may have written.
const LINE_BYTES_MAX: u64 = 4096;
const FLOAT_BYTES: usize = size_of::<f32>();
/// The sum of a row's probabilities differs from 1 by at most this.
pub const SUM_ERROR_MAX: f64 = 1e-3;

/// The probability of each class for each row of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoftLabels {
    n_classes: usize,
    /// `[N, K]`, as in the file.
    bytes: Vec<u8>,
}

/// A dataset to which soft labels may belong.
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a> {
    /// Its name, for messages.
    pub name: &'a Path,
    /// Its digests.
    pub digests: Digests,
    /// Its number of rows.
    pub n_rows: u64,
    /// Its number of classes.
    pub n_classes: usize,
}

/// Digests of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digests {
    /// The id digest.
    pub id: Digest,
    /// The sum of the digests of the texts' hashes.
    pub text: Digest,
}

/// The line behind the array.
#[derive(Serialize, Deserialize)]
struct Trailer {
    id_digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text_digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl SoftLabels {
    /// Probabilities of 0 for all rows.
    pub fn zeros(n_rows: usize, n_classes: usize) -> Self {
        Self { n_classes, bytes: vec![0; n_rows * n_classes * FLOAT_BYTES] }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.bytes.len() / (self.n_classes * FLOAT_BYTES)
    }

    /// Sets the probabilities of a row, one per class.
    pub fn put(&mut self, row: usize, probabilities: &[f32]) {
        for (to, probability) in self.row_mut(row).chunks_exact_mut(FLOAT_BYTES).zip(probabilities) {
            to.copy_from_slice(&probability.to_le_bytes());
        }
    }

    /// The probabilities of a row, one per class.
    pub fn row(&self, row: usize) -> impl Iterator<Item = f32> + '_ {
        let width = self.n_classes * FLOAT_BYTES;
        self.bytes[row * width..][..width].chunks_exact(FLOAT_BYTES).map(float)
    }

    /// The SHA-256 of the array, in hexadecimal digits.
    pub fn sha256(&self) -> String {
        sha256::of_bytes(&self.bytes)
    }

    /// Writes the soft labels of a dataset. An existing file is an error.
    pub fn write(&self, path: &Path, of: Digests) -> Result<()> {
        let failed = |source| Error::io(path, source);
        let line = Trailer { id_digest: of.id, text_digest: Some(of.text), sha256: Some(self.sha256()) };
        let line = serde_json::to_vec(&line).map_err(Failed::defect)?;
        let temporary = temporary_beside(path)?;
        let mut file = BufWriter::new(temporary.as_file());
        let header = npy::header(self.n_rows(), self.n_classes);
        let parts = [&header[..], &self.bytes, b"\n", &line, b"\n"];
        parts.iter().try_for_each(|part| file.write_all(part)).and_then(|()| file.flush()).map_err(failed)?;
        drop(file);
        temporary.as_file().sync_all().map_err(failed)?;
        match temporary.persist_noclobber(path) {
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => return Err(occupied(path)),
            Err(error) => return Err(failed(error.error)),
            Ok(_) => {}
        }
        match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
            // Some network file systems do not support this operation.
            Err(error) if error.kind() != ErrorKind::InvalidInput => Err(failed(error)),
            _ => Ok(()),
        }
    }

    /// Reads and checks soft labels of one of these datasets. Returns its index with them.
    pub fn read(path: &Path, datasets: &[Labelled<'_>]) -> Result<(usize, Self)> {
        let refused = |found: String, expected: &str| {
            let message = format!("{}: {found}, expected {expected}", path.display());
            Err(Failed::new(Exit::BadInput, message).into())
        };
        let mut file = File::open(path).map_err(|source| match source.kind() {
            ErrorKind::NotFound => {
                let expected =
                    "soft labels written by `predict --soft` of `trainer` or `ngrams`; check the path";
                Error::unusable(path, "no such file", expected)
            }
            _ => Error::io(path, source),
        })?;
        let bytes = file.metadata().map_err(|source| Error::io(path, source))?.len();
        let found = match Header::read(&mut file) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(Error::io(path, error)),
        };
        let Some(header) = found else {
            return refused(
                "another file".to_owned(),
                "an array of NumPy, written by `predict --soft` of `trainer` or `ngrams`",
            );
        };
        let Some([n_rows, n_classes]) = header.shape() else {
            let expected = "'<f4' in C order with two dimensions; save numpy.float32(array)";
            return refused(format!("an array with the header {}", header.dict.trim()), expected);
        };
        let header_bytes = header.bytes;
        let array_bytes = n_rows.checked_mul(n_classes).and_then(|n| n.checked_mul(FLOAT_BYTES as u64));
        let line_bytes = array_bytes.and_then(|array| bytes.checked_sub(header_bytes.checked_add(array)?));
        let (Some(array_bytes), Some(line_bytes)) = (array_bytes, line_bytes) else {
            let expected = format!("an array of {n_rows} × {n_classes} floats; write it again");
            return refused(format!("{bytes} bytes"), &expected);
        };
        let line = read_line(&mut file, header_bytes + array_bytes, line_bytes);
        let Some(line) = line.map_err(|source| Error::io(path, source))? else {
            let expected = "a line with the id digest of its dataset; NumPy omits it from a copy";
            return refused("no line behind the array".to_owned(), expected);
        };

        let of_ids = datasets.iter().position(|known| known.digests.id == line.id_digest);
        let of_texts = || datasets.iter().position(|known| Some(known.digests.text) == line.text_digest);
        let Some(at) = of_ids.or_else(of_texts) else {
            let expected: Vec<String> = datasets
                .iter()
                .map(|known| format!("{} of {}", known.digests.id, known.name.display()))
                .collect();
            let (path, found, expected) = (path.display(), line.id_digest, expected.join(" or "));
            let message = format!(
                "{path}: soft labels of the dataset with id digest {found}, expected {expected}; write them with \
                 `trainer predict MODEL DATASET --soft`"
            );
            return Err(Failed::new(Exit::Settings, message).into());
        };
        let known = &datasets[at];
        if (n_rows, n_classes) != (known.n_rows, known.n_classes as u64) {
            let expected = format!("({}, {}) as in {}", known.n_rows, known.n_classes, known.name.display());
            return refused(format!("shape ({n_rows}, {n_classes})"), &expected);
        }
        // The number of bytes is that of the dataset's rows, and of the file.
        let mut labels = Self::zeros(n_rows as usize, known.n_classes);
        rewind(&mut file, header_bytes)
            .and_then(|()| file.read_exact(&mut labels.bytes))
            .map_err(|source| Error::io(path, source))?;
        if line.sha256.is_some_and(|expected| expected != labels.sha256()) {
            let expected = "the array that was written; write it again";
            return refused("an array that does not match its SHA-256".to_owned(), expected);
        }
        match labels.fault() {
            Some(fault) => refused(fault, "probabilities from 0 to 1 with the sum 1 in each row"),
            None => Ok((at, labels)),
        }
    }

    fn row_mut(&mut self, row: usize) -> &mut [u8] {
        let width = self.n_classes * FLOAT_BYTES;
        &mut self.bytes[row * width..][..width]
    }

    /// The first row without valid probabilities.
    fn fault(&self) -> Option<String> {
        (0..self.n_rows()).find_map(|row| {
            if let Some(value) = self.row(row).find(|value| !(0.0..=1.0).contains(value)) {
                return Some(format!("{value} in row {row}"));
            }
            let sum: f64 = self.row(row).map(f64::from).sum();
            ((sum - 1.0).abs() > SUM_ERROR_MAX).then(|| format!("the sum {sum} in row {row}"))
        })
    }
}

/// Refuses an existing file.
pub fn check_new(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(_) => Err(occupied(path)),
        Err(_) => Ok(()),
    }
}

/// The error of a path where a file is.
pub fn occupied(path: &Path) -> Error {
    Error::occupied(path, "another file", "a new name", "choose another name")
}

fn float(bytes: &[u8]) -> f32 {
    let mut four = [0; FLOAT_BYTES];
    four.copy_from_slice(bytes);
    f32::from_le_bytes(four)
}

/// Reads the line behind the array. `None` if there is no such line.
fn read_line(file: &mut File, from: u64, bytes: u64) -> io::Result<Option<Trailer>> {
    if bytes > LINE_BYTES_MAX {
        return Ok(None);
    }
    rewind(file, from)?;
    let mut line = vec![0; bytes as usize];
    file.read_exact(&mut line)?;
    Ok(line.strip_prefix(b"\n").and_then(|line| serde_json::from_slice(line).ok()))
}

fn rewind(file: &mut File, to: u64) -> io::Result<()> {
    io::Seek::seek(file, io::SeekFrom::Start(to)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use durable::npy::{HEADER_BYTES, MAGIC};

    use super::*;

    const DIGEST: Digests = Digests { id: Digest(7), text: Digest(70) };
    const OTHER: Digests = Digests { id: Digest(8), text: Digest(80) };

    fn labels(rows: &[[f32; 2]]) -> SoftLabels {
        let mut labels = SoftLabels::zeros(rows.len(), 2);
        rows.iter().enumerate().for_each(|(row, probabilities)| labels.put(row, probabilities));
        labels
    }

    fn dataset(name: &str, digests: Digests, n_rows: u64, n_classes: usize) -> Labelled<'_> {
        Labelled { name: Path::new(name), digests, n_rows, n_classes }
    }

    fn refusal(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soft.npy");
        fs::write(&path, bytes).unwrap();
        let error = SoftLabels::read(&path, &[dataset("a.h5", DIGEST, 2, 2)]).unwrap_err().to_string();
        error.split_once("soft.npy: ").unwrap().1.to_owned()
    }

    fn written(labels: &SoftLabels) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soft.npy");
        labels.write(&path, DIGEST).unwrap();
        fs::read(path).unwrap()
    }

    /// The bytes of an array without a line, as NumPy writes them.
    fn array(dict: &str, floats: &[f32]) -> Vec<u8> {
        let floats: Vec<u8> = floats.iter().flat_map(|float| float.to_le_bytes()).collect();
        [&MAGIC[..], &[1, 0], &(dict.len() as u16).to_le_bytes(), dict.as_bytes(), &floats].concat()
    }

    #[test]
    fn soft_labels_are_those_that_were_written_for_the_dataset_of_their_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soft.npy");
        let labels = labels(&[[0.25, 0.75], [1.0, 0.0]]);
        labels.write(&path, DIGEST).unwrap();
        let datasets = [dataset("a.h5", OTHER, 9, 3), dataset("b.h5", DIGEST, 2, 2)];
        assert_eq!(SoftLabels::read(&path, &datasets).unwrap(), (1, labels.clone()));
        // The same texts with another vocabulary.
        let same_texts = Digests { text: DIGEST.text, ..OTHER };
        assert_eq!(SoftLabels::read(&path, &[dataset("c.h5", same_texts, 2, 2)]).unwrap(), (0, labels));
        assert_eq!(fs::metadata(&path).unwrap().len() as usize, HEADER_BYTES + 2 * 2 * 4 + 2 + 173);
        // No file is left but this one.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_existing_file_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soft.npy");
        fs::write(&path, "mine").unwrap();
        let error = labels(&[[0.5, 0.5]]).write(&path, DIGEST).unwrap_err().to_string();
        assert!(error.contains("soft.npy: already exists: found another file"), "{error}");
        assert_eq!(check_new(&path).unwrap_err().to_string(), error);
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn soft_labels_of_another_dataset_are_refused_by_its_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soft.npy");
        labels(&[[0.5, 0.5]]).write(&path, DIGEST).unwrap();
        let error = SoftLabels::read(&path, &[dataset("b.h5", OTHER, 1, 2)]).unwrap_err();
        assert_eq!(error.exit(), program::exit::Exit::Settings);
        let expected = "soft labels of the dataset with id digest 00000000000000000000000000000007, expected \
                        00000000000000000000000000000008 of b.h5";
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn an_array_without_its_line_is_refused() {
        let whole = written(&labels(&[[0.25, 0.75], [1.0, 0.0]]));
        let bare = &whole[..HEADER_BYTES + 16];
        for bytes in [bare.to_vec(), [bare, b"\n{}\n"].concat(), [bare, &[b' '; 5000]].concat()] {
            let told = refusal(&bytes);
            assert!(
                told.starts_with("no line behind the array, expected a line with the id digest"),
                "{told}"
            );
        }
        let told = refusal(&whole[..HEADER_BYTES + 15]);
        assert!(told.starts_with("143 bytes, expected an array of 2 × 2 floats"), "{told}");
    }

    #[test]
    fn an_array_of_another_shape_or_type_is_refused() {
        let told = refusal(&written(&labels(&[[0.5, 0.5]; 3])));
        assert_eq!(told, "shape (3, 2), expected (2, 2) as in a.h5");
        let doubles = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }";
        let told = refusal(&array(doubles, &[0.5; 8]));
        assert!(told.starts_with("an array with the header {'descr': '<f8'"), "{told}");
        for dict in [
            "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -2), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0), }",
        ] {
            let told = refusal(&array(dict, &[0.5; 4]));
            assert!(told.contains("expected '<f4' in C order with two dimensions"), "{told}");
        }
        let vast = "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9), }";
        assert!(refusal(&array(vast, &[0.5; 4])).contains("bytes, expected an array of 9223372036854775807"));
        for other in [&b""[..], b"PK\x03\x04", b"\x93NUMPY", b"\x93NUMPY\x09\x00\x00\x00"] {
            assert!(refusal(other).starts_with("another file, expected an array of NumPy"));
        }
    }

    #[test]
    fn values_that_are_no_probabilities_are_refused_with_their_row() {
        for (row, found) in [
            ([f32::NAN, 0.5], "NaN in row 1"),
            ([f32::INFINITY, 0.0], "inf in row 1"),
            ([-0.25, 1.25], "-0.25 in row 1"),
            ([0.5, 0.25], "the sum 0.75 in row 1"),
            ([1.0, 0.0078125], "the sum 1.0078125 in row 1"),
        ] {
            let told = refusal(&written(&labels(&[[0.5, 0.5], row])));
            assert_eq!(
                told,
                format!("{found}, expected probabilities from 0 to 1 with the sum 1 in each row")
            );
        }
        let mut damaged = written(&labels(&[[0.25, 0.75], [1.0, 0.0]]));
        damaged[HEADER_BYTES] ^= 1;
        assert!(refusal(&damaged).starts_with("an array that does not match its SHA-256"));
    }

    #[test]
    fn a_line_of_another_program_needs_only_the_digest() {
        let dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n";
        let line = "\n{\"id_digest\": \"00000000000000000000000000000007\"}\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soft.npy");
        fs::write(&path, [&array(dict, &[0.25, 0.75, 1.0, 0.0])[..], line.as_bytes()].concat()).unwrap();
        let found = SoftLabels::read(&path, &[dataset("a.h5", DIGEST, 2, 2)]).unwrap();
        assert_eq!(found, (0, labels(&[[0.25, 0.75], [1.0, 0.0]])));
    }
}
